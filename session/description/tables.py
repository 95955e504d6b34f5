"""The tables of a target description: values are taken out and checked, or written down as the text of its file.

Every error names file, table and key. `session.description.file.parse` reads the text that `text` writes as the
same description.

The table [usb] is the adapter that leads to the target, in the place of [openocd]:

    [usb]
    adapter = "esp"              # Espressif's built-in USB-JTAG; "mpsse": FTDI FT232H, FT2232H, FT4232H
    serial = "60:55:F9:00:00:01" # only needed if there are several
    khz = 10000                  # of TCK
    tap = 0                      # which TAP of the scan chain, counted from TDO; default 0
    ir_lengths = [5]             # only if there are several TAPs, and not all have 5 bits
    interface = 0                # MPSSE only: the channel, 0 is A
    layout = [0x0008, 0x000b]    # MPSSE only: levels and directions of the pins, as OpenOCD's `ftdi layout_init`

The tables [[tandem]] say where a hart's tandem trace arrives, and what the trace does not say itself:

    [[tandem]]
    name = "tandem0"
    hart = 0                     # default 0
    file = "hart0.tvt"           # what the hart does is appended to it; relative to the description's folder
    socket = "tcp:localhost:9000" # in the place of file: tcp:HOST:PORT or unix:PATH, connected to by `trace start`
    dialect = "flute"            # what the encoder does differently, docs/tandem.md; default "specification"
    flen = 64                    # 32 or 64, 0: no floating-point registers; default: as the ELF has it
    mlen = 34                    # 32, 34 or 64; default: XLEN
    eaddr = 32                   # bits of an effective address; default: as the dialect has it
    supervisor = false           # no S-mode: addresses are physical; default true
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rvtrace_gdb.decode.reconstruction.facts import MemoryRange
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, SPECIFICATION, BadParameters, TandemParameters
from rvtrace_gdb.session.capture.etrace_settings import SettingValue
from rvtrace_gdb.session.description.model import (
    RATIFIED,
    AnyComponent,
    AtbBridgeDescription,
    AtbLinkDescription,
    BufferDescription,
    CoresightFunnelDescription,
    Description,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    PibSinkDescription,
    RamSinkDescription,
    SourceDescription,
    TandemDescription,
    TmcLinkDescription,
    TmcSinkDescription,
    UsbDescription,
    host_of,
    power_of,
)
from rvtrace_gdb.support import typed
from rvtrace_gdb.support.text import printable, value_text
from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Driver

REGISTER_BLOCK = 0x1000  # Trace Control Interface 1.0: one 4 KiB-aligned block of 4 KiB per component

TomlTable = Mapping[str, object]
_NUMBERS = range(1 << 64)


class Tables:
    """Reads the tables of one document; *file* is its name in messages. All methods raise `DescriptionError`."""

    def __init__(self, file: str) -> None:
        self.file = file

    def error(self, problem: str, where: str = "", key: str = "") -> DescriptionError:
        return DescriptionError(problem, self.file, where, key)

    def check_keys(self, table: TomlTable, where: str, keys: Sequence[str]) -> None:
        """Refuse keys other than *keys*."""
        for key in table:
            if key not in keys:
                raise self.error(f"unknown; known here: {', '.join(keys)}", where, key)

    def table(self, document: TomlTable, key: str, keys: Sequence[str]) -> TomlTable:
        """Return the table [*key*], empty if it is missing, which may have only *keys*."""
        table = typed.table(document.get(key, {}))
        if table is None:
            raise self.error("must be a table", f"[{key}]")
        self.check_keys(table, f"[{key}]", keys)
        return table

    def tables(self, document: TomlTable, key: str) -> list[dict[str, object]]:
        """Return the tables [[*key*]]."""
        tables = typed.list_of(document.get(key, []), typed.table)
        if tables is None:
            raise self.error(f"must be written [[{key}]], once for each", key)
        return tables

    def integer(self, table: TomlTable, where: str, key: str, default: int | None = None) -> int:
        value = self._table_value(table, where, key, default)
        number = typed.number_in(_NUMBERS)(value)
        if number is None:
            raise self.error(f"is {value_text(value)}, must be a number from 0 to 2**64 - 1", where, key)
        return number

    def within(self, table: TomlTable, where: str, key: str, allowed: range) -> int | None:
        """Return the number at *key*, one of *allowed*; None if it is missing."""
        if key not in table:
            return None
        value = self.integer(table, where, key)
        if value not in allowed:
            raise self.error(f"is {value}, must be from {allowed[0]} to {allowed[-1]}", where, key)
        return value

    def switch(self, table: TomlTable, where: str, key: str) -> bool | None:
        """Return true or false at *key*; None if it is missing."""
        value = table.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"is {value_text(value)}, must be true or false", where, key)
        return value

    def string(self, table: TomlTable, where: str, key: str, default: str | None = None) -> str:
        value = self._table_value(table, where, key, default)
        line = typed.text(value)
        if not line or not line.isprintable():
            raise self.error(f"is {value_text(value)}, must be one line of text", where, key)
        return line

    def choice(self, table: TomlTable, where: str, key: str, choices: Sequence[str]) -> str:
        value = self.string(table, where, key)
        if value not in choices:
            raise self.error(f'"{value}" is not one of {", ".join(choices)}', where, key)
        return value

    def names(self, table: TomlTable, where: str, key: str) -> tuple[str, ...]:
        """Return the list of names at *key*, empty if it is missing."""
        names = typed.list_of(table.get(key, []), typed.text)
        if names is None:
            raise self.error('must be a list of names, as in to = ["ram0"]', where, key)
        return tuple(names)

    def numbered(self, table: TomlTable, where: str, key: str, allowed: range) -> dict[str, int]:
        """Return the table at *key* that gives each name a number of *allowed*, empty if it is missing."""
        values, numbers = typed.table(table.get(key, {})), dict[str, int]()
        if values is None:
            raise self.error("must be a table of names and numbers, as in inputs = {encoder0 = 0}", where, key)
        for name, value in values.items():
            number = typed.number_in(allowed)(value)
            if number is None:
                what = f"is {value_text(value)}, must be from {allowed[0]} to {allowed[-1]}"
                raise self.error(what, where, f"{key}.{name}")
            numbers[name] = number
        return numbers

    def base(self, table: TomlTable, where: str, key: str = "base") -> int:
        """Return the address of a block of registers."""
        base = self.integer(table, where, key)
        if base % REGISTER_BLOCK:
            raise self.error(f"{base:#x} is not a multiple of {REGISTER_BLOCK:#x}, as all bases are", where, key)
        return base

    def words(self, table: TomlTable, where: str, key: str) -> int | None:
        """Return an address, or a size if *key* ends so, in whole words; None if it is missing."""
        if key not in table:
            return None
        value = self.integer(table, where, key)
        if value % 4 or (value == 0 and key.endswith("size")):
            raise self.error(f"{value:#x} is not a multiple of 0x4" if value else "is 0", where, key)
        return value

    def _table_value(self, table: TomlTable, where: str, key: str, default: object) -> object:
        value = table.get(key, default)
        if value is None:
            raise self.error("missing", where, key)
        return value


_DRIVER_KEYS = {key: driver for driver in Driver for key in driver.keys}
_USB_KEYS = ("adapter", "serial", "khz", "tap", "ir_lengths", *_DRIVER_KEYS)
_WHERE = "[usb]"


def read_usb(tables: Tables, document: TomlTable) -> UsbDescription | None:
    """Return the table [usb], None if it is missing. Raises DescriptionError."""
    if "usb" not in document:
        return None
    table = tables.table(document, "usb", _USB_KEYS)
    for other in ("openocd", "qemu"):
        if other in document:
            raise tables.error(f"there is also [{other}]: remove one, there can be only one connection", _WHERE)
    adapter = tables.choice(table, _WHERE, "adapter", tuple(ADAPTERS))
    for key, driver in _DRIVER_KEYS.items():
        if key in table and ADAPTERS[adapter].driver is not driver:
            having = " or ".join(f'"{it.name}"' for it in ADAPTERS.values() if it.driver is driver)
            raise tables.error(f"only adapter = {having} has it", _WHERE, key)
    return UsbDescription(
        adapter,
        tables.string(table, _WHERE, "serial") if "serial" in table else None,
        tables.within(table, _WHERE, "khz", range(1, 100_001)),
        tables.within(table, _WHERE, "interface", range(4)) or 0,
        _layout(tables, table),
        tables.within(table, _WHERE, "tap", range(32)) or 0,
        _ir_lengths(tables, table),
    )


def _layout(tables: Tables, table: TomlTable) -> tuple[int, int] | None:
    values = _table_numbers(tables, table, "layout", range(1 << 16), "two numbers, levels and directions, of 16 bits")
    if values is None:
        return None
    if len(values) != 2:
        raise tables.error("must be two numbers, as in layout = [0x0008, 0x000b]", _WHERE, "layout")
    return values[0], values[1]


def _ir_lengths(tables: Tables, table: TomlTable) -> tuple[int, ...] | None:
    values = _table_numbers(tables, table, "ir_lengths", range(1, 33), "a length in bits, 1 to 32, for each TAP")
    if values == ():
        raise tables.error("is empty: a length in bits for each TAP, as in ir_lengths = [5, 4]", _WHERE, "ir_lengths")
    return values


def _table_numbers(tables: Tables, table: TomlTable, key: str, allowed: range, what: str) -> tuple[int, ...] | None:
    if key not in table:
        return None
    numbers = typed.list_of(table[key], typed.number_in(allowed))
    if numbers is None:
        raise tables.error(f"is {value_text(table[key])}, must be {what}", _WHERE, key)
    return tuple(numbers)


_TANDEM_KEYS = ("name", "hart", "file", "socket", "dialect", "flen", "mlen", "eaddr", "supervisor")
_LENGTHS = ("flen", "mlen", "eaddr")
_TABLE = "[[tandem]]"


def read_tandem(tables: Tables, document: TomlTable, components: list[AnyComponent]) -> tuple[TandemDescription, ...]:
    """Return the ports, in the order of the file. Raises DescriptionError."""
    ports = tuple(_port(tables, table, number) for number, table in enumerate(tables.tables(document, "tandem"), 1))
    if ports and "qemu" in document:
        raise tables.error("there are none in QEMU: remove either [qemu] or [[tandem]]", _TABLE)
    names = Counter([component.name for component in components] + [port.name for port in ports])
    harts = Counter(port.hart for port in ports)
    for port in ports:
        if names[port.name] > 1:
            raise tables.error(f'"{port.name}" is used {names[port.name]} times', _TABLE, "name")
        if harts[port.hart] > 1:
            raise tables.error(f"{port.hart} is used {harts[port.hart]} times", _TABLE, "hart")
    return ports


def _port(tables: Tables, table: TomlTable, number: int) -> TandemDescription:
    name = tables.string(table, f"{_TABLE} {number}", "name")
    where = f'{_TABLE} "{name}"'
    tables.check_keys(table, where, _TANDEM_KEYS)
    file, socket = _port_place(tables, table, where)
    dialect = tables.choice(table, where, "dialect", tuple(DIALECTS)) if "dialect" in table else SPECIFICATION.name
    lengths = {key: tables.integer(table, where, key) for key in _LENGTHS if key in table}
    try:
        TandemParameters(flen=lengths.get("flen", 64), mlen=lengths.get("mlen", 0), eaddr=lengths.get("eaddr", 0))
    except BadParameters as error:
        raise tables.error(f"is {error.value}: {error.allowed}", where, error.name) from None
    supervisor = tables.switch(table, where, "supervisor")
    return TandemDescription(
        name, tables.integer(table, where, "hart", 0), file, dialect, lengths.get("flen"), lengths.get("mlen", 0),
        lengths.get("eaddr", 0), supervisor is not False, socket,
    )  # fmt: skip


def _port_place(tables: Tables, table: TomlTable, where: str) -> tuple[str, str]:
    """Return the file, or the socket."""
    if "socket" not in table:
        return _beside(tables, tables.string(table, where, "file")), ""
    socket = tables.string(table, where, "socket")
    if "file" in table:
        raise tables.error("there is also a file: remove one of them", where, "socket")
    if not socket.startswith(("tcp:", "unix:")):
        raise tables.error(f'is "{socket}", must be tcp:HOST:PORT or unix:PATH', where, "socket")
    if socket.startswith("unix:"):
        socket = "unix:" + _beside(tables, socket.removeprefix("unix:"))
    return "", socket


def _beside(tables: Tables, path: str) -> str:
    """Return a path, which is relative to the folder of the description."""
    return str(Path(tables.file).parent / os.path.expanduser(path))


def tandem_lines(port: TandemDescription) -> Iterator[tuple[str, str | int | bool]]:
    """Yield keys and values of a port's table, without defaults."""
    yield from (("name", port.name), ("hart", port.hart))
    yield ("socket", port.socket) if port.socket else ("file", port.file)
    if port.dialect != SPECIFICATION.name:
        yield "dialect", port.dialect
    if port.flen is not None:
        yield "flen", port.flen
    yield from ((key, value) for key, value in (("mlen", port.mlen), ("eaddr", port.eaddr)) if value)
    if not port.supervisor:
        yield "supervisor", False


NOTHING: Mapping[str, str] = {}


def text(description: Description, header: str = "", comments: Mapping[str, str] = NOTHING) -> str:
    """Return the TOML text. *header*: comment lines at its beginning; *comments*: one for the
    component of that name.
    """
    lines = [f"# {printable(line)}" for line in header.splitlines()]
    lines += ["[target]", f"name = {quoted(description.name)}"]
    lines += [f"xlen = {description.xlen}"] if description.xlen else []
    lines += ['power = "hart"'] if description.hart_power else []
    if description.context_notify:
        lines += [f"context_notify = [{', '.join(map(quoted, description.context_notify))}]"]
    if description.qemu:
        ranges = _memory_tables(description.memory)
        return "\n".join([*lines, "", "[qemu]", f"folder = {quoted(description.qemu)}", *ranges]) + "\n"
    lines += ["", *_way(description)]
    for component in description.components:
        comment = comments.get(component.name)
        lines += ["", *([f"# {printable(comment)}"] if comment else []), "[[component]]", *_component_table(component)]
    for port in description.tandem:
        lines += ["", "[[tandem]]", *(f"{key} = {_value_text(value)}" for key, value in tandem_lines(port))]
    for tracer in description.tracers:
        where = f"base = {tracer.base:#x}"
        lines += ["", "[[tracer]]", f"name = {quoted(tracer.name)}", where, f"hart = {tracer.hart}"]
    for encoder in description.tacit:
        lines += ["", "[[tacit]]", f"name = {quoted(encoder.name)}", f"hart = {encoder.hart}"]
        lines += [f"{key} = {getattr(encoder, key):#x}" for key in ("base", "sink", "start", "size")]
        lines += [f"target = {encoder.target}", f"entries = {encoder.entries}"]
        lines += ["limited = true"] if encoder.limited else []
    return "\n".join([*lines, *_memory_tables(description.memory)]) + "\n"


MEMORY = "[[memory]]"


def _memory_tables(ranges: Iterable[MemoryRange]) -> Iterator[str]:
    for it in ranges:
        yield from ("", MEMORY, *([f"name = {quoted(it.name)}"] if it.name else []))
        yield from (f"address = {it.address:#x}", f"size = {it.size:#x}", f"kind = {quoted(it.kind.value)}")
        yield from ([f"private = [{', '.join(map(str, it.harts))}]"] if it.harts else [])
        yield from (["dma = true"] if it.dma else [])


def _way(description: Description) -> Iterator[str]:
    """Yield the tables that say how the target is reached."""
    if description.usb is None:
        openocd = description.openocd
        yield from ("[openocd]", f"host = {quoted(openocd.host)}", f"tcl_port = {openocd.tcl_port}")
        return
    yield "[usb]"
    for key, value in vars(description.usb).items():
        if isinstance(value, tuple):
            yield f"{key} = [{', '.join(map(str, value))}]"
        elif value is not None and (value or key not in ("tap", "interface")):
            yield f"{key} = {_value_text(value)}"


def quoted(text: str) -> str:
    """Return printable text as a TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _component_table(component: AnyComponent) -> Iterator[str]:
    yield f"name = {quoted(component.name)}"
    yield f"type = {quoted(component.kind)}"
    if isinstance(component, EncoderDescription | FunnelDescription) and component.version != RATIFIED:
        yield f"version = {component.version}"
    inside = host_of(component)
    yield f"inside = {quoted(inside)}" if inside else f"base = {component.base:#x}"
    if power_of(component) is not None:
        yield f"hart = {power_of(component)}"
    if isinstance(component, SourceDescription):
        yield f"to = [{', '.join(map(quoted, component.to))}]"
    match component:
        case EncoderDescription():
            yield from _encoder(component)
        case FunnelDescription() | CoresightFunnelDescription() if component.inputs:
            yield f"inputs = {{{', '.join(f'{quoted(name)} = {number}' for name, number in component.inputs.items())}}}"
        case RamSinkDescription() | TmcSinkDescription():
            yield from _buffer(component)
        case TmcLinkDescription():
            yield f"mode = {quoted(component.mode)}"
        case PibSinkDescription():
            yield from _pib_sink(component)
        case AtbBridgeDescription() | AtbLinkDescription() if component.id is not None:
            yield f"id = {component.id:#x}"


def _encoder(encoder: EncoderDescription) -> Iterator[str]:
    if encoder.repeat_bits is not None:
        yield f"repeat_bits = {encoder.repeat_bits}"
    if encoder.etrace:
        yield "[component.etrace]"
    yield from (f"{key} = {_value_text(value)}" for key, value in encoder.etrace.items())


def _buffer(sink: BufferDescription) -> Iterator[str]:
    yield f"mode = {quoted(sink.mode)}"
    if sink.start is not None:
        yield f"start = {sink.start:#x}"
    if sink.size is not None:
        yield f"size = {sink.size:#x}"


def _pib_sink(sink: PibSinkDescription) -> Iterator[str]:
    if sink.mode is not None:
        yield f"mode = {quoted(sink.mode)}"
    if sink.divider is not None:
        yield f"divider = {sink.divider}"
    if sink.clk_center is not None:
        yield f"clk_center = {_value_text(sink.clk_center)}"


def _value_text(value: SettingValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{quoted(key)} = {quoted(text)}' for key, text in value.items())}}}"
    return str(value) if isinstance(value, int) else quoted(value)
