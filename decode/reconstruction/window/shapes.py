"""The shapes of results: which values an integer instruction can have at all, whatever its operands are.

A shape of n > 0: below 2**n; of n < 0: sign-extended from -n bits; XLEN: any value.
"""

from rvtrace_gdb.decode.semantics.operations import LOADS

_FLAGS = frozenset(("slt", "sltu", "bext"))
_COUNTS = frozenset(("clz", "ctz", "cpop", "clzw", "ctzw", "cpopw"))
_FIXED = {"zext.b": 8, "zext.h": 16, "zext.w": 32, "sext.b": -8, "sext.h": -16}
_NOT_WORD = frozenset(("clzw", "ctzw", "cpopw", "add.uw", "sh1add.uw", "sh2add.uw", "sh3add.uw"))


def loaded_shape(name: str, xlen: int) -> int:
    """Return the shape of what a load of an integer register loads."""
    size, is_signed = LOADS[name]
    return xlen if 8 * size >= xlen else -8 * size if is_signed else 8 * size


def result_shape(family: str, a: int, b: int, constant: int | None, xlen: int) -> int:
    """Return the shape of a result. *a*, *b*: those of the operands; *constant*: the second operand, if it is one."""
    if family in _FLAGS:
        return 1
    if family in _COUNTS:
        return 7
    if family in _FIXED:
        return _FIXED[family]
    if family[-1:] == "w" and family not in _NOT_WORD and xlen == 64:
        return -32
    if constant is None:
        return _of_two(family, a, b, xlen)
    return _of_constant(family, a, constant, xlen)


def _of_two(family: str, a: int, b: int, xlen: int) -> int:
    positive = [shape for shape in (a, b) if shape > 0]
    if family in ("and", "minu") and positive:
        return min(positive)
    if family == "remu" and b > 0:
        return b if a < 0 else min(a, xlen)
    if len(positive) == 2 and family in ("or", "xor", "maxu"):
        return max(a, b)
    if a < 0 and b < 0 and family in ("and", "or", "xor", "min", "max"):
        return min(a, b)
    return xlen


def _of_constant(family: str, a: int, constant: int, xlen: int) -> int:
    is_positive = not constant >> xlen - 1
    if family == "and":
        bits = max(constant.bit_length(), 1)
        return min(bits, a) if is_positive and a > 0 else bits if is_positive else a
    if family == "srl":
        if a > 0:
            return max(a - constant, 1)
        return max(xlen - constant, 1) if constant else a
    if family == "sra":
        if 0 < a < xlen:
            return max(a - constant, 1)
        return -max((xlen if a > 0 else -a) - constant, 1) if constant or a < 0 else a
    if family == "sll":
        return min(a + constant, xlen) if a > 0 else max(a - constant, -xlen) if a > -xlen + constant else xlen
    if family in ("xor", "or"):
        return _of_mask(a, constant, is_positive, xlen)
    return xlen


def _of_mask(a: int, constant: int, is_positive: bool, xlen: int) -> int:
    """Return the shape of what is xored or ored with a constant of twelve bits."""
    if a < 0:
        return min(a, -12)
    return max(a, constant.bit_length()) if is_positive else xlen
