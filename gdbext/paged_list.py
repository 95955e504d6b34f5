"""The lists of the session, which are shown in pages: the argument that the user types, the request, and the printing.

A list command says which list it is, and how a row is printed. Its RANGE means the same for every list; the session
reads it (session/queries/lists/pages.py), with the errors of gdb's `record instruction-history`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import starmap
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import neutral, results, screen
from rvtrace_gdb.gdbext.listing import GdbSymbols, readable_code
from rvtrace_gdb.gdbext.text import shown
from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.rows.list_rows import (
    ROW_TYPES,
    ROWS_AT_ONCE,
    Annotation,
    Between,
    Fold,
    Happened,
    HartRows,
    HistoryRow,
    Page,
    RecordRow,
)
from rvtrace_gdb.rows.list_text import HEADINGS, MODIFIERS, computed_words, options_of, repetition, row_line

_RANGE = re.compile(r"(?:^|\s)([-+]|[0-9]+(?:\s*,\s*[-+]?[0-9]+)?)\s*$")
"""A range after an expression, in which an address is written in hexadecimal, or as an expression."""


def page_size(listing: str = "instruction-history") -> int:
    """Return the number of rows in a page, 0 for no limit: gdb's setting `record LISTING-size`."""
    return int(gdb.parameter(f"record {listing}-size") or 0)


def split_range(argument: str) -> tuple[str, str]:
    """Split an argument into (expression, range)."""
    match = _RANGE.search(argument)
    if match is None:
        return argument.strip(), ""
    return argument[: match.start()].strip(), match[1]


UNFOLDED = "-unfolded"


def split_unfolded(argument: str) -> tuple[str, bool | None]:
    """Split an argument into (the rest, whether repetitions are folded): None with the word -unfolded."""
    words = argument.split(" ")
    rest = [word for word in words if word not in (UNFOLDED, f"-{UNFOLDED}")]
    return " ".join(rest).strip(), True if rest == words else None


SINCE = "-from"
_SINCE = re.compile(rf"(?:^|\s)-?{SINCE}(?:\s+(\S+)|$)")


def split_since(command: str, argument: str) -> tuple[str, dict[str, int]]:
    """Split an argument into (the rest, the parameter for `-from N`, if that is in it).

    Raises gdb.GdbError for *command*. N: the number of an instruction in `trace history`, or an expression without
    blanks, such as $trace_pos.
    """
    match = _SINCE.search(argument)
    if match is None:
        return argument, {}
    try:
        number = int(neutral.evaluate(match[1] or ""))
    except (gdb.error, OverflowError, TypeError):
        number = 0
    if number < 1:
        raise gdb.GdbError(f"{command}: {SINCE} takes the number of an instruction, got: {match[1] or 'none'}.")
    rest = f"{argument[: match.start()]} {argument[match.end() :]}".strip()
    if split_range(rest)[1]:
        raise gdb.GdbError(f"{command}: give {SINCE} N or a RANGE, not both.")
    return rest, {"since": number}


THREADS = ("-task", "-process", "-thread")
THREADS_HELP = """-task T: only what is in the turns of a task of an operating system, as
`trace tasks` lists them: by its name (* and ? stand for any text and any
character), its number or its address.
-process P, -thread T: only what is of this process or thread of Linux in
a trace of perf, by its number or name."""
_THREADS = re.compile(r"""(?:^|\s)--?(task|process|thread)(?:\s+("[^"]*"|'[^']*'|\S+)|$)""")


def split_threads(command: str, argument: str) -> tuple[str, dict[str, str]]:
    """Split an argument into (the rest, the parameters for `-task T`, `-process P` and `-thread T`). A name with blanks
    is in quotes. Raises gdb.GdbError for *command*: a value is missing.
    """
    found: dict[str, str] = {}
    while (match := _THREADS.search(argument)) is not None:
        value = _unquoted(match[2] or "")
        if not value:
            raise gdb.GdbError(f"{command}: -{match[1]} takes a number or a name.")
        found[match[1]] = value
        argument = f"{argument[: match.start()]} {argument[match.end() :]}".strip()
    return argument, found


def _unquoted(value: str) -> str:
    is_quoted = value[:1] in ("'", '"') and value[-1:] == value[:1]
    return value[1:-1] if is_quoted else value


def split_modifiers(argument: str, what: str) -> tuple[frozenset[str] | None, str]:
    """Split an argument into (the words of the letters after slashes, the rest): modifiers may be before the range, as
    in gdb, or after it. None: there are no modifiers.

    *what*: the list whose modifiers they are. Raises gdb.GdbError, in gdb's words.
    """
    words_of = {it.letter: it.word for it in MODIFIERS[what]}
    words = re.sub(r"(?<=[^\s/])/", " /", argument).split()
    rest = " ".join(word for word in words if not word.startswith("/"))
    if rest == " ".join(words):
        return None, rest
    letters = "".join(word for word in words if word.startswith("/")).replace("/", "")
    if not letters:
        raise gdb.GdbError("Missing modifier.")
    for letter in letters:
        if letter not in words_of:
            raise gdb.GdbError(f"Invalid modifier: {letter}.")
    return frozenset(words_of[letter] for letter in letters), rest


def modifiers_help(what: str) -> str:
    """Return the paragraph of a command's help that says what the modifiers of the list *what* add."""
    letters: dict[str, list[str]] = {}
    for it in MODIFIERS[what]:
        letters.setdefault(it.help, []).append(f"/{it.letter}")
    explained = ", ".join(f"{' or '.join(of_help)} {text}" for text, of_help in letters.items())
    return textwrap.fill(f"Modifiers: {explained}.", 76)


class PagedList:
    """A list of the session: its name, a key of `list_rows.ROW_TYPES`, and the parameters that say what is in it."""

    def __init__(self, what: str, modifiers: Collection[str] = (), /, **question: Any) -> None:
        self._what, self._modifiers, self._question = what, modifiers, question
        if modifiers:
            question.update((word, True) for word in computed_words(what) if word in modifiers)

    def page(self, **part: Any) -> Page:
        """Return a part of the list: `args` and `size` say which, or `begin` and `count`. Raises gdb.GdbError."""
        found = tracer().request("page", what=self._what, context=tracer().context(), **part, **self._question)
        return page_of(self._what, found)

    def rows(self, begin: int, end: int, hart: int | None = None) -> Page:
        """Return the rows *begin* to *end* - 1 of the list that was requested last; nothing is read out for them.

        *hart*: that of the page before; of a history it may be any. Raises gdb.GdbError.
        """
        found = tracer().request("rows", what=self._what, begin=begin, end=end, hart=hart, **self._question)
        return page_of(self._what, {**found, "begin": begin, "end": end, "hart": hart})

    def show(
        self,
        command: gdb.Command,
        numbers: str,
        lines: Callable[[Page], Iterable[str]] | None = None,
        size: int | None = None,
        anew: bool = False,
    ) -> Page:
        """Print the rows that a RANGE means, and return the page. *lines*: returns the lines for the rows of a page, or
        of a piece of it; None: as `row_line` makes them.

        *size*: how many rows the range "" means; None means as many as `trace history` shows. *anew*: the range ""
        means the first page, also after it was shown. Enter repeats only commands that show the next page. Raises
        gdb.GdbError.
        """
        screen.measure()
        lines = lines or self._lines
        if numbers not in ("", "-", "+"):
            command.dont_repeat()
        if results.WANTED:
            self._question.pop("fold", None)  # programs get every row, and every column
            self._question.update({it.word: True for it in options_of(self._what) if it.computed})
        page = self.page(args=numbers, size=page_size() if size is None else size, anew=(anew and not numbers) or None)
        for line in page.lines:
            print_row_line(line)
        if page.instead:
            return PagedList(page.instead).show(command, numbers, None, size, anew)
        if self._what in HEADINGS and page.rows:
            print(HEADINGS[self._what])
        if results.WANTED:
            self._keep(page)
        for piece in self._pieces(page):
            if results.WANTED:
                results.add(results.makers["page"](self._what, piece))
            with readable_code():
                for line in lines(piece) if page.folds is None else _folded(piece, lines):
                    print_row_line(line)
        if page.notice:
            print_row_line(page.notice)
        return page

    def _lines(self, page: Page) -> Iterator[str]:
        symbols = GdbSymbols()
        return (row_line(row, symbols, self._modifiers) for row in page.rows)

    def _keep(self, page: Page) -> None:
        """Keep what there is of the list beside its rows, for a program."""
        lines = [*page.lines, *([page.notice] if page.notice else [])]
        name = "dump" if self._what == "messages" else self._what  # `messages` are the lines of all commands
        results.add({name: [], "length": page.length, **({"messages": lines} if lines else {})})

    def _pieces(self, page: Page) -> Iterator[Page]:
        """Return the rows of a page in pieces of the size of the first, each requested when it is needed."""
        if page.begin < page.end:
            yield page
        if page.folds is not None:
            return
        for begin in range(page.begin + ROWS_AT_ONCE, page.end, ROWS_AT_ONCE):
            yield self.rows(begin, min(begin + ROWS_AT_ONCE, page.end), page.hart)


def _folded(page: Page, lines: Callable[[Page], Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a page, each with one row, and how often they repeat themselves."""
    folds = {fold.number + fold.lines - 1: fold for fold in page.folds or ()}
    for row, line in zip(page.rows, lines(page)):
        fold = folds.get(row.number)
        yield line if fold is None or fold.lines > 1 else f"{line}; {repetition(fold)}"
        if fold is not None and fold.lines > 1:
            yield f"\tthese {fold.lines} lines {repetition(fold)}"


def print_row_line(line: str) -> None:
    print(line if line.isprintable() else shown(line))


def page_of(what: str, answer: Mapping[str, Any]) -> Page:
    """Return a part of the list *what*, as it came through the pipe, with its types."""
    kind = ROW_TYPES[what]
    rows = list(starmap(kind, answer["rows"]))
    if kind is HartRows:
        rows = [
            run._replace(rows=[HistoryRow(*row) for row in run.rows], events=_annotations(run.events)) for run in rows
        ]
    if kind is RecordRow:
        rows = [row._replace(between=_between(row.between)) for row in rows]
    folds = answer.get("folds")
    folds = None if folds is None else list(starmap(Fold, folds))
    events, now = _annotations(answer["events"]), _between(answer.get("now"))
    return Page(**{**answer, "rows": rows, "events": events, "folds": folds, "now": now})


def _between(values: Any) -> Between | None:
    return None if values is None else Between(*values)


def _annotations(events: Iterable[Any]) -> list[Annotation]:
    found = (Annotation(*event) for event in events)
    return [it._replace(events=[Happened(*happened) for happened in it.events]) for it in found]
