"""Colours: when they are wanted, by https://no-color.org and by CLICOLOR_FORCE, and that texts stay safe with them."""

import io

import pytest

from rvtrace_gdb.support import colours
from rvtrace_gdb.support.text import coloured_rows, rows

TERMINAL = {"TERM": "xterm-256color"}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("when", "environ", "on_terminal", "in_pipe"),
    [
        ("auto", TERMINAL, True, False),
        ("auto", {"TERM": "dumb"}, False, False),
        ("auto", {"TERM": ""}, False, False),
        ("auto", {}, False, False),
        ("auto", {**TERMINAL, "NO_COLOR": "1"}, False, False),
        ("auto", {**TERMINAL, "NO_COLOR": ""}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, True, True),
        ("auto", {**TERMINAL, "CLICOLOR_FORCE": "0"}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False, False),
        ("always", {"TERM": "dumb", "NO_COLOR": "1"}, True, True),
        ("never", {**TERMINAL, "CLICOLOR_FORCE": "1"}, False, False),
    ],
)
def test_when_there_are_colours(when: str, environ: dict[str, str], on_terminal: bool, in_pipe: bool) -> None:
    assert colours.wanted(when, _Terminal(), environ) == on_terminal
    assert colours.wanted(when, io.StringIO(), environ) == in_pipe


def test_a_text_between_colours_cannot_control_the_terminal() -> None:
    hostile = "a\x1b[2J\x1b]0;title\x07\nb"
    line = f"1\t{colours.painted('function', hostile)} and {hostile}"
    assert coloured_rows([line]) == (
        "1\t\x1b[33ma\\x1b[2J\\x1b]0;title\\x07\\nb\x1b[m and a\\x1b[2J\\x1b]0;title\\x07\\nb\n"
    )
    assert rows([line]).count("\x1b") == 0
    assert colours.without(line) == f"1\t{hostile} and {hostile}"
