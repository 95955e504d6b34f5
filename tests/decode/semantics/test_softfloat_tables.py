"""`decode.semantics.softfloat` against what the ISA manual says in words and tables, written out by hand.

Section and table titles are those of the RISC-V unprivileged ISA manual, chapter "F" version 2.2; chapter "D" says the
same of binary64.
"""

import pytest

from rvtrace_gdb.decode.semantics import softfloat
from rvtrace_gdb.decode.semantics.softfloat import DZ, F32, F64, NV, NX, RDN, RMM, RNE, RTZ, RUP, FloatFormat

ALL_MODES = (RNE, RTZ, RDN, RUP, RMM)


def test_encodings() -> None:
    """Table "Rounding mode encoding" and figure "Floating-point control and status register"."""
    assert ALL_MODES == (0b000, 0b001, 0b010, 0b011, 0b100)
    assert (NX, softfloat.UF, softfloat.OF, DZ, NV) == (1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4)


@pytest.mark.parametrize("fmt", [F32, F64], ids=["F32", "F64"])
def test_fma_of_infinity_and_zero_is_invalid_even_with_a_quiet_nan(fmt: FloatFormat) -> None:
    """Section "Single-Precision Floating-Point Computational Instructions", last paragraph."""
    quiet = fmt.canonical_nan | 1
    for infinity in (fmt.infinity, fmt.infinity | fmt.sign_bit):
        for zero in (0, fmt.sign_bit):
            assert softfloat.fma(infinity, zero, quiet, fmt, RNE) == (fmt.canonical_nan, NV)
            assert softfloat.fma(zero, infinity, quiet, fmt, RNE) == (fmt.canonical_nan, NV)


# Table "Domains of float-to-integer conversions and behavior for invalid inputs":
# (bits, signed): least and greatest valid result
DOMAINS = {
    (32, True): (-(2**31), 2**31 - 1),
    (32, False): (0, 2**32 - 1),
    (64, True): (-(2**63), 2**63 - 1),
    (64, False): (0, 2**64 - 1),
}


@pytest.mark.parametrize("fmt", [F32, F64], ids=["F32", "F64"])
@pytest.mark.parametrize(("bits", "signed"), DOMAINS)
def test_conversion_to_integer_clips(fmt: FloatFormat, bits: int, signed: bool) -> None:
    least, greatest = (value & (1 << bits) - 1 for value in DOMAINS[bits, signed])
    negative = {"infinity": fmt.sign_bit | fmt.infinity, "number": fmt.sign_bit | fmt.max_finite}
    positive = {"infinity": fmt.infinity, "number": fmt.max_finite, "quiet NaN": fmt.canonical_nan}
    positive |= {"signaling NaN": fmt.infinity | 1, "negative NaN": fmt.sign_bit | fmt.canonical_nan}
    for rm in ALL_MODES:
        for name, a in negative.items():
            assert softfloat.to_int(a, fmt, bits, signed, rm) == (least, NV), f"-{name}"
        for name, a in positive.items():
            assert softfloat.to_int(a, fmt, bits, signed, rm) == (greatest, NV), name


def test_conversion_to_integer_judges_the_rounded_value() -> None:
    """The same table: "minimum valid input (after rounding)"; NX only when NV is not set."""
    minus_half, minus_three_quarters, minus_one = 0xBF000000, 0xBF400000, 0xBF800000
    assert softfloat.to_int(minus_half, F32, 32, False, RNE) == (0, NX)
    assert softfloat.to_int(minus_half, F32, 32, False, RMM) == (0, NV)
    assert softfloat.to_int(minus_three_quarters, F32, 64, False, RNE) == (0, NV)
    assert softfloat.to_int(minus_three_quarters, F32, 64, False, RTZ) == (0, NX)
    assert softfloat.to_int(minus_one, F32, 64, False, RTZ) == (0, NV)
    two_to_31_minus_half = 0x41DFFFFFFFE00000
    assert softfloat.to_int(two_to_31_minus_half, F64, 32, True, RDN) == (0x7FFFFFFF, NX)
    assert softfloat.to_int(two_to_31_minus_half, F64, 32, True, RUP) == (0x7FFFFFFF, NV)


@pytest.mark.parametrize("fmt", [F32, F64], ids=["F32", "F64"])
def test_integer_zero_converts_to_plus_zero(fmt: FloatFormat) -> None:
    """Section "... Conversion and Move Instructions": FCVT.S.W rd, x0 gives +0 and never sets a flag."""
    assert {softfloat.from_int(0, fmt, rm) for rm in ALL_MODES} == {(0, 0)}


# Table "Format of result of FCLASS instruction", bit by bit: examples of binary32 and binary64
CLASSES = [
    (0xFF800000, 0xFFF0000000000000),  # -infinity
    (0xBF800000, 0xBFF0000000000000),  # negative normal
    (0x807FFFFF, 0x800FFFFFFFFFFFFF),  # negative subnormal
    (0x80000000, 0x8000000000000000),  # -0
    (0x00000000, 0x0000000000000000),  # +0
    (0x00000001, 0x0000000000000001),  # positive subnormal
    (0x00800000, 0x0010000000000000),  # positive normal
    (0x7F800000, 0x7FF0000000000000),  # +infinity
    (0xFFBFFFFF, 0x7FF0000000000001),  # signaling NaN
    (0x7FC00000, 0xFFF8000000000000),  # quiet NaN
]


@pytest.mark.parametrize("bit", range(10))
def test_classify(bit: int) -> None:
    single, double = CLASSES[bit]
    assert softfloat.classify(single, F32) == softfloat.classify(double, F64) == 1 << bit


def test_nans_and_zeros_in_minimum_maximum_and_comparisons() -> None:
    """Sections "... Computational Instructions" (FMIN, FMAX) and "... Compare Instructions"."""
    one, quiet, signaling, minus_zero = 0x3F800000, 0x7FC00005, 0x7F800001, 0x80000000
    for pick in (softfloat.minimum, softfloat.maximum):
        assert pick(quiet, one, F32) == pick(one, quiet, F32) == (one, 0)
        assert pick(signaling, one, F32) == pick(one, signaling, F32) == (one, NV)
        assert pick(quiet, quiet, F32) == (0x7FC00000, 0)
        assert pick(quiet, signaling, F32) == (0x7FC00000, NV)
    assert softfloat.minimum(0, minus_zero, F32) == softfloat.minimum(minus_zero, 0, F32) == (minus_zero, 0)
    assert softfloat.maximum(0, minus_zero, F32) == softfloat.maximum(minus_zero, 0, F32) == (0, 0)
    assert softfloat.eq(quiet, quiet, F32) == (0, 0)
    assert softfloat.eq(one, signaling, F32) == (0, NV)
    assert softfloat.lt(quiet, one, F32) == softfloat.le(one, quiet, F32) == (0, NV)
    assert softfloat.eq(0, minus_zero, F32) == softfloat.le(0, minus_zero, F32) == (1, 0)
    assert softfloat.lt(minus_zero, 0, F32) == (0, 0)


def test_division_by_zero() -> None:
    """IEEE 754-2019 sections 7.2 e) and 7.3."""
    one, minus_zero, infinity = 0x3F800000, 0x80000000, 0x7F800000
    assert softfloat.div(one, minus_zero, F32, RNE) == (infinity | minus_zero, DZ)
    assert softfloat.div(infinity, 0, F32, RNE) == (infinity, 0)
    assert softfloat.div(0, 0, F32, RNE) == (0x7FC00000, NV)
