"""NEORV32's TRACER as a device: it follows one of two harts, and keeps the newest entries in a FIFO.

Behaviour: NEORV32 1.13.5, rtl/core/neorv32_tracer.vhd and its datasheet. In debug mode nothing is recorded, and nothing
marks it.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial

from rvtrace_gdb.controlregs.neorv32.registers import CTRL, DELTA_DST, DELTA_SRC, STOP_ADDR
from rvtrace_gdb.decode.branches.neorv32 import ENTRY, DeltaPair, PairEncoder
from rvtrace_gdb.decode.program.instructions import IType, classify
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.hart.block import HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart

SIZE = 0x10
"""The bytes of its registers."""


class Neorv32Tracer:
    """The module at *base* of the bus. *harts*: one or two; it becomes their witness. *depth*: entries of the FIFO, a
    power of 2.
    """

    def __init__(self, harts: Sequence[Hart], bus: Bus, base: int, depth: int = 32) -> None:
        assert depth & depth - 1 == 0 and 1 <= len(harts) <= 2
        self._ctrl = self._stop_addr = 0
        self._depth, self._harts = depth, len(harts)
        self._fifo: deque[DeltaPair] = deque(maxlen=depth)
        self._encoder: PairEncoder | None = None
        bus.add(base, SIZE, self.read, self.write)
        for number, hart in enumerate(harts):
            hart.witness = _TracerWitness(hart, partial(self._takes, number), self)

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
        if offset != CTRL.offset:
            return
        kept = CTRL.mask("EN", "HSEL") if self._harts > 1 else CTRL.mask("EN")
        self._ctrl = value & kept
        if not CTRL.get(value, "EN"):
            self._fifo.clear()
            self._encoder = None
        elif CTRL.get(value, "STOP"):
            self._encoder = None
        elif CTRL.get(value, "START") and not self.running:
            self._encoder = PairEncoder(self._stop_addr)

    def _takes(self, hart: int) -> PairEncoder | None:
        """Return the encoder if it traces this hart now."""
        return self._encoder if self.running and CTRL.get(self._ctrl, "HSEL") == hart else None

    def record(self, pair: DeltaPair) -> None:
        """Add an entry, in the place of the oldest one if there is no room."""
        self._fifo.append(pair)


class _TracerWitness:
    """The witness of one hart."""

    def __init__(self, hart: Hart, encoder: "partial[PairEncoder | None]", tracer: Neorv32Tracer) -> None:
        self._hart, self._encoder, self._tracer = hart, encoder, tracer
        self._jumps: dict[int, bool] = {}

    def begins(self) -> None: ...

    def ends(self) -> None: ...

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        """Do nothing: accesses are not recorded."""

    def retired(self, block: HartBlock) -> None:
        encoder = self._encoder()
        if encoder is not None:
            word = block.words[0]
            if word not in self._jumps:
                self._jumps[word] = classify(word, self._hart.xlen).itype not in (IType.NONE, IType.NOT_TAKEN)
            size = 4 if word & 3 == 3 else 2
            for pair in encoder.executed(block.pc, size, jumps=self._jumps[word]):
                self._tracer.record(pair)

    def trapped(self, trap: TrapEntry) -> None:
        encoder = self._encoder()
        if encoder is not None:
            for pair in encoder.trapped(None if trap.interrupt else trap.epc):
                self._tracer.record(pair)

    def register_written(self, regno: int) -> None: ...

    def resumed(self) -> None: ...

    def reset(self) -> None: ...
