"""Which memory is believed to be a hart's own."""

import pytest

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange, own_ram

RAM = MemoryRange(0x8000_0000, 0x1000, MemoryKind.RAM)
TOHOST = MemoryRange(0x8000_0100, 0x10, MemoryKind.VOLATILE)
BUFFER = MemoryRange(0x8000_0800, 0x100, MemoryKind.RAM, dma=True)


def test_what_is_not_declared_is_not_believed() -> None:
    assert own_ram([], 0, [0]) == []


def test_a_device_or_a_dma_buffer_within_ram_is_cut_out() -> None:
    assert own_ram([BUFFER, RAM, TOHOST], 0, [0]) == [
        (0x8000_0000, 0x100),
        (0x8000_0110, 0x6F0),
        (0x8000_0900, 0x700),
    ]


@pytest.mark.parametrize(("harts", "own"), [((0,), True), ((1,), False), ((0, 1), False), ((), False)])
def test_of_several_harts_only_private_memory_is_believed(harts: tuple[int, ...], own: bool) -> None:
    assert bool(own_ram([RAM._replace(harts=harts)], 0, [0, 1])) == own


def test_neighbours_are_one_range() -> None:
    assert own_ram([RAM, RAM._replace(address=0x8000_1000)], 0, [0]) == [(0x8000_0000, 0x2000)]
