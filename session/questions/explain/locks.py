"""Locks for which harts wait, and which of the others has them."""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.explain_rows import ExplainedFinding, Explanation
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.loop import ending_loop
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.explain.stores import last_store

_LOCK = "waits-for-lock"
_BYTES = 4


def with_other_harts(one: Explanation, each: Sequence[Explanation], evidence: Sequence[Evidence]) -> Explanation:
    """Return an explanation that says what other harts have to do with the lock that its hart waits for."""
    others = [it for it in evidence if it.selected.hart != one.hart]
    if not others:
        return one
    waiting = [it.hart for it in each if it.hart != one.hart and any(that.kind == _LOCK for that in it.findings)]
    findings = [_with_holders(it, others, waiting) if it.kind == _LOCK else it for it in one.findings]
    return one._replace(findings=findings)


def _with_holders(
    finding: ExplainedFinding, others: Sequence[Evidence], waiting: Sequence[int]
) -> ExplainedFinding:
    details = [text.replace(" was written last at ", " was written last by this hart at ") for text in finding.details]
    addresses = [int(it, 16) for it in finding.facts.get("waits_for", ())]
    details += [text for it in others for text in _holds(it, addresses)]
    if waiting:
        who = f"{harts_text(waiting).capitalize()} wait{'s' * (len(waiting) == 1)} for a lock"
        details.append(f"{who}, too: each may have what the other wants (a deadlock).")
    return finding._replace(details=details)


def _holds(evidence: Evidence, addresses: Sequence[int]) -> Iterator[str]:
    """Yield where a hart took a lock that it has not released, as far as its stores are known."""
    for address in addresses:
        loop = ending_loop(evidence)
        found = last_store(evidence, address, _BYTES, evidence.part.stop if loop is None else loop.begin)
        if found is None:
            continue
        pc = evidence.history.pc(found.position)
        if evidence.code.effect(pc).role is CodeRole.ATOMIC:
            name = ProgramPlaces(evidence).function_name(pc)
            yield f"Hart {evidence.selected.hart} took it at #{history_number(found.position)} {name}, and has it."
