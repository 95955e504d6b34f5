"""The functions that an instruction is in, according to gdb's debug information."""

from __future__ import annotations

from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext import neutral


def function_blocks(pc: int) -> Iterator[gdb.Block]:
    """Yield the blocks of the functions that an instruction is in: the innermost inlined one first, last the one that
    was called.

    gdb puts a local class or a lambda into the function that it is declared in, whose code is elsewhere: that function
    does not count.
    """
    mask = neutral.address_mask()
    block, is_first = gdb.block_for_pc(pc), True
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            if not is_first and not block.start & mask <= pc & mask < block.end & mask:
                return
            yield block
            is_first = False
        block = block.superblock
