"""Conversions between the floating-point formats and integers; see `softfloat` for the conventions.

Source: RISC-V unprivileged ISA manual, "F" version 2.2, section "Single-Precision Floating-Point Conversion and Move
Instructions", and the like-named section of "D".
"""

from rvtrace_gdb.transport.simulated.softfloat_format import (
    NV,
    NX,
    Format,
    Result,
    is_nan,
    nan_result,
    rounded,
    rounds_away,
    unpack,
)


def to_int(a: int, fmt: Format, bits: int, signed: bool, rm: int) -> Result:
    """a as an integer (FCVT.W, .WU, .L, .LU), returned as an unsigned pattern of `bits` bits that is not sign-extended.

    What does not fit after rounding is clipped to the nearest representable value, a NaN to the greatest; that raises
    NV and never NX (table "Domains of float-to-integer conversions and behavior for invalid inputs").
    """
    mask = (1 << bits) - 1
    least, greatest = (-1 << bits - 1, mask >> 1) if signed else (0, mask)
    if a & fmt.infinity == fmt.infinity:
        clipped = least if a & fmt.sign_bit and not is_nan(a, fmt) else greatest
        return clipped & mask, NV
    negative, exponent, significand = unpack(a, fmt)
    drop = 1 - exponent - fmt.lsb_exponent
    if drop <= 0:
        value = significand << -drop
        flags = 0
    else:
        value = (significand >> drop) + rounds_away(negative, significand, drop, rm)
        flags = NX if significand & (1 << drop) - 1 else 0
    if negative:
        value = -value
    if least <= value <= greatest:
        return value & mask, flags
    return (least if negative else greatest) & mask, NV


def from_int(v: int, fmt: Format, rm: int) -> Result:
    """The integer `v`, of any sign and size, in `fmt` (FCVT from W, WU, L, LU); 0 gives +0."""
    return rounded(v < 0, 1 - fmt.lsb_exponent, abs(v), fmt, rm)


def convert(a: int, src_fmt: Format, dst_fmt: Format, rm: int) -> Result:
    """a of `src_fmt` in `dst_fmt` (FCVT.S.D, FCVT.D.S)."""
    if is_nan(a, src_fmt):
        return dst_fmt.canonical_nan, nan_result(src_fmt, a)[1]
    if a & src_fmt.infinity == src_fmt.infinity:
        return (dst_fmt.sign_bit if a & src_fmt.sign_bit else 0) | dst_fmt.infinity, 0
    negative, exponent, significand = unpack(a, src_fmt)
    return rounded(negative, exponent + src_fmt.lsb_exponent - dst_fmt.lsb_exponent, significand, dst_fmt, rm)
