"""Each packet of the extension "Data Trace of Multiple-Memory Access and Compare and Swap" v0.8: its bits by hand."""

import pytest

from rvtrace_gdb.decode.etrace.data import DataDecoder
from rvtrace_gdb.decode.etrace.data.codec import DataEncoder
from rvtrace_gdb.decode.etrace.layout import MalformedPacket
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CAS_FAILURE,
    CSR,
    LOAD,
    MULTIPLE,
    STORE,
    STORE_FAILURE,
    MemoryAccess,
)
from tests.decode.etrace.data.fields import payload

BOTH, NO_DATA, NO_ADDRESS = Modes(), Modes(data_no_data=True), Modes(data_no_address=True)
UNIFIED = Parameters(daddress_width=32, mmacas_ext=True)
SPLIT = Parameters(daddress_width=32, mmacas_ext=True, lrid_width=2)
Fields = list[tuple[int, int]]

ONE_PACKET: list[tuple[str, Parameters, Modes, Fields, MemoryAccess]] = [
    (
        "Unified load or store, with address and data",
        UNIFIED, BOTH,
        [(2, 0b00), (2, 0b11), (2, 2), (2, 0b00), (2, 0), (8, 5), (32, 0x1001)],
        MemoryAccess(STORE, 4, "", 0x1001, 5),
    ),
    (
        "Unified load or store, with address and data",  # 01: of an instruction with several (cm.push)
        UNIFIED, BOTH,
        [(2, 0b01), (2, 0b10), (2, 3), (2, 0b00), (3, 0), (8, 5), (32, 0x1000 >> 3)],
        MemoryAccess(STORE, 8, MULTIPLE, 0x1000, 5),
    ),
    (
        "Unified load or store, with address only",
        UNIFIED, NO_DATA,
        [(2, 0b01), (2, 0b00), (2, 2), (1, 0), (32, 0x1000 >> 2)],
        MemoryAccess(LOAD, 4, MULTIPLE, 0x1000),
    ),
    (
        "Unified load or store, with data only",
        UNIFIED, NO_ADDRESS,
        [(2, 0b00), (2, 0b00), (2, 1), (2, 0b00), (64, -2)],
        MemoryAccess(LOAD, 2, "", None, 0xFFFE),
    ),
    (
        "Unified atomic with address and data",
        UNIFIED, BOTH,
        [(2, 0b10), (4, 0b1100), (2, 2), (2, 0b00), (2, 0), (8, 3), (2, 1), (16, 0x100), (32, 0x2000 >> 2)],
        MemoryAccess(ATOMIC, 4, "xor", 0x2000, 0x100, 3),
    ),
    (
        "Unified CAS failure",
        UNIFIED, BOTH,
        [(2, 0b10), (4, 0b0111), (2, 2), (2, 0b00), (2, 0), (8, 3), (32, 0x2000 >> 2)],
        MemoryAccess(ATOMIC, 4, CAS_FAILURE, 0x2000, None, 3),
    ),
    (
        "Unified atomic with address only",
        UNIFIED, NO_DATA,
        [(2, 0b10), (4, 0b0111), (2, 2), (1, 0), (32, 0x2000 >> 2)],
        MemoryAccess(ATOMIC, 4, CAS_FAILURE, 0x2000),
    ),
    (
        "Unified atomic with address only",
        UNIFIED, NO_DATA,
        [(2, 0b10), (4, 0b1111), (2, 2), (1, 0), (32, 0x2000 >> 2)],
        MemoryAccess(ATOMIC, 4, STORE_FAILURE, 0x2000),
    ),
    (
        "Unified atomic with data and operand only",
        UNIFIED, NO_ADDRESS,
        [(2, 0b10), (4, 0b1110), (2, 3), (2, 0b00), (3, 0), (8, -1), (64, 9)],
        MemoryAccess(ATOMIC, 8, "min", None, 9, (1 << 64) - 1),
    ),
    (
        "Unified CSR, with address, data and operand",
        UNIFIED, BOTH,
        [(2, 0b10), (4, 0b0110), (2, 0b00), (3, 0), (8, 9), (6, 0x0C), (3, 0), (8, 8), (6, 4)],
        MemoryAccess(CSR, 8, "rc", 0x304, 9, 8),
    ),
    (
        "Unified CSR, with address and read-only data",
        UNIFIED, BOTH,
        [(2, 0b10), (4, 0b0101), (2, 0b00), (3, 0), (8, 9), (6, 0x3C), (6, 0x14)],
        MemoryAccess(CSR, 8, "rs", 0xF14, 9),
    ),
    (
        "Unified CSR, with address only",
        UNIFIED, NO_DATA,
        [(2, 0b10), (4, 0b0100), (1, 0), (6, 0x0D), (6, 0)],
        MemoryAccess(CSR, 8, "rw", 0x340),
    ),
]  # fmt: skip

TWO_PACKETS: list[tuple[str, Modes, Fields, Fields, MemoryAccess]] = [
    (
        "Split load",
        BOTH,
        [(2, 0b01), (2, 0b00), (2, 3), (2, 1), (1, 0), (32, 0x4000 >> 3)],
        [(2, 0b11), (2, 3), (2, 1), (2, 0b10), (64, 77)],
        MemoryAccess(LOAD, 8, MULTIPLE, 0x4000, 77),
    ),
    (
        "Split atomic with operand and address",
        BOTH,
        [(2, 0b10), (4, 0b1011), (2, 2), (2, 1), (2, 0b00), (2, 0), (8, 4), (32, 0x4000 >> 2)],
        [(2, 0b11), (2, 2), (2, 1), (2, 0b10), (64, 77)],
        MemoryAccess(ATOMIC, 4, "or", 0x4000, 77, 4),
    ),
    (
        "Split atomic with operand only",
        NO_ADDRESS,
        [(2, 0b10), (4, 0b1000), (2, 2), (2, 1), (2, 0b00), (64, 4)],
        [(2, 0b11), (2, 2), (2, 1), (2, 0b10), (64, 77)],
        MemoryAccess(ATOMIC, 4, "swap", None, 77, 4),
    ),
]


@pytest.mark.parametrize(("title", "parameters", "modes", "fields", "told"), ONE_PACKET)
def test_a_packet(title: str, parameters: Parameters, modes: Modes, fields: Fields, told: MemoryAccess) -> None:
    """Decoded, and encoded to the same bytes."""
    decoder = DataDecoder(parameters, modes)
    decoder.packet(payload(*fields))
    assert decoder.accesses == [told], title
    sent: list[bytes] = []
    assert DataEncoder(parameters, modes, sent.append).access(told)
    assert sent == [payload(*fields)], title


@pytest.mark.parametrize(("title", "modes", "request_fields", "response", "told"), TWO_PACKETS)
def test_two_phases(title: str, modes: Modes, request_fields: Fields, response: Fields, told: MemoryAccess) -> None:
    decoder = DataDecoder(SPLIT, modes)
    decoder.packet(payload(*request_fields))
    decoder.packet(payload(*response))
    assert decoder.accesses == [told], title
    sent: list[bytes] = []
    encoder = DataEncoder(SPLIT, modes, sent.append)
    encoder.request(1, told)
    encoder.response(1, told.kind, told.value)
    assert sent == [payload(*request_fields), payload(*response)], title


@pytest.mark.parametrize("width", [0, 1])
def test_format_may_be_narrower(width: int) -> None:
    """ "omitted completely if only unified loads and stores are supported, or reduced to 1 bit if unified multi-memory
    access loads and stores are also supported"."""
    parameters = Parameters(daddress_width=32, mmacas_ext=True, data_format_width=width)
    fields = [(width, 0), (2, 0b10), (2, 0), (2, 0b00), (8, 0x41), (32, 0x10)]
    decoder = DataDecoder(parameters, BOTH)
    decoder.packet(payload(*fields))
    assert decoder.accesses == [MemoryAccess(STORE, 1, "", 0x10, 0x41)]
    sent: list[bytes] = []
    encoder = DataEncoder(parameters, BOTH, sent.append)
    assert encoder.access(MemoryAccess(STORE, 1, "", 0x10, 0x41))
    assert sent == [payload(*fields)]
    assert encoder.access(MemoryAccess(STORE, 1, MULTIPLE, 0x10, 0x41)) is (width == 1)
    assert not encoder.access(MemoryAccess(CSR, 8, "rw", 0x340, 1, 1))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ([(2, 0b10), (4, 0b0000)], "format 2 subformat 0 is reserved"),
        ([(2, 0b10), (4, 0b1111), (2, 2)], "a packet that does not exist: atomic conditional store failure"),
        ([(2, 0b11), (2, 2), (2, 0b10), (64, 1)], "a packet that does not exist: load"),  # but of a split load
    ],
)
def test_codes_that_are_reserved(fields: Fields, why: str) -> None:
    with pytest.raises(MalformedPacket, match=why):
        DataDecoder(UNIFIED, BOTH).packet(payload(*fields))
