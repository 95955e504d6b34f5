"""What a branch tells: that a comparison holds, or does not.

Of a register that is compared with a known value, a range is known then. Two such ranges leave one value only where a
loop ends: the counter has passed the limit, and had not one round before.
"""

from rvtrace_gdb.decode.reconstruction.window.classes import Classes, ClassesContradicted, Constraint
from rvtrace_gdb.decode.reconstruction.window.functions import branch_function

_OPPOSITE = {"blt": "bge", "bge": "blt", "bltu": "bgeu", "bgeu": "bltu", "beq": "bne", "bne": "beq"}


def holding(name: str, *, taken: bool) -> str:
    """Return the comparison that holds, in the name of the branch that it takes."""
    return name if taken else _OPPOSITE[name]


def compare(classes: Classes, constraint: Constraint) -> None:
    """The constraint (it, name, a, b, position): the branch of this name would be taken there."""
    _, name, a, b, position = constraint
    va, vb = classes.value(a), classes.value(b)
    if va is not None and vb is not None:
        if not branch_function(name, classes.xlen)(va, vb):
            raise ClassesContradicted(b, position)
    elif vb is not None:
        _narrow_first(classes, name, a, vb)
    elif va is not None:
        _narrow_second(classes, name, b, va)


def _least(classes: Classes, name: str) -> int:
    """Return the least value as the comparison has it: signed ones begin in the middle of the circle."""
    return 0 if name[-1] == "u" else (classes.mask >> 1) + 1


def _narrow_first(classes: Classes, name: str, a: int, vb: int) -> None:
    """a < vb, a >= vb, or a != vb."""
    least, mask = _least(classes, name), classes.mask
    above = vb - least & mask  # so many values are less than vb
    if name in ("blt", "bltu"):
        _narrow(classes, a, least, above - 1)
    elif name in ("bge", "bgeu"):
        _narrow(classes, a, vb, mask - above)
    elif name == "bne":
        _exclude(classes, a, vb)


def _narrow_second(classes: Classes, name: str, b: int, va: int) -> None:
    """va < b, va >= b, or va != b."""
    least, mask = _least(classes, name), classes.mask
    above = va - least & mask
    if name in ("blt", "bltu"):
        _narrow(classes, b, va + 1, mask - above - 1)
    elif name in ("bge", "bgeu"):
        _narrow(classes, b, least, above)
    elif name == "bne":
        _exclude(classes, b, va)


def _narrow(classes: Classes, node: int, low: int, span: int) -> None:
    if span < 0:
        raise ClassesContradicted(node)
    classes.narrow(node, low, span)


def _exclude(classes: Classes, node: int, value: int) -> None:
    """A value that is at the end of what a node may be is not it."""
    low, span = classes.bounds(node)
    if span == classes.mask:
        return
    if low == value:
        _narrow(classes, node, low + 1, span - 1)
    elif low + span & classes.mask == value:
        _narrow(classes, node, low, span - 1)
