"""OpenOCD's remote_bitbang protocol: one character per change of the JTAG pins, one character back per sample of TDO.

Source: OpenOCD, doc/manual/jtag/drivers/remote_bitbang.txt. `0`-`7` set TCK (4), TMS (2), TDI (1); `R` samples TDO;
`r` `s` `t` `u` set TRST (2) and SRST (1), high meaning asserted; `B` `b` blink; `Q` ends the connection. Anything else
is ignored.
"""

import re
from collections.abc import Callable

from rvtrace_gdb.transport.simulated.tap import SHIFT_DR, SHIFT_IR, Tap

# Clocks in a Shift state, TMS low but for the last: with TDO sampled between the edges, and without.
_SAMPLED = re.compile(rb"(?:[0-3]R[45])*(?:[0-3]R[67])?")
_UNSAMPLED = re.compile(rb"(?:[0-3][45])*(?:[0-3][67])?")
_TDI = bytes.maketrans(b"4567", b"0101")

_R, _Q = ord("R"), ord("Q")
_RESETS = {ord(c): n for n, c in enumerate("rstu")}


class Pins:
    """The TAP's pins, driven by characters. They may arrive in pieces of any size: the replies are the same.

    *fast* False takes every character by itself: the plain reading of the protocol, kept to check and to measure the
    other one against. *system_reset* is called with the level of SRST when it changes.
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
        """The samples of TDO that *data* asks for. What follows a `Q` is not looked at; `quit` is then set."""
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
        """As many clocks in the Shift state as follow one another from *start*, at once. Returns where they end."""
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
