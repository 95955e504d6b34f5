"""The Debug Module: finding, halting, resuming and stepping its harts, reading their state, and abstract commands.

A debug module that is active already is left as it is: breakpoints and halted harts of its earlier user stay.

Many abstract commands are sent in one burst: the data of a step is written, the command given, its result read. The
debug module ignores commands once one has failed, until that is cleared, so a burst may be sent before the first
command has answered: the steps after a failure are not done. If a command was not over when its result was read, the
burst is repeated from that command on, more slowly.

Ref: RISC-V Debug Specification 1.0, chapter 3 (section 3.7 "Abstract Commands"), dmcontrol, dmstatus, abstractcs and
command in 3.14, dcsr in 4.9.1; 0.13.2 likewise.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from rvtrace_gdb.transport.usb.errors import DebugModuleProblem
from rvtrace_gdb.transport.usb.jtag import DMACTIVE, DMCONTROL, DmiAccess, Dtm

DATA0, ABSTRACTCS, COMMAND, PROGBUF0 = 0x04, 0x16, 0x17, 0x20
BUSY = 1 << 12
CLEAR = 7 << 8
COMMAND_PATIENCE = 2.0  # seconds for one command
MAX_PAUSE = 64  # reads of abstractcs between a command and its result
BURST_STEPS = 256  # steps of one burst

# command
POSTEXEC, TRANSFER, WRITE = 1 << 18, 1 << 17, 1 << 16
ACCESS_MEMORY = 2 << 24
VIRTUAL, POSTINCREMENT = 1 << 23, 1 << 19
GPR = 0x1000


class CmdErr(IntEnum):
    """The values of cmderr in abstractcs (Debug Specification 1.0, "Abstract Control and Status")."""

    NONE = 0
    BUSY = 1
    NOT_SUPPORTED = 2
    EXCEPTION = 3
    HALT_RESUME = 4
    BUS = 5
    RESERVED = 6
    OTHER = 7


def access_register(regno: int, bits: int, *, write: bool = False, postexec: bool = False) -> int:
    """Return the command that moves a register of 32 or 64 bits from or to data0 (and data1)."""
    return _size_bits(bits) | TRANSFER | (WRITE if write else 0) | (POSTEXEC if postexec else 0) | regno


def access_memory(bits: int, *, write: bool = False) -> int:
    """Return the command that moves *bits* of memory from or to arg0; the physical address is in arg1."""
    return ACCESS_MEMORY | _size_bits(bits) | (WRITE if write else 0)


def _size_bits(bits: int) -> int:
    return (bits.bit_length() - 4) << 20  # 32: 2, 64: 3


@dataclass(frozen=True)
class AbstractCommand:
    """A command, the registers to write before it, and the number of data words to read after it, beginning with data0.
    """

    command: int
    before: tuple[DmiAccess, ...] = ()
    words: int = 0


@dataclass(frozen=True)
class StepFailure:
    """Why a step failed; the steps after it were not done."""

    cmderr: CmdErr


CommandResult = int | StepFailure


class AbstractCommands:
    """The abstract commands of the harts behind one debug module. The hart must be selected before."""

    def __init__(self, dtm: Dtm) -> None:
        self._dtm = dtm
        self._pause = 0

    def run(self, steps: Sequence[AbstractCommand], *, once: bool = False) -> list[CommandResult]:
        """Do the steps and return the results in order, up to the first failure, which is cleared. A step without words
        has the result 0.

        *once*: a command must not be repeated even if its result was read too early; this is slower.
        """
        results: list[CommandResult] = []
        while len(results) < len(steps):
            if once:
                results.append(self._alone(steps[len(results)]))
            else:
                results += self._burst(steps[len(results) : len(results) + BURST_STEPS])
            if isinstance(results[-1], StepFailure):
                break
        return results

    def idle(self) -> CmdErr:
        """Wait until no command is in progress. Return the error of the last one, which is cleared."""
        deadline = time.monotonic() + COMMAND_PATIENCE
        while (status := self._dtm.read(ABSTRACTCS)) & BUSY:
            if time.monotonic() > deadline:
                raise DebugModuleProblem(
                    self._dtm.name, f"a command did not finish within {COMMAND_PATIENCE:g} s: reset the target"
                )
        error = CmdErr(status >> 8 & 7)
        if error:
            self._dtm.write(ABSTRACTCS, CLEAR)
        return error

    def _burst(self, steps: Sequence[AbstractCommand]) -> list[CommandResult]:
        accesses: list[DmiAccess] = []
        ends = []
        for step in steps:
            accesses += [*step.before, (COMMAND, step.command), *[(ABSTRACTCS, None)] * (self._pause + 1)]
            ends.append(len(accesses))
            accesses += [(DATA0 + n, None) for n in range(step.words)]
        answers = self._dtm.run_checked(accesses)
        results: list[CommandResult] = []
        for step, end in zip(steps, ends, strict=True):
            status = answers[end - 1]
            if status & BUSY:
                results.append(self._late(step))
                break
            if status >> 8 & 7:
                results.append(StepFailure(self.idle()))
                break
            results.append(_joined_words(answers[end : end + step.words]))
        return results

    def _late(self, step: AbstractCommand) -> CommandResult:
        """Repeat *step*, which was not over when its result was read, so that the result and what was done after it are
        unknown.

        The steps after it are repeated after it: in their order, so the end is the same. If it failed, no step after it
        was done.
        """
        self._pause = min(2 * self._pause + 1, MAX_PAUSE)
        self.idle()
        return self._alone(step)

    def _alone(self, step: AbstractCommand) -> CommandResult:
        self._dtm.run([*step.before, (COMMAND, step.command)])
        error = self.idle()
        return StepFailure(error) if error else self._result(step)

    def _result(self, step: AbstractCommand) -> int:
        return _joined_words(self._dtm.run_checked([(DATA0 + n, None) for n in range(step.words)]))


def _joined_words(words: Sequence[int]) -> int:
    return sum(word << 32 * n for n, word in enumerate(words))


DMSTATUS = 0x11
HALTREQ, RESUMEREQ = 1 << 31, 1 << 30
ACKHAVERESET = 1 << 28
HARTSEL = 0xFFFFF << 6
VERSION, AUTHENTICATED = 0xF, 1 << 7
ALLHALTED, ALLRUNNING, ALLUNAVAIL, ANYNONEXISTENT, ALLRESUMEACK = 1 << 9, 1 << 11, 1 << 13, 1 << 14, 1 << 17
IMPEBREAK = 1 << 22
KNOWN_VERSIONS = {2: "0.13", 3: "1.0"}
MAX_HARTS = 1024
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
            raise DebugModuleProblem(self.name, "it requires authentication, which rvtrace does not support")
        self.impebreak = bool(status & IMPEBREAK)
        abstractcs = dtm.read(ABSTRACTCS)
        self.progbufsize, self.datacount = abstractcs >> 24 & 0x1F, abstractcs & 0xF
        self.abstract = AbstractCommands(dtm)
        self.abstract.idle()
        self.harts = self._hart_count()

    def select(self, hart: int) -> None:
        """Select *hart* for the next operations."""
        if hart != self._selected:
            self.dtm.write(DMCONTROL, DMACTIVE | _hartsel(hart))
            self._selected = hart

    def state(self, hart: int) -> str:
        """Return "halted", "running", "unavailable", "nonexistent" or "unknown" (between two of them)."""
        if hart >= self.harts:
            return "nonexistent"
        self.select(hart)
        (status,) = self.dtm.run_checked([(DMSTATUS, None)])
        names = {ALLHALTED: "halted", ALLRUNNING: "running", ALLUNAVAIL: "unavailable", ANYNONEXISTENT: "nonexistent"}
        return next((name for bit, name in names.items() if status & bit), "unknown")

    def halt(self, hart: int) -> None:
        """Halt *hart*; do nothing if it is halted."""
        self._control(hart, HALTREQ, lambda status: bool(status & ALLHALTED), "did not halt")

    def resume(self, hart: int) -> None:
        """Resume *hart*; do nothing if it runs."""
        if self.state(hart) != "running":
            self._control(hart, RESUMEREQ, lambda status: bool(status & ALLRESUMEACK), "did not resume")

    def wait_halted(self, hart: int, what: str) -> None:
        """Wait until *hart* is halted, after something that halts it."""
        self.select(hart)
        self._wait_for_hart(hart, lambda status: bool(status & ALLHALTED), what)

    def close(self) -> None:
        self.dtm.close()

    def _control(self, hart: int, request: int, done: Callable[[int], bool], what: str) -> None:
        state = self.state(hart)
        if state in ("unavailable", "nonexistent"):
            raise DebugModuleProblem(self.name, f"hart {hart} is {state}: is it powered, and out of reset?")
        self.dtm.write(DMCONTROL, request | DMACTIVE | _hartsel(hart))
        try:
            self._wait_for_hart(hart, done, what)
        finally:
            self.dtm.write(DMCONTROL, DMACTIVE | _hartsel(hart))

    def _wait_for_hart(self, hart: int, done: Callable[[int], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done(self.dtm.run_checked([(DMSTATUS, None)])[0]):
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

    def _hart_count(self) -> int:
        """Return how many harts there are; they are numbered from 0 without a gap."""
        self.dtm.write(DMCONTROL, DMACTIVE | HARTSEL)
        written = self.dtm.read(DMCONTROL)
        most = min(_selected_hart(written) + 1, MAX_HARTS)
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
    """Return the fields hartsello (bits 25:16) and hartselhi (15:6)."""
    return (hart & 0x3FF) << 16 | (hart >> 10 & 0x3FF) << 6


def _selected_hart(dmcontrol: int) -> int:
    return dmcontrol >> 16 & 0x3FF | (dmcontrol >> 6 & 0x3FF) << 10
