"""`trace note`: what the user notes at a place of the past, and the list of it."""

from __future__ import annotations

from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows import note_text
from rvtrace_gdb.rows.answers import NoteRow

COMMAND = "trace note"
_WHERE = (
    Option("-at", ("at the instruction with this number of `trace history`;", "default: where gdb is in the past"),
           number="instructions"),
    Option("-hart", ("of this hart; default: the selected one",), number="harts", least=0),
)  # fmt: skip
OPTIONS = Table(COMMAND, (*_WHERE, Option("-delete", ("delete the note that the list calls N",), number="notes")))
MI_OPTIONS = (Option("-at", most=(1 << 63) - 1), Option("-hart", least=0, most=(1 << 32) - 1))
"""The same options for the machine interface."""


class NoteCommand(Command, name=COMMAND):
    __doc__ = f"""Note something at a place of the past, or list the notes.
Usage: {COMMAND} [-at N] [-hart N] TEXT
       {COMMAND}
       {COMMAND} -delete N

{OPTIONS.explained()}

TEXT is the rest of the line, with or without quotes around it. Without
arguments all notes are listed; `trace goto N` goes to one that is at @N.
`trace history` shows a note before the instruction where it is.

The notes of a capture that `trace open` has opened are kept in its file
at once; those of a trace that was recorded here, by `trace save`."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        given, text = _note_arguments(argument)
        found = note(text, given)
        print_lines(found)
        rows, symbols = found["notes"], listing.GdbSymbols()
        if results.WANTED:
            results.add({"notes": [results.makers["note"](row) for row in rows]})
        if not rows and not text and "delete" not in given:
            print_line(note_text.NONE)
        for row in rows:
            print_line(note_text.note_line(row, symbols, several=found["harts"] > 1))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        typed = text.rpartition(" ")[2]
        return completion.words(text, word, OPTIONS.complete(text)) if typed.startswith("-") else []


def note(text: str, given: dict[str, Any]) -> dict[str, Any]:
    """Make a note, delete one, or list all; return the session's answer with its rows. Raises gdb.GdbError.

    *given*: the options, by their keys.
    """
    delete, hart = given.get("delete"), given.get("hart")
    if delete is not None and (text or len(given) > 1):
        raise gdb.GdbError(f"{COMMAND}: -delete N takes nothing else. See `help {COMMAND}`.")
    if given and not text and delete is None:
        raise gdb.GdbError(f"{COMMAND}: what is to be noted? TEXT is missing. See `help {COMMAND}`.")
    number = given.get("at")
    if text and number is None and hart in (None, selected_hart()):
        number = position.selected_number()
    params = {"text": text or None, "number": number, "hart": hart, "delete": delete}
    found: dict[str, Any] = tracer().request("note", context=tracer().context(), **params)
    found["notes"] = [NoteRow(*row) for row in found["notes"]]
    return found


def _note_arguments(argument: str) -> tuple[dict[str, Any], str]:
    """Return the options, by their keys, and the text. Raises gdb.GdbError."""
    words, rest = [], argument.strip()
    while rest.startswith("-"):
        option, *more = rest.split(None, 2)
        words += [option, *more[:1]]
        rest = "".join(more[1:])
    try:
        return OPTIONS.parse(words), _unquoted(rest)
    except OptionError as error:
        raise gdb.GdbError(f"{COMMAND}: {error}") from None


def _unquoted(text: str) -> str:
    """Return a text without the quotes around it, if it has some."""
    quoted = len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] and text[0] not in text[1:-1]
    return (text[1:-1] if quoted else text).strip()


COMMANDS = (NoteCommand,)
