"""IEEE 754 arithmetic as the RISC-V F and D extensions define it, on raw bit patterns.

Every function takes operands as unsigned integers of the format's width, `fmt` (`F32`, `F64`) and, where it can round,
the rounding mode `rm` (0 RNE, 1 RTZ, 2 RDN, 3 RUP, 4 RMM). It returns `(bits, flags)`, flags being the fflags bits the
operation raises (NX 1, UF 2, OF 4, DZ 8, NV 16); only `classify` returns its mask alone. A NaN result is the canonical
NaN. Nothing raises. NaN boxing, the dynamic and the reserved rounding modes are the caller's business, and so are the
negated multiply-adds: flip sign bits, of c for FMSUB, of a for FNMSUB, of both for FNMADD.

Sources: the RISC-V unprivileged ISA manual, "F" and "D" version 2.2; IEEE 754-2019 sections 5.4.1 (arithmetic), 6.1
(infinities), 6.3 (the sign of a zero) and 7.2, 7.3 (invalid operation, division by zero).

This module adds, multiplies, divides; conversions are in `softfloat_convert`, comparisons in `softfloat_compare`,
rounding in `softfloat_format`. All names are to be imported from here.
"""

from math import isqrt

from rvtrace_gdb.transport.simulated.softfloat_compare import classify, eq, le, lt, maximum, minimum
from rvtrace_gdb.transport.simulated.softfloat_convert import convert, from_int, to_int
from rvtrace_gdb.transport.simulated.softfloat_format import (
    DZ,
    F32,
    F64,
    NV,
    NX,
    OF,
    RDN,
    RMM,
    RNE,
    RTZ,
    RUP,
    UF,
    Finite,
    Format,
    Result,
    is_nan,
    nan_result,
    rounded,
    unpack,
)

__all__ = [
    "DZ",
    "F32",
    "F64",
    "NV",
    "NX",
    "OF",
    "RDN",
    "RMM",
    "RNE",
    "RTZ",
    "RUP",
    "UF",
    "Format",
    "Result",
    "add",
    "classify",
    "convert",
    "div",
    "eq",
    "fma",
    "from_int",
    "le",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "sqrt",
    "sub",
    "to_int",
]


def add(a: int, b: int, fmt: Format, rm: int) -> Result:
    """a + b (FADD)."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity:
        return _add_special(a, b, fmt)
    return _sum(unpack(a, fmt), unpack(b, fmt), fmt, rm)


def sub(a: int, b: int, fmt: Format, rm: int) -> Result:
    """a - b (FSUB)."""
    return add(a, b ^ fmt.sign_bit, fmt, rm)


def mul(a: int, b: int, fmt: Format, rm: int) -> Result:
    """a * b (FMUL)."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity:
        return _mul_special(a, b, fmt)
    negative, exponent, significand = _product(a, b, fmt)
    return rounded(negative, exponent, significand, fmt, rm)


def fma(a: int, b: int, c: int, fmt: Format, rm: int) -> Result:
    """a * b + c with one rounding (FMADD). 0 * infinity + c is invalid even when c is a quiet NaN."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity or c & infinity == infinity:
        return _fma_special(a, b, c, fmt)
    return _sum(_product(a, b, fmt), unpack(c, fmt), fmt, rm)


def div(a: int, b: int, fmt: Format, rm: int) -> Result:
    """a / b (FDIV)."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity:
        return _div_special(a, b, fmt)
    negative_a, exponent_a, significand_a = unpack(a, fmt)
    negative_b, exponent_b, significand_b = unpack(b, fmt)
    negative = negative_a != negative_b
    if not significand_b:
        if not significand_a:
            return fmt.canonical_nan, NV
        return _signed(negative, infinity, fmt), DZ
    # Enough for `rounded`, whatever the operands: the quotient is greater than 2**(places - precision).
    places = 2 * fmt.precision + 2
    quotient, remainder = divmod(significand_a << places, significand_b)
    exponent = exponent_a - exponent_b + 1 - fmt.lsb_exponent - places
    return rounded(negative, exponent, quotient | (remainder != 0), fmt, rm)


def sqrt(a: int, fmt: Format, rm: int) -> Result:
    """The square root of a (FSQRT); that of -0 is -0, of any other negative number invalid."""
    if is_nan(a, fmt):
        return nan_result(fmt, a)
    if a & ~fmt.sign_bit == 0 or a == fmt.infinity:
        return a, 0
    if a & fmt.sign_bit:
        return fmt.canonical_nan, NV
    _, exponent, significand = unpack(a, fmt)
    unit = exponent - 1 + fmt.lsb_exponent
    # Enough places for `rounded`, and an even exponent to halve.
    places = fmt.precision + 2
    square = significand << 2 * places + (unit & 1)
    root = isqrt(square)
    return rounded(False, (unit >> 1) - places + 1 - fmt.lsb_exponent, root | (root * root != square), fmt, rm)


def _signed(negative: bool, magnitude: int, fmt: Format) -> int:
    return fmt.sign_bit | magnitude if negative else magnitude


def _product(a: int, b: int, fmt: Format) -> Finite:
    """The exact product of two finite numbers."""
    negative_a, exponent_a, significand_a = unpack(a, fmt)
    negative_b, exponent_b, significand_b = unpack(b, fmt)
    return negative_a != negative_b, exponent_a + exponent_b - 1 + fmt.lsb_exponent, significand_a * significand_b


def _sum(x: Finite, y: Finite, fmt: Format, rm: int) -> Result:
    """x + y, rounded; the sign of an exact zero follows IEEE 754-2019 section 6.3."""
    negative, exponent, significand = x
    negative_y, exponent_y, significand_y = y
    if exponent > exponent_y:
        significand <<= exponent - exponent_y
        exponent = exponent_y
    else:
        significand_y <<= exponent_y - exponent
    if negative == negative_y:
        return rounded(negative, exponent, significand + significand_y, fmt, rm)
    difference = significand - significand_y
    if difference > 0:
        return rounded(negative, exponent, difference, fmt, rm)
    if difference < 0:
        return rounded(negative_y, exponent, -difference, fmt, rm)
    return _signed(rm == RDN, 0, fmt), 0


def _add_special(a: int, b: int, fmt: Format) -> Result:
    """a + b with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b)
    if a ^ b == fmt.sign_bit:  # infinities of opposite signs
        return fmt.canonical_nan, NV
    return a if a & fmt.infinity == fmt.infinity else b, 0


def _mul_special(a: int, b: int, fmt: Format) -> Result:
    """a * b with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b)
    if not a & ~fmt.sign_bit or not b & ~fmt.sign_bit:
        return fmt.canonical_nan, NV
    return (a ^ b) & fmt.sign_bit | fmt.infinity, 0


def _fma_special(a: int, b: int, c: int, fmt: Format) -> Result:
    """a * b + c with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b, c)
    if a & fmt.infinity != fmt.infinity and b & fmt.infinity != fmt.infinity:
        return nan_result(fmt, c) if is_nan(c, fmt) else (c, 0)
    product, flags = _mul_special(a, b, fmt)
    if flags:
        return product, flags
    return _add_special(product, c, fmt)


def _div_special(a: int, b: int, fmt: Format) -> Result:
    """a / b with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b)
    sign = (a ^ b) & fmt.sign_bit
    if a & fmt.infinity != fmt.infinity:
        return sign, 0
    if b & fmt.infinity == fmt.infinity:
        return fmt.canonical_nan, NV
    return sign | fmt.infinity, 0
