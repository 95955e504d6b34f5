"""One long trace that processes, or the workers of a cluster, read in pieces, with the result of one that reads all.

Each piece is read twice. First it is scanned, before what comes before it is known; the scans are put together in
their order, and one that began with a wrong guess is made again here. Then what is wanted is found out about the piece
(`profiled_pieces.py`, `covered_pieces.py`), with all that is known at its beginning.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, overload
from uuid import uuid4

from rvtrace_gdb.console.captures.readers import CaptureReader, MergedCaptureError, Readers, ReadWhole, Unreadable
from rvtrace_gdb.console.options.request import LoadedTrace
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint
from rvtrace_gdb.session.formats.long_traces.divisible import DivisibleTrace, Indivisible
from rvtrace_gdb.session.formats.long_traces.piece_chain import PieceChain, PieceStart
from rvtrace_gdb.session.formats.long_traces.trace_index import TraceIndex
from rvtrace_gdb.session.formats.long_traces.trace_pieces import (
    STEP,
    WARM_UP,
    DecodedPiece,
    MoreNeeded,
    NoPieces,
    PieceBounds,
    PieceBytes,
    PieceScan,
    decoded_piece,
    scan,
)
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent

_T = TypeVar("_T")
_LEAST, _MOST = 8 << 20, 64 << 20  # bytes of a piece
_WORKERS = 8  # that a cluster is taken to have
_EACH = 2  # pieces for each process, if there is enough
_BEHIND = 8 * STEP  # bytes that are sent along, for what a piece needs of what comes behind it
_WRONG_MOST = 2  # guesses that are wrong, one after the other, until none is made any more


def piece_size(total: int, jobs: int) -> int:
    """Return the bytes of a piece of a trace of so many bytes."""
    size = min(max(total // (_EACH * jobs), _LEAST), _MOST)
    return -(-size // STEP) * STEP


class PieceTrace(NamedTuple):
    """The trace that pieces are of, without its bytes. *token*: differs from that of all other traces."""

    trace: LoadedTrace
    token: str

    def opened(self) -> DivisibleTrace:
        """Return what decodes its pieces. The program is read once by each process."""
        known = _opened.get(self.token)
        if known is None:
            _opened.clear()
            session = Session()
            self.trace.open(session)
            known = session.require_capture().divisible()
            _opened[self.token] = known
        return known


_opened: dict[str, DivisibleTrace] = {}


class ScannedPiece(NamedTuple):
    """A piece that is to be scanned, see `trace_pieces.scan`."""

    of: PieceTrace
    data: PieceBytes
    bounds: PieceBounds
    seed: Checkpoint | None
    reads_sources: bool = False

    @property
    def trace(self) -> LoadedTrace:
        """The trace without its bytes."""
        return self.of.trace

    def with_trace(self, trace: LoadedTrace) -> Self:
        """Return the same of a trace that has been loaded."""
        return self._replace(of=self.of._replace(trace=trace))

    def read(self, progress: Progress = silent) -> PieceScan | None:
        """Return what is found out; None if that takes more than what was sent along."""
        opened = self.of.opened()
        try:
            return scan(opened.make, opened.program, self.data, self.bounds, self.seed, progress)
        except (MoreNeeded, NoPieces):
            return None


class KnownPiece(NamedTuple):
    """A piece, and what is known where it begins."""

    of: PieceTrace
    data: PieceBytes
    bounds: PieceBounds
    start: PieceStart

    def of_trace(self, trace: LoadedTrace) -> "KnownPiece":
        """Return the same piece of a trace that has been loaded."""
        return self._replace(of=self.of._replace(trace=trace))

    def decoded(self, opened: DivisibleTrace, progress: Progress) -> Iterator[DecodedPiece]:
        """Yield what the piece has of each source. Raises MoreNeeded, and what *progress* raises."""
        place, firsts, _ = self.start
        return decoded_piece(
            opened.make, self.data, self.bounds, place, firsts, times=opened.times, progress=progress
        )

    def stacks(self, source: int) -> KeptStacks:
        """Return the call stacks where the piece begins."""
        return self.start.stacks.get(source, KeptStacks())


class FollowedResult(Protocol):
    """What was found out about a piece of a source, with the call stacks at its end."""

    @property
    def stacks(self) -> KeptStacks: ...


_F = TypeVar("_F", bound=FollowedResult)
_F_co = TypeVar("_F_co", bound=FollowedResult, covariant=True)


@dataclass(frozen=True)
class KnownPieceReader(Generic[_F_co]):
    """Finds something out about a piece, by source."""

    piece: KnownPiece

    @property
    def reads_sources(self) -> bool:
        """Whether it reads the program's source files."""
        return False

    @property
    def trace(self) -> LoadedTrace:
        """The trace without its bytes."""
        return self.piece.of.trace

    def with_trace(self, trace: LoadedTrace) -> Self:
        """Return the same of a trace that has been loaded."""
        return replace(self, piece=self.piece.of_trace(trace))

    def read(self, progress: Progress = silent) -> Mapping[int, _F_co] | None:
        """Return what is found out; None if that takes more than what was sent along."""
        try:
            return self.by_source(self.piece.of.opened(), progress)
        except MoreNeeded:
            return None

    def by_source(self, opened: DivisibleTrace, progress: Progress) -> Mapping[int, _F_co]:
        """Return what is found out. Raises MoreNeeded, and what *progress* raises."""
        raise NotImplementedError


class _Made(Sequence[_T], Generic[_T]):
    """Things that are made when they are asked for."""

    def __init__(self, count: int, make: Callable[[int], _T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> _T: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[_T]: ...
    def __getitem__(self, number: int | slice) -> _T | Sequence[_T]:
        if isinstance(number, slice):
            return [self._make(it) for it in range(*number.indices(self._count))]
        if not 0 <= number < self._count:
            raise IndexError(number)
        return self._make(number)


Executor = Callable[[Sequence[CaptureReader[Any]]], Iterator[Any]]


class PiecesOfTrace:
    """The pieces of a trace, and who reads them."""

    def __init__(self, loaded: LoadedTrace, opened: DivisibleTrace, by: Readers, progress: Progress) -> None:
        self.opened, self._progress = opened, progress
        self._execute = _executor(by, progress)
        total = len(opened.data)
        size = piece_size(total, _WORKERS if by.cluster else by.processes)
        self._bounds = [PieceBounds(at, min(at + size, total), total) for at in range(0, total, size)]
        if len(self._bounds) > 1 and total - self._bounds[-1].start < WARM_UP:
            last = self._bounds.pop()
            self._bounds[-1] = self._bounds[-1]._replace(stop=last.stop)
        capture = loaded.capture
        bare = replace(capture, sinks=tuple(replace(sink, data=b"") for sink in capture.sinks))
        self._of = PieceTrace(loaded._replace(capture=bare), uuid4().hex)
        self._all = PieceBytes(opened.data, 0, total)
        self._starts: list[PieceStart] = []
        self.chain = PieceChain()

    def index(self) -> TraceIndex:
        """Scan all pieces, and return what is known of the histories. Raises NoPieces, and what the progress raises."""
        number, seed, wrong = 0, self._first_seed(), 0
        while number < len(self._bounds):
            guessed = self._scans(number, seed) if wrong < _WRONG_MOST else iter(())
            for found in guessed:
                if not self._add_scan(number, found):
                    break
                number, wrong = number + 1, 0
            else:
                if wrong < _WRONG_MOST:
                    break
            self._add_known(number)
            number, wrong = number + 1, wrong + 1
            start = self.chain.start
            seed = seed if start is None or start.place is None else start.place.checkpoint
        accounting = self.chain.accounting._replace(total=self._all.total)
        return TraceIndex(Path(os.devnull), self.chain.source_facts(), accounting, ())

    def followed(self, reader: Callable[[KnownPiece], KnownPieceReader[_F]]) -> Iterator[Mapping[int, _F]]:
        """Yield what readers of the pieces find, in their order. Raises MergedCaptureError, and what the progress
        raises.
        """
        stacks: dict[int, KeptStacks] = {}
        readers = _Made(len(self._bounds), lambda number: reader(self._piece(number)))
        for number, result in enumerate(self._execute(readers)):
            _check(result)
            start = self._starts[number]
            changed = {source: it for source, it in stacks.items() if start.stacks.get(source) != it}
            found: Mapping[int, _F] | None = result
            if found is None or changed:
                known = start._replace(stacks={**start.stacks, **changed})
                again = reader(self.whole_piece(number)._replace(start=known))
                found = again.by_source(self.opened, self._progress)
            stacks.update((source, it.stacks) for source, it in found.items())
            yield found

    def whole_piece(self, number: int) -> KnownPiece:
        """Return a piece with all bytes of the trace."""
        return KnownPiece(self._of, self._all, self._bounds[number], self._starts[number])

    def _piece(self, number: int) -> KnownPiece:
        whole = self.whole_piece(number)
        place = whole.start.place
        return whole._replace(data=self._part(whole.bounds.start if place is None else place.at, whole.bounds))

    def _first_seed(self) -> Checkpoint:
        """Return a checkpoint from near the beginning. Raises NoPieces, and what the progress raises."""
        decoder = self.opened.make()
        for at in range(0, self._bounds[0].stop, STEP):
            self._progress("decoding", at, self._all.total)
            decoder.feed(self._all.step(at))
            try:
                return decoder.checkpoint()
            except NoCheckpoint:
                continue
        raise NoPieces

    def _scans(self, first: int, seed: Checkpoint) -> Iterator[Any]:
        def piece(number: int) -> ScannedPiece:
            bounds = self._bounds[first + number]
            data = self._part(max(bounds.start - WARM_UP, 0), bounds)
            return ScannedPiece(self._of, data, bounds, seed if bounds.start else None)

        return self._execute(_Made(len(self._bounds) - first, piece))

    def _add_scan(self, number: int, result: Any) -> bool:
        """Add the scan of a piece; return False if it is to be made again."""
        _check(result)
        start = self.chain.start
        if start is None or (start.place is not None and start.place.at >= self._bounds[number].stop):
            raise NoPieces
        if result is None or not self.chain.add(result):
            return False
        self._starts.append(start)
        return True

    def _add_known(self, number: int) -> None:
        """Scan a piece here, from what is known. Raises NoPieces, and what the progress raises."""
        start = self.chain.start
        if start is None:
            raise NoPieces
        opened, bounds = self.opened, self._bounds[number]
        again = scan(opened.make, opened.program, self._all, bounds, start.place, self._progress)
        if not self._add_scan(number, again):
            raise NoPieces

    def _part(self, first: int, bounds: PieceBounds) -> PieceBytes:
        """Return the bytes of a piece from *first* on, with some of those behind it."""
        return PieceBytes(self._all.data[first : bounds.stop + _BEHIND], first, bounds.total)


def _check(result: Any) -> None:
    if isinstance(result, Unreadable):
        raise MergedCaptureError(result.why)


def _executor(by: Readers, progress: Progress) -> Executor:
    """Return a function that has readers read, and yields what they find."""
    if by.cluster:
        from rvtrace_gdb.console.captures.cluster import by_cluster  # needs a library that may be missing

        return lambda of: by_cluster(of, by.cluster, progress)
    from rvtrace_gdb.console.captures.processes import by_processes

    return lambda of: _shown(by_processes(of, by.processes), len(of), progress)


def _shown(results: Iterator[_T], total: int, progress: Progress) -> Iterator[_T]:
    for number, result in enumerate(results):
        progress("reading pieces", number + 1, total)
        yield result


class TraceInPieces(NamedTuple):
    """A trace that was scanned in pieces. *session*: knows how much ran and what was lost; *about*: lines for the user;
    *chosen*: the harts that are wanted; *harts*: those of them that the pieces have, by source.
    """

    session: Session
    about: list[str]
    pieces: PiecesOfTrace
    chosen: list[int]
    harts: dict[int, int]


def scanned(loaded: LoadedTrace, hart: int | None, by: Readers, progress: Progress) -> TraceInPieces:
    """Scan the pieces of a trace. Raises ReadWhole: it cannot be read in pieces, or is too short; MergedCaptureError;
    as the executors, `RequestedTrace.open` and `Session.harts`.
    """
    total = sum(len(sink.data) for sink in loaded.capture.sinks)
    if total < 2 * _LEAST:
        raise ReadWhole(f"it has {total:,} bytes, and pieces are of {_LEAST:,} at least")
    session = Session()
    about = loaded.open(session)
    captured = session.require_capture()
    try:
        opened = captured.divisible()
        pieces = PiecesOfTrace(loaded, opened, by, progress)
        index = pieces.index()
    except Indivisible as why:
        raise ReadWhole(str(why)) from None
    except NoPieces:
        raise ReadWhole("it does not synchronize often enough, or has too many errors") from None
    captured.use_index(index)
    histories = session.harts(progress=progress).harts
    chosen = sorted(histories.histories) if hart is None else [histories.number(hart)]
    if not any(len(histories.histories[it]) for it in chosen):
        raise ReadWhole("nothing ran in it")
    lengths = {source: facts.length - facts.gaps for source, facts in index.sources.items()}
    harts = {source: it for source, it in opened.harts(lengths).items() if it in chosen and source in index.sources}
    return TraceInPieces(session, about, pieces, chosen, harts)
