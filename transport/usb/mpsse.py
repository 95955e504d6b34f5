"""FTDI's MPSSE as JTAG adapter: FT232H, FT2232H and FT4232H, which most boards and probes have.

Commands are bytes: bits or bytes out on TDI and in from TDO, bits out on TMS. Data comes back in packets, each with two
bytes of modem status before it. The chip stops when nothing is read from it, so a transfer requests no more than its
buffer holds.

Ref: FTDI AN_108 "Command Processor for MPSSE and MCU Host Bus Emulation Modes", AN_135 "MPSSE Basics"; the control
requests as in Linux, drivers/usb/serial/ftdi_sio.h.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Adapter
from rvtrace_gdb.transport.usb.device import TIMEOUT, DeviceQuery, open_interface
from rvtrace_gdb.transport.usb.errors import JtagProblem, UsbTimeout
from rvtrace_gdb.transport.usb.jtag import NOTHING
from rvtrace_gdb.transport.usb.pyusb import PyusbBackend

_VENDOR_OUT = 0x40
RESET, SET_LATENCY_TIMER, SET_BITMODE = 0, 9, 11
PURGE_RX, PURGE_TX = 1, 2
MODE_RESET, MODE_MPSSE = 0x0000, 0x0200
LATENCY = 2  # ms until a packet that is not full is sent

BYTES_OUT, BITS_OUT, BYTES, BITS = 0x19, 0x1B, 0x39, 0x3B  # out at the falling edge, in at the rising one, LSB first
TMS_OUT, TMS = 0x4B, 0x6B
SET_LOW, SET_HIGH, LOOPBACK_OFF, DIVISOR, SEND_NOW = 0x80, 0x82, 0x85, 0x86, 0x87
UNDIVIDED, NOT_3_PHASE, NOT_ADAPTIVE = 0x8A, 0x8D, 0x97
BAD_COMMAND, UNKNOWN = 0xAA, 0xFA  # the former is answered by the latter and itself
CLOCK = 60_000  # kHz
KHZ = 10_000
READ_BYTES = 500  # bytes requested by one transfer: half of the smallest buffer of these chips
WRITE_BYTES = 4096
TMS_BITS = 7  # of one command
STATUS_BYTES = 2


@dataclass(frozen=True)
class _MpsseCommand:
    data: bytes
    answer: int = 0  # bytes


class Mpsse:
    """A `Jtag`. *interface*: 0 is channel A. *layout*: levels and directions of the pins, None: those of *adapter*.
    *khz*: the frequency of TCK.
    """

    def __init__(
        self,
        serial: str | None = None,
        khz: int | None = None,
        interface: int = 0,
        layout: Sequence[int] | None = None,
        adapter: Adapter = ADAPTERS["mpsse"],
        backend: PyusbBackend | None = None,
    ) -> None:
        self._usb = open_interface(DeviceQuery(adapter.kind, adapter.ids, serial), lambda _: True, interface, backend)
        self.name = f"{adapter.kind} {self._usb.name}"
        self._commands: list[_MpsseCommand] = []
        self._answers: list[tuple[int, range]] = []  # clocks of each shift that captures, and which are wanted
        self._out_of_step = False
        try:
            self._set_up(khz or KHZ, layout or adapter.layout)
        except BaseException:
            self._usb.close()
            raise

    def move(self, tms: int, count: int) -> None:
        while count > 0:
            bits = min(count, TMS_BITS)
            self._commands.append(_MpsseCommand(bytes((TMS_OUT, bits - 1, tms & (1 << bits) - 1))))
            tms, count = tms >> bits, count - bits

    def shift(self, tdi: int, count: int, captured: range = NOTHING) -> None:
        reads = 1 if captured else 0
        whole, bits = divmod(count - 1, 8)
        if whole:
            head = bytes((BYTES if reads else BYTES_OUT, *(whole - 1).to_bytes(2, "little")))
            out = (tdi & (1 << 8 * whole) - 1).to_bytes(whole, "little")
            self._commands.append(_MpsseCommand(head + out, whole * reads))
        if bits:
            out = bytes((BITS if reads else BITS_OUT, bits - 1, tdi >> 8 * whole & (1 << bits) - 1))
            self._commands.append(_MpsseCommand(out, reads))
        last = tdi >> count - 1 & 1
        self._commands.append(_MpsseCommand(bytes((TMS if reads else TMS_OUT, 0, last << 7 | 1)), reads))
        if captured:
            self._answers.append((count, captured))

    def flush(self) -> list[int]:
        if self._out_of_step:
            raise JtagProblem(self.name, "an access was interrupted: open the adapter again")
        commands, answers = self._commands, self._answers
        self._commands, self._answers = [], []
        self._out_of_step = True
        received = b"".join(self._exchange(data, size) for data, size in _transfers(commands))
        self._out_of_step = False
        return list(_captured_values(received, answers))

    def close(self) -> None:
        self._usb.close()

    def _exchange(self, commands: bytes, size: int) -> bytes:
        self._usb.write(commands, "commands were sent")
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        deadline = time.monotonic() + TIMEOUT
        while len(received) < size:
            received += self._some(size - len(received))
            if time.monotonic() > deadline and len(received) < size:
                raise UsbTimeout(self._usb.name, "TDO was read", TIMEOUT)
        if len(received) != size:
            raise JtagProblem(self.name, f"{len(received)} bytes came back instead of {size}: plug it out and in")
        return bytes(received)

    def _some(self, size: int) -> bytes:
        """Read one transfer and remove the status at the start of each packet; packets with nothing else come all the
        time.
        """
        packet = self._usb.packet
        data = self._usb.read(-(-size // (packet - STATUS_BYTES)) * packet, "TDO was read")
        return b"".join(data[start + STATUS_BYTES : start + packet] for start in range(0, len(data), packet))

    def _set_up(self, khz: int, layout: Sequence[int]) -> None:
        index = self._usb.number + 1
        for request, value in (
            (RESET, 0),
            (SET_LATENCY_TIMER, LATENCY),
            (SET_BITMODE, MODE_RESET),
            (SET_BITMODE, MODE_MPSSE | 0xFF & layout[1]),
            (RESET, PURGE_RX),
            (RESET, PURGE_TX),
        ):
            self._usb.control(_VENDOR_OUT, request, value, index)
        self._synchronize()
        divisor = max(0, min(-(-CLOCK // (2 * max(khz, 1))) - 1, 0xFFFF))
        levels, outputs = layout
        self._usb.write(
            bytes((UNDIVIDED, NOT_ADAPTIVE, NOT_3_PHASE, LOOPBACK_OFF, DIVISOR, *divisor.to_bytes(2, "little")))
            + bytes((SET_LOW, levels & 0xFF, outputs & 0xFF, SET_HIGH, levels >> 8 & 0xFF, outputs >> 8 & 0xFF)),
            "it was set up",
        )

    def _synchronize(self) -> None:
        """Send an invalid command and read up to its answer: what comes before it is left from another program."""
        self._usb.write(bytes((BAD_COMMAND, SEND_NOW)), "it was set up")
        seen, deadline = b"", time.monotonic() + TIMEOUT
        while not seen.endswith(bytes((UNKNOWN, BAD_COMMAND))):
            seen += self._some(1)
            if time.monotonic() > deadline:
                raise JtagProblem(self.name, "it is not in MPSSE mode: plug it out and in")


def _transfers(commands: Sequence[_MpsseCommand]) -> Iterator[tuple[bytes, int]]:
    """Yield bytes to send, and how many come back."""
    data, size = bytearray(), 0
    for command in commands:
        if data and (size + command.answer > READ_BYTES or len(data) + len(command.data) > WRITE_BYTES):
            yield bytes(data) + bytes((SEND_NOW,)), size
            data, size = bytearray(), 0
        data += command.data
        size += command.answer
    if data:
        yield bytes(data) + bytes((SEND_NOW,)), size


def _captured_values(received: bytes, answers: Sequence[tuple[int, range]]) -> Iterator[int]:
    """Yield the captured values. Bits are shifted into a byte from its top, so those of an incomplete byte are its
    highest ones.
    """
    at = 0
    for count, captured in answers:
        whole, bits = divmod(count - 1, 8)
        value = int.from_bytes(received[at : at + whole], "little")
        at += whole
        if bits:
            value |= received[at] >> 8 - bits << 8 * whole
            at += 1
        value |= received[at] >> 7 << count - 1
        at += 1
        yield value >> captured.start & (1 << len(captured)) - 1
