"""One long trace that is decoded in pieces, by whomever, with the histories that decoding it as a whole gives.

A piece is scanned first (`scan`): a decoder begins somewhat before it, at any byte, and finds a synchronization. What
it knows at the beginning of the piece is a guess, which comes with the result: whoever puts the pieces together, in
their order, compares it with what is known at the end of the piece before (`decode.stepping.relative_places`), and has
a piece scanned again where the guess was wrong. Then each piece can be decoded from where it begins (`PieceDecoding`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.pieces.numbered import PieceEnd, traps_of_piece
from rvtrace_gdb.decode.calls.pieces.operations import stack_operations
from rvtrace_gdb.decode.calls.states import NOTHING, HistoryEntries
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.relative_places import absolute, relative
from rvtrace_gdb.session.formats.format import PlacedDecoder
from rvtrace_gdb.support.errors import Progress, silent

STEP = 1 << 16
"""Bytes decoded at once: as many as when the whole trace is decoded, so that histories consist of the same entries."""
WARM_UP = 4 * STEP
"""Bytes before a piece from which on a scan decodes."""
_PROBLEMS_MOST = 1 << 16  # events of a piece that say that something may be wrong

MakeDecoder = Callable[[], PlacedDecoder]


class MoreNeeded(Exception):
    """A piece needs more of the bytes behind it than were sent along."""


class NoPieces(Exception):
    """A decoder cannot go on later from any place near."""


class PieceBounds(NamedTuple):
    """The bytes of a piece: *start* to *stop* - 1, or to the end of the trace, which has *total*."""

    start: int
    stop: int
    total: int

    @property
    def is_last(self) -> bool:
        """Whether the trace ends with it."""
        return self.stop >= self.total


class PieceBytes(NamedTuple):
    """Some bytes of a trace, the first one at *offset*; the trace has *total*."""

    data: bytes
    offset: int
    total: int

    def step(self, at: int) -> bytes:
        """Return the next bytes at an offset. Raises MoreNeeded."""
        found = self.data[at - self.offset : at - self.offset + STEP]
        if len(found) < min(STEP, self.total - at):
            raise MoreNeeded
        return found


class PiecePlace(NamedTuple):
    """Where a piece begins: at byte *at*, with what a decoder knows there (a result of `relative`).

    befores  by source, the instruction before the first one of the piece
    """

    at: int
    checkpoint: Checkpoint
    befores: Mapping[int, int]

    def firsts(self, lengths: Mapping[int, int]) -> dict[int, int]:
        """Return the first position of the piece, by source. *lengths*: of the histories before it."""
        return {
            source: max(lengths[source] - (hart["builder"]["last"] == GAP), 0)
            for source, hart in self.checkpoint["harts"]
        }


class SourceScan(NamedTuple):
    """What a piece has of a source's history: so many positions (*length*) and gaps, what became of bytes, events by
    kind, those that say that something may be wrong, and what it does to the call stacks. *first*: the number that the
    first position has in *problems*.
    """

    length: int
    gaps: int
    accounting: Accounting
    counts: Counter[EventKind]
    problems: tuple[Event, ...]
    first: int
    operations: tuple[StackOperation, ...]


class PieceScan(NamedTuple):
    """What is found out about a piece. *begin*: the guess where it begins, None if that was known; *end*: where the
    next one begins, None after the last one. *state*: that of the decoder at the end, None if it has none.
    """

    begin: PiecePlace | None
    end: PiecePlace | None
    state: Checkpoint | None
    accounting: Accounting
    sources: Mapping[int, SourceScan]


class _Feeding:
    """A decoder, and the offset of what it gets next."""

    def __init__(self, decoder: PlacedDecoder, data: PieceBytes, at: int, progress: Progress) -> None:
        self.decoder, self.at = decoder, at
        self._data, self._progress = data, progress

    @property
    def at_end(self) -> bool:
        """Whether it has had all bytes."""
        return self.at >= self._data.total

    def step(self) -> None:
        """Decode the next bytes. Raises MoreNeeded, and what the progress raises."""
        self._progress("decoding", self.at, self._data.total)
        piece = self._data.step(self.at)
        self.decoder.feed(piece)
        self.at += len(piece)

    def to_place(self, stop: int) -> Checkpoint | None:
        """Go on to an offset, and from there to the first place at which a decoder can go on later. Return its
        checkpoint; None at the end of the trace. Raises as `step`.
        """
        while not self.at_end:
            if self.at >= stop:
                try:
                    return self.decoder.checkpoint()
                except NoCheckpoint:
                    pass
            self.step()
        return None


def scan(
    make: MakeDecoder,
    program: Program,
    data: PieceBytes,
    bounds: PieceBounds,
    seed: Checkpoint | PiecePlace | None,
    progress: Progress = silent,
) -> PieceScan:
    """Scan a piece. *seed*: where it begins, if that is known; else a checkpoint from anywhere before it; None at the
    beginning of the trace. Raises MoreNeeded, NoPieces, and what *progress* raises.
    """
    begin, guess = _beginning(make, data, bounds, seed, progress)
    decoder = make()
    if begin is not None:
        decoder.go_on_from(begin.checkpoint)
    feeding = _Feeding(decoder, data, 0 if begin is None else begin.at, progress)
    pieces = _SourcePieces(feeding, begin)
    checkpoint, at = feeding.to_place(bounds.stop), feeding.at
    if checkpoint is None and not bounds.is_last:
        raise NoPieces
    pieces.end(times=False, last=checkpoint is None)
    sources = {
        source: _scanned(pieces, source, program, checkpoint, progress) for source in pieces.sources
    }
    if checkpoint is None:
        return PieceScan(guess, None, _final_state(decoder), pieces.accounting, sources)
    end = PiecePlace(at, relative(checkpoint), pieces.befores())
    return PieceScan(guess, end, end.checkpoint, _accounting_at(checkpoint), sources)


def _beginning(
    make: MakeDecoder, data: PieceBytes, bounds: PieceBounds, seed: Checkpoint | PiecePlace | None, progress: Progress
) -> tuple[PiecePlace | None, PiecePlace | None]:
    """Return where a piece begins, and that again if it is a guess."""
    if seed is None or isinstance(seed, PiecePlace):
        return seed, None
    decoder, before = make(), max(bounds.start - WARM_UP, 0)
    decoder.begin_at(before, seed)
    feeding = _Feeding(decoder, data, before, progress)
    pieces = _SourcePieces(feeding, None)
    checkpoint, at = feeding.to_place(bounds.start), feeding.at
    if checkpoint is None:
        raise NoPieces
    pieces.end(times=False, last=False)
    guess = PiecePlace(at, relative(checkpoint), pieces.befores())
    return guess, guess


class _SourcePieces:
    """The histories of a piece, while it is decoded, by source. It begins at a *place*, None: at the beginning."""

    def __init__(self, feeding: _Feeding, place: PiecePlace | None) -> None:
        self._feeding, self._place = feeding, place
        builders = {source: feeding.decoder.builder_of(source) for source in feeding.decoder.sources()}
        lengths = {source: it.position for source, it in builders.items() if it is not None}
        self._firsts = {} if place is None else place.firsts(lengths)
        self._ends: dict[int, PieceEnd] = {}
        self._histories: Mapping[int, History] = {}
        self.sources: list[int] = []
        self.accounting = Accounting(0, 0, 0, 0)

    def end(self, *, times: bool, last: bool) -> None:
        """End the piece where the decoder is; *last*: the trace ends there. Decode what is needed behind it."""
        feeding, decoder = self._feeding, self._feeding.decoder
        if not last:
            self.sources = decoder.sources()
            found = ((source, decoder.builder_of(source)) for source in self.sources)
            builders = {source: it for source, it in found if it is not None}
            self._ends = {source: PieceEnd.of_builder(it, times=times) for source, it in builders.items()}
            while not feeding.at_end and not all(
                self._ends[source].is_known(it, self.first(source)) for source, it in builders.items()
            ):
                feeding.step()
        if not feeding.at_end:
            self._histories = decoder.views()
            return
        histories, self.accounting = decoder.finish()
        self._histories = histories
        if last:
            self.sources = list(histories)
            self._ends = {source: PieceEnd(len(history), times) for source, history in histories.items()}

    def first(self, source: int) -> int:
        """Return the first position of the piece."""
        return self._firsts.get(source, 0)

    def stop(self, source: int) -> int:
        """Return the position behind the piece."""
        return self._ends[source].position

    def parts_of(self, source: int) -> tuple[int, int, History, int]:
        """Return the first position of the piece, that behind it, a history that has it and what is needed behind it,
        and the instruction before it.
        """
        return self.first(source), self.stop(source), self._histories[source], self.before(source)

    def before(self, source: int) -> int:
        """Return the instruction before the piece: also before a gap that was open where the piece begins."""
        return NOTHING if self._place is None else self._place.befores.get(source, NOTHING)

    def befores(self) -> dict[int, int]:
        """Return, by source, the instruction before what comes behind the piece."""
        return {source: self._pc_before(source) for source in self.sources}

    def _pc_before(self, source: int) -> int:
        position = self.stop(source) - 1
        if position < self.first(source):
            return self.before(source)
        return self._histories[source].pc(position)


def _scanned(
    pieces: _SourcePieces, source: int, program: Program, checkpoint: Checkpoint | None, progress: Progress
) -> SourceScan:
    """Return what a piece has of a source. *checkpoint*: at its end, None after the last piece."""
    first, stop, whole, before = pieces.parts_of(source)
    history, traps = traps_of_piece(whole, program, first, before, stop)
    operations = stack_operations(
        HistoryEntries(history, program, traps), 0, len(history.entries), before, progress
    ) if first < stop else ()  # fmt: skip
    events = history.events if checkpoint is None else history.events_between(first, stop)
    problems = tuple(event for event in events if event.is_problem)
    if len(problems) > _PROBLEMS_MOST:
        raise NoPieces
    account = whole.accounting if checkpoint is None else _hart_accounting(checkpoint, source)
    gaps = sum(first <= gap < stop for gap in history.gap_positions)
    return SourceScan(stop - first, gaps, account, Counter(it.kind for it in events), problems, first, operations)


def _final_state(decoder: PlacedDecoder) -> Checkpoint | None:
    try:
        return relative(decoder.checkpoint())
    except NoCheckpoint:
        return None


def _hart_accounting(checkpoint: Checkpoint, source: int) -> Accounting:
    hart = next(hart for number, hart in checkpoint["harts"] if number == source)
    total, idle, unused = hart["_total"], hart["_idle"], hart["_unused"]
    return Accounting(total, total - idle - unused, idle, unused)


def _accounting_at(checkpoint: Checkpoint) -> Accounting:
    harts = [_hart_accounting(checkpoint, source) for source, _ in checkpoint["harts"]]
    idle = checkpoint["_idle"] + sum(it.idle for it in harts)
    skipped = checkpoint["_skipped"] + sum(it.skipped for it in harts)
    return Accounting(0, sum(it.decoded for it in harts), idle, skipped)


class DecodedPiece(NamedTuple):
    """What a piece has of a source: the positions *first* to *stop* - 1 of a *history* with the numbers of the whole,
    which may go on behind that, and the instruction before. *last*: nothing comes after it.
    """

    source: int
    history: History
    first: int
    stop: int
    before: int
    last: bool


def decoded_piece(
    make: MakeDecoder,
    data: PieceBytes,
    bounds: PieceBounds,
    place: PiecePlace | None,
    firsts: Mapping[int, int],
    *,
    times: bool,
    progress: Progress = silent,
) -> Iterator[DecodedPiece]:
    """Decode a piece, and yield what it has of each source. *place*: where it begins, None at the beginning of the
    trace; *firsts*: its first positions; *times*: the trace may have times. Raises MoreNeeded, and what *progress*
    raises.
    """
    decoder = make()
    if place is not None:
        lasts = dict(map(tuple, place.checkpoint["harts"]))
        lengths = {
            source: first + (lasts[source]["builder"]["last"] == GAP)
            for source, first in firsts.items()
            if source in lasts
        }
        decoder.go_on_from(absolute(place.checkpoint, lengths))
    feeding = _Feeding(decoder, data, 0 if place is None else place.at, progress)
    pieces = _SourcePieces(feeding, place)
    checkpoint = feeding.to_place(bounds.stop)
    pieces.end(times=times, last=checkpoint is None)
    for source in pieces.sources:
        first, stop, whole, before = pieces.parts_of(source)
        yield DecodedPiece(source, whole, first, stop, before, checkpoint is None)
