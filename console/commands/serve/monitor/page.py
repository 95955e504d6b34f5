"""What a command prints, as far as one page goes: in place of standard output and of standard error."""

import contextlib
import io
from collections.abc import Callable, Iterator


class PageFull(Exception):
    """The page is full: the command ends here."""


class PrintedPage:
    """The lines *begin* to *end* - 1 of what a command prints. *preamble*: lines of its notes that are left out."""

    def __init__(self, begin: int, end: int, preamble: frozenset[str]) -> None:
        self.begin, self.end, self._preamble = begin, end, preamble
        self.count = 0
        """How many lines the command has printed."""
        self.lines: list[str] = []
        """What the debugger shows."""

    @contextlib.contextmanager
    def taking(self) -> Iterator[None]:
        """Take what is printed within this context, which ends when the page is full."""
        with contextlib.redirect_stdout(_Lines(self._take_row)), contextlib.redirect_stderr(_Lines(self._take_note)):
            yield

    def _take_row(self, line: str) -> None:
        if self.count >= self.end:
            raise PageFull
        if self.count >= self.begin:
            self.lines.append(line)
        self.count += 1

    def _take_note(self, line: str) -> None:
        if line not in self._preamble and not self.begin:
            self.lines.append(line)


class _Lines(io.TextIOBase):
    """A stream that hands on whole lines."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take, self._rest = take, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)
