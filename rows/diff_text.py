"""The answer to the question where two runs part, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterator

from rvtrace_gdb.rows.diff_rows import BY_FUNCTIONS, BY_INSTRUCTIONS, BY_LINES, WAITED, DiffAnswer, DivergenceRow
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.list_text import FieldSymbols, RowFields, TextSymbols

_SIDES = ("A", "B")


def lines(answer: DiffAnswer, symbols: TextSymbols) -> Iterator[str]:
    """Yield the answer, in lines of 80 columns as far as names allow."""
    names = f"A: {answer.name}, hart {answer.hart}; B: {answer.other_name}, hart {answer.other_hart}"
    yield symbols.paint("heading", names)
    if answer.by == BY_FUNCTIONS:
        yield "The builds have little code in common, as at another level of optimisation:"
        yield "  compared by the calls of the functions that both have."
    if answer.begin is None:
        yield "Nothing that ran in one of them ran in the other, long enough to compare them."
        return
    if (answer.begin, answer.other_begin) != (1, 1):
        yield f"They are compared from A @{answer.begin} and B @{answer.other_begin} on."
    first = answer.first
    if first is None:
        yield f"The runs are the same: {_same_text(answer)}."
    else:
        yield from _first_lines(first, symbols)
    yield from _aside_lines(answer)
    if first is not None:
        yield f"{_same_text(answer)}; {_number_of(answer.differences, 'stretch', 'stretches')} that differ:"


_COMPARED = {BY_INSTRUCTIONS: "instruction", BY_LINES: "source line", BY_FUNCTIONS: "call"}


def _same_text(answer: DiffAnswer) -> str:
    what = _COMPARED[answer.by]
    return f"{_number_of(answer.same, what)} in both"


def _number_of(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _first_lines(first: DivergenceRow, symbols: TextSymbols) -> Iterator[str]:
    what = "One waits where the other one went on" if first.kind == WAITED else "The runs part"
    if first.here is None:
        yield symbols.paint("event", f"{what} at their beginning:")
    else:
        yield symbols.paint("event", f"{what} after A @{first.number}, B @{first.other_number}:")
        line = f"  {first.line}" if first.line else ""
        yield f"  {symbols.address_text(first.here)}{line}"
        if first.code:
            yield f"  {first.code}"
    for it in first.tested:
        yield f"    {it.name:<4}  A: {_value(it.value)}  B: {_value(it.other_value)}"
    yield _way("A", first.to, first.to_number, first.to_line, first.trap, symbols)
    yield _way("B", first.other_to, first.other_to_number, first.other_to_line, first.other_trap, symbols)


def _value(value: int | None) -> str:
    return "not known" if value is None else f"{value:#x}"


def _way(side: str, to: Place | None, number: int, line: str, trap: str, symbols: TextSymbols) -> str:
    if to is None:
        return f"  {side} ends there"
    why = f" ({trap})" if trap else ""
    return f"  {side} @{number} {symbols.address_text(to)}{f'  {line}' if line else ''}{why}"


def _aside_lines(answer: DiffAnswer) -> Iterator[str]:
    """Yield what was set aside, and what one cannot know."""
    found = [
        f"{_number_of(number, 'interrupt')} of {side}"
        for side, number in zip(_SIDES, (answer.interrupts, answer.other_interrupts))
        if number
    ]
    if answer.waits:
        found.append(f"{_number_of(answer.waits, 'loop')} that waited longer in one of them")
    if found:
        yield f"Set aside: {', '.join(found)}."
    if answer.lost:
        yield f"Lost trace hides what ran {_number_of(answer.lost, 'time')}: whether it differs is not known."
    if answer.rough:
        yield "They differ so much that the last row below is all that was left of both."
    for side, rest in zip(_SIDES, (answer.rest, answer.other_rest)):
        if rest:
            other = _SIDES[side == "A"]
            yield f"The trace of {other} ends before that of {side}, which has {_number_of(rest, 'more instruction')}."


def fields(answer: DiffAnswer, symbols: FieldSymbols) -> RowFields:
    """Return the answer for programs; what is not known has no field."""
    found: RowFields = {
        name.replace("_", "-"): value
        for name, value in answer._asdict().items()
        if name not in ("first", "lines") and value is not None
    }
    found["rough"] = int(answer.rough)
    found["same-runs"] = int(answer.first is None and answer.begin is not None)
    if answer.first is not None:
        found["first"] = _first_fields(answer.first, symbols)
    return found


def _first_fields(first: DivergenceRow, symbols: FieldSymbols) -> RowFields:
    found: RowFields = {}
    for name, value in first._asdict().items():
        if name == "tested":
            found[name] = [
                {key.replace("_", "-"): one for key, one in it._asdict().items() if one is not None} for it in value
            ]
        elif name in ("here", "to", "other_to"):
            found.update({} if value is None else {name.replace("_", "-"): symbols.place(value)})
        elif value not in ("", 0):
            found[name.replace("_", "-")] = value
    return found
