"""Addresses and values told by how they differ: "diff field" of E-Trace 2.0.5, by hand and against the reference."""

import csv
import gzip
import io
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.data import DataDecoder
from rvtrace_gdb.decode.etrace.data.codec import Compression, DataEncoder
from rvtrace_gdb.decode.etrace.layout import MalformedPacket
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.history.accesses import note_text
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CAS_FAILURE,
    CSR,
    LOAD,
    MULTIPLE,
    STORE,
    STORE_FAILURE,
    AccessNote,
    MemoryAccess,
)
from tests.decode.etrace.data.fields import payload
from tests.helpers.amounts import each_seed, some_of

FOLDER = Path(__file__).resolve().parents[3] / "data" / "etrace-data"
PARAMETERS = Parameters(daddress_width=32)
BOTH, NO_DATA, NO_ADDRESS = Modes(), Modes(data_no_data=True), Modes(data_no_address=True)


def store(diff: int, data: int, address: int, size: int = 2) -> bytes:
    """A store packet with one byte of data; the address counts words."""
    return payload((3, 0b010), (2, size), (2, diff), (size, 0), (8, data), (32, address))


def decoded(*payloads: bytes, parameters: Parameters = PARAMETERS, modes: Modes = BOTH) -> list[MemoryAccess]:
    decoder = DataDecoder(parameters, modes)
    for each in payloads:
        decoder.packet(each)
    return decoder.accesses


@pytest.mark.parametrize(
    ("diff", "data", "value"),
    [
        (0b01, 0x0F, 0x50 ^ 0x0F),  # XOR-compressed data
        (0b01, -1, 0x50 ^ 0xFFFF_FFFF),  # sign-extended first
        (0b10, 0x0F, 0x0F),  # full data
        (0b11, 0x0F, 0x50 + 0x0F),  # differential data
        (0b11, -0x51, 0xFFFF_FFFF),  # modulo the size of the access
    ],
)
def test_two_bits_of_diff(diff: int, data: int, value: int) -> None:
    """After a store of 0x50 to 0x400: the address differs by -1 word."""
    accesses = decoded(store(0b00, 0x50, 0x100), store(diff, data, -1))
    assert [(access.address, access.value) for access in accesses] == [(0x400, 0x50), (0x3FC, value)]


def test_each_size_has_its_own_predecessor() -> None:
    """ "Encoded values are determined on a per access size basis"."""
    accesses = decoded(store(0, 1, 0x100, 2), store(0, 2, 0x900, 3), store(0b11, 1, 1, 2), store(0b11, 1, 1, 3))
    assert [(a.address, a.value) for a in accesses] == [(0x400, 1), (0x4800, 2), (0x404, 2), (0x4808, 3)]


def test_loads_and_stores_of_a_size_have_the_same_predecessor() -> None:
    load = payload((3, 0b000), (2, 2), (2, 0b11), (2, 0), (8, 1), (32, 1))
    assert [(a.address, a.value) for a in decoded(store(0, 1, 0x100), load)] == [(0x400, 1), (0x404, 2)]


@pytest.mark.parametrize(
    ("width", "diff", "difference", "value"),
    [(1, 1, False, 6 ^ 3), (1, 1, True, 6 + 3), (2, 0b01, True, 6 ^ 3), (2, 0b11, False, 6 + 3)],
)
def test_one_bit_of_diff_does_not_tell_which_compression(width: int, diff: int, difference: bool, value: int) -> None:
    """ "01: Compressed data (XOR if 2 bits)": with one bit an encoder offers one of them."""
    parameters = replace(PARAMETERS, data_diff_width=width, data_difference=difference)
    packets = [payload((3, 0), (2, 2), (width, 0), (64, 6)), payload((3, 0), (2, 2), (width, diff), (64, 3))]
    assert [a.value for a in decoded(*packets, parameters=parameters, modes=NO_ADDRESS)] == [6, value]


def test_a_synchronization_begins_anew() -> None:
    """ "Following a synchronization instruction trace packet, the first data trace packet for a given access size must
    include the full (unencoded) data access address"."""
    decoder = DataDecoder(PARAMETERS, BOTH)
    decoder.packet(store(0, 1, 0x100))
    decoder.synchronize(7)
    decoder.packet(store(0b10, 2, 1))  # which an encoder must not send
    decoder.packet(store(0b00, 3, 0x200))
    decoder.packet(store(0b11, 4, 1))
    assert [(a.address, a.value, a.sync) for a in decoder.accesses] == [
        (0x400, 1, -1), (None, 2, 7), (0x800, 3, 7), (0x804, 7, 7)
    ]  # fmt: skip
    assert note_text(decoder.accesses[1]) == "reported as the difference from an access that is not in the trace"


def test_after_a_loss_nothing_is_known_to_differ_from() -> None:
    decoder = DataDecoder(replace(PARAMETERS, lrid_width=2), BOTH)
    decoder.synchronize(0)
    decoder.packet(payload((3, 0), (2, 2), (2, 1), (1, 0), (32, 0x100)))
    decoder.lost()
    decoder.packet(store(0b11, 4, 1))
    decoder.packet(payload((3, 4), (2, 2), (2, 1), (2, 0b10), (64, 5)))  # maybe of a request that was lost
    assert [(a.address, a.value, a.sync) for a in decoder.accesses] == [
        (0x400, None, 0),
        (None, None, -1),
        (None, 5, -1),
    ]
    assert AccessNote.LOST_AFTER in decoder.accesses[0].notes
    assert decoder.accesses[2].notes == (AccessNote.NO_REQUEST,)


def test_a_csr_number_may_differ_from_the_one_before() -> None:
    """ "Unified CSR, with address only": diff 1 is a differential address."""
    packets = [payload((3, 5), (2, 0), (1, 0), (6, 0x0D), (6, 0)), payload((3, 5), (2, 0), (1, 1), (6, 0), (6, 2))]
    assert [a.address for a in decoded(*packets, modes=NO_DATA)] == [0x340, 0x342]


def test_diff_10_is_reserved_where_there_is_no_address() -> None:
    with pytest.raises(MalformedPacket, match="diff 10 is reserved"):
        decoded(payload((3, 0), (2, 2), (2, 0b10), (64, 6)), modes=NO_ADDRESS)


def test_no_access_is_wider_than_the_bus() -> None:
    with pytest.raises(MalformedPacket, match="size 3: an access of more than 32 bits"):
        decoded(store(0, 1, 1, 3), parameters=replace(PARAMETERS, data_width=32))


def test_the_data_of_an_atomic_nobody_asked_for() -> None:
    with pytest.raises(MalformedPacket, match="the data of load ID 2, which was not requested"):
        decoded(payload((3, 7), (2, 2), (2, 2), (2, 0), (8, 1)), parameters=replace(PARAMETERS, lrid_width=2))


REFERENCE = Parameters(data_reference=True)


def reference_packets() -> Iterator[tuple[int, bytes]]:
    """(message type, payload) of the reference encoder's stream."""
    stream = (FOLDER / "qsort.te_data_raw").read_bytes()
    at = 0
    while at < len(stream):
        end = at + 1 + (stream[at] & 31)
        yield stream[at] >> 5, stream[at + 1 : end]
        at = end


def reference_accesses() -> list[MemoryAccess]:
    """What the reference encoder was given."""
    with gzip.open(FOLDER / "qsort.csv.gz") as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file)))
    kinds = {"0": LOAD, "1": STORE}
    return [
        MemoryAccess(kinds[row["DTYPE"]], 1 << int(row["DSIZE"]), "", int(row["DADDR"], 16), int(row["DATA"], 16))
        for row in rows
    ]


def test_the_reference_encoders_stream_is_decoded() -> None:
    decoder = DataDecoder(REFERENCE, BOTH)
    for kind, packet in reference_packets():
        if kind == 3:
            decoder.packet(packet)
    assert len(decoder.accesses) == 17624
    assert decoder.accesses == reference_accesses()


def test_the_reference_encoders_stream_is_encoded() -> None:
    """To the same bytes."""
    sent: list[bytes] = []
    encoder = DataEncoder(REFERENCE, BOTH, sent.append)
    for access in reference_accesses():
        assert encoder.access(access)
    assert sent == [packet for kind, packet in reference_packets() if kind == 3]


def test_without_being_told_the_reference_is_not_misread() -> None:
    """It says 01 for a first address, which by the document cannot be known: no address or value is made up."""
    decoder = DataDecoder(Parameters(), BOTH)
    for kind, packet in reference_packets():
        if kind == 3:
            decoder.packet(packet)
    assert {(access.address, access.value) for access in decoder.accesses} == {(None, None)}


def test_compression_costs_nothing_but_bytes() -> None:
    """The reference's accesses through our encoder: the more it may choose the fewer bytes, as "whichever results in
    the most efficient representation" has it; and fewer than the reference model, which fixes diff and data_len."""
    count = some_of(10_000)
    accesses = reference_accesses()[-count:]
    assert len(accesses) == count
    sizes: dict[Compression, int] = {}
    for compression in Compression:
        sent: list[bytes] = []
        encoder = DataEncoder(Parameters(), BOTH, sent.append, compression)
        assert all(map(encoder.access, accesses))
        assert decoded(*sent, parameters=Parameters()) == accesses
        sizes[compression] = sum(map(len, sent))
    packets = [packet for kind, packet in reference_packets() if kind == 3][-count:]
    assert sizes[Compression.BOTH] < sizes[Compression.DIFFERENCE] < sizes[Compression.NONE]
    assert sizes[Compression.BOTH] < sizes[Compression.XOR] < sizes[Compression.NONE]
    assert sizes[Compression.BOTH] < sum(map(len, packets))


def random_setup(r: random.Random) -> tuple[Parameters, Modes]:
    is_extended = r.random() < 0.5
    data_width = r.choice([32, 64, 128])
    parameters = Parameters(
        mmacas_ext=is_extended,
        data_width=data_width,
        daddress_width=r.choice([32, 64]),
        lrid_width=r.choice([0, 0, 1, 3]),
        data_format_width=2 if is_extended else 3,
        data_diff_width=r.choice([1, 2]),
        data_difference=r.random() < 0.5,
        csr_width=r.choice([32, 64]),
    )
    if not parameters.lrid_width and r.random() < 0.4:
        parameters = replace(parameters, data_format_width=r.choice([0, 1] if is_extended else [2]))
    modes = Modes(data_full_address=r.random() < 0.3, data_full_data=r.random() < 0.3)
    return parameters, r.choice([modes, replace(modes, data_no_data=True), replace(modes, data_no_address=True)])


def random_access(r: random.Random, parameters: Parameters, base: int) -> MemoryAccess:
    kind = r.choice([LOAD, LOAD, STORE, ATOMIC, CSR])
    if kind == CSR:
        number = r.getrandbits(12)
        value, operand = r.getrandbits(parameters.csr_width), r.getrandbits(parameters.csr_width)
        operation = r.choice(["rw", "rs", "rc"])
        return MemoryAccess(
            CSR, parameters.csr_width // 8, operation, number, value, None if number >> 10 == 3 else operand
        )
    size = 1 << r.randrange((parameters.data_width // 8).bit_length())
    mask = (1 << 8 * size) - 1
    value = r.choice([r.getrandbits(8 * size), r.getrandbits(4), mask - r.getrandbits(3)])
    near = base + r.choice([0, 1, 8, 16, -8, 1 << 30, r.getrandbits(parameters.daddress_width)])
    address = near & (1 << parameters.daddress_width) - 1
    if kind != ATOMIC:
        return MemoryAccess(kind, size, MULTIPLE if r.random() < 0.2 else "", address, value)
    operation = r.choice(["swap", "add", "and", "or", "xor", "max", "min", CAS_FAILURE, STORE_FAILURE])
    stored = None if operation == CAS_FAILURE else value
    return MemoryAccess(ATOMIC, size, operation, address & -size, stored, r.getrandbits(8 * size))


@each_seed(range(300))
def test_what_is_encoded_is_decoded(seed: int) -> None:
    r = random.Random(seed)
    parameters, modes = random_setup(r)
    sent: list[bytes] = []
    encoder = DataEncoder(parameters, modes, sent.append, r.choice(list(Compression)))
    decoder = DataDecoder(parameters, modes)
    base = r.getrandbits(parameters.daddress_width)
    expected: list[MemoryAccess] = []
    for _ in range(60):
        if r.random() < 0.05:
            encoder.synchronize()
            decoder.synchronize(-1)
        access = random_access(r, parameters, base)
        before = len(sent)
        if encoder.access(access):
            if modes.data_no_data:
                access = access._replace(value=None, operand=None)
            if modes.data_no_address and access.kind != CSR:
                access = access._replace(address=None)
            expected.append(access)
        for packet in sent[before:]:
            decoder.packet(packet)
    assert decoder.accesses == expected


@each_seed(range(100))
def test_any_bytes_are_packets_or_malformed(seed: int) -> None:
    r = random.Random(seed)
    decoder = DataDecoder(*random_setup(r))
    for _ in range(200):
        before = len(decoder.accesses)
        try:
            decoder.packet(r.randbytes(r.randrange(40)))
        except MalformedPacket as error:
            assert str(error)
            assert len(decoder.accesses) == before
        assert len(decoder.accesses) <= before + 1
