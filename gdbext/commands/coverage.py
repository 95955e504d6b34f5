"""`trace coverage`: how often functions, lines and instructions ran.

Without a place it prints a table: functions by file, with how much of each ran.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

import gdb

from rvtrace_gdb.gdbext import completion, disassembly, listing, live_coverage, location, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.paged_list import split_range
from rvtrace_gdb.gdbext.source_lines import NEVER, CodeLines, Scope, line_tables, scopes, table_of
from rvtrace_gdb.gdbext.text import columns, print_line, printable
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.answer_text import covered_fields
from rvtrace_gdb.rows.answers import BranchRow, CoveredFunction
from rvtrace_gdb.rows.list_text import RowFields


class CoverageRow(NamedTuple):
    """A function that begins in a *line*: how often it was *entered*, and how many of its *instructions* *ran*."""

    line: int
    start: int
    name: str
    entered: int
    instructions: int
    ran: int
    lines: CodeLines


class SourceFile(NamedTuple):
    """The lines of a source file, and its functions that have code of their own."""

    lines: CodeLines
    rows: list[CoverageRow]

    @property
    def ran(self) -> bool:
        return any(row.ran for row in self.rows)


_NONE = CodeLines("", [])
Files = dict[Optional[str], SourceFile]  # by name; None: functions without line numbers


def table_fields(functions: Iterable[CoveredFunction], *, everything: bool) -> list[RowFields]:
    """Return the rows of the table for programs, by name as `rvtrace coverage` lists them."""
    by_name = sorted(functions, key=lambda row: row.name)
    return [covered_fields(row) for row in by_name if everything or row.ran]


def show_table(result: dict[str, Any], *, everything: bool) -> None:
    """Print the table for an answer of the session. *everything*: also functions in files of which nothing ran."""
    print_lines(result)
    functions = [CoveredFunction(*it) for it in result["functions"]]
    results.add({"coverage": table_fields(functions, everything=everything)})
    counts = dict(result["counts"])
    with tracer().at_work("looking up lines"):
        files = _files(functions)
    print(f"{'entered':>10}{'lines run':>20}{'instructions run':>20}  function")
    hidden = 0
    for name in sorted(files, key=lambda name: (name is None, name)):
        shown = _shown_row(name, files[name], everything)
        hidden += len(files[name].rows) - len(shown.rows)
        if shown.rows:
            for line in _file_lines(name, shown, counts):
                print_line(line)
    if hidden:
        what = "1 more function" if hidden == 1 else f"{hidden} more functions"
        print(f"\n{what} did not run: see `trace coverage -all`.")
    print_missing(result)


def print_missing(result: dict[str, Any]) -> None:
    """Print what is missing in the counts: overwritten trace, gaps, and other programs."""
    missing = {name: int(result[name]) for name in ("overwritten", "gaps", "elsewhere") if result.get(name)}
    results.add({"missing": missing} if missing else {})
    if result.get("overwritten"):
        print("Older trace was overwritten: code that ran earlier is not counted.")
    gaps, elsewhere = result["gaps"], result["elsewhere"]
    if gaps:
        print(f"{gaps} gap{'s' * (gaps > 1)} in the trace: code may have run that is not counted.")
    if elsewhere:
        print(f"{elsewhere} instruction{'s' * (elsewhere > 1)} of other programs ran, which are not counted.")


def _shown_row(name: str | None, file: SourceFile, everything: bool) -> SourceFile:
    """Return the rows shown of a file: all if some of them ran; of functions without source, those that ran."""
    if everything:
        return file
    rows = [row for row in file.rows if row.ran] if name is None else file.rows
    return file._replace(rows=rows if file.ran else [])


def _files(functions: Iterable[CoveredFunction]) -> Files:
    places = [(function, gdb.find_pc_line(function.start)) for function in functions]
    known = {name: CodeLines(name, entries) for name, entries in line_tables().items()}  # all are read now
    found: Files = {}
    for (start, end, name, instructions, ran, entered), place in places:
        whole = known.get(place.symtab.fullname()) if place.symtab is not None else None
        lines = (whole or _NONE).within(start, end)
        file = place.symtab.filename if lines.entries and place.symtab is not None else None
        row = CoverageRow(place.line, start, name, entered, max(instructions, ran), ran, lines)
        found.setdefault(file, SourceFile(whole or _NONE, [])).rows.append(row)
    return found


def _file_lines(name: str | None, file: SourceFile, counts: dict[int, int]) -> Iterator[str]:
    yield ""
    if name is None:
        yield "Functions without line numbers:"
    else:
        some, of, percent = _lines_run(file.lines, counts)
        yield f"File {printable(name)}: {some} of {of} line{'' if of == 1 else 's'} ran, {percent}%"
    for row in sorted(file.rows, key=lambda row: row[:2]):
        entered = row.entered if row.ran else NEVER
        lines = "" if name is None else _share(*_lines_run(row.lines, counts))
        instructions = _share(*_with_percentage(row.ran, row.instructions))
        yield f"{entered:>10}{lines:>20}{instructions:>20}  {printable(row.name)}"


def _lines_run(lines: CodeLines, counts: dict[int, int]) -> tuple[int, int, int]:
    found = lines.counts(counts).values()
    return _with_percentage(sum(line.times > 0 for line in found), len(found))


def _with_percentage(some: int, of: int) -> tuple[int, int, int]:
    """Return (some, of, percentage); the percentage is rounded down, so that it is 100 only if nothing is missing."""
    return some, of, 100 * some // of if of else 0


def _share(some: int, of: int, percent: int) -> str:
    return f"{some} of {of} {percent:>4}%"


_LINES = re.compile(r"(.+):([0-9]+)(?:,([0-9]+))?")
_NO_FILE = "No source file named"
_MASK = (1 << 64) - 1


class ShownLines(NamedTuple):
    """The source lines *first* to *last* of a *file* that are printed, and its *lines* with code."""

    file: str
    lines: CodeLines
    first: int
    last: int


class CoverageCommand(Command, name="trace coverage"):
    """Print how often functions, lines or instructions ran.
    Usage: trace coverage [-all] [RANGE]
           trace coverage FUNCTION | FILE | FILE:LINE | FILE:FIRST,LAST [RANGE]
           trace coverage -live [SECONDS]

    Without a place, a table: for each function how often it was entered,
    and how many of its lines and instructions ran. Files in which
    nothing ran are left out; -all also shows them.

    With a place, its source, before each line how often it ran: a number,
    "#####" if it never did, "-" if it has no code. A line ran as often as
    a breakpoint on it would have stopped. Below a line are its branches
    that went only one way. A function without line numbers is shown as
    instructions. FILE:LINE shows ten lines around it, as `list` does.

    RANGE: count only what ran from number to number of `trace history`:
      A      from number A on
      A,B    numbers A to B inclusive
      A,+N   N instructions starting with A
      A,-N   N instructions ending with A

    -live: while the program runs (`continue &`), how much has run so far,
    each time that more has; for so many seconds, or until it stops.

    What ran in gaps of the trace is not counted.
    `set trace disassemble-counts on` shows counts in disassembled code."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        location.refuse_condition("trace coverage", argument)
        if argument.split()[:1] == ["-live"]:
            live_coverage.watch(argument.partition("-live")[2].strip())
            return
        place, numbers = split_range(argument)
        if place in ("", "-all"):
            show_table(_request_coverage(numbers, functions=True), everything=bool(place))
            return
        with tracer().at_work("looking up lines"):
            found = _source(place)
        if found:
            for i, shown in enumerate(found):
                _show_source(shown, numbers, named=len(found) > 1, noted=not i)
        else:
            _show_symbols(place, numbers)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words_and_places(text, word, () if text.split(" ")[:-1] else ("-all", "-live"))


def _request_coverage(numbers: str, **asked: Any) -> dict[str, Any]:
    result: dict[str, Any] = tracer().request("coverage", context=tracer().context(), args=numbers, **asked)
    return result


def _source(place: str) -> list[ShownLines]:
    """Return the source of a place, nothing if it has none. Raises gdb.GdbError."""
    in_file = _LINES.fullmatch(place)
    if in_file:
        whole = _file(in_file[1])
        if whole is None:
            raise gdb.GdbError(f"{_NO_FILE} {in_file[1]}.")
        return [_line_range(whole, int(in_file[2]), in_file[3])]
    try:
        sals = location.decode(place)
    except gdb.error as error:
        whole = _file(place)
        if whole is None:
            raise gdb.GdbError(f"trace coverage: {place} is neither a function nor a source file: {error}") from None
        return [whole]
    return _functions(place, sals)


def _line_range(shown_lines: ShownLines, line: int, last: str | None) -> ShownLines:
    """Return lines of a file: FIRST,LAST, or those around *line*, as many as `list` shows."""
    if line > shown_lines.last:
        raise gdb.GdbError(f'No line {line} in file "{os.path.basename(shown_lines.file)}".')
    if last is not None and int(last) < line:
        raise gdb.GdbError(f"trace coverage: line {last} is before line {line}.")
    if last is not None:
        return shown_lines._replace(first=line, last=int(last))
    size = int(gdb.parameter("listsize") or 0) or shown_lines.last
    first = max(line - size // 2, 1)
    return shown_lines._replace(first=first, last=first + size - 1)


def _file(name: str) -> ShownLines | None:
    """Return the source file with this name, or whose name ends with it. Raises gdb.GdbError for several."""
    quoted = f'"{name}"' if " " in name else name
    try:
        location.decode(f"{quoted}:1")  # which makes gdb read the symbols of all files of this name
    except gdb.error as error:
        if _NO_FILE in str(error) or "No symbol table" in str(error):
            return None
    found = {file: entries for file, entries in line_tables(name).items() if file == name or file.endswith(f"/{name}")}
    if len(found) > 1:
        raise gdb.GdbError(f"trace coverage: {name} is ambiguous: {', '.join(sorted(found))}")
    for file, entries in found.items():
        return ShownLines(
            file, CodeLines(file, entries), 1, max(len(_source_text(file)), *(entry.line for entry in entries))
        )
    return None


def _functions(place: str, sals: Iterable[gdb.Symtab_and_line]) -> list[ShownLines]:
    """Return the functions that a place names, each once: copies of one are shown together."""
    found: dict[tuple[str, str], ShownLines] = {}
    for sal in sals:
        scope = _scope_of(place, scopes(int(sal.pc) & _MASK))
        if sal.symtab is None or scope is None:
            continue
        file = sal.symtab.fullname()
        lines = CodeLines(file, line_tables(file).get(file) or table_of(sal.symtab)).function_lines(scope.name)
        numbers = [entry.line for entry in lines.entries]
        first = [] if scope.inlined else [scope.line]
        if numbers:
            found[file, scope.name] = ShownLines(file, lines, min(first + numbers), max(numbers))
    return [found[key] for key in sorted(found)]


def _scope_of(place: str, chain: list[Scope]) -> Scope | None:
    """Return the function that *place* means, of those that an instruction is in: the one with that name, else the one
    that was called.
    """
    name = re.split(r":(?!:)(?<!::)", place)[-1].strip()
    for scope in chain:
        bare = scope.name.partition("(")[0]
        if name in (scope.name, bare) or bare.endswith(f"::{name}"):
            return scope
    return chain[-1] if chain else None


def _show_source(shown: ShownLines, numbers: str, *, named: bool, noted: bool) -> None:
    """Print source with counts. *named*: with the name of the file; *noted*: with the notes about what was counted."""
    with tracer().at_work("looking up lines"):
        begin, end = shown.lines.span()
    result = _request_coverage(numbers, ranges=[begin, end], branches=True)
    if noted:
        print_lines(result)
    if named:
        print_line(f"{printable(shown.file)}:")
    with tracer().at_work("counting lines"):
        counts = shown.lines.counts(dict(result["counts"]))
    hints = _hints(shown, [BranchRow(*it) for it in result["branches"]])
    text = _source_text(shown.file)
    missing = f"in {printable(os.path.basename(shown.file))}"
    for line in range(shown.first, min(shown.last, max(len(text), *counts)) + 1):
        if text or line in counts:
            if line in counts:
                results.add({"lines": [{"file": shown.file, "line": line, "times": counts[line].times}]})
            source = columns(text[line - 1]) if line <= len(text) else missing
            print_line(f"{counts.get(line, '-')!s:>9}: {line}\t{source}")
            for hint in hints.get(line, ()):
                print_line(f"{'':>11}{hint}")
    if noted:
        print_missing(result)


def _hints(shown: ShownLines, branches: Iterable[BranchRow]) -> dict[int, list[str]]:
    """Return, by line, the hints about branches that went only one way."""
    found: dict[int, list[str]] = {}
    own = {entry.pc for entry in shown.lines.entries}
    for pc, taken, not_taken, target, follows in branches:
        if bool(taken) == bool(not_taken):
            continue
        at = gdb.find_pc_line(pc)
        if at.symtab is None or at.symtab.fullname() != shown.file or int(at.pc) & _MASK not in own:
            continue
        missed = _where(follows if taken else target, at)
        times = "1 time" if taken + not_taken == 1 else f"{taken + not_taken} times"
        text = f"branch {listing.address_text(pc)}: taken {taken} of {times}, never {missed}"
        found.setdefault(at.line, []).append(text)
    return found


def _where(pc: int, at: gdb.Symtab_and_line) -> str:
    there = gdb.find_pc_line(pc)
    if there.symtab is None or not there.line or there.line == at.line:
        return f"to {listing.address_text(pc)}"
    same = at.symtab is not None and there.symtab.fullname() == at.symtab.fullname()
    return f"to line {there.line}" if same else f"to {printable(os.path.basename(there.symtab.filename))}:{there.line}"


def _show_symbols(place: str, numbers: str) -> None:
    """Print functions without debug information: assembler code with line numbers, or only instructions."""
    sals = location.decode(place)
    pcs = [int(sal.pc) & _MASK for sal in sals]
    functions = _request_coverage(numbers, ranges=[0, 0], functions=True)["functions"]
    covered = [CoveredFunction(*it) for it in functions]
    found = [(it.start, it.end) for it in covered if any(it.start <= pc < it.end for pc in pcs)]
    if not found:
        raise gdb.GdbError(f"trace coverage: {place} is not a function of the traced program.")
    for i, (begin, end) in enumerate(found):
        source = _lines_between(begin, end)
        if source:
            _show_source(source, numbers, named=len(found) > 1, noted=not i)
        else:
            _show_instructions(begin, end, numbers, noted=not i)


def _lines_between(begin: int, end: int) -> ShownLines | None:
    symtab: gdb.Symtab | None = gdb.find_pc_line(begin).symtab
    if symtab is None:
        return None
    file = symtab.fullname()
    lines = CodeLines(file, line_tables(file).get(file) or table_of(symtab)).within(begin, end)
    numbers = [entry.line for entry in lines.entries]
    return ShownLines(file, lines, min(numbers), max(numbers)) if numbers else None


def _show_instructions(begin: int, end: int, numbers: str, *, noted: bool) -> None:
    result = _request_coverage(numbers, ranges=[begin, end])
    if noted:
        print_lines(result)
    for line in _instruction_lines(begin, end, dict(result["counts"])):
        print_line(line)
    if noted:
        print_missing(result)


def _instruction_lines(begin: int, end: int, counts: dict[int, int]) -> Iterator[str]:
    texts = disassembly.DisassemblyTexts(raw=False)
    with listing.readable_code(), disassembly.without_counts():
        found = gdb.selected_inferior().architecture().disassemble(begin, end - 1)
        for pc in (int(one["addr"]) & _MASK for one in found):
            results.add({"instructions": [{"addr": f"{pc:#x}", "times": counts.get(pc, 0)}]})
            yield f"{counts.get(pc) or NEVER:>9}: {listing.address_text(pc)}:\t{texts.text_at(pc)}"


def _source_text(file: str) -> list[str]:
    """Return the lines of a source file, none if it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return source.read().splitlines()
    except OSError:
        return []


COMMANDS = (CoverageCommand, *disassembly.COMMANDS)
"""These are called when rvtrace is loaded, in this order."""
