"""Discriminators of line tables, as LLVM encodes several numbers in one: which block of a line it is, how often its
code was duplicated, and which copy it is.

Source: LLVM 19, llvm/IR/DebugInfoMetadata.h and llvm/Support/Discriminator.h ("prefix encoding").
"""


def base_of(discriminator: int) -> int:
    """Return the number of the block of its line."""
    return _first(discriminator)


def duplication_of(discriminator: int) -> int:
    """Return how many times an instruction stands for itself: how often its loop was unrolled or vectorized."""
    return _first(_rest(discriminator)) or 1


def _first(value: int) -> int:
    if value & 1:
        return 0
    value >>= 1
    return (value >> 1 & 0xFE0 | value & 0x1F) if value & 0x20 else value & 0x1F


def _rest(value: int) -> int:
    return value >> 1 if value & 1 else value >> (14 if value & 0x40 else 7)
