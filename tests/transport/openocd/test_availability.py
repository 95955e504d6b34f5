"""Harts without power, in what OpenOCD 0.12 logs when it polls them. tests/endtoend/coresight has a real one.

The values of dmstatus are of the Debug Specification 1.0: bits 12 and 13 are anyunavail and allunavail, 10 and 11 say
that harts run, 8 and 9 that they are halted, and the lowest 4 are the version.
"""

import pytest

from rvtrace_gdb.transport.openocd.availability import unavailable
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused

NAMES = ("a.cpu0", "a.cpu1", "b.cpu0")
HALTED, RUNNING, OFF, SOME = 0x383, 0xC83, 0x3083, 0x1183


class Polled:
    """Answers with what polling logs, and with dmstatus of the harts. *asked*: how often."""

    def __init__(self, logged: str, statuses: dict[str, int]) -> None:
        self.logged, self.statuses, self.asked = logged, statuses, 0

    def __call__(self, tcl: str) -> str:
        self.asked += 1
        return self.logged if "arp_poll" in tcl else "".join(f"{it} {word:#x}\n" for it, word in self.statuses.items())


@pytest.mark.parametrize(
    ("logged", "statuses", "off"),
    [
        ("Hart 1 is unavailable.\n0\n", (HALTED, OFF, RUNNING), {"a.cpu1"}),
        ("0Hart 0 is unavailable.\n0Hart 0 is unavailable.\n", (OFF, HALTED, OFF), {"a.cpu0", "b.cpu0"}),
        ("Hart 0 is unavailable.\nHart 1 is unavailable.\n", (HALTED, OFF, SOME), {"a.cpu1"}),
        ("Hart 0 is unavailable.\n", (HALTED, RUNNING), set()),
        ("Hart 0 is unavailable.\n", (), set()),
    ],
)
def test_which_are_off(logged: str, statuses: tuple[int, ...], off: set[str]) -> None:
    """Whichever hart the log names: two clusters may count alike, and after a failed halt all harts are named."""
    assert unavailable(Polled(logged, dict(zip(NAMES, statuses, strict=False))), NAMES) == off


def test_the_debug_module_is_left_alone_unless_a_hart_is_unavailable() -> None:
    quiet = Polled("000", dict.fromkeys(NAMES, OFF))
    assert unavailable(quiet, NAMES) == set() and quiet.asked == 1


def test_a_server_that_knows_no_polls() -> None:
    def refuse(tcl: str) -> str:
        raise OpenOcdRefused(tcl, 'invalid command name "capture"', None)

    assert unavailable(refuse, NAMES) == set()
