"""Operations that are more than one Python expression: division, atomic read-modify-write.

Source: The RISC-V Instruction Set Manual, Volume I, 20240411, 13.2 (division by zero and overflow), 14.4 (AMOs).
"""

from collections.abc import Callable

from rvtrace_gdb.transport.simulated.isa import signed


def div(a: int, b: int) -> int:
    """Signed division that rounds towards zero; by zero it is -1."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def rem(a: int, b: int) -> int:
    """Signed remainder with the sign of the dividend; by zero it is the dividend."""
    if b == 0:
        return a
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def divu(a: int, b: int) -> int:
    """Unsigned division; by zero all ones (here -1, masked by the caller)."""
    return a // b if b else -1


def remu(a: int, b: int) -> int:
    """Unsigned remainder; by zero the dividend."""
    return a % b if b else a


# (memory value, register value, bits) -> new memory value; operands unsigned, the caller masks the result.
AMO: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda memory, register, bits: register,
    "add": lambda memory, register, bits: memory + register,
    "xor": lambda memory, register, bits: memory ^ register,
    "and": lambda memory, register, bits: memory & register,
    "or": lambda memory, register, bits: memory | register,
    "min": lambda memory, register, bits: min(memory, register, key=lambda v: signed(v, bits)),
    "max": lambda memory, register, bits: max(memory, register, key=lambda v: signed(v, bits)),
    "minu": lambda memory, register, bits: min(memory, register),
    "maxu": lambda memory, register, bits: max(memory, register),
}
