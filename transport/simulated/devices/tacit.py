"""TACIT's encoder and its DMA sink as devices: the encoder follows one hart, the sink writes into memory.

Behaviour: ucb-bar/tacit (91f4bcb), TacitEncoder.scala, TraceSinkDMA.scala. In debug mode the simulated hart retires
nothing, as it has no Debug ROM. Times are those of the hart, which count instructions. A start is sent when the next
instruction retires, an end at once.
"""

from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.controlregs.tacit.registers import (
    LIMITED_ADDR,
    LIMITED_COUNT,
    TR_SK_DMA_ADDR,
    TR_SK_DMA_COUNT,
    TR_SK_DMA_FLUSH,
    TR_SK_DMA_FLUSH_DONE,
    TR_SK_DMA_MAX_SIZE,
    TR_SK_DMA_MODE,
    TR_SK_DMA_RESET,
    TR_SK_DMA_WRAP_COUNT,
    TR_TE_BRANCH_MODE,
    TR_TE_CTRL,
    TR_TE_TARGET,
    SinkModeCode,
)
from rvtrace_gdb.decode.branches.tacit.encoder import RetiredInstruction, TacitEncoder
from rvtrace_gdb.decode.branches.tacit.packets import TacitConfiguration, TacitPacket, TrapSort, packet_bytes
from rvtrace_gdb.decode.branches.tacit.predictor import CountingPredictor
from rvtrace_gdb.decode.program.instructions import IType, classify
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.hart.block import DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem

SIZE = 0x100
"""The bytes of the registers of each."""
_WORD = 8  # bytes that the sink writes at once
_ENABLE = TR_TE_CTRL.mask("ENABLE")


class TacitSink:
    """The sink, with its registers at *base* of the bus. It has no limit."""

    def __init__(self, bus: Bus, base: int) -> None:
        self._bus = bus
        self._flush, self._done, self._address, self._count = 0, 0, 0, 0
        self._collected = bytearray()
        bus.add(base, SIZE, self.read, self.write)

    def collect(self, data: bytes) -> None:
        """Take packets, and write the words that are full."""
        self._collected += data
        while len(self._collected) >= _WORD:
            self._write_word(_WORD)
        if self._flush:
            self._write_rest()

    def read(self, offset: int, nbytes: int) -> int:
        """Return a register, or half of one."""
        for register, value in ((TR_SK_DMA_ADDR, self._address), (TR_SK_DMA_COUNT, self._count)):
            if register.offset <= offset < register.offset + 8:
                return value >> 8 * (offset - register.offset) & (1 << 8 * nbytes) - 1
        return {TR_SK_DMA_FLUSH.offset: self._flush, TR_SK_DMA_FLUSH_DONE.offset: self._done}.get(offset, 0)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """Write a register; half of one stays as it is."""
        if offset == TR_SK_DMA_FLUSH.offset:
            self._flush = value & 1
            if self._flush:
                self._write_rest()
        elif nbytes == _WORD and offset == TR_SK_DMA_COUNT.offset:
            self._count = value
        elif nbytes == _WORD and offset == TR_SK_DMA_ADDR.offset and not self._collected:
            self._address = value

    def _write_rest(self) -> None:
        if self._collected:
            self._write_word(len(self._collected))
        self._done = 1

    def _write_word(self, size: int) -> None:
        self._bus.write_bytes(self._address + self._count, bytes(self._collected[:size]))
        self._count += size
        del self._collected[:size]


class LimitedTacitSink:
    """The later sink, of ucb-ee194-tapeout/tacit (522516d): it has a limit, and cannot be flushed."""

    def __init__(self, bus: Bus, base: int) -> None:
        self._bus = bus
        self._address, self._count, self._size, self._mode, self._wraps = 0, 0, (1 << 64) - 1, 0, 0
        self._overflowed = False
        self._collected = bytearray()
        bus.add(base, SIZE, self.read, self.write)

    def collect(self, data: bytes) -> None:
        """Take packets, and write the words that are full, or drop them."""
        self._collected += data
        while len(self._collected) >= _WORD:
            word = bytes(self._collected[:_WORD])
            del self._collected[:_WORD]
            self._write_word(word)

    def _write_word(self, word: bytes) -> None:
        if self._count + _WORD > self._size:
            if self._mode == SinkModeCode.OVERFLOW:
                self._overflowed = True
            else:
                self._wraps, self._count = self._wraps + 1, 0
        if not self._overflowed:
            self._bus.write_bytes(self._address + self._count, word)
            self._count += _WORD

    def read(self, offset: int, nbytes: int) -> int:
        """Return a register, or half of one."""
        wide = ((LIMITED_ADDR, self._address), (LIMITED_COUNT, self._count), (TR_SK_DMA_MAX_SIZE, self._size))
        for register, value in wide:
            if register.offset <= offset < register.offset + 8:
                return value >> 8 * (offset - register.offset) & (1 << 8 * nbytes) - 1
        return {TR_SK_DMA_MODE.offset: self._mode, TR_SK_DMA_WRAP_COUNT.offset: self._wraps}.get(offset, 0)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """Write a register; half of one stays as it is."""
        if offset == LIMITED_ADDR.offset and nbytes == _WORD:
            self._address = value
        elif offset == TR_SK_DMA_MAX_SIZE.offset and nbytes == _WORD:
            self._size = value
        elif offset == TR_SK_DMA_MODE.offset:
            self._mode = value & 1
        elif offset == TR_SK_DMA_RESET.offset and value & 1:
            self._count, self._overflowed = 0, False


class TacitDevice:
    """The encoder of *hart*, with its registers at *base* of the bus; it becomes the hart's witness. *sink* has the
    number *number*, and *entries* is the size of the branch predictor.

    *has_context*: packets have privilege modes, as those of riscv-tacit/tacit (32c52c6); the ASID is 0.

    `watch` is called with each instruction that retires while tracing is on.
    """

    def __init__(
        self, hart: Hart, bus: Bus, base: int, sink: TacitSink | LimitedTacitSink, *, number: int = 1,
        entries: int = 1024, has_context: bool = False,
    ) -> None:  # fmt: skip
        self._has_context, self._prv = has_context, hart.privilege
        self._hart, self._sink, self._number = hart, sink, number
        self._control, self._target, self._mode = TR_TE_CTRL.mask("ACTIVE"), 0, 0
        self._predictor = CountingPredictor(entries)
        self._entries = entries
        self._encoder: TacitEncoder | None = None
        self._known: dict[int, IType] = {}
        self.watch: Callable[[Sequence[HartItem]], None] | None = None
        bus.add(base, SIZE, self.read, self.write)
        hart.witness = self

    # -- the registers

    def read(self, offset: int, nbytes: int) -> int:
        """Return a register."""
        known = {
            TR_TE_CTRL.offset: self._control, TR_TE_TARGET.offset: self._target, TR_TE_BRANCH_MODE.offset: self._mode,
        }  # fmt: skip
        return known.get(offset, 0)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """Write a register."""
        if offset == TR_TE_TARGET.offset:
            self._target = value & 0xFF
        elif offset == TR_TE_BRANCH_MODE.offset:
            self._mode = value
        elif offset == TR_TE_CTRL.offset:
            self._control = value & 3
            self._switch(bool(value & _ENABLE))

    def _switch(self, on: bool) -> None:
        if on and self._encoder is None:
            configuration = TacitConfiguration(self._mode, self._entries)
            self._encoder = TacitEncoder(configuration, has_context=self._has_context, predictor=self._predictor)
        elif not on and self._encoder is not None:
            self._send_packets(self._encoder.stop())
            self._encoder = None

    def _send_packets(self, packets: Iterable[TacitPacket]) -> None:
        data = b"".join(map(packet_bytes, packets))
        if data and self._target == self._number:
            self._sink.collect(data)

    # -- the witness

    def begins(self) -> None:
        self._prv = self._hart.privilege

    def ends(self) -> None: ...

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        """Do nothing: accesses are not traced."""

    def retired(self, block: HartBlock) -> None:
        if self._encoder is None:
            return
        word = block.words[0]
        itype = self._known.get(word)
        if itype is None:
            itype = self._known[word] = classify(word, self._hart.xlen).itype
        size = 4 if word & 3 == 3 else 2
        at = RetiredInstruction(block.pc, size, itype, self._hart.elapsed, prv=self._prv)
        self._prv = self._hart.privilege
        self._send_packets(self._encoder.retired(at))
        if self.watch is not None:
            self.watch([block])

    def trapped(self, trap: TrapEntry) -> None:
        if self._encoder is None:
            return
        sort = TrapSort.INTERRUPT if trap.interrupt else TrapSort.EXCEPTION
        at = RetiredInstruction(trap.epc, 0, IType.NONE, self._hart.elapsed, sort, self._prv)
        self._prv = self._hart.privilege
        self._send_packets(self._encoder.retired(at))

    def register_written(self, regno: int) -> None: ...

    def halted(self, cause: DebugCause) -> None: ...

    def resumed(self) -> None: ...

    def reset(self) -> None: ...
