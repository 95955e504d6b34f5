"""Captures that processes of this machine read, several at once.

Each process has a pipe of its own, so that one that dies takes nothing along that another one waits for. In the pools
of `concurrent.futures` processes share queues and their locks: one that is begun just as another one dies may wait
forever, and the command with it.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

from rvtrace_gdb.console.captures.readers import CaptureReader, Unreadable, read_or_problem, unreadable
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.session.kept_files import folder_of_kept
from rvtrace_gdb.support.errors import RvtraceError

_R = TypeVar("_R")


class _Failure(NamedTuple):
    """An error in a process that is none of a trace."""

    error: Exception


class _Task(NamedTuple):
    """A reader, its number in the order of the results, and how many processes have died of it."""

    number: int
    reader: CaptureReader[Any]
    deaths: int = 0


class _ReadingProcess:
    """A process that reads. It comes from one that has the modules loaded, and nothing of this one's threads and files.

    *task*: what it reads now.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self.connection, its_end = context.Pipe()
        self.process = context.Process(target=_read_until_closed, args=(its_end,), daemon=True)
        self.process.start()
        its_end.close()
        self.task: _Task | None = None

    def begin(self, task: _Task) -> None:
        """Let it read. If it has died, `result` says so."""
        self.task = task
        with suppress(OSError):
            self.connection.send(task.reader)

    def result(self) -> Any:
        """Return what it has read. Raises EOFError: it has died."""
        try:
            result = self.connection.recv()
        except OSError:
            raise EOFError from None
        self.task = None
        return result

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.terminate()
        self.process.join()
        self.connection.close()


def by_processes(of: Sequence[CaptureReader[_R]], jobs: int) -> Iterator[_R | Unreadable]:
    """Yield what each reader finds, in their order, read by so many processes. What one that has died was to read is
    read again by another one, once.
    """
    reading = _ProcessReading[_R](of, jobs)
    try:
        for number in range(len(of)):
            yield reading.result(number)
    finally:
        reading.end()


class _ProcessReading(Generic[_R]):
    """The work of several processes, and their results until they are wanted."""

    def __init__(self, of: Sequence[CaptureReader[_R]], jobs: int) -> None:
        self._waiting = deque(_Task(number, reader) for number, reader in enumerate(of))
        self._jobs = jobs
        self._processes: list[_ReadingProcess] = []
        self._results: dict[int, _R | Unreadable] = {}

    def result(self, number: int) -> _R | Unreadable:
        """Return what a reader has found, the next one after the last time."""
        while number not in self._results:
            self._occupy(number + 2 * self._jobs)
            busy = {process.connection: process for process in self._processes if process.task is not None}
            for connection in wait(list(busy)):
                self._take(busy[connection])  # type: ignore[index] # of these
        return self._results.pop(number)

    def end(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.end()

    def _occupy(self, end: int) -> None:
        """Let processes without work read, as far as to a number: the results of more would wait in memory."""
        while self._waiting and self._waiting[0].number < end:
            idle = next((process for process in self._processes if process.task is None), None)
            if idle is None:
                if len(self._processes) == self._jobs:
                    break
                self._processes.append(idle := _ReadingProcess())
            self._begin_reading(idle, self._waiting.popleft())

    def _begin_reading(self, idle: _ReadingProcess, task: _Task) -> None:
        """Let a process read. Where no files are kept, this one unpacks packs: it removes the files at its end."""
        if folder_of_kept() is None and isinstance(task.reader.trace, RequestedTrace):
            try:
                task = task._replace(reader=task.reader.with_trace(task.reader.trace.loaded()))
            except RvtraceError as error:
                self._results[task.number] = unreadable(task.reader, error)
                return
        idle.begin(task)

    def _take(self, process: _ReadingProcess) -> None:
        """Take what a process has read, or what is left to do if it has died."""
        task = process.task
        assert task is not None
        try:
            result = process.result()
        except EOFError:
            process.end()
            self._processes.remove(process)
            self._give_back(task._replace(deaths=task.deaths + 1))
            return
        if isinstance(result, _Failure):
            raise result.error
        self._results[task.number] = result

    def _give_back(self, task: _Task) -> None:
        if task.deaths == 1:
            self._waiting.appendleft(task)
            return
        why = "the process that reads it is killed each time: is there enough memory?"
        self._results[task.number] = Unreadable(f"{task.reader.trace.name}: {why}")


def _read_until_closed(connection: "Connection[Any, Any]") -> None:
    """Read what comes through the connection, until it ends. Ctrl-C ends this process at once, without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(EOFError, OSError):
        while True:
            connection.send(_read(connection.recv()))


def _read(reader: CaptureReader[Any]) -> Any:
    try:
        return read_or_problem(reader)
    except Exception as error:  # noqa: BLE001 # the command raises it
        return _Failure(error)
