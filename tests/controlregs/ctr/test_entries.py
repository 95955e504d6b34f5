"""Entries and their cycle counts, against the documents' formula and table."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.ctr.entries import (
    ENTRY_BYTES,
    CtrEntry,
    TransferType,
    counter_bits,
    decode_cycles,
    encode_cycles,
    is_saturated,
    pack,
    unpack,
)

WORD = st.integers(0, (1 << 64) - 1)
COUNTS = st.integers(0, 1 << 28)
SIZES = [(0, 12, 4095), (1, 13, 8191), (2, 15, 32764), (3, 19, 524224), (4, 27, 134201344)]


def elapsed_by_the_document(cce: int, ccm: int) -> int:
    """The formula of "Cycle Counting", both versions."""
    return ccm if cce == 0 else (2**12 + ccm) * 2 ** (cce - 1)


@pytest.mark.parametrize(("exponent_bits", "size", "most"), SIZES, ids=[f"{bits}-exponent-bits" for bits, *_ in SIZES])
def test_cycle_counter_size_options(exponent_bits: int, size: int, most: int) -> None:
    """1.0, table "Cycle Counter Size Options": the size of the counter, and the greatest count that can be told."""
    assert counter_bits(exponent_bits) == size
    full = encode_cycles((1 << size) - 1, exponent_bits)
    assert full == encode_cycles(1 << size, exponent_bits) == encode_cycles(1 << 40, exponent_bits)
    assert decode_cycles(full) == most
    assert is_saturated(full, exponent_bits)
    assert full == ((1 << exponent_bits) - 1) << 12 | 0xFFF, "all implemented bits of CCM and CCE are 1"


@pytest.mark.parametrize("cce", range(16))
@pytest.mark.parametrize("ccm", [0, 1, 0x7FF, 0xABC, 0xFFF])
def test_formula(cce: int, ccm: int) -> None:
    assert decode_cycles(cce << 12 | ccm) == elapsed_by_the_document(cce, ccm)


@given(COUNTS, st.sampled_from([bits for bits, *_ in SIZES]))
def test_encoding(count: int, exponent_bits: int) -> None:
    """CCE is 0 below 4096, else the index of the highest one minus 11; CCM the 12 bits behind that one."""
    size = {bits: size for bits, size, _ in SIZES}[exponent_bits]
    count = min(count, 2**size - 1)
    cc = encode_cycles(count, exponent_bits)
    cce, ccm = divmod(cc, 4096)
    if count < 4096:
        assert (cce, ccm) == (0, count)
        return
    binary = f"{count:b}"
    assert cce == len(binary) - 1 - 11
    assert f"{ccm:012b}" == binary[1:13]
    assert cce < 2**exponent_bits


@given(COUNTS)
def test_counts_come_back_to_the_reported_granularity(count: int) -> None:
    """5.3: with CCE above 1 the lowest CCE - 1 bits of the count are not reported."""
    count = min(count, (1 << 27) - 1)
    cc = encode_cycles(count)
    unreported = max(0, (cc >> 12) - 1)
    assert decode_cycles(cc) == count >> unreported << unreported


def data(kind: int = 0, cc: int = 0, valid: bool = True) -> int:
    return kind | valid << 15 | cc << 16


def test_fields_of_an_entry() -> None:
    entry = CtrEntry(0x8000_0101, 0x8000_0200, data(9, 0x2010))
    assert (entry.valid, entry.source_pc) == (True, 0x8000_0100)
    assert (entry.target_pc, entry.mispredicted) == (0x8000_0200, False)
    assert (entry.type, entry.cycles, entry.saturated) == (TransferType.DIRECT_CALL, (4096 + 16) * 2, False)
    assert entry.cc == 0x2010
    assert CtrEntry(0x8000_0100, 0x8000_0201, data()).mispredicted
    assert not CtrEntry(0x8000_0100, 0x8000_0201, data()).valid


def test_partial_records_have_no_address() -> None:
    """"Privilege Mode Transitions", "External Traps": the address in the mode that is not enabled is 0."""
    assert CtrEntry(1, 0x8000_0000, data(2)).source_pc is None
    assert CtrEntry(0x8000_0001, 0, data(1)).target_pc is None
    assert CtrEntry(1, 0x8000_0000, data(2)).valid


@pytest.mark.parametrize("cc", [0, 0x0FFF, 0xFFFF])
def test_cycles_that_are_not_valid(cc: int) -> None:
    entry = CtrEntry(1, 0, data(5, cc, valid=False))
    assert entry.cycles is None and not entry.saturated


@pytest.mark.parametrize("cc", [0x0FFF, 0x1FFF, 0x3FFF, 0x7FFF, 0xFFFF])
def test_all_ones_may_be_saturated(cc: int) -> None:
    """As many exponent bits as a hart has are 1 then: 0, 1, 2, 3 or 4 of them."""
    assert CtrEntry(1, 0, data(5, cc)).saturated
    assert not CtrEntry(1, 0, data(5, cc - 1)).saturated


@pytest.mark.parametrize("cc", [0x2FFF, 0x4FFF, 0x8FFF, 0xEFFF])
def test_an_exponent_with_zeros_is_not_saturated(cc: int) -> None:
    assert not CtrEntry(1, 0, data(5, cc)).saturated


@pytest.mark.parametrize("code", range(16))
def test_every_type_code_has_a_name(code: int) -> None:
    assert CtrEntry(1, 0, data(code) | 0x7FF0).type == code


def test_bytes() -> None:
    entries = [CtrEntry(1, 2, 3), CtrEntry((1 << 64) - 1, 0, 0x8000_0000_0000_0000)]
    raw = pack(entries)
    assert raw == struct.pack("<6Q", 1, 2, 3, (1 << 64) - 1, 0, 1 << 63)
    assert (len(raw), ENTRY_BYTES) == (48, 24)
    assert unpack(raw) == entries
    assert unpack(raw + b"rest") == entries and unpack(b"") == []


@given(st.lists(st.tuples(WORD, WORD, WORD).map(lambda words: CtrEntry(*words)), max_size=8))
def test_any_values_survive(entries: list[CtrEntry]) -> None:
    again = unpack(pack(entries))
    assert again == entries
    for entry in again:
        assert isinstance(entry.type, TransferType) and (entry.cycles is None or entry.cycles >= 0)
