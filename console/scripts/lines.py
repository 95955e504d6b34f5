"""What a scripted capture shows while it runs: a line for each step, and progress of what takes long."""

import sys

from console.progress import ProgressLine
from console.scripts.language import Place
from console.scripts.report import ERROR, FAILED, PASSED
from console.scripts.verbs import Outcome

_WORDS = {PASSED: "ok", FAILED: "FAIL", ERROR: "ERROR"}
_LONG = 1.0  # seconds: what takes longer is told with its time


class Lines:
    """*shown*: False for nothing but what the program and gdb complain of."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._progress: ProgressLine | None = None

    def begins(self, place: Place) -> None:
        if self._shown:
            self._progress = ProgressLine().__enter__()

    def ended(self, place: Place, status: str, outcome: Outcome, seconds: float) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
            self._progress = None
        if not self._shown:
            return
        word = place.text.partition(" ")[0]
        if word == "echo" and status == PASSED:
            print(outcome.text, flush=True)
            return
        took = f" ({seconds:.1f} s)" if seconds >= _LONG else ""
        number = str(place.line or "")
        first, *more = outcome.text.splitlines() or [""]
        block = word in ("gdb", "trace") and outcome.text
        said = "" if block or not first else f": {first}"
        print(f"{_WORDS[status]:<5} {number:>4}  {place.text}{said}{took}")
        for line in outcome.text.splitlines() if block else more:
            print(f"            {line}")
        sys.stdout.flush()

    def progress(self, label: str, done: int, total: int | None = None) -> None:
        """See `support.progress.Progress`."""
        if self._progress is not None:
            self._progress(label, done, total)

    def said(self, kind: str, text: str) -> None:
        """What comes from gdb while a step is under way: of that, what nobody else shows."""
        if kind == "target" and self._shown:
            print(text, end="", flush=True)
        elif kind == "log":
            print(text.rstrip("\n"), file=sys.stderr)
