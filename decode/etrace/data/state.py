"""Addresses and values that are told by how they differ from those before: the state encoder and decoder share.

Source: E-Trace 2.0.5, "Load and Store": "diff field" and "data_len field". State is kept per access size. What is
subtracted are *fields*: where an aligned access follows an unaligned one of the same size (or the other way round) the
reference model subtracts a shifted address from one that is not, and the specification does not tell. Of accesses with
two values (operand and data) each in the order of the packet counts as the one before, as in the reference model.
"""

from enum import Enum

from rvtrace_gdb.decode.etrace.data.layout import Form
from rvtrace_gdb.decode.etrace.data.options import Content, DataOptions


class Mode(Enum):
    """How one address or value is told."""

    FULL = 0
    XOR = 1
    DIFFERENCE = 2


def modes_of(diff: int, form: Form, options: DataOptions) -> tuple[Mode, Mode]:
    """What *diff* says of the address and of the values of a packet."""
    if options.content is Content.ADDRESS or form is Form.SPLIT_LOAD:
        return (Mode.DIFFERENCE if diff else Mode.FULL), Mode.FULL
    by_value = _value_mode(diff, options, has_one_bit(form, options))
    return (Mode.DIFFERENCE if diff and form is not Form.CSR else Mode.FULL), by_value


def response_mode(resp: int, options: DataOptions) -> Mode:
    """What *resp* says of the data (not of an error)."""
    return _value_mode(resp, options, False)


def has_one_bit(form: Form, options: DataOptions) -> bool:
    """Whether the *diff* of a packet with values has one bit only."""
    if options.diff_width != 1:
        return False
    if form is Form.SPLIT_ATOMIC:
        return not options.extended
    return form is Form.CSR or options.content is Content.DATA


def _value_mode(code: int, options: DataOptions, one_bit: bool) -> Mode:
    """ "01: Compressed data (XOR if 2 bits)"."""
    if code in (0b00, 0b10):
        return Mode.FULL
    is_difference = code == 0b11 or options.reference or (one_bit and options.difference)
    return Mode.DIFFERENCE if is_difference else Mode.XOR


class Differences:
    """The last field of each access size. Values are kept at their full width, not negative."""

    def __init__(self, reference: bool = False) -> None:
        """*reference*: what comes first is full, whatever is said (see `Parameters.data_reference`)."""
        self._last: dict[int, int] = {}
        self._reference = reference

    def reset(self) -> None:
        """Forget all: what comes next of each size is full."""
        self._last.clear()

    def forget(self, size: int) -> None:
        """What comes next of this size is full."""
        self._last.pop(size, None)

    def last(self, size: int) -> int | None:
        """What the next one of this size may differ from."""
        return self._last.get(size)

    def decoded(self, received: int, size: int, mode: Mode, width: int) -> int | None:
        """The field that was told as *received*, both of *width* bits; None when it cannot be known."""
        last = self._last.get(size)
        if last is None:
            if mode is not Mode.FULL and not self._reference:
                return None
        elif mode is Mode.XOR:
            received ^= last
        elif mode is Mode.DIFFERENCE:
            received += last
        received &= (1 << width) - 1
        self._last[size] = received
        return received

    def keep(self, value: int, size: int) -> None:
        """The last one of this size."""
        self._last[size] = value


def told(value: int, last: int | None, mode: Mode, width: int) -> int:
    """The field, of *width* bits, that tells *value* after *last*: in full when there is none."""
    if last is None or mode is Mode.FULL:
        return value
    return value ^ last if mode is Mode.XOR else value - last & (1 << width) - 1


def extended(value: int, bits: int, width: int) -> int:
    """*value* of *bits* bits, sign-extended or cut to *width* bits, not negative."""
    if bits < width and value >> bits - 1 & 1:
        value -= 1 << bits
    return value & (1 << width) - 1
