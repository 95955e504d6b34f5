"""The loads, stores, atomic operations and CSR instructions of a trace, as `decode.memory_access` has them.

They are made when they are asked for: which groups have one is found out once, the rest stands in the trace.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

from rvtrace_gdb.decode.errors import UndecodableInstruction
from rvtrace_gdb.decode.memory_access import ATOMIC, CSR, LOAD, STORE_FAILURE, Access, Reach, reach
from rvtrace_gdb.decode.tandem.dialect import AmoData
from rvtrace_gdb.decode.tandem.effects import Effects
from rvtrace_gdb.decode.tandem.group import FullRegister, Instr
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR, State
from rvtrace_gdb.decode.tandem.plans import plan_of

_SC = 0b00011


class _Reaches(dict[int, Reach | None]):
    """What instructions access, by word."""

    def __init__(self, xlen: int) -> None:
        super().__init__()
        self._xlen = xlen

    def __missing__(self, word: int) -> Reach | None:
        try:
            found = reach(word, self._xlen)
        except UndecodableInstruction:
            found = None
        self[word] = found
        return found


class TandemAccesses(Sequence[Access]):
    """One for each instruction that retired and accesses something.

    *groups*: the history's, by position; *gaps*: which of these positions are gaps, whose groups are others' or none.
    """

    def __init__(self, index: Index, groups: "array[int]", gaps: Iterable[int] = ()) -> None:
        self._index, self._groups, self._gaps = index, groups, frozenset(gaps)
        self._reaches = _Reaches(index.trace.parameters.xlen)

    @cached_property
    def _positions(self) -> "array[int]":
        """The positions that have one."""
        trace, retired, reaches, gaps = self._index.trace, self._index.retired, self._reaches, self._gaps
        plans = [plan_of(shape) for shape in trace.automaton.shapes]
        found = array("I")
        for position, group in enumerate(self._groups):
            if position in gaps or not retired[group]:
                continue
            plan = plans[trace.shapes[group]]
            if plan is None:
                word = next(element.word for element in trace.elements(group) if isinstance(element, Instr))
            else:
                word = plan.unpack(trace.data, trace.offsets[group])[plan.word]
            if reaches[word] is not None:
                found.append(position)
        return found

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, key: int) -> Access: ...
    @overload
    def __getitem__(self, key: slice) -> list[Access]: ...
    def __getitem__(self, key: int | slice) -> Access | list[Access]:
        if isinstance(key, slice):
            return [self._access(position) for position in self._positions[key]]
        return self._access(self._positions[key])

    def __iter__(self) -> Iterator[Access]:
        return map(self._access, self._positions)

    def at(self, position: int) -> Access | None:
        """That of the instruction at a position, where one retired; None: it accesses nothing."""
        if position in self._gaps:
            return None
        elements = self._index.trace.elements(self._groups[position])
        word = next((element.word for element in elements if isinstance(element, Instr)), None)
        return None if word is None or self._reaches[word] is None else self._access(position)

    def _access(self, position: int) -> Access:
        trace, group = self._index.trace, self._groups[position]
        seen = Effects(group, trace.elements(group), trace.parameters, self._index.registers, loose=False)
        assert seen.instr is not None
        found = self._reaches[seen.instr.word]
        assert found is not None
        access = Access(
            found.kind,
            found.size,
            found.operation,
            offset=trace.offsets[group],
            after=position,
            sync=0,
            position=position,
        )
        return self._of_csr(access, found, seen) if found.kind == CSR else self._of_memory(access, seen)

    def _of_csr(self, access: Access, found: Reach, seen: Effects) -> Access:
        """*value*: what the CSR became, where the group tells that it was written; else what was read."""
        written = {element.regno: element.value for element in seen.elements if isinstance(element, FullRegister)}
        return access._replace(address=found.number, value=written.get(found.number, seen.rd))

    def _of_memory(self, access: Access, seen: Effects) -> Access:
        addresses = seen.states(State.EFFECTIVE_ADDRESS) or seen.states(State.PHYSICAL_ADDRESS)
        size = access.size or (seen.data[0][0] if seen.data else 0)
        stored = seen.data[0][1] if seen.data else None
        loaded = _truncated(_destination(seen), size)
        access = access._replace(address=addresses[0] if addresses else None, size=size)
        if access.kind == LOAD:
            return access._replace(value=loaded)
        if access.kind == ATOMIC:
            told = self._index.trace.parameters.dialect.amo_data
            return access._replace(value=loaded, operand=stored if told is AmoData.OPERAND else None)
        assert seen.instr is not None
        if seen.instr.word & 0x7F == 0x2F and seen.instr.word >> 27 == _SC and seen.rd:
            return access._replace(kind=ATOMIC, operation=STORE_FAILURE, value=stored)
        return access._replace(value=stored)


def _destination(seen: Effects) -> int | None:
    """The new value of the register an instruction loaded."""
    registers = (element for element in seen.elements if isinstance(element, FullRegister))
    return next((element.value for element in registers if GPR < element.regno < FPR_END), None)


def _truncated(value: int | None, size: int) -> int | None:
    return None if value is None or not size else value & (1 << 8 * size) - 1
