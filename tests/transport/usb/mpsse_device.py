"""An FT2232H with a TAP at channel A, written from its documentation.

Ref: FTDI AN_108 "Command Processor for MPSSE and MCU Host Bus Emulation Modes", chapters 2 (bad commands) and 3 (the
commands); DS_FT2232H for buffers and packets. Control requests as Linux's drivers/usb/serial/ftdi_sio.h names them.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from tests.transport.usb.device_model import (
    STALL,
    configuration_descriptor,
    device_descriptor,
    interface_descriptor,
    standard,
)
from tests.transport.usb.esp_device import Wires

OUT, IN = 0x02, 0x81
STATUS = b"\x32\x60"
DATA_ROOM = 510
# Bits of the commands that clock data (3.2): write at the falling edge, bits, read at the falling edge, LSB first, ...
WRITE_FALLING, BIT_MODE, READ_FALLING, LSB_FIRST, WRITE_TDI, READ_TDO, WRITE_TMS = (1 << n for n in range(7))
_T = TypeVar("_T")
Waiting = Generator[None, None, _T]
"""Work that waits for the host now and then."""


class MpsseDevice:
    """A `UsbDevice`. *room*: bytes of its buffer for what the host is to read."""

    packet = 512

    def __init__(self, wires: Wires, serial: str = "FT1234", room: int = 4096) -> None:
        described = bytearray(device_descriptor(0x0403, 0x6010))
        described[12:14] = b"\x00\x07"  # bcdDevice of the FT2232H
        self.device = bytes(described)
        self.configuration = configuration_descriptor(
            interface_descriptor(0, (0xFF, 0xFF, 0xFF), (IN, 2, 512), (OUT, 2, 512)),
            interface_descriptor(1, (0xFF, 0xFF, 0xFF), (0x83, 2, 512), (0x04, 2, 512)),
        )
        self.strings = ("FTDI", "Dual RS232-HS", serial)
        self.wires, self.room = wires, room
        self.mode = 0
        self.low = self.high = (0, 0)
        self.divisor = 0
        self.clocks = 0
        self._commands = bytearray()
        self._answer = bytearray()
        self._work: Waiting[None] = self._run()

    def control(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes | None:
        if request_type == 0x40:
            if request == 0 and index == 1:
                self._purge(value)
            elif request == 11:
                self.mode = value >> 8
            return b"" if request <= 11 else STALL
        if (request_type, request) in ((0xC0, 5), (0xC0, 10), (0xC0, 0x90)):  # modem status, latency, EEPROM
            return bytes(length)
        answer = standard(self, self.strings, request_type, request, value)
        return answer if answer is STALL else answer[:length]

    def out(self, endpoint: int, packet: bytes) -> bool:
        if endpoint != OUT:
            return True
        next(self._work)
        if len(self._commands) > 4096 - 512 or len(self._answer) >= self.room:
            return False
        self._commands += packet
        next(self._work)
        return True

    def into(self, endpoint: int, length: int) -> bytes | None:
        if endpoint != IN:
            return STATUS
        next(self._work)
        data = bytes(self._answer[: min(DATA_ROOM, length - 2)])
        del self._answer[: len(data)]
        next(self._work)
        return STATUS + data

    def _purge(self, what: int) -> None:
        if what in (0, 1):
            self._answer.clear()
        if what in (0, 2):
            self._commands.clear()
            self._work = self._run()

    # The command processor. A command that is not whole yet, or has no room for its answer, waits.

    def _run(self) -> Waiting[None]:
        while True:
            opcode = yield from self._byte()
            if opcode < 0x80:
                yield from self._data(opcode)
            elif opcode in (0x80, 0x82):
                levels = yield from self._byte()
                outputs = yield from self._byte()
                if opcode == 0x80:
                    self.low = levels, outputs
                else:
                    self.high = levels, outputs
            elif opcode in (0x81, 0x83):
                yield from self._say(self.wires.tdo << 2 if opcode == 0x81 else 0)
            elif opcode == 0x86:
                low = yield from self._byte()
                self.divisor = low | (yield from self._byte()) << 8
            elif opcode not in (0x84, 0x85, 0x87, 0x8A, 0x8B, 0x8C, 0x8D, 0x96, 0x97):
                yield from self._say(0xFA)
                yield from self._say(opcode)

    def _byte(self) -> Waiting[int]:
        while not self._commands:
            yield
        byte = self._commands[0]
        del self._commands[0]
        return byte

    def _say(self, byte: int) -> Waiting[None]:
        while len(self._answer) >= self.room:
            yield
        self._answer.append(byte)

    def _data(self, opcode: int) -> Waiting[None]:
        assert opcode & LSB_FIRST and opcode & WRITE_FALLING and not opcode & READ_FALLING, "JTAG is clocked so"
        length = yield from self._byte()
        if opcode & WRITE_TMS:
            assert length < 7, "at most seven bits"
            levels = yield from self._byte()
            yield from self._clocked(opcode, length + 1, lambda n: (levels >> n & 1, levels >> 7))
        elif opcode & BIT_MODE:
            bits = yield from (self._byte() if opcode & WRITE_TDI else self._none())
            yield from self._clocked(opcode, length + 1, lambda n: (0, bits >> n & 1))
        else:
            length |= (yield from self._byte()) << 8
            for _ in range(length + 1):
                byte = yield from (self._byte() if opcode & WRITE_TDI else self._none())
                yield from self._clocked(opcode, 8, lambda n, byte=byte: (0, byte >> n & 1))  # type: ignore[misc]

    def _none(self) -> Waiting[int]:
        yield from ()
        return 0

    def _clocked(self, opcode: int, count: int, levels: Callable[[int], tuple[int, int]]) -> Waiting[None]:
        """TDO is shifted into a byte from the top. *levels*: of TMS and TDI at each clock."""
        read = 0
        for n in range(count):
            read = read >> 1 | self.wires.tdo << 7
            self.clocks += 1
            self.wires.rise(*levels(n))
            self.wires.fall()
        if opcode & READ_TDO:
            yield from self._say(read)
