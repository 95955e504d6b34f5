"""A software N-Trace encoder, from retired blocks and traps to messages.

Source: RISC-V N-Trace 1.0, "Rules of Generating Messages", "Field Encoding and Calculation Techniques" and
"Optimization Extensions"; for other values of `EncoderOptions.dialect`, 1.0.0-rc7 and the behaviour of SiFive's earlier
encoders. The choices that the rules leave to the encoder are options in `EncoderOptions`.

The file is longer than others because each rule is a method of one encoder: most may send what another left pending.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, PLAIN, UNINFERABLE, Block, IngressTrap
from rvtrace_gdb.decode.executed.fast_path import HonouredOptions
from rvtrace_gdb.decode.ntrace.encoder.kernel_loop import LoopParts, kernel_loop
from rvtrace_gdb.decode.ntrace.encoder.output import DIRECT_JUMPS, CallCounter, MessageOutput, process_fields
from rvtrace_gdb.decode.ntrace.encoder.state import (
    NO_BLOCK,
    PendingBlock,
    Registers,
    ReportedContext,
    SyncRequests,
    SyncTimer,
)
from rvtrace_gdb.decode.ntrace.messages import LAYOUTS, TCODE_BITS, UNREQUESTED, BType, Rcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, ImplicitReturn, InstSyncMode, SyncPlacement
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType

# As plain numbers: an enumeration's member costs more to hash than the message to build.
_OWNERSHIP = int(Tcode.OWNERSHIP)
_DIRECT_BRANCH = int(Tcode.DIRECT_BRANCH)
_INDIRECT_BRANCH = int(Tcode.INDIRECT_BRANCH)
_INDIRECT_BRANCH_HIST = int(Tcode.INDIRECT_BRANCH_HIST)
_PROG_TRACE_SYNC = int(Tcode.PROG_TRACE_SYNC)
_DIRECT_BRANCH_SYNC = int(Tcode.DIRECT_BRANCH_SYNC)
_INDIRECT_BRANCH_SYNC = int(Tcode.INDIRECT_BRANCH_SYNC)
_INDIRECT_BRANCH_HIST_SYNC = int(Tcode.INDIRECT_BRANCH_HIST_SYNC)
_RESOURCE_FULL = int(Tcode.RESOURCE_FULL)
_HIST = int(Rcode.HIST)
_JUMP = int(BType.JUMP)
_ERROR = int(Tcode.ERROR)
_PROG_TRACE_CORRELATION = int(Tcode.PROG_TRACE_CORRELATION)

_HONOURED = HonouredOptions(
    # EncoderOptions
    "src_bits", "src_id", "sync_mode", "sync_max", "repeated_history", "extend_addr_msb",
    "dialect", "xlen", "icnt_limit", "hist_limit", "hrepeat_limit", "bcnt_limit",
    "full_at_once", "icnt_full_sync", "icnt_by_block", "repeat_trims", "repeat_shortest", "repeat_broken_by_icnt",
    "run_minimum", "b_type_extended", "correlation_without_hist", "marks_keep_hist", "trap_return_sync",
    "empty_fields", "field_padding", "idle_bytes", "idle_before_sync",
    # of these nothing is seen unless others are set that are not honoured
    "return_depth", "partial_bits", "timestamp_bits", "timestamp_sparse", "ownership_full", "exact_context",
    "context_by_sync",
    # Dialect
    "name", "layouts", "keeps_state", "xor_timestamps", "address_bits", "run_rcodes", "jump_ends_branch",
    "scontext_first", "omits_empty_hist", "recounts_branch", "stimulus_ports", "starts", "stops", "traps",
)  # fmt: skip
"""The fields of the options that the fast path, `Encoder._encode_items`, honours. With another one that is set,
`_encode_item` encodes everything.
"""


class Encoder:
    """The encoder of one hart. *emit* receives the bytes of one message at a time, and idle bytes separately.
    *emit_all* receives those of several, if it is given.

    Between `start` and `stop`, pass the hart's retired blocks and traps to `retire`, in order, in batches of any size;
    at other times `retire` ignores them. The last instruction of a block is processed when the next address is known
    (`_settle`), because only then the target of a branch or jump is known.
    """

    def __init__(
        self,
        options: EncoderOptions,
        emit: Callable[[bytes], None],
        emit_all: Callable[[list[bytes]], None] | None = None,
    ) -> None:
        self.options = options
        requests = SyncRequests()
        self._out = MessageOutput(options, emit, requests.period_over)
        self._stack = None if options.implicit_return is ImplicitReturn.OFF else CallCounter(options)
        self._follows_jumps = options.all_jumps or self._stack is not None
        self._mask = options.address_mask
        self._registers = Registers(options)
        counts_messages = options.sync_mode in (InstSyncMode.MESSAGES, InstSyncMode.OFF)
        self._timer = None if counts_messages else SyncTimer(options, requests)  # `MessageOutput` counts messages
        self._requests = requests
        self._pending = PendingBlock()
        self._context = ReportedContext() if options.context else None
        self._cycle_each = False  # the clock advances by one with each instruction
        self._tracing = False
        self._is_plain = _HONOURED.suffice(options, options.dialect) and not options.branch_runs
        self._loop = kernel_loop(
            LoopParts(
                options, self._registers, requests, self._pending, self._out, self._timer, self._stack, self._context,
                self._encode_item, emit_all,
            )
        )  # fmt: skip
        self._reset()

    def _reset(self) -> None:
        """Discard everything that is pending, because tracing starts or stops."""
        self._registers.clear()
        self._pending.clear()
        self._requests.clear()
        self._out.forget()
        if self._stack is not None:
            self._stack.clear()

    def start(self, sync: Sync) -> None:
        """Start tracing. A ProgTraceSync with this reason precedes the next block."""
        self._reset()
        self._tracing = True
        self._requests.starting = sync

    def mark(self, sync: Sync) -> None:
        """Request a synchronizing message with this reason, such as a trigger, at the next block boundary."""
        self._requests.add(sync)

    def error(self, etype: int = 0, ecode: int = 0) -> None:
        """Report that messages were lost on the way out and, while tracing, start again ("Error Message")."""
        self._out.forget()
        self._out.send(_ERROR, etype, ecode)
        if self._tracing:
            self.start(Sync.RESTART_FROM_FIFO_OVERRUN)

    def reset(self, pc: int, sync: Sync = Sync.EXIT_FROM_RESET) -> None:
        """Continue at *pc* after a reset or a wake-up that did not stop tracing.

        The synchronizing message reports how far the hart ran before ("SYNC Field Values", 1 and 9).
        """
        if not self._tracing:
            return
        if self._requests.starting is None:
            self._synchronize(self._linear_form(), pc, sync)
        else:
            self._requests.starting = sync
        self._pending.block = NO_BLOCK

    def time(self, now: int) -> None:
        """Set the clock to *now*, in ticks. `retire` advances it; later messages have its value as their timestamp."""
        self._out.now = now

    def context(self, context: ProgramContext) -> None:
        """Change the hart's context after what retired so far. It is also reported after each synchronization."""
        self._enter_context(context)

    def vendor(self, tcode: int, *values: int) -> None:
        """Send a message with a vendor defined or reserved TCODE, or one that only the dialect has.

        *values* are those of its fields. All fields have a variable length, unless the dialect's table defines the
        message. A message that is not in the table has no TSTAMP, because no decoder could tell it from the other
        fields. Raises ValueError for a TCODE that N-Trace defines.
        """
        if tcode in LAYOUTS or not 0 <= tcode < 1 << TCODE_BITS:
            raise ValueError(f"TCODE {tcode} is not free for a vendor's message")
        layout = self.options.dialect.layouts.get(tcode)
        if layout is None:
            self._out.send_vendor(tcode, *values)
        elif layout.synchronizes:
            self._out.sync(tcode, *values)
        else:
            self._out.send(tcode, *values)

    def retire(
        self,
        items: Sequence[Block | IngressTrap | ProgramContext],
        next_pc: int | None = None,
        cycles: int | None = None,
    ) -> None:
        """Encode what the hart retired next. If *next_pc* is given, the message for the last block is sent at once.

        A ProgramContext among the items is the same as a call of `context` at this point. *cycles*: the clock cycles
        that the items took; None: one per instruction.
        """
        if not self._tracing:
            return
        self._cycle_each = cycles is None
        at = 0
        while self._requests.starting is not None:
            if at == len(items):
                return
            self._encode_item(items[at])
            at += 1
        timer = self._timer
        if cycles is not None and timer is not None and timer.counts_cycles:
            timer.spend(cycles)
        if self._loop is not None:
            self._loop.retire(items, at, self._cycle_each, 0 if timer is None else timer.unit(self._cycle_each))
        elif self._is_plain:
            self._encode_items(islice(items, at, None))
        else:
            for item in islice(items, at, None):
                self._encode_item(item)
        self._out.now += cycles or 0
        if next_pc is not None:
            self._settle(next_pc)

    def stop(self, evcode: int, next_pc: int | None = None) -> None:
        """Stop tracing before the instruction at *next_pc* (None: not known). *evcode* is the reason, see `Evcode`."""
        requests = self._requests
        if not self._tracing:
            return
        if requests.due in UNREQUESTED:
            requests.due = None
        if next_pc is not None:
            self._settle(next_pc)
            while requests.due is not None and requests.due not in UNREQUESTED:
                self._synchronize(self._linear_form(), next_pc, requests.due)
        elif self._pending.block.itype in DIRECT_JUMPS and self._follows_jumps:
            requests.due = None
            self._direct_jump(self._pending.block, self._pending.block.taken_target)
        self._correlate(evcode)
        self._tracing = False
        self._reset()

    # -- what retires

    def _encode_item(self, item: Block | IngressTrap | ProgramContext) -> None:
        if isinstance(item, Block):
            self._settle(item.pc)
            registers, pending = self._registers, self._pending
            pending.split = False
            if registers.icnt + item.halfwords >= registers.icnt_full:
                self._fill_icnt(item)
            else:
                registers.icnt += item.halfwords
            pending.block = item
            if self._cycle_each:
                self._out.now += item.instructions
            if self._timer is not None:
                self._timer.retired(item, self._cycle_each)
        elif isinstance(item, IngressTrap):
            self._encode_trap(item)
        else:
            self._enter_context(item)

    def _settle(self, pc: int) -> None:
        """Process the outcome of the last block: execution continues at *pc*."""
        requests, pending = self._requests, self._pending
        if requests.starting is not None:
            self._synchronize(_PROG_TRACE_SYNC, pc, requests.starting)
            requests.starting = None
        last, pending.block = pending.block, NO_BLOCK
        ending, btm = last.ending, self.options.btm
        if ending == BRANCH and not btm:
            self._append_hist(pc != last.fall)
        due = requests.due  # what is due because of this block waits for the next one
        if due is not None:
            requests.synchronized = False
        if ending == BRANCH:
            if btm and pc != last.fall:
                self._direct_branch(pc)
        elif ending == UNINFERABLE:
            if not self._is_inferred(last, pc):
                self._indirect(_JUMP, pc)
        elif self._follows_jumps and last.itype in DIRECT_JUMPS:
            self._direct_jump(last, pc)
        if pending.icnt_postponed:
            pending.icnt_postponed = False
            if self._registers.icnt >= self._registers.icnt_full:
                self._report_icnt(pc)
        if due is not None and self._can_synchronize(due):
            self._synchronize(self._linear_form(), pc, due)
        if self._context is not None and self._context.sent is not self._context.current:
            self._send_context(self._context)

    def _direct_branch(self, pc: int) -> None:
        """Report in BTM a taken branch (rule 5), or a direct jump that is reported like one, to *pc*."""
        due = self._requests.due
        if due is not None and self._upgrades:
            self._synchronize(_DIRECT_BRANCH_SYNC, pc, due)
        else:
            registers = self._registers
            self._out.branch(pc, _DIRECT_BRANCH, registers.icnt)
            registers.icnt = 0

    def _append_hist(self, taken: bool) -> None:
        """Append one outcome to HIST."""
        registers = self._registers
        if self._out.runs is not None:
            registers.hist = self._out.append_to_run(registers.hist, taken)
        else:
            registers.hist = registers.hist << 1 | taken
        if registers.hist >= registers.hist_full:
            registers.hist = self._fill_hist(registers.hist)

    def _is_inferred(self, last: Block, pc: int) -> bool:
        """Whether the decoder can infer that *last* continued at *pc*: an implicit return or a sequential jump."""
        expected = self._stack is not None and self._stack.follow(last.itype, last.fall, pc)
        return expected or (self.options.sequential_jump and last.inferred == pc and not self._pending.split)

    def _direct_jump(self, last: Block, pc: int) -> None:
        if self._stack is not None:
            self._stack.follow(last.itype, last.fall, pc)
        if self.options.all_jumps and self.options.btm:
            self._direct_branch(pc)
        elif self.options.all_jumps:
            self._append_hist(True)

    def _indirect(self, b_type: int, pc: int) -> None:
        """Report an indirect jump (rule 4) or a trap to *pc*."""
        registers, requests = self._registers, self._requests
        if requests.due is not None and self._upgrades:
            self._synchronize(self._indirect_form(), pc, requests.due, b_type)
            return
        uaddr = (registers.reference ^ pc) >> 1 & self._mask
        if self.options.btm or (registers.hist == 1 and self.options.indirect_without_hist):
            self._out.branch(pc, _INDIRECT_BRANCH, b_type, registers.icnt, uaddr)
        else:
            self._out.branch(pc, _INDIRECT_BRANCH_HIST, b_type, registers.icnt, uaddr, registers.hist)
        registers.reference = pc
        registers.clear()

    def _encode_trap(self, trap: IngressTrap) -> None:
        requests = self._requests
        after_return = self._pending.block.itype is IType.TRAP_RETURN and self.options.trap_return_sync
        due = None
        if self._upgrades:
            due, requests.due = requests.due, None  # the message of the trap can take its place
        self._settle(trap.epc)
        if after_return:
            self._synchronize(self._linear_form(), trap.epc, Sync.PERIODIC)
            requests.period_over()
        if due is not None:
            requests.due = due
        b_type = BType.TRAP
        if self.options.b_type_extended:
            b_type = BType.INTERRUPT if trap.interrupt else BType.EXCEPTION
        self._indirect(int(b_type), trap.handler)

    # -- synchronizing messages

    @property
    def _upgrades(self) -> bool:
        """Whether a branch message takes its ...Sync form when a synchronizing message is due."""
        return self.options.sync_placement is not SyncPlacement.SEPARATE

    @property
    def _on_linear_code(self) -> bool:
        """Whether a synchronizing message that is due may be sent where no branch message is sent."""
        return self.options.sync_placement is not SyncPlacement.NEXT_BRANCH

    def _can_synchronize(self, due: Sync) -> bool:
        """Whether a synchronizing message for this reason is to be sent where no branch message is sent."""
        at_once = self._on_linear_code or due is Sync.SEQUENTIAL_INSTRUCTION_COUNTER
        return at_once and not self._requests.synchronized

    def _indirect_form(self) -> int:
        if self.options.btm or (self._registers.hist == 1 and self.options.indirect_without_hist):
            return _INDIRECT_BRANCH_SYNC
        return _INDIRECT_BRANCH_HIST_SYNC

    def _linear_form(self) -> int:
        if self.options.linear_sync is not None:
            return int(self.options.linear_sync)
        return _PROG_TRACE_SYNC if self.options.btm else self._indirect_form()

    def _synchronize(self, tcode: int, pc: int, reason: Sync, b_type: int = _JUMP) -> None:
        """Send everything that is pending and the address *pc*, so that decoding can start here."""
        registers = self._registers
        keeps = reason in self.options.dialect.keeps_state
        faddr = pc >> 1 & self._mask
        if tcode == _INDIRECT_BRANCH_HIST_SYNC:
            self._out.sync(tcode, reason, b_type, registers.icnt, faddr, registers.hist)
            registers.hist = 1
        else:
            if registers.hist != 1 and not (keeps and self.options.marks_keep_hist):
                self._out.send(_RESOURCE_FULL, _HIST, registers.hist)
                registers.hist = 1
            b_types = (b_type,) if tcode == _INDIRECT_BRANCH_SYNC else ()
            self._out.sync(tcode, reason, *b_types, registers.icnt, faddr)
        registers.icnt = 0
        registers.reference = pc
        if self._stack is not None and not keeps:
            self._stack.clear()
        self._requests.sent(reason)
        if self._timer is not None:
            self._timer.since = 0
        if self._context is not None:
            self._send_context(self._context, synchronized=True)

    # -- full registers

    def _fill_hist(self, hist: int) -> int:
        """Report *hist*, which has as many bits as are reported at once, and return the new value of HIST."""
        if self._registers.chunks:
            self._registers.next_chunk()
        if self.options.full_at_once:
            return self._out.history(hist)
        return self._out.history(hist >> 1) << 1 | hist & 1

    def _fill_icnt(self, block: Block) -> None:
        """Count the block's instructions one by one, and report I-CNT whenever it is full."""
        registers, pending = self._registers, self._pending
        at_once, limit = self.options.full_at_once, self.options.icnt_limit
        lengths = [block.halfwords] if self.options.icnt_by_block else block.lengths
        pc, left = block.pc, len(lengths)
        for done, halfwords in enumerate(lengths):
            left -= 1
            if not at_once and registers.icnt and registers.icnt + halfwords > limit:
                self._report_icnt(pc, done)
                pending.split = left == 0
            registers.icnt += halfwords
            pc += 2 * halfwords
            if at_once and registers.icnt >= limit:
                if left:
                    self._report_icnt(pc, done + 1)
                    pending.split = left == 1
                else:
                    self._icnt_full_at_end(block)

    def _icnt_full_at_end(self, block: Block) -> None:
        requests = self._requests
        if self._reports_icnt_by_sync() and (requests.due is None or self._on_linear_code):
            if requests.due is None:
                requests.due = Sync.SEQUENTIAL_INSTRUCTION_COUNTER  # F-ADDR is known with the next block
        elif self._reports_icnt_by_sync():  # the synchronization that is due waits for a branch
            self._out.icnt(self._registers.icnt)
            self._registers.icnt = 0
        elif self.options.hist_full_first and (block.ending != PLAIN or block.itype in DIRECT_JUMPS):
            self._pending.icnt_postponed = True
        else:
            self._report_icnt(block.fall, block.instructions)

    def _reports_icnt_by_sync(self) -> bool:
        return self.options.icnt_full_sync and (self.options.btm or self._registers.hist != 1)

    def _report_icnt(self, pc: int, instructions: int = 0) -> None:
        """Report a full I-CNT before the instruction at *pc*, *instructions* instructions after the clock's time."""
        now = self._out.now
        self._out.now += instructions if self._cycle_each else 0
        if self._reports_icnt_by_sync():
            self._synchronize(self._linear_form(), pc, Sync.SEQUENTIAL_INSTRUCTION_COUNTER)
        else:
            self._out.icnt(self._registers.icnt)
            self._registers.icnt = 0
        self._out.now = now

    # -- Ownership

    def _enter_context(self, context: ProgramContext) -> None:
        """Enter a context. It is reported as soon as the next address is known."""
        if self._context is None or context == self._context.current:
            return
        self._context.current = context
        last = self._pending.block
        settled = last.ending == PLAIN and last.itype not in DIRECT_JUMPS
        if settled and self._tracing and self._requests.starting is None:
            self._send_context(self._context)

    def _send_context(self, reported: ReportedContext, *, synchronized: bool = False) -> None:
        sent, context = reported.sent, reported.current
        reported.sent = context
        if context.prv is None or (sent == context and not synchronized):
            return
        if self.options.context_by_sync and not synchronized:
            return
        if self.options.exact_context and not synchronized:
            self._report_all()
        whole = synchronized or self.options.ownership_full or sent[2:] != context[2:]
        for process in process_fields(context, self.options, complete=whole):
            self._out.send(_OWNERSHIP, process)

    def _report_all(self) -> None:
        """Send HIST and I-CNT even if they are not full."""
        registers = self._registers
        self._out.flush()
        if registers.hist != 1:
            self._out.send(_RESOURCE_FULL, _HIST, registers.hist)
            registers.hist = 1
        if registers.icnt:
            self._out.icnt(registers.icnt)
            registers.icnt = 0

    def _correlate(self, evcode: int) -> None:
        registers = self._registers
        omits = self.options.correlation_without_hist or self.options.dialect.omits_empty_hist
        if self.options.btm or (registers.hist == 1 and omits):
            self._out.send(_PROG_TRACE_CORRELATION, evcode, 0, registers.icnt)
        else:
            self._out.send(_PROG_TRACE_CORRELATION, evcode, 1, registers.icnt, registers.hist)

    def _encode_items(self, items: Iterable[Block | IngressTrap | ProgramContext]) -> None:
        """Do the same as `_encode_item` for each item, for plain HTM: with locals, and calls only where something is
        sent.
        """
        registers, requests, pending, timer = self._registers, self._requests, self._pending, self._timer
        hist_full, icnt_full, mask = registers.hist_full, registers.icnt_full, self._mask
        icnt, hist, last = registers.icnt, registers.hist, pending.block
        ending, fall, send = last.ending, last.fall, self._out.send
        for item in items:
            if isinstance(item, Block):
                if ending == BRANCH:
                    hist = hist << 1 | (item.pc != fall)
                    if hist >= hist_full:
                        hist = self._fill_hist(hist)
                if requests.due is not None:
                    registers.icnt, registers.hist = icnt, hist
                    self._synchronize(_INDIRECT_BRANCH_HIST_SYNC, item.pc, requests.due)
                    icnt, hist = 0, 1
                elif ending == UNINFERABLE:
                    pc = item.pc
                    send(_INDIRECT_BRANCH_HIST, _JUMP, icnt, (registers.reference ^ pc) >> 1 & mask, hist)
                    registers.reference = pc
                    icnt, hist = 0, 1
                icnt += item.halfwords
                if icnt >= icnt_full:
                    registers.icnt, registers.hist = icnt - item.halfwords, hist
                    self._fill_icnt(item)
                    icnt, hist = registers.icnt, registers.hist
                last, ending, fall = item, item.ending, item.fall
                if timer is not None:
                    timer.retired(item, self._cycle_each)
            else:
                registers.icnt, registers.hist, pending.block = icnt, hist, last
                self._encode_item(item)
                icnt, hist, ending, last = registers.icnt, registers.hist, PLAIN, NO_BLOCK
        registers.icnt, registers.hist, pending.block = icnt, hist, last
