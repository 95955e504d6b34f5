"""A debugger's end of the JTAG wires, written from the Debug Specification: scans as remote_bitbang characters."""

from typing import Protocol


class Fed(Protocol):
    """`TapPins`, or a socket with them at its other end."""

    def feed(self, data: bytes, /) -> bytes: ...


class JtagProbe:
    """Drives pins the slow, explicit way: one clock at a time, TDO sampled between the edges."""

    def __init__(self, pins: Fed) -> None:
        self.pins = pins
        self.sent = b""
        self.received = b""

    def send(self, characters: bytes) -> bytes:
        self.sent += characters
        reply = self.pins.feed(characters)
        self.received += reply
        return reply

    def tms(self, bits: str) -> None:
        for bit in bits:
            self.send(b"26" if bit == "1" else b"04")

    def reset(self) -> None:
        """Test-Logic-Reset, then Run-Test/Idle."""
        self.tms("111110")

    def scan(self, value: int, length: int) -> int:
        """From Shift-xR: *length* bits, least significant first, and back to Run-Test/Idle."""
        out = 0
        for n in range(length):
            last = 2 if n == length - 1 else 0
            bit = value >> n & 1
            out |= int(self.send(b"%dR%d" % (last | bit, 4 | last | bit))) << n
        self.tms("10")
        return out

    def ir(self, value: int) -> int:
        self.tms("1100")
        return self.scan(value, 5)

    def dr(self, value: int, length: int) -> int:
        self.tms("100")
        return self.scan(value, length)


class Dmi:
    """Reads and writes of Debug Module registers over dmi scans (6.1.5)."""

    def __init__(self, probe: JtagProbe) -> None:
        self.probe = probe
        probe.reset()
        probe.ir(0x11)

    def read(self, address: int) -> int:
        self.probe.dr(address << 34 | 1, 41)
        result = self.probe.dr(0, 41)
        assert result & 3 == 0, "dmi.op: the access failed"
        assert result >> 34 == address
        return result >> 2 & 0xFFFFFFFF

    def write(self, address: int, value: int) -> None:
        self.probe.dr(address << 34 | value << 2 | 2, 41)
        assert self.probe.dr(0, 41) & 3 == 0, "dmi.op: the access failed"
