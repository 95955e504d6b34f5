"""The formats of te_inst packets, as tables of fields in the order of transmission.

Source: Efficient Trace for RISC-V 2.0, "Instruction Trace Encoder Output Packets"; irets instead of irdepth: the v0.8
extension "Implicit Return", "Revised packet formats".
"""

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.options import Modes, Parameters


class Format(IntEnum):
    """The first two bits of each packet."""

    OPT_EXT = 0
    """Correctly predicted branches, or an index of the jump target cache."""
    DIFF_DELTA = 1
    """Branches and, mostly, an address."""
    ADDR_ONLY = 2
    SYNC = 3


class Ext(IntEnum):
    """Subformat of format 0."""

    BRANCH_COUNT = 0
    JUMP_TARGET = 1


class Sync(IntEnum):
    """Subformat of format 3."""

    START = 0
    TRAP = 1
    CONTEXT = 2
    SUPPORT = 3


class BranchFmt(IntEnum):
    """branch_fmt: whether an address follows a count of branches, and what became of a branch there."""

    NO_ADDR = 0
    RESERVED = 1
    ADDR = 2
    ADDR_FAIL = 3


class Kind(Enum):
    """What the bits of a field stand for."""

    VALUE = "value"
    """Themselves."""
    MAP = "map"
    """Outcomes of branches; how many bits, the field branches says."""
    ADDRESS = "address"
    """A full address without its iaddress_lsb low bits."""
    REPORTED = "reported"
    """A full address if full_address is on, else a difference."""
    FLAG = "flag"
    """One bit that says something where it differs from the bit before it."""
    DEPTH = "depth"
    """There if irreport is; else copies of the bit before it, which say nothing."""
    GATE = "gate"
    """No bits: packets that are not given this end here."""
    SPARE = "spare"
    """Bits that say nothing, *bits* of them, or up to a whole byte if that is 0. Sent as copies of the one before."""
    IMPLIED = "implied"
    """Not sent: its value is what *bits* says."""
    SILENT = "silent"
    """One bit that says nothing, and stands for a field that is 0."""
    BYTES_ADDRESS = "bytes address"
    """As ADDRESS, sign-extended from 8k + 1 bits; how many, the length of the packet says."""
    BYTES_REPORTED = "bytes reported"
    """As REPORTED, likewise."""
    LAST_REPORTED = "last reported"
    """As REPORTED, sign-extended from the whole bytes at the end of the packet."""
    LAST_FLAG = "last flag"
    """One bit that says something where it differs from the last one of the packet; *bits* are those of the address."""


Given = Callable[[Modes, Mapping[str, int], int], bool]
"""Whether a packet has a field: by modes, the fields before, and how many bits of the payload are left for it and what
follows. In building, these are ANY if the field is to be sent (of a GATE: an address), else 0."""

ANY = 1 << 16


class Field(NamedTuple):
    """One field.

    bits   its width, the greatest one where that varies; 0: there is no such field, if its kind does not say otherwise
    given  whether packets have it; None: all have
    """

    name: str
    bits: Callable[[Parameters], int]
    kind: Kind = Kind.VALUE
    given: Given | None = None


MAP_BITS = (31, 1, *[3] * 2, *[7] * 4, *[15] * 8, *[31] * 16)
"""Width of branch_map by the value of branches ("Packet format 1")."""

PRIVILEGES = {0: "U-mode", 1: "S-mode", 3: "M-mode", 4: "debug mode", 5: "VU-mode", 6: "VS-mode"}
"""The field privilege (2.0, "Privilege level (priv) encoding")."""

FORMAT_BITS = 2
BRANCH_COUNT_BITS = 32
LEAST_BRANCH_COUNT = 31
"""branch_count is the number of correctly predicted branches minus this."""

_IRETS_BITS = 8


def address_bits(parameters: Parameters) -> int:
    """Width of address fields."""
    return parameters.iaddress_width - parameters.iaddress_lsb


def irdepth_bits(parameters: Parameters) -> int:
    """Width of irdepth, the table of format 2; there may be none."""
    stack = parameters.return_stack_size
    return stack + (stack > 0) + parameters.call_counter_size


def f0s_width(parameters: Parameters) -> int:
    """Width of subformat in format 0 ("Format 0 subformat field")."""
    if parameters.f0s_width is not None:
        return parameters.f0s_width
    return int(parameters.bpred_size > 0 and parameters.cache_size > 0)


def fixed(bits: int) -> Callable[[Parameters], int]:
    """The width of a field that has the same one everywhere."""
    return lambda _: bits


def gate(given: Given) -> Field:
    """The packet goes on only if..."""
    return Field("", fixed(0), Kind.GATE, given)


def has_branches(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    """Whether branches are counted: where they are not, there is a full map without address, or no map."""
    return fields["branches"] > 0


def _has_counted_address(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    return fields["branch_fmt"] >= BranchFmt.ADDR


def _has_trap_address(modes: Modes, fields: Mapping[str, int], left: int) -> bool:
    return not (modes.implicit_exception and fields["thaddr"])


def is_exception(_: Modes, fields: Mapping[str, int], left: int) -> bool:
    """Whether a trap is no interrupt."""
    return not fields["interrupt"]


_RETURNS = (
    Field("irreport", fixed(1), Kind.FLAG),
    Field("irdepth", lambda p: 0 if p.iret_ext else irdepth_bits(p), Kind.DEPTH),
    Field("irets", lambda p: _IRETS_BITS if p.iret_ext else 0, Kind.DEPTH),
)

_REPORTING = (
    Field("address", address_bits, Kind.REPORTED),
    Field("notify", fixed(1), Kind.FLAG),
    Field("updiscon", fixed(1), Kind.FLAG),
    *_RETURNS,
)
"""An address of formats 0 to 2 and what is said of it."""

BRANCHES = Field("branches", fixed(5))
MAP = Field("branch_map", fixed(31), Kind.MAP)
BRANCH = Field("branch", fixed(1))
WHERE = (
    Field("privilege", lambda p: p.privilege_width),
    Field("time", lambda p: p.time_width),
    Field("context", lambda p: p.context_width),
)
CAUSE = (Field("ecause", lambda p: p.ecause_width), Field("interrupt", fixed(1)))
ADDRESS = Field("address", address_bits, Kind.ADDRESS)
TVAL = Field("tval", lambda p: p.iaddress_width)

Key = tuple[int, int | None]
"""Format and subformat; None: a format that has none."""
Layout = Mapping[Key, tuple[Field, ...]]
"""What follows format and subformat. Support packets: module `support`."""

STANDARD: Layout = {
    (Format.OPT_EXT, Ext.BRANCH_COUNT): (
        Field("branch_count", fixed(BRANCH_COUNT_BITS)),
        Field("branch_fmt", fixed(2)),
        gate(_has_counted_address),
        *_REPORTING,
    ),
    (Format.OPT_EXT, Ext.JUMP_TARGET): (
        Field("index", lambda p: p.cache_size),
        BRANCHES,
        MAP._replace(given=has_branches),
        *_RETURNS,
    ),
    (Format.DIFF_DELTA, None): (BRANCHES, MAP, gate(has_branches), *_REPORTING),
    (Format.ADDR_ONLY, None): _REPORTING,
    (Format.SYNC, Sync.START): (BRANCH, *WHERE, ADDRESS),
    (Format.SYNC, Sync.TRAP): (
        BRANCH,
        *WHERE,
        *CAUSE,
        Field("thaddr", fixed(1)),
        ADDRESS._replace(given=_has_trap_address),
        TVAL._replace(given=is_exception),
    ),
    (Format.SYNC, Sync.CONTEXT): WHERE,
}
