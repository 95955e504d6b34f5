"""Each packet of "Data Trace Encoder Output Packets" (2.0.5), one test a table: its bits by hand, what it tells.

data_width 64: size has 2 bits. Values in a packet are told full unless a test says otherwise.
"""

import pytest

from rvtrace_gdb.decode.etrace.data import DataDecoder, DataOptions
from rvtrace_gdb.decode.etrace.data.codec import Compression, DataEncoder
from rvtrace_gdb.decode.etrace.data.packet import parse
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.wording import data_columns, data_meaning
from rvtrace_gdb.decode.history.accesses import note_text
from rvtrace_gdb.decode.program.instructions import ATOMIC, CSR, LOAD, STORE, STORE_FAILURE, MemoryAccess
from tests.decode.etrace.data.fields import payload

BOTH, NO_DATA, NO_ADDRESS = Modes(), Modes(data_no_data=True), Modes(data_no_address=True)
UNIFIED = Parameters(daddress_width=32)
SPLIT = Parameters(daddress_width=32, lrid_width=4)
Fields = list[tuple[int, int]]

ONE_PACKET: list[tuple[str, Parameters, Modes, Fields, MemoryAccess]] = [
    (
        "Unified load or store, with address and data",
        UNIFIED, BOTH,
        [(3, 0b000), (2, 2), (2, 0b00), (2, 0), (8, 0x2A), (32, 0x8000_1230 >> 2)],
        MemoryAccess(LOAD, 4, "", 0x8000_1230, 0x2A),
    ),
    (
        "Unified load or store, with address and data",  # the MSB of the last byte of data is its sign
        UNIFIED, BOTH,
        [(3, 0b000), (2, 2), (2, 0b00), (2, 1), (16, 0x8001), (32, 0x8000_1230 >> 2)],
        MemoryAccess(LOAD, 4, "", 0x8000_1230, 0xFFFF_8001),
    ),
    (
        "Unified load or store, with address and data",  # data_len has no bits for a byte
        UNIFIED, BOTH,
        [(3, 0b010), (2, 0), (2, 0b00), (8, 0xFE), (32, 0x8000_1233)],
        MemoryAccess(STORE, 1, "", 0x8000_1233, 0xFE),
    ),
    (
        "Unified load or store, with address and data",
        UNIFIED, BOTH,
        [(3, 0b011), (2, 3), (2, 0b00), (3, 7), (64, 0x0123_4567_89AB_CDEF), (32, 0x8000_1233)],
        MemoryAccess(STORE, 8, "", 0x8000_1233, 0x0123_4567_89AB_CDEF),
    ),
    (
        "Unified load or store, with address only",
        UNIFIED, NO_DATA,
        [(3, 0b001), (2, 1), (1, 0), (32, 0x1001)],
        MemoryAccess(LOAD, 2, "", 0x1001),
    ),
    (
        "Unified load or store, with data only",
        UNIFIED, NO_ADDRESS,
        [(3, 0b010), (2, 2), (2, 0b00), (64, -3)],
        MemoryAccess(STORE, 4, "", None, 0xFFFF_FFFD),
    ),
    (
        "Unified atomic with address and data",
        UNIFIED, BOTH,
        [(3, 0b110), (3, 0b001), (2, 3), (2, 0b00), (3, 0), (8, 1), (3, 1), (16, 0x1234), (32, 0x8000_2000 >> 3)],
        MemoryAccess(ATOMIC, 8, "add", 0x8000_2000, 0x1234, 1),
    ),
    (
        "Unified atomic with address only",
        UNIFIED, NO_DATA,
        [(3, 0b110), (3, 0b101), (2, 2), (1, 0), (32, 0x2004 >> 2)],
        MemoryAccess(ATOMIC, 4, "max", 0x2004),
    ),
    (
        "Unified atomic with address only",  # 111: conditional store failure
        UNIFIED, NO_DATA,
        [(3, 0b110), (3, 0b111), (2, 2), (1, 0), (32, 0x2004 >> 2)],
        MemoryAccess(ATOMIC, 4, STORE_FAILURE, 0x2004),
    ),
    (
        "Unified atomic with data and operand only",
        UNIFIED, NO_ADDRESS,
        [(3, 0b110), (3, 0b000), (2, 2), (2, 0b00), (2, 0), (8, 7), (64, 0x1_0000)],
        MemoryAccess(ATOMIC, 4, "swap", None, 0x1_0000, 7),
    ),
    (
        "Unified CSR, with address, data and operand",  # mstatus, 0x300
        UNIFIED, BOTH,
        [(3, 0b101), (2, 0b01), (2, 0b00), (3, 1), (16, 0x1800), (6, 0x0C), (3, 0), (8, 8), (6, 0)],
        MemoryAccess(CSR, 8, "rs", 0x300, 0x1800, 8),
    ),
    (
        "Unified CSR, with address and read-only data",  # time, 0xc01: addr[11:10] is 11
        UNIFIED, BOTH,
        [(3, 0b101), (2, 0b01), (2, 0b00), (3, 0), (8, 0x55), (6, 0x30), (6, 1)],
        MemoryAccess(CSR, 8, "rs", 0xC01, 0x55),
    ),
    (
        "Unified CSR, with address only",
        UNIFIED, NO_DATA,
        [(3, 0b101), (2, 0b10), (1, 0), (6, 0x0D), (6, 0x04)],
        MemoryAccess(CSR, 8, "rc", 0x344),
    ),
    (
        "Unified load or store, with address only",  # "even with split signalling"
        SPLIT, NO_DATA,
        [(3, 0b000), (2, 3), (1, 0), (32, 0x4000 >> 3)],
        MemoryAccess(LOAD, 8, "", 0x4000),
    ),
    (
        "Unified load or store, with data only",  # "even with split signalling"
        SPLIT, NO_ADDRESS,
        [(3, 0b000), (2, 3), (2, 0b00), (64, 5)],
        MemoryAccess(LOAD, 8, "", None, 5),
    ),
]  # fmt: skip

TWO_PACKETS: list[tuple[str, Modes, Fields, Fields, MemoryAccess]] = [
    (
        "Split load",
        BOTH,
        [(3, 0b000), (2, 2), (4, 9), (1, 0), (32, 0x4000 >> 2)],
        [(3, 0b100), (2, 2), (4, 9), (2, 0b10), (64, -2)],
        MemoryAccess(LOAD, 4, "", 0x4000, 0xFFFF_FFFE),
    ),
    (
        "Split load",  # resp 00: error, no data
        BOTH,
        [(3, 0b001), (2, 2), (4, 9), (1, 0), (32, 0x4001)],
        [(3, 0b100), (2, 2), (4, 9), (2, 0b00)],
        MemoryAccess(LOAD, 4, "", 0x4001, failed=True),
    ),
    (
        "Split atomic",
        BOTH,
        [(3, 0b110), (3, 0b010), (2, 2), (4, 3), (2, 0b00), (2, 0), (8, 0x0F), (32, 0x4000 >> 2)],
        [(3, 0b111), (4, 3), (2, 0b10), (2, 1), (16, 0x1FF)],
        MemoryAccess(ATOMIC, 4, "and", 0x4000, 0x1FF, 0x0F),
    ),
    (
        "Split atomic without address",
        NO_ADDRESS,
        [(3, 0b110), (3, 0b011), (2, 2), (4, 3), (2, 0b00), (64, 0x0F)],
        [(3, 0b111), (4, 3), (2, 0b00)],
        MemoryAccess(ATOMIC, 4, "or", None, None, 0x0F, failed=True),
    ),
]


@pytest.mark.parametrize(("title", "parameters", "modes", "fields", "told"), ONE_PACKET)
def test_a_packet(title: str, parameters: Parameters, modes: Modes, fields: Fields, told: MemoryAccess) -> None:
    """Decoded, and encoded to the same bytes."""
    decoder = DataDecoder(parameters, modes)
    decoder.packet(payload(*fields))
    assert decoder.accesses == [told]
    sent: list[bytes] = []
    assert DataEncoder(parameters, modes, sent.append).access(told)
    assert sent == [payload(*fields)]
    assert parse(payload(*fields), DataOptions.from_parameters(parameters, modes)).name in title.replace(",", "")


@pytest.mark.parametrize(("title", "modes", "request_fields", "response", "told"), TWO_PACKETS)
def test_two_phases(title: str, modes: Modes, request_fields: Fields, response: Fields, told: MemoryAccess) -> None:
    decoder = DataDecoder(SPLIT, modes)
    decoder.packet(payload(*request_fields))
    assert note_text(decoder.accesses[0]) == "no response in the trace"
    decoder.packet(payload(*response))
    assert decoder.accesses == [told]
    sent: list[bytes] = []
    encoder = DataEncoder(SPLIT, modes, sent.append)
    lrid = next(value for width, value in request_fields if width == 4)
    encoder.request(lrid, told)
    encoder.response(lrid, told.kind, told.value)
    assert sent == [payload(*request_fields), payload(*response)]


def test_responses_come_in_any_order() -> None:
    decoder = DataDecoder(SPLIT, BOTH)
    for lrid, size, address in ((0, 2, 0x100), (1, 3, 0x200)):
        decoder.packet(payload((3, 0), (2, size), (4, lrid), (1, 0), (32, address >> size)), offset=lrid)
    for lrid, size, value in ((1, 3, 11), (0, 2, 22)):
        decoder.packet(payload((3, 4), (2, size), (4, lrid), (2, 0b10), (64, value)), offset=10)
    assert [(a.address, a.value, a.offset) for a in decoder.accesses] == [(0x100, 22, 0), (0x200, 11, 1)]


def test_only_loads_and_stores_have_a_format_of_two_bits() -> None:
    """ "2 bits wide if only unified loads and stores are supported, or 3 bits otherwise"."""
    parameters = Parameters(daddress_width=32, data_format_width=2)
    fields = [(2, 0b10), (2, 2), (2, 0b00), (2, 0), (8, 1), (32, 4)]
    decoder = DataDecoder(parameters, BOTH)
    decoder.packet(payload(*fields))
    assert decoder.accesses == [MemoryAccess(STORE, 4, "", 16, 1)]
    sent: list[bytes] = []
    encoder = DataEncoder(parameters, BOTH, sent.append)
    assert not encoder.access(MemoryAccess(ATOMIC, 4, "add", 16, 1, 1))
    assert encoder.access(MemoryAccess(STORE, 4, "", 16, 1))
    assert sent == [payload(*fields)]


@pytest.mark.parametrize(("data_width", "bits"), [(8, 1), (32, 2), (64, 2), (128, 3)])
def test_size_field(data_width: int, bits: int) -> None:
    """max(1, clog2(clog2(data_width/8 + 1))); "2 bits if max size is 64 bits, 3 bits if wider"."""
    assert DataOptions(data_width=data_width).size_width == bits


def test_csrs_of_32_bits_have_lengths_of_two_bits() -> None:
    """On a hart with 32-bit CSRs and, say, double-precision floating point: data_width is 64."""
    parameters = Parameters(csr_width=32)
    decoder = DataDecoder(parameters, BOTH)
    decoder.packet(payload((3, 0b101), (2, 0b00), (2, 0b00), (2, 0), (8, -1), (6, 0x0D), (2, 3), (32, 1 << 31), (6, 0)))
    assert decoder.accesses == [MemoryAccess(CSR, 4, "rw", 0x340, 0xFFFF_FFFF, 1 << 31)]


def test_what_an_atomic_that_failed_leaves() -> None:
    """With values no packet says that a store-conditional failed: 111 is reserved there."""
    sent: list[bytes] = []
    failed = MemoryAccess(ATOMIC, 4, STORE_FAILURE, 0x2004)
    assert not DataEncoder(UNIFIED, BOTH, sent.append).access(failed)
    assert not DataEncoder(UNIFIED, NO_ADDRESS, sent.append).access(failed)
    assert sent == []


def test_nothing_to_tell_is_refused() -> None:
    with pytest.raises(ValueError, match="data_no_address and data_no_data"):
        DataEncoder(UNIFIED, Modes(data_no_address=True, data_no_data=True), lambda _: None, Compression.NONE)


def test_words() -> None:
    fields = [(3, 0b011), (2, 2), (2, 0b11), (2, 0), (8, 0x7F), (32, 5)]
    options = DataOptions.from_parameters(UNIFIED, BOTH)
    packet = parse(payload(*fields), options)
    assert data_columns(packet) == ["size=2", "diff=3", "data_len=0", "data=0x7f", "address=0x5"]
    assert data_meaning(packet, options) == "unaligned store of 4 bytes, differential address, differential data"
    split = DataOptions.from_parameters(SPLIT, BOTH)
    packet = parse(payload((3, 0b100), (2, 2), (4, 9), (2, 0b01), (64, 3)), split)
    assert data_columns(packet) == ["size=2", "lrid=9", "resp=1", "data=0x3"]
    assert data_meaning(packet, split) == "data of load ID 9: XOR-compressed data"
