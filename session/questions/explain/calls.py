"""What calls say of how a run ended: calls without end, a return to where no call came from."""

from collections.abc import Iterator

from rvtrace_gdb.decode.calls.mismatched_returns import mismatched_returns
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.events import MismatchedReturn
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.explain.stores import address_at, last_store

_DEEP, _FUNCTIONS_MOST = 500, 3
_RA, _EPILOGUE_MOST = 1, 64


def recursion(evidence: Evidence, places: ProgramPlaces, position: int) -> ExplainedFinding | None:
    """Return calls without end at a position: so many of so few functions are active, and none returned meanwhile."""
    frames = [it for it in evidence.frames(position, _DEEP + 8) if it.kind is not StackOperationKind.TRAP]
    functions = {it.function for it in frames[8:]}
    if len(frames) < _DEEP or len(functions) > _FUNCTIONS_MOST:
        return _certain_recursion(evidence, places)
    inner, outer = frames[8], frames[-1]
    if inner.call is None or outer.call is None:
        return None
    calls = sum(evidence.count_between(it, outer.call, inner.call) for it in functions)
    depth = inner.level - outer.level
    if calls > 1.2 * depth + len(functions):
        return None  # they return, too
    names = ", ".join(sorted({places.function_name(it) for it in functions if it >= 0}))
    depth = max(inner.level, depth)
    text = f"calls without end: {names} {'calls itself' if len(functions) == 1 else 'call each other'}, {depth} deep"
    return ExplainedFinding("endless-recursion", text, places.place_at(inner.call), [], {"depth": depth})


def _certain_recursion(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return calls without end that the code at the end leads to, without a branch: E-Trace sends nothing for them."""
    calls = () if evidence.last < 0 else evidence.call_cycle(evidence.history.pc(evidence.last))
    if not calls:
        return None
    names = ", ".join(sorted({places.function_name(it) for it in calls}))
    text = f"calls without end: {names} {'calls itself' if len(calls) == 1 else 'call each other'}, without a branch"
    return ExplainedFinding("endless-recursion", text, places.place_at(evidence.last), [], {})


def _return_target(evidence: Evidence, position: int) -> int:
    """Return where a return went: where the trap hit that came at once, if one did."""
    trap = next((it for it in evidence.trap_events if it.position == position and it.last_pc is not None), None)
    return evidence.history.pc(position) if trap is None or trap.last_pc is None else trap.last_pc


def smashed_return(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return the first return that did not go where its call came from."""
    found = mismatched_returns(evidence.history, evidence.program, evidence.call_index, evidence.progress)
    for event in found:
        if event.position in evidence.part and isinstance(event.fact, MismatchedReturn):
            at = event.position - 1
            source, target = evidence.history.pc(at), _return_target(evidence, event.position)
            where = places.function_name(target) if places.is_code(target) else places.code_problem(target)
            text = f"{places.function_name(source)} returns to 0x{target:x} ({where}), where no call came from"
            expected = places.function_name(event.fact.expected)
            details = [f"Its caller is {expected}: the return address on the stack was overwritten."]
            facts = {"number": history_number(at), "target": f"0x{target:x}"}
            slot = _slot(evidence, at)
            if slot is not None:
                details += _written(evidence, places, slot, at)
                facts["slot"] = f"0x{slot:x}"
            return ExplainedFinding("smashed-return", text, places.place_at(at), details, facts)
    return None


def _slot(evidence: Evidence, position: int) -> int | None:
    """Return the address from which a return at a position had its address; None: it is not known."""
    loads = [pc for pc in evidence.executed if _loads_return_address(evidence, pc)]
    at = evidence.last_execution(loads, position) if loads else None
    same = at is not None and evidence.function_start(evidence.history.pc(at)) == evidence.function_start(
        evidence.history.pc(position)
    )
    return address_at(evidence, at) if at is not None and same and position - at < _EPILOGUE_MOST else None


def _loads_return_address(evidence: Evidence, pc: int) -> bool:
    effect = evidence.code.effect(pc)
    return effect.role is CodeRole.LOAD and effect.targets == (_RA,)


def _written(evidence: Evidence, places: ProgramPlaces, slot: int, before: int) -> Iterator[str]:
    """Yield who wrote the slot of a return address last."""
    found = last_store(evidence, slot, evidence.code.xlen // 8, before)
    place = None if found is None else places.place_at(found.position)
    if found is not None and place is not None and found.certain:
        by = places.function_name(place.pc)
        yield f"0x{slot:x} was written last at #{place.number} {by}{f' {place.line}' if place.line else ''}."
