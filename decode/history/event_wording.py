"""The one place where facts become text: the wording of their reason or cause, with their details.

Whatever shows events uses it; nothing that makes decisions does.
"""

from collections.abc import Sequence

from rvtrace_gdb.decode.history.events import (
    ContextChange,
    Detail,
    Fact,
    Loss,
    LossCause,
    MismatchedReturn,
    NoteCause,
    Start,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.history.hart_events import CONTROLS, HartEvent, HartEventKind, ItcWrite
from rvtrace_gdb.decode.program.csrs import ProgramContext, trap_text


def fact_text(fact: Fact) -> str:
    """Return the text of a fact, as a listing shows it."""
    if isinstance(fact, Trap):
        return _trap_text(fact)
    if isinstance(fact, Start):
        return fact.reason.text.format(fact.code)
    if isinstance(fact, Stop):
        return _stop_text(fact)
    if isinstance(fact, Loss):
        return _loss(fact)
    if isinstance(fact, ContextChange):
        return context_text(fact.now)
    if isinstance(fact, HartEvent):
        return _hart_event_text(fact)
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
    return isinstance(fact, Trap | ContextChange | HartEvent)


def _trap_text(trap: Trap) -> str:
    known = trap.cause is not None and trap.kind is not TrapKind.UNKNOWN
    text = trap_text(trap.cause or 0, trap.kind is TrapKind.INTERRUPT) if known else trap.kind.text
    text += f", tval 0x{trap.value:x}" if trap.value else ""
    text += ", read from the hart" if trap.from_hart else ""
    text += " in a mode that is not recorded" if trap.from_hidden else ""
    return text + (" into a mode that is not recorded" if trap.into_hidden else "")


def _hart_event_text(fact: HartEvent) -> str:
    kind, number = fact.kind, fact.number
    if fact.written is not None:
        return written_text(fact.written)
    if kind is HartEventKind.COUNTERS:
        return f"{kind.text}: {counters_text(fact.values)}"
    if number is None:
        return kind.text
    if kind is HartEventKind.CONTROL:
        return f"{kind.text}: {CONTROLS.get(number) or number}"
    if kind in (HartEventKind.EXCEPTION, HartEventKind.INTERRUPT):
        return trap_text(number, kind is HartEventKind.INTERRUPT)
    return f"{kind.text} {number}"


def counters_text(values: Sequence[int]) -> str:
    """Return the values of performance counters, the first one first."""
    return " ".join(f"0x{value:04x}" for value in values)


_TEXT = bytes((*range(0x20, 0x7F), *b"\0\t\n\r\x1b"))


def written_text(written: ItcWrite) -> str:
    """Return what a program wrote into its trace, also as text if it is ASCII."""
    if not written.size:
        return f"0x{written.value:x} written to channel {written.channel}"
    data, count = written.data, f"{written.size} byte{'s' * (written.size > 1)}"
    is_text = any(data) and all(byte in _TEXT for byte in data)
    shown = f"{data.decode('ascii')!a}" if is_text else f"0x{written.value:0{2 * written.size}x}"
    return f"{count} written to channel {written.channel}: {shown}"


def _stop_text(stop: Stop) -> str:
    text = stop.reason.text.format(*((stop.code,) if stop.code is not None else stop.detail))
    text += "" if stop.open is None else stop.open.text
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
    text = loss.cause.text.format(*map(_short, detail))
    return text if loss.start is None else f"{fact_text(loss.start)}{text}"


def _short(detail: int | str) -> int | str:
    """Return a number of noise, which may have hundreds of digits, in a few words."""
    return f"at least 2^{detail.bit_length() - 1}" if isinstance(detail, int) and detail >> 64 else detail


def difference_text(encoded: str, sent: str, offset: int, *, timing: bool) -> str:
    """Return what an encoder sends for what is listed, and what the trace has instead."""
    if timing:
        return "longer or shorter than the encoder's period: messages lost, or too many"
    at = f"at byte 0x{offset:x}"
    if encoded and sent:
        return f"{sent} {at}, where this encoder sends {encoded}"
    return f"{sent} {at}, which this encoder does not send there" if sent else f"{encoded} is missing {at}"


def _note(cause: NoteCause, detail: Detail) -> str:
    if cause is NoteCause.IGNORED:
        name, *fields = detail
        values = ", ".join(f"{field} 0x{value:x}" for field, value in zip(fields[::2], fields[1::2], strict=True))
        return f"{name}: {values}" if values else f"{name} ignored"
    if cause is NoteCause.INITIALIZED:
        what = "a state initialization" if detail == (1,) else f"{detail[0]} state initializations"
        return f"{what} from outside the hart"
    return cause.text.format(*detail)


def _mode(prv: int, virtual: bool) -> str:
    return f"{_MODES[virtual, prv]}-mode" if (virtual, prv) in _MODES else f"privilege {prv}"


_MODES = {(False, 0): "U", (False, 1): "S", (False, 3): "M", (True, 0): "VU", (True, 1): "VS"}
