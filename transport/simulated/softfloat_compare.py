"""Minimum, maximum, comparisons and classification; see `softfloat` for the conventions.

Source: RISC-V unprivileged ISA manual, "F" version 2.2, sections "Single-Precision Floating-Point Computational
Instructions" (FMIN, FMAX), "... Compare Instructions", "... Classify Instruction", and the like-named sections of "D".
"""

from rvtrace_gdb.transport.simulated.softfloat_format import NV, Format, Result, is_nan, is_signaling, nan_result


def minimum(a: int, b: int, fmt: Format) -> Result:
    """minimumNumber of IEEE 754-2019 section 9.6 (FMIN): a number wins over a NaN, -0 is less than +0."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return _number(a, b, fmt)
    return a if _order(a, fmt) < _order(b, fmt) else b, 0


def maximum(a: int, b: int, fmt: Format) -> Result:
    """maximumNumber of IEEE 754-2019 section 9.6 (FMAX): a number wins over a NaN, -0 is less than +0."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return _number(a, b, fmt)
    return a if _order(a, fmt) > _order(b, fmt) else b, 0


def eq(a: int, b: int, fmt: Format) -> Result:
    """1 if a == b, else 0 (FEQ): a quiet comparison, only a signaling NaN raises NV."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return 0, nan_result(fmt, a, b)[1]
    return int(a == b or not (a | b) & ~fmt.sign_bit), 0


def lt(a: int, b: int, fmt: Format) -> Result:
    """1 if a < b, else 0 (FLT): a signaling comparison, any NaN raises NV."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return 0, NV
    return int(_order(a, fmt) < _order(b, fmt) and (a | b) & ~fmt.sign_bit != 0), 0


def le(a: int, b: int, fmt: Format) -> Result:
    """1 if a <= b, else 0 (FLE): a signaling comparison, any NaN raises NV."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return 0, NV
    return int(_order(a, fmt) <= _order(b, fmt) or not (a | b) & ~fmt.sign_bit), 0


def classify(a: int, fmt: Format) -> int:
    """The FCLASS mask of a, one bit of ten (table "Format of result of FCLASS instruction"); raises no flags."""
    if is_nan(a, fmt):
        return 1 << 8 if is_signaling(a, fmt) else 1 << 9
    magnitude = a & ~fmt.sign_bit
    if magnitude == fmt.infinity:
        kind = 0
    elif magnitude >= fmt.hidden_bit:
        kind = 1
    else:
        kind = 2 if magnitude else 3
    return 1 << (kind if a & fmt.sign_bit else 7 - kind)


def _order(a: int, fmt: Format) -> int:
    """An integer that orders numbers as their values do, with -0 just below +0."""
    return ~(a & ~fmt.sign_bit) if a & fmt.sign_bit else a


def _number(a: int, b: int, fmt: Format) -> Result:
    """FMIN and FMAX with a NaN among a and b: the other one, if that is a number."""
    result, flags = nan_result(fmt, a, b)
    if not is_nan(a, fmt):
        result = a
    elif not is_nan(b, fmt):
        result = b
    return result, flags
