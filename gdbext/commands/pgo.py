"""`trace pgo`: what compilers and linkers take to make the program faster."""

from __future__ import annotations

import os
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer

OPTIONS = (
    Option("-hart", ("this hart alone; default: all harts together",), number="hart", least=0),
    Option("-program", ("the name of the program's file, where several ran",), text="a file", shown="NAME"),
    Option("-gcno", ("for gcda: GCC's notes of the source file, written by", "-ftest-coverage"), text="a file",
           shown="FILE"),
)  # fmt: skip
"""The options, of the command of the machine interface, too."""
PGO = Table("trace pgo NAME FILE", OPTIONS)
_USAGE = "Usage: trace pgo NAME FILE [OPTION ...]"


class PgoCommand(Command, name="trace pgo"):
    __doc__ = f"""Write what a compiler or a linker takes to make the program faster.
{PGO.usage()}

{PGO.explained()}

Without arguments: the forms that there are. The profile is of what the
trace shows, and a line says what is missing. FILE is written as a whole,
or not at all. `rvtrace pgo` adds up several captures."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, _USAGE)
        if not words:
            forms = _forms()
            results.add({"forms": [{"name": name, "help": text} for name, text in forms]})
            width = max(len(name) for name, _ in forms)
            for name, text in forms:
                print_line(f"{name:<{width}}  {text}")
            return
        if len(words) < 2:
            raise gdb.GdbError(f"The name of a form and of one file are needed. {_USAGE}")
        try:
            given = PGO.parse(words[2:])
        except OptionError as error:
            raise gdb.GdbError(f"trace pgo: {error}") from None
        found = answer(words[0], words[1], given)
        print_lines(found)
        results.add({"pgo": found["facts"]})

    def complete(self, text: str, word: str | None) -> list[str] | int:
        if text.rpartition(" ")[2].startswith("-"):
            return completion.words(text, word, PGO.complete(text))
        if " " in text.lstrip():
            return gdb.COMPLETE_FILENAME
        return completion.words(text, word, [name for name, _ in _forms()]) if tracer().has_session else []


def answer(name: str, path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Write a profile, and return the session's answer: its lines and facts. Raises gdb.GdbError."""
    given = {key: value[-1] if isinstance(value, list) else value for key, value in options.items() if value}
    if options.get("hart") is not None:
        given["hart"] = options["hart"]
    if "gcno" in given:
        given["gcno"] = _absolute(given["gcno"])
    found: dict[str, Any] = tracer().request(
        "pgo", name=name, path=_absolute(path), context=tracer().context(), **given
    )
    return found


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _forms() -> list[tuple[str, str]]:
    """Return the name of each form, and what it is."""
    return [(name, text) for name, text in tracer().request("pgo_forms")["rows"]]


COMMANDS = (PgoCommand,)
