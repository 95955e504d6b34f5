"""What the decoder's automaton is made of: states, steps between them, and what there is to report on the way.

Texts and their codes: N-Trace 1.0.0-rc7, tables 9, 23 and 25.
"""

from enum import Enum
from typing import NamedTuple

from decode.history import EventKind, Path, RepeatPath
from decode.ntrace.layout import BType, Evcode, Sync
from decode.ntrace.message import Message


class Mode(Enum):
    """Whether the decoder knows where the hart is."""

    LOST = "lost"
    """Not until the next synchronizing message."""
    ON = "on"
    OFF = "off"
    """Tracing was stopped; `pc` is where it stopped, -1 when that is not known."""


class State(dict[bytes | tuple[bytes, int], "Step"]):
    """Where decoding stands, and the steps already known from here.

    *pc*: the next instruction. *reference*: the last address transmitted, which U-ADDR is relative to (8.1).
    """

    __slots__ = ("mode", "pc", "reference")

    def __init__(self, mode: Mode, pc: int, reference: int) -> None:
        super().__init__()
        self.mode = mode
        self.pc = pc
        self.reference = reference


class Report(NamedTuple):
    """Something to record after a step's path. *lost*: as a gap. *resumed*: decoding goes on at this address again."""

    kind: EventKind
    text: str
    last_pc: int | None = None
    next_pc: int | None = None
    lost: bool = False
    elsewhere: bool = False
    """Tracing went on at another place than it stopped at: a gap precedes."""
    resumed: int | None = None


class Step(NamedTuple):
    """What a message does: the code that ran, the next state, the change of `ahead`, what to report.

    *counted*: it depends on `ahead`.
    """

    path: Path | RepeatPath | None
    state: State
    ahead: int
    reports: tuple[Report, ...] = ()
    counted: bool = True


STARTS = frozenset({Sync.EXIT_FROM_DEBUG, Sync.TRACE_ENABLE})
"""Reasons of a synchronization that begins tracing."""

_SYNC_TEXTS = {
    Sync.EXTERNAL_TRIGGER: "external trigger",
    Sync.EXIT_FROM_RESET: "exit from reset",
    Sync.PERIODIC: "periodic synchronization",
    Sync.EXIT_FROM_DEBUG: "exit from debug mode",
    Sync.SEQUENTIAL_INSTRUCTION_COUNTER: "instruction counter full",
    Sync.TRACE_ENABLE: "trace enabled",
    Sync.TRACE_EVENT: "trace event",
    Sync.RESTART_FROM_FIFO_OVERRUN: "restart from FIFO overrun",
    Sync.EXIT_FROM_POWER_DOWN: "exit from power-down",
}
_EVCODE_TEXTS = {
    Evcode.DEBUG_MODE: "entry into debug mode",
    Evcode.LOW_POWER: "entry into low-power mode",
    Evcode.TRACE_DISABLED: "trace disabled",
}
_TRAP_TEXTS = {BType.TRAP: "exception or interrupt", BType.EXCEPTION: "exception", BType.INTERRUPT: "interrupt"}


def sync_text(message: Message) -> str:
    """Why a synchronizing message was sent, in words."""
    sync = message.fields["sync"]
    return _SYNC_TEXTS[Sync(sync)] if sync in _SYNC_TEXTS else f"synchronization reason {sync}"


def evcode_text(message: Message) -> str:
    """Why tracing stopped, in words."""
    evcode = message.fields["evcode"]
    return _EVCODE_TEXTS[Evcode(evcode)] if evcode in _EVCODE_TEXTS else f"trace stop reason {evcode}"


def resumed(message: Message, pc: int) -> tuple[Report, ...]:
    """What there is to say when decoding starts at a synchronizing message."""
    sync = message.fields["sync"]
    kind = EventKind.TRACE_ON if sync in STARTS else EventKind.SYNC
    b_type = message.fields.get("b_type", BType.JUMP)
    return (Report(kind, sync_text(message), next_pc=pc, resumed=pc), *trap_reports(b_type, -1, pc))


def trap_reports(b_type: int, epc: int, handler: int) -> tuple[Report, ...]:
    """The trap a message with this B-TYPE reports, if any. *epc*: -1 when it is not known."""
    if b_type == BType.JUMP:
        return ()
    return (Report(EventKind.TRAP, _TRAP_TEXTS[BType(b_type)], None if epc < 0 else epc, handler),)
