"""What is known besides the trace: the facts from which values are reconstructed, and what is assumed.

Every value that is shown follows from the instructions that ran, from these facts, and from these assumptions: nothing
but the hart writes the memory that is declared as its own RAM, except at halts that are known; what is not declared may
change at any time; constants of the program are not written; the code is the program's; every trap is in the trace.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.support.extents import Extent

KnownValue = int | None
"""A number, None: unknown."""

KERNEL_HALF = 1 << 63
"""From here on 64-bit addresses are a kernel's, and virtual: physical ones have at most 56 bits (privileged
architecture, "Sv39: Page-Based 39-bit Virtual-Memory System", and the longer ones).
"""


class MemoryKind(StrEnum):
    """What a range of memory is. RAM keeps what is stored; ROM is never written; VOLATILE is a device, or may change by
    itself.
    """

    RAM = "ram"
    ROM = "rom"
    VOLATILE = "volatile"


class MemoryRange(NamedTuple):
    """A declared range of physical memory. Of ranges that overlap, a byte is what the least believing one says.

    harts  those that may write it; (): all harts of the target
    dma    something besides the harts may write it
    name   for messages
    """

    address: int
    size: int
    kind: MemoryKind
    harts: tuple[int, ...] = ()
    dma: bool = False
    name: str = ""


class KnownState(NamedTuple):
    """What is known of a hart before the instruction at *position*: registers, and memory.

    x, f    None for an unknown one
    csrs    by number
    memory  (address, content)
    """

    position: int = 0
    x: Sequence[KnownValue] = (0, *[None] * 31)
    f: Sequence[KnownValue] = (None,) * 32
    csrs: Mapping[int, int] = {}
    privilege: KnownValue = None
    memory: Sequence[tuple[int, bytes]] = ()


class HaltWrites(NamedTuple):
    """What a debugger wrote while the hart was halted before the instruction at *position*, and that it wrote nothing
    else. Registers by the numbers of the Debug Specification; of those that share bits, the machine's (mstatus, mie,
    mip), and fcsr.

    forgotten  memory whose content is not known any more: software breakpoints were, or are there
    """

    position: int
    registers: Mapping[int, int] = {}
    memory: Sequence[tuple[int, bytes]] = ()
    forgotten: Sequence[Extent] = ()


class StopState(NamedTuple):
    """What is known after the last instruction, of a hart that is halted there.

    pc      where it is halted
    memory  returns the bytes from an address on that could be read, up to a number of bytes
    """

    pc: int
    x: Sequence[KnownValue]
    f: Sequence[KnownValue]
    csrs: Mapping[int, int]
    memory: Callable[[int, int], bytes]


class HartMachine(NamedTuple):
    """What a hart is.

    extensions    those whose instructions are executed, see `Decoder`, and "Zcmp" for Zcmp and Zcmt
    rams          the memory that nothing writes but the hart
    machine_only  it has no S-mode, so that all traps lead to M-mode
    """

    xlen: int
    extensions: Sequence[str]
    rams: Sequence[Extent]
    machine_only: bool = False


def own_ram(ranges: Iterable[MemoryRange], hart: int, harts: Iterable[int]) -> list[Extent]:
    """Return the RAM that nothing writes but one of the *harts*: disjoint, in increasing order."""
    ranges, several = list(ranges), len(set(harts)) > 1
    own = [it for it in ranges if _is_own(it, hart, several=several)]
    others = [it for it in ranges if not _is_own(it, hart, several=several)]
    edges = sorted({edge for it in ranges for edge in (it.address, it.address + it.size)})
    found: list[Extent] = []
    for begin, end in pairwise(edges):
        if not _covers(own, begin) or _covers(others, begin):
            continue
        if found and found[-1].end == begin:
            begin = found.pop().address
        found.append(Extent.between(begin, end))
    return found


def _is_own(memory: MemoryRange, hart: int, *, several: bool) -> bool:
    if memory.kind is not MemoryKind.RAM or memory.dma:
        return False
    return memory.harts == (hart,) if memory.harts or several else True


def _covers(ranges: Iterable[MemoryRange], address: int) -> bool:
    return any(it.address <= address < it.address + it.size for it in ranges)
