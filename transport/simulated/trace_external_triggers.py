"""External triggers of a simulated trace encoder: inputs that switch the trace, outputs that tell of it.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "External Trace Triggers".
"""

from collections.abc import Callable
from dataclasses import dataclass

from rvtrace_gdb.controlregs import encoder as te
from rvtrace_gdb.controlregs.fields import Register

_BITS = 4  # of each one
_EVENTS = 0b0011  # tracing goes from 0 to 1, from 1 to 0; there are none of a vendor's
MOST = 8


@dataclass(frozen=True)
class ExternalTriggers:
    """How many there are. *fired* is called with the number of an output. Raises ValueError for more than 8."""

    inputs: int = 0
    outputs: int = 0
    fired: Callable[[int], None] = lambda number: None

    def __post_init__(self) -> None:
        if not 0 <= self.inputs <= MOST or not 0 <= self.outputs <= MOST:
            raise ValueError(f"an encoder has up to {MOST} trigger inputs and outputs")

    def legal(self) -> dict[int, int]:
        """The bits of their registers that can be written, by offset."""
        events = sum(_EVENTS << _BITS * number for number in range(self.outputs))
        return {te.TRIG_EXT_IN_CONTROL.offset: (1 << _BITS * self.inputs) - 1, te.TRIG_EXT_OUT_CONTROL.offset: events}

    def legalize(self, register: Register, value: int) -> int:
        """An action that is reserved becomes none."""
        if register is te.TRIG_EXT_IN_CONTROL:
            for name, action in register.unpack(value).items():
                if action not in tuple(te.TrigAction):
                    value = register.put(value, name, te.TrigAction.NONE)
        return value

    def action(self, control: int, number: int) -> te.TrigAction:
        """What *control*, trTeTrigExtInControl, says of an input."""
        return te.TrigAction(te.TRIG_EXT_IN_CONTROL.get(control, f"trTeTrigExtInAction{number}"))

    def tell(self, control: int, tracing: bool) -> None:
        """Tracing has gone on or off: fire the outputs that *control*, trTeTrigExtOutControl, says."""
        event = 0 if tracing else 1
        for number in range(self.outputs):
            if control >> _BITS * number + event & 1:
                self.fired(number)
