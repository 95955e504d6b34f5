"""Rows of the session as MI tuples, and as what `rvtrace console --json` prints, with the names that gdb's own results
have.

    addr func offset file fullname line    as in frames (offset: as in -data-disassemble)
    inst opcodes                           as in -data-disassemble

All values are strings, as in MI; the field of an unknown value is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import gdb

from rvtrace_gdb.gdbext import disassembly, expressions, listing, neutral
from rvtrace_gdb.gdbext.commands import who_wrote
from rvtrace_gdb.gdbext.paged_list import PagedList
from rvtrace_gdb.rows import diff_text
from rvtrace_gdb.rows.answers import NoteRow, ValueWriter, WriterAnswer
from rvtrace_gdb.rows.diff_rows import DiffAnswer
from rvtrace_gdb.rows.intervals import text
from rvtrace_gdb.rows.intervals.answer import IntervalsAnswer
from rvtrace_gdb.rows.list_rows import HistoryRow, Page, Place
from rvtrace_gdb.rows.list_text import RowFields, row_fields
from rvtrace_gdb.rows.note_text import note_fields


class MiRows:
    """Converts rows to MI tuples. Each command creates one: gdb is asked about an address once."""

    def __init__(self, opcodes: bool = False) -> None:
        self._opcodes = opcodes
        self._digits = neutral.address_digits()
        self._texts = disassembly.DisassemblyTexts(opcodes)
        self._fields = functools.lru_cache(maxsize=None)(self._address_fields)

    def list_rows(self, what: str, rows: Sequence[Any]) -> list[RowFields]:
        """Return the rows of the list *what*, a key of `list_rows.ROW_TYPES`."""
        if what == "history":
            return self.history(rows)
        if what == "interleaved":
            return [{"hart": run.hart, **fields} for run in rows for fields in self.history(run.rows)]
        return [row_fields(row, self) for row in rows]

    def history(self, rows: Sequence[HistoryRow]) -> list[RowFields]:
        """Return instructions and gaps."""
        with listing.readable_code():
            self._texts.add_codes((row.pc, bytes.fromhex(row.text)) for row in rows if row.pc is not None and row.text)
            return [
                {"number": row.number, "gap": row.text} if row.pc is None else self._instruction_fields(row.pc, row)
                for row in rows
            ]

    def writer(self, storage: expressions.Storage, writer: ValueWriter, below: int | None) -> RowFields:
        """Return the writer of *storage*. *below* is the parameter of the method `who_wrote`."""
        changed = who_wrote.change_of(storage, writer)
        change = {"what": changed.name, "old": changed.old, "new": changed.new, "group": writer.group}
        change |= {"task": writer.task, "process": writer.process, "thread": writer.thread}
        instruction = self.history([HistoryRow(*writer.row)])[0] if writer.row is not None else {}
        fields = {"kind": writer.kind, **change, "ago": writer.ago, "below": below, "instruction": instruction}
        return {key: value for key, value in fields.items() if value not in (None, {})}

    def place(self, place: Place) -> RowFields:
        """Return an address in the program."""
        return {**self._fields(*place)}

    def _instruction_fields(self, pc: int, row: HistoryRow) -> RowFields:
        fields = {
            "number": row.number,
            **(self._fields(pc, row.function, row.offset) if row.text else self._fields(pc)),
        }
        try:
            text = self._texts.of_code(pc, bytes.fromhex(row.text)) if row.text else self._texts.text_at(pc)
        except gdb.error as error:  # gdb.MemoryError included
            return {**fields, "error": str(error).partition("\n")[0]}
        if self._opcodes:
            fields["opcodes"], _, text = text.partition("\t")
        return {**fields, "inst": text}

    def _address_fields(self, pc: int, name: str | None = None, offset: int = 0) -> RowFields:
        """Return an address. *name*, *offset*: for code that gdb does not have, so that gdb's symbols do not apply."""
        fields: RowFields = {"addr": f"0x{pc:0{self._digits}x}"}
        known = (name, offset) if name is not None else disassembly.symbol_of(pc)
        if known[0] is not None:
            fields.update(func=known[0], offset=known[1])
        return fields if name is not None else {**fields, **_line_fields(pc)}

    def function(self, pc: int, name: str | None) -> RowFields:
        """Return a function with this name; None: with the name that gdb knows, by its debug information first."""
        fields = {**self._fields(pc, name)} if name is not None else {**self._fields(pc)}
        symbol = listing.function_symbol(pc) if name is None else None
        if symbol is not None:
            fields["func"] = symbol.print_name
        fields.pop("offset", None)
        return fields


def list_fields(what: str, parameters: dict[str, Any], part: dict[str, Any], *, opcodes: bool = False) -> RowFields:
    """Return a *part* of the list *what*, its length, whether older trace was overwritten, and lines for the user."""
    page = PagedList(what, **parameters).page(**part)
    fields: RowFields = {"length": page.length, "begin": page.begin, "hart": page.hart}
    fields[what] = MiRows(opcodes).list_rows(what, page.rows)
    if page.overwritten:
        fields["overwritten"] = 1
    if page.lines:
        fields["messages"] = page.lines
    if page.comes:
        fields["comes"] = 1
    return fields


def page_fields(what: str, page: Page) -> RowFields:
    """Return a piece of the list *what*: its rows under the list's name."""
    rows = [_stripped(fields) for fields in MiRows(opcodes=True).list_rows(what, page.rows)]
    fields: RowFields = {"dump" if what == "messages" else what: rows}
    return fields if page.hart is None else {"hart": page.hart, **fields}


def _stripped(fields: RowFields) -> RowFields:
    """Return an instruction without the blanks that fill the column of its bytes."""
    return {**fields, "opcodes": fields["opcodes"].strip()} if "opcodes" in fields else fields


def writer_fields(storage: expressions.Storage, answer: WriterAnswer) -> RowFields:
    """Return the answer of `trace who-wrote`."""
    if answer.writer is None:
        return {"hart": answer.hart, "messages": list(answer.none)}
    return {"hart": answer.hart, "writer": MiRows().writer(storage, answer.writer, answer.below)}


def part_fields(writers: who_wrote.PartWriters) -> RowFields:
    """Return who wrote the parts of an array or a structure, and how many more parts there are."""
    if not writers.parts:
        return {}
    rows = MiRows()
    parts = [
        {"what": part.text, "messages": list(it.none)} if it.writer is None else rows.writer(part, it.writer, it.below)
        for part, it in writers.parts
    ]
    return {"parts": parts, **({"more": writers.more} if writers.more else {})}


def interval_fields(answer: IntervalsAnswer) -> RowFields:
    """Return the answer of `trace intervals`."""
    return text.fields(answer, MiRows())


def diff_fields(answer: DiffAnswer) -> RowFields:
    """Return the answer of `trace diff`."""
    return diff_text.fields(answer, MiRows())


def note_row_fields(row: NoteRow) -> RowFields:
    """Return a note of `trace note`."""
    return note_fields(row, MiRows())


def _line_fields(pc: int) -> RowFields:
    place = gdb.find_pc_line(pc)
    symtab: gdb.Symtab | None = place.symtab
    if symtab is None or not place.line:
        return {}
    return {"file": symtab.filename, "fullname": symtab.fullname(), "line": place.line}
