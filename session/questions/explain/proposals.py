"""What to ask next: for each sort of finding the questions that lead to its cause, as commands of gdb."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rvtrace_gdb.decode.history.missing import missing_parts
from rvtrace_gdb.decode.history.positions import history_number, history_position
from rvtrace_gdb.decode.tandem.wording import X as X_NAMES
from rvtrace_gdb.rows.explain_rows import ExplainedFinding, LastCall
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.masked import masking_function
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.explain.waits import has_ended
from rvtrace_gdb.support.text import printable

_REASON = "why -branches $pc"
"""Which branches led here."""
_VARIABLES_MOST = 2
_Proposal = Callable[[Evidence, ProgramPlaces, ExplainedFinding], Iterator[str]]


def proposed(
    evidence: Evidence, places: ProgramPlaces, findings: Sequence[ExplainedFinding], calls: Sequence[LastCall],
    variable: str,
) -> list[str]:  # fmt: skip
    """Return what to type next in gdb, each without `trace`: about the first finding, else about the last calls, and
    the *variable* that was written last, "" if none is known.
    """
    for finding in findings:
        if finding.place is not None and finding.place.number is not None:
            asked = list(_PROPOSALS.get(finding.kind, _nothing)(evidence, places, finding))
            at = finding.facts.get("off_since") or _asked_at(evidence, finding.place.pc, finding.place.number, asked)
            return [f"goto {at}", *([it for it in asked if _is_known(evidence, at, it)] or [_REASON])]
    gaps = ["gaps"] if missing_parts(evidence.history, evidence.part) else []
    return [*gaps, "calls", *_writer(evidence, variable), *_last_call(calls)]


def _writer(evidence: Evidence, variable: str) -> Iterator[str]:
    """Yield who wrote a variable last, as seen from behind what was looked at."""
    if variable and evidence.part.stop < len(evidence.history):
        yield f"goto {history_number(evidence.part.stop)}"
    if variable:
        yield f"why {variable}"


def _asked_at(evidence: Evidence, pc: int, number: int, questions: Sequence[str]) -> int:
    """Return the number where questions about an instruction can be answered: its own one, unless nothing ran before
    that or the values that are asked for are not known there; then that where it ran last, if they are known there.
    """
    if number > history_number(evidence.part.start) and all(_is_known(evidence, number, it) for it in questions):
        return number
    last = evidence.last_execution((pc,), evidence.part.stop)
    if last is None or not all(_is_known(evidence, history_number(last), it) for it in questions):
        return number
    return history_number(last)


def _is_known(evidence: Evidence, number: int, question: str) -> bool:
    """Return whether a question about a register is about a value that is known; True for other questions, and where no
    values are looked for here.
    """
    verb, _, register = question.partition(" $")
    if verb != "why" or register not in X_NAMES or evidence.past is None:
        return True
    return evidence.register(history_position(number), X_NAMES.index(register)) is not None


def _last_call(calls: Sequence[LastCall]) -> Iterator[str]:
    """Yield the question about the last function that is no end of the program: with which values it was called."""
    for call in calls:
        if call.place.line and call.place.name and not has_ended(call.place.name):
            yield from _calls_of(call.place.name)
            return


def _calls_of(name: str, numbers: str = "") -> Iterator[str]:
    if printable(name) == name:
        yield f"calls-of {name}{numbers}"


def _nothing(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    yield from ()


def _address(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    """Yield why the register had its value with which an instruction made an address."""
    assert finding.place is not None
    pc = finding.place.pc
    if not evidence.image.knows(pc):
        return
    effect, op = evidence.code.effect(pc), evidence.code.operation(pc)
    register = op.rs1 if op.name == "jalr" else op.rs2 if effect.role is CodeRole.DIVISION else effect.address
    if register:
        yield f"why ${X_NAMES[register]}"


def _operands(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    """Yield why the registers had their values that a branch compares."""
    assert finding.place is not None
    effect = evidence.code.effect(finding.place.pc)
    if effect.role is CodeRole.BRANCH:
        yield from (f"why ${X_NAMES[it]}" for it in effect.sources)


def _waited(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    """Yield who switched off the interrupts that should have ended a wait, else who wrote what is waited for."""
    off = finding.facts.get("off_since")
    if off is not None:
        symbol = evidence.image.symbol(masking_function(evidence, history_position(off)))
        yield from () if symbol is None else _calls_of(symbol[0])
        return
    addresses = [int(it, 16) for it in finding.facts.get("waits_for", ())][:_VARIABLES_MOST]
    for address in addresses:
        name = places.data_name(address)
        if name and printable(name) == name:
            yield f"why {name if '+' not in name else f'{address:#x}'}"
    if finding.kind != "waits-for-lock":
        yield "events interrupt"


def _overwritten(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    """Yield who wrote the slot of a return address."""
    slot = finding.facts.get("slot")
    yield f"why {slot}" if slot is not None else "why $ra"


def _recursion(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    assert finding.place is not None
    if finding.place.name:
        yield from _calls_of(finding.place.name, " 1,10")


def _events(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    yield "events interrupt"


def _stack(evidence: Evidence, places: ProgramPlaces, finding: ExplainedFinding) -> Iterator[str]:
    yield "stack"


_PROPOSALS: Mapping[str, _Proposal] = {
    "fault": _address,
    "trap-loop": _address,
    "wild-jump": _address,
    "division-by-zero": _address,
    "follows-pointers": _operands,
    "no-way-out": _operands,
    "counts-past-bound": _operands,
    "waits": _waited,
    "waits-for-lock": _waited,
    "smashed-return": _overwritten,
    "endless-recursion": _recursion,
    "interrupt-storm": _events,
    "sleeps": _events,
    "stack-overflow": _stack,
}
