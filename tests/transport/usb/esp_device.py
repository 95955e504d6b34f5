"""The USB-JTAG adapter inside of an ESP32-C6, with any TAP behind it, written from its documentation.

Ref: ESP32-C6 Technical Reference Manual, 32.3.3 "JTAG Command Processor", 32.3.4 (the example), 32.3.5 "Response
Capture Unit", 32.3.6 "Control Transfer Requests". The descriptors are from OpenOCD's udev rules and driver
(interface class ff/ff/01, 303a:1001); TCK falls, then rises, and TDO is taken before it rises.
"""

import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tests.transport.usb.device_model import (
    STALL,
    configuration_descriptor,
    device_descriptor,
    interface_descriptor,
    standard,
)

CDC = interface_descriptor(0, (2, 2, 0), (0x82, 3, 64))
CDC_DATA = interface_descriptor(1, (10, 2, 0), (0x01, 2, 64), (0x81, 2, 64))
JTAG = interface_descriptor(2, (0xFF, 0xFF, 1), (0x02, 2, 64), (0x83, 2, 64))
JTAG_OUT, JTAG_IN = 0x02, 0x83
CAPABILITIES = struct.pack("<BBBBHHH", 1, 10, 1, 8, 4800, 1, 255)  # table 32.3-5
BUFFER = 64


class Wires(Protocol):
    """A TAP, by its pins."""

    @property
    def tdo(self) -> int: ...

    def fall(self) -> None: ...

    def rise(self, tms: int, tdi: int) -> None: ...


class EspDevice:
    """A `UsbDevice`. *reset*: is told the level of SRST."""

    packet = 64

    def __init__(
        self, wires: Wires, serial: str = "60:55:F9:00:00:01", reset: Callable[[bool], None] = lambda level: None
    ) -> None:
        self.device = device_descriptor(0x303A, 0x1001)
        self.configuration = configuration_descriptor(CDC, CDC_DATA, JTAG)
        self.strings = ("Espressif", "USB JTAG/serial debug unit", serial)
        self.wires, self.reset = wires, reset
        self.divider = 2
        self.clocks = 0
        self.srst = 0
        self._commands: deque[int] = deque()
        self._times, self._last, self._rep_count = 0, 0, 0
        self._bits: list[int] = []
        self._filling = bytearray()
        self._waiting: bytes | None = None  # the other buffer, which the host may read
        self._flushing = False

    # USB

    def control(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes | None:
        if (request_type, request, value) == (0x80, 6, 0x2000):
            return CAPABILITIES[:length]
        if (request_type, request) == (0x40, 0):
            self.divider = value
            return b""
        if (request_type, request) == (0x40, 1):
            self._set_io(value)
            return b""
        if (request_type, request) == (0xC0, 2):
            return bytes([self.wires.tdo])
        if (request_type, request) == (0x40, 3):  # VEND_JTAG_SET_CHIPID, of the ESP-Prog-2; OpenOCD may send it
            return b""
        answer = standard(self, self.strings, request_type, request, value)
        return answer if answer is STALL else answer[:length]

    def out(self, endpoint: int, packet: bytes) -> bool:
        if endpoint != JTAG_OUT:
            return True
        self._work()
        if self._commands or self._flushing:
            return False
        self._commands.extend(nibble for byte in packet for nibble in (byte >> 4, byte & 15))
        self._work()
        return True

    def into(self, endpoint: int, length: int) -> bytes | None:
        if endpoint != JTAG_IN:
            return None
        self._work()
        packet, self._waiting = self._waiting, None
        self._work()
        return packet

    # The command processor.

    def _work(self) -> None:
        """Until there is nothing to do, or no room for what is captured."""
        while self._room() and (self._times or self._commands):
            if self._times:
                self._times -= 1
                self._clock(self._last)
            else:
                self._command(self._commands.popleft())

    def _command(self, command: int) -> None:
        if command >= 0xC:
            self._times = (command & 3) * 4**self._rep_count
            assert self._last < 8 or not self._times, "CMD_REP of CMD_FLUSH makes the device unresponsive (32.3.3)"
            self._rep_count += 1
            return
        self._rep_count, self._last = 0, command
        if command < 8:
            self._clock(command)
        elif command in (8, 9):
            self._set_srst(command & 1)
        elif command == 0xA:
            self._flushing = True

    def _clock(self, command: int) -> None:
        cap, tms, tdi = command >> 2 & 1, command >> 1 & 1, command & 1
        self.clocks += 1
        self.wires.fall()
        if cap:
            self._bits.append(self.wires.tdo)
            if len(self._bits) == 8:
                self._byte()
        self.wires.rise(tms, tdi)

    # The response capture unit.

    def _byte(self) -> None:
        self._filling.append(sum(bit << n for n, bit in enumerate(self._bits)))
        self._bits.clear()

    def _room(self) -> bool:
        """Hand over the buffer that is filled if it must be. False: it must, and the other is not read yet."""
        if self._flushing and self._bits:
            self._byte()
        if len(self._filling) == BUFFER or (self._flushing and self._filling):
            if self._waiting is not None:
                return False
            self._waiting = bytes(self._filling)
            self._filling.clear()
        self._flushing = False
        return True

    # Lines that are set directly.

    def _set_io(self, value: int) -> None:
        tdi, tms, tck, _trst, srst = (value >> n & 1 for n in range(5))
        if tck:
            self.wires.rise(tms, tdi)
        else:
            self.wires.fall()
        self._set_srst(srst)

    def _set_srst(self, level: int) -> None:
        if level != self.srst:
            self.srst = level
            self.reset(bool(level))


class ScanChain:
    """Several TAPs: TDI goes into the last, TDO comes out of the first."""

    def __init__(self, taps: Sequence[Wires]) -> None:
        self._taps = taps

    @property
    def tdo(self) -> int:
        return self._taps[0].tdo

    def fall(self) -> None:
        for tap in self._taps:
            tap.fall()

    def rise(self, tms: int, tdi: int) -> None:
        levels = [*[tap.tdo for tap in self._taps[1:]], tdi]
        for tap, level in zip(self._taps, levels, strict=True):
            tap.rise(tms, level)
