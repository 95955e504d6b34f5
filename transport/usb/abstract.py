"""Abstract commands, many in one go: what a step needs is written, the command given, its result read.

The debug module ignores commands once one has failed, until that is cleared, so a burst of them may go out before the
first has answered: what is behind a failure is not done. From a command on that was not over when its result was read,
a burst is done again, and more slowly.

Ref: RISC-V Debug Specification 1.0, section 3.7 "Abstract Commands", abstractcs and command in 3.14; 0.13.2 likewise.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from rvtrace_gdb.transport.usb.dtm import Access, Dtm
from rvtrace_gdb.transport.usb.errors import DebugModuleProblem

DATA0, ABSTRACTCS, COMMAND, PROGBUF0 = 0x04, 0x16, 0x17, 0x20
BUSY = 1 << 12
CLEAR = 7 << 8
PATIENCE = 2.0  # seconds for one command
MOST_PAUSE = 64  # reads of abstractcs between a command and its result
AT_ONCE = 256  # steps of one burst

# command
POSTEXEC, TRANSFER, WRITE = 1 << 18, 1 << 17, 1 << 16
ACCESS_MEMORY = 2 << 24
VIRTUAL, POSTINCREMENT = 1 << 23, 1 << 19
GPR = 0x1000


class CmdErr(IntEnum):
    NONE = 0
    BUSY = 1
    NOT_SUPPORTED = 2
    EXCEPTION = 3
    HALT_RESUME = 4
    BUS = 5
    RESERVED = 6
    OTHER = 7


def access_register(regno: int, bits: int, *, write: bool = False, postexec: bool = False) -> int:
    """The command that moves a register of 32 or 64 bits from or to data0 (and data1)."""
    return _size(bits) | TRANSFER | (WRITE if write else 0) | (POSTEXEC if postexec else 0) | regno


def access_memory(bits: int, *, write: bool = False) -> int:
    """The command that moves *bits* of memory from or to arg0; the address, physical, is arg1."""
    return ACCESS_MEMORY | _size(bits) | (WRITE if write else 0)


def _size(bits: int) -> int:
    return (bits.bit_length() - 4) << 20  # 32: 2, 64: 3


@dataclass(frozen=True)
class Step:
    """A command; what is written before it; and how many words of data are read behind it, from data0 on."""

    command: int
    before: tuple[Access, ...] = ()
    words: int = 0


@dataclass(frozen=True)
class Failed:
    """Why a step failed; those behind it were not done."""

    cmderr: CmdErr


Result = int | Failed


class AbstractCommands:
    """Those of the harts behind one debug module; which hart is selected before."""

    def __init__(self, dtm: Dtm) -> None:
        self._dtm = dtm
        self._pause = 0

    def run(self, steps: Sequence[Step], *, once: bool = False) -> list[Result]:
        """The results in order, up to the first failure, which is cleared. A step without words has the result 0.

        *once*: a command must not be given a second time even if its result was asked for too early; slower.
        """
        results: list[Result] = []
        while len(results) < len(steps):
            if once:
                results.append(self._alone(steps[len(results)]))
            else:
                results += self._burst(steps[len(results) : len(results) + AT_ONCE])
            if isinstance(results[-1], Failed):
                break
        return results

    def idle(self) -> CmdErr:
        """Wait until no command is being done. What the last one came to, which is cleared."""
        deadline = time.monotonic() + PATIENCE
        while (status := self._dtm.read(ABSTRACTCS)) & BUSY:
            if time.monotonic() > deadline:
                raise DebugModuleProblem(
                    self._dtm.name, f"an abstract command is not over after {PATIENCE:g} s: reset the target"
                )
        error = CmdErr(status >> 8 & 7)
        if error:
            self._dtm.write(ABSTRACTCS, CLEAR)
        return error

    def _burst(self, steps: Sequence[Step]) -> list[Result]:
        accesses: list[Access] = []
        ends = []
        for step in steps:
            accesses += [*step.before, (COMMAND, step.command), *[(ABSTRACTCS, None)] * (self._pause + 1)]
            ends.append(len(accesses))
            accesses += [(DATA0 + n, None) for n in range(step.words)]
        answers = self._dtm.watched(accesses)
        results: list[Result] = []
        for step, end in zip(steps, ends, strict=True):
            status = answers[end - 1]
            if status & BUSY:
                results.append(self._late(step))
                break
            if status >> 8 & 7:
                results.append(Failed(self.idle()))
                break
            results.append(_value(answers[end : end + step.words]))
        return results

    def _late(self, step: Step) -> Result:
        """*step* was not over when its result was read, so nobody knows what was read, or done behind it.

        It is done again, and what is behind it after it: in their order, so the end is the same. If it failed, nothing
        behind it was done.
        """
        self._pause = min(2 * self._pause + 1, MOST_PAUSE)
        self.idle()
        return self._alone(step)

    def _alone(self, step: Step) -> Result:
        self._dtm.run([*step.before, (COMMAND, step.command)])
        error = self.idle()
        return Failed(error) if error else self._result(step)

    def _result(self, step: Step) -> int:
        return _value(self._dtm.watched([(DATA0 + n, None) for n in range(step.words)]))


def _value(words: Sequence[int]) -> int:
    return sum(word << 32 * n for n, word in enumerate(words))
