"""The table of options, in both spellings; and what is typed in place of a number: digits of other kinds, and thousands
of them. Each is one line.
"""

from collections.abc import Callable

import pytest

from rvtrace_gdb.gdbext.options import MACHINE, Option, OptionError, Table, is_plain_number
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
    f"trace ctr sample -times {LONG}": "trace ctr sample: -times takes a number from 1 on, got: 999",
}


def test_each_is_one_line() -> None:
    said = run_gdb(None, [f"source {HOME / 'rvtrace.py'}", *COMMANDS])
    for command, line in COMMANDS.items():
        assert said[command].startswith(line), command
        assert "Python" not in said[command] and len(said[command].splitlines()) == 1, command


@pytest.mark.parametrize(("word", "is_one"), [("0", True), ("007", True), (SQUARED, False), (LONG, False), ("", False)])
def test_plain_numbers(word: str, is_one: bool) -> None:
    assert is_plain_number(word) is is_one


OPTIONS = (
    Option("-count", most=8, default=3),
    Option("-all", default=False),
    Option("-kind", text="a kind", default=(), shown="KIND"),
)
TYPED = Table("trace list", OPTIONS)
SENT = Table("-rvtrace-list", OPTIONS, MACHINE, "PLACE")


def test_a_person_and_a_program_spell_the_same_options() -> None:
    given = {"count": 8, "kind": ["a", "b"]}
    assert TYPED.parse(["-count", "8", "--kind", "a", "-kind", "b"]) == given
    sent = SENT.parse_line(["--count", "8", "--kind", "a", "--kind", "b", "main"])
    assert sent == ({**given, "all": False}, ["main"])
    assert SENT.parse_line(["--all", "--", "--count"]) == ({"count": 3, "all": True, "kind": ()}, ["--count"])


@pytest.mark.parametrize(
    ("words", "typed", "sent"),
    [
        (["--more"], "unknown option --more. See `help trace list`.", "there is no option --more. {usage}"),
        (["main"], "unknown option main. See `help trace list`.", ""),
        ([], "", "PLACE is missing. {usage}"),
        (["-all"], "", ""),  # a place with a hyphen
        (["--"], "unknown option --. See `help trace list`.", "PLACE is missing. {usage}"),
        (["--count"], "-count takes a number from 1 to 8, got: none.", "--count needs a value."),
        (["--count", "9"], "-count takes a number from 1 to 8, got: 9.", "--count takes a number from 1 to 8, got: 9."),
        (["--kind", "--all"], "-kind takes a kind, got: --all.", "--kind takes a kind, got: --all."),
    ],
)
def test_errors_of_both(words: list[str], typed: str, sent: str) -> None:
    usage = "Usage: -rvtrace-list [--count N] [--all] [--kind KIND] PLACE"
    assert error_of(TYPED.parse, words) == typed
    assert error_of(SENT.parse_line, words) == sent.format(usage=usage)


def error_of(parse: Callable[[list[str]], object], words: list[str]) -> str:
    """The error, "" for none."""
    try:
        parse(words)
    except OptionError as error:
        return str(error)
    return ""
