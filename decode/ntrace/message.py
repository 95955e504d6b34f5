"""One message to bytes and back, by the table of layouts.

A message is a row of groups, each ended by a byte with MSEO 01 (11 for the last); a group is one number, six bits a
byte, lowest first. The first group holds TCODE, SRC, the fixed fields and the first variable field; every other group
is one variable field (N-Trace 1.0.0-rc7, 3.1 to 3.3).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from decode.ntrace.layout import LAYOUTS, MDO_BITS, TCODE_BITS, VENDOR_TCODES, Layout

_END_OF_FIELD, _END_OF_MESSAGE = 0b01, 0b11


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


def parse(raw: bytes, src_bits: int) -> Message:
    """The message in *raw*, one complete frame. High bits an encoder left out are 0. Raises Malformed."""
    groups = _groups(raw)
    first = groups[0]
    tcode = first & (1 << TCODE_BITS) - 1
    src = first >> TCODE_BITS & (1 << src_bits) - 1
    layout = LAYOUTS.get(tcode)
    if layout is None:
        return Message(tcode, src, None, {})
    groups[0] >>= TCODE_BITS + src_bits
    fields: dict[str, int] = {}
    for field in layout.fixed:
        fields[field.name] = groups[0] & (1 << field.bits) - 1
        groups[0] >>= field.bits
    expected = [field for field in layout.variable if field.when is None or fields[field.when[0]] == field.when[1]]
    if len(groups) < len(expected):
        raise Malformed(f"{layout.name} without {expected[len(groups)].name.upper()}")
    fields.update(zip((field.name for field in expected), groups, strict=False))
    tstamp = groups[len(expected)] if len(groups) > len(expected) else None
    return Message(tcode, src, layout, fields, tstamp)


def _groups(raw: bytes) -> list[int]:
    groups = []
    value = shift = 0
    for byte in raw:
        value |= byte >> 2 << shift
        shift += MDO_BITS
        if byte & 0b11:
            groups.append(value)
            value = shift = 0
    return groups


def build(layout: Layout, src_bits: int, src: int, **fields: int) -> bytes:
    """The bytes of a message, shortest form. A conditional field is written when the field it depends on says so."""
    names = [f.name for f in layout.fixed]
    names += [f.name for f in layout.variable if f.when is None or fields[f.when[0]] == f.when[1]]
    return pack(layout.tcode.value, src_bits, src, *[int(fields[name]) for name in names])


@lru_cache(maxsize=1 << 14)
def pack(tcode: int, src_bits: int, src: int, *values: int) -> bytes:
    """As `build`, the values in the order of the layout. Cached: programs repeat themselves, so their messages do."""
    fixed = LAYOUTS[tcode].fixed
    first, bits = tcode | src << TCODE_BITS, TCODE_BITS + src_bits
    for field, value in zip(fixed, values, strict=False):
        first |= value << bits
        bits += field.bits
    variable = values[len(fixed) :]
    groups = [_group(first | variable[0] << bits, bits + 1), *[_group(value, 1) for value in variable[1:]]]
    groups[-1][-1] |= _END_OF_MESSAGE
    return b"".join(groups)


def _group(value: int, minimum: int) -> bytearray:
    """The bytes of one group of at least *minimum* bits."""
    count = -(-max(value.bit_length(), minimum) // MDO_BITS)
    out = bytearray([(value >> MDO_BITS * i & 63) << 2 for i in range(count)])
    out[-1] |= _END_OF_FIELD
    return out
