"""Records: their wording, their times, whether the code agrees with them, and what ran between two of them.

A `CtrRecord` is a control transfer that a hart recorded, whatever the version. It has the cycles since the previous
record. What it says of the control flow is compared with its instruction (`seen`).

What ran between two records is known if there is only one route. A transfer that leaves no record may have happened;
one that leaves a record did not, or there would be one. So the code between two records is a graph: a node is an
address and what is known of the registers there, an edge is a transfer that is not recorded. If one leads to an unknown
address (an indirect jump, missing code), it may have led anywhere. What ran is known as long as only one route leads to
the instruction of the next record. The assumption: a program that reaches it does not switch recording off, reach it
again and switch recording on again, all unseen.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from rvtrace_gdb.decode.ctr.transfers import CodeTransfers, ControlTransfer, TransferBlock, TransferRegisters
from rvtrace_gdb.decode.history.events import TrapKind
from rvtrace_gdb.decode.program.instructions import IType


class CtrRecord(NamedTuple):
    """One transfer.

    source   address of the instruction it left; None: in a mode that is not recorded (the register reads 0)
    target   its target; None as for *source*
    kind     ctrdata.TYPE, NONE if the hart does not report it. For EXCEPTION and INTERRUPT, *source* did not retire
    mispredicted
    cycles   since the previous record, as far as known; a lower bound if the exponent cut bits off
    saturated: *cycles* is the maximum of the counter
    offset   byte of the trace at which it is
    reserved  the code in ctrdata.TYPE if no transfer has that code; otherwise 0
    """

    source: int | None
    target: int | None
    kind: IType
    mispredicted: bool = False
    cycles: int | None = None
    saturated: bool = False
    offset: int = 0
    reserved: int = 0


def impossible(record: CtrRecord, xlen: int) -> str:
    """Return the content of a record that no hart writes, "" if there is none.

    Control Transfer Records 1.0, "Control Transfer Type Definitions"; Privileged Architecture: virtual addresses of at
    most 57 bits (Sv57), sign-extended, physical ones of at most 56.
    """
    if record.reserved:
        return f"a record of type {record.reserved}"
    for what, address in (("source", record.source), ("target", record.target)):
        if xlen == 64 and address is not None and address >> 56 not in (0, 0xFF):
            return f"a record whose {what} is 0x{address:x}"
    return ""


@dataclass(frozen=True)
class RecordOptions:
    """How the hart records.

    kinds     the transfers that were recorded when the records were made; others left no trace
    ras       RAS emulation: calls alone are recorded, and removed when the function returns
    end       where the hart was when the records were read, if it recorded up to there; else None
    hidden    it may have been in modes that are not recorded, or recorded only at times: it left and came back unseen
    begin     where the hart was when recording began, if all records since then are there; else None
    """

    kinds: frozenset[IType] = frozenset(IType) - {IType.NONE, IType.NOT_TAKEN, IType.UNINFERABLE_JUMP}
    ras: bool = False
    end: int | None = None
    hidden: bool = False
    begin: int | None = None


TYPE_NAMES: Mapping[IType, str] = {
    IType.NONE: "unknown",
    IType.EXCEPTION: "exception",
    IType.INTERRUPT: "interrupt",
    IType.TRAP_RETURN: "trap return",
    IType.NOT_TAKEN: "not-taken branch",
    IType.TAKEN: "taken branch",
    IType.UNINFERABLE_JUMP: "unknown",
    IType.UNINFERABLE_CALL: "indirect call",
    IType.INFERABLE_CALL: "direct call",
    IType.UNINFERABLE_TAIL_CALL: "indirect jump",
    IType.INFERABLE_TAIL_CALL: "direct jump",
    IType.COROUTINE_SWAP: "co-routine swap",
    IType.RETURN: "function return",
    IType.OTHER_UNINFERABLE: "other indirect jump",
    IType.OTHER_INFERABLE: "other direct jump",
}
"""ctrdata.TYPE (1.0, table "Control Transfer Type Definitions"). Codes 0, 6 and 7 name no transfer."""


def record_text(record: CtrRecord) -> str:
    """Return the line for a record: columns first, the meaning after " # "."""
    source, target = (_address_text(address) for address in (record.source, record.target))
    code = record.reserved or int(record.kind)
    line = f"Record source={source} target={target} TYPE={code} MISP={int(record.mispredicted)}"
    if record.cycles is not None:
        line += f" cycles={record.cycles} saturated={int(record.saturated)}"
    name = "reserved type" if record.reserved else TYPE_NAMES[record.kind]
    return f"{line} # {name}{', mispredicted' if record.mispredicted else ''}"


def _address_text(address: int | None) -> str:
    return "?" if address is None else f"{address:#x}"


ROUNDED_FROM = 1 << 13
"""From this count on, an exponent cuts bits off (1.0, "Cycle Counting": CCE > 1)."""


def moments(records: Sequence[CtrRecord], *, ras: bool) -> list[int | None]:
    """Return the time of each record, counted from the first of the newest row of records without a break; None before
    it.

    With RAS emulation, a co-routine swap replaces the record from which its cycles would count.
    """
    first = len(records) - 1
    while first > 0 and _counts(records[first], ras):
        first -= 1
    if len(records) - first < 2:
        return [None] * len(records)
    row = accumulate((record.cycles or 0 for record in records[first + 1 :]), initial=0)
    return [*[None] * first, *row]


def is_rounded(record: CtrRecord) -> bool:
    """Return whether more cycles may have passed than the record says."""
    return record.cycles is not None and record.cycles >= ROUNDED_FROM


def _counts(record: CtrRecord, ras: bool) -> bool:
    swap = ras and record.kind is IType.COROUTINE_SWAP
    return record.cycles is not None and not record.saturated and not swap


_TRAPS = {
    IType.EXCEPTION: TrapKind.EXCEPTION,
    IType.INTERRUPT: TrapKind.INTERRUPT,
    IType.NONE: TrapKind.UNKNOWN,
}
_LEAVES_MODE = frozenset(_TRAPS) | {IType.TRAP_RETURN}
_ALIKE = {
    IType.TAKEN: IType.NOT_TAKEN,
    IType.OTHER_UNINFERABLE: IType.UNINFERABLE_TAIL_CALL,
    IType.OTHER_INFERABLE: IType.INFERABLE_TAIL_CALL,
}
"""Types that are one kind of instruction, or that harts need not tell apart."""


class Interpretation(NamedTuple):
    """The meaning of a record.

    source, target  as in the record; None: in a mode that is not recorded
    retired         the instruction at *source* retired
    trap            which trap it is, None for none
    wrong           why record and program contradict each other at *source*, "" if they do not
    """

    source: int | None
    target: int | None
    retired: bool
    trap: TrapKind | None = None
    wrong: str = ""


def interpret(record: CtrRecord, code: CodeTransfers) -> Interpretation:
    """Return what *record* means for the program. Its addresses must be those of a hart; all else may be anything."""
    source = None if record.source is None else record.source & code.mask
    target = None if record.target is None else record.target & code.mask
    if record.kind not in _LEAVES_MODE:  # stays in its mode: a 0 is an address
        source, target = source or 0, target or 0
    if source is None:
        return Interpretation(None, target, False, _TRAPS.get(record.kind, _TRAPS[IType.NONE]))
    if record.kind in (IType.EXCEPTION, IType.INTERRUPT):
        return Interpretation(source, target, False, _TRAPS[record.kind])
    step = code.transfer_at(source)
    if record.kind is IType.NONE:
        return _untyped(source, target, step)
    if isinstance(step, str):
        return Interpretation(source, target, True)
    if record.kind is IType.NOT_TAKEN and step.is_branch:
        target = step.fall  # what ctrtarget holds was not said before 2025
    return Interpretation(source, target, True, wrong=_contradiction(record.kind, target, step))


def _contradiction(kind: IType, target: int | None, step: ControlTransfer) -> str:
    """Return why a record of this *kind* cannot belong to an instruction, "" if it can."""
    if step.instruction.custom:
        return ""
    if _ALIKE.get(kind, kind) is not _ALIKE.get(step.kind, step.kind):
        there = TYPE_NAMES[step.kind] if step.kind not in (IType.NONE, IType.EXCEPTION, IType.NOT_TAKEN) else ""
        there = "branch" if step.is_branch else there or "plain instruction"
        return f"the record says {TYPE_NAMES[kind]}, but the instruction there is a {there}"
    leads = step.target if step.is_direct or kind is IType.TAKEN else None
    if leads is not None and leads != target:
        return f"the {TYPE_NAMES[kind]} there leads to 0x{leads:x}, not to 0x{target or 0:x}"
    return ""


def _untyped(source: int, target: int | None, step: ControlTransfer | str) -> Interpretation:
    """Return the meaning of a record without TYPE: the instruction determines it. An indirect jump is assumed to have
    jumped.
    """
    if isinstance(step, str):
        return Interpretation(source, target, False)
    jumps = step.instruction.is_uninferable and (target is not None or step.kind is IType.TRAP_RETURN)
    leads = step.target is not None and step.target == target
    passes = step.is_branch and step.fall == target
    if jumps or leads or passes or step.instruction.custom:
        return Interpretation(source, target, True)
    return Interpretation(
        source, target, False, _TRAPS[IType.EXCEPTION if step.kind is IType.EXCEPTION else IType.NONE]
    )


_NODES_AT_MOST = 1 << 12


class RouteNode(NamedTuple):
    """A place on a route."""

    pc: int
    known: TransferRegisters


class RouteGoal(NamedTuple):
    """The end of a route: before the instruction at *pc*. *target*: where that instruction went, None for anywhere."""

    pc: int
    target: int | None = None


class Leg(NamedTuple):
    """What runs from a node on.

    pcs      the instructions that retire
    nodes    the nodes that may follow
    blind    it may continue anywhere; *missing*: there is no code, *switches*: it changes what is recorded
    at       the instruction it ends at, or the address without one
    why      why it is not known how it continues (of a fork "": it depends on which nodes lead to the goal); for a leg
             that is *dead*, why it cannot continue at all
    """

    pcs: tuple[int, ...]
    nodes: tuple[RouteNode, ...]
    at: int
    why: str = ""
    blind: bool = False
    missing: bool = False
    switches: bool = False

    @property
    def dead(self) -> bool:
        """Whether the leg cannot continue without leaving a record, and there is none."""
        return not self.nodes and not self.blind


class RecordRoute(NamedTuple):
    """What ran.

    parts    the instructions, up to the goal or as far as they are known
    known    what is known of the registers at the goal
    why      "" if the goal was reached, else why not
    missing  the address where there is no code
    wrong    the address where code and records contradict each other
    switched  it led over an instruction that changes what is recorded
    """

    parts: list[tuple[int, ...]]
    known: TransferRegisters | None = None
    why: str = ""
    missing: int | None = None
    wrong: int | None = None
    switched: bool = False


class Routes:
    """Finds routes in one program.

    *kinds*: the transfers that are recorded. *sure*: so are all traps; otherwise, traps that are not recorded are
    assumed to return to where they hit. *ras*: only calls are recorded, until they return (which RAS emulation assumes
    to be to the instruction after the call).
    """

    def __init__(self, code: CodeTransfers, kinds: frozenset[IType], *, sure: bool, ras: bool = False) -> None:
        self._legs = Legs(code, frozenset() if ras else kinds, sure=sure and not ras, ras=ras)

    def find(self, start: int, registers: TransferRegisters, goal: RouteGoal) -> RecordRoute:
        """Return the route from *start*. If it is not known to the end, its beginning is returned, which ran if all is
        *sure*.
        """
        node = RouteNode(start, registers)
        search = _RouteSearch(self._legs, goal)
        if not search.reaches(node):
            if goal.target is not None:  # what was known of the registers may have been overwritten
                return self.find(start, registers, RouteGoal(goal.pc))
            return search.none(start)
        parts: list[tuple[int, ...]] = []
        for _ in range(_NODES_AT_MOST):
            leg = search.leg(node)
            if search.fits(node):
                again = search.comes_back(leg)
                why = f"the number of passes through 0x{goal.pc:x} was not recorded" if again else ""
                return RecordRoute(parts, None if again else node.known, why)
            parts.append(leg.pcs)
            if leg.why:
                return RecordRoute(parts, None, leg.why, leg.at if leg.missing else None, switched=leg.switches)
            nodes = [following for following in leg.nodes if search.reaches(following)]
            if len(nodes) > 1:
                return RecordRoute(parts, None, f"the direction of the branch at 0x{leg.at:x} was not recorded")
            if not nodes:  # looking further was given up
                break
            node = nodes[0]
        return RecordRoute(parts, None, "too many paths through the code are possible before the next record")


class _RouteSearch:
    """A search for the nodes that lead to one goal, or may lead to it. Results are cached."""

    def __init__(self, legs: "Legs", goal: RouteGoal) -> None:
        self._legs, self._goal = legs, goal
        self._routes_by_node: dict[RouteNode, Leg] = {}
        self._found: dict[bool, dict[RouteNode, bool]] = {True: {}, False: {}}

    def leg(self, node: RouteNode) -> Leg:
        """Return what runs from *node* on."""
        known = self._routes_by_node.get(node)
        if known is None:
            known = self._routes_by_node[node] = self._legs.leg_of(node, self._goal)
        return known

    def fits(self, node: RouteNode) -> bool:
        """Return whether a route may end at *node*."""
        return node.pc == self._goal.pc and self._legs.leads_to(node, self._goal.target)

    def comes_back(self, leg: Leg) -> bool:
        """Return whether a route leads from the goal to it again; one over code that changes what is recorded does not
        count.
        """
        if leg.blind:
            return not leg.switches
        return any(self.reaches(node, switches=False) for node in leg.nodes)

    def reaches(self, node: RouteNode, *, switches: bool = True) -> bool:
        """Return whether the goal may be reached from *node*; *switches*: also over code that
        changes what is recorded.
        """
        found = self._found[switches]
        if node in found:
            return found[node]
        came_from: dict[RouteNode, RouteNode | None] = {node: None}
        waiting = deque([node])
        while waiting:
            at = waiting.popleft()
            if found.get(at) or (at not in found and self._hits(at, switches)):
                back: RouteNode | None = at
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

    def _hits(self, node: RouteNode, switches: bool) -> bool:
        leg = self.leg(node)
        blind = leg.blind and (switches or not leg.switches)
        return blind or self.fits(node) or len(self._routes_by_node) > _NODES_AT_MOST

    def none(self, start: int) -> RecordRoute:
        """Return the result if no route leads from *start* to the goal, with the reason."""
        dead = next((leg for leg in self._routes_by_node.values() if leg.dead), None)
        if dead is None:
            return RecordRoute([], None, f"the code never reaches 0x{self._goal.pc:x}", wrong=start)
        return RecordRoute([], None, dead.why, wrong=dead.at)


class Legs:
    """Finds what runs from a node on: up to an instruction that may go elsewhere, or to the goal."""

    def __init__(self, code: CodeTransfers, kinds: frozenset[IType], *, sure: bool, ras: bool) -> None:
        self._code, self._kinds, self._sure, self._ras = code, kinds, sure, ras
        self._straight = kinds >= _ALL_JUMPS

    def leads_to(self, node: RouteNode, target: int | None) -> bool:
        """Return whether the instruction at a node may have gone to *target*; None: it need not go anywhere."""
        transfer = self._code.transfer_at(node.pc) if target is not None else ""
        if isinstance(transfer, str) or transfer.is_branch:
            return True
        return transfer.leads_to(node.known) in (None, target)

    def leg_of(self, node: RouteNode, goal: RouteGoal) -> Leg:
        """Return what runs from *node* on."""
        block = self._code.block(node.pc)
        if goal.pc in block.pcs[1:]:
            count = block.pcs.index(goal.pc, 1)
            there = node._replace(pc=goal.pc, known=block.up_to(count, node.known))
            return Leg(block.pcs[:count], (there,), goal.pc)
        if block.end is not None:
            return self._leg_of_block(
                block, block.end, node._replace(known=block.up_to(len(block.steps) - 1, node.known))
            )
        known = block.up_to(len(block.steps), node.known)
        if block.missing:
            comes = block.end_pc < goal.pc or not self._straight  # else what is there can only go on past the goal
            return Leg(block.pcs, (), block.end_pc, block.missing, blind=comes, missing=True)
        if block.switches:
            why = f"what was recorded after 0x{block.pcs[-1]:x}, which writes a register of CTR, is not known"
            return Leg(block.pcs, (), block.pcs[-1], why, blind=True, switches=True)
        return Leg(block.pcs, (node._replace(pc=block.end_pc, known=known),), block.end_pc)

    def _leg_of_block(self, block: TransferBlock, end: ControlTransfer, node: RouteNode) -> Leg:
        """Return the leg of a block whose last instruction may go elsewhere. *node* is the one before it."""
        known = node.known
        if end.kind is IType.EXCEPTION:
            return self._trap_leg(block.pcs[:-1], end, node)
        after = RouteNode(end.pc, end.after(known))
        if end.is_branch:
            return self._branch(block, end, after)
        name = TYPE_NAMES[end.kind]
        if end.kind in self._kinds:
            return Leg(block.pcs, (), end.pc, f"there is no record of the {name}")
        if self._ras and end.kind in _RETURNS:
            return Leg(block.pcs, (), end.pc, f"the {name} removes the record before it")
        if self._ras and end.kind in _CALLS:
            returned = node._replace(pc=end.fall, known=after.known.linked(1, None).linked(5, None))
            return Leg(block.pcs, (returned,), end.pc, f"the call at 0x{end.pc:x} has returned, and left no record")
        target = end.leads_to(known)
        if target is None:
            return Leg(block.pcs, (), end.pc, f"the target of the {name} at 0x{end.pc:x} was not recorded", blind=True)
        return Leg(block.pcs, (after._replace(pc=target),), end.pc)

    def _branch(self, block: TransferBlock, end: ControlTransfer, after: RouteNode) -> Leg:
        ways = {end.target: IType.TAKEN, end.fall: IType.NOT_TAKEN}
        if end.target == end.fall and self._kinds & _BRANCHES != _BRANCHES:
            return Leg(block.pcs, (after._replace(pc=end.fall),), end.pc)
        pcs = [pc for pc, kind in ways.items() if kind not in self._kinds and pc is not None]
        nodes = tuple(after._replace(pc=pc) for pc in pcs)
        return Leg(block.pcs, nodes, end.pc, "" if nodes else "there is no record of the branch")

    def _trap_leg(self, pcs: tuple[int, ...], end: ControlTransfer, node: RouteNode) -> Leg:
        """Return the leg of an ecall, an ebreak, or of what is not an instruction: none of them retires."""
        if self._sure and not end.halts:
            return Leg(pcs, (), end.pc, "there is no record of the exception")
        why = f"the effect of the {'ebreak' if end.halts else 'exception'} at 0x{end.pc:x} was not recorded"
        return Leg(pcs, (node._replace(pc=end.fall, known=node.known._replace(upper=None)),), end.pc, why)


_BRANCHES = frozenset({IType.TAKEN, IType.NOT_TAKEN})
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN, IType.COROUTINE_SWAP})
_ALL_JUMPS = frozenset(IType) - {
    IType.NONE, IType.EXCEPTION, IType.INTERRUPT, IType.NOT_TAKEN, IType.UNINFERABLE_JUMP
}  # fmt: skip
