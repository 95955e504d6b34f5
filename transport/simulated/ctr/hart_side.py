"""The connection of a hart to its CTR recorder: the CSRs, and the transfer that a block of instructions ends with.

`CtrRegisters` are the CSRs of a recorder, and those that give access to its entries. `CtrFollower` reports transfers to
the recorder. While the present mode is not recorded, the hart does not call it for each block: it asks for a `listener`
whenever that may have changed, which only the last instruction of a block can cause. A simple `Predictor` makes
mispredictions to record (MISP of ctrtarget): branches backward are expected to be taken, others not. An indirect jump
is expected to go where it went the last time (the first time, nowhere); returns and direct jumps are always predicted
correctly.

Sources: CTR 1.0, "Transfer Type Filtering" (the opcodes of the transfer types), "CSR Listing", sctrctl, sctrdepth,
sctrstatus, "Entry Registers"; CTR 0.1.4, chapters 2 and 3; Smcsrind/Sscsrind 1.0 for the select registers.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from rvtrace_gdb.controlregs.ctr.entries import DEPTHS, ENTRIES_MAX, ENTRY_SELECT, VIRTUAL, TransferType
from rvtrace_gdb.controlregs.ctr.versions import Control, Indirect, Level
from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild, CtrTransfer, Plan, PrivilegeMode, Recorder
from rvtrace_gdb.transport.simulated.hart.block import HartBlock, TrapEntry

_SELECT_BITS = 0xFFF
_LOW, _ALL = (1 << 32) - 1, (1 << 64) - 1
_READ_ONLY_ZERO = {5: "ireg4", 6: "ireg5", 7: "ireg6"}  # by distance from the select register


class NotSelected(Exception):
    """The select register does not hold the number of an entry, so that there is no such indirect register."""


class CtrCsr(NamedTuple):
    """A CSR and the functions that access it. *read* and *write* may raise NotSelected."""

    name: str
    read: Callable[[], int]
    write: Callable[[int], None]


class CtrRegisters:
    """All CTR-related CSRs of a hart, in `by_number`.

    Values written have *xlen* bits; those read may have more.
    """

    def __init__(self, recorder: Recorder, xlen: int) -> None:
        self._recorder = recorder
        self._rv32 = xlen == 32
        build = recorder.build
        self._version = version = build.registers
        control = version.machine.control.csr
        # DEPTH and CLR are not kept in the control registers
        self._kept = control.mask(*(build.fields - {version.clear or "", "DEPTH"}))
        self._clear = control.mask(version.clear) if version.clear else 0
        self.by_number: dict[int, CtrCsr] = {}
        self._add_level(version.machine)
        if version.depth is not None:
            self._add_csr(version.depth, self._read_depth, self._write_depth)
        if version.depth is not None or PrivilegeMode.S in build.modes:  # 1.0 cannot do without the CSRs of S mode
            self._add_level(version.supervisor)
        if build.virtual:
            self._add_control(version.virtual, self._read_virtual, self._write_virtual)
            self._add_select(Indirect(*VIRTUAL))

    # -- which there are

    def _add_csr(self, csr: Csr, read: Callable[[], int], write: Callable[[int], None]) -> None:
        self.by_number[csr.number] = CtrCsr(csr.name, read, write)

    def _add_level(self, level: Level) -> None:
        self._add_control(level.control, self._read_control, self._write_control)
        self._add_csr(level.status, self._read_status, self._write_status)
        if level.indirect.select.number not in self.by_number:
            self._add_select(level.indirect)

    def _add_control(self, control: Control, read: Callable[[], int], write: Callable[[int, int], None]) -> None:
        """Add a control register, and on RV32 its upper half. *write* takes a value and the bits that it changes."""
        shown = control.csr.mask(*control.csr.by_name)
        if self._rv32 and control.high is not None:
            high = shown & ~_LOW
            self._add_csr(control.high, lambda: (read() & high) >> 32, lambda value: write(value << 32, high))
        reach = shown & _LOW if self._rv32 else shown
        self._add_csr(control.csr, lambda: read() & reach, lambda value: write(value, reach))

    def _add_select(self, indirect: Indirect) -> None:
        select = Select(self._recorder)
        self._add_csr(indirect.select, lambda: select.value, select.write)
        for word, csr in enumerate(indirect.entry):
            self._add_csr(csr, partial(select.read_entry, word), partial(select.write_entry, word))
        prefix = indirect.select.name.removesuffix("iselect")
        for distance, name in _READ_ONLY_ZERO.items():
            number = indirect.select.number + distance
            self.by_number[number] = CtrCsr(prefix + name, select.read_zero, select.write_nothing)

    # -- control and depth

    def _read_control(self) -> int:
        return self._recorder.control | self._depth_field()

    def _write_control(self, value: int, reach: int) -> None:
        recorder, kept = self._recorder, self._kept & reach
        recorder.control = recorder.control & ~kept | value & kept
        recorder.cycles.invalidate()
        if value & reach & self._clear:
            self._clear_all()
        control = self._version.machine.control.csr
        if self._version.depth is None and reach & control.mask("DEPTH"):
            code = control.get(value, "DEPTH")  # a thermometer: the number of ones from the lowest bit on counts
            recorder.buffer.select(DEPTHS[next(n for n in range(len(DEPTHS)) if not code >> n & 1)])

    def _read_virtual(self) -> int:
        """Return vsctrcontrol, whose DEPTH is a read-only copy."""
        return self._recorder.vs_control | self._depth_field()

    def _write_virtual(self, value: int, reach: int) -> None:
        """Write vsctrcontrol, whose CLR has an effect only when V=1."""
        recorder, kept = self._recorder, self._kept & reach
        recorder.vs_control = recorder.vs_control & ~kept | value & kept
        recorder.cycles.invalidate()
        if value & reach & self._clear and recorder.mode.virtual:
            self._clear_all()

    def _clear_all(self) -> None:
        """Clear the buffer; the draft's CLR also zeroes mctrstatus."""
        recorder = self._recorder
        recorder.buffer.clear()
        recorder.buffer.wrptr, recorder.buffer.wrap, recorder.frozen = 0, False, False

    def _depth_field(self) -> int:
        if self._version.depth is not None:
            return 0
        return self._version.machine.control.csr.pack(DEPTH=self._version.depth_codes[self._recorder.buffer.depth])

    def _read_depth(self) -> int:
        return self._version.depth_codes[self._recorder.buffer.depth]

    def _write_depth(self, value: int) -> None:
        assert self._version.depth is not None
        self._recorder.buffer.select(DEPTHS[0] << self._version.depth.get(value, "DEPTH"))

    # -- status

    def _read_status(self) -> int:
        recorder, status = self._recorder, self._version.machine.status
        value = status.pack(WRPTR=recorder.buffer.wrptr, FROZEN=recorder.frozen)
        return status.put(value, self._version.wrap, recorder.buffer.wrap) if self._version.wrap else value

    def _write_status(self, value: int) -> None:
        recorder, status = self._recorder, self._version.machine.status
        recorder.buffer.wrptr = status.get(value, "WRPTR") & recorder.buffer.depth - 1
        recorder.frozen = bool(status.get(value, "FROZEN"))
        recorder.buffer.wrap = bool(self._version.wrap and status.get(value, self._version.wrap))


class Select:
    """An iselect register, and the entry that its ireg registers access."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.value = 0

    def write(self, value: int) -> None:
        self.value = value & _SELECT_BITS

    def require(self) -> int:
        """Return the entry that is selected. Raises NotSelected."""
        if not ENTRY_SELECT <= self.value < ENTRY_SELECT + ENTRIES_MAX:
            raise NotSelected
        return self.value - ENTRY_SELECT

    def read_entry(self, word: int) -> int:
        return self._recorder.buffer.read(self.require())[word]

    def write_entry(self, word: int, value: int) -> None:
        self._recorder.buffer.write(self.require(), word, value)

    def write_nothing(self, value: int) -> None:
        self.require()

    def read_zero(self) -> int:
        self.require()
        return 0


_INDIRECT = (
    TransferType.INDIRECT_CALL,
    TransferType.INDIRECT_JUMP,
    TransferType.COROUTINE_SWAP,
    TransferType.OTHER_INDIRECT_JUMP,
)


class Predictor:
    """The branch predictor of one hart."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def wrong(self, type: TransferType, operation: Operation, source: int, target: int) -> bool:
        """Return whether this transfer was mispredicted. It is learned for the next time, if it can be."""
        if type is TransferType.TAKEN_BRANCH:
            return operation.imm >= 0
        if type is TransferType.NOT_TAKEN_BRANCH:
            return operation.imm < 0
        if type not in _INDIRECT:
            return False
        expected, self._last[source] = self._last.get(source), target
        return target != expected


_LINK = (1, 5)
# Looking up a member of an enumeration is slow.
_NOT_TAKEN, _TAKEN, _INSERT, _NOTHING = (
    TransferType.NOT_TAKEN_BRANCH, TransferType.TAKEN_BRANCH, Plan.INSERT, Plan.NOTHING,
)  # fmt: skip
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")


class FollowedHart(Protocol):
    """The part of its hart that the follower uses."""

    xlen: int
    extensions: Sequence[str]
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
        self._planned: tuple[PrivilegeMode, int, int] | None = None
        self._plans: tuple[Plan, ...] = ()
        self.csrs = CtrRegisters(self.recorder, hart.xlen).by_number

    def reset(self) -> None:
        """Reset the recorder. The register objects stay, so that `csrs` stays valid."""
        self.recorder.reset(self._hart.instret)

    # -- while the program runs

    def listener(self) -> Callable[[HartBlock, int], None] | None:
        """Return the function to call with each whole block that retires and its target; None: call nothing until this
        is called again.
        """
        self.recorder.enter(PrivilegeMode(self._hart.privilege), self._hart.instret)
        if not self.recorder.active:
            return None
        state = self.recorder.mode, self.recorder.control, self.recorder.vs_control
        if state != self._planned:
            self._planned, self._plans = state, self.recorder.plans()
        return self.retired

    def retired(self, block: HartBlock, target: int) -> None:
        """Process a block that has retired and is counted in `Hart.instret`."""
        type = block.transfer
        if type is None:
            type = block.transfer = transfer_of(self._decoded(block.words[-1]))
        if type is _NOT_TAKEN and (target != block.next or self._is_branch_taken(block)):
            type = _TAKEN
        plan, source, wrong = self._plans[type], block.pcs[-1], False
        if self._predictor is not None:
            wrong = self._predictor.wrong(type, self._decoded(block.words[-1]), source, target)
        if plan is _INSERT:
            self.recorder.within(type, source, target | wrong, self._hart.instret)
        elif plan is not _NOTHING:
            self._transfer(type, source, target, wrong)

    def _transfer(self, type: TransferType, source: int, target: int, wrong: bool) -> None:
        """Report a transfer that may have changed the mode."""
        before, after = self.recorder.mode, PrivilegeMode(self._hart.privilege)
        self.recorder.transfer(CtrTransfer(type, source, target, before, after, self._hart.instret, mispredicted=wrong))

    def trapped(self, trap: TrapEntry) -> None:
        """Process a trap. The hart is already in M mode."""
        type = TransferType.INTERRUPT if trap.interrupt else TransferType.EXCEPTION
        source, now = PrivilegeMode(trap.privilege), self._hart.instret
        self.recorder.transfer(
            CtrTransfer(type, trap.epc, trap.handler, source, PrivilegeMode.M, now, cause=trap.cause)
        )

    def _is_branch_taken(self, block: HartBlock) -> bool:
        """Return whether a branch to the next instruction was taken: its target does not show that, but the registers
        that it compared have not changed.
        """
        branch = self._decoded(block.words[-1])
        return branch.imm == branch.length and outcome(branch, self._hart.x, self._hart.xlen)

    # -- its registers

    def read(self, number: int) -> int:
        """Return the value of a CSR. Raises NotSelected."""
        return self.csrs[number].read()

    def write(self, number: int, value: int, now: int) -> None:
        """Write a CSR. *now*: the cycles that have passed when the value is in force. Raises NotSelected."""
        self.recorder.elapse(now)
        self.csrs[number].write(value)

    def clear(self) -> None:
        """Execute SCTRCLR, which does not change sctrstatus."""
        self.recorder.buffer.clear()
        self.recorder.cycles.invalidate()


def transfer_of(operation: Operation) -> TransferType:
    """Return the transfer that an instruction is when it retires; a branch counts as not taken, no transfer is NONE."""
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
    """Return whether a branch is taken with these registers."""
    a, b = x[branch.rs1] if branch.rs1 else 0, x[branch.rs2] if branch.rs2 else 0
    if branch.name in ("blt", "bge"):
        a, b = a ^ 1 << xlen - 1, b ^ 1 << xlen - 1
    if branch.name in ("beq", "bne"):
        return (a == b) is (branch.name == "beq")
    return (a < b) is branch.name.startswith("blt")
