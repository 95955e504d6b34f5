"""Which conditional branches of the code are the conditions of a decision in the source text.

A decision is found in the code where branches lead to each other as its conditions do, through code without further
branches, and where the line table has them in its place: all in its statement, and all but one in the expression itself
(gcc gives the first condition the place of the statement, or all of them that of the `!` in front, or of `? :` behind;
clang the last one that of the whole expression, or of the statement). The branch of the last condition may be one of
a value, to which the other conditions give a constant where they decide the result: all ways of results lead through
it then (a *joined* decision). Where no branches fit, or these do in two ways, the decision is not determined: a
condition that is computed without a branch, or with several; code that was optimised, or comes from a macro.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.reports.coverage.conditions.source_text import FALSE, TRUE, SourceDecision, SourceExtent, SourcePoint

_STEPS_AT_MOST = 256
_COPIES_AT_MOST = 64
_CONDITIONS_AT_MOST = 64


class ConditionBranch(NamedTuple):
    """The branch of a condition at *pc*: it leads to *target* if it is taken, else to *follows*. *true_taken*: it is
    taken if the condition is true.
    """

    pc: int
    target: int
    follows: int
    true_taken: bool


class CodeDecision(NamedTuple):
    """A copy of a decision in the code: the *branches* of its conditions, in their order. *joined*: the last one also
    runs after a condition before it has decided the result.
    """

    source: SourceDecision
    branches: tuple[ConditionBranch, ...]
    joined: bool

    @property
    def key(self) -> tuple[int, ...]:
        """The addresses of the branches, which no other decision has."""
        return tuple(branch.pc for branch in self.branches)


class _CodeLanding(NamedTuple):
    """Where code leads: the next *branch* on the way, None: there is none; *place*: where the way begins, behind
    jumps.
    """

    branch: int | None
    place: int


class _BranchBinding(NamedTuple):
    """Branches for the first conditions of a decision. *nodes*: where the ways to others lead, by their numbers;
    *results*: where TRUE and FALSE are; *joins*: where conditions before the last one lead that decide the result.
    """

    decision: SourceDecision
    joined: bool
    nodes: dict[int, _CodeLanding]
    results: dict[int, int]
    joins: set[_CodeLanding]
    branches: tuple[ConditionBranch, ...]

    def copied(self) -> "_BranchBinding":
        """Return one that can be changed by itself."""
        return self._replace(nodes=dict(self.nodes), results=dict(self.results), joins=set(self.joins))


class DecisionMatcher:
    """Finds the decisions of a source file in the code of a program. *branches*: where its conditional branches are in
    the text, by their addresses; *point_at*: returns that of any instruction of it, None if it is not known.
    """

    def __init__(
        self, image: Image, branches: Mapping[int, SourcePoint], point_at: Callable[[int], SourcePoint | None]
    ) -> None:
        self._image, self._branches, self._point_at = image, branches, point_at
        self._by_line: dict[int, list[int]] = {}
        for pc, point in branches.items():
            self._by_line.setdefault(point.line, []).append(pc)

    def copies(self, decision: SourceDecision) -> list[CodeDecision] | None:
        """Return the copies of a decision in the code; None: there is code of it, but it is not determined."""
        near = sorted(self._near(decision))
        if not any(self._is_of(decision, pc) for pc in near):
            return []
        if len(decision.conditions) > _CONDITIONS_AT_MOST:
            return None
        found = [copy for root in near for copy in self._rooted(decision, root)]
        used = [pc for copy in found for pc in copy.key]
        left = [pc for pc in near if self._is_inside(decision, pc) and pc not in used]
        if not found or len(set(used)) != len(used) or left or len(found) > _COPIES_AT_MOST:
            return None
        return found

    def _near(self, decision: SourceDecision) -> Iterator[int]:
        """Yield the branches in the statement of a decision."""
        start, end = decision.statement
        for line in range(start.line, end.line + 1):
            yield from (pc for pc in self._by_line.get(line, ()) if _is_in(self._branches[pc], decision.statement))

    def _is_inside(self, decision: SourceDecision, pc: int | None) -> bool:
        return pc is not None and _is_in(self._branches[pc], decision.extent)

    def _is_of(self, decision: SourceDecision, pc: int) -> bool:
        """Return whether a branch is inside a decision, or where what takes its result is: gcc has the branches there
        of a decision that becomes a number, and of one that it turns round.
        """
        return self._is_inside(decision, pc) or self._branches[pc] in decision.takers

    def _rooted(self, decision: SourceDecision, root: int) -> Iterator[CodeDecision]:
        """Yield the copies whose first condition is the branch *root*."""
        for bound, joined in self._bound(decision, root):
            found = CodeDecision(decision, bound, joined)
            outside = sum(not self._is_of(decision, pc) for pc in found.key)
            if outside <= 1 and not self._goes_on(decision, found):
                yield found

    def _bound(self, decision: SourceDecision, root: int) -> Iterator[tuple[tuple[ConditionBranch, ...], bool]]:
        """Yield the ways to give the conditions branches, the first one *root*; and whether these are joined."""
        for joined in (False, True):
            start = _BranchBinding(decision, joined, {0: _CodeLanding(root, -1)}, {}, set(), ())
            for found in self._bind(start):
                yield found.branches, joined

    def _bind(self, binding: "_BranchBinding") -> Iterator["_BranchBinding"]:
        number, decision = len(binding.branches), binding.decision
        if number == len(decision.conditions):
            if self._is_sound(binding):
                yield binding
            return
        node = binding.nodes.get(number)
        branch = None if node is None else node.branch
        instruction = None if branch is None else self._instruction(branch)
        if branch is None or instruction is None or instruction.offset is None or not instruction.is_branch:
            return
        mask = (1 << self._image.xlen) - 1
        target, follows = branch + instruction.offset & mask, branch + instruction.length & mask
        for true_taken in (True, False):
            ways = (target, follows) if true_taken else (follows, target)
            more = binding.copied()
            if all(map(lambda way, edge: self._fits(more, way, edge), ways, decision.edges[number])):
                one = ConditionBranch(branch, target, follows, true_taken)
                yield from self._bind(more._replace(branches=(*binding.branches, one)))

    def _is_sound(self, binding: "_BranchBinding") -> bool:
        """Return whether the branches follow each other, and, of a joined decision, all joins lead to that of the last
        condition, which is computed on its own way alone.
        """
        last, extent = binding.nodes[len(binding.branches) - 1], binding.decision.conditions[-1]
        pcs = [branch.pc for branch in binding.branches]
        if pcs != sorted(set(pcs)):
            return False
        if not binding.joined:
            return True
        ways = [last, *binding.joins]
        computes = [self._is_computed(way.place, last.branch or 0, extent) for way in ways]
        tests_value = binding.branches[-1].true_taken == self._taken_if_not_zero(pcs[-1])
        one_computes = computes == [True, *(False for _ in binding.joins)]
        return tests_value and one_computes and all(way.branch == last.branch for way in ways)

    def _taken_if_not_zero(self, branch: int) -> bool | None:
        """Return whether a branch is taken if a value is not 0, or if it is; None: it compares something else."""
        code = int.from_bytes(self._image.read(branch, 2), "little")
        if code & 3 == 1:
            return {6: False, 7: True}.get(code >> 13)  # c.beqz, c.bnez
        code |= int.from_bytes(self._image.read(branch + 2, 2), "little") << 16
        with_zero = not code >> 20 & 31 or not code >> 15 & 31
        return {0: False, 1: True}.get(code >> 12 & 7) if with_zero else None  # beq, bne

    def _is_computed(self, start: int, branch: int, extent: SourceExtent) -> bool:
        """Return whether the way to a branch has code of an expression."""
        pc = start
        for _ in range(_STEPS_AT_MOST):
            instruction = self._instruction(pc)
            if pc == branch or instruction is None:
                return False
            point = self._point_at(pc)
            if point is not None and extent.start <= point < extent.end:
                return True
            jumps = instruction.is_inferable_jump and instruction.itype is not IType.INFERABLE_CALL
            pc += instruction.offset if jumps and instruction.offset is not None else instruction.length
        return False

    def _fits(self, binding: "_BranchBinding", way: int, edge: int) -> bool:
        """Return whether a way can be an edge of a decision, and note what that says."""
        landing = self._landing(way)
        is_last = len(binding.branches) == len(binding.decision.conditions) - 1
        if edge in (TRUE, FALSE) and binding.joined and not is_last:
            binding.joins.add(landing)
            return True
        if edge in (TRUE, FALSE):
            other = binding.results.get(FALSE if edge == TRUE else TRUE)
            return binding.results.setdefault(edge, landing.place) == landing.place != other
        point = self._branches.get(landing.branch or -1)
        is_near = point is not None and _is_in(point, binding.decision.statement)
        return is_near and binding.nodes.setdefault(edge, landing) == landing

    def _goes_on(self, decision: SourceDecision, copy: CodeDecision) -> bool:
        """Return whether a result leads on to a branch of the same expression: these are not all conditions of it."""
        for branch, edges in zip(copy.branches, decision.edges, strict=True):
            ways = (branch.target, branch.follows) if branch.true_taken else (branch.follows, branch.target)
            for way, edge in zip(ways, edges, strict=True):
                after = self._landing(way).branch
                own = (copy.key[0], copy.key[-1]) if copy.joined else copy.key[:1]
                if edge < 0 and after in self._branches and after not in own and self._is_inside(decision, after):
                    return True
        return False

    def _landing(self, pc: int) -> _CodeLanding:
        """Follow the code from an address on: past calls, which return; up to a branch, or to what leads elsewhere."""
        place: int | None = None
        for _ in range(_STEPS_AT_MOST):
            instruction = self._instruction(pc)
            if instruction is None:
                break
            jumps = instruction.is_inferable_jump and instruction.itype is not IType.INFERABLE_CALL
            if jumps and instruction.offset is not None:
                pc += instruction.offset
                continue
            place = pc if place is None else place
            if instruction.is_branch:
                return _CodeLanding(pc, place)
            if instruction.is_uninferable and instruction.itype is not IType.UNINFERABLE_CALL:
                break
            pc += instruction.length
        return _CodeLanding(None, pc if place is None else place)

    def _instruction(self, pc: int) -> Instruction | None:
        try:
            return self._image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None


def _is_in(point: SourcePoint, extent: SourceExtent) -> bool:
    """Return whether a place is in an extent, or is the bracket in front of it."""
    start = extent.start._replace(column=extent.start.column - 1)
    return start <= point < extent.end
