"""The reading of several captures, by whom the user wants."""

import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rvtrace_gdb.console.captures.readers import (
    CaptureReader,
    DivisibleReader,
    MergedCaptureError,
    Readers,
    Unreadable,
    read_or_problem,
)
from rvtrace_gdb.console.options.request import LoadedTrace
from rvtrace_gdb.support.errors import Progress

_R = TypeVar("_R")


def read_captures(of: Sequence[CaptureReader[_R]], by: Readers, progress: Progress) -> Iterator[_R]:
    """Yield what each reader finds, in their order. What a process or worker that has died was to read is read again.

    Raises MergedCaptureError, ClusterError, LibraryMissing, what *progress* raises, and, for one capture without a
    cluster, as its reader.
    """
    if len(of) == 1 and isinstance(of[0], DivisibleReader):
        of = [of[0].with_trace(of[0].trace.loaded())]  # standard input can be read once
        found = _read_in_pieces(of[0], by, progress)
        if found is not None:
            yield found
            return
    if len(of) == 1 and not by.cluster:
        yield of[0].read(progress)
        return
    for number, result in enumerate(_results(of, by, progress)):
        progress("reading captures", number + 1, len(of))
        if isinstance(result, Unreadable):
            raise MergedCaptureError(result.why)
        yield result


def _read_in_pieces(reader: CaptureReader[_R], by: Readers, progress: Progress) -> _R | None:
    found: _R | None = reader.read_by(by, progress) if isinstance(reader, DivisibleReader) else None
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
