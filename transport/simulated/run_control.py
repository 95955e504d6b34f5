"""What a Debug Module and the owner of the simulated target do to one hart: halt, resume, reset, registers.

Sources: RISC-V Debug Specification 1.0, 3.5 "Run Control", 3.7.1.1 "Access Register" and its register numbers.
"""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.transport.simulated.debug_harts import NoSuchRegister
from rvtrace_gdb.transport.simulated.hart import DebugCause, Hart, IllegalCsr

DCSR, DCSR_STEP = 0x7B0, 1 << 2
GPR, FPR, END_OF_REGISTERS = 0x1000, 0x1020, 0x1040  # abstract register numbers
_NAN_BOX = 0xFFFF_FFFF << 32


class HartListener(Protocol):
    """A trace encoder that is told what happens to its hart."""

    def halted(self) -> None:
        """It entered Debug Mode."""

    def resumed(self) -> None:
        """It leaves Debug Mode."""

    def hart_reset(self) -> None:
        """It is about to be reset while running."""

    def hart_started(self) -> None:
        """It starts at its reset vector."""


class RunControl:
    """What a Debug Module does to the hart, with the trace encoder told of it."""

    def __init__(self, hart: Hart, encoder: HartListener) -> None:
        self._hart = hart
        self._encoder = encoder
        self.on_halt: Callable[[], None] = lambda: None
        """Called when the hart has entered Debug Mode."""
        self.before_step: Callable[[], None] = lambda: None
        """Called before the hart executes an instruction out of its turn."""
        self.halted = False
        self.held = False
        """In reset: neither halted nor running."""
        self.parked = False
        """The program has ended itself; the hart counts as running but does nothing."""
        self.code_changed = False
        """Memory was written behind the hart's back."""

    @property
    def stopped(self) -> bool:
        """Executes nothing for now."""
        return self.halted or self.held or self.parked

    def halt(self, cause: DebugCause) -> None:
        self._encoder.halted()
        self._hart.enter_debug(cause)
        self.halted = True
        self.on_halt()

    def resume(self) -> None:
        self._hart.leave_debug()
        self.halted = self.parked = False
        if self._hart.witness is not None:
            self._hart.witness.resumed()
        self._encoder.resumed()
        if self._hart.csr_read(DCSR, debug=True) & DCSR_STEP:
            self.look_at_memory()
            self.before_step()
            self.halt(self._hart.step() or DebugCause.STEP)

    def hold_in_reset(self) -> None:
        if not self.halted:
            self._encoder.hart_reset()
        self._hart.reset()
        if self._hart.witness is not None:
            self._hart.witness.reset()
        self.halted = self.parked = False
        self.held = True

    def leave_reset(self, halt: DebugCause | None) -> None:
        self.held = False
        if halt is not None:
            self.halt(halt)
        else:
            self._encoder.hart_started()

    def look_at_memory(self) -> None:
        """Before the hart runs: forget translated code that may have been overwritten."""
        if self.code_changed:
            self._hart.flush_blocks()
            self.code_changed = False

    def register_bits(self, regno: int) -> int:
        if FPR <= regno < END_OF_REGISTERS:
            if "F" not in self._hart.extensions:
                raise NoSuchRegister(regno)
            return 64 if "D" in self._hart.extensions else 32
        if regno >= END_OF_REGISTERS:
            raise NoSuchRegister(regno)
        return self._hart.xlen

    def read_register(self, regno: int) -> int:
        if regno >= FPR:
            return self._hart.f[regno - FPR] & (1 << self.register_bits(regno)) - 1
        if regno >= GPR:
            return self._hart.x[regno - GPR]
        try:
            return self._hart.csr_read(regno, debug=True)
        except IllegalCsr:
            raise NoSuchRegister(regno) from None

    def write_register(self, regno: int, value: int) -> None:
        self._write(regno, value)
        if self._hart.witness is not None:
            self._hart.witness.register_written(regno)

    def _write(self, regno: int, value: int) -> None:
        if regno >= FPR:
            self._hart.f[regno - FPR] = value if self.register_bits(regno) == 64 else value | _NAN_BOX
        elif regno > GPR:
            self._hart.x[regno - GPR] = value
        elif regno < GPR:
            try:
                self._hart.csr_write(regno, value, debug=True)
            except IllegalCsr:
                raise NoSuchRegister(regno) from None
