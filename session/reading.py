"""A captured trace as it is read: with which program, which history it is, and how far the user has paged."""

from collections.abc import Iterator
from typing import NamedTuple

from decode.history import GAP, History
from decode.image import Image
from session import decoding
from session.captured import Capture, CapturedSink
from session.errors import NoTrace
from session.program import CodeOnTarget, Program
from session.ranges import Cursor
from support.progress import Progress, silent

Row = tuple[int, int] | tuple[int, None, str]
"""(number, pc), or (number, None, text) for a gap."""


class Decoded(NamedTuple):
    """A history, what it was made of, and what the user must know about it."""

    sink: CapturedSink
    image: Image
    history: History
    warnings: list[str]


class Listing(NamedTuple):
    """Rows *begin* to *end* - 1 are to be shown; *notice* is said when there are none, *lines* in any case before."""

    begin: int
    end: int
    notice: str | None
    lines: list[str]


class Reading:
    """*capture* is replaced by whoever reads more from the target; *target* is where it comes from, if anywhere."""

    def __init__(self, capture: Capture, program: Program, target: CodeOnTarget | None = None) -> None:
        self.capture = capture
        self.decoded: Decoded | None = None
        self._program, self._target = program, target
        self._cursor = Cursor()
        self._told: set[str] = set()

    def decode(self, elf: str | None, progress: Progress = silent) -> Decoded:
        """The history, decoded once for the same bytes and the same program; *elf* is the program from now on if given.

        Raises BadElf, Unsupported, NoTrace.
        """
        if elf is not None and elf != self._program.path:
            self._program = Program(elf, target=self._target, code=self.capture.code)
        if not self.capture.sinks:
            raise NoTrace("the capture holds no trace: it has no sink")
        image, before, sink = self._program.image(), self.decoded, self.capture.sinks[0]
        if before is not None and before.image is image and before.sink == sink:
            return before
        image, history = self._follow(sink, image, progress)
        warnings = decoding.warnings(self.capture.elf, image, history, self._program.problem)
        self.decoded = Decoded(sink, image, history, warnings)
        if before is None or not decoding.same_rows(before.history, history):
            self._cursor.reset()
        return self.decoded

    def _follow(self, sink: CapturedSink, image: Image, progress: Progress) -> tuple[Image, History]:
        """The history, and the program it was decoded with.

        Code that was read from the target may have been written after that (an overlay, a loader): where it contradicts
        the trace, what is there now is tried too.
        """
        history = decoding.decode(sink, self.capture.encoders, image, progress)
        if self._target is None or not image.code or decoding.mismatch(history, image) is None:
            return image, history
        fresh = self._program.reread()
        again = decoding.decode(sink, self.capture.encoders, fresh, progress)
        if again.gaps >= history.gaps:
            return image, history
        self._program.use(fresh)
        return fresh, again

    def select(self, args: str, size: int | None) -> Listing:
        """What `trace history ARGS` shows of what was decoded last; warnings are given once. Raises RangeError."""
        decoded = self._last()
        selection = self._cursor.select(args, size, len(decoded.history))
        return Listing(*selection, self.untold(decoded.warnings))

    def rows(self, begin: int, end: int) -> Iterator[Row]:
        """The rows numbered *begin* to *end* - 1 of what was decoded last."""
        history = self._last().history
        for number, pc in enumerate(history.pcs(begin - 1, end - 1), begin):
            yield (number, None, history.gap_at(number - 1).text) if pc == GAP else (number, pc)

    def untold(self, lines: list[str]) -> list[str]:
        """Those of *lines* that were not said before."""
        fresh = [line for line in lines if line not in self._told]
        self._told.update(lines)
        return fresh

    def _last(self) -> Decoded:
        if self.decoded is None:
            raise NoTrace("no history was asked for yet")
        return self.decoded
