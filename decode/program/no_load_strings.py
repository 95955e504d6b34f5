"""Formats that a program refers to by a number and does not contain in its memory ("no-load strings").

SiFive's library puts them into the section .comment as N:FORMAT, each with a NUL behind it; N is the channel, 0 to 31,
to which the program writes a word. The conversions of the format share the bits of that word: one has all 32; two have
16 each, three 11, 11 and 10, four 8 each, the first one the highest bits. What else is in that section, such as the
name of the compiler, is no such string.

Source: SiFive's trace-decoder-tests, nls.test, and what its decoder prints of it.
"""

import re
from collections.abc import Mapping

CHANNELS = 32
_NUMBERED = re.compile(rb"([0-9]{1,2}):")
_CONVERSION = re.compile(r"%([-+ #0]*)([0-9]{0,3})(?:\.([0-9]{0,3}))?(?:hh|h|ll|l|j|z|t|L|q)?([a-zA-Z%])")
_WIDTHS: Mapping[int, tuple[int, ...]] = {0: (), 1: (32,), 2: (16, 16), 3: (11, 11, 10), 4: (8, 8, 8, 8)}
_PYTHON = {"i": "d", "u": "d"}


def no_load_strings(path: str) -> dict[int, str]:
    """Return the formats in a program's file by their channels; none if the file has none, or cannot be read."""
    from elftools.common.exceptions import ELFError  # which take long to load
    from elftools.elf.elffile import ELFFile

    try:
        with open(path, "rb") as file:
            section = ELFFile(file).get_section_by_name(".comment")
            content = section.data() if section is not None else b""
    except (OSError, ELFError, ValueError, KeyError, AttributeError, TypeError, OverflowError, MemoryError):
        return {}
    return formats_in(content)


def formats_in(content: bytes) -> dict[int, str]:
    """Return the formats in the section .comment by their channels; of two for a channel, the first."""
    found: dict[int, str] = {}
    for text in content.split(b"\0"):
        number = _NUMBERED.match(text)
        if number is not None and int(number[1]) < CHANNELS:
            found.setdefault(int(number[1]), text[number.end() :].decode("utf-8", "backslashreplace"))
    return found


def filled_format(text: str, word: int) -> str | None:
    """Return a format filled in with the parts of a word; None: it has more conversions than a word has room for."""
    count = sum(found[4] != "%" for found in _CONVERSION.finditer(text))
    widths = _WIDTHS.get(count)
    if widths is None:
        return None
    values, low = [], sum(widths)
    for width in widths:
        low -= width
        values.append((word >> low & (1 << width) - 1, width))
    given = iter(values)
    return _CONVERSION.sub(lambda found: "%" if found[4] == "%" else _converted(found, *next(given)), text)


def _converted(conversion: "re.Match[str]", value: int, width: int) -> str:
    flags, size, precision, letter = conversion.groups()
    if letter in "di" and value >> width - 1:
        value -= 1 << width
    if letter == "c":
        return f"{chr(value & 0xFF):{'<' if '-' in flags else '>'}{size or 0}}"
    if letter == "o" and "#" in flags:
        flags, value_text = flags.replace("#", ""), f"0{value:o}"
        return f"{value_text:{'<' if '-' in flags else '>'}{size or 0}}"
    if letter in "diouxX":
        digits = "" if precision is None else f".{precision or 0}"
        return f"%{flags}{size}{digits}{_PYTHON.get(letter, letter)}" % value
    return f"0x{value:x}"  # an address or a number of another kind: what it stands for is not in the trace
