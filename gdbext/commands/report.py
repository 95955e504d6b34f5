"""`trace report`: where the instructions, and the time where the trace has it, went."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing, results, task_names
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.paged_list import THREADS, split_threads
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.report_rows import DEPTH, SECTIONS, TOP, report_of
from rvtrace_gdb.rows.report_text import report_fields, report_lines
from rvtrace_gdb.rows.sampled_rows import sampled_of
from rvtrace_gdb.rows.sampled_text import sampled_fields, sampled_lines

_MOST = (1 << 31) - 1
OPTIONS = (
    Option("-hart", ("this hart alone; default: all harts together",), number="hart", least=0),
    Option("-each", ("then each hart by itself, too",)),
    Option("-top", (f"rows of each section: {TOP} by default, 0 for all",), least=0, most=_MOST, shown="N"),
    Option("-depth", (f"levels of calls: {DEPTH} by default, 0 for all",), least=0, most=_MOST, shown="N"),
)
"""The options, of the command of the machine interface, too."""
REPORT = Table("trace report [SECTION ...] [RANGE]", OPTIONS)
_RANGE = re.compile(r"[0-9]+(\s*,\s*[-+]?[0-9]+)?")


class ReportCommand(Command, name="trace report"):
    __doc__ = f"""Print where the instructions, and the time, of the program went.
{REPORT.usage()}

{REPORT.explained()}

SECTION: what is shown, by default all but intervals:
  harts      what each hart ran
  functions  self: what ran in a function alone; total: with all that it
             called, once where it calls itself
  calls      who called whom, as a tree
  lines, blocks, edges, branches
             where the most instructions ran, and which way it went
  traps      by cause, with how long their handlers took
  intervals  how long each call of the functions with the most instructions
             took, and each trap: least, mean, percentiles, greatest
  losses     what is missing in the trace, and where

Of a trace without a flow the PC samples, by functions and lines, and the
calls that the encoder reported are counted.

-task T, -process P, -thread T: count only what these ran, see `help trace
functions`. What a handler does behind a switch of tasks counts with the
task on whose stack it runs.

RANGE: count only what ran from number to number of `trace history`, of
one hart: A, A,B or A,+N or A,-N.

Ticks are those of the trace's timestamps. "~" marks a number that is
shared out by instructions where several functions ran between two known
times."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        found = _answer(argument)
        print_lines(found)
        fields = [report_fields(report) for report in found["reports"]]
        results.add({"reports": [*fields, *map(sampled_fields, found["sampled"])]})
        for sampled in found["sampled"]:
            for line in sampled_lines(sampled, listing.paint):
                print_line(line)
        for number, report in enumerate(found["reports"]):
            if number:
                print()
            for line in report_lines(report, _GdbReportSymbols()):
                print_line(line)
        if found["overwritten"]:
            print("Older trace was overwritten: what ran earlier is not counted.")

    def complete(self, text: str, word: str | None) -> list[str] | int:
        tasks = task_names.completed_tasks(text, word)
        if tasks is not None:
            return tasks
        last = text.rpartition(" ")[2]
        options = [*REPORT.complete(text), *THREADS]
        return completion.words(text, word, options if last.startswith("-") else SECTIONS)


def answer(
    sections: list[str], numbers: str, options: dict[str, Any], threads: Mapping[str, str]
) -> dict[str, Any]:
    """Return the session's answer: its lines, and the reports of all harts or of one. *numbers*: a RANGE. *threads*:
    what counts alone. Raises gdb.GdbError.
    """
    context, given = tracer().context(), {name: value for name, value in options.items() if value is not None}
    if "hart" not in given:
        given["all"] = True
    asked = {"args": numbers, "sections": sections or None, **given, **threads}
    found: dict[str, Any] = tracer().request("report", context=context, **asked)
    found["reports"] = [report_of(report) for report in found["reports"]]
    found["sampled"] = [sampled_of(report) for report in found["sampled"]]
    return found


def _answer(argument: str) -> dict[str, Any]:
    sections: list[str] = []
    numbers: list[str] = []
    options: list[str] = []
    argument, threads = split_threads("trace report", argument)
    words = re.sub(r"\s*,\s*", ",", argument).split()
    while words:
        word = words.pop(0)
        option = REPORT.option(word)
        if word.startswith("-"):
            options += [word, *(words[:1] if option is not None and option.takes_value else [])]
            words = words[1:] if option is not None and option.takes_value else words
        else:
            (numbers if _RANGE.fullmatch(word) else sections).append(word)
    unknown = [word for word in sections if word not in SECTIONS]
    if unknown:
        raise gdb.GdbError(f"trace report: {unknown[0]} is no RANGE, and none of the sections: {', '.join(SECTIONS)}.")
    if len(numbers) > 1:
        raise gdb.GdbError(f"trace report: {numbers[0]} and {numbers[1]}: give one RANGE.")
    try:
        given = REPORT.parse(options)
    except OptionError as error:
        raise gdb.GdbError(f"trace report: {error}") from None
    return answer(sections, "".join(numbers), given, threads)


class _GdbReportSymbols:
    """The addresses and the colours of a report, see `rows.report_text`."""

    def address_text(self, place: Place) -> str:
        return listing.address_text(*place)

    def paint(self, what: str, text: str) -> str:
        return listing.paint(what, text)


COMMANDS = (ReportCommand,)
