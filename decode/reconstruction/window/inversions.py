"""What the result of an instruction tells of its operands.

Each function gets the rule of the instruction, the nodes of its result and its operands, and the operands' values, of
which at least one is unknown; *b* is -1 for a constant operand, which is known. It learns what certainly follows.
"""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.decode.reconstruction.window.classes import Classes
from rvtrace_gdb.decode.reconstruction.window.functions import Binary

Value = int | None


class InvertedRule(Protocol):
    """What an inversion uses of the rule of its instruction. *bits*: so many of the operands' bits count."""

    bits: int
    forward: Binary


Inverse = Callable[[InvertedRule, Classes, int, int, int, Value, Value], None]


def _invert_addition(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    if vb is not None:
        classes.union(d, a, vb)
    elif va is not None:
        classes.union(d, b, va)
    else:
        bits, vd = classes.low(d)
        _low_difference(classes, vd, a, b, min(bits, classes.xlen))


def _sub(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    if vb is not None:
        classes.union(d, a, -vb)
        return
    vd = classes.value(d)
    if vd is not None:
        classes.union(a, b, vd)
        return
    (root_a, offset_a), (root_b, offset_b) = classes.find(a), classes.find(b)
    if root_a == root_b:
        classes.set(d, offset_a - offset_b & classes.mask)


def _low_difference(classes: Classes, vd: int, a: int, b: int, bits: int) -> None:
    """The low *bits* of vd are those of a + b: what is known of the low bits of one tells those of the other."""
    if not bits or not classes.lows:
        return
    (bits_a, low_a), (bits_b, low_b) = classes.low(a), classes.low(b)
    if bits_a > bits_b:
        classes.set_low(b, min(bits_a, bits), vd - low_a)
    elif bits_b > bits_a:
        classes.set_low(a, min(bits_b, bits), vd - low_b)


def _xor(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    bits, vd = classes.low(d)
    if not bits:
        return
    if vb is not None:
        classes.set_low(a, min(bits, classes.xlen), vd ^ vb)
    elif va is not None:
        classes.set_low(b, min(bits, classes.xlen), vd ^ va)
    elif vd == 0 and bits >= classes.xlen:
        classes.union(a, b)


def _xnor(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    vd = classes.value(d)
    if vd is not None and vb is not None:
        classes.set(a, vd ^ vb ^ classes.mask)
    elif vd is not None and va is not None:
        classes.set(b, vd ^ va ^ classes.mask)


def _not(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    vd = classes.value(d)
    if vd is not None:
        classes.set(a, vd ^ classes.mask)


def _addw(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    bits, vd = classes.low(d)
    bits = min(bits, 32)
    if not bits:
        return
    if vb is not None:
        classes.set_low(a, bits, vd - vb)
    elif va is not None:
        classes.set_low(b, bits, vd - va)
    else:
        _low_difference(classes, vd, a, b, bits)


def _subw(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    bits, vd = classes.low(d)
    bits = min(bits, 32)
    if not bits:
        return
    if vb is not None:
        classes.set_low(a, bits, vd + vb)
    elif va is not None:
        classes.set_low(b, bits, va - vd)
    elif bits == 32 and vd == 0 and classes.fits(a, 32, is_signed=True) and classes.fits(b, 32, is_signed=True):
        classes.union(a, b)


def _sll(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    if vb is not None:
        bits, vd = classes.low(d)
        shift = vb % rule.bits
        classes.set_low(a, min(bits, rule.bits) - shift, vd >> shift)


def _srl(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    """What was shifted out is known where the low bits are: mostly zeros, that a shift to the left brought."""
    if vb is None:
        return
    shift, vd = vb % rule.bits, classes.value(d)
    if vd is None:
        bits, vd = classes.low(d)
    else:
        bits = rule.bits - shift
    have, low = classes.low(a)
    if bits > 0 and have >= shift:
        classes.set_low(a, min(bits + shift, rule.bits), vd << shift | low & (1 << shift) - 1)


def _mul(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    """A factor of which the other one is known, but for as many high bits as that has zeros at its end."""
    known, node = (vb, a) if vb is not None else (va, b)
    bits, vd = classes.low(d)
    bits = min(bits, rule.bits)
    if known is None or not known or not bits:
        return
    zeros = (known & -known).bit_length() - 1
    if bits > zeros:
        size = 1 << bits - zeros
        classes.set_low(node, bits - zeros, (vd >> zeros) * pow(known >> zeros, -1, size))


def _and(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    known, node = (vb, a) if vb is not None else (va, b)
    bits, vd = classes.low(d)
    if known is not None and bits:
        ones = (~known & known + 1).bit_length() - 1
        classes.set_low(node, min(ones, bits, classes.xlen), vd)


def _or(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    known, node = (vb, a) if vb is not None else (va, b)
    bits, vd = classes.low(d)
    if known is not None and bits:
        zeros = (known & -known).bit_length() - 1 if known else classes.xlen
        classes.set_low(node, min(zeros, bits), vd)
    elif bits >= classes.xlen and vd == 0:
        classes.set(a, 0)
        classes.set(b, 0)


def _sltu(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    vd = classes.value(d)
    if vd == 1 and vb == 1:
        classes.set(a, 0)
    elif vd == 0 and va == 0:
        classes.set(b, 0)


def _extension(bits: int) -> Inverse:
    """Return the rule for what keeps only the low *bits* of its operand."""

    def invert(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
        have, vd = classes.low(d)
        classes.set_low(a, min(have, bits), vd)

    return invert


def _reversal(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    vd = classes.value(d)
    if vd is not None:
        classes.set(a, rule.forward(vd, 0))


def _rotation(left: bool) -> Inverse:
    """Return the rule for a rotation by a known amount."""

    def invert(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
        vd = classes.value(d)
        if vd is None or vb is None:
            return
        bits = rule.bits
        vd &= (1 << bits) - 1
        shift = (vb if left else -vb) % bits
        classes.set_low(a, bits, vd >> shift | vd << bits - shift)

    return invert


def _shifted_add(shift: int, operand_bits: int) -> Inverse:
    """Return the rule for an operand shifted to the left plus another one."""

    def invert(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
        if va is not None:
            classes.union(d, b, (va & (1 << operand_bits) - 1) << shift)
            return
        vd = classes.value(d)
        if vd is not None and vb is not None:
            classes.set_low(a, min(operand_bits, classes.xlen - shift), (vd - vb & classes.mask) >> shift)

    return invert


def _czero(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    """A result that is not zero is the first operand."""
    vd = classes.value(d)
    if vd:
        classes.set(a, vd)


def _flipped_bit(rule: InvertedRule, classes: Classes, d: int, a: int, b: int, va: Value, vb: Value) -> None:
    vd = classes.value(d)
    if vd is not None and vb is not None:
        classes.set(a, rule.forward(vd, vb))


INVERSIONS: dict[str, Inverse] = {
    "add": _invert_addition, "sub": _sub, "xor": _xor, "xnor": _xnor, "not": _not, "addw": _addw, "subw": _subw,
    "sll": _sll, "sllw": _sll, "srl": _srl, "srlw": _srl, "sra": _srl, "sraw": _srl, "mul": _mul, "mulw": _mul,
    "and": _and, "or": _or, "sltu": _sltu,
    "sext.b": _extension(8), "sext.h": _extension(16), "zext.b": _extension(8), "zext.h": _extension(16),
    "zext.w": _extension(32), "rev8": _reversal, "binv": _flipped_bit,
    "rol": _rotation(True), "rolw": _rotation(True), "ror": _rotation(False), "rorw": _rotation(False),
    "sh1add": _shifted_add(1, 64), "sh2add": _shifted_add(2, 64), "sh3add": _shifted_add(3, 64),
    "add.uw": _shifted_add(0, 32), "sh1add.uw": _shifted_add(1, 32), "sh2add.uw": _shifted_add(2, 32),
    "sh3add.uw": _shifted_add(3, 32), "czero.eqz": _czero, "czero.nez": _czero,
}  # fmt: skip
"""By families: an instruction with an immediate is of the family of that with two registers."""
