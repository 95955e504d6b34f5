"""Binary floating-point formats, and the one place where a result is rounded.

Sources: IEEE 754-2019 sections 3.4 (binary interchange formats), 4.3 (rounding) and 7 (exceptions); the RISC-V
unprivileged ISA manual, "F" version 2.2 (tables "Rounding mode encoding" and "Accrued exception flag encoding",
sections "NaN Generation and Propagation" and "Subnormal Arithmetic") and "D" version 2.2, the same for 64 bits.

A finite operand is taken apart into `Finite(negative, exponent, significand)`, worth

    (-1)**negative * significand * 2**(exponent - 1 + fmt.lsb_exponent)

so that `exponent` is the exponent field as encoded (1 for zero and subnormals) while `significand` is an integer that
includes the hidden bit. Results have the same shape with a significand of any length and any exponent: Python's
integers hold sums and products exactly, and only `rounded` ever drops a bit.
"""

from dataclasses import dataclass

Result = tuple[int, int]
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
class Format:
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
    def of(cls, exponent_bits: int, mantissa_bits: int) -> "Format":
        """The format with these field widths."""
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


F32 = Format.of(exponent_bits=8, mantissa_bits=23)
F64 = Format.of(exponent_bits=11, mantissa_bits=52)


def is_nan(a: int, fmt: Format) -> bool:
    """Whether a is a NaN of either kind."""
    return a & ~fmt.sign_bit > fmt.infinity


def is_signaling(a: int, fmt: Format) -> bool:
    """Whether a is a signaling NaN: the quiet bit is clear (IEEE 754-2019 section 6.2.1)."""
    return a & ~fmt.sign_bit > fmt.infinity and not a & fmt.quiet_bit


def nan_result(fmt: Format, *operands: int) -> Result:
    """What an operation with a NaN among its operands gives: the canonical NaN; NV when one of them is signaling."""
    return fmt.canonical_nan, NV if any(is_signaling(a, fmt) for a in operands) else 0


def unpack(a: int, fmt: Format) -> Finite:
    """Take the finite number `a` apart."""
    exponent = a >> fmt.mantissa_bits & fmt.exponent_mask
    if exponent:
        return a & fmt.sign_bit != 0, exponent, a & fmt.mantissa_mask | fmt.hidden_bit
    return a & fmt.sign_bit != 0, 1, a & fmt.mantissa_mask


def rounds_away(negative: bool, significand: int, drop: int, rm: int) -> bool:
    """Whether `significand`, losing its `drop` low bits, goes up by one in magnitude (IEEE 754-2019 section 4.3)."""
    remainder = significand & (1 << drop) - 1
    if not remainder:
        return False
    half = 1 << drop - 1
    if rm == RNE:
        return remainder > half or (remainder == half and significand >> drop & 1 == 1)
    if rm == RMM:
        return remainder >= half
    return rm == (RDN if negative else RUP)


def rounded(negative: bool, exponent: int, significand: int, fmt: Format, rm: int) -> Result:
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


def _is_tiny(negative: bool, bits: int, significand: int, drop: int, fmt: Format, rm: int) -> bool:
    """Whether an inexact value below the least normal number stays below it when rounded to full precision.

    RISC-V detects tininess after rounding, by which IEEE 754-2019 section 7.5 a) means rounding with unbounded exponent
    range. A value that `rounded` took up to the least normal number lies in the binade below it, where full precision
    is one bit finer than what a subnormal keeps.
    """
    if bits < fmt.hidden_bit:
        return True
    finer = drop - 1
    kept = (significand >> finer) + rounds_away(negative, significand, finer, rm)
    return kept.bit_length() == fmt.precision


def _overflowed(negative: bool, fmt: Format, rm: int) -> int:
    """The magnitude an overflow gives (IEEE 754-2019 section 7.4)."""
    if rm == RTZ or rm == (RUP if negative else RDN):
        return fmt.max_finite
    return fmt.infinity
