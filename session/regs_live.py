"""Trace components on the target as they are now: which they really are, and what their registers hold.

Nothing is written, and no register whose reading does something is read: a trace that runs is not disturbed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rvtrace_gdb.controlregs import dump
from rvtrace_gdb.controlregs.blocks import PRE_RATIFIED, RATIFIED
from rvtrace_gdb.controlregs.common import CONTROL_OFFSET, IMPL_OFFSET
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.discovery import identify, read_stable
from rvtrace_gdb.controlregs.errors import ComponentAccess, UnsupportedVersion, WrongComponent
from rvtrace_gdb.session.description import AnyComponent, Description, Encoder, Funnel
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.link import Connect, Link, link_to
from rvtrace_gdb.support.progress import Progress, silent

_IN_RESET = "it is in reset: its other registers hold nothing until it is made active, as `trace start` does"


@dataclass(frozen=True)
class Seen:
    """What is at a component's address.

    *component*: with the registers of the version it says it has. *control*: its tr??Control, None where it cannot be
    read. *impl*, *version*: of tr??Impl, None where it tells nothing. *notes*: what the user should know. *usable*: it
    is awake and what the description says, so that its other registers can be read.
    """

    component: Component
    control: int | None
    impl: int | None = None
    version: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    usable: bool = False

    @property
    def active(self) -> bool:
        return self.control is not None and bool(self.control & 1)  # bit 0 in every version of the interface

    @property
    def can_be_tried(self) -> bool:
        """Its fields can be written to find out what it can do: it is off, or in reset."""
        return self.control is not None and (not self.active or (self.usable and not self.flag("Enable")))

    def flag(self, name: str) -> bool:
        """A bit of tr??Control, called without its prefix."""
        register, name = self.component.block.control, self.component.block.prefix + name
        return self.control is not None and name in register.by_name and bool(register.get(self.control, name))


@contextmanager
def linked(description: Description, connect: Connect) -> Iterator[Link]:
    """A link to the target, whatever its harts do. Raises Unsupported for QEMU, and the transport's errors."""
    if description.qemu:
        raise Unsupported(f"{description.way} is no trace component and has no registers; `trace status` shows it")
    link = link_to(description, connect)
    try:
        link.state()  # which connects
        hart = description.encoders[0].hart if description.encoders else 0
        if hart < len(link.targets):
            link.target = link.targets[hart]
        with link.unpolled():
            yield link
    finally:
        link.close()


def place(description: Description, found: AnyComponent) -> AnyComponent:
    """Whose registers those of *found* are: sinks of before ratification are in an encoder or a funnel."""
    inside = "" if isinstance(found, Encoder | Funnel) else found.inside
    return description.component(inside) if inside else found


def see(link: Link, found: AnyComponent) -> Seen:
    """Look at a component: its state, kind and version. Raises what the transport raises when it is gone."""
    component = Component(link, found.base, RATIFIED[found.kind], found.name)
    try:
        control = read_stable(component, component.block.control)
        if not control & 1:
            return Seen(_of_version(component, found, None), control)
        return _identified(component, found, control)
    except ComponentAccess as error:
        return Seen(component, None, notes=(f"cannot be read: {error.cause}",))


def _identified(component: Component, found: AnyComponent, control: int) -> Seen:
    notes: tuple[str, ...] = ()
    try:
        identity = identify(component)
    except UnsupportedVersion as error:
        if error.version[0] or found.kind not in PRE_RATIFIED:
            return Seen(component, control, error.impl, error.version, (str(error),))
        impl, version = error.impl, error.version
    except WrongComponent as error:
        return Seen(component, control, error.impl, notes=(str(error),))
    else:
        impl, version, notes = identity.impl, identity.version, identity.notes
    said = getattr(found, "version", version[0])
    if said != version[0]:
        notes += (f"its interface is of version {version[0]}, the target description says {said}",)
    return Seen(_of_version(component, found, version[0]), control, impl, version, notes, usable=True)


def _of_version(component: Component, found: AnyComponent, major: int | None) -> Component:
    """The component with the registers of that version, None: of what the description says."""
    if (getattr(found, "version", 1) if major is None else major) or found.kind not in PRE_RATIFIED:
        return component
    return Component(component.target, component.base, PRE_RATIFIED[found.kind], component.name)


def lines(link: Link, found: AnyComponent, *, everything: bool = False, progress: Progress = silent) -> list[str]:
    """The component's registers in words, a line each, below a title. Raises as `see`, and what *progress* raises."""
    seen = see(link, found)
    component = seen.component
    text = [f"{found.name} at {found.base:#x}: {component.block.name}{_hart(found)}"]
    if seen.usable:
        values = dump.read(component, progress)
        text += [f"  {line}" for line in dump.dump(component.block, values, everything)]
    else:
        text += [f"  {line}" for line in _unidentified(seen)]
    return text + [f"  warning: {note}" for note in seen.notes]


def _hart(found: AnyComponent) -> str:
    return f", hart {found.hart}" if isinstance(found, Encoder) else ""


def _unidentified(seen: Seen) -> Iterator[str]:
    """What can be said of a component that is not awake, or not the one that should be there."""
    if seen.control is None:
        return
    if not seen.active:
        yield dump.describe(seen.component.block, CONTROL_OFFSET, seen.control)
        yield _IN_RESET
        return
    yield f"{CONTROL_OFFSET:#05x} {seen.control:#010x}"  # of another kind of component: its bits mean something else
    if seen.impl is not None:
        yield f"{IMPL_OFFSET:#05x} {seen.impl:#010x}"
