"""A captured trace as it is read: with which program, which history it is, and how far the user has paged."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session import decoding, harts
from rvtrace_gdb.session.captured import Capture, Captured, CapturedRecords, CapturedSink
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.harts import Begun, Harts
from rvtrace_gdb.session.packets import Numbered, numbered
from rvtrace_gdb.session.program import CodeOnTarget, Program
from rvtrace_gdb.session.ranges import Cursor, RangeError
from rvtrace_gdb.session.rows import Row, rows
from rvtrace_gdb.session.tandem import advice
from rvtrace_gdb.support.lines import warning
from rvtrace_gdb.support.progress import Progress, silent


class Decoded(NamedTuple):
    """The histories of the sinks' harts, what they were made of, and what the user must know about them."""

    sinks: tuple[Captured, ...]
    image: Image
    program: ContextImages
    harts: Harts
    warnings: list[str]

    def sink_of(self, hart: int) -> Captured:
        """Where what the hart did comes from."""
        return self.sinks[self.harts.sinks.get(hart, 0)]


class Listing(NamedTuple):
    """Rows *begin* to *end* - 1 are to be shown; *notice* is said when there are none, *lines* in any case before.

    *hart*: whose history it is.
    """

    begin: int
    end: int
    notice: str | None
    lines: list[str]
    hart: int | None = None


class Reading:
    """*capture* is replaced by whoever reads more from the target; *target* is where it comes from, if anywhere.

    *stop_at_error*: nothing is decoded behind the first loss.
    """

    def __init__(
        self, capture: Capture, program: Program, target: CodeOnTarget | None = None, *, stop_at_error: bool = False
    ) -> None:
        self.capture = capture
        self.decoded: Decoded | None = None
        self._program, self._target = program, target
        self._stop_at_error = stop_at_error
        self._cursors: dict[int, Cursor] = {}
        self._messages: dict[str, Numbered] = {}
        self._messages_of: int | None = None  # the hart whose sink's messages are looked at
        self._message_cursors: dict[str, Cursor] = {}
        self._told: set[str] = set()
        self._begun: Begun = {}  # what was interrupted
        self._begun_with: tuple[tuple[Captured, ...], Image] | None = None

    @property
    def elf(self) -> str | None:
        """The program's file, if it has one."""
        return self._program.path or None

    def decode(self, elf: str | None, progress: Progress = silent) -> Decoded:
        """The histories, decoded once for the same bytes and the same program; *elf* is that from now on if needed.

        Raises BadElf, Unsupported, NoTrace.
        """
        capture = self.capture
        if elf is not None and elf != self._program.path and capture.takes_elf:
            self._program = Program(elf, target=self._target, code=capture.code, images=capture.images)
        image, before, sinks = self._program.image(), self.decoded, self._sinks()
        if before is not None and before.image is image and before.sinks == sinks:
            return before
        image, found = self._follow(sinks, image, progress)
        self._begun, self._begun_with = {}, None
        program = self._program.in_contexts(image)
        self.decoded = Decoded(sinks, image, program, found, self._warnings(image, found))
        for hart, history in found.histories.items():
            known = before.harts.histories.get(hart) if before is not None else None
            if known is None or not decoding.same_rows(known, history):
                self._cursors[hart] = Cursor()
        return self.decoded

    def _sinks(self) -> tuple[Captured, ...]:
        if not self.capture.captured and self._target is not None:
            raise NoTrace(
                "this trace leaves the chip, no RAM sink keeps it: a probe records it; `trace save FILE.rvt` keeps what"
                " its record is read with (`rvtrace decode --settings`)"
            )
        if not self.capture.captured:
            raise NoTrace(
                "the capture holds no trace, only its settings: `rvtrace decode --settings` reads a probe's record with"
                " them"
            )
        return self.capture.captured

    def _sink(self, hart: int | None) -> Captured:
        """The sink that the encoder of a hart feeds, or its records; of the first hart, if there is none such."""
        names = {encoder.in_force.name for encoder in self.capture.encoders if encoder.hart == hart}
        return next((sink for sink in self._sinks() if _is_of(sink, hart, names)), self._sinks()[0])

    def _warnings(self, image: Image, found: Harts) -> list[str]:
        """What the user must know about a history."""
        other, problem = decoding.other_elf(self.capture.elf, image), self._program.problem
        lines = [*found.notes, *([] if other is None else [other])]
        by_elf = self.capture.elf is not None
        wrong = [line for captured in self.capture.tandem for line in advice.warning(captured, by_elf=by_elf)]
        lines += wrong
        for hart, history in found.histories.items():
            who = f"hart {hart}: " if len(found.histories) > 1 else ""
            lines += decoding.contradictions(history, image, who, misread=bool(wrong))
        if problem is not None:
            lines.append(warning(f"code that is not in the ELF could not be read from the target: {problem}"))
        return list(dict.fromkeys(lines))

    def _follow(self, sinks: tuple[Captured, ...], image: Image, progress: Progress) -> tuple[Image, Harts]:
        """The histories, and the program they were decoded with.

        Code that was read from the target may have been written after that (an overlay, a loader): where it contradicts
        the trace, what is there now is tried too.
        """
        found = self._decode(sinks, image, progress, self._of_before(sinks, image))
        contradicted = any(decoding.mismatch(history, image) for history in found.histories.values())
        if self._target is None or not image.code or not contradicted:
            return image, found
        fresh = self._program.reread()
        again = self._decode(sinks, fresh, progress, {})
        if _missing(again) >= _missing(found):
            return image, found
        self._program.use(fresh)
        return fresh, again

    def _of_before(self, sinks: tuple[Captured, ...], image: Image) -> Begun:
        """What was begun of the same bytes with the same program."""
        if self._begun_with is None or self._begun_with[1] is not image or self._begun_with[0] != sinks:
            self._begun, self._begun_with = {}, (sinks, image)
        return self._begun

    def _decode(self, sinks: tuple[Captured, ...], image: Image, progress: Progress, begun: Begun) -> Harts:
        program = self._program.in_contexts(image)
        return harts.decode_all(
            sinks, self.capture.encoders, program, stop_at_error=self._stop_at_error, progress=progress, begun=begun
        )

    def history(self, hart: int | None) -> History:
        """The history of a hart (None: the first) in what was decoded last. Raises `NoTrace`."""
        found = self._last().harts
        return found.histories[found.number(hart)]

    def select(self, args: str, size: int | None, hart: int, home: int | None = None) -> Listing:
        """What `trace history ARGS` shows of what was decoded last; warnings are given once. Raises RangeError.

        *home*: the number where the hart is in the past.
        """
        decoded = self._last()
        selection = self._cursors[hart].select(args, size, len(decoded.harts.histories[hart]), home)
        return Listing(*selection, self.untold(decoded.warnings), hart)

    def rows(self, begin: int, end: int, hart: int | None) -> Iterator[Row]:
        """The rows numbered *begin* to *end* - 1 of what was decoded last."""
        return rows(self.history(hart), self._last().program, begin, end)

    def messages(self, progress: Progress = silent) -> Numbered:
        """The messages of the sink that was selected last, read once for the same bytes.

        Raises `Unsupported`, `NoTrace`.
        """
        sink = self._sink(self._messages_of)
        name, how = sink.in_force.name, harts.how_of(sink, self.capture.encoders)
        known = self._messages.get(name)
        if known is None or known.data != sink.data or known.how != how:
            wrapped = not isinstance(sink, CapturedRecords) and sink.wrapped
            fresh = numbered(sink.data, how, self.capture.xlen, wrapped=wrapped, progress=progress)
            if known is None or len(known) != len(fresh):
                self._message_cursors[name] = Cursor("trace")
            self._messages[name] = known = fresh
        return known

    def select_messages(
        self, args: str, size: int | None, offset: int | None, hart: int | None = None, progress: Progress = silent
    ) -> Listing:
        """What `trace dump ARGS` shows, of the sink that a hart's encoder feeds. Raises RangeError.

        *offset*: from the message on that this byte is part of.
        """
        self._messages_of = hart
        messages = self.messages(progress)
        if offset is not None:
            if offset >= len(messages.data) > 0:
                raise RangeError(f"Range out of bounds: bytes go from 0x0 to {len(messages.data) - 1:#x}.")
            args = str(messages.number_at(offset))
        found = self._message_cursors[self._sink(hart).in_force.name].select(args, size, len(messages))
        return Listing(found.begin, found.end, found.notice, [], hart)

    def untold(self, lines: list[str]) -> list[str]:
        """Those of *lines* that were not said before."""
        fresh = [line for line in lines if line not in self._told]
        self._told.update(lines)
        return fresh

    def _last(self) -> Decoded:
        if self.decoded is None:
            raise NoTrace("no history was asked for yet")
        return self.decoded


def _is_of(sink: Captured, hart: int | None, encoders: set[str]) -> bool:
    return bool(encoders & set(sink.encoders)) if isinstance(sink, CapturedSink) else sink.hart == hart


def _missing(found: Harts) -> tuple[int, int]:
    """How much is missing, for comparisons: gaps first, and of as many gaps how few instructions there are.

    What contradicts the program from the first synchronization on is one gap, or none where not an instruction is left.
    """
    histories = found.histories.values()
    return sum(history.gaps for history in histories), -sum(history.instructions for history in histories)
