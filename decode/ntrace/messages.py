"""The messages of N-Trace: their fields, with order and widths, and functions that parse and build them.

A message is a sequence of groups. Each group ends with a byte whose MSEO is 01, the last one with a byte whose MSEO is
11. A group is one number, sent six bits per byte, lowest bits first. The first group holds TCODE, SRC, the fixed fields
and the first variable-length field; every other group is one variable-length field (N-Trace 1.0.0-rc7, 3.1 to 3.3).

Source: RISC-V N-Trace 1.0.0-rc7, table 8 (fields in messages), chapters 6 and 7 (their meaning), table 25 (SYNC). The
ratified 1.0 has the same layouts. The PROCESS field: N-Trace 1.0, "Ownership Message": PROCESS = {CONTEXT, V[0],
PRV[1:0], FORMAT[1:0]}; high bits that are 0 may be left out, including V. The messages that only SiFive's encoders
send come from IEEE-ISTO 5001 and from captures of these encoders.
"""

from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import StartReason

VAR = 0
"""The width of a variable-length field."""

TCODE_BITS = 6
MDO_BITS = 6
"""The message bits (MDO) in one byte; the other two bits are MSEO."""

MAX_ICNT_BITS = 22
MAX_SRC_BITS = 12
"""The limits of table 10.

They are "not limiting hardware in any way": I-CNT may be larger where HIST covers the code.
"""

MAX_HIST_BITS = 64
"""Twice the limit of HIST ("Maximum Field Sizes": 32 with the stop bit): decoders "do not have to be aware" of what an
encoder has, but in a loop any longer one would fit the program, and so would the zeros of a hole in the trace."""
MAX_REPEAT_BITS = 18
"""The limit of B-CNT and HREPEAT (1.0, "Maximum Field Sizes"), unless the user says another one. A larger value cannot
be told from noise: in a loop any number of repetitions fits the program."""
MAX_RUN_BITS = 22
"""The least limit of a run of branches with the same outcome (SiFive). It is not published; captures have 13 bits.
I-CNT counts the instructions of these branches too."""


class Tcode(IntEnum):
    """The message codes of table 8, and those of SiFive's encoders."""

    OWNERSHIP = 2
    DIRECT_BRANCH = 3
    INDIRECT_BRANCH = 4
    DATA_ACQUISITION = 7
    """Data that the program wrote (a message of IEEE-ISTO 5001 that N-Trace leaves out)."""
    ERROR = 8
    PROG_TRACE_SYNC = 9
    DIRECT_BRANCH_SYNC = 11
    INDIRECT_BRANCH_SYNC = 12
    AUX_ACCESS_WRITE = 23
    """SiFive: the same as DATA_ACQUISITION, sent by older encoders."""
    RESOURCE_FULL = 27
    INDIRECT_BRANCH_HIST = 28
    INDIRECT_BRANCH_HIST_SYNC = 29
    REPEAT_BRANCH = 30
    PROG_TRACE_CORRELATION = 33
    IN_CIRCUIT_TRACE = 34
    """SiFive: an event. IN_CIRCUIT_TRACE_WS also synchronizes."""
    IN_CIRCUIT_TRACE_WS = 35


VENDOR_TCODES = range(56, 63)
"""The codes that table 8 leaves to vendors."""


class _SyncRow(NamedTuple):
    """*code*: the value of SYNC, which stands for *reason*.

    goes_on   it does not interrupt the flow: F-ADDR is the next instruction
    silent    the encoder sends it unasked, and no event reports it; any other synchronization replaces it
    begins    tracing starts with it
    """

    code: int
    reason: StartReason
    goes_on: bool = False
    silent: bool = False
    begins: bool = False


class Sync(IntEnum):
    """The values of SYNC (table 25): why a synchronizing message was sent."""

    reason: StartReason
    goes_on: bool
    silent: bool
    begins: bool

    def __new__(cls, code: int, reason: StartReason, goes_on: bool, silent: bool, begins: bool) -> "Sync":
        member = int.__new__(cls, code)
        member._value_ = code
        member.reason, member.goes_on, member.silent, member.begins = reason, goes_on, silent, begins
        return member

    EXTERNAL_TRIGGER = _SyncRow(0, StartReason.EXTERNAL_TRIGGER, goes_on=True)
    EXIT_FROM_RESET = _SyncRow(1, StartReason.EXIT_FROM_RESET)
    PERIODIC = _SyncRow(2, StartReason.PERIODIC, goes_on=True, silent=True)
    EXIT_FROM_DEBUG = _SyncRow(3, StartReason.EXIT_FROM_DEBUG, begins=True)
    SEQUENTIAL_INSTRUCTION_COUNTER = _SyncRow(4, StartReason.COUNTER_FULL, goes_on=True, silent=True)
    TRACE_ENABLE = _SyncRow(5, StartReason.TRACE_ENABLED, begins=True)
    TRACE_EVENT = _SyncRow(6, StartReason.TRACE_EVENT, goes_on=True)
    RESTART_FROM_FIFO_OVERRUN = _SyncRow(7, StartReason.FIFO_OVERRUN)
    EXIT_FROM_POWER_DOWN = _SyncRow(9, StartReason.EXIT_FROM_POWER_DOWN)


UNREQUESTED = tuple(sync for sync in Sync if sync.silent)
"""The reasons of synchronizing messages that the encoder sends by itself; any other synchronization replaces them."""
VENDOR_SYNCS = range(14, 16)
"""The SYNC values that table 25 leaves to vendors."""


class BType(IntEnum):
    """The values of B-TYPE (table 9): why execution left the path that the code determines."""

    JUMP = 0
    TRAP = 1
    EXCEPTION = 2
    INTERRUPT = 3


class Rcode(IntEnum):
    """The values of RCODE (table 19): which resource a ResourceFull message reports."""

    ICNT = 0
    HIST = 1
    REPEATED_HIST = 2


class Evcode(IntEnum):
    """The values of EVCODE (table 23): why tracing stopped."""

    DEBUG_MODE = 0
    LOW_POWER = 1
    TRACE_DISABLED = 4


class MessageField(NamedTuple):
    """One field of a message.

    bits     its width; VAR: variable-length
    when     (name, value): the field is present only if this earlier field has this value; None: always
    address  whether it is F-ADDR or U-ADDR, whose high bits may be left out (trTeInstExtendAddrMSB)
    """

    name: str
    bits: int = VAR
    when: tuple[str, int] | None = None
    address: bool = False

    @property
    def title(self) -> str:
        """The name of the field in the specification, e.g. "F-ADDR"."""
        return _TITLES.get(self.name, self.name.upper())


_TITLES = {"b_type": "B-TYPE", "icnt": "I-CNT", "faddr": "F-ADDR", "uaddr": "U-ADDR", "bcnt": "B-CNT"}


class MessageLayout(NamedTuple):
    """The layout of one message: the fields after TCODE and SRC, in order. Fixed fields always come before variable
    ones.

    TSTAMP is not listed: it may end any message.
    """

    tcode: Tcode
    name: str
    fixed: tuple[MessageField, ...]
    variable: tuple[MessageField, ...]

    @property
    def synchronizes(self) -> bool:
        """Whether the message synchronizes, so that its TSTAMP is absolute."""
        return self.tcode == Tcode.IN_CIRCUIT_TRACE_WS or any(field.name == "sync" for field in self.fixed)

    @property
    def fields(self) -> tuple[MessageField, ...]:
        """All fields, in order."""
        return self.fixed + self.variable


_SYNC = MessageField("sync", 4)
_B_TYPE = MessageField("b_type", 2)
_ICNT = MessageField("icnt")
_FADDR = MessageField("faddr", address=True)
_UADDR = MessageField("uaddr", address=True)
_HIST = MessageField("hist")


def _layout(tcode: Tcode, name: str, *fields: MessageField) -> MessageLayout:
    fixed = tuple(field for field in fields if field.bits != VAR)
    assert fields[: len(fixed)] == fixed, f"{name}: a fixed field after a variable one"
    return MessageLayout(tcode, name, fixed, fields[len(fixed) :])


LAYOUTS: dict[int, MessageLayout] = {
    layout.tcode: layout
    for layout in (
        _layout(Tcode.OWNERSHIP, "Ownership", MessageField("process")),
        _layout(Tcode.DIRECT_BRANCH, "DirectBranch", _ICNT),
        _layout(Tcode.INDIRECT_BRANCH, "IndirectBranch", _B_TYPE, _ICNT, _UADDR),
        _layout(Tcode.ERROR, "Error", MessageField("etype", 4), MessageField("ecode")),
        _layout(Tcode.PROG_TRACE_SYNC, "ProgTraceSync", _SYNC, _ICNT, _FADDR),
        _layout(Tcode.DIRECT_BRANCH_SYNC, "DirectBranchSync", _SYNC, _ICNT, _FADDR),
        _layout(Tcode.INDIRECT_BRANCH_SYNC, "IndirectBranchSync", _SYNC, _B_TYPE, _ICNT, _FADDR),
        _layout(
            Tcode.RESOURCE_FULL,
            "ResourceFull",
            MessageField("rcode", 4),
            MessageField("rdata"),
            MessageField("hrepeat", when=("rcode", Rcode.REPEATED_HIST)),
        ),
        _layout(Tcode.INDIRECT_BRANCH_HIST, "IndirectBranchHist", _B_TYPE, _ICNT, _UADDR, _HIST),
        _layout(Tcode.INDIRECT_BRANCH_HIST_SYNC, "IndirectBranchHistSync", _SYNC, _B_TYPE, _ICNT, _FADDR, _HIST),
        _layout(Tcode.REPEAT_BRANCH, "RepeatBranch", MessageField("bcnt")),
        _layout(
            Tcode.PROG_TRACE_CORRELATION,
            "ProgTraceCorrelation",
            MessageField("evcode", 4),
            MessageField("cdf", 2),
            _ICNT,
            MessageField("hist", when=("cdf", 1)),
        ),
    )
}
"""The messages of N-Trace by TCODE."""

_IN_CIRCUIT = (
    MessageField("cksrc", 4),
    MessageField("ckdf", 2),
    MessageField("ckdata0"),
    MessageField("ckdata1", when=("ckdf", 1)),
)

NEXUS_LAYOUTS: dict[int, MessageLayout] = LAYOUTS | {
    Tcode.DATA_ACQUISITION: _layout(
        Tcode.DATA_ACQUISITION, "DataAcquisition", MessageField("idtag"), MessageField("dqdata")
    )
}
"""The messages of N-Trace, and the one of IEEE-ISTO 5001 that it leaves out and encoders have, by TCODE."""

SIFIVE_LAYOUTS: dict[int, MessageLayout] = NEXUS_LAYOUTS | {
    layout.tcode: layout
    for layout in (
        _layout(Tcode.AUX_ACCESS_WRITE, "AuxAccessWrite", MessageField("addr"), MessageField("data")),
        _layout(Tcode.IN_CIRCUIT_TRACE, "InCircuitTrace", *_IN_CIRCUIT),
        _layout(Tcode.IN_CIRCUIT_TRACE_WS, "InCircuitTraceWS", *_IN_CIRCUIT),
    )
}
"""The messages of N-Trace and those that only SiFive's encoders send, by TCODE."""
assert set(SIFIVE_LAYOUTS) == set(Tcode)


class Message(NamedTuple):
    """A parsed message.

    *layout* is None if TCODE is not in the table, *tstamp* is None if the message has no TSTAMP.
    """

    tcode: int
    src: int
    layout: MessageLayout | None
    fields: Mapping[str, int]
    tstamp: int | None = None

    @property
    def name(self) -> str:
        """The name in table 8."""
        if self.layout is not None:
            return self.layout.name
        return f"{'vendor defined' if self.tcode in VENDOR_TCODES else 'reserved'} message (TCODE {self.tcode})"


class MalformedMessage(Exception):
    """The bytes are framed like a message but are none. The decoder catches this error and reports a loss."""


def parse(
    raw: bytes, src_bits: int, layouts: Mapping[int, MessageLayout] = LAYOUTS, *, extend_addr_msb: bool = False
) -> Message:
    """Parse the message in *raw*, one complete frame. High bits that were omitted are 0. Raises MalformedMessage.

    With *extend_addr_msb*, an address whose highest transmitted bit is 1 becomes a negative number; the caller
    truncates it to XLEN bits (1.0, "Virtual Addresses Optimization").
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
        raise MalformedMessage(f"{layout.name} without {expected[len(groups)].title}")
    for field, value, length in zip(expected, groups, lengths, strict=False):
        bits = MDO_BITS * length
        extended = extend_addr_msb and field.address and value >> (bits - 1)
        fields[field.name] = value - (1 << bits) if extended else value
    tstamp = groups[len(expected)] if len(groups) > len(expected) else None
    return Message(tcode, src, layout, fields, tstamp)


def _groups(raw: bytes) -> tuple[list[int], list[int]]:
    """Return the numbers in a frame, and the size of each in bytes."""
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


def build(layout: MessageLayout, src_bits: int, src: int, **fields: int) -> bytes:
    """Return the bytes of a message in its shortest form. Conditional fields are written if their condition holds."""
    names = [f.name for f in layout.fixed]
    names += [f.name for f in layout.variable if f.when is None or fields[f.when[0]] == f.when[1]]
    return pack(layout.tcode.value, src_bits, src, *[int(fields[name]) for name in names])


@lru_cache(maxsize=_REMEMBERED)
def pack(tcode: int, src_bits: int, src: int, *values: int) -> bytes:
    """Return the same as `build` for field values in the order of the layout."""
    return Packer(LAYOUTS, src_bits, src).pack(tcode, *values)


class Packer:
    """Builds the bytes of one encoder's messages.

    layouts        the messages by TCODE; for a TCODE that is not in it, all values are variable-length fields
    src_bits, src  width and value of SRC
    address_bits   width of an address without its bit 0. Its identical high bits are left out (1.0, "Virtual Addresses
                   Optimization"). 0: only high bits that are 0 are left out
    empty_fields   whether a variable-length field that is 0 and needs no byte of its own has 0 bits
    padding        number of bytes added to each variable-length field beyond what its value needs
    """

    def __init__(
        self,
        layouts: Mapping[int, MessageLayout],
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
        """Return the bytes of a message: its TCODE, then the values of its fields in the order of the layout."""

    def form(self, tcode: int, *values: int) -> tuple[int, int, int] | None:
        """Return how messages begin that have these values in their fields of fixed length: the bits, how many they
        are, and how many the field after them has at least. None: more than values decides how they go on.
        """
        layout = self._layouts.get(tcode)
        if layout is None or len(layout.fixed) != len(values) or self._address_bits or self._padding:
            return None
        first, bits = self._head(layout, tcode, values)
        return first, bits, max(self._least, TCODE_BITS + 1 - bits)

    def _head(self, layout: MessageLayout | None, tcode: int, values: tuple[int, ...]) -> tuple[int, int]:
        """Return the bits before the first field of variable length, and how many they are."""
        first, bits = tcode | self._src << TCODE_BITS, TCODE_BITS + self._src_bits
        for field, value in zip(layout.fixed if layout is not None else (), values, strict=False):
            first |= value << bits
            bits += field.bits
        return first, bits

    def stamp(self, raw: bytes, tstamp: int) -> bytes:
        """Return the message *raw* with TSTAMP appended."""
        last = _group(tstamp, 1, self._padding)
        last[-1] |= _END_OF_MESSAGE
        return raw[:-1] + bytes([raw[-1] & ~_END_OF_MESSAGE | _END_OF_FIELD]) + last

    def _pack(self, tcode: int, *values: int) -> bytes:
        layout = self._layouts.get(tcode)
        fixed = layout.fixed if layout is not None else ()
        first, bits = self._head(layout, tcode, values)
        start, *rest = values[len(fixed) :] or (0,)
        # The first byte never ends a field: a message starts with MSEO 00 (3.1).
        out = _group(first | start << bits, max(bits + self._least, TCODE_BITS + 1), self._padding)
        for index, value in enumerate(rest, 1):
            out += self._field(layout, index, value)
        out[-1] |= _END_OF_MESSAGE
        return bytes(out)

    def _field(self, layout: MessageLayout | None, index: int, value: int) -> bytearray:
        """Return the bytes of variable-length field *index* of the layout, which starts on a byte boundary."""
        if self._address_bits and layout is not None and layout.variable[index].address:
            return _address_bytes(value, self._address_bits, self._padding)
        return _group(value, 1, self._padding)


def _group(value: int, minimum: int, padding: int = 0) -> bytearray:
    """Return the bytes of one group of at least *minimum* bits, followed by *padding* bytes of 0."""
    return _value_bytes(value, -(-max(value.bit_length(), minimum) // MDO_BITS) + padding)


def _value_bytes(value: int, count: int) -> bytearray:
    out = bytearray()
    for _ in range(count):
        out.append((value & _MDO) << 2)
        value >>= MDO_BITS
    out[-1] |= _END_OF_FIELD
    return out


def _address_bytes(value: int, bits: int, padding: int) -> bytearray:
    """Return the bytes of an address of *bits* bits. The highest bit sent stands for all bits above it."""
    top = value >> (bits - 1)
    significant = (value ^ -top & (1 << bits) - 1).bit_length() + 1
    count = -(-significant // MDO_BITS)
    if top and count * MDO_BITS < bits:
        count = min(count + padding, (bits - 1) // MDO_BITS)
        return _value_bytes(value, count)
    return _group(value, value.bit_length() + 1, padding)


class ProcessFormat(IntEnum):
    """The sub-field FORMAT of PROCESS: why the message was sent, and what CONTEXT contains."""

    PRIVILEGE = 0
    """V or PRV changed; there is no CONTEXT."""
    RESERVED = 1
    SCONTEXT = 2
    HCONTEXT = 3


class ProcessField(NamedTuple):
    """The sub-fields of PROCESS. *prv* and *v* are encoded as in the ISA's privilege modes."""

    format: ProcessFormat
    prv: int
    v: int
    context: int

    @classmethod
    def from_field(cls, field: int) -> "ProcessField":
        """Split PROCESS into its sub-fields."""
        return cls(ProcessFormat(field & 3), field >> 2 & 3, field >> 4 & 1, field >> 5)

    @property
    def reserved(self) -> str:
        """What of it is reserved, "" if nothing is: "All unused encodings are reserved" (table 12)."""
        if self.format is ProcessFormat.RESERVED:
            return "FORMAT 1"
        if self.prv == 2 or (self.v and self.prv == 3):
            return f"V {self.v}, PRV {self.prv}"
        return ""
