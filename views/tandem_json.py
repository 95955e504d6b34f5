"""Groups of a tandem trace, and the state after one, for programs: JSON, an object a line (docs/json.md)."""

from collections.abc import Iterator
from typing import Any

from rvtrace_gdb.decode.access_wording import words as access_words
from rvtrace_gdb.decode.events import TrapKind
from rvtrace_gdb.decode.memory_access import CSR, Access
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.index import Break, Trapped
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.wording import lines as element_lines
from rvtrace_gdb.decode.tandem.wording import words as element_words
from rvtrace_gdb.views.json_rows import Fields, line, place
from rvtrace_gdb.views.tandem import name_of, value_of
from rvtrace_gdb.views.tandem_groups import Groups, Row, is_physical, trap_words
from rvtrace_gdb.views.tandem_texts import Texts


class Objects:
    """Groups as objects. *raw*: with their elements."""

    def __init__(self, groups: Groups, texts: Texts, hart: int, *, raw: bool = False) -> None:
        self._groups, self._texts, self._hart, self._raw = groups, texts, hart, raw
        self._parameters, self._xlen = groups.parameters, groups.parameters.xlen

    def lines(self, row: Row) -> Iterator[str]:
        """A group, and before it what is missing there."""
        yield from (self.lost(mark) for mark in row.lost)
        yield line(self._group(row))

    def lost(self, mark: Break) -> str:
        """Something that is missing."""
        fields = {"group": mark.group + 1, "hart": self._hart, "trace-byte": mark.offset}
        return line({**fields, "lost": mark.why})

    def _group(self, row: Row) -> Fields:
        fields: Fields = {"group": row.number, "hart": self._hart, "trace-byte": row.offset, "position": row.position}
        fields |= {"prv": row.mode, **self._instruction(row)}
        fields |= {"registers": {name_of(one.regno): self._change(one.regno, one.old, one.new) for one in row.changes}}
        fields["sets-pc"] = None if row.sets_pc is None else self._place(row.sets_pc, row)
        if row.access is not None and row.access.kind != CSR:
            fields["access"] = self._access(row.access, row)
        fields["stored"] = [self._stored(space, store, row) for space, store in row.stored] or None
        fields["bus"] = [element_words(element, self._parameters) for element in row.bus] or None
        fields["trap"] = None if row.trap is None else self._trap(row.trap, row)
        for name, holds in (("reset", row.is_reset), ("initialization", row.initializes), ("loose", row.loose)):
            fields[name] = True if holds else None
        fields["flaws"] = [flaw.value for flaw in row.flaws] or None
        if self._raw:
            fields["elements"] = list(element_lines(self._groups.trace.group(row.number - 1), self._parameters))
        return fields

    def _instruction(self, row: Row) -> Fields:
        at = {} if row.pc is None else self._place(row.pc, row)
        if row.instr is None:
            return at
        opcodes = f"{row.instr.word:0{2 * row.instr.length}x}"
        return {**at, "opcodes": opcodes, "inst": self._texts.of(row).instruction}

    def _change(self, regno: int, old: int | None, new: int | None) -> Fields:
        values = {"old": old, "new": new}
        if regno == csrs.PRIVILEGE:
            return {name: value for name, value in values.items() if value is not None}
        return {name: value_of(regno, value, self._parameters) for name, value in values.items() if value is not None}

    def _access(self, access: Access, row: Row) -> Fields:
        fields: Fields = {"kind": access.kind, "operation": access.operation or None, "size": access.size}
        fields["memory"] = None if access.address is None else self._memory(access.address, row)
        for name, value in (("value", access.value), ("operand", access.operand)):
            fields[name] = None if value is None else f"0x{value:0{2 * access.size}x}"
        fields["text"] = access_words(access, self._xlen, lambda at: self._texts.symbol(at, row.context))
        return _known(fields)

    def _stored(self, space: int, store: Store, row: Row) -> Fields:
        value = None if store.value is None else f"0x{store.value:0{2 * store.size}x}"
        fields = {"size": store.size, "memory": self._memory(store.address, row), "value": value}
        return _known({**fields, "physical": True if is_physical(space) else None})

    def _trap(self, trap: Trapped, row: Row) -> Fields:
        fact = trap.fact
        known = fact.kind is not TrapKind.UNKNOWN
        fields: Fields = {"text": trap_words(trap), "interrupt": trap.interrupt if known else None, "cause": fact.cause}
        fields["from"] = None if trap.epc is None else self._place(trap.epc, row)
        fields["to"] = None if trap.handler is None else self._place(trap.handler, row)
        return _known(fields)

    def _place(self, address: int, row: Row) -> Fields:
        return _known(place(address, self._texts.symbol(address, row.context), self._xlen))

    def _memory(self, address: int, row: Row) -> Fields:
        found = self._place(address, row)
        name = {"symbol": found.pop("func")} if "func" in found else {}
        return {"addr": found.pop("addr"), **name, **found}


def _known(fields: dict[str, Any]) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}
