"""Rows of the session as MI tuples, with the names that gdb's own results have.

    addr func offset file fullname line    as in frames (offset: as in -data-disassemble)
    inst opcodes                           as in -data-disassemble

All values are strings, as in MI; the field of an unknown value is left out.
"""

from __future__ import annotations

import functools
from typing import Any

import gdb

from rvtrace_gdb.gdbext import disassembly, expressions, listing
from rvtrace_gdb.gdbext.commands import who_wrote
from rvtrace_gdb.gdbext.commands.find import Place

Fields = dict[str, Any]


class Rows:
    """Converts rows to MI tuples. Each command creates one: gdb is asked about an address once."""

    def __init__(self, opcodes: bool = False) -> None:
        self._opcodes = opcodes
        self._digits = 2 * gdb.lookup_type("void").pointer().sizeof
        self._texts = disassembly.Texts(opcodes)
        self._known = functools.lru_cache(maxsize=None)(self._place)

    def history(self, rows: list[list[Any]]) -> list[Fields]:
        """Instructions and gaps: rows of `session.queries.rows`."""
        with listing.readable_code():
            self._texts.add_codes({pc: bytes.fromhex(more[0]) for _, pc, *more in rows if pc is not None and more})
            return [{"number": row[0], "gap": row[2]} if row[1] is None else self._instruction(*row) for row in rows]

    def found(self, rows: list[list[Any]]) -> list[Fields]:
        """Events, gaps and executions: rows of `session.queries.search`."""
        return [self._found(*row) for row in rows]

    def functions(self, rows: list[list[Any]]) -> list[Fields]:
        """Functions that ran: rows of `session.queries.functions`."""
        return [self._function(*row) for row in rows]

    def calls(self, rows: list[list[Any]]) -> list[Fields]:
        """The lines of the tree of calls: rows of `session.queries.functions`."""
        return [self._call(*row) for row in rows]

    def writer(self, storage: expressions.Storage, found: dict[str, Any]) -> Fields:
        """Return the writer of *storage*: the answer to `who_wrote`."""
        writer, changed = found["writer"], who_wrote.change_of(storage, found["writer"])
        change = {"what": changed.name, "old": changed.old, "new": changed.new, "group": writer["group"]}
        fields: Fields = {"kind": writer["kind"], **change, "ago": writer["ago"], "below": found["below"]}
        row = writer["row"]
        instruction = self.history([row])[0] if row is not None else {}
        return {key: value for key, value in {**fields, "instruction": instruction}.items() if value not in (None, {})}

    def place(self, place: Place) -> Fields:
        """Return an address in the program; the field `what` for a word in place of an address."""
        if place is None:
            return {}
        if isinstance(place, str):
            return {"what": place}
        pc, *name = place
        return {**self._known(pc, *name)}

    def _instruction(self, number: int, pc: int, code: str = "", name: str | None = None, offset: int = 0) -> Fields:
        fields = {"number": number, **(self._known(pc, name, offset) if code else self._known(pc))}
        try:
            text = self._texts.of_code(pc, bytes.fromhex(code)) if code else self._texts.at(pc)
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

    def _found(
        self, number: int, position: int, here: Place, kind: str, text: str, source: Place, target: Place,
        time: int | None, offset: int | None, facts: Fields | None,
    ) -> Fields:  # fmt: skip
        fields: Fields = {"number": number, "position": position, "kind": kind, **self.place(here)}
        more = {"text": text, "from": self.place(source), "to": self.place(target), "time": time, "trace-byte": offset}
        return {**fields, **(facts or {}), **{key: value for key, value in more.items() if value not in (None, "", {})}}

    def _function(
        self, number: int, first: int, last: int, pc: int | None, level: int, what: str, name: str | None,
        addresses: list[int],
    ) -> Fields:  # fmt: skip
        fields: Fields = {"number": number, "begin": first, "end": last}
        if pc is None:
            return {**fields, "gap": what}
        trap = {"trap": what} if what else {}
        return {**fields, "level": level, **self._named(pc, name), **trap}

    def _call(
        self, level: int, pc: int | None, name: str | None, trap: bool, times: int, own: int, total: int, hidden: int
    ) -> Fields:
        place = {} if pc is None else self._named(pc, name)
        more = {**({"trap": 1} if trap else {}), **({"hidden": hidden} if hidden else {})}
        return {"level": level, **place, "calls": times, "instructions": total, "own-instructions": own, **more}

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
