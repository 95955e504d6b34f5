"""The tables [[memory]] of a target description: what is at which physical addresses.

    [[memory]]
    name = "sram"                # for messages; may be left out
    address = 0x80000000
    size = 0x8000000             # bytes
    kind = "ram"                 # "ram" keeps what is stored; "rom" is never written; "volatile": a device, or anything
                                 # that may change by itself
    private = [0]                # RAM that only these harts write; default: all harts of the target
    dma = true                   # RAM that something besides the harts writes, too

Where tables overlap, that counts which promises less.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.description.tables import MEMORY, Tables, TomlTable
from rvtrace_gdb.support.extents import Extent

_KEYS = ("name", "address", "size", "kind", "private", "dma")
_SPACE = 1 << 64
_MOST = 256  # ranges


def read_memory(tables: Tables, document: Mapping[str, object]) -> tuple[MemoryRange, ...]:
    """Return the ranges, in the order of the file. Raises DescriptionError."""
    written = tables.tables(document, "memory")
    if len(written) > _MOST:
        raise tables.error(f"there are {len(written)}, {_MOST} are possible", MEMORY)
    found = enumerate(written, 1)
    return tuple(_memory_range(tables, table, f"{MEMORY} {number}") for number, table in found)


def _memory_range(tables: Tables, table: TomlTable, where: str) -> MemoryRange:
    name = tables.string(table, where, "name", " ").strip()
    where = f'{MEMORY} "{name}"' if name else where
    tables.check_keys(table, where, _KEYS)
    address, size = tables.integer(table, where, "address"), tables.integer(table, where, "size")
    if not size:
        raise tables.error("is 0", where, "size")
    if address + size > _SPACE:
        raise tables.error(f"{address:#x} + {size:#x} is beyond 2**64", where, "size")
    kind = MemoryKind(tables.choice(table, where, "kind", [kind.value for kind in MemoryKind]))
    harts, dma = _range_harts(tables, table, where), tables.switch(table, where, "dma")
    if kind is not MemoryKind.RAM:
        for key in ("private", "dma"):
            if key in table:
                raise tables.error(f'only kind = "ram" has it: remove it, or is this RAM, not {kind}?', where, key)
    return MemoryRange(address, size, kind, harts, bool(dma), name)


def _range_harts(tables: Tables, table: TomlTable, where: str) -> tuple[int, ...]:
    if "private" not in table:
        return ()
    value = table["private"]
    if not isinstance(value, list) or not value or not all(type(it) is int and 0 <= it < 1 << 63 for it in value):
        raise tables.error("must be a list of the harts that write it, as in private = [0]", where, "private")
    return tuple(sorted(set(value)))


def believed(description: Description) -> tuple[MemoryRange, ...]:
    """Return the declared ranges, with the buffers of trace sinks, which are not the program's whatever they lie in."""
    if not description.memory:
        return ()
    buffers = (
        MemoryRange(sink.start, sink.size, MemoryKind.VOLATILE, name=f"the buffer of {sink.name}")
        for sink in description.sinks
        if sink.mode == "SMEM" and sink.start is not None and sink.size
    )
    return (*description.memory, *buffers)


def rams(ranges: Iterable[MemoryRange]) -> list[Extent]:
    """Return the RAM, whoever writes it, without what is volatile there: disjoint, increasing."""
    ranges = list(ranges)
    edges = sorted({edge for it in ranges for edge in (it.address, it.address + it.size)})
    found: list[Extent] = []
    for begin, end in pairwise(edges):
        kinds = {it.kind for it in ranges if it.address <= begin < it.address + it.size}
        if kinds != {MemoryKind.RAM}:
            continue
        if found and found[-1].end == begin:
            begin = found.pop().address
        found.append(Extent.between(begin, end))
    return found
