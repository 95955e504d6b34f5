"""Harts without power, in what OpenOCD 0.12 logs when it polls them. tests/endtoend/coresight has a real one."""

import pytest

from rvtrace_gdb.transport.openocd.availability import unavailable
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused

NAMES = ("a.cpu0", "a.cpu1", "b.cpu0")


class Polled:
    """Answers with what polling logs, and with the numbers of the targets. *asked*: how often."""

    def __init__(self, logged: str, numbers: str) -> None:
        self.logged, self.numbers, self.asked = logged, numbers, 0

    def __call__(self, tcl: str) -> str:
        self.asked += 1
        return self.logged if "arp_poll" in tcl else self.numbers


@pytest.mark.parametrize(
    ("logged", "numbers", "off"),
    [
        ("Hart 5 is unavailable.\nHart 5 is unavailable.\n0", "a.cpu0 4\na.cpu1 5\nb.cpu0 6\n", {"a.cpu1"}),
        ("Hart 4 is unavailable.\n0Hart 6 is unavailable.\n", "a.cpu0 4\na.cpu1 5\nb.cpu0 6\n", {"a.cpu0", "b.cpu0"}),
        ("Hart 15 is unavailable.\n", "a.cpu0 1\na.cpu1 5\nb.cpu0 6\n", set()),
        ("Hart 0 is unavailable.\nHart 1 is unavailable.\n", "a.cpu0 0\na.cpu1 1\nb.cpu0 0\n", {"a.cpu1"}),
        ("Hart 0 is unavailable.\n", "", set()),
        ("[a.cpu0] Examination failed, hart 0 does not exist\n", "a.cpu0 0\na.cpu1 1\nb.cpu0 2\n", set()),
    ],
)
def test_which_are_off(logged: str, numbers: str, off: set[str]) -> None:
    """A number that two targets have says nothing of either."""
    assert unavailable(Polled(logged, numbers), NAMES) == off


def test_nothing_is_logged() -> None:
    quiet = Polled("000", "a.cpu0 0\n")
    assert unavailable(quiet, NAMES) == set() and quiet.asked == 1


def test_a_server_that_knows_no_polls() -> None:
    def refuse(tcl: str) -> str:
        raise OpenOcdRefused(tcl, 'invalid command name "capture"', None)

    assert unavailable(refuse, NAMES) == set()
