"""Runs a script: its verbs in order, its blocks as often as they say, and puts down what came of it."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rvtrace_gdb.console.api import Bench
from rvtrace_gdb.console.api_types import CheckFailed
from rvtrace_gdb.console.scripts.language import If, Node, Place, Repeat, Step, parse
from rvtrace_gdb.console.scripts.report import ERROR, FAILED, PASSED, Report
from rvtrace_gdb.console.scripts.verbs import Outcome, read
from rvtrace_gdb.support.errors import RvtraceError

REPEATS_AT_MOST = 1_000_000


class Watcher(Protocol):
    """Who shows what happens."""

    def begins(self, place: Place) -> None:
        """A verb begins."""

    def ended(self, place: Place, status: str, outcome: Outcome, seconds: float) -> None:
        """It has ended: passed, failed, or with an error."""


class Ended(Exception):
    """The script cannot go on; the report says why."""


def load(path: Path) -> tuple[Node, ...]:
    """The script in a file, - for standard input. Raises ScriptError, RvtraceError."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RvtraceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'no text'}") from None
    return parse(text.removeprefix("\ufeff"), str(path), read)


class Runner:
    """Runs nodes on a bench. *connect*, *output*: see `verbs.Context`."""

    def __init__(
        self, bench: Bench, report: Report, watcher: Watcher, connect: str = "", output: Path | None = None
    ) -> None:
        self.bench, self.report, self.connect, self.output = bench, report, connect, output
        self._watcher = watcher
        self._cancelled = False

    def cancel(self) -> None:
        """End the script, soon; from a signal handler, too."""
        self._cancelled = True
        self.bench.interrupt()

    def value(self, name: str) -> str:
        """A variable's value for texts. Raises RvtraceError if there is none."""
        value = self.bench.value(f"${name}")
        if value == "void":
            raise RvtraceError(f"${name} has no value: `set {name} = ...` gives it one")
        return value[1:-1] if value[:1] == value[-1:] == '"' else value

    def run(self, nodes: Sequence[Node]) -> None:
        """All of it. What goes wrong is in the report; a capture is kept where -o says even so."""
        began = time.monotonic()
        try:
            self.bench.engine.remembers = True  # what ends a step ends it between two of its commands, too
            self._all(nodes)
        except Ended:
            pass
        finally:
            self.bench.engine.remembers = False
            self._keep()
            self.report.seconds = time.monotonic() - began

    def _all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if self._cancelled:
                self._end(ERROR, "interrupted", node.place)
            if isinstance(node, Step):
                self._step(node)
            elif isinstance(node, If):
                self._all(node.body if self._number(node.place, node.condition) else node.other)
            else:
                self._repeat(node)

    def _repeat(self, node: Repeat) -> None:
        times = self._number(node.place, node.times)
        if not 0 <= times <= REPEATS_AT_MOST:
            self._end(ERROR, f"expected a number from 0 to {REPEATS_AT_MOST}, {node.times} is {times}", node.place)
        for number in range(1, times + 1):
            if node.name:
                try:
                    self.bench.set(node.name, str(number))
                except RvtraceError as error:
                    self._end(ERROR, str(error), node.place)
            self._all(node.body)

    def _number(self, place: Place, expression: str) -> int:
        try:
            return self.bench.number(expression)
        except RvtraceError as error:
            self._end(ERROR, str(error), place)
            raise AssertionError from None  # _end has raised

    def _step(self, step: Step) -> None:
        self._watcher.begins(step.place)
        began = time.monotonic()
        try:
            outcome: Outcome = step.arguments(self)
            status = FAILED if outcome.passed is False else PASSED
        except CheckFailed as error:
            outcome, status = Outcome(str(error)), FAILED
        except RvtraceError as error:
            outcome, status = Outcome(str(error)), ERROR
        self._done(step, status, outcome, time.monotonic() - began)
        if status == ERROR or (status == FAILED and outcome.passed is None):
            self._end(status, outcome.text, step.place)

    def _done(self, step: Step, status: str, outcome: Outcome, seconds: float) -> None:
        self.report.step(step.place, status, seconds, outcome.text, outcome.data)
        self._watcher.ended(step.place, status, outcome, seconds)

    def _end(self, status: str, what: str, place: Place) -> None:
        self.report.ended_by(status, what, place)
        raise Ended

    def _keep(self) -> None:
        """Write the capture that -o asked for and no `save` has written."""
        if self.output is None or any(Path(made["file"]) == self.output.resolve() for made in self.report.captures):
            return
        place = Place(self.report.script, 0, f"save {self.output}")
        try:
            saved = self.bench.save(self.output)
        except RvtraceError as error:
            self.report.unsaved = f"-o {self.output}: nothing was saved: {error}"
            self.report.ended_by(ERROR, self.report.unsaved)
            return
        data = {"file": str(saved.path), "bytes": saved.size}
        outcome = Outcome("; ".join(saved.messages), data)
        self.report.step(place, PASSED, 0.0, outcome.text, data)
        self._watcher.ended(place, PASSED, outcome, 0.0)
