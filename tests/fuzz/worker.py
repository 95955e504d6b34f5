"""A process that tries inputs of one kind, one after the other, under limits of time and memory."""

from __future__ import annotations

import json
import logging
import mmap
import os
import resource
import signal
import struct
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, BinaryIO, NamedTuple

from rvtrace_gdb.support.errors import RvtraceError
from tests.fuzz import findings
from tests.fuzz.exercise import Exercise, Input, generator, made
from tests.fuzz.findings import CRASH, GROWTH, HANG, TRACEBACK, Finding
from tests.fuzz.minimize import smaller

_MIB = 1 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")
AGAIN = 3
"""Exit status: another process is to go on after the input that is noted."""


class Limits(NamedTuple):
    """For one input. *address_space*: beyond what there is at the beginning; beyond that there is no memory."""

    seconds: float = 10.0
    growth: int = 500 * _MIB
    address_space: int = 2048 * _MIB
    tidy: int = 100 * _MIB
    """What a process has grown by after which another one goes on."""


class TooLong(BaseException):
    """An input took more CPU time than it may. No Exception, so that nobody takes it for a refusal."""


class Noted:
    """Memory that both processes see: the number of the input that is tried, and how many were."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    def set(self, number: int, done: int) -> None:
        self._memory[:16] = struct.pack("<qq", number, done)

    def get(self) -> tuple[int, int]:
        number, done = struct.unpack("<qq", self._memory[:16])
        return number, done


class Worker:
    """*sink* takes what is found, a JSON object a line."""

    def __init__(self, kind: str, exercise: Exercise, seed: int, limits: Limits, noted: Noted, sink: BinaryIO) -> None:
        self._kind, self._exercise, self._seed = kind, exercise, seed
        self._limits, self._noted, self._sink = limits, noted, sink
        self._elsewhere: list[BaseException] = []  # raised in other threads, or logged
        self._known: set[str] = set()

    def run(self, numbers: Iterable[int]) -> int:
        """Try these inputs; the exit status of the process."""
        self._watch()
        beginning = _peak()
        _, done = self._noted.get()
        for number in numbers:
            self._noted.set(number, done)
            again = self._try(number, made(self._exercise, generator(self._seed, self._kind, number)))
            done += 1
            self._noted.set(number, done)
            if again or _peak() - beginning > self._limits.tidy:
                return AGAIN
        return 0

    def _watch(self) -> None:
        """That nothing goes unnoticed: time, memory, other threads, and what the program logs and goes on."""
        limit = _used(0) + self._limits.address_space
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
        signal.signal(signal.SIGPROF, _too_long)
        threading.excepthook = lambda args: self._elsewhere.append(args.exc_value or args.exc_type())
        logging.getLogger().addHandler(_Logged(self._elsewhere))

    def _try(self, number: int, tried: Input) -> bool:
        """Whether another process is to go on."""
        peak, resident = _peak(), _used(1)
        error = self.error_of(tried)
        now = _peak()
        grown = now - resident if now > peak else 0
        if isinstance(error, MemoryError) or grown > self._limits.growth:
            what = "" if error is None else findings.where(error)
            self._tell(GROWTH, f"{grown // _MIB} MB {what}".strip(), number, tried, error)
            return True
        if isinstance(error, TooLong):
            self._tell(HANG, findings.where(error), number, tried, error)
            return True
        if error is not None:
            self._tell(TRACEBACK, findings.where(error), number, self._smaller(tried, error), error)
        return False

    def error_of(self, tried: Input) -> BaseException | None:
        """What an input raises that is not a refusal."""
        self._elsewhere.clear()
        signal.setitimer(signal.ITIMER_PROF, self._limits.seconds)
        try:
            self._exercise.run(*tried)
        except RvtraceError:
            pass
        except (Exception, TooLong, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - that is what is sought
            return self._elsewhere[0] if self._elsewhere and not isinstance(error, TooLong) else error
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return self._elsewhere[0] if self._elsewhere else None

    def _smaller(self, tried: Input, error: BaseException) -> Input:
        """An input that shows the same, once for each place."""
        place = findings.where(error)
        if place in self._known:
            return tried
        self._known.add(place)

        def shows(data: bytes) -> bool:
            found = self.error_of(tried._replace(data=data))
            return found is not None and findings.where(found) == place

        return tried._replace(data=smaller(tried.data, shows))

    def _tell(self, kind: str, where: str, number: int, tried: Input, error: BaseException | None) -> None:
        text = "" if error is None else findings.text(error)
        found = Finding(kind, where, number, tried.variant, tried.data, text)
        self._sink.write(json.dumps(found.to_json()).encode() + b"\n")
        self._sink.flush()


class _Logged(logging.Handler):
    """What the program survives, but logs with a traceback, is a defect all the same."""

    def __init__(self, errors: list[BaseException]) -> None:
        super().__init__()
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, RvtraceError):
            self._errors.append(error)


def crash(number: int, tried: Input, end: str) -> Finding:
    """The process ended in the middle of an input."""
    return Finding(CRASH, end, number, tried.variant, tried.data, "")


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


def _peak() -> int:
    """The most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _used(column: int) -> int:
    """Bytes: 0 of address space, 1 of memory."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read().split()[column]) * _PAGE


def exercise_of(factory: Any) -> Exercise:
    """One of this kind. Raises AssertionError for one without inputs."""
    exercise: Exercise = factory()
    assert exercise.seeds, f"{factory.__name__} has no inputs to begin with"
    return exercise
