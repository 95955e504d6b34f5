"""The kernel's loops over the groups of a trace: they cut them, and note what plain ones did.

Each is told what Python knows, when it comes for the first time: what a byte means, where the fields of a plain group
are, how far an instruction leads. So the layout and the meaning of groups stand in Python alone. What they find is
moved to the arrays that Python fills without them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.effects import Anywhere, Steps, is_atomic
from rvtrace_gdb.decode.tandem.group_grammar import GroupShape, plan_of
from rvtrace_gdb.decode.tandem.index import ExecutedCode, Index
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.decode.tandem.registers import RegisterWrites

_ABSENT = (0, 0)  # the place of a field that a group does not have
_NEW_WORD = 2  # enum Indexing of decode/kernel/tandem/tandem.h


class PlainRun(NamedTuple):
    """Where plain groups ended: before *group*, which is not plain if it is before the end that was asked for. *pc*:
    the one there.
    """

    group: int
    pc: int


class CompiledIndexing:
    """Notes what plain groups did. *kinds*: of registers, by number; *stored_sizes*: of instructions, by word."""

    def __init__(
        self, parameters: TandemParameters, kinds: bytearray, steps: Steps, stored_sizes: Mapping[int, int]
    ) -> None:
        module = kernel()
        assert module is not None
        lowest = parameters.dialect.untraced_below
        self._kernel = module.TandemIndexer(parameters.xlen, csrs.MPRV, lowest, bytes(kinds))
        self._steps, self._stored_sizes = steps, stored_sizes
        self._plans = 0

    def run(
        self, index: Index, stores: tuple[MemoryWrites, MemoryWrites], group: int, stop: int, pc: int, *, mprv: bool
    ) -> PlainRun:
        """Process groups from *group* on, and note what they did in *index*. *stores*: those to the space of loads and
        stores, and to physical memory; *mprv*: mstatus has it, or may have.
        """
        trace, in_physical = index.trace, stores[0] is stores[1]
        self._learn_plans(trace.automaton.shapes)
        if not index.code.words:
            self._kernel.forget()
        try:
            while True:
                why, group, pc, word = self._kernel.run(
                    trace.data, trace.offsets, trace.shapes, group, stop, pc, mprv, in_physical
                )
                if why != _NEW_WORD:
                    return PlainRun(group, pc)
                self._learn_word(word)
        finally:
            self._move(index, stores)

    def _learn_plans(self, shapes: Sequence[GroupShape]) -> None:
        for shape in shapes[self._plans :]:
            plan = plan_of(shape)
            if plan is None:
                self._kernel.plan()
                continue
            fields = shape.fields
            pc, word, address, data = (
                _ABSENT if at < 0 else fields[at]
                for at in (plan.pc, plan.word, plan.address if plan.data >= 0 else -1, plan.data)
            )
            registers = tuple((fields[number][0], *fields[value]) for number, value in plan.registers)
            self._kernel.plan(shape.reader.size, pc, word, address, data, plan.physical, plan.both, registers)
        self._plans = len(shapes)

    def _learn_word(self, word: int) -> None:
        distances = self._steps[word]
        known = None if isinstance(distances, Anywhere) else tuple(distances)
        self._kernel.learn(word, self._stored_sizes[word], known, is_atomic(word))

    def _move(self, index: Index, stores: tuple[MemoryWrites, MemoryWrites]) -> None:
        """Move what the groups did to the index."""
        pcs, dirty, ran, written, own, physical = self._kernel.take()
        index.pcs.frombytes(pcs)
        index.retired.extend(b"\1" * (len(pcs) // index.pcs.itemsize))
        _move_registers(index.registers, dirty, written)
        _move_code(index.code, ran)
        for space, columns in zip(stores, (own, physical), strict=True):
            if columns[0]:
                arrays = space.groups, space.addresses, space.values, space.sizes
                for numbers, column in zip(arrays, columns, strict=True):
                    numbers.frombytes(column)


def _move_registers(registers: RegisterWrites, dirty: bytes, written: list[tuple[int, bytes, bytes]]) -> None:
    registers.dirty.frombytes(dirty)
    for regno, groups, values in written:
        column = registers.columns[regno]
        column.groups.frombytes(groups)
        column.values.frombytes(values)


def _move_code(code: ExecutedCode, ran: list[tuple[int, int]]) -> None:
    for pc, word in ran:
        code.ran(pc, word)
