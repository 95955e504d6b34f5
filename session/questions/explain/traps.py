"""What traps say of how a run ended: a fault, a trap loop, a jump to where no code is, interrupts without end."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Loss, LossCause, Trap
from rvtrace_gdb.decode.history.history import GAP, Event
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import trap_text
from rvtrace_gdb.decode.program.instructions import Instruction, IType
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.loop import EndingLoop
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces

_LOOP_LEAST, _LOOP_HANDLER_MOST = 4, 300
"""How many exceptions at one instruction are a loop, and how many instructions there are between them at most."""
_STORM_LEAST, _STORM_HANDLER_MOST, _STORM_SHARE = 8, 300, 0.85
_WALK_MOST = 256
_FRAMES_MOST = 64
_ECALLS = range(8, 12)
_WITH_ADDRESS = (1, 4, 5, 6, 7, 12, 13, 15)
"""Causes with which xtval is the address that was accessed."""
_SKIPPED_MOST = 64
_NO_CODE = (LossCause.NO_CODE, LossCause.ABSENT_CODE)


def fault_address(evidence: Evidence, event: Event) -> int | None:
    """Return the address that an instruction accessed that trapped; None: it is not known, or it accessed none."""
    fact, pc = event.fact, event.last_pc
    if isinstance(fact, Trap) and fact.value is not None:
        return fact.value
    effect = None if pc is None or not evidence.image.knows(pc) else evidence.code.effect(pc)
    if effect is None or effect.address is None:
        return None
    base = evidence.register(event.position, effect.address)
    return None if base is None else base + effect.offset & (1 << evidence.code.xlen) - 1


def exception_text(evidence: Evidence, event: Event) -> str:
    """Return what is known of an exception: its cause, else the instruction that had it, and its address."""
    fact, pc = event.fact, event.last_pc
    effect = None if pc is None or not evidence.image.knows(pc) else evidence.code.effect(pc)
    accesses = effect is not None and effect.role in (CodeRole.LOAD, CodeRole.STORE, CodeRole.ATOMIC)
    address = fault_address(evidence, event) if accesses else None
    where = "" if address is None else f" at address 0x{address:x}"
    if isinstance(fact, Trap) and fact.cause is not None:
        return f"{trap_text(fact.cause, interrupt=False)}{where}"
    return f"{fact_text(fact)}{f' of a {effect.role.value}' if effect is not None and accesses else ''}{where}"


def jump_to_no_code(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return where the program left its code: by an exception where none is, or because the trace leads there."""
    for event in evidence.exceptions:
        if event.last_pc is not None and not places.is_code(event.last_pc):
            return _no_handler(evidence, places, event) or _jump_finding(
                evidence, places, event.position, event.last_pc
            )
    for event in evidence.history.events_between(evidence.part.start, evidence.part.stop + 1):
        fact = event.fact
        if isinstance(fact, Loss) and fact.cause in _NO_CODE and isinstance(fact.detail[0], int):
            return _jump_finding(evidence, places, event.position, fact.detail[0])
    last = evidence.last
    if last >= 0 and not places.is_code(evidence.history.pc(last)):
        return _jump_finding(evidence, places, last, evidence.history.pc(last))
    return None


def _no_handler(evidence: Evidence, places: ProgramPlaces, event: Event) -> ExplainedFinding | None:
    """Return that a trap led to where no code is, if the exception that came there is its first instruction's."""
    first = next((it for it in evidence.trap_events if _leads_to(it, event)), None)
    if first is None or first.last_pc is None or event.last_pc is None or not places.is_code(first.last_pc):
        return None
    pc, name = event.last_pc, places.function_name(first.last_pc)
    text = f"a trap in {name} leads to 0x{pc:x}: {places.code_problem(pc)}"
    details = [f"It is an {fact_text(first.fact)}. Is mtvec set?"]
    number = history_number(first.position)
    facts = {"number": number, "target": f"0x{pc:x}"}
    return ExplainedFinding("wild-jump", text, places.place_of(first.last_pc, number), details, facts)


def _leads_to(trap: Event, event: Event) -> bool:
    """Return whether a trap led to where another one hit: nothing ran in between."""
    if trap is event or trap.position > event.position:
        return False
    return trap.next_pc == event.last_pc or (trap.next_pc is None and trap.position == event.position)


def _jump_finding(evidence: Evidence, places: ProgramPlaces, position: int, pc: int) -> ExplainedFinding | None:
    """Return a jump to an address that was reached before a position. None: the trace does not show whence."""
    history, at = evidence.history, position - 1
    while at >= max(evidence.part.start, position - _WALK_MOST) and not _is_code(evidence, places, at):
        at -= 1
    if at < evidence.part.start or history.pc(at) == GAP or not _may_lead_anywhere(evidence, history.pc(at)):
        return None  # a damaged trace says such things, too
    first = history.pc(at + 1) if at + 1 < position else pc
    source, target = places.place_at(at), places.code_problem(first)
    number = history_number(at)
    kind = "returns" if evidence.itype(history.pc(at)) is IType.RETURN else "jumps"
    text = f"{places.function_name(history.pc(at))} {kind} to 0x{first:x}: {target}"
    return ExplainedFinding("wild-jump", text, source, [], {"number": number, "target": f"0x{first:x}"})


def _may_lead_anywhere(evidence: Evidence, pc: int) -> bool:
    itype = evidence.itype(pc)
    return itype is not None and Instruction(0, itype).is_uninferable


def _is_code(evidence: Evidence, places: ProgramPlaces, position: int) -> bool:
    pc = evidence.history.pc(position)
    return pc == GAP or places.is_code(pc)


def _with_places(exceptions: Sequence[Event]) -> list[Event]:
    """Return exceptions in which those that hit where the one before did have its place: in a chain without an
    instruction in between E-Trace says it once (payloads, format 3 subformat 1).
    """
    found = list[Event]()
    for event in exceptions:
        before = found[-1] if found else None
        is_same = before is not None and before.position == event.position and event.last_pc is None
        found.append(event._replace(last_pc=before.last_pc) if is_same and before is not None else event)
    return found


def trap_loop(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return the exception that comes again and again, with nothing but its handler in between."""
    exceptions = _with_places(evidence.exceptions)
    last = exceptions[-_LOOP_LEAST:]
    if len(last) < _LOOP_LEAST or len({it.last_pc for it in last}) != 1 or last[-1].last_pc is None:
        return None
    pc, distances = last[-1].last_pc, [b.position - a.position for a, b in pairwise(last)]
    rest = evidence.part.stop - last[-1].position
    if max(distances) > _LOOP_HANDLER_MOST or rest > _LOOP_HANDLER_MOST + 2 * max(distances):
        return None
    if _went_on(evidence, last[0].position, last[-1].position, pc):
        return None
    number, first = 0, last[0]
    for event in reversed(exceptions):
        if event.last_pc != pc:
            break
        number, first = number + 1, event
    text = f"the same exception {number} times, at one instruction of {places.function_name(pc)}"
    cause = f"It is an {exception_text(evidence, first)}; its handler returns to the instruction that has it."
    if distances[-1] == 0:
        cause = f"It is an {exception_text(evidence, first)}, which the first instruction of its handler has."
    details = [cause, *_entered_by(evidence, places, exceptions, number)]
    details.append(f"The first one was before #{history_number(first.position)}.")
    place = places.place_of(pc, history_number(first.position))
    facts = {"times": number, "first": history_number(first.position)}
    return ExplainedFinding("trap-loop", text, place, details, facts)


def _entered_by(
    evidence: Evidence, places: ProgramPlaces, exceptions: Sequence[Event], number: int
) -> Iterator[str]:
    """Yield which exception led to the handler that has the last ones, *number* of them, where it is another one."""
    if len(exceptions) <= number:
        return
    before, first = exceptions[-number - 1], exceptions[-number]
    if before.position == first.position and before.last_pc is not None:
        where = places.function_name(before.last_pc)
        yield f"An {exception_text(evidence, before)} in {where} led there."


def _went_on(evidence: Evidence, first: int, stop: int, pc: int) -> bool:
    """Return whether a handler returned behind the instruction that trapped."""
    behind = pc + evidence.code.operation(pc).length if evidence.image.knows(pc) else pc + 4
    return any(it in (behind, pc) for it in evidence.history.pcs(first, stop))


def fault(evidence: Evidence, places: ProgramPlaces, *, stays: bool, is_stuck: bool) -> ExplainedFinding | None:
    """Return the exception whose handler had not returned. *stays*: the program stays where it is at the end, so it
    never returns; *is_stuck*: in a loop that no branch leads out of, and that does nothing: one that stores may tell a
    host that all is done.
    """
    if not evidence.exceptions:
        return None
    event = _open_exception(evidence)
    if event is None or event.last_pc is None:
        return None
    pc, cause = event.last_pc, exception_text(evidence, event)
    name = evidence.code.operation(pc).name if evidence.image.knows(pc) else ""
    if (_is_request(event, name) and not is_stuck) or _is_jump(evidence, event):
        return None
    handler = evidence.history.pc(event.position) if event.position < evidence.part.stop else event.next_pc
    text = f"{'ebreak' if name == 'ebreak' else cause} in {places.function_name(pc)}"
    returns = "never returns" if stays else "had not returned at the end"
    details = [] if handler is None else [f"Its handler, {places.function_name(handler)}, {returns}."]
    facts = {"cause": cause, "number": history_number(event.position)}
    return ExplainedFinding("fault", text, places.place_of(pc, history_number(event.position)), details, facts)


def fault_of_registers(
    evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None
) -> ExplainedFinding | None:
    """Return the exception in whose handler the program stays, by the registers of the hart at the end: for a trace
    that does not reach back to it, as the loop of the handler fills it.
    """
    stays = loop is not None and not loop.flow.exits and not loop.flow.stores
    if not stays or loop is None or evidence.past is None or evidence.part.stop != len(evidence.history):
        return None
    registers = evidence.past.registers(evidence.part.stop)
    cause, pc, vector = (registers.get(it) for it in ("mcause", "mepc", "mtvec"))
    if cause is None or pc is None or vector is None or cause >> evidence.code.xlen - 1 or cause in _ECALLS:
        return None
    handler = evidence.function_start(vector & ~3)
    if handler is None or handler != evidence.function_start(loop.head):
        return None
    text = trap_text(cause, interrupt=False)
    value = registers.get("mtval") if cause in _WITH_ADDRESS else None
    at = "" if value is None else f" at address 0x{value:x}"
    details = [
        f"Its handler, {places.function_name(handler)}, never returns.",
        "mcause and mepc of the hart say so: the trace does not reach back to it.",
    ]
    facts = {"cause": f"{text}{at}"}
    if not places.is_code(pc):
        jump = f"the program ran into 0x{pc:x}: {places.code_problem(pc)}"
        return ExplainedFinding("wild-jump", jump, None, [f"It is an {text}.", *details], facts)
    where = places.function_name(pc)
    return ExplainedFinding("fault", f"{text}{at} in {where}", places.place_of(pc), details, facts)


def _is_request(event: Event, name: str) -> bool:
    return name == "ecall" or (isinstance(event.fact, Trap) and event.fact.cause in _ECALLS)


def _is_jump(evidence: Evidence, event: Event) -> bool:
    """Return whether a trap leads a few instructions on: start-up code skips so what a hart may not have."""
    pc, handler = event.last_pc, event.next_pc
    if pc is None or handler is None or not 0 < handler - pc <= _SKIPPED_MOST:
        return False
    return evidence.function_start(handler) in (None, evidence.function_start(pc))


def _open_exception(evidence: Evidence) -> Event | None:
    """Return the oldest exception whose handler had not returned at the end."""
    last = evidence.exceptions[-1]
    if last.position >= evidence.part.stop:
        return last
    found = None
    by_position = {it.position: it for it in evidence.exceptions[-_FRAMES_MOST:]}
    for frame in evidence.frames(evidence.part.stop - 1, _FRAMES_MOST):
        if frame.kind is StackOperationKind.TRAP and frame.call is not None:
            found = by_position.get(frame.call + 1, found)
    return found


def storm(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return that handlers leave nearly nothing to the program."""
    last = evidence.interrupts[-_STORM_LEAST:]
    if len(last) < _STORM_LEAST:
        return None
    begin, stop = last[0].position, evidence.part.stop
    if stop - begin > (_STORM_LEAST + 1) * _STORM_HANDLER_MOST:
        return None
    returns = sum(evidence.itype(pc) is IType.TRAP_RETURN for pc in evidence.history.pcs(begin, stop))
    if returns < _STORM_LEAST // 2:
        return None
    program = list(_outside_handlers(evidence, begin, stop))
    if len(program) > (1 - _STORM_SHARE) * (stop - begin) or any(_waits(evidence, pc) for pc in program):
        return None
    interrupted = [it.last_pc for it in last if it.last_pc is not None]
    if program and any(_waits(evidence, it) or evidence.is_stuck_at(it) for it in interrupted):
        return None
    share, handler = 100 * len(program) / (stop - begin), evidence.history.pc(last[-1].position)
    name = places.function_name(handler)
    text = f"interrupts without end: {name} leaves {share:.0f} % of the instructions to the program"
    first = _first_of_storm(evidence)
    details = [
        f"It is an {fact_text(last[-1].fact)}, which is pending again when the handler returns: is it acknowledged?",
        f"This has been so since #{history_number(first.position)}.",
    ]
    place = places.place_at(first.position)
    facts = {"share": round(share), "since": history_number(first.position)}
    return ExplainedFinding("interrupt-storm", text, place, details, facts)


def _first_of_storm(evidence: Evidence) -> Event:
    found = evidence.interrupts[-1]
    for event in reversed(evidence.interrupts):
        if found.position - event.position > _STORM_HANDLER_MOST or event.next_pc != found.next_pc:
            break
        found = event
    return found


def _outside_handlers(evidence: Evidence, begin: int, stop: int) -> Iterator[int]:
    starts, depth = {it.position for it in evidence.trap_events}, 0
    for position, pc in enumerate(evidence.history.pcs(begin, stop), begin):
        depth += position in starts
        if depth <= 0:
            yield pc
        if evidence.itype(pc) is IType.TRAP_RETURN:
            depth = max(depth - 1, 0)


def _waits(evidence: Evidence, pc: int) -> bool:
    """Return whether an instruction is wfi, or the one behind it: where the interrupt that ends it hits."""
    near = [pc, *(pc - size for size in (2, 4) if evidence.image.knows(pc - size))]
    return any(evidence.image.knows(it) and evidence.code.effect(it).role is CodeRole.WAIT for it in near)
