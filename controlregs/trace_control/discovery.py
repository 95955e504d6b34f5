"""Which trace component is at an address that no description names.

`look` reads tr??Control and tr??Impl, and nothing else. A component in reset need not show tr??Impl: `wake` sets its
Active bit, reads again, and puts back what was there, whatever it is.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery", the section on versioning, and the
table of component types.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentAccess, ComponentTimeout
from rvtrace_gdb.controlregs.graph import RATIFIED
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.controlregs.trace_control.component_registers import (
    FUNNEL,
    RAM_CONTROL,
    RAM_IMPL,
    RAM_LIMIT_HIGH,
    RAM_LIMIT_LOW,
    RAM_SINK,
    RAM_START_HIGH,
    RAM_START_LOW,
    VERSION,
    RamMode,
)
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER_IMPL
from rvtrace_gdb.controlregs.trace_control.lifecycle import UNANSWERED_READS, read_stable
from rvtrace_gdb.support.errors import RvtraceError

KINDS = {block.comp_type: kind for kind, block in RATIFIED.items()}
"""The component types of tr??Impl, as target descriptions name them."""
_ANY = FUNNEL  # the bits of tr??Control and tr??Impl that are read here are those of every component
_ACTIVE, _ENABLE = 1, 2
_SECONDS = 0.25  # for Active to become 1


class ProbeAnswer(Enum):
    """What answered at an address."""

    COMPONENT = auto()
    MAYBE_IN_RESET = auto()
    """It can be a component in reset, which `wake` finds out, or nothing."""
    STAYS_IN_RESET = auto()
    """Active does not become 1."""
    UNKNOWN_TYPE = auto()
    RESERVED_VERSION = auto()
    PRE_RATIFIED = auto()
    """It can be a component of version 0, whose type no register tells."""
    NOTHING = auto()
    REFUSED = auto()


@dataclass(frozen=True)
class ProbedComponent:
    """What was read at *base*. *kind*: of a component, as in target descriptions. *cause*: why an access was refused.

    *storage*: the modes of a RAM sink. *buffer*: first address and size of the buffer that a RAM sink has been set up
    with; None if it was in reset.
    """

    base: int
    answer: ProbeAnswer
    control: int = 0
    impl: int | None = None
    kind: str = ""
    cause: RvtraceError | None = None
    storage: tuple[str, ...] = ()
    buffer: tuple[int, int] | None = None

    @property
    def version(self) -> tuple[int, int]:
        """The major and minor version of the interface."""
        return _field(self.impl or 0, "VerMajor"), _field(self.impl or 0, "VerMinor")

    @property
    def etrace(self) -> bool:
        """Whether it is an encoder that reports E-Trace as its protocol: trTeProtocolMajor is 0."""
        return self.kind == "encoder" and not ENCODER_IMPL.get(self.impl or 0, "trTeProtocolMajor")

    @property
    def type_code(self) -> int:
        return _field(self.impl or 0, "CompType")

    @property
    def newer(self) -> bool:
        """Whether it is a component of a newer minor version than the document's: its registers are compatible."""
        return self.answer is ProbeAnswer.COMPONENT and self.version[1] > VERSION[1]


def look(target: Target, base: int) -> ProbedComponent:
    """Read the two registers at *base*; nothing is written. Raises the transport's errors if the target is lost."""
    component = _probed_component(target, base)
    try:
        control = read_stable(component, _ANY.control)
    except ComponentAccess as error:
        return ProbedComponent(base, ProbeAnswer.REFUSED, cause=error.cause)
    try:
        impl = read_stable(component, _ANY.impl)
    except ComponentAccess as error:  # as of one that has no power while it is in reset
        return ProbedComponent(
            base, ProbeAnswer.NOTHING if control & _ACTIVE else ProbeAnswer.MAYBE_IN_RESET, control, cause=error.cause
        )
    return _identified(target, ProbedComponent(base, _probe_answer(control, impl), control, impl))


def wake(target: Target, seen: ProbedComponent) -> ProbedComponent:
    """Set Active of what may be a component in reset, read it, and write back what was there before.

    Raises the transport's errors if the target is lost.
    """
    component = _probed_component(target, seen.base)
    try:
        target.write32(seen.base + _ANY.control.offset, seen.control | _ACTIVE)
        try:
            return _awake(component, seen)
        finally:
            target.write32(seen.base + _ANY.control.offset, seen.control)
    except (ComponentAccess, ComponentTimeout) as error:
        stays = isinstance(error, ComponentTimeout)
        return ProbedComponent(
            seen.base, ProbeAnswer.STAYS_IN_RESET if stays else ProbeAnswer.REFUSED, seen.control, cause=error
        )
    except RvtraceError as error:
        if getattr(error, "address", None) is None:
            raise
        return ProbedComponent(seen.base, ProbeAnswer.REFUSED, seen.control, cause=error)


def _awake(component: Component, before: ProbedComponent) -> ProbedComponent:
    control = component.wait(_ANY.control, trFunnelActive=1)
    impl = read_stable(component, _ANY.impl)
    found = _identified(component.target, ProbedComponent(before.base, _probe_answer(control, impl), control, impl))
    return replace(found, buffer=None)  # which nobody has set up


def _probed_component(target: Target, base: int) -> Component:
    return Component(target, base, _ANY, f"{base:#x}", timeout=_SECONDS)


def _field(impl: int, name: str) -> int:
    return _ANY.impl.get(impl, _ANY.prefix + name)


def _probe_answer(control: int, impl: int) -> ProbeAnswer:
    """Return what two words show. Every word may be that of another device: only a known type is believed."""
    major, kind = _field(impl, "VerMajor"), _field(impl, "CompType")
    if control == UNANSWERED_READS[1] or impl == UNANSWERED_READS[1]:
        return ProbeAnswer.NOTHING
    if major == VERSION[0] and kind in KINDS:
        return ProbeAnswer.COMPONENT
    if not control & _ACTIVE:
        return ProbeAnswer.MAYBE_IN_RESET if impl == 0 and not control & _ENABLE else ProbeAnswer.NOTHING
    if impl == 0:
        return ProbeAnswer.NOTHING
    if major == 0:
        return ProbeAnswer.PRE_RATIFIED
    return ProbeAnswer.UNKNOWN_TYPE if major == VERSION[0] else ProbeAnswer.RESERVED_VERSION


def _identified(target: Target, seen: ProbedComponent) -> ProbedComponent:
    """Return what was seen with the type of a component, and what a RAM sink says of its buffer."""
    if seen.answer is not ProbeAnswer.COMPONENT or seen.impl is None:
        return seen
    kind = KINDS[seen.type_code]
    if kind != "ram_sink":
        return replace(seen, kind=kind)
    storage = tuple(mode for mode in ("SRAM", "SMEM") if RAM_IMPL.get(seen.impl, f"trRamHas{mode}"))
    return replace(
        seen, kind=kind, storage=storage, buffer=_buffer_extent(Component(target, seen.base, RAM_SINK), seen)
    )


def _buffer_extent(sink: Component, seen: ProbedComponent) -> tuple[int, int] | None:
    """Return first address and size of a buffer in system memory, None where the registers hold none."""
    smem = RAM_CONTROL.get(seen.control, "trRamMode") == RamMode.SMEM
    if not seen.control & _ACTIVE or not smem:
        return None
    try:
        start = sink.read(RAM_START_LOW) | sink.read(RAM_START_HIGH) << 32
        limit = sink.read(RAM_LIMIT_LOW) | sink.read(RAM_LIMIT_HIGH) << 32
    except ComponentAccess:
        return None
    return (start, limit + 4 - start) if start < limit else None
