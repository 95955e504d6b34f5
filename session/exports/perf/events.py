"""The events that perf would have of a hart: samples of what it ran, its transfers of control, and what is missing.

They are made of stretches of the history: consecutive instructions without a gap, of one process, at one time. A sample
after so many instructions is at the last of these; one after so many ticks is at the last instruction before the time
at which they were over. Ticks that went by in a gap are in no sample.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.history.events import LOSSES
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.missing import MissingPart, losses_at_begin, missing_parts
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.perf.itrace import Itrace, PerfEventKind
from rvtrace_gdb.session.exports.perf.processes import ExportedProcesses
from rvtrace_gdb.session.exports.perf.transfers import KnownTransfers, Sequel, Transfer, TransferKind, traps_between
from rvtrace_gdb.session.selected_history import call_frames
from rvtrace_gdb.support.errors import Progress, RvtraceError

_AT_ONCE = 1 << 12


class NoTimes(RvtraceError):
    """Samples by time of a trace that has no times."""

    def __init__(self, hart: int) -> None:
        super().__init__(
            f"the trace of hart {hart} has no times that rise: take samples by instructions, as with --itrace=i1000i"
        )


class CallChainFrame(NamedTuple):
    """A frame of a call chain: where the function goes on, and an address in the code that is under way there, which
    names it: a call that does not return may be the last instruction of its function.
    """

    address: int
    inside: int


class PerfEvent(NamedTuple):
    """An event at a position of a history.

    ip         where the hart is; of a transfer: where it is from, 0 where tracing began
    period     the instructions, or ticks, since the sample before
    transfer   of a transfer: where it leads to (0 where tracing ended), and its kind
    chain      the call chain, innermost function first; last_branches: the transfers before, newest first
    missing    of an error: what is missing
    """

    kind: PerfEventKind
    position: int
    ip: int
    period: int = 1
    transfer: Transfer | None = None
    chain: tuple[CallChainFrame, ...] = ()
    last_branches: tuple[Transfer, ...] = ()
    missing: MissingPart | None = None


class EventStretch(NamedTuple):
    """Instructions at positions from *begin* on. *following*: the address that runs behind them; GAP: a gap is there;
    None: the part ends. *begins*: nothing is known of what ran before.
    """

    begin: int
    pcs: list[int]
    following: int | None
    begins: bool
    context: ProgramContext

    @property
    def end(self) -> int:
        """The position behind the last one."""
        return self.begin + len(self.pcs)


class _DueSample(NamedTuple):
    """A sample that is due."""

    kind: PerfEventKind
    period: int


class HartEvents:
    """Makes the events of a hart, of stretches that follow each other. Raises NoTimes."""

    def __init__(self, trace: ExportedTrace, itrace: Itrace, progress: Progress) -> None:
        self.trace, self.axis, self._itrace = trace, HistoryAxis(trace.history), itrace
        if itrace.by_time and itrace.has_samples and not self.axis.timed:
            raise NoTimes(trace.hart)
        self._frames = call_frames(trace.session, trace.selected, progress) if itrace.chain else None
        self._branches = deque[Transfer](maxlen=itrace.last_branches)
        self._wanted = frozenset(filter(itrace.has, TransferKind))
        self._since, self._since_time = 0, 0
        self.processes = ExportedProcesses(trace, progress)
        self._code: dict[int, tuple[Sequel, KnownTransfers]] = {}
        losses = missing_parts(trace.history, trace.part) if itrace.errors else []
        if itrace.errors and not trace.part.start:
            losses = [*losses_at_begin(trace.history), *losses]
        self._losses = deque(it for it in losses if it.event.kind in LOSSES)

    def stretches(self, begin: int, end: int) -> Iterator[EventStretch]:
        """Yield the stretches of some positions of the part."""
        history, last = self.trace.history, self.trace.part.stop
        times = history.times.arrays[0] if self.axis.timed else array("Q")
        for first in range(begin, end, _AT_ONCE):
            stop = min(first + _AT_ONCE, end)
            pcs = list(history.window(first, min(stop + 1, last)).pcs(first, min(stop + 1, last)))
            gaps = _positions_between(history.gap_positions, first, stop)
            contexts = _positions_between(self.processes.changes, first, stop)
            cuts = sorted(
                {first, stop, *_positions_between(times, first, stop), *contexts, *gaps, *(at + 1 for at in gaps)}
            )
            for start, cut in pairwise(cuts):
                if pcs[start - first] != GAP:
                    following = pcs[cut - first] if cut - first < len(pcs) else None
                    begins = start == 0 or (start > 0 and history.pc(start - 1) == GAP)
                    here = pcs[start - first : cut - first]
                    yield EventStretch(start, here, following, begins, history.context_at(start))

    def image(self, context: ProgramContext) -> Image:
        """Return the program in a context."""
        return self.trace.program.image_of(context)

    def events(self, stretch: EventStretch) -> Iterator[PerfEvent]:
        """Yield the events of a stretch, in order."""
        yield from self.errors(stretch.begin)
        samples = self._samples(stretch) if self._itrace.has_samples else []
        transfers = self.transfers(stretch) if self._itrace.last_branches else self.wanted_transfers(stretch)
        items: list[tuple[int, int, Transfer | _DueSample]] = [(at, 1, due) for at, due in samples]
        items += [(at, 2 if it.source else 0, it) for at, it in transfers]
        for offset, _, item in sorted(items, key=itemgetter(0, 1)) if samples else items:
            position = stretch.begin + offset
            if isinstance(item, _DueSample):
                yield self._sample(item, position, stretch.pcs[offset])
                continue
            if item.source and item.target:
                self._branches.appendleft(item)
            if item.kind in self._wanted:
                yield PerfEvent(PerfEventKind.BRANCHES, position, item.source, transfer=item)
        if stretch.following is None or stretch.following == GAP:
            self._branches.clear()

    def errors(self, position: int) -> Iterator[PerfEvent]:
        """Yield what is missing up to a position, and was not yielded before."""
        while self._losses and self._losses[0].begin <= position:
            loss = self._losses.popleft()
            at = max(min(loss.begin, self.trace.part.stop - 1), 0)
            yield PerfEvent(PerfEventKind.ERROR, at, loss.event.last_pc or 0, missing=loss)

    def wanted_transfers(self, stretch: EventStretch) -> list[tuple[int, Transfer]]:
        """Return those of the transfers of a stretch that are events, see `transfers`."""
        wanted = self._wanted
        return [it for it in self.transfers(stretch) if it[1].kind in wanted] if wanted else []

    def transfers(self, stretch: EventStretch) -> list[tuple[int, Transfer]]:
        """Return the transfers that the instructions of a stretch made, in order, by their offsets in it; with where
        tracing began, or ended.
        """
        pcs, following = stretch.pcs, stretch.following
        sequel, known = self._code_of(stretch.context)
        behind = pcs[1:] if following is None or following == GAP else [*pcs[1:], following]
        steps = enumerate(zip(pcs, behind, strict=False))
        found = [(offset, known[step]) for offset, step in steps if sequel[step[0]] != step[1]]
        traps = traps_between(self.trace.history, stretch.begin + 1, stretch.begin + len(behind) + 1)
        if traps:
            by_offset = dict(found)
            for position, kind in traps.items():
                offset = position - 1 - stretch.begin
                by_offset[offset] = Transfer(pcs[offset], behind[offset], kind)
            found = sorted(by_offset.items())
        if stretch.begins:
            found.insert(0, (0, Transfer(0, pcs[0], TransferKind.TRACE_BEGIN)))
        if following == GAP or stretch.end == len(self.trace.history):
            found.append((len(pcs) - 1, Transfer(pcs[-1], 0, TransferKind.TRACE_END)))
        return found

    def _samples(self, stretch: EventStretch) -> "list[tuple[int, _DueSample]]":
        """Return the samples that are due in a stretch, by their offsets in it."""
        if self._itrace.by_time:
            return self._samples_by_time(stretch)
        period, count = self._itrace.period, len(stretch.pcs)
        due = _DueSample(PerfEventKind.INSTRUCTIONS, period)
        found = [(offset, due) for offset in range(period - self._since - 1, count, period)]
        self._since = (self._since + count) % period
        return found

    def _samples_by_time(self, stretch: EventStretch) -> "list[tuple[int, _DueSample]]":
        self._since += len(stretch.pcs)
        if stretch.begins or stretch.begin == self.trace.part.start:
            self._since_time = self.axis(stretch.begin)
        if stretch.following is None or stretch.following == GAP:
            return []
        now = self.axis(stretch.end)
        if now - self._since_time < self._itrace.period:
            return []
        counts = {PerfEventKind.INSTRUCTIONS: self._since, PerfEventKind.TICKS: now - self._since_time}
        self._since, self._since_time = 0, now
        wanted = (kind for kind in self._itrace.event_kinds if kind in counts)
        return [(len(stretch.pcs) - 1, _DueSample(kind, counts[kind])) for kind in wanted]

    def _sample(self, due: "_DueSample", position: int, pc: int) -> PerfEvent:
        callers = () if self._frames is None else self._chain(position, pc)
        return PerfEvent(due.kind, position, pc, due.period, None, callers, tuple(self._branches))

    def _chain(self, position: int, pc: int) -> tuple[CallChainFrame, ...]:
        assert self._frames is not None
        callers = islice(self._frames.frames(position, 1), self._itrace.chain - 1)
        known = (it for it in callers if it.pc != UNKNOWN)
        called = (CallChainFrame(it.pc, it.pc - (it.kind is StackOperationKind.CALL)) for it in known)
        return CallChainFrame(pc, pc), *called

    def _code_of(self, context: ProgramContext) -> tuple[Sequel, KnownTransfers]:
        image = self.image(context)
        found = self._code.get(id(image))
        if found is None:
            found = self._code[id(image)] = Sequel(image), KnownTransfers(image)
        return found


def _positions_between(positions: Sequence[int], first: int, stop: int) -> Sequence[int]:
    """Return those of rising *positions* that are from *first* to *stop* - 1."""
    return positions[bisect_left(positions, first) : bisect_left(positions, stop)]
