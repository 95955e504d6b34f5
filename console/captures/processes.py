"""Captures that processes of this machine read, several at once."""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from rvtrace_gdb.console.captures.readers import CaptureReader, Unreadable, read_or_problem

_R = TypeVar("_R")


def by_processes(of: Sequence[CaptureReader[_R]], jobs: int) -> Iterator[_R | Unreadable]:
    """Yield what each reader finds, in their order, read by so many processes. What one that has died was to read is
    read again by another one, once.
    """
    waiting, under_way = iter(of), deque[tuple[CaptureReader[_R], "Future[_R | Unreadable]"]]()
    pool = _pool(jobs)
    try:
        while True:
            for reader in islice(waiting, 2 * jobs - len(under_way)):  # the results of more would wait in memory
                try:
                    under_way.append((reader, pool.submit(read_or_problem, reader)))
                except BrokenProcessPool:
                    pool = _pool(jobs)
                    under_way.append((reader, pool.submit(read_or_problem, reader)))
            if not under_way:
                break
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


def _result(reader: CaptureReader[_R], future: "Future[_R | Unreadable]") -> _R | Unreadable:
    """Return what a process has read; if it died, what another one reads."""
    try:
        return future.result()
    except BrokenProcessPool:
        pass
    with _pool(1) as pool:
        try:
            return pool.submit(read_or_problem, reader).result()
        except BrokenProcessPool:
            why = "the process that reads it is killed each time: is there enough memory?"
            return Unreadable(f"{reader.trace.name}: {why}")
