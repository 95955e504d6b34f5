"""Which harts have no power, where OpenOCD keeps the state that it saw last.

A later OpenOCD says "unavailable" as a hart's state. That of 0.12 does not know this state: it goes on to say "halted"
or "running", and logs a line at each poll. Which hart the line names is not to be relied upon: after a failed halt all
harts of an SMP group stay selected, and the line is logged of each. So its targets are polled, as it does by itself all
the time; if that logs the line, dmstatus of each hart is read.

Ref: RISC-V Debug Specification 1.0, dmcontrol, dmstatus.allunavail; what OpenOCD 0.12.0 logs, "Hart 3 is
unavailable."; OpenOCD User's Guide 0.12.0, `capture`, "RISC-V Debug Module Access Commands" (dmi_read), -coreid.
"""

import re
from collections.abc import Callable, Sequence

from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused

_LOGGED = re.compile(r"Hart \d+ is unavailable")
_DMCONTROL, _DMSTATUS = 0x10, 0x11
_ALL_UNAVAILABLE = 1 << 13
_KEPT = 0x07FF_FFC3  # hasel, hartsel, ndmreset, dmactive: what selects harts, and what must stay as it is
_NDMRESET_DMACTIVE = 3


def unavailable(command: Callable[[str], str], names: Sequence[str]) -> set[str]:
    """Return those of OpenOCD's targets *names* whose hart has no power now.

    *command*: executes Tcl, while OpenOCD does not poll. Raises what *command* raises, but for a refusal: then nothing
    is known.
    """
    try:
        if not _LOGGED.search(command(_polls(names))):
            return set()
        said = [line.split() for line in command(_statuses(names)).splitlines()]
    except OpenOcdRefused:
        return set()
    return {pair[0] for pair in said if len(pair) == 2 and int(pair[1], 0) & _ALL_UNAVAILABLE}


def _polls(names: Sequence[str]) -> str:
    """Return Tcl whose result is what polling each target logs."""
    poll = "capture {catch {$_rvtrace_target arp_poll}}"
    return (
        f"set _rvtrace_out {{}}; foreach _rvtrace_target {{{' '.join(names)}}} "
        f"{{append _rvtrace_out [{poll}] \\n}}; set _rvtrace_out"
    )


def _statuses(names: Sequence[str]) -> str:
    """Return Tcl whose result is a line for each target: its name, and dmstatus with its hart alone selected. Which
    harts were selected is restored; a Debug Module that is not active is left alone.
    """
    read, write = "$_rvtrace_target riscv dmi_read", f"$_rvtrace_target riscv dmi_write {_DMCONTROL:#x}"
    number = "set _rvtrace_hart [$_rvtrace_target cget -coreid]"
    selected = "($_rvtrace_hart & 0x3ff) << 16 | ($_rvtrace_hart >> 10 & 0x3ff) << 6"
    one = (
        f"{number}; set _rvtrace_old [expr {{[{read} {_DMCONTROL:#x}] & {_KEPT:#x}}}]; if {{$_rvtrace_old & 1}} {{"
        f"{write} [expr {{$_rvtrace_old & {_NDMRESET_DMACTIVE} | {selected}}}]; "
        f"set _rvtrace_code [catch {{{read} {_DMSTATUS:#x}}} _rvtrace_said]; {write} $_rvtrace_old; "
        'if {!$_rvtrace_code} {append _rvtrace_out "$_rvtrace_target $_rvtrace_said\\n"}}'
    )
    return f"set _rvtrace_out {{}}; foreach _rvtrace_target {{{' '.join(names)}}} {{catch {{{one}}}}}; set _rvtrace_out"
