"""Colours: texts stay safe with them."""

from rvtrace_gdb.support import colours
from rvtrace_gdb.support.text import coloured_rows, rows


def test_a_text_between_colours_cannot_control_the_terminal() -> None:
    hostile = "a\x1b[2J\x1b]0;title\x07\nb"
    line = f"1\t{colours.painted('function', hostile)} and {hostile}"
    assert coloured_rows([line]) == (
        "1\t\x1b[33ma\\x1b[2J\\x1b]0;title\\x07\\nb\x1b[m and a\\x1b[2J\\x1b]0;title\\x07\\nb\n"
    )
    assert rows([line]).count("\x1b") == 0
    assert colours.without(line) == f"1\t{hostile} and {hostile}"
