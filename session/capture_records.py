"""Control Transfer Records in capture.json: how they are written and checked. See docs/capture-format.md."""

from collections.abc import Callable
from typing import Any

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.session.captured import CapturedRecords
from rvtrace_gdb.session.json_table import Member, Table

_REGISTERS = {"control": "control", "vs_control": "vs_control", "status": "status"}
_DEPTHS = (16, 32, 64, 128, 256)


def describe(records: CapturedRecords, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    """The description of one hart's records, and the member it refers to."""
    members[member] = records.data
    made = records.in_force
    return {
        "name": made.name,
        "hart": records.hart,
        "ctr_version": made.version,
        "xlen": made.xlen,
        "depth": made.depth,
        "registers": {name: f"{getattr(made, field):#018x}" for field, name in _REGISTERS.items()},
        "misa": _hex(made.misa),
        "pc": _hex(made.pc),
        "privilege": made.privilege,
        "member": member,
        "size": len(records.data),
    }


def _hex(value: int | None) -> str | None:
    return None if value is None else f"{value:#x}"


def read(root: Table, fetch: Callable[[Member], bytes]) -> tuple[CapturedRecords, ...]:
    """All of them. Raises `BadDescription` and what *fetch* raises."""
    return tuple(_read(table, fetch) for table in root.tables("records"))


def _read(table: Table, fetch: Callable[[Member], bytes]) -> CapturedRecords:
    version = table.text("ctr_version")
    if version not in VERSIONS:
        raise table.bad("ctr_version")
    registers = table.registers(_REGISTERS.values(), bits=64)
    in_force = CtrInForce(
        table.text("name"),
        version,
        table.number("xlen", (32, 64)),
        table.number("depth", _DEPTHS),
        **{field: registers[name] for field, name in _REGISTERS.items()},
        misa=table.optional("misa", table.address),
        pc=table.optional("pc", table.address),
        privilege=table.optional("privilege", lambda key: table.number(key, range(8))),
    )
    member = table.member()
    if member.size is None or member.size % ENTRY_BYTES or member.size > in_force.depth * ENTRY_BYTES:
        raise table.bad("size")
    return CapturedRecords(table.number("hart"), in_force, fetch(member))
