"""Control Transfer Records for the user: as a list, as a call stack, or as the registers that hold them.

The list has the youngest record first, with what ran between two records. The CSRs are those of a hart now, or those at
the time when its records were read.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.controlregs.ctr import procedures
from rvtrace_gdb.controlregs.ctr.entries import CtrEntry
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues, settings
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.dump import field_texts
from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.decode.ctr.decoder import DecodedRecords, RecordStretch
from rvtrace_gdb.decode.ctr.records import TYPE_NAMES, CtrRecord
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.rows.list_rows import Between, Place, RecordRow
from rvtrace_gdb.session.capture.model import CapturedRecords
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats.ctr import decode, items, options_of
from rvtrace_gdb.session.queries.lists.pages import Cursor, PageSelection
from rvtrace_gdb.session.report import other_hart
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import ctr_commands
from rvtrace_gdb.session.sources.ctr import CtrTrace, HartRecorder
from rvtrace_gdb.session.target.csr_access import Way, open_access
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent

PREFIX = "ctr"
"""The prefix of the name of a hart's records, before the hart's number."""
_H_EXTENSION = 1 << 7  # VS and VU mode exist if misa has this bit


def hart_of(name: str) -> int | None:
    """Return the hart whose CSRs are called *name*: "ctr0", "ctr1", ..."""
    number = name.removeprefix(PREFIX)
    return int(number) if name.startswith(PREFIX) and number.isascii() and number.isdigit() else None


def ctr_lines(values: CtrRegisterValues, hart: int, more: str = "", *, everything: bool = False) -> list[str]:
    """Describe a hart's registers, below a title that ends with *more*. Optional ones that are 0 only if *everything*
    is set.
    """
    title = f"{values.name}: Control Transfer Records {values.version}, hart {hart}{more}"
    return [title, *(f"  {_field_words(csr, value)}" for csr, value in _known_registers(values, everything))]


def of_recorder(recorder: HartRecorder, *, tracing: bool, everything: bool = False) -> list[str]:
    """Describe the registers of a hart that records or recorded: those of now, or if they cannot be read, the last
    ones.
    """
    made = recorder.captured.in_force
    if not tracing:
        return ctr_lines(made, recorder.hart, ", when they were read", everything=everything)
    try:
        now = procedures.status(recorder.access, recorder.version, made.name)
    except Cancelled:
        raise
    except RvtraceError as error:
        last = ctr_lines(made, recorder.hart, ", when last read", everything=everything)
        return [*last, f"  warning: {error}"]
    return ctr_lines(now.in_force, recorder.hart, everything=everything)


def of_hart(session: Session, hart: int, way: Way | None, *, everything: bool = False) -> list[str]:
    """Describe the registers of any halted hart. Raises what the access and the procedures raise."""
    access = open_access(way, session, hart)
    version = procedures.detect(access, way.get("version") if way else None)
    return ctr_lines(procedures.status(access, version, f"{PREFIX}{hart}").in_force, hart, everything=everything)


def recorders(session: Session) -> Sequence[HartRecorder]:
    """Return the harts that record, or recorded last."""
    return session.live.recorders if isinstance(session.live, CtrTrace) else ()


def _known_registers(values: CtrRegisterValues, everything: bool) -> Iterator[tuple[Csr, int]]:
    """Yield each register that is known, in the order of their numbers."""
    version = VERSIONS[values.version]
    found = {version.machine.control.csr: values.control, version.machine.status: values.status}
    guest = values.misa is not None and values.misa & _H_EXTENSION
    if values.vs_control or guest or everything:
        found[version.virtual.csr] = values.vs_control
    if version.depth is not None:
        found[version.depth] = int(version.depth_codes[values.depth])
    yield from sorted(found.items(), key=lambda it: it[0].number)


def _field_words(csr: Csr, value: int) -> str:
    digits = csr.bits // 4 + 2
    return f"{csr.name} {value:#0{digits}x}: {' '.join(field_texts(csr, value))}"


_CALL_KINDS = (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP)
_RETURN_KINDS = (IType.RETURN, IType.COROUTINE_SWAP)
_NOTHING_YET = "no control transfer has been recorded yet: let the program run (`continue`), then ask again"
_NOT_RECORDING = (
    "there are no records, and none are being made: no privilege mode is enabled (`trace ctr start` enables them; a"
    " reset or the program may have disabled them since)"
)
_NO_STACK = (
    "the calls under way do not follow from these records, which lack calls or returns: `trace ctr start -ras` records"
    " the stack, `trace ctr start` all transfers"
)


def _nothing(registers: CtrRegisterValues) -> str:
    """Return why there are no records."""
    return _NOTHING_YET if settings(registers).modes else _NOT_RECORDING


class RecordLine(NamedTuple):
    """An entry: its number, the registers, the record if it is valid, and what ran between the older record and it."""

    number: int
    entry: CtrEntry
    record: CtrRecord | None
    between: RecordStretch | None


class ShownRecords:
    """The records of one hart, the youngest first."""

    def __init__(self, records: CapturedRecords, decoded: DecodedRecords, history: History) -> None:
        self.records, self.history = records, history
        self._cursor = Cursor()
        found = list(items(records.data))
        stretches = iter(decoded.stretches)
        next(stretches, None)  # what leads to the oldest record, if that is known, is in the history alone
        self.lines: list[RecordLine] = []
        older = False
        for number, item in zip(reversed(range(len(found))), found, strict=True):
            between = next(stretches, None) if older and item.record is not None else None
            older = older or item.record is not None
            self.lines.append(RecordLine(number, item.entry, item.record, between))
        self.lines.reverse()
        self._now = next(stretches, None)

    def __len__(self) -> int:
        return len(self.lines)

    def select(self, args: str, size: int | None) -> PageSelection:
        """Return which rows `trace ctr show ARGS` shows; row 1 is entry 0. Raises NoTrace, RangeError."""
        if not self.lines:
            raise NoTrace(_nothing(self.records.in_force))
        return self._cursor.select(args, size, len(self.lines), 1)

    def rows(self, begin: int, end: int) -> list[RecordRow]:
        """Return the rows numbered *begin* to *end* - 1."""
        return [_record_row(line) for line in self.lines[begin - 1 : end - 1]]

    def since(self) -> Between | None:
        """Return what ran after the newest record, None if that is not known."""
        return _between(self._now)


def shown(
    session: Session, context: Context, way: Way | None, progress: Progress
) -> tuple[ShownRecords, list[str]]:
    """Return the current records of the context's hart, and lines for the user. Raises as `ctr_commands.look`."""
    ctr_commands.look(session, context, way, progress)
    decoded = session.harts(context, progress)
    if session.live is not None and session.live.failure is not None:
        raise session.live.failure
    hart = decoded.harts.number(context.hart, context.thread_hart)
    source, history = decoded.sink_of(hart), decoded.harts.histories[hart]
    if not isinstance(source, CapturedRecords):
        raise NoTrace("this trace has no control transfer records: `trace history` shows it")

    def make() -> ShownRecords:
        return ShownRecords(source, decode(source.data, decoded.program, source.in_force), history)

    return session.cached(ShownRecords, history, make), session.warnings() + other_hart(hart, context)


def stack(session: Session, context: Context, way: Way | None, progress: Progress = silent) -> dict[str, Any]:
    """Return the call stack, as far as the records contain it. Raises as `ctr_commands.look`."""
    found, lines = shown(session, context, way, progress)
    hart, selected = found.records.hart, context.thread_hart
    if (
        selected is not None and selected != hart
    ):  # gdb's frames, beside which they are printed, are those of its thread
        raise NoTrace(f"the records are of hart {hart}, and hart {selected} is selected (`thread` selects another)")
    registers, valid = found.records.in_force, [line.record for line in found.lines if line.record is not None]
    made = options_of(registers, valid)
    ras = made.ras
    if not valid and not (ras and settings(registers).modes):
        raise NoTrace(_nothing(registers))
    if not ras and not {*_CALL_KINDS, *_RETURN_KINDS} <= made.kinds:
        raise NoTrace(_NO_STACK)
    calls = [record for record in valid if record.kind in _CALL_KINDS] if ras else _open_calls(valid)
    frames = [] if registers.pc is None else [{"pc": registers.pc, "call": False, "to": None}]
    frames += [{"pc": record.source, "call": True, "to": record.target} for record in calls]
    return {"lines": lines, "ras": ras, "full": len(valid) >= registers.depth, "frames": frames}


def _open_calls(records: list[CtrRecord]) -> list[CtrRecord]:
    """Return the calls that have not returned. *records*: all transfers, the youngest first."""
    returned, found = 0, []
    for record in records:
        if record.kind in _CALL_KINDS:
            found += [] if returned else [record]
            returned = max(returned - 1, 0)
        if record.kind in _RETURN_KINDS:
            returned += 1
    return found


def _record_row(line: RecordLine) -> RecordRow:
    record = line.record
    return RecordRow(
        number=line.number,
        source=_pc_place(record.source) if record is not None else None,
        target=_pc_place(record.target) if record is not None else None,
        type=TYPE_NAMES[record.kind] if record is not None else None,
        mispredicted=record is not None and record.mispredicted,
        cycles=record.cycles if record is not None else None,
        saturated=record is not None and record.saturated,
        between=_between(line.between),
    )


def _pc_place(pc: int | None) -> Place | None:
    return None if pc is None else (pc,)


def _between(stretch: RecordStretch | None) -> Between | None:
    """Convert what ran between two records. History numbers count from 1; *first* > *last*: nothing ran."""
    if stretch is None:
        return None
    return Between(
        instructions=stretch.instructions, first=stretch.first + 1, last=stretch.stop, why=stretch.why or None
    )
