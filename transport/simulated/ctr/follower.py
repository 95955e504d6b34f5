"""Between a hart and its CTR recorder: which transfer a block of instructions ends with, when the recorder listens.

While the present mode is not recorded the hart does not call for each block: it asks `listener` whenever something may
have changed that, which no block does but its last instruction.

Source: CTR 1.0, "Transfer Type Filtering": the opcodes of the transfer types.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from rvtrace_gdb.controlregs.ctr.transfers import TransferType
from rvtrace_gdb.transport.simulated.block import HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.ctr.build import CtrBuild
from rvtrace_gdb.transport.simulated.ctr.predictor import Predictor
from rvtrace_gdb.transport.simulated.ctr.recorder import Plan, Recorder
from rvtrace_gdb.transport.simulated.ctr.registers import CtrRegisters
from rvtrace_gdb.transport.simulated.ctr.transfer import Mode, Transfer
from rvtrace_gdb.transport.simulated.isa import Decoder, Operation

_LINK = (1, 5)
# Looking up a member of an enumeration is slow.
_NOT_TAKEN, _TAKEN, _INSERT, _NOTHING = (
    TransferType.NOT_TAKEN_BRANCH, TransferType.TAKEN_BRANCH, Plan.INSERT, Plan.NOTHING,
)  # fmt: skip
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")


class FollowedHart(Protocol):
    """What the follower sees of its hart."""

    xlen: int
    extensions: str
    privilege: int
    instret: int
    x: list[int]

    @property
    def now(self) -> int: ...


class CtrFollower:
    """The CTR of one hart. `csrs` are its registers, by number."""

    def __init__(self, hart: FollowedHart, build: CtrBuild) -> None:
        self._hart = hart
        self._decoded = lru_cache(maxsize=4096)(Decoder(hart.xlen, hart.extensions).decode)
        self.recorder = Recorder(build)
        self._predictor = None if "MISP" in build.absent else Predictor()
        self._planned: tuple[Mode, int, int] | None = None
        self._plans: tuple[Plan, ...] = ()
        self.csrs = CtrRegisters(self.recorder, hart.xlen).by_number

    def reset(self) -> None:
        """The registers' owners stay, so that `csrs` stays valid."""
        self.recorder.reset(self._hart.instret)

    # -- while the program runs

    def listener(self) -> Callable[[HartBlock, int], None] | None:
        """What to call with each whole block that retires, and where it led; None: nothing, until asked again."""
        self.recorder.enter(Mode(self._hart.privilege), self._hart.instret)
        if not self.recorder.active:
            return None
        state = self.recorder.mode, self.recorder.control, self.recorder.vs_control
        if state != self._planned:
            self._planned, self._plans = state, self.recorder.plans()
        return self.retired

    def retired(self, block: HartBlock, target: int) -> None:
        """A block has, `Hart.instret` counts it."""
        type = block.transfer
        if type is None:
            type = block.transfer = self._type(block)
        if type is _NOT_TAKEN and (target != block.next or self._taken(block)):
            type = _TAKEN
        plan, source, wrong = self._plans[type], block.pcs[-1], False
        if self._predictor is not None:
            wrong = self._predictor.wrong(type, self._decoded(block.words[-1]), source, target)
        if plan is _INSERT:
            self.recorder.within(type, source, target | wrong, self._hart.instret)
        elif plan is not _NOTHING:
            self._transfer(type, source, target, wrong)

    def _transfer(self, type: TransferType, source: int, target: int, wrong: bool) -> None:
        """One that may have changed the mode."""
        before, after = self.recorder.mode, Mode(self._hart.privilege)
        self.recorder.transfer(
            Transfer(type, source, target, before, after, self._hart.instret, mispredicted=wrong)
        )

    def trapped(self, trap: TrapEntry) -> None:
        """The hart is in M mode now."""
        type = TransferType.INTERRUPT if trap.interrupt else TransferType.EXCEPTION
        source, now = Mode(trap.privilege), self._hart.instret
        self.recorder.transfer(Transfer(type, trap.epc, trap.handler, source, Mode.M, now, cause=trap.cause))

    def _type(self, block: HartBlock) -> TransferType:
        return transfer_of(self._decoded(block.words[-1]))

    def _taken(self, block: HartBlock) -> bool:
        """Where a branch to the next instruction went does not say it, but what it compared has not changed."""
        branch = self._decoded(block.words[-1])
        return branch.imm == branch.length and outcome(branch, self._hart.x, self._hart.xlen)

    # -- its registers

    def read(self, number: int) -> int:
        """Raises NotSelected."""
        return self.csrs[number].read()

    def write(self, number: int, value: int, now: int) -> None:
        """*now*: the cycles that have passed when the value is in force. Raises NotSelected."""
        self.recorder.elapse(now)
        self.csrs[number].write(value)

    def clear(self) -> None:
        """SCTRCLR: not sctrstatus."""
        self.recorder.buffer.clear()
        self.recorder.cycles.invalidate()


def transfer_of(operation: Operation) -> TransferType:
    """The transfer that an instruction is when it retires; a branch counts as not taken, no transfer is NONE."""
    name, rd, rs1 = operation.name, operation.rd, operation.rs1
    if name in _BRANCHES:
        return TransferType.NOT_TAKEN_BRANCH
    if name == "mret":
        return TransferType.TRAP_RETURN
    if name == "jal":
        if rd in _LINK:
            return TransferType.DIRECT_CALL
        return TransferType.OTHER_DIRECT_JUMP if rd else TransferType.DIRECT_JUMP
    if name != "jalr":
        return TransferType.NONE
    if rd in _LINK:
        return TransferType.COROUTINE_SWAP if rs1 in _LINK and rs1 != rd else TransferType.INDIRECT_CALL
    if rs1 in _LINK:
        return TransferType.FUNCTION_RETURN
    return TransferType.OTHER_INDIRECT_JUMP if rd else TransferType.INDIRECT_JUMP


def outcome(branch: Operation, x: list[int], xlen: int) -> bool:
    """Whether a branch is taken with these registers."""
    a, b = x[branch.rs1] if branch.rs1 else 0, x[branch.rs2] if branch.rs2 else 0
    if branch.name in ("blt", "bge"):
        a, b = a ^ 1 << xlen - 1, b ^ 1 << xlen - 1
    if branch.name in ("beq", "bne"):
        return (a == b) is (branch.name == "beq")
    return (a < b) is branch.name.startswith("blt")
