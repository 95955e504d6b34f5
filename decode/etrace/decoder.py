"""Decoders from E-Trace bytes to histories: of one hart, or of several harts, distinguished by the packets' source."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Self

from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, CutOff, Encapsulation, Idle, SourcePackets
from rvtrace_gdb.decode.etrace.encapsulation.stream import StreamDeframer
from rvtrace_gdb.decode.etrace.hart import HartDecoder
from rvtrace_gdb.decode.etrace.kernel_hart import PacketKernelHart
from rvtrace_gdb.decode.etrace.options import Options
from rvtrace_gdb.decode.history.builder import BuilderFactory, HistoryBuilder, SourceHistories, complete_history
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint
from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping import decoder as stepping
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT
from rvtrace_gdb.decode.stepping.reports import LostBytes
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
) -> SourceHistories:
    """Decode the histories of all harts in *data*.

    programs  the program of each hart by source (packets of other harts are skipped), or one program for all harts
    wrapped   whether the trace comes from a ring buffer that wrapped, oldest byte first

    Any bytes are accepted. Raises only what *progress* raises.
    """
    decoder = StreamDecoder(programs, options, encapsulation, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


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
    """Decode a whole trace of one hart.

    *source*: the source of the packets to decode; None: all packets belong to one hart. *wrapped*: as for
    `decode_streams`. Any bytes are accepted: what cannot be decoded becomes events and gaps of the history. Raises only
    what *progress* raises.
    """
    decoder = StreamDecoder(
        program, options, encapsulation, progress, wrapped=wrapped, total=len(data), split=False, only=source
    )
    decoder.feed(data)
    return decoder.finish_one()


class StreamDecoder(stepping.StreamDecoder[HartDecoder]):
    """Decodes the traces of several harts, distinguished by the packets' source.

    memo_limit  greatest number of steps to remember for each hart; 0: none
    only        the only source whose packets are decoded; None: all
    compiled    whether the steps known are taken by the kernel, if there is one
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
        compiled: bool = True,
    ) -> None:
        super().__init__(programs, progress, total, builders, split=split)
        self._options = options
        self._memo_limit = memo_limit
        self._only = only
        self._kernel = kernel() if compiled and memo_limit else None
        self._deframer = encapsulation.deframer(wrapped=wrapped, module=self._kernel)

    def duplicate(self) -> Self:
        other = super().duplicate()
        other._deframer = deepcopy(self._deframer)
        return other

    def checkpoint(self) -> Checkpoint:
        deframer = self._deframer
        if not isinstance(deframer, StreamDeframer):
            raise NoCheckpoint("encapsulation")
        return super().checkpoint() | {"deframer": deframer.checkpoint()}

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        super().go_on_from(checkpoint)
        if isinstance(self._deframer, StreamDeframer):
            self._deframer.go_on_from(checkpoint["deframer"])

    def begin_at(self, offset: int, checkpoint: Checkpoint) -> None:
        super().begin_at(offset, checkpoint)
        if isinstance(self._deframer, StreamDeframer):
            self._deframer.begin_at(offset)

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""
        for start in range(0, len(data), _PIECE):
            for item in self._deframer.feed(data[start : start + _PIECE]):
                self._take_item(item)
            self._progress("decoding", self._deframer.total, self._expected)

    def _end_part(self, kind: BreakKind) -> int:
        """Packets in records are told apart again by the next record, so they need no more than the loss."""
        cut_off, deframer = 0, self._deframer
        if isinstance(deframer, StreamDeframer):
            for item in deframer.finish():
                if isinstance(item, CutOff):
                    cut_off += item.length
                else:
                    self._take_item(item)
            if kind is BreakKind.ANYWHERE:
                deframer.begin_at(deframer.total)
        return cut_off

    def _decode_rest(self) -> Iterable[LostBytes]:
        cut_off: list[LostBytes] = []
        for item in self._deframer.finish():
            if isinstance(item, CutOff):
                cut_off.append(item)
            else:
                self._take_item(item)
        if not self._harts and not isinstance(self._programs, Mapping):
            self._hart_decoder(self._only or 0)
        return cut_off

    @property
    def _fed(self) -> int:
        return self._deframer.total

    def _new_hart(self, program: Program, builder: HistoryBuilder) -> HartDecoder:
        if self._kernel is None:
            return HartDecoder(program, self._options, memo_limit=self._memo_limit, builder=builder)
        return PacketKernelHart(self._kernel, program, self._options, memo_limit=self._memo_limit, builder=builder)

    def _take_item(self, item: SourcePackets | Idle | LostBytes) -> None:
        if isinstance(item, SourcePackets):
            self._packets(item)
        elif isinstance(item, Idle):
            self._idle += item.length
        else:
            self._record_lost_bytes(item)

    def _packets(self, packets: SourcePackets) -> None:
        source = packets.source if self._split else 0
        if self._only not in (None, packets.source) or not self._is_decoded(source):
            self._skipped += packets.length
        elif packets.kind is ContentKind.INSTRUCTION:
            self._hart_decoder(source).run(packets)
        elif packets.kind is ContentKind.DATA:
            self._hart_decoder(source).run_data(packets)
        else:
            self._hart_decoder(source).ignore(packets)
