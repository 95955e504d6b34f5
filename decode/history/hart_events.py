"""What an encoder says besides the flow: where a hart was, what it called, what it wrote into its trace.

SiFive's encoders can send such messages instead of a flow, or between its messages: PC samples, calls and returns,
watchpoints, the values of performance counters, and data that the program wrote (ITC, the instrumentation trace
component). Nothing of what ran in between follows from them.
"""

from enum import Enum
from typing import NamedTuple, Self


class HartEventKind(Enum):
    """The kinds of such events: the name for programs and for `trace events`, and the text.

    numbered  what the event's number is; "" if it has none
    noun      what one of several is
    """

    text: str
    numbered: str
    noun: str

    def __new__(cls, value: str, text: str, numbered: str = "", noun: str = "") -> Self:
        member = object.__new__(cls)
        member._value_ = value
        member.text, member.numbered, member.noun = text, numbered, noun or text
        return member

    PC_SAMPLE = "pc-sample", "PC sample"
    """The hart was there: periodically, or because a debugger asked."""
    CALL = "call", "call"
    RETURN = "return", "return"
    JUMP = "jump", "jump"
    """A call or return by the encoder's rules that is a plain jump in the program: a tail call."""
    EXCEPTION = "taken-exception", "exception", "cause"
    INTERRUPT = "taken-interrupt", "interrupt", "cause"
    """Of both the place is the instruction that runs after the return from the trap handler."""
    CONTEXT = "context-switch", "context", "value", "context event"
    WATCHPOINT = "watchpoint", "watchpoint", "id"
    TRIGGER = "external-trigger", "external trigger", "id"
    CONTROL = "control", "control", "code", "control event"
    """Tracing went on or off, the hart entered or left debug mode or reset."""
    COUNTERS = "counters", "performance counters", "", "counter reading"
    WRITTEN = "written", "written", "", "ITC write"
    """The program wrote data into its trace."""


CONTROLS = {
    0: "nothing",
    2: "trace on",
    3: "trace off",
    4: "exit from debug mode",
    5: "entry into debug mode",
    6: "exit from reset",
    8: "entry into reset",
}
"""What the number of a CONTROL event means."""

COUNTER_BITS = 16
MOST_COUNTERS = 8


class ItcWrite(NamedTuple):
    """Data that a program wrote: *size* bytes to *channel*, as one number; *size* 0: how many is not known."""

    channel: int
    size: int
    value: int

    @property
    def data(self) -> bytes:
        """The bytes, the first one first; none where their number is not known."""
        return self.value.to_bytes(self.size, "little")


class HartEvent(NamedTuple):
    """Something the encoder says of the hart. The event's `last_pc` is where it happened, `next_pc` where a call or
    return led; None where that is not known.

    number   that of the trigger or watchpoint, the cause, the context, the control code; None without one
    values   of performance counters, the first one first
    written  data that the program wrote
    """

    kind: HartEventKind
    number: int | None = None
    values: tuple[int, ...] = ()
    written: ItcWrite | None = None
