"""Which harts have no power, where OpenOCD keeps the state that it saw last.

A later OpenOCD says "unavailable" as a hart's state. That of 0.12 does not know this state: it goes on to say "halted"
or "running", and logs a line at each poll. So its targets are polled, as it does by itself all the time, and the log is
read.

Ref: RISC-V Debug Specification 1.0, dmstatus.anyunavail; the log of OpenOCD 0.12.0: "Hart 3 is unavailable.", with the
number that the target has by `-coreid`; OpenOCD User's Guide, `capture`.
"""

import re
from collections.abc import Callable, Sequence

from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused

_LOGGED = re.compile(r"Hart (\d+) is unavailable")


def unavailable(command: Callable[[str], str], names: Sequence[str]) -> set[str]:
    """Return those of OpenOCD's targets *names* whose hart has no power, by what a poll logs now.

    *command*: executes Tcl. Those of a number that several targets have are not known. Raises what *command* raises,
    but for a refusal: then nothing is known.
    """
    try:
        logged = {int(number) for number in _LOGGED.findall(command(_polls(names)))}
        numbers = _numbers(command) if logged else {}
    except OpenOcdRefused:
        return set()
    having = list(numbers.values())
    return {name for name in names if numbers.get(name) in logged and having.count(numbers[name]) == 1}


def _polls(names: Sequence[str]) -> str:
    """Return Tcl whose result is what polling each target logs."""
    poll = "capture {catch {$_rvtrace_target arp_poll}}"
    return (
        f"set _rvtrace_out {{}}; foreach _rvtrace_target {{{' '.join(names)}}} "
        f"{{append _rvtrace_out [{poll}] \\n}}; set _rvtrace_out"
    )


def _numbers(command: Callable[[str], str]) -> dict[str, int]:
    """Return the numbers of all targets that have one."""
    said = command(
        "set _rvtrace_out {}; foreach _rvtrace_target [target names] "
        '{if {![catch {$_rvtrace_target cget -coreid} _rvtrace_said]} {append _rvtrace_out "$_rvtrace_target '
        '$_rvtrace_said\\n"}}; set _rvtrace_out'
    )
    pairs = (line.split() for line in said.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
