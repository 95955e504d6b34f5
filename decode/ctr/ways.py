"""The way from one record to the next: the instructions in between, if there is one way only.

What leaves no record may have happened; what leaves one did not, or there would be one. So the code between two
records is a graph: its nodes are a place and what is known of the registers there, its edges the transfers that are
not recorded. Where one leads to a place nobody can tell (an indirect jump, code that is not there), it may have led
anywhere. What ran is known as long as one way alone leads to where the next record was made. Taken for granted: a
program that comes there does not switch recording off, come there again and have it on again, all unseen.
"""

from collections import deque
from typing import NamedTuple

from rvtrace_gdb.decode.ctr.code import Block, Code, Transfer
from rvtrace_gdb.decode.ctr.registers import Known
from rvtrace_gdb.decode.ctr.wording import TYPE_NAMES
from rvtrace_gdb.decode.instructions import IType

_NODES_AT_MOST = 1 << 12


class Node(NamedTuple):
    """A place on the way."""

    pc: int
    known: Known


class Goal(NamedTuple):
    """Where a way ends: before the instruction at *pc*. *target*: where that went, None for anywhere."""

    pc: int
    target: int | None = None


class Leg(NamedTuple):
    """What runs from a node on.

    pcs      the instructions that retire
    nodes    where it may go on
    blind    it may go on anywhere; *missing*: because there is no code, *switches*: because it changes what is recorded
    at       the instruction it ends at, or where there is none
    why      why it is not known how it goes on (of a fork "": it depends on which nodes lead to the goal); for a leg
             that is *dead*, why it cannot go on at all
    """

    pcs: tuple[int, ...]
    nodes: tuple[Node, ...]
    at: int
    why: str = ""
    blind: bool = False
    missing: bool = False
    switches: bool = False

    @property
    def dead(self) -> bool:
        """It cannot go on without leaving a record, and there is none."""
        return not self.nodes and not self.blind


class Way(NamedTuple):
    """What ran.

    parts    the instructions, up to the goal or as far as they are known
    known    what is known of the registers at the goal
    why      "" when the goal was reached, else why not
    missing  the address where there is no code
    wrong    the address where code and records contradict each other
    switched  it led over an instruction that changes what is recorded
    """

    parts: list[tuple[int, ...]]
    known: Known | None = None
    why: str = ""
    missing: int | None = None
    wrong: int | None = None
    switched: bool = False


class Ways:
    """Finds ways in one program. *kinds*: the transfers that are recorded. *sure*: so are all traps; else those that
    are not are taken to go back to where they hit. *ras*: calls are, until they return (which RAS emulation takes to be
    to behind the call); nothing else."""

    def __init__(self, code: Code, kinds: frozenset[IType], *, sure: bool, ras: bool = False) -> None:
        self._legs = Legs(code, frozenset() if ras else kinds, sure=sure and not ras, ras=ras)

    def find(self, start: int, known: Known, goal: Goal) -> Way:
        """The way from *start*. Where it is not known to the end, what it begins with: that ran if all is *sure*."""
        node = Node(start, known)
        search = _Search(self._legs, goal)
        if not search.reaches(node):
            if goal.target is not None:  # what was known of the registers may have been overwritten
                return self.find(start, known, Goal(goal.pc))
            return search.none(start)
        parts: list[tuple[int, ...]] = []
        for _ in range(_NODES_AT_MOST):
            leg = search.leg(node)
            if search.fits(node):
                again = search.comes_back(leg)
                why = f"how often 0x{goal.pc:x} was passed is not recorded" if again else ""
                return Way(parts, None if again else node.known, why)
            parts.append(leg.pcs)
            if leg.why:
                return Way(parts, None, leg.why, leg.at if leg.missing else None, switched=leg.switches)
            nodes = [following for following in leg.nodes if search.reaches(following)]
            if len(nodes) > 1:
                return Way(parts, None, f"which way the branch at 0x{leg.at:x} went is not recorded")
            if not nodes:  # looking further was given up
                break
            node = nodes[0]
        return Way(parts, None, "the code that can have run before the next record has too many ways")


class _Search:
    """Which nodes lead to one goal, or may. What was found is kept."""

    def __init__(self, legs: "Legs", goal: Goal) -> None:
        self._legs, self._goal = legs, goal
        self._known: dict[Node, Leg] = {}
        self._found: dict[bool, dict[Node, bool]] = {True: {}, False: {}}

    def leg(self, node: Node) -> Leg:
        """What runs from *node* on."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._legs.of(node, self._goal)
        return known

    def fits(self, node: Node) -> bool:
        """Whether a way may end at *node*."""
        return node.pc == self._goal.pc and self._legs.leads_to(node, self._goal.target)

    def comes_back(self, leg: Leg) -> bool:
        """Whether behind the goal there is a way to it again. One over code that changes what is recorded is none."""
        if leg.blind:
            return not leg.switches
        return any(self.reaches(node, switches=False) for node in leg.nodes)

    def reaches(self, node: Node, *, switches: bool = True) -> bool:
        """Whether the goal may be reached from *node*; *switches*: over code that changes what is recorded, too."""
        found = self._found[switches]
        if node in found:
            return found[node]
        came_from: dict[Node, Node | None] = {node: None}
        waiting = deque([node])
        while waiting:
            at = waiting.popleft()
            if found.get(at) or (at not in found and self._hits(at, switches)):
                back: Node | None = at
                while back is not None:
                    found[back] = True
                    back = came_from[back]
                return True
            if at not in found:
                new = [following for following in self.leg(at).nodes if following not in came_from]
                came_from.update(dict.fromkeys(new, at))
                waiting += new
        found.update(dict.fromkeys(came_from, False))
        return False

    def _hits(self, node: Node, switches: bool) -> bool:
        leg = self.leg(node)
        blind = leg.blind and (switches or not leg.switches)
        return blind or self.fits(node) or len(self._known) > _NODES_AT_MOST

    def none(self, start: int) -> Way:
        """There is no way to the goal from *start*: why."""
        dead = next((leg for leg in self._known.values() if leg.dead), None)
        if dead is None:
            return Way([], None, f"the code never comes to 0x{self._goal.pc:x}", wrong=start)
        return Way([], None, dead.why, wrong=dead.at)


class Legs:
    """What runs from a node on: up to an instruction that may go elsewhere, or to the goal."""

    def __init__(self, code: Code, kinds: frozenset[IType], *, sure: bool, ras: bool) -> None:
        self._code, self._kinds, self._sure, self._ras = code, kinds, sure, ras
        self._straight = kinds >= _ALL_JUMPS

    def leads_to(self, node: Node, target: int | None) -> bool:
        """Whether the instruction at a node may have gone to *target*; None: it need not go anywhere."""
        transfer = self._code.at(node.pc) if target is not None else ""
        if isinstance(transfer, str) or transfer.is_branch:
            return True
        return transfer.leads_to(node.known) in (None, target)

    def of(self, node: Node, goal: Goal) -> Leg:
        """What runs from *node* on."""
        block = self._code.block(node.pc)
        if goal.pc in block.pcs[1:]:
            count = block.pcs.index(goal.pc, 1)
            there = node._replace(pc=goal.pc, known=block.up_to(count, node.known))
            return Leg(block.pcs[:count], (there,), goal.pc)
        if block.end is not None:
            return self._end(block, block.end, node._replace(known=block.up_to(len(block.steps) - 1, node.known)))
        known = block.up_to(len(block.steps), node.known)
        if block.missing:
            comes = block.behind < goal.pc or not self._straight  # else what is there can only go on past the goal
            return Leg(block.pcs, (), block.behind, block.missing, blind=comes, missing=True)
        if block.switches:
            why = f"what was recorded behind 0x{block.pcs[-1]:x}, which writes a register of CTR, is not known"
            return Leg(block.pcs, (), block.pcs[-1], why, blind=True, switches=True)
        return Leg(block.pcs, (node._replace(pc=block.behind, known=known),), block.behind)

    def _end(self, block: Block, end: Transfer, node: Node) -> Leg:
        """The leg of a block whose last instruction may go elsewhere. *node*: before it."""
        known = node.known
        if end.kind is IType.EXCEPTION:
            return self._trap(block.pcs[:-1], end, node)
        after = Node(end.pc, end.after(known))
        if end.is_branch:
            return self._branch(block, end, after)
        name = TYPE_NAMES[end.kind]
        if end.kind in self._kinds:
            return Leg(block.pcs, (), end.pc, f"there is no record of the {name}")
        if self._ras and end.kind in _RETURNS:
            return Leg(block.pcs, (), end.pc, f"the {name} takes away the record before it")
        if self._ras and end.kind in _CALLS:
            returned = node._replace(pc=end.fall, known=after.known.linked(1, None).linked(5, None))
            return Leg(block.pcs, (returned,), end.pc, f"the call at 0x{end.pc:x} has returned, and left no record")
        target = end.leads_to(known)
        if target is None:
            return Leg(block.pcs, (), end.pc, f"where the {name} at 0x{end.pc:x} went is not recorded", blind=True)
        return Leg(block.pcs, (after._replace(pc=target),), end.pc)

    def _branch(self, block: Block, end: Transfer, after: Node) -> Leg:
        ways = {end.target: IType.TAKEN, end.fall: IType.NOT_TAKEN}
        if end.target == end.fall and self._kinds & _BRANCHES != _BRANCHES:
            return Leg(block.pcs, (after._replace(pc=end.fall),), end.pc)
        pcs = [pc for pc, kind in ways.items() if kind not in self._kinds and pc is not None]
        nodes = tuple(after._replace(pc=pc) for pc in pcs)
        return Leg(block.pcs, nodes, end.pc, "" if nodes else "there is no record of the branch")

    def _trap(self, pcs: tuple[int, ...], end: Transfer, node: Node) -> Leg:
        """ecall, ebreak and what is not an instruction do not retire."""
        if self._sure and not end.halts:
            return Leg(pcs, (), end.pc, "there is no record of the exception")
        why = f"what the {'ebreak' if end.halts else 'exception'} at 0x{end.pc:x} did is not recorded"
        return Leg(pcs, (node._replace(pc=end.fall, known=node.known._replace(upper=None)),), end.pc, why)


_BRANCHES = frozenset({IType.TAKEN, IType.NOT_TAKEN})
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN, IType.COROUTINE_SWAP})
_ALL_JUMPS = frozenset(IType) - {
    IType.NONE, IType.EXCEPTION, IType.INTERRUPT, IType.NOT_TAKEN, IType.UNINFERABLE_JUMP
}  # fmt: skip
