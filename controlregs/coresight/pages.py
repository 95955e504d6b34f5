"""The scatter-gather table of an ETR: where the pages of its buffer are, in their order.

A table has pages of 4 KiB, of 1024 entries each. An entry is the number of a page of 4 KiB, shifted left by 4, and its
type: a data page, the last data page, or the next page of the table. Behind the last data page comes the first one
again.

Ref: tmc_sg_table of Linux 6.1, drivers/hwtracing/coresight/coresight-tmc-etr.c.
"""

import struct
from bisect import bisect_right
from enum import IntEnum

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight.registers import DBALO
from rvtrace_gdb.controlregs.errors import SettingRefused

PAGE = 0x1000
_ENTRIES = PAGE // 4
_PAGES = 1 << 18
"""Pages at most: 1 GiB. A longer table has no end."""


class EntryType(IntEnum):
    INVALID = 0
    LAST = 1
    NORMAL = 2
    LINK = 3


def entry(address: int, kind: EntryType) -> int:
    """Return the entry for the page at *address*."""
    return address // PAGE << 4 | kind


def read_table(etr: Component, table: int) -> tuple[int, ...]:
    """Return the addresses of all data pages, in their order. Raises SettingRefused, and the transport's errors."""
    pages: list[int] = []
    seen: set[int] = set()
    while True:
        if table in seen:
            raise _bad_table(etr, f"leads back to its page at {table:#x}")
        seen.add(table)
        link = None
        for number, value in enumerate(struct.unpack(f"<{_ENTRIES}I", etr.target.read_block(table, PAGE))):
            address, kind = (value >> 4) * PAGE, value & 0b11
            if kind == EntryType.LINK:
                link = address
                break
            if kind == EntryType.INVALID or len(pages) == _PAGES:
                raise _bad_table(etr, f"has {value:#010x} at {table + 4 * number:#x}, which is no page")
            pages.append(address)
            if kind == EntryType.LAST:
                return tuple(pages)
        if link is None:
            raise _bad_table(etr, f"its page at {table:#x} has neither a last page nor a link to more")
        table = link


def _bad_table(etr: Component, problem: str) -> SettingRefused:
    text = f"its scatter-gather table {problem}; was it written, and is {DBALO.name} its address?"
    return SettingRefused(etr.name, etr.base, text)


def pieces(pages: tuple[int, ...], begin: int, end: int) -> list[tuple[int, int]]:
    """Return [begin, end), offsets in the buffer, as stretches of memory (address, end); neighbours are joined."""
    found: list[tuple[int, int]] = []
    while begin < end:
        size = min(PAGE - begin % PAGE, end - begin)
        address = pages[begin // PAGE] + begin % PAGE
        if found and found[-1][1] == address:
            found[-1] = found[-1][0], address + size
        else:
            found.append((address, address + size))
        begin += size
    return found


def offset_of(pages: tuple[int, ...], address: int) -> int | None:
    """Return the offset in the buffer of a byte in one of the pages, None for an address elsewhere."""
    order = sorted(range(len(pages)), key=pages.__getitem__)
    place = bisect_right(order, address, key=pages.__getitem__) - 1
    if place < 0 or address >= pages[order[place]] + PAGE:
        return None
    return order[place] * PAGE + address - pages[order[place]]
