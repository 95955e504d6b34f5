"""Facts that the trace itself has about loads and stores: their addresses, and what was loaded or stored."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby

from rvtrace_gdb.decode.program.instructions import ATOMIC, AccessNote, MemoryAccess
from rvtrace_gdb.decode.program.instructions import LOAD as TRACED_LOAD
from rvtrace_gdb.decode.program.instructions import STORE as TRACED_STORE
from rvtrace_gdb.decode.reconstruction.window.classes import Classes
from rvtrace_gdb.decode.reconstruction.window.rules import extended
from rvtrace_gdb.decode.reconstruction.window.table import FORMS, LOAD, STORE, AccessTable

_KINDS = {TRACED_LOAD: (LOAD,), TRACED_STORE: (STORE,), ATOMIC: (LOAD, STORE)}
_REMARKS = frozenset({AccessNote.LOST_AFTER})
"""Notes that do not mean that anything of the access is uncertain."""


def believe(traced: Iterable[MemoryAccess], classes: Classes, table: AccessTable, first: int, last: int) -> None:
    """The accesses of positions *first* to *last* - 1 are these, as far as their places are known. Of an instruction
    that makes several, which is which is not known. Raises Contradiction.
    """
    inside = (it for it in traced if it.position is not None and first <= it.position < last)
    for position, group in groupby(inside, key=lambda it: it.position):
        accesses = list(group)
        if len(accesses) == 1 and position is not None and not accesses[0].failed:
            _believe_one(accesses[0], classes, table, _accesses_at(table, position))


def _accesses_at(table: AccessTable, position: int) -> list[int]:
    """Return the numbers of the accesses at a position."""
    at = bisect_left(table.positions, position)
    found = []
    while at < len(table) and table.positions[at] == position and at not in table.debuggers:
        found.append(at)
        at += 1
    return found


def _believe_one(access: MemoryAccess, classes: Classes, table: AccessTable, ops: list[int]) -> None:
    kinds = _KINDS.get(access.kind)
    if tuple(table.kinds[op] for op in ops) != kinds or not _REMARKS.issuperset(access.notes):
        return
    op = ops[0]
    if table.sizes[op] != access.size:
        return
    if access.address is not None:
        classes.set(table.bases[op], access.address - table.offsets[op] & classes.mask)
    if access.value is None or access.kind == ATOMIC:
        return
    bits = 8 * access.size
    if access.kind == TRACED_LOAD:
        classes.set(table.nodes[op], extended(access.value, bits, FORMS[table.forms[op]], classes.mask))
    else:
        classes.set_low(table.nodes[op], bits, access.value)
