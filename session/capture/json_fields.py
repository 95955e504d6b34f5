"""The parts of capture.json that have tables of their own: the fields of each kind of sink, and of traps.

The registers of encoders and RAM sinks have the names
that their interface gives them; Control Transfer Records and tandem traces have tables of their own.
docs/capture-format.md is the reference.
"""

from typing import Any

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.sifive_v0 import settings as v0
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, SinkSettings
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, BadParameters, TandemParameters
from rvtrace_gdb.session.capture.json_document import JsonTable, MemberFetch
from rvtrace_gdb.session.capture.model import (
    BranchPort,
    CapturedBranches,
    CapturedPort,
    CapturedRecords,
    CapturedTandem,
    CapturedTrap,
)

_ENCODER_REGISTERS = {
    "control": "trTeControl",
    "impl": "trTeImpl",
    "features": "trTeInstFeatures",
    "ts_control": "trTsControl",
}
_DATA_REGISTERS = "trTeDataControl"
"""Registers of encoders that can trace data."""
_FILTER_REGISTERS = "trTeInstFilters"
"""Written only if they are known."""
_ENCODER_REGISTERS_V0 = {"control": "teControl", "impl": "teImpl", "ts_control": "tsControl"}
_SINK_REGISTERS = ("trRamControl", "trRamImpl")
_TMC_REGISTERS = ("FFCR", "DEVID", "AXICTL")
_HOSTS = {"teControl": "encoder", "tfControl": "funnel"}
"""The component that contains a sink of version 0, by the register that says so."""


def encoder_registers(traced: EncoderSettings) -> dict[str, str]:
    """Return the registers by name, as text."""
    names = _ENCODER_REGISTERS if traced.version else _ENCODER_REGISTERS_V0
    registers = {name: f"{getattr(traced, field):#010x}" for field, name in names.items()}
    if traced.data_control:
        registers[_DATA_REGISTERS] = f"{traced.data_control:#010x}"
    if traced.inst_filters is not None:
        registers[_FILTER_REGISTERS] = f"{traced.inst_filters:#010x}"
    return registers


def read_encoder(table: JsonTable) -> EncoderSettings:
    """Return the encoder. Raises `BadDescription`."""
    name, base = table.text("name"), table.address("base")
    if _has_field(table, _ENCODER_REGISTERS_V0["control"]):
        registers = table.registers(_ENCODER_REGISTERS_V0.values())
        control, impl, ts_control = (registers[name] for name in _ENCODER_REGISTERS_V0.values())
        return v0.V0EncoderSettings(name, base, control, impl, 0, ts_control)
    registers = table.registers(_ENCODER_REGISTERS.values(), (_DATA_REGISTERS, _FILTER_REGISTERS))
    values = {field: registers[name] for field, name in _ENCODER_REGISTERS.items()}
    filters = registers.get(_FILTER_REGISTERS)
    return EncoderSettings(name, base, **values, data_control=registers.get(_DATA_REGISTERS, 0), inst_filters=filters)


def sink_registers(stored: SinkSettings) -> dict[str, str]:
    """Return the registers by name, as text."""
    return {name: f"{value:#010x}" for name, value in stored.registers.items()}


def read_sink(table: JsonTable) -> SinkSettings:
    """Return the sink. Raises `BadDescription`."""
    place: dict[str, Any] = {key: table.address(key) for key in ("start", "limit")}
    place |= {"name": table.text("name"), "base": table.address("base"), "access_bytes": table.number("access_bytes")}
    for control, host in _HOSTS.items():
        if _has_field(table, control):
            impl = control.replace("Control", "Impl")
            found = table.registers((control, impl))
            return v0.V0SinkSettings(control=found[control], impl=found[impl], host=host, **place)
    if _has_field(table, _TMC_REGISTERS[0]):
        from rvtrace_gdb.controlregs.coresight.settings import TmcSettings  # few captures have any

        found = table.registers(_TMC_REGISTERS)
        return TmcSettings(control=found["FFCR"], impl=found["DEVID"], axictl=found["AXICTL"], **place)
    registers = table.registers(_SINK_REGISTERS)
    return SinkSettings(control=registers["trRamControl"], impl=registers["trRamImpl"], **place)


def _has_field(table: JsonTable, register: str) -> bool:
    registers = table.table("registers")
    return registers is not None and register in registers.fields


_REGISTERS = ("control", "vs_control", "status")
_DEPTHS = (16, 32, 64, 128, 256)


def describe_records(records: CapturedRecords, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    """Return the description of one hart's records, and add the member it refers to."""
    members[member] = records.data
    settings = records.in_force
    return {
        "name": settings.name,
        "hart": records.hart,
        "ctr_version": settings.version,
        "xlen": settings.xlen,
        "depth": settings.depth,
        "registers": {name: f"{getattr(settings, name):#018x}" for name in _REGISTERS},
        "misa": _hex(settings.misa),
        "pc": _hex(settings.pc),
        "privilege": settings.privilege,
        "begin": _hex(settings.begin),
        **({"samples": records.samples} if records.samples else {}),
        "member": member,
        "size": len(records.data),
    }


def _hex(value: int | None) -> str | None:
    return None if value is None else f"{value:#x}"


def read_records(root: JsonTable, fetch: MemberFetch) -> tuple[CapturedRecords, ...]:
    """Return the records of all harts. Raises `BadDescription` and what *fetch* raises."""
    return tuple(_read_records_of_hart(table, fetch) for table in root.tables("records"))


def _read_records_of_hart(table: JsonTable, fetch: MemberFetch) -> CapturedRecords:
    version = table.text("ctr_version")
    if version not in VERSIONS:
        raise table.bad("ctr_version")
    in_force = CtrRegisterValues(
        table.text("name"),
        version,
        table.number("xlen", (32, 64)),
        table.number("depth", _DEPTHS),
        **table.registers(_REGISTERS, bits=64),
        misa=table.optional("misa", table.address),
        pc=table.optional("pc", table.address),
        privilege=table.optional("privilege", lambda key: table.number(key, range(8))),
        begin=table.optional("begin", table.address),
    )
    member, samples = table.member(), table.optional("samples", table.number) or 0
    most = (in_force.depth + 1) * samples or in_force.depth  # a sample ends with the interrupt that took it
    if member.size is None or member.size % ENTRY_BYTES or member.size > most * ENTRY_BYTES:
        raise table.bad("size")
    return CapturedRecords(table.number("hart"), in_force, fetch(member), samples)


_WIDTHS = range(65)  # Parameters checks which of them an encoder can have
_SIZES = ("xlen", "flen", "mlen", "eaddr")


def describe_tandem(captured: CapturedTandem, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    """Return the description of one hart's trace, and add the member it refers to."""
    members[member] = captured.data
    parameters = captured.in_force.parameters
    return {
        "name": captured.in_force.name,
        "hart": captured.hart,
        "dialect": parameters.dialect.name,
        **{name: getattr(parameters, name) for name in _SIZES},
        "supervisor": parameters.supervisor,
        "member": member,
        "size": len(captured.data),
        "wrapped": captured.wrapped,
    }


def read_tandem(root: JsonTable, fetch: MemberFetch) -> tuple[CapturedTandem, ...]:
    """Return the tandem traces of all harts. Raises `BadDescription` and what *fetch* raises."""
    return tuple(
        CapturedTandem(
            table.number("hart"), CapturedPort(table.text("name"), _parameters(table)),
            fetch(table.member()), table.flag("wrapped"),
        )
        for table in root.tables("tandem")
    )  # fmt: skip


def _parameters(table: JsonTable) -> TandemParameters:
    dialect = DIALECTS.get(table.text("dialect"))
    if dialect is None:
        raise table.bad("dialect")
    try:
        sizes = {name: table.number(name, _WIDTHS) for name in _SIZES}
        return TandemParameters(**sizes, dialect=dialect, supervisor=table.flag("supervisor"))
    except BadParameters as error:
        raise table.bad(error.name) from None


_PRIVILEGED = (1, 3)  # modes that take traps: S and M


def describe_trap(trap: CapturedTrap) -> dict[str, Any]:
    """Return the description of what one hart said of its last trap."""
    mode, *values = trap.registers
    names = trap.registers._fields[1:]
    return {"hart": trap.hart, "mode": mode, **{name: f"{value:#x}" for name, value in zip(names, values, strict=True)}}


def read_traps(root: JsonTable) -> tuple[CapturedTrap, ...]:
    """Return what harts said of their last traps. Raises `BadDescription`."""
    from rvtrace_gdb.decode.trap_cause import TrapRegisters  # few captures have any

    names = TrapRegisters._fields[1:]
    return tuple(
        CapturedTrap(
            table.number("hart"), TrapRegisters(table.number("mode", _PRIVILEGED), *(table.address(it) for it in names))
        )
        for table in root.tables("traps")
    )


def describe_branches(captured: CapturedBranches, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    """Return the description of one hart's trace of transfers, and add the member it refers to."""
    members[member] = captured.data
    port = captured.in_force
    return {
        "name": port.name,
        "hart": captured.hart,
        "kind": port.kind,
        "registers": {name: f"{value:#x}" for name, value in port.registers},
        "member": member,
        "size": len(captured.data),
        "wrapped": captured.wrapped,
    }


def read_branches(root: JsonTable, fetch: MemberFetch) -> tuple[CapturedBranches, ...]:
    """Return the traces of transfers of all harts. Raises `BadDescription` and what *fetch* raises."""
    return tuple(_read_branches_of_hart(table, fetch) for table in root.tables("branches"))


def _read_branches_of_hart(table: JsonTable, fetch: MemberFetch) -> CapturedBranches:
    from rvtrace_gdb.decode.branches import READERS  # few captures have any

    kind = table.text("kind")
    if kind not in READERS:
        raise table.bad("kind")
    found = table.table("registers")
    registers = () if found is None else tuple((name, found.address(name)) for name in found.fields)
    port = BranchPort(table.text("name"), kind, registers)
    return CapturedBranches(table.number("hart"), port, fetch(table.member()), table.flag("wrapped"))
