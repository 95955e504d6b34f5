"""Names in gdb's lists are escaped as they are outside gdb, where they are by `support.text`."""

import sys

from rvtrace_gdb.gdbext import text
from rvtrace_gdb.support import text as support_text


def test_both_say_the_same() -> None:
    for number in [*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10100), sys.maxunicode]:
        character = chr(number)
        assert text.printable(f"a{character}b") == support_text.printable(f"a{character}b")
        assert text.columns(f"a{character}b\tc") == support_text.columns(f"a{character}b\tc")


def test_of_a_line_tabs_and_our_colours_stay() -> None:
    line = "1\t\x1b[34m0x80000000\x1b[m <\x1b[33mmain\x1b[m+0>"
    assert text.shown(line) == line
    assert text.shown("a\nb\x1b[2Jc\x1b[8m") == r"a\nb\x1b[2Jc\x1b[8m"
