"""The Debug Module: its harts found, halted, resumed, stepped, and asked for their state.

A debug module that is active already is left as it is: breakpoints and halted harts of whoever used it stay.

Ref: RISC-V Debug Specification 1.0, chapter 3, dmcontrol, dmstatus and abstractcs in 3.14, dcsr in 4.9.1; 0.13.2.
"""

import time
from collections.abc import Callable

from rvtrace_gdb.transport.usb.abstract import ABSTRACTCS, AbstractCommands
from rvtrace_gdb.transport.usb.dtm import DMACTIVE, DMCONTROL, Dtm
from rvtrace_gdb.transport.usb.errors import DebugModuleProblem

DMSTATUS = 0x11
HALTREQ, RESUMEREQ = 1 << 31, 1 << 30
ACKHAVERESET = 1 << 28
HARTSEL = 0xFFFFF << 6
VERSION, AUTHENTICATED = 0xF, 1 << 7
ALLHALTED, ALLRUNNING, ALLUNAVAIL, ANYNONEXISTENT, ALLRESUMEACK = 1 << 9, 1 << 11, 1 << 13, 1 << 14, 1 << 17
IMPEBREAK = 1 << 22
KNOWN_VERSIONS = {2: "0.13", 3: "1.0"}
MOST_HARTS = 1024
PATIENCE = 2.0  # seconds for a hart to halt or resume


class DebugModule:
    """The debug module at the end of *dtm*. All methods raise UsbError leaves."""

    def __init__(self, dtm: Dtm) -> None:
        self.dtm, self.name = dtm, dtm.name
        self._selected: int | None = None
        self._activate()
        status = dtm.read(DMSTATUS)
        self.version = KNOWN_VERSIONS.get(status & VERSION, "")
        if not self.version:
            raise DebugModuleProblem(
                self.name,
                f"dmstatus reads {status:#010x}: no debug module of version 0.13 or 1.0 (is the chip held in reset?)",
            )
        if not status & AUTHENTICATED:
            raise DebugModuleProblem(self.name, "the debug module wants authentication, which rvtrace lacks: unlock it")
        self.impebreak = bool(status & IMPEBREAK)
        abstractcs = dtm.read(ABSTRACTCS)
        self.progbufsize, self.datacount = abstractcs >> 24 & 0x1F, abstractcs & 0xF
        self.abstract = AbstractCommands(dtm)
        self.abstract.idle()
        self.harts = self._counted()

    def select(self, hart: int) -> None:
        """What comes next is about *hart*."""
        if hart != self._selected:
            self.dtm.write(DMCONTROL, DMACTIVE | _hartsel(hart))
            self._selected = hart

    def state(self, hart: int) -> str:
        """ "halted", "running", "unavailable", "nonexistent" or "unknown" (between two of them)."""
        if hart >= self.harts:
            return "nonexistent"
        self.select(hart)
        (status,) = self.dtm.watched([(DMSTATUS, None)])
        names = {ALLHALTED: "halted", ALLRUNNING: "running", ALLUNAVAIL: "unavailable", ANYNONEXISTENT: "nonexistent"}
        return next((name for bit, name in names.items() if status & bit), "unknown")

    def halt(self, hart: int) -> None:
        """Halt *hart*; nothing if it is."""
        self._control(hart, HALTREQ, lambda status: bool(status & ALLHALTED), "did not halt")

    def resume(self, hart: int) -> None:
        """Let *hart* run; nothing if it does."""
        if self.state(hart) != "running":
            self._control(hart, RESUMEREQ, lambda status: bool(status & ALLRESUMEACK), "did not resume")

    def wait_halted(self, hart: int, what: str) -> None:
        """Until *hart* is halted, which it was made to be."""
        self.select(hart)
        self._wait(hart, lambda status: bool(status & ALLHALTED), what)

    def close(self) -> None:
        self.dtm.close()

    def _control(self, hart: int, request: int, done: Callable[[int], bool], what: str) -> None:
        state = self.state(hart)
        if state in ("unavailable", "nonexistent"):
            raise DebugModuleProblem(self.name, f"hart {hart} is {state}: is it powered, and out of reset?")
        self.dtm.write(DMCONTROL, request | DMACTIVE | _hartsel(hart))
        try:
            self._wait(hart, done, what)
        finally:
            self.dtm.write(DMCONTROL, DMACTIVE | _hartsel(hart))

    def _wait(self, hart: int, done: Callable[[int], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done(self.dtm.watched([(DMSTATUS, None)])[0]):
            if time.monotonic() > deadline:
                raise DebugModuleProblem(self.name, f"hart {hart} {what} within {PATIENCE:g} s")

    def _activate(self) -> None:
        if self.dtm.read(DMCONTROL) & DMACTIVE:
            return
        self.dtm.write(DMCONTROL, DMACTIVE)
        deadline = time.monotonic() + PATIENCE
        while not self.dtm.read(DMCONTROL) & DMACTIVE:
            if time.monotonic() > deadline:
                raise DebugModuleProblem(self.name, "the debug module does not become active: is its clock running?")

    def _counted(self) -> int:
        """How many harts there are: numbered from 0 on without a hole."""
        self.dtm.write(DMCONTROL, DMACTIVE | HARTSEL)
        written = self.dtm.read(DMCONTROL)
        most = min(_hart(written) + 1, MOST_HARTS)
        count = 0
        while count < most:
            _, status = self.dtm.run([(DMCONTROL, DMACTIVE | _hartsel(count)), (DMSTATUS, None)])
            self._selected = count
            if status & ANYNONEXISTENT:
                break
            count += 1
        if not count:
            raise DebugModuleProblem(self.name, "the debug module has no hart")
        return count


def _hartsel(hart: int) -> int:
    """The fields hartsello (bits 25:16) and hartselhi (15:6)."""
    return (hart & 0x3FF) << 16 | (hart >> 10 & 0x3FF) << 6


def _hart(dmcontrol: int) -> int:
    return dmcontrol >> 16 & 0x3FF | (dmcontrol >> 6 & 0x3FF) << 10
