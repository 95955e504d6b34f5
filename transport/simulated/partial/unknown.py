"""A value that nobody knows, in place of a number.

What is computed of it is unknown again; what would decide by it raises `UnknownUsed`. It is no int, so that an index, a
comparison or a conversion cannot take it for one; the code that the simulated hart makes of instructions treats it as
a number all the same.
"""

from typing import NoReturn, cast


class UnknownUsed(Exception):
    """A decision, or a result that is not plain arithmetic, would depend on an unknown value."""


class _UnknownOperand:
    __slots__ = ()

    def _same(self, *other: object) -> "_UnknownOperand":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _same
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _same
    __neg__ = __pos__ = __invert__ = __abs__ = _same

    def _undecided(self, *other: object) -> NoReturn:
        raise UnknownUsed

    __bool__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = _undecided
    __eq__ = __ne__ = __hash__ = _undecided
    bit_length = bit_count = to_bytes = _undecided

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = cast(int, _UnknownOperand())
"""The unknown value; compare it by `is_unknown`."""


def is_unknown(value: int) -> bool:
    """Return whether a value is the unknown one."""
    return value is UNKNOWN
