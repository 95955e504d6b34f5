"""One te_data packet: its fields, read from a payload and written to one."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from decode.etrace.data.layout import (
    CODES,
    CODES_EXTENDED,
    SUBFORMAT_WIDTH,
    SUBTYPE_WIDTH,
    Code,
    Field,
    Form,
    Width,
    body,
    form_of,
)
from decode.etrace.data.options import DataOptions
from decode.etrace.packet import Malformed

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
    if not payload:
        raise Malformed("an empty packet")
    bits = int.from_bytes(payload, "little", signed=True)
    code, position = _code(bits, options)
    form = form_of(code, options)
    if form is None:
        raise Malformed(_reserved(code, options))
    fields: dict[str, int] = {}
    for field in body(form, options):
        if field.when and not _has(field, fields):
            continue
        width = _width(field, fields, options)
        if width is None:
            width = _length_of_response(fields, size_of)
        fields[field.name] = bits >> position & (1 << width) - 1
        position += width
    _check(fields, form, options)
    return DataPacket(form, code, fields)


def build(
    kind: str, operation: str, fields: Mapping[str, int], options: DataOptions, *, aligned: bool = True,
    response: bool = False, compress: bool = True, size_of: SizeOf = _no_request,
) -> bytes:  # fmt: skip
    """The payload of a packet: what was done, and its *fields* as in `DataPacket`.

    *response*: it is the data phase of a split load or atomic. *compress*: bytes that repeat the last bit are left out.
    Raises Malformed where the specification has no such packet.
    """
    code, bits, position = _header(kind, operation, aligned, response, options)
    form = form_of(code, options)
    if form is None:
        raise Malformed(_reserved(code, options))
    written: dict[str, int] = {}
    for field in body(form, options):
        if field.when and not _has(field, written):
            continue
        width = _width(field, written, options)
        if width is None:
            width = _length_of_response(written, size_of)
        value = written[field.name] = fields[field.name] if width else 0
        if value >> width:
            raise Malformed(f"{field.name} {value:#x} has more than {width} bits")
        bits |= value << position
        position += width
    return _packed(bits, position, compress)


def _packed(bits: int, count: int, compress: bool) -> bytes:
    """*count* bits as whole bytes, filled up with copies of the last one; compressed: without bytes of only these."""
    signed = bits - (1 << count) if bits >> count - 1 else bits
    needed = (signed.bit_length() if signed >= 0 else (~signed).bit_length()) + 1
    return signed.to_bytes((needed if compress else count) + 7 >> 3, "little", signed=True)


def _code(bits: int, options: DataOptions) -> tuple[Code, int]:
    """What the first bits say, and how many these are."""
    width = options.format_width
    number = bits & (1 << width) - 1
    widths, codes = (SUBFORMAT_WIDTH, CODES_EXTENDED) if options.extended else (SUBTYPE_WIDTH, CODES)
    more = widths.get(number, 0)
    sub = bits >> width & (1 << more) - 1
    code = codes.get((number, sub))
    if code is None:
        named = "subformat" if options.extended else "subtype"
        raise Malformed(f"format {number} {named} {sub} is reserved")
    return code, width + more


def _header(kind: str, operation: str, aligned: bool, response: bool, options: DataOptions) -> tuple[Code, int, int]:
    """The code for what was done, its bits, and how many these are."""
    codes = _written_codes(options.extended)
    if response:
        number = (3, 0) if options.extended else (7, 0) if kind == "atomic" else (4, 0)
        code = (CODES_EXTENDED if options.extended else CODES)[number]
    else:
        found = codes.get((kind, operation, aligned))
        if found is None:
            raise Malformed(f"there is no packet for: {kind} {operation}".rstrip())
        number, code = found
    widths = SUBFORMAT_WIDTH if options.extended else SUBTYPE_WIDTH
    if number[0] >> options.format_width:
        raise Malformed(f"{kind} packets need a format of more than {options.format_width} bits")
    return code, number[0] | number[1] << options.format_width, options.format_width + widths.get(number[0], 0)


@lru_cache(maxsize=2)
def _written_codes(extended: bool) -> dict[tuple[str, str, bool], tuple[tuple[int, int], Code]]:
    codes = CODES_EXTENDED if extended else CODES
    phases = (Form.SPLIT_DATA, Form.SPLIT_ATOMIC_DATA)
    return {
        (code.kind, code.operation, code.aligned): (number, code)
        for number, code in codes.items()
        if code.form not in phases
    }


def _reserved(code: Code, options: DataOptions) -> str:
    what = f"{code.kind} {code.operation}".rstrip()
    signalling = "split" if options.split else "unified"
    return f"a packet that does not exist: {what} ({code.form.value}), {options.content.value}, {signalling} signalling"


def _has(field: Field, fields: Mapping[str, int]) -> bool:
    """Whether a packet with these fields so far has a conditional one."""
    if "resp" in fields:
        return fields["resp"] != 0
    return fields["addr_msbs"] >> 4 != 0b11


def _width(field: Field, fields: Mapping[str, int], options: DataOptions) -> int | None:
    """Bits of a field; None when the request with this load ID tells."""
    width = field.width
    if isinstance(width, int):
        return width
    if width is Width.DATA_LEN:
        return 8 * (fields["data_len"] + 1)
    if width is Width.OP_LEN:
        return 8 * (fields["op_len"] + 1)
    if width is Width.LENGTH:
        return fields.get("size")
    return int(getattr(options, width.value))


def _length_of_response(fields: Mapping[str, int], size_of: SizeOf) -> int:
    size = size_of(fields["lrid"])
    if size is None:
        raise Malformed(f"the data of load ID {fields['lrid']}, which was not requested")
    return size


def _check(fields: Mapping[str, int], form: Form, options: DataOptions) -> None:
    """Values that no encoder sends."""
    if 8 << fields.get("size", 0) > max(options.data_width, 8):
        raise Malformed(f"size {fields['size']}: an access of more than {options.data_width} bits")
    two_bits = options.diff_width == 2 and "address" not in fields
    if fields.get("diff") == 0b10 and two_bits and form is not Form.SPLIT_ATOMIC and not options.reference:
        raise Malformed("diff 10 is reserved")
