"""How far a fork follows its trace, and why it stops, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterator

from rvtrace_gdb.rows.explain_rows import ExplainedPlace
from rvtrace_gdb.rows.explain_text import ExplainSymbols, place_fields, place_lines, wrapped
from rvtrace_gdb.rows.fork_rows import ForkCheck, ForkEnd
from rvtrace_gdb.rows.list_rows import called
from rvtrace_gdb.rows.list_text import RowFields

_TEXTS = {
    "device-read": "it reads {size} at {at}, which is no memory: a device, and a fork has none",
    "branch": "whether it branches depends on what is not known{registers}",
    "jump": "where it jumps to is not known{registers}",
    "store-address": "where it stores to is not known{registers}",
    "load-address": "where it loads from is not known{registers}",
    "elsewhere": "it stores {size} to {at}, where neither memory nor a device is declared",
    "handler": "it traps{cause}, and mtvec, which says where to, is not known",
    "csr": "what it does to a CSR depends on what is not known{registers}",
    "code": "there is no code that is known",
    "unsupported": "the simulated hart does not have this instruction",
    "ebreak": "it is an ebreak, which asks a debugger, or the host",
    "wait": "it waits for an interrupt, and nobody sends one",
    "translation": "it turns on translation of addresses, which the simulated hart does not do",
    "supervisor": "it traps{cause}, perhaps to S mode, which the simulated hart does not have",
    "misaligned": "it accesses {size} at {at}, which is not aligned: harts differ in what they do then",
    "lost": "the trace is lost there",
    "other-path": "with these values the hart would not have run it: something else wrote a register or memory",
    "no-trap": "the trace has an exception there, and with these values there is none",
}
END = "end"
"""The reason where a fork was followed to the end."""


def end_text(end: ForkEnd) -> str:
    """Return why a fork does not execute the next instruction."""
    at = "?" if end.address is None else f"0x{end.address:x}"
    registers = f": {', '.join(end.registers)}" if end.registers else ""
    return _TEXTS[end.reason].format(
        size=f"{end.size} byte{'' if end.size == 1 else 's'}",
        at=f"{end.object} ({at})" if end.object else at,
        registers=registers,
        cause="" if end.cause is None else f" (cause {end.cause})",
    )


def fork_check_lines(check: ForkCheck, symbols: ExplainSymbols, *, several: bool) -> Iterator[str]:
    """Yield the lines of an answer. *several*: there are other harts."""
    head = f"Hart {check.hart}: fork" if several else "Fork"
    start = symbols.paint("heading", f"{head} at {_place_text(check.start)}")
    yield from wrapped(f"{start}: {_followed_text(check)}.", "")
    if check.end.reason == END:
        yield from wrapped(f"It follows the trace to number {check.last}, the end.", "")
    else:
        yield from wrapped(f"{symbols.paint('event', 'It leaves the trace')}: {end_text(check.end)}.", "")
    if check.place is not None:
        yield from place_lines(check.place, symbols)
    if check.goes is not None:
        yield "  The fork goes to:"
        yield from place_lines(check.goes, symbols)


def _place_text(place: ExplainedPlace) -> str:
    name = called(place.name) if place.name else f"0x{place.pc:x}"
    return f"#{place.number} {name}{f', {place.line}' if place.line else ''}"


def _followed_text(check: ForkCheck) -> str:
    counts = (
        (check.interrupts, "interrupt", "taken where the trace has them"),
        (check.exceptions, "exception", ""),
        (check.passed, "read", "of devices passed over"),
        (check.stores, "store", "to devices that lead nowhere"),
    )
    parts = [_count_text(check.followed, "instruction") + " as traced"]
    parts += [f"{_count_text(count, what)} {more}".strip() for count, what, more in counts if count]
    return ", ".join(parts)


def _count_text(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def fork_check_fields(check: ForkCheck) -> RowFields:
    """Return the fields of an answer; what is not known, or is not there, has none."""
    found: RowFields = {
        "hart": check.hart, "start": place_fields(check.start), "last": check.last, "followed": check.followed,
        "interrupts": check.interrupts, "exceptions": check.exceptions, "reads-passed": check.passed,
        "device-stores": check.stores, **fork_end_fields(check.end),
        "place": None if check.place is None else place_fields(check.place),
        "goes": None if check.goes is None else place_fields(check.goes),
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


def fork_end_fields(end: ForkEnd) -> RowFields:
    """Return the fields of why a fork does not go on."""
    access: RowFields = {} if end.address is None else {
        "access": end.kind, "address": f"0x{end.address:x}", "size": end.size,
        **({"object": end.object} if end.object else {}),
    }  # fmt: skip
    cause: RowFields = {} if end.cause is None else {"cause": end.cause}
    unknown: RowFields = {"unknown": list(end.registers)} if end.registers else {}
    return {"reason": end.reason, **access, **cause, **unknown}
