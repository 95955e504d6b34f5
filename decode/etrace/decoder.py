"""Decoders from E-Trace bytes to histories: of one hart, or of several harts, distinguished by the packets' source."""

from collections.abc import Mapping

from rvtrace_gdb.decode.etrace.encapsulation import CutOff, Encapsulation, Idle, Kind, Packets
from rvtrace_gdb.decode.etrace.hart import MEMO_LIMIT, HartDecoder
from rvtrace_gdb.decode.etrace.options import Options
from rvtrace_gdb.decode.history.builder import BuilderFactory, Losses, LostBytes, Streams, complete_history
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.support.errors import Progress, silent

_PIECE = 1 << 16  # bytes between two progress reports


def decode_streams(
    data: bytes,
    programs: Mapping[int, Program] | Program,
    options: Options,
    encapsulation: Encapsulation,
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> Streams:
    """Decode the histories of all harts in *data*.

    programs  the program of each hart by source (packets of other harts are skipped), or one program for all harts
    wrapped   whether the trace comes from a ring buffer that wrapped, oldest byte first

    Any bytes are accepted. Raises only what *progress* raises.
    """
    decoder = StreamDecoder(programs, options, encapsulation, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class StreamDecoder:
    """Decodes the traces of several harts, fed in pieces of any size. See `decode_streams`.

    total       number of bytes to expect, used only for *progress*
    memo_limit  greatest number of steps to remember for each hart; 0: none
    split       whether packets are distributed by source; else all belong to one hart
    only        the only source whose packets are decoded; None: all
    builders    creates the builder of a history for a source
    """

    def __init__(
        self,
        programs: Mapping[int, Program] | Program,
        options: Options,
        encapsulation: Encapsulation,
        progress: Progress = silent,
        *,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
        split: bool = True,
        only: int | None = None,
        builders: BuilderFactory = complete_history,
    ) -> None:
        self._programs = programs
        self._options = options
        self._progress = progress
        self._expected = total
        self._memo_limit = memo_limit
        self._builders = builders
        self._split = split
        self._only = only
        self._deframer = encapsulation.deframer(wrapped=wrapped)
        self._harts: dict[int, HartDecoder] = {}
        self._idle = self._skipped = 0
        self._losses = Losses()

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""
        for start in range(0, len(data), _PIECE):
            for item in self._deframer.feed(data[start : start + _PIECE]):
                self._take(item)
            self._progress("decoding", self._deframer.total, self._expected)

    def finish(self) -> Streams:
        """End the trace and return the histories."""
        cut_off: list[LostBytes] = []  # these are no losses: nothing follows them
        for item in self._deframer.finish():
            if isinstance(item, CutOff):
                self._skipped += item.length
                cut_off.append(item)
            else:
                self._take(item)
        if not self._harts and not isinstance(self._programs, Mapping):
            self._hart(self._only or 0)
        for source in self._harts:
            hart = self._hart(source)
            for lost in cut_off:
                hart.cut_off(lost)
        end = self._deframer.total
        histories = {source: self._harts[source].finish(end) for source in sorted(self._harts)}
        accounts = [history.accounting for history in histories.values()]
        decoded, skipped = sum(account.decoded for account in accounts), sum(account.skipped for account in accounts)
        return Streams(histories, Accounting(end, decoded, self._idle, self._skipped + skipped))

    def expect(self, source: int) -> None:
        """Make sure that there is a history of this hart, even if it sent nothing."""
        self._hart(source)

    def _take(self, item: Packets | Idle | LostBytes) -> None:
        if isinstance(item, Packets):
            self._packets(item)
        elif isinstance(item, Idle):
            self._idle += item.length
        else:
            self._skipped += item.length
            if item.why:
                self._losses.add(item)
                if not self._split:
                    self._hart(0)
                if self._losses.full:
                    for source in self._harts:
                        self._hart(source)
                    self._losses.forget()

    def _packets(self, packets: Packets) -> None:
        source = packets.source if self._split else 0
        ours = self._only is None or packets.source == self._only
        if not ours or (isinstance(self._programs, Mapping) and source not in self._programs):
            self._skipped += packets.length
        elif packets.kind is Kind.INSTRUCTION:
            self._hart(source).run(packets)
        elif packets.kind is Kind.DATA:
            self._hart(source).run_data(packets)
        else:
            self._hart(source).ignore(packets)

    def _hart(self, source: int) -> HartDecoder:
        """Return the decoder of a hart, after reporting pending losses to it."""
        if source not in self._harts:
            program = self._programs[source] if isinstance(self._programs, Mapping) else self._programs
            self._harts[source] = HartDecoder(
                program, self._options, memo_limit=self._memo_limit, builder=self._builders(source)
            )
        missed = self._losses.missed(source)
        if missed is not None:
            self._harts[source].lose(missed)
        return self._harts[source]


def decode(
    data: bytes,
    program: Program,
    options: Options,
    encapsulation: Encapsulation,
    *,
    source: int | None = None,
    wrapped: bool = False,
    progress: Progress = silent,
) -> History:
    """Decode a whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    *source*: the source of the packets to decode; None: all packets belong to one hart. Any bytes are accepted: what
    cannot be decoded becomes events and gaps of the history. Raises only what *progress* raises.
    """
    decoder = Decoder(program, options, encapsulation, progress, source=source, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class Decoder:
    """Decodes the trace of one hart, fed in pieces of any size. See `decode`.

    total       number of bytes to expect, used only for *progress*
    memo_limit  greatest number of steps to remember; 0: none
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        encapsulation: Encapsulation,
        progress: Progress = silent,
        *,
        source: int | None = None,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
    ) -> None:
        self.options = options
        self._stream = StreamDecoder(
            program,
            options,
            encapsulation,
            progress,
            wrapped=wrapped,
            total=total,
            memo_limit=memo_limit,
            split=False,
            only=source,
        )

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""
        self._stream.feed(data)

    def finish(self) -> History:
        """End the trace and return its history. The history's accounting covers all bytes, including other sources'."""
        self._stream.expect(0)
        histories, accounting = self._stream.finish()
        (history,) = histories.values()
        history.accounting = accounting
        return history
