"""The one form of addresses: as gdb prints those of code, `0x` and all digits of the target, then `<function+offset>`.

Addresses inside a text, as operands and accesses have them, have as many digits as they need, as gdb prints those.
"""

from rvtrace_gdb.support.colours import Paint, plain
from rvtrace_gdb.support.text import printable

SymbolOffset = tuple[str, int]
"""The name of a function or variable, and the offset in it."""


def digits(address: int, xlen: int) -> str:
    """Return an address with all digits that addresses of *xlen* bits have."""
    return f"0x{address:0{xlen // 4}x}"


def address_text(
    address: int,
    xlen: int,
    symbol: SymbolOffset | None,
    paint: Paint = plain,
    *,
    omit_function: bool = False,
    short: bool = False,
) -> str:
    """Return `0xADDRESS <function+offset>`, or `0xADDRESS` where no symbol is known.

    *omit_function*: leave the name out, `0xADDRESS <+offset>`. *short*: as many digits as the address needs.
    """
    text = paint("address", f"{address:#x}" if short else digits(address, xlen))
    if symbol is None:
        return text
    name, offset = symbol
    return f"{text} <{'' if omit_function else paint('function', printable(name))}+{offset}>"
