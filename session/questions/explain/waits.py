"""What the loop in which a run ends says: on what it waits, or that nothing can end it."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.tandem.wording import X as X_NAMES
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.code import SP, CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.flow import Change, LoopFlow, MemoryPlace
from rvtrace_gdb.session.questions.explain.loop import EndingLoop, Stays, stays_before
from rvtrace_gdb.session.questions.explain.masked import masked_since, masked_text
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.explain.stores import address_at, last_store

_LONGER, _ROUNDS_LEAST = 10, 100
"""How many times longer than each one before a wait is that something is wrong with, and its rounds at least."""
_ENDLESS = 1 << 29
"""A loop that has so many rounds before it does not end by counting."""
_CHASED_MOST = 4096
_MAIN = re.compile(r"main|idle|task|thread|loop|^_?_?start|reset", re.IGNORECASE)
"""Functions that are not meant to return."""
_ENDS = re.compile(r"exit|tohost|^_*(done|finish|finished|halt|fini|end)$|shut_?down|power_?off", re.IGNORECASE)
"""Functions in which a program stays that has ended."""


def loop_finding(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop) -> ExplainedFinding | None:
    """Return what is wrong with the loop in which a run ends, None if nothing is."""
    flow = loop.flow
    if _has_ended(evidence, loop):
        return None
    if any(evidence.code.effect(pc).role is CodeRole.WAIT for pc in loop.body):
        return None  # see `sleep`
    if not flow.exits:
        return _tested_once(evidence, places, loop) or _alone(evidence, places, loop)
    if not flow.changes:
        if _is_main_loop(evidence, loop):
            return None
        return _no_way_out(places, loop, "nothing in it changes what its branches test")
    if Change.COUNTS in flow.changes:
        return _counting_loop(evidence, places, loop)
    if Change.FOLLOWS in flow.changes:
        return _follows(evidence, places, loop)
    return _waits(evidence, places, loop)


def _has_ended(evidence: Evidence, loop: EndingLoop) -> bool:
    symbol = evidence.image.symbol(min(loop.body))
    return symbol is not None and has_ended(symbol[0])


def _is_main_loop(evidence: Evidence, loop: EndingLoop) -> bool:
    """Return whether a loop works, and goes through functions that are not meant to return, or through several: what
    its branches test is how the program was built, or which hart runs it.
    """
    names = [it for pc in loop.body if (it := evidence.image.symbol(pc)) is not None]
    is_main = any(_MAIN.search(name) for name, _ in names)
    return loop.flow.works and (is_main or len(_body_functions(evidence, loop)) > 1)


def _body_functions(evidence: Evidence, loop: EndingLoop) -> set[int | None]:
    return {evidence.function_start(pc) for pc in loop.body}


def has_ended(function: str) -> bool:
    """Return whether a program that is in a function has ended, by its name."""
    return _ENDS.search(function) is not None


def _no_way_out(places: ProgramPlaces, loop: EndingLoop, why: str) -> ExplainedFinding:
    place = places.place_of(loop.head, history_number(loop.begin))
    text = f"a loop without a way out in {places.function_name(loop.head)}: {why}"
    return ExplainedFinding("no-way-out", text, place, [], {"rounds": loop.rounds, "since": history_number(loop.begin)})


def _tested_once(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop) -> ExplainedFinding | None:
    """Return a loop whose condition was tested before it, and never in it: that of a variable without `volatile`."""
    code, line = evidence.code, set(places.same_line(loop.head))
    tests = [pc for pc in line - loop.body if code.effect(pc).role is CodeRole.BRANCH]
    loads = [pc for pc in line - loop.body if code.effect(pc).role is CodeRole.LOAD]
    at, entered = loop.begin - 1, False
    while at >= max(evidence.part.start, loop.begin - 8):
        pc = evidence.history.pc(at)
        entered = entered or pc in tests
        at -= 1
    if not (entered and loads):
        return None
    found = _no_way_out(places, loop, "it has no branch; what its line tests was tested once, before it")
    loaded = next((it for pc in loads if (it := _loaded_name(evidence, places, pc, loop.begin))), "the variable")
    return found._replace(details=[f"Is `volatile` missing? {loaded} is read once, before the loop."])


def _alone(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop) -> ExplainedFinding | None:
    """Return a loop that has no branch out of it, in a function that should return, while no interrupt does the work:
    no main loop, which calls functions, nor one that reads devices, nor a recursion that returns, round by round.
    """
    function, inside = evidence.function_start(loop.head), _body_functions(evidence, loop)
    symbol = evidence.image.symbol(loop.head)
    if function is None or len(inside) > 1 or symbol is None or _MAIN.search(symbol[0]):
        return None
    late = [it for it in evidence.interrupts if it.position > loop.begin]
    callers = [it for it in evidence.frames(max(evidence.last, 0), 2) if it.call is not None]
    stores = [pc for pc in loop.body if evidence.code.effect(pc).role is CodeRole.STORE]
    reads = any(evidence.code.effect(pc).role is CodeRole.LOAD for pc in loop.body)
    fills = _fills_memory(evidence, stores)
    tells_host = loop.flow.stores and not reads and not fills  # that the program has ended, again and again
    others = loop.body.difference(stores if fills else ())
    returns = any(evidence.itype(pc) is IType.RETURN for pc in loop.body)
    if late or not callers or tells_host or returns or any(_accesses_device(evidence, places, pc) for pc in others):
        return None
    return _no_way_out(places, loop, "it has no branch out of it, and no interrupt came since")


def _fills_memory(evidence: Evidence, stores: Sequence[int]) -> bool:
    """Return whether a store of a loop goes to another address each round."""
    for pc in stores:
        last = [address_at(evidence, at) for at in _rounds(evidence, pc, 2)]
        if None not in last and len(set(last)) == 2:
            return True
    return False


def _accesses_device(evidence: Evidence, places: ProgramPlaces, pc: int) -> bool:
    if evidence.code.effect(pc).address in (None, SP):
        return False
    at = evidence.last_execution((pc,), evidence.part.stop)
    address = None if at is None else address_at(evidence, at)
    return address is not None and not places.is_memory(address)


def _loaded_name(evidence: Evidence, places: ProgramPlaces, pc: int, before: int) -> str:
    position = evidence.last_execution((pc,), before)
    address = None if position is None else address_at(evidence, position)
    name = "" if address is None else places.data_name(address)
    return f"`{name}`" if name else ""


def _counting_loop(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop) -> ExplainedFinding | None:
    """Return a loop that counts past its bound, by the values of all branches that lead out of it at the end."""
    if not loop.round or loop.rounds < _ROUNDS_LEAST or evidence.past is None:
        return None
    ways = {pc: _way_out(evidence, pc) for pc in (*loop.ways, *loop.flow.exits)}
    if any(it is None or (it.left is not None and it.left < _ENDLESS) for it in ways.values()):
        return None
    counting = next((pc for pc, it in ways.items() if it is not None and it.step), None)
    if counting is None:
        return None
    op, last = evidence.code.operation(counting), next(_rounds(evidence, counting, 1))
    values = " with ".join(f"{X_NAMES[it]} = {evidence.register(last, it):#x}" for it in (op.rs1, op.rs2))
    why = f"it counts away from its bound: its branch compares {values} at the end"
    place = places.place_of(counting, history_number(last))
    text = f"a loop without a way out in {places.function_name(counting)}: {why}"
    facts = {"rounds": loop.rounds, "since": history_number(loop.begin)}
    return ExplainedFinding("counts-past-bound", text, place, [], facts)


class _WayOut(NamedTuple):
    """A branch that leads out of a loop: the *values* it compared last, by which *step* they come nearer each round,
    and how many rounds are *left* until it is taken, None: it never is.
    """

    values: tuple[int, int]
    step: int
    left: int | None


def _way_out(evidence: Evidence, pc: int) -> _WayOut | None:
    """Return what the values of a branch do in the last rounds; None: they are not known, or do not change evenly."""
    op, pairs = evidence.code.operation(pc), list[tuple[int, int]]()
    for at in _rounds(evidence, pc, 3):
        first, second = (evidence.register(at, it) for it in (op.rs1, op.rs2))
        if first is None or second is None:
            return None
        pairs.append((first, second))
    if len(pairs) < 3:
        return None
    size, ordered = 1 << evidence.code.xlen, op.name in ("blt", "bge")
    differences = [(a - (a >> evidence.code.xlen - 1) * size) - (b - (b >> evidence.code.xlen - 1) * size) if ordered
                   else a - b for a, b in pairs]  # fmt: skip
    steps = {late - early for late, early in pairwise(differences)}
    if len(steps) != 1:
        return None
    [step] = steps
    return _WayOut(pairs[0], step, _rounds_left(op.name, differences[0], step, size))


def _rounds_left(branch: str, difference: int, step: int, size: int) -> int | None:
    """Return in how many rounds two values that come nearer by a step are equal; None: never."""
    if step == 0:
        return None
    if branch not in ("beq", "bne"):
        return abs(difference) // abs(step) if (difference > 0) == (step < 0) else None
    distance, by = (difference % size, -step) if step < 0 else (-difference % size, step)
    return distance // by if distance % by == 0 else None


def _rounds(evidence: Evidence, pc: int, most: int) -> Iterator[int]:
    """Yield the positions of the last executions of an instruction, the last one first."""
    at: int | None = evidence.part.stop
    while most and at is not None:
        at = evidence.last_execution((pc,), at)
        if at is not None:
            yield at
        most -= 1


def _follows(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop) -> ExplainedFinding | None:
    again = _comes_back(evidence, loop)
    stays = stays_before(evidence, loop)
    if again is None and not _is_too_long(loop, stays):
        return None
    name = places.function_name(loop.head)
    text = f"{name} follows pointers without end: {loop.rounds} rounds{_stays_text(stays)}"
    details = ["A list that closes in itself?"]
    if again is not None:
        address, length = again
        details = [f"The pointer comes back to {places.address_name(address)} every {length} rounds: a closed list."]
    facts = {"rounds": loop.rounds, "longest": stays.longest, "since": history_number(loop.begin)}
    place = places.place_of(loop.head, history_number(loop.begin))
    return ExplainedFinding("follows-pointers", text, place, details, facts)


def _comes_back(evidence: Evidence, loop: EndingLoop) -> tuple[int, int] | None:
    """Return a pointer that had the same value in two rounds without a store in between, and how many rounds apart."""
    pc = loop.flow.followed[0]
    base = evidence.code.effect(pc).address
    if loop.flow.stores or base is None or evidence.past is None or not loop.round:
        return None
    seen: dict[int, int] = {}
    for number, at in enumerate(_rounds(evidence, pc, min(_CHASED_MOST, loop.rounds))):
        value = evidence.register(at, base)
        if value is None:
            return None
        if value in seen:
            return value, number - seen[value]
        seen[value] = number
    return None


def _is_too_long(loop: EndingLoop, stays: Stays) -> bool:
    return loop.rounds > _ROUNDS_LEAST and loop.rounds > _LONGER * max(stays.longest, _LONGER)


def _stays_text(stays: Stays) -> str:
    return f", {stays.longest} at most before" if stays.number else ", and never before"


def _waits(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop) -> ExplainedFinding | None:
    flow = loop.flow
    if flow.works and len(_body_functions(evidence, loop)) > 2:
        return None  # a main loop that works, and waits for more besides
    stays = stays_before(evidence, loop)
    reads = {pc: _address(evidence, loop, pc, place) for pc, place in flow.waited.items()}
    if not _is_too_long(loop, stays) or (not stays.longest and _may_be_clock(places, flow, reads)):
        return None
    names = _names(evidence, places, flow, reads)
    kind = "waits-for-lock" if flow.swaps else "waits"
    what = f"{'the lock ' if flow.swaps else ''}{' and '.join(names)}" if names else "memory"
    text = f"{places.function_name(loop.head)} waits for {what}: {loop.rounds} rounds{_stays_text(stays)}"
    details = [*_branch_text(places, loop), *_written(evidence, places, loop, reads)]
    facts: dict[str, object] = {
        "rounds": loop.rounds, "longest": stays.longest, "since": history_number(loop.begin),
        "waits_for": [f"0x{it:x}" for it in reads.values() if it is not None],
    }  # fmt: skip
    if not flow.stores:
        details.append(_who_ends_it(evidence, loop))
        off = masked_since(evidence, evidence.part.stop)
        if off is not None and kind == "waits":
            details.append(masked_text(evidence, places, off))
            facts["off_since"] = history_number(off)
    return ExplainedFinding(kind, text, places.place_of(loop.head, history_number(loop.begin)), details, facts)


def _address(evidence: Evidence, loop: EndingLoop, pc: int, place: MemoryPlace) -> int | None:
    """Return the address that a load of a loop reads."""
    if evidence.code.effect(pc).role is CodeRole.CSR:
        return None
    if place.base is None:
        return place.offset
    at = evidence.search.find(loop.begin - 1, 1, frozenset((pc,)), evidence.progress)  # the same in all rounds
    return None if at is None or at >= evidence.part.stop else address_at(evidence, at)


def _may_be_clock(places: ProgramPlaces, flow: LoopFlow, reads: dict[int, int | None]) -> bool:
    """Return whether a loop may wait until a clock has come to a time: it compares by size, and reads no memory of the
    program.
    """
    return flow.ordered and not all(it is not None and places.is_memory(it) for it in reads.values())


def _names(evidence: Evidence, places: ProgramPlaces, flow: LoopFlow, reads: dict[int, int | None]) -> list[str]:
    csrs = {number: name for name, number in CSRS.items()}
    found = []
    for pc, address in reads.items():
        effect = evidence.code.effect(pc)
        if effect.role is CodeRole.CSR:
            found.append(f"the CSR {csrs.get(effect.offset, hex(effect.offset))}")
        elif address is not None:
            name = places.data_name(address)
            found.append(f"`{name}`" if name else f"the device or memory at 0x{address:x}")
    return list(dict.fromkeys(found))


def _branch_text(places: ProgramPlaces, loop: EndingLoop) -> Iterator[str]:
    """Yield which branch keeps the program in a loop."""
    for pc in loop.ways[:1]:
        place = places.place_of(pc)
        at = f"0x{pc:x} <{place.name}+{place.offset}>" if place.name else f"0x{pc:x}"
        more = f" and {len(loop.ways) - 1} more" if len(loop.ways) > 1 else ""
        yield f"The branch at {at}{f' ({place.line})' if place.line else ''}{more} keeps it there."


def _written(
    evidence: Evidence, places: ProgramPlaces, loop: EndingLoop, reads: dict[int, int | None]
) -> Iterator[str]:
    """Yield when what a loop waits for was written last."""
    for pc, address in list(reads.items())[:2]:
        if address is None:
            continue
        name, size = places.address_name(address), evidence.code.effect(pc).size
        found = last_store(evidence, address, size, loop.begin)
        if found is None:
            yield f"Nothing that ran before is known to have written {name}."
            continue
        place = places.place_at(found.position)
        at = "" if place is None or not place.line else f" {place.line}"
        function = places.function_name(evidence.history.pc(found.position))
        doubt = "" if found.certain else ", as far as addresses in the code say"
        yield f"{name} was written last at #{history_number(found.position)} {function}{at}{doubt}."


def _who_ends_it(evidence: Evidence, loop: EndingLoop) -> str:
    text = "Nothing in the loop stores: only an interrupt, a device or another hart can end it"
    interrupts = evidence.interrupts
    if not interrupts:
        return f"{text}; no interrupt was ever taken."
    since = [it for it in interrupts if it.position > loop.begin]
    if since:
        return f"{text}; {len(since)} interrupts came meanwhile."
    return f"{text}; the last of {len(interrupts)} interrupts was at #{history_number(interrupts[-1].position)}."


def sleep(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None) -> ExplainedFinding | None:
    """Return that the hart sleeps, and nothing can wake it as far as known."""
    last = evidence.last
    if last < 0:
        return None
    pc = evidence.history.pc(last)
    body = [pc] if loop is None else sorted(loop.body)
    sleeping = [it for it in body if evidence.code.effect(it).role is CodeRole.WAIT]
    if not sleeping or (loop is not None and _has_ended(evidence, loop)):
        return None
    enabled = _enabled_interrupts(evidence)
    if evidence.selected.overwritten or evidence.part.start:
        never = False
    else:
        never = not evidence.interrupts and (loop is None or enabled == 0)
    if not never and enabled != 0:
        return None
    why = "no interrupt is enabled (mie is 0)" if enabled == 0 else "no interrupt was ever taken"
    text = f"{places.function_name(sleeping[0])} waits for an interrupt (wfi): {why}"
    return ExplainedFinding("sleeps", text, places.place_of(sleeping[0], history_number(last)), [], {})


def _enabled_interrupts(evidence: Evidence) -> int | None:
    """Return mie at the end, None if it is not known."""
    if evidence.past is None:
        return None
    return evidence.past.registers(evidence.part.stop).get("mie")
