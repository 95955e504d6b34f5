"""Compiled programs on the simulated hart, and what CTR records of them: all they run, transfer by transfer.

Types by `tests.ctr_model.transfers`. What is recorded in one mode alone, or not at all, `test_properties` has.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.ctr.records import CtrRecord
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.transport.simulated.hart.block import HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.machine import Machine
from tests.ctr_model.transfers import Code, Kind, length

TRAPS = (Kind.EXCEPTION, Kind.INTERRUPT)


class Ran(NamedTuple):
    """An instruction that retired, or a trap at *pc*. *kind*: of the transfer, None for none."""

    pc: int
    kind: Kind | None
    to: int

    @property
    def retired(self) -> bool:
        return self.kind not in TRAPS


def run(machine: Machine, elf: Path, instructions: int) -> list[Ran]:
    """What the program runs from reset on."""
    hart, code = machine.hart, Code(elf)
    hart.retired = []
    while hart.instret < instructions:
        machine.run_slice(997)
    flat: list[int | TrapEntry] = []
    for item in hart.retired:
        if isinstance(item, HartBlock):
            flat += item.pcs
        elif isinstance(item, TrapEntry):
            flat.append(item)
        elif isinstance(item[0], HartBlock):
            flat += item[0].pcs[: item[1]]
    return list(_all(flat, code))


def _all(flat: list[int | TrapEntry], code: Code) -> Iterator[Ran]:
    for i, item in enumerate(flat[:-1]):
        following = flat[i + 1]
        to = following.epc if isinstance(following, TrapEntry) else following
        if isinstance(item, TrapEntry):
            yield Ran(item.epc, TRAPS[item.interrupt], item.handler)
            continue
        word = code.word(item)
        kind = code.kind(word)
        if kind is Kind.TAKEN_BRANCH and to == item + length(word):
            kind = Kind.NOT_TAKEN_BRANCH
        yield Ran(item, kind, to)


def recorded(ran: Sequence[Ran], kinds: Collection[Kind]) -> tuple[list[CtrRecord], list[list[int]]]:
    """The records, oldest first, and the instructions before each of them, its source included."""
    records: list[CtrRecord] = []
    stretches: list[list[int]] = [[]]
    for one in ran:
        if one.retired:
            stretches[-1].append(one.pc)
        if one.kind in kinds:
            records.append(CtrRecord(one.pc, one.to, IType(one.kind or 0), offset=24 * len(records)))
            stretches.append([])
    return records, stretches


def call_stack(ran: Sequence[Ran], depth: int) -> tuple[list[CtrRecord], list[list[int] | None]]:
    """The records of RAS emulation, and what ran before each since the one before was made; last, what ran since.
    None: not known, or there was a trap."""
    stack: list[tuple[int, CtrRecord]] = []
    for i, one in enumerate(ran):
        if one.kind in (Kind.FUNCTION_RETURN, Kind.COROUTINE_SWAP):
            stack = stack[:-1]
        if one.kind in (Kind.INDIRECT_CALL, Kind.DIRECT_CALL, Kind.COROUTINE_SWAP):
            stack.append((i, CtrRecord(one.pc, one.to, IType(one.kind))))
    stack = stack[-depth:]
    stretches: list[list[int] | None] = [None]
    for (first, _), (last, _) in pairwise([*stack, (len(ran), None)]):
        between = ran[first + 1 : last + 1]
        stretches.append([one.pc for one in between] if all(one.retired for one in between) else None)
    return [record._replace(offset=24 * i) for i, (_, record) in enumerate(stack)], stretches
