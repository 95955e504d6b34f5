"""What the ranges of operands tell: sums of 32 bits that do not overflow are sums; so are elements of tables."""

from collections.abc import Callable

from rvtrace_gdb.decode.reconstruction.window.classes import Classes
from rvtrace_gdb.decode.reconstruction.window.inversions import InvertedRule, Value
from rvtrace_gdb.decode.semantics.encodings import signed

RangeRule = Callable[[InvertedRule, Classes, int, int, int, Value, Value], bool]
"""As an inversion. Returns whether the result and an operand are one class now, so that nothing is left to say."""
_LIMIT = 1 << 31


def _signed_bounds(classes: Classes, node: int) -> tuple[int, int]:
    """Return the least and the greatest value that a node may have as a signed number."""
    low, span = classes.bounds(node)
    least = signed(low, classes.xlen)
    half = classes.mask >> 1
    return (least, least + span) if least + span <= half else (-half - 1, half)


def _word_sum(sign: int) -> RangeRule:
    def look(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> bool:
        if vb is not None:
            other, constant = a, sign * signed(vb, 32)
        elif va is not None and sign > 0:
            other, constant = b, signed(va, 32)
        else:
            return False
        least, greatest = _signed_bounds(classes, other)
        if least + constant < -_LIMIT or greatest + constant >= _LIMIT:
            return False
        classes.union(d, other, constant)
        return True

    return look


def _scaled(classes: Classes, d: int, a: int, factor: int) -> None:
    """d is a times a factor: where that does not overflow, so is its range."""
    low, span = classes.bounds(a)
    if factor > 0 and (low + span) * factor <= classes.mask:
        classes.narrow(d, low * factor, span * factor)


def _shift(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> bool:
    if vb is not None and rule.bits == classes.xlen:
        _scaled(classes, d, a, 1 << vb % rule.bits)
    return False


def _product(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> bool:
    if vb is not None:
        _scaled(classes, d, a, vb)
    elif va is not None:
        _scaled(classes, d, b, va)
    return False


RANGES: dict[str, RangeRule] = {"addw": _word_sum(1), "subw": _word_sum(-1), "sll": _shift, "mul": _product}
"""By families, as inversions."""
