"""The rows of a console log, as lines for people and as fields for programs."""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.rows.itc_rows import ItcRow
from rvtrace_gdb.rows.list_text import TextPaint


def itc_line(row: ItcRow, paint: TextPaint, *, several: bool = False) -> str:
    """Return the line of a row: who wrote it, when, and what. *several*: there are several harts."""
    hart = f"hart {row.hart}, " if several else ""
    if row.kind == "loss":
        return f"{hart}{paint('gap', f'[{row.text}; trace byte {row.offset:#x}]')}"
    when = "" if row.time is None else f", time {row.time}"
    if row.until is not None and row.until != row.time:
        when += f" to {row.until}"
    unended = paint("gap", " [not ended]") if row.open else ""
    return f"{hart}channel {row.channel}{when}:\t{row.text}{unended}"


def itc_fields(row: ItcRow) -> dict[str, Any]:
    """Return the fields of a row for programs; what is not known has none."""
    found: dict[str, Any] = {"hart": row.hart, "kind": row.kind, "text": row.text, "trace-byte": row.offset}
    more = {"channel": row.channel, "time": row.time, "until": row.until}
    found.update((name, value) for name, value in more.items() if value is not None)
    return {**found, "open": 1} if row.open else found
