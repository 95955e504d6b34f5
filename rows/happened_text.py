"""The lines in a listing of instructions that say what happened between two of them, for gdb and elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from rvtrace_gdb.rows.list_rows import Annotation, Happened, Place

AddressText = Callable[[Place], str]
"""Returns `0xADDRESS <function+offset>`."""


def happened_line(events: Iterable[Happened], address_text: AddressText, time: str = "") -> str:
    """Return the line for the events between two instructions, and their time."""
    return f"     [{'; '.join([*(_fact(event, address_text) for event in events), *([time] if time else [])])}]"


def annotation_line(annotation: Annotation, address_text: AddressText) -> str:
    """Return the line for what happened before a row."""
    time = ""
    if annotation.time is not None:
        time = f"time {annotation.time}" + ("" if annotation.ticks is None else f", {annotation.ticks:+}")
    return happened_line(annotation.events, address_text, time)


def _fact(event: Happened, address_text: AddressText) -> str:
    """Return the text of one event."""
    fact = event.text if event.names_kind else f"{event.kind.replace('-', ' ')}: {event.text}"
    return fact if event.place is None else f"{fact}, at {address_text(event.place)}"
