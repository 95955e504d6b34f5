"""The bytes of one message to its fields, by the table of layouts; the way back is `packing`.

A message is a row of groups, each ended by a byte with MSEO 01 (11 for the last); a group is one number, six bits a
byte, lowest first. The first group holds TCODE, SRC, the fixed fields and the first variable field; every other group
is one variable field (N-Trace 1.0.0-rc7, 3.1 to 3.3).
"""

from collections.abc import Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.ntrace.layout import LAYOUTS, MDO_BITS, TCODE_BITS, VENDOR_TCODES, Layout


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
