"""The formats of te_inst packets: tables of fields in the order of transmission, and how fields are read and written.

A payload is treated as a number in two's complement: all bits after its end are copies of its last bit.

Source: Efficient Trace for RISC-V 2.0, "Instruction Trace Encoder Output Packets"; irets instead of irdepth: the v0.8
extension "Implicit Return", "Revised packet formats".
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.options import Modes, Parameters


class TeInstFormat(IntEnum):
    """The first two bits of each packet."""

    OPT_EXT = 0
    """Correctly predicted branches, or an index of the jump target cache."""
    DIFF_DELTA = 1
    """Branches and, usually, an address."""
    ADDR_ONLY = 2
    SYNC = 3


class Ext(IntEnum):
    """Subformat of format 0."""

    BRANCH_COUNT = 0
    JUMP_TARGET = 1


class SyncSubformat(IntEnum):
    """Subformat of format 3."""

    START = 0
    TRAP = 1
    CONTEXT = 2
    SUPPORT = 3


class BranchFmt(IntEnum):
    """The values of branch_fmt: whether an address follows a count of branches, and how a branch was predicted."""

    NO_ADDR = 0
    RESERVED = 1
    ADDR = 2
    ADDR_FAIL = 3


class FieldEncoding(Enum):
    """How the bits of a field are encoded."""

    VALUE = "value"
    """A number."""
    MAP = "map"
    """The outcomes of branches; the field branches determines the number of bits."""
    ADDRESS = "address"
    """A full address without its iaddress_lsb low bits."""
    REPORTED = "reported"
    """A full address if full_address is on, else a difference."""
    FLAG = "flag"
    """One bit that is set if it differs from the bit before it."""
    DEPTH = "depth"
    """A number if irreport is set; else copies of the bit before, without meaning."""
    GATE = "gate"
    """No bits: packets for which the condition is false end here."""
    SPARE = "spare"
    """*bits* bits without meaning; if *bits* is 0, up to a whole byte. They are sent as copies of the bit before."""
    IMPLIED = "implied"
    """Not transmitted: the value is *bits*."""
    SILENT = "silent"
    """One bit without meaning, for a field that is always 0."""
    BYTES_ADDRESS = "bytes address"
    """As ADDRESS, sign-extended from 8k + 1 bits; the length of the packet determines k."""
    BYTES_REPORTED = "bytes reported"
    """As REPORTED, sign-extended like BYTES_ADDRESS."""
    LAST_REPORTED = "last reported"
    """As REPORTED, sign-extended from the whole bytes at the end of the packet."""
    LAST_FLAG = "last flag"
    """One bit that is set if it differs from the last bit of the packet; *bits* is the width of the address."""


Condition = Callable[[Modes, Mapping[str, int], int], bool]
"""Whether a packet has a field, given the modes, the fields before, and the number of bits left in the payload.

When a packet is built, the number of bits is ANY_LENGTH if the field (for a GATE: an address) is given, else 0."""

ANY_LENGTH = 1 << 16


class PacketField(NamedTuple):
    """One field of a packet.

    bits       the width, or the greatest width if it varies; 0: there is no such field, unless its kind defines
               otherwise
    condition  whether a packet has the field; None: all packets have it
    """

    name: str
    bits: Callable[[Parameters], int]
    kind: FieldEncoding = FieldEncoding.VALUE
    condition: Condition | None = None


MAP_BITS = (31, 1, *[3] * 2, *[7] * 4, *[15] * 8, *[31] * 16)
"""The width of branch_map by the value of branches ("Packet format 1")."""

PRIVILEGES = {0: "U-mode", 1: "S-mode", 3: "M-mode", 4: "debug mode", 5: "VU-mode", 6: "VS-mode"}
"""The modes by the value of privilege (2.0, "Privilege level (priv) encoding")."""

FORMAT_BITS = 2
BRANCH_COUNT_BITS = 32
LEAST_BRANCH_COUNT = 31
"""branch_count is the number of correctly predicted branches minus this."""

_IRETS_BITS = 8


def address_bits(parameters: Parameters) -> int:
    """Return the width of address fields."""
    return parameters.iaddress_width - parameters.iaddress_lsb


def irdepth_bits(parameters: Parameters) -> int:
    """Return the width of irdepth (the table of format 2), which may be 0."""
    stack = parameters.return_stack_size
    return stack + (stack > 0) + parameters.call_counter_size


def f0s_width(parameters: Parameters) -> int:
    """Return the width of subformat in format 0 ("Format 0 subformat field")."""
    if parameters.f0s_width is not None:
        return parameters.f0s_width
    return int(parameters.bpred_size > 0 and parameters.cache_size > 0)


def fixed(bits: int) -> Callable[[Parameters], int]:
    """Return the width function of a field with a constant width."""
    return lambda _: bits


def gate(condition: Condition) -> PacketField:
    """Return a field at which packets end unless *condition* is true."""
    return PacketField("", fixed(0), FieldEncoding.GATE, condition)


def has_branches(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    """Whether the number of branches is given. If it is 0, there is a full map without address, or no map."""
    return fields["branches"] > 0


def _has_counted_address(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    return fields["branch_fmt"] >= BranchFmt.ADDR


def _has_trap_address(modes: Modes, fields: Mapping[str, int], left: int) -> bool:
    return not (modes.implicit_exception and fields["thaddr"])


def is_exception(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    """Whether a trap is an exception."""
    return not fields["interrupt"]


_RETURNS = (
    PacketField("irreport", fixed(1), FieldEncoding.FLAG),
    PacketField("irdepth", lambda p: 0 if p.iret_ext else irdepth_bits(p), FieldEncoding.DEPTH),
    PacketField("irets", lambda p: _IRETS_BITS if p.iret_ext else 0, FieldEncoding.DEPTH),
)

_REPORTING = (
    PacketField("address", address_bits, FieldEncoding.REPORTED),
    PacketField("notify", fixed(1), FieldEncoding.FLAG),
    PacketField("updiscon", fixed(1), FieldEncoding.FLAG),
    *_RETURNS,
)
"""The address of formats 0 to 2 and its flags."""

BRANCHES = PacketField("branches", fixed(5))
MAP = PacketField("branch_map", fixed(31), FieldEncoding.MAP)
BRANCH = PacketField("branch", fixed(1))
WHERE = (
    PacketField("privilege", lambda p: p.privilege_width),
    PacketField("time", lambda p: p.time_width),
    PacketField("context", lambda p: p.context_width),
)
CAUSE = (PacketField("ecause", lambda p: p.ecause_width), PacketField("interrupt", fixed(1)))
ADDRESS = PacketField("address", address_bits, FieldEncoding.ADDRESS)
TVAL = PacketField("tval", lambda p: p.iaddress_width)

PacketKind = tuple[int, int | None]
"""Format and subformat; None: the format has no subformat."""
PacketLayout = Mapping[PacketKind, tuple[PacketField, ...]]
"""The fields after format and subformat. For support packets see `packet.LAYOUTS`."""

STANDARD: PacketLayout = {
    (TeInstFormat.OPT_EXT, Ext.BRANCH_COUNT): (
        PacketField("branch_count", fixed(BRANCH_COUNT_BITS)),
        PacketField("branch_fmt", fixed(2)),
        gate(_has_counted_address),
        *_REPORTING,
    ),
    (TeInstFormat.OPT_EXT, Ext.JUMP_TARGET): (
        PacketField("index", lambda p: p.cache_size),
        BRANCHES,
        MAP._replace(condition=has_branches),
        *_RETURNS,
    ),
    (TeInstFormat.DIFF_DELTA, None): (BRANCHES, MAP, gate(has_branches), *_REPORTING),
    (TeInstFormat.ADDR_ONLY, None): _REPORTING,
    (TeInstFormat.SYNC, SyncSubformat.START): (BRANCH, *WHERE, ADDRESS),
    (TeInstFormat.SYNC, SyncSubformat.TRAP): (
        BRANCH,
        *WHERE,
        *CAUSE,
        PacketField("thaddr", fixed(1)),
        ADDRESS._replace(condition=_has_trap_address),
        TVAL._replace(condition=is_exception),
    ),
    (TeInstFormat.SYNC, SyncSubformat.CONTEXT): WHERE,
}


class MalformedPacket(Exception):
    """A payload is not a packet; the text contains the reason."""


def byte_count(size: int) -> str:
    """Return "1 byte" or "N bytes"."""
    return f"{size} byte{'' if size == 1 else 's'}"


class Packet(NamedTuple):
    """The fields of a te_inst packet, by their names in the specification.

    Values are as transmitted, not negative, with two exceptions: an address is in bytes (shifted left by iaddress_lsb;
    a difference is sign-extended from the width of the field), and notify, updiscon and irreport are 1 if they differ
    from the bit before them. irdepth and irets are present only if irreport is 1.
    """

    format: int
    subformat: int | None
    fields: dict[str, int]


class PlacedField(NamedTuple):
    """A field with its width and what else is needed to read and write it.

    mask   the mask of its bits
    lsb    number of low address bits that are not transmitted
    full   whether addresses are full addresses
    after  bits of the fields after it, if all of them have a known width
    """

    kind: FieldEncoding
    name: str
    bits: int
    mask: int
    condition: Condition | None
    lsb: int
    full: bool
    after: int


_GATE, _FLAG, _VALUE, _REPORTED = FieldEncoding.GATE, FieldEncoding.FLAG, FieldEncoding.VALUE, FieldEncoding.REPORTED
_MAP, _ADDRESS, _DEPTH = FieldEncoding.MAP, FieldEncoding.ADDRESS, FieldEncoding.DEPTH

_FULL = {FieldEncoding.REPORTED: FieldEncoding.ADDRESS, FieldEncoding.BYTES_REPORTED: FieldEncoding.BYTES_ADDRESS}
_WITHOUT_WIDTH = (FieldEncoding.GATE, FieldEncoding.SPARE, FieldEncoding.IMPLIED)


def placed_fields(fields: Sequence[PacketField], parameters: Parameters, modes: Modes) -> tuple[PlacedField, ...]:
    """Return the fields that packets of an encoder with these parameters and modes have."""
    placed: list[PlacedField] = []
    after = 0
    for field in reversed(fields):
        bits = field.bits(parameters)
        if bits or field.kind in _WITHOUT_WIDTH:
            kind = _FULL.get(field.kind, field.kind) if modes.full_address else field.kind
            lsb = parameters.iaddress_lsb
            placed.append(
                PlacedField(
                    kind=kind,
                    name=field.name,
                    bits=bits,
                    mask=(1 << bits) - 1,
                    condition=field.condition,
                    lsb=lsb,
                    full=modes.full_address,
                    after=after,
                )
            )
        after += bits
    return tuple(reversed(placed))


class PayloadReader:
    """Reads the fields of one payload.

    bits    the payload as a number
    end     the number of its bits
    at      the bit at which the next field starts
    fields  the fields read so far, as in `Packet`
    """

    __slots__ = ("_map_bits", "_modes", "at", "bits", "end", "fields")

    def __init__(self, payload: bytes, modes: Modes, map_bits: Sequence[int]) -> None:
        self.bits = int.from_bytes(payload, "little", signed=True)
        self.end = 8 * len(payload)
        self.at = 0
        self.fields: dict[str, int] = {}
        self._modes = modes
        self._map_bits = map_bits

    def take(self, width: int) -> int:
        """Read the next *width* bits."""
        value = self.bits >> self.at & (1 << width) - 1
        self.at += width
        return value

    def read(self, shape: Sequence[PlacedField]) -> None:
        """Read these fields. Raises MalformedPacket."""
        bits, at, fields = self.bits, self.at, self.fields
        for place in shape:
            kind, name, width, mask, condition, lsb, _, _ = place
            if condition is not None and not condition(self._modes, fields, self.end - at):
                if kind is _GATE:
                    break
                continue
            if kind is _FLAG:
                around = bits >> at - 1 & 3
                fields[name] = 1 if 0 < around < 3 else 0
            elif kind is _VALUE:
                fields[name] = bits >> at & mask
            elif kind is _REPORTED:
                value = bits >> at & mask
                fields[name] = (value - mask - 1 if value > mask >> 1 else value) << lsb
            elif kind is _MAP:
                width = self._map_bits[fields["branches"]]
                fields[name] = bits >> at & (1 << width) - 1
            elif kind is _ADDRESS:
                fields[name] = (bits >> at & mask) << lsb
            elif kind is _DEPTH:
                if fields["irreport"]:
                    fields[name] = bits >> at & mask
            else:
                self.at = at
                self._read_other(place)
                at = self.at
                continue
            at += width
        self.at = at

    def _read_other(self, place: PlacedField) -> None:
        """Read a field of a kind that only some encoders have."""
        kind, name, width = place.kind, place.name, place.bits
        if kind is FieldEncoding.SPARE:
            self.at = self.at + width if width else self.at + 7 & ~7
        elif kind is FieldEncoding.IMPLIED:
            self.fields[name] = width
        elif kind is FieldEncoding.SILENT:
            self.fields[name] = 0
            self.at += 1
        elif kind is FieldEncoding.LAST_FLAG:
            self.fields[name] = self.take(1) ^ (self.bits < 0)
        elif kind is FieldEncoding.LAST_REPORTED:
            self._read_last_field(place)
        elif kind in (FieldEncoding.BYTES_ADDRESS, FieldEncoding.BYTES_REPORTED):
            self._whole_bytes(place)

    def _read_last_field(self, place: PlacedField) -> None:
        size = (self.end - self.at) // 8
        if size < 1:
            raise MalformedPacket(f"too short for an address: {byte_count(self.end // 8)}")
        if size > (place.bits + 7) // 8:
            raise MalformedPacket(f"{byte_count(size)} for an address of {place.bits} bits")
        self.fields[place.name] = _extended_address(self.take(8 * size), 8 * size, place)

    def _whole_bytes(self, place: PlacedField) -> None:
        size = (self.end - self.at - place.after - 1) // 8
        if size < 1:
            raise MalformedPacket(f"too short for an address: {byte_count(self.end // 8)}")
        width = 8 * min(size, (place.bits + 7) // 8) + 1
        self.fields[place.name] = _extended_address(self.take(width), width, place)


def _extended_address(value: int, width: int, place: PlacedField) -> int:
    """Return an address that was sent in *width* bits, which may be more or fewer than it has."""
    value = value - (value >> width - 1 << width) & place.mask
    if not place.full and place.kind is not FieldEncoding.BYTES_ADDRESS:
        value -= value >> place.bits - 1 << place.bits
    return value << place.lsb


class PayloadWriter:
    """Builds one payload: a non-negative number *bits* of *at* bits."""

    __slots__ = ("_fields", "_map_bits", "_modes", "at", "bits")

    def __init__(self, fields: Mapping[str, int], modes: Modes, map_bits: Sequence[int]) -> None:
        self.bits = self.at = 0
        self._fields = fields
        self._modes = modes
        self._map_bits = map_bits

    def put(self, name: str, value: int, width: int) -> None:
        """Append a field. Raises ValueError if it does not fit."""
        if not 0 <= value < 1 << width:
            raise ValueError(f"{name} {value:#x} does not fit {width} bits")
        self.bits |= value << self.at
        self.at += width

    def payload(self, *, compressed: bool, zero_padded: bool = False) -> bytes:
        """Return the payload without equal bits at its end, or padded to a whole byte with the last bit or with 0."""
        if zero_padded:
            return self.bits.to_bytes((self.at + 7) // 8, "little")
        bits = self.bits - (self._before() << self.at)
        length = (bits if bits >= 0 else ~bits).bit_length() // 8 + 1 if compressed else (self.at + 7) // 8
        return bits.to_bytes(length, "little", signed=True)

    def write(self, shape: Sequence[PlacedField]) -> None:
        """Write these fields. Raises ValueError for one that is missing or does not fit."""
        for place in shape:
            left = ANY_LENGTH if (place.name or "address") in self._fields else 0
            if place.condition is None or place.condition(self._modes, self._fields, left):
                self._write_field(place)
            elif place.kind is FieldEncoding.GATE:
                break

    def _write_field(self, place: PlacedField) -> None:
        kind, name, width = place.kind, place.name, place.bits
        if kind is FieldEncoding.FLAG:
            self.put(name, self._fields.get(name, 0) ^ self._before(), 1)
        elif kind is FieldEncoding.SPARE:
            self._fill(width or -self.at % 8)
        elif kind is FieldEncoding.DEPTH and not self._fields.get("irreport"):
            self._fill(width)
        elif kind is FieldEncoding.MAP:
            self.put(name, self._given(name), self._map_bits[self._given("branches")])
        elif kind in (FieldEncoding.SILENT, FieldEncoding.IMPLIED):
            self._leave_out(place)
        elif kind in (FieldEncoding.VALUE, FieldEncoding.DEPTH):
            self.put(name, self._given(name), width)
        elif kind is FieldEncoding.LAST_FLAG:
            sent, size = self._transmitted_address(place, "address")
            self.put(name, self._fields.get(name, 0) ^ sent >> size - 1, 1)
        elif kind is not FieldEncoding.GATE:
            self.put(name, *self._transmitted_address(place, name))

    def _transmitted_address(self, place: PlacedField, name: str) -> tuple[int, int]:
        """Return an address as it is transmitted, and its number of bits."""
        kind, width = place.kind, place.bits
        value = self._given(name)
        if value & (1 << place.lsb) - 1:
            raise ValueError(f"{name} {value:#x} has one of the {place.lsb} low bits that are not sent")
        value >>= place.lsb
        if not place.full and kind not in (FieldEncoding.ADDRESS, FieldEncoding.BYTES_ADDRESS):
            value &= place.mask
            value -= value >> width - 1 << width
        elif not 0 <= value <= place.mask:
            raise ValueError(f"{name} {self._given(name):#x} does not fit {width} bits")
        size = min((value if value >= 0 else ~value).bit_length() // 8 + 1, (width + 7) // 8)  # bytes, sign included
        if kind in (FieldEncoding.LAST_REPORTED, FieldEncoding.LAST_FLAG):
            width = 8 * size
        elif kind in (FieldEncoding.BYTES_ADDRESS, FieldEncoding.BYTES_REPORTED):
            width = 8 * size + 1
        return value & (1 << width) - 1, width

    def _leave_out(self, place: PlacedField) -> None:
        value = place.bits if place.kind is FieldEncoding.IMPLIED else 0
        if self._fields.get(place.name, value) != value:
            raise ValueError(f"{place.name} can only be {value} in these packets")
        self.at += place.kind is FieldEncoding.SILENT

    def _fill(self, width: int) -> None:
        self.put("", -self._before() & (1 << width) - 1, width)

    def _before(self) -> int:
        return self.bits >> self.at - 1 & 1

    def _given(self, name: str) -> int:
        if name not in self._fields:
            raise ValueError(f"{name} is missing")
        return self._fields[name]
