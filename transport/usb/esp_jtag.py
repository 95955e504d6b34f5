"""The USB-JTAG protocol of Espressif's chips (ESP32-C3, C5, C6, H2, P4, S3), which have the adapter built in.

Commands are nibbles, the high one of a byte first: a clock with TMS, TDI and whether TDO is captured; a repetition of
it; a flush of what was captured. Captured bits are returned packed, the earliest in the lowest bit.

Ref: ESP32-C6 Technical Reference Manual, section 32.3 "USB Serial/JTAG Controller: Functional Description", tables
32.3-3 to 32.3-5.
"""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Adapter
from rvtrace_gdb.transport.usb.device import DeviceQuery, open_interface
from rvtrace_gdb.transport.usb.errors import JtagProblem, NotAnAdapter, UsbError
from rvtrace_gdb.transport.usb.jtag import NOTHING
from rvtrace_gdb.transport.usb.pyusb import InterfaceDescriptor, PyusbBackend

VENDOR_SPECIFIC, JTAG_SUBCLASS, JTAG_PROTOCOL = 0xFF, 0xFF, 0x01

TDI, TMS, CAP = 1, 2, 4  # of CMD_CLK
FLUSH, REP = 0xA, 0xC
REPETITIONS = 64  # of one command that are put together at most: three CMD_REP say up to 63
PACKET = 64
WRITE_BYTES = 4096  # bytes of one transfer
# The device has two buffers of 64 bytes for captured bits, and stops when both are full: then they are read.
CAPTURE_BITS = 2 * PACKET

SETDIV, GET_DESCRIPTOR, CAPABILITIES = 0, 6, 0x2000
_VENDOR_OUT, _STANDARD_IN = 0x40, 0x80
_SPEED = 1  # type of a capability


class EspJtag:
    """A `Jtag`. *serial*: that of the device, if there are several; *khz*: the frequency of TCK, None: the device's
    present one.
    """

    def __init__(
        self,
        serial: str | None = None,
        khz: int | None = None,
        adapter: Adapter = ADAPTERS["esp"],
        backend: PyusbBackend | None = None,
    ) -> None:
        self._usb = open_interface(DeviceQuery(adapter.kind, adapter.ids, serial), _is_jtag, backend=backend)
        self.name = f"{adapter.kind} {self._usb.name}"
        self._commands = bytearray()  # one nibble each
        self._answers: list[int] = []  # how many bits each
        self._out_of_step = False
        try:
            self._usb.discard(0.01)  # with both buffers full it takes no commands
            self._usb.write(bytes([FLUSH << 4 | FLUSH]), "it was set up")
            self._usb.discard()
            if khz is not None:
                self._set_speed(khz)
        except BaseException:
            self._usb.close()
            raise

    def move(self, tms: int, count: int) -> None:
        self._commands += bytes(TMS if tms >> n & 1 else 0 for n in range(count))

    def shift(self, tdi: int, count: int, captured: range = NOTHING) -> None:
        levels = bytearray(format(tdi & (1 << count) - 1, f"0{count}b").encode().translate(_LEVELS)[::-1])
        for n in captured:
            levels[n] |= CAP
        levels[-1] |= TMS
        self._commands += levels
        if captured:
            self._answers.append(len(captured))

    def flush(self) -> list[int]:
        if self._out_of_step:
            raise JtagProblem(self.name, "an access was interrupted: open the adapter again")
        commands, answers = self._commands, self._answers
        self._commands, self._answers = bytearray(), []
        self._out_of_step = True
        captured = self._exchange(_compressed(commands), (sum(answers) + 7) // 8)
        self._out_of_step = False
        return _split(int.from_bytes(captured, "little"), answers)

    def close(self) -> None:
        self._usb.close()

    def _exchange(self, commands: Sequence[tuple[int, int]], size: int) -> bytes:
        """Send *commands*, nibbles with the number of bits that each captures; return *size* bytes."""
        received, pending = bytearray(), 0
        for data, bits in _transfers(commands):
            self._usb.write(data, "commands were sent")
            pending += bits
            if pending >= 8 * CAPTURE_BITS:
                received += self._captured(CAPTURE_BITS)
                pending -= 8 * CAPTURE_BITS
        received += self._captured(size - len(received))
        if len(received) != size:
            raise JtagProblem(self.name, f"{len(received)} bytes came back instead of {size}: plug it out and in")
        return bytes(received)

    def _captured(self, size: int) -> bytes:
        """Return at least *size* bytes, as whole packets."""
        received = b""
        while len(received) < size:
            received += self._some(size - len(received))
        return received

    def _some(self, size: int) -> bytes:
        """Return some of *size* bytes that were captured. Empty packets may come, and are ignored."""
        for _ in range(8):
            data = self._usb.read(-(-size // PACKET) * PACKET, "captured bits were read")
            if data:
                return data
        raise JtagProblem(self.name, "only empty packets come back: plug it out and in")

    def _set_speed(self, khz: int) -> None:
        """Set the fastest speed that does not exceed *khz*."""
        try:
            base, slowest, fastest = self._capabilities()
        except UsbError as error:
            raise NotAnAdapter(self._usb.name, f"it does not report its speeds ({error}): remove `khz`") from error
        divider = max(fastest, min(-(-base // max(khz, 1)), slowest))
        self._usb.control(_VENDOR_OUT, SETDIV, divider, self._usb.number)

    def _capabilities(self) -> tuple[int, int, int]:
        """Return the kHz of TCK undivided, and the largest and smallest divider."""
        said = self._usb.control(_STANDARD_IN, GET_DESCRIPTOR, CAPABILITIES, 0, 256)
        at, end = 2, said[1] if len(said) > 1 else 0
        while at + 2 <= min(end, len(said)) and said[at + 1]:
            if said[at] == _SPEED and at + 8 <= len(said):
                units, least, most = (int.from_bytes(said[at + n : at + n + 2], "little") for n in (2, 4, 6))
                return units * 10 // 2, most, max(least, 1)
            at += said[at + 1]
        raise NotAnAdapter(self._usb.name, "its capabilities name no speed")


_LEVELS = bytes.maketrans(b"01", bytes((0, TDI)))


def _is_jtag(interface: InterfaceDescriptor) -> bool:
    found = interface.bInterfaceClass, interface.bInterfaceSubClass, interface.bInterfaceProtocol
    return bool(found == (VENDOR_SPECIFIC, JTAG_SUBCLASS, JTAG_PROTOCOL))


def _compressed(commands: bytearray) -> list[tuple[int, int]]:
    """Return equivalent nibbles with repetitions, and how many bits each captures. There is a flush at the end, and an
    even number of nibbles.
    """
    nibbles: list[tuple[int, int]] = []
    at, end = 0, len(commands)
    while at < end:
        command = commands[at]
        until = at + 1
        while until < end and until - at < REPETITIONS and commands[until] == command:
            until += 1
        nibbles += _repeated(command, until - at)
        at = until
    nibbles += [(FLUSH, 0)] * (1 if len(nibbles) % 2 else 2)  # CMD_REP must not repeat a flush
    return nibbles


def _repeated(command: int, times: int) -> list[tuple[int, int]]:
    """Return nibbles for one command, *times* times: CMD_REP number n after it repeats it up to 3 * 4**n times more."""
    captures = command >> 2 & 1
    digits, rest, weight = [], times - 1, 1
    while rest:
        digits.append((REP | rest & 3, captures * (rest & 3) * weight))
        rest, weight = rest >> 2, weight * 4
    return [(command, captures), *digits] if len(digits) < times - 1 else [(command, captures)] * times


def _transfers(commands: Sequence[tuple[int, int]]) -> Iterator[tuple[bytes, int]]:
    """Yield bytes to send, and how many bits they capture: cut where a buffer of the device is full."""
    data, bits, filled = bytearray(), 0, 0
    for high, low in zip(commands[::2], commands[1::2], strict=True):
        data.append(high[0] << 4 | low[0])
        bits += high[1] + low[1]
        if filled + bits >= 8 * CAPTURE_BITS or len(data) >= WRITE_BYTES:
            yield bytes(data), bits
            filled = (filled + bits) % (8 * CAPTURE_BITS)
            data.clear()
            bits = 0
    if data:
        yield bytes(data), bits


def _split(value: int, lengths: Sequence[int]) -> list[int]:
    """Split *value* into an int for each of *lengths*, which are bits."""
    answers = []
    text = value.to_bytes((sum(lengths) + 7) // 8, "little")
    at = 0
    for length in lengths:
        whole = int.from_bytes(text[at // 8 : (at + length + 7) // 8], "little")
        answers.append(whole >> at % 8 & (1 << length) - 1)
        at += length
    return answers
