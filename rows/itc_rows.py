"""What a program wrote into its trace, as the rows of a console log."""

from __future__ import annotations

from typing import NamedTuple


class ItcRow(NamedTuple):
    """A line of text, a value, or a loss.

    hart, channel  which hart wrote it, to which channel; None: of a loss, any
    kind           "text"; "value": not text, as a number; "loss": trace is missing here, and what was written there
    text           without the end of the line
    time, until    of the first and the last write, in ticks; None without timestamps
    offset         the byte of the trace of the first write
    open           whether nothing ended the line
    """

    hart: int
    channel: int | None
    kind: str
    text: str
    time: int | None
    until: int | None
    offset: int
    open: bool
