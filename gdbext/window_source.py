"""The source window goes where the history window is scrolled to.

gdb moves its source window when it prints a prompt, and a key that scrolls brings none. What can be done in between:
`list` makes another file the one that is looked at, and `+` and `-` scroll the window by lines, both without a word.
"""

from __future__ import annotations

import contextlib
import re

import gdb

LINES_AT_MOST = 1 << 16  # of a file: the window is scrolled up in steps down from this
_HEIGHT = re.compile(r"^\W*src\s+(\d+)", re.M)


class Source:
    """The source window, as far as it is known where it stands."""

    def __init__(self) -> None:
        self._file = ""
        self._first = 0  # the line at the top, 0: not known

    def forget(self) -> None:
        """gdb may have moved the window."""
        self._first = 0

    def show(self, pc: int) -> None:
        """Bring the source line of an instruction to the window's middle. Without one, nothing happens."""
        with contextlib.suppress(gdb.error):  # no source window in this layout
            place = gdb.find_pc_line(pc)
            height = _height()
            if place.symtab is None or place.line <= 0 or height is None:
                return
            self._show(place.symtab.filename, max(1, place.line - height // 2))

    def _show(self, file: str, first: int) -> None:
        """*first*: the line at the top of the window."""
        if not self._first:
            self._to_the_top()
        changed = file != self._file
        before = max(1, first - 1)  # at the next prompt, gdb puts what would be listed next at the top
        _quietly(f'list "{file}":{before},{before}')
        self._file = file
        self._scroll(first - self._first, changed)
        self._first = first

    def _to_the_top(self) -> None:
        """gdb 13 does not scroll at all where it would be further than the top, so: by ever smaller steps."""
        step = LINES_AT_MOST
        while step:
            _quietly(f"- {step} src")
            step //= 2
        self._first = 1

    @staticmethod
    def _scroll(lines: int, changed: bool) -> None:
        if lines:
            _quietly(f"{'+' if lines > 0 else '-'} {abs(lines)} src")
        elif changed:  # the same lines of another file
            _quietly("+ 1 src")
            _quietly("- 1 src")


def _height() -> int | None:
    """Lines of source the window has room for, None where there is none."""
    match = _HEIGHT.search(gdb.execute("info win", to_string=True))
    return int(match.group(1)) - 2 if match else None


def _quietly(command: str) -> None:
    gdb.execute(command, to_string=True)
