"""A capture together with its decoded history: the program it is decoded with, and which rows were shown last."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.answers import CheckRow
from rvtrace_gdb.rows.list_rows import ShortHistoryRow
from rvtrace_gdb.session import program
from rvtrace_gdb.session.capture.model import (
    Capture,
    Captured,
    CapturedBranches,
    CapturedEncoder,
    CapturedImage,
    CapturedRecords,
    CapturedSink,
    CapturedTrap,
    is_framed,
    is_overwritten,
)
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats import sinks as formats_sinks
from rvtrace_gdb.session.formats.format import AnyNumberedItems
from rvtrace_gdb.session.formats.sinks import GrowingHistories, HartHistories, SinkDecoding
from rvtrace_gdb.session.history_problems import contradictions, mismatch
from rvtrace_gdb.session.program import CodeOnTarget, LoadedProgram
from rvtrace_gdb.session.queries.lists.history_rows import rows
from rvtrace_gdb.session.queries.lists.pages import Cursor, PageSelection, RangeError
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import counted, hint, warning

if TYPE_CHECKING:
    from rvtrace_gdb.session.formats.framed_sinks import FramedSinks
    from rvtrace_gdb.session.formats.long_traces.divisible import DivisibleTrace
    from rvtrace_gdb.session.formats.long_traces.trace_index import TraceIndex


_ROUNDS = 8  # each finds what the gaps of the one before have hidden
_PAGES = 64
"""Pages that are read at once: more take seconds with a slow adapter."""


def same_rows(before: History, after: History) -> bool:
    """Return whether rows of a history that was decoded again have the same numbers as before."""
    if (len(before), before.instructions) != (len(after), after.instructions):
        return False
    return not len(before) or all(before.pc(i) == after.pc(i) for i in (0, len(before) // 2, len(before) - 1))


class Decoded(NamedTuple):
    """The histories of the sinks' harts, what they were decoded from, and the warnings for the user.

    *checked*: what a check has found out about them, None before one.
    """

    sinks: tuple[Captured, ...]
    image: Image
    program: ContextImages
    harts: HartHistories
    warnings: list[str]
    traps: tuple[CapturedTrap, ...] = ()
    checked: tuple[CheckRow, ...] | None = None

    def sink_of(self, hart: int) -> Captured:
        """Return the sink that holds the trace of a hart."""
        return self.sinks[self.harts.sinks.get(hart, 0)]


class Listing(NamedTuple):
    """The range of rows to show, *begin* to *end* - 1.

    *notice* is printed if there are none, *lines* before them in any case. *hart* is the hart whose history it is.
    """

    begin: int
    end: int
    notice: str | None
    lines: list[str]
    hart: int | None = None


class GrowingTrace(NamedTuple):
    """What has been decoded so far of a capture, and the program."""

    harts: GrowingHistories
    program: ContextImages


class _BegunDecoding(NamedTuple):
    """A decoding that may have been interrupted, or whose sinks may have more by now, and what it decodes with."""

    encoders: tuple[CapturedEncoder, ...]
    image: Image
    decoding: SinkDecoding


class DecodedCapture:
    """A capture, the program, and the histories decoded with it.

    Whoever reads more from the target replaces *capture*; *target* is the target it comes from, if any.
    *stop_at_error*: nothing after the first loss is decoded. *lazily*: of a trace that has an index only what is looked
    at is decoded.
    """

    def __init__(
        self,
        capture: Capture,
        program: LoadedProgram,
        target: CodeOnTarget | None = None,
        *,
        stop_at_error: bool = False,
        lazily: bool = False,
    ) -> None:
        self.capture = capture
        self.decoded: Decoded | None = None
        self.traps = capture.traps
        """What the harts said of their last traps; `capture` has what of it is believed."""
        self._program, self._target = program, target
        self._stop_at_error, self._lazily = stop_at_error, lazily
        self._cursors: dict[int, Cursor] = {}
        self.lengths: dict[int, int] = {}
        """How many rows the history of each hart has."""
        self._messages: dict[str, AnyNumberedItems] = {}
        self._messages_of: int | None = None  # the hart whose messages are listed
        self._message_cursors: dict[str, Cursor] = {}
        self._reported: set[str] = set()
        self._begun: _BegunDecoding | None = None
        self._framed: FramedSinks | None = None
        self._index: TraceIndex | None = None

    @property
    def elf(self) -> str | None:
        """The path of the program's file, None if it has none."""
        return self._program.path or None

    def decode(self, elf: str | None, progress: Progress = silent, others: Sequence[str] = ()) -> Decoded:
        """Return the histories; the same bytes are decoded once with the same program.

        *elf* is the program from now on, if the capture needs one, with *others*; see `LoadedProgram`. Raises BadElf,
        Unsupported, NoTrace.
        """
        capture = self.capture
        if not self._is_program(elf, others):
            assert elf is not None
            self._program = LoadedProgram(
                elf, target=self._target, code=capture.code, images=capture.images, others=others, elfs=capture.elfs,
                patched=capture.patched,
            )  # fmt: skip
        image, before, sinks = self._program.image(), self.decoded, self._sinks(progress)
        if before is not None and before.image is image and before.sinks == sinks:
            self.use_progress(progress)
            return before if before.traps == self.traps else self._with_notes(before)
        image, found = self._decode_sinks(sinks, image, progress)
        found = found if self._framed is None else self._framed.completed(found)
        if self._target is None and self._begun is not None and not self._begun.decoding.is_indexed:
            self._begun = None  # nothing more will come
        program = self._program.in_contexts(image)
        if self.traps or self.capture.traps:
            from rvtrace_gdb.session.trap_causes import explained  # few captures have any

            found, believed = explained(found, self.traps, program)
            self.capture = replace(self.capture, traps=believed)
        self.decoded = Decoded(sinks, image, program, found, self._warnings(image, found), self.traps)
        self.lengths = {hart: len(history) for hart, history in found.histories.items()}
        for hart, history in found.histories.items():
            known = before.harts.histories.get(hart) if before is not None else None
            if known is None or not same_rows(known, history):
                self._cursors[hart] = Cursor()
                if known is not None and self._target is not None and is_overwritten(self.decoded.sink_of(hart)):
                    self._lose_places(hart)
        return self.decoded

    def _lose_places(self, hart: int) -> None:
        """Note that the numbers of a hart's instructions are others than before: the oldest are gone."""
        notes = tuple(replace(it, number=None) if it.hart == hart else it for it in self.capture.place_notes)
        self.capture = replace(self.capture, place_notes=notes)

    def growing(self) -> GrowingTrace | None:
        """Return what a decoding that goes on has shown so far, None where that may still become something else: the
        trace of a hart in several sinks, or of a target, where the program is read again if it does not fit.
        """
        begun = self._begun
        views = None if begun is None or self._target is not None else begun.decoding.views()
        if begun is None or views is None:
            return None
        return GrowingTrace(views, self._program.in_contexts(begun.image))

    def _with_notes(self, before: Decoded) -> Decoded:
        """Return what was decoded before, with what the harts have said of their last traps since."""
        from rvtrace_gdb.session.trap_causes import explained

        harts, believed = explained(before.harts, self.traps, before.program)
        kept = {*self.capture.traps, *believed}
        self.capture = replace(self.capture, traps=tuple(trap for trap in self.traps if trap in kept))
        self.decoded = before._replace(harts=harts, traps=self.traps)
        return self.decoded

    def divisible(self) -> "DivisibleTrace":
        """Return the trace for those who decode it in pieces. Raises `Indivisible`, `NoTrace`, `Unsupported`, BadElf.
        """
        from rvtrace_gdb.session.formats.long_traces.divisible import Indivisible, divisible  # few traces are so long

        if self.traps:
            raise Indivisible("it has what halted harts said of their last traps")  # this is put into the histories
        if self._target is not None or self._stop_at_error:
            raise Indivisible("it is still recorded, or read up to its first error alone")
        return divisible(self._sinks(), self.capture.encoders, self._program.in_contexts(self._program.image()))

    def use_index(self, index: "TraceIndex") -> None:
        """Decode of the only sink what is looked at alone: the rest is known already."""
        self._index = index

    def use_images(self, images: tuple[CapturedImage, ...]) -> None:
        """Have code of some contexts only; all is decoded anew."""
        if images == self.capture.images:
            return
        self.capture = replace(self.capture, images=images)
        self._program.use_images(images)
        self._begun = None

    def use_progress(self, progress: Progress) -> None:
        """Have *progress* show what is decoded when it is looked at."""
        if self._begun is not None:
            self._begun.decoding.use_progress(progress)

    def check(self, progress: Progress = silent) -> Decoded:
        """Return what was decoded last, checked: what the check finds damaged is a loss in the histories.

        Raises Unsupported, NoTrace, and what *progress* raises.
        """
        decoded = self._last()
        if decoded.checked is not None:
            return decoded
        from rvtrace_gdb.session.queries import check  # only where a trace is checked

        histories, checked = dict(decoded.harts.histories), []
        for number, sink in enumerate(decoded.sinks):
            if isinstance(sink, CapturedBranches):
                here = (hart for hart in histories if decoded.harts.sinks.get(hart, 0) == number)
                checked += [check.compared_row(hart, histories[hart]) for hart in here]
                continue
            found = formats_sinks.check(sink, self.capture.encoders, decoded.program, progress)
            for hart, verdict in found.items():
                if decoded.harts.sinks.get(hart, 0) == number:
                    checked.append(check.row_of(hart, verdict))
                    losses = check.losses_of(verdict)
                    histories[hart] = histories[hart].with_events(losses) if losses else histories[hart]
        harts = replace(decoded.harts, histories=histories)
        self.decoded = decoded._replace(harts=harts, checked=tuple(sorted(checked)))
        return self.decoded

    def _is_program(self, elf: str | None, others: Sequence[str]) -> bool:
        """Return whether the program is this one, or cannot be another one. A debugger that has moved none of its files
        has the capture's where that was.
        """
        if elf is None or not self.capture.takes_elf:
            return True
        captured = self.capture.elf
        here = elf == self._program.path and captured is not None and self._program.name != elf and not others
        return here or (elf, tuple(others)) == (self._program.name, self._program.others)

    def _sinks(self, progress: Progress = silent) -> tuple[Captured, ...]:
        """Return what is decoded. Raises NoTrace, and what *progress* raises."""
        if not self.capture.captured and self._target is not None:
            raise NoTrace(
                "this trace leaves the chip and is recorded by a probe, not by a RAM sink: `trace save FILE.rvt`"
                " saves the settings with which `rvtrace decode --settings` decodes the probe's recording"
            )
        if not self.capture.captured:
            raise NoTrace(
                "the capture has no trace, only its settings, with which `rvtrace decode --settings` decodes a"
                " probe's recording"
            )
        if self._framed is None and any(map(is_framed, self.capture.captured)):
            from rvtrace_gdb.session.formats.framed_sinks import FramedSinks  # few captures have frames

            self._framed = FramedSinks()
        captured = self.capture.captured
        return captured if self._framed is None else self._framed.streams(captured, progress)

    def _sink(self, hart: int | None) -> Captured:
        """Return the sink or the records that hold the trace of a hart, by default those of the first hart."""
        names = {encoder.in_force.name for encoder in self.capture.encoders if encoder.hart == hart}
        return next((sink for sink in self._sinks() if _is_of(sink, hart, names)), self._sinks()[0])

    def _warnings(self, image: Image, histories: HartHistories) -> list[str]:
        """Return the warnings for the user about the histories."""
        other, problem = program.other_elf(self.capture.elf, image), self._program.problem
        lines = [*histories.notes, *([] if other is None else [other])]
        by_elf = self.capture.elf is not None
        wrong = []
        if self.capture.tandem:
            from rvtrace_gdb.session.formats.tandem import parameter_warning

            wrong = [line for captured in self.capture.tandem for line in parameter_warning(captured, by_elf=by_elf)]
        lines += wrong
        for hart, history in histories.histories.items():
            who = f"hart {hart}: " if len(histories.histories) > 1 else ""
            lines += contradictions(history, image, who, misread=bool(wrong))
        if image.patched and self._target is not None:
            places, name = counted(len(image.patched), "place"), image.path.rpartition("/")[2]
            first = image.patched[0][0]
            lines.append(hint(f"memory has other code than {name} at {places}, the first at {first:#x}: memory counts"))
        if problem is not None:
            lines.append(warning(f"code that is not in the ELF could not be read from the target: {problem}"))
        return list(dict.fromkeys(lines))

    def _decode_sinks(
        self, sinks: tuple[Captured, ...], image: Image, progress: Progress
    ) -> tuple[Image, HartHistories]:
        """Return the histories, and the program they were decoded with.

        Code that was read from the target may have been written after that (an overlay, a loader): where it contradicts
        the trace, the code that is in memory now is also tried; and so is what memory has in the place of the ELF's
        code, which a kernel changes.
        """
        begun, encoders = self._begun, self.capture.encoders
        if begun is None or begun.image is not image or begun.encoders != encoders:
            begun = self._begun = _BegunDecoding(encoders, image, self._decoding(sinks, image))
        else:
            begun.decoding.grow(sinks)
        found = begun.decoding.result(progress)
        for _ in range(_ROUNDS if self._target is not None else 0):
            contradicted = [it for it in found.histories.values() if mismatch(it, image)]
            if not contradicted or not (self._is_patched(contradicted, image) or image.code):
                break
            fresh = self._program.reread()
            decoding = self._decoding(sinks, fresh)
            again = decoding.result(progress)
            if _missing(again) >= _missing(found):
                break
            self._program.use(fresh)
            self._begun = _BegunDecoding(encoders, fresh, decoding)
            image, found = fresh, again
        return image, found

    def _is_patched(self, contradicted: Iterable[History], image: Image) -> bool:
        """Return whether the target has other code than the ELF in pages that may be why a trace contradicts it."""
        from rvtrace_gdb.session.patched_code import PAGE, suspects  # few traces contradict their program

        pages = [page for history in contradicted for page in suspects(history, image)]
        return self._program.compare(pages[:_PAGES], PAGE)

    def _decoding(self, sinks: tuple[Captured, ...], image: Image) -> SinkDecoding:
        program = self._program.in_contexts(image)
        grows = self._target is not None
        return SinkDecoding(
            sinks, self.capture.encoders, program, stop_at_error=self._stop_at_error, grows=grows, lazily=self._lazily,
            index=self._index,
        )  # fmt: skip

    def history(self, hart: int | None) -> History:
        """Return the history of a hart (None: the first) as it was decoded last. Raises `NoTrace`."""
        found = self._last().harts
        return found.histories[found.number(hart)]

    def is_current(self, elf: str | None, others: Sequence[str] = ()) -> bool:
        """Return whether `decode` would return what was decoded last, unless the capture is replaced. Raises BadElf."""
        decoded = self.decoded
        return self._is_program(elf, others) and decoded is not None and decoded.image is self._program.image()

    def select(self, args: str, size: int | None, hart: int, home: int | None = None) -> PageSelection:
        """Return which rows `trace history ARGS` shows of what was decoded last.

        *home*: the number where the hart is in the past. Raises RangeError.
        """
        return self._cursors[hart].select(args, size, self.lengths[hart], home)

    def rows(self, begin: int, end: int, hart: int | None) -> Iterator[ShortHistoryRow]:
        """Return the rows numbered *begin* to *end* - 1 of what was decoded last."""
        return rows(self.history(hart), self._last().program, begin, end)

    def restart_pages(self) -> None:
        """Let the pages of histories and of messages begin again."""
        for cursor in (*self._cursors.values(), *self._message_cursors.values()):
            cursor.reset()

    def messages(self, progress: Progress = silent) -> AnyNumberedItems:
        """Return the messages of the sink that was selected last; the same bytes are read once.

        Raises `Unsupported`, `NoTrace`.
        """
        sink = self._sink(self._messages_of)
        name, trace_options = sink.in_force.name, formats_sinks.options_of_sink(sink, self.capture.encoders)
        known = self._messages.get(name)
        if known is None or known.data != sink.data or known.trace_options != trace_options:
            wrapped = not isinstance(sink, CapturedRecords) and sink.wrapped
            fresh = registry.format_of(trace_options).numbered_items(
                sink.data, trace_options, self.capture.xlen, wrapped=wrapped, progress=progress
            )
            if known is None or len(known) != len(fresh):
                self._message_cursors[name] = Cursor("trace")
            self._messages[name] = known = fresh
        return known

    def select_messages(
        self, args: str, size: int | None, offset: int | None, hart: int | None = None, progress: Progress = silent
    ) -> Listing:
        """Return which messages `trace dump ARGS` shows of the sink that a hart's encoder feeds. Raises RangeError.

        *offset*: begin with the message that contains this byte.
        """
        self._messages_of = hart
        messages = self.messages(progress)
        if offset is not None:
            if offset >= len(messages.data) > 0:
                raise RangeError(f"Range out of bounds: bytes go from 0x0 to {len(messages.data) - 1:#x}.")
            args = str(messages.number_at(offset))
        found = self._message_cursors[self._sink(hart).in_force.name].select(args, size, len(messages))
        return Listing(found.begin, found.end, found.notice, [], hart)

    def unreported(self, lines: list[str]) -> list[str]:
        """Return those of *lines* that were not reported before."""
        fresh = [line for line in lines if line not in self._reported]
        self._reported.update(lines)
        return fresh

    def _last(self) -> Decoded:
        if self.decoded is None:
            raise NoTrace("no history has been requested yet")
        return self.decoded


def _is_of(sink: Captured, hart: int | None, encoders: set[str]) -> bool:
    return bool(encoders & set(sink.encoders)) if isinstance(sink, CapturedSink) else sink.hart == hart


def _missing(found: HartHistories) -> tuple[int, int]:
    """Return a measure of how much of the histories is missing: the number of gaps, then minus that of instructions.

    A contradiction is one gap from the first synchronization on; a history without any instruction has none.
    """
    histories = found.histories.values()
    return sum(history.gaps for history in histories), -sum(history.instructions for history in histories)
