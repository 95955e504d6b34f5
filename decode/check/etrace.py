"""The check of E-Trace: its packets against those that our encoder makes of the history.

An interval begins with the instruction of a format 3 packet and ends before that of the next one, or with the support
packet that reports the end. Where predictor, cache and return stack are kept at a synchronization (resync_disabled), an
interval cannot be encoded by itself: only the first one after tracing starts is compared.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from rvtrace_gdb.decode.check.comparison import CheckedPart, Notify, ReportedMessage
from rvtrace_gdb.decode.check.etrace_comparison import (
    UNKNOWN,
    Build,
    Closing,
    ClosingKind,
    EtraceScheme,
    Opening,
    can_encode,
)
from rvtrace_gdb.decode.check.intervals import IntervalChecker
from rvtrace_gdb.decode.check.rows import CheckedRows, checking
from rvtrace_gdb.decode.check.verdict import IntervalDifference, Verdict
from rvtrace_gdb.decode.etrace import decoder as etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation, SourcePackets
from rvtrace_gdb.decode.etrace.hart import HartDecoder
from rvtrace_gdb.decode.etrace.layout import FORMAT_BITS, MalformedPacket, Packet, SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Options
from rvtrace_gdb.decode.etrace.packet import QualStatus
from rvtrace_gdb.decode.etrace.state import Mode
from rvtrace_gdb.decode.etrace.state_table import packet_name
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.builder import HistoryBuilder, HistoryPiece, IncrementalBuilder
from rvtrace_gdb.decode.history.events import LOSSES, EventKind, Start, StartReason
from rvtrace_gdb.decode.history.history import GAP, Event
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.stepping.reports import LostBytes
from rvtrace_gdb.support.errors import Progress, silent

_START, _TRAP, _CONTEXT, _SUPPORT = (TeInstFormat.SYNC | kind << FORMAT_BITS for kind in SyncSubformat)
_HEADS = bytes(byte & 0b1111 for byte in range(256))
_BREAKS = re.compile(b"[" + bytes((_START, _TRAP, _CONTEXT, _SUPPORT)) + b"]")
_STARTING = re.compile(b"[" + bytes((_START, _TRAP)) + b"]")
_ENDED = (QualStatus.ENDED_REP, QualStatus.ENDED_NTR)
_SYSTEM, _OPCODE, _CSR_BYTES = 0x73, 0x7F, 4


class CheckedHart(HartDecoder):
    """A decoder of one hart that checks what it decodes.

    *wrapped*: the trace may begin anywhere; *tick*: see `CheckedRows`.
    """

    def __init__(
        self, program: Program, options: Options, builder: HistoryBuilder, tick: Callable[[], None], *, wrapped: bool
    ) -> None:
        assert isinstance(builder, IncrementalBuilder)
        super().__init__(program, options, builder=builder)
        self._pieces = builder
        self._begun = wrapped  # whether the packet that begins a trace has come, or need not come
        self._checker: IntervalChecker[Build] = IntervalChecker(EtraceScheme(options), tick)
        self._rows = CheckedRows(self._checker, builder, tick)

    def run(self, packets: SourcePackets) -> None:
        """Decode the next packets, and check them by parts that end at packets of format 3."""
        heads = bytes(payload[0] if payload else 0 for payload in packets.payloads).translate(_HEADS)
        if not self._begun:
            self._check_beginning(packets, heads)
        for start, stop in _parts(heads):
            part = packets.part(start, stop)
            head = heads[start] if _BREAKS.match(heads, start) else None
            self._run_part(part._replace(length=sum(part.sizes)), head)

    def lose(self, lost: LostBytes) -> None:
        self._checker.drop(lost=True)
        super().lose(lost)

    def verdict(self, end: int) -> Verdict:
        """Return what was found; the trace has ended at byte *end*."""
        return self._rows.end(end, self._image)

    @property
    def _image(self) -> Image:
        return self._program.image_of(self._state.knowledge.context)

    def _check_beginning(self, packets: SourcePackets, heads: bytes) -> None:
        """Report a beginning that is missing: an encoder sends a support packet when tracing starts."""
        self._begun = True
        if heads[0] == _SUPPORT and self._qualification(packets.payloads[0]) not in _ENDED:
            return
        first = _STARTING.search(heads)
        end = packets.offsets[first.start() if first and first.start() else -1]
        try:
            name = packet_name(self._codec.parse(packets.payloads[0]))
        except MalformedPacket:
            return  # the decoder reports it
        self._checker.missed(IntervalDifference(packets.offsets[0], "te_inst format 3 subformat 3", name), end)

    def _run_part(self, packets: SourcePackets, head: int | None) -> None:
        """Decode packets without a synchronization, or one packet of format 3, which begins with *head*."""
        image, mode = self._image, self._state.knowledge.mode
        super().run(packets)
        events, piece = self._pieces.fresh(), self._pieces.take()
        messages = [ReportedMessage(*each) for each in zip(packets.payloads, packets.offsets, strict=True)]
        undecided = bool(self._waiting) or self._stopped
        if undecided or self._state.knowledge.mode is Mode.LOST or any(event.kind in LOSSES for event in events):
            self._checker.drop(lost=True)
        if undecided or self._state.knowledge.mode is Mode.LOST:
            return
        if head is None:
            self._add_rows(piece, events, messages, image)
        elif head == _CONTEXT:
            self._checker.part(CheckedPart((), (), 1))
        elif head == _SUPPORT:
            self._supported(piece, messages[0], image, mode)
        else:
            self._synchronized(piece, events, messages[0], image, mode)

    def _add_rows(
        self, piece: HistoryPiece, events: Sequence[Event], messages: list[ReportedMessage], image: Image
    ) -> None:
        """Add rows and packets to the open interval."""
        begin = piece.begin
        for event in events:
            if isinstance(event.fact, Start) and event.fact.reason is StartReason.NOTIFICATION:
                self._rows.add(piece.history, begin, event.position, image)
                self._rows.flush(image)
                self._checker.part(CheckedPart((Notify(),), ()))
                begin = max(begin, event.position)
        self._rows.add(piece.history, begin, piece.end, image, messages)

    def _synchronized(
        self, piece: HistoryPiece, events: Sequence[Event], message: ReportedMessage, image: Image, mode: Mode
    ) -> None:
        """End the open interval at a packet of format 3, subformat 0 or 1, and begin the next one."""
        packet = self._codec.parse(message.raw)
        trap = _trap_of(events, packet) if packet.subformat == SyncSubformat.TRAP else None
        if trap is not None and not packet.fields["thaddr"]:
            self._rows.add(piece.history, piece.begin, piece.end, image)
            self._rows.flush(image, trap.epc)
            self._checker.close(Closing(ClosingKind.AT_TARGET, trap=trap, packet=message), message.offset, piece.end)
            return
        pc = piece.history.pc(piece.end - 1) if piece.end > piece.begin else self._rows.newest  # reported before
        self._rows.add(piece.history, piece.begin, piece.end - 1, image)
        block = None if pc == GAP else self._rows.first(pc, self._image)
        if block is None:
            self._checker.drop(lost=False)
            return
        self._rows.flush(image, pc if trap is None else trap.epc if trap.epc != UNKNOWN else None)
        context = ProgramContext(packet.fields.get("privilege"), False, packet.fields.get("context", 0))
        closing = Closing(ClosingKind.TRAPPED, trap=trap)
        if trap is None:
            free = "context" not in packet.fields and _follows_csr(pc, self._image)
            closing = Closing(ClosingKind.SYNCHRONIZED, block, context, free=free)
        position = max(piece.end - 1, piece.begin)
        self._checker.close(closing, message.offset, position)
        self._open_interval(Opening(message, trap, context, self._setup), position, pc, starts=mode is not Mode.ON)

    def _open_interval(self, opening: Opening, position: int, pc: int, *, starts: bool) -> None:
        self._checker.open(opening, opening.packet.offset, position)
        self._rows.begin(pc)
        if (self._setup.modes.resync_disabled and not starts) or not can_encode(self._options, self._setup):
            self._checker.drop(lost=False)

    def _supported(self, piece: HistoryPiece, message: ReportedMessage, image: Image, mode: Mode) -> None:
        """End the open interval at a support packet, unless it says that tracing goes on."""
        self._rows.add(piece.history, piece.begin, piece.end, image)
        if self._qualification(message.raw) in _ENDED and mode is Mode.ON:
            self._rows.flush(image)
            self._checker.close(Closing(ClosingKind.STOPPED, packet=message), message.offset, piece.end)
        elif self._state.knowledge.mode is not Mode.ON:
            self._checker.drop(lost=False)
        else:
            self._checker.part(CheckedPart((), (), 1))

    def _qualification(self, payload: bytes) -> int:
        """Return qual_status of a support packet."""
        try:
            return self._codec.parse(payload).fields.get("qual_status", QualStatus.NO_CHANGE)
        except MalformedPacket:
            return QualStatus.NO_CHANGE


def _parts(heads: bytes) -> Iterator[tuple[int, int]]:
    """Yield the parts of packets: each packet of format 3, and those between them."""
    done = 0
    for found in _BREAKS.finditer(heads):
        if found.start() > done:
            yield done, found.start()
        done = found.end()
        yield found.start(), done
    if done < len(heads):
        yield done, len(heads)


def _trap_of(events: Sequence[Event], packet: Packet) -> IngressTrap:
    """Return the trap that a packet reports."""
    fields = packet.fields
    epc = next((e.last_pc for e in events if e.kind is EventKind.TRAP and e.last_pc is not None), UNKNOWN)
    if not fields["thaddr"]:
        epc = fields.get("address", UNKNOWN)
    return IngressTrap(epc, bool(fields["interrupt"]), fields["ecause"], fields.get("tval", 0), handler=0)


def _follows_csr(address: int, image: Image) -> bool:
    """Whether the instruction before *address* may have written a CSR."""
    try:
        return image.read(address - _CSR_BYTES, _CSR_BYTES)[0] & _OPCODE == _SYSTEM
    except CodeMissing:
        return True


class StreamChecker(etrace.StreamDecoder):
    """Decodes the traces of several harts and checks them. Arguments as for `StreamDecoder`."""

    def __init__(
        self, program: Program, options: Options, encapsulation: Encapsulation, progress: Progress = silent, *,
        wrapped: bool = False, total: int | None = None, split: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            program, options, encapsulation, checking(progress), wrapped=wrapped, total=total, split=split,
            builders=lambda source: IncrementalBuilder(),
        )  # fmt: skip
        self._wrapped = wrapped

    def _new_hart(self, program: Program, builder: HistoryBuilder) -> CheckedHart:
        return CheckedHart(program, self._options, builder, self._tick, wrapped=self._wrapped)

    def _tick(self) -> None:
        self._progress("", self._fed, self._expected)

    def verdicts(self) -> dict[int, Verdict]:
        """End the trace and return what was found, by source."""
        self.finish()
        harts = {source: hart for source, hart in self._harts.items() if isinstance(hart, CheckedHart)}
        return {source: harts[source].verdict(self._fed) for source in sorted(harts)}
