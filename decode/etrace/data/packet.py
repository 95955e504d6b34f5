"""One te_data packet: its fields, read from a payload and written to one."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.data.layout import (
    CODES,
    CODES_EXTENDED,
    SUBFORMAT_WIDTH,
    SUBTYPE_WIDTH,
    Code,
    Form,
    Width,
    body,
    form_of,
)
from rvtrace_gdb.decode.etrace.data.options import DataOptions
from rvtrace_gdb.decode.etrace.packet import Malformed

SizeOf = Callable[[int], int | None]
"""The size field of the request with a load ID, for data phases that do not repeat it; None when there is none."""


class DataPacket(NamedTuple):
    """The fields of a te_data packet by their names in the specification, as transmitted and not negative.

    *fields* has no format, subformat or subtype: *code* is what they say.
    """

    form: Form
    code: Code
    fields: dict[str, int]

    @property
    def name(self) -> str:
        """What the specification calls it."""
        return self.form.value


def _no_request(lrid: int) -> int | None:
    return None


def parse(payload: bytes, options: DataOptions, size_of: SizeOf = _no_request) -> DataPacket:
    """The packet in *payload*. Bits beyond its end are copies of the last one. Raises Malformed."""
    return codec(options).parse(payload, size_of)


_SIZE, _BYTES_BEFORE = -1, -2
"""Widths that depend on a field: on size (or that of the request), on the one right before, which counts bytes."""


class _Shape(NamedTuple):
    """A packet under some options: its first bits and how many they are, form, code, (field, width, conditional)."""

    head: int
    head_width: int
    form: Form
    code: Code
    fields: tuple[tuple[str, int, bool], ...]


@lru_cache(maxsize=64)
def codec(options: DataOptions) -> "Codec":
    """The packets of encoders with these options."""
    return Codec(options)


class Codec:
    """Reads and writes packets of encoders with the same options."""

    def __init__(self, options: DataOptions) -> None:
        codes, widths = (CODES_EXTENDED, SUBFORMAT_WIDTH) if options.extended else (CODES, SUBTYPE_WIDTH)
        self._options = options
        self._format = (1 << options.format_width) - 1
        self._sub_widths = widths
        self._shapes: dict[tuple[int, int], _Shape] = {}
        self._absent: dict[tuple[int, int], str] = {}
        self._by_code: dict[tuple[str, str, bool, bool], tuple[int, int]] = {}
        for number, code in codes.items():
            is_response = code.form in (Form.SPLIT_DATA, Form.SPLIT_ATOMIC_DATA)
            self._by_code[code.kind, code.operation, code.aligned, is_response] = number
            form = form_of(code, options)
            if form is None:
                self._absent[number] = _absent(code, options)
            elif number[0] <= self._format:
                count = options.format_width + widths.get(number[0], 0)
                bits = number[0] | number[1] << options.format_width
                self._shapes[number] = _Shape(bits, count, form, code, _resolved(form, options))
        if options.extended:  # one data phase for both
            self._by_code["atomic", "", True, True] = (3, 0)

    def __deepcopy__(self, memo: dict[int, object]) -> "Codec":
        return self  # it never changes

    def parse(self, payload: bytes, size_of: SizeOf = _no_request) -> DataPacket:
        """The packet in *payload*. Bits beyond its end are copies of the last one. Raises Malformed."""
        if not payload:
            raise Malformed("an empty packet")
        bits = int.from_bytes(payload, "little", signed=True)
        number = bits & self._format
        sub = bits >> self._options.format_width & (1 << self._sub_widths.get(number, 0)) - 1
        shape = self._shapes.get((number, sub))
        if shape is None:
            named = "subformat" if self._options.extended else "subtype"
            raise Malformed(self._absent.get((number, sub)) or f"format {number} {named} {sub} is reserved")
        bits >>= shape.head_width
        fields: dict[str, int] = {}
        value = 0
        for name, width, conditional in shape.fields:
            if conditional and not _has(fields):
                continue
            if width < 0:
                width = 8 * (value + 1) if width == _BYTES_BEFORE else _size(fields, size_of)
            value = fields[name] = bits & (1 << width) - 1
            bits >>= width
        _check(fields, shape.form, self._options)
        return DataPacket(shape.form, shape.code, fields)

    def build(
        self, kind: str, operation: str, fields: Mapping[str, int], *, aligned: bool = True, response: bool = False,
        compress: bool = True, size_of: SizeOf = _no_request,
    ) -> bytes:  # fmt: skip
        """The payload of a packet: what was done, and its *fields* as in `DataPacket` (more of them do no harm).

        *response*: it is the data phase of a split load or atomic. *compress*: bytes that repeat the last bit are left
        out. Raises Malformed where the specification has no such packet.
        """
        shape = self._shape(kind, operation, aligned, response)
        bits, position = shape.head, shape.head_width
        value = 0
        for name, width, conditional in shape.fields:
            if conditional and not _has(fields):
                continue
            if width < 0:
                width = 8 * (value + 1) if width == _BYTES_BEFORE else _size(fields, size_of)
            value = fields[name] if width else 0
            if value >> width:
                raise Malformed(f"{name} {value:#x} has more than {width} bits")
            bits |= value << position
            position += width
        return _packed(bits, position, compress)

    def _shape(self, kind: str, operation: str, aligned: bool, response: bool) -> _Shape:
        number = self._by_code.get((kind, operation, aligned, response))
        if number is None:
            raise Malformed(f"there is no packet for: {kind} {operation}".rstrip())
        shape = self._shapes.get(number)
        if shape is None:
            width = self._options.format_width
            raise Malformed(self._absent.get(number) or f"{kind} packets need a format of more than {width} bits")
        return shape


def _resolved(form: Form, options: DataOptions) -> tuple[tuple[str, int, bool], ...]:
    """The fields of a form: name, width, whether not all packets have it."""
    found = []
    for field in body(form, options):
        if isinstance(field.width, int):
            width = field.width
        elif field.width is Width.LENGTH:
            width = _SIZE
        elif field.width in (Width.DATA_LEN, Width.OP_LEN):
            width = _BYTES_BEFORE
        else:
            width = int(getattr(options, field.width.value))
        found.append((field.name, width, bool(field.when)))
    return tuple(found)


def _packed(bits: int, count: int, compress: bool) -> bytes:
    """*count* bits as whole bytes, filled up with copies of the last one; compressed: without bytes of only these."""
    signed = bits - (1 << count) if bits >> count - 1 else bits
    needed = (signed if signed >= 0 else ~signed).bit_length() + 1
    return signed.to_bytes((needed if compress else count) + 7 >> 3, "little", signed=True)


def _absent(code: Code, options: DataOptions) -> str:
    what = f"{code.kind} {code.operation}".rstrip()
    signalling = "split" if options.split else "unified"
    return f"a packet that does not exist: {what} ({code.form.value}), {options.content.value}, {signalling} signalling"


def _has(fields: Mapping[str, int]) -> bool:
    """Whether a packet has the field that not all have: resp is no error, a CSR can be written (addr[11:10])."""
    return fields["resp"] != 0 if "resp" in fields else fields["addr_msbs"] >> 4 != 0b11


def _size(fields: Mapping[str, int], size_of: SizeOf) -> int:
    """*size*, of the packet or of the request it answers."""
    size = fields["size"] if "size" in fields else size_of(fields["lrid"])
    if size is None:
        raise Malformed(f"the data of load ID {fields['lrid']}, which was not requested")
    return size


def _check(fields: Mapping[str, int], form: Form, options: DataOptions) -> None:
    """Values that no encoder sends."""
    size = fields.get("size", 0)
    if 8 << size > options.data_width and size:
        raise Malformed(f"size {size}: an access of more than {options.data_width} bits")
    is_defined = "address" in fields or form is Form.SPLIT_ATOMIC or options.reference
    if fields.get("diff") == 0b10 and not is_defined:
        raise Malformed("diff 10 is reserved")
