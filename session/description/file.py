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
adapters and ports of tandem traces have tables of their own (`session.description.tables`), and so has memory
(`session.description.memory`). Anything misspelt, missing or contradictory is refused with one line that names file,
table and key.

What the components feed is filled in where it may be left out, and checked. Ref: RISC-V Trace Control Interface
1.0, ratified 2024-11-21, "Connections Between Components": an encoder feeds sinks, bridges and funnels, a funnel
does; a bridge feeds the Arm ATB bus, which is not described here.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.decode.ntrace.messages import MAX_REPEAT_BITS
from rvtrace_gdb.decode.ntrace.options import REPEAT_BITS
from rvtrace_gdb.session.capture.etrace_settings import BadSetting, SettingValue, check_settings, etrace_of
from rvtrace_gdb.session.description import memory, tables
from rvtrace_gdb.session.description.model import (
    RATIFIED,
    AnyComponent,
    AtbBridgeDescription,
    Description,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    OpenOcdDescription,
    PibSinkDescription,
    RamSinkDescription,
    SourceDescription,
)
from rvtrace_gdb.session.description.tables import Tables, TomlTable
from rvtrace_gdb.support import toml
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem

FUNNEL_INPUTS = range(16)  # the bits of trFunnelDisInput


def table_of(name: str) -> str:
    """Return the name of a component's table in messages."""
    return f'[[component]] "{name}"'


def no_encoder(file: str) -> DescriptionError:
    """Return the error of a description that names no encoder."""
    return DescriptionError('there is none of type "encoder"; `rvtrace init` looks for one', file, "[[component]]")


def connected(read: Tables, components: Sequence[AnyComponent]) -> list[AnyComponent]:
    """Return the components with complete connections in both directions. Raises `DescriptionError`."""
    return _ComponentGraph(read, components).connected()


class _ComponentGraph:
    """The components of one description by name, in their order."""

    def __init__(self, read: Tables, components: Sequence[AnyComponent]) -> None:
        self._read = read
        for name, count in Counter(component.name for component in components).items():
            if count > 1:
                raise self._read.error(f'"{name}" is used by {count} components', "[[component]]", "name")
        own_registers = [c for c in components if isinstance(c, SourceDescription) or not c.inside]
        self._apart(own_registers)
        self._components = {component.name: component for component in components}

    def connected(self) -> list[AnyComponent]:
        self._both_ends()
        for component in tuple(self._components.values()):
            self._components[component.name] = self._placed(component)
        for source in self._sources():
            self._components[source.name] = self._feeding(source)
        for funnel in self._funnels():
            self._no_cycle(funnel)
        for funnel in self._funnels():
            self._components[funnel.name] = replace(funnel, inputs=self._inputs(funnel))
        self._one_encoder_a_hart()
        return list(self._components.values())

    def _error(self, problem: str, name: str, key: str) -> DescriptionError:
        return self._read.error(problem, table_of(name), key)

    def _sources(self) -> list[SourceDescription]:
        return [c for c in self._components.values() if isinstance(c, SourceDescription)]

    def _funnels(self) -> list[FunnelDescription]:
        return [c for c in self._components.values() if isinstance(c, FunnelDescription)]

    def _apart(self, components: Iterable[AnyComponent]) -> None:
        """Check that each component has registers of its own."""
        at: dict[int, str] = {}
        for component in components:
            other = at.setdefault(component.base, component.name)
            if other != component.name:
                both = f"{component.base:#x} is used by {other} and {component.name}"
                raise self._read.error(both, "[[component]]", "base")

    def _both_ends(self) -> None:
        components = self._components.values()
        if not any(isinstance(component, EncoderDescription) for component in components):
            raise no_encoder(self._read.file)
        if all(isinstance(component, SourceDescription) for component in components):
            what = 'there is none of type "ram_sink", "pib_sink" or "atb_bridge"; `rvtrace init` looks for one'
            raise self._read.error(what, "[[component]]")

    def _placed(self, component: AnyComponent) -> AnyComponent:
        """Return the component; a sink inside another component gets its base."""
        if isinstance(component, SourceDescription) or not component.inside:
            return component
        host = self._components.get(component.inside)
        if not isinstance(host, SourceDescription):
            problem = f'there is no encoder or funnel "{component.inside}"'
        elif host.version:
            problem = f'"{host.name}" has version = {host.version}: since ratification a sink has registers of its own'
        elif host.to and component.name not in host.to:
            problem = f'"{host.name}" does not feed it'
        elif isinstance(component, RamSinkDescription) and _crosses_4_gib(component):
            problem = "its buffer crosses a multiple of 4 GiB, and version 0 has one register for all bits 63:32"
        else:
            return replace(component, base=host.base)
        raise self._error(problem, component.name, "inside")

    def _feeding(self, source: SourceDescription) -> SourceDescription:
        """Return *source* with what it feeds, if there is only one possibility."""
        candidates = [c.name for c in self._components.values() if self._may_feed(source, c)]
        if not source.to:
            if len(candidates) == 1:
                return replace(source, to=(candidates[0],))
            what = (
                "the sink"
                if all(isinstance(self._components[name], RamSinkDescription) for name in candidates)
                else "what"
            )
            problem = f"missing: name {what} it feeds, one of {', '.join(candidates)}"
            raise self._error(problem, source.name, "to")
        for name in source.to:
            if name not in candidates:
                raise self._error(self._why_not(source, name, candidates), source.name, "to")
            if source.to.count(name) > 1:
                raise self._error(f'"{name}" is named twice', source.name, "to")
        return source

    def _may_feed(self, source: SourceDescription, other: AnyComponent) -> bool:
        if isinstance(other, SourceDescription):
            return isinstance(other, FunnelDescription) and other is not source
        return other.inside in ("", source.name)

    def _why_not(self, source: SourceDescription, name: str, candidates: Sequence[str]) -> str:
        other = self._components.get(name)
        if other is None:
            what = "sink or funnel" if self._funnels() else "sink"
            return f'there is no {what} "{name}"; there is {", ".join(candidates) or "none"}'
        if isinstance(other, EncoderDescription):
            return f'"{name}" is an encoder, which only a hart feeds'
        if isinstance(other, FunnelDescription):
            return f"a funnel cannot feed itself: {name} -> {name}"
        return f'"{name}" is inside of "{other.inside}", which alone feeds it'

    def _no_cycle(self, funnel: FunnelDescription) -> None:
        ways: dict[str, tuple[str, ...]] = {name: (funnel.name, name) for name in funnel.to}
        waiting = list(ways)
        for name in waiting:  # grows meanwhile
            if name == funnel.name:
                raise self._error(f"a funnel cannot feed itself: {' -> '.join(ways[name])}", name, "to")
            fed = self._components[name]
            further = [other for other in (fed.to if isinstance(fed, FunnelDescription) else ()) if other not in ways]
            ways |= {other: (*ways[name], other) for other in further}
            waiting += further

    def _inputs(self, funnel: FunnelDescription) -> dict[str, int]:
        """Return the input of each of the funnel's feeders: as written, else consecutive numbers."""
        feeders = [source.name for source in self._sources() if funnel.name in source.to]
        if len(feeders) > len(FUNNEL_INPUTS):
            problem = f"{len(feeders)} components feed it, and a funnel has {len(FUNNEL_INPUTS)} inputs at most"
            raise self._error(problem, funnel.name, "inputs")
        if not funnel.inputs:
            return {name: number for number, name in enumerate(feeders)}
        for problem in self._misplaced(funnel, feeders):
            raise self._error(problem, funnel.name, "inputs")
        return dict(sorted(funnel.inputs.items(), key=lambda item: item[1]))

    @staticmethod
    def _misplaced(funnel: FunnelDescription, feeders: Sequence[str]) -> Iterator[str]:
        """Yield what is wrong with the inputs that are written."""
        for name in funnel.inputs:
            if name not in feeders:
                yield f'"{name}" does not feed it; {", ".join(feeders) or "nothing"} does'
        for name in feeders:
            if name not in funnel.inputs:
                yield f'"{name}" feeds it as well: at which input?'
        for number, count in Counter(funnel.inputs.values()).items():
            if count > 1:
                yield f"{count} components feed input {number}"

    def _one_encoder_a_hart(self) -> None:
        encoders = [c for c in self._components.values() if isinstance(c, EncoderDescription)]
        for hart, count in Counter(encoder.hart for encoder in encoders).items():
            if count > 1:
                names = " and ".join(encoder.name for encoder in encoders if encoder.hart == hart)
                raise self._read.error(f"{hart} is traced by {names}; a hart has one encoder", "[[component]]", "hart")


def _crosses_4_gib(sink: RamSinkDescription) -> bool:
    return sink.start is not None and sink.size is not None and sink.start >> 32 != sink.start + sink.size - 1 >> 32


_KEYS = {
    "encoder": ("name", "type", "base", "hart", "to", "etrace", "version", "repeat_bits"),
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
    read.check_keys(document, "", ("target", "openocd", "usb", "component", "tandem", "memory", "qemu"))
    target = read.table(document, "target", ("name", "xlen"))
    openocd = read.table(document, "openocd", ("host", "tcl_port"))
    usb = tables.read_usb(read, document)
    if "qemu" in document and "tandem" not in document:
        return _qemu(read, document, target, openocd)
    components = [_component(read, table, number) for number, table in enumerate(read.tables(document, "component"), 1)]
    tandem = tables.read_tandem(read, document, components)
    ranges = memory.read_memory(read, document)
    if components or not (tandem or ranges or usb):  # Control Transfer Records need no components
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
        memory=ranges,
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
    return FunnelDescription(name, base, to, inputs, _described_version(read, table, where))


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


def _atb_bridge(read: Tables, table: TomlTable, where: str, name: str) -> AtbBridgeDescription:
    base, inside = _sink_place(read, table, where)
    return AtbBridgeDescription(name, base, read.within(table, where, "id", _ATB_IDS), inside)


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
}
