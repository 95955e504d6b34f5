"""`trace history`: the instructions that ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, ClassVar

import gdb

from rvtrace_gdb.gdbext import listing, settings, task_names
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.paged_list import THREADS, PagedList, modifiers_help, page_size, split_modifiers, split_threads
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.rows.list_rows import HartRows, Page

ALL = "-all"


class HistoryCommand(Command, name="trace history"):
    __doc__ = f"""Print the instructions that ran, oldest first, as `record instruction-history` does.
Usage: trace history [-all | -task T | -process P | -thread T]
                      [/MODIFIERS] [RANGE]

{modifiers_help("history")}

RANGE: nothing, the last ten, and then the next ten each time;
  -      the ten before those shown last
  -N     the last N, as `rvtrace decode FILE -N` at the shell
  N      ten starting with number N
  A,B    numbers A to B inclusive
  A,+N   N instructions starting with A
  A,-N   N instructions ending with A
In the past the first ten start where you are.

A gap in the trace has a number of its own and says why it is there.
Lines in brackets without a number are what happened in between: traps,
changes of privilege or context, tracing switched off and on, and, where
the trace has timestamps, the time with the ticks since the last one.

-task, -process, -thread: only what these ran, see `help trace functions`.
The instructions keep their numbers; a RANGE counts those that are shown.

Of several harts the selected thread's is shown, or the one that
`set trace hart` names; with -all those of all harts, in the order of
their times: each line has its number in this list, then HART:NUMBER.
RANGE is by the numbers of the list, and HART:NUMBER may stand for one.
`set record instruction-history-size` sets how many."""

    way_back_told: ClassVar = False

    def invoke(self, argument: str, from_tty: bool) -> None:
        argument, threads = split_threads("trace history", argument)
        words = [word for word in argument.split() if word != ALL]
        modifiers, numbers = split_modifiers(" ".join(words), "history")
        style = listing.HistoryFormat() if modifiers is None else listing.HistoryFormat.from_modifiers(modifiers)
        every_hart = words != argument.split()
        if every_hart and threads:
            raise gdb.GdbError(f"trace history: give -{next(iter(threads))} or {ALL}, not both.")
        events, times = None if style.omit_events else True, None if style.omit_times else True
        at = None if threads else _home()
        found = PagedList("interleaved" if every_hart else "history", events=events, times=times, at=at, **threads)
        page = found.show(self, numbers, Printer(style).lines)
        if from_tty and page.notice and numbers in ("", "+") and not threads:
            self._tell_way_back(page, every_hart)

    def _tell_way_back(self, page: Page, every_hart: bool) -> None:
        """Print once how to see what ran before the last page: after the end, `-` shows that page again, as in gdb."""
        size = page_size()
        before = page.length - size
        if HistoryCommand.way_back_told or not size or before < 1:
            return
        HistoryCommand.way_back_told = True
        asked = f"trace history {f'{ALL} ' if every_hart else ''}{before},-{min(size, before)}"
        print(f"Further back: `{asked}`, then `trace history {f'{ALL} ' if every_hart else ''}-` and Enter for more.")

    def complete(self, text: str, word: str | None) -> list[str]:
        return task_names.words_and_tasks(text, word, [ALL, *THREADS] if text.rpartition(" ")[2] else [])


def _home() -> int | None:
    """Return the number at which gdb is in the past, if it is in the history that is shown."""
    if gdb.selected_thread() is None:
        return None
    elsewhere = settings.hart() is not None and selected_hart() not in (None, settings.hart())
    return None if elsewhere else position.number()


class Printer:
    """Formats the pages of one listing; each hart has its own mark."""

    def __init__(self, style: listing.HistoryFormat) -> None:
        self._style = style
        self._listers: dict[int | None, listing.Lister] = {}

    def lines(self, page: Page) -> Iterator[str]:
        """Return the lines for the rows of one history, or of the list of all harts."""
        if not isinstance(page.rows[0], HartRows):
            yield from self._lister(page.hart).lines(page.rows, page.events)
            return
        for run in page.rows:
            numbering = _numbering(run.hart, run.number - run.rows[0].number)
            yield from self._lister(run.hart).lines(run.rows, run.events, numbering)

    def _lister(self, hart: int | None) -> listing.Lister:
        if hart not in self._listers:
            self._listers[hart] = listing.Lister(self._style, listing.current_mark(hart))
        return self._listers[hart]


def _numbering(hart: int, before: int) -> Callable[[int | None], str]:
    """Return a function for the beginning of a line: number in the list, hart, number in the hart's history."""
    return lambda number: f"\t{hart}:" if number is None else f"{before + number}\t{hart}:{number}"


COMMANDS = (HistoryCommand,)
