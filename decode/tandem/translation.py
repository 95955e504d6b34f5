"""Virtual to physical addresses: the page tables, as far as what is in them is known.

Source: RISC-V Privileged Architecture, "Sv32", "Sv39", "Sv48", "Sv57" (Virtual Address Translation Process), "Svnapot".
Permissions are not looked at: what is asked about was accessed.
"""

from collections.abc import Callable

PAGE = 1 << 12
_V, _R, _W, _X = 1, 2, 4, 8
_PPN_SHIFT = 10
_NAPOT = 1 << 63
_LEVELS = {8: 3, 9: 4, 10: 5}
"""Of page tables, by satp.MODE on RV64."""

ReadEntry = Callable[[int, int], int | None]
"""What is at a physical address, so many bytes; None: not known."""


def physical_address(read: ReadEntry, satp: int, address: int, xlen: int) -> int | None:
    """Where a virtual address is in physical memory; None: not known, or not mapped."""
    if xlen == 32:
        levels, index_bits, entry_size, ppn_bits = 2, 10, 4, 22
    else:
        levels, index_bits, entry_size, ppn_bits = _LEVELS.get(satp >> 60, 0), 9, 8, 44
        if not levels or not _is_canonical(address, 12 + index_bits * levels):
            return None
    ppn_mask, index_mask = (1 << ppn_bits) - 1, (1 << index_bits) - 1
    table = satp & ppn_mask
    for level in reversed(range(levels)):
        shift = 12 + index_bits * level
        entry = read(table * PAGE + (address >> shift & index_mask) * entry_size, entry_size)
        if entry is None or not entry & _V or entry & (_R | _W) == _W:
            return None
        ppn = entry >> _PPN_SHIFT & ppn_mask
        if entry & (_R | _X):
            if entry & _NAPOT and not level:
                ppn = ppn & ~0xF | address >> 12 & 0xF  # 16 pages together
            offset = (1 << shift) - 1
            return None if ppn * PAGE & offset & -PAGE else ppn * PAGE | address & offset
        table = ppn
    return None


def _is_canonical(address: int, bits: int) -> bool:
    """Whether all bits of a virtual address above so many are the same as the highest of those."""
    return address >> bits - 1 in (0, (1 << 65 - bits) - 1)
