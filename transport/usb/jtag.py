"""What a JTAG adapter does, whatever its protocol: clocks are put in a queue, and one flush does them all.

Ref: IEEE Std 1149.1: TMS and TDI are sampled at the rising edge of TCK, TDO changes at the falling one.
"""

from collections.abc import Sequence
from typing import Protocol

from rvtrace_gdb.transport.usb.errors import JtagProblem

# TMS, first bit lowest, and how many bits: between Run-Test/Idle and the Shift states, and to it from anywhere.
TO_IDLE = 0b011111, 6
IDLE_TO_SHIFT_DR = 0b001, 3
IDLE_TO_SHIFT_IR = 0b0011, 4
EXIT_TO_IDLE = 0b01, 2
NOTHING = range(0)
_MOST_TAPS, _MOST_IR = 32, 256  # bits


class Jtag(Protocol):
    """An adapter. *name*: for messages. All methods raise `UsbLost` leaves; after one, make another adapter."""

    name: str

    def move(self, tms: int, count: int) -> None:
        """*count* clocks with the bits of *tms*, first the lowest, and TDI 0."""
        ...

    def shift(self, tdi: int, count: int, captured: range = NOTHING) -> None:
        """*count* clocks in a Shift state, the last leaving it. TDO of those *captured* is an answer of `flush`."""
        ...

    def flush(self) -> list[int]:
        """Do all that is in the queue. The answers of shifts that captured something, in order, first bit lowest."""
        ...

    def close(self) -> None: ...


class Chain:
    """One TAP of a scan chain, the others in BYPASS. Between calls the chain is in Run-Test/Idle.

    *ir_lengths*: of all TAPs, from TDO on, None: found out, if there is one, or all are 5 as RISC-V has it;
    *position*: which of them is meant. Closes the adapter if there is none.
    """

    def __init__(self, jtag: Jtag, ir_lengths: Sequence[int] | None = None, position: int = 0) -> None:
        self.jtag, self.name = jtag, jtag.name
        try:
            self._find(ir_lengths, position)
        except BaseException:
            jtag.close()
            raise

    def _find(self, ir_lengths: Sequence[int] | None, position: int) -> None:
        self.jtag.move(*TO_IDLE)
        self.taps, total = self._measured()
        self.ir_lengths = tuple(ir_lengths or self._guessed(total))
        if len(self.ir_lengths) != self.taps or sum(self.ir_lengths) != total:
            raise JtagProblem(self.name, self._mismatch(total))
        if position >= self.taps:
            raise JtagProblem(self.name, f"there is no TAP {position} in a chain of {self.taps}: correct `tap`")
        self._nearer, self._farther = position, self.taps - 1 - position
        self._ir_nearer = sum(self.ir_lengths[:position])
        self._ir_farther = sum(self.ir_lengths[position + 1 :])
        self._ir_length = self.ir_lengths[position]

    def ir(self, value: int) -> None:
        """Load the instruction register."""
        ones_nearer = (1 << self._ir_nearer) - 1
        ones_farther = (1 << self._ir_farther) - 1
        bits = ones_nearer | (value | ones_farther << self._ir_length) << self._ir_nearer
        self._scan(IDLE_TO_SHIFT_IR, bits, self._ir_nearer + self._ir_length + self._ir_farther, NOTHING)

    def dr(self, value: int, length: int, captured: int = 0) -> None:
        """Scan the data register; its lowest *captured* bits become an answer of `flush`."""
        answered = range(self._nearer, self._nearer + captured) if captured else NOTHING
        self._scan(IDLE_TO_SHIFT_DR, value << self._nearer, self._nearer + length + self._farther, answered)

    def idle(self, clocks: int) -> None:
        """Stay in Run-Test/Idle."""
        if clocks:
            self.jtag.move(0, clocks)

    def flush(self) -> list[int]:
        return self.jtag.flush()

    def close(self) -> None:
        self.jtag.close()

    def _scan(self, way: tuple[int, int], bits: int, count: int, captured: range) -> None:
        self.jtag.move(*way)
        self.jtag.shift(bits, count, captured)
        self.jtag.move(*EXIT_TO_IDLE)

    def _measured(self) -> tuple[int, int]:
        """How many TAPs there are, and the bits of all their instruction registers: a 0 behind ones takes so long."""
        total = self._delay(IDLE_TO_SHIFT_IR, _MOST_IR)
        taps = self._delay(IDLE_TO_SHIFT_DR, _MOST_TAPS)  # the ones that were shifted in: all are in BYPASS
        if not total or not taps:
            raise JtagProblem(
                self.name, "JTAG does not answer (TDO does not follow TDI): is the board powered, and out of reset?"
            )
        return taps, total

    def _delay(self, way: tuple[int, int], most: int) -> int:
        """Clocks from TDI to TDO, 0 if no 0 comes through at all. It leaves ones in the registers."""
        ones = (1 << most) - 1
        self._scan(way, ones << most + 1 | ones, 2 * most + 1, range(most, 2 * most + 1))
        missing = ~self.flush()[0] & (1 << most + 1) - 1
        return (missing & -missing).bit_length() - 1 if missing else 0

    def _guessed(self, total: int) -> list[int]:
        return [total] if self.taps == 1 else [5] * self.taps

    def _mismatch(self, total: int) -> str:
        lengths = ", ".join(map(str, self.ir_lengths))
        taps = f"{self.taps} TAP" + ("s" if self.taps > 1 else "")
        return (
            f"the scan chain has {taps} with {total} bits of instruction registers, not "
            f"{len(self.ir_lengths)} ({lengths} bits): correct `ir_lengths`, from TDO on"
        )
