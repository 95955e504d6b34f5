"""The target that `rvtrace sim` simulates: its trace components, where their bytes go, and the files that describe it.

The trace components come from a target description, or one is written for them, with the configuration for OpenOCD.
Trace that leaves a pin interface or a bridge goes to files and sockets. The ports of tandem traces are in
`tandem_ports`.
"""

import re
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.console.commands.sim import devices, encoder
from rvtrace_gdb.console.commands.sim import etrace as sim_etrace
from rvtrace_gdb.console.commands.sim.devices import streaming
from rvtrace_gdb.console.commands.sim.request import ComponentsRequest, EncoderBuildRequest
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.description import file
from rvtrace_gdb.session.description import model as told
from rvtrace_gdb.session.description.library import shipped
from rvtrace_gdb.session.description.model import Description, TandemDescription
from rvtrace_gdb.session.description.tables import text
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.transport.simulated.clint import SIZE as CLINT_SIZE
from rvtrace_gdb.transport.simulated.debug.jtag import IDCODE, IR_LENGTH
from rvtrace_gdb.transport.simulated.debug.run_control import MOST
from rvtrace_gdb.transport.simulated.devices.coresight.tmc import TMC_KINDS, TmcBuild
from rvtrace_gdb.transport.simulated.devices.encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.devices.sinks import FileStream, PinStream, SocketStream
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.transport.simulated.server import ListenError, listen_tcp, listen_unix
from rvtrace_gdb.transport.simulated.uart import SIZE as UART_SIZE
from rvtrace_gdb.transport.simulated.wiring import (
    RAM_MODES,
    AnyPart,
    AtbBridgePart,
    AtbLinkPart,
    AxiStreamSinkPart,
    CoresightFunnelPart,
    CoresightReplicatorPart,
    EncoderPart,
    EncoderProperties,
    FunnelPart,
    MemoryMap,
    PibSinkPart,
    RamSinkPart,
    TacitPart,
    TmcPart,
    TracerPart,
    Wiring,
    standard,
)

_TCP, _UNIX = "tcp:", "unix:"


class BadStream(RvtraceError):
    """A stream for a component that has no output, or a stream that cannot be opened."""


class Streams:
    """The streams of components; *cleanup* closes them and removes the sockets' files. Raises RvtraceError."""

    def __init__(self, cleanup: ExitStack) -> None:
        self._cleanup = cleanup
        self.opened: dict[str, str] = {}
        """The destination of each component's stream, by the component's name."""

    def open(self, name: str, where: str, folder: Path) -> PinStream:
        """Open a stream. *where*: `tcp:PORT`, `unix:PATH` or the path of a file, relative to *folder*."""
        stream, shown = self._opened(name, where, folder)
        self._cleanup.callback(stream.close)
        self.opened[name] = shown
        return stream

    def _opened(self, name: str, where: str, folder: Path) -> tuple[PinStream, str]:
        """Return a stream, and its name in messages."""
        if where.startswith(_TCP):
            return self._tcp(name, where.removeprefix(_TCP))
        unix, path = where.startswith(_UNIX), folder / where.removeprefix(_UNIX)
        shown = f"{_UNIX if unix else ''}{path}"
        if shown in self.opened.values():
            raise BadStream(f"{name}: {shown} is where another component's trace goes")
        if not unix:
            return FileStream(path), shown
        listener = self._listening(name, lambda: listen_unix(path))
        self._cleanup.callback(path.unlink, missing_ok=True)
        return SocketStream(listener), shown

    def _tcp(self, name: str, port: str) -> tuple[PinStream, str]:
        if not is_number(port) or int(port) >= 1 << 16:
            raise BadStream(f"{name}: tcp:{port}: give a port, or 0 for a free one")
        listener = self._listening(name, lambda: listen_tcp(int(port)))
        return SocketStream(listener), f"{_TCP}{listener.getsockname()[1]}"

    @staticmethod
    def _listening(name: str, listen: Callable[[], socket.socket]) -> socket.socket:
        try:
            return listen()
        except ListenError as error:
            raise BadStream(f"{name}: cannot listen on {error.where}: {error.reason}; choose another place") from None


_Outlet = PibSinkPart | AtbBridgePart | AxiStreamSinkPart
"""A part that sends trace off the chip."""


def asked_for(wiring: Wiring, names: Sequence[str], streams: Streams) -> Wiring:
    """Return *wiring* with the streams of --stream, each NAME=WHERE. Raises RvtraceError."""
    for option in names:
        name, _, where = option.partition("=")
        outlets = {part.name: part for part in wiring.parts if isinstance(part, _Outlet)}
        if name not in outlets or not where:
            there = ", ".join(outlets) or "none in this target"
            raise BadStream(f"--stream {option}: give NAME=WHERE; pin interfaces and bridges to name: {there}")
        if name in streams.opened:
            raise BadStream(f"--stream {option}: {name} goes to {streams.opened[name]} already")
        part = streaming(outlets[name], streams.open(name, where, Path()))
        wiring = Wiring(tuple(part if other.name == name else other for other in wiring.parts))
    return wiring


_LEAST_SRAM, _MOST_SRAM = 8, 1 << 28  # bytes
_HIGH = 1 << 32
_V0_ADDRESS_BITS, _V0_WORD = 40, 8  # of memory, as the P550 has them


class BadTarget(RvtraceError):
    """A target description that contradicts the command line."""


def loaded(request: ComponentsRequest) -> Description | None:
    """Return the description of --target, None without it. Raises DescriptionError, BadTarget."""
    if request.target is None:
        return None
    if request.trace_size is not None:
        raise BadTarget("--trace-size: the sinks are those of --target, which says how large their buffers are")
    target = shipped.target_named(request.target)
    return file.load(shipped.path_of(request.target)) if target is None else target.description()


EXTENSIONS = "IMAFDC"


def extensions(letters: str | None, request: ComponentsRequest) -> str:
    """Return the letters of the extensions that the harts have: *letters*, or those of a shipped target has them."""
    target = shipped.target_named(request.target) if request.target else None
    return (letters or (target and target.simulated.isa) or EXTENSIONS).upper()


def set_identity(machine: Machine, request: ComponentsRequest) -> None:
    """Let *machine* say of itself what a shipped target says, IDCODE, mvendorid and marchid."""
    target = shipped.target_named(request.target) if request.target else None
    if target is not None:
        machine.set_identity(next(iter(target.identity.idcodes), None), target.identity.harts)


def without_components(request: ComponentsRequest, description: Description | None) -> str:
    """Return a note if the firmware of a shipped target makes the trace, with hardware that is not simulated; or ""."""
    if description is None or not request.target or shipped.target_named(request.target) is None:
        return ""
    if description.components or description.tracers or description.tacit:
        return ""
    return (
        f"the firmware of {request.target} sets up its trace, and its encoder is not simulated: there is nothing that"
        f" `trace start` could start (`rvtrace targets show {request.target}`; without --target there is an encoder)"
    )


def harts(count: int | None, description: Description | None) -> int:
    """Return the number of harts of the target. *count*: None: as the description says. Raises BadTarget."""
    if count is not None:
        return count
    found = () if description is None else (description.encoders, description.tracers, description.tacit)
    last, name = max(((each.hart, each.name) for kind in found for each in kind), default=(0, ""))
    if last >= MOST:
        raise BadTarget(f"{name} traces hart {last}, and the simulated target has {MOST} harts at most")
    return 1 + last


def wiring(
    request: ComponentsRequest, count: int, description: Description | None, memory_map: MemoryMap, streams: Streams
) -> Wiring:
    """Return the components as the command line describes them, for *count* harts. Raises RvtraceError."""
    made = _wiring(request.encoder, count, description, memory_map)
    target = shipped.target_named(request.target) if request.target else None
    if target is not None and target.devices is not None:
        made = devices.built(made, target.devices, streams.open)
    if request.devices:
        made = devices.built(made, Path(request.devices), streams.open)
    return asked_for(made, request.streams, streams)


def _wiring(request: EncoderBuildRequest, count: int, description: Description | None, memory_map: MemoryMap) -> Wiring:
    properties: EncoderProperties = {
        "formats": encoder.formats(request),
        "built_with": encoder.built_with(request),
        "etrace": sim_etrace.built(request),
        "absent": request.absent,
        "filters": encoder.filters(request),
    }
    if description is None:
        return standard(memory_map, count, **properties)
    tracers = (*map(_tracer_part, description.tracers), *map(_tacit_part, description.tacit))
    parts = (_component_part(component, properties) for component in description.components)
    if not description.hart_power:
        return Wiring((*parts, *tracers))
    powers = map(told.power_of, description.components)
    return Wiring(tuple(replace(part, power=power) for part, power in zip(parts, powers, strict=True)) + tracers)


def _tracer_part(tracer: told.TracerDescription) -> AnyPart:
    return TracerPart(name=tracer.name, base=tracer.base)


def _tacit_part(tacit: told.TacitDescription) -> AnyPart:
    return TacitPart(
        name=tacit.name, base=tacit.base, sink=tacit.sink, hart=tacit.hart, start=tacit.start, size=tacit.size,
        number=tacit.target, entries=tacit.entries, limited=tacit.limited,
    )  # fmt: skip


def _component_part(component: told.AnyComponent, properties: EncoderProperties) -> AnyPart:
    match component:
        case told.EncoderDescription():
            properties = properties | {
                "etrace": sim_etrace.described(properties["etrace"] or ETraceBuild(), component.etrace)
            }
            return EncoderPart(
                name=component.name, base=component.base, hart=component.hart, to=component.to,
                version=component.version, **properties,
            )  # fmt: skip
        case told.FunnelDescription():
            return FunnelPart(
                name=component.name, base=component.base, to=component.to, inputs=component.inputs,
                input_count=1 + max(component.inputs.values(), default=0), version=component.version,
            )  # fmt: skip
        case told.RamSinkDescription():
            return _ram_sink(component)
        case told.PibSinkDescription():
            return PibSinkPart(name=component.name, base=component.base, inside=component.inside)
        case told.AxiStreamSinkDescription():
            return AxiStreamSinkPart(name=component.name, base=component.base)
        case told.AtbBridgeDescription():
            return AtbBridgePart(name=component.name, base=component.base, inside=component.inside)
        case _:
            return _coresight_part(component)


def _coresight_part(component: told.LinkDescription | told.TmcSinkDescription) -> AnyPart:
    """Return a part of Arm's trace bus. A TMC is of the kind that has the mode of the description."""
    name, base = component.name, component.base
    match component:
        case told.AtbLinkDescription():
            return AtbLinkPart(name=name, base=base, to=component.to)
        case told.CoresightFunnelDescription():
            return CoresightFunnelPart(name=name, base=base, to=component.to, inputs=component.inputs)
        case told.CoresightReplicatorDescription():
            return CoresightReplicatorPart(name=name, base=base, to=component.to)
        case told.TmcLinkDescription():
            return TmcPart(name=name, base=base, to=component.to, variant=TmcBuild(kind=TMC_KINDS["etf"]))
        case told.TmcSinkDescription():
            kind = TMC_KINDS["etb" if component.mode == "SRAM" else "etr"]
            start, size = component.start or 0, component.size or 0
            return TmcPart(name=name, base=base, start=start, size=size, variant=TmcBuild(kind=kind))


def _ram_sink(sink: told.RamSinkDescription) -> RamSinkPart:
    """Return a sink with an SRAM of the smallest sufficient size. Raises BadTarget."""
    part = RamSinkPart(name=sink.name, base=sink.base, inside=sink.inside)
    start, size = sink.start or 0, sink.size or 0
    if sink.inside:
        part = replace(part, modes=(RAM_MODES[sink.mode],), address_bits=_V0_ADDRESS_BITS)
        if sink.mode == "SMEM":
            return replace(part, start=start, size=size, access_bytes=_V0_WORD)
    elif sink.mode == "SMEM":
        return replace(part, start=start, size=size, address_bits=64 if start + size > _HIGH else 32)
    if start + size > _MOST_SRAM:
        raise BadTarget(f"{sink.name}: an SRAM of the simulated target has {_MOST_SRAM:#x} bytes at most")
    return part if not size else replace(part, sram_size=1 << (max(start + size, _LEAST_SRAM) - 1).bit_length())


def description_of(machine: Machine, name: str, tcl_port: int, described: Description | None = None) -> Description:
    """Return the description of *machine*. *described*: the one it was built from, whose use of sinks is kept."""
    if described is None:
        described = Description(name, "", None, told.OpenOcdDescription(), (), (_standard_sink(machine),))
    encoders = tuple(_encoder(machine, part) for part in machine.wiring.encoders)
    memory = tuple(dict.fromkeys((*_memory_ranges(machine), *described.memory)))
    openocd = told.OpenOcdDescription(tcl_port=tcl_port)
    return replace(described, encoders=encoders, openocd=openocd, usb=None, memory=memory)


_HOST = 64
"""Bytes from `tohost` and `fromhost` on that are left to the host: a line of a cache, as linker scripts align them."""


def _memory_ranges(machine: Machine) -> Iterator[MemoryRange]:
    """Yield what is where. A program that waits for the host's answers also lets it write to blocks anywhere."""
    where, htif = machine.memory_map, machine.hart.htif
    answers = htif is not None and htif.fromhost is not None
    yield MemoryRange(where.ram, where.ram_size, MemoryKind.RAM, dma=answers, name="main memory")
    yield MemoryRange(where.clint, CLINT_SIZE, MemoryKind.VOLATILE, name="CLINT")
    yield MemoryRange(where.uart, UART_SIZE, MemoryKind.VOLATILE, name="UART")
    for name in ("tohost", "fromhost"):
        address = getattr(htif, name, None)
        if address is not None:
            yield MemoryRange(address, _HOST, MemoryKind.VOLATILE, name=name)


def _standard_sink(machine: Machine) -> told.RamSinkDescription:
    part = next(part for part in machine.wiring.parts if isinstance(part, RamSinkPart))
    return told.RamSinkDescription(part.name, part.base, "SMEM", part.start, part.size)


def _encoder(machine: Machine, part: EncoderPart) -> told.EncoderDescription:
    device = machine.components[part.name]
    built = device.etrace if isinstance(device, TraceEncoder) else None
    etrace = {} if built is None else sim_etrace.settings(built.decoder)
    return told.EncoderDescription(part.name, part.base, part.hart, part.to, etrace, part.version)


_POLL_MS, _FEW_HARTS = 5, 4
"""How often OpenOCD looks at the harts: with more than a few it would do nothing else."""
_KNOWS = """# Without this, memory cannot be read while the hart runs.
riscv set_enable_virt2phys off
"""


def _tcl_word(text: str) -> str:
    """Return a text as one word of OpenOCD's language, Tcl."""
    return re.sub(r"([^\w./:@%+=,-])", r"\\\1", text)


def openocd_config(
    listener: socket.socket,
    gdb_port: int = 3333,
    tcl_port: int = 6666,
    hart: Hart | None = None,
    harts: int = 1,
    separate: bool = False,
    idcode: int = IDCODE,
    off: Collection[int] = (),
) -> str:
    """Return OpenOCD 0.12's configuration for the target that is served at *listener*.

    *hart*: one like all others. *separate*: several harts have a gdb server each, from *gdb_port* on; else there is one
    for all, in which each is a thread. *off*: harts without power, which OpenOCD leaves alone.
    """
    if listener.family == socket.AF_UNIX:
        where = f"remote_bitbang host {_tcl_word(listener.getsockname())}"
    else:
        host, port = listener.getsockname()
        where = f"remote_bitbang host {host}\nremote_bitbang port {port}"
    exposed = "" if hart is None or hart.ctr is None else encoder.openocd_lines(hart.ctr)
    names = [f"sim.cpu{number}" for number in range(harts)]
    alone = f"target create sim.cpu riscv -chain-position sim.cpu\n{_KNOWS}"
    targets = alone if harts == 1 else _several(names, exposed, separate, off)
    return f"""adapter driver remote_bitbang
{where}
adapter speed 10000
jtag newtap sim cpu -irlen {IR_LENGTH} -expected-id {idcode:#010x}
{targets}gdb_report_data_abort enable
gdb_report_register_access_error enable
# Milliseconds; the default of 100 makes every breakpoint wait.
poll_period {_POLL_MS if harts <= _FEW_HARTS else _POLL_MS * harts}
gdb_port {gdb_port}
tcl_port {tcl_port}
telnet_port disabled
{exposed if harts == 1 else ""}"""


def _several(names: Sequence[str], exposed: str, separate: bool, off: Collection[int]) -> str:
    """Return the configuration of several harts, each with the settings that a single hart would have."""
    text = ""
    for number, name in enumerate(names):
        more = ("" if separate else " -rtos hwthread") + (" -defer-examine" if number in off else "")
        text += f"target create {name} riscv -chain-position sim.cpu -coreid {number}{more}\n{_KNOWS}{exposed}"
    on = [name for number, name in enumerate(names) if number not in off] or list(names)
    return text + ("" if separate else f"target smp {' '.join(on)}\n") + f"targets {on[0]}\n"


_HEADER = "Written by rvtrace sim: where the trace components of the simulated target are."


def target_description(
    machine: Machine,
    name: str,
    tcl_port: int = 6666,
    described: Description | None = None,
    tandem: tuple[TandemDescription, ...] = (),
) -> str:
    """Return the rvtrace.toml of the simulated target. *described*: the one it was built from; *tandem*: its ports."""
    name = f"{name} on the simulated target"
    found = description_of(machine, name, tcl_port, described)
    return text(replace(found, tandem=tandem), _HEADER)
