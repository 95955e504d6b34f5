"""How a run ended, in about ten lines: the findings of a hart in the order in which they explain each other."""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.history.events import EventKind, Start, StartReason, Stop
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.missing import missing_parts
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.explain_rows import ExplainedFinding, ExplainedPlace, Explanation
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.lists.history_part import positions_of_numbers
from rvtrace_gdb.session.queries.selected_harts import selected_harts
from rvtrace_gdb.session.questions.explain import calls as call_findings
from rvtrace_gdb.session.questions.explain import divisions, stack, traps, waits
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.locks import with_other_harts
from rvtrace_gdb.session.questions.explain.loop import EndingLoop, ending_loop
from rvtrace_gdb.session.questions.explain.outcome import last_calls, last_variable, outcome
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.explain.proposals import proposed
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import counted, printable

_STOP_MOST = 64
_RESETS = (StartReason.RESET, StartReason.EXIT_FROM_RESET)
_FRAMES_MOST = 32
_ABORTS = frozenset({
    "abort", "__assert_func", "__assert_fail", "__assert", "panic", "_panic", "rust_panic", "rust_begin_unwind",
    "__stack_chk_fail", "__cxa_pure_virtual", "std::terminate",
})  # fmt: skip
_ABORT_PREFIXES = ("core::panicking::",)
"""What programs end with that have found something wrong, in C, C++ and Rust."""


def explanations(
    session: Session, context: Context, args: str = "", progress: Progress = silent
) -> list[Explanation]:
    """Return how the run of each hart ended, or of the one that *context* asks for. *args*: a RANGE of its history, ""
    for all of it.

    Raises RangeError, and as `Session.selected`.
    """
    shown = selected_harts(session, context, args, progress)
    each = [_evidence(session, it, args, progress) for it in shown]
    found = [_explanation(it) for it in each]
    return [with_other_harts(it, found, each) for it in found]


def explanation(
    session: Session, selected: SelectedHistory, args: str = "", progress: Progress = silent
) -> Explanation:
    """Return how the run of a hart ended. *args*: a RANGE of its history. Raises RangeError, and what *progress*
    raises.
    """
    return _explanation(_evidence(session, selected, args, progress))


def _evidence(session: Session, selected: SelectedHistory, args: str, progress: Progress) -> Evidence:
    length = len(selected.history)
    part = positions_of_numbers(args, length) if args else range(length)
    return Evidence(session, selected, part, progress)


def _explanation(evidence: Evidence) -> Explanation:
    selected, part, places = evidence.selected, evidence.part, ProgramPlaces(evidence)
    loop = ending_loop(evidence)
    findings, calls = list(_findings(evidence, places, loop)), last_calls(evidence, places, loop)
    variable = "" if findings else last_variable(evidence, places, loop, calls)
    return Explanation(
        selected.hart, history_number(part.start), part.stop, _ended(evidence, places, loop),
        _last_place(evidence, places), findings, calls, lost_trace(evidence),
        list(_unknown(evidence, findings)), proposed(evidence, places, findings, calls, variable),
        "" if findings else outcome(evidence, places, loop), _last_task(evidence),
    )  # fmt: skip


def _findings(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None) -> Iterator[ExplainedFinding]:
    """Yield what went wrong, the first cause first: what follows from another one is not said again."""
    if not evidence.part:
        return
    outside = stack.stack_overflow(evidence, places)
    at = max(evidence.last, 0) if outside is None else outside.facts["number"] - 1
    deep = call_findings.recursion(evidence, places, at)
    smashed = call_findings.smashed_return(evidence, places)
    jump = traps.jump_to_no_code(evidence, places)
    yield from (it for it in (deep, outside, smashed, None if smashed else jump) if it is not None)
    again = _begun_again(evidence, places)
    if again is not None:
        yield again
    ended = _how_it_stays(evidence, places, loop, is_broken=outside is not None)
    if ended is not None:
        yield ended
    division = divisions.division_by_zero(evidence, places)
    if division is not None:
        yield division


def _how_it_stays(
    evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None, *, is_broken: bool = False
) -> ExplainedFinding | None:
    """Return what keeps the program where it is at the end. *is_broken*: an exception in whose handler it was stopped
    is none that it is made for.
    """
    repeated = traps.trap_loop(evidence, places) or traps.storm(evidence, places)
    if repeated is not None:
        return repeated
    is_stuck = loop is not None and not loop.flow.exits and not loop.flow.stores
    stays = loop is not None or _stays(evidence)
    stopped = traps.fault(evidence, places, stays=stays, is_stuck=is_stuck) if stays or is_broken else None
    if stopped is None and not evidence.exceptions:
        stopped = traps.fault_of_registers(evidence, places, loop)
    if stopped is not None:
        return stopped
    aborted = _aborted(evidence, places)
    if aborted is not None:
        return aborted
    found = None if loop is None else waits.loop_finding(evidence, places, loop)
    return found or waits.sleep(evidence, places, loop)


def _stays(evidence: Evidence) -> bool:
    """Return whether the program stays where the part ends: it sleeps, or has only jumps before it that lead back."""
    if evidence.last < 0:
        return bool(evidence.exceptions)
    pc = evidence.history.pc(evidence.last)
    if evidence.exceptions and evidence.exceptions[-1].position >= evidence.part.stop:
        pc = evidence.exceptions[-1].next_pc or pc
    return evidence.is_stuck_at(pc)


def _aborted(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return the call that ended the program because it had found out that something is wrong."""
    frames = list(evidence.frames(max(evidence.last, 0), _FRAMES_MOST))
    symbols = [None if it.function < 0 else evidence.image.symbol(it.function) for it in frames]
    aborts = [at for at, symbol in enumerate(symbols) if symbol is not None and _gives_up(symbol[0])]
    if not aborts:
        return None
    outermost = aborts[-1]
    call = frames[outermost + 1].call if outermost + 1 < len(frames) else None
    place = places.place_at(evidence.last if call is None else call)
    text = f"the program gave up: {places.function_name(frames[outermost].function)}"
    return ExplainedFinding("aborted", text, place, [], {})


def _gives_up(function: str) -> bool:
    return function.partition("(")[0] in _ABORTS or function.startswith(_ABORT_PREFIXES)


# Begun again


def _begun_again(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return that the program began again, without a debugger that had it do so."""
    begins = [it for it in _begins(evidence) if it > evidence.part.start and not _by_debugger(evidence, it)]
    if not begins:
        return None
    last = begins[-1]
    before = last - 1
    while before > evidence.part.start and evidence.history.pc(before) == GAP:
        before -= 1
    name, source = places.function_name(evidence.history.pc(last)), places.function_name(evidence.history.pc(before))
    text = f"the program began again at {name}, {counted(len(begins), 'time')}, the last before #{history_number(last)}"
    details = [f"What ran last before that was {source}."]
    earlier = evidence.up_to(_life_end(evidence, before))
    earlier.part = range(begins[-2] if len(begins) > 1 else evidence.part.start, earlier.part.stop)
    loop = ending_loop(earlier) if earlier.part else None
    why = _how_it_stays(earlier, places, loop) if earlier.part else None
    details += [] if why is None else [f"Before that: {why.text}.", *why.details[:1]]
    facts = {"times": len(begins), "last": history_number(last)}
    return ExplainedFinding("begun-again", text, places.place_at(before), details, facts)


def _life_end(evidence: Evidence, before: int) -> int:
    """Return where the program was when a handler took over that led to a new beginning, or the position behind it."""
    late = [it for it in evidence.trap_events if it.position <= before]
    return late[-1].position if late and before - late[-1].position < _STOP_MOST else before + 1


def _begins(evidence: Evidence) -> list[int]:
    """Return the positions at which the program begins."""
    entry = evidence.image.entry if evidence.image.path else None
    found = set[int]()
    if entry is not None and entry in evidence.executed:
        search = evidence.executions(entry)
        first, last = search.before(evidence.part.start), search.before(evidence.part.stop)
        found |= set(search.positions(evidence.progress, first, last))
    for event in evidence.history.events_between(evidence.part.start, evidence.part.stop):
        if isinstance(event.fact, Start) and event.fact.reason in _RESETS:
            found.add(event.position)
    return sorted(found)


def _by_debugger(evidence: Evidence, position: int) -> bool:
    """Return whether the hart had been halted before a position: a debugger may have moved it."""
    near = evidence.history.events_between(max(position - 1, 0), position + 1)
    return any(isinstance(it.fact, Stop) or (isinstance(it.fact, Start) and it.fact.reason.resumes) for it in near)


# Where it ended


def _last_place(evidence: Evidence, places: ProgramPlaces) -> ExplainedPlace | None:
    last = evidence.part.stop - 1
    while last >= evidence.part.start and evidence.history.pc(last) == GAP:
        last -= 1
    return places.place_at(last) if last >= evidence.part.start else None


def _last_task(evidence: Evidence) -> str:
    """Return the task that ran at the end, "" if none is known."""
    rooms = evidence.task_rooms if evidence.part else None
    label = None if rooms is None else rooms.label_at(evidence.part.stop - 1)
    return "" if label is None else printable(label)


def _ended(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None) -> str:
    """Return where the program was at the end."""
    place = _last_place(evidence, places)
    if place is None:
        return "nothing ran"
    where = f"in {places.function_name(place.pc)}"
    if loop is not None and loop.rounds > 1:
        inside = f"{counted(len(loop.body), 'instruction')}, {loop.rounds} rounds"
        function = places.function_name(loop.head)
        if place.pc in loop.body:
            caller = "" if function == places.function_name(place.pc) else f" in {function}"
            return f"{where}, in a loop{caller} of {inside}"
        return f"{where}, which interrupted {function} in a loop of {inside}"
    if evidence.code.effect(place.pc).role is CodeRole.WAIT:
        return f"{where}, waiting for an interrupt (wfi)"
    return where


# What is missing


def lost_trace(evidence: Evidence) -> str:
    """Return what is missing in the trace, "" if nothing is."""
    history, texts = evidence.history, list[str]()
    gaps = [it for it in missing_parts(history, evidence.part) if it.event.kind is not EventKind.TRACE_OFF]
    if gaps:
        total = history.accounting.total
        share = f", {100 * history.accounting.skipped / total:.1f} % of the trace's bytes" if total else ""
        texts.append(f"{counted(len(gaps), 'gap')}, the last at #{history_number(gaps[-1].begin)}{share}")
    off = [it for it in missing_parts(history, evidence.part) if it.event.kind is EventKind.TRACE_OFF]
    if off:
        texts.append(f"not traced: {counted(len(off), 'stretch')}")
    if evidence.selected.overwritten:
        texts.append("older trace was overwritten: what ran before #1")
    return "; ".join(texts)


def _unknown(evidence: Evidence, findings: Sequence[ExplainedFinding]) -> Iterator[str]:
    """Yield what the trace cannot say that matters for what was found."""
    if evidence.past is None:
        if evidence.is_too_long:
            yield "values: the history is too long to reconstruct them for this answer"
        else:
            yield "values: no register and no memory is known, so no division by zero and no stack depth"
    if not evidence.image.path:
        yield "names: there is no ELF file"
    elif evidence.image.symbol(evidence.history.pc(max(evidence.last, 0))) is None:
        yield "names: the ELF file has no symbols here"
    for it in evidence.exceptions[-1:]:
        if getattr(it.fact, "cause", None) is None and any(one.kind in ("fault", "trap-loop") for one in findings):
            yield "the cause of the exception: this trace does not have it, mcause has"
