"""The decoder of a stream with the messages of one hart or several, as far as it is the same in N-Trace and E-Trace."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy, deepcopy
from typing import Generic, Self, TypeVar

from rvtrace_gdb.decode.history.builder import BuilderFactory, HistoryBuilder, SourceHistories
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, Resumable, StreamPlace, attributes, set_attributes
from rvtrace_gdb.decode.history.events import Accounting, BreakKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.hart import HartDecoder
from rvtrace_gdb.decode.stepping.reports import Losses, LostBytes
from rvtrace_gdb.support.errors import Progress

_AnyHartDecoder = TypeVar("_AnyHartDecoder", bound=HartDecoder)


class StreamDecoder(Resumable, ABC, Generic[_AnyHartDecoder]):
    """Decodes the traces of several harts, fed in pieces of any size.

    programs  the program of each hart by source (messages of other harts are skipped), or one program for all harts
    total     number of bytes to expect, used only for *progress*
    split     whether messages are distributed by source; else all belong to one hart, with the source 0
    builders  creates the builder of a history for a source
    """

    def __init__(
        self,
        programs: Mapping[int, Program] | Program,
        progress: Progress,
        total: int | None,
        builders: BuilderFactory,
        *,
        split: bool,
    ) -> None:
        self._programs = programs
        self._progress = progress
        self._expected = total
        self._builders = builders
        self._split = split
        self._harts: dict[int, _AnyHartDecoder] = {}
        self._losses = Losses()
        self._entered: tuple[int | None, int, int | None] | None = None
        self._idle = self._skipped = 0  # bytes

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""

    @abstractmethod
    def _end_part(self, kind: BreakKind) -> int:
        """End what has been fed, and begin anew behind it; return how many bytes of a cut off message are left."""

    def cross_break(self, why: str, kind: BreakKind = BreakKind.ANYWHERE) -> None:
        """Note that trace is missing before the next bytes, and how these begin. *why*: for the user."""
        cut_off = self._end_part(kind)
        if kind is not BreakKind.RESTART or cut_off or any(hart.is_running for hart in self._harts.values()):
            self._record_lost_bytes(LostBytes(self._fed - cut_off, cut_off, why))

    def enter(self, thread: int | None, epoch: int, time: int | None) -> None:
        """Note what an operating system says of the next bytes: which *thread* runs, as `scontext` would have it (None:
        it does not say that; UNKNOWN_THREAD: nobody knows), which code is in memory, and the time, None if the trace
        has its own.
        """
        self._entered = thread, epoch, time
        for source in self._harts:
            self._hart_decoder(source).enter(thread, epoch, time, self._fed)

    @abstractmethod
    def _new_hart(self, program: Program, builder: HistoryBuilder) -> _AnyHartDecoder:
        """Return the decoder of a hart whose first message has come."""

    @abstractmethod
    def _decode_rest(self) -> Iterable[LostBytes]:
        """Decode what is left at the end of the trace, and return the bytes of a message that is cut off there."""

    @property
    @abstractmethod
    def _fed(self) -> int:
        """The number of bytes so far."""

    def duplicate(self) -> Self:
        """Return a decoder that is where this one is; that one may end the trace here while this one goes on."""
        other = copy(self)
        other._harts = {source: hart.duplicate() for source, hart in self._harts.items()}
        other._losses = deepcopy(self._losses)
        return other

    def checkpoint(self) -> Checkpoint:
        """Return what another decoder of the same trace needs to go on from here. Raises NoCheckpoint."""
        harts = [[source, hart.checkpoint()] for source, hart in self._harts.items()]
        return attributes(self, "_idle", "_skipped") | {"losses": self._losses.checkpoint(), "harts": harts}

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another decoder was, before anything is decoded."""
        set_attributes(self, checkpoint, "_idle", "_skipped")
        self._losses.go_on_from(checkpoint["losses"])
        for source, of_hart in checkpoint["harts"]:
            self._added_hart(source).go_on_from(of_hart)

    def begin_at(self, offset: int, checkpoint: Checkpoint) -> None:
        """Begin at any byte of a trace, before anything is decoded: what came before is not known, but for what a
        checkpoint of the same trace says of its encoders. The bytes up to the first message are skipped.
        """
        sources = [source for source, _ in checkpoint["harts"]]
        losses = checkpoint["losses"]
        self._losses.go_on_from(losses | {"harts": sources if losses["count"] else []})
        for source, of_hart in checkpoint["harts"]:
            self._added_hart(source).begin_like(of_hart)

    def place(self) -> StreamPlace:
        """Return where the trace is, to go on from there later. Raises NoCheckpoint."""
        checkpoint = self.checkpoint()
        builders = {source: hart.builder for source, hart in self._harts.items()}
        times = {source: it.last_time for source, it in builders.items()}
        return StreamPlace(
            self._fed,
            {source: it.position for source, it in builders.items()},
            {source: time for source, time in times.items() if time is not None},
            checkpoint,
        )

    def sources(self) -> list[int]:
        """Return the sources whose messages have come, in that order."""
        return list(self._harts)

    def builder_of(self, source: int) -> HistoryBuilder | None:
        """Return the builder of a source's history, None before its first message."""
        hart = self._harts.get(source)
        return None if hart is None else hart.builder

    def views(self) -> dict[int, History]:
        """Return the histories so far by source, as `HistoryBuilder.view`; the decoder goes on."""
        return {source: hart.builder.view() for source, hart in self._harts.items()}

    def finish(self) -> SourceHistories:
        """End the trace and return the histories."""
        cut_off = list(self._decode_rest())
        self._skipped += sum(lost.length for lost in cut_off)
        for source in self._harts:
            hart = self._hart_decoder(source)
            for lost in cut_off:  # these are not losses: nothing follows them
                hart.cut_off(lost)
        end = self._fed
        histories = {source: self._harts[source].finish(end) for source in sorted(self._harts)}
        accounts = [history.accounting for history in histories.values()]
        decoded = sum(account.decoded for account in accounts)
        idle = self._idle + sum(account.idle for account in accounts)
        skipped = self._skipped + sum(account.skipped for account in accounts)
        return SourceHistories(histories, Accounting(end, decoded, idle, skipped))

    def finish_one(self, source: int = 0) -> History:
        """End the trace of a single hart and return its history, which is empty if the hart sent nothing.

        The accounting covers all bytes, including those of other harts.
        """
        self._hart_decoder(source)
        histories, accounting = self.finish()
        history = histories[source]
        history.accounting = accounting
        return history

    def _is_decoded(self, source: int) -> bool:
        """Whether there is a program for this hart."""
        return not isinstance(self._programs, Mapping) or source in self._programs

    def _hart_decoder(self, source: int) -> _AnyHartDecoder:
        """Return the decoder of a hart, after reporting pending losses to it."""
        hart = self._harts.get(source)
        if hart is None:
            hart = self._added_hart(source)
        missed = self._losses.missed(source)
        if missed is not None:
            hart.lose(missed)
        return hart

    def _added_hart(self, source: int) -> _AnyHartDecoder:
        program = self._programs[source] if isinstance(self._programs, Mapping) else self._programs
        hart = self._harts[source] = self._new_hart(program, self._builders(source))
        if self._entered is not None:
            hart.enter(*self._entered, self._fed)
        return hart

    def _record_lost_bytes(self, lost: LostBytes) -> None:
        """Record bytes that no hart can use and any hart may have sent.

        At the start of a wrapped buffer this is not a loss.
        """
        self._skipped += lost.length
        if lost.why:
            self._losses.add(lost)
            if not self._split:
                self._hart_decoder(0)
            if self._losses.full:
                for source in self._harts:
                    self._hart_decoder(source)
                self._losses.forget()
