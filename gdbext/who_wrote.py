"""`trace who-wrote`: the instruction that wrote a register or some memory last before the place where the user is."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completing, lvalues, position, written
from rvtrace_gdb.gdbext.options import Option, Table
from rvtrace_gdb.gdbext.printing import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer

COMMAND = "trace who-wrote"
OPTIONS = Table(
    COMMAND,
    (Option("-before", ("who wrote it before the one that was shown last; so does Enter",)),),
)


class WhoWrote(gdb.Command):
    __doc__ = f"""Print which instruction wrote a register or memory last before now.
Usage: {COMMAND} $REGISTER | EXPRESSION | ADDRESS[,SIZE]
       {COMMAND} -before

{OPTIONS.explained()}

$REGISTER   an integer or floating-point register, a CSR, priv, or pc; of a
            caller (`up`): as it was when it made its call
EXPRESSION  a variable, an element, a member, `*p`: what wrote any of its
            bytes, or the register it is in. Of a pointer that is no
            variable (`&x`, `p + 1`): what it points at
ADDRESS     a number, or an expression that gives one: the byte there, or
            SIZE bytes; also with a blank between both numbers

Now is where gdb is in the past, in the present the end of the trace.
`trace goto -wrote EXPRESSION` goes there: that instruction runs next then.
Registers are in tandem traces; a data trace has stores alone."""

    def __init__(self) -> None:
        super().__init__(COMMAND, gdb.COMMAND_DATA)
        self._last: tuple[Asked, dict[str, Any]] | None = None
        self._typed: tuple[str, str | None] = "", None

    def invoke(self, argument: str, from_tty: bool) -> None:
        text = argument.strip()
        typed = (text, _typed() if from_tty else None)
        again = typed[1] is not None and typed == self._typed
        if not again:
            self._typed = "", None
        if text in ("-before", "--before") or again:
            if self._last is None:
                raise gdb.GdbError(f"{COMMAND}: -before: nothing was shown yet.")
            asked = self._last[0].before(self._last[1])
        else:
            asked = Asked(lvalues.place(COMMAND, _checked(text)))
        found = asked.answer()
        self._last, self._typed = (asked, found), typed
        print_lines(found)
        for line in written.lines(asked.place, found, asked.seen):
            print_line(line)
        print_lines({"lines": _ways(found["writer"], interactive=from_tty)})

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Options, registers behind a $, else what gdb completes in expressions."""
        typed = text.rpartition(" ")[2]
        if typed.startswith("-") and not text.rpartition(" ")[0].strip():
            return completing.words(text, word, OPTIONS.complete(text))
        return written_to(text, word)


class Asked(NamedTuple):
    """What was asked for. *below*: as in the method `who_wrote`; *seen*: how many instructions ago the writer was that
    was shown before.
    """

    place: lvalues.Place
    below: int | None = None
    seen: int | None = None

    def answer(self) -> dict[str, Any]:
        """The session's. Raises gdb.GdbError."""
        found: dict[str, Any] = tracer().request(
            "who_wrote", context=tracer().context(), below=self.below, **self.place.asked
        )
        return found

    def before(self, found: dict[str, Any]) -> Asked:
        """The question for the writer before. *found*: the answer. Raises gdb.GdbError if there is none."""
        if found["writer"] is None:
            raise gdb.GdbError(f"{COMMAND}: -before: nobody wrote {self.place.text} before.")
        return self._replace(below=found["below"], seen=found["writer"]["ago"])


def written_to(text: str, word: str | None) -> list[str] | int:
    """What may end a question for a writer: registers behind a $, else what gdb completes in expressions."""
    if text.rpartition(" ")[2].startswith("$"):
        return completing.words(text, word, [f"${name}" for name in _registers()])
    return gdb.COMPLETE_EXPRESSION


def where_it_was_written(text: str) -> dict[str, Any]:
    """For `trace goto -wrote TEXT`: the writer runs next there; of what is no instruction, what ran before it.

    Raises gdb.GdbError.
    """
    command = "trace goto -wrote"
    asked = Asked(lvalues.place(command, _checked(text, command)))
    found = asked.answer()
    writer = found["writer"]
    if writer is None:
        raise gdb.GdbError(" ".join(found["none"]))
    number = writer["number"]
    if number is None:  # nothing ran behind it
        return {"to": "end"}
    if writer["kind"] == "instruction":
        return {"number": number}
    if number == 1:
        raise gdb.GdbError(f"{command}: {text}: it was written before the first instruction of the trace ran.")
    return {"number": number - 1}


def _checked(text: str, command: str = COMMAND) -> str:
    if not text:
        raise gdb.GdbError(f"{command}: what? $REGISTER, EXPRESSION or ADDRESS. See `help {COMMAND}`.")
    if re.match(r"--?[A-Za-z]", text) and OPTIONS.option(text.split()[0]) is not None:
        raise gdb.GdbError(f"{command}: {text.split()[0]} stands alone. See `help {COMMAND}`.")
    return text


def _typed() -> str | None:
    """The last command the user typed, with its number: the same when Enter repeated it. None: gdb keeps none."""
    lines = gdb.execute("show commands", to_string=True).splitlines()
    return lines[-1] if lines else None


def _registers() -> list[str]:
    try:
        architecture = gdb.selected_frame().architecture()
    except gdb.error:
        return []
    names = [it.name for it in architecture.registers() if it.name and it.name != position.REGISTER]
    return [*names, *(f"x{n}" for n in range(32))]


def _ways(writer: dict[str, Any] | None, interactive: bool) -> list[str]:
    """How to go on from here."""
    if writer is None:
        return []
    goes = "`trace goto {}` goes" if position.available() else "`trace history {}` shows what ran from"
    number, ways = writer["number"], []
    if number is not None and writer["kind"] == "instruction":
        ways.append(f"{goes.format(number)} there")
    elif number is not None:
        ways.append(f"{goes.format(number)} {'to ' if position.available() else ''}the instruction after it")
    before = "Enter" if interactive else f"`{COMMAND} -before`"
    return ["; ".join([*ways, f"{before} shows who wrote it before that"]) + "."]


COMMANDS = (WhoWrote,)
