"""The rules of floating-point instructions that are not loads or stores.

Forward they are exact wherever the operands and the rounding mode are known. Backward there are those that lose
nothing: changes of sign, and conversions into a format that has all values of the other one. What went into a NaN is
not known from it.
"""

from collections.abc import Callable
from functools import lru_cache

from rvtrace_gdb.decode.reconstruction.window.classes import Classes, Constraint, EvaluateConstraint
from rvtrace_gdb.decode.reconstruction.window.functions import FloatingPoint, floating_point
from rvtrace_gdb.decode.semantics import softfloat
from rvtrace_gdb.decode.semantics.softfloat import F32, F64, RNE
from rvtrace_gdb.decode.semantics.templates import BOX

DYNAMIC = 7
"""The rounding mode of an instruction that takes that of frm."""
_SIGN = 1 << 63
_SINGLE = 32


class FloatingRule:
    """What is the same for all executions of an instruction. Its constraints are (evaluate, d, sources, frm): *frm* is
    the node of the rounding mode, -1 if that is not needed.
    """

    __slots__ = ("_inverse", "_mode", "does", "evaluate")

    def __init__(self, does: FloatingPoint, mode: int, inverse: "FloatInverse | None") -> None:
        self.does, self._mode, self._inverse = does, mode, inverse
        self.evaluate: EvaluateConstraint = self._evaluate

    @property
    def is_dynamic(self) -> bool:
        """Whether the rounding mode is that of frm."""
        return self.does.rounds and self._mode == DYNAMIC

    def _evaluate(self, classes: Classes, constraint: Constraint) -> None:
        _, d, sources, frm = constraint
        values = [classes.value(node) for node in sources]
        mode = self._mode if frm < 0 else classes.value(frm)
        if None not in values:
            if mode is not None and (mode < 5 or not self.does.rounds):
                classes.set(d, self.does.function(*values, rm=mode))
        elif self._inverse is not None:
            vd = classes.value(d)
            if vd is not None:
                self._inverse(classes, vd, sources[0])


FloatInverse = Callable[[Classes, int, int], None]
"""Learns of the source from the value of the result."""


def _negated(classes: Classes, vd: int, a: int) -> None:
    classes.set(a, vd ^ _SIGN)


def _copied_single(classes: Classes, vd: int, a: int) -> None:
    if not softfloat.is_nan(vd & 0xFFFFFFFF, F32):
        classes.set(a, vd)


def _negated_single(classes: Classes, vd: int, a: int) -> None:
    if not softfloat.is_nan(vd & 0xFFFFFFFF, F32):
        classes.set(a, vd ^ 1 << 31)


def _from_single(classes: Classes, vd: int, a: int) -> None:
    if not softfloat.is_nan(vd, F64):
        classes.set(a, BOX | softfloat.convert(vd, F64, F32, RNE)[0])


def _from_word(is_signed: bool) -> FloatInverse:
    def invert(classes: Classes, vd: int, a: int) -> None:
        classes.set_low(a, _SINGLE, softfloat.to_int(vd, F64, 32, is_signed, RNE)[0])

    return invert


_INVERSES: dict[str, FloatInverse] = {
    "fcvt.d.s": _from_single, "fcvt.d.w": _from_word(True), "fcvt.d.wu": _from_word(False),
}  # fmt: skip
_OF_ONE_REGISTER: dict[str, FloatInverse] = {
    "fsgnj.s": _copied_single, "fsgnjn.s": _negated_single, "fsgnjn.d": _negated,
}  # fmt: skip
"""Of instructions both of whose operands are the same register."""


@lru_cache(maxsize=512)
def floating_rule(name: str, mode: int, is_one_register: bool, xlen: int) -> FloatingRule:
    """Return the rule of an instruction. *mode*: its rm field."""
    inverse = _INVERSES.get(name)
    if is_one_register:
        inverse = _OF_ONE_REGISTER.get(name)
    return FloatingRule(floating_point(name, xlen), mode, inverse)
