"""The files whose symbols gdb has, and where each is in memory: `symbol-file -o`, PIE and U-Boot move it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext import neutral

_FILE = re.compile(r"(?:Exec|Object) file: `(?P<path>.*)', file type")
_SECTION = re.compile(r" \[\d+\] +0x(?P<start>[0-9a-f]+)->0x[0-9a-f]+ at 0x(?P<offset>[0-9a-f]+): \S+ ALLOC LOAD")
_known: list[list[object]] | None = None
_last: list[list[object]] = []
"""What gdb said last: files are hardly moved while the program runs."""


def forget(event: object = None) -> None:
    """Ask gdb again: it has read, moved or dropped symbols."""
    global _known
    _known = None


def placed() -> list[list[object]]:
    """Return [path, where its first section is in memory, where that is in the file] of each file that gdb has."""
    global _known, _last
    if _known is None:
        try:
            _known = _last = list(_requested_files())
        except gdb.error:  # gdb does not say while the program runs
            return _last
    return _known


def _requested_files() -> Iterator[list[object]]:
    if not gdb.objfiles():
        return
    path = ""
    for line in neutral.printed("maintenance info sections -all-objects ALLOC").splitlines():
        file, section = _FILE.match(line), _SECTION.match(line)
        if file is not None:
            path = file["path"]
        elif section is not None and path:
            yield [path, int(section["start"], 16), int(section["offset"], 16)]
            path = ""
