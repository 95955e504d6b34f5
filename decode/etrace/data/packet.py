"""The te_data packets: their options, fields, order and widths, and functions that parse and build them.

`DataOptions` is what a decoder or an encoder of data packets must know: the part of `Parameters` and `Modes` that
determines their form.

Source: E-Trace 2.0 (updates 2.0.5), "Data Trace Encoder Output Packets"; the v0.8 extension "Data Trace of
Multiple-Memory Access and Compare and Swap", which has the same fields under other *format* and *subformat* codes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.layout import MalformedPacket
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.program.instructions import ATOMIC, CAS_FAILURE, CSR, LOAD, MULTIPLE, STORE, STORE_FAILURE


class Content(Enum):
    """The contents of packets (trTeDataNoValue, trTeDataNoAddr)."""

    BOTH = "address and data"
    ADDRESS = "address only"
    DATA = "data only"


@dataclass(frozen=True)
class DataOptions:
    """The options of data packets.

    content        the contents of packets
    extended       whether they are those of the Multi-Memory Access and Compare and Swap extension v0.8
    split          whether loads and atomics are a request and a later response
    data_width, address_width, lrid_width, csr_width, format_width, diff_width   bits (see `Parameters`)
    difference     whether compressed data is a difference if diff has one bit
    reference      whether packets are those of the reference model (see `Parameters.data_reference`)
    full_address, full_data   whether nothing is compressed; decoders use diff instead
    """

    content: Content = Content.BOTH
    extended: bool = False
    split: bool = False
    data_width: int = 64
    address_width: int = 64
    lrid_width: int = 0
    csr_width: int = 64
    format_width: int = 3
    diff_width: int = 2
    difference: bool = False
    reference: bool = False
    full_address: bool = False
    full_data: bool = False

    @classmethod
    def from_parameters(cls, parameters: Parameters, modes: Modes) -> "DataOptions":
        """Return the options for an encoder with these parameters and modes."""
        extended = parameters.mmacas_ext
        return cls(
            _content(modes),
            extended,
            parameters.lrid_width > 0,
            parameters.data_width,
            parameters.daddress_width,
            parameters.lrid_width,
            max(parameters.csr_width or parameters.data_width, 8),
            min(parameters.data_format_width, 2) if extended else min(max(parameters.data_format_width, 2), 3),
            parameters.data_diff_width,
            parameters.data_difference,
            parameters.data_reference,
            modes.data_full_address,
            modes.data_full_data,
        )

    @property
    def size_width(self) -> int:
        """The width of the field size: max(1, clog2(clog2(data_width/8 + 1)))."""
        return max(1, _clog2(_clog2(self.data_width // 8 + 1)))

    @property
    def csr_len_width(self) -> int:
        """The width of the fields data_len and op_len of CSRs: 2 for 32-bit CSRs, 3 for 64-bit ones."""
        return 2 if self.csr_width <= 32 else 3


def _content(modes: Modes) -> Content:
    """Return the contents of packets. With neither address nor value there are no packets; ADDRESS is returned."""
    if modes.data_no_data:
        return Content.ADDRESS
    return Content.DATA if modes.data_no_address else Content.BOTH


def _clog2(value: int) -> int:
    """Return the ceiling of the logarithm to base 2."""
    return (value - 1).bit_length()


class DataForm(Enum):
    """The forms of packets, by the titles of the specification's tables."""

    LOAD_STORE = "Unified load or store"
    SPLIT_LOAD = "Split load - request phase"
    SPLIT_DATA = "Split load - data phase"
    ATOMIC = "Unified atomic"
    CAS_FAILED = "Unified CAS failure"
    SPLIT_ATOMIC = "Split atomic - request phase"
    SPLIT_ATOMIC_DATA = "Split atomic load - data phase"
    CSR = "Unified CSR"


class Width(Enum):
    """The widths that are not the same in all packets."""

    SIZE = "size_width"
    LRID = "lrid_width"
    DIFF = "diff_width"
    DATA = "data_width"
    ADDRESS = "address_width"
    CSR_LEN = "csr_len_width"
    LENGTH = "the value of size"
    DATA_LEN = "8 * (data_len + 1)"
    OP_LEN = "8 * (op_len + 1)"


class DataField(NamedTuple):
    """One field. *when*: the further condition under which packets of its form have it; "": always."""

    name: str
    width: Width | int
    when: str = ""


_SIZE = DataField("size", Width.SIZE)
_LRID = DataField("lrid", Width.LRID)
_ADDRESS = DataField("address", Width.ADDRESS)
_WHOLE_DATA = DataField("data", Width.DATA)
_DATA = (DataField("data_len", Width.LENGTH), DataField("data", Width.DATA_LEN))
_OPERAND = (DataField("op_len", Width.LENGTH), DataField("operand", Width.OP_LEN))
_DIFF1, _DIFF2, _DIFF = DataField("diff", 1), DataField("diff", 2), DataField("diff", Width.DIFF)
_RESP = DataField("resp", 2)
_NO_ERROR = "resp is not 00 (error)"
_WRITABLE = "addr[11:10] is not 11 (read-only)"
_CSR_ADDRESS = (DataField("addr_msbs", 6), DataField("addr_lsbs", 6))
_CSR_DATA = (
    _DIFF,
    DataField("data_len", Width.CSR_LEN),
    DataField("data", Width.DATA_LEN),
    DataField("addr_msbs", 6),
    DataField("op_len", Width.CSR_LEN, _WRITABLE),
    DataField("operand", Width.OP_LEN, _WRITABLE),
    DataField("addr_lsbs", 6),
)

_RESP_DATA = (
    _LRID,
    _RESP,
    DataField("data_len", Width.LENGTH, _NO_ERROR),
    DataField("data", Width.DATA_LEN, _NO_ERROR),
)

BODIES: dict[tuple[DataForm, Content], tuple[DataField, ...]] = {
    (DataForm.LOAD_STORE, Content.BOTH): (_SIZE, _DIFF2, *_DATA, _ADDRESS),
    (DataForm.LOAD_STORE, Content.ADDRESS): (_SIZE, _DIFF1, _ADDRESS),
    (DataForm.LOAD_STORE, Content.DATA): (_SIZE, _DIFF, _WHOLE_DATA),
    (DataForm.SPLIT_LOAD, Content.BOTH): (_SIZE, _LRID, _DIFF1, _ADDRESS),
    (DataForm.SPLIT_DATA, Content.BOTH): (_SIZE, _LRID, _RESP, DataField("data", Width.DATA, _NO_ERROR)),
    (DataForm.SPLIT_DATA, Content.DATA): (_SIZE, _LRID, _RESP, DataField("data", Width.DATA, _NO_ERROR)),
    (DataForm.ATOMIC, Content.BOTH): (_SIZE, _DIFF2, *_OPERAND, *_DATA, _ADDRESS),
    (DataForm.ATOMIC, Content.ADDRESS): (_SIZE, _DIFF1, _ADDRESS),
    (DataForm.ATOMIC, Content.DATA): (_SIZE, _DIFF, *_OPERAND, _WHOLE_DATA),
    (DataForm.CAS_FAILED, Content.BOTH): (_SIZE, _DIFF2, *_OPERAND, _ADDRESS),
    (DataForm.SPLIT_ATOMIC, Content.BOTH): (_SIZE, _LRID, _DIFF, *_OPERAND, _ADDRESS),
    (DataForm.SPLIT_ATOMIC, Content.DATA): (_SIZE, _LRID, _DIFF, DataField("operand", Width.DATA)),
    (DataForm.SPLIT_ATOMIC_DATA, Content.BOTH): _RESP_DATA,
    (DataForm.SPLIT_ATOMIC_DATA, Content.DATA): _RESP_DATA,
    (DataForm.CSR, Content.BOTH): _CSR_DATA,
    (DataForm.CSR, Content.DATA): _CSR_DATA,  # the specification has no packet for the data of a CSR alone
    (DataForm.CSR, Content.ADDRESS): (_DIFF1, *_CSR_ADDRESS),
}
"""The fields after format, subformat and subtype. If the data phase of an atomic has no size, the request's applies."""

_BODIES_EXTENDED = {
    (DataForm.SPLIT_ATOMIC, Content.BOTH): (_SIZE, _LRID, _DIFF2, *_OPERAND, _ADDRESS),
    (DataForm.SPLIT_ATOMIC, Content.DATA): (_SIZE, _LRID, _DIFF2, DataField("operand", Width.DATA)),
}
"""The fields that differ in the extension: *diff* of split atomics always has two bits."""


class FormCode(NamedTuple):
    """The meaning of a packet's first bits: the form (regardless of split signalling), and the access."""

    form: DataForm
    kind: str
    operation: str = ""
    aligned: bool = True


def _loads_and_stores(operation: str) -> tuple[FormCode, ...]:
    """Return the codes by the two low bits of *format*, or by *subformat* of the extension."""
    return (
        FormCode(DataForm.LOAD_STORE, LOAD, operation, True),
        FormCode(DataForm.LOAD_STORE, LOAD, operation, False),
        FormCode(DataForm.LOAD_STORE, STORE, operation, True),
        FormCode(DataForm.LOAD_STORE, STORE, operation, False),
    )


_OPERATIONS = ("swap", "add", "and", "or", "xor", "max", "min")
_CSR_OPERATIONS = ("rw", "rs", "rc")

CODES: dict[tuple[int, int], FormCode] = {
    **{(number, 0): code for number, code in enumerate(_loads_and_stores(""))},
    (4, 0): FormCode(DataForm.SPLIT_DATA, LOAD),
    **{(5, subtype): FormCode(DataForm.CSR, CSR, operation) for subtype, operation in enumerate(_CSR_OPERATIONS)},
    **{(6, subtype): FormCode(DataForm.ATOMIC, ATOMIC, operation) for subtype, operation in enumerate(_OPERATIONS)},
    (6, 7): FormCode(DataForm.ATOMIC, ATOMIC, STORE_FAILURE),
    (7, 0): FormCode(DataForm.SPLIT_ATOMIC_DATA, ATOMIC),
}
"""The codes of 2.0 by (format, subtype)."""

CODES_EXTENDED: dict[tuple[int, int], FormCode] = {
    **{(0, number): code for number, code in enumerate(_loads_and_stores(""))},
    **{(1, number): code for number, code in enumerate(_loads_and_stores(MULTIPLE))},
    **{
        (2, 4 + subformat): FormCode(DataForm.CSR, CSR, operation)
        for subformat, operation in enumerate(_CSR_OPERATIONS)
    },
    (2, 7): FormCode(DataForm.CAS_FAILED, ATOMIC, CAS_FAILURE),
    **{
        (2, 8 + subformat): FormCode(DataForm.ATOMIC, ATOMIC, operation)
        for subformat, operation in enumerate(_OPERATIONS)
    },
    (2, 15): FormCode(DataForm.ATOMIC, ATOMIC, STORE_FAILURE),
    (3, 0): FormCode(DataForm.SPLIT_DATA, LOAD),
}
"""The codes of the extension by (format, subformat)."""

SUBTYPE_WIDTH = {5: 2, 6: 3}
"""The width of *subtype* in 2.0, by format."""

SUBFORMAT_WIDTH = {0: 2, 1: 2, 2: 4}
"""The width of *subformat* in the extension, by format."""


def form_of(code: FormCode, options: DataOptions) -> DataForm | None:
    """Return the form of a packet with this code; None if the specification reserves it for such an encoder.

    Split signalling is used if a load or an atomic needs both phases: if one phase contains all that is to be in the
    trace, the packet is the unified one.
    """
    form, content = code.form, options.content
    if code.operation in (STORE_FAILURE, CAS_FAILURE) and content is Content.ADDRESS:
        return DataForm.ATOMIC
    if code.operation == STORE_FAILURE or (form is DataForm.CAS_FAILED and content is Content.DATA):
        return None
    if not options.split:
        return None if form in (DataForm.SPLIT_DATA, DataForm.SPLIT_ATOMIC_DATA) else form
    if form is DataForm.LOAD_STORE and code.kind == LOAD and content is Content.BOTH:
        return DataForm.SPLIT_LOAD
    if form is DataForm.ATOMIC and content is not Content.ADDRESS:
        return DataForm.SPLIT_ATOMIC
    return form if (form, content) in BODIES else None


def body_fields(form: DataForm, options: DataOptions) -> tuple[DataField, ...]:
    """Return the fields of a packet of this form after its code."""
    key = (form, options.content)
    return _BODIES_EXTENDED.get(key, BODIES[key]) if options.extended else BODIES[key]


SizeOf = Callable[[int], int | None]
"""A function that returns the size field of the request with a load ID, None if there is none."""


class DataPacket(NamedTuple):
    """The fields of a te_data packet by their names in the specification, as transmitted and not negative.

    *fields* contains no format, subformat or subtype: *code* is their meaning.
    """

    form: DataForm
    code: FormCode
    fields: dict[str, int]

    @property
    def name(self) -> str:
        """The name of the packet in the specification."""
        return self.form.value


def _no_request(lrid: int) -> int | None:
    return None


def parse(payload: bytes, options: DataOptions, size_of: SizeOf = _no_request) -> DataPacket:
    """The packet in *payload*. Bits beyond its end are copies of the last one. Raises MalformedPacket."""
    return codec(options).parse(payload, size_of)


_ACCESS_SIZE, _BYTES_BEFORE = -1, -2
"""The widths that depend on size (of the packet or its request), or on the field before, which is a number of bytes."""


class _PacketShape(NamedTuple):
    """A packet under some options: its first bits and their number, form, code, and (field, width, conditional)."""

    head: int
    head_width: int
    form: DataForm
    code: FormCode
    fields: tuple[tuple[str, int, bool], ...]


@lru_cache(maxsize=64)
def codec(options: DataOptions) -> "DataCodec":
    """Return the codec for these options."""
    return DataCodec(options)


class DataCodec:
    """Parses and builds the packets of encoders with the same options."""

    def __init__(self, options: DataOptions) -> None:
        codes, widths = (CODES_EXTENDED, SUBFORMAT_WIDTH) if options.extended else (CODES, SUBTYPE_WIDTH)
        self._options = options
        self._format = (1 << options.format_width) - 1
        self._sub_widths = widths
        self._shapes: dict[tuple[int, int], _PacketShape] = {}
        self._absent: dict[tuple[int, int], str] = {}
        self._by_code: dict[tuple[str, str, bool, bool], tuple[int, int]] = {}
        for number, code in codes.items():
            is_response = code.form in (DataForm.SPLIT_DATA, DataForm.SPLIT_ATOMIC_DATA)
            self._by_code[code.kind, code.operation, code.aligned, is_response] = number
            form = form_of(code, options)
            if form is None:
                self._absent[number] = _absence_reason(code, options)
            elif number[0] <= self._format:
                count = options.format_width + widths.get(number[0], 0)
                bits = number[0] | number[1] << options.format_width
                self._shapes[number] = _PacketShape(bits, count, form, code, _resolved(form, options))
        if options.extended:  # one data phase for both
            self._by_code["atomic", "", True, True] = (3, 0)

    def __deepcopy__(self, memo: dict[int, object]) -> "DataCodec":
        return self  # it never changes

    def parse(self, payload: bytes, size_of: SizeOf = _no_request) -> DataPacket:
        """The packet in *payload*. Bits beyond its end are copies of the last one. Raises MalformedPacket."""
        if not payload:
            raise MalformedPacket("an empty packet")
        bits = int.from_bytes(payload, "little", signed=True)
        number = bits & self._format
        sub = bits >> self._options.format_width & (1 << self._sub_widths.get(number, 0)) - 1
        shape = self._shapes.get((number, sub))
        if shape is None:
            named = "subformat" if self._options.extended else "subtype"
            raise MalformedPacket(self._absent.get((number, sub)) or f"format {number} {named} {sub} is reserved")
        bits >>= shape.head_width
        fields: dict[str, int] = {}
        value = 0
        for name, width, conditional in shape.fields:
            if conditional and not _has_conditional(fields):
                continue
            if width < 0:
                width = 8 * (value + 1) if width == _BYTES_BEFORE else _access_size(fields, size_of)
            value = fields[name] = bits & (1 << width) - 1
            bits >>= width
        _check_fields(fields, shape.form, self._options)
        return DataPacket(shape.form, shape.code, fields)

    def build(
        self, kind: str, operation: str, fields: Mapping[str, int], *, aligned: bool = True, response: bool = False,
        compress: bool = True, size_of: SizeOf = _no_request,
    ) -> bytes:  # fmt: skip
        """Return the payload of a packet for an access, with *fields* as in `DataPacket`; further fields are ignored.

        *response*: it is the data phase of a split load or atomic. *compress*: leave out bytes that repeat the last
        bit. Raises MalformedPacket if the specification has no such packet.
        """
        shape = self._packet_shape(kind, operation, aligned, response)
        bits, position = shape.head, shape.head_width
        value = 0
        for name, width, conditional in shape.fields:
            if conditional and not _has_conditional(fields):
                continue
            if width < 0:
                width = 8 * (value + 1) if width == _BYTES_BEFORE else _access_size(fields, size_of)
            value = fields[name] if width else 0
            if value >> width:
                raise MalformedPacket(f"{name} {value:#x} has more than {width} bits")
            bits |= value << position
            position += width
        return _packed(bits, position, compress)

    def _packet_shape(self, kind: str, operation: str, aligned: bool, response: bool) -> _PacketShape:
        number = self._by_code.get((kind, operation, aligned, response))
        if number is None:
            raise MalformedPacket(f"there is no packet for: {kind} {operation}".rstrip())
        shape = self._shapes.get(number)
        if shape is None:
            width = self._options.format_width
            raise MalformedPacket(self._absent.get(number) or f"{kind} packets need a format of more than {width} bits")
        return shape


def _resolved(form: DataForm, options: DataOptions) -> tuple[tuple[str, int, bool], ...]:
    """Return the fields of a form as (name, width, whether conditional)."""
    found = []
    for field in body_fields(form, options):
        if isinstance(field.width, int):
            width = field.width
        elif field.width is Width.LENGTH:
            width = _ACCESS_SIZE
        elif field.width in (Width.DATA_LEN, Width.OP_LEN):
            width = _BYTES_BEFORE
        else:
            width = int(getattr(options, field.width.value))
        found.append((field.name, width, bool(field.when)))
    return tuple(found)


def _packed(bits: int, count: int, compress: bool) -> bytes:
    """Return *count* bits as whole bytes, padded with copies of the last bit; compressed: without bytes of padding."""
    signed = bits - (1 << count) if bits >> count - 1 else bits
    needed = (signed if signed >= 0 else ~signed).bit_length() + 1
    return signed.to_bytes((needed if compress else count) + 7 >> 3, "little", signed=True)


def _absence_reason(code: FormCode, options: DataOptions) -> str:
    what = f"{code.kind} {code.operation}".rstrip()
    signalling = "split" if options.split else "unified"
    return f"a packet that does not exist: {what} ({code.form.value}), {options.content.value}, {signalling} signalling"


def _has_conditional(fields: Mapping[str, int]) -> bool:
    """Whether a packet has its conditional fields: resp is not an error, or the CSR is writable (addr[11:10])."""
    return fields["resp"] != 0 if "resp" in fields else fields["addr_msbs"] >> 4 != 0b11


def _access_size(fields: Mapping[str, int], size_of: SizeOf) -> int:
    """Return *size* of the packet or of its request."""
    size = fields["size"] if "size" in fields else size_of(fields["lrid"])
    if size is None:
        raise MalformedPacket(f"the data of load ID {fields['lrid']}, which was not requested")
    return size


def _check_fields(fields: Mapping[str, int], form: DataForm, options: DataOptions) -> None:
    """Raise MalformedPacket for values that no encoder sends."""
    size = fields.get("size", 0)
    if 8 << size > options.data_width and size:
        raise MalformedPacket(f"size {size}: an access of more than {options.data_width} bits")
    is_defined = "address" in fields or form is DataForm.SPLIT_ATOMIC or options.reference
    if fields.get("diff") == 0b10 and not is_defined:
        raise MalformedPacket("diff 10 is reserved")
