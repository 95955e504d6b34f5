"""One trace component in words: what it is, what it can do, and what it does now."""

from collections.abc import Iterator
from dataclasses import dataclass

from rvtrace_gdb.controlregs.blocks import PRE_RATIFIED, RATIFIED
from rvtrace_gdb.controlregs.driving import capabilities
from rvtrace_gdb.controlregs.encoder_setup import in_force
from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.sifive_v0.encoder_setup import in_force as v0_in_force
from rvtrace_gdb.session import regs_live, report
from rvtrace_gdb.session.description import AnyComponent, AtbBridge, Description, Encoder, Funnel, PibSink, RamSink
from rvtrace_gdb.session.link import Link
from rvtrace_gdb.session.regs_live import Seen
from rvtrace_gdb.support.lines import warning
from rvtrace_gdb.support.progress import Progress, silent


@dataclass(frozen=True)
class Found:
    """A component as it is. *hart*: of an encoder, what is known of its hart. *texts*: what it can do, or does."""

    seen: Seen
    version: tuple[int, int] | None = None
    hart: str = ""
    texts: tuple[str, ...] = ()


def find(
    link: Link, description: Description, component: AnyComponent, *, in_use: bool, progress: Progress = silent
) -> Found:
    """Look at it; one that is off is tried out and left as it was.

    *in_use*: it is not tried out, for its trace may not have been read yet. Raises what the transport raises when it is
    gone.
    """
    progress(f"looking at {component.name}", 0)
    seen = regs_live.see(link, regs_live.place(description, component))
    hart = _hart(link, component) if isinstance(component, Encoder) else ""
    notes = tuple(warning(note) for note in seen.notes)
    own_registers = isinstance(component, Encoder | Funnel) or not component.inside
    if seen.can_be_tried and own_registers and not in_use:
        return _tried(seen, hart, notes, progress)
    return Found(seen, seen.version, hart, (*_does(component, seen), *notes))


def _tried(seen: Seen, hart: str, notes: tuple[str, ...], progress: Progress) -> Found:
    """One that is off, or in reset, and what it can do."""
    try:
        able = capabilities(seen.component, progress)
    except ComponentError as error:
        return Found(seen, seen.version, hart, (*notes, warning(error)))
    has = (f"has {', '.join(able.has)}",) if able.has else ()
    lacks = (f"has no {', '.join(able.lacks)}",) if able.lacks else ()
    more = tuple(warning(note) for note in able.identity.notes if note not in seen.notes)
    return Found(seen, able.identity.version, hart, (*has, *lacks, *notes, *more))


def texts(component: AnyComponent, found: Found | None) -> Iterator[str]:
    """What is to be said of it, besides what it is connected with. *found* None: it could not be asked."""
    block = found.seen.component.block if found else _block(component)
    inside = "" if isinstance(component, Encoder | Funnel) else component.inside
    parts = [f"{block.name} at {component.base:#x}" if not inside else f"{_block(component).name} inside {inside}"]
    if found and found.version:
        parts.append(f"interface {_version(found.version)}")
    if isinstance(component, Encoder):
        parts.append(f"hart {component.hart}{f' ({found.hart})' if found and found.hart else ''}")
    state = _state(found.seen) if found else ""
    yield ", ".join(parts) + (f": {state}" if state else "")
    yield from _described(component)
    yield from found.texts if found else ()


def _block(component: AnyComponent) -> RegisterBlock:
    """The registers the description says that it has."""
    of_version_0 = getattr(component, "version", 1) == 0 and component.kind in PRE_RATIFIED
    return (PRE_RATIFIED if of_version_0 else RATIFIED)[component.kind]


def _version(version: tuple[int, int]) -> str:
    """Before 1.0 there is no minor version: its bits say which sinks there are."""
    return f"{version[0]}.{version[1]}" if version[0] else "0"


def _state(seen: Seen) -> str:
    """Nothing where it cannot be told: the notes say why."""
    if seen.control is None or (seen.active and not seen.usable):
        return ""
    if not seen.active:
        return "in reset"
    if not seen.flag("Enable"):
        return "off"
    return "tracing" if seen.flag("InstTracing") or seen.flag("Tracing") else "on"


def _described(component: AnyComponent) -> Iterator[str]:
    """What the description says of it."""
    if isinstance(component, RamSink):
        size = "" if component.size is None else f", {component.size} bytes"
        where = "" if component.start is None else f" {component.start:#x}"
        yield f"buffer in {component.mode}{where}{size}"
    elif isinstance(component, PibSink) and component.mode is not None:
        clock = "" if component.divider is None else f", clock / {component.divider}"
        yield f"pins: {component.mode}{clock}"
    elif isinstance(component, AtbBridge) and component.id is not None:
        yield f"ID {component.id:#x} on the trace bus"


def _does(component: AnyComponent, seen: Seen) -> Iterator[str]:
    """What it is set to while it is on; of version 0, where it can send trace, too."""
    if not seen.usable or not isinstance(component, Encoder | Funnel):
        return
    of_version_0 = seen.component.block is PRE_RATIFIED[component.kind]
    if of_version_0:
        yield from _sinks_of_version_0(seen)
    if isinstance(component, Encoder) and seen.flag("Enable"):
        try:
            yield report.protocol((v0_in_force if of_version_0 else in_force)(seen.component))
        except ComponentError as error:
            yield warning(error)


def _sinks_of_version_0(seen: Seen) -> Iterator[str]:
    """From flags in teImpl and tfImpl: hasSRAMSink, hasFunnelSink..."""
    impl = seen.component.block.impl
    there = [name for name, on in impl.unpack(seen.impl or 0).items() if on and name.startswith("has")]
    if there:
        yield f"can send trace to {', '.join(name.removeprefix('has').removesuffix('Sink') for name in there)}"


def _hart(link: Link, encoder: Encoder) -> str:
    """What OpenOCD calls the hart, and how it is."""
    if encoder.hart >= len(link.targets):
        return "OpenOCD has no such target"
    name, before = link.targets[encoder.hart], link.target
    link.target = name
    try:
        return f"{name}, {link.state()}"
    finally:
        link.target = before
