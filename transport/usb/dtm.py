"""The JTAG Debug Transport Module: many accesses to the Debug Module Interface in one go, each done exactly once.

A scan of `dmi` starts an access and brings the result of the one before it, so a burst of n accesses takes n + 1 scans,
which go out without waiting for any of them. If one is not over when the next scan comes, the DTM says so (busy),
ignores all that follow until it is told to go on, and finishes the one it was at: its result is fetched then, the
scans are spaced out, and the burst goes on behind it.

Ref: RISC-V Debug Specification 1.0, section 6.1 "JTAG Debug Transport Module" (6.1.4 dtmcs, 6.1.5 dmi); 0.13.2.
"""

import time
from collections.abc import Sequence

from rvtrace_gdb.transport.usb.errors import DebugModuleLost, DmiFailed, JtagProblem
from rvtrace_gdb.transport.usb.jtag import Chain

Access = tuple[int, int | None]
"""(register of the debug module, value to write), or (register, None) to read it."""

IR_DTMCS, IR_DMI = 0x10, 0x11
DMCONTROL, DMACTIVE = 0x10, 1
NOP, READ, WRITE = 0, 1, 2
OK, FAILED, BUSY = 0, 2, 3
DMIRESET = 1 << 16
VERSION_MASK, VERSION_1 = 0xF, 1
AT_ONCE = 4096  # accesses of one flush
PATIENCE = 2.0  # seconds for one access to be over
MOST_IDLE = 1 << 14  # clocks between two scans


class Dtm:
    """The DTM of one TAP. All methods raise `UsbLost` leaves and DmiFailed."""

    def __init__(self, chain: Chain) -> None:
        self._chain, self.name = chain, chain.name
        dtmcs = self._read_dtmcs()
        version = dtmcs & VERSION_MASK
        if dtmcs in (0, 0xFFFFFFFF) or version != VERSION_1:
            raise JtagProblem(
                self.name,
                f"dtmcs reads {dtmcs:#010x}, which is no debug transport of the Debug Specification 0.13 or 1.0: "
                "is the chip a RISC-V, and is `tap` the right one?",
            )
        self.abits = dtmcs >> 4 & 0x3F
        self.idle = dtmcs >> 12 & 7
        self._go_on()

    def run(self, accesses: Sequence[Access]) -> list[int]:
        """Do them in order. What was read, 0 for a write.

        DmiFailed carries nothing of the ones before it: they have been done all the same.
        """
        results: list[int] = []
        while len(results) < len(accesses):
            burst = accesses[len(results) : len(results) + AT_ONCE]
            for (address, value), answer in zip(burst, self._burst(burst), strict=True):
                status = answer & 3
                if status == BUSY:
                    answer = self._finished(address)
                elif status != OK:
                    self._go_on()
                    raise DmiFailed(self.name, address, "failed")
                results.append(0 if value is not None else answer >> 2)
                if status == BUSY:
                    break  # those behind it were ignored
        return results

    def watched(self, accesses: Sequence[Access]) -> list[int]:
        """As `run`, of a debug module that is active, and still is behind them: what came meanwhile is good.

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

    def _burst(self, accesses: Sequence[Access]) -> list[int]:
        """For each access its status (two bits) and, of a read, the 32 bits behind it."""
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
        """The result of the access that was busy, when it is there. From now on scans are farther apart."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.idle = min(2 * self.idle + 1, MOST_IDLE)
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
                raise DmiFailed(self.name, address, f"is not over after {PATIENCE:g} s: is the target powered?")

    def _go_on(self) -> None:
        """Clear the sticky status."""
        self._chain.ir(IR_DTMCS)
        self._chain.dr(DMIRESET, 32)
        self._chain.ir(IR_DMI)
        self._chain.flush()

    def _read_dtmcs(self) -> int:
        self._chain.ir(IR_DTMCS)
        self._chain.dr(0, 32, 32)
        return self._chain.flush()[0]
