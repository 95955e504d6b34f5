"""A software E-Trace encoder, from retired blocks and traps to payloads of te_inst packets.

`Encoder` passes the instructions of retired blocks and traps to the flow chart (`decode.etrace.encoder.flow_chart`).

Source: Efficient Trace for RISC-V 2.0, "Multiple retirement considerations", "Format 3 thaddr, address and privilege
fields", "Context type ctype values and corresponding actions"; the v0.8 extensions "Standard Support Packet" and
"Implicit Return".
"""

from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.decode.etrace.encoder.flow_chart import OTHERWISE, FlowChart, Next, Resync
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, Reached, Stop, SyncMode
from rvtrace_gdb.decode.etrace.packet import QualStatus
from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, UNINFERABLE, Block, Trap
from rvtrace_gdb.decode.executed.fast_path import HonouredOptions
from rvtrace_gdb.decode.program.csrs import Context

_HONOURED = HonouredOptions(
    # EncoderOptions
    "parameters", "modes", "dialect", "support", "sync_mode", "sync_max", "compress", "itype_width", "context",
    "hcontext_at", "stop", "epc_after_inferred", "shortest",
    # Parameters
    "iaddress_width", "iaddress_lsb", "privilege_width", "ecause_width", "context_width", "time_width", "bpred_size",
    "cache_size", "return_stack_size", "call_counter_size", "f0s_width", "iret_ext", "ecall_retires", "data_width",
    "daddress_width", "lrid_width", "data_format_width", "data_diff_width", "data_difference", "data_reference",
    "csr_width", "mmacas_ext",
    # Modes
    "full_address", "implicit_exception", "sijump", "implicit_return", "branch_prediction", "jump_target_cache",
    "resync_disabled", "data_no_address", "data_no_data", "data_full_address", "data_full_data",
)  # fmt: skip
"""The fields of the options that the fast path, `Encoder._passes_quietly`, honours. With another one that is set,
`_step` encodes everything.
"""


class Encoder(FlowChart):
    """The encoder of one hart. *emit* receives the payload of one packet at a time.

    Between `start` and `stop`, pass the hart's retired blocks and traps to `retire`, in order, in batches of any size;
    at other times `retire` ignores them. With `Modes.sijump`, a jump whose register the instruction before it loads
    with a constant must be in the same block as that instruction, because a decoder infers the target from the code.

    A block's last instruction goes through the flow chart when the next item is known (`_finish`), the others at once;
    of these, only instructions for which something is due matter (`_walk`).
    """

    denable = False
    """Whether support packets report that data trace is on."""
    _enabled = False
    _next_pc: int | None = None

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        super().__init__(options, emit)
        self._is_honoured = _HONOURED.suffice(options, options.parameters, options.modes)

    def enable(self) -> None:
        """Enable the encoder: a support packet reports its configuration. `start` does this if necessary."""
        self._enabled = True
        self._support(QualStatus.NO_CHANGE)

    def disable(self) -> None:
        """Disable the encoder: a support packet reports it, unless `stop` has done so."""
        if self._enabled:
            self._enabled = False
            self._support(QualStatus.NO_CHANGE)

    def start(self, trap: Trap | None = None) -> None:
        """Start tracing: a synchronization packet precedes what retires next.

        *trap*: the trap that was just taken, if tracing starts with a trap handler.
        """
        if not self._enabled:
            self.packet_time = self._now
            self.enable()
        self._reset()
        self._context = self._trap_context = self._entered
        self._trap, self._tracing = trap, True

    def notify(self) -> None:
        """Report the next instruction that retires (trigger[2], "Using trigger outputs")."""
        self._notify_next = True

    def lost(self, *, data: bool = False) -> None:
        """Report that packets were lost on the way out and, while tracing, start again ("Format 3 subformat 3").

        *data*: data packets were lost too.
        """
        self._support(QualStatus.TRACE_LOST, dloss=data)
        if self._tracing:
            trap = self._trap if self._pending is None and not self._trap_reported else None
            self._reset()
            self._trap = trap

    def time(self, now: int) -> None:
        """Set the clock to *now*, the time of what retires next."""
        self._now = now

    def context(self, context: Context, ctype: ContextType | None = None) -> None:
        """Change the hart's context after what retired so far.

        *ctype*: the context type, None for that of the options.
        """
        self._step(context)
        if ctype is not None:
            self._entered_ctype = ctype

    def retire(
        self, items: Sequence[Block | Trap | Context], next_pc: int | None = None, cycles: int | None = None
    ) -> None:
        """Encode what the hart retired next. *next_pc*: the next address, in case `stop` follows.

        A Context among the items is the same as a call of `context` at this point. *cycles*: the clock cycles that the
        items took; None: one per instruction.
        """
        self._instruction_cycles = 1 if cycles is None else 0
        if self._tracing:
            self._run(items)
        else:
            for item in items:
                if isinstance(item, Context):
                    self._step(item)
        if cycles is not None:
            self._now += cycles
            if self._tracing and self.options.sync_mode is SyncMode.CYCLES:
                self._spend(cycles)
        self._next_pc = next_pc

    def stop(self, next_pc: int | None = None, *, disable: bool = True) -> None:
        """Stop tracing before the instruction at *next_pc* (None: unknown; a branch before it counts as not taken).

        *disable*: also disable the encoder. Else nothing more is traced for now, because the hart halts, is reset, or
        runs code that a filter excludes.
        """
        if not self._tracing:
            return
        next_pc = self._next_pc if next_pc is None else next_pc
        status = QualStatus.ENDED_REP
        if self._pending is not None:
            if self._is_target() and self.options.stop is Stop.LATE:
                status = QualStatus.ENDED_NTR
            self._finish(self._pending.fall if next_pc is None else next_pc, Next.END)
        if self._trap is not None and not self._trap_reported:  # its handler does not retire any more
            self.packet_time = self._now
            now = self._where(self._trap_context, self._now)
            self._report_trap(self._trap, 0, self._trap.epc, None, now)
        self._tracing = False
        self._enabled = not disable
        self._support(status)
        self._reset()

    def _support(self, qual_status: QualStatus, *, dloss: bool = False) -> None:
        self._out.support(qual_status, ienable=self._enabled, denable=self.denable, dloss=dloss)

    def _is_target(self) -> bool:
        """Whether the last instruction is reported because an uninferable discontinuity led to it."""
        return self._updiscon and self._trap is None and not self._synchronizes()

    # What retires

    def _step(self, item: Block | Trap | Context) -> None:
        if isinstance(item, Block):
            self._block(item)
        elif isinstance(item, Trap):
            self._take_trap(item)
        else:
            self._entered, self._entered_ctype = item, self.options.context

    def _run(self, items: Iterable[Block | Trap | Context]) -> None:
        """Do the same as `_step` for each item, with a fast path while there is nothing to send between two blocks."""
        each, by_packets, by_halfwords = self._instruction_cycles, self._counts_packets, self._counts_halfwords
        quiet, honoured = False, self._is_honoured
        for item in items:
            if quiet and isinstance(item, Block) and self._pending is not None:
                if self._passes_quietly(self._pending, item.pc, item.instructions == 1):
                    self._pending = item
                    self._now += each * item.instructions
                    if not by_packets:
                        self._spend(item.halfwords if by_halfwords else each * item.instructions)
                        quiet = self._resync is Resync.COUNTING
                    continue
                self._pending = None
            elif quiet:
                self._pending_time = self._now - each
            self._step(item)
            quiet = honoured and self._is_quiet()
        if quiet:
            self._pending_time = self._now - each

    def _is_quiet(self) -> bool:
        """Whether nothing is due, so that only the end of the last block can cause a packet."""
        due = self._updiscon or self._trap is not None or self._first or self._changed or self._context_due
        asked = self._notify or self._notify_next or self._resync is not Resync.COUNTING
        return not due and not asked and self._reached is OTHERWISE and self._entered is self._context

    def _passes_quietly(self, last: Block, pc: int, alone: bool) -> bool:
        """Do the same as `_finish` while nothing is due, and return whether nothing is due afterwards.

        *alone*: the block at *pc* has only one instruction.
        """
        ending, reached = last.ending, OTHERWISE
        quiet = True
        if ending == BRANCH:
            last_pc, branches = last.fall - 2 * last.lengths[-1], self._branches
            branches.follow(last_pc, pc != last.fall)
            if branches.is_due:
                self._chart(last_pc, Next.SAME, None, self._now - self._instruction_cycles)
                quiet = self._is_quiet()
        if self._returns is not None and last.itype:
            reached = self._returns.follow(last, pc, inferred=self._is_inferred(last, pc))
        if ending == UNINFERABLE:
            inferred = reached is Reached.EXPECTED or self._is_inferred(last, pc)
            if not inferred or alone:
                self._updiscon, self._reached = not inferred, reached
                return False
        return quiet

    def _block(self, block: Block) -> None:
        next = self._context_step()
        if next is Next.CHANGE and self._entered[:2] == self._context[:2] and self._leads_away(block.pc):
            next = Next.LEAVES  # by its privilege the decoder could not tell the target from where it came before
        self._finish(block.pc, next)
        self._switch()
        if self._notify_next:
            self._notify, self._notify_next = True, False
        if block.instructions > 1:
            starts = self._updiscon or self._trap is not None or self._first or self._changed or self._notify
            if starts or self._is_due():
                self._walk(block)
            self._updiscon, self._reached = False, OTHERWISE
        self._pending = block
        self._pending_time = self._now + self._instruction_cycles * (block.instructions - 1)
        self._now += self._instruction_cycles * block.instructions
        if not self._counts_packets:
            self._spend(block.halfwords if self._counts_halfwords else self._instruction_cycles * block.instructions)

    def _walk(self, block: Block) -> None:
        """Process all but the last instruction of *block*, as long as something is due."""
        pc, now = block.pc, self._now
        left = block.instructions - 1
        for length in block.lengths[:-1]:
            left -= 1
            self._withheld = left == 0 and self._is_joined(block)
            self._chart(pc, Next.SAME, None, now)
            self._withheld = False
            self._updiscon, self._reached = False, OTHERWISE
            if not self._is_due():
                return
            pc += 2 * length
            now += self._instruction_cycles

    def _is_due(self) -> bool:
        """Whether any next instruction may cause a packet."""
        if self._resync is Resync.DUE or self._context_due or self._changed:
            return True
        return self._resync is Resync.REACHED and (not self._counts_packets or self._branches.count > 0)

    def _finish(self, pc: int, next: Next) -> None:
        """Process the last instruction of the block before: execution continues at *pc*."""
        block, self._pending = self._pending, None
        if block is None:
            return
        last_pc = block.fall - 2 * block.lengths[-1]
        taken = None
        if block.ending == BRANCH:
            taken = pc != block.fall
            self._branches.follow(last_pc, taken)
        inferred = self._is_inferred(block, pc)
        missed = self._returns is not None and not inferred and self._returns.misses(block, pc)
        # A synchronization of the next instruction does not need this one's report, because irreport follows there.
        self._withheld = missed and next < Next.TRAP
        self._joined = self._is_joined(block)
        self._chart(last_pc, Next.SAME if self._withheld else next, taken, self._pending_time)
        self._withheld = self._joined = False
        self._updiscon, self._reached = False, OTHERWISE
        if self._returns is not None:
            self._reached = self._returns.follow(block, pc, inferred=inferred)
            inferred = inferred or self._reached is Reached.EXPECTED
        self._updiscon = block.ending == UNINFERABLE and not inferred

    def _is_inferred(self, block: Block, pc: int) -> bool:
        """Whether the code shows that *block* jumps to *pc* ("Jump classification and target inference")."""
        return pc == block.absolute or (self._sijump and pc == block.inferred)

    def _is_joined(self, block: Block) -> bool:
        """Whether the last instruction of *block* is a jump to the constant the one before it loads."""
        return self._sijump and block.inferred >= 0

    def _leads_away(self, pc: int) -> bool:
        """Whether the last block ends with an uninferable discontinuity to *pc*."""
        last = self._pending
        return last is not None and last.ending == UNINFERABLE and not self._is_inferred(last, pc)

    def _take_trap(self, trap: Trap) -> None:
        """Process a trap.

        It is reported with the handler's first instruction, or at once if the EPC must be reported.
        """
        last = self._pending
        jumped = last is not None and last.ending == UNINFERABLE and trap.epc != last.absolute
        self._finish(trap.epc, Next.TRAP)
        self._switch()
        self.packet_time = self._now
        if self._trap is not None and not self._trap_reported and self._knows_epc:
            self._report_trap(self._trap, 0, trap.epc, None, self._where(self._trap_context, self._now))
        self._trap, self._trap_context = trap, self._context
        at_target = self._updiscon or self._first or (jumped and self.options.epc_after_inferred)
        self._trap_reported = at_target and self._knows_epc
        if self._trap_reported:
            self._report_trap(trap, 0, trap.epc, None, self._where(self._context, self._now))
        self._updiscon, self._reached = False, OTHERWISE

    def _context_step(self) -> Next:
        """Return the step to the next instruction, as far as the context determines it."""
        before, after = self._context, self._entered
        if before is after or before == after:
            return Next.SAME
        if before[:2] != after[:2]:
            return Next.CHANGE
        if self._entered_ctype is ContextType.DISCONTINUITY:
            return Next.LEAVES
        return Next.CHANGE if self._entered_ctype is ContextType.PRECISE else Next.SAME

    def _switch(self) -> None:
        """Make the entered context the current one."""
        if self._context is not self._entered:
            if self._context_step() is not Next.SAME:
                self._changed = True
            elif self._context != self._entered and self._entered_ctype is ContextType.IMPRECISE:
                self._context_due = True
            self._context = self._entered
