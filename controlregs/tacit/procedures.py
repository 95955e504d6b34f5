"""Starting, stopping and asking TACIT's encoder, with its sink (`sinks`).

Ref: chipsalliance/rocket-chip (c1dda58), TraceEncoderController.scala.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.tacit.registers import TR_TE_BRANCH_MODE, TR_TE_CTRL, TR_TE_TARGET
from rvtrace_gdb.controlregs.tacit.sinks import FlushedSink, LimitedSink, TacitSinkAccess
from rvtrace_gdb.controlregs.target import Target

_ENABLE = TR_TE_CTRL.mask("ENABLE")
DISABLED, ENABLED = TR_TE_CTRL.mask("ACTIVE"), TR_TE_CTRL.mask("ACTIVE", "ENABLE")
"""The values of TR_TE_CTRL."""


class NoTacit(ComponentError):
    """There is no encoder of TACIT at this address: what was written is not read back."""

    def __init__(self, name: str, base: int, register: Register, written: int, value: int) -> None:
        super().__init__(
            name,
            base,
            f"{name} at {base:#x} is not an encoder of TACIT: {register.name} reads {value:#x} after {written:#x} was"
            " written; check the address in the target description",
        )


class TacitStatus(NamedTuple):
    """What the encoder's registers read. *written*: the bytes in the buffer."""

    control: int
    target: int
    branch_mode: int
    written: int

    @property
    def plausible(self) -> bool:
        """Whether an encoder can hold this: the other bits of TR_TE_CTRL are 0."""
        return not self.control & ~ENABLED

    @property
    def is_on(self) -> bool:
        """Whether tracing is on."""
        return bool(self.control & _ENABLE)


def sink_of(target: Target, base: int, name: str, *, limited: bool) -> TacitSinkAccess:
    """Return the sink at *base* of a target. *name*: of its encoder."""
    called = f"the sink of {name}"
    return LimitedSink(target, base, called) if limited else FlushedSink(target, base, called)


@dataclass(frozen=True)
class TacitAccess:
    """An encoder at *base* of a target, with its *sink*. *name*: for messages. All methods raise transport errors."""

    target: Target
    base: int
    sink: TacitSinkAccess
    name: str = "tacit"

    def status(self) -> TacitStatus:
        """Return its state."""
        control, target, mode = map(self._read_encoder, (TR_TE_CTRL, TR_TE_TARGET, TR_TE_BRANCH_MODE))
        return TacitStatus(control, target, mode, self.sink.bytes_written())

    def prepare(self, number: int, branch_mode: int, buffer: int, size: int) -> None:
        """Set up a trace that begins at the start of the *buffer*, and is off. *number*: of the sink in the design.

        Raises NoTacit, NeedsWideAccess, SettingRefused.
        """
        self.switch_off()
        self._set_encoder(TR_TE_TARGET, number)
        self._set_encoder(TR_TE_BRANCH_MODE, branch_mode)
        self.sink.prepare(buffer, size)

    def switch_on(self) -> None:
        """Begin to trace. Raises NoTacit."""
        self._set_encoder(TR_TE_CTRL, ENABLED)

    def switch_off(self) -> None:
        """End the trace. Raises NoTacit."""
        self._set_encoder(TR_TE_CTRL, DISABLED)

    def stop(self) -> None:
        """End the trace, and have its end written. Raises NoTacit, ComponentTimeout."""
        self.switch_off()
        self.sink.finish()

    def _set_encoder(self, register: Register, value: int) -> None:
        self.target.write32(self.base + register.offset, value)
        found = self._read_encoder(register)
        if found != value:
            raise NoTacit(self.name, self.base, register, value, found)

    def _read_encoder(self, register: Register) -> int:
        return self.target.read32(self.base + register.offset)
