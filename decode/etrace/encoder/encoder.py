"""A software E-Trace encoder, from retired blocks and traps to payloads of te_inst packets.

`Encoder` passes the instructions of retired blocks and traps to the flow chart (`decode.etrace.encoder.flow_chart`).

Source: Efficient Trace for RISC-V 2.0, "Multiple retirement considerations", "Format 3 thaddr, address and privilege
fields", "Context type ctype values and corresponding actions"; the v0.8 extensions "Standard Support Packet" and
"Implicit Return".
"""

from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.decode.etrace.encoder.flow_chart import FlowChart
from rvtrace_gdb.decode.etrace.encoder.kernel_loop import LoopParts, kernel_loop
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, EndReport, Reached, ResyncMode
from rvtrace_gdb.decode.etrace.encoder.state import COUNTING, OTHERWISE, Next, PendingTrap, Resync
from rvtrace_gdb.decode.etrace.packet import QualStatus
from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, UNINFERABLE, Block, IngressTrap
from rvtrace_gdb.decode.executed.fast_path import HonouredOptions
from rvtrace_gdb.decode.program.csrs import ProgramContext

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
`_encode_item` encodes everything.
"""


class Encoder(FlowChart):
    """The encoder of one hart. *emit* receives the payload of one packet at a time.

    *emit_all* receives the payloads of several; `packet_time` is not theirs then. With it the encoder uses the kernel.

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

    def __init__(
        self,
        options: EncoderOptions,
        emit: Callable[[bytes], None],
        emit_all: Callable[[list[bytes]], None] | None = None,
    ) -> None:
        super().__init__(options, emit)
        self._is_honoured = _HONOURED.suffice(options, options.parameters, options.modes)
        self._loop = None
        if emit_all is not None and self._is_honoured:
            self._loop = kernel_loop(
                LoopParts(
                    options, self._branches, self._out, self._timer, self._clock, self._pending, self._is_quiet,
                    self._encode_item, emit_all,
                )
            )  # fmt: skip

    def enable(self) -> None:
        """Enable the encoder: a support packet reports its configuration. `start` does this if necessary."""
        self._enabled = True
        self._support(QualStatus.NO_CHANGE)

    def disable(self) -> None:
        """Disable the encoder: a support packet reports it, unless `stop` has done so."""
        if self._enabled:
            self._enabled = False
            self._support(QualStatus.NO_CHANGE)

    def start(self, trap: IngressTrap | None = None) -> None:
        """Start tracing: a synchronization packet precedes what retires next.

        *trap*: the trap that was just taken, if tracing starts with a trap handler.
        """
        if not self._enabled:
            self.packet_time = self._clock.now
            self.enable()
        self._reset()
        self._context.current = self._context.entered
        self._await_handler(trap)
        self._tracing = True

    def notify(self) -> None:
        """Report the next instruction that retires (trigger[2], "Using trigger outputs")."""
        self._notify_next = True

    def lost(self, *, data: bool = False) -> None:
        """Report that packets were lost on the way out and, while tracing, start again ("Format 3 subformat 3").

        *data*: data packets were lost too.
        """
        self._support(QualStatus.TRACE_LOST, dloss=data)
        if self._tracing:
            pending = self._trap
            waits = pending is not None and self._pending.block is None and not pending.reported
            self._reset()
            self._await_handler(pending.trap if pending is not None and waits else None)

    def _await_handler(self, trap: IngressTrap | None) -> None:
        """Report this trap, which was just taken, with the first instruction of its handler."""
        self._trap = None if trap is None else PendingTrap(trap, self._context.current)

    def time(self, now: int) -> None:
        """Set the clock to *now*, the time of what retires next."""
        self._clock.now = now

    def context(self, context: ProgramContext, ctype: ContextType | None = None) -> None:
        """Change the hart's context after what retired so far.

        *ctype*: the context type, None for that of the options.
        """
        self._encode_item(context)
        if ctype is not None:
            self._context.ctype = ctype

    def retire(
        self,
        items: Sequence[Block | IngressTrap | ProgramContext],
        next_pc: int | None = None,
        cycles: int | None = None,
    ) -> None:
        """Encode what the hart retired next. *next_pc*: the next address, in case `stop` follows.

        A ProgramContext among the items is the same as a call of `context` at this point. *cycles*: the clock cycles
        that the items took; None: one per instruction.
        """
        self._clock.step = 1 if cycles is None else 0
        if self._tracing and self._loop is not None:
            timer, step = self._timer, self._clock.step
            self._loop.retire(items, 0, step, 0 if timer.counts_packets else 1 if timer.counts_halfwords else 2 * step)
        elif self._tracing:
            self._encode_items(items)
        else:
            for item in items:
                if isinstance(item, ProgramContext):
                    self._encode_item(item)
        if cycles is not None:
            self._clock.now += cycles
            if self._tracing and self.options.sync_mode is ResyncMode.CYCLES:
                self._timer.spend(cycles)
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
        last = self._pending.block
        if last is not None:
            if self._is_target() and self.options.stop is EndReport.LATE:
                status = QualStatus.ENDED_NTR
            self._finish(last.fall if next_pc is None else next_pc, Next.END)
        if self._trap is not None and not self._trap.reported:  # its handler does not retire any more
            self.packet_time = self._clock.now
            self._report_trap_at_epc(self._trap.trap, self._trap.context)
        self._tracing = False
        self._enabled = not disable
        self._support(status)
        self._reset()

    def _support(self, qual_status: QualStatus, *, dloss: bool = False) -> None:
        self._out.support(qual_status, ienable=self._enabled, denable=self.denable, dloss=dloss)

    def _is_target(self) -> bool:
        """Whether the last instruction is reported because an uninferable discontinuity led to it."""
        return self._arrival.updiscon and self._trap is None and not self._synchronizes()

    # What retires

    def _encode_item(self, item: Block | IngressTrap | ProgramContext) -> None:
        if isinstance(item, Block):
            self._encode_block(item)
        elif isinstance(item, IngressTrap):
            self._take_trap(item)
        else:
            self._context.entered, self._context.ctype = item, self.options.context

    def _encode_items(self, items: Iterable[Block | IngressTrap | ProgramContext]) -> None:
        """Do the same as `_encode_item` for each item, with a fast path while there is nothing to send between two
        blocks.
        """
        pending, clock, timer, honoured = self._pending, self._clock, self._timer, self._is_honoured
        each, by_packets, by_halfwords = clock.step, timer.counts_packets, timer.counts_halfwords
        quiet = False
        for item in items:
            last = pending.block
            if quiet and isinstance(item, Block) and last is not None:
                if self._passes_quietly(last, item.pc, item.instructions == 1):
                    pending.block = item
                    clock.now += each * item.instructions
                    if not by_packets:
                        timer.spend(item.halfwords if by_halfwords else each * item.instructions)
                        quiet = timer.state is COUNTING
                    continue
                pending.block = None
            elif quiet:
                pending.time = clock.now - each
            self._encode_item(item)
            quiet = honoured and self._is_quiet()
        if quiet:
            pending.time = clock.now - each

    def _is_quiet(self) -> bool:
        """Whether nothing is due, so that only the end of the last block can cause a packet."""
        arrival, context = self._arrival, self._context
        if arrival.updiscon or arrival.reached is not OTHERWISE or self._timer.state is not COUNTING:
            return False
        due = self._trap is not None or self._first or self._notify or self._notify_next
        return not (due or context.changed or context.due) and context.entered is context.current

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
                self._chart(last_pc, self._clock.now - self._clock.step)
                quiet = self._is_quiet()
        if self._returns is not None and last.itype:
            reached = self._returns.follow(last, pc, inferred=self._is_inferred(last, pc))
        if ending == UNINFERABLE:
            inferred = reached is Reached.EXPECTED or self._is_inferred(last, pc)
            if not inferred or alone:
                self._arrival.updiscon, self._arrival.reached = not inferred, reached
                return False
        return quiet

    def _encode_block(self, block: Block) -> None:
        context, clock, timer = self._context, self._clock, self._timer
        next = Next.SAME if context.current is context.entered else context.step()
        if next is Next.CHANGE and context.entered[:2] == context.current[:2] and self._leads_away(block.pc):
            next = Next.LEAVES  # by its privilege the decoder could not tell the target from where it came before
        self._finish(block.pc, next)
        if context.current is not context.entered:
            context.switch()
        if self._notify_next:
            self._notify, self._notify_next = True, False
        if block.instructions > 1:
            arrival = self._arrival
            starts = arrival.updiscon or self._trap is not None or self._first or context.changed or self._notify
            if starts or self._is_due():
                self._walk(block)
            arrival.updiscon, arrival.reached = False, OTHERWISE
        self._pending.block = block
        self._pending.time = clock.now + clock.step * (block.instructions - 1)
        clock.now += clock.step * block.instructions
        if not timer.counts_packets:
            timer.spend(block.halfwords if timer.counts_halfwords else clock.step * block.instructions)

    def _walk(self, block: Block) -> None:
        """Process all but the last instruction of *block*, as long as something is due."""
        pc, now = block.pc, self._clock.now
        left = block.instructions - 1
        for length in block.lengths[:-1]:
            left -= 1
            # A jump that belongs to the constant that this instruction loads must not be parted from it.
            self._chart(pc, now, withheld=left == 0 and self._is_joined(block))
            self._arrival.fall_through()
            if not self._is_due():
                return
            pc += 2 * length
            now += self._clock.step

    def _is_due(self) -> bool:
        """Whether any next instruction may cause a packet."""
        timer = self._timer
        if timer.state is Resync.DUE or self._context.due or self._context.changed:
            return True
        return timer.state is Resync.REACHED and (not timer.counts_packets or self._branches.count > 0)

    def _finish(self, pc: int, next: Next) -> None:
        """Process the last instruction of the block before: execution continues at *pc*."""
        pending = self._pending
        block = pending.block
        if block is None:
            return
        pending.block = None
        last_pc = block.fall - 2 * block.lengths[-1]
        taken = None
        if block.ending == BRANCH:
            taken = pc != block.fall
            self._branches.follow(last_pc, taken)
        inferred = self._is_inferred(block, pc)
        missed = self._returns is not None and not inferred and self._returns.misses(block, pc)
        # A synchronization of the next instruction does not need this one's report, because irreport follows there.
        withheld = missed and next < Next.TRAP
        step = Next.SAME if withheld else next
        joined = self._is_joined(block)
        self._chart(last_pc, pending.time, step, taken, withheld=withheld, joined=joined)
        reached = OTHERWISE
        if self._returns is not None:
            reached = self._returns.follow(block, pc, inferred=inferred)
            inferred = inferred or reached is Reached.EXPECTED
        arrival = self._arrival
        arrival.updiscon, arrival.reached = block.ending == UNINFERABLE and not inferred, reached

    def _is_inferred(self, block: Block, pc: int) -> bool:
        """Whether the code shows that *block* jumps to *pc* ("Jump classification and target inference")."""
        return pc == block.absolute or (self.options.modes.sijump and pc == block.inferred)

    def _is_joined(self, block: Block) -> bool:
        """Whether the last instruction of *block* is a jump to the constant the one before it loads."""
        return block.inferred >= 0 and self.options.modes.sijump

    def _leads_away(self, pc: int) -> bool:
        """Whether the last block ends with an uninferable discontinuity to *pc*."""
        last = self._pending.block
        return last is not None and last.ending == UNINFERABLE and not self._is_inferred(last, pc)

    def _take_trap(self, trap: IngressTrap) -> None:
        """Process a trap.

        It is reported with the handler's first instruction, or at once if the EPC must be reported.
        """
        last = self._pending.block
        jumped = last is not None and last.ending == UNINFERABLE and trap.epc != last.absolute
        self._finish(trap.epc, Next.TRAP)
        context = self._context
        context.switch()
        self.packet_time = self._clock.now
        if self._trap is not None and not self._trap.reported and self._reports_epc:
            self._report_trap_at_epc(self._trap.trap._replace(epc=trap.epc), self._trap.context)
        at_target = self._arrival.updiscon or self._first or (jumped and self.options.epc_after_inferred)
        self._trap = PendingTrap(trap, context.current, reported=at_target and self._reports_epc)
        if self._trap.reported:
            self._report_trap_at_epc(trap, context.current)
        self._arrival.fall_through()
