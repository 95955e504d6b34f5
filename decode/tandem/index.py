"""What the groups of a trace did, sorted by what they changed.

Nothing is stored for a group except what it changed, so the state at any group takes a handful of bisections. If the
trace does not report a new value, a write of an unknown value is recorded: it is unavailable from there on. What loads
show of memory is in `loads_of`.
"""

from array import array
from collections.abc import Container
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Loss, Note, Stop
from rvtrace_gdb.decode.tandem.effects import NOWHERE, TrapEffect
from rvtrace_gdb.decode.tandem.loads import loads_of
from rvtrace_gdb.decode.tandem.memory import MemoryWrites, PhysicalMemory
from rvtrace_gdb.decode.tandem.registers import UNKNOWN, RegisterWrites
from rvtrace_gdb.decode.tandem.trace import TraceGroups


class Break(NamedTuple):
    """Something is missing directly before a group: what was known before it no longer holds.

    *loss*: bytes were lost; otherwise the pc changed to where the code cannot go.
    """

    group: int
    offset: int
    cause: Loss | Stop | Note
    loss: bool

    @property
    def why(self) -> str:
        """The text of the cause."""
        return fact_text(self.cause)


class ExecutedCode:
    """The code that ran, as the groups have it.

    words    the first instruction that ran at each address
    varying  the addresses at which another one ran later
    plain    the latest one at each address: (word, how far it may lead, how many bytes it stores), looked up at once
    """

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        self.varying: set[int] = set()
        self.plain: dict[int, tuple[int, Container[int], int]] = {}

    def ran(self, pc: int, word: int) -> None:
        """Note an instruction that retired."""
        if self.words.setdefault(pc, word) != word:
            self.varying.add(pc)

    def forget(self) -> None:
        """Begin again."""
        self.words.clear()
        self.varying.clear()
        self.plain.clear()


class Index:
    """What the groups of a trace did.

    pcs        after each group: the address of the next instruction, or NOWHERE
    origins    the addresses of instructions that are not where the group before continued; NOWHERE: not known
    registers  the writes to registers, privilege mode and mtime among them
    memory     the stores to each address space (see `decode.tandem.registers.space_of`)
    spaces     (group, space): which space loads and stores are in after that group
    retired    of each group: 1 if an instruction retired
    code       the instructions that retired
    traps, breaks, resets, initializations   in order
    """

    def __init__(self, trace: TraceGroups) -> None:
        self.trace = trace
        self.pcs = array("Q")
        self.origins: dict[int, int] = {}
        self.registers = RegisterWrites(trace.parameters.xlen, trace.parameters.dialect)
        self.memory: dict[int, MemoryWrites] = {}
        self.spaces: list[tuple[int, int]] = [(-1, UNKNOWN)]
        self.retired = bytearray()
        self.code = ExecutedCode()
        self.traps: list[TrapEffect] = []
        self.breaks: list[Break] = []
        self.resets: list[int] = []
        self.initializations = array("I")
        self.memory_forgotten = array("I")
        """Groups from which on memory is unknown: after a break, or a store that is not reported."""

    @cached_property
    def physical(self) -> PhysicalMemory:
        """Physical memory; created on first use."""
        return PhysicalMemory(self.memory, self.memory_forgotten, self.trace.parameters.xlen)

    @cached_property
    def loads(self) -> dict[int, MemoryWrites]:
        """What was loaded, by address space; created on first use."""
        return loads_of(self.trace, self.retired, self.spaces)

    def origin(self, group: int) -> int:
        """Return the address of the instruction of *group*, NOWHERE if it is not known."""
        found = self.origins.get(group)
        if found is not None:
            return found
        return self.pcs[group - 1] if group else NOWHERE
