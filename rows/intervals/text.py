"""The answer to the question for intervals, as lines for people and as fields for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rvtrace_gdb.rows.intervals.answer import (
    TICKS,
    DistinctionRow,
    IntervalRow,
    IntervalsAnswer,
    LengthsRow,
    VariationRow,
)
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.list_text import FieldSymbols, RowFields, TextSymbols

_WIDTH = 80
_BAR = 40  # of the longest bar of a histogram
_COLUMN = 14


def lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    """Yield the answer, in lines of 80 columns as far as names allow."""
    yield symbols.paint("heading", f"{answer.name}: {answer.measured} measured{_part_text(answer.part)}")
    for text in _apart(answer):
        yield from textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    if not answer.measured:
        return
    yield from _statistics_lines(answer, symbols)
    yield from _histogram_lines(answer, symbols)
    yield from _worst_lines(answer, symbols)
    yield from _depth_lines(answer, symbols)
    yield from _way_lines(answer, symbols)
    yield from _distinction_lines(answer, symbols)


def _part_text(part: Sequence[int] | None) -> str:
    if part is None:
        return ""
    first, last = part
    return f" of those that begin at @{first} to @{last}" if first <= last else ": nothing ran then"


def _apart(answer: IntervalsAnswer) -> Iterator[str]:
    """Yield what was not measured, and what is to be said of the others."""
    so_far = f": {answer.open_instructions} instructions so far, from @{answer.open_first} on"
    texts = (
        (answer.cut, "not measured: cut by a gap in the trace"),
        (answer.began, "not measured: begun before the trace, or in a gap"),
        (answer.open, f"not measured: not ended where the trace ends{so_far}"),
        (answer.again, "overlap with the one before: the first place came again before the second"),
    )
    yield from (f"{number} {text}" for number, text in texts if number)
    for it in answer.lengths:
        if it.unit == TICKS and it.resolution:
            yield f"ticks: each to within {it.resolution}, as far as the trace has times"
        if it.unit == TICKS and it.measured < answer.measured:
            yield f"ticks: of {it.measured} of them, the trace does not have the times of the others"


def _statistics_lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    lengths = answer.lengths
    yield symbols.paint("heading", f"{'':10}" + "".join(f"{it.unit:>{_COLUMN}}" for it in lengths))
    yield _figure_line("least", [str(it.least) for it in lengths])
    yield _figure_line("mean", [f"{it.mean:.1f}" for it in lengths])
    for number, (percent, _) in enumerate(lengths[0].percentiles):
        yield _figure_line(f"{percent} %", [str(it.percentiles[number][1]) for it in lengths])
    yield _figure_line("greatest", [str(it.greatest) for it in lengths])


def _figure_line(name: str, values: list[str]) -> str:
    return f"  {name:<8}" + "".join(f"{value:>{_COLUMN}}" for value in values)


def _histogram_lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    lengths = _lengths_in_unit(answer)
    if lengths is None or len(lengths.histogram) < 2:
        return
    yield symbols.paint("heading", f"  {lengths.unit:>19}     times")
    most = max(times for _, _, times in lengths.histogram)
    empty = 0
    for first, last, times in lengths.histogram:
        empty = 0 if times else empty + 1
        if empty <= 1:
            bar = "#" * -(-_BAR * times // most)
            here = str(first) if first == last else f"{first} to {last}"
            yield f"  {here:>19}{times:>10}  {bar}".rstrip()
        elif empty == 2:
            yield f"  {'...':>19}"


def _lengths_in_unit(answer: IntervalsAnswer) -> LengthsRow | None:
    return next((it for it in answer.lengths if it.unit == answer.unit), None)


def _worst_lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    yield symbols.paint("heading", f"the longest, in {answer.unit}:")
    for it in answer.worst:
        yield f"  {_interval_text(it)}"


def _interval_text(row: IntervalRow) -> str:
    ticks = "" if row.ticks is None else f", {row.ticks} ticks"
    where = f"@{row.first} to @{row.last}" if row.last >= row.first else f"@{row.first}"
    return f"{where}: {row.instructions} instruction{'s' * (row.instructions != 1)}{ticks}"


def _depth_lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    if len(answer.depths) < 2:
        return
    heading = f"{'depth':>7}{'times':>10}{'least':>{_COLUMN}}{'mean':>{_COLUMN}}{'greatest':>{_COLUMN}}"
    yield symbols.paint("heading", f"{heading}  {answer.unit}")
    for it in answer.depths:
        figures = f"{it.least:>{_COLUMN}}{it.mean:>{_COLUMN}.1f}{it.greatest:>{_COLUMN}}"
        yield f"{it.depth:>7}{it.times:>10}{figures}"


def _way_lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    shown, ways = len(answer.variations), answer.ways
    if ways == 1:
        yield "all took the same way"
        return
    most = f", the most frequent {shown}" if shown < ways else ""
    yield symbols.paint("heading", f"{ways} different ways{most}:")
    ticks = any(it.least_ticks is not None for it in answer.variations)
    yield symbols.paint("heading", f"{'times':>10}{'instructions':>{_COLUMN}}{'ticks' if ticks else '':>20}".rstrip())
    for it in answer.variations:
        yield _way_line(it, ticks)


def _way_line(row: VariationRow, ticks: bool) -> str:
    took = ""
    if row.least_ticks is not None:
        same = row.least_ticks == row.greatest_ticks
        took = str(row.least_ticks) if same else f"{row.least_ticks} to {row.greatest_ticks}"
    return f"{row.times:>10}{row.instructions:>{_COLUMN}}{f'{took:>20}' if ticks else ''}  @{row.first}"


def _distinction_lines(answer: IntervalsAnswer, symbols: TextSymbols) -> Iterator[str]:
    slow = answer.slow
    if slow is None:
        return
    heading = f"the {slow.slow} of more than {slow.above} {answer.unit}, and the {slow.others} others:"
    yield symbols.paint("heading", heading)
    if (slow.slow, slow.others) != (slow.slow_compared, slow.others_compared):
        yield f"  ({slow.slow_compared} and {slow.others_compared} of them were compared)"
    if not answer.distinctions:
        yield "  no branch, call or trap came much more often in one of them"
        return
    yield symbols.paint("heading", "  in so many    times in one")
    yield symbols.paint("heading", f"{'slow':>7}{'others':>8}{'slow':>8}{'others':>8}")
    for it in answer.distinctions:
        shares = f"{_percent(it.slow):>7}{_percent(it.others):>8}"
        yield f"{shares}{_mean_text(it.slow_times):>8}{_mean_text(it.others_times):>8}  {_what(it, symbols)}"


def _what(row: DistinctionRow, symbols: TextSymbols) -> str:
    if row.here is None:
        return symbols.paint("event", row.way)
    if row.kind == "call":
        return f"call of {symbols.function_text(row.here[0], _name(row.here))}"
    return f"{symbols.address_text(row.here)} {row.way}"


def _name(place: Place) -> str | None:
    return None if len(place) == 1 else place[1]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _mean_text(mean: float) -> str:
    return f"{mean:.0f}" if mean >= 1000 or mean == int(mean) else f"{mean:.2f}"


def fields(answer: IntervalsAnswer, symbols: FieldSymbols) -> RowFields:
    """Return the answer for programs; what is not known, or does not apply, has no field."""
    counts = {name: getattr(answer, name) for name in ("measured", "cut", "began", "open", "again")}
    made: RowFields = {"hart": answer.hart, "what": answer.name, **counts, "unit": answer.unit}
    if answer.part is not None:
        made["first"], made["last"] = answer.part
    if answer.open_first is not None:
        made.update({"open-first": answer.open_first, "open-instructions": answer.open_instructions})
        made["open-ticks"] = answer.open_ticks
    made["lengths"] = [_lengths_fields(it) for it in answer.lengths]
    made["worst"] = [_present({**it._asdict()}) for it in answer.worst]
    made["ways"] = answer.ways
    made["variations"] = [_dashed(_present(it._asdict())) for it in answer.variations]
    made["depths"] = [it._asdict() for it in answer.depths] if len(answer.depths) > 1 else None
    made["slow"] = None if answer.slow is None else _dashed(answer.slow._asdict())
    made["distinctions"] = [_distinction_fields(it, symbols) for it in answer.distinctions] or None
    return _present(made)


def _lengths_fields(row: LengthsRow) -> RowFields:
    found: RowFields = row._asdict()
    found["percentiles"] = [{"percent": percent, "length": length} for percent, length in row.percentiles]
    found["histogram"] = [{"first": first, "last": last, "times": times} for first, last, times in row.histogram]
    found["resolution"] = row.resolution if row.unit == TICKS else None
    return _present(found)


def _distinction_fields(row: DistinctionRow, symbols: FieldSymbols) -> RowFields:
    found: RowFields = {"kind": row.kind, "way": row.way or None}
    if row.here is not None:
        found.update(symbols.place(row.here))
    found["target"] = None if row.target is None else symbols.place(row.target)
    shares = ("slow", "others", "slow_times", "others_times")
    return _present(found) | _dashed({name: round(getattr(row, name), 4) for name in shares})


def _dashed(fields: RowFields) -> RowFields:
    return {name.replace("_", "-"): value for name, value in fields.items()}


def _present(fields: RowFields) -> RowFields:
    return {name: value for name, value in fields.items() if value is not None}
