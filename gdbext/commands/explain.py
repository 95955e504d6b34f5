"""`trace explain`: how the run ended, and what went wrong, without a question asked."""

from __future__ import annotations

import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.explain_rows import explanation_of
from rvtrace_gdb.rows.explain_text import explanation_fields, explanation_lines
from rvtrace_gdb.rows.list_rows import Place

OPTIONS = (Option("-hart", ("this hart alone; default: all harts",), number="hart", least=0),)
"""The options, of the command of the machine interface, too."""
EXPLAIN = Table("trace explain [RANGE]", OPTIONS)
_RANGE = re.compile(r"[0-9]+(\s*,\s*[-+]?[0-9]+)?")


class ExplainCommand(Command, name="trace explain"):
    __doc__ = f"""Say how the run ended, and what went wrong.
{EXPLAIN.usage()}

{EXPLAIN.explained()}

Where the program was at the end, what is wrong there and what led to it,
the last calls, what is missing in the trace, what it cannot say, and what
to type next. Nothing is said of what is not wrong.

What it finds: a fault, a trap loop, a jump to where no code is, a return
to where no call came from, calls without end, a stack that runs into other
memory, a program that began again, interrupts without end, a wait for
memory, a device or a lock, pointers without end, a loop without a way out,
a sleep that nothing ends, a division by zero.

RANGE: look at what ran from number to number of `trace history` alone, of
one hart: A, A,B or A,+N or A,-N."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        found = answer(*range_and_options(argument, EXPLAIN, "trace explain"))
        print_lines(found)
        results.add({"explanations": [explanation_fields(it) for it in found["explanations"]]})
        several = len(found["explanations"]) > 1
        for number, one in enumerate(found["explanations"]):
            if number:
                print()
            for line in explanation_lines(one, GdbExplainSymbols(), several=several):
                print_line(line)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words(text, word, EXPLAIN.complete(text))


def answer(numbers: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the session's answer: its lines, and the explanations of all harts or of one. *numbers*: a RANGE. Raises
    gdb.GdbError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    asked = {"args": numbers, **(given if "hart" in given else {"all": True})}
    found: dict[str, Any] = tracer().request("explain", context=tracer().context(), **asked)
    found["explanations"] = [explanation_of(it) for it in found["explanations"]]
    return found


def range_and_options(argument: str, table: Table, command: str) -> tuple[str, dict[str, Any]]:
    """Return the RANGE and the options of the argument of a command. Raises gdb.GdbError."""
    words = re.sub(r"\s*,\s*", ",", argument).split()
    numbers, options = list[str](), list[str]()
    while words:
        word = words.pop(0)
        if word.startswith("-"):
            option = table.option(word)
            count = 1 if option is None or option.takes_value else 0
            options += [word, *words[:count]]
            words = words[count:]
        elif _RANGE.fullmatch(word) and not numbers:
            numbers.append(word)
        else:
            raise gdb.GdbError(f"{command}: {word} is no RANGE, or a second one. See `help {command}`.")
    try:
        return "".join(numbers), table.parse(options)
    except OptionError as error:
        raise gdb.GdbError(f"{command}: {error}") from None


class GdbExplainSymbols:
    """The addresses and the colours of an explanation, see `rows.explain_text`."""

    def address_text(self, place: Place) -> str:
        return listing.address_text(*place)

    def paint(self, what: str, text: str) -> str:
        return listing.paint(what, text)


COMMANDS = (ExplainCommand,)
