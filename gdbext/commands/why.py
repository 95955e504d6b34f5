"""`trace why`: why a value is what it is."""

from __future__ import annotations

import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, enter_key, expressions
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import who_wrote
from rvtrace_gdb.gdbext.options import Option, OptionError, Table, is_plain_number
from rvtrace_gdb.gdbext.paged_list import PagedList
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.tracer import print_lines
from rvtrace_gdb.rows.list_rows import Page
from rvtrace_gdb.rows.why_text import rounds_hint

COMMAND = "trace why"
DEPTH_MOST = 1000
QUESTION = (
    Option("-branches", ("also which branches let it run, with their values",)),
    Option("-thin", ("without what addresses and indices were made of",)),
    Option("-depth", ("so many levels (default 5)",), most=DEPTH_MOST, shown="N"),
)
_ROW = Option(
    "-row",
    ("go on from a row of the last answer: into what was not", "shown, or into the operands of a branch"),
    most=(1 << 31) - 1,
    shown="N",
)
_ROWS = Option("-rows", ("show rows of the last answer again",), text="A,B", shown="A,B")
OPTIONS = Table(COMMAND, (*QUESTION, _ROW, _ROWS))
_ASKED = Table(COMMAND, QUESTION, words="EXPRESSION")
_AGAIN = re.compile(r"--?(rows?)(?:\s+(\S*))?\s*")


class WhyCommand(Command, name=COMMAND):
    __doc__ = f"""Print why a value is what it is: the instruction that wrote it, the values
it used, and where those came from, down to constants and inputs.
Usage: {COMMAND} [-branches] [-thin] [-depth N] EXPRESSION | $REGISTER
                 | ADDRESS[,SIZE]
       {COMMAND} -row N
       {COMMAND} -rows A,B

{OPTIONS.explained()}

What a value was made of is one level below it; Enter goes into the rows
that end in "...". A row "probably" has a doubt, which it names: what it
shows is not certain. A chain ends in a constant, in an input (a device, a
CSR that changes by itself), in what the trace does not show, or where the
address of a load is not known.

Now is where gdb is in the past, in the present the end of the trace.
`{COMMAND} -branches $pc` is about no value: it prints what led there.
`trace goto -why N` goes to the instruction of row N. What made a register
is known in every trace; memory needs known addresses (`trace values`)."""

    def __init__(self) -> None:
        super().__init__()
        self._enter = enter_key.EnterKey()
        self._question: dict[str, Any] = {}

    def invoke(self, argument: str, from_tty: bool) -> None:
        text = argument.strip()
        again = self._enter.repeats(text, from_tty)
        try:
            page = self._show_answer(text, again)
        except BaseException:
            if not again:
                self._enter.forget()
            raise
        rounds = rounds_hint(page.rows, "trace log *")
        print_lines({"lines": [_hint(), *([rounds] if rounds else [])]})

    def _show_answer(self, text: str, again: bool) -> Page:
        asked = _AGAIN.fullmatch(text)
        if asked is not None and asked[1] == "row":
            page = PagedList("why", row=row(COMMAND, asked[2] or "")).show(self, "", size=0)
            self.dont_repeat()
            return page
        if asked is not None:
            return PagedList("why").show(self, _row_range(asked[2] or ""), size=0)
        if not again:
            self._question = question(text)
        return PagedList("why", **self._question).show(self, "", size=0, anew=not again)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Complete options, registers after a $, and else what gdb completes in expressions."""
        if text.rpartition(" ")[2].startswith("-"):
            return completion.words(text, word, OPTIONS.complete(text))
        return who_wrote.complete_storage(text, word)


def question(text: str) -> dict[str, Any]:
    """Return what the user asks as parameters of the list. Raises gdb.GdbError."""
    if not text:
        raise gdb.GdbError(f"{COMMAND}: what? $REGISTER, EXPRESSION or ADDRESS. See `help {COMMAND}`.")
    try:
        given, words = _ASKED.parse_line(text.split())
    except OptionError as error:
        raise gdb.GdbError(f"{COMMAND}: {error}") from None
    return parameters(COMMAND, " ".join(words), given)


def parameters(command: str, text: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return a question about an expression as parameters of the list. Raises gdb.GdbError."""
    storage = expressions.storage(command, text)
    return {**storage.request, **{name: value for name, value in given.items() if value not in (None, False)}}


def goto_params(text: str) -> dict[str, Any]:
    """Return the parameters of the request for `trace goto -why ROW`. Raises gdb.GdbError."""
    command = "trace goto -why"
    number = row(command, text.strip())
    rows = PagedList("why").rows(number, number + 1).rows
    if not rows:
        raise gdb.GdbError(f"{command} {number}: the last answer of `{COMMAND}` has fewer rows.")
    if rows[0].position is None:
        raise gdb.GdbError(f"{command} {number}: no instruction made it.")
    return {"number": rows[0].position}


def row(command: str, text: str) -> int:
    """Return the number of a row of the last answer. Raises gdb.GdbError."""
    if not is_plain_number(text) or int(text) < 1:
        raise gdb.GdbError(f"{command}: which row of the last answer of `{COMMAND}`? Got: {text or 'none'}.")
    return int(text)


def _row_range(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})?", text):
        raise gdb.GdbError(f"{COMMAND}: -rows takes A or A,B, got: {text or 'none'}.")
    return text


def _hint() -> str:
    goes = "`trace goto -why N` goes to row N; " if position.is_available() else ""
    return f"{goes}`{COMMAND} -row N` goes into row N."


COMMANDS = (WhyCommand,)
