"""Where the trace components of a target are: the target description, a small TOML file.

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

Funnels, pin interfaces and bridges to Arm's trace bus are written the same way, see docs/target-description.md; ports
of tandem traces have tables of their own (`description_tandem`).
Anything misspelt, missing or contradictory is refused with one line that names file, table and key.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rvtrace_gdb.session import description_graph, description_tandem, description_usb
from rvtrace_gdb.session.description import (
    RATIFIED,
    AnyComponent,
    AtbBridge,
    Description,
    DescriptionError,
    Encoder,
    Funnel,
    OpenOcd,
    PibSink,
    RamSink,
)
from rvtrace_gdb.session.description_tables import Table, Tables
from rvtrace_gdb.session.etrace import made
from rvtrace_gdb.session.etrace_settings import BadSetting, Value, checked
from rvtrace_gdb.support.text import why_not

_KEYS = {
    "encoder": ("name", "type", "base", "hart", "to", "etrace", "version"),
    "ram_sink": ("name", "type", "base", "mode", "start", "size", "inside"),
    "funnel": ("name", "type", "base", "to", "inputs", "version"),
    "pib_sink": ("name", "type", "base", "mode", "divider", "clk_center", "inside"),
    "atb_bridge": ("name", "type", "base", "id", "inside"),
}
_VERSIONS = range(RATIFIED + 1)
# Trace Control Interface 1.0, chapter on the PIB, table of allowed configurations. Only the parallel ones have a clock.
PARALLEL = tuple(f"parallel_{width}" for width in (1, 2, 4, 8, 16))
PIB_MODES = ("swt_manchester", "swt_uart", *PARALLEL)
_DIVISIONS = range(1, (1 << 16) + 1)  # by trPibDivider + 1
_ATB_IDS = range(0x01, 0x70)  # trAtbBridgeID: 0x00 and 0x70 to 0x7F are reserved by the ATB specification


def load(path: Path) -> Description:
    """Read the description at *path*. Raises `DescriptionError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DescriptionError("is no TOML file: it is not UTF-8 text", str(path)) from None
    except (OSError, ValueError) as error:
        raise DescriptionError(f"cannot be read: {why_not(error)}", str(path)) from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Description:
    """Read a description from TOML *text*; *file* is its name in messages. Raises `DescriptionError`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"is no TOML file: {error}", file) from None
    except ValueError:
        raise DescriptionError("is no TOML file that can be read: a number has too many digits", file) from None
    except RecursionError:
        raise DescriptionError("is nested too deeply", file) from None
    return _description(Tables(file), document)


def _description(read: Tables, document: dict[str, Any]) -> Description:
    read.known(document, "", ("target", "openocd", "usb", "component", "tandem", "qemu"))
    target = read.table(document, "target", ("name", "xlen"))
    openocd = read.table(document, "openocd", ("host", "tcl_port"))
    usb = description_usb.read(read, document)
    if "qemu" in document and "tandem" not in document:
        return _qemu(read, document, target, openocd)
    components = [_component(read, table, number) for number, table in enumerate(read.tables(document, "component"), 1)]
    tandem = description_tandem.read(read, document, components)
    if components or not tandem:
        components = description_graph.connected(read, components)
    return Description(
        name=read.string(target, "[target]", "name", Path(read.file).name),
        file=read.file,
        xlen=_xlen(read, target),
        openocd=OpenOcd(read.string(openocd, "[openocd]", "host", OpenOcd.host), _port(read, openocd)),
        encoders=tuple(c for c in components if isinstance(c, Encoder)),
        sinks=tuple(c for c in components if isinstance(c, RamSink)),
        funnels=tuple(c for c in components if isinstance(c, Funnel)),
        pib_sinks=tuple(c for c in components if isinstance(c, PibSink)),
        bridges=tuple(c for c in components if isinstance(c, AtbBridge)),
        usb=usb,
        tandem=tandem,
    )


def _qemu(read: Tables, document: dict[str, Any], target: Table, openocd: Table) -> Description:
    """A QEMU, which needs no components."""
    if "component" in document:
        raise read.error("there are none in QEMU: leave out either [qemu] or [[component]]", "[[component]]", "")
    qemu = read.table(document, "qemu", ("folder",))
    name = read.string(target, "[target]", "name", "QEMU")
    folder = read.string(qemu, "[qemu]", "folder")
    return Description(name, read.file, _xlen(read, target), OpenOcd(), (), (), qemu=folder)


def _xlen(read: Tables, target: Table) -> int | None:
    if "xlen" not in target:
        return None
    xlen = read.integer(target, "[target]", "xlen")
    if xlen not in (32, 64):
        raise read.error(f"is {xlen}, must be 32 or 64", "[target]", "xlen")
    return xlen


def _port(read: Tables, table: Table) -> int:
    port = read.integer(table, "[openocd]", "tcl_port", OpenOcd.tcl_port)
    if not 1 <= port <= 65535:
        raise read.error(f"{port} is no TCP port (1 to 65535)", "[openocd]", "tcl_port")
    return port


def _component(read: Tables, table: Table, number: int) -> AnyComponent:
    """One component as it is written; what it is connected with is checked when all are known."""
    name = read.string(table, f"[[component]] {number}", "name")
    where = description_graph.table_of(name)
    kind = read.choice(table, where, "type", tuple(_KEYS))
    read.known(table, where, _KEYS[kind])
    return _KINDS[kind](read, table, where, name)


def _encoder(read: Tables, table: Table, where: str, name: str) -> Encoder:
    base, hart, to = read.base(table, where), read.integer(table, where, "hart", 0), read.names(table, where, "to")
    etrace = _etrace(read, table.get("etrace", {}), where)
    return Encoder(name, base, hart, to, etrace, _version(read, table, where))


def _etrace(read: Tables, table: object, where: str) -> Mapping[str, Value]:
    if not isinstance(table, dict):
        raise read.error("must be a table, as in etrace = {iaddress_width = 39}", where, "etrace")
    try:
        values = checked(table)
        made(values)
    except BadSetting as error:
        raise read.error(error.problem, where, f"etrace.{error.key}") from None
    return values


def _funnel(read: Tables, table: Table, where: str, name: str) -> Funnel:
    base, to = read.base(table, where), read.names(table, where, "to")
    inputs = read.numbered(table, where, "inputs", description_graph.FUNNEL_INPUTS)
    return Funnel(name, base, to, inputs, _version(read, table, where))


def _version(read: Tables, table: Table, where: str) -> int:
    version = read.within(table, where, "version", _VERSIONS)
    return RATIFIED if version is None else version


def _ram_sink(read: Tables, table: Table, where: str, name: str) -> RamSink:
    base, inside = _place(read, table, where)
    mode = read.choice(table, where, "mode", ("SMEM", "SRAM"))
    if mode == "SMEM":
        for key in ("start", "size"):
            if key not in table:
                raise read.error("missing: an SMEM sink writes to memory that must be reserved for it", where, key)
    return RamSink(name, base, mode, read.words(table, where, "start"), read.words(table, where, "size"), inside)


def _pib_sink(read: Tables, table: Table, where: str, name: str) -> PibSink:
    base, inside = _place(read, table, where)
    mode = read.choice(table, where, "mode", PIB_MODES) if "mode" in table else None
    center = read.switch(table, where, "clk_center")
    if center and mode not in PARALLEL:
        raise read.error(f"needs a mode with a clock: {', '.join(PARALLEL)}", where, "clk_center")
    return PibSink(name, base, mode, read.within(table, where, "divider", _DIVISIONS), center, inside)


def _atb_bridge(read: Tables, table: Table, where: str, name: str) -> AtbBridge:
    base, inside = _place(read, table, where)
    return AtbBridge(name, base, read.within(table, where, "id", _ATB_IDS), inside)


def _place(read: Tables, table: Table, where: str) -> tuple[int, str]:
    """The base of a sink, or what it is inside of."""
    if "inside" not in table:
        return read.base(table, where), ""
    inside = read.string(table, where, "inside")
    if "base" in table:
        raise read.error(f'is that of "{inside}", which it is inside of: leave it out', where, "base")
    return 0, inside


_KINDS: Mapping[str, Callable[[Tables, Table, str, str], AnyComponent]] = {
    "encoder": _encoder,
    "ram_sink": _ram_sink,
    "funnel": _funnel,
    "pib_sink": _pib_sink,
    "atb_bridge": _atb_bridge,
}
