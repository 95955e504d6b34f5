"""Traces of which the beginning says the same as all of them: a search for better options takes as long as they are."""

from pathlib import Path

from tests.helpers.amounts import LONG


def beginning(trace: Path, size: int, folder: Path) -> Path:
    """The first *size* bytes of a trace, in a file of the same name in *folder*; in the long run all of it."""
    if LONG:
        return trace
    (folder / trace.name).write_bytes(trace.read_bytes()[:size])
    return folder / trace.name
