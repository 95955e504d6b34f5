"""`trace intervals`: how long calls and traps take, and what is between two places; and the way to the longest one."""

from __future__ import annotations

from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import find
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.intervals import text
from rvtrace_gdb.rows.intervals.answer import INSTRUCTIONS, TICKS, IntervalsAnswer, answer_of
from rvtrace_gdb.rows.intervals.places import EXECUTION, RETURN, TRAP_RETURN, TRAPS, place_of

_TICKS = "-ticks"
_WORDS = (*TRAPS, TRAP_RETURN, f"{RETURN}:")


class IntervalsCommand(Command, name="trace intervals"):
    """Measure calls, traps, or what runs from one place to another.
    Usage: trace intervals [-ticks] FUNCTION
           trace intervals [-ticks] trap | interrupt | exception [:CAUSE]
           trace intervals [-ticks] FROM TO

    FUNCTION  each call of it, from its entry to the return of that call
    trap      each trap, from its handler's first instruction to the return
              from it; `interrupt`, `exception`: these; `interrupt:7`: those
              with that cause
    FROM TO   from each time FROM came to the next time TO came; the same
              place twice: from each time to the next. A place is one of
              `trace find`; return:FUNCTION; trap, interrupt or exception, as
              above; trap-return
    nothing   the same as last time

    How many there are, how long they are, in instructions and in ticks where
    the trace has times; which ways they took; what distinguishes the slow
    ones. What a gap of the trace cuts is counted apart, never measured.
    -ticks: the longest ones, and the slow ones, are those by the time.
    `trace goto worst` goes to the longest."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        places, unit = parsed(argument, "trace intervals")
        found = answer(places, unit)
        _last[:] = [(places, unit)]
        print_lines({"lines": found.lines})
        if results.WANTED:
            results.add({"intervals": results.makers["intervals"](found)})
        for line in text.lines(found, listing.GdbSymbols()):
            print_line(line)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words_and_places(text, word, (_TICKS, *_WORDS))


_last: list[tuple[list[str], str]] = []  # the places and the unit that were used last


def parsed(argument: str, command: str) -> tuple[list[str], str]:
    """Return the places and the unit of an argument; those that were used last of an empty one. Raises gdb.GdbError."""
    words, unit = argument.split(None, 1), INSTRUCTIONS
    if words and words[0] in (_TICKS, f"-{_TICKS}"):
        argument, unit = " ".join(words[1:]), TICKS
    places = find.place_words(argument) if argument.strip() else []
    if not places and _last:
        return _last[0][0], _last[0][1] if unit == INSTRUCTIONS else unit
    if len(places) not in (1, 2):
        raise gdb.GdbError(f"{command}: one function or kind of trap, or two places: see `help trace intervals`.")
    return places, unit


def answer(places: list[str], unit: str, command: str = "trace intervals") -> IntervalsAnswer:
    """Return the session's answer. Raises gdb.GdbError for *command*."""
    first, *last = (_parameters(place, command) for place in places)
    more = {"last": last[0]} if last else {}
    return answer_of(tracer().request("intervals", context=tracer().context(), first=first, unit=unit, **more))


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
    found = answer(*parsed(argument, command), command)
    if not found.worst:
        raise gdb.GdbError(f"{command}: {found.name}: none is measured: see `trace intervals`.")
    return found.worst[0].first


COMMANDS = (IntervalsCommand,)
