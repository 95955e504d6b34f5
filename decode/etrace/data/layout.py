"""The te_data packets: fields, order and widths, declared once for encoder and decoder.

Source: E-Trace 2.0 (updates 2.0.5), "Data Trace Encoder Output Packets"; the v0.8 extension "Data Trace of
Multiple-Memory Access and Compare and Swap", which has the same fields behind other *format* and *subformat* codes.
"""

from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.data.options import Content, DataOptions
from rvtrace_gdb.decode.memory_access import ATOMIC, CAS_FAILURE, CSR, LOAD, MULTIPLE, STORE, STORE_FAILURE


class Form(Enum):
    """The kinds of packets, as the tables of the specification are titled."""

    LOAD_STORE = "Unified load or store"
    SPLIT_LOAD = "Split load - request phase"
    SPLIT_DATA = "Split load - data phase"
    ATOMIC = "Unified atomic"
    CAS_FAILED = "Unified CAS failure"
    SPLIT_ATOMIC = "Split atomic - request phase"
    SPLIT_ATOMIC_DATA = "Split atomic load - data phase"
    CSR = "Unified CSR"


class Width(Enum):
    """Widths that are not the same in all packets."""

    SIZE = "size_width"
    LRID = "lrid_width"
    DIFF = "diff_width"
    DATA = "data_width"
    ADDRESS = "address_width"
    CSR_LEN = "csr_len_width"
    LENGTH = "the value of size"
    DATA_LEN = "8 * (data_len + 1)"
    OP_LEN = "8 * (op_len + 1)"


class Field(NamedTuple):
    """One field. *when*: which packets have it, beyond those of its form (`packet`)."""

    name: str
    width: Width | int
    when: str = ""


_SIZE = Field("size", Width.SIZE)
_LRID = Field("lrid", Width.LRID)
_ADDRESS = Field("address", Width.ADDRESS)
_WHOLE_DATA = Field("data", Width.DATA)
_DATA = (Field("data_len", Width.LENGTH), Field("data", Width.DATA_LEN))
_OPERAND = (Field("op_len", Width.LENGTH), Field("operand", Width.OP_LEN))
_DIFF1, _DIFF2, _DIFF = Field("diff", 1), Field("diff", 2), Field("diff", Width.DIFF)
_RESP = Field("resp", 2)
_NO_ERROR = "resp is not 00 (error)"
_WRITABLE = "addr[11:10] is not 11 (read-only)"
_CSR_ADDRESS = (Field("addr_msbs", 6), Field("addr_lsbs", 6))
_CSR_DATA = (
    _DIFF,
    Field("data_len", Width.CSR_LEN),
    Field("data", Width.DATA_LEN),
    Field("addr_msbs", 6),
    Field("op_len", Width.CSR_LEN, _WRITABLE),
    Field("operand", Width.OP_LEN, _WRITABLE),
    Field("addr_lsbs", 6),
)

_RESP_DATA = (
    _LRID,
    _RESP,
    Field("data_len", Width.LENGTH, _NO_ERROR),
    Field("data", Width.DATA_LEN, _NO_ERROR),
)

BODIES: dict[tuple[Form, Content], tuple[Field, ...]] = {
    (Form.LOAD_STORE, Content.BOTH): (_SIZE, _DIFF2, *_DATA, _ADDRESS),
    (Form.LOAD_STORE, Content.ADDRESS): (_SIZE, _DIFF1, _ADDRESS),
    (Form.LOAD_STORE, Content.DATA): (_SIZE, _DIFF, _WHOLE_DATA),
    (Form.SPLIT_LOAD, Content.BOTH): (_SIZE, _LRID, _DIFF1, _ADDRESS),
    (Form.SPLIT_DATA, Content.BOTH): (_SIZE, _LRID, _RESP, Field("data", Width.DATA, _NO_ERROR)),
    (Form.SPLIT_DATA, Content.DATA): (_SIZE, _LRID, _RESP, Field("data", Width.DATA, _NO_ERROR)),
    (Form.ATOMIC, Content.BOTH): (_SIZE, _DIFF2, *_OPERAND, *_DATA, _ADDRESS),
    (Form.ATOMIC, Content.ADDRESS): (_SIZE, _DIFF1, _ADDRESS),
    (Form.ATOMIC, Content.DATA): (_SIZE, _DIFF, *_OPERAND, _WHOLE_DATA),
    (Form.CAS_FAILED, Content.BOTH): (_SIZE, _DIFF2, *_OPERAND, _ADDRESS),
    (Form.SPLIT_ATOMIC, Content.BOTH): (_SIZE, _LRID, _DIFF, *_OPERAND, _ADDRESS),
    (Form.SPLIT_ATOMIC, Content.DATA): (_SIZE, _LRID, _DIFF, Field("operand", Width.DATA)),
    (Form.SPLIT_ATOMIC_DATA, Content.BOTH): _RESP_DATA,
    (Form.SPLIT_ATOMIC_DATA, Content.DATA): _RESP_DATA,
    (Form.CSR, Content.BOTH): _CSR_DATA,
    (Form.CSR, Content.DATA): _CSR_DATA,  # the specification has no packet for the data of a CSR alone
    (Form.CSR, Content.ADDRESS): (_DIFF1, *_CSR_ADDRESS),
}
"""What follows format, subformat and subtype. Where the data phase of an atomic has no size, the request's holds."""

_BODIES_EXTENDED = {
    (Form.SPLIT_ATOMIC, Content.BOTH): (_SIZE, _LRID, _DIFF2, *_OPERAND, _ADDRESS),
    (Form.SPLIT_ATOMIC, Content.DATA): (_SIZE, _LRID, _DIFF2, Field("operand", Width.DATA)),
}
"""The extension's, where they differ: *diff* of split atomics always has two bits."""


class Code(NamedTuple):
    """What the first bits of a packet say: the form (before signalling is regarded), and what was done."""

    form: Form
    kind: str
    operation: str = ""
    aligned: bool = True


def _loads_and_stores(operation: str) -> tuple[Code, ...]:
    """By the two low bits of *format*, or *subformat* of the extension."""
    return (
        Code(Form.LOAD_STORE, LOAD, operation, True),
        Code(Form.LOAD_STORE, LOAD, operation, False),
        Code(Form.LOAD_STORE, STORE, operation, True),
        Code(Form.LOAD_STORE, STORE, operation, False),
    )


_OPERATIONS = ("swap", "add", "and", "or", "xor", "max", "min")
_CSR_OPERATIONS = ("rw", "rs", "rc")

CODES: dict[tuple[int, int], Code] = {
    **{(number, 0): code for number, code in enumerate(_loads_and_stores(""))},
    (4, 0): Code(Form.SPLIT_DATA, LOAD),
    **{(5, subtype): Code(Form.CSR, CSR, operation) for subtype, operation in enumerate(_CSR_OPERATIONS)},
    **{(6, subtype): Code(Form.ATOMIC, ATOMIC, operation) for subtype, operation in enumerate(_OPERATIONS)},
    (6, 7): Code(Form.ATOMIC, ATOMIC, STORE_FAILURE),
    (7, 0): Code(Form.SPLIT_ATOMIC_DATA, ATOMIC),
}
"""2.0: (format, subtype)."""

CODES_EXTENDED: dict[tuple[int, int], Code] = {
    **{(0, number): code for number, code in enumerate(_loads_and_stores(""))},
    **{(1, number): code for number, code in enumerate(_loads_and_stores(MULTIPLE))},
    **{(2, 4 + subformat): Code(Form.CSR, CSR, operation) for subformat, operation in enumerate(_CSR_OPERATIONS)},
    (2, 7): Code(Form.CAS_FAILED, ATOMIC, CAS_FAILURE),
    **{(2, 8 + subformat): Code(Form.ATOMIC, ATOMIC, operation) for subformat, operation in enumerate(_OPERATIONS)},
    (2, 15): Code(Form.ATOMIC, ATOMIC, STORE_FAILURE),
    (3, 0): Code(Form.SPLIT_DATA, LOAD),
}
"""The extension: (format, subformat)."""

SUBTYPE_WIDTH = {5: 2, 6: 3}
"""2.0: bits of *subtype*, by format."""

SUBFORMAT_WIDTH = {0: 2, 1: 2, 2: 4}
"""The extension: bits of *subformat*, by format."""


def form_of(code: Code, options: DataOptions) -> Form | None:
    """The form a packet with this code has; None where the specification reserves it for such an encoder.

    Split signalling is used where a load or an atomic needs both phases: where one tells all that is to be in the
    trace, the packet is the unified one.
    """
    form, content = code.form, options.content
    if code.operation in (STORE_FAILURE, CAS_FAILURE) and content is Content.ADDRESS:
        return Form.ATOMIC
    if code.operation == STORE_FAILURE or (form is Form.CAS_FAILED and content is Content.DATA):
        return None
    if not options.split:
        return None if form in (Form.SPLIT_DATA, Form.SPLIT_ATOMIC_DATA) else form
    if form is Form.LOAD_STORE and code.kind == LOAD and content is Content.BOTH:
        return Form.SPLIT_LOAD
    if form is Form.ATOMIC and content is not Content.ADDRESS:
        return Form.SPLIT_ATOMIC
    return form if (form, content) in BODIES else None


def body(form: Form, options: DataOptions) -> tuple[Field, ...]:
    """The fields of a packet of this form after its code."""
    key = (form, options.content)
    return _BODIES_EXTENDED.get(key, BODIES[key]) if options.extended else BODIES[key]
