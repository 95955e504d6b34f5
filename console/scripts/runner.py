"""The execution of a script and its report.

The report has the steps, assertions, captures and times. While the script runs, a line is shown for each step, and the
progress of long ones.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rvtrace_gdb.console import standard_streams
from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.bench.trace_queries import CheckFailed
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.console.scripts.language import If, Node, Repeat, ScriptLine, ScriptStep, parse
from rvtrace_gdb.console.scripts.verbs import Outcome, read
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import write_file
from rvtrace_gdb.support.inputs import read_input

PASSED, FAILED, ERROR = "passed", "failed", "error"
EXIT = {PASSED: 0, FAILED: 1, ERROR: 2}
"""The exit status for each status of a script."""
VERSION = 1
"""The version of the report's format; new fields do not change it."""


@dataclass
class ScriptReport:
    """The report of a run. Steps are added as they happen; `as_json` returns the report at any time."""

    script: str
    versions: Mapping[str, str]
    elf: str | None = None
    target: str | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    steps: list[dict[str, Any]] = field(default_factory=list)
    asserts: list[dict[str, Any]] = field(default_factory=list)
    captures: list[dict[str, Any]] = field(default_factory=list)
    problem: dict[str, Any] | None = None
    """The error that ended the script early."""
    unsaved: str = ""
    """Why the capture of -o could not be saved at the end."""
    _failed: bool = False

    @property
    def status(self) -> str:
        if self.problem is not None and self.problem["status"] == ERROR:
            return ERROR
        return FAILED if self._failed or self.problem is not None else PASSED

    @property
    def exit_status(self) -> int:
        return EXIT[self.status]

    def step(self, place: ScriptLine, status: str, seconds: float, text: str, data: Mapping[str, Any]) -> None:
        """Add a verb that was executed, or has failed."""
        row = {"line": place.line, "text": place.text, "status": status, "seconds": round(seconds, 3)}
        self.steps.append({**row, "result": text, **({"data": dict(data)} if data else {})})
        word = place.text.partition(" ")[0]
        if word == "assert" and status != ERROR:
            measured = {key: data.get(key) for key in ("measured", "why")}
            self.asserts.append({"line": place.line, "text": place.text, "passed": status == PASSED, **measured})
            self._failed = self._failed or status == FAILED
        if word == "save" and "file" in data:
            self.captures.append(dict(data))

    def ended_by(self, status: str, what: str, place: ScriptLine | None = None) -> None:
        """Note why the script ended early; only the first reason is kept."""
        if self.problem is None:
            where = {} if place is None else {"line": place.line, "text": place.text}
            self.problem = {"status": status, "message": what, **where}

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, which docs/scripts.md describes."""
        durations: Counter[str] = Counter()
        for step in self.steps:
            durations[step["text"].partition(" ")[0]] += step["seconds"]
        return {
            "report": VERSION, "status": self.status, "exit_status": self.exit_status, "script": self.script,
            "elf": self.elf, "target": self.target, "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 3), "versions": dict(self.versions), "steps": self.steps,
            "asserts": self.asserts, "captures": self.captures, "problem": self.problem,
            "durations": {verb: round(total, 3) for verb, total in durations.items()},
        }  # fmt: skip

    def text(self) -> str:
        """Return the report as the text of a file."""
        return json.dumps(self.as_json(), indent=2) + "\n"

    def write(self, path: Path) -> None:
        write_file(str(path), self.text().encode())


REPEATS_AT_MOST = 1_000_000


class ScriptWatcher(Protocol):
    """Shows the steps of a script."""

    def begins(self, place: ScriptLine) -> None:
        """Called when a verb starts."""

    def ended(self, place: ScriptLine, status: str, outcome: Outcome, seconds: float) -> None:
        """Called when a verb has ended: passed, failed, or with an error."""


class Ended(Exception):
    """The script cannot continue; the report has the reason."""


def load(path: Path) -> tuple[Node, ...]:
    """Parse the script in a file, - for standard input. Raises ScriptError, RvtraceError."""
    try:
        text = sys.stdin.read() if str(path) == "-" else read_input(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RvtraceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'no text'}") from None
    return parse(text.removeprefix("\ufeff"), str(path), read)


def connecting(nodes: Sequence[Node], script: str) -> Sequence[Node]:
    """Return the nodes with a `connect` before them, unless the script connects itself."""
    return nodes if _connects(nodes) else (*parse("connect", script, read), *nodes)


def _connects(nodes: Sequence[Node]) -> bool:
    """Return whether a script has the verb `connect`, also in a block."""
    for node in nodes:
        if isinstance(node, ScriptStep):
            inside = node.verb == "connect"
        elif isinstance(node, If):
            inside = _connects(node.body) or _connects(node.other)
        else:
            inside = _connects(node.body)
        if inside:
            return True
    return False


class Runner:
    """Runs nodes on a bench. *connect*, *output*: see `verbs.VerbContext`."""

    def __init__(
        self, bench: Bench, report: ScriptReport, watcher: ScriptWatcher, connect: str = "", output: Path | None = None
    ) -> None:
        self.bench, self.report, self.connect, self.output = bench, report, connect, output
        self._watcher = watcher
        self._cancelled = False

    def cancel(self) -> None:
        """End the script soon. May be called by a signal handler."""
        self._cancelled = True
        self.bench.interrupt()

    def value(self, name: str) -> str:
        """Return a variable's value as text. Raises RvtraceError if it has none."""
        value = self.bench.value(f"${name}")
        if value == "void":
            raise RvtraceError(f"${name} has no value: `set {name} = ...` gives it one")
        return value[1:-1] if value[:1] == value[-1:] == '"' else value

    def run(self, nodes: Sequence[Node]) -> None:
        """Run the nodes. Errors go to the report; the capture of -o is saved even after an error."""
        began = time.monotonic()
        try:
            self.bench.engine.remembers = True  # an interrupt between two commands of a step also ends the step
            self._run_nodes(nodes)
        except Ended:
            pass
        finally:
            self.bench.engine.remembers = False
            self._write_capture()
            self.report.seconds = time.monotonic() - began

    def _run_nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if self._cancelled:
                self._end_script(ERROR, "interrupted", node.place)
            if isinstance(node, ScriptStep):
                self._run_step(node)
            elif isinstance(node, If):
                self._run_nodes(node.body if self._expression_number(node.place, node.condition) else node.other)
            else:
                self._repeat(node)

    def _repeat(self, node: Repeat) -> None:
        times = self._expression_number(node.place, node.times)
        if not 0 <= times <= REPEATS_AT_MOST:
            self._end_script(
                ERROR, f"expected a number from 0 to {REPEATS_AT_MOST}, {node.times} is {times}", node.place
            )
        for number in range(1, times + 1):
            if node.name:
                try:
                    self.bench.set(node.name, str(number))
                except RvtraceError as error:
                    self._end_script(ERROR, str(error), node.place)
            self._run_nodes(node.body)

    def _expression_number(self, place: ScriptLine, expression: str) -> int:
        try:
            return self.bench.number(expression)
        except RvtraceError as error:
            self._end_script(ERROR, str(error), place)
            raise AssertionError from None  # _end_script has raised

    def _run_step(self, step: ScriptStep) -> None:
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
            self._end_script(status, outcome.text, step.place)

    def _done(self, step: ScriptStep, status: str, outcome: Outcome, seconds: float) -> None:
        self.report.step(step.place, status, seconds, outcome.text, outcome.data)
        self._watcher.ended(step.place, status, outcome, seconds)

    def _end_script(self, status: str, what: str, place: ScriptLine) -> None:
        self.report.ended_by(status, what, place)
        raise Ended

    def _write_capture(self) -> None:
        """Write the capture of -o, unless a `save` has written it."""
        if self.output is None or any(Path(made["file"]) == self.output.resolve() for made in self.report.captures):
            return
        place = ScriptLine(self.report.script, 0, f"save {self.output}")
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


UNNAMED = "working"
"""The label of work that has not reported progress yet (gdbext/tracer.py): the step's text is shown instead."""
_WORDS = {PASSED: "ok", FAILED: "FAIL", ERROR: "ERROR"}
_LONG = 1.0  # seconds: longer steps are shown with their time


class StepLines:
    """A watcher that prints a line for each step. *shown*: if False, only warnings and errors are printed.

    `said` may be called by any thread.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._progress: ProgressLine | None = None
        self._lock = threading.RLock()
        self._open = False  # the program has begun a line of its own, and not ended it

    def begins(self, place: ScriptLine) -> None:
        if self._shown:
            self._progress = ProgressLine(label=place.text).__enter__()

    def ended(self, place: ScriptLine, status: str, outcome: Outcome, seconds: float) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
            self._progress = None
        if not self._shown:
            return
        with self._lock:
            self._write_text(_outcome_text(place, status, outcome, seconds) + "\n")

    def progress(self, label: str, done: int, total: int | None = None) -> None:
        """Show progress, as `support.errors.Progress`."""
        if self._progress is not None and label != UNNAMED:
            self._progress(label, done, total)

    def said(self, kind: str, text: str) -> None:
        """Print warnings, and the target's output, while a step runs. Raises RvtraceError."""
        if not (kind == "log" or (kind == "target" and self._shown)):
            return
        progress = self._progress
        if progress is not None:
            progress.clear()
        with self._lock:
            if kind == "log":
                self._write_text("")
                print(text.rstrip("\n"), file=sys.stderr)
            elif text:
                self._write_text(text, own=True)

    def _write_text(self, text: str, *, own: bool = False) -> None:
        """Print a text. *own*: it is the program's, which may continue a line. Raises RvtraceError."""
        begin = "\n" if self._open and not own else ""
        self._open = (self._open and not begin and not text) or (own and not text.endswith("\n"))
        try:
            print(f"{begin}{text}", end="", flush=True)
        except OSError as error:
            self._shown = False  # the script continues without output
            standard_streams.drop_output()
            raise RvtraceError(standard_streams.problem(error)) from None


def _outcome_text(place: ScriptLine, status: str, outcome: Outcome, seconds: float) -> str:
    """Return the line or lines of a step."""
    word = place.text.partition(" ")[0]
    if word == "echo" and status == PASSED:
        return outcome.text
    took = f" ({seconds:.1f} s)" if seconds >= _LONG else ""
    number = str(place.line or "")
    first, *more = outcome.text.splitlines() or [""]
    block = word in ("gdb", "trace") and outcome.text
    said = "" if block or not first else f": {first}"
    lines = outcome.text.splitlines() if block else more
    return "\n".join([f"{_WORDS[status]:<5} {number:>4}  {place.text}{said}{took}", *(" " * 12 + it for it in lines)])
