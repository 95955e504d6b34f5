"""The JTAG side of the simulated target: a TAP controller whose data registers are a RISC-V Debug Transport Module.

Sources: IEEE Std 1149.1 (the sixteen states, TDO changes at the falling edge of TCK); RISC-V Debug Specification 1.0,
chapter 6.1 "JTAG Debug Transport Module" (IDCODE, dtmcs, dmi, BYPASS). Versions 0.13 and 1.0 describe the same DTM, but
for dtmcs.errinfo, which is new in 1.0.

Whole scans go through `Tap.shift` at once: OpenOCD sends one scan per memory word, so the time of a scan is what a user
waits for.
"""

from typing import Protocol

(
    TEST_LOGIC_RESET, RUN_TEST_IDLE,
    SELECT_DR, CAPTURE_DR, SHIFT_DR, EXIT1_DR, PAUSE_DR, EXIT2_DR, UPDATE_DR,
    SELECT_IR, CAPTURE_IR, SHIFT_IR, EXIT1_IR, PAUSE_IR, EXIT2_IR, UPDATE_IR,
) = range(16)  # fmt: skip

# The state after a rising edge of TCK, for TMS 0 and 1.
NEXT_STATE = (
    (RUN_TEST_IDLE, TEST_LOGIC_RESET),
    (RUN_TEST_IDLE, SELECT_DR),
    (CAPTURE_DR, SELECT_IR),
    (SHIFT_DR, EXIT1_DR),
    (SHIFT_DR, EXIT1_DR),
    (PAUSE_DR, UPDATE_DR),
    (PAUSE_DR, EXIT2_DR),
    (SHIFT_DR, UPDATE_DR),
    (RUN_TEST_IDLE, SELECT_DR),
    (CAPTURE_IR, TEST_LOGIC_RESET),
    (SHIFT_IR, EXIT1_IR),
    (SHIFT_IR, EXIT1_IR),
    (PAUSE_IR, UPDATE_IR),
    (PAUSE_IR, EXIT2_IR),
    (SHIFT_IR, UPDATE_IR),
    (RUN_TEST_IDLE, SELECT_DR),
)

IR_LENGTH = 5
IR_IDCODE, IR_DTMCS, IR_DMI = 0x01, 0x10, 0x11  # every other value selects BYPASS
IDCODE = 0x20000913  # version 2, part 0, manufacturer 0x489 (SiFive's code, which OpenOCD examples use), bit 0 set

ABITS = 7
DMI_LENGTH = ABITS + 34
DMI_NOP, DMI_READ, DMI_WRITE = 0, 1, 2
DTM_VERSION = 1  # of 0.13 and 1.0
DTMCS_DMIHARDRESET = 1 << 17
ERRINFO_UNKNOWN = 4


class DebugModuleInterface(Protocol):
    """What hangs on the DMI. Accesses are answered at once and never fail, as the Debug Specification allows."""

    def read(self, address: int) -> int: ...

    def write(self, address: int, value: int) -> None: ...


class Dtm:
    """The Debug Transport Module: what Capture-DR loads for each instruction, and what Update-DR does with it."""

    def __init__(self, dmi: DebugModuleInterface, *, idcode: int = IDCODE, has_errinfo: bool = True) -> None:
        self._dmi = dmi
        self.idcode = idcode
        errinfo = ERRINFO_UNKNOWN if has_errinfo else 0
        self.dtmcs = errinfo << 18 | ABITS << 4 | DTM_VERSION  # idle 0, dmistat 0: a DMI access is never busy nor fails
        self._result = 0

    def capture(self, ir: int) -> tuple[int, int]:
        """Value and length in bits of the data register that *ir* selects."""
        if ir == IR_DMI:
            return self._result, DMI_LENGTH
        if ir == IR_DTMCS:
            return self.dtmcs, 32
        if ir == IR_IDCODE:
            return self.idcode, 32
        return 0, 1

    def update(self, ir: int, value: int) -> None:
        if ir == IR_DMI:
            op = value & 3
            address = value >> 34
            if op == DMI_READ:
                self._result = address << 34 | self._dmi.read(address) << 2
            elif op == DMI_WRITE:
                self._dmi.write(address, value >> 2 & 0xFFFFFFFF)
                self._result = value & ~3
        elif ir == IR_DTMCS and value & DTMCS_DMIHARDRESET:
            self._result = 0


class Tap:
    """A TAP controller with a 5-bit instruction register. `tdo` is the level of that pin."""

    def __init__(self, dtm: Dtm) -> None:
        self._dtm = dtm
        self.tdo = 0
        self.reset()

    def reset(self) -> None:
        """TRST, or five clocks with TMS high: Test-Logic-Reset, instruction IDCODE."""
        self.state = TEST_LOGIC_RESET
        self.ir = IR_IDCODE
        self._shifter, self._length = 0, 1

    def rise(self, tms: int, tdi: int) -> None:
        """A rising edge of TCK with these levels at the pins."""
        state = self.state
        if state in (SHIFT_DR, SHIFT_IR):
            self._shifter = self._shifter >> 1 | tdi << self._length - 1
        elif state == CAPTURE_DR:
            self._shifter, self._length = self._dtm.capture(self.ir)
        elif state == CAPTURE_IR:
            self._shifter, self._length = 1, IR_LENGTH  # 1149.1: the two low bits are 01
        state = self.state = NEXT_STATE[state][tms]
        if state == UPDATE_DR:
            self._dtm.update(self.ir, self._shifter)
        elif state == UPDATE_IR:
            self.ir = self._shifter
        elif state == TEST_LOGIC_RESET:
            self.ir = IR_IDCODE

    def fall(self) -> None:
        """A falling edge of TCK: TDO takes the next bit."""
        if self.state in (SHIFT_DR, SHIFT_IR):
            self.tdo = self._shifter & 1

    def shift(self, tdi: int, count: int, leave: bool) -> int:
        """*count* clocks (falling, then rising edge) in a Shift state, the last with TMS = *leave*.

        *tdi* holds the bits that go in, first in bit 0. Returns those that TDO showed before each rising edge likewise.
        """
        out = self._shifter | tdi << self._length
        self._shifter = out >> count
        if leave:
            self.state = NEXT_STATE[self.state][1]
        out &= (1 << count) - 1
        self.tdo = out >> count - 1
        return out
