"""`trace top`: what runs most, again and again while it runs."""

from __future__ import annotations

import os
import time
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing, results, screen
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.top_rows import TOP_ROWS, TopTable, top_table_of
from rvtrace_gdb.rows.top_text import top_fields, top_lines

_PAUSE = 0.2  # seconds from one read-out to the next
_MOST = (1 << 31) - 1
_WRAP_OFF, _WRAP_ON = "\033[?7l", "\033[?7h"
OPTIONS = (
    Option("-seconds", ("for so long; default: until the program stops",), least=0, most=_MOST, shown="N"),
    Option("-top", (f"rows of each section: {TOP_ROWS} by default, 0 for all",), least=0, most=_MOST, shown="N"),
)
TOP = Table("trace top", OPTIONS)


class TopCommand(Command, name="trace top"):
    __doc__ = f"""Print what runs most while the program runs (`continue &`).
{TOP.usage()}

{TOP.explained()}

The trace is read out up to five times a second: the functions in which
most instructions ran, the ways from one basic block to another, traps,
and what is missing, with how often so far, and a second since the table
before. Ctrl-C ends it; the program goes on.

Of a buffer that has overwritten older trace, only what it has is counted,
and how often a second is not known."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        try:
            given = TOP.parse(argument.split())
        except OptionError as error:
            raise gdb.GdbError(f"trace top: {error}") from None
        _watch(given.get("seconds"), given.get("top"))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words(text, word, TOP.complete(text))


def _watch(seconds: int | None, top: int | None) -> None:
    """Draw tables for some seconds, None: until the program stops; in the end print the last one. Raises
    gdb.GdbError.
    """
    began, picture = time.monotonic(), _Picture()
    answer = read_out(begin=True, top=top)
    print_lines(answer)
    try:
        while answer["running"] and (seconds is None or time.monotonic() - began < seconds):
            picture.draw(_lines(answer))
            time.sleep(_PAUSE)
            answer = read_out()
        picture.erase()
    except KeyboardInterrupt:
        picture.erase()
        gdb.write("Not watched any more; the program goes on.\n")
    results.add({"top": top_fields(answer["table"])})
    for line in _lines(answer):
        print_line(line)


def read_out(*, begin: bool = False, top: int | None = None) -> dict[str, Any]:
    """Read out the trace, and return the session's answer with its table. *begin*: no table is before it; *top*: how
    many rows of each section from then on, None: the usual number.
    """
    given: dict[str, Any] = {"begin": True, **({} if top is None else {"top": top})} if begin else {}
    answer: dict[str, Any] = tracer().request("top", context=tracer().context(), **given)
    return {**answer, "table": top_table_of(answer["table"])}


def _lines(answer: dict[str, Any]) -> list[str]:
    table: TopTable = answer["table"]
    overwritten = "Older trace was overwritten: what ran earlier is not counted."
    return [*top_lines(table, _GdbPainter()), *([overwritten] if answer["overwritten"] else [])]


class _GdbPainter:
    """The colours of the lines, see `rows.top_text`."""

    def paint(self, what: str, text: str) -> str:
        return listing.paint(what, text)


class _Picture:
    """The table on gdb's terminal, in place of the one before; nothing where gdb's output goes elsewhere.

    It is written past gdb's pager, which would ask after a screen of tables whether to go on.
    """

    def __init__(self) -> None:
        dumb = os.environ.get("TERM", "dumb") in ("", "dumb")
        self._able = not dumb and not screen.CONSOLE and os.isatty(1)
        self._drawn = 0

    def draw(self, lines: list[str]) -> None:
        if not self._able:
            return
        gdb.flush()
        shown = lines[: max(os.get_terminal_size(1).lines - 1, 1)]
        text = "".join(f"{line}\r\n" for line in shown)
        self._write(f"{self._erasing()}{_WRAP_OFF}{text}{_WRAP_ON}")
        self._drawn = len(shown)

    def erase(self) -> None:
        if self._drawn:
            self._write(self._erasing())

    def _erasing(self) -> str:
        drawn, self._drawn = self._drawn, 0
        return f"\033[{drawn}A\r\033[J" if drawn else ""

    def _write(self, text: str) -> None:
        os.write(1, text.encode())


COMMANDS = (TopCommand,)
