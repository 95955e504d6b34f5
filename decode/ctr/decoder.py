"""From records to a history: what ran between them where records and program determine it, and gaps elsewhere."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.ctr.records import (
    ROUNDED_FROM,
    TYPE_NAMES,
    CtrRecord,
    Interpretation,
    RecordOptions,
    RecordRoute,
    RouteGoal,
    Routes,
    impossible,
    interpret,
    is_rounded,
    moments,
)
from rvtrace_gdb.decode.ctr.transfers import NOTHING_KNOWN, CodeTransfers, TransferRegisters
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import (
    Accounting,
    EventKind,
    Loss,
    LossCause,
    Note,
    NoteCause,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
)
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.stepping.reports import contradiction_report
from rvtrace_gdb.support.errors import Progress, silent

RECORD_BYTES = 24
"""The size of a record in the trace: ctrsource, ctrtarget and ctrdata, 64 bits each."""

_Missing = Stop | Loss | None
_TRAPS = frozenset({IType.EXCEPTION, IType.INTERRUPT})


class RecordStretch(NamedTuple):
    """What ran up to a record: from the target of the previous one to its own source, included if it retired.

    first, stop  positions of the history, *stop* after the last one; with the gap if there is one
    missing      None if all of it is known, else why not
    """

    first: int
    stop: int
    missing: Stop | Loss | None = None

    @property
    def why(self) -> str:
        """The text that says why not all of it is known; "" if it is."""
        return "" if self.missing is None else fact_text(self.missing)

    @property
    def complete(self) -> bool:
        """Whether everything that ran is known."""
        return self.missing is None

    @property
    def instructions(self) -> int | None:
        """The number of instructions that ran, None if that is not known."""
        return self.stop - self.first if self.complete else None


class DecodedRecords(NamedTuple):
    """The result of decoding records.

    *stretches* has one for each record, oldest first, and a last one for what ran from the newest record's target to
    `RecordOptions.end` (without the instruction there), if that is known. The oldest record's is its source alone, or
    begins where recording did (`RecordOptions.begin`), if all that ran since is certain.
    """

    history: History
    stretches: list[RecordStretch]


def decode_records(
    records: Sequence[CtrRecord],
    program: Program,
    options: RecordOptions,
    *,
    total: int,
    idle: int,
    progress: Progress = silent,
) -> DecodedRecords:
    """Return the history in *records*, oldest first. *total*: bytes of the trace; *idle*: those of empty entries.

    Decoding never fails, whatever the records and the program. Raises only what *progress* raises.
    """
    decoder = _RecordDecoder(records, program, options)
    decoder.run(progress)
    if decoder.switched:
        decoder = _RecordDecoder(records, program, options, decoder.switched)
        decoder.run(progress)
    decoded = max(min(len(records) * RECORD_BYTES, total - idle), 0)
    history = decoder.builder.finish(Accounting(total, decoded, idle, total - idle - decoded))
    return DecodedRecords(history, decoder.stretches)


class _RecordDecoder:
    """The decoder of the records of one hart, in order.

    *switched*: the number of the record before which the program changed what is recorded, so that *options* do not
    apply to older ones; 0 if none is known. It is found while decoding.
    """

    def __init__(
        self, records: Sequence[CtrRecord], program: Program, options: RecordOptions, switched: int = 0
    ) -> None:
        self.builder = HistoryBuilder()
        self.stretches: list[RecordStretch] = []
        self._records, self._program, self._options = records, program, options
        self._code = CodeTransfers(program.image_of(ProgramContext()))
        self.switched = self._as_before = switched
        self._use(options)
        self._times = moments(records, ras=options.ras)
        self._counts = any(record.cycles is not None for record in records) and not options.ras
        self._here: int | None = None  # where the hart went with the last record; None: a mode that is not recorded
        self._why_unknown: Stop | Loss = _NOT_RECORDED  # why that is not known
        self._known = NOTHING_KNOWN  # of its registers there

    def _use(self, options: RecordOptions) -> None:
        """Assume these options for the records that follow."""
        self._sure = not options.hidden and not options.ras and options.kinds >= _TRAPS
        self._routes = Routes(self._code, options.kinds, sure=self._sure, ras=options.ras)

    def run(self, progress: Progress) -> None:
        """Decode all records. Of records made with other options, the types that occur are known to
        have been recorded.
        """
        total = len(self._records)
        if self._as_before:
            kinds = frozenset(record.kind for record in self._records[: self._as_before])
            self._use(RecordOptions(kinds, hidden=True))
        for number in range(total):
            progress("decoding", number * RECORD_BYTES, total * RECORD_BYTES)
            self.take(number)
            if number == self._as_before > 0:
                self._use(self._options)
        self.end()

    def take(self, number: int) -> None:
        """Decode the next record, and what ran before it."""
        record = self._records[number]
        noise = impossible(record, self._program.xlen)
        if noise:
            self._noise(number, record, Loss(LossCause.IMPOSSIBLE, (noise,)))
            return
        found = interpret(record, self._code)
        first = self.builder.position
        known = NOTHING_KNOWN
        if number:
            known, missing = self._lead(number, record, found)
        else:
            known, missing = self._begin_history(record, found)
        source = found.source if found.retired and not found.wrong else None
        absent = "" if source is None else self._code.transfer_at(source)
        if source is not None and isinstance(absent, str):  # there is no code, so whether the place exists is unknown
            missing = missing or self._gap(record, Stop(StopReason.NO_CODE, detail=(absent, source)))
            source = None
        pc = found.target if source is None else source
        if pc is not None:
            self.builder.resume(pc, record.offset)
        if source is not None:
            self._ran([(source,)])
        self.stretches.append(RecordStretch(first, self.builder.position, missing))
        self._leave(number, record, found, known)

    def _noise(self, number: int, record: CtrRecord, loss: Loss) -> None:
        """Handle a record with impossible content, which says nothing."""
        first = self.builder.position
        if not number:
            self._begin_history(record, Interpretation(None, None, retired=False))
        self.builder.gap(EventKind.LOSS, record.offset, loss)
        self.stretches.append(RecordStretch(first, self.builder.position, loss))
        self._here, self._known, self._why_unknown = None, NOTHING_KNOWN, loss

    def end(self) -> None:
        """Add what ran after the newest record."""
        first = self.builder.position
        missing: _Missing
        if self._options.end is None or not self._records:
            missing = Stop(StopReason.END_NOT_RECORDED)
            if self._here is not None:
                self.builder.event(EventKind.TRACE_OFF, self._records[-1].offset, missing)
        elif self._here is None:
            missing = self._why_unknown
        else:
            goal = RouteGoal(self._options.end & self._code.mask)
            route = self._route(goal, len(self._records))
            missing = self._follow_route(route, goal, self._records[-1], blames=False)  # the user may have set pc
        self.stretches.append(RecordStretch(first, self.builder.position, missing))

    def _begin_history(self, record: CtrRecord, interpretation: Interpretation) -> tuple[TransferRegisters, _Missing]:
        """Record what precedes everything that ran, and add what ran since recording began, if all of it is known.

        Returns what is known of the registers before the oldest record, and why that cannot be right, None if it can.
        """
        begin, route = self._options.begin, self._route_from_begin(interpretation)
        if begin is not None and route is not None:
            self._introduce(record, Start(StartReason.TRACING_STARTS), begin)
            self.builder.resume(begin, record.offset)
            self._ran(route.parts)
            return route.known or NOTHING_KNOWN, None
        pc = interpretation.source if interpretation.retired else interpretation.target
        self._introduce(record, Start(StartReason.OLDEST_RECORD), pc)
        return NOTHING_KNOWN, (
            self._mismatch(record, interpretation.source or 0, interpretation.wrong) if interpretation.wrong else None
        )

    def _route_from_begin(self, interpretation: Interpretation) -> RecordRoute | None:
        """Return what ran from where recording began to the oldest record, None unless all of it is certain."""
        begin = self._options.begin
        if (
            begin is None
            or interpretation.source is None
            or interpretation.wrong
            or not self._sure
            or self._code.may_switch
        ):
            return None
        route = self._routes.find(begin, NOTHING_KNOWN, _goal(interpretation, interpretation.source))
        return None if route.why else route

    def _introduce(self, record: CtrRecord, start: Start, pc: int | None) -> None:
        """Say where the history starts, and what the records do not tell."""
        event = self.builder.event
        event(EventKind.SYNC, record.offset, start, next_pc=pc)
        if self._options.ras:
            event(EventKind.NOTE, record.offset, Note(NoteCause.CALLS_ALONE))
        elif not self._sure:
            event(EventKind.NOTE, record.offset, Note(NoteCause.UNSEEN))
        times = zip(self._times, self._times[1:], self._records[1:], strict=False)
        if any(time is not None and is_rounded(later) for time, _, later in times):
            event(EventKind.NOTE, record.offset, Note(NoteCause.ROUNDED_TIMES, (ROUNDED_FROM,)))

    def _lead(
        self, number: int, record: CtrRecord, interpretation: Interpretation
    ) -> tuple[TransferRegisters, _Missing]:
        """Add what ran between the previous record and this one.

        Returns what is known of the registers then, and what is missing.
        """
        if self._here is None:
            self.builder.add_gap()
            return NOTHING_KNOWN, self._why_unknown
        if interpretation.source is None:
            return NOTHING_KNOWN, self._gap(record, Stop(StopReason.LEFT_FOR_HIDDEN_MODE))
        if interpretation.wrong:
            return NOTHING_KNOWN, self._mismatch(record, interpretation.source, interpretation.wrong)
        if self._counts and record.cycles is None:
            return NOTHING_KNOWN, self._gap(record, Stop(StopReason.MAYBE_OFF))
        goal = _goal(interpretation, interpretation.source)
        route = self._route(goal, number)
        return route.known or NOTHING_KNOWN, self._follow_route(route, goal, record)

    def _route(self, goal: RouteGoal, number: int) -> RecordRoute:
        """Return what ran before the record with this number."""
        route = self._routes.find(self._here or 0, self._known, goal)
        unsure = route.switched or (route.why and self._code.may_switch)  # the switch may be in what is not known
        if unsure and not self._options.ras:
            self.switched = number
        return route

    def _follow_route(self, route: RecordRoute, goal: RouteGoal, record: CtrRecord, *, blames: bool = True) -> _Missing:
        """Add a route to what ran: all of it, or the part that is certain. Returns why it is not all.

        *blames*: it is the program's fault if there is no route.
        """
        if self._sure or not route.why:
            self._ran(route.parts)
        if not route.why:
            return None
        if route.missing is not None:
            if self._sure:
                return self._mismatch(record, route.missing, route.why)
            return self._gap(record, Stop(StopReason.NO_CODE, detail=(route.why, route.missing)))
        if route.wrong is None:
            return self._gap(record, Stop(StopReason.NO_ROUTE, detail=(route.why,)))
        if self._sure and blames and not self._code.may_switch:
            return self._mismatch(record, route.wrong, route.why)
        return self._gap(record, Stop(StopReason.OTHER_ROUTE, detail=(goal.pc,)))

    def _leave(
        self, number: int, record: CtrRecord, interpretation: Interpretation, registers: TransferRegisters
    ) -> None:
        """Add the transfer itself."""
        if interpretation.trap is not None:
            trap = Trap(
                interpretation.trap,
                from_hidden=interpretation.source is None,
                into_hidden=interpretation.target is None,
            )
            self.builder.event(
                EventKind.TRAP, record.offset, trap, last_pc=interpretation.source, next_pc=interpretation.target
            )
        time = self._times[number]
        if time is not None:
            self.builder.time(time)
        step = (
            self._code.transfer_at(interpretation.source)
            if interpretation.retired and interpretation.source is not None
            else ""
        )
        if isinstance(step, str) or step.kind in (IType.NONE, IType.TRAP_RETURN):
            self._known = NOTHING_KNOWN
        else:
            self._known = step.after(registers)
        self._here, self._why_unknown = interpretation.target, _NOT_RECORDED
        if interpretation.target is None:
            self.builder.event(EventKind.TRACE_OFF, record.offset, _NOT_RECORDED)

    def _ran(self, parts: list[tuple[int, ...]]) -> None:
        path = Path([part for part in parts if part])
        if path.count:
            self.builder.append(path)

    def _gap(self, record: CtrRecord, why: Stop) -> Stop:
        self.builder.gap(EventKind.TRACE_OFF, record.offset, why)
        return why

    def _mismatch(self, record: CtrRecord, at: int, why: str) -> Loss:
        report = contradiction_report(self._program, self._code.image, at, why, f"record of {TYPE_NAMES[record.kind]}")
        assert isinstance(report.fact, Loss)
        self.builder.gap(report.kind, record.offset, report.fact)
        return report.fact


def _goal(interpretation: Interpretation, source: int) -> RouteGoal:
    """Return where a route to a record with this source ends."""
    return RouteGoal(source, interpretation.target if interpretation.retired else None)


_NOT_RECORDED = Stop(StopReason.MODE_NOT_RECORDED)
