"""The shapes of results: which values an integer instruction can have at all, whatever its operands are.

A shape of n > 0: below 2**n; of n < 0: sign-extended from -n bits; XLEN: any value.
"""

from rvtrace_gdb.decode.semantics.operations import LOADS

_FLAGS = frozenset(("slt", "sltu", "bext"))
_COUNTS = frozenset(("clz", "ctz", "cpop", "clzw", "ctzw", "cpopw"))
_FIXED = {"zext.b": 8, "zext.h": 16, "zext.w": 32, "sext.b": -8, "sext.h": -16}
_NOT_WORD = frozenset(("clzw", "ctzw", "cpopw", "zext.w", "slli.uw", "add.uw", "sh1add.uw", "sh2add.uw", "sh3add.uw"))


def loaded_shape(name: str, xlen: int) -> int:
    """Return the shape of what a load of an integer register loads."""
    size, is_signed = LOADS[name]
    return xlen if 8 * size >= xlen else -8 * size if is_signed else 8 * size


def result_shape(family: str, a: int, b: int, constant: int | None, xlen: int) -> int:
    """Return the shape of a result. *a*, *b*: those of the operands; *constant*: the second operand, if it is known."""
    if family in _FLAGS:
        return 1
    if family in _COUNTS:
        return 7
    if family in _FIXED:
        return _FIXED[family]
    if family[-1:] == "w" and family not in _NOT_WORD and xlen == 64:
        return -32
    a, b = min(a, xlen), min(b, xlen)  # what came from a floating-point register may be more
    if constant is None:
        return _of_two(family, a, b, xlen)
    if family in ("sll", "srl", "sra"):
        return _shifted(family, a, constant % xlen, xlen)
    return _of_constant(family, a, constant, xlen)


def _of_two(family: str, a: int, b: int, xlen: int) -> int:
    positive = [shape for shape in (a, b) if shape > 0]
    if family in ("and", "minu") and positive:
        return min(positive)
    if family == "remu" and a > 0:
        return a
    if len(positive) == 2 and family in ("or", "xor", "maxu"):
        return max(a, b)
    if a < 0 and b < 0 and family in ("and", "or", "xor", "min", "max"):
        return min(a, b)
    return xlen


def _shifted(family: str, a: int, shift: int, xlen: int) -> int:
    """Return the shape of a value shifted by a known amount."""
    if shift == 0:
        return a
    if family == "sll":
        return min(a + shift, xlen) if a > 0 else a - shift if a - shift > -xlen else xlen
    if family == "srl":
        return max(min(a, xlen) - shift, 1) if a > 0 else xlen - shift
    if 0 < a < xlen:
        return max(a - shift, 1)
    return -max(abs(a) - shift, 1)


def _of_constant(family: str, a: int, constant: int, xlen: int) -> int:
    """Return the shape of what is masked with a constant."""
    if family not in ("and", "or", "xor"):
        return xlen
    if not constant >> xlen - 1:
        bits = max(constant.bit_length(), 1)
        if family == "and":
            return min(bits, a) if a > 0 else bits
        return max(a, bits) if a > 0 else min(a, -bits - 1) if bits < xlen - 1 else xlen
    if a > 0:
        return a if family == "and" else xlen
    bits = (constant ^ (1 << xlen) - 1).bit_length() + 1
    return min(a, -bits)
