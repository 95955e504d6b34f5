"""The report of a scripted capture: what was done, what was expected, what was captured, how long it took."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.scripts.language import Place
from rvtrace_gdb.support.output import write

PASSED, FAILED, ERROR = "passed", "failed", "error"
EXIT = {PASSED: 0, FAILED: 1, ERROR: 2}
"""Exit statuses."""
VERSION = 1
"""Of the report's form; new fields do not count."""


@dataclass
class Report:
    """What happens is added as it happens; `as_json` is the whole at any time."""

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
    """What ended the script early."""
    unsaved: str = ""
    """Why there is no capture where there should be one at the end."""
    _failed: bool = False

    @property
    def status(self) -> str:
        if self.problem is not None and self.problem["status"] == ERROR:
            return ERROR
        return FAILED if self._failed or self.problem is not None else PASSED

    @property
    def exit_status(self) -> int:
        return EXIT[self.status]

    def step(self, place: Place, status: str, seconds: float, text: str, data: Mapping[str, Any]) -> None:
        """A verb was done, or could not be."""
        row = {"line": place.line, "text": place.text, "status": status, "seconds": round(seconds, 3)}
        self.steps.append({**row, "result": text, **({"data": dict(data)} if data else {})})
        word = place.text.partition(" ")[0]
        if word == "assert" and status != ERROR:
            measured = {key: data.get(key) for key in ("measured", "why")}
            self.asserts.append({"line": place.line, "text": place.text, "passed": status == PASSED, **measured})
            self._failed = self._failed or status == FAILED
        if word == "save" and "file" in data:
            self.captures.append(dict(data))

    def ended_by(self, status: str, what: str, place: Place | None = None) -> None:
        """Why the script did not go on; the first reason counts."""
        if self.problem is None:
            where = {} if place is None else {"line": place.line, "text": place.text}
            self.problem = {"status": status, "message": what, **where}

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; docs/scripts.md says what they are."""
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
        """As a file."""
        return json.dumps(self.as_json(), indent=2) + "\n"

    def write(self, path: Path) -> None:
        write(str(path), self.text().encode())
