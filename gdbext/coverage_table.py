"""The table that `trace coverage` prints: functions by file, with how much of them ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

import gdb

from rvtrace_gdb.gdbext.coverage_lines import NEVER, Lines, tables
from rvtrace_gdb.gdbext.printing import print_line, printable
from rvtrace_gdb.gdbext.tracer import print_lines, tracer


class Row(NamedTuple):
    """A function that begins in a *line*: how often it was *entered*, how much of it there is and *ran*."""

    line: int
    start: int
    name: str
    entered: int
    instructions: int
    ran: int
    lines: Lines


class File(NamedTuple):
    """A source file and the functions that have code of their own."""

    lines: Lines
    rows: list[Row]

    @property
    def ran(self) -> bool:
        return any(row.ran for row in self.rows)


_NONE = Lines("", [])
Files = dict[Optional[str], File]  # by name, None: what is of no file


def show(result: dict[str, Any], *, everything: bool) -> None:
    """Print the table for an answer of the session. *everything*: also what is in files of which nothing ran."""
    print_lines(result)
    counts = dict(result["counts"])
    with tracer().at_work("looking up lines"):
        files = _files(result["functions"])
    print(f"{'entered':>10}{'lines run':>20}{'instructions run':>20}  function")
    hidden = 0
    for name in sorted(files, key=lambda name: (name is None, name)):
        shown = _shown(name, files[name], everything)
        hidden += len(files[name].rows) - len(shown.rows)
        if shown.rows:
            for line in _of_file(name, shown, counts):
                print_line(line)
    if hidden:
        what = "1 function" if hidden == 1 else f"{hidden} functions"
        print(f"\n{what} of which nothing ran, elsewhere: see `trace coverage -all`.")
    say_what_is_missing(result)


def say_what_is_missing(result: dict[str, Any]) -> None:
    """Print what is not counted."""
    if result.get("overwritten"):
        print("Older trace was overwritten: code may have run before that, which is not counted.")
    gaps, elsewhere = result["gaps"], result["elsewhere"]
    if gaps:
        print(f"{gaps} gap{'s' * (gaps > 1)} in the trace: code may have run that is not counted.")
    if elsewhere:
        print(f"{elsewhere} instruction{'s' * (elsewhere > 1)} of other programs ran, which are not counted.")


def _shown(name: str | None, file: File, everything: bool) -> File:
    """What is shown of a file: all, if something in it ran; without source, what ran."""
    if everything:
        return file
    rows = [row for row in file.rows if row.ran] if name is None else file.rows
    return file._replace(rows=rows if file.ran else [])


def _files(functions: Iterable[list[Any]]) -> Files:
    places = [(function, gdb.find_pc_line(function[0])) for function in functions]
    known = {name: Lines(name, entries) for name, entries in tables().items()}  # all are read now
    found: Files = {}
    for (start, end, name, instructions, ran, entered), place in places:
        whole = known.get(place.symtab.fullname()) if place.symtab is not None else None
        lines = (whole or _NONE).within(start, end)
        file = place.symtab.filename if lines.entries and place.symtab is not None else None
        row = Row(place.line, start, name, entered, max(instructions, ran), ran, lines)
        found.setdefault(file, File(whole or _NONE, [])).rows.append(row)
    return found


def _of_file(name: str | None, file: File, counts: dict[int, int]) -> Iterator[str]:
    yield ""
    if name is None:
        yield "Functions without line numbers:"
    else:
        some, of, percent = _lines_run(file.lines, counts)
        yield f"File {printable(name)}: {some} of {of} lines ran, {percent}%"
    for row in sorted(file.rows, key=lambda row: row[:2]):
        entered = row.entered if row.ran else NEVER
        lines = "" if name is None else _share(*_lines_run(row.lines, counts))
        yield f"{entered:>10}{lines:>20}{_share(*_run(row.ran, row.instructions)):>20}  {printable(row.name)}"


def _lines_run(lines: Lines, counts: dict[int, int]) -> tuple[int, int, int]:
    found = lines.counts(counts).values()
    return _run(sum(line.times > 0 for line in found), len(found))


def _run(some: int, of: int) -> tuple[int, int, int]:
    """The third is a percentage, which is 100 only where nothing is missing."""
    return some, of, 100 * some // of if of else 0


def _share(some: int, of: int, percent: int) -> str:
    return f"{some} of {of} {percent:>4}%"
