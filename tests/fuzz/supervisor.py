"""Starts the processes that try inputs, goes on where one ended, and says how many inputs did what."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.exercise import Input, generator, made
from tests.fuzz.findings import CRASH, HANG, KINDS, TRACEBACK, Finding
from tests.fuzz.kinds import Kind
from tests.fuzz.worker import AGAIN, Limits, Noted, Worker, crash, exercise_of

_LOOK = 0.5  # seconds between two looks at a process
_STUCK = 3  # times the limit of CPU time: Python did not come to raise what ends it
_WAITING = 300.0  # seconds without CPU time: it waits for something that does not come
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Result:
    """What became of the inputs of one kind. *found*: the first of each place."""

    kind: str
    inputs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, str], Finding] = field(default_factory=dict)
    times: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: float = 0.0
    interrupted: bool = False

    def add(self, finding: Finding) -> None:
        place = finding.kind, finding.where
        self.counts[finding.kind] += 1
        self.times[place] += 1
        self.found.setdefault(place, finding)

    @property
    def line(self) -> str:
        """The line of the kind."""
        counted = ", ".join(f"{self.counts[kind]} {_PLURAL[kind]}" for kind in KINDS)
        each = 1000 * self.seconds / max(self.inputs, 1)
        return f"{self.kind:<20} {self.inputs:>8} inputs: {counted} ({each:.1f} ms each)"


_PLURAL = {TRACEBACK: "tracebacks", HANG: "hangs > 10 s CPU", "growth": "growths > 500 MB", CRASH: "crashes"}


class Supervisor:
    """Tries *count* inputs of a kind from number *first* on. *limits*: of each."""

    def __init__(self, kind: Kind, seed: int, first: int, count: int, limits: Limits) -> None:
        self._kind, self._seed, self._limits = kind, seed, limits
        self._next, self._end = first, first + count
        self._noted = Noted()
        self.result = Result(kind.name)

    def run(self) -> Result:
        """Everything, in one process after the other; up to Ctrl-C."""
        began = time.monotonic()
        try:
            while self._next < self._end:
                self._some()
        except KeyboardInterrupt:
            self.result.interrupted = True
        self.result.seconds = time.monotonic() - began
        _, self.result.inputs = self._noted.get()
        return self.result

    def _some(self) -> None:
        """One process, to its end."""
        source, sink = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._noted.set(self._next - 1, self._noted.get()[1])
        child = os.fork()
        if not child:
            os.close(source)
            _worker(self._kind, self._seed, range(self._next, self._end), self._limits, self._noted, sink)
        os.close(sink)
        with open(source, "rb") as lines:
            os.set_blocking(source, False)
            try:
                status = self._watched(child, lines.fileno())
            except KeyboardInterrupt:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise
        number, done = self._noted.get()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            self._next = self._end
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == AGAIN:
            self._next = number + 1
        else:
            self._ended(status, number)
            self._noted.set(number, done + 1)
            self._next = number + 1

    def _watched(self, child: int, lines: int) -> int:
        """The status with which a process ended. One that does not move is ended."""
        number, since, cpu, rest = None, time.monotonic(), 0.0, b""
        self._stuck = False
        while True:
            rest = self._take(lines, rest)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                self._take(lines, rest)
                return status
            if self._noted.get() != number:
                number, since, cpu = self._noted.get(), time.monotonic(), _cpu_seconds(child)
            waited = time.monotonic() - since
            if _cpu_seconds(child) - cpu > _STUCK * self._limits.seconds or waited > _WAITING:
                self._stuck = True
                os.kill(child, signal.SIGKILL)
            time.sleep(_LOOK if waited > _LOOK else 0.02)

    def _take(self, lines: int, rest: bytes) -> bytes:
        """What a process has found since; a rest that is not a line yet."""
        while True:
            try:
                data = os.read(lines, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                break
            rest += data
        *whole, rest = rest.split(b"\n")
        for line in whole:
            self.result.add(Finding.of_json(json.loads(line)))
        return rest

    def _ended(self, status: int, number: int) -> None:
        """The process ended in the middle of an input, or was ended."""
        if number < self._next:
            raise RuntimeError(f"{self._kind.name}: the process ended before the first input: status {status}")
        tried = self._input(number)
        if self._stuck:
            self.result.add(Finding(HANG, "without a way to end it", number, *tried, ""))
            return
        end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
        self.result.add(crash(number, tried, end))

    def _input(self, number: int) -> Input:
        """An input again, to say what it was."""
        exercise = exercise_of(self._kind.factory())
        try:
            return made(exercise, generator(self._seed, self._kind.name, number))
        finally:
            exercise.close()


def _worker(kind: Kind, seed: int, numbers: range, limits: Limits, noted: Noted, sink: int) -> None:
    """The process itself, which never returns."""
    status = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    try:
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        exercise = exercise_of(kind.factory())
        exercise.isolate()
        with open(sink, "wb") as lines:
            status = Worker(kind.name, exercise, seed, limits, noted, lines).run(numbers)
        exercise.close()
    except BaseException:  # noqa: BLE001 - it is told, and the process ends
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _cpu_seconds(process: int) -> float:
    """Of a process so far."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
