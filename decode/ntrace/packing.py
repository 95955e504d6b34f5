"""Values to the bytes of a message, by the table of layouts; the way back is `message.parse`."""

from collections.abc import Mapping
from functools import lru_cache

from rvtrace_gdb.decode.ntrace.layout import LAYOUTS, MDO_BITS, TCODE_BITS, Layout

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
