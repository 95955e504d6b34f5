"""A tandem trace, group by group: what ran, and everything it changed; and the state after a group.

    14 0x00000146 @13 M 0x80000058 <reset_vector+12>: li tp,0
     tp = 0x0000000000000000
    95 0x00000a16 @- U 0x800001cc <do_scall+0>: ecall
     exception 8 (environment call from U-mode or VU-mode), to 0x80000004 <trap_vector+0>
     privilege U -> M
     mstatus = 0x0000000a00000088 -> 0x0000000a00000080 (MIE 1 -> 0)

The number counts groups from 1, the address is the offset of the first byte, after @ is the number of the instruction
in the history, then the privilege mode it ran in. There are tabs after the number and around the instruction, as in
other listings. What the group did is in the lines after it, each after a tab: the old value of a register is before the
arrow, if it is known.

`Known` is everything that is known of a hart after a group: registers, CSRs, memory. `GroupObjects` has groups and that
state for programs: JSON, an object a line (docs/json.md).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from rvtrace_gdb.decode.history.accesses import access_text
from rvtrace_gdb.decode.history.events import TrapKind
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.instructions import CSR, MemoryAccess
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import TrapEffect
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.protocol import FPR, FPR_END, GPR, TandemParameters
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.wording import element_text as element_words
from rvtrace_gdb.decode.tandem.wording import group_lines as element_lines
from rvtrace_gdb.decode.tandem.wording import register_name
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import json_line
from rvtrace_gdb.views import text_rows
from rvtrace_gdb.views.addresses import address_text, digits
from rvtrace_gdb.views.json_rows import JsonFields, place
from rvtrace_gdb.views.tandem import csr_fields
from rvtrace_gdb.views.tandem.groups import GroupChange, Groups, GroupTexts, Row, is_physical, trap_words

AT_ONCE = 1024
"""The number of groups processed together."""
_BYTES = 16


def pages(
    groups: Groups, texts: GroupTexts, numbers: Iterable[int], progress: Progress = silent
) -> Iterator[list[Row]]:
    """Yield groups by number, counted from 0, in pages; the text of their instructions is known then."""
    rest = groups.rows(numbers)
    at_once = 64  # the first lines are there soon
    while page := list(islice(rest, at_once)):
        texts.learn(page, progress)
        yield page
        at_once = AT_ONCE


class GroupWords:
    """Groups as text. *raw*: element by element, as in the document. *omit_function*: offsets alone."""

    def __init__(self, groups: Groups, texts: GroupTexts, *, raw: bool = False, omit_function: bool = False) -> None:
        self._groups, self._texts = groups, texts
        self.raw, self._omit_function = raw, omit_function
        self._xlen = groups.parameters.xlen

    def lines(self, row: Row) -> Iterator[str]:
        """Yield the lines of a group, and before it what is missing there."""
        yield from (self.lost(mark) for mark in row.lost)
        yield f"{row.number}\t0x{row.offset:08x} {self._head(row)}"
        if self.raw:
            group = self._groups.trace.group(row.number - 1)
            yield from (f"\t{line}" for line in element_lines(group, self._groups.parameters))
        else:
            yield from (f"\t{line}" for line in self._details(row))
        yield from (f"\twarning: {flaw.value}" for flaw in row.flaws)

    def lost(self, mark: Break) -> str:
        """Return the line for something that is missing."""
        return f"{mark.group + 1}\t[{mark.why}; trace byte {mark.offset:#x}]"

    def _head(self, row: Row) -> str:
        if row.instr is None:
            where = (
                ""
                if row.pc is None or row.trap is None
                else f" at {_mode(row.mode)} {self._address_words(row.pc, row)}"
            )
            return self._what(row) + where
        number = "-" if row.position is None else str(row.position)
        before = f"@{number} {_mode(row.mode)}"
        text = self._texts.text_of(row)
        if row.pc is None:
            return f"{before} at an address that is not known:\t{text.instruction}"
        return f"{before} {text_rows.line(row.pc, text, self._xlen, omit_function=self._omit_function)}"

    def _what(self, row: Row) -> str:
        if row.trap is not None:
            return trap_words(row.trap)
        if row.is_reset:
            return "hart reset"
        if row.initializes:
            return "state initialization, from outside the hart"
        return "state outside of groups" if row.loose else "no instruction"

    def _details(self, row: Row) -> Iterator[str]:
        if row.instr is not None and row.is_reset:
            yield "hart reset"
        if row.instr is not None and row.trap is not None:
            yield trap_words(row.trap) + self._handler(row)
        elif row.trap is not None and row.trap.handler is not None:
            yield self._handler(row).removeprefix(", ")
        if row.sets_pc is not None:
            yield f"pc = {self._address_words(row.sets_pc, row)}"
        if row.access is not None and row.access.kind != CSR:
            yield access_text(row.access, self._xlen, lambda at: self._texts.symbol(at, row.context))
        yield from (self._stored(run, row) for run in _store_runs(row.stored))
        yield from (self.change(change) for change in row.changes)
        yield from (element_words(element, self._groups.parameters) for element in row.bus)

    def _handler(self, row: Row) -> str:
        if row.trap is None or row.trap.handler is None:
            return ""
        return f", to {self._address_words(row.trap.handler, row)}"

    def _stored(self, run: "_StoreRun", row: Row) -> str:
        size, address = sum(store.size for store in run.stores), run.stores[0].address
        what = f"stored {size} byte{'s' if size > 1 else ''}"
        where = "physical " if is_physical(run.space) and (row.access is None or row.initializes) else ""
        return f"{what} at {where}{self._address_words(address, row)}{_content(run.stores)}"

    def _address_words(self, address: int, row: Row) -> str:
        symbol = self._texts.symbol(address, row.context)
        return address_text(address, self._xlen, symbol)

    def change(self, change: GroupChange) -> str:
        """Return the line for a register that was reported."""
        regno, old, new = change
        parameters = self._groups.parameters
        if regno == csrs.PRIVILEGE:
            return f"privilege {_mode(old)} -> {_mode(new)}"
        values = [value_of(regno, value, parameters) for value in (old, new)]
        became = values[1] if old is None else " -> ".join(values)
        meaning = csr_fields.change_text(regno, old, new, parameters.xlen) if new is not None and regno < GPR else ""
        return f"{name_of(regno)} = {became}" + (f" ({meaning})" if meaning else "")


class _StoreRun(NamedTuple):
    """Stores in one address space, each directly after the one before it."""

    space: int
    stores: list[Store]


def _store_runs(stored: Iterable[tuple[int, Store]]) -> Iterator[_StoreRun]:
    """Yield what a group stored, in as few pieces as possible: the groups of a loader have hundreds of stores."""
    run: _StoreRun | None = None
    for space, store in stored:
        if run is not None and run.space == space and _follows(run.stores[-1], store):
            run.stores.append(store)
            continue
        if run is not None:
            yield run
        run = _StoreRun(space, [store])
    if run is not None:
        yield run


def _follows(last: Store, store: Store) -> bool:
    return last.address + last.size == store.address and None not in (last.value, store.value)


def _content(stores: list[Store]) -> str:
    """Return a value, or the beginning of the bytes."""
    first = stores[0]
    if len(stores) == 1:
        return " = " + ("a value that is not told" if first.value is None else f"0x{first.value:0{2 * first.size}x}")
    content = b"".join((store.value or 0).to_bytes(store.size, "little") for store in stores[: _BYTES + 1])
    return ": " + content[:_BYTES].hex(" ") + (" ..." if len(content) > _BYTES else "")


def _mode(mode: int | None) -> str:
    return "?" if mode is None else csr_fields.MODES.get(mode, str(mode))


def value_of(regno: int, value: int | None, parameters: TandemParameters) -> str:
    """Return the text of a register's value, in the register's width."""
    if value is None:
        return "a value that is not known"
    bits = parameters.flen or parameters.xlen if FPR <= regno < FPR_END else parameters.xlen
    return f"0x{value:0{16 if regno == csrs.MTIME else bits // 4}x}"


def name_of(regno: int) -> str:
    """Return the common name of a register: a0, ft0, mepc."""
    return register_name(regno).partition(" (")[0]


_ROW = 16


class Known:
    """What is known after group *number*, counted from 1; 0: before the first one. *named*: the name of the pc."""

    def __init__(self, tandem: DecodedTandem, number: int, named: tuple[str, int] | None) -> None:
        self._tandem, self._number, self._named = tandem, number, named
        self._state = tandem.after(number - 1)
        self._parameters = tandem.trace.parameters

    def lines(self) -> Iterator[str]:
        """Yield it as text; what is not known is left out."""
        state, xlen = self._state, self._parameters.xlen
        when = f"after group {self._number}" if self._number else "before the first group"
        yield f"state {when} of {len(self._tandem.trace)}, before instruction {self._position} of the history"
        yield "pc: not known" if state.pc is None else f"pc = {address_text(state.pc, xlen, self._named)}"
        mode = state.privilege
        yield f"privilege: {'not known' if mode is None else csr_fields.MODES.get(mode, mode)}"
        if state.mtime is not None:
            yield f"mtime, told last = {value_of(csrs.MTIME, state.mtime, self._parameters)}"
        for regno, value in self._register_rows():
            meaning = csr_fields.value_text(regno, value, xlen) if regno < GPR else ""
            said = f" ({meaning})" if meaning else ""
            yield f"{name_of(regno)} = {value_of(regno, value, self._parameters)}{said}"
        for space, rows in self._memory_rows():
            yield f"memory, {_space(space)}:"
            for address, content in rows:
                yield f"\t{digits(address, xlen)}: {_dump(content)}"

    def json(self, hart: int) -> str:
        """Return it as one object."""
        state, parameters = self._state, self._parameters
        pc = {} if state.pc is None else place(state.pc, self._named, parameters.xlen)
        values = {name_of(regno): value_of(regno, value, parameters) for regno, value in self._register_rows()}
        memory = [
            {"space": _space(space), "addr": digits(address, parameters.xlen), "bytes": _digits(content)}
            for space, rows in self._memory_rows()
            for address, content in rows
        ]
        fields: JsonFields = {"group": self._number, "hart": hart, "position": self._position}
        fields |= {name: value for name, value in pc.items() if value is not None}
        fields |= {"prv": state.privilege, "mtime": state.mtime, "registers": values, "memory": memory}
        return json_line(fields)

    @property
    def _position(self) -> int:
        return self._tandem.position_of(self._number) + 1

    def _register_rows(self) -> Iterator[tuple[int, int]]:
        """Yield the known registers: integer, floating-point, CSRs."""
        for regno in (*range(GPR + 1, GPR + 32), *range(FPR, FPR + 32)):
            value = self._state.register(regno)
            if value is not None:
                yield regno, value
        yield from self._state.csrs().items()

    def _memory_rows(self) -> Iterator[tuple[int, Iterator[tuple[int, list[int | None]]]]]:
        """Yield rows of known bytes: of physical memory, and of the address space of loads and stores."""
        for space in dict.fromkeys((PHYSICAL, self._state.space)):
            addresses = self._rows_of(space)
            if addresses:
                yield space, self._byte_rows(space, addresses)

    def _byte_rows(self, space: int, addresses: list[int]) -> Iterator[tuple[int, list[int | None]]]:
        for address in addresses:
            content = self._state.memory(address, _ROW, space=space)
            if any(byte is not None for byte in content):
                yield address, content

    def _rows_of(self, space: int) -> list[int]:
        """Return the rows in which something was stored up to now."""
        index = self._tandem.index
        writes = index.physical.writes if space == PHYSICAL else index.memory.get(space)
        if writes is None:
            return []
        stop = bisect_left(writes.groups, self._number)
        found: set[int] = set()
        for address, size in zip(writes.addresses[:stop], writes.sizes[:stop], strict=True):
            found.update(range(address & -_ROW, address + size, _ROW))
        return sorted(found)


def _space(space: int) -> str:
    if space == PHYSICAL:
        return "physical addresses"
    return "addresses that may be virtual" if space == UNKNOWN else f"virtual addresses, satp 0x{space:x}"


def _dump(content: list[int | None]) -> str:
    return " ".join(".." if byte is None else f"{byte:02x}" for byte in content)


def _digits(content: list[int | None]) -> str:
    return "".join(".." if byte is None else f"{byte:02x}" for byte in content)


class GroupObjects:
    """Groups as objects. *raw*: with their elements."""

    def __init__(self, groups: Groups, texts: GroupTexts, hart: int, *, raw: bool = False) -> None:
        self._groups, self._texts, self._hart, self.raw = groups, texts, hart, raw
        self._parameters, self._xlen = groups.parameters, groups.parameters.xlen

    def lines(self, row: Row) -> Iterator[str]:
        """Yield the lines of a group, and before it what is missing there."""
        yield from (self.lost(mark) for mark in row.lost)
        yield json_line(self._group(row))

    def lost(self, mark: Break) -> str:
        """Return the line for something that is missing."""
        fields = {"group": mark.group + 1, "hart": self._hart, "trace-byte": mark.offset}
        return json_line({**fields, "lost": mark.why})

    def _group(self, row: Row) -> JsonFields:
        fields: JsonFields = {
            "group": row.number,
            "hart": self._hart,
            "trace-byte": row.offset,
            "position": row.position,
        }
        fields |= {"prv": row.mode, **self._instruction_fields(row)}
        fields |= {"registers": {name_of(one.regno): self._change(one.regno, one.old, one.new) for one in row.changes}}
        fields["sets-pc"] = None if row.sets_pc is None else self._address_fields(row.sets_pc, row)
        if row.access is not None and row.access.kind != CSR:
            fields["access"] = self._access_fields(row.access, row)
        fields["stored"] = [self._stored(space, store, row) for space, store in row.stored] or None
        fields["bus"] = [element_words(element, self._parameters) for element in row.bus] or None
        fields["trap"] = None if row.trap is None else self._trap_fields(row.trap, row)
        for name, holds in (("reset", row.is_reset), ("initialization", row.initializes), ("loose", row.loose)):
            fields[name] = True if holds else None
        fields["flaws"] = [flaw.value for flaw in row.flaws] or None
        if self.raw:
            fields["elements"] = list(element_lines(self._groups.trace.group(row.number - 1), self._parameters))
        return fields

    def _instruction_fields(self, row: Row) -> JsonFields:
        at = {} if row.pc is None else self._address_fields(row.pc, row)
        if row.instr is None:
            return at
        opcodes = f"{row.instr.word:0{2 * row.instr.length}x}"
        return {**at, "opcodes": opcodes, "inst": self._texts.text_of(row).instruction}

    def _change(self, regno: int, old: int | None, new: int | None) -> JsonFields:
        values = {"old": old, "new": new}
        if regno == csrs.PRIVILEGE:
            return {name: value for name, value in values.items() if value is not None}
        return {name: value_of(regno, value, self._parameters) for name, value in values.items() if value is not None}

    def _access_fields(self, access: MemoryAccess, row: Row) -> JsonFields:
        fields: JsonFields = {"kind": access.kind, "operation": access.operation or None, "size": access.size}
        fields["memory"] = None if access.address is None else self._memory_fields(access.address, row)
        for name, value in (("value", access.value), ("operand", access.operand)):
            fields[name] = None if value is None else f"0x{value:0{2 * access.size}x}"
        fields["text"] = access_text(access, self._xlen, lambda at: self._texts.symbol(at, row.context))
        return _present_fields(fields)

    def _stored(self, space: int, store: Store, row: Row) -> JsonFields:
        value = None if store.value is None else f"0x{store.value:0{2 * store.size}x}"
        fields = {"size": store.size, "memory": self._memory_fields(store.address, row), "value": value}
        return _present_fields({**fields, "physical": True if is_physical(space) else None})

    def _trap_fields(self, trap: TrapEffect, row: Row) -> JsonFields:
        fact = trap.fact
        known = fact.kind is not TrapKind.UNKNOWN
        fields: JsonFields = {
            "text": trap_words(trap),
            "interrupt": trap.interrupt if known else None,
            "cause": fact.cause,
        }
        fields["from"] = None if trap.epc is None else self._address_fields(trap.epc, row)
        fields["to"] = None if trap.handler is None else self._address_fields(trap.handler, row)
        return _present_fields(fields)

    def _address_fields(self, address: int, row: Row) -> JsonFields:
        return _present_fields(place(address, self._texts.symbol(address, row.context), self._xlen))

    def _memory_fields(self, address: int, row: Row) -> JsonFields:
        found = self._address_fields(address, row)
        name = {"symbol": found.pop("func")} if "func" in found else {}
        return {"addr": found.pop("addr"), **name, **found}


def _present_fields(fields: dict[str, Any]) -> JsonFields:
    return {name: value for name, value in fields.items() if value is not None}
