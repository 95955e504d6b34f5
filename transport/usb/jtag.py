"""The interface of JTAG adapters, whatever their protocol, and the Debug Transport Module behind them.

An adapter (`Jtag`) queues clocks, and a flush does them all. `Dtm` does many accesses to the Debug Module Interface in
one burst, each exactly once. A scan of `dmi` starts an access and returns the result of the previous one, so a burst of
n accesses takes n + 1 scans, which are sent without waiting for any of them. If an access is not over when the next
scan comes, the DTM reports busy, ignores all scans until that is cleared, and finishes the access in progress: its
result is then fetched, the scans are spaced out, and the burst continues after it.

Ref: IEEE Std 1149.1: TMS and TDI are sampled at the rising edge of TCK, TDO changes at the falling one; RISC-V Debug
Specification 1.0, section 6.1 "JTAG Debug Transport Module" (6.1.4 dtmcs, 6.1.5 dmi); 0.13.2.
"""

import time
from collections.abc import Sequence
from typing import Protocol

from rvtrace_gdb.transport.usb.errors import DebugModuleLost, DmiFailed, JtagProblem

# TMS, first bit lowest, and how many bits: between Run-Test/Idle and the Shift states, and to it from anywhere.
TO_IDLE = 0b011111, 6
IDLE_TO_SHIFT_DR = 0b001, 3
IDLE_TO_SHIFT_IR = 0b0011, 4
EXIT_TO_IDLE = 0b01, 2
NOTHING = range(0)
_MOST_TAPS, _MOST_IR = 32, 256  # bits


class Jtag(Protocol):
    """An adapter. *name*: for messages. All methods raise `UsbLost` leaves; after one, create another adapter."""

    name: str

    def move(self, tms: int, count: int) -> None:
        """Queue *count* clocks with the bits of *tms*, the lowest first, and TDI 0."""
        ...

    def shift(self, tdi: int, count: int, captured: range = NOTHING) -> None:
        """Queue *count* clocks in a Shift state, the last leaving it. TDO of the *captured* clocks is an answer of
        `flush`.
        """
        ...

    def flush(self) -> list[int]:
        """Do everything in the queue. Return the answers of shifts that captured something, in order, first bit lowest.
        """
        ...

    def close(self) -> None: ...


class Chain:
    """One TAP of a scan chain, with the others in BYPASS. Between calls the chain is in Run-Test/Idle.

    *ir_lengths*: those of all TAPs, beginning at TDO. None: they are measured if there is one TAP, or else taken to be
    5 as RISC-V has it. *position*: the number of the TAP. Closes the adapter if there is no such TAP.
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
        """Return how many TAPs there are, and the bits of all their instruction registers: the delay of a 0 after ones.
        """
        total = self._delay(IDLE_TO_SHIFT_IR, _MOST_IR)
        taps = self._delay(IDLE_TO_SHIFT_DR, _MOST_TAPS)  # the ones that were shifted in: all are in BYPASS
        if not total or not taps:
            raise JtagProblem(
                self.name, "JTAG does not answer (TDO does not follow TDI): is the board powered, and out of reset?"
            )
        return taps, total

    def _delay(self, way: tuple[int, int], most: int) -> int:
        """Return the clocks from TDI to TDO, 0 if no 0 comes through at all. This leaves ones in the registers."""
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


DmiAccess = tuple[int, int | None]
"""A register of the debug module and the value to write, or None to read it."""

IR_IDCODE, IR_DTMCS, IR_DMI = 0x01, 0x10, 0x11
DMCONTROL, DMACTIVE = 0x10, 1
NOP, READ, WRITE = 0, 1, 2
OK, FAILED, BUSY = 0, 2, 3
DMIRESET = 1 << 16
VERSION_MASK, VERSION_1 = 0xF, 1
BURST_ACCESSES = 4096  # accesses of one flush
PATIENCE = 2.0  # seconds for one access to be over
MAX_IDLE = 1 << 14  # clocks between two scans


class Dtm:
    """The DTM of one TAP. All methods raise `UsbLost` leaves and DmiFailed."""

    def __init__(self, chain: Chain) -> None:
        self._chain, self.name = chain, chain.name
        dtmcs = self._read_dtmcs()
        version = dtmcs & VERSION_MASK
        if dtmcs in (0, 0xFFFFFFFF) or version != VERSION_1:
            raise JtagProblem(
                self.name,
                f"dtmcs reads {dtmcs:#010x}, which is not a debug transport of the Debug Specification 0.13 or 1.0: "
                "is the chip a RISC-V, and is `tap` the right one?",
            )
        self.abits = dtmcs >> 4 & 0x3F
        self.idle = dtmcs >> 12 & 7
        self._go_on()

    def run(self, accesses: Sequence[DmiAccess]) -> list[int]:
        """Do the accesses in order. Return what was read, 0 for a write.

        If DmiFailed is raised, the accesses before it have been done, but their results are lost.
        """
        results: list[int] = []
        while len(results) < len(accesses):
            burst = accesses[len(results) : len(results) + BURST_ACCESSES]
            for (address, value), answer in zip(burst, self._burst(burst), strict=True):
                status = answer & 3
                if status == BUSY:
                    answer = self._finished(address)
                elif status != OK:
                    self._go_on()
                    raise DmiFailed(self.name, address, "failed")
                results.append(0 if value is not None else answer >> 2)
                if status == BUSY:
                    break  # those after it were ignored
        return results

    def run_checked(self, accesses: Sequence[DmiAccess]) -> list[int]:
        """Do the same as `run` and check that the debug module is active after the accesses: then their results are
        good.

        A target that is reset, or without power, answers zeros. Raises DebugModuleLost.
        """
        *answers, dmcontrol = self.run([*accesses, (DMCONTROL, None)])
        if not dmcontrol & DMACTIVE:
            raise DebugModuleLost(self.name)
        return answers

    def read(self, address: int) -> int:
        return self.run([(address, None)])[0]

    def write(self, address: int, value: int) -> None:
        self.run([(address, value)])

    def close(self) -> None:
        self._chain.close()

    def _burst(self, accesses: Sequence[DmiAccess]) -> list[int]:
        """Return for each access its status (two bits) and, for a read, the 32 bits after it."""
        bits = 0
        for address, value in accesses:
            if value is None:
                self._scan(READ, address, 0, bits)
            else:
                self._scan(WRITE, address, value, bits)
            bits = 34 if value is None else 2
        self._scan(NOP, 0, 0, bits)
        return self._chain.flush()

    def _scan(self, op: int, address: int, data: int, captured: int) -> None:
        self._chain.dr(op | data << 2 | address << 34, self.abits + 34, captured)
        self._chain.idle(self.idle)

    def _finished(self, address: int) -> int:
        """Return the result of the access that was busy, when it is over. Later scans are farther apart."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.idle = min(2 * self.idle + 1, MAX_IDLE)
            self._go_on()
            self._chain.idle(self.idle)
            self._scan(NOP, 0, 0, 34)
            answer = self._chain.flush()[0]
            if answer & 3 == OK:
                return answer
            if answer & 3 != BUSY:
                self._go_on()
                raise DmiFailed(self.name, address, "failed")
            if time.monotonic() > deadline:
                self._go_on()
                raise DmiFailed(self.name, address, f"did not finish within {PATIENCE:g} s: is the target powered?")

    def _go_on(self) -> None:
        """Clear the sticky status."""
        self._chain.ir(IR_DTMCS)
        self._chain.dr(DMIRESET, 32)
        self._chain.ir(IR_DMI)
        self._chain.flush()

    def idcode(self) -> int:
        """Return the IDCODE of the TAP (IEEE 1149.1, chapter 12); 0 if it has none: its BYPASS register answers then.
        """
        self._chain.ir(IR_IDCODE)
        self._chain.dr(0, 32, 32)
        self._chain.ir(IR_DMI)
        found = self._chain.flush()[0]
        return found if found & 1 else 0

    def _read_dtmcs(self) -> int:
        self._chain.ir(IR_DTMCS)
        self._chain.dr(0, 32, 32)
        return self._chain.flush()[0]
