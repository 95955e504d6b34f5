"""The states of the N-Trace decoder, the steps between them, and the reports that steps make."""

from dataclasses import dataclass
from enum import Enum

from rvtrace_gdb.decode.history.events import (
    EventKind,
    Loss,
    LossCause,
    Note,
    NoteCause,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
)
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.ntrace.messages import MAX_HIST_BITS, MAX_ICNT_BITS, BType, Message, Rcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import Dialect
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.stepping.control_flow import NOWHERE, CallEffect
from rvtrace_gdb.decode.stepping.hart import Fork
from rvtrace_gdb.decode.stepping.reports import Report


class Mode(Enum):
    """Whether the decoder knows the pc of the hart."""

    LOST = "lost"
    """The pc is unknown until the next synchronizing message."""
    ON = "on"
    OFF = "off"
    """Tracing is stopped, and the hart may run untraced. `pc` is where tracing stopped, -1 if that is not known."""
    HALTED = "halted"
    """Tracing is stopped because the hart is halted: nothing runs meanwhile."""


STOPPED = (Mode.OFF, Mode.HALTED)


class State(dict[bytes | tuple[bytes, int], "Step | Fork[Step]"]):
    """A state of the decoder, and the remembered steps from this state, by the message or by (message, ahead).

    pc         the address of the next instruction
    reference  the last transmitted address, to which U-ADDR is relative (8.1)
    context    the context of the hart as reported by Ownership messages
    branch     the address of a branch at which a synchronizing message was sent without a HIST bit for it, if the next
               message may count it again (`Dialect.recounts_branch`); else NOWHERE
    number     the kernel's number of the state, -1 if it has none
    """

    __slots__ = ("branch", "context", "mode", "number", "pc", "reference")

    def __init__(self, mode: Mode, pc: int, reference: int, context: ProgramContext, branch: int = NOWHERE) -> None:
        super().__init__()
        self.branch = branch
        self.mode = mode
        self.pc = pc
        self.reference = reference
        self.context = context
        self.number = -1


@dataclass(slots=True)
class Step:
    """The effect of a message: the code that ran, the next state, the change of `ahead`, and the reports.

    Nothing changes a step. It has slots because the hot loop reads these faster than the fields of a NamedTuple.

    counted  whether the step depends on `ahead`; if not, it is valid for any `ahead` >= 0
    calls    the effect on the call stack; the step is valid only for a stack with `calls.taken` on top. None: no effect
    """

    path: Path | None
    state: State
    ahead: int
    reports: tuple[Report, ...] = ()
    counted: bool = True
    calls: CallEffect | None = None


STARTS = frozenset(sync for sync in Sync if sync.begins)
"""The SYNC values of a synchronization at which tracing starts."""


def start_of(message: Message, dialect: Dialect) -> Start:
    """Return the reason of a synchronizing message."""
    sync = message.fields["sync"]
    return Start(dialect.starts.get(sync, StartReason.OTHER), sync)


def stop_of(message: Message, dialect: Dialect) -> Stop:
    """Return the reason of a ProgTraceCorrelation message."""
    evcode = message.fields["evcode"]
    return Stop(dialect.stops.get(evcode, StopReason.OTHER), evcode)


def resumption_reports(message: Message, pc: int, dialect: Dialect) -> tuple[Report, ...]:
    """Return the reports for decoding that starts at a synchronizing message."""
    kind = EventKind.TRACE_ON if message.fields["sync"] in STARTS else EventKind.SYNC
    b_type = message.fields.get("b_type", BType.JUMP)
    first = Report(kind, start_of(message, dialect), next_pc=pc, resumed=pc)
    return (first, *trap_reports(b_type, -1, pc, dialect))


def trap_reports(b_type: int, epc: int, handler: int, dialect: Dialect) -> tuple[Report, ...]:
    """Return the report of the trap for a message with this B-TYPE, or nothing. *epc* is -1 if it is not known."""
    if b_type == BType.JUMP:
        return ()
    return (Report(EventKind.TRAP, Trap(dialect.traps[b_type]), None if epc < 0 else epc, handler),)


def _is_full_history(message: Message) -> bool:
    return message.tcode == Tcode.RESOURCE_FULL and message.fields["rcode"] in (Rcode.HIST, Rcode.REPEATED_HIST)


def impossible_value(message: Message, ahead: int) -> Loss | None:
    """Return the loss for a field with a value that no encoder sends, None if there is none.

    The part of I-CNT that HIST has covered matches the code. The rest is at most what an encoder counts before it must
    report: with few outcomes, a larger number would be a loop without branches, which any number fits. Reserved SYNC
    values are accepted: they are reported, and "decoding can be started" at them (table 25).
    """
    full = message.tcode == Tcode.RESOURCE_FULL and message.fields["rcode"] == Rcode.ICNT
    icnt = message.fields["rdata"] if full else message.fields.get("icnt", 0)
    further = icnt - max(ahead, 0)
    if further >= 1 << MAX_ICNT_BITS:
        return Loss(LossCause.ICNT_TOO_LARGE, (message.name, icnt.bit_length(), MAX_ICNT_BITS, further))
    history = message.fields["rdata"] if _is_full_history(message) else message.fields.get("hist", 0)
    if history >> MAX_HIST_BITS:
        return Loss(LossCause.HIST_TOO_LARGE, (message.name, history.bit_length(), MAX_HIST_BITS))
    cdf = message.fields.get("cdf", 0)
    return Loss(LossCause.RESERVED, (message.name, "CDF", cdf)) if cdf > 1 else None


def ignored_message(message: Message) -> Note:
    """Return the note on a message that is not about the flow."""
    fields = [part for name, value in message.fields.items() for part in (name.upper(), value)]
    return Note(NoteCause.IGNORED, (message.name, *fields))
