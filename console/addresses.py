"""Addresses on the command line."""

import argparse


class NoAddress(ValueError):
    """A text that is no address; says so, and what to write."""


class Unclear(NoAddress):
    """It may be one of two addresses."""


def address(text: str) -> int:
    """The address that *text* is. Raises NoAddress, of that Unclear.

    Digits alone may be meant as hexadecimal, as listings and symbol tables show addresses without 0x: they are asked
    about rather than read as something else.
    """
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if text.isdecimal() and text.isascii() and int(text) > 9:
        decimal = f", or {int(text):#x} if that is decimal" if int(text) >> 64 == 0 else ""
        raise Unclear(f"{text!r}: is that hexadecimal? Write 0x{text}{decimal}")
    if 0 <= value < 1 << 64:
        return value
    digits = all(digit in "0123456789abcdefABCDEF" for digit in text) and 0 < len(text) <= 16
    raise NoAddress(f"{text!r} is not an address{f'; write 0x{text}' if digits else ''}")


def argument(text: str) -> int:
    """The same, as an argparse type."""
    try:
        return address(text)
    except NoAddress as error:
        raise argparse.ArgumentTypeError(str(error)) from None
