"""The JTAG side of the simulated target: a TAP controller, and OpenOCD's remote_bitbang protocol for its pins.

The data registers of the TAP controller are a RISC-V Debug Transport Module. Versions 0.13 and 1.0 describe the same
DTM, but for dtmcs.errinfo, which is new in 1.0. Whole scans go through `Tap.shift` at once: OpenOCD sends one scan
per memory word, so the time of a scan is what a user waits for.

remote_bitbang has one character per change of the JTAG pins, and one character back per sample of TDO. `0`-`7` set
TCK (4), TMS (2), TDI (1); `R` samples TDO; `r` `s` `t` `u` set TRST (2) and SRST (1), high meaning asserted; `B` `b`
blink; `Q` ends the connection. Anything else is ignored.

Sources: IEEE Std 1149.1 (the sixteen states, TDO changes at the falling edge of TCK); RISC-V Debug Specification 1.0,
chapter 6.1 "JTAG Debug Transport Module" (IDCODE, dtmcs, dmi, BYPASS); OpenOCD,
doc/manual/jtag/drivers/remote_bitbang.txt.
"""

import re
from collections.abc import Callable
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
    """The device on the DMI. Accesses are answered at once and never fail, as the Debug Specification allows."""

    def read(self, address: int) -> int: ...

    def write(self, address: int, value: int) -> None: ...


class DtmRegisters:
    """The Debug Transport Module: what Capture-DR loads for each instruction, and what Update-DR does with it."""

    def __init__(self, dmi: DebugModuleInterface, *, idcode: int = IDCODE, has_errinfo: bool = True) -> None:
        self._dmi = dmi
        self.idcode = idcode
        errinfo = ERRINFO_UNKNOWN if has_errinfo else 0
        self.dtmcs = errinfo << 18 | ABITS << 4 | DTM_VERSION  # idle 0, dmistat 0: a DMI access is never busy nor fails
        self._result = 0

    def capture(self, ir: int) -> tuple[int, int]:
        """Return value and length in bits of the data register that *ir* selects."""
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

    def __init__(self, dtm: DtmRegisters) -> None:
        self._dtm = dtm
        self.tdo = 0
        self.reset()

    def reset(self) -> None:
        """Enter Test-Logic-Reset with the instruction IDCODE: TRST, or five clocks with TMS high."""
        self.state = TEST_LOGIC_RESET
        self.ir = IR_IDCODE
        self._shifter, self._length = 0, 1

    def rise(self, tms: int, tdi: int) -> None:
        """Process a rising edge of TCK with these levels at the pins."""
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
        """Process a falling edge of TCK: TDO takes the next bit."""
        if self.state in (SHIFT_DR, SHIFT_IR):
            self.tdo = self._shifter & 1

    def shift(self, tdi: int, count: int, leave: bool) -> int:
        """Do *count* clocks (falling, then rising edge) in a Shift state, the last with TMS = *leave*.

        *tdi* holds the input bits, the first in bit 0. Returns the bits that TDO showed before each rising edge
        likewise.
        """
        out = self._shifter | tdi << self._length
        self._shifter = out >> count
        if leave:
            self.state = NEXT_STATE[self.state][1]
        out &= (1 << count) - 1
        self.tdo = out >> count - 1
        return out


# Clocks in a Shift state, TMS low but for the last: with TDO sampled between the edges, and without.
_SAMPLED = re.compile(rb"(?:[0-3]R[45])*(?:[0-3]R[67])?")
_UNSAMPLED = re.compile(rb"(?:[0-3][45])*(?:[0-3][67])?")
_TDI = bytes.maketrans(b"4567", b"0101")

_R, _Q = ord("R"), ord("Q")
_RESETS = {ord(c): n for n, c in enumerate("rstu")}


class TapPins:
    """The TAP's pins, driven by characters. They may arrive in pieces of any size: the replies are the same.

    *fast* False processes every character by itself: the literal reading of the protocol, kept to check the fast one
    and to measure it. *system_reset* is called with the level of SRST when it changes.
    """

    def __init__(
        self, tap: Tap, system_reset: Callable[[bool], None] = lambda level: None, *, fast: bool = True
    ) -> None:
        self.tap = tap
        self._system_reset = system_reset
        self._fast = fast
        self._tck = 0
        self._srst = 0
        self.quit = False

    def feed(self, data: bytes) -> bytes:
        """Return the samples of TDO that *data* requests. What follows a `Q` is ignored; `quit` is then set."""
        tap = self.tap
        out: list[str] = []
        position, end = 0, len(data)
        while position < end and not self.quit:
            if self._fast and tap.state in (SHIFT_DR, SHIFT_IR):
                after = self._scan(data, position, out)
                if after != position:
                    position = after
                    continue
            c = data[position]
            position += 1
            if 48 <= c <= 55:
                c -= 48
                tck = c >> 2
                if tck != self._tck:
                    self._tck = tck
                    if tck:
                        tap.rise(c >> 1 & 1, c & 1)
                    else:
                        tap.fall()
            elif c == _R:
                out.append("1" if tap.tdo else "0")
            else:
                self._other(c)
        return "".join(out).encode()

    def _scan(self, data: bytes, start: int, out: list[str]) -> int:
        """Do as many clocks in the Shift state as follow one another from *start*, at once. Return where they end."""
        end, step = _SAMPLED.match(data, start).end(), 3  # type: ignore[union-attr]  # both match at least nothing
        if end == start:
            end, step = _UNSAMPLED.match(data, start).end(), 2  # type: ignore[union-attr]
            if end == start:
                return end
        rising = data[start + step - 1 : end : step]
        count = len(rising)
        tdo = self.tap.shift(int(rising.translate(_TDI)[::-1], 2), count, rising[-1] >= 54)
        if step == 3:
            out.append(format(tdo, f"0{count}b")[::-1])
        self._tck = 1
        return end

    def _other(self, c: int) -> None:
        if c == _Q:
            self.quit = True
        elif c in _RESETS:
            if _RESETS[c] & 2:
                self.tap.reset()
            srst = _RESETS[c] & 1
            if srst != self._srst:
                self._srst = srst
                self._system_reset(bool(srst))
