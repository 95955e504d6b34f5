"""What an E-Trace encoder knows between two instructions: each part of its state is a value with a name.

Source: Efficient Trace for RISC-V 2.0, "Reference Compressed Branch Trace Algorithm", "Resynchronisation", "Context
type ctype values and corresponding actions".
"""

import sys
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, Reached, ResyncMode
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext


class Next(IntEnum):
    """What follows an instruction: the flow chart's decision on the next one.

    SAME    an instruction in the same context
    CHANGE  an instruction in another privilege mode, or in a context to be reported precisely
    LEAVES  an instruction in a context that counts as a discontinuity
    TRAP    a trap
    END     no traced instruction
    """

    SAME = 0
    CHANGE = 1
    LEAVES = 2
    TRAP = 3
    END = 4


class Resync(IntEnum):
    """The states of the resync FSM ("Resynchronisation"): not due, report branches first, due."""

    COUNTING = 1
    REACHED = 2
    DUE = 3


OTHERWISE = Reached.OTHERWISE
COUNTING = Resync.COUNTING
"""Members of enumerations that are compared for each block: to find them in their class takes as long as the rest."""


class InstructionArrival:
    """How the execution arrives at the next instruction.

    updiscon  by an uninferable discontinuity, whose target this instruction is
    reached   by a return, and whether that went to the expected address
    """

    __slots__ = ("reached", "updiscon")

    def __init__(self) -> None:
        self.updiscon = False
        self.reached = OTHERWISE

    def fall_through(self) -> None:
        """Note that the code alone determines the next instruction."""
        self.updiscon, self.reached = False, OTHERWISE


class PendingTrap(NamedTuple):
    """A trap that was taken, while no instruction of its handler has retired.

    context   the context in which it was taken
    reported  whether a packet with its EPC was sent; the handler's address is still to be reported
    """

    trap: IngressTrap
    context: ProgramContext
    reported: bool = False


class PendingBlock:
    """The block whose last instruction waits for the flow chart, until it is known what follows.

    time  when that instruction retires
    """

    __slots__ = ("block", "time")

    def __init__(self) -> None:
        self.block: Block | None = None
        self.time = 0


class HartClock:
    """The time of the hart. *now*: when the next instruction retires; *step*: how much later the one after it does."""

    __slots__ = ("now", "step")

    def __init__(self) -> None:
        self.now = 0
        self.step = 1


class ResyncTimer:
    """The resync timer and its FSM. *period*: the number of packets, cycles or halfwords between synchronizations.

    since  the cycles or halfwords since the last synchronization; packets are counted where they are sent
    """

    def __init__(self, options: EncoderOptions) -> None:
        self.counts_packets = options.sync_mode in (ResyncMode.PACKETS, ResyncMode.OFF)
        self.counts_halfwords = options.sync_mode is ResyncMode.HALFWORDS
        self.period = options.period if options.sync_mode is not ResyncMode.OFF else sys.maxsize
        self.restart()

    def restart(self) -> None:
        """Begin a period, at a synchronization."""
        self.state = Resync.COUNTING
        self.since = 0

    def packet_sent(self, count: int) -> None:
        """Note that a packet was sent that does not synchronize. *count*: the packets since the last that does."""
        if self.counts_packets:
            over = count - self.period
            self.state = Resync.DUE if over > 0 else Resync.REACHED if over == 0 else Resync.COUNTING
        elif self.state is Resync.REACHED:
            self.state = Resync.DUE

    def spend(self, units: int) -> None:
        """Count cycles or halfwords."""
        self.since += units
        if self.since >= self.period and self.state is Resync.COUNTING:
            self.state = Resync.REACHED


class HartContext:
    """The context of the hart, and what of its changes is still to be reported.

    current  that of the instruction in the flow chart
    entered  that of what retires next
    ctype    how the change to *entered* is reported
    changed  whether the next instruction is to be reported, as the first in another privilege mode or context
    due      whether the change is to be reported by a packet without an address
    """

    def __init__(self, ctype: ContextType) -> None:
        self.current = self.entered = ProgramContext()
        self.ctype = ctype
        self.changed = self.due = False

    def step(self) -> Next:
        """Return the step to the next instruction, as far as the context determines it."""
        before, after = self.current, self.entered
        if before is after or before == after:
            return Next.SAME
        if before[:2] != after[:2]:
            return Next.CHANGE
        if self.ctype is ContextType.DISCONTINUITY:
            return Next.LEAVES
        return Next.CHANGE if self.ctype is ContextType.PRECISE else Next.SAME

    def switch(self) -> None:
        """Make the entered context the current one."""
        if self.step() is not Next.SAME:
            self.changed = True
        elif self.current != self.entered and self.ctype is ContextType.IMPRECISE:
            self.due = True
        self.current = self.entered

    def reported(self) -> None:
        """Note that a synchronizing packet has reported the context."""
        self.changed = self.due = False
