"""What registers held after any group, as far as the trace determines it, and the address space that follows from them.

The writes to a register, and their groups, are in two arrays (`Column`), so the last write before any group is a
bisection. An address space says whether the address of a load or store is a physical one, or which page tables
translate it. Source: RISC-V Privileged Architecture, "Supervisor Address Translation and Protection (satp) Register",
"Memory Privilege in mstatus Register" (MPRV).
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import (
    FS_DIRTY,
    FS_SHIFT,
    MIDELEG,
    MPP_SHIFT,
    MPRV,
    MSTATUS,
    PC_PHYSICAL,
    PRIVILEGE,
    SATP,
    CsrPart,
    is_counter,
    parts,
)
from rvtrace_gdb.decode.tandem.protocol import GPR, TandemDialect


class RegisterWrite(NamedTuple):
    """A write by *group*. *value*: None if the trace does not report it."""

    group: int
    value: int | None


class Column:
    """The writes to one register, in order."""

    __slots__ = ("groups", "unknown", "values")

    def __init__(self) -> None:
        self.groups = array("I")
        self.values = array("Q")
        self.unknown: set[int] = set()
        """Which of the values are not known."""

    def add(self, group: int, value: int | None) -> None:
        """Add a write by *group*, which is not before the last one."""
        if value is None:
            self.unknown.add(len(self.groups))
        self.groups.append(group)
        self.values.append(value or 0)

    def last(self, group: int) -> RegisterWrite | None:
        """Return the last write up to and including *group*."""
        return self.number(bisect_right(self.groups, group) - 1)

    def number(self, index: int) -> RegisterWrite | None:
        """Return the write with this index, None if there is none."""
        if not 0 <= index < len(self.groups):
            return None
        return RegisterWrite(self.groups[index], None if index in self.unknown else self.values[index])


class Columns(dict[int, Column]):
    """Columns by register number, created on first use."""

    def __missing__(self, regno: int) -> Column:
        column = self[regno] = Column()
        return column


_MOST_MIDELEGS = 32
"""How many values of mideleg are tracked back."""


class _SeenWrite(NamedTuple):
    """A write to a register or to one it shares bits with. *mask*: the bits of the whole register
    that it determines.
    """

    group: int
    regno: int
    mask: int
    bits: int | None


class RegisterWrites:
    """The writes to all registers, and what follows from them. Numbers are those of the Debug Specification."""

    def __init__(self, xlen: int, dialect: TandemDialect) -> None:
        self.columns = Columns()
        self.dirty = array("I")
        """Groups that changed floating-point state without reporting mstatus: its FS is Dirty from there on."""
        self._forgotten: list[int] = []
        self._parts = parts(xlen, dialect.sstatus, dialect.sie)
        self._families: dict[int, list[int]] = {}
        for regno, part in self._parts.items():
            self._families.setdefault(part.register, []).append(regno)

    def add(self, group: int, regno: int, value: int | None) -> None:
        """Add a write by *group*, which is not before the last one; *value* None: the trace does not report it."""
        if regno != GPR:
            self.columns[regno].add(group, value)

    def forget(self, group: int) -> None:
        """Invalidate what was written before *group*."""
        self._forgotten.append(group)

    def marks(self, stop: int) -> tuple[list[int], list[int]]:
        """Return, before group *stop*, the last group that invalidated everything before it, and the last one in
        `dirty`.
        """
        lost, dirty = bisect_left(self._forgotten, stop), bisect_left(self.dirty, stop)
        return self._forgotten[max(lost - 1, 0) : lost], list(self.dirty[max(dirty - 1, 0) : dirty])

    def value(self, regno: int, group: int) -> int | None:
        """Return what a register held after *group*; None: not determined."""
        if regno == GPR:
            return 0
        if is_counter(regno) or regno == PC_PHYSICAL:
            found = self._write_up_to(regno, group)
            return None if found is None or found.group != group else found.value
        return self.reported(regno, group)

    def reported(self, regno: int, group: int) -> int | None:
        """Return the last value reported for a register, even if it has counted by itself since."""
        if regno in self._parts:
            return self._shared(regno, group)
        found = self._write_up_to(regno, group)
        return None if found is None else found.value

    def known_csrs(self) -> set[int]:
        """Return the CSRs that may be known at some time: those written, and all that share bits with them."""
        written = {regno for regno in self.columns if regno < GPR}
        wholes = {self._parts[regno].register for regno in written & self._parts.keys()}
        return written.union(*(self._families[whole] for whole in wholes))

    def last_write(self, regno: int, group: int) -> RegisterWrite | None:
        """Return the last write up to and including *group*, to the register itself, to one it is a part of, or to a
        part of it.

        It may have been before a loss, so its value need not be the register's: see `is_current`.
        """
        part = self._parts.get(regno)
        related = self._families[part.register] if part else [regno]
        found = [column.last(group) for column in map(self.columns.get, related) if column is not None]
        return max((write for write in found if write is not None), key=lambda write: write.group, default=None)

    def is_current(self, written: int, group: int) -> bool:
        """Return whether the value written by group *written* is still valid after *group*: nothing was lost in
        between.
        """
        return written >= self._since(group)

    def _since(self, group: int) -> int:
        found = bisect_right(self._forgotten, group)
        return self._forgotten[found - 1] if found else 0

    def _write_up_to(self, regno: int, group: int) -> RegisterWrite | None:
        column = self.columns.get(regno)
        found = column.last(group) if column is not None else None
        return found if found is not None and found.group >= self._since(group) else None

    def _shared(self, regno: int, group: int) -> int | None:
        """Return the value of a register that shares bits with others, combined from the last writes to all of them."""
        own = self._parts[regno]
        writes = sorted(self._seen(own.register, group), key=lambda seen: seen.group)
        last = writes[-1] if writes else None
        if last is not None and last.regno == regno and not self._part_moved(own, last.group, group):
            written = self._write_up_to(regno, group)
            value = None if written is None else written.value
        else:
            value = _overlaid(writes, self._mask(own, group), own.shift)
        if own.register == MSTATUS and value is not None and value >> FS_SHIFT & 3 != FS_DIRTY:
            return None if self._has_dirtied(writes, group) else value
        return value

    def _seen(self, whole: int, group: int) -> list[_SeenWrite]:
        found = []
        for regno in self._families[whole]:
            written = self._write_up_to(regno, group)
            if written is not None:
                found.append(self._as_seen(regno, written))
                if self._parts[regno].delegated:
                    found += self._delegated_before(regno, written, group)
        return found

    def _as_seen(self, regno: int, written: RegisterWrite) -> _SeenWrite:
        """Return the bits of the whole register that a write determines."""
        part = self._parts[regno]
        whole, mask = self._parts[part.register].mask, self._mask(part, written.group)
        if mask is None:  # some bits of the whole changed, it is unknown which
            return _SeenWrite(written.group, regno, whole, written.value if regno == part.register else None)
        return _SeenWrite(written.group, regno, mask, None if written.value is None else written.value << part.shift)

    def _delegated_before(self, regno: int, written: RegisterWrite, group: int) -> Iterator[_SeenWrite]:
        """Yield the last writes to sie or sip under other values of mideleg, which determine other bits; newest first.

        They go back to the last write to the whole register; how far is limited.
        """
        whole = self._write_up_to(self._parts[regno].register, group)
        first = max(self._since(group), 0 if whole is None else whole.group)
        for _ in range(_MOST_MIDELEGS):
            moved = self._write_up_to(MIDELEG, written.group)
            before = None if moved is None or not moved.group else self._write_up_to(regno, moved.group - 1)
            if before is None or before.group < first:
                return
            yield self._as_seen(regno, before)
            written = before
        yield _SeenWrite(written.group, regno, self._parts[self._parts[regno].register].mask, None)

    def _mask(self, part: CsrPart, group: int) -> int | None:
        """Return the bits of the whole register that a part has, None if they are not known."""
        if not part.delegated:
            return part.mask
        return self.value(MIDELEG, group)

    def _part_moved(self, part: CsrPart, written: int, group: int) -> bool:
        """Return whether the bits a register has may have changed since it was written."""
        moved = self._write_up_to(MIDELEG, group) if part.delegated else None
        return moved is not None and moved.group > written

    def _has_dirtied(self, writes: list[_SeenWrite], group: int) -> bool:
        """Return whether floating-point state changed after the last write to mstatus."""
        found = bisect_right(self.dirty, group)
        return bool(found) and bool(writes) and self.dirty[found - 1] > writes[-1].group


def _overlaid(writes: list[_SeenWrite], mask: int | None, shift: int) -> int | None:
    """Return the bits in *mask* after the last of the writes to each; None if one of them is not known."""
    bits = known = 0
    for seen in writes:
        if seen.bits is None:
            known &= ~seen.mask
        else:
            bits, known = bits & ~seen.mask | seen.bits & seen.mask, known | seen.mask
    return None if mask is None or known & mask != mask else (bits & mask) >> shift


PHYSICAL = 0
UNKNOWN = -1
"""The privilege mode, or satp, is not known: addresses are used as they are, in a space of their own."""

_MACHINE = 3


def space_of(registers: RegisterWrites, group: int, xlen: int, *, since_reset: bool) -> int:
    """Return the space of data accesses after *group*: PHYSICAL, UNKNOWN, or the satp in force.

    In M-mode an unknown mstatus counts as one without MPRV, which is 0 after a reset. *since_reset*: nothing was lost
    since a reset, so a satp which was never written is that of a hart without page tables.
    """
    mode = registers.value(PRIVILEGE, group)
    if mode is None:
        return UNKNOWN
    if mode == _MACHINE:
        status = registers.value(MSTATUS, group)
        if status is None or not status & MPRV:
            return PHYSICAL
        mode = status >> MPP_SHIFT & 3
        if mode == _MACHINE:
            return PHYSICAL
    satp = registers.value(SATP, group)
    if satp is None:
        return PHYSICAL if since_reset and registers.last_write(SATP, group) is None else UNKNOWN
    return satp if satp >> (31 if xlen == 32 else 60) else PHYSICAL
