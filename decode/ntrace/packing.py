"""Values to the bytes of a message, by the table of layouts; the way back is `message.parse`."""

from functools import lru_cache

from decode.ntrace.layout import LAYOUTS, MDO_BITS, TCODE_BITS, Layout

_END_OF_FIELD, _END_OF_MESSAGE = 0b01, 0b11


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
