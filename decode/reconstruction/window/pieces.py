"""What a load has loaded, if that comes from several accesses: one constraint on all of them."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.reconstruction.window.classes import Classes, Constraint
from rvtrace_gdb.decode.reconstruction.window.rules import extended


class LoadPiece(NamedTuple):
    """Consecutive bytes of a load: bytes *begin* and so on of what a node was stored from, or loaded to.

    node  -1: it is one byte, and *begin* is its value
    """

    node: int
    begin: int
    size: int


def joined(pieces: Sequence[LoadPiece]) -> list[LoadPiece]:
    """Join neighbours that are bytes of one node."""
    found: list[LoadPiece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is not None and piece.node >= 0 and last.node == piece.node and last.begin + last.size == piece.begin:
            found[-1] = last._replace(size=last.size + 1)
        else:
            found.append(piece)
    return found


def concatenate(classes: Classes, constraint: Constraint) -> None:
    """The constraint (it, d, pieces, bits, form): d is the pieces one behind the other, in a form."""
    _, d, pieces, bits, form = constraint
    low, known, at = 0, 0, 0
    have, value = classes.low(d)
    for node, begin, size in pieces:
        if node < 0:
            there, part = 64, begin
        else:
            there, part = classes.low(node)
            there, part = there - 8 * begin, part >> 8 * begin
            if begin == 0 and have > at and there < 8 * size:
                classes.set_low(node, min(8 * size, have - at), value >> at)
        if known == at:
            low |= (part & (1 << 8 * size) - 1) << at
            known += max(min(there, 8 * size), 0)
        at += 8 * size
    if known == bits:
        classes.set(d, extended(low, bits, form, classes.mask))
    elif known > have:
        classes.set_low(d, known, low)
