"""Transcripts of real gdb sessions, tests/data/gdb-transcripts."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "data" / "gdb-transcripts"


class Exchange(NamedTuple):
    """A command and what gdb printed."""

    command: str
    lines: list[str]


def exchanges(name: str) -> Iterator[Exchange]:
    """All exchanges of a transcript, in order."""
    for part in ("\n" + (FOLDER / name).read_text()).split("\n(gdb) ")[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield Exchange(command, lines)


def history_rows(lines: list[str]) -> list[tuple[int, str]]:
    """(number, rest of the line) of the rows of an instruction history; other lines are left out."""
    rows = (line.partition("\t") for line in lines)
    return [(int(number), rest) for number, _, rest in rows if number.isdigit()]
