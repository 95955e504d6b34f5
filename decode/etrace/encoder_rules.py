"""What each retired block and each trap makes an E-Trace encoder send.

Source: Efficient Trace for RISC-V 2.0, "Reference Compressed Branch Trace Algorithm" (the flow chart), with "Branch
Trace" and "Instruction Trace Encoder Output Packets", whose text decides where the chart would report an instruction
that never retires.
"""

import sys
from collections.abc import Callable
from enum import IntEnum

from decode.etrace.encoder_branches import Branches
from decode.etrace.encoder_models import JumpTargets
from decode.etrace.encoder_options import ContextType, EncoderOptions, Stop, SyncMode
from decode.etrace.encoder_output import Output
from decode.etrace.encoder_returns import Reached, ReturnCount
from decode.etrace.layout import Ext, Format, Sync
from decode.history import Context
from decode.ingress import BRANCH, UNINFERABLE, Block, Trap
from decode.instructions import IType

_OPT_EXT, _SYNC, _TARGET = int(Format.OPT_EXT), int(Format.SYNC), int(Ext.JUMP_TARGET)
_START, _TRAP, _CONTEXT = int(Sync.START), int(Sync.TRAP), int(Sync.CONTEXT)


class Next(IntEnum):
    """What follows an instruction: the flow chart's decision on the next one.

    SAME    an instruction, with nothing to be said of the step to it
    CHANGE  one in another privilege mode, or in a context to be reported precisely
    LEAVES  one in a context that is a discontinuity
    OWN_TRAP  none: it traps itself, though it retired
    TRAP    none: a trap is taken first
    END     none that is traced
    """

    SAME = 0
    CHANGE = 1
    LEAVES = 2
    OWN_TRAP = 3
    TRAP = 4
    END = 5


class Resync(IntEnum):
    """The states of the resync FSM ("Resynchronisation"): not due, branches are to be reported, due."""

    COUNTING = 1
    REACHED = 2
    DUE = 3


class Rules:
    """The registers of one encoder, and the flow chart.

    A block's last instruction goes through the chart when the next item is known (`_finish`), the others at once; of
    those only such matter as something is due for (`_walk`).
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self.options = options
        parameters, modes = options.parameters, options.modes
        self._out = Output(options, emit)
        self._branches = Branches(options)
        self._targets = JumpTargets(parameters) if modes.jump_target_cache else None
        self._returns = ReturnCount(parameters) if modes.implicit_return else None
        self._counts_packets = options.sync_mode in (SyncMode.PACKETS, SyncMode.OFF)
        self._counts_halfwords = options.sync_mode is SyncMode.HALFWORDS
        self._period = options.period if options.sync_mode is not SyncMode.OFF else sys.maxsize
        self._unseen = {Next.SAME}  # what does not make a target be reported with updiscon
        self._unseen |= {Next.END} if options.stop is Stop.LATE else set()
        self._unseen |= set() if options.own_trap_next else {Next.OWN_TRAP}
        self._time_mask = (1 << parameters.time_width) - 1
        self._context_mask = (1 << parameters.context_width) - 1
        self._now = 0  # time when the next instruction retires, and
        self._each = 1  # how much later the one after it does
        self._entered = self._context = Context()  # after the last item; of the instruction in the chart
        self._entered_as = options.context
        self._tracing = False
        self._reset()

    def _reset(self) -> None:
        """Tracing starts or stops: nothing is pending."""
        self._pending: Block | None = None
        self._pending_time = 0
        self._updiscon = False  # the next instruction is the target of an uninferable discontinuity
        self._reached = Reached.OTHERWISE  # how it is reached otherwise
        self._first = self._started = True  # it is the first one traced; there was no synchronization yet
        self._changed = False  # it is the first in another mode or context
        self._trap: Trap | None = None  # taken, and no instruction retired since
        self._trap_told = False
        self._trap_context = self._context  # in which it was taken
        self._context_due = False
        self._notify = self._notify_next = False  # it is, or the next block's first one will be, to be reported
        self._resync = Resync.COUNTING
        self._spent = 0  # cycles or halfwords since the last synchronization
        self._branches.clear()

    # -- what retires

    def _step(self, item: Block | Trap | Context) -> None:
        if isinstance(item, Block):
            self._block(item)
        elif isinstance(item, Trap):
            self._take(item)
        else:
            self._entered, self._entered_as = item, self.options.context

    def _block(self, block: Block) -> None:
        self._finish(block.pc, self._change())
        self._switch()
        if self._notify_next:
            self._notify, self._notify_next = True, False
        if block.instructions > 1:
            if self._updiscon or self._trap is not None or self._first or self._changed or self._notify:
                self._walk(block)
            elif self._is_due():
                self._walk(block)
            self._updiscon, self._reached = False, Reached.OTHERWISE
        self._pending = block
        self._pending_time = self._now + self._each * (block.instructions - 1)
        self._now += self._each * block.instructions
        if not self._counts_packets:
            self._spend(block.halfwords if self._counts_halfwords else self._each * block.instructions)

    def _walk(self, block: Block) -> None:
        """All but the last instruction of *block*, as long as something is due."""
        pc, now = block.pc, self._now
        for length in block.lengths[:-1]:
            self._chart(pc, Next.SAME, None, now)
            self._updiscon, self._reached = False, Reached.OTHERWISE
            if not self._is_due():
                return
            pc += 2 * length
            now += self._each

    def _is_due(self) -> bool:
        """Whether the next instruction may send something, whatever it is."""
        if self._resync is Resync.REACHED:
            return not self._counts_packets or self._branches.count > 0
        return self._resync is Resync.DUE or self._context_due

    def _finish(self, pc: int, next: Next) -> None:
        """Execution goes on at *pc*: the last instruction of the block before can be dealt with."""
        block, self._pending = self._pending, None
        if block is None:
            return
        taken = pc != block.fall if block.ending == BRANCH else None
        self._chart(block.fall - 2 * block.lengths[-1], next, taken, self._pending_time)
        self._updiscon, self._reached = False, Reached.OTHERWISE
        inferred = self.options.modes.sijump and block.inferred == pc
        if self._returns is not None:
            self._reached = self._returns.follow(block, pc)
            inferred = inferred or self._reached is Reached.EXPECTED
        self._updiscon = block.ending == UNINFERABLE and not inferred

    def _take(self, trap: Trap) -> None:
        """A trap: reported with the handler's first instruction, unless there is none or the EPC is to be told."""
        before = self._pending
        own = before is not None and before.itype is IType.EXCEPTION and before.fall - 2 * before.lengths[-1] == trap.epc
        self._finish(trap.epc, Next.OWN_TRAP if own else Next.TRAP)
        self._switch()
        if self._trap is not None and not self._trap_told:
            self._report_trap(self._trap, 0, trap.epc, None, self._where(self._trap_context, self._now))
        self._trap, self._trap_context = trap, self._context
        self._trap_told = self._updiscon or self._first
        if self._trap_told:
            self._report_trap(trap, 0, trap.epc, None, self._where(self._context, self._now))
        self._updiscon, self._reached = False, Reached.OTHERWISE

    def _change(self) -> Next:
        """What the step from one instruction to another is, by the context."""
        before, after = self._context, self._entered
        if before is after or before == after:
            return Next.SAME
        if before[:2] != after[:2]:
            return Next.CHANGE
        if self._entered_as is ContextType.DISCONTINUITY:
            return Next.LEAVES
        return Next.CHANGE if self._entered_as is ContextType.PRECISE else Next.SAME

    def _switch(self) -> None:
        """What comes now is in the context entered."""
        if self._context is not self._entered:
            if self._change() is not Next.SAME:
                self._changed = True
            elif self._context != self._entered and self._entered_as is ContextType.IMPRECISE:
                self._context_due = True
            self._context = self._entered

    # -- the flow chart

    def _chart(self, pc: int, next: Next, taken: bool | None, now: int) -> None:
        """The instruction at *pc*; *taken* if it is a branch."""
        branches = self._branches
        if taken is not None:
            branches.follow(pc, taken)
        if self._trap is not None:
            trap, self._trap = self._trap, None
            if self._trap_told:
                self._synchronize(_START, {}, pc, taken, self._where(self._context, now))
            else:
                self._report_trap(trap, 1, pc, taken, self._where(self._context, now))
        elif self._first or self._changed or self._resync is Resync.DUE:
            self._synchronize(_START, {}, pc, taken, self._where(self._context, now))
        elif self._updiscon or self._notify or self._is_reported(next):
            self._report(pc, next)
        elif branches.is_full:
            self._out.send(*branches.alone())
            branches.clear()
            self._sent()
        elif self._context_due:
            self._out.send(_SYNC, _CONTEXT, self._where(self._context, now))
            self._context_due = False
            self._sent()
        if self._resync is Resync.REACHED and not self._counts_packets:
            self._resync = Resync.DUE  # there were no branches

    def _is_reported(self, next: Next) -> bool:
        """Whether what follows needs the place to be known."""
        if self._branches.count and (self._resync is Resync.REACHED or next is Next.CHANGE):
            return True
        return next > Next.CHANGE or self._branches.is_at_limit

    def _report(self, pc: int, next: Next) -> None:
        """Format 0, 1 or 2: the instruction at *pc* and the branches before it."""
        out, branches = self._out, self._branches
        fields = {"address": out.difference(pc)}
        if self._updiscon:
            fields["updiscon"] = int(next not in self._unseen or self._resync is Resync.REACHED)
        else:
            fields["notify"] = int(self._notify)
        if self._returns is not None:
            fields |= self._returns.fields(self._reached, target=self._updiscon)
            self._returns.reported()
        if not self._indexed(pc, fields):
            out.send(*branches.reporting(fields))
        out.refer(pc)
        self._notify = False
        branches.clear()
        self._sent()

    def _indexed(self, pc: int, fields: dict[str, int]) -> bool:
        """Send format 0, subformat 1, if that is possible and the best."""
        if self._targets is None or not self._updiscon:
            return False
        index = self._targets.follow(pc)
        if index is None or self._branches.is_counted or fields["updiscon"]:
            return False
        indexed = {"index": index, **self._branches.fields(), **fields}
        if self.options.shortest:
            other = self._out.length(*self._branches.reporting(fields))
            if other < self._out.length(_OPT_EXT, _TARGET, indexed):
                return False
        self._out.send(_OPT_EXT, _TARGET, indexed)
        return True

    def _report_trap(self, trap: Trap, thaddr: int, pc: int, taken: bool | None, where: dict[str, int]) -> None:
        parameters = self.options.parameters
        fields = {"ecause": trap.cause & (1 << parameters.ecause_width) - 1, "interrupt": int(trap.interrupt)}
        fields |= {"thaddr": thaddr, "tval": trap.tval & (1 << parameters.iaddress_width) - 1}
        self._synchronize(_TRAP, fields, pc, taken, where)

    def _synchronize(
        self, subformat: int, fields: dict[str, int], pc: int, taken: bool | None, where: dict[str, int]
    ) -> None:
        """Format 3, subformat 0 or 1: a decoder can start here."""
        self._out.sync(subformat, {"branch": 0 if taken else 1, **where, **fields}, pc)
        reset = self._started or not self.options.modes.resync_disabled
        self._branches.synchronize(pc, taken, reset=reset)
        if self._targets is not None and reset:
            self._targets.reset()
        if self._returns is not None:
            self._returns.synchronize(reset=reset)
        self._first = self._started = self._changed = self._context_due = self._notify = False
        self._resync, self._spent = Resync.COUNTING, 0

    def _where(self, context: Context, now: int) -> dict[str, int]:
        """privilege, time and context."""
        options = self.options
        value = context.scontext or 0
        if options.hcontext_at is not None:
            value |= (context.hcontext or 0) << options.hcontext_at
        masked = {"time": now & self._time_mask, "context": value & self._context_mask}
        return {"privilege": privilege(context, options.parameters.privilege_width), **masked}

    # -- the resync timer

    def _sent(self) -> None:
        """A packet other than a synchronizing one was sent."""
        if self._counts_packets:
            over = self._out.count - self._period
            self._resync = Resync.DUE if over > 0 else Resync.REACHED if over == 0 else Resync.COUNTING
        elif self._resync is Resync.REACHED:
            self._resync = Resync.DUE

    def _spend(self, units: int) -> None:
        """So many cycles or halfwords have passed."""
        self._spent += units
        if self._spent >= self._period and self._resync is Resync.COUNTING:
            self._resync = Resync.REACHED


def privilege(context: Context, width: int) -> int:
    """A privilege mode as the field privilege ("Privilege level encoding"); of an unknown one, M-mode.

    Fields of fewer than 3 bits have no room for guests: VU and VS are as U and S.
    """
    mode = 3 if context.prv is None else context.prv
    if context.virtual and width > 2:
        mode += 5
    return mode & (1 << width) - 1
