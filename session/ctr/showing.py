"""Records as a user looks at them: listed, the youngest first, with what ran between two of them; as a call stack."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rvtrace_gdb.controlregs.ctr.entries import Entry
from rvtrace_gdb.controlregs.ctr.settings import settings
from rvtrace_gdb.decode.ctr.decoder import Decoded, Stretch
from rvtrace_gdb.decode.ctr.record import Record
from rvtrace_gdb.decode.ctr.wording import TYPE_NAMES
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.instructions import IType
from rvtrace_gdb.session.captured import CapturedRecords
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.ctr import commands
from rvtrace_gdb.session.ctr.access import Way
from rvtrace_gdb.session.ctr.decoding import decode, options_of
from rvtrace_gdb.session.ctr.items import items
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.ranges import Cursor
from rvtrace_gdb.session.report import other_hart
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.progress import Progress, silent

_CALL_KINDS = (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP)
_RETURN_KINDS = (IType.RETURN, IType.COROUTINE_SWAP)
_NOTHING_YET = "no control transfer was recorded yet: let the program run (`continue`), then ask again"
_NOT_RECORDING = (
    "there are no records, and none are made: no privilege mode is enabled (`trace ctr start` does that; after it, a"
    " reset or the program may have ended it)"
)
_NO_STACK = (
    "the calls under way do not follow from these records, which lack calls or returns: `trace ctr start -ras` records"
    " the stack, `trace ctr start` all transfers"
)


class Line(NamedTuple):
    """An entry: its number, what the registers held, the record if it is valid, what ran from the older one to it."""

    number: int
    entry: Entry
    record: Record | None
    between: Stretch | None


class Shown:
    """The records of one hart. *lines*: the youngest first; *now*: what ran since the newest, if that is known."""

    def __init__(self, records: CapturedRecords, decoded: Decoded, history: History) -> None:
        self.records, self.history = records, history
        self.cursor = Cursor()
        found = list(items(records.data))
        stretches = iter(decoded.stretches)
        next(stretches, None)  # what leads to the oldest record is not known
        self.lines: list[Line] = []
        older = False
        for number, item in zip(reversed(range(len(found))), found, strict=True):
            between = next(stretches, None) if older and item.record is not None else None
            older = older or item.record is not None
            self.lines.append(Line(number, item.entry, item.record, between))
        self.lines.reverse()
        self.now = next(stretches, None)


def shown(session: Session, context: Context, way: Way | None, progress: Progress) -> tuple[Shown, list[str]]:
    """The records of the context's hart as they are now, and what is to be said. Raises as `commands.look`."""
    commands.look(session, context, way, progress)
    decoded = session.harts(context, progress)
    if session.live is not None and session.live.failure is not None:
        raise session.live.failure
    hart = decoded.harts.number(context.hart, context.thread_hart)
    source, history = decoded.sink_of(hart), decoded.harts.histories[hart]
    if not isinstance(source, CapturedRecords):
        raise NoTrace("this trace has no control transfer records: `trace history` shows it")

    def make() -> Shown:
        return Shown(source, decode(source.data, decoded.program, source.in_force), history)

    return session.kept(Shown, history, make), session.warnings() + other_hart(hart, context)


def show(
    session: Session,
    context: Context,
    way: Way | None,
    args: str,
    size: int | None,
    progress: Progress = silent,
) -> Mapping[str, Any]:
    """Which rows `trace ctr show ARGS` shows. Raises as `commands.look`, and RangeError."""
    found, lines = shown(session, context, way, progress)
    if not found.lines:
        raise NoTrace(_NOTHING_YET if settings(found.records.in_force).modes else _NOT_RECORDING)
    begin, end, notice = found.cursor.select(args, size, len(found.lines), 1)
    session.last[Shown] = found
    return {"begin": begin, "end": end, "notice": notice, "lines": lines, "hart": found.records.hart,
            "now": _between(found.now)}  # fmt: skip


def rows(session: Session, begin: int, end: int) -> list[Mapping[str, Any]]:
    """Rows of what was shown last; row 1 is entry 0. Raises `NoTrace`."""
    found = session.last.get(Shown)
    if not isinstance(found, Shown):
        raise NoTrace("no records were asked for yet")
    return [_row(line) for line in found.lines[begin - 1 : end - 1]]


def stack(session: Session, context: Context, way: Way | None, progress: Progress = silent) -> Mapping[str, Any]:
    """The calls under way, as far as the records tell. Raises as `commands.look`."""
    found, lines = shown(session, context, way, progress)
    hart, selected = found.records.hart, context.thread_hart
    if selected is not None and selected != hart:  # gdb's frames, beside which they stand, are those of its thread
        raise NoTrace(f"the records are of hart {hart}, and hart {selected} is selected (`thread` selects another)")
    how, valid = found.records.in_force, [line.record for line in found.lines if line.record is not None]
    made = options_of(how, valid)
    ras = made.ras
    if not ras and not {*_CALL_KINDS, *_RETURN_KINDS} <= made.kinds:
        raise NoTrace(_NO_STACK)
    calls = [record for record in valid if record.kind in _CALL_KINDS] if ras else _open_calls(valid)
    frames = [] if how.pc is None else [{"pc": how.pc, "call": False, "to": None}]
    frames += [{"pc": record.source, "call": True, "to": record.target} for record in calls]
    return {"lines": lines, "ras": ras, "full": len(valid) >= how.depth, "frames": frames}


def _open_calls(records: list[Record]) -> list[Record]:
    """Of all transfers, *records*, the youngest first: the calls that did not return since."""
    returned, found = 0, []
    for record in records:
        if record.kind in _CALL_KINDS:
            found += [] if returned else [record]
            returned = max(returned - 1, 0)
        if record.kind in _RETURN_KINDS:
            returned += 1
    return found


def _row(line: Line) -> Mapping[str, Any]:
    record = line.record
    if record is None:
        return {"number": line.number, "valid": False, "from": None, "to": None, "type": "invalid", "code": 0,
                "mispredicted": False, "cycles": None, "saturated": False, "between": None}  # fmt: skip
    return {
        "number": line.number,
        "valid": True,
        "from": record.source,
        "to": record.target,
        "type": TYPE_NAMES[record.kind],
        "code": int(record.kind),
        "mispredicted": record.mispredicted,
        "cycles": record.cycles,
        "saturated": record.saturated,
        "between": _between(line.between),
    }


def _between(stretch: Stretch | None) -> Mapping[str, Any] | None:
    """History numbers count from 1; *first* > *last*: nothing ran."""
    if stretch is None:
        return None
    why = stretch.why or None
    return {"instructions": stretch.instructions, "first": stretch.first + 1, "last": stretch.stop, "why": why}
