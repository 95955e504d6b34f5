"""The entries of the array, through a select CSR and what it shows; the select is left as it was found.

Each access to an entry reads the select back: a write of it that does nothing would show another entry's values.

Ref: RISC-V Control Transfer Records 1.0, "Entry Registers"; draft 0.1.4, chapter 3
"""

from collections.abc import Iterator

from rvtrace_gdb.controlregs.ctr.entries import Entry
from rvtrace_gdb.controlregs.ctr.errors import StaleEntries, WriteIneffective
from rvtrace_gdb.controlregs.ctr.hart import Access, Hart
from rvtrace_gdb.controlregs.ctr.layout import ENTRIES_MAX, ENTRY_SELECT, SOURCE
from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.support.progress import Progress, silent

BATCH = 16  # entries read in one go


def read_entries(hart: Hart, depth: int, progress: Progress = silent) -> list[Entry]:
    """The valid entries, youngest first: up to the first that is not valid, behind which none can be.

    Raises RegisterRefused, WriteIneffective, StaleEntries, NotRestored, Cancelled.
    """
    entries: list[Entry] = []
    with hart.keeping(hart.indirect.select, hart.read(hart.indirect.select)):
        for first in range(0, depth, BATCH):
            progress("reading control transfer records (records)", first, depth)
            entries += [Entry(*words) for words in _read(hart, first, BATCH, *hart.indirect.entry)]
            if not all(entry.valid for entry in entries[first:]):
                break
        valid = next((n for n, entry in enumerate(entries) if not entry.valid), len(entries))
        _must_not_be_stale(hart, entries, depth)
    return entries[:valid]


def recorded(hart: Hart, depth: int) -> int:
    """How many entries are valid: those are the youngest, so a few reads find the last one."""
    low, high = 0, depth
    with hart.keeping(hart.indirect.select, hart.read(hart.indirect.select)):
        while low < high:
            middle = (low + high) // 2
            ((source,),) = _read(hart, middle, 1, hart.indirect.source)
            if SOURCE.get(source, "V"):
                low = middle + 1
            else:
                high = middle
    return low


def clear_entries(hart: Hart, depth: int, progress: Progress = silent) -> None:
    """Zero every entry there is. Raises as `read_entries`."""
    indirect = hart.indirect
    with hart.keeping(indirect.select, hart.read(indirect.select)):
        for first in range(0, depth, BATCH):
            progress("clearing control transfer records (records)", first, depth)
            found = enumerate(_read(hart, first, BATCH, *indirect.entry), first)
            _zero(hart, [entry for entry, words in found if any(words)])


def _zero(hart: Hart, entries: list[int]) -> None:
    """In one go."""
    registers = hart.indirect.entry
    accesses: list[Access] = []
    for entry in entries:
        accesses += _selecting(hart, entry)
        for register in registers:
            accesses += [(register, 0), (register, None)]
    width = 2 + 2 * len(registers)
    answers = hart.run(accesses) if accesses else []
    for entry, at in zip(entries, range(0, len(answers), width), strict=True):
        _must_be_selected(hart, entry, answers[at + 1])
        for register, got in zip(registers, answers[at + 3 : at + width : 2], strict=True):
            if got:
                raise WriteIneffective(hart.way, register, 0, got, entry)


def _read(hart: Hart, first: int, count: int, *registers: Csr) -> Iterator[list[int]]:
    """The registers of *count* entries, in one go."""
    accesses: list[Access] = []
    for entry in range(first, first + count):
        accesses += _selecting(hart, entry)
        accesses += [(register, None) for register in registers]
    width = 2 + len(registers)
    answers = hart.run(accesses)
    for entry, at in enumerate(range(0, len(answers), width), first):
        _must_be_selected(hart, entry, answers[at + 1])
        yield answers[at + 2 : at + width]


def _selecting(hart: Hart, entry: int) -> list[Access]:
    select = hart.indirect.select
    return [(select, ENTRY_SELECT + entry), (select, None)]


def _must_be_selected(hart: Hart, entry: int, got: int) -> None:
    if got != ENTRY_SELECT + entry:
        raise WriteIneffective(hart.way, hart.indirect.select, ENTRY_SELECT + entry, got)


def _must_not_be_stale(hart: Hart, entries: list[Entry], depth: int) -> None:
    """The hart stands still, so the first entry is what it was; and beyond the depth entries read 0.

    The second matters where all entries are the same, as those of a loop are: so does what a cache holds. With the
    greatest depth there is nothing beyond, so of 256 equal entries no more can be known.
    """
    indirect = hart.indirect
    again, *beyond = _read(hart, 0, 1, *indirect.entry)
    if len(set(entries)) == 1 and entries[0].valid and depth < ENTRIES_MAX:
        beyond = list(_read(hart, depth, 1, *indirect.entry))
    if tuple(again) != entries[0] or any(any(words) for words in beyond):
        raise StaleEntries(hart.way, indirect.source, indirect.select)
