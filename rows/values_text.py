"""What is said of the values that are known in the past: for gdb and for the command line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rvtrace_gdb.rows.answers import KnownRegisters, ValueLimit, ValuesRow
from rvtrace_gdb.rows.list_text import RowFields

LIMITS = {
    "no-beginning": "nothing is known where the trace begins",
    "overwritten": "older trace was overwritten, and what was known at its start is from before that",
    "no-stop": "nothing is known where the trace ends",
    "memory-off": "memory is left out, by `set trace values registers`",
    "no-ram": "memory is left out: nobody says which is RAM that only this hart writes",
    "memory-not-saved": "what was in memory where the trace begins is not known",
    "gap": "what was known is lost behind a gap{at}, until it is written again",
    "halt": "what was known is lost where a debugger halted the hart{at}: it may have written anything",
    "translation": "memory is unknown from {number} on: addresses may be translated",
    "unknown-instruction": "what an instruction does is not known{at}, and so what it wrote",
}
"""Why not more is known: *at* becomes where that is, *number* the number of the instruction there."""
REMEDIES = {
    "start-halted": "`trace start` while the hart is halted saves its registers",
    "stop-earlier": "a larger buffer, or `trace start` nearer to the place of interest",
    "save-memory": "`trace start -with-memory`, or `trace start` where the program begins, right after `load`",
    "declare-ram": "[[memory]] in the target description (docs/target-description.md)",
    "want-memory": "`set trace values on`",
    "connect": "`trace connect` before `trace start`: then rvtrace sees what gdb writes",
    "halt": "halt the hart where the trace ends, before it is stopped or saved",
}
"""What would help."""
DROPPED = {
    "ram": "values in memory are not believed any more",
    "constants": "constants of the program are not believed any more",
    "everything": "nothing is believed any more",
}
_SOURCES = {
    "trace": "Registers and memory are in the trace.",
    "off": "Nothing is reconstructed: `set trace values on` shows registers and memory, as far as they are known.",
    "none": "No register but pc is known in this trace.",
}
_STARTS = {
    "": "nothing is known",
    "registers": "registers are known",
    "memory": "registers and memory are known",
    "program": "registers are known; memory is as the program file has it",
}
_ASSUMED = (
    "nothing but the hart writes that memory, constants of the program are not written, and the code that ran is the"
    " program's"
)
_CONTRADICTED = (
    "instruction {}, at {:#x}, cannot have done what the trace says with these values: something else wrote a register"
    " or memory; {}"
)
_WIDTH, _INDENT = 79, 10


def lines(row: ValuesRow, xlen: int = 64) -> Iterator[str]:
    """Yield the answer of `trace values`."""
    if row.source != "reconstructed":
        yield _SOURCES[row.source]
        if row.source == "trace":
            yield from _shares(row)
        return
    what = "Registers and memory are" if row.ram else "Registers are"
    yield f"{what} reconstructed from the instructions that ran."
    yield from _folded_line("start", _STARTS[row.start])
    yield from _folded_line("stop", _STARTS[row.stop])
    digits = xlen // 4
    for begin, end in row.ram:
        yield from _folded_line("memory", f"0x{begin:0{digits}x}-0x{end - 1:0{digits}x}")
    yield from _shares(row)
    yield from _folded_line("assumed", _ASSUMED) if row.ram else ()
    for it in row.contradicted:
        yield from _folded_line("wrong", _CONTRADICTED.format(it.number, it.pc, DROPPED[it.dropped]))
    for limit in row.limits:
        yield from _folded_line("limit", LIMITS[limit.what].format(at=_limit_place(limit), number=limit.number))
    for remedy in row.remedies:
        yield from _folded_line("helps", REMEDIES[remedy])


def _limit_place(limit: ValueLimit) -> str:
    if limit.number is None:
        return ""
    return f", at {limit.number}" + (f" (the first of {limit.places})" if limit.places > 1 else "")


def _folded_line(what: str, text: str) -> Iterator[str]:
    """Yield a line, in as many as fit on a terminal of 80 columns."""
    yield from textwrap.wrap(
        f"{what + ':':<{_INDENT}}{text}", _WIDTH, subsequent_indent=" " * _INDENT, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def _shares(row: ValuesRow) -> Iterator[str]:
    if row.known:
        yield from _folded_line("known", f"{_shared(row.known)}, at {row.places} places of the trace")
    if row.here:
        yield from _folded_line("here", f"{_known_counts(row.here)}, at {row.number}")


def _shared(counts: Sequence[KnownRegisters]) -> str:
    return ", ".join(_share(it) for it in counts if it.of)


def _share(counts: KnownRegisters) -> str:
    if counts.known in (0, counts.of):
        return f"{'all' if counts.known else 'no'} {counts.kind}"
    return f"{min(100 * counts.known / counts.of, 99.9):.1f} % of the {counts.kind}"


def _known_counts(counts: Sequence[KnownRegisters]) -> str:
    return ", ".join(f"{it.known} of {it.of} {it.kind}" for it in counts if it.of)


def fields(row: ValuesRow) -> RowFields:
    """Return the answer for programs."""
    made: RowFields = {"hart": row.hart, "source": row.source, "number": row.number, "places": row.places or None}
    made |= {"start": row.start or None, "stop": row.stop or None, "remedies": list(row.remedies) or None}
    made["ram"] = [{"begin": f"{begin:#x}", "end": f"{end:#x}"} for begin, end in row.ram] or None
    made["known"] = [it._asdict() for it in row.known] or None
    made["here"] = [it._asdict() for it in row.here] or None
    made["limits"] = [_present_fields({**it._asdict(), "pc": None, "addr": _hex(it.pc)}) for it in row.limits] or None
    made["contradicted"] = [
        {"number": it.number, "addr": _hex(it.pc), "dropped": it.dropped} for it in row.contradicted
    ] or None
    return _present_fields(made)


def _hex(number: int | None) -> str | None:
    return None if number is None else f"{number:#x}"


def _present_fields(fields: RowFields) -> RowFields:
    return {name: value for name, value in fields.items() if value is not None}
