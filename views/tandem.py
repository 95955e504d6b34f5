"""A tandem trace, group by group: what ran, and everything it changed.

    14 0x00000146 @13 M 0x80000058 <reset_vector+12>: li tp,0
     tp = 0x0000000000000000
    95 0x00000a16 @- U 0x800001cc <do_scall+0>: ecall
     exception 8 (environment call from U-mode or VU-mode), to 0x80000004 <trap_vector+0>
     privilege U -> M
     mstatus = 0x0000000a00000088 -> 0x0000000a00000080 (MIE 1 -> 0)

The number counts groups from 1, the address is the offset of the first byte, after @ stands the number of the
instruction in the history, then the privilege mode it ran in. Tabs stand behind the number and around the
instruction, as in other listings. What the group did is in the lines behind it, each after a tab: what a register held
before, where it is known, stands before the arrow.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from rvtrace_gdb.decode.access_wording import words as access_words
from rvtrace_gdb.decode.memory_access import CSR
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.layout import FPR, FPR_END, GPR
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.wording import lines as element_lines
from rvtrace_gdb.decode.tandem.wording import register_name
from rvtrace_gdb.decode.tandem.wording import words as element_words
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.views import csr_fields, listing
from rvtrace_gdb.views.tandem_groups import Change, Groups, Row, is_physical, trap_words
from rvtrace_gdb.views.tandem_texts import Texts

AT_ONCE = 1024
"""Groups looked at together."""
_BYTES = 16


def pages(groups: Groups, texts: Texts, numbers: Iterable[int], progress: Progress = silent) -> Iterator[list[Row]]:
    """Groups by number, counted from 0, some at a time; the text of their instructions is known then."""
    rest = groups.rows(numbers)
    at_once = 64  # the first lines are there soon
    while page := list(islice(rest, at_once)):
        texts.learn(page, progress)
        yield page
        at_once = AT_ONCE


class Words:
    """Groups in words. *raw*: element by element, as the document has them. *omit_function*: offsets alone."""

    def __init__(self, groups: Groups, texts: Texts, *, raw: bool = False, omit_function: bool = False) -> None:
        self._groups, self._texts = groups, texts
        self._raw, self._omit_function = raw, omit_function
        self._xlen = groups.parameters.xlen

    def lines(self, row: Row) -> Iterator[str]:
        """A group, and before it what is missing there."""
        yield from (self.lost(mark) for mark in row.lost)
        yield f"{row.number}\t0x{row.offset:08x} {self._head(row)}"
        if self._raw:
            group = self._groups.trace.group(row.number - 1)
            yield from (f"\t{line}" for line in element_lines(group, self._groups.parameters))
        else:
            yield from (f"\t{line}" for line in self._details(row))
        yield from (f"\twarning: {flaw.value}" for flaw in row.flaws)

    def lost(self, mark: Break) -> str:
        """Something that is missing."""
        return f"{mark.group + 1}\t[{mark.why}; trace byte {mark.offset:#x}]"

    def _head(self, row: Row) -> str:
        if row.instr is None:
            where = "" if row.pc is None or row.trap is None else f" at {_mode(row.mode)} {self._place(row.pc, row)}"
            return self._what(row) + where
        number = "-" if row.position is None else str(row.position)
        before = f"@{number} {_mode(row.mode)}"
        text = self._texts.of(row)
        if row.pc is None:
            return f"{before} at an address that is not known:\t{text.instruction}"
        return f"{before} {listing.line(row.pc, text, self._xlen, omit_function=self._omit_function)}"

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
            yield f"pc = {self._place(row.sets_pc, row)}"
        if row.access is not None and row.access.kind != CSR:
            yield access_words(row.access, self._xlen, lambda at: self._texts.symbol(at, row.context))
        yield from (self._stored(run, row) for run in _runs(row.stored))
        yield from (self.change(change) for change in row.changes)
        yield from (element_words(element, self._groups.parameters) for element in row.bus)

    def _handler(self, row: Row) -> str:
        if row.trap is None or row.trap.handler is None:
            return ""
        return f", to {self._place(row.trap.handler, row)}"

    def _stored(self, run: "_Run", row: Row) -> str:
        size, address = sum(store.size for store in run.stores), run.stores[0].address
        what = f"stored {size} byte{'s' if size > 1 else ''}"
        where = "physical " if is_physical(run.space) and (row.access is None or row.initializes) else ""
        return f"{what} at {where}{self._place(address, row)}{_content(run.stores)}"

    def _place(self, address: int, row: Row) -> str:
        symbol = self._texts.symbol(address, row.context)
        return f"0x{address:0{self._xlen // 4}x}" + ("" if symbol is None else f" <{printable(symbol[0])}+{symbol[1]}>")

    def change(self, change: Change) -> str:
        """A register that was told."""
        regno, old, new = change
        parameters = self._groups.parameters
        if regno == csrs.PRIVILEGE:
            return f"privilege {_mode(old)} -> {_mode(new)}"
        values = [value_of(regno, value, parameters) for value in (old, new)]
        became = values[1] if old is None else " -> ".join(values)
        meaning = csr_fields.words(regno, old, new, parameters.xlen) if new is not None and regno < GPR else ""
        return f"{name_of(regno)} = {became}" + (f" ({meaning})" if meaning else "")


class _Run(NamedTuple):
    """Stores in one address space, each right behind the one before it."""

    space: int
    stores: list[Store]


def _runs(stored: Iterable[tuple[int, Store]]) -> Iterator[_Run]:
    """What a group stored, as few pieces as possible: those of a loader have hundreds."""
    run: _Run | None = None
    for space, store in stored:
        if run is not None and run.space == space and _follows(run.stores[-1], store):
            run.stores.append(store)
            continue
        if run is not None:
            yield run
        run = _Run(space, [store])
    if run is not None:
        yield run


def _follows(last: Store, store: Store) -> bool:
    return last.address + last.size == store.address and None not in (last.value, store.value)


def _content(stores: list[Store]) -> str:
    """A value, or what bytes begin with."""
    first = stores[0]
    if len(stores) == 1:
        return " = " + ("a value that is not told" if first.value is None else f"0x{first.value:0{2 * first.size}x}")
    content = b"".join((store.value or 0).to_bytes(store.size, "little") for store in stores[: _BYTES + 1])
    return ": " + content[:_BYTES].hex(" ") + (" ..." if len(content) > _BYTES else "")


def _mode(mode: int | None) -> str:
    return "?" if mode is None else csr_fields.MODES.get(mode, str(mode))


def value_of(regno: int, value: int | None, parameters: Parameters) -> str:
    """The value of a register, as wide as it is."""
    if value is None:
        return "a value that is not known"
    bits = parameters.flen or parameters.xlen if FPR <= regno < FPR_END else parameters.xlen
    return f"0x{value:0{16 if regno == csrs.MTIME else bits // 4}x}"


def name_of(regno: int) -> str:
    """A register as people call it: a0, ft0, mepc."""
    return register_name(regno).partition(" (")[0]
