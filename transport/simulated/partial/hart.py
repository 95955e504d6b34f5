"""A simulated hart of which some registers and some memory are unknown.

It executes as far as what is known determines what it does. Blocks that read nothing unknown are the compiled kernel's,
as those of any simulated hart; other instructions are executed one by one, and a result that depends on an unknown
value is unknown. What would decide by such a value is not executed: `HartStop`.

No interrupt is taken but those that the owner asks for, and there are no devices.

Sources: RISC-V Privileged Architecture 20240411, 3.1.6 (mstatus), 3.1.7 (mtvec), 3.1.15 (mcause), 3.3.
"""

from collections.abc import Iterable, Sequence, Set

from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.operations import BRANCHES, FP_LOADS
from rvtrace_gdb.decode.semantics.templates import fp_template
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.hart.block import (
    BREAKPOINT,
    ECALL_FROM_M,
    ECALL_FROM_U,
    ILLEGAL_INSTRUCTION,
    INSTRUCTION_ACCESS_FAULT,
    HartBlock,
    HartTrap,
    TrapEntry,
)
from rvtrace_gdb.transport.simulated.hart.block_compiler import LONGEST_BLOCK
from rvtrace_gdb.transport.simulated.hart.csr import MIE_BIT, MISA, MPIE_BIT, MPP, MPP_SHIFT, IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.instructions import MACHINE
from rvtrace_gdb.transport.simulated.partial.access import PartialAccess
from rvtrace_gdb.transport.simulated.partial.csrs import PartialCsrs
from rvtrace_gdb.transport.simulated.partial.memory import PartialMemory, UnknownCode
from rvtrace_gdb.transport.simulated.partial.stops import PASSED, HartStop, StopCause
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN, UnknownUsed, is_unknown

_MEDELEG = 0x302


class PartialHart(Hart):
    """A hart with no register known but its pc, until its owner sets them. `traps`: how many it has taken.

    *extensions*: names as `Decoder` takes them.
    """

    csr: PartialCsrs
    data: PartialAccess
    bus: PartialMemory
    csr_file = PartialCsrs
    data_access = PartialAccess

    def __init__(self, memory: PartialMemory, xlen: int, extensions: Sequence[str], pc: int) -> None:
        super().__init__(memory, xlen, extensions, pc, triggers=0)
        self.x[1:] = [UNKNOWN] * 31
        self.f[:] = [UNKNOWN] * 32
        self.csr.begin({})
        self._decoder = Decoder(xlen, extensions)
        self._breakpoints: Set[int] = frozenset()
        self.traps = 0

    def stop_at(self, breakpoints: Set[int], watched: Iterable[tuple[Extent, bool, bool]] = ()) -> None:
        """Set where execution stops, see `PartialAccess.watched`."""
        self.data.watched = tuple(watched)
        if breakpoints != self._breakpoints:
            self._breakpoints = self._code.translator.stops = frozenset(breakpoints)
            self._recompile()

    def advance(self, most: int, *, over: StopCause | None = None) -> int:
        """Execute *most* instructions, or fewer: up to a trap, which is taken. Return how many have retired.

        *over*: the reason of the stop at the present pc, over which to go on, and BREAKPOINT over one there.

        Raises:
            HartStop: the next instruction is not executed; `instret` says how many were.
        """
        begin, traps = self.instret, self.traps
        if over is not None and most:
            self._execute_over(over)
        while self.traps == traps and (left := most - (self.instret - begin)) > 0:
            if self.pc in self._breakpoints:
                raise HartStop(StopCause.BREAKPOINT)
            self._execute_some(left)
        return self.instret - begin

    def interrupt(self, cause: int | None, handler: int, *, is_certain: bool = True) -> None:
        """Take an interrupt, with a cause or with one that nobody knows. *is_certain*: else it may be an exception."""
        number = UNKNOWN if cause is None else cause | 1 << self.xlen - 1
        self._note_trap(self.pc, number if is_certain else UNKNOWN, 0 if is_certain else UNKNOWN, handler)

    def trap(self, cause: int, handler: int) -> None:
        """Take an exception that leads to *handler*, of the instruction at the pc."""
        self._note_trap(self.pc, cause, UNKNOWN, handler)

    def operation_at(self, pc: int) -> Operation:
        """Return the instruction at an address. Raises HartStop: it is unknown."""
        try:
            singles = self._code.singles
            return self._operation_of(singles.translated.get(pc) or singles.translate(pc))
        except (UnknownCode, BusError):
            raise HartStop(StopCause.CODE) from None

    # -- execution

    def _execute_over(self, reason: StopCause) -> None:
        self.data.passes = reason in PASSED
        try:
            self._execute_one()
        finally:
            self.data.passes = False

    def _execute_some(self, most: int) -> None:
        """Execute at least one instruction, or take a trap."""
        block = self._block()
        if block.in_kernel and most >= LONGEST_BLOCK and not self.data.watched:
            kernel = self._code.kernel
            left, self.pc, ran = kernel.execute(self.x, self.pc, most - LONGEST_BLOCK + 1, self.reports.retired)
            self.instret += ran
            if left is None:
                return
            block = left
        traps = self.traps
        for pc in block.pcs[:most]:
            if pc != self.pc or self.traps != traps:
                return
            self._execute_one()

    def _block(self) -> HartBlock:
        blocks = self._code.blocks
        try:
            return blocks.translated.get(self.pc) or blocks.translate(self.pc)
        except UnknownCode:
            return self._single()

    def _single(self) -> HartBlock:
        singles = self._code.singles
        try:
            return singles.translated.get(self.pc) or singles.translate(self.pc)
        except (UnknownCode, BusError):
            raise HartStop(StopCause.CODE) from None

    def _execute_one(self) -> None:
        """Execute one instruction, or take its trap. Raises HartStop; nothing has changed then."""
        self.block = block = self._single()
        self.position = 0
        operation = self._operation_of(block)
        if operation.name == "jalr" and is_unknown(self.x[operation.rs1]):
            raise HartStop(StopCause.JUMP)
        if operation.name == "mret" and is_unknown(self.csr.trap.mepc):
            raise HartStop(StopCause.CSR)
        self.reports.begin_block()
        try:
            pc = block.run()
        except UnknownUsed:
            pc = self._with_unknown_result(block, operation)
        except HartTrap as trap:
            self._trapped(trap)
            return
        except IllegalCsr:
            self._trapped(HartTrap(ILLEGAL_INSTRUCTION, block.words[0]))
            return
        self._went_on(block, operation, pc)

    def _operation_of(self, block: HartBlock) -> Operation:
        """Return the instruction of a block that has one."""
        if not isinstance(block.effects, Operation):
            block.effects = self._decoder.decode(block.words[0])
        return block.effects

    def _went_on(self, block: HartBlock, operation: Operation, pc: int) -> None:
        if operation.name == "mret":
            self.csr.returned()
        if self.waiting and not self.data.passes:
            self.waiting = False
            raise HartStop(StopCause.WAIT)
        self.waiting = False
        self.pc = pc
        self.instret += 1
        self.reports.single(block)

    def _with_unknown_result(self, block: HartBlock, operation: Operation) -> int:
        """Make the result of an instruction unknown. Return the next pc. Raises HartStop if it does more."""
        name = operation.name
        if name in BRANCHES:
            raise HartStop(StopCause.BRANCH)
        if name.startswith("csr") or name in ("mret", "wfi", "ecall", "ebreak"):
            raise HartStop(StopCause.CSR)
        if name.startswith("f") and not name.startswith("fence"):
            self._lose_floating_point(operation)
        elif operation.rd:
            self.x[operation.rd] = UNKNOWN
        return block.next

    def _lose_floating_point(self, operation: Operation) -> None:
        if operation.name in FP_LOADS:
            self.f[operation.rd] = UNKNOWN
            return
        found = fp_template(operation)
        if not found.to_integer:
            self.f[operation.rd] = UNKNOWN
        elif operation.rd:
            self.x[operation.rd] = UNKNOWN
        if found.template.startswith("v,e="):
            self.csr.floating_point.fflags = UNKNOWN

    # -- traps

    def _trapped(self, trap: HartTrap) -> None:
        operation = self._operation_of(self.block)
        if trap.cause == ILLEGAL_INSTRUCTION and operation.name == "illegal" and operation.word:
            raise HartStop(StopCause.UNSUPPORTED)
        if trap.cause == INSTRUCTION_ACCESS_FAULT:
            raise HartStop(StopCause.CODE)
        if trap.cause == BREAKPOINT:
            raise HartStop(StopCause.EBREAK, cause=trap.cause)
        if self._may_be_delegated():
            raise HartStop(StopCause.SUPERVISOR, cause=trap.cause)
        if is_unknown(self.csr.trap.mtvec):
            raise HartStop(StopCause.HANDLER, cause=trap.cause)
        is_call = trap.cause in (ECALL_FROM_M, ECALL_FROM_U)
        cause = UNKNOWN if is_call and not self.csr.is_privilege_known else trap.cause
        self._note_trap(self.pc, cause, trap.tval & self._mask, self.csr.trap.mtvec & ~3)

    def _may_be_delegated(self) -> bool:
        """Return whether a trap may lead to S mode (3.1.8)."""
        misa, medeleg = self.csr.others.get(MISA), self.csr.others.get(_MEDELEG)
        has_supervisor = misa is not None and bool(misa >> ord("S") - ord("A") & 1)
        return has_supervisor and self.privilege < MACHINE and medeleg != 0

    def _note_trap(self, epc: int, cause: int, tval: int, handler: int) -> None:
        csr = self.csr
        csr.trap.mepc, csr.trap.mcause, csr.trap.mtval = epc, cause, tval
        if csr.is_status_known and csr.is_privilege_known:
            mpie = MPIE_BIT if csr.mstatus & MIE_BIT else 0
            csr.mstatus = csr.mstatus & ~(MIE_BIT | MPIE_BIT | MPP) | mpie | self.privilege << MPP_SHIFT
        else:
            csr.forget_status()
        self.privilege, csr.is_privilege_known = MACHINE, True
        self.pc, self.waiting = handler, False
        self.traps += 1
        if self.reports.retired is not None:
            number = 0 if is_unknown(cause) else cause & ~(1 << self.xlen - 1)
            self.reports.trapped(TrapEntry(epc, number, tval, False, handler, self.privilege))
