"""The state of a program under gdb, and of its trace, for a status line and for test benches.

gdb's records say whether the program runs, and where and why it stopped. `trace status` and similar commands report the
state of the trace.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from rvtrace_gdb.console.gdb_driver.mi import MiRecord


class ProgramStop(NamedTuple):
    """Where and why the program stopped.

    *reason*: gdb's word (breakpoint-hit, end-stepping-range, signal-received, exited-normally ...), "" if it has none,
    "connection-lost" if the target is gone. *address*: that of the next instruction; None if unknown.
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
        """The place as text, e.g. "finish (demo.c:50)"."""
        where = self.function or (f"{self.address:#x}" if self.address is not None else "an unknown place")
        source = f" ({PurePath(self.file).name}:{self.line})" if self.file and self.line is not None else ""
        return where + source

    def __str__(self) -> str:
        why = f"signal {self.signal}" if self.signal and self.signal != "0" else self.reason.replace("-", " ")
        return f"{self.place}, {why}" if why and self.reason not in _PLAIN else self.place


_PLAIN = ("breakpoint-hit", "end-stepping-range")
LOST = "connection-lost"


def stop_of(fields: Mapping[str, Any]) -> ProgramStop:
    """Return the stop in the fields of a `*stopped` record."""
    frame = fields.get("frame")
    frame = frame if isinstance(frame, dict) else {}
    number = fields.get("bkptno")
    return ProgramStop(
        reason=str(fields.get("reason", "")),
        function=str(frame.get("func", "")).replace("??", ""),
        file=str(frame.get("fullname") or frame.get("file") or ""),
        line=int(frame["line"]) if str(frame.get("line", "")).isdigit() else None,
        address=int(str(frame["addr"]), 16) if str(frame.get("addr", "")).startswith("0x") else None,
        signal=str(fields.get("signal-name", "")),
        breakpoint=int(number) if isinstance(number, str) and number.isdigit() else None,
    )


class Running:
    """The execution state of the program, updated by gdb's records."""

    def __init__(self) -> None:
        self.running = False
        self.connected = False
        self.stops = 0
        """How often the program has stopped."""
        self.last = ProgramStop()
        self._threads: set[str] = set()

    def heard(self, record: MiRecord) -> None:
        if record.kind != "notify":
            return
        if record.name == "running":
            self.running = True
        elif record.name == "thread-group-started":
            self.connected = True
        elif record.name == "stopped":
            self._stopped(stop_of(record.fields))
        elif record.name == "thread-created":
            self._threads.add(str(record.fields.get("id")))
        elif record.name == "thread-exited":
            self._threads.discard(str(record.fields.get("id")))
        elif record.name == "thread-group-exited":
            self.connected = False
            if self.running:
                self._stopped(ProgramStop(LOST))

    def _stopped(self, stop: ProgramStop) -> None:
        self.running = False
        self.last = stop
        self.stops += 1

    def found_stopped(self, thread: Mapping[str, Any]) -> None:
        """Note a stop that gdb did not report; *thread*: the selected one in the answer to `-thread-info`."""
        self._stopped(stop_of(thread))

    @property
    def several(self) -> bool:
        """Whether the target has more than one hart."""
        return len(self._threads) > 1

    @property
    def word(self) -> str:
        """The state as text for a status line."""
        if self.running:
            return "running"
        if not self.connected:
            return "not connected"
        return f"stopped at {self.last.place}" if self.stops else "stopped"


_AT_REST = ("off", "stopped", "in reset", "frozen")


class TraceState(NamedTuple):
    """The state of the trace.

    *encoders*: the state of each by name; *captured*: bytes in all sinks, None without a sink; *lost*: texts about
    missing trace; *size*: the capacity of the sinks in bytes, 0 if unknown; *unread*: bytes that QEMU has recorded and
    that are not encoded yet; *records*: the number of Control Transfer Records, and their depth; *file*: the open
    capture file.
    """

    encoders: Mapping[str, str] = {}
    captured: int | None = None
    size: int = 0
    lost: tuple[str, ...] = ()
    history: str = ""
    unread: int = 0
    records: tuple[int, int] | None = None
    file: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a trace or a capture."""
        return bool(self.encoders or self.file) or self.captured is not None or self.records is not None

    @property
    def tracing(self) -> bool:
        """Whether an encoder is running, so that the state may change."""
        return any(state not in _AT_REST for state in self.encoders.values())

    def __str__(self) -> str:
        if not self.known:
            return "no trace"
        states = "" if self.file else f" {' / '.join(sorted(set(self.encoders.values())))}"
        parts = [(f"capture {PurePath(self.file).name}" if self.file else f"trace{states}").rstrip()]
        if self.captured is not None:
            parts.append(f"{self.captured}{f' of {self.size}' if self.size else ''} bytes")
        if self.unread:
            parts.append(f"{self.unread} not read yet")
        if self.records is not None:
            parts.append("{} of {} records".format(*self.records))
        return ", ".join([*parts, *(["not complete"] if self.lost else [])])


def trace_state(fields: Mapping[str, Any]) -> TraceState:
    """Return the state in the answer to `-rvtrace-status`, whose numbers are text as everywhere in MI."""
    records = fields.get("records")
    return TraceState(
        encoders={str(one["name"]): str(one["state"]) for one in fields.get("encoders", [])},
        captured=int(fields["captured"]) if "captured" in fields else None,
        size=int(fields.get("size", 0)),
        lost=tuple(map(str, fields.get("lost", []))),
        history=str(fields.get("history", "")),
        unread=int(fields.get("unread", 0)),
        records=None if records is None else (int(records["there"]), int(records["depth"])),
        file=str(fields.get("file", "")),
    )
