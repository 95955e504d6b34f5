"""The state of a trace as its printed lines have it: read by their words, to hold what programs are told against it."""

import re
from collections.abc import Iterable

from rvtrace_gdb.console.gdb_driver.state import TraceState

_LINE = re.compile(r"^(?P<topic>\w+): +(?P<text>.*)$")
_ENCODER = re.compile(r"^(?P<name>\S+) at 0x[0-9a-f]+: (?P<state>[^,]+),")
_IN_SOFTWARE = re.compile(r"^(?P<name>\S+), hart \d+, in software: (?:(?P<state>[a-z][^,]*), )?")
_FILLED = re.compile(r"^\S+(?: at 0x[0-9a-f]+)?: (?:.*?, )?(?P<full>full, )?(?P<bytes>\d+)(?: of (?P<size>\d+))? bytes")
_UNREAD = re.compile(r"\b(?P<bytes>\d+) bytes of the ring are not read yet")
_RECORDS = re.compile(r"\b(?P<there>\d+) of (?P<depth>\d+) entries")


def read(lines: Iterable[str]) -> TraceState:
    """The state that lines of `trace status` tell."""
    told = _Told()
    for line in lines:
        found = _LINE.match(line)
        told.line(*((found["topic"], found["text"]) if found else ("", line)))
    return told.state


class _Told:
    """What the lines up to now say."""

    def __init__(self) -> None:
        self.state = TraceState()
        self._encoders: dict[str, str] = {}

    def line(self, topic: str, text: str) -> None:
        if topic == "capture":
            self.state = self.state._replace(file=text)
        elif topic == "history":
            self.state = self.state._replace(history=text)
        elif topic == "lost" or "the trace is not complete" in text:
            self.state = self.state._replace(lost=(*self.state.lost, text))
        elif topic == "encoder":
            self._encoder(text)
        elif topic == "sink":
            self._sink(text)
        elif topic:
            self._records(topic, text)

    def _encoder(self, text: str) -> None:
        """One in software traces, if nothing else is said."""
        found = _ENCODER.match(text) or _IN_SOFTWARE.match(text)
        if found is not None:
            self._now(found["name"], found["state"] or "tracing")

    def _sink(self, text: str) -> None:
        found = _FILLED.search(text)
        if found is None:
            return
        size = int(found["size"] or (found["bytes"] if found["full"] else 0))
        self.state = self.state._replace(
            captured=(self.state.captured or 0) + int(found["bytes"]), size=self.state.size + size,
            unread=self.state.unread + sum(map(int, _UNREAD.findall(text))),
        )  # fmt: skip

    def _records(self, topic: str, text: str) -> None:
        """Of Control Transfer Records: a line named after the hart's, and then their state or what was read."""
        if text.startswith("CTR "):
            self._now(topic, "stopped")
        elif topic == "state" and self._encoders:
            self._now(list(self._encoders)[-1], "frozen" if text.startswith("frozen") else "recording")
        found = _RECORDS.search(text)
        if found is not None:
            there, depth = self.state.records or (0, 0)
            self.state = self.state._replace(records=(there + int(found["there"]), depth + int(found["depth"])))

    def _now(self, name: str, state: str) -> None:
        self._encoders[name] = state
        self.state = self.state._replace(encoders=dict(self._encoders))
