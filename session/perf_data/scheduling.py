"""Which thread ran on which CPU when, as far as the kernel recorded it.

SWITCH says that the thread of its `sample_id` begins to run, or stops (bit SWITCH_OUT of `misc`), SWITCH_CPU_WIDE also
which thread comes next, or came before; ITRACE_START, which thread ran when tracing began.

Source: Linux, include/uapi/linux/perf_event.h, PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE,
PERF_RECORD_ITRACE_START.
"""

from bisect import bisect_right
from collections import defaultdict
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.session.perf_data.layout import MiscBit, RecordType
from rvtrace_gdb.session.perf_data.records import PerfRecord, RecordReader

IDLE = 0
"""The thread that runs where none has anything to do."""


class ThreadRun(NamedTuple):
    """From a *time* on, in nanoseconds, a thread runs on a CPU; None: another one, which nobody names."""

    time: int
    thread: int | None


class Scheduling:
    """The switches of all CPUs, from records in any order."""

    def __init__(self) -> None:
        self._runs: dict[int, list[ThreadRun]] = defaultdict(list)
        self._sorted = True

    def add(self, record: PerfRecord, reader: RecordReader) -> None:
        """Take a record about switches; others are ignored. Raises BadPerfData."""
        origin = record.origin
        if record.type not in _RECORDS or origin.time is None or origin.cpu is None:
            return
        out = bool(record.misc & MiscBit.SWITCH_OUT)
        thread = origin.tid
        if record.type == RecordType.ITRACE_START:
            thread = reader.number(record, 4, "I")
        elif out:
            thread = reader.number(record, 4, "I") if record.type == RecordType.SWITCH_CPU_WIDE else None
        self._runs[origin.cpu].append(ThreadRun(origin.time, thread))
        self._sorted = False

    def threads(self, cpu: int | None, begin: int, end: int) -> set[int]:
        """Return the threads that ran on a CPU between two times, as far as they are known."""
        runs = self._runs_of(cpu)
        first = max(bisect_right(runs, begin, key=itemgetter(0)) - 1, 0)
        last = bisect_right(runs, end, key=itemgetter(0))
        return {it.thread for it in runs[first:last] if it.thread is not None}

    def switch_times(self, cpu: int | None, begin: int, end: int) -> list[int]:
        """Return when another thread began to run on a CPU, after *begin* and not after *end*."""
        runs = self._runs_of(cpu)
        first, last = (bisect_right(runs, time, key=itemgetter(0)) for time in (begin, end))
        return [it.time for it in runs[first:last]]

    def run_begin(self, cpu: int | None, thread: int | None, end: int) -> int:
        """Return when a thread, the last one before *end*, began to run on a CPU; 0: not known."""
        runs = self._runs_of(cpu)
        at = bisect_right(runs, end, key=itemgetter(0)) - 1
        while at >= 0 and runs[at].thread is None:
            at -= 1
        return runs[at].time if at >= 0 and runs[at].thread == thread else 0

    def _runs_of(self, cpu: int | None) -> list[ThreadRun]:
        if not self._sorted:
            for runs in self._runs.values():
                runs.sort(key=itemgetter(0))
            self._sorted = True
        return self._runs.get(cpu, []) if cpu is not None else []


_RECORDS = frozenset({RecordType.SWITCH, RecordType.SWITCH_CPU_WIDE, RecordType.ITRACE_START})
