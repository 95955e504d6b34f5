"""The output of a command: when it has colours, by https://no-color.org and by CLICOLOR_FORCE."""

import io

import pytest

from rvtrace_gdb.console.output import has_colours

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
    assert has_colours(when, _Terminal(), environ) == on_terminal
    assert has_colours(when, io.StringIO(), environ) == in_pipe
