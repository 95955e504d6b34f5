"""The data flow of a loop: on what the branches that could end it depend.

The instructions of the last rounds are gone through once, with the instruction that wrote each register last, and each
place of memory whose address is equal to that of a load. What follows is a graph of dependences between the addresses
of instructions, and the loop is what the cycles of that graph say: one without a load counts; one with a load follows
pointers; a load whose address no cycle changes waits for somebody else to store; with none of these nothing in the loop
changes what its branches test.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.session.questions.explain.code import SP, Code, CodeEffect, CodeRole, constant_of

_SWAPS = ("amoswap", "amoor", "lr.", "sc.", "amoand")
"""What takes locks. Other atomics count."""


class Change(Enum):
    """What changes a loop's branches."""

    COUNTS = "counts"
    FOLLOWS = "follows"
    WAITS = "waits"


class MemoryPlace(NamedTuple):
    """Where an access is, as far as the code says: *base*, and what is added to it.

    base  None: *offset* is the address; "sp": the stack pointer at the beginning of what was gone through; else who
          made the base: the index of the instruction, or the negative number of a register that nobody wrote
    """

    base: int | str | None
    offset: int


class LoopFlow(NamedTuple):
    """The dependences of a loop.

    exits     the branches that lead out of the loop, by their addresses
    changes   what changes them
    waited    the loads on which they wait, with the places that they read
    followed  the loads that follow pointers
    stores    whether the loop stores anything; *works*: outside of its stack
    swaps     whether a load that is waited for is one that takes a lock
    ordered   whether the exits compare by size
    """

    exits: tuple[int, ...]
    changes: frozenset[Change]
    waited: Mapping[int, MemoryPlace]
    followed: tuple[int, ...]
    stores: bool
    works: bool
    swaps: bool
    ordered: bool


_PlaceKey = tuple[MemoryPlace, int]


class _Dependences:
    """The instructions of *pcs* and, for each address, the addresses of those whose results it used."""

    def __init__(self, code: Code, pcs: Sequence[int]) -> None:
        self.code = code
        self.sources: dict[int, set[int]] = {}
        self.bases: dict[int, set[int]] = {}
        self.places: dict[int, MemoryPlace] = {}
        self.stored: set[int] = set()
        self._writers: dict[int, int] = {}
        self._indices: dict[int, int] = {}
        self._known: dict[int, int] = {}
        self._memory: dict[_PlaceKey, set[int]] = {}
        self._sp: int | None = 0
        for index, pc in enumerate(pcs):
            self._add_instruction(index, pc, code.effect(pc))

    def _add_instruction(self, index: int, pc: int, effect: CodeEffect) -> None:
        found = self.sources.setdefault(pc, set())
        found |= {self._writers[it] for it in effect.sources if it in self._writers}
        if effect.address is not None:
            self._access(pc, effect, found)
        if effect.role is CodeRole.STORE:
            return
        known = None if effect.role is not CodeRole.OTHER else constant_of(
            self.code.operation(pc), pc, self._known, self.code.xlen
        )
        self._move_stack(pc, effect)
        for target in effect.targets:
            self._writers[target], self._indices[target] = pc, index
            self._known.pop(target, None)
            if known is not None and len(effect.targets) == 1:
                self._known[target] = known

    def _access(self, pc: int, effect: CodeEffect, sources: set[int]) -> None:
        base = effect.address or 0
        if base in self._writers:
            self.bases.setdefault(pc, set()).add(self._writers[base])
        place = self.places[pc] = self._memory_place(base, effect.offset)
        key = place, effect.size
        if effect.role is CodeRole.STORE:
            self.stored.add(pc)
            value = effect.sources[1:] or effect.sources
            self._memory[key] = {self._writers[it] for it in value if it in self._writers} | {pc}
            return
        sources |= self._memory.get(key, set())
        if effect.role is CodeRole.ATOMIC and not effect.name.startswith(_SWAPS):
            sources.add(pc)  # it counts in memory

    def _memory_place(self, base: int, offset: int) -> MemoryPlace:
        if base == 0:
            return MemoryPlace(None, offset)
        if base in self._known:
            return MemoryPlace(None, self._known[base] + offset & (1 << self.code.xlen) - 1)
        if base == SP and self._sp is not None:
            return MemoryPlace("sp", self._sp + offset)
        return MemoryPlace(self._indices.get(base, -base), offset)

    def _move_stack(self, pc: int, effect: CodeEffect) -> None:
        if SP in effect.targets:
            op = self.code.operation(pc)
            moved = op.name == "addi" and op.rs1 == SP and self._sp is not None
            self._sp = self._sp + op.imm if moved and self._sp is not None else None

    def reached(self, starts: Iterable[int]) -> set[int]:
        """Return the instructions on which some depend, these included."""
        seen, waiting = set[int](), list(starts)
        while waiting:
            pc = waiting.pop()
            if pc not in seen:
                seen.add(pc)
                waiting += self.sources.get(pc, ())
        return seen


def loop_flow(code: Code, pcs: Sequence[int]) -> LoopFlow:
    """Return the dependences of a loop. *pcs*: its last rounds, in order, without handlers that interrupted it."""
    graph, body = _Dependences(code, pcs), frozenset(pcs)
    exits = tuple(sorted(pc for pc in body if leaves(code, pc, body)))
    used = graph.reached(exits)
    changes, waited, followed = set[Change](), dict[int, MemoryPlace](), list[int]()
    above = {pc: graph.reached(graph.sources.get(pc, ())) for pc in used}
    for pc in used:
        effect = code.effect(pc)
        if effect.role is CodeRole.UNKNOWN or effect.counts:
            changes.add(Change.COUNTS)
        elif pc in above[pc]:
            cycle = [it for it in above[pc] if pc in above[it]]
            follows = _follows(graph, cycle)
            changes.add(Change.FOLLOWS if follows else Change.COUNTS)
            followed += follows
        elif _waits(graph, pc, effect, above):
            changes.add(Change.WAITS)
            waited[pc] = graph.places.get(pc, MemoryPlace(None, effect.offset))
    names = [code.effect(pc).name for pc in waited]
    return LoopFlow(
        exits, frozenset(changes), waited, tuple(sorted(set(followed))), bool(graph.stored),
        any(graph.places[pc].base != "sp" for pc in graph.stored),
        any(name.startswith(_SWAPS) for name in names),
        any(code.operation(pc).name not in ("beq", "bne") for pc in exits),
    )  # fmt: skip


def leaves(code: Code, pc: int, body: frozenset[int]) -> bool:
    """Return whether an instruction is a branch that leads out of a loop."""
    effect = code.effect(pc)
    if effect.role is not CodeRole.BRANCH:
        return False
    op = code.operation(pc)
    return not {pc + op.length, pc + op.imm} <= body


def _follows(graph: _Dependences, cycle: Sequence[int]) -> list[int]:
    """Return the loads of a cycle whose results become addresses: not those that read a counter back from memory."""
    loads = [pc for pc in cycle if graph.code.effect(pc).role in (CodeRole.LOAD, CodeRole.ATOMIC)]
    inside = set(cycle)
    return [pc for pc in loads if graph.bases.get(pc, set()) & inside]


def _waits(graph: _Dependences, pc: int, effect: CodeEffect, above: Mapping[int, set[int]]) -> bool:
    """Return whether an instruction reads what the loop does not change, from a place that it does not change."""
    if effect.role is CodeRole.CSR:
        return True
    if effect.role not in (CodeRole.LOAD, CodeRole.ATOMIC):
        return False
    moved = graph.reached(graph.bases.get(pc, ()))
    return not any(it in above.get(it, graph.reached(graph.sources.get(it, ()))) for it in moved)
