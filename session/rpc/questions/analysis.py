"""The methods of the session protocol for coverage (how often instructions ran) and for who wrote a value.

coverage {context, args, ranges, functions, branches}: *args* is a RANGE as in `trace history` ("": everything).
*ranges* restricts the answer to addresses: [begin, end, begin, end, ...], null for all. *functions* and *branches* are
in the answer if these are not null.

    {lines, hart, first, last, gaps, elsewhere,    what was counted, see `session.queries.lists.functions.CountedPart`
     overwritten: whether older trace was overwritten before the first instruction,
     counts: [[address, how often it ran], ...],
     branches: [[address, taken, not taken, target, next address], ...],
     functions: [[start, end, name, instructions, number of instructions that ran, number of entries], ...]}

`trace check` encodes the histories again, and returns the rows `rows.answers.CheckRow` of all harts:

    check {context} -> {lines, rows}

`trace who-wrote` finds what wrote a register or some memory last before a moment:

    who_wrote {context, name, at, register or where, below} -> {hart, lines, writer, none, below}

*name*: the user's expression. *at*: the number of the instruction before which the writer is searched, null: the end of
the trace. *register*: its name. *where*: [address, size] of memory. *below*: the value of the previous answer, to find
only earlier writers. *none*: lines to print if the trace has no writer. *writer* is null, or
`rows.answers.ValueWriter`.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import chain

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.decode.program.csrs import is_counter
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.wording import register_name, regno_of
from rvtrace_gdb.rows.answers import ValueWriter, WriterAnswer
from rvtrace_gdb.rows.list_rows import Happened
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import INSTRUCTION, PC, NoWrite, Past, PastWrite
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.past.wording import SHOWN, hex_text
from rvtrace_gdb.session.queries.lists.functions import Coverage
from rvtrace_gdb.session.queries.lists.history_rows import describe_event, rows
from rvtrace_gdb.session.queries.lists.search import NO_ACCESSES, size_at
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError

_ALL = ((0, 1 << 64),)
_FLOATS = range(0x1020, 0x1040)  # the numbers of the floating-point registers


def coverage(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the coverage of a range, see the module. Raises BadRequest, and as `Session.history`."""
    it = session.selected(params.context(), progress)
    calls = call_history(session, it, progress)
    kept = session.cached(Coverage, it.history, lambda: Coverage(it.history, it.program, calls))
    kept.select(params.text("args", ""))
    part = kept.counted(progress)
    ranges = _ranges(params)
    return {
        "lines": it.lines,
        "hart": it.hart,
        **part._asdict(),
        "overwritten": it.overwritten and part.first == 1,
        "counts": list(chain.from_iterable(kept.addresses(*one) for one in ranges)),
        "branches": list(chain.from_iterable(kept.branches(*one) for one in ranges))
        if params.given("branches")
        else [],
        "functions": kept.functions() if params.given("functions") else [],
    }


def check(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return what a check of the trace finds out, see the module. Raises Unsupported, and as `Session.history`."""
    decoded = session.check(params.context(), progress)
    return {"lines": session.warnings(), "rows": decoded.checked}


def _ranges(params: Params) -> tuple[tuple[int, int], ...]:
    """Return the address ranges that were requested. Raises BadRequest."""
    if not params.given("ranges"):
        return _ALL
    numbers = params.numbers("ranges")
    if len(numbers) % 2:
        raise BadRequest("coverage: ranges are pairs of addresses")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


SIZE_MOST = 1 << 20


class NoRegister(RvtraceError):
    """The name is that of no register that a trace can have."""


def who_wrote(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the last writer, see the module. Raises as `Session.history`, NoRegister, NoTrace."""
    context = params.context()
    it = session.selected(context, progress)
    at, below = params.optional_number("at"), params.optional_number("below")
    at = session.number_of_selected_hart(context) if at is None else at
    position = len(it.history) if at is None else min(max(at - 1, 0), len(it.history))
    answer = WriterAnswer(it.hart, it.lines, None, [], None)._asdict()
    until = "now" if below is None else "that"
    none = it.unless_earlier(f"Nothing wrote {params.text('name')} in this trace before {until}.")
    below = None if below is None else below - 1  # writers are counted from 1 outside
    past = past_of(session, it, progress)
    if past is not None:
        past.prepare(progress)
    if params.given("register"):
        answer |= _register_writer(session, it, position, params.text("register"), below, none, progress)
        return _with_runner(session, it, answer, progress)
    where = params.place("where")
    if where is None or where[1] > SIZE_MOST:
        raise BadRequest(f"who_wrote: register is needed, or where with at most {SIZE_MOST} bytes")
    return _with_runner(session, it, answer | _memory_writer(it, past, position, where, below, none), progress)


def _with_runner(session: Session, selected: SelectedHistory, answer: JsonMessage, progress: Progress) -> JsonMessage:
    """Return an answer with who ran when its instruction wrote."""
    from rvtrace_gdb.session.tasks.labels import runner_at  # few programs have tasks

    writer = answer["writer"]
    if writer is not None and writer["kind"] == INSTRUCTION and writer["number"] is not None:
        writer |= runner_at(session, selected, history_position(writer["number"]), progress)._asdict()
    return answer


def _register_writer(
    session: Session,
    selected: SelectedHistory,
    position: int,
    name: str,
    below: int | None,
    none: str,
    progress: Progress,
) -> JsonMessage:
    number = PC if name == "pc" else regno_of(name)
    if number is None:
        raise NoRegister(f"there is no register ${name}, or a trace does not have it")
    if name in ("zero", "x0"):
        return {"none": [f"${name} is always 0: nothing can write it."]}
    past = past_of(session, selected, progress)
    if past is None:
        history = selected.history
        writers = session.cached(RegisterWriters, history, lambda: RegisterWriters(history, selected.program))
        found = writers.last(position, number, below, progress)
    else:
        found = past.register_writer(position, number, below)
    if isinstance(found, NoWrite):
        counts = ["It counts by itself."] if number >= 0 and is_counter(number) else []
        return {"none": list(dict.fromkeys((none, *found.notes, *counts)))}
    known = None if past is None else past.traced_registers()
    bits = known.flen if known is not None and number in _FLOATS else selected.program.xlen
    written_as = None if found.reported is None else name_of(found.reported)
    writer = _writer(selected, position, found)._replace(bits=bits, written_as=written_as)
    return {"writer": writer._asdict(), "below": found.below + 1}


def _memory_writer(
    selected: SelectedHistory, past: Past | None, position: int, where: tuple[int, int], below: int | None, none: str
) -> JsonMessage:
    image = selected.program.image_of(selected.history.context_at(max(min(position, len(selected.history) - 1), 0)))
    address, size = where[0], where[1] or min(size_at(where[0], image), SIZE_MOST)
    if past is None:
        raise NoTrace(f"the stores are not known: a tandem trace has them (docs/tandem.md); {NO_ACCESSES}")
    found = past.memory_writer(position, address, size, below)
    if isinstance(found, NoWrite):
        program = _in_program(image, address, size) if past.traced_registers() is not None else []
        return {"none": [none, *found.notes, *program]}
    writer = _writer(selected, position, found)._replace(where=(address, size))
    return {"writer": writer._asdict(), "below": found.below + 1}


def _writer(selected: SelectedHistory, position: int, write: PastWrite) -> ValueWriter:
    history, at = selected.history, write.position
    row = next(iter(rows(history, selected.program, at + 1, at + 2)), None) if at < len(history) else None
    first, last = (bisect_left(history.gap_positions, i) for i in (at, position))
    store = write.store
    return ValueWriter(
        kind=write.kind,
        number=None if row is None else at + 1,
        row=row,
        group=None if write.group is None else write.group + 1,
        ago=position - at - (last - first),
        happened=_happened(selected, write) if write.kind != INSTRUCTION else [],
        old=write.old,
        new=write.new,
        window=write.window,
        doubts=write.doubts,
        store=None if store is None else (store.address, store.size),
    )


def _happened(selected: SelectedHistory, write: PastWrite) -> list[Happened]:
    """Return the event of a writer that is not an instruction, if it has one."""
    kinds = (EventKind.TRAP, EventKind.SYNC)
    events = selected.history.events_between(write.position, write.position + 1)
    event = next((event for event in events if write.offset in (None, event.offset) and event.kind in kinds), None)
    said = None if event is None else describe_event(selected.history, selected.program, event)
    return [] if said is None else [said]


def _in_program(image: Image, address: int, size: int) -> list[str]:
    """Return a line with the bytes that the program file has there."""
    for elf, bias in image.elves:
        for segment in elf.segments:
            at = address - segment.vaddr - bias
            data = segment.data[at : at + size] if at >= 0 else b""
            if len(data) == size and size <= SHOWN:
                held = hex_text(data)
                return [f"The program file has {held} there; the trace does not show whether it was loaded unchanged."]
    return []


def name_of(register: int) -> str:
    """Return a register's usual name."""
    return "pc" if register == PC else register_name(register)


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {
    "check": check, "coverage": coverage, "who_wrote": who_wrote,
}  # fmt: skip
