"""`trace fork`: going on live from a place of the past, on the simulated hart."""

from __future__ import annotations

import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import goto
from rvtrace_gdb.gdbext.commands.explain import GdbExplainSymbols
from rvtrace_gdb.gdbext.commands.stack import HART
from rvtrace_gdb.gdbext.options import Option, OptionError, Table, is_plain_number
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.fork_rows import fork_check_of
from rvtrace_gdb.rows.fork_text import fork_check_fields, fork_check_lines

_CHECK = Option("-check", ("say how far a fork that nobody changes does what was traced",))
_END = Option("-end", ("leave the fork: back to the place where it was made",))
THROUGH = Option("-through-devices", ("with -check: go on over reads of devices",))
"""An option of the command of the machine interface, too."""
FORK = Table("trace fork [NUMBER]", (_END, _CHECK, THROUGH, HART))


class ForkCommand(Command, name="trace fork", kind=gdb.COMMAND_RUNNING):
    __doc__ = f"""Go on live from a place of the past, on the simulated hart.
Usage: trace fork [NUMBER]
       trace fork -end
       trace fork -check [RANGE] [-through-devices] [-hart N]

NUMBER: of an instruction, as `trace history` prints it; default: where gdb
is in the past. The fork has the registers and the memory that are known
there. gdb's commands work in it as on a target: `step`, `continue`,
`break`, `watch`, `print VARIABLE = 1`, `call FUNCTION(1)`. Nothing of it
reaches the target. It has no devices and no interrupts; where it would
depend on a value that is not known it stops, and says which.

{FORK.explained()}

Any way back leaves the fork, too: `reverse-step`, `trace goto`, `trace live`.
-check runs a fork along the trace, with the trace's interrupts, up to the
first read of a device, and says where it leaves the trace and why: of the
whole history, or of a RANGE of it: A, A,B or A,+N or A,-N."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        words, options = _words_and_options(argument)
        if options.get("check"):
            through = bool(options.get("through_devices"))
            _print_check(answer("".join(words), options.get("hart"), through_devices=through))
            return
        if options.get("through_devices") or options.get("hart") is not None:
            raise gdb.GdbError("trace fork: -through-devices and -hart go with -check")
        if options.get("end"):
            if words:
                raise gdb.GdbError("trace fork -end: it takes no number")
            print_lines(leave())
        else:
            print_lines(go_into(" ".join(words)))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words(text, word, FORK.complete(text))


def _words_and_options(argument: str) -> tuple[list[str], dict[str, Any]]:
    """Return the words and the options of the argument, which may be in any order. Raises gdb.GdbError."""
    words, options = list[str](), list[str]()
    rest = re.sub(r"\s*,\s*", ",", argument).split()
    while rest:
        word = rest.pop(0)
        option = FORK.option(word) if word.startswith("-") else None
        if word.startswith("-"):
            options.append(word)
            options += [rest.pop(0)] if rest and option is not None and option.takes_value else []
        else:
            words.append(word)
    try:
        return words, FORK.parse(options)
    except OptionError as error:
        raise gdb.GdbError(f"trace fork: {error}") from None


def go_into(number: str) -> dict[str, Any]:
    """Make a fork at a number, "": where gdb is; the result is that of `goto.goto`. Raises gdb.GdbError."""
    number = number.strip()
    if number and not is_plain_number(number):
        raise gdb.GdbError(f"trace fork: {number}: no number of an instruction; `help trace fork`")
    return goto.moved("fork", lambda: {"number": int(number)} if number else {}, forks=True)


def leave() -> dict[str, Any]:
    """Leave the fork; the result is that of `goto.goto`. Raises gdb.GdbError."""
    return goto.moved("fork_end", dict)


def answer(numbers: str, hart: int | None, *, through_devices: bool) -> dict[str, Any]:
    """Return the session's answer: its lines, and how far forks of all harts or of one follow the trace. *numbers*: a
    RANGE. Raises gdb.GdbError.
    """
    asked: dict[str, Any] = {"args": numbers, **({"all": True} if hart is None else {"hart": hart})}
    if through_devices:
        asked["through_devices"] = True
    found: dict[str, Any] = tracer().request("fork_check", context=tracer().context(), **asked)
    found["forks"] = [fork_check_of(it) for it in found["forks"]]
    return found


def _print_check(checked: dict[str, Any]) -> None:
    print_lines(checked)
    results.add({"forks": [fork_check_fields(it) for it in checked["forks"]]})
    several = len(checked["forks"]) > 1
    for index, one in enumerate(checked["forks"]):
        if index:
            print()
        for line in fork_check_lines(one, GdbExplainSymbols(), several=several):
            print_line(line)


COMMANDS = (ForkCommand,)
