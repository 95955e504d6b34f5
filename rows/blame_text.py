"""The answer to the question which code tells bad runs from good ones, as lines for people and fields for programs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from rvtrace_gdb.rows.blame_rows import BlameAnswer, BlamedCode
from rvtrace_gdb.rows.list_text import RowFields, TextPaint

_TEXT = 40  # columns of the source text


def lines(answer: BlameAnswer, top: int, paint: TextPaint) -> Iterator[str]:
    """Yield the answer. *top*: how many rows of a kind, 0: all."""
    runs = f"{_number_of(answer.bad, 'bad run')} against {_number_of(answer.good, 'good one')}"
    yield paint("heading", f"{runs}. A hint where to look first, no proof.")
    if not answer.suspects:
        yield "Nothing that ran in a bad run tells it from the good ones."
    else:
        yield paint("heading", f"{'score':>7}{'bad':>9}{'good':>9}  what ran")
        yield from _code_lines(answer.suspects, top, paint)
    if answer.missing:
        yield paint("heading", "Only good runs did:")
        yield from _code_lines(answer.missing, top, paint)
    if answer.unknown:
        lost = "may have run in lost trace of a run, which does not count for them then"
        yield f"{_number_of(answer.unknown, 'line')} {lost}."


def _number_of(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _code_lines(rows: Sequence[BlamedCode], top: int, paint: TextPaint) -> Iterator[str]:
    shown = rows[:top] if top else rows
    for row in shown:
        yield _code_line(row, paint)
    if len(rows) > len(shown):
        yield f"  and {len(rows) - len(shown)} more: --top 0 shows all"


def _code_line(row: BlamedCode, paint: TextPaint) -> str:
    figures = f"{row.score:>7.2f}{f'{row.bad}/{row.bad_known}':>9}{f'{row.good}/{row.good_known}':>9}"
    figures = paint("event", figures) if row.only_bad else figures
    end = f"-{row.end_line}" if row.end_line != row.line else ""
    place = f"{posixpath.basename(row.file)}:{row.line}{end}"
    target = f" to line {row.target}" if row.target else ""
    way = f" branch {row.way}{target}" if row.way else ""
    name = f" {paint('function', row.function)}" if row.function else ""
    text = f"  `{row.text[:_TEXT]}`" if row.text else ""
    return f"{figures}  {place}{name}{way}{text}"


def fields(row: BlamedCode) -> RowFields:
    """Return a row for programs; what is not known has no field."""
    found = {name.replace("_", "-"): value for name, value in row._asdict().items() if value != ""}
    if not row.target:
        found.pop("target", None)
    return {**found, "score": round(row.score, 4), "only-bad": int(row.only_bad), "only-good": int(row.only_good)}
