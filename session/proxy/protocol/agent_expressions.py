"""gdb's agent expressions: the bytecode of conditions of breakpoints, evaluated where gdb would evaluate them itself.

gdb evaluates a condition again where a stop is reported, so only an expression that is certainly zero may keep one from
being reported: what is not known, or not one of these operations, is not zero. Source: GDB manual, "Agent Expressions",
"General Bytecode Design", "Bytecode Descriptions".
"""

from collections.abc import Callable
from typing import NamedTuple

_MASK = (1 << 64) - 1
_STEPS, _DEEPEST = 1000, 100


class ValueUnknown(Exception):
    """A value is not known, or the expression has an operation that is not evaluated here."""


class PastValues(NamedTuple):
    """What an expression reads: a register by gdb's number, and so many bytes at an address; None where not known."""

    register: Callable[[int], int | None]
    memory: Callable[[int, int], bytes]


def is_zero(code: bytes, values: PastValues) -> bool:
    """Return whether an expression is certainly zero."""
    try:
        return _Evaluation(code, values).result() == 0
    except (ValueUnknown, IndexError, ZeroDivisionError):
        return False


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _quotient(a: int, b: int) -> int:
    """Divide as C does, toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _shift_right(a: int, b: int) -> int:
    return a >> min(b, 64)


_BINARY: dict[int, Callable[[int, int], int]] = {
    0x02: lambda a, b: a + b,
    0x03: lambda a, b: a - b,
    0x04: lambda a, b: a * b,
    0x05: lambda a, b: _quotient(_signed(a), _signed(b)),
    0x06: lambda a, b: a // b,
    0x07: lambda a, b: _signed(a) - _signed(b) * _quotient(_signed(a), _signed(b)),
    0x08: lambda a, b: a % b,
    0x09: lambda a, b: a << b if b < 64 else 0,
    0x0A: lambda a, b: _shift_right(_signed(a), b),
    0x0B: _shift_right,
    0x0F: lambda a, b: a & b,
    0x10: lambda a, b: a | b,
    0x11: lambda a, b: a ^ b,
    0x13: lambda a, b: a == b,
    0x14: lambda a, b: _signed(a) < _signed(b),
    0x15: lambda a, b: a < b,
}
_REFERENCES = {0x17: 1, 0x18: 2, 0x19: 4, 0x1A: 8}
_CONSTANTS = {0x22: 1, 0x23: 2, 0x24: 4, 0x25: 8}
_LOG_NOT, _BIT_NOT, _EXT, _IF_GOTO, _GOTO, _REG, _END = 0x0E, 0x12, 0x16, 0x20, 0x21, 0x26, 0x27
_DUP, _POP, _ZERO_EXT, _SWAP = 0x28, 0x29, 0x2A, 0x2B


class _Evaluation:
    """One evaluation of an expression, on a stack of 64-bit values."""

    def __init__(self, code: bytes, values: PastValues) -> None:
        self._code, self._values = code, values
        self._at = 0
        self._stack: list[int] = []

    def result(self) -> int:
        """Raises ValueUnknown, IndexError, ZeroDivisionError."""
        for _ in range(_STEPS):
            operation = self._operand(1)
            if operation == _END:
                return self._stack[-1]
            self._do(operation)
            if len(self._stack) > _DEEPEST:
                break
        raise ValueUnknown

    def _operand(self, size: int) -> int:
        data = self._code[self._at : self._at + size]
        if len(data) < size:
            raise ValueUnknown
        self._at += size
        return int.from_bytes(data, "big")

    def _push(self, value: int) -> None:
        self._stack.append(value & _MASK)

    def _do(self, operation: int) -> None:
        stack = self._stack
        if operation in _BINARY:
            second, first = stack.pop(), stack.pop()
            self._push(_BINARY[operation](first, second))
        elif operation in _CONSTANTS:
            self._push(self._operand(_CONSTANTS[operation]))
        elif operation in _REFERENCES:
            self._push(self._read(stack.pop(), _REFERENCES[operation]))
        elif operation == _REG:
            value = self._values.register(self._operand(2))
            if value is None:
                raise ValueUnknown
            self._push(value)
        elif operation in (_IF_GOTO, _GOTO):
            target = self._operand(2)
            if operation == _GOTO or stack.pop():
                self._at = target
        else:
            self._rearrange(operation)

    def _rearrange(self, operation: int) -> None:
        """Do an operation on what is on the stack."""
        stack = self._stack
        if operation == _LOG_NOT:
            self._push(not stack.pop())
        elif operation == _BIT_NOT:
            self._push(~stack.pop())
        elif operation in (_EXT, _ZERO_EXT):
            bits, value = self._operand(1), stack.pop()
            low = value & (1 << bits) - 1
            self._push(low - (1 << bits) if operation == _EXT and bits and low >> bits - 1 else low)
        elif operation == _DUP:
            self._push(stack[-1])
        elif operation == _POP:
            stack.pop()
        elif operation == _SWAP:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        else:
            raise ValueUnknown

    def _read(self, address: int, size: int) -> int:
        data = self._values.memory(address, size)
        if len(data) < size:
            raise ValueUnknown
        return int.from_bytes(data, "little")
