"""Inputs that go wrong on purpose, each in its way: `python -m tests.fuzz.faulty_exercises` says what was seen of
them."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

from rvtrace_gdb.support.errors import RvtraceError
from tests.fuzz.exercise import Exercise, Input
from tests.fuzz.kinds import Kind
from tests.fuzz.supervisor import Supervisor
from tests.fuzz.worker import Limits

_MIB = 1 << 20
_COUNT = 18
_LIMITS = Limits(seconds=0.2, growth=30 * _MIB, address_space=400 * _MIB, tidy=20 * _MIB)


def _fail() -> None:
    raise KeyError("wrong")


def _spin() -> None:
    while True:
        pass


def _stick() -> None:
    """In a function of C, where Python does not come to raise anything."""
    sum(iter(int, 1))


def _grow() -> None:
    assert len(b"x" * (50 * _MIB))


def _burst() -> None:
    assert len(b"x" * (1000 * _MIB))


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _elsewhere() -> None:
    thread = threading.Thread(target=lambda: [].pop())
    thread.start()
    thread.join()


def _survive() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        logging.getLogger("rvtrace.session").exception("it goes on")


def _refuse() -> None:
    raise RvtraceError("this cannot be read")


def _wait() -> None:
    time.sleep(0.3)  # no CPU time


WAYS: dict[str, Callable[[], None]] = {
    "fail": _fail, "spin": _spin, "stick": _stick, "grow": _grow, "burst": _burst, "crash": _crash,
    "elsewhere": _elsewhere, "survive": _survive, "refuse": _refuse, "wait": _wait,
}  # fmt: skip


class Wrong(Exercise):
    """A variant is a way to go wrong; it takes an exclamation mark in the input."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = [Input(way, b"so far all is well") for way in WAYS]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return data + b"!" + data

    def run(self, variant: str, data: bytes) -> None:
        if b"!" in data:
            WAYS[variant]()


def main() -> None:
    """The findings, a JSON object a line, after the line of the kind."""
    logging.getLogger("rvtrace").propagate = True
    result = Supervisor(Kind("wrong", "faulty_exercises", "Wrong"), 1, 0, _COUNT, _LIMITS).run()
    found = [finding.to_json() | {"times": result.times[place]} for place, finding in result.found.items()]
    sys.stdout.write("\n".join([result.line, *map(json.dumps, found)]) + "\n")


if __name__ == "__main__":
    main()
