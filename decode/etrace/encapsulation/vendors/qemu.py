"""The RAM sink of QEMU's trace encoder: e-trace-encap of one source without timestamps, each packet padded to words.

A packet that does not fit before the end of the memory goes to its start; the rest is filled with zeros.

Source: QEMU, "hw/riscv, target/riscv: initial e-trace support" (trace-encoder.c, trencoder_send_message_smem).
"""

from types import ModuleType

from rvtrace_gdb.decode.etrace.encapsulation.cutting import HeaderKind, PacketCutter, PacketStreamFormat
from rvtrace_gdb.decode.etrace.encapsulation.encap import MAX_LENGTH
from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, ContentKind, MergingSearch, UniformSorter
from rvtrace_gdb.decode.etrace.encapsulation.stream import EncapLayout, Seams, StreamDeframer

QEMU = "qemu"
WORD = 4
"""Packets are padded to a multiple of this number of bytes."""


def qemu_deframer(*, wrapped: bool, end: int, module: ModuleType | None = None) -> StreamDeframer:
    """Return a deframer. *end*: the trace offset of the end of a memory that wrapped; 0: it is not in the trace.
    *module* has the kernel that cuts.
    """
    sizes = [_padded(1 + header) if header <= MAX_LENGTH else 0 for header in range(256)]
    seams = Seams(
        lambda offset: end if offset < end else None, None, "no packet continues across the end of the memory"
    )
    return StreamDeframer(
        EncapLayout(sizes, rb"\x00{%d}" % WORD, lambda header: f"no packet of QEMU starts with 0x{header:02x}"),
        UniformSorter(_qemu_payloads, [ContentKind.INSTRUCTION] * 256, frozenset({0})),
        wrapped=wrapped,
        search=lambda start: MergingSearch(sizes, start, unit=WORD, phase=end),
        seams=seams if end else None,
        cutter=None if module is None else PacketCutter(module, _qemu_format()),
    )


def _qemu_format() -> PacketStreamFormat:
    """Return the layout of the stream for the kernel."""
    headers = [HeaderKind(WORD, None, timed=False, begin=1, end=1)]
    for header in range(1, 256):
        size = _padded(1 + header) if header <= MAX_LENGTH else 0
        end = min(1 + header, size)
        headers.append(HeaderKind(size, ContentKind.INSTRUCTION, timed=False, begin=min(1, size), end=end))
    return PacketStreamFormat(tuple(headers))


def _padded(size: int) -> int:
    return size + -size % WORD


def _qemu_payloads(frames: list[bytes]) -> list[bytes]:
    return [frame[1 : 1 + frame[0]] for frame in frames]


class QemuFramer:
    """Writes packets as in the RAM sink."""

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= len(payload) <= MAX_LENGTH:
            raise CannotCarry(QEMU, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
        if kind is not ContentKind.INSTRUCTION or source or time is not None:
            raise CannotCarry(QEMU, "anything but the instruction trace of one source, without timestamps")
        return (bytes([len(payload)]) + payload).ljust(_padded(1 + len(payload)), b"\0")

    def synchronization(self) -> bytes:
        """Return more zeros than a packet has."""
        return bytes(_padded(MAX_LENGTH + 1))

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(_padded(length))
