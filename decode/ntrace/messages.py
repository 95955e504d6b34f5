"""The messages of N-Trace: their fields, order and widths, declared once, and how they are read from bytes and written.

A message is a row of groups, each ended by a byte with MSEO 01 (11 for the last); a group is one number, six bits a
byte, lowest first. The first group holds TCODE, SRC, the fixed fields and the first variable field; every other group
is one variable field (N-Trace 1.0.0-rc7, 3.1 to 3.3).

Source: RISC-V N-Trace 1.0.0-rc7, table 8 (fields in messages), chapters 6 and 7 (their meaning), table 25 (SYNC). The
ratified 1.0 has the same layouts. The PROCESS field: N-Trace 1.0, "Ownership Message": PROCESS = {CONTEXT, V[0],
PRV[1:0], FORMAT[1:0]}; high bits that are 0 may be left out, V included. The messages only SiFive's encoders send are
from IEEE-ISTO 5001 and their captures.
"""

from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

VAR = 0
"""The width of a variable-length field."""

TCODE_BITS = 6
MDO_BITS = 6
"""Message bits in one byte; the other two are MSEO."""

MAX_ICNT_BITS = 22
MAX_SRC_BITS = 12
"""Table 10. "Not limiting hardware in any way": I-CNT may be larger where HIST leads over the code that far."""

MAX_REPEAT_BITS = 18
"""B-CNT and HREPEAT (1.0, "Maximum Field Sizes"). Nothing tells a larger one from noise: in a loop any number fits."""
MAX_RUN_BITS = 22
"""Branches with one outcome in a row (SiFive). Not published; its captures have 13 bits. I-CNT counts each, too."""


class Tcode(IntEnum):
    """Table 8, and those of SiFive's encoders."""

    OWNERSHIP = 2
    DIRECT_BRANCH = 3
    INDIRECT_BRANCH = 4
    DATA_ACQUISITION = 7
    """SiFive (a Nexus message N-Trace leaves out): data written by the program."""
    ERROR = 8
    PROG_TRACE_SYNC = 9
    DIRECT_BRANCH_SYNC = 11
    INDIRECT_BRANCH_SYNC = 12
    AUX_ACCESS_WRITE = 23
    """SiFive: as DATA_ACQUISITION, of older encoders."""
    RESOURCE_FULL = 27
    INDIRECT_BRANCH_HIST = 28
    INDIRECT_BRANCH_HIST_SYNC = 29
    REPEAT_BRANCH = 30
    PROG_TRACE_CORRELATION = 33
    IN_CIRCUIT_TRACE = 34
    """SiFive: an event; with ..._WS the message also synchronizes."""
    IN_CIRCUIT_TRACE_WS = 35


VENDOR_TCODES = range(56, 63)
"""Table 8."""


class Sync(IntEnum):
    """Table 25: why a synchronizing message was sent."""

    EXTERNAL_TRIGGER = 0
    EXIT_FROM_RESET = 1
    PERIODIC = 2
    EXIT_FROM_DEBUG = 3
    SEQUENTIAL_INSTRUCTION_COUNTER = 4
    TRACE_ENABLE = 5
    TRACE_EVENT = 6
    RESTART_FROM_FIFO_OVERRUN = 7
    EXIT_FROM_POWER_DOWN = 9


VENDOR_SYNCS = range(14, 16)
"""Table 25."""


class BType(IntEnum):
    """Table 9: why the flow left the code's own path."""

    JUMP = 0
    TRAP = 1
    EXCEPTION = 2
    INTERRUPT = 3


class Rcode(IntEnum):
    """Table 19: which resource a ResourceFull reports."""

    ICNT = 0
    HIST = 1
    REPEATED_HIST = 2


class Evcode(IntEnum):
    """Table 23: why tracing stopped."""

    DEBUG_MODE = 0
    LOW_POWER = 1
    TRACE_DISABLED = 4


class Field(NamedTuple):
    """One field: bits, or VAR. A field with *when* is there only if that earlier field has that value.

    *address*: F-ADDR or U-ADDR, whose high bits may be left out (trTeInstExtendAddrMSB).
    """

    name: str
    bits: int = VAR
    when: tuple[str, int] | None = None
    address: bool = False

    @property
    def title(self) -> str:
        """Its name in the specification, e.g. "F-ADDR"."""
        return _TITLES.get(self.name, self.name.upper())


_TITLES = {"b_type": "B-TYPE", "icnt": "I-CNT", "faddr": "F-ADDR", "uaddr": "U-ADDR", "bcnt": "B-CNT"}


class Layout(NamedTuple):
    """One message: the fields after TCODE and SRC, in order. Fixed ones come first, as the standard always has it.

    TSTAMP, which may end any message, is not listed.
    """

    tcode: Tcode
    name: str
    fixed: tuple[Field, ...]
    variable: tuple[Field, ...]

    @property
    def synchronizes(self) -> bool:
        """Whether its TSTAMP is absolute."""
        return self.tcode == Tcode.IN_CIRCUIT_TRACE_WS or any(field.name == "sync" for field in self.fixed)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All of them."""
        return self.fixed + self.variable


_SYNC = Field("sync", 4)
_B_TYPE = Field("b_type", 2)
_ICNT = Field("icnt")
_FADDR = Field("faddr", address=True)
_UADDR = Field("uaddr", address=True)
_HIST = Field("hist")


def _layout(tcode: Tcode, name: str, *fields: Field) -> Layout:
    fixed = tuple(field for field in fields if field.bits != VAR)
    assert fields[: len(fixed)] == fixed, f"{name}: a fixed field after a variable one"
    return Layout(tcode, name, fixed, fields[len(fixed) :])


LAYOUTS: dict[int, Layout] = {
    layout.tcode: layout
    for layout in (
        _layout(Tcode.OWNERSHIP, "Ownership", Field("process")),
        _layout(Tcode.DIRECT_BRANCH, "DirectBranch", _ICNT),
        _layout(Tcode.INDIRECT_BRANCH, "IndirectBranch", _B_TYPE, _ICNT, _UADDR),
        _layout(Tcode.ERROR, "Error", Field("etype", 4), Field("ecode")),
        _layout(Tcode.PROG_TRACE_SYNC, "ProgTraceSync", _SYNC, _ICNT, _FADDR),
        _layout(Tcode.DIRECT_BRANCH_SYNC, "DirectBranchSync", _SYNC, _ICNT, _FADDR),
        _layout(Tcode.INDIRECT_BRANCH_SYNC, "IndirectBranchSync", _SYNC, _B_TYPE, _ICNT, _FADDR),
        _layout(
            Tcode.RESOURCE_FULL,
            "ResourceFull",
            Field("rcode", 4),
            Field("rdata"),
            Field("hrepeat", when=("rcode", Rcode.REPEATED_HIST)),
        ),
        _layout(Tcode.INDIRECT_BRANCH_HIST, "IndirectBranchHist", _B_TYPE, _ICNT, _UADDR, _HIST),
        _layout(Tcode.INDIRECT_BRANCH_HIST_SYNC, "IndirectBranchHistSync", _SYNC, _B_TYPE, _ICNT, _FADDR, _HIST),
        _layout(Tcode.REPEAT_BRANCH, "RepeatBranch", Field("bcnt")),
        _layout(
            Tcode.PROG_TRACE_CORRELATION,
            "ProgTraceCorrelation",
            Field("evcode", 4),
            Field("cdf", 2),
            _ICNT,
            Field("hist", when=("cdf", 1)),
        ),
    )
}
"""The messages by TCODE."""

_IN_CIRCUIT = (Field("cksrc", 4), Field("ckdf", 2), Field("ckdata0"), Field("ckdata1", when=("ckdf", 1)))

SIFIVE_LAYOUTS: dict[int, Layout] = LAYOUTS | {
    layout.tcode: layout
    for layout in (
        _layout(Tcode.DATA_ACQUISITION, "DataAcquisition", Field("idtag"), Field("dqdata")),
        _layout(Tcode.AUX_ACCESS_WRITE, "AuxAccessWrite", Field("addr"), Field("data")),
        _layout(Tcode.IN_CIRCUIT_TRACE, "InCircuitTrace", *_IN_CIRCUIT),
        _layout(Tcode.IN_CIRCUIT_TRACE_WS, "InCircuitTraceWS", *_IN_CIRCUIT),
    )
}
"""With the messages SiFive's encoders send besides."""
assert set(SIFIVE_LAYOUTS) == set(Tcode)


class Message(NamedTuple):
    """A parsed message. *layout* is None for a TCODE outside the table; *tstamp* None when there is none."""

    tcode: int
    src: int
    layout: Layout | None
    fields: Mapping[str, int]
    tstamp: int | None = None

    @property
    def name(self) -> str:
        """As table 8 calls it."""
        if self.layout is not None:
            return self.layout.name
        return f"{'vendor defined' if self.tcode in VENDOR_TCODES else 'reserved'} message (TCODE {self.tcode})"


class Malformed(Exception):
    """The bytes are framed like a message and are none; caught by the decoder, which reports it."""


def parse(
    raw: bytes, src_bits: int, layouts: Mapping[int, Layout] = LAYOUTS, *, extend_addr_msb: bool = False
) -> Message:
    """The message in *raw*, one complete frame. High bits an encoder left out are 0. Raises Malformed.

    *extend_addr_msb*: an address whose highest transmitted bit is 1 becomes a negative number, to be cut to XLEN (1.0,
    "Virtual Addresses Optimization").
    """
    groups, lengths = _groups(raw)
    first = groups[0]
    tcode = first & (1 << TCODE_BITS) - 1
    src = first >> TCODE_BITS & (1 << src_bits) - 1
    layout = layouts.get(tcode)
    if layout is None:
        return Message(tcode, src, None, {})
    groups[0] >>= TCODE_BITS + src_bits
    fields: dict[str, int] = {}
    for field in layout.fixed:
        fields[field.name] = groups[0] & (1 << field.bits) - 1
        groups[0] >>= field.bits
    expected = [field for field in layout.variable if field.when is None or fields[field.when[0]] == field.when[1]]
    if len(groups) < len(expected):
        raise Malformed(f"{layout.name} without {expected[len(groups)].title}")
    for field, value, length in zip(expected, groups, lengths, strict=False):
        bits = MDO_BITS * length
        extended = extend_addr_msb and field.address and value >> (bits - 1)
        fields[field.name] = value - (1 << bits) if extended else value
    tstamp = groups[len(expected)] if len(groups) > len(expected) else None
    return Message(tcode, src, layout, fields, tstamp)


def _groups(raw: bytes) -> tuple[list[int], list[int]]:
    """The numbers in a frame, and how many bytes each took."""
    groups, lengths = [], []
    value = shift = 0
    for byte in raw:
        value |= byte >> 2 << shift
        shift += MDO_BITS
        if byte & 0b11:
            groups.append(value)
            lengths.append(shift // MDO_BITS)
            value = shift = 0
    return groups, lengths


_END_OF_FIELD, _END_OF_MESSAGE = 0b01, 0b11
_MDO = (1 << MDO_BITS) - 1
_REMEMBERED = 1 << 14  # messages: programs repeat themselves, so their messages do


def build(layout: Layout, src_bits: int, src: int, **fields: int) -> bytes:
    """The bytes of a message, shortest form. A conditional field is written when the field it depends on says so."""
    names = [f.name for f in layout.fixed]
    names += [f.name for f in layout.variable if f.when is None or fields[f.when[0]] == f.when[1]]
    return pack(layout.tcode.value, src_bits, src, *[int(fields[name]) for name in names])


@lru_cache(maxsize=_REMEMBERED)
def pack(tcode: int, src_bits: int, src: int, *values: int) -> bytes:
    """As `build`, the values in the order of the layout."""
    return Packer(LAYOUTS, src_bits, src).pack(tcode, *values)


class Packer:
    """Packs the messages of one encoder.

    layouts        the messages by TCODE; of a TCODE outside them all values are variable-length fields
    src_bits, src  width and value of SRC
    address_bits   width of an address without its bit 0; its identical high bits are left out (1.0, "Virtual Addresses
                   Optimization"). 0: only zeros are
    empty_fields   a variable-length field that is 0 and needs no byte of its own has 0 bits
    padding        bytes added to each variable-length field beyond what its value needs
    """

    def __init__(
        self,
        layouts: Mapping[int, Layout],
        src_bits: int,
        src: int,
        *,
        address_bits: int = 0,
        empty_fields: bool = False,
        padding: int = 0,
    ) -> None:
        self._layouts = layouts
        self._src_bits, self._src = src_bits, src
        self._address_bits = address_bits
        self._least = 0 if empty_fields else 1
        self._padding = padding
        self.pack = lru_cache(maxsize=_REMEMBERED)(self._pack)
        """The bytes of a message of this TCODE, the values of its fields in the order of the layout."""

    def stamp(self, raw: bytes, tstamp: int) -> bytes:
        """The message *raw* with TSTAMP at its end."""
        last = _group(tstamp, 1, self._padding)
        last[-1] |= _END_OF_MESSAGE
        return raw[:-1] + bytes([raw[-1] & ~_END_OF_MESSAGE | _END_OF_FIELD]) + last

    def _pack(self, tcode: int, *values: int) -> bytes:
        layout = self._layouts.get(tcode)
        fixed = layout.fixed if layout is not None else ()
        first, bits = tcode | self._src << TCODE_BITS, TCODE_BITS + self._src_bits
        for field, value in zip(fixed, values, strict=False):
            first |= value << bits
            bits += field.bits
        start, *rest = values[len(fixed) :] or (0,)
        # The first byte never ends a field: a message starts with MSEO 00 (3.1).
        out = _group(first | start << bits, max(bits + self._least, TCODE_BITS + 1), self._padding)
        for index, value in enumerate(rest, 1):
            out += self._field(layout, index, value)
        out[-1] |= _END_OF_MESSAGE
        return bytes(out)

    def _field(self, layout: Layout | None, index: int, value: int) -> bytearray:
        """The bytes of the variable-length field *index* of the layout, which begins a byte."""
        if self._address_bits and layout is not None and layout.variable[index].address:
            return _address(value, self._address_bits, self._padding)
        return _group(value, 1, self._padding)


def _group(value: int, minimum: int, padding: int = 0) -> bytearray:
    """The bytes of one group of at least *minimum* bits, and *padding* bytes of 0."""
    return _bytes(value, -(-max(value.bit_length(), minimum) // MDO_BITS) + padding)


def _bytes(value: int, count: int) -> bytearray:
    out = bytearray()
    for _ in range(count):
        out.append((value & _MDO) << 2)
        value >>= MDO_BITS
    out[-1] |= _END_OF_FIELD
    return out


def _address(value: int, bits: int, padding: int) -> bytearray:
    """An address of *bits*: the highest bit sent stands for all above it, so it is equal to them or the top one."""
    top = value >> (bits - 1)
    significant = (value ^ -top & (1 << bits) - 1).bit_length() + 1
    count = -(-significant // MDO_BITS)
    if top and count * MDO_BITS < bits:
        count = min(count + padding, (bits - 1) // MDO_BITS)
        return _bytes(value, count)
    return _group(value, value.bit_length() + 1, padding)


class ProcessFormat(IntEnum):
    """Why it was sent, and what CONTEXT is."""

    PRIVILEGE = 0
    """V or PRV changed; no CONTEXT."""
    RESERVED = 1
    SCONTEXT = 2
    HCONTEXT = 3


class Process(NamedTuple):
    """The sub-fields. *prv* and *v*: as the ISA encodes privilege modes."""

    format: ProcessFormat
    prv: int
    v: int
    context: int

    @classmethod
    def of(cls, field: int) -> "Process":
        """The sub-fields of PROCESS."""
        return cls(ProcessFormat(field & 3), field >> 2 & 3, field >> 4 & 1, field >> 5)
