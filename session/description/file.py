"""The file of a target description: a small TOML file that says where the trace components of a target are.

The Trace Control Interface 1.0 leaves base addresses and connections to configuration on purpose (there is no
discovery), so they are written down once per board:

    [target]
    name = "my board"            # for messages; default: the file's name
    xlen = 64                    # only needed when the ELF does not tell

    [openocd]
    host = "127.0.0.1"           # the defaults
    tcl_port = 6666

    [[component]]
    name = "encoder0"
    type = "encoder"
    base = 0x20000000            # of its 4 KiB of registers, as seen from the system bus
    hart = 0                     # the hart it traces, in OpenOCD's order; default 0
    to = ["ram0"]                # what it feeds; may be left out while there is only one thing to feed
    [component.etrace]           # only of E-Trace encoders: what no register tells (docs/etrace.md)
    iaddress_width = 39

    [[component]]
    name = "ram0"
    type = "ram_sink"
    base = 0x20001000
    mode = "SMEM"                # a buffer in system memory; "SRAM": the sink's own memory
    start = 0x30000000           # of the buffer; SMEM needs both, and nothing else may use that memory
    size = 0x10000               # bytes

Funnels, pin interfaces and bridges to Arm's trace bus are written the same way, see docs/target-description.md; USB
adapters and ports of tandem traces have tables of their own (`session.description.tables`), and so have memory
(`session.description.memory`) and CoreSight components (`session.description.coresight`). Anything misspelt, missing or
contradictory is refused with one line that names file, table and key; connections are checked by
`session.description.connections`.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from rvtrace_gdb.decode.ntrace.messages import MAX_REPEAT_BITS
from rvtrace_gdb.decode.ntrace.options import REPEAT_BITS
from rvtrace_gdb.session.capture.etrace_settings import BadSetting, SettingValue, check_settings, etrace_of
from rvtrace_gdb.session.description import coresight, memory, tables
from rvtrace_gdb.session.description.connections import FUNNEL_INPUTS, connected, table_of
from rvtrace_gdb.session.description.model import (
    RATIFIED,
    TRAP_RETURNS,
    AnyComponent,
    AtbBridgeDescription,
    AtbLinkDescription,
    AxiStreamSinkDescription,
    Description,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    LinkDescription,
    OpenOcdDescription,
    PibSinkDescription,
    RamSinkDescription,
    TmcSinkDescription,
)
from rvtrace_gdb.session.description.static_funnels import without_static_funnels
from rvtrace_gdb.session.description.tables import Tables, TomlTable
from rvtrace_gdb.session.description.tacit import read_tacit
from rvtrace_gdb.session.description.tracers import read_tracers
from rvtrace_gdb.support import toml
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem

_TABLES = ("target", "openocd", "usb", "component", "tandem", "tracer", "tacit", "memory", "qemu")
_KEYS = {
    "encoder": ("name", "type", "base", "hart", "to", "etrace", "version", "repeat_bits"),
    "ram_sink": ("name", "type", "base", "mode", "start", "size", "inside"),
    "funnel": ("name", "type", "base", "to", "inputs", "version", "hart"),
    "pib_sink": ("name", "type", "base", "mode", "divider", "clk_center", "inside"),
    "atb_bridge": ("name", "type", "base", "id", "inside", "to", "hart"),
    "axi_stream_sink": ("name", "type", "base"),
    **coresight.KEYS,
}
_VERSIONS = range(RATIFIED + 1)
POWER_OF_HARTS = "hart"
"""The value of `power` in [target] with which a component that names a hart needs its power."""
POWER_DOMAINS = (POWER_OF_HARTS, "always")
# Trace Control Interface 1.0, chapter on the PIB, table of allowed configurations. Only the parallel ones have a clock.
PARALLEL = tuple(f"parallel_{width}" for width in (1, 2, 4, 8, 16))
PIB_MODES = ("swt_manchester", "swt_uart", *PARALLEL)
_DIVISIONS = range(1, (1 << 16) + 1)  # by trPibDivider + 1
_ATB_IDS = range(0x01, 0x70)  # trAtbBridgeID: 0x00 and 0x70 to 0x7F are reserved by the ATB specification


def load(path: Path) -> Description:
    """Read the description at *path*. Raises `DescriptionError`."""
    try:
        text = read_input(path).decode()
    except UnicodeDecodeError:
        raise DescriptionError("is not a TOML file: it is not UTF-8 text", str(path)) from None
    except (OSError, ValueError) as error:
        raise DescriptionError(f"cannot be read: {open_problem(error)}", str(path)) from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Description:
    """Read a description from TOML *text*; *file* is its name in messages. Raises `DescriptionError`."""
    try:
        document = toml.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"is not a TOML file: {error}", file) from None
    except ValueError:
        raise DescriptionError("is not a TOML file that can be read: a number has too many digits", file) from None
    except RecursionError:
        raise DescriptionError("is nested too deeply", file) from None
    return _description(Tables(file), document)


def _description(read: Tables, document: dict[str, object]) -> Description:
    read.check_keys(document, "", _TABLES)
    target = read.table(document, "target", ("name", "xlen", "power", "context_notify"))
    openocd = read.table(document, "openocd", ("host", "tcl_port"))
    usb = tables.read_usb(read, document)
    if "qemu" in document and "tandem" not in document:
        return _qemu(read, document, target, openocd)
    tables_of_components = without_static_funnels(read, read.tables(document, "component"))
    components = [_component(read, table, number) for number, table in enumerate(tables_of_components, 1)]
    tandem = tables.read_tandem(read, document, components)
    tracers = read_tracers(read, document, [*components, *tandem])
    tacit = read_tacit(read, document, [*components, *tandem, *tracers])
    ranges = memory.read_memory(read, document)
    if components or not (tandem or tracers or tacit or ranges or usb):  # Control Transfer Records need no components
        components = connected(read, components)
    return Description(
        name=read.string(target, "[target]", "name", Path(read.file).name),
        file=read.file,
        xlen=_xlen(read, target),
        openocd=OpenOcdDescription(
            read.string(openocd, "[openocd]", "host", OpenOcdDescription.host), _port(read, openocd)
        ),
        encoders=tuple(c for c in components if isinstance(c, EncoderDescription)),
        sinks=tuple(c for c in components if isinstance(c, RamSinkDescription)),
        funnels=tuple(c for c in components if isinstance(c, FunnelDescription)),
        pib_sinks=tuple(c for c in components if isinstance(c, PibSinkDescription)),
        bridges=tuple(c for c in components if isinstance(c, AtbBridgeDescription)),
        usb=usb,
        tandem=tandem,
        tracers=tracers,
        tacit=tacit,
        memory=ranges,
        links=tuple(c for c in components if isinstance(c, LinkDescription)),
        tmc_sinks=tuple(c for c in components if isinstance(c, TmcSinkDescription)),
        stream_sinks=tuple(c for c in components if isinstance(c, AxiStreamSinkDescription)),
        hart_power="power" in target and read.choice(target, "[target]", "power", POWER_DOMAINS) == POWER_OF_HARTS,
        context_notify=_context_notify(read, target),
    )


def _qemu(read: Tables, document: dict[str, object], target: TomlTable, openocd: TomlTable) -> Description:
    """Return the description of a QEMU, which needs no components."""
    if "component" in document:
        raise read.error("there are none in QEMU: remove either [qemu] or [[component]]", "[[component]]", "")
    qemu = read.table(document, "qemu", ("folder",))
    name = read.string(target, "[target]", "name", "QEMU")
    folder = read.string(qemu, "[qemu]", "folder")
    ranges = memory.read_memory(read, document)
    return Description(name, read.file, _xlen(read, target), OpenOcdDescription(), (), (), qemu=folder, memory=ranges)


def _xlen(read: Tables, target: TomlTable) -> int | None:
    if "xlen" not in target:
        return None
    xlen = read.integer(target, "[target]", "xlen")
    if xlen not in (32, 64):
        raise read.error(f"is {xlen}, must be 32 or 64", "[target]", "xlen")
    return xlen


def _context_notify(read: Tables, target: TomlTable) -> tuple[str, ...]:
    names = read.names(target, "[target]", "context_notify")
    for name in names:
        if name not in TRAP_RETURNS:
            raise read.error(f'"{name}" is not one of {", ".join(TRAP_RETURNS)}', "[target]", "context_notify")
    return names


def _port(read: Tables, table: TomlTable) -> int:
    port = read.integer(table, "[openocd]", "tcl_port", OpenOcdDescription.tcl_port)
    if not 1 <= port <= 65535:
        raise read.error(f"{port} is not a TCP port (1 to 65535)", "[openocd]", "tcl_port")
    return port


def _component(read: Tables, table: TomlTable, number: int) -> AnyComponent:
    """Return one component as written; its connections are checked when all components are known."""
    name = read.string(table, f"[[component]] {number}", "name")
    where = table_of(name)
    kind = read.choice(table, where, "type", tuple(_KEYS))
    read.check_keys(table, where, _KEYS[kind])
    return _KINDS[kind](read, table, where, name)


def _encoder(read: Tables, table: TomlTable, where: str, name: str) -> EncoderDescription:
    base, hart, to = read.base(table, where), read.integer(table, where, "hart", 0), read.names(table, where, "to")
    etrace = _etrace(read, table.get("etrace", {}), where)
    return EncoderDescription(
        name, base, hart, to, etrace, _described_version(read, table, where), _repeat_bits(read, table, where)
    )


def _repeat_bits(read: Tables, table: TomlTable, where: str) -> int | None:
    if "repeat_bits" not in table:
        return None
    bits = read.integer(table, where, "repeat_bits", MAX_REPEAT_BITS)
    if bits not in REPEAT_BITS:
        most = REPEAT_BITS.stop - 1
        raise read.error(f"{bits} is not a number of bits from {REPEAT_BITS.start} to {most}", where, "repeat_bits")
    return bits


def _etrace(read: Tables, table: object, where: str) -> Mapping[str, SettingValue]:
    if not isinstance(table, dict):
        raise read.error("must be a table, as in etrace = {iaddress_width = 39}", where, "etrace")
    try:
        values = check_settings(table)
        etrace_of(values)
    except BadSetting as error:
        raise read.error(error.problem, where, f"etrace.{error.key}") from None
    return values


def _funnel(read: Tables, table: TomlTable, where: str, name: str) -> FunnelDescription:
    base, to = read.base(table, where), read.names(table, where, "to")
    inputs = read.numbered(table, where, "inputs", FUNNEL_INPUTS)
    version = _described_version(read, table, where)
    return FunnelDescription(name, base, to, inputs, version, _power(read, table, where))


def _described_version(read: Tables, table: TomlTable, where: str) -> int:
    version = read.within(table, where, "version", _VERSIONS)
    return RATIFIED if version is None else version


def _ram_sink(read: Tables, table: TomlTable, where: str, name: str) -> RamSinkDescription:
    base, inside = _sink_place(read, table, where)
    mode = read.choice(table, where, "mode", ("SMEM", "SRAM"))
    if mode == "SMEM":
        for key in ("start", "size"):
            if key not in table:
                raise read.error("missing: an SMEM sink writes to memory that must be reserved for it", where, key)
    return RamSinkDescription(
        name, base, mode, read.words(table, where, "start"), read.words(table, where, "size"), inside
    )


def _pib_sink(read: Tables, table: TomlTable, where: str, name: str) -> PibSinkDescription:
    base, inside = _sink_place(read, table, where)
    mode = read.choice(table, where, "mode", PIB_MODES) if "mode" in table else None
    center = read.switch(table, where, "clk_center")
    if center and mode not in PARALLEL:
        raise read.error(f"needs a mode with a clock: {', '.join(PARALLEL)}", where, "clk_center")
    return PibSinkDescription(name, base, mode, read.within(table, where, "divider", _DIVISIONS), center, inside)


def _atb_bridge(read: Tables, table: TomlTable, where: str, name: str) -> AtbBridgeDescription | AtbLinkDescription:
    base, inside = _sink_place(read, table, where)
    to, hart = read.names(table, where, "to"), _power(read, table, where)
    atb_id = read.within(table, where, "id", _ATB_IDS)
    if not to:
        return AtbBridgeDescription(name, base, atb_id, inside, hart)
    if inside:
        raise read.error(f'what is inside of "{inside}" feeds nothing that is described here', where, "to")
    if atb_id is None:
        raise read.error("missing: traces are told apart by it in what the bridge feeds", where, "id")
    return AtbLinkDescription(name, base, to, atb_id, hart)


def _stream_sink(read: Tables, table: TomlTable, where: str, name: str) -> AxiStreamSinkDescription:
    return AxiStreamSinkDescription(name, read.base(table, where))


def _power(read: Tables, table: TomlTable, where: str) -> int | None:
    """Return the hart whose power a component needs, None if it names none."""
    return read.integer(table, where, "hart") if "hart" in table else None


def _sink_place(read: Tables, table: TomlTable, where: str) -> tuple[int, str]:
    """Return the base of a sink, or the name of the component it is inside."""
    if "inside" not in table:
        return read.base(table, where), ""
    inside = read.string(table, where, "inside")
    if "base" in table:
        raise read.error(f'is that of "{inside}", which it is inside of: leave it out', where, "base")
    return 0, inside


_KINDS: Mapping[str, Callable[[Tables, TomlTable, str, str], AnyComponent]] = {
    "encoder": _encoder,
    "ram_sink": _ram_sink,
    "funnel": _funnel,
    "pib_sink": _pib_sink,
    "atb_bridge": _atb_bridge,
    "axi_stream_sink": _stream_sink,
    **coresight.READERS,
}
