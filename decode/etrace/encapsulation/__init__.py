"""The transports of E-Trace packets: deframers extract packets from a trace, framers put packets into one.

`Encapsulation` is the choice of a transport with its settings, as a user or a capture specifies it.
"""

from dataclasses import dataclass
from types import ModuleType

from rvtrace_gdb.decode.etrace.encapsulation import encap
from rvtrace_gdb.decode.etrace.encapsulation.cutting import PacketCutter
from rvtrace_gdb.decode.etrace.encapsulation.encap import BlockFramer, EncapFields, EncapFramer, SmiFramer
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    ContentKind,
    CutOff,
    Deframer,
    EncapsulatedItem,
    FrameOffsets,
    Idle,
    NoSearch,
    PacketFramer,
    SourcePackets,
)
from rvtrace_gdb.decode.etrace.encapsulation.stream import EncapLayout, EncapReader, Seams, StreamDeframer
from rvtrace_gdb.decode.stepping.reports import LostBytes

__all__ = [
    "NAMES",
    "CannotCarry",
    "ContentKind",
    "CutOff",
    "Deframer",
    "EncapsulatedItem",
    "Encapsulation",
    "FrameOffsets",
    "Idle",
    "LostBytes",
    "PacketFramer",
    "SourcePackets",
]

NAMES = ("encap", "smi", "atb", "esp32", "pulp", "qemu")
"""The names of the transports."""

_LIMITS = {
    "src_bits": (0, 16),
    "timestamp_bytes": (0, 8),
    "type_bits": (0, 8),
    "extend_bit": (5, 7),
    "atb_bytes": (1, 16),
    "block_size": (0, 1 << 30),
    "block_start": (0, 1 << 62),
}
_FIXED = ("src_bits", "timestamp_bytes", "type_bits", "bit_packed", "block_size")
_ABSENT = {"atb": ("src_bits", "block_size"), "esp32": _FIXED, "pulp": _FIXED, "qemu": _FIXED}


@dataclass(frozen=True)
class Encapsulation:
    """A transport with its settings.

    name              one of `NAMES`. "smi" without the next three settings has the header of the reference models,
                      which distinguishes instruction from data trace; with one of them, index, timestamp and type
                      follow the header
    src_bits          bits of srcID or index (trTeSrcBits; 0 if trTeInhibitSrc)
    timestamp_bytes   bytes of a timestamp, in packets that have one (trTsWidth / 8)
    type_bits         bits of type
    instruction_type  the value of type in instruction trace packets; None: 0 if type has one bit, 2 if it has more
    data_type         the value of type in data trace packets; None: instruction_type + 1
    extend_bit        the bit of the header that announces a timestamp; 5 in E-Trace's example for ATB
    atb_bytes         bytes of ATDATA in a record
    bit_packed        whether payloads may end at any bit, not only in whole bytes as in E-Trace
    block_size        packets do not cross multiples of this number of bytes; 0: they may
    block_start       bytes of the trace before the first such block; for "atb" and "pulp", before the first record; for
                      "esp32" and "qemu", before the end of the memory, if that is inside the trace
    """

    name: str = "encap"
    src_bits: int = 0
    timestamp_bytes: int = 0
    type_bits: int = 0
    instruction_type: int | None = None
    data_type: int | None = None
    extend_bit: int = 7
    atb_bytes: int = 4
    bit_packed: bool = False
    block_size: int = 0
    block_start: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for settings that no trace can have."""
        if self.name not in NAMES:
            raise ValueError(f"unknown encapsulation {self.name!r}: it is one of {', '.join(NAMES)}")
        for field, (smallest, largest) in _LIMITS.items():
            if not smallest <= getattr(self, field) <= largest:
                raise ValueError(f"{field} {getattr(self, field)} is not {smallest} to {largest}")
        for field in _ABSENT.get(self.name, ()):
            if getattr(self, field):
                raise ValueError(f"encapsulation {self.name} has no {field}")
        types = (self.fields.instruction, self.fields.data)
        if self.type_bits and (types[0] == types[1] or not all(0 <= type_ < 1 << self.type_bits for type_ in types)):
            raise ValueError(f"instruction_type {types[0]} and data_type {types[1]} are not distinct values of type")

    def deframer(self, *, wrapped: bool = False, module: ModuleType | None = None) -> Deframer:
        """Return a deframer, which extracts the packets of a trace.

        *wrapped*: the trace comes from a ring buffer that wrapped, oldest byte first, and may start inside a packet.
        *module* has the kernel that cuts packets where it can, and then reports idle bytes together; None: without.
        """
        if self.name == "atb":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.atb import AtbDeframer

            return AtbDeframer(self.fields, self.atb_bytes, self.block_start, wrapped=wrapped)
        if self.name == "esp32":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.esp32 import esp32_deframer

            return esp32_deframer(wrapped=wrapped, end=self.block_start)
        if self.name == "pulp":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.pulp import PulpDeframer

            return PulpDeframer(self.block_start if wrapped else 0)
        if self.name == "qemu":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.qemu import qemu_deframer

            return qemu_deframer(wrapped=wrapped, end=self.block_start, module=module)
        if self.name == "smi" and self._is_plain:
            cutter = None if module is None else PacketCutter(module, encap.smi_format())
            return self._stream(encap.smi_layout(), encap.smi_sorter(), wrapped, cutter)
        cutter = None if module is None else PacketCutter(module, self.fields.packet_format())
        return self._stream(self.fields.layout(), self.fields.sorter(), wrapped, cutter)

    def framer(self) -> PacketFramer:
        """Return a framer, which puts packets into a trace."""
        framer = self._framer()
        return BlockFramer(framer, self.block_size, self.name) if self.block_size else framer

    def _framer(self) -> PacketFramer:
        if self.name == "atb":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.atb import AtbFramer

            return AtbFramer(self.fields, self.atb_bytes)
        if self.name == "esp32":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.esp32 import Esp32Framer

            return Esp32Framer()
        if self.name == "pulp":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.pulp import PulpFramer

            return PulpFramer()
        if self.name == "qemu":
            from rvtrace_gdb.decode.etrace.encapsulation.vendors.qemu import QemuFramer

            return QemuFramer()
        if self.name == "smi" and self._is_plain:
            return SmiFramer()
        return EncapFramer(self.name, self.fields)

    @property
    def fields(self) -> EncapFields:
        """The fields of packets."""
        first = 0 if self.type_bits < 2 else encap.TE_INST
        instruction = first if self.instruction_type is None else self.instruction_type
        data = instruction + 1 if self.data_type is None else self.data_type
        return EncapFields(
            self.src_bits,
            self.timestamp_bytes,
            self.type_bits,
            instruction,
            data,
            1 << self.extend_bit,
            self.bit_packed,
        )

    @property
    def _is_plain(self) -> bool:
        return not (self.src_bits or self.timestamp_bytes or self.type_bits)

    def _stream(
        self, layout: EncapLayout, reader: EncapReader, wrapped: bool, cutter: PacketCutter | None
    ) -> Deframer:
        if not self.block_size:
            return StreamDeframer(layout, reader, wrapped=wrapped, cutter=cutter)
        seams = Seams(self._next_block, None, f"a packet continues across blocks of {self.block_size} bytes")
        inside = wrapped and self.block_start % self.block_size > 0
        return StreamDeframer(
            layout, reader, wrapped=inside, search=lambda start: NoSearch(), seams=seams,
            cutter=cutter,
        )  # fmt: skip

    def _next_block(self, offset: int) -> int:
        return offset + self.block_size - (offset - self.block_start) % self.block_size
