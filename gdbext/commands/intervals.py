"""`trace intervals`: how long calls and traps take, and what is between two places; and the way to the longest one."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, listing, results, task_names
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import find
from rvtrace_gdb.gdbext.paged_list import THREADS, split_range, split_threads
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.intervals import text
from rvtrace_gdb.rows.intervals.answer import INSTRUCTIONS, TICKS, IntervalsAnswer, answer_of
from rvtrace_gdb.rows.intervals.places import EXECUTION, RETURN, TRAP_RETURN, TRAPS, place_of

_TICKS, _TIME = "-ticks", "-time"
_TIME_GIVEN = re.compile(rf"(?:^|\s)-?{_TIME}(?:\s+(\S+)|\s*$)")
_WORDS = (*TRAPS, TRAP_RETURN, f"{RETURN}:")


class IntervalsCommand(Command, name="trace intervals"):
    """Measure calls, traps, or what runs from one place to another.
    Usage: trace intervals [-ticks] FUNCTION [PART]
           trace intervals [-ticks] trap | interrupt | exception [:CAUSE] [PART]
           trace intervals [-ticks] FROM TO [PART] [-task T]

    FUNCTION  each call of it, from its entry to the return of that call
    trap      each trap, from its handler's first instruction to the return
              from it; `interrupt`, `exception`: these; `interrupt:7`: those
              with that cause
    FROM TO   from each time FROM came to the next time TO came; the same
              place twice: from each time to the next. A place is one of
              `trace find`; return:FUNCTION; trap, interrupt or exception, as
              above; trap-return
    nothing   the same as last time
    PART      only those that begin there, with all of their length: a RANGE
              of `trace history` (A, A,B or A,+N or A,-N), or -time T[,T]: at
              a time or from one to another, in ticks of the trace

    How many there are, how long they are, in instructions and in ticks where
    the trace has times; which ways they took; what distinguishes the slow
    ones. What a gap of the trace cuts is counted apart, never measured.
    -task T, -process P, -thread T: only those that begin in what these ran,
    see `help trace functions`.
    -ticks: the longest ones, and the slow ones, are those by the time.
    `trace goto worst` goes to the longest."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        question = parsed(argument, "trace intervals")
        found = answer(question)
        _last[:] = [question]
        print_lines({"lines": found.lines})
        if results.WANTED:
            results.add({"intervals": results.makers["intervals"](found)})
        for line in text.lines(found, listing.GdbSymbols()):
            print_line(line)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        tasks = task_names.completed_tasks(text, word)
        return completion.words_and_places(text, word, (_TICKS, _TIME, *THREADS, *_WORDS)) if tasks is None else tasks


class AskedIntervals(NamedTuple):
    """What is asked for: the *places*, and the *unit*; *numbers*, a RANGE, or *time*: where they begin, "": all;
    *threads*: in whose turns, as parameters of the request.
    """

    places: list[str]
    unit: str = INSTRUCTIONS
    numbers: str = ""
    time: str = ""
    threads: tuple[tuple[str, str], ...] = ()


_last: list[AskedIntervals] = []  # what was asked for last


def parsed(argument: str, command: str) -> AskedIntervals:
    """Return what an argument asks for, of the places that were used last if it names none. Raises gdb.GdbError."""
    argument, of_threads = split_threads(command, argument)
    threads = tuple(of_threads.items())
    argument, unit, time = _options(argument, command)
    expression, numbers = split_range(argument)
    places = find.place_words(expression) if expression else []
    if not places and _last:
        last = _last[0]
        part = (numbers, time) if numbers or time else (last.numbers, last.time)
        return AskedIntervals(last.places, last.unit if unit == INSTRUCTIONS else unit, *part, threads or last.threads)
    if len(places) not in (1, 2):
        raise gdb.GdbError(f"{command}: one function or kind of trap, or two places: see `help trace intervals`.")
    return AskedIntervals(places, unit, numbers, time, threads)


def _options(argument: str, command: str) -> tuple[str, str, str]:
    """Return an argument without its options, the unit, and the time, which may be behind the places. Raises
    gdb.GdbError.
    """
    given, unit = _TIME_GIVEN.search(argument), INSTRUCTIONS
    argument, time = _TIME_GIVEN.sub(" ", argument, count=1), given[1] if given else ""
    if time is None:
        raise gdb.GdbError(f"{command}: {_TIME}: which time, in ticks of the trace? T, or FIRST,LAST.")
    while (words := argument.split(None, 1)) and words[0].startswith("-"):
        if words[0] not in (_TICKS, f"-{_TICKS}"):
            raise gdb.GdbError(f"{command}: unknown option {words[0]}. See `help trace intervals`.")
        argument, unit = "".join(words[1:]), TICKS
    return argument, unit, time


def answer(question: AskedIntervals, command: str = "trace intervals") -> IntervalsAnswer:
    """Return the session's answer. Raises gdb.GdbError for *command*."""
    first, *last = (_parameters(place, command) for place in question.places)
    more = {"args": question.numbers, "time": question.time, **({"last": last[0]} if last else {})}
    more.update(question.threads)
    return answer_of(tracer().request("intervals", context=tracer().context(), first=first, unit=question.unit, **more))


def _parameters(text: str, command: str) -> dict[str, Any]:
    """Return a place as the request has it. Raises gdb.GdbError."""
    place = place_of(text)
    if place.kind in (EXECUTION, RETURN):
        return {"place": place.kind, **find.parse_location(place.location, command)}
    return {"place": place.kind, "cause": place.cause}


def worst(argument: str, command: str) -> int:
    """Return the number of the first instruction of the longest interval, of the last ones or of those that an argument
    asks for. Raises gdb.GdbError: there is none.
    """
    if not argument.strip() and not _last:
        raise gdb.GdbError(f"{command}: of what? `trace intervals` measures, or name a FUNCTION here.")
    found = answer(parsed(argument, command), command)
    if not found.worst:
        raise gdb.GdbError(f"{command}: {found.name}: none is measured: see `trace intervals`.")
    return found.worst[0].first


COMMANDS = (IntervalsCommand,)
