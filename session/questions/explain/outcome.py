"""What is said of a run in which nothing wrong was seen: how it ended, what was called last, what was written last."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rvtrace_gdb.decode.calls.call_history import FunctionRun
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number, history_position
from rvtrace_gdb.rows.explain_rows import ExplainedPlace, LastCall
from rvtrace_gdb.session.questions.explain.code import SP, CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.loop import EndingLoop
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.explain.stores import address_at
from rvtrace_gdb.session.questions.explain.waits import has_ended
from rvtrace_gdb.support.text import printable

_CALLS = 5
_RUNS_AT_ONCE, _RUNS_MOST = 64, 4096
_INSTRUCTIONS_MOST, _STORES_MOST = 4096, 32
"""Instructions, and stores among them, that are looked at, the last ones."""


def outcome(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None) -> str:
    """Return how a run ended in which nothing wrong was seen, "" if nothing ran."""
    last = evidence.part.stop - 1
    if last < evidence.part.start:
        return ""
    if evidence.last < 0:
        return "what ran last is missing in the trace"
    pc = evidence.history.pc(last)
    function, body = places.function_name(pc), (pc,) if loop is None else sorted(loop.body)
    if _is_end(evidence, pc):
        return f"the program ended in {function}"
    if evidence.part.stop < len(evidence.history):
        return f"it ran on behind #{history_number(last)}"
    if any(evidence.code.effect(it).role is CodeRole.WAIT for it in body):
        return "it waits for an interrupt where the trace ends"
    if loop is not None and loop.rounds > 1:
        return "it goes round in this loop where the trace ends"
    return f"it stands in {function} where the trace ends"


def _is_end(evidence: Evidence, pc: int) -> bool:
    """Return whether an instruction is of a function in which a program stays that has ended."""
    symbol = evidence.image.symbol(pc)
    return symbol is not None and has_ended(symbol[0])


def _end_file(evidence: Evidence, places: ProgramPlaces) -> str | None:
    """Return the file of the function in which a program stays that has ended, "" without lines; None: it has not."""
    pc = GAP if evidence.last < 0 else evidence.history.pc(evidence.last)
    return None if pc == GAP or not _is_end(evidence, pc) else _file(places.place_of(pc))


def _file(place: ExplainedPlace) -> str:
    return place.line.rpartition(":")[0]


def last_calls(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None) -> list[LastCall]:
    """Return the functions that were called last, and how often in a row; before the loop in which the run ends. Where
    the program has ended, the functions that end it are left out if there are others: those of the file in which it
    stays, by their names.
    """
    stop = evidence.part.stop if loop is None else max(loop.begin + 1, evidence.part.start + 1)
    found = _calls_before(evidence, places, stop, _CALLS)
    file = _end_file(evidence, places)
    if file is None:
        return found
    found = _calls_before(evidence, places, stop, 2 * _CALLS)
    others = (at for at, it in enumerate(found) if not has_ended(it.place.name) or _file(it.place) != file)
    ends = next(others, 0)
    return found[ends : ends + _CALLS]


def _calls_before(evidence: Evidence, places: ProgramPlaces, stop: int, most: int) -> list[LastCall]:
    found, last = list[LastCall](), None
    for run in islice(_runs_before(evidence, _function_number(evidence, stop)), _RUNS_MOST):
        if run.begin < evidence.part.start:
            break
        if run.pc == GAP or evidence.programs.image_at(run.begin).function(run.pc) != run.pc:
            continue
        if run.pc == last:
            found[-1] = found[-1]._replace(times=found[-1].times + 1)
        elif len(found) == most:
            break
        elif (place := places.place_at(run.begin)) is not None:
            found.append(LastCall(place, 1))
            last = run.pc
    return found


def _runs_before(evidence: Evidence, number: int) -> Iterator[FunctionRun]:
    """Yield the functions that ran, from one with a number back."""
    while number > 0:
        first = max(number - _RUNS_AT_ONCE + 1, 1)
        yield from reversed(list(evidence.call_index.functions(first, number + 1)))
        number = first - 1


def _function_number(evidence: Evidence, stop: int) -> int:
    """Return the number of the function that ran before a position."""
    functions, low, high = evidence.call_index, 1, len(evidence.call_index)
    while low < high:
        middle = (low + high + 1) // 2
        begin = next(iter(functions.functions(middle, middle + 1))).begin
        low, high = (middle, high) if begin < stop else (low, middle - 1)
    return low if high else 0


def last_variable(evidence: Evidence, places: ProgramPlaces, loop: EndingLoop | None, calls: Sequence[LastCall]) -> str:
    """Return the variable that was written last since the oldest of the last calls, by its name, or its address where
    that is one of a part; "" if none is known.
    """
    numbers = [it.place.number for it in calls if it.place.number is not None]
    if not numbers or evidence.is_too_long:
        return ""
    ended = loop is not None and _is_end(evidence, loop.head)
    at = loop.begin if loop is not None and ended else evidence.part.stop
    first, part = max(history_position(min(numbers)), at - _INSTRUCTIONS_MOST), ""
    file = _end_file(evidence, places)
    stores = [it for it in set(evidence.history.pcs(first, at)) if it != GAP and _may_write(evidence, it)
              and not (_is_end(evidence, it) and _file(places.place_of(it)) == file)]  # fmt: skip
    for _ in range(_STORES_MOST if stores else 0):
        found = evidence.last_execution(stores, at)
        if found is None or found < first:
            break
        at = found
        address, size = address_at(evidence, at), evidence.code.effect(evidence.history.pc(at)).size
        name = "" if address is None else places.data_name(address)
        if address is None or not name or has_ended(name):
            continue
        if places.is_object(address, size) and printable(name) == name:
            return name
        part = part or f"0x{address:x}"
    return part


def _may_write(evidence: Evidence, pc: int) -> bool:
    """Return whether an instruction writes memory that is not of its stack frame."""
    effect = evidence.code.effect(pc) if evidence.image.knows(pc) else None
    return effect is not None and effect.role in (CodeRole.STORE, CodeRole.ATOMIC) and effect.address != SP
