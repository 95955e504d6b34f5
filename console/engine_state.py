"""What gdb says about the program it debugs, and `trace status` about the trace: the state that a console shows."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from console.mi_records import Record


class Stop(NamedTuple):
    """Where and why the program stopped.

    *reason*: gdb's word (breakpoint-hit, end-stepping-range, signal-received, exited-normally ...), "" where it has
    none, "connection-lost" when the target is gone. *address*: of the instruction that is next; None: not known.
    """

    reason: str = ""
    function: str = ""
    file: str = ""
    line: int | None = None
    address: int | None = None
    signal: str = ""
    breakpoint: int | None = None

    @property
    def place(self) -> str:
        """E.g. "finish (demo.c:50)"."""
        where = self.function or (f"{self.address:#x}" if self.address is not None else "an unknown place")
        source = f" ({PurePath(self.file).name}:{self.line})" if self.file and self.line is not None else ""
        return where + source

    def __str__(self) -> str:
        why = f"signal {self.signal}" if self.signal and self.signal != "0" else self.reason.replace("-", " ")
        return f"{self.place}, {why}" if why and self.reason not in _PLAIN else self.place


_PLAIN = ("breakpoint-hit", "end-stepping-range")
LOST = "connection-lost"


def stop_of(fields: Mapping[str, Any]) -> Stop:
    """The stop of a `*stopped` record."""
    frame = fields.get("frame")
    frame = frame if isinstance(frame, dict) else {}
    number = fields.get("bkptno")
    return Stop(
        reason=str(fields.get("reason", "")),
        function=str(frame.get("func", "")),
        file=str(frame.get("fullname") or frame.get("file") or ""),
        line=int(frame["line"]) if str(frame.get("line", "")).isdigit() else None,
        address=int(str(frame["addr"]), 16) if str(frame.get("addr", "")).startswith("0x") else None,
        signal=str(fields.get("signal-name", "")),
        breakpoint=int(number) if isinstance(number, str) and number.isdigit() else None,
    )


class Running:
    """Follows whether the program runs, by the records that come."""

    def __init__(self) -> None:
        self.running = False
        self.connected = False
        self.stops = 0
        """How often it stopped."""
        self.last = Stop()

    def heard(self, record: Record) -> None:
        if record.kind != "notify":
            return
        if record.name == "running":
            self.running = True
        elif record.name == "thread-group-started":
            self.connected = True
        elif record.name == "stopped":
            self._stopped(stop_of(record.fields))
        elif record.name == "thread-group-exited":
            self.connected = False
            if self.running:
                self._stopped(Stop(LOST))

    def _stopped(self, stop: Stop) -> None:
        self.running = False
        self.last = stop
        self.stops += 1

    @property
    def word(self) -> str:
        """For a status line."""
        if self.running:
            return "running"
        if not self.connected:
            return "not connected"
        return f"stopped at {self.last.place}" if self.stops else "stopped"


_LINE = re.compile(r"^(?P<topic>[a-z]+): +(?P<text>.*)$")
_ENCODER = re.compile(r"^(?P<name>\S+) at 0x[0-9a-f]+: (?P<state>[^,]+),")
_FILLED = re.compile(r"(?P<full>full, )?(?P<bytes>\d+)(?: of (?P<size>\d+))? bytes")


class TraceState(NamedTuple):
    """What `trace status` and its like say. *encoders*: the state of each by name; *captured*: bytes in all sinks.

    *lost*: lines that say that something is missing. *size*: bytes there is room for, 0: not known.
    """

    encoders: Mapping[str, str] = {}
    captured: int | None = None
    size: int = 0
    lost: tuple[str, ...] = ()
    history: str = ""

    @property
    def tracing(self) -> bool:
        """Whether it is worth to look again."""
        return any(state not in _AT_REST for state in self.encoders.values())

    def __str__(self) -> str:
        states = sorted(set(self.encoders.values()))
        if not states and self.captured is None:
            return "no trace"
        words = f"trace {' / '.join(states)}" if states else "trace"
        room = f" of {self.size}" if self.size else ""
        return words + (f", {self.captured}{room} bytes" if self.captured is not None else "")


_AT_REST = ("off", "stopped", "in reset")


def trace_state(lines: Iterable[str]) -> TraceState:
    """The state that lines of `trace status` tell."""
    encoders: dict[str, str] = {}
    lost: list[str] = []
    captured, size, history = None, 0, ""
    for line in lines:
        found = _LINE.match(line)
        topic, text = (found["topic"], found["text"]) if found else ("", line)
        encoder, filled = _ENCODER.match(text), _FILLED.search(text)
        if topic == "encoder" and encoder:
            encoders[encoder["name"]] = encoder["state"]
        elif topic == "sink" and filled:
            captured = (captured or 0) + int(filled["bytes"])
            size += int(filled["size"] or (filled["bytes"] if filled["full"] else 0))
        elif topic == "history":
            history = text
        elif topic == "lost" or "the trace is not complete" in text:
            lost.append(text)
    return TraceState(encoders, captured, size, tuple(lost), history)
