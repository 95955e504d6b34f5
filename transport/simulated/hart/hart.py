"""The simulated hart: executes RV32/RV64 programs block by block and reports what retired.

`Hart.run` is the loop over compiled blocks (`block_compiler`), with everything that may happen between two blocks:
interrupts, traps, entry to Debug Mode, the end of the time slice. What the instructions do, with slow memory
accesses, is in `instructions`, the registers are in `csr`, what triggers do in `triggers`, what is told to others in
`reports`.

The file is longer than others because the loop and the state that everything in it changes are one object.

What it models, where the specifications leave a choice, is Spike with `--priv=mu --pmpregions=0`: M and U mode,
misaligned accesses trap, mtval holds the faulting address or instruction. Interrupts are taken between blocks.

Sources: RISC-V Privileged Architecture 20240411, chapter 3; RISC-V Debug Specification 1.0, chapter 4.
"""

from collections.abc import Callable, Sequence

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import MEI, MSI, MTI, Clint, Htif
from rvtrace_gdb.transport.simulated.ctr.hart_side import CtrFollower
from rvtrace_gdb.transport.simulated.ctr.recorder import LCOFI, CtrBuild
from rvtrace_gdb.transport.simulated.hart.block import (
    ILLEGAL_INSTRUCTION,
    DebugCause,
    DebugEntry,
    HartBlock,
    HartTrap,
    LostCause,
    Situation,
    TraceTrigger,
    TrapEntry,
    Witness,
)
from rvtrace_gdb.transport.simulated.hart.block_compiler import TranslatedCode, Translator
from rvtrace_gdb.transport.simulated.hart.csr import (
    MIE_BIT,
    MPIE_BIT,
    MPP,
    MPP_SHIFT,
    MPRV,
    STEP,
    STEPIE,
    CsrFile,
    IllegalCsr,
)
from rvtrace_gdb.transport.simulated.hart.instructions import MACHINE, DataAccess, SystemInstructions
from rvtrace_gdb.transport.simulated.hart.reports import HartItem, RetirementReports
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerCsrs, TriggerEffects

_TRIGGERS = 4
_FOREVER = 1 << 100


class TimeSlice:
    """How far a hart is to execute.

    end        the value of `Hart.instret` at which `run` returns
    deadline   that at which the hart looks at interrupts, the retired list and *end* between two blocks; 0: at once
    executing  whether `run` is in progress
    """

    __slots__ = ("deadline", "end", "executing")

    def __init__(self) -> None:
        self.end = 0
        self.deadline = 0
        self.executing = False


class Hart:
    """One hart. `x` and `f` are its registers as unsigned values (f: 64 bits, NaN-boxed), `pc` the next instruction.

    Attributes:
        retired: None, or a list `run` and `step` append to in order of retirement: blocks, (block, k) when only its
            first k instructions retired, and trap entries. The owner takes from it between two calls.
        reports_situation: whether `Situation`s are in that list too.
        reports_accesses: whether what instructions access is, before their block; code is translated afresh for it.
        ctr: its Control Transfer Records, None if it has none.
        instret: retired instructions since the hart was made.
        exit_code: set when the program ended itself (`watch_tohost`); the hart can go on and spins.
        waiting: the hart sleeps in WFI and nothing on the hart's side will wake it.
        block, position: what is being executed, while devices are accessed by it: the block, and how many of its
            instructions have retired. Meaningless at other times.
    """

    block: HartBlock
    csr_file: type[CsrFile] = CsrFile
    data_access: type[DataAccess] = DataAccess

    def __init__(
        self,
        bus: Bus,
        xlen: int = 64,
        extensions: Sequence[str] = "IMAFDC",
        reset_pc: int | None = None,
        triggers: int = _TRIGGERS,
        ctr: CtrBuild | None = None,
        hartid: int = 0,
    ) -> None:
        self.bus = bus
        self.hartid = hartid
        self.xlen = xlen
        self.extensions = extensions
        self.reset_pc = bus.ram_base if reset_pc is None else reset_pc
        self._mask = (1 << xlen) - 1
        self.x = [0] * 32
        self.f = [0] * 32
        self.pc = self.reset_pc
        self.privilege = MACHINE
        self.instret = 0
        self.position = 0
        self.clint: Clint | None = None
        self.htif: Htif | None = None
        self.lost_cause: LostCause | None = None
        """The first trap whose handler could not run its first instruction, so that its cause was overwritten."""
        self.exit_code: int | None = None
        self.waiting = False
        self.triggers = TriggerCsrs(xlen, triggers, self._recompile)
        self.trigger_effects = TriggerEffects(self)
        self.ctr = CtrFollower(self, ctr) if ctr is not None else None
        self.csr = self.csr_file(self, extensions)
        self.data = self.data_access(self, self._stored_tohost)
        self.system = SystemInstructions(self)
        self._lines = 0
        self.reports = RetirementReports()
        self._slice = TimeSlice()
        self._code = TranslatedCode(Translator(self, extensions), bus)

    # -- what a debugger and an owner use

    def reset(self) -> None:
        """Reset pc, privilege, CSRs, triggers and the CLINT, as a reset line does; registers and memory keep their
        values.
        """
        self.pc = self.reset_pc
        self.privilege = MACHINE
        self.csr.reset()
        if self.ctr is not None:
            self.ctr.reset()
            self.set_interrupt(LCOFI, False)
        self.triggers.reset()
        self.data.reset()
        self.waiting = False
        self.exit_code = None
        self.flush_blocks()
        if self.clint is not None:
            self.clint.reset()

    def flush_blocks(self) -> None:
        """Stop trusting translated code, as instruction memory has changed. Unchanged code is reused."""
        self._code.distrust()

    def csr_read(self, number: int, debug: bool = False) -> int:
        """Return the value of a CSR; *debug*: with the rights of Debug Mode. Raises `IllegalCsr`."""
        return self.csr.read(number, debug)

    def csr_write(self, number: int, value: int, debug: bool = False) -> None:
        """Write a CSR. Raises `IllegalCsr`, for read-only registers too."""
        self.csr.write(number, value, debug)

    def enter_debug(self, cause: DebugCause) -> None:
        """Save pc, privilege and the cause to dpc and dcsr; the hart must not run until `leave_debug`."""
        self.csr.debug.dpc = self.pc
        self.csr.debug.dcsr = self.csr.debug.dcsr & ~(7 << 6 | 3) | cause << 6 | self.privilege
        self.privilege = MACHINE
        self.waiting = False  # a WFI is completed before Debug Mode is entered (Debug Specification 4.4)

    def leave_debug(self) -> None:
        """Continue at dpc, in the privilege of dcsr.prv; mstatus.MPRV is cleared on the way to U mode."""
        self.pc = self.csr.debug.dpc
        self.privilege = self.csr.debug.dcsr & 3
        if self.privilege < MACHINE:
            self.csr.mstatus &= ~MPRV
        self.state_changed()

    def set_interrupt(self, number: int, level: bool) -> None:
        """Drive interrupt line *number* (3 software, 11 external, 13 counter overflow; the timer is the CLINT's)."""
        self._lines = self._lines | 1 << number if level else self._lines & ~(1 << number)
        self.state_changed()

    def watch_tohost(self, tohost: int, fromhost: int | None = None) -> None:
        """Execute HTIF commands that the program stores at address *tohost* (see `clint.Htif`)."""
        self.htif = Htif(self.bus, tohost, fromhost)
        self.data.tohost = tohost
        self._recompile()

    @property
    def retired(self) -> list[HartItem] | None:
        return self.reports.retired

    @retired.setter
    def retired(self, sink: list[HartItem] | None) -> None:
        self.reports.take_list(sink)
        self.state_changed()

    @property
    def reports_situation(self) -> bool:
        return self.reports.situations

    @reports_situation.setter
    def reports_situation(self, enabled: bool) -> None:
        self.reports.situations = enabled

    @property
    def reports_accesses(self) -> bool:
        return self.reports.accesses

    @reports_accesses.setter
    def reports_accesses(self, enabled: bool) -> None:
        if enabled != self.reports.accesses:
            self.reports.accesses = enabled
            self._recompile()

    @property
    def witness(self) -> Witness | None:
        """The observer of each single instruction; with it the hart is slower, and takes interrupts between any two
        instructions.
        """
        return self.reports.witness

    @witness.setter
    def witness(self, witness: Witness | None) -> None:
        self.reports.witness = witness
        self._recompile()

    @property
    def calls_accessed(self) -> bool:
        """Whether compiled code calls `RetirementReports.accessed`."""
        return self.reports.accesses or self.reports.witness is not None

    # -- what devices and CSRs use

    @property
    def now(self) -> int:
        """The number of retired instructions, exact even for an instruction in the middle of a block."""
        return self.instret + self.position

    @property
    def takes_breakpoints(self) -> bool:
        return self.privilege < MACHINE or bool(self.csr.mstatus & MIE_BIT)

    @property
    def in_progress(self) -> tuple[HartBlock, int] | None:
        """The block being executed and how much of it has retired, when the program itself accesses a device."""
        return (self.block, self.position) if self._slice.executing else None

    @property
    def mtime(self) -> int:
        return self.now & (1 << 64) - 1 if self.clint is None else self.clint.mtime

    @property
    def elapsed(self) -> int:
        """The same as `now`, with the time slept in WFI: what a clock counts that does not stop then."""
        return self.now if self.clint is None else self.now + self.clint.idle

    @property
    def situation(self) -> Situation:
        """The present situation."""
        return Situation(self.pc, self.privilege, self.csr.context.scontext, self.csr.context.mcontext, self.elapsed)

    @property
    def mip(self) -> int:
        timer = self.clint is not None and self.now >= self.clint.due
        return self._lines | timer << MTI

    def state_changed(self) -> None:
        """Make the hart check interrupts, blocks and the retired list after this block, as something that affects them
        has changed.
        """
        self._slice.deadline = 0

    timer_changed = state_changed

    def situation_changed(self) -> None:
        """Check the `Situation` after this block, as something in it has changed."""
        self.reports.situation_changed = True
        self.state_changed()

    # -- execution

    def run(self, max_instructions: int) -> DebugCause | None:
        """Execute about *max_instructions* (a block more at most; a trap counts as one).

        Returns:
            why the hart must enter Debug Mode, `pc` being the instruction that is not executed; None at the end of the
            slice, which comes early when the program ended itself or waits for an interrupt nobody will send.
        """
        self._slice.end = self.instret + max_instructions
        self._slice.deadline = 0
        self._slice.executing = True
        cause = self._witnessed(self._execute_blocks)
        self._slice.executing = False
        return cause

    def _witnessed(self, execute: Callable[[], DebugCause | None]) -> DebugCause | None:
        witness = self.reports.witness
        if witness is None:
            return execute()
        witness.begins()
        try:
            return execute()
        finally:
            witness.ends()

    def _execute_blocks(self) -> DebugCause | None:
        execute = self._run_blocks if self.reports.witness is None else self._run_witnessed
        while True:
            try:
                execute()
                return None
            except HartTrap as trap:
                self._trapped(trap)
            except IllegalCsr:
                self._trapped(HartTrap(ILLEGAL_INSTRUCTION, self.block.words[self.position]))
            except TraceTrigger as trigger:
                self._cut()
                self.trigger_effects.act_on_trace(trigger)
            except DebugEntry as entry:
                self._cut()
                return entry.cause

    def step(self) -> DebugCause | None:
        """Execute exactly one instruction, or enter one trap. Returns as `run` does; a WFI does not wait."""
        return self._witnessed(self._single_step)

    def _single_step(self) -> DebugCause | None:
        self._slice.end = _FOREVER
        self.waiting = False
        held_off = self.csr.debug.dcsr & (STEP | STEPIE) == STEP
        if not held_off and self._take_interrupt():
            self._report_situation()
            return None
        try:
            self._run_single()
        except HartTrap as trap:
            self._trapped(trap)
        except IllegalCsr:
            self._trapped(HartTrap(ILLEGAL_INSTRUCTION, self.block.words[0]))
        except DebugEntry as entry:
            return entry.cause
        finally:
            self.waiting = False
            self.position = 0
            self._report_situation()
        return None

    def _run_single(self) -> None:
        block = self._code.singles.translated.get(self.pc) or self._code.singles.translate(self.pc)
        self.block = block
        self.reports.begin_block()
        record = None if self.ctr is None else self.ctr.listener()
        while True:
            try:
                self.pc = block.run()
                break
            except TraceTrigger as trigger:
                self.trigger_effects.act_on_trace(trigger)
        self.instret += 1
        if record is not None:
            record(block, self.pc)
        self.reports.single(block)

    def _run_witnessed(self) -> None:
        """Do the same as `_run_blocks`, one instruction after the other."""
        while True:
            if self.instret >= self._slice.deadline:
                self.position = 0
                if self._between_blocks():
                    return
            self._run_single()

    def _run_blocks(self) -> None:
        """Execute blocks until the slice ends, or a block raises an exception. This is the hot loop."""
        pc, instret, blocks = self.pc, self.instret, self._code.blocks.translated
        time_slice, kernel = self._slice, self._code.kernel
        append = self.reports.begin_block()
        record = None if self.ctr is None else self.ctr.listener()
        while True:
            if instret >= time_slice.deadline:
                self.pc, self.position = pc, 0
                if self._between_blocks():
                    return
                pc = self.pc
                append = self.reports.begin_block()
                if self.ctr is not None:
                    record = self.ctr.listener()
            try:
                block = blocks[pc]
            except KeyError:
                block = self._code.blocks.translate(pc)
            if block.in_kernel and record is None:
                left, pc, ran = kernel.execute(self.x, pc, time_slice.deadline - instret, self.reports.retired)
                self.instret = instret = instret + ran
                if left is None:
                    continue
                block = left
            self.block = block
            pc = block.run()
            self.instret = instret = instret + block.n
            if append is not None:
                append(block)
            if record is not None:
                record(block, pc)

    def _between_blocks(self) -> bool:
        """Take a pending interrupt and compute when to check again. Return True at the end of the slice."""
        self._report_situation()
        self.waiting = self.waiting and not self.mip & self.csr.trap.mie
        if self.instret >= self._slice.end or self.waiting:
            return True
        if self._take_interrupt():
            self._slice.end -= 1
            self._report_situation()
        self._slice.deadline = self._slice.end
        if self.clint is not None and self.csr.trap.mie & 1 << MTI and not self.mip & 1 << MTI:
            self._slice.deadline = min(self._slice.deadline, self.clint.due)
        return False

    def _report_situation(self) -> None:
        reports = self.reports
        if reports.situation_changed:
            reports.situation_changed = False
            if reports.situations and reports.retired is not None:
                reports.retired.append(self.situation)

    def _recompile(self) -> None:
        """Drop all blocks: what they are compiled for has changed (triggers, tohost)."""
        self._code.clear()
        self.state_changed()

    def _stored_tohost(self) -> None:
        status = None if self.htif is None else self.htif.command()
        if status is not None:
            self.exit_code = status
            self._slice.end = 0
            self.state_changed()

    # -- traps

    def _trapped(self, trap: HartTrap) -> None:
        self._retire_part()
        epc = self.block.pcs[self.position]
        self.position = 0
        self._enter_trap(epc, trap.cause, trap.tval)
        self._slice.end -= 1

    def _cut(self) -> None:
        """End the block before the instruction at `position`, which is where to go on."""
        self._retire_part()
        self.pc = self.block.pcs[self.position]
        self.position = 0

    def _retire_part(self) -> None:
        """Retire the instructions of the block before the one that trapped."""
        self.instret += self.position
        self.reports.part(self.block, self.position)

    def _take_interrupt(self) -> bool:
        pending = self.mip & self.csr.trap.mie
        if not pending or (self.privilege == MACHINE and not self.csr.mstatus & MIE_BIT):
            return False
        number = next(number for number in (MEI, MSI, MTI, LCOFI) if pending >> number & 1)
        self._enter_trap(self.pc, number, 0, interrupt=True)
        return True

    def _enter_trap(self, epc: int, cause: int, tval: int, interrupt: bool = False) -> None:
        csr, privilege = self.csr, self.privilege
        trap = csr.trap
        if epc == trap.mtvec & ~3 and not interrupt and self.lost_cause is None:
            self.lost_cause = LostCause(trap.mcause, trap.mepc, trap.mtval, epc)
        trap.mepc, trap.mtval = epc, tval & self._mask
        trap.mcause = cause | interrupt << self.xlen - 1
        mpie = MPIE_BIT if csr.mstatus & MIE_BIT else 0
        csr.mstatus = csr.mstatus & ~(MIE_BIT | MPIE_BIT | MPP) | mpie | privilege << MPP_SHIFT
        self.privilege = MACHINE
        self.pc = (trap.mtvec & ~3) + (4 * cause if interrupt and trap.mtvec & 1 else 0) & self._mask
        self.waiting = False
        self.situation_changed()
        if self.reports.retired is not None or self.ctr is not None or self.reports.witness is not None:
            self._report_trap(TrapEntry(epc, cause, trap.mtval, interrupt, self.pc, privilege))

    def _report_trap(self, trap: TrapEntry) -> None:
        if self.ctr is not None:
            self.ctr.trapped(trap)
        self.reports.trapped(trap)
