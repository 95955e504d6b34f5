"""The operands of instructions as Spike writes them: registers, and where a jump goes."""


def bits(word: int, low: int, width: int) -> int:
    """A field of an instruction."""
    return word >> low & (1 << width) - 1


def signed(value: int, width: int) -> int:
    """A number of so many bits in two's complement."""
    sign = 1 << width - 1
    return ((value & (1 << width) - 1) ^ sign) - sign


def branch(offset: int) -> str:
    """Where a branch goes."""
    return f"pc {'-' if offset < 0 else '+'} {abs(offset)}"


def jump(offset: int) -> str:
    """Where a jump goes."""
    return f"pc {'-' if offset < 0 else '+'} 0x{abs(offset):x}"
