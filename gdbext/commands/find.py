"""`trace events`, `trace gaps` and `trace find`: lists of places in the history."""

from __future__ import annotations

import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, expressions, listing, location, task_names
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.enter_key import EnterKey
from rvtrace_gdb.gdbext.paged_list import (
    SINCE,
    THREADS,
    UNFOLDED,
    PagedList,
    split_range,
    split_since,
    split_threads,
    split_unfolded,
)
from rvtrace_gdb.rows import list_text
from rvtrace_gdb.rows.list_rows import FoundRow

KINDS = tuple(
    sorted(
        (
            "context",
            "exception",
            "hart-event",
            "interrupt",
            "loss",
            "mismatch",
            "mismatched-return",
            "note",
            "overflow",
            "sync",
            "trace-off",
            "trace-on",
            "trap",
            *list_text.HART_EVENTS,
        )
    )
)
"""The kinds of events that `trace events` can filter by; session/queries/lists/search.py defines them."""

_RANGE_HELP = """RANGE: as for `trace history`, but it counts the rows of this list: `1,5`
is the first five of them. Default: the newest ten. "@" stands before the
number that the place has in `trace history`.
-from N: from the first row at or after instruction N of `trace history` on;
`-from $trace_pos` is from where you are in the past.
-task T, -process P, -thread T: only what is of these, see `help trace
functions`.
`set record instruction-history-size` sets how many."""


class EventsCommand(Command, name="trace events"):
    __doc__ = f"""Print what happened between the instructions, oldest first.
Usage: trace events [-task T] [-unfolded] [KIND ...] [RANGE | -from N]

KIND: only these; default: all:
  trap       exceptions and interrupts, with the cause where the trace
             has it; `exception` and `interrupt` are one of both
  context    another privilege mode or another program runs from here on
  trace-on   tracing begins; `trace-off` ends
  loss       bytes of the trace that could not be used
  overflow   the trace encoder lost messages
  mismatch   the trace and the program contradict each other
  mismatched-return
             a function returned to where no call came from: something
             wrote over its return address
  sync       decoding starts here, or a trigger marked the place
  hart-event what encoders say besides the flow: pc-sample, call, return,
             jump, taken-exception, taken-interrupt, context-switch,
             watchpoint, external-trigger, control, counters, written
  note       anything else in the trace that is worth knowing

The instruction shown is the first one after the event.
Rows that repeat themselves are folded into one, "x3366, @9 to @50484,
every 15 instructions"; a RANGE of numbers, or -unfolded, shows them all.
{_RANGE_HELP}"""

    def __init__(self) -> None:
        super().__init__()
        self._enter = EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        argument, threads = split_threads("trace events", argument)
        argument, fold = split_unfolded(argument)
        argument, since = split_since("trace events", argument)
        kinds, numbers = split_range(argument)
        anew = bool(kinds) and not again
        question = {"kinds": kinds.split(), "fold": fold, **threads, **({} if again else since)}
        PagedList("events", **question).show(self, numbers, anew=anew)

    def complete(self, text: str, word: str | None) -> list[str]:
        return task_names.words_and_tasks(text, word, (*THREADS, UNFOLDED, SINCE, *KINDS))


class GapsCommand(Command, name="trace gaps"):
    __doc__ = f"""Print where the history is not complete, and why, oldest first.
Usage: trace gaps [-task T] [RANGE | -from N]

A line for each gap: its place, the cause, the byte of the trace that
says so (`trace dump -offset BYTE` shows it), the last instruction
before it and the first one after it, where they are known.

{_RANGE_HELP}"""

    def __init__(self) -> None:
        super().__init__()
        self._enter = EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        argument, threads = split_threads("trace gaps", argument)
        argument, since = split_since("trace gaps", argument)
        rest, numbers = split_range(argument)
        if rest:
            raise gdb.GdbError(f"trace gaps: {rest} is not a range. See `help trace gaps`.")
        PagedList("gaps", **threads, **({} if again else since)).show(self, numbers)

    def complete(self, text: str, word: str | None) -> list[str]:
        return task_names.words_and_tasks(text, word, (*THREADS, SINCE))


class FindCommand(Command, name="trace find"):
    __doc__ = f"""Print when a function was entered or an instruction ran, oldest first.
Usage: trace find [-task T] PLACE ... [RANGE | -from N]

PLACE: FUNCTION | FILE:LINE | *EXPRESSION | ADDRESS[,ADDRESS]
Of several places there is one list, in the order in which they ran.

FUNCTION  each time it was entered, and where from; rounds of a loop that
          jumps back to its beginning are not entries. If several have
          that name, all of them; FILE:FUNCTION is one of these
FILE:LINE, or a function that is part of others (inlined)
          each time its code was reached, where a breakpoint would be
ADDRESS   each time the instruction there ran, and what ran before it;
          any expression that gives one (`&label`, `$pc`, a pointer). A
          number is written in hexadecimal. `*EXPRESSION` is the same,
          and takes a function for its first instruction
ADDRESS,ADDRESS
          each time the program entered the range from the first address
          to the second, inclusive, from elsewhere
nothing   the same places as last time

{_RANGE_HELP}"""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Any] | None = None
        self._enter = EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        argument, threads = split_threads("trace find", argument)
        location.refuse_condition("trace find", argument)
        argument, since = split_since("trace find", argument)
        expression, numbers = split_range(argument)
        if expression or self._last is None:
            self._last = {**parse_location(expression), **threads}
        anew = bool(expression) and not again
        question = {**self._last, **threads, **({} if again else since)}
        PagedList("executions", **question).show(self, numbers, anew=anew)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        tasks = task_names.completed_tasks(text, word)
        return completion.words_and_places(text, word, (*THREADS, SINCE)) if tasks is None else tasks


COMMANDS = (EventsCommand, GapsCommand, FindCommand)


def parse_location(expression: str, command: str = "trace find") -> dict[str, Any]:
    """Return the parameters of a request for the places that *expression* names. Raises gdb.GdbError for *command*.

    The result is {name, first, last, function, functions, others}, without those that do not apply; `also` has those of
    the second and each further place.
    """
    if not expression:
        raise gdb.GdbError(
            f"{command}: what? A function, *EXPRESSION, or an address in hexadecimal. See `help {command}`."
        )
    words = place_words(expression)
    if any(_STAR.match(word) for word in words[1:]) and all(_has_meaning(word, command) for word in words):
        return _several(words, command)  # `a *b` is a product, too
    try:
        return _parse_one(expression, command)
    except gdb.GdbError:
        if len(words) < 2 or not _has_meaning(words[0], command):
            raise
    return _several(words, command)


_STAR = re.compile(r"[*&][^\s*&]")
_OPERATOR = re.compile(r"(?:^|:)operator$")
_COMMA = re.compile(r"\s*,\s*")


def place_words(expression: str) -> list[str]:
    """Return the places in a text, if it names several; a range is one, and `operator new`."""
    try:
        words = location.words(_COMMA.sub(",", expression))
    except gdb.error:
        return [expression]
    for at in range(len(words) - 2, -1, -1):
        if _OPERATOR.search(words[at]):
            words[at : at + 2] = [f"{words[at]} {words[at + 1]}"]
    return words


def _has_meaning(place: str, command: str) -> bool:
    try:
        _parse_one(place, command)
    except gdb.GdbError:
        return False
    return True


def _several(places: list[str], command: str) -> dict[str, Any]:
    first, *also = (_parse_one(place, command) for place in dict.fromkeys(places))
    return {**first, "also": also}


def _parse_one(expression: str, command: str) -> dict[str, Any]:
    """Return the parameters for one place. Raises gdb.GdbError."""
    try:
        ends = location.split_last(expression)
        if ends is not None:
            return _range_of(expression, *map(_address_of_expression, ends))
        if expression.startswith("*"):
            return _locations(expression, _named_addresses(expression[1:]))
        named = expressions.find_functions(expression)
        if named is None:
            return _locations(expression, _value_or_places(expression))
        if not named.entries:
            return _locations(expression, named.inlined_entries)
        return {**_locations(expression, named.entries, "functions"), "function": True, "others": named.inlined_entries}
    except (gdb.error, OverflowError) as error:
        raise gdb.GdbError(f"{command}: {expression}: {error}") from None


def _locations(expression: str, addresses: list[int], others: str = "others") -> dict[str, Any]:
    """Return the parameters for these addresses. Raises gdb.error if there are none."""
    if not addresses:
        raise gdb.error("it has no code of its own: it is part of other functions")
    return {"name": expression, "first": addresses[0], others: addresses[1:]}


def _range_of(expression: str, first: int, last: int) -> dict[str, Any]:
    if last < first:
        raise gdb.GdbError(f"trace find: {expression}: the second address is before the first")
    return {"name": expression, "first": first, "last": last}


def _address_of_expression(expression: str) -> int:
    """Return the address of an expression. Raises gdb.error, also for a name that several functions have."""
    named = expressions.find_functions(expression)
    return _address_of_value(expression, expressions.value(expression)) if named is None else named.single_entry()


def _named_addresses(expression: str) -> list[int]:
    named = expressions.find_functions(expression)
    return [_address_of_value(expression, expressions.value(expression))] if named is None else named.entries


def _value_or_places(expression: str) -> list[int]:
    """Return an expression's value, or the addresses of a breakpoint at the place it names. Raises gdb.error."""
    if expressions.is_line(expression):
        return expressions.place_addresses(expression)
    value = expressions.value_or_places(expression)
    return value if isinstance(value, list) else [_address_of_value(expression, value)]


def _address_of_value(expression: str, value: gdb.Value) -> int:
    """Return a value as an address. Raises gdb.GdbError for a variable: its value is hardly meant."""
    code = value.type.strip_typedefs().code
    if code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR) or (code == gdb.TYPE_CODE_INT and value.address is not None):
        raise gdb.GdbError(
            f"trace find: {expression} is neither a function nor an address."
            f" `trace data {expression}` shows who loaded and stored it, if that was traced."
        )
    return int(value) & expressions.address_mask()


def event_line(row: FoundRow, count: int) -> str:
    """Return the line for one event, the number of which is that in a list with *count* rows."""
    return (
        f"Event {row.number} of {count}: {', '.join(list_text.event_facts(row, listing.GdbSymbols(list_text.plain)))}"
    )
