"""What the hart executes and reports to the tracer: compiled blocks, trap entries, situations; and what ends a block
early.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.decode.semantics.encodings import Operation


class DebugCause(IntEnum):
    """Why Debug Mode is entered: dcsr.cause (RISC-V Debug Specification 1.0, 4.9.1)."""

    EBREAK = 1
    TRIGGER = 2
    HALTREQ = 3
    STEP = 4
    RESETHALTREQ = 5
    GROUP = 6


class HartBlock:
    """Consecutive instructions, translated to one Python function.

    Only the last may be a jump, branch, trap return or any other instruction that does not continue at the next
    address.
    """

    __slots__ = ("effects", "in_kernel", "ingress", "n", "next", "operations", "pc", "pcs", "run", "transfer", "words")

    def __init__(self, pcs: tuple[int, ...], words: tuple[int, ...], end: int, run: Callable[[], int]) -> None:
        self.pc = pcs[0]
        self.n = len(pcs)
        self.pcs = pcs
        """Address of every instruction."""
        self.words = words
        """The raw instructions, 16 or 32 bits each."""
        self.next = end
        """The address after the last instruction."""
        self.run = run
        """Executes the block and returns the next pc; raises `HartTrap` or `DebugEntry` with `Hart.position` set."""
        self.operations: tuple[Operation, ...] | None = None
        """The decoded instructions, None: one of them has a breakpoint."""
        self.in_kernel = False
        """Whether the compiled kernel executes it (`kernel_blocks`); `run` has the same result."""
        self.ingress: Any = None
        """For the tracer: what it has worked out about this block."""
        self.transfer: TransferType | None = None
        """For the CTR recorder: what the last instruction is, a branch counting as not taken."""
        self.effects: object | None = None
        """For a witness: what it has worked out about the first instruction."""

    def __repr__(self) -> str:
        return f"HartBlock({self.pc:#x}..{self.next:#x}, {self.n})"


class BlockPart(NamedTuple):
    """The first *n* instructions of a block have retired, the others have not."""

    block: HartBlock
    n: int

    @property
    def ingress(self) -> None:
        """As of a block about which nothing is worked out."""


class TrapEntry(NamedTuple):
    """The hart took a trap. Nothing retires by it; the instruction at `epc` has not retired."""

    epc: int
    cause: int
    """mcause without the interrupt bit."""
    tval: int
    interrupt: bool
    handler: int
    """Where execution goes on."""
    privilege: int
    """The privilege the trap was taken from (3 machine, 0 user)."""

    @property
    def ingress(self) -> None:
        """As of a block about which nothing is worked out."""


class Accessed(NamedTuple):
    """What an instruction of the following block has read or written. It is reported only if `Hart.reports_accesses`.

    The fields are those of `decode.program.instructions.MemoryAccess`, except *place*.
    """

    place: int
    """Which instruction of the block it was, from 0 on."""
    kind: str
    size: int
    operation: str
    address: int
    value: int
    operand: int | None = None

    @property
    def ingress(self) -> None:
        """As of a block about which nothing is worked out."""


class Situation(NamedTuple):
    """The state from here on, reported between two blocks when it has changed (only if `Hart.reports_situation`)."""

    pc: int
    """Where execution goes on."""
    privilege: int
    """3 machine, 0 user."""
    scontext: int
    mcontext: int
    elapsed: int
    """As `Hart.elapsed`."""

    @property
    def ingress(self) -> None:
        """As of a block about which nothing is worked out."""


class Witness(Protocol):
    """An observer of each single instruction, once it has retired, and of each trap."""

    def begins(self) -> None:
        """Note that the hart is about to execute."""

    def ends(self) -> None:
        """Note that the hart executes no more for now."""

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        """Note that the instruction being executed has accessed memory or a CSR: the fields of `Accessed`."""

    def retired(self, block: "HartBlock") -> None:
        """Note that the only instruction of the block has retired."""

    def trapped(self, trap: "TrapEntry") -> None:
        """Note that the hart has taken a trap."""

    def register_written(self, regno: int) -> None:
        """Note that a debugger has written a register in Debug Mode. *regno*: its number for abstract commands."""

    def halted(self, cause: "DebugCause") -> None:
        """Note that the hart is about to enter Debug Mode, at its pc."""

    def resumed(self) -> None:
        """Note that the hart has left Debug Mode."""

    def reset(self) -> None:
        """Note that the hart was reset."""


class LostCause(NamedTuple):
    """A trap whose handler raised an exception at its first instruction: mcause, mepc, mtval, and where that was."""

    cause: int
    epc: int
    tval: int
    vector: int


class HartTrap(Exception):
    """A synchronous exception: mcause and mtval (RISC-V Privileged Architecture 3.1.15, 3.1.16)."""

    def __init__(self, cause: int, tval: int = 0) -> None:
        super().__init__(cause, tval)
        self.cause = cause
        self.tval = tval


class TraceTrigger(Exception):
    """The instruction at `Hart.position` is not executed until triggers have acted on the trace: *actions*."""

    def __init__(self, actions: tuple[int, ...]) -> None:
        super().__init__(actions)
        self.actions = actions


class DebugEntry(Exception):
    """The instruction at `Hart.position` is not executed; the hart is to enter Debug Mode."""

    def __init__(self, cause: DebugCause) -> None:
        super().__init__(cause)
        self.cause = cause


# mcause values, RISC-V Privileged Architecture table 14.
INSTRUCTION_MISALIGNED = 0
INSTRUCTION_ACCESS_FAULT = 1
ILLEGAL_INSTRUCTION = 2
BREAKPOINT = 3
LOAD_MISALIGNED = 4
LOAD_ACCESS_FAULT = 5
STORE_MISALIGNED = 6
STORE_ACCESS_FAULT = 7
ECALL_FROM_U = 8
ECALL_FROM_M = 11
