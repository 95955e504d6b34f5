"""What `trace regs` shows: the registers of trace components and of Control Transfer Records, in words.

For a target they are the current registers of the components that are really there. Nothing is written, and no register
that has a side effect when it is read is read: a running trace is not disturbed. A capture has the registers as they
were read back when its trace began.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from rvtrace_gdb.controlregs import dump, sifive_v0
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import registers as coresight
from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import ComponentAccess, UnsupportedVersion, WrongComponent
from rvtrace_gdb.controlregs.fields import Register, RegisterBlock
from rvtrace_gdb.controlregs.graph import CORESIGHT, OF_VENDORS, PRE_RATIFIED, RATIFIED, block
from rvtrace_gdb.controlregs.sifive_v0 import component_registers as v0
from rvtrace_gdb.controlregs.sifive_v0.component_registers import TS_CONTROL as V0_TS_CONTROL
from rvtrace_gdb.controlregs.sifive_v0.settings import V0SinkSettings as V0Sink
from rvtrace_gdb.controlregs.trace_control.component_registers import (
    CONTROL_OFFSET,
    IMPL_OFFSET,
    RAM_CONTROL,
    RAM_IMPL,
    RAM_LIMIT_HIGH,
    RAM_LIMIT_LOW,
    RAM_SINK,
    RAM_START_HIGH,
    RAM_START_LOW,
    TS_CONTROL,
)
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    DATA_CONTROL,
    ENCODER_CONTROL,
    ENCODER_IMPL,
    INST_FEATURES,
    INST_FILTERS,
)
from rvtrace_gdb.controlregs.trace_control.lifecycle import identify, read_stable
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import Capture, CapturedEncoder
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import (
    AnyComponent,
    Description,
    DescriptionError,
    EncoderDescription,
    host_of,
    power_of,
)
from rvtrace_gdb.session.errors import BadOption, Unsupported
from rvtrace_gdb.session.queries.hardware import coresight_components, tacit_encoders
from rvtrace_gdb.session.queries.hardware.component_seen import ComponentSeen
from rvtrace_gdb.session.queries.hardware.neorv32_tracers import register_lines
from rvtrace_gdb.session.queries.lists import ctr_records
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.csr_access import Way
from rvtrace_gdb.session.target.hart_power import off_harts
from rvtrace_gdb.session.target.link import ConnectLink, Link, check_type, checked, link_to
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import warning
from rvtrace_gdb.transport.openocd.errors import OpenOcdAbsent
from rvtrace_gdb.transport.openocd.target import OpenOcd

NOTHING_OFF: Mapping[int, str] = {}
_IN_RESET = "it is in reset: its other registers are undefined until it is activated, as by `trace start`"


@contextmanager
def linked(description: Description, connect: ConnectLink) -> Iterator[Link]:
    """Provide a link to the target, whatever its harts do. Raises Unsupported for QEMU, and the transport's errors."""
    if description.qemu:
        raise Unsupported(f"{description.way} is not a trace component and has no registers; `trace status` shows it")
    link = link_to(description, connect)
    try:
        link.state()  # which connects
        hart = description.encoders[0].hart if description.encoders else 0
        if hart < len(link.targets):
            check_type(link, hart)
            link.target = link.targets[hart]
        with link.unpolled():
            yield link
    finally:
        link.close()


def place(description: Description, component: AnyComponent) -> AnyComponent:
    """Return the component that has the registers of *component*: pre-ratification sinks are in an encoder or a
    funnel.
    """
    inside = host_of(component)
    return description.component(inside) if inside else component


def see(link: Link, found: AnyComponent, off: Mapping[int, str] = NOTHING_OFF) -> ComponentSeen:
    """Read a component's state, kind and version. *off*: the harts without power, whose components are not touched.

    Raises the transport's errors when the link fails.
    """
    hart = power_of(found)
    if hart is not None and hart in off:
        component = Component(link, found.base, block(found.kind), found.name)
        return ComponentSeen(component, None, notes=(f"not read: hart {hart} is off ({off[hart]})",))
    if found.kind in CORESIGHT:
        return coresight_components.see(link, found)
    component = Component(link, found.base, {**RATIFIED, **OF_VENDORS}[found.kind], found.name)
    try:
        control = read_stable(component, component.block.control)
        if not control & 1:
            return ComponentSeen(_of_version(component, found, None), control)
        return _identified(component, found, control)
    except ComponentAccess as error:
        return ComponentSeen(component, None, notes=(f"cannot be read: {error.cause}",))


def _identified(component: Component, found: AnyComponent, control: int) -> ComponentSeen:
    notes: tuple[str, ...] = ()
    try:
        identity = identify(component)
    except UnsupportedVersion as error:
        if error.version[0] or found.kind not in PRE_RATIFIED:
            return ComponentSeen(component, control, error.impl, error.version, (str(error),))
        impl, version = error.impl, error.version
    except WrongComponent as error:
        return ComponentSeen(component, control, error.impl, notes=(str(error),))
    else:
        impl, version, notes = identity.impl, identity.version, identity.notes
    said = getattr(found, "version", version[0])
    if said != version[0]:
        notes += (f"its interface is of version {version[0]}, the target description says {said}",)
    return ComponentSeen(_of_version(component, found, version[0]), control, impl, version, notes, usable=True)


def _of_version(component: Component, found: AnyComponent, major: int | None) -> Component:
    """Return the component with the registers of that version; None: those of the description."""
    if (getattr(found, "version", 1) if major is None else major) or found.kind not in PRE_RATIFIED:
        return component
    return Component(component.target, component.base, PRE_RATIFIED[found.kind], component.name)


def component_lines(
    link: Link,
    found: AnyComponent,
    off: Mapping[int, str] = NOTHING_OFF,
    *,
    everything: bool = False,
    progress: Progress = silent,
) -> list[str]:
    """Describe the component's registers, a line each, below a title. Raises as `see`, and what *progress* raises."""
    seen = see(link, found, off)
    component = seen.component
    text = [f"{found.name} at {found.base:#x}: {component.block.name}{_hart_text(found)}"]
    if seen.usable:
        values = dump.read(component, progress)
        text += [f"  {line}" for line in dump.dump(component.block, values, everything)]
    else:
        text += [f"  {line}" for line in _unidentified(seen)]
    return text + [f"  warning: {note}" for note in seen.notes]


def _hart_text(component: AnyComponent) -> str:
    return f", hart {component.hart}" if isinstance(component, EncoderDescription) else ""


def _unidentified(seen: ComponentSeen) -> Iterator[str]:
    """Yield texts about a component that is not active, or not of the described kind."""
    if seen.control is None:
        return
    if not seen.active:
        yield dump.describe(seen.component.block, CONTROL_OFFSET, seen.control)
        yield _IN_RESET
        return
    yield f"{CONTROL_OFFSET:#05x} {seen.control:#010x}"  # of another kind of component: its bits mean something else
    if seen.impl is not None:
        yield f"{IMPL_OFFSET:#05x} {seen.impl:#010x}"


_LOW = 0xFFFF_FFFF
_NOT_READ = "not read from a target: these values follow from the options of the import"


def captured_names(capture: Capture) -> tuple[str, ...]:
    """Return the names of what the capture has registers of."""
    encoders = (encoder.in_force.name for encoder in capture.encoders)
    sinks = (sink.in_force.name for sink in capture.sinks)
    records = (records.in_force.name for records in capture.records)
    branches = (sent.in_force.name for sent in capture.branches)
    return *encoders, *sinks, *records, *(port.in_force.name for port in capture.tandem), *branches


def captured_lines(capture: Capture, name: str, *, everything: bool = False) -> list[str]:
    """Describe the registers of the component called *name*, which must be there, below a title."""
    kinds = (_encoders, _sinks, _records, _tandem, _branches)
    return [line for kind in kinds for line in kind(capture, name, everything)]


def _encoders(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for encoder in capture.encoders:
        if encoder.in_force.name == name:
            values = _of_encoder(encoder)
            base = encoder.in_force.base
            known = block("encoder", encoder.in_force.version)
            yield from _component_lines(name, known, base, f", hart {encoder.hart}", values, everything)


def _of_encoder(encoder: CapturedEncoder) -> Mapping[Register, int]:
    found = encoder.in_force
    if not found.version:
        return {v0.ENCODER_CONTROL: found.control, v0.ENCODER_IMPL: found.impl, V0_TS_CONTROL: found.ts_control}
    return {
        ENCODER_CONTROL: found.control,
        ENCODER_IMPL: found.impl,
        INST_FEATURES: found.features,
        DATA_CONTROL: found.data_control,
        TS_CONTROL: found.ts_control,
        **({} if found.inst_filters is None else {INST_FILTERS: found.inst_filters}),
    }


def _sinks(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for sink in capture.sinks:
        if sink.in_force.name == name:
            found = sink.in_force
            known = sifive_v0.sink_block(found.host, "ram_sink") if isinstance(found, V0Sink) else RAM_SINK
            known = coresight.TMC if isinstance(found, TmcSettings) else known
            yield from _component_lines(name, known, found.base, "", _of_sink(found), everything)


def _of_sink(sink: SinkSettings) -> Mapping[Register, int]:
    if isinstance(sink, V0Sink):
        host = PRE_RATIFIED[sink.host]
        places = {
            v0.SINK_BASE: sink.start & _LOW,
            v0.SINK_BASE_HIGH: sink.start >> 32,
            v0.SINK_LIMIT: sink.limit & _LOW,
        }
        return {host.control: sink.control, host.impl: sink.impl, **places}
    if isinstance(sink, TmcSettings):
        place = {coresight.DBALO: sink.start & _LOW, coresight.DBAHI: sink.start >> 32} if sink.is_etr else {}
        size = sink.size // 4
        if sink.is_etr:
            place[coresight.AXICTL] = sink.axictl
        return {coresight.RSZ: size, coresight.FFCR: sink.control, coresight.DEVID: sink.impl, **place}
    return {
        RAM_CONTROL: sink.control,
        RAM_IMPL: sink.impl,
        RAM_START_LOW: sink.start & _LOW,
        RAM_START_HIGH: sink.start >> 32,
        RAM_LIMIT_LOW: sink.limit & _LOW & ~3,
        RAM_LIMIT_HIGH: sink.limit >> 32,
    }


def _component_lines(
    name: str, block: RegisterBlock, base: int, more: str, values: Mapping[Register, int], everything: bool
) -> Iterator[str]:
    """Yield the lines of a component. *base* 0: nobody has read these registers."""
    yield f"{name}{f' at {base:#x}' if base else ''}: {block.name}{more}, in the capture"
    by_offset = {register.offset: value for register, value in values.items() if register.offset in block.by_offset}
    yield from (f"  {line}" for line in dump.dump(block, by_offset, everything))
    if not base:
        yield f"  note: {_NOT_READ}"


def _records(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for records in capture.records:
        if records.in_force.name == name:
            yield from ctr_records.ctr_lines(records.in_force, records.hart, ", in the capture", everything=everything)


def _tandem(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for port in capture.tandem:
        if port.in_force.name == name:
            yield f"{name}: tandem trace port, hart {port.hart}, in the capture"
            yield "  note: it has no trace registers; the hart's own registers are known anywhere in its past"


def _branches(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for one in capture.branches:
        if one.in_force.name == name:
            yield f"{name}: {report.branches(one)}, in the capture"
            yield from (f"  {register} 0x{value:x}" for register, value in one.in_force.registers)


class ShownRegisters(NamedTuple):
    """The lines to show. *csrs*: the hart's registers were used, so that the debugger's cached values may be out of
    date.
    """

    lines: list[str]
    csrs: bool


@dataclass(frozen=True)
class RegisterRequest:
    """What to show. *names*: of components, none: all. *everything*: also optional registers that are 0.

    *live*: those of the target, even if a capture is open. *access*: how a hart's CSRs are accessed.
    """

    names: Sequence[str] = ()
    everything: bool = False
    live: bool = False
    access: Way | None = None


def show(
    session: Session,
    context: Context,
    wish: RegisterRequest,
    progress: Progress = silent,
    connect: ConnectLink = OpenOcd,
    environ: Mapping[str, str] = os.environ,
) -> ShownRegisters:
    """Return the registers of the capture that is open, else of the target.

    Raises BadOption, DescriptionError, the transport's errors, and what *progress* raises.
    """
    if in_capture(session) and not wish.live:
        return ShownRegisters(_of_capture(session, wish), False)
    return _live(session, context, wish, progress, connect, environ)


def _live(
    session: Session,
    context: Context,
    wish: RegisterRequest,
    progress: Progress,
    connect: ConnectLink,
    environ: Mapping[str, str],
) -> ShownRegisters:
    harts, others = _sorted(session, wish)
    blocks = [_of_hart(session, name, wish) for name in harts]
    if others or not wish.names:
        needed = bool(others) or not harts  # harts may record without a description, and without OpenOCD
        description = _description(context, environ, needed=needed)
        try:
            connect = checked(connect, context.openocd)
            blocks += _of_target(description, others, wish, progress, connect) if description else []
        except OpenOcdAbsent as error:
            if needed:
                raise
            blocks.append([warning(error)])
    return ShownRegisters(list(_spaced(blocks)), bool(harts))


def names(session: Session, context: Context, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names that `show` accepts, without reading the target. Raises nothing: it is for completion."""
    found = list(captured_names(session.capture())) if in_capture(session) else []
    found += [recorder.captured.in_force.name for recorder in ctr_records.recorders(session)]
    description = _description(context, environ, needed=False)
    if description is not None:
        found += [part.name for part in (*description.components, *description.tracers)]
        found += [tacit.name for tacit in description.tacit]
    return list(dict.fromkeys(found))


def _description(context: Context, environ: Mapping[str, str], *, needed: bool) -> Description | None:
    """Return the target description. Raises DescriptionError if it is *needed*."""
    try:
        return context.description(environ)
    except DescriptionError:
        if needed:
            raise
        return None


def _sorted(session: Session, wish: RegisterRequest) -> tuple[list[str], list[str]]:
    """Return the requested harts (those that record, unless others are named), and the trace components."""
    recording = [recorder.captured.in_force.name for recorder in ctr_records.recorders(session)]
    wanted = list(dict.fromkeys(wish.names)) or recording
    harts = [name for name in wanted if ctr_records.hart_of(name) is not None]
    return harts, [name for name in wanted if name not in harts]


def in_capture(session: Session) -> bool:
    """Return whether a capture is open."""
    return session.live is None and session.has_trace()


def _of_capture(session: Session, wish: RegisterRequest) -> list[str]:
    capture = session.capture()
    there = captured_names(capture)
    for name in wish.names:
        if name not in there:
            raise _unknown_component(name, there, "this capture", "; `trace regs -live` asks the target")
    wanted = dict.fromkeys(wish.names or there)
    return list(_spaced([captured_lines(capture, name, everything=wish.everything) for name in wanted]))


def _of_hart(session: Session, name: str, wish: RegisterRequest) -> list[str]:
    """Describe the CSRs of a hart, whether or not it records."""
    for recorder in ctr_records.recorders(session):
        if recorder.captured.in_force.name == name:
            tracing = session.live is not None and session.live.tracing
            return ctr_records.of_recorder(recorder, tracing=tracing, everything=wish.everything)
    hart = ctr_records.hart_of(name)
    assert hart is not None
    return ctr_records.of_hart(session, hart, wish.access, everything=wish.everything)


def _of_target(
    description: Description, names: Sequence[str], wish: RegisterRequest, progress: Progress, connect: ConnectLink
) -> list[list[str]]:
    """Describe the components called *names*, all if there are none. One inside another is shown with that."""
    there = {component.name: component for component in description.components}
    tracers: dict[str, Callable[..., list[str]]] = {
        tracer.name: partial(register_lines, tracer=tracer) for tracer in description.tracers
    }
    tracers |= {one.name: partial(tacit_encoders.register_lines, tacit=one) for one in description.tacit}
    for name in names:
        if name not in (*there, *tracers):
            raise _unknown_component(name, (*there, *tracers), description.file or "the target description", "")
    asked = list(names) or [*there, *tracers]
    places = dict.fromkeys(place(description, there[name]).name for name in asked if name in there)
    with linked(description, connect) as link:
        off = off_harts(link, description)
        blocks = [
            component_lines(link, there[name], off, everything=wish.everything, progress=progress) for name in places
        ]
        chosen = [tracers[name] for name in dict.fromkeys(asked) if name in tracers]
        return blocks + [lines(link, everything=wish.everything) for lines in chosen]


def _spaced(blocks: Sequence[list[str]]) -> Iterator[str]:
    """An empty line between two components."""
    for number, lines in enumerate(blocks):
        yield from ["", *lines] if number else lines


def _unknown_component(name: str, names: Sequence[str], where: str, more: str) -> BadOption:
    known = f"there are {', '.join(names)}" if names else "there is none"
    return BadOption(f"there is no component {name!r} in {where}: {known}{more}")
