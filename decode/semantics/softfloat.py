"""IEEE 754 arithmetic as the RISC-V F and D extensions define it, on raw bit patterns.

Every function takes operands as unsigned integers of the format's width, `fmt` (`F32`, `F64`) and, where it can
round, the rounding mode `rm` (0 RNE, 1 RTZ, 2 RDN, 3 RUP, 4 RMM). It returns `(bits, flags)`, flags being the fflags
bits the operation raises (NX 1, UF 2, OF 4, DZ 8, NV 16); only `classify` returns its mask alone. A NaN result is the
canonical NaN. Nothing raises. NaN boxing, the dynamic and the reserved rounding modes are the caller's business, and
so are the negated multiply-adds: flip sign bits, of c for FMSUB, of a for FNMSUB, of both for FNMADD.

A finite operand is taken apart into `Finite(negative, exponent, significand)`, worth (-1)**negative * significand *
2**(exponent - 1 + fmt.lsb_exponent) so that `exponent` is the exponent field as encoded (1 for zero and subnormals)
while `significand` is an integer that includes the hidden bit. Results have the same shape with a significand of any
length and any exponent: Python's integers hold sums and products exactly, and only `rounded` ever drops a bit.

Sources: the RISC-V unprivileged ISA manual, "F" version 2.2 (tables "Rounding mode encoding" and "Accrued exception
flag encoding", sections "NaN Generation and Propagation", "Subnormal Arithmetic", and those of the computational
(FMIN, FMAX), conversion and move, compare, and classify instructions) and "D" version 2.2, the same for 64 bits; IEEE
754-2019 sections 3.4 (binary interchange formats), 4.3 (rounding), 5.4.1 (arithmetic), 6.1 (infinities), 6.3 (the
sign of a zero) and 7, 7.2, 7.3 (exceptions: invalid operation, division by zero).
"""

from dataclasses import dataclass
from math import isqrt

FloatResult = tuple[int, int]
"""(raw bits of the result, fflags raised by the operation)"""

Finite = tuple[bool, int, int]
"""(negative, exponent, significand), see above"""

# fflags
NX = 1  # inexact
UF = 2  # underflow
OF = 4  # overflow
DZ = 8  # divide by zero
NV = 16  # invalid operation

# frm. DYN and the reserved encodings never get here: the hart resolves the one and traps on the others.
RNE = 0  # to nearest, ties to even
RTZ = 1  # towards zero
RDN = 2  # down
RUP = 3  # up
RMM = 4  # to nearest, ties to maximum magnitude


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary interchange format: two widths and what follows from them (IEEE 754-2019 table 3.5)."""

    exponent_bits: int
    mantissa_bits: int  # as encoded, without the hidden bit
    precision: int  # bits of a normal significand, with the hidden bit
    lsb_exponent: int  # 2**lsb_exponent is the least subnormal
    sign_bit: int
    exponent_mask: int  # of the field, not shifted
    mantissa_mask: int
    hidden_bit: int  # also the encoding of the least normal number
    quiet_bit: int
    infinity: int
    max_finite: int
    canonical_nan: int

    @classmethod
    def with_widths(cls, exponent_bits: int, mantissa_bits: int) -> "FloatFormat":
        """Return the format with these field widths."""
        exponent_mask = (1 << exponent_bits) - 1
        infinity = exponent_mask << mantissa_bits
        bias = exponent_mask >> 1
        quiet_bit = 1 << mantissa_bits - 1
        return cls(
            exponent_bits=exponent_bits,
            mantissa_bits=mantissa_bits,
            precision=mantissa_bits + 1,
            lsb_exponent=1 - bias - mantissa_bits,
            sign_bit=1 << exponent_bits + mantissa_bits,
            exponent_mask=exponent_mask,
            mantissa_mask=(1 << mantissa_bits) - 1,
            hidden_bit=1 << mantissa_bits,
            quiet_bit=quiet_bit,
            infinity=infinity,
            max_finite=infinity - 1,
            canonical_nan=infinity | quiet_bit,
        )


F32 = FloatFormat.with_widths(exponent_bits=8, mantissa_bits=23)
F64 = FloatFormat.with_widths(exponent_bits=11, mantissa_bits=52)


def is_nan(a: int, fmt: FloatFormat) -> bool:
    """Return whether a is a NaN of either kind."""
    return a & ~fmt.sign_bit > fmt.infinity


def is_signaling(a: int, fmt: FloatFormat) -> bool:
    """Return whether a is a signaling NaN: the quiet bit is clear (IEEE 754-2019 section 6.2.1)."""
    return a & ~fmt.sign_bit > fmt.infinity and not a & fmt.quiet_bit


def nan_result(fmt: FloatFormat, *operands: int) -> FloatResult:
    """Return the result of an operation with a NaN among its operands: the canonical NaN, and NV when one of them is
    signaling.
    """
    return fmt.canonical_nan, NV if any(is_signaling(a, fmt) for a in operands) else 0


def unpack(a: int, fmt: FloatFormat) -> Finite:
    """Take the finite number `a` apart."""
    exponent = a >> fmt.mantissa_bits & fmt.exponent_mask
    if exponent:
        return a & fmt.sign_bit != 0, exponent, a & fmt.mantissa_mask | fmt.hidden_bit
    return a & fmt.sign_bit != 0, 1, a & fmt.mantissa_mask


def rounds_away(negative: bool, significand: int, drop: int, rm: int) -> bool:
    """Return whether `significand`, losing its `drop` low bits, goes up by one in magnitude (IEEE 754-2019 section
    4.3).
    """
    remainder = significand & (1 << drop) - 1
    if not remainder:
        return False
    half = 1 << drop - 1
    if rm == RNE:
        return remainder > half or (remainder == half and significand >> drop & 1 == 1)
    if rm == RMM:
        return remainder >= half
    return rm == (RDN if negative else RUP)


def rounded(negative: bool, exponent: int, significand: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Encode an exact value (see the module) in `fmt`, rounded once in mode `rm`, with the flags this raises.

    Bit 0 of the significand may instead stand for "and something below" if the significand has at least
    `fmt.precision` + 2 bits: then bit 0 is neither kept nor the rounding bit.
    """
    sign = fmt.sign_bit if negative else 0
    if not significand:
        return sign, 0
    drop = significand.bit_length() - fmt.precision
    subnormal = exponent + drop < 1
    if subnormal:
        drop = 1 - exponent
    # The hidden bit of a normal significand adds the 1 that the exponent field is short of.
    bits = exponent + drop - 1 << fmt.mantissa_bits
    if drop <= 0:
        bits += significand << -drop
        flags = 0
    else:
        # A carry out of the significand runs into the exponent, as it should.
        bits += (significand >> drop) + rounds_away(negative, significand, drop, rm)
        flags = NX if significand & (1 << drop) - 1 else 0
        if flags and subnormal and _is_tiny(negative, bits, significand, drop, fmt, rm):
            flags = NX | UF
    if bits >= fmt.infinity:
        return sign | _overflowed(negative, fmt, rm), OF | NX
    return sign | bits, flags


def _is_tiny(negative: bool, bits: int, significand: int, drop: int, fmt: FloatFormat, rm: int) -> bool:
    """Return whether an inexact value below the least normal number stays below it when rounded to full precision.

    RISC-V detects tininess after rounding, by which IEEE 754-2019 section 7.5 a) means rounding with unbounded exponent
    range. A value that `rounded` took up to the least normal number lies in the binade below it, where full precision
    is one bit finer than what a subnormal keeps.
    """
    if bits < fmt.hidden_bit:
        return True
    finer = drop - 1
    kept = (significand >> finer) + rounds_away(negative, significand, finer, rm)
    return kept.bit_length() == fmt.precision


def _overflowed(negative: bool, fmt: FloatFormat, rm: int) -> int:
    """Return the magnitude of the result after an overflow (IEEE 754-2019 section 7.4)."""
    if rm == RTZ or rm == (RUP if negative else RDN):
        return fmt.max_finite
    return fmt.infinity


def minimum(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return the minimumNumber of IEEE 754-2019 section 9.6 (FMIN): a number wins over a NaN, -0 is less than +0."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return _nan_free_result(a, b, fmt)
    return a if _order(a, fmt) < _order(b, fmt) else b, 0


def maximum(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return the maximumNumber of IEEE 754-2019 section 9.6 (FMAX): a number wins over a NaN, -0 is less than +0."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return _nan_free_result(a, b, fmt)
    return a if _order(a, fmt) > _order(b, fmt) else b, 0


def eq(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return 1 if a == b, else 0 (FEQ): a quiet comparison, only a signaling NaN raises NV."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return 0, nan_result(fmt, a, b)[1]
    return int(a == b or not (a | b) & ~fmt.sign_bit), 0


def lt(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return 1 if a < b, else 0 (FLT): a signaling comparison, any NaN raises NV."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return 0, NV
    return int(_order(a, fmt) < _order(b, fmt) and (a | b) & ~fmt.sign_bit != 0), 0


def le(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return 1 if a <= b, else 0 (FLE): a signaling comparison, any NaN raises NV."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return 0, NV
    return int(_order(a, fmt) <= _order(b, fmt) or not (a | b) & ~fmt.sign_bit), 0


def classify(a: int, fmt: FloatFormat) -> int:
    """Return the FCLASS mask of a, one bit of ten (table "Format of result of FCLASS instruction"); no flags are
    raised.
    """
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


def _order(a: int, fmt: FloatFormat) -> int:
    """Return an integer that orders numbers as their values do, with -0 just below +0."""
    return ~(a & ~fmt.sign_bit) if a & fmt.sign_bit else a


def _nan_free_result(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return the result of FMIN or FMAX with a NaN among a and b: the other one, if that is a number."""
    result, flags = nan_result(fmt, a, b)
    if not is_nan(a, fmt):
        result = a
    elif not is_nan(b, fmt):
        result = b
    return result, flags


def to_int(a: int, fmt: FloatFormat, bits: int, signed: bool, rm: int) -> FloatResult:
    """Return a as an integer (FCVT.W, .WU, .L, .LU): an unsigned pattern of `bits` bits that is not sign-extended.

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


def from_int(v: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return the integer `v`, of any sign and size, in `fmt` (FCVT from W, WU, L, LU); 0 gives +0."""
    return rounded(v < 0, 1 - fmt.lsb_exponent, abs(v), fmt, rm)


def convert(a: int, src_fmt: FloatFormat, dst_fmt: FloatFormat, rm: int) -> FloatResult:
    """Return a of `src_fmt` in `dst_fmt` (FCVT.S.D, FCVT.D.S)."""
    if is_nan(a, src_fmt):
        return dst_fmt.canonical_nan, nan_result(src_fmt, a)[1]
    if a & src_fmt.infinity == src_fmt.infinity:
        return (dst_fmt.sign_bit if a & src_fmt.sign_bit else 0) | dst_fmt.infinity, 0
    negative, exponent, significand = unpack(a, src_fmt)
    return rounded(negative, exponent + src_fmt.lsb_exponent - dst_fmt.lsb_exponent, significand, dst_fmt, rm)


def add(a: int, b: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return a + b (FADD)."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity:
        return _add_special(a, b, fmt)
    return _sum(unpack(a, fmt), unpack(b, fmt), fmt, rm)


def sub(a: int, b: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return a - b (FSUB)."""
    return add(a, b ^ fmt.sign_bit, fmt, rm)


def mul(a: int, b: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return a * b (FMUL)."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity:
        return _mul_special(a, b, fmt)
    negative, exponent, significand = _product(a, b, fmt)
    return rounded(negative, exponent, significand, fmt, rm)


def fma(a: int, b: int, c: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return a * b + c with one rounding (FMADD). 0 * infinity + c is invalid even when c is a quiet NaN."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity or c & infinity == infinity:
        return _fma_special(a, b, c, fmt)
    return _sum(_product(a, b, fmt), unpack(c, fmt), fmt, rm)


def div(a: int, b: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return a / b (FDIV)."""
    infinity = fmt.infinity
    if a & infinity == infinity or b & infinity == infinity:
        return _div_special(a, b, fmt)
    negative_a, exponent_a, significand_a = unpack(a, fmt)
    negative_b, exponent_b, significand_b = unpack(b, fmt)
    negative = negative_a != negative_b
    if not significand_b:
        if not significand_a:
            return fmt.canonical_nan, NV
        return _with_sign(negative, infinity, fmt), DZ
    # Enough for `rounded`, whatever the operands: the quotient is greater than 2**(places - precision).
    places = 2 * fmt.precision + 2
    quotient, remainder = divmod(significand_a << places, significand_b)
    exponent = exponent_a - exponent_b + 1 - fmt.lsb_exponent - places
    return rounded(negative, exponent, quotient | (remainder != 0), fmt, rm)


def sqrt(a: int, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return the square root of a (FSQRT); that of -0 is -0, of any other negative number invalid."""
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


def _with_sign(negative: bool, magnitude: int, fmt: FloatFormat) -> int:
    return fmt.sign_bit | magnitude if negative else magnitude


def _product(a: int, b: int, fmt: FloatFormat) -> Finite:
    """Return the exact product of two finite numbers."""
    negative_a, exponent_a, significand_a = unpack(a, fmt)
    negative_b, exponent_b, significand_b = unpack(b, fmt)
    return negative_a != negative_b, exponent_a + exponent_b - 1 + fmt.lsb_exponent, significand_a * significand_b


def _sum(x: Finite, y: Finite, fmt: FloatFormat, rm: int) -> FloatResult:
    """Return x + y, rounded; the sign of an exact zero follows IEEE 754-2019 section 6.3."""
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
    return _with_sign(rm == RDN, 0, fmt), 0


def _add_special(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return a + b with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b)
    if a ^ b == fmt.sign_bit:  # infinities of opposite signs
        return fmt.canonical_nan, NV
    return a if a & fmt.infinity == fmt.infinity else b, 0


def _mul_special(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return a * b with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b)
    if not a & ~fmt.sign_bit or not b & ~fmt.sign_bit:
        return fmt.canonical_nan, NV
    return (a ^ b) & fmt.sign_bit | fmt.infinity, 0


def _fma_special(a: int, b: int, c: int, fmt: FloatFormat) -> FloatResult:
    """Return a * b + c with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b, c)
    if a & fmt.infinity != fmt.infinity and b & fmt.infinity != fmt.infinity:
        return nan_result(fmt, c) if is_nan(c, fmt) else (c, 0)
    product, flags = _mul_special(a, b, fmt)
    if flags:
        return product, flags
    return _add_special(product, c, fmt)


def _div_special(a: int, b: int, fmt: FloatFormat) -> FloatResult:
    """Return a / b with an infinity or a NaN among them."""
    if is_nan(a, fmt) or is_nan(b, fmt):
        return nan_result(fmt, a, b)
    sign = (a ^ b) & fmt.sign_bit
    if a & fmt.infinity != fmt.infinity:
        return sign, 0
    if b & fmt.infinity == fmt.infinity:
        return fmt.canonical_nan, NV
    return sign | fmt.infinity, 0
