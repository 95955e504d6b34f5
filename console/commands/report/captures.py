"""The profiles of several captures, read by several processes at once.

Each capture is read whole by one process, which returns its profiles; they are put together in the order of the command
line. So the result is the same whatever the number of processes, and whichever ends first.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.session import report as session_report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.reports import hart_profiles
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


class MergedCaptureError(RvtraceError):
    """A capture among several cannot be read."""


class ProfiledTrace(NamedTuple):
    """A trace that is to be read. *hart*: None for all; *range*: "" for all of it; *name*: of the capture, where there
    are several.
    """

    trace: RequestedTrace
    hart: int | None
    range: str
    name: str = ""


class TraceProfiles(NamedTuple):
    """The profiles of a trace's harts, and the lines that the user gets about it."""

    profiles: list[Profile]
    lines: list[str]


def profiles_of(profiled: ProfiledTrace, progress: Progress = silent) -> TraceProfiles:
    """Read a trace. Raises RangeError, and as `RequestedTrace.open` and `hart_profiles`."""
    session = Session()
    about = profiled.trace.open(session)
    decoded = session.harts(progress=progress)
    hint = hints_of_history(session.capture(), decoded, progress)
    lines = [*about, *session_report.histories(decoded.harts), *session.warnings(), *hint]
    found = hart_profiles(session, Context(hart=profiled.hart), profiled.range, profiled.name, progress)
    return TraceProfiles(list(found.values()), lines)


def all_profiles(traces: Sequence[ProfiledTrace], jobs: int, progress: Progress) -> Iterator[TraceProfiles]:
    """Yield what is in each of several captures, in their order, read by at most so many processes; 0: as many as there
    are processors.

    What a process that has died was to read is read again by another one. Raises MergedCaptureError, and what
    *progress* raises.
    """
    jobs = min(jobs or os.cpu_count() or 1, len(traces))
    if not all(os.path.isfile(it.trace.file) for it in traces):
        jobs = 1  # another process does not have the pipes of a shell's <(...)
    for number, result in enumerate(_by_processes(traces, jobs) if jobs > 1 else map(_profiles_or_problem, traces)):
        progress("reading captures", number + 1, len(traces))
        if isinstance(result, str):
            raise MergedCaptureError(result)
        yield result


def _by_processes(traces: Sequence[ProfiledTrace], jobs: int) -> Iterator[TraceProfiles | str]:
    waiting, under_way = deque(traces), deque[tuple[ProfiledTrace, "Future[TraceProfiles | str]"]]()
    pool = _pool(jobs)
    try:
        while waiting or under_way:
            while waiting and len(under_way) < 2 * jobs:  # the profiles of more would wait in memory
                try:
                    under_way.append((waiting[0], pool.submit(_profiles_or_problem, waiting[0])))
                except BrokenProcessPool:
                    pool = _pool(jobs)
                    continue
                waiting.popleft()
            yield _result(*under_way.popleft())
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(jobs: int) -> ProcessPoolExecutor:
    """Return processes. They come from one that has the modules loaded, and nothing of this one's threads and files."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(jobs, context, _end_with_the_command)


def _end_with_the_command() -> None:
    """Let Ctrl-C end this process at once, without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _result(profiled: ProfiledTrace, future: "Future[TraceProfiles | str]") -> TraceProfiles | str:
    """Return what a process has read; if it died, what another one reads."""
    try:
        return future.result()
    except BrokenProcessPool:
        pass
    with _pool(1) as pool:
        try:
            return pool.submit(_profiles_or_problem, profiled).result()
        except BrokenProcessPool:
            return f"{profiled.trace.file}: the process that reads it is killed each time: is there enough memory?"


def _profiles_or_problem(profiled: ProfiledTrace) -> TraceProfiles | str:
    """Return what is in a trace, or why it cannot be read."""
    try:
        return profiles_of(profiled)
    except RvtraceError as error:
        text = str(error)
        return text if profiled.trace.file in text else f"{profiled.trace.file}: {text}"
