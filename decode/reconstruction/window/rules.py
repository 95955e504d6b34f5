"""The rules of instructions: what their operands tell of the result, and the result of the operands."""

from collections.abc import Callable
from functools import lru_cache

from rvtrace_gdb.decode.reconstruction.window.classes import Classes, Constraint, EvaluateConstraint
from rvtrace_gdb.decode.reconstruction.window.functions import Binary, atomic_function, value_function
from rvtrace_gdb.decode.reconstruction.window.inversions import INVERSIONS, Inverse
from rvtrace_gdb.decode.reconstruction.window.spans import RANGES
from rvtrace_gdb.decode.semantics.operations import VALUES
from rvtrace_gdb.decode.semantics.templates import BOX

IMMEDIATE_FAMILIES = {
    "slti": "slt", "sltiu": "sltu", "xori": "xor", "ori": "or", "andi": "and", "slli": "sll", "srli": "srl",
    "srai": "sra", "addiw": "addw", "slliw": "sllw", "srliw": "srlw", "sraiw": "sraw", "rori": "ror",
    "roriw": "rorw", "bclri": "bclr", "bexti": "bext", "binvi": "binv", "bseti": "bset", "slli.uw": "slli.uw",
}  # fmt: skip
"""Instructions with an immediate, and the families that they belong to."""
UNARY = frozenset((
    "sext.b", "sext.h", "zext.b", "zext.h", "zext.w", "not", "clz", "ctz", "cpop", "clzw", "ctzw", "cpopw", "rev8",
    "orc.b",
))  # fmt: skip
_PASS_LOW = frozenset((
    "add", "sub", "xor", "xnor", "and", "or", "andn", "orn", "not", "mul", "addw", "subw", "mulw", "sll", "sllw",
    "sext.b", "sext.h", "zext.b", "zext.h", "zext.w", "sh1add", "sh2add", "sh3add", "add.uw", "sh1add.uw",
    "sh2add.uw", "sh3add.uw",
))  # fmt: skip
"""Families whose low result bits depend on nothing but as many low bits of their operands."""
_KNOWN_SHIFT = frozenset(("sll", "sllw"))


class InstructionRule:
    """What is the same for all executions of an instruction.

    family    as in `INVERSIONS`
    forward   the result, of the operands' values
    constant  the second operand, if it is none of a register
    bits      how many of the operands' bits count
    """

    __slots__ = ("_inverse", "_passes_low", "_range", "bits", "constant", "evaluate", "family", "forward", "is_binary")

    def __init__(self, family: str, forward: Binary, constant: int | None, bits: int, inverse: Inverse | None) -> None:
        self.family, self.forward, self.constant, self.bits = family, forward, constant, bits
        self.is_binary = constant is None
        self._inverse, self._range = inverse, RANGES.get(family)
        self._passes_low = family in _PASS_LOW
        self.evaluate: EvaluateConstraint = self._evaluate
        """This method, bound once."""

    def _evaluate(self, classes: Classes, constraint: Constraint) -> None:
        _, d, a, b = constraint
        va = classes.value(a)
        vb = self.constant if b < 0 else classes.value(b)
        if va is not None and vb is not None:
            classes.set(d, self.forward(va, vb))
            return
        if self._range is not None and classes.ranges and self._range(self, classes, d, a, b, va, vb):
            return
        if self._inverse is not None:
            self._inverse(self, classes, d, a, b, va, vb)
        if classes.lows and self._passes_low:
            self._pass_low(classes, d, a, b, va, vb)

    def _pass_low(self, classes: Classes, d: int, a: int, b: int, va: int | None, vb: int | None) -> None:
        """The low bits of the operands tell those of the result."""
        if self.family in _KNOWN_SHIFT and vb is None:
            return
        bits_a, low_a = classes.low(a)
        bits_b, low_b = (64, vb) if vb is not None else classes.low(b)
        bits = min(bits_a, bits_b)
        if self.family in _KNOWN_SHIFT:
            bits = min(bits_a + (vb or 0) % self.bits, self.bits)
        if self.family == "and":
            bits = self._masked(bits, bits_a, bits_b, va, vb)
        if bits and low_b is not None:
            classes.set_low(d, min(bits, classes.xlen), self.forward(low_a, low_b) & (1 << bits) - 1)

    def _masked(self, bits: int, bits_a: int, bits_b: int, va: int | None, vb: int | None) -> int:
        """Return how many low bits of an AND are known: all, where the known operand has zeros from there on."""
        known, have = (vb, bits_a) if vb is not None else (va, bits_b)
        return self.bits if known is not None and have >= known.bit_length() else bits


@lru_cache(maxsize=4096)
def value_rule(name: str, imm: int, xlen: int) -> InstructionRule:
    """Return the rule of an integer instruction that has a template. *imm*: 0 for those without an immediate."""
    family = IMMEDIATE_FAMILIES.get(name, name)
    constant: int | None = None
    if name in IMMEDIATE_FAMILIES:
        constant = imm & (1 << xlen) - 1
    elif name in UNARY:
        constant = 0
    bits = 32 if family[-1] == "w" and family in VALUES and not family.endswith(".uw") and xlen == 64 else xlen
    return InstructionRule(family, value_function(name, imm, xlen), constant, bits, INVERSIONS.get(family))


@lru_cache(maxsize=64)
def atomic_rule(operation: str, size: int, xlen: int) -> InstructionRule:
    """Return the rule of what an atomic operation stores, of which *size* bytes count."""
    if operation in ("add", "xor", "and", "or") and 8 * size == xlen:
        return value_rule(operation, 0, xlen)
    if operation == "add":
        return value_rule("addw", 0, xlen)
    return InstructionRule("", atomic_function(operation, size), None, xlen, None)


def extension_rule(bits: int, form: str) -> Callable[[Classes, Constraint], None]:
    """Return the function of constraints (it, d, a): d is the low *bits* of a, in a form: "s" sign-extended, "u"
    zero-extended, "f" with ones above.
    """
    return _extension_rule(bits, form)


@lru_cache(maxsize=32)
def _extension_rule(bits: int, form: str) -> EvaluateConstraint:
    def evaluate(classes: Classes, constraint: Constraint) -> None:
        _, d, a = constraint
        have, low = classes.low(a)
        if have >= bits:
            classes.set(d, extended(low, bits, form, classes.mask))
            return
        if have:
            classes.set_low(d, have, low)
        have, low = classes.low(d)
        if have:
            classes.set_low(a, min(have, bits), low)

    return evaluate


def extended(value: int, bits: int, form: str, mask: int) -> int:
    """Return the low *bits* of a value in a form, see `extension_rule`. *mask*: of an integer register."""
    low = value & (1 << bits) - 1
    if form == "f":
        return low | BOX if bits == 32 else low
    if form == "s" and low >> bits - 1:
        return (low | -1 << bits) & mask
    return low
