"""The dialects: the encoders whose packets differ from the document's, and how they differ.

Public sources: rv_tracer's RTL (pulp-platform/rv_tracer, `te_packet_emitter`); Espressif's decoders
(tore-espressif/riscv-trace-spec, branches esp-implementation for PT10 and trace_v2 for ET20) and bjoernQ's
esp-trace-decoder (PT10); the patches "hw/riscv: initial e-trace support" of QEMU, versions 2 and 3.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.layout import (
    ADDRESS,
    BRANCH,
    BRANCHES,
    CAUSE,
    FORMAT_BITS,
    MAP,
    MAP_BITS,
    STANDARD,
    TVAL,
    WHERE,
    FieldEncoding,
    MalformedPacket,
    PacketField,
    PacketKind,
    PacketLayout,
    PayloadReader,
    SyncSubformat,
    TeInstFormat,
    address_bits,
    fixed,
    gate,
    has_branches,
    is_exception,
)
from rvtrace_gdb.decode.etrace.options import Dialect, Modes


class Rules(NamedTuple):
    """The rules by which packets of a dialect are parsed and built.

    layout        the fields of each packet
    map_bits      width of branch_map by the value of branches
    compressed    whether equal bits at the end of a packet may be left out
    zero_padded   whether bits up to a whole byte are 0, not copies of the last bit
    by_length     whether the length of a packet of format 1, not branches, shows that it has an address
    uncounted     whether branches may be 0 with an address; see `possible_branch_counts`
    key           reads format and subformat if they are not encoded as in the document
    """

    layout: PacketLayout
    map_bits: tuple[int, ...] = MAP_BITS
    compressed: bool = True
    zero_padded: bool = False
    by_length: bool = False
    uncounted: bool = False
    key: Callable[[PayloadReader], PacketKind] | None = None


_THADDR = PacketField("thaddr", fixed(1))
_NO_IRREPORT = PacketField("irreport", fixed(0), FieldEncoding.IMPLIED)
_CONTEXT: PacketLayout = {(TeInstFormat.SYNC, SyncSubformat.CONTEXT): WHERE}
_START: PacketLayout = {(TeInstFormat.SYNC, SyncSubformat.START): (BRANCH, *WHERE, ADDRESS)}

# rv_tracer: addresses are compressed separately; notify is a copy of the full address's MSB and never has a meaning.
_PULP_ADDRESS = PacketField("address", address_bits, FieldEncoding.BYTES_ADDRESS)
_PULP_REPORTING = (
    PacketField("address", address_bits, FieldEncoding.BYTES_REPORTED),
    PacketField("notify", fixed(1), FieldEncoding.SILENT),
    PacketField("updiscon", fixed(1), FieldEncoding.FLAG),
    PacketField("irreport", fixed(1), FieldEncoding.FLAG),
)


def _has_more(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    """Whether more than padding is left."""
    return left >= 8


def _has_tval(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    return not fields["interrupt"] or left >= 32


_PULP: PacketLayout = {
    (TeInstFormat.DIFF_DELTA, None): (BRANCHES, MAP, gate(_has_more), *_PULP_REPORTING),
    (TeInstFormat.ADDR_ONLY, None): _PULP_REPORTING,
    (TeInstFormat.SYNC, SyncSubformat.START): (BRANCH, *WHERE, _PULP_ADDRESS),
    (TeInstFormat.SYNC, SyncSubformat.TRAP): (BRANCH, *WHERE, *CAUSE, _THADDR, _PULP_ADDRESS, TVAL),
    **_CONTEXT,
}

# PT10: an early version of the document without thaddr and irreport; tval is the EPC of illegal instructions. tval is
# sent for interrupts too, according to one decoder; the other accepts any length.
_PT10_REPORTING = (
    PacketField("address", address_bits, FieldEncoding.REPORTED),
    PacketField("notify", fixed(1), FieldEncoding.FLAG),
    PacketField("updiscon", fixed(1), FieldEncoding.FLAG),
    _NO_IRREPORT,
)
_PT10: PacketLayout = {
    (TeInstFormat.DIFF_DELTA, None): (BRANCHES, MAP, gate(has_branches), *_PT10_REPORTING),
    (TeInstFormat.ADDR_ONLY, None): _PT10_REPORTING,
    **_START,
    (TeInstFormat.SYNC, SyncSubformat.TRAP): (
        *(BRANCH, *WHERE, *CAUSE, PacketField("thaddr", fixed(1), FieldEncoding.IMPLIED), ADDRESS),
        TVAL._replace(condition=_has_tval),
    ),
    **_CONTEXT,
}

# ET20: the address is the last field and starts at a byte boundary; its length follows from the packet's.
_ET20_REPORTING = (
    PacketField("notify", address_bits, FieldEncoding.LAST_FLAG),
    PacketField("updiscon", fixed(1), FieldEncoding.FLAG),
    _NO_IRREPORT,
    PacketField("", fixed(0), FieldEncoding.SPARE),
    PacketField("address", address_bits, FieldEncoding.LAST_REPORTED),
)
_ET20: PacketLayout = {
    (TeInstFormat.DIFF_DELTA, None): (BRANCHES, MAP, gate(has_branches), *_ET20_REPORTING),
    (TeInstFormat.ADDR_ONLY, None): _ET20_REPORTING,
    **_START,
    (TeInstFormat.SYNC, SyncSubformat.TRAP): (
        BRANCH,
        *WHERE,
        *CAUSE,
        _THADDR,
        ADDRESS,
        TVAL._replace(condition=is_exception),
    ),
    **_CONTEXT,
}

# QEMU: notify is a copy of bit 31 of the address; format 2 is sent with 3 as its format.
_QEMU_REPORTING = (
    PacketField("address", address_bits, FieldEncoding.REPORTED),
    PacketField("notify", fixed(1), FieldEncoding.SILENT),
    PacketField("updiscon", fixed(1), FieldEncoding.FLAG),
    PacketField("irreport", fixed(1), FieldEncoding.FLAG),
    PacketField("", fixed(3), FieldEncoding.SPARE),
)
_QEMU: PacketLayout = {
    (TeInstFormat.DIFF_DELTA, None): (BRANCHES, MAP, gate(_has_more), *_QEMU_REPORTING),
    (TeInstFormat.ADDR_ONLY, None): _QEMU_REPORTING,
    **_START,
    (TeInstFormat.SYNC, SyncSubformat.TRAP): STANDARD[TeInstFormat.SYNC, SyncSubformat.TRAP],
    **_CONTEXT,
}
_QEMU_MAP_BITS = (31, 3, *MAP_BITS[2:])
_QEMU_ADDRESS_BITS = 64
_QEMU_FLAGS = (0b000001, 0b111110)
"""The values of notify, updiscon, irreport and irdepth in format 2. As the highest bits of an address they are
impossible."""


def _qemu_key(read: PayloadReader) -> PacketKind:
    """Read format and subformat. Format 2 is recognized by its length of 9 bytes and the flags at its end."""
    format = read.take(FORMAT_BITS)
    if format != TeInstFormat.SYNC:
        return format, None
    flags = read.bits >> FORMAT_BITS + _QEMU_ADDRESS_BITS & 0b111111
    if read.end == FORMAT_BITS + _QEMU_ADDRESS_BITS + 6 and flags in _QEMU_FLAGS:
        return TeInstFormat.ADDR_ONLY, None
    return format, read.take(FORMAT_BITS)


def is_uncounted(fields: Mapping[str, int]) -> bool:
    """Whether a packet has a branch_map and an address, but not the number of branches."""
    return "branch_map" in fields and "address" in fields and not fields["branches"]


def possible_branch_counts(fields: Mapping[str, int]) -> range:
    """Return the possible numbers of branches of such a packet.

    31 bits of map were sent, unused bits are 0, and with 31 branches there is no address.
    """
    return range(max(16, fields["branch_map"].bit_length()), 31)


def settle_branches(fields: dict[str, int], *, uncounted: bool) -> None:
    """Set branches of format 1 by the length of the packet. Raises MalformedPacket if both contradict each other.

    *uncounted*: the number of branches may remain unknown.
    """
    branches, has_address = fields["branches"], "address" in fields
    if uncounted and is_uncounted(fields):
        if not possible_branch_counts(fields):
            raise MalformedPacket("format 1 with an address and 31 branches")
        return
    if has_address and not branches:
        raise MalformedPacket("format 1 with an address, but the number of its 16 to 30 branches was not sent")
    if not has_address:
        if branches not in (0, 31):
            raise MalformedPacket(f"format 1 with {branches} branches and no address")
        fields["branches"] = 0


RULES: Mapping[Dialect, Rules] = {
    Dialect.STANDARD: Rules(STANDARD),
    Dialect.PULP: Rules(_PULP, compressed=False, zero_padded=True, by_length=True, uncounted=True),
    Dialect.PT10: Rules(_PT10, compressed=False),
    Dialect.ET20: Rules(_ET20, compressed=False),
    Dialect.QEMU: Rules(_QEMU, _QEMU_MAP_BITS, compressed=False, zero_padded=True, by_length=True, key=_qemu_key),
}

DEFAULTS: Mapping[Dialect, Mapping[str, int | bool | str]] = {
    Dialect.STANDARD: {},
    Dialect.PULP: {
        "iaddress_width": 64,
        "iaddress_lsb": 0,
        "privilege_width": 2,
        "ecause_width": 64,
        "support": "pulp",
        "encapsulation": "pulp",
    },
    Dialect.PT10: {
        "iaddress_width": 32,
        "iaddress_lsb": 1,
        "privilege_width": 1,
        "ecause_width": 5,
        "full_address": True,
        "support": "pt10",
        "encapsulation": "esp32",
    },
    Dialect.ET20: {
        "iaddress_width": 32,
        "iaddress_lsb": 1,
        "privilege_width": 1,
        "ecause_width": 6,
        "support": "et20",
        "encapsulation": "esp32",
    },
    Dialect.QEMU: {
        "iaddress_width": 64,
        "iaddress_lsb": 0,
        "privilege_width": 3,
        "ecause_width": 6,
        "full_address": True,
        "encapsulation": "qemu",
    },
}
"""The defaults of each dialect's encoders: fields of Parameters and Modes, support packets, encapsulation."""
