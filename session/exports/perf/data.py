"""perf.data, as `perf inject --itrace --strip` makes it of a hardware trace: for perf report, perf script and AutoFDO.

Each hart is a CPU and a process, unless the trace reports contexts: these are processes. Without `itrace` a sample is a
stretch of its taken transfers, newest first, as many as a record holds; its period is the number of instructions since
the sample before it, so that `perf report` shows where the instructions went, and each transfer is there once. With
`itrace` the samples and transfers are those that it says (`events`). A gap is a LOST record, or an error: perf says how
many there are. The mappings are those of the executable segments.
"""

import struct
from array import array
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import cause, missing
from rvtrace_gdb.session.exports.perf.branch_stacks import CUT, branch_stacks, mappings
from rvtrace_gdb.session.exports.perf.data_file import USER, PerfDataEvent, PerfDataFile, RecordMoment
from rvtrace_gdb.session.exports.perf.events import CallChainFrame, HartEvents, PerfEvent
from rvtrace_gdb.session.exports.perf.itrace import Itrace, PerfEventKind, itrace_of
from rvtrace_gdb.session.exports.perf.processes import ExportedProcesses
from rvtrace_gdb.session.perf_data.layout import RecordType, SampleType
from rvtrace_gdb.support.errors import Progress

MOST = 32
"""So many transfers a sample has at most: as many as hardware records, and as perf's own tools look at."""
_CYCLES, _INSTRUCTIONS, _BRANCHES = 0, 1, 4  # `perf_hw_id`
_PERIOD, _LEAST_PERIOD = 1000, 2  # with 1, perf takes the samples for those of another kind of trace
_PREDICTED = 1 << 1  # of a branch's flags
_IN_USER = (1 << 64) - 512  # PERF_CONTEXT_USER, before the frames of a call chain
_AT_ONCE = 1 << 14


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the samples of all harts. Raises BadItrace, NoTimes."""
    if trace.itrace is None:
        return _write_branch_stacks(trace, file, progress)
    itrace = itrace_of(trace.itrace)
    kinds = _events_of(itrace)
    with PerfDataFile(list(kinds.values()), trace.program.xlen) as made:
        numbers = {kind: number for number, kind in enumerate(kinds, 1)}
        for hart in trace.harts:
            _EventRecords(made, hart, itrace, numbers, progress).add()
        made.write(file)
    return Written()


def _events_of(itrace: Itrace) -> dict[PerfEventKind, PerfDataEvent]:
    """Return the events of the file; there is always one."""
    has = SampleType.CALLCHAIN if itrace.chain else SampleType(0)
    has |= SampleType.BRANCH_STACK if itrace.last_branches else SampleType(0)
    by_instructions = _PERIOD if itrace.by_time else max(itrace.period, _LEAST_PERIOD)
    found = {
        PerfEventKind.INSTRUCTIONS: (_INSTRUCTIONS, by_instructions, has),
        PerfEventKind.TICKS: (_CYCLES, max(itrace.period, _LEAST_PERIOD), has),
        PerfEventKind.BRANCHES: (_BRANCHES, 1, SampleType.ADDR),
    }
    wanted = itrace.event_kinds or (PerfEventKind.INSTRUCTIONS,)
    return {kind: PerfDataEvent(kind.value, *found[kind]) for kind in wanted}


class _EventRecords:
    """The records of the events of a hart."""

    def __init__(
        self,
        file: PerfDataFile,
        hart: ExportedTrace,
        itrace: Itrace,
        numbers: Mapping[PerfEventKind, int],
        progress: Progress,
    ) -> None:
        self._file, self._hart, self._itrace, self._numbers, self._progress = file, hart, itrace, numbers, progress
        self._events = HartEvents(hart, itrace, progress)

    def add(self) -> None:
        """Add all of them."""
        part, events = self._hart.part, self._events
        _add_processes(self._file, self._hart, events.processes)
        for begin in range(part.start, part.stop, _AT_ONCE):
            self._progress("writing (instructions)", begin - part.start, len(part))
            for stretch in events.stretches(begin, min(begin + _AT_ONCE, part.stop)):
                self._add_events(events.events(stretch))
        self._add_events(events.errors(part.stop))

    def _add_events(self, events: Iterator[PerfEvent]) -> None:
        for event in events:
            process = self._events.processes.process_at(event.position)
            moment = RecordMoment(process, self._hart.hart, self._events.axis(event.position))
            if event.missing is not None:
                self._file.add_error(moment, event.ip, cause(event.missing.event))
            else:
                self._file.add(RecordType.SAMPLE, self._sample(event, moment), USER)

    def _sample(self, event: PerfEvent, at: RecordMoment) -> bytes:
        whose = at.process.pid, at.process.tid
        found = struct.pack("<2Q2IQ", self._numbers[event.kind], event.ip, *whose, at.time)
        if event.transfer is not None:
            return found + struct.pack("<Q2IQ", event.transfer.target, at.hart, 0, event.period)
        found += struct.pack("<2IQ", at.hart, 0, event.period)
        if self._itrace.chain:
            image = self._events.image(self._hart.history.context_at(event.position))
            addresses = [_IN_USER, *(_named_address(image, frame) for frame in event.chain)]
            found += struct.pack(f"<Q{len(addresses)}Q", len(addresses), *addresses)
        if self._itrace.last_branches:
            branches = event.last_branches
            words = [word for it in branches for word in (it.source, it.target, _PREDICTED | it.kind.branch_type << 20)]
            found += struct.pack(f"<Q{len(words)}Q", len(branches), *words)
        return found


def _named_address(image: Image, frame: CallChainFrame) -> int:
    """Return the address of a frame, or where perf would find another function there, one in the function's code."""
    return frame.address if image.function(frame.address) == image.function(frame.inside) else frame.inside


def _write_branch_stacks(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write samples that have each transfer once."""
    event = PerfDataEvent(PerfEventKind.INSTRUCTIONS.value, _INSTRUCTIONS, _PERIOD, SampleType.BRANCH_STACK)
    cut = 0
    with PerfDataFile([event], trace.program.xlen) as made:
        for hart in trace.harts:
            processes = ExportedProcesses(hart, progress)
            beginning = _add_processes(made, hart, processes)
            for times in missing(hart.history, hart.part).values():
                made.add_lost(beginning, times)
            cut += _add_branch_stacks(made, hart, processes, progress)
        made.write(file)
    return Written(None, {CUT: cut})


def _add_branch_stacks(
    file: PerfDataFile, hart: ExportedTrace, processes: ExportedProcesses, progress: Progress
) -> int:
    """Add the samples of a hart, and return how many are cut."""
    axis, begin, cut = HistoryAxis(hart.history), hart.part.start, 0
    for stack in branch_stacks(hart, progress, MOST):
        process = processes.process_at(stack.position)
        body = struct.pack("<2Q2IQ2I", 1, stack.last, process.pid, process.tid, axis(stack.position), hart.hart, 0)
        counts = struct.pack("<2Q", stack.position - begin, len(stack.sources))
        file.add(RecordType.SAMPLE, body + counts + _branch_entries(stack.sources, stack.targets), USER)
        begin, cut = stack.position, cut + stack.is_cut
    return cut


def _branch_entries(sources: "array[int]", targets: "array[int]") -> bytes:
    """Return the entries of a branch stack: source, target, flags of each, newest first."""
    words = array("Q", bytes(24 * len(sources)))
    words[0::3], words[1::3] = sources[::-1], targets[::-1]
    words[2::3] = array("Q", [_PREDICTED]) * len(sources)
    return words.tobytes()


def _add_processes(file: PerfDataFile, hart: ExportedTrace, processes: ExportedProcesses) -> RecordMoment:
    """Add the processes of a hart, and return the moment before anything ran."""
    first = processes.process_at(hart.part.start)
    beginning = RecordMoment(first, hart.hart, HistoryAxis(hart.history)(0))
    for process, images in processes.mapped().items():
        file.add_process(beginning._replace(process=process), mappings(images))
    return beginning
