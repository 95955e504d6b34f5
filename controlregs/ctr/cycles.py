"""Cycle counts as ctrdata.CC has them: 12 bits of mantissa (CCM) below 4 bits of exponent (CCE).

Ref: RISC-V Control Transfer Records 1.0, "Cycle Counting", with the correction made to it after ratification: the
exponent is the index of the most significant one minus 11, which is what its formula says. Draft 0.1.4, 5.3
"""

MANTISSA_BITS = 12
MANTISSA = (1 << MANTISSA_BITS) - 1
EXPONENT_BITS = range(5)  # 0 to 4 bits of CCE are implemented


def counter_bits(exponent_bits: int) -> int:
    """Size of the counter that so many bits of CCE need: 12, 13, 15, 19 or 27."""
    return MANTISSA_BITS + (1 << exponent_bits) - 1


def decode_cycles(cc: int) -> int:
    """Elapsed cycles; a lower bound where the exponent is above 1."""
    exponent, mantissa = cc >> MANTISSA_BITS, cc & MANTISSA
    return mantissa if exponent == 0 else (1 << MANTISSA_BITS) + mantissa << exponent - 1


def encode_cycles(elapsed: int, exponent_bits: int = 4) -> int:
    """CC for a count; all implemented bits 1 for one that the counter cannot hold."""
    value = min(elapsed, (1 << counter_bits(exponent_bits)) - 1)
    exponent = max(0, value.bit_length() - MANTISSA_BITS)
    return exponent << MANTISSA_BITS | value >> max(0, exponent - 1) & MANTISSA


def is_saturated(cc: int, exponent_bits: int = 4) -> bool:
    """All implemented bits are 1."""
    return cc == ((1 << exponent_bits) - 1) << MANTISSA_BITS | MANTISSA


def may_be_saturated(cc: int) -> bool:
    """`is_saturated` for a hart whose exponent bits are not known."""
    return any(is_saturated(cc, bits) for bits in EXPONENT_BITS)
