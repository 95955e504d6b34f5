"""What the groups of a trace did, sorted by what they changed."""

from array import array
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.event_wording import words
from rvtrace_gdb.decode.events import Loss, Note, Stop, Trap, TrapKind
from rvtrace_gdb.decode.tandem.loads import loads_of
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.physical import PhysicalMemory
from rvtrace_gdb.decode.tandem.registers import Registers
from rvtrace_gdb.decode.tandem.spaces import UNKNOWN
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.decode.tandem.trace import Trace

UNTOLD_CAUSE = -1
"""`Trapped.cause` where the trace does not say it."""


class Trapped(NamedTuple):
    """A group that took a trap. *epc*, *tval*, *handler*: None where the trace does not say.

    *interrupt*: where the cause is not told, what it was most often; `fact` has what is known.
    """

    group: int
    cause: int
    interrupt: bool
    epc: int | None
    tval: int | None
    handler: int | None

    @property
    def fact(self) -> Trap:
        """What the trace tells of it."""
        if self.cause == UNTOLD_CAUSE:
            return Trap(TrapKind.UNKNOWN)
        return Trap.of(self.cause, self.tval, interrupt=self.interrupt)


class Break(NamedTuple):
    """Something is missing right before a group: what was known before it no longer holds.

    *loss*: bytes were lost; else the pc went where the code cannot go.
    """

    group: int
    offset: int
    cause: Loss | Stop | Note
    loss: bool

    @property
    def why(self) -> str:
        """The cause, in words."""
        return words(self.cause)


class Index:
    """What the groups of a trace did.

    pcs        after each group: the address of the next instruction, or NOWHERE
    origins    the addresses of instructions that are not where the group before went on; NOWHERE: not known
    registers  the writes to registers, privilege mode and mtime among them
    memory     the stores to each address space (see `spaces`)
    spaces     (group, space): which space loads and stores are in after that group
    retired    of each group: 1 if an instruction retired
    traps, breaks, resets, initializations   in order
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.pcs = array("Q")
        self.origins: dict[int, int] = {}
        self.registers = Registers(trace.parameters.xlen, trace.parameters.dialect)
        self.memory: dict[int, MemoryWrites] = {}
        self.spaces: list[tuple[int, int]] = [(-1, UNKNOWN)]
        self.retired = bytearray()
        self.traps: list[Trapped] = []
        self.breaks: list[Break] = []
        self.resets: list[int] = []
        self.initializations = array("I")
        self.memory_forgotten = array("I")
        """Groups from which on memory is not what was stored before: after a break, or a store that is not told."""

    @cached_property
    def physical(self) -> PhysicalMemory:
        """Physical memory; made when first asked for."""
        return PhysicalMemory(self.memory, self.memory_forgotten, self.trace.parameters.xlen)

    @cached_property
    def loads(self) -> dict[int, MemoryWrites]:
        """What was loaded, by address space; made when first asked for."""
        return loads_of(self.trace, self.retired, self.spaces)

    def origin(self, group: int) -> int:
        """The address of the instruction of *group*, NOWHERE if it is not known."""
        found = self.origins.get(group)
        if found is not None:
            return found
        return self.pcs[group - 1] if group else NOWHERE
