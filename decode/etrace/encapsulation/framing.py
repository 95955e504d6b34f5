"""Packets to the bytes of a stream in which a packet's first byte says how long it is."""

from rvtrace_gdb.decode.etrace.encapsulation import encap, smi
from rvtrace_gdb.decode.etrace.encapsulation.encap import ALIGNMENT, IDLE, Fields
from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, Framer, Kind


class EncapFramer:
    """Writes e-trace-encap packets. *name*: of the transport, for errors. *flow*: of all packets."""

    def __init__(self, name: str, fields: Fields, flow: int = 0) -> None:
        self._name = name
        self._fields = fields
        self._flow = flow

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        return self._fields.packet(self._name, payload, kind, source, time, self._flow)

    def synchronization(self) -> bytes:
        """N null.idle and a null.alignment ("Synchronization")."""
        return bytes([IDLE]) * self._fields.nulls + bytes([ALIGNMENT])

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        return bytes([IDLE]) * length


class SmiFramer:
    """Writes what the reference models write."""

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        if source or time is not None:
            raise CannotCarry(smi.NAME, "a source or a timestamp without a width for it")
        return smi.packet(payload, kind)

    def synchronization(self) -> bytes:
        """As many zero bytes as no packet has (E-Trace, "Instruction Trace Encoder Output Packets")."""
        return bytes(encap.MAX_LENGTH + 1)

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        return bytes(length)


class BlockFramer:
    """Lets no packet straddle the blocks memory is divided into: fills up to the next one instead.

    Source: E-Trace, "Instruction Trace Encoder Output Packets", the second way to find packets.
    """

    def __init__(self, inner: Framer, size: int, name: str) -> None:
        self._inner = inner
        self._size = size
        self._name = name
        self._used = 0  # of the block that is being written

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        packet = self._inner.packet(payload, kind, source, time)
        if len(packet) > self._size:
            raise CannotCarry(self._name, f"a packet of {len(packet)} bytes in blocks of {self._size}")
        left = self._size - self._used
        written = (bytes(left) if len(packet) > left else b"") + packet
        self._used = (self._used + len(written)) % self._size
        return written

    def synchronization(self) -> bytes:
        """Filling up to the next block."""
        return self.idle(-self._used % self._size)

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        filling = self._inner.idle(length)
        self._used = (self._used + len(filling)) % self._size
        return filling
