"""Which branches of a loop really lead out of it: neither those of functions that it calls, which come back, nor those
around a part of it that did not run.

The loop is, in its own function, the natural loop of what ran: all that reaches its last instruction without going
through its first one, the header.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence

_FUNCTION_MOST = 4096
"""Instructions of a function that are looked at."""
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN, IType.COROUTINE_SWAP})
_JUMPS = frozenset({IType.OTHER_INFERABLE, IType.INFERABLE_TAIL_CALL})


def ways_out(evidence: Evidence, exits: Sequence[int], pcs: Sequence[int]) -> tuple[int, ...]:
    """Return those of the branches *exits* that lead out of the loop itself; all of them where that is not clear.
    *pcs*: the last rounds of the loop, in order.
    """
    own = _own_instructions(evidence, pcs)
    outer = [pc for pc in exits if pc in own]
    leading = [pc for pc in outer if _leads_out(evidence, pc, [it for it in pcs if it in own])]
    return tuple(leading or outer or exits)


def _own_instructions(evidence: Evidence, pcs: Sequence[int]) -> frozenset[int]:
    """Return the instructions of a loop that are not of functions that it calls."""
    depth, depths = 0, dict[int, int]()
    for pc in pcs:
        depths[pc] = min(depth, depths.get(pc, depth))
        itype = evidence.itype(pc)
        depth += (itype in _CALLS) - (itype in _RETURNS)
    least = min(depths.values(), default=0)
    return frozenset(pc for pc, it in depths.items() if it == least)


def _leads_out(evidence: Evidence, branch: int, own: Sequence[int]) -> bool:
    """Return whether the way of a branch that did not run leaves its loop; True if that is not known."""
    start, body = evidence.function_start(branch), frozenset(own)
    if start is None:
        return True
    entries = _reached(evidence, start, start, body) & body
    if len(entries) != 1:
        return True
    [header] = entries
    inside = {before for before, after in pairwise(own) if after == header} | (body - entries)
    others = [it for it in _successors(evidence, branch) if it not in body]
    return any(not _reached(evidence, start, it, body) & inside for it in others)


def _reached(evidence: Evidence, function: int, begin: int, stops: frozenset[int]) -> set[int]:
    """Return the instructions of a function that are reached from one of them, without going on behind *stops*."""
    seen, waiting = set[int](), [begin]
    while waiting and len(seen) < _FUNCTION_MOST:
        pc = waiting.pop()
        if pc in seen or evidence.function_start(pc) != function or not evidence.image.knows(pc):
            continue
        seen.add(pc)
        if pc not in stops:
            waiting += _successors(evidence, pc)
    return seen


def _successors(evidence: Evidence, pc: int) -> Iterator[int]:
    """Yield what may run after an instruction in its function, as far as the code says."""
    itype, op = evidence.itype(pc), evidence.code.operation(pc)
    if evidence.code.effect(pc).role is CodeRole.BRANCH:
        yield pc + op.length
        yield pc + op.imm
    elif itype in _JUMPS:
        yield pc + op.imm
    elif itype is IType.NONE or itype in _CALLS:
        yield pc + op.length
