"""`trace who-wrote`: the instruction that last wrote a register or some memory, and what it changed.

"Last" means before the place where gdb is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, enter_key, expressions, listing, neutral, results, source_lines
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, Table
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.storage_parts import name_of_part, parts_of
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows import answer_text
from rvtrace_gdb.rows.answer_text import ValueChange
from rvtrace_gdb.rows.answers import MemoryWindow, ValueWriter, WriterAnswer
from rvtrace_gdb.rows.list_rows import Happened, HistoryRow


def answer_lines(storage: expressions.Storage, answer: WriterAnswer, previous_ago: int | None = None) -> Iterator[str]:
    """Return the lines for the session's answer. *previous_ago*: how many instructions ago the writer shown before
    was; None if this is the first one.
    """
    writer = answer.writer
    if writer is None:
        yield from answer.none
        return
    yield f"{change_of(storage, writer)}, {answer_text.written_when(writer, storage.at, previous_ago)}"
    if writer.written_as is not None:
        yield f"It was written as {writer.written_as}, which shares bits with it."
    yield from writer.doubts
    with listing.readable_code():
        yield from _writer_lines(writer, answer.hart)


def change_of(storage: expressions.Storage, writer: ValueWriter) -> ValueChange:
    """Return what a writer changed."""
    if writer.store is None:
        bits = writer.bits or 0
        return ValueChange(storage.name, *(_register_value(storage, it, bits) for it in (writer.old, writer.new)))
    address, size = writer.where or writer.store  # the session knows the size of a symbol
    begin = max(writer.store[0], address) - address
    end = min(sum(writer.store), address + size) - address
    if storage.kind is not None:
        found = _typed_values(storage.kind, begin, end, address, writer.window)
        if found is not None:
            return found._replace(name=name_of_part(storage, found.name))
    if storage.bits is not None and end - begin == size:
        return ValueChange(storage.text, *(_bits(it, *storage.bits) for it in (writer.old, writer.new)))
    name = storage.text if end - begin == size else f"{answer_text.bytes_text(begin, end)} of {storage.text}"
    digits = 2 * (end - begin)
    return ValueChange(name, *(None if it is None else f"0x{it:0{digits}x}" for it in (writer.old, writer.new)))


def _bits(value: int | None, shift: int, count: int) -> str | None:
    return None if value is None else f"{value >> shift & (1 << count) - 1:#x}"


def _typed_values(
    kind: gdb.Type, begin: int, end: int, address: int, window: MemoryWindow | None
) -> ValueChange | None:
    """Return the innermost member that was stored to, as gdb shows it; None if not all of its bytes are known now."""
    suffix, inner, first = expressions.innermost_member(kind, begin, end)
    if window is None:
        return None
    at = address + first - window[0]
    old, new = (data[at : at + inner.sizeof] if at >= 0 else [] for data in window[1:])
    if len(new) < inner.sizeof or None in new or inner.code == gdb.TYPE_CODE_FUNC:
        return None
    before, now = (bytes(it for it in data if it is not None) for data in (old, new))
    return ValueChange(suffix, None if None in old else _shown(before, inner), _shown(now, inner))


def _shown(data: bytes, kind: gdb.Type) -> str:
    text = neutral.value_text(gdb.Value(data, kind))
    return " ".join(text.split())


def _register_value(storage: expressions.Storage, value: int | None, bits: int) -> str | None:
    if value is None:
        return None
    kind = storage.kind.strip_typedefs() if storage.kind is not None else None
    if storage.text != f"${storage.register}" and kind is not None and kind.sizeof <= bits // 8:
        return _shown(value.to_bytes(bits // 8, "little")[: kind.sizeof], kind)
    if (kind is not None and kind.code == gdb.TYPE_CODE_PTR) or storage.register == "pc":
        return listing.address_text(value)
    return f"0x{value:0{bits // 4}x}"


def _writer_lines(writer: ValueWriter, hart: int) -> Iterator[str]:
    """Return the lines of the instruction, with its source line, as `trace history /s` shows it."""
    if writer.happened:
        yield f"\t{listing.event_line(Happened(*it) for it in writer.happened)}"
    if writer.row is None:
        return
    row = HistoryRow(*writer.row)
    line = source_lines.line_of(row.pc) if row.function is None and row.pc is not None else None
    if line is not None and writer.kind == "instruction":
        yield line
    yield from listing.Lister(listing.HistoryFormat(), listing.current_mark(hart)).lines([row])


COMMAND = "trace who-wrote"
OPTIONS = Table(
    COMMAND,
    (Option("-before", ("who wrote it before the one shown last; Enter does the same",)),),
)


class WhoWroteCommand(Command, name=COMMAND):
    __doc__ = f"""Print which instruction wrote a register or memory last before now.
Usage: {COMMAND} $REGISTER | EXPRESSION | ADDRESS[,SIZE]
       {COMMAND} -before

{OPTIONS.explained()}

$REGISTER   an integer or floating-point register, a CSR, priv, or pc; of a
            caller (`up`): as it was when it made its call
EXPRESSION  a variable, an element, a member, `*p`: what wrote any of its
            bytes, or the register it is in. Of a pointer that is not a
            variable (`&x`, `p + 1`): what it points at. Of an array
            or a structure also who wrote each of its other parts
ADDRESS     a number, or an expression that gives one: the byte there, or
            SIZE bytes; also with a blank between both numbers

Now is where gdb is in the past, in the present the end of the trace.
`trace goto -wrote EXPRESSION` goes there: that instruction runs next then.
Which instruction wrote a register is known in every trace, its value
where registers are known. Memory needs a trace with loads and stores."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[Query, WriterAnswer] | None = None
        self._enter = enter_key.EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        text = argument.strip()
        again = self._enter.repeats(text, from_tty)
        try:
            asked = self._question(text, again)
            found = asked.answer()
        except BaseException:
            if not again:
                self._enter.forget()
            raise
        self._last = asked, found
        print_lines({"lines": found.lines})
        results.add(results.makers["writer"](asked.storage, found) if results.WANTED else {})
        for line in answer_lines(asked.storage, found, asked.previous_ago):
            print_line(line)
        if found.writer is not None and asked.below is None:
            _print_parts(found.writer, asked.parts())
        print_lines({"lines": _hints(found.writer, enter=enter_key.is_available(from_tty))})

    def _question(self, text: str, again: bool) -> Query:
        """Return what is asked. *again*: Enter repeated the command. Raises gdb.GdbError."""
        if text not in ("-before", "--before") and not again:
            return Query(expressions.storage(COMMAND, _check_text(text)))
        if self._last is None:
            raise gdb.GdbError(f"{COMMAND}: -before: nothing has been shown yet.")
        return self._last[0].before(self._last[1])

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Complete options, registers after a $, and else what gdb completes in expressions."""
        typed = text.rpartition(" ")[2]
        if typed.startswith("-") and not text.rpartition(" ")[0].strip():
            return completion.words(text, word, OPTIONS.complete(text))
        return complete_storage(text, word)


class PartWriters(NamedTuple):
    """Who wrote the first parts of an array or a structure, each for itself. *more*: how many parts are left out."""

    parts: list[tuple[expressions.Storage, WriterAnswer]]
    more: int

    def lines(self, shown: ValueWriter) -> Iterator[str]:
        """Yield the lines for those that another write than the one *shown* wrote last; nothing if there are none."""
        others = [(part, it) for part, it in self.parts if not _is_answered(it, shown)]
        if others or self.more:
            yield answer_text.PARTS_HEADING
            yield from answer_text.part_lines([list(_part_lines(*it)) for it in others], self.more)


def _is_answered(answer: WriterAnswer, shown: ValueWriter) -> bool:
    return answer.writer is not None and answer_text.is_same_write(answer.writer, shown)


def _part_lines(storage: expressions.Storage, answer: WriterAnswer) -> Iterator[str]:
    writer = answer.writer
    if writer is None:
        yield from (f"    {line}" for line in answer.none)
        return
    row = None if writer.row is None else HistoryRow(*writer.row)
    place = "" if row is None or row.pc is None else listing.address_text(row.pc, row.function, row.offset)
    yield answer_text.part_line(change_of(storage, writer), writer, storage.at, place)
    yield from (f"        {line}" for line in writer.doubts)


def _print_parts(shown: ValueWriter, writers: PartWriters) -> None:
    results.add(results.makers["parts"](writers) if results.WANTED else {})
    for line in writers.lines(shown):
        print_line(line)


class Query(NamedTuple):
    """A question for the last writer.

    *below* is the parameter of the method `who_wrote`. *previous_ago*: how many instructions ago the writer shown
    before was.
    """

    storage: expressions.Storage
    below: int | None = None
    previous_ago: int | None = None

    def answer(self) -> WriterAnswer:
        """Return the session's answer. Raises gdb.GdbError."""
        context = tracer().context()
        found = tracer().request("who_wrote", context=context, below=self.below, **self.storage.request)
        writer = None if found["writer"] is None else ValueWriter(**found["writer"])
        return WriterAnswer(**{**found, "writer": writer})

    def parts(self) -> PartWriters:
        """Return who wrote each element or member last: of an array or a structure. Raises gdb.GdbError."""
        parts, more = parts_of(self.storage, answer_text.PARTS_MOST)
        return PartWriters([(it, Query(it).answer()) for it in parts] if len(parts) > 1 else [], more)

    def before(self, answer: WriterAnswer) -> Query:
        """Return the question for the writer before that of the answer *answer*. Raises gdb.GdbError without one."""
        if answer.writer is None:
            raise gdb.GdbError(f"{COMMAND}: -before: nothing wrote {self.storage.text} before.")
        return self._replace(below=answer.below, previous_ago=answer.writer.ago)


def complete_storage(text: str, word: str | None) -> list[str] | int:
    """Complete the name of a register after a $, and else what gdb completes in expressions."""
    if text.rpartition(" ")[2].startswith("$"):
        return completion.words(text, word, [f"${name}" for name in _register_words()])
    return gdb.COMPLETE_EXPRESSION


def goto_params(text: str) -> dict[str, Any]:
    """Return the parameters of the request for `trace goto -wrote TEXT`. Raises gdb.GdbError.

    At the destination the writer runs next; if the writer is not an instruction, the instruction before it.
    """
    command = "trace goto -wrote"
    asked = Query(expressions.storage(command, _check_text(text, command)))
    found = asked.answer()
    writer = found.writer
    if writer is None:
        raise gdb.GdbError(" ".join(found.none))
    number = writer.number
    if number is None:  # nothing ran after it
        return {"to": "end"}
    if writer.kind == "instruction":
        return {"number": number}
    if number == 1:
        raise gdb.GdbError(f"{command}: {text}: it was written before the first instruction of the trace ran.")
    return {"number": number - 1}


def _check_text(text: str, command: str = COMMAND) -> str:
    if not text:
        raise gdb.GdbError(f"{command}: what? $REGISTER, EXPRESSION or ADDRESS. See `help {COMMAND}`.")
    if re.match(r"--?[A-Za-z]", text) and OPTIONS.option(text.split()[0]) is not None:
        raise gdb.GdbError(f"{command}: {text.split()[0]} takes no other argument. See `help {COMMAND}`.")
    return text


def _register_words() -> list[str]:
    try:
        architecture = gdb.selected_frame().architecture()
    except gdb.error:
        return []
    names = [it.name for it in architecture.registers() if it.name and it.name != position.REGISTER]
    return [*names, *(f"x{n}" for n in range(32))]


def _hints(writer: ValueWriter | None, enter: bool) -> list[str]:
    """Return the line that says what the user can do next. *enter*: whether Enter repeats the command."""
    if writer is None:
        return []
    goes = "`trace goto {}` goes" if position.is_available() else "`trace history {}` shows what ran from"
    number, hints = writer.number, []
    if number is not None and writer.kind == "instruction":
        hints.append(f"{goes.format(number)} there")
    elif number is not None:
        hints.append(f"{goes.format(number)} {'to ' if position.is_available() else ''}the instruction after it")
    before = "Enter" if enter else f"`{COMMAND} -before`"
    return ["; ".join([*hints, f"{before} shows who wrote it before that"]) + "."]


COMMANDS = (WhoWroteCommand,)
