"""Which branches of a function decide whether an instruction of it runs, once the function was entered.

A branch decides about an instruction if one of its ways always leads there and another one may not: the instruction
post-dominates a successor of the branch, and not the branch itself (Ferrante, Ottenstein, Warren: "The Program
Dependence Graph and Its Use in Optimization", 1987). Calls go on behind them. Where a function is left, by a return, a
jump to another one, or by going on past its end behind a call that does not return, is its exit; a loop without a way
out counts as one that is left at its last instruction. A jump through a table goes where the table says, and where it
has gone.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.coverage import FunctionCode, functions
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.reports.coverage.jump_tables import is_table_jump, jump_tables

_EXIT = -1
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP})
_LEAVING = frozenset({IType.RETURN, IType.TRAP_RETURN})

class Deciding(NamedTuple):
    """The instructions of a function that decide whether one of it runs: *branches*, and the *endless* jumps back of
    loops that are never left, which decide nothing themselves.
    """

    branches: frozenset[int] = frozenset()
    endless: frozenset[int] = frozenset()


_NOTHING = Deciding()
Successors = Mapping[int, frozenset[int]]
ExecutedTargets = Callable[[int], Iterable[int]]
"""Returns where an indirect jump at an address has gone."""


class Deciders:
    """The deciding branches of a program."""

    def __init__(self, image: Image, executed: ExecutedTargets) -> None:
        self._image, self._executed = image, executed
        self._functions = functions(image)
        self._starts = [it.start for it in self._functions]
        self._known: dict[int, Mapping[int, Deciding]] = {}

    def function_code(self, pc: int) -> FunctionCode | None:
        """Return the function that an instruction is of."""
        at = bisect_right(self._starts, pc) - 1
        found = self._functions[at] if at >= 0 else None
        return None if found is None or pc >= found.end else found

    def deciding(self, pc: int) -> Deciding:
        """Return what decides whether an instruction runs."""
        function = self.function_code(pc)
        if function is None:
            return _NOTHING
        found = self._known.get(function.start)
        if found is None:
            found = self._known[function.start] = deciding_branches(self.successors(function))
        return found.get(pc, _NOTHING)

    def successors(self, function: FunctionCode) -> Successors:
        """Return where each instruction of a function leads."""
        code = self._code_of(function)
        tables = jump_tables(self._image, [function])
        return {
            pc: frozenset(it if it in code else _EXIT for it in self._targets(pc, one, code, tables))
            for pc, one in code.items()
        }

    def _code_of(self, function: FunctionCode) -> Mapping[int, Instruction]:
        found, pc = dict[int, Instruction](), function.start
        try:
            while pc < function.end:
                found[pc] = self._image.instruction(pc)
                pc += found[pc].length
        except (CodeMissing, UndecodableInstruction):
            pass
        return found

    def _targets(
        self, pc: int, one: Instruction, code: Mapping[int, Instruction], tables: Mapping[int, tuple[int, ...]]
    ) -> Iterable[int]:
        mask, follows = (1 << self._image.xlen) - 1, pc + one.length
        if one.itype in _CALLS:
            return (follows,)
        if one.itype in _LEAVING:
            return (_EXIT,)
        if one.offset is not None:
            target = pc + one.offset & mask
            return (target, follows) if one.is_branch else (target,)
        if one.is_uninferable and is_table_jump(one):
            gone = {it for it in self._executed(pc) if it in code}
            return {*tables.get(pc, ()), *gone} or (_EXIT,)
        return (_EXIT,) if one.is_uninferable else (follows,)


def deciding_branches(successors: Successors) -> Mapping[int, Deciding]:
    """Return what decides about each instruction. *successors*: of each, with `_EXIT` for the exit."""
    ways = _with_exits(successors)
    above = _post_dominators(ways)
    found: dict[int, set[int]] = {}
    for branch, targets in ways.items():
        if len(targets) > 1:
            for target in targets:
                at = target
                while at != above[branch]:
                    found.setdefault(at, set()).add(branch)
                    at = above[at]
    real = {pc for pc, targets in successors.items() if len(targets) > 1}
    return {pc: Deciding(frozenset(it & real), frozenset(it - real)) for pc, it in found.items()}


def _with_exits(successors: Successors) -> Mapping[int, frozenset[int]]:
    """Return the same, where every instruction leads to the exit in the end."""
    ways, before = dict(successors), _predecessors(successors)
    reaching = _reaching({_EXIT}, before)
    for pc in sorted(ways, reverse=True):
        if pc not in reaching:
            ways[pc] = ways[pc] | {_EXIT}
            reaching |= _reaching({pc} | reaching, before)
    return ways


def _predecessors(ways: Successors) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {pc: [] for pc in (*ways, _EXIT)}
    for pc, targets in ways.items():
        for target in targets:
            found[target].append(pc)
    return found


def _reaching(nodes: set[int], before: Mapping[int, list[int]]) -> set[int]:
    found, waiting = set(nodes), list(nodes)
    while waiting:
        for pc in before[waiting.pop()]:
            if pc not in found:
                found.add(pc)
                waiting.append(pc)
    return found


def _post_dominators(ways: Successors) -> Mapping[int, int]:
    """Return the immediate post-dominator of each instruction (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance
    Algorithm", 2001, on the reversed graph).
    """
    order = _postorder(_predecessors(ways))
    numbers = {pc: number for number, pc in enumerate(order)}
    above = {_EXIT: _EXIT}
    changed = True
    while changed:
        changed = False
        for pc in reversed(order[:-1]):
            found: int | None = None
            for target in ways[pc]:
                if target in above:
                    found = target if found is None else _common(found, target, above, numbers)
            if found is not None and above.get(pc) != found:
                above[pc], changed = found, True
    return above


def _common(one: int, other: int, above: Mapping[int, int], numbers: Mapping[int, int]) -> int:
    while one != other:
        while numbers[one] < numbers[other]:
            one = above[one]
        while numbers[other] < numbers[one]:
            other = above[other]
    return one


def _postorder(before: Mapping[int, list[int]]) -> list[int]:
    """Return the instructions after all that lead to them: a walk from the exit backward, which comes last."""
    found, seen = list[int](), {_EXIT}
    waiting = [(_EXIT, iter(before[_EXIT]))]
    while waiting:
        pc, rest = waiting[-1]
        following = next((it for it in rest if it not in seen), None)
        if following is None:
            found.append(pc)
            waiting.pop()
        else:
            seen.add(following)
            waiting.append((following, iter(before[following])))
    return found
