"""NEORV32's TRACER as a device: it follows one of two harts, and keeps the newest entries in a FIFO.

Behaviour: NEORV32 1.13.5, rtl/core/neorv32_tracer.vhd and its datasheet. In debug mode nothing is recorded. Leaving it
is a transfer to where the hart goes on, also where that is the next instruction. The interrupt at the stop address is
not simulated.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.controlregs.neorv32.registers import CTRL, DELTA_DST, DELTA_SRC, DROPPED_AT_ONCE, STOP_ADDR
from rvtrace_gdb.decode.branches.neorv32 import ENTRY, DeltaPair, PairEncoder
from rvtrace_gdb.decode.program.instructions import IType, classify
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.hart.block import DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart

SIZE = 0x10
"""The bytes of its registers."""
_COMPRESSED, _UNCOMPRESSED = 2, 4  # bytes of an instruction


class Neorv32Tracer:
    """The module at *base* of the bus. *harts*: one or two; it becomes their witness. *depth*: entries of the FIFO, a
    power of 2, 2 at least.
    """

    def __init__(self, harts: Sequence[Hart], bus: Bus, base: int, depth: int = 32) -> None:
        assert depth & depth - 1 == 0 and depth >= DROPPED_AT_ONCE and 1 <= len(harts) <= 2
        self._ctrl = self._stop_addr = 0
        self._depth, self._harts = depth, tuple(harts)
        self._fifo: deque[DeltaPair] = deque()
        self._encoder: PairEncoder | None = None
        self._starting: Hart | None = None
        """The hart that is executing the instruction that starts the trace, which is not part of it."""
        self._jumps: dict[int, bool] = {}
        self.watches: dict[int, Callable[[Sequence[HartBlock]], None]] = {}
        """By the number of the hart: called with each instruction that retires while it is traced."""
        bus.add(base, SIZE, self.read, self.write)
        for number, hart in enumerate(harts):
            hart.witness = _TracerWitness(number, self)

    @property
    def running(self) -> bool:
        """Whether tracing is in progress (RUN)."""
        return self._encoder is not None and self._encoder.running

    def read(self, offset: int, nbytes: int) -> int:
        """Return a register; reading DELTA_DST takes an entry out."""
        if offset == CTRL.offset:
            told = {"RUN": self.running, "AVAIL": bool(self._fifo), "TBM": self._depth.bit_length() - 1}
            return self._ctrl | CTRL.pack(**told)
        if offset == STOP_ADDR.offset:
            return self._stop_addr
        source, destination = ENTRY.unpack(self._fifo[0].raw) if self._fifo else (0, 0)
        if offset == DELTA_SRC.offset:
            return int(source)
        if offset == DELTA_DST.offset and self._fifo:
            self._fifo.popleft()
        return int(destination)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """Write a register."""
        if offset == STOP_ADDR.offset:
            self._stop_addr = value & ~1
            if self._encoder is not None:
                self._encoder.stop_pc = self._stop_addr
        if offset != CTRL.offset:
            return
        self._ctrl = value & (CTRL.mask("EN", "HSEL") if len(self._harts) > 1 else CTRL.mask("EN"))
        if not CTRL.get(value, "EN"):
            self._fifo.clear()
            self._encoder = None
        elif CTRL.get(value, "STOP"):
            self._encoder = None
        elif CTRL.get(value, "START") and not self.running:
            self._encoder = PairEncoder(self._stop_addr)
            self._starting = next((hart for hart in self._harts if hart.in_progress is not None), None)

    def record_instruction(self, number: int, block: HartBlock) -> None:
        """Record an instruction of a hart."""
        starting, self._starting = self._starting, None
        encoder = self._encoder_of(number)
        if encoder is None or starting is self._harts[number]:
            return
        if number in self.watches:
            self.watches[number]((block,))
        word = block.words[0]
        if word not in self._jumps:
            itype = classify(word, self._harts[number].xlen).itype
            self._jumps[word] = itype not in (IType.NONE, IType.NOT_TAKEN)
        size = _UNCOMPRESSED if word & 3 == 3 else _COMPRESSED
        self._push_entries(encoder.executed(block.pc, size, jumps=self._jumps[word]))

    def record_trap(self, number: int, trap: TrapEntry) -> None:
        """Record a trap of a hart."""
        encoder = self._encoder_of(number)
        if encoder is not None:
            self._push_entries(encoder.trapped(None if trap.interrupt else trap.epc))

    def record_halt(self, number: int, cause: DebugCause) -> None:
        """Record that a hart enters debug mode: an ebreak that leads there counts as executed."""
        encoder = self._encoder_of(number)
        if encoder is not None and cause is DebugCause.EBREAK:
            self._push_entries(encoder.executed(self._harts[number].pc, _COMPRESSED))

    def record_resumption(self, number: int) -> None:
        """Record that a hart leaves debug mode."""
        encoder = self._encoder_of(number)
        if encoder is not None:
            encoder.resumed()

    def reset(self) -> None:
        """Be as after a reset of the processor, which resets all but the debug module."""
        self._ctrl = self._stop_addr = 0
        self._fifo.clear()
        self._encoder = self._starting = None

    def _push_entries(self, pairs: Iterable[DeltaPair]) -> None:
        """Add entries. With one for which there was just room the oldest are dropped, unless tracing stops with it."""
        for pair in pairs:
            self._fifo.append(pair)
        for _ in range(DROPPED_AT_ONCE if len(self._fifo) >= self._depth and self.running else 0):
            self._fifo.popleft()

    def _encoder_of(self, number: int) -> PairEncoder | None:
        """Return the encoder if it traces this hart now."""
        return self._encoder if self.running and CTRL.get(self._ctrl, "HSEL") == number else None


class _TracerWitness:
    """The witness of the hart of a *number*. Accesses are not recorded."""

    def __init__(self, number: int, tracer: Neorv32Tracer) -> None:
        self._number, self._tracer = number, tracer

    def begins(self) -> None: ...

    def ends(self) -> None: ...

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        ...

    def retired(self, block: HartBlock) -> None:
        self._tracer.record_instruction(self._number, block)

    def trapped(self, trap: TrapEntry) -> None:
        self._tracer.record_trap(self._number, trap)

    def register_written(self, regno: int) -> None: ...

    def halted(self, cause: DebugCause) -> None:
        self._tracer.record_halt(self._number, cause)

    def resumed(self) -> None:
        self._tracer.record_resumption(self._number)

    def reset(self) -> None:
        self._tracer.reset()
