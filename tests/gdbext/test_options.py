"""What is typed in place of a number: digits of other kinds, and thousands of them. Each is one line."""

import pytest

from rvtrace_gdb.gdbext.options import is_plain_number
from tests.gdbext.gdb_process import HOME, run_gdb

LONG = "9" * 5000
"""More digits than Python's int takes."""
SQUARED = "\N{SUPERSCRIPT TWO}"
COMMANDS = {
    f"trace native {SQUARED}": f"trace native: {SQUARED} is neither a number of instructions nor off.",
    f"trace usb halt {SQUARED}": "Usage: trace usb halt [HART]",
    f"trace connect -listen {SQUARED}": f"trace connect: -listen takes a port, 0 for any, or the path of a socket, "
    f"got: {SQUARED}.",
    f"trace goto {LONG}": "trace goto: 999",
    f"trace goto event {LONG}": "",
    f"trace start -sync-period {LONG}": "trace start: -sync-period takes a number of halfwords, got: 999",
}


def test_each_is_one_line() -> None:
    said = run_gdb(None, [f"source {HOME / 'rvtrace.py'}", *COMMANDS])
    for command, line in COMMANDS.items():
        assert said[command].startswith(line), command
        assert "Python" not in said[command] and len(said[command].splitlines()) == 1, command


@pytest.mark.parametrize(("word", "is_one"), [("0", True), ("007", True), (SQUARED, False), (LONG, False), ("", False)])
def test_plain_numbers(word: str, is_one: bool) -> None:
    assert is_plain_number(word) is is_one
