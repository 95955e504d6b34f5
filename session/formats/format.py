"""The interface of a trace format, and what the formats share.

Each module of this package that has the functions of `TraceFormat` reads one format; `session.formats.registry` has
their names. Decoding can be interrupted: what was decoded is kept, and requesting the result again continues there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from rvtrace_gdb.controlregs.trace_control.encoder_registers import SYNC_MAX_LOWEST_UNIT, SyncMode
from rvtrace_gdb.decode.history.builder import HistoryBuilder, IncrementalBuilder, SourceHistories
from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.model import CapturedEncoder, SystemMark, TraceBreak
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable

if TYPE_CHECKING:
    from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
    from rvtrace_gdb.decode.check.verdict import Verdict
    from rvtrace_gdb.decode.history.checkpoints import Checkpoint, StreamPlace

_PIECE = 1 << 16
"""Bytes decoded between two calls of the progress: some hundredths of a second if nothing repeats."""


FormatOptions = TypeVar("FormatOptions")
"""The options of a trace of one format."""
OptionsOut = TypeVar("OptionsOut", covariant=True)
FormatItem = TypeVar("FormatItem")
"""The messages, packets, groups or records of one format."""
ItemIn = TypeVar("ItemIn", contravariant=True)
ItemOut = TypeVar("ItemOut", covariant=True)


class TraceOptions(Protocol):
    """The options of a trace of encoders."""

    @property
    def format(self) -> str:
        """The name of the format: the module of this package that reads it."""
        ...


class Decoding(Protocol):
    """The decoding of a whole trace."""

    def result(self, progress: Progress) -> SourceHistories:
        """Return the histories. Raises only what *progress* raises, and can be called again then."""
        ...


class TraceItemizer(Protocol[ItemOut]):
    """Splits a trace that is fed in pieces into items."""

    def feed(self, data: bytes) -> Iterator[ItemOut]: ...
    def finish(self) -> Iterator[ItemOut]: ...


class ItemWording(Protocol[ItemIn]):
    """Writes items as text. `is_odd`: whether an item is something that no such encoder sends."""

    def text(self, item: ItemIn, *, raw: bool = False) -> str: ...
    def is_odd(self, item: ItemIn) -> bool: ...


class NumberedItems(Protocol[ItemOut, OptionsOut]):
    """The items of a whole trace by number, from 1 on."""

    data: bytes

    @property
    def trace_options(self) -> OptionsOut: ...
    def __len__(self) -> int: ...
    def items(self, begin: int, end: int) -> Iterator[tuple[int, ItemOut]]: ...
    def number_at(self, offset: int) -> int: ...


class Builders(Protocol):
    """Gives the history builder of a source, for traces that are decoded as they arrive."""

    def __call__(self, source: int, /) -> IncrementalBuilder: ...


class ArrivingDecoder(Protocol):
    """Decodes a trace as it arrives, into the builders it was given."""

    def feed(self, data: bytes) -> None: ...
    def finish(self) -> object: ...


class Checker(Protocol):
    """Decodes a trace that is fed in pieces, and checks what it has decoded."""

    def feed(self, data: bytes) -> None: ...

    def verdicts(self) -> "dict[int, Verdict]":
        """End the trace and return what was found, by source."""
        ...


class TraceFormat(Protocol[FormatOptions, FormatItem]):
    """One trace format. *trace_options*: those of a trace of this format. *wrapped*: the trace may begin anywhere."""

    def decoding(
        self, data: bytes, program: Program, trace_options: FormatOptions, *, wrapped: bool, stop_at_error: bool
    ) -> Decoding:
        """Return the decoding of *data*, before anything is decoded."""
        ...

    def arriving_decoder(
        self, program: Program, trace_options: FormatOptions, builders: Builders, *, wrapped: bool, stop_at_error: bool
    ) -> ArrivingDecoder:
        """Return a decoder for a stream. Raises `Unsupported` where the format has no streams."""
        ...

    def checker(
        self, program: Program, trace_options: FormatOptions, progress: Progress, *, wrapped: bool, total: int
    ) -> Checker:
        """Return a checker for *total* bytes. Raises `Unsupported` where the format cannot be checked."""
        ...

    def itemizer(
        self, trace_options: FormatOptions, xlen: int, *, wrapped: bool = False
    ) -> TraceItemizer[FormatItem]: ...
    def wording(self, trace_options: FormatOptions) -> ItemWording[FormatItem]: ...
    def numbered_items(
        self, data: bytes, trace_options: FormatOptions, xlen: int, *, wrapped: bool, progress: Progress
    ) -> NumberedItems[FormatItem, FormatOptions]: ...

    def has_sources(self, trace_options: FormatOptions) -> bool:
        """Whether messages carry their source."""
        ...

    def has_times(self, trace_options: FormatOptions) -> bool:
        """Whether a history may have times."""
        ...

    def source_of(self, item: FormatItem) -> int | None:
        """Return the source of a message, None for an item that has none."""
        ...


class EncoderFormat(TraceFormat[FormatOptions, FormatItem], Protocol[FormatOptions, FormatItem]):
    """A format that encoders with trTe* registers send."""

    def options_of_encoder(self, encoder: CapturedEncoder) -> FormatOptions:
        """Return the decoder's options for an encoder, whoever else feeds the same sink. Raises `Unsupported`."""
        ...

    def without_sync_period(self, trace_options: FormatOptions) -> FormatOptions:
        """Return *trace_options* for several encoders that synchronize after different numbers of messages."""
        ...


AnyFormat: TypeAlias = TraceFormat[Any, Any]
"""A format that is chosen as the program runs, by the options of a trace."""
AnyItemizer: TypeAlias = TraceItemizer[Any]
AnyNumberedItems: TypeAlias = NumberedItems[Any, Any]


class PieceDecoder(Protocol):
    """Decodes a trace in pieces."""

    def feed(self, data: bytes) -> None: ...
    def cross_break(self, why: str, kind: BreakKind = BreakKind.ANYWHERE) -> None: ...
    def enter(self, thread: int | None, epoch: int, time: int | None) -> None: ...
    def finish(self) -> SourceHistories: ...
    def duplicate(self) -> Self: ...
    def views(self) -> Mapping[int, History]: ...


class PlacedDecoder(PieceDecoder, Protocol):
    """One that can say where it is, and go on from there later."""

    def place(self) -> "StreamPlace": ...
    def go_on_from(self, checkpoint: "Checkpoint") -> None: ...
    def builder_of(self, source: int) -> HistoryBuilder | None: ...
    def checkpoint(self) -> "Checkpoint": ...
    def begin_at(self, offset: int, checkpoint: "Checkpoint") -> None: ...
    def sources(self) -> list[int]: ...


class PieceRecorder(Protocol):
    """Notes what is decoded, piece by piece."""

    def passed(self, offset: int, decoder: PlacedDecoder) -> None: ...
    def write(self, decoded: SourceHistories) -> None: ...


class PiecewiseDecoding:
    """The `Decoding` of bytes by a decoder that is fed in their order. *make* returns the decoder at its beginning."""

    def __init__(self, data: bytes, make: Callable[[], PlacedDecoder]) -> None:
        self._data, self.make = data, make
        self.recorder: PieceRecorder | None = None
        self.grows = False
        """Whether more bytes may come after these: the decoder is kept for them, and a copy of it ends the trace."""
        self.seams: Sequence[TraceBreak | SystemMark] = ()
        """Where trace is missing, and what an operating system noted, in rising order."""
        self._decoder: PlacedDecoder | None = None
        self._done = self._crossed = 0
        self._decoded: SourceHistories | None = None

    def result(self, progress: Progress) -> SourceHistories:
        """Return the histories. Raises only what *progress* raises, and can be called again then."""
        while self._decoded is None:
            if self._done < len(self._data):
                progress("decoding", self._done, len(self._data))
            try:
                self._decoded = self._next()
            except (
                BaseException
            ):  # interrupted in the middle: out of memory, or Ctrl-C in a program that is not the session's
                self._decoder, self._done, self._crossed = None, 0, 0
                raise
        return self._decoded

    def views(self) -> Mapping[int, History]:
        """Return what has been decoded so far, by source. It is part of the result."""
        return {} if self._decoder is None else self._decoder.views()

    def settled(self, source: int) -> int:
        """Return the position of a source's history from which on events may change, or come."""
        builder = None if self._decoder is None else self._decoder.builder_of(source)
        return 0 if builder is None else builder.settled

    def grow(self, data: bytes) -> bool:
        """Go on as the decoding of *data*, if that begins with the bytes so far, and return whether it does."""
        if not self.grows or not data.startswith(self._data):
            return False
        if len(data) > len(self._data):
            self._data, self._decoded = data, None
        return True

    def _next_seam(self) -> int:
        """Cross the seams before the next byte; return the offset of the one that follows."""
        assert self._decoder is not None
        while self._crossed < len(self.seams):
            one = self.seams[self._crossed]
            if one.offset > self._done:
                return one.offset
            if isinstance(one, TraceBreak):
                self._decoder.cross_break(one.why, one.kind)
            else:
                self._decoder.enter(one.thread, one.epoch, one.time)
            self._crossed += 1
        return len(self._data)

    def _next(self) -> SourceHistories | None:
        if self._decoder is None:
            self._decoder = self.make()
        piece = self._data[self._done : min(self._done + _PIECE, self._next_seam())]
        if not piece:
            decoded = (self._decoder.duplicate() if self.grows else self._decoder).finish()
            if self.recorder is not None:
                self.recorder.write(decoded)
            return decoded
        self._decoder.feed(piece)
        self._done += len(piece)
        if self.recorder is not None:
            self.recorder.passed(self._done, self._decoder)
        return None


def sync_period(encoder: "EncoderSettings") -> int | None:
    """Return the number of messages or packets between synchronizations; None if it counts other
    units or is unknown.
    """
    mode, exponent = encoder.sync
    return 1 << exponent + SYNC_MAX_LOWEST_UNIT if encoder.version and mode == SyncMode.MESSAGES else None


def undecodable(encoder: "EncoderSettings", what: str) -> Unsupported:
    """Return the error for an encoder that produces *what*."""
    return Unsupported(f"{printable(encoder.name)} produces {what}, which cannot be decoded yet; `trace save` keeps it")
