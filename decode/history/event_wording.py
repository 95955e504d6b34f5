"""The wording of events: the one place where facts become text.

Whatever shows events uses it; nothing that makes decisions does. The codes and reasons of N-Trace are those of
1.0.0-rc7, tables 9, 23 and 25.
"""

from collections.abc import Mapping

from rvtrace_gdb.decode.history.events import (
    ContextChange,
    Detail,
    Fact,
    Loss,
    LossCause,
    MismatchedReturn,
    NoteCause,
    Open,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.program.csrs import ProgramContext, trap_text

STOPS: Mapping[StopReason, str] = {
    StopReason.DEBUG_MODE: "entry into debug mode",
    StopReason.LOW_POWER: "entry into low-power mode",
    StopReason.TRACE_DISABLED: "trace disabled",
    StopReason.RESET: "entry into reset",
    StopReason.UNSPECIFIED: "tracing stops",
    StopReason.OTHER: "trace stop reason {}",
    StopReason.MODE_NOT_RECORDED: "the hart was in a mode that is not recorded",
    StopReason.END_NOT_RECORDED: "what ran since is not recorded",
    StopReason.LEFT_FOR_HIDDEN_MODE: "the place where the hart entered a mode that is not recorded is not known",
    StopReason.MAYBE_OFF: "recording may have been off before this record: it has no cycles (CCV)",
    StopReason.OTHER_ROUTE: "the code does not lead to 0x{:x}; the transfer that did was not recorded",
    StopReason.NO_ROUTE: "{}",
    StopReason.NO_CODE: "{} at 0x{:x}",
    StopReason.GROUPS_MISSING: "groups are missing: the pc was 0x{:x}, and what follows is {}",
    StopReason.UNTRACED: "there is no trace below 0x{:x}, where the hart continued at 0x{:x}",
}
"""The wording of each reason; {} stands for the code, or else for the details."""

_OPEN: Mapping[Open, str] = {
    Open.BRANCH: " at a branch whose outcome is not in the trace",
    Open.TRAP: " at a trap whose handler is not in the trace",
    Open.JUMP: " at a jump whose target is not in the trace",
    Open.PLACE: ", and after which instruction is not in the trace",
}

_LOSSES: Mapping[LossCause, str] = {
    LossCause.MALFORMED: "{}",
    LossCause.NO_PACKET: "no te_inst packet: {}",
    LossCause.MISMATCH: "trace does not match {} at 0x{:x}: {} ({})",
    LossCause.ABSENT_CODE: "at 0x{:x}: there is no code, {} is there and was not supplied ({})",
    LossCause.NO_CODE: "at 0x{:x}: there is no code in what was supplied ({})",
    LossCause.COUNT_UNKNOWN: "{} does not say how many branches lead to 0x{:x}: {} are possible",
    LossCause.OTHER_INSTRUCTION: "trace does not match {} at 0x{:x}: the instruction 0x{} ran, and 0x{} is there",
    LossCause.MESSAGES_LOST: "the encoder lost messages (ECODE 0x{:x})",
    LossCause.PACKETS_LOST: "the encoder lost packets",
    LossCause.MESSAGES_MISSING: (
        "messages were lost: {} from one synchronization to the next instead of {} or more; what ran before is"
        " incomplete"
    ),
    LossCause.MESSAGES_TOO_MANY: (
        "{} messages from one synchronization to the next instead of {}: some came twice, or a synchronization was"
        " lost; what ran before is not certain"
    ),
    LossCause.ENCODER_ERROR: "the encoder reports error {} (ECODE 0x{:x})",
    LossCause.FIFO_OVERRUN: StartReason.FIFO_OVERRUN.text,
    LossCause.ICNT_TOO_LARGE: "{}: I-CNT has {} bits, more than {}, and is {} halfwords ahead of HIST",
    LossCause.BRANCH_COUNT_TOO_LARGE: (
        "{}: a branch_count of {} bits, more than {}, is taken for noise: raise branch_count_bits if it is not"
    ),
    LossCause.REPETITION_TOO_LARGE: (
        "{}: a repetition count of {} bits, more than {}, is taken for noise: raise repeat_bits if it is not"
    ),
    LossCause.WHILE_OFF: "{} while tracing is off",
    LossCause.NO_HANDLER: "{} with no handler reported for the trap before",
    LossCause.UNKNOWN_HANDLER: "the trap handler's address is not in the trace (implicit exception): give trap_vector",
    LossCause.NO_STOP: ", and no message of the stop before it",
    LossCause.NO_HIST: ", and no HIST for the branches before it",
    LossCause.NO_STOP_BIT: "ResourceFull: HIST has no stop bit",
    LossCause.RESERVED: "{}: {} {} is reserved",
    LossCause.FIELD_TOO_MANY: "{} has one more field, and this trace has no timestamps",
    LossCause.UNDEFINED_RCODE: "ResourceFull with RCODE {}, which is not defined",
    LossCause.NO_BRANCH_BEFORE: "RepeatBranch with no branch message before it",
    LossCause.ENDLESS_REPETITION: "RepeatBranch with B-CNT {}, which leads to a different place each time",
    LossCause.NO_GROUP: "{} (at 0x{:x})",
    LossCause.GROUPS_MISSING: "groups are missing: the pc was 0x{:x}, and what follows is {}",
    LossCause.NO_ADDRESS: "the trace does not give the address of an instruction",
    LossCause.IMPOSSIBLE: "{}: this is impossible; what was reported with it is ignored",
    LossCause.CONTRADICTED: "{} is ignored: what follows it in the trace cannot have run from there",
    LossCause.ENCODED_OTHERWISE: "checked, and damaged before this place: {}",
    LossCause.NOT_BELIEVED: "an instruction at 0x{} is ignored: the trace next to it is damaged",
}

_NOTES: Mapping[NoteCause, str] = {
    NoteCause.CUT_OFF: "{}",
    NoteCause.GROUP_CUT_OFF: "the trace ends in the middle of a group",
    NoteCause.NO_BEGIN: "the trace does not begin with a group",
    NoteCause.STOPPED_AT_LOSS: "decoding stopped here, at the first loss, as asked",
    NoteCause.TOO_LONG: "decoding stopped after {} instructions",
    NoteCause.ODD_IDLE: "a byte 0x{:02x} between messages is treated as idle, which is 0xff",
    NoteCause.BRANCH_AGAIN: "{} right after one: it counts the branch at 0x{:x} a second time",
    NoteCause.RESERVED_OWNERSHIP: "Ownership with the reserved {} ignored",
    NoteCause.FIELD_TOO_MANY: "{} has one more field, as with timestamps, which were not switched on",
    NoteCause.LARGE_COUNT: "{} alone says that {} branches went as predicted: nothing else in the trace confirms it",
    NoteCause.TIME_BACK: "the time goes back from {} to {}: times before and after this place cannot be compared",
    NoteCause.NOT_LISTED: "{} of {} repetitions are not listed as events",
    NoteCause.BAD_DATA: "te_data: {}",
    NoteCause.DATA_LOST: "the encoder lost data packets",
    NoteCause.FLAW: "group {}: {}",
    NoteCause.MORE_PLACES: "{} more places where the trace and {} do not agree",
    NoteCause.CALLS_ALONE: (
        "RAS emulation: only calls that have not returned are recorded;"
        " others are assumed to have returned to the instruction after them"
    ),
    NoteCause.UNSEEN: (
        "traps or modes are not recorded: the code that ran there is not shown,"
        " and is assumed to have returned to where it was entered from"
    ),
    NoteCause.ROUNDED_TIMES: "times are lower bounds: records round counts of {} or more cycles down",
}

TRAPS: Mapping[TrapKind, str] = {
    TrapKind.EXCEPTION: "exception",
    TrapKind.INTERRUPT: "interrupt",
    TrapKind.UNKNOWN: "exception or interrupt",
}
"""The wording of a trap if the trace does not give the cause."""


def fact_text(fact: Fact) -> str:
    """Return the text of a fact, as a listing shows it."""
    if isinstance(fact, Trap):
        return _trap(fact)
    if isinstance(fact, Start):
        return fact.reason.text.format(fact.code)
    if isinstance(fact, Stop):
        return _stop(fact)
    if isinstance(fact, Loss):
        return _loss(fact)
    if isinstance(fact, ContextChange):
        return context_text(fact.now)
    if isinstance(fact, MismatchedReturn):
        return f"not to 0x{fact.expected:x}, the return address of its call"
    return _note(fact.cause, fact.detail)


def context_text(context: ProgramContext) -> str:
    """Return the text of what is known of a context."""
    parts = [_mode(context.prv, context.virtual)] if context.prv is not None else []
    named = (("scontext", context.scontext), ("hcontext", context.hcontext))
    parts += [f"{name} {value if value >> 64 == 0 else hex(value)}" for name, value in named if value is not None]
    return ", ".join(parts) or "unknown context"


def says_its_kind(fact: Fact) -> bool:
    """Return whether the text of a fact names the kind of event, so that the kind need not precede it."""
    if isinstance(fact, Stop):
        return fact.reason in (StopReason.TRACE_DISABLED, StopReason.UNSPECIFIED, StopReason.OTHER)
    if isinstance(fact, Start):
        return fact.reason.says_kind
    if isinstance(fact, Loss):
        return fact.cause in (LossCause.MISMATCH, LossCause.OTHER_INSTRUCTION)
    return isinstance(fact, Trap | ContextChange)


def _trap(trap: Trap) -> str:
    known = trap.cause is not None and trap.kind is not TrapKind.UNKNOWN
    text = trap_text(trap.cause or 0, trap.kind is TrapKind.INTERRUPT) if known else TRAPS[trap.kind]
    text += f", tval 0x{trap.value:x}" if trap.value else ""
    text += ", read from the hart" if trap.from_hart else ""
    text += " in a mode that is not recorded" if trap.from_hidden else ""
    return text + (" into a mode that is not recorded" if trap.into_hidden else "")


def _stop(stop: Stop) -> str:
    text = STOPS[stop.reason].format(*((stop.code,) if stop.code is not None else stop.detail))
    text += "" if stop.open is None else _OPEN[stop.open]
    return text if stop.then is None else f"{text}, then {fact_text(stop.then)} at another place"


def _loss(loss: Loss) -> str:
    if loss.cause is LossCause.SKIPPED:
        length, why = loss.detail
        return f"{length} byte{'' if length == 1 else 's'} skipped: {why}" if length else str(why)
    detail = loss.detail
    if loss.cause is LossCause.ENCODED_OTHERWISE:
        made, sent, offset, timing = loss.detail
        detail = (difference_text(str(made), str(sent), int(offset), timing=bool(timing)),)
    if loss.cause is LossCause.COUNT_UNKNOWN:
        detail = (*detail[:2], " or ".join(map(str, detail[2:])))
    text = _LOSSES[loss.cause].format(*detail)
    return text if loss.start is None else f"{fact_text(loss.start)}{text}"


def difference_text(made: str, sent: str, offset: int, *, timing: bool) -> str:
    """Return what an encoder sends for what is listed, and what the trace has instead."""
    if timing:
        return "longer or shorter than the encoder's period: messages lost, or too many"
    at = f"at byte 0x{offset:x}"
    if made and sent:
        return f"{sent} {at}, where this encoder sends {made}"
    return f"{sent} {at}, which this encoder does not send there" if sent else f"{made} is missing {at}"


def _note(cause: NoteCause, detail: Detail) -> str:
    if cause is NoteCause.IGNORED:
        name, *fields = detail
        values = ", ".join(f"{field} 0x{value:x}" for field, value in zip(fields[::2], fields[1::2], strict=True))
        return f"{name}: {values}" if values else f"{name} ignored"
    if cause is NoteCause.INITIALIZED:
        what = "a state initialization" if detail == (1,) else f"{detail[0]} state initializations"
        return f"{what} from outside the hart"
    return _NOTES[cause].format(*detail)


def _mode(prv: int, virtual: bool) -> str:
    return f"{_MODES[virtual, prv]}-mode" if (virtual, prv) in _MODES else f"privilege {prv}"


_MODES = {(False, 0): "U", (False, 1): "S", (False, 3): "M", (True, 0): "VU", (True, 1): "VS"}
