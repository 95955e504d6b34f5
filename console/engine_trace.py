"""What `trace status` and its like say, for a status line and for test benches."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

_AT_REST = ("off", "stopped", "in reset", "frozen")


class TraceState(NamedTuple):
    """What is traced. *encoders*: the state of each by name; *captured*: bytes in all sinks, None: there are none.

    *lost*: texts that say that something is missing. *size*: bytes there is room for, 0: not known. *unread*: bytes
    that QEMU has recorded and that are not encoded yet. *records*: Control Transfer Records, of how many. *file*: the
    capture file that is looked at.
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
        """Whether there is a trace, or a capture."""
        return bool(self.encoders or self.file) or self.captured is not None or self.records is not None

    @property
    def tracing(self) -> bool:
        """Whether it is worth to look again."""
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


def trace_state(told: Mapping[str, Any]) -> TraceState:
    """The state in the answer to `-rvtrace-status`, whose numbers are text as in all of MI."""
    records = told.get("records")
    return TraceState(
        encoders={str(one["name"]): str(one["state"]) for one in told.get("encoders", [])},
        captured=int(told["captured"]) if "captured" in told else None,
        size=int(told.get("size", 0)),
        lost=tuple(map(str, told.get("lost", []))),
        history=str(told.get("history", "")),
        unread=int(told.get("unread", 0)),
        records=None if records is None else (int(records["there"]), int(records["depth"])),
        file=str(told.get("file", "")),
    )
