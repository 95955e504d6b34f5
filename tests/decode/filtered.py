"""What a filter lets through of an execution: the stretches that are traced, and what an encoder hears of them.

Nothing here knows a trace format. A trap is part of the trace if the instructions before and behind it are.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.executions import MACHINE, Item
from tests.decode.synthetic import Program

Wanted = Callable[[int, ProgramContext], bool]
"""Whether the instruction at an address, run in a context, is traced."""


class Begin(NamedTuple):
    """Tracing begins. *trap*: what has just led here, if something has."""

    trap: IngressTrap | None


class End(NamedTuple):
    """Tracing ends: what comes next is at *next_pc*; *trap* hit there, if one did."""

    next_pc: int
    trap: IngressTrap | None


class Stretch(NamedTuple):
    """What was traced in one go, and the place that came next."""

    pcs: list[int]
    next_pc: int


Told = Item | Begin | End


def random_filter(program: Program, pcs: list[int], rng: random.Random) -> Wanted:
    """A range, several, one instruction, everything but that, instructions of one kind, or privilege modes."""
    places = sorted(set(pcs))

    def between() -> range:
        first, last = sorted(rng.choices(places, k=2))
        return range(first, last + rng.choice([1, 2, 16]))

    kind = rng.choice(["range", "ranges", "one", "all but one", "kind", "modes", "modes and range"])
    if kind == "one" or kind == "all but one":
        place = rng.choice(places)
        return lambda pc, _: (pc == place) is (kind == "one")
    if kind == "kind":
        chosen = program.spots[rng.choice(places)].kind
        return lambda pc, _: program.spots[pc].kind == chosen
    mode = rng.choice([0, MACHINE])
    if kind == "modes":
        return lambda _, context: context.prv == mode
    ranges = [between() for _ in range(3 if kind == "ranges" else 1)]
    if kind == "modes and range":
        return lambda pc, context: context.prv == mode and pc in ranges[0]
    return lambda pc, _: any(pc in one for one in ranges)


def told(items: Iterable[Item], wanted: Wanted, next_pc: int, *, ends: bool = True) -> Iterator[Told]:
    """What an encoder hears of an execution that goes on at *next_pc*. Contexts also while nothing is traced.

    *ends*: the last stretch ends with the execution.
    """
    context, inside = ProgramContext(MACHINE), False
    between: list[IngressTrap | ProgramContext] = []  # since the last instruction
    for item in items:
        if not isinstance(item, Block):
            context = item if isinstance(item, ProgramContext) else context  # of the next block
            between.append(item)
            continue
        for flag, piece in _pieces(item, context, wanted):
            traps = [one for one in between if isinstance(one, IngressTrap)]
            if inside and not flag:
                yield End(traps[0].epc if traps else piece.pc, traps[0] if traps else None)
            yield from (one for one in between if isinstance(one, ProgramContext) or (inside and flag))
            if flag and not inside:
                yield Begin(traps[-1] if traps else None)
            between.clear()
            inside = flag
            if flag:
                yield piece
    if inside and ends:
        traps = [one for one in between if isinstance(one, IngressTrap)]
        yield End(traps[0].epc if traps else next_pc, None)


def _pieces(block: Block, context: ProgramContext, wanted: Wanted) -> Iterator[tuple[bool, Block]]:
    """*block*, cut where the filter opens and closes."""
    at, flags = block.pc, []
    for length in block.lengths:
        flags.append(wanted(at, context))
        at += 2 * length
    first, pc = 0, block.pc
    for flag, group in groupby(flags):
        last = first + len(list(group))
        lengths = block.lengths[first:last]
        if last < block.instructions:
            yield flag, Block(pc, lengths)
        elif first == 0:
            yield flag, block
        else:  # a jump to the constant that the instruction before it loads needs that
            inferred = block.inferred if len(lengths) > 1 else -1
            yield flag, Block(pc, lengths, block.itype, block.taken_target, inferred, block.absolute)
        first, pc = last, pc + 2 * sum(lengths)


def stretches(listed: Iterable[Told]) -> list[Stretch]:
    """What has to be in the trace. Behind an ecall that counts as retired comes its handler."""
    found: list[Stretch] = []
    pcs: list[int] = []
    retired = False  # an ecall did, last
    for item in listed:
        if isinstance(item, Block):
            retired = item.itype is IType.EXCEPTION
            at = item.pc
            for length in item.lengths:
                pcs.append(at)
                at += 2 * length
        elif isinstance(item, End):
            found.append(Stretch(pcs, item.trap.handler if item.trap is not None and retired else item.next_pc))
            pcs = []
    return found


def check(history: History, wanted: list[Stretch], is_told: Callable[[int], bool]) -> None:
    """The history has these stretches, and a gap between two that do not follow each other.

    *is_told*: whether the trace tells what comes behind the last instruction of the stretch with this index; only where
    it does not a gap may, but need not, be between two that do follow each other.
    """
    found, position = list(history.pcs()), 0
    offs = {event.position for event in history.events if event.kind is EventKind.TRACE_OFF}
    for index, (pcs, _) in enumerate(wanted):
        if index:
            before = wanted[index - 1]
            if position < len(found) and found[position] == GAP:
                assert before.next_pc != pcs[0] or not is_told(index - 1), f"a gap at {position}: nothing is missing"
                cause = history.gap_at(position)
                assert cause.kind in GAP_KINDS and "tra" in cause.text
                assert (cause.last_pc, cause.next_pc) == (before.pcs[-1], pcs[0])
                assert position in offs
                position += 1
            else:
                assert before.next_pc == pcs[0], f"no gap at {position}: 0x{before.next_pc:x} is missing"
                assert position in offs
        assert found[position : position + len(pcs)] == pcs, f"stretch {index} at {position}"
        position += len(pcs)
    assert position == len(found)
    assert history.gaps == found.count(GAP)
