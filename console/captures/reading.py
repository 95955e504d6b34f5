"""The reading of several captures, by whom the user wants."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rvtrace_gdb.console.captures.readers import (
    CaptureReader,
    DivisibleReader,
    MergedCaptureError,
    Readers,
    ReadWhole,
    Unreadable,
    read_or_problem,
)
from rvtrace_gdb.console.options.request import LoadedTrace
from rvtrace_gdb.support.errors import Progress

_R = TypeVar("_R")


def _unnoted(_text: str) -> None:
    pass


def read_captures(
    of: Sequence[CaptureReader[_R]], by: Readers, progress: Progress, note: Callable[[str], object] = _unnoted
) -> Iterator[_R]:
    """Yield what each reader finds, in their order. What a process or worker that has died was to read is read again.
    *note* is told why a single trace is read whole, though pieces of it were wanted.

    Raises MergedCaptureError, ClusterError, LibraryMissing, what *progress* raises, and, for one capture without a
    cluster, as its reader.
    """
    if len(of) == 1 and isinstance(of[0], DivisibleReader):
        of = [of[0].with_trace(of[0].trace.loaded())]  # standard input can be read once
        if by.wants_pieces:
            try:
                yield _read_in_pieces(of[0], by, progress)
                return
            except ReadWhole as why:
                note(f"the trace is read whole, not in pieces: {why}")
    if len(of) == 1 and not by.cluster:
        yield of[0].read(progress)
        return
    for number, result in enumerate(_results(of, by, progress)):
        progress("reading captures", number + 1, len(of))
        if isinstance(result, Unreadable):
            raise MergedCaptureError(result.why)
        yield result


def _read_in_pieces(reader: CaptureReader[_R], by: Readers, progress: Progress) -> _R:
    if not isinstance(reader, DivisibleReader):
        raise ReadWhole("this command cannot")
    found: _R = reader.read_by(by, progress)
    return found


def _results(of: Sequence[CaptureReader[_R]], by: Readers, progress: Progress) -> Iterator[_R | Unreadable]:
    if by.cluster:
        from rvtrace_gdb.console.captures.cluster import by_cluster  # needs a library that may be missing

        return by_cluster(of, by.cluster, progress)
    jobs = min(by.processes, len(of))
    if jobs == 1 or not all(_is_file(it) for it in of):
        return map(read_or_problem, of)  # another process does not have the pipes of a shell's <(...)
    from rvtrace_gdb.console.captures.processes import by_processes

    return by_processes(of, jobs)


def _is_file(reader: CaptureReader[_R]) -> bool:
    return isinstance(reader.trace, LoadedTrace) or os.path.isfile(reader.trace.file)
