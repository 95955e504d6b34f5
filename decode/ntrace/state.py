"""The states of the decoder's automaton, the steps between them, and what there is to report on the way."""

from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.history.builder import Report
from rvtrace_gdb.decode.history.events import EventKind, Start, StartReason, Stop, StopReason, Trap
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.ntrace.messages import BType, Message, Sync
from rvtrace_gdb.decode.ntrace.options import Dialect
from rvtrace_gdb.decode.program.csrs import Context
from rvtrace_gdb.decode.stepping.control_flow import NOWHERE, CallEffect


class Mode(Enum):
    """Whether the decoder knows where the hart is."""

    LOST = "lost"
    """Not until the next synchronizing message."""
    ON = "on"
    OFF = "off"
    """Tracing was stopped: what runs now is missing. `pc` is where it stopped, -1 when that is not known."""
    HALTED = "halted"
    """The same because the hart was stopped: nothing runs meanwhile."""


STOPPED = (Mode.OFF, Mode.HALTED)


class State(dict[object, "Step | Fork"]):
    """Where decoding stands, and the steps already known from here.

    *pc*: the next instruction. *reference*: the last address transmitted, which U-ADDR is relative to (8.1). *context*:
    which program runs, as far as Ownership messages told. *branch*: the one that a synchronizing message came at, and
    had no bit for, if the next message may count it again (a switch of the dialect), else NOWHERE.
    """

    __slots__ = ("branch", "context", "mode", "pc", "reference")

    def __init__(self, mode: Mode, pc: int, reference: int, context: Context, branch: int = NOWHERE) -> None:
        super().__init__()
        self.branch = branch
        self.mode = mode
        self.pc = pc
        self.reference = reference
        self.context = context


class Step(NamedTuple):
    """What a message does: the code that ran, the next state, the change of `ahead`, what to report.

    counted  it depends on `ahead`
             (for a message that does not, every step from the same state holds for any `ahead` >= 0)
    calls    what it does to the call stack; it holds only for a stack with `calls.taken` on top. None: nothing
    """

    path: Path | None
    state: State
    ahead: int
    reports: tuple[Report, ...] = ()
    counted: bool = True
    calls: CallEffect | None = None


class Fork(dict[int | None, "Step | Fork"]):
    """In place of a step that depends on the call stack: what there is for each return address on top of it.

    *counted*: as of the steps.
    """

    __slots__ = ("counted",)

    def __init__(self, counted: bool) -> None:
        super().__init__()
        self.counted = counted


STARTS = frozenset({Sync.EXIT_FROM_DEBUG, Sync.TRACE_ENABLE})
"""Reasons of a synchronization that begins tracing."""


def start_of(message: Message, dialect: Dialect) -> Start:
    """Why a synchronizing message was sent."""
    sync = message.fields["sync"]
    return Start(dialect.starts.get(sync, StartReason.OTHER), sync)


def stop_of(message: Message, dialect: Dialect) -> Stop:
    """Why tracing stopped."""
    evcode = message.fields["evcode"]
    return Stop(dialect.stops.get(evcode, StopReason.OTHER), evcode)


def resumed(message: Message, pc: int, dialect: Dialect) -> tuple[Report, ...]:
    """What there is to say when decoding starts at a synchronizing message."""
    kind = EventKind.TRACE_ON if message.fields["sync"] in STARTS else EventKind.SYNC
    b_type = message.fields.get("b_type", BType.JUMP)
    first = Report(kind, start_of(message, dialect), next_pc=pc, resumed=pc)
    return (first, *trap_reports(b_type, -1, pc, dialect))


def trap_reports(b_type: int, epc: int, handler: int, dialect: Dialect) -> tuple[Report, ...]:
    """The trap a message with this B-TYPE reports, if any. *epc*: -1 when it is not known."""
    if b_type == BType.JUMP:
        return ()
    return (Report(EventKind.TRAP, Trap(dialect.traps[b_type]), None if epc < 0 else epc, handler),)
