"""The E-Trace packets of one hart, instruction and data trace, encapsulated and in order.

Sources: Unformatted Trace & Diagnostic Data Packet Encapsulation 1.0; Efficient Trace for RISC-V 2.0, "Format 3
packets", "Data Trace Encoder Output Packets".
"""

from collections.abc import Callable, Iterator, Sequence

from rvtrace_gdb.decode.etrace.data.encoder import DataEncoder
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation, Kind
from rvtrace_gdb.decode.etrace.encoder import Encoder, EncoderOptions
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.ingress import Block, Trap
from rvtrace_gdb.decode.memory_access import Access
from rvtrace_gdb.transport.simulated.block import Accessed, Situation
from rvtrace_gdb.transport.simulated.hart import Retired

_SYNCHRONIZING = (0b0011, 0b0111)  # format 3, subformats 0 and 1: the low four bits of the payload
_SUPPORT = 0b1111
_KIND = 0b1111


class PacketStream:
    """What an ingress tells becomes encapsulated packets, which *out* gets.

    Data packets come behind the te_inst packets that report their instruction or what is before it, so that a
    synchronization packet stands before the accesses of the instruction it is about.
    """

    def __init__(
        self, out: Callable[[bytes], None], options: EncoderOptions, encapsulation: Encapsulation, sparse: int
    ) -> None:
        self._out = out
        self._sparse = sparse
        self._since = 0  # bytes since the last synchronization sequence
        self._accesses: list[Accessed] = []  # of the block that is told next
        self._due: list[Accessed] = []  # of the instruction told last, which has not been through the encoder yet
        self._data_wanted = self._has_accesses = False  # the second: some may be told since the encoder was enabled
        self.configure(options, encapsulation)

    def configure(
        self, options: EncoderOptions, encapsulation: Encapsulation, source: int = 0, async_interval: int = 0
    ) -> None:
        """The encoder was enabled. *async_interval*: bytes between synchronization sequences, 0: none are wanted."""
        self._encoder = Encoder(options, self._instruction_packet)
        self._data = DataEncoder(options.parameters, options.modes, self._data_packet)
        self._framer = encapsulation.framer()
        self._source, self._async_interval = source, async_interval
        self._timed = encapsulation.timestamp_bytes > 0
        self._time = self._now = self._due_since = 0
        self._unstamped = 0  # packets since the last with a timestamp
        self._encoder.denable = self._data_wanted
        self._enabled = False
        self._has_accesses = self._data_wanted
        self._accesses.clear()
        self._due.clear()

    # -- what happens to the encoder

    def start(self) -> None:
        """What is retired next is traced."""
        self._encoder.start()
        self._enabled = True

    def stop(self, pc: int, *, for_good: bool) -> None:
        """It is traced no more, from *pc* on. *for_good*: the encoder is switched off."""
        self._encoder.stop(pc, disable=for_good)
        self._enabled = not for_good
        self._accesses.clear()
        self._due.clear()

    def lost(self) -> None:
        """Packets were lost, and the last one may have been cut."""
        self._synchronization()
        self._encoder.lost(data=self._data_wanted)

    def notify(self) -> None:
        """The next instruction is reported."""
        self._encoder.notify()

    def trace_data(self, wanted: bool) -> None:
        """Accesses are traced, too. A support packet says so when the encoder is at work."""
        if wanted != self._data_wanted:
            self._data_wanted = self._encoder.denable = wanted
            self._has_accesses = self._has_accesses or wanted
            if self._enabled:
                self._encoder.enable()

    # -- what an ingress tells

    def time(self, now: int) -> None:
        """The clock shows *now*."""
        self._now = now
        self._encoder.time(now)

    def context(self, context: Context) -> None:
        """What holds from here on; the encoder is told of what its packets have room for."""
        options = self._encoder.options
        sends_scontext, sends_hcontext = options.parameters.context_width > 0, options.hcontext_at is not None
        self._encoder.context(
            Context(
                context.prv,
                scontext=context.scontext if sends_scontext else None,
                hcontext=context.hcontext if sends_hcontext else None,
            )
        )

    def retire(self, items: Sequence[Block | Trap | Accessed], next_pc: int | None = None) -> None:
        """What the hart did next."""
        if not self._has_accesses:
            self._encoder.retire(items, next_pc)  # type: ignore[arg-type]
            return
        for item in items:
            if isinstance(item, Accessed):
                if self._data_wanted:
                    self._accesses.append(item)
                continue
            for piece in self._pieces(item) if isinstance(item, Block) else (item,):
                self._encoder.retire([piece])
                self._tell_due()
                self._now += piece.instructions if isinstance(piece, Block) else 0
        if next_pc is not None:
            self._encoder.retire((), next_pc)

    def skip(self, retired: Sequence[Retired]) -> None:
        """This is lost. Accesses at its end are those of a block that is not lost, maybe."""
        for item in retired:
            if isinstance(item, Accessed):
                self._accesses.append(item)
            elif not isinstance(item, Situation):
                self._accesses.clear()
        self._due.clear()

    def _pieces(self, block: Block) -> Iterator[Block]:
        """*block*, cut where its accesses go between. Moves those that may be told after the next piece to `_due`.

        The encoder deals with all but the last instruction of what it is given at once, and with the last one when it
        gets the next: so an instruction with an access is the last one of a piece, and the piece behind it has one
        instruction only.
        """
        begin, last = 0, block.instructions - 1
        while begin <= last:
            place = self._accesses[0].place if self._accesses else last
            end = begin if self._due else min(place, last)
            yield _piece(block, begin, end)
            self._due = [access for access in self._accesses if access.place <= end]
            self._due_since = self._now - 1
            del self._accesses[: len(self._due)]
            begin = end + 1

    def _tell_due(self) -> None:
        """The instruction told before the last one has been dealt with."""
        due, self._due = self._due, []
        for access in due:
            self._data.access(Access(*access[1:]))

    # -- what is sent

    def _instruction_packet(self, payload: bytes) -> None:
        kind = payload[0] & _KIND
        if kind == _SUPPORT:
            self._tell_due()  # the last instruction's, at the end of a trace
        self._send(payload, Kind.INSTRUCTION, self._encoder.at, stamped=kind == _SUPPORT or kind in _SYNCHRONIZING)
        if kind in _SYNCHRONIZING:
            self._data.synchronize()

    def _data_packet(self, payload: bytes) -> None:
        self._send(payload, Kind.DATA, self._due_since)

    def _send(self, payload: bytes, kind: Kind, time: int, *, stamped: bool = False) -> None:
        if self._async_interval and self._since >= self._async_interval:
            self._synchronization()
        frame = self._framer.packet(payload, kind, self._source, self._stamp(time, stamped))
        self._since += len(frame)
        self._out(frame)

    def _synchronization(self) -> None:
        self._since = 0
        self._out(self._framer.synchronization())

    def _stamp(self, time: int, wanted: bool) -> int | None:
        """The timestamp of a packet about what happened at *time*; None where it needs none."""
        if not self._timed:
            return None
        self._unstamped += 1
        if not wanted and self._unstamped < self._sparse:
            return None
        self._unstamped = 0
        self._time = max(self._time, time)
        return self._time


def _piece(block: Block, begin: int, end: int) -> Block:
    """Instructions *begin* to *end* of *block*, inclusive."""
    last = block.instructions - 1
    if begin == 0 and end == last:
        return block
    pc = block.pc + 2 * sum(block.lengths[:begin])
    lengths = block.lengths[begin : end + 1]
    if end < last:
        return Block(pc, lengths)
    return Block(pc, lengths, block.itype, block.taken_target, block.inferred, block.absolute)
