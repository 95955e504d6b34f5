"""Rows of the session as MI tuples, with the names that gdb's own results have.

    addr func offset file fullname line    as in frames (offset: as in -data-disassemble)
    inst opcodes                           as in -data-disassemble

All values are strings, as in MI; the field of an unknown value is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import gdb

from rvtrace_gdb.gdbext import disassembly, expressions, listing, neutral
from rvtrace_gdb.gdbext.commands import who_wrote
from rvtrace_gdb.rows import list_text
from rvtrace_gdb.rows.answers import Writer
from rvtrace_gdb.rows.list_rows import CallRow, FoundRow, FunctionRow, HistoryRow, Place
from rvtrace_gdb.rows.list_text import Fields


class Rows:
    """Converts rows to MI tuples. Each command creates one: gdb is asked about an address once."""

    def __init__(self, opcodes: bool = False) -> None:
        self._opcodes = opcodes
        self._digits = neutral.address_digits()
        self._texts = disassembly.Texts(opcodes)
        self._known = functools.lru_cache(maxsize=None)(self._place)

    def history(self, rows: Sequence[HistoryRow]) -> list[Fields]:
        """Instructions and gaps."""
        with listing.readable_code():
            self._texts.add_codes((row.pc, bytes.fromhex(row.text)) for row in rows if row.pc is not None and row.text)
            return [
                {"number": row.number, "gap": row.text} if row.pc is None else self._instruction(row.pc, row)
                for row in rows
            ]

    def found(self, rows: Iterable[FoundRow]) -> list[Fields]:
        """Events, gaps and executions."""
        return [list_text.found_fields(row, self.place) for row in rows]

    def functions(self, rows: Iterable[FunctionRow]) -> list[Fields]:
        """Functions that ran."""
        return [list_text.function_fields(row, self._named) for row in rows]

    def calls(self, rows: Iterable[CallRow]) -> list[Fields]:
        """The lines of the tree of calls."""
        return [list_text.call_fields(row, self._named) for row in rows]

    def writer(self, storage: expressions.Storage, writer: Writer, below: int | None) -> Fields:
        """Return the writer of *storage*. *below* is the parameter of the method `who_wrote`."""
        changed = who_wrote.change_of(storage, writer)
        change = {"what": changed.name, "old": changed.old, "new": changed.new, "group": writer.group}
        instruction = self.history([HistoryRow(*writer.row)])[0] if writer.row is not None else {}
        fields = {"kind": writer.kind, **change, "ago": writer.ago, "below": below, "instruction": instruction}
        return {key: value for key, value in fields.items() if value not in (None, {})}

    def place(self, place: Place) -> Fields:
        """Return an address in the program."""
        return {**self._known(*place)}

    def _instruction(self, pc: int, row: HistoryRow) -> Fields:
        fields = {"number": row.number, **(self._known(pc, row.function, row.offset) if row.text else self._known(pc))}
        try:
            text = self._texts.of_code(pc, bytes.fromhex(row.text)) if row.text else self._texts.at(pc)
        except gdb.error as error:  # gdb.MemoryError included
            return {**fields, "error": str(error).partition("\n")[0]}
        if self._opcodes:
            fields["opcodes"], _, text = text.partition("\t")
        return {**fields, "inst": text}

    def _place(self, pc: int, name: str | None = None, offset: int = 0) -> Fields:
        """Return an address. *name*, *offset*: for code that gdb does not have, so that gdb's symbols do not apply."""
        fields: Fields = {"addr": f"0x{pc:0{self._digits}x}"}
        known = (name, offset) if name is not None else disassembly.symbol_of(pc)
        if known[0] is not None:
            fields.update(func=known[0], offset=known[1])
        return fields if name is not None else {**fields, **_line(pc)}

    def _named(self, pc: int, name: str | None) -> Fields:
        """Return a function with this name; None: with the name that gdb knows, by its debug information first."""
        fields = {**self._known(pc, name)} if name is not None else {**self._known(pc)}
        symbol = listing.function_symbol(pc) if name is None else None
        if symbol is not None:
            fields["func"] = symbol.print_name
        fields.pop("offset", None)
        return fields


def _line(pc: int) -> Fields:
    place = gdb.find_pc_line(pc)
    symtab: gdb.Symtab | None = place.symtab
    if symtab is None or not place.line:
        return {}
    return {"file": symtab.filename, "fullname": symtab.fullname(), "line": place.line}
