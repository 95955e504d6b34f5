"""Divisions by zero, which do not trap on RISC-V: by the values of their divisors, where these are known."""

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces

_ASKED_MOST = 2000
"""Divisions whose divisors are looked at, the last ones."""
_USED_WITHIN = 2000


def division_by_zero(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return the first of the last divisions whose divisor is 0, and whose result is used."""
    if evidence.past is None:
        return None
    code = evidence.code
    for at in _last_divisions(evidence):
        op = code.operation(evidence.history.pc(at))
        divisor = evidence.register(at, op.rs2)
        is_zero = divisor is not None and not divisor & (0xFFFF_FFFF if op.name.endswith("w") else -1)
        if is_zero and _is_used(evidence, at, op.rd):
            return _finding(evidence, places, at)
    return None


def _last_divisions(evidence: Evidence) -> list[int]:
    """Return the positions of the last divisions, in order: values are computed forward."""
    code, found = evidence.code, list[int]()
    addresses = tuple(pc for pc in evidence.executed if code.effect(pc).role is CodeRole.DIVISION)
    at = evidence.last_execution(addresses, evidence.part.stop) if addresses else None
    while at is not None and len(found) < _ASKED_MOST:
        found.append(at)
        at = evidence.last_execution(addresses, at)
    return found[::-1]


def _finding(evidence: Evidence, places: ProgramPlaces, position: int) -> ExplainedFinding:
    number = history_number(position)
    text = f"{places.function_name(evidence.history.pc(position))} divides by zero, and uses the result"
    return ExplainedFinding("division-by-zero", text, places.place_at(position), [], {"number": number})


def _is_used(evidence: Evidence, position: int, register: int) -> bool:
    """Return whether the result of a division is read before it is overwritten."""
    stop = min(position + 1 + _USED_WITHIN, evidence.part.stop)
    for pc in evidence.history.pcs(position + 1, stop):
        if pc < 0:
            return False
        effect = evidence.code.effect(pc)
        if register in effect.sources:
            return True
        if register in effect.targets:
            return False
    return False
