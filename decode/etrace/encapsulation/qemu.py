"""The RAM sink of QEMU's trace encoder: e-trace-encap of one source without timestamps, each packet padded to words.

A packet that does not fit before the end of the memory goes to its start; zeros fill what is left.

Source: QEMU, "hw/riscv, target/riscv: initial e-trace support" (trace-encoder.c, trencoder_send_message_smem).
"""

from rvtrace_gdb.decode.etrace.encapsulation.encap import MAX_LENGTH
from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, Kind
from rvtrace_gdb.decode.etrace.encapsulation.reading import UniformSorter
from rvtrace_gdb.decode.etrace.encapsulation.searching import Merging
from rvtrace_gdb.decode.etrace.encapsulation.stream import Layout, Seams, StreamDeframer

NAME = "qemu"
WORD = 4
"""Bytes packets are padded to a multiple of."""


def deframer(*, wrapped: bool, end: int) -> StreamDeframer:
    """Reads such memory. *end*: where in the trace the end of a memory that wrapped is; 0: it is not inside."""
    sizes = [_padded(1 + header) if header <= MAX_LENGTH else 0 for header in range(256)]
    seams = Seams(lambda offset: end if offset < end else None, None, "no packet goes on at the end of the memory")
    return StreamDeframer(
        Layout(sizes, rb"\x00{%d}" % WORD, lambda header: f"no packet of QEMU starts with 0x{header:02x}"),
        UniformSorter(_payloads, [Kind.INSTRUCTION] * 256, frozenset({0})),
        wrapped=wrapped,
        search=lambda start: Merging(sizes, start, unit=WORD, phase=end),
        seams=seams if end else None,
    )


def _padded(size: int) -> int:
    return size + -size % WORD


def _payloads(frames: list[bytes]) -> list[bytes]:
    return [frame[1 : 1 + frame[0]] for frame in frames]


class QemuFramer:
    """Writes what the RAM sink holds."""

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        if not 1 <= len(payload) <= MAX_LENGTH:
            raise CannotCarry(NAME, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
        if kind is not Kind.INSTRUCTION or source or time is not None:
            raise CannotCarry(NAME, "anything but the instruction trace of one source, without timestamps")
        return (bytes([len(payload)]) + payload).ljust(_padded(1 + len(payload)), b"\0")

    def synchronization(self) -> bytes:
        """More zeros than a packet has."""
        return bytes(_padded(MAX_LENGTH + 1))

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        return bytes(_padded(length))
