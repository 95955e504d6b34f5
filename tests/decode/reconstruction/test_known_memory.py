"""Memory of which some is declared: what is not RAM is not believed, and constants only until a store changes them."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.reconstruction.constants import NoConstants
from rvtrace_gdb.decode.reconstruction.known_memory import KnownMemory, rams_of
from rvtrace_gdb.support.extents import Extent


class Constants:
    """The bytes 0, 1, 2... at 0x1000 to 0x101f."""

    def constant(self, addr: int, size: int, /) -> bytes:
        return b"".join(content for at, content in self.constants(addr, size) if at == addr)

    def constants(self, addr: int, size: int, /) -> Sequence[tuple[int, bytes]]:
        begin, end = max(addr, 0x1000), min(addr + size, 0x1020)
        return [(begin, bytes(at - 0x1000 for at in range(begin, end)))] if begin < end else []


def test_ranges_that_are_no_whole_pages() -> None:
    """Bytes beside a range stay unknown, in whatever page they are."""
    ranges = [Extent(0x1004, 0x10), Extent(0x1100, 0x1100), Extent(0x3FF8, 0x10)]
    memory = KnownMemory(rams_of(ranges), NoConstants())
    declared = {at for begin, size in ranges for at in range(begin, begin + size)}
    for address in range(0xFF8, 0x4010, 8):
        memory.store(address, 8, 0x0807060504030201)
    for address in range(0xFF8, 0x4010):
        assert memory.bytes(address, 1) == [address % 8 + 1 if address in declared else None], hex(address)


def test_a_large_range_takes_no_memory() -> None:
    memory = KnownMemory(rams_of([Extent(0x8000_0000, 2 << 30)]), NoConstants())
    memory.store(0xFFFF_FFF8, 8, 5)
    assert memory.load(0xFFFF_FFF8, 8) == 5 and memory.load(0x8000_0000, 8) is None
    pages, stored = memory.changed_pages()
    assert set(pages) == set(stored.stored) == {0xFFFF_F000}


def test_a_range_that_nothing_can_hold_is_not_believed() -> None:
    memory = KnownMemory(rams_of([Extent(0, 1 << 60), Extent(1 << 61, 0x1000)]), NoConstants())
    memory.store(0x100, 8, 5)
    memory.store(1 << 61, 8, 6)
    assert memory.load(0x100, 8) is None and memory.load(1 << 61, 8) == 6


def test_where_stores_went() -> None:
    """Stores to what is not RAM count, too; what was forgotten was not stored to."""
    memory = KnownMemory(rams_of([Extent(0x1000, 0x2000)]), NoConstants())
    memory.begin([(0x1000, bytes(0x2000))])
    memory.changed_pages()
    memory.store(0x1010, 4, None)
    memory.forget()
    memory.store(0x9FFE, 4, 1)
    pages, stored = memory.changed_pages()
    assert set(pages) == {0x1000, 0x2000}
    assert [stored.may_include(address, 4) for address in (0x1000, 0x2000, 0x9FF0, 0xA000, 0xB000)] == [
        True, False, True, True, False
    ]  # fmt: skip


def test_constants_in_ram_outlast_unknown_stores() -> None:
    memory = KnownMemory(rams_of([Extent(0x1000, 0x2000)]), Constants())
    memory.begin([(0x1000, bytes(range(0x20)) + bytes(0xFE0))])
    memory.forget()
    assert memory.bytes(0x101E, 4) == [0x1E, 0x1F, None, None]


def test_constants_that_are_stored_to() -> None:
    """Even if the value is unknown, or memory is forgotten afterwards, or was something else from the beginning."""
    for rams in ([Extent(0x1000, 0x2000)], []):
        for value in (None, 0xAA):
            memory = KnownMemory(rams_of(rams), Constants())
            assert memory.bytes(0x1004, 2) == [4, 5]
            memory.store(0x1004, 1, value)
            assert memory.bytes(0x1004, 1) == [value if rams else None]
            memory.changed_pages()
            memory.forget()
            assert memory.bytes(0x1004, 1) == [None]
    memory = KnownMemory(rams_of([Extent(0x1000, 0x2000)]), Constants())
    memory.begin([(0x1000, bytes(0x20))])
    memory.forget()
    assert memory.bytes(0x1004, 1) == [None]


def test_a_value_that_is_stored_over_an_equal_constant() -> None:
    memory = KnownMemory(rams_of([Extent(0x1000, 0x2000)]), Constants())
    memory.store(0x1004, 1, 4)
    memory.forget()
    assert memory.bytes(0x1004, 2) == [4, 5]


@pytest.mark.parametrize("declared", [[], [Extent(0x1000, 0x1000)]])
def test_breakpoints_replace_code_and_leave_what_is_beside_it(declared: list[Extent]) -> None:
    memory = KnownMemory(rams_of(declared), Constants())
    memory.begin([(0x1000, bytes(range(0x20)))])
    memory.lose(0x1004, 2)
    assert memory.bytes(0x1002, 6) == [2, 3, None, None, 6, 7] and memory.load(0x1004, 2) is None
    assert memory.load(0x1006, 2) == 0x0706 and memory.load(0x1000, 4) == 0x03020100
    memory.forget()
    assert memory.load(0x1006, 2) == 0x0706 and memory.load(0x1005, 1) is None
    memory.store(0x1004, 2, 0x0909)
    assert memory.load(0x1004, 2) == (0x0909 if declared else None)
    assert not declared or memory.load(0x1010, 2) == 0x1110
