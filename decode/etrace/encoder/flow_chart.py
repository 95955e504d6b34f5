"""The packets that an E-Trace encoder sends for instructions and traps, and how they are built and counted.

`Branches` has the branches that were not reported yet: as a map, or as a count while all are predicted correctly.
`Output` builds packets with differences of addresses. `FlowChart` is the flow chart that decides what is sent.

Source: Efficient Trace for RISC-V 2.0, "Reference Compressed Branch Trace Algorithm" (the flow chart), "Format
selection", "Format 0 packets", "Format 1 packets", with "Branch Trace" and "Instruction Trace Encoder Output Packets",
whose text decides where the chart would report an instruction that never retires.
"""

import sys
from collections.abc import Callable, Mapping
from enum import IntEnum

from rvtrace_gdb.decode.etrace.encoder.options import (
    EncoderOptions,
    JumpTargets,
    Predictor,
    Reached,
    ReturnReporting,
    Stop,
    SyncMode,
)
from rvtrace_gdb.decode.etrace.layout import (
    BRANCH_COUNT_BITS,
    LEAST_BRANCH_COUNT,
    MAP_BITS,
    BranchFmt,
    Ext,
    Format,
    Sync,
)
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.etrace.packet import QualStatus, codec, support_fields
from rvtrace_gdb.decode.executed.encoder_ingress import Block, Trap
from rvtrace_gdb.decode.program.csrs import Context

_OPT_EXT = int(Format.OPT_EXT)
_DIFF_DELTA = int(Format.DIFF_DELTA)
_ADDR_ONLY = int(Format.ADDR_ONLY)
_COUNT = int(Ext.BRANCH_COUNT)
_TARGET = int(Ext.JUMP_TARGET)
_NO_ADDR = int(BranchFmt.NO_ADDR)
_ADDR = int(BranchFmt.ADDR)
_ADDR_FAIL = int(BranchFmt.ADDR_FAIL)
_FULL = 31
MAX_BRANCH_COUNT = LEAST_BRANCH_COUNT + (1 << BRANCH_COUNT_BITS) - 1
"""The number of correctly predicted branches at which they are reported in any case."""

Description = tuple[int, int | None, Mapping[str, int]]
"""The format, subformat and fields of a packet."""


class Branches:
    """The outcomes of branches that were not reported yet.

    map     the outcomes, the oldest one in bit 0; 1 is not taken
    count   the number of branches, or of those predicted correctly if they are too many for a map
    is_due  whether they must be reported now (rpt_br, or a count at its maximum)
    """

    def __init__(self, options: EncoderOptions) -> None:
        self._predictor = Predictor(options.parameters) if options.modes.branch_prediction else None
        self.clear()

    def clear(self) -> None:
        """Clear the branches after a report."""
        self.map = self.count = 0
        self.is_due = False
        self._correct = self._predictor is not None  # all were predicted correctly
        self._failed = False  # the last one was mispredicted, with too many before it for a map

    def follow(self, pc: int, taken: bool) -> None:
        """Add the branch at *pc*, which retired."""
        if self._predictor is None:
            if not taken:
                self.map |= 1 << self.count
            self.count += 1
            self.is_due = self.count == _FULL
            return
        predicted = self._predictor.follow(pc, taken)
        if self._correct and self.count >= _FULL:
            self._failed = not predicted
            self.count += predicted
            self.is_due = self._failed or self.count >= MAX_BRANCH_COUNT
            return
        self._correct = self._correct and predicted
        if not taken:
            self.map |= 1 << self.count
        self.count += 1
        self.is_due = self.count == _FULL and not self._correct

    def synchronize(self, pc: int, taken: bool | None, *, reset: bool) -> None:
        """Handle a synchronization packet for the instruction at *pc*. *taken*: its outcome, if it is a branch.

        With *reset* the predictor is reset and then trained with that branch.
        """
        if self._predictor is not None and reset:
            self._predictor.reset()
            if taken is not None:
                self._predictor.follow(pc, taken)
        self.clear()

    @property
    def is_counted(self) -> bool:
        """Whether the branches can only be reported as a count."""
        return self._correct and self.count >= _FULL

    def alone(self) -> Description:
        """Return the packet that reports the branches without an address."""
        if self.is_counted:
            return _OPT_EXT, _COUNT, {"branch_count": self.count - _FULL, "branch_fmt": _NO_ADDR}
        return _DIFF_DELTA, None, {"branches": 0, "branch_map": self.map}

    def indexed(self, index: int, fields: Mapping[str, int]) -> Description:
        """Return the packet that reports the branches with an *index* of the jump target cache and further *fields*."""
        branches = {"branches": self.count, "branch_map": self.map} if self.count else {"branches": 0}
        return _OPT_EXT, _TARGET, {"index": index, **branches, **fields}

    def addressed(self, fields: Mapping[str, int]) -> Description:
        """Return the packet that reports the branches with an address, which is one of *fields*."""
        if self.is_counted:
            branch_fmt = _ADDR_FAIL if self._failed else _ADDR
            return _OPT_EXT, _COUNT, {"branch_count": self.count - _FULL, "branch_fmt": branch_fmt, **fields}
        if self.count:
            return _DIFF_DELTA, None, {"branches": self.count, "branch_map": self.map, **fields}
        return _ADDR_ONLY, None, fields


_SYNC = int(Format.SYNC)
_SUPPORT = int(Sync.SUPPORT)


class Output:
    """Builds and sends packets. *count*: the number of packets since the last synchronization."""

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self._options = options
        self._emit = emit
        self._build = codec(options.decoder, options.modes).build
        self._compress = options.compress
        self._is_short = options.compress and options.dialect is Dialect.STANDARD
        self._full = options.modes.full_address
        self._low = options.parameters.iaddress_lsb
        self._sign = 1 << options.parameters.iaddress_width - 1
        self._mask = 2 * self._sign - (1 << self._low)
        self._reference = 0
        self.count = 0

    def send(self, format: int, subformat: int | None, fields: Mapping[str, int]) -> None:
        """Send a packet."""
        self._emit(self._build(format, subformat, fields, compress=self._compress))
        self.count += 1

    def report(self, branches: Branches, pc: int, fields: Mapping[str, int], index: int | None) -> None:
        """Report the instruction at *pc* and *branches*.

        *fields*: further fields; *index*: in the jump target cache.
        """
        pc &= self._mask
        payload = self._addressed(branches, pc if self._full else pc - self._reference & self._mask, fields)
        if index is not None:
            indexed = self._payload(branches.indexed(index, fields))
            if len(indexed) <= len(payload) or not self._options.shortest:
                payload = indexed
        self._reference = pc
        self._emit(payload)
        self.count += 1

    def _addressed(self, branches: Branches, address: int, fields: Mapping[str, int]) -> bytes:
        if fields or branches.is_counted or not self._is_short:
            return self._payload(branches.addressed({"address": address, **fields}))
        # Sign based compression removes flags that are not set: the packet is a number in two's complement.
        difference = (address ^ self._sign) - self._sign >> self._low
        count = branches.count
        if count:
            bits = difference << 7 + MAP_BITS[count] | branches.map << 7 | count << 2 | _DIFF_DELTA
        else:
            bits = difference << 2 | _ADDR_ONLY
        return bits.to_bytes((bits if bits >= 0 else ~bits).bit_length() // 8 + 1, "little", signed=True)

    def _payload(self, described: Description) -> bytes:
        format, subformat, fields = described
        return self._build(format, subformat, fields, compress=self._compress)

    def sync(self, subformat: int, fields: Mapping[str, int], pc: int) -> None:
        """Send a synchronization packet for the instruction at *pc*."""
        self._reference = pc & self._mask
        self.send(_SYNC, subformat, {**fields, "address": self._reference})
        self.count = 0

    def support(self, qual_status: QualStatus, *, ienable: bool, denable: bool, dloss: bool = False) -> None:
        """Send a support packet."""
        options = self._options
        fields = support_fields(
            options.support,
            options.parameters,
            options.modes,
            ienable=ienable,
            qual_status=qual_status,
            denable=denable,
            dloss=dloss,
        )
        self.send(_SYNC, _SUPPORT, fields)


_START = int(Sync.START)
_TRAP = int(Sync.TRAP)
_CONTEXT = int(Sync.CONTEXT)

_ILLEGAL_INSTRUCTION = 2
OTHERWISE = Reached.OTHERWISE


class Next(IntEnum):
    """What follows an instruction: the flow chart's decision on the next one.

    SAME    an instruction in the same context
    CHANGE  an instruction in another privilege mode, or in a context to be reported precisely
    LEAVES  an instruction in a context that counts as a discontinuity
    TRAP    a trap
    END     no traced instruction
    """

    SAME = 0
    CHANGE = 1
    LEAVES = 2
    TRAP = 3
    END = 4


class Resync(IntEnum):
    """The states of the resync FSM ("Resynchronisation"): not due, report branches first, due."""

    COUNTING = 1
    REACHED = 2
    DUE = 3


class FlowChart:
    """The registers of one encoder, and the packets that it sends for an instruction."""

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self.options = options
        parameters, modes = options.parameters, options.modes
        self._out = Output(options, emit)
        self._branches = Branches(options)
        self._targets = JumpTargets(parameters) if modes.jump_target_cache else None
        self._returns = ReturnReporting(parameters) if modes.implicit_return else None
        self._sijump = modes.sijump
        self._counts_packets = options.sync_mode in (SyncMode.PACKETS, SyncMode.OFF)
        self._counts_halfwords = options.sync_mode is SyncMode.HALFWORDS
        self._period = options.period if options.sync_mode is not SyncMode.OFF else sys.maxsize
        self._flagged_by_updiscon = set(Next) - {Next.SAME}  # what updiscon reports
        if options.stop is Stop.LATE:
            self._flagged_by_updiscon.remove(Next.END)
        self._flags_targets = options.dialect in (Dialect.PULP, Dialect.QEMU)  # with updiscon, whatever follows
        self._knows_epc = options.dialect is not Dialect.PT10  # packets have thaddr
        self._time_mask = (1 << parameters.time_width) - 1
        self._context_mask = (1 << parameters.context_width) - 1
        self._now = 0  # time when the next instruction retires, and
        self._instruction_cycles = 1  # how much later the one after it does
        self.packet_time = 0
        """The time of the instruction for which packets are being sent."""
        self._entered = self._context = Context()  # after the last item; of the instruction in the chart
        self._entered_ctype = options.context
        self._tracing = False
        self._reset()

    def _reset(self) -> None:
        """Discard everything that is pending, because tracing starts or stops."""
        self._pending: Block | None = None
        self._pending_time = 0
        self._updiscon = False  # the next instruction is the target of an uninferable discontinuity
        self._reached = OTHERWISE  # how it is reached otherwise
        self._first = self._started = True  # it is the first one traced; there was no synchronization yet
        self._changed = False  # it is the first in another mode or context
        self._trap: Trap | None = None  # taken, and no instruction retired since
        self._trap_reported = False
        self._trap_context = self._context  # in which it was taken
        self._context_due = False
        self._reported = False  # the instruction before it was, with its address
        self._withheld = False  # the resync FSM waits: none may follow the instruction in the chart
        self._joined = False  # that one is a jump, and goes where the instruction before it says
        self._notify = self._notify_next = False  # it is, or the next block's first one will be, to be reported
        self._resync = Resync.COUNTING
        self._since_sync = 0  # cycles or halfwords since the last synchronization
        self._branches.clear()

    def _chart(self, pc: int, next: Next, taken: bool | None, now: int) -> None:
        """Process the instruction at *pc*. *taken*: its outcome, if it is a branch."""
        branches = self._branches
        synchronizes = self._synchronizes()
        self._reported = False
        self.packet_time = now
        if self._trap is not None:
            trap, self._trap = self._trap, None
            if self._trap_reported:
                self._synchronize(_START, {}, pc, taken, self._where(self._context, now))
            else:
                self._report_trap(trap, 1, pc, taken, self._where(self._context, now))
        elif synchronizes:
            self._synchronize(_START, {}, pc, taken, self._where(self._context, now))
        elif self._updiscon or self._notify or self._is_reported(next):
            self._report(pc, next)
        elif branches.is_due:
            self._out.send(*branches.alone())
            branches.clear()
            self._count_sent()
        elif self._context_due:
            self._out.send(_SYNC, _CONTEXT, self._where(self._context, now))
            self._context_due = False
            self._count_sent()
        if self._resync is Resync.REACHED and not self._counts_packets and not self._withheld:
            self._resync = Resync.DUE  # there was nothing to report before

    def _synchronizes(self) -> bool:
        """Whether the instruction has a synchronization packet, apart from traps.

        The target of a jump or return may also be reached in another way, so it is reported first, and the resync
        follows one instruction later. Only formats 0 to 2 can report that a return did not go to the expected address
        (irreport). A decoder that starts at a sequential jump does not know the constant that is its target.
        """
        due = self._resync is Resync.DUE and not self._joined
        if due and not self._reported:
            due = not self._updiscon and self._reached is not Reached.EXPECTED
        return self._first or ((due or self._changed) and self._reached is not Reached.MISSED)

    def _is_reported(self, next: Next) -> bool:
        """Whether the instruction must be reported because of what follows."""
        if next > Next.CHANGE or self._branches.count >= MAX_BRANCH_COUNT:
            return True
        if self._resync is Resync.DUE and self._reached is Reached.EXPECTED:
            return True
        resyncs = self._resync is Resync.REACHED and not self._withheld
        if self._branches.count and (resyncs or next is Next.CHANGE):
            return True
        if self._returns is None or not self._returns.is_open:
            return False
        # The flow chart covers only branches; the rest follows from "irreport and irdepth".
        return next is Next.CHANGE or (resyncs and (self._context_due or not self._counts_packets))

    def _report(self, pc: int, next: Next) -> None:
        """Report the instruction at *pc* and the branches before it in format 0, 1 or 2."""
        out, branches = self._out, self._branches
        fields: dict[str, int] = {}  # the fields after the address
        if not self._updiscon:
            if self._notify:
                fields["notify"] = 1
        elif self._flags_targets or next in self._flagged_by_updiscon or self._changed or self._is_resynchronizing():
            fields["updiscon"] = 1
        if self._returns is not None:
            fields.update(self._returns.fields(self._reached, target=self._updiscon))
            self._returns.reported()
        self._reported = True
        out.report(branches, pc, fields, self._cached(pc, fields))
        self._notify = False
        branches.clear()
        self._count_sent()

    def _is_resynchronizing(self) -> bool:
        """Whether a resync follows the instruction."""
        return self._resync is not Resync.COUNTING and not self._withheld

    def _cached(self, pc: int, fields: dict[str, int]) -> int | None:
        """Return the index in the jump target cache that can replace the address, None if there is none."""
        if self._targets is None or not self._updiscon:
            return None
        index = self._targets.follow(pc)
        return None if self._branches.is_counted or "updiscon" in fields else index

    def _report_trap(self, trap: Trap, thaddr: int, pc: int, taken: bool | None, where: dict[str, int]) -> None:
        parameters = self.options.parameters
        fields = {"ecause": trap.cause & (1 << parameters.ecause_width) - 1, "interrupt": int(trap.interrupt)}
        is_illegal = trap.cause == _ILLEGAL_INSTRUCTION and not trap.interrupt
        tval = trap.tval if self._knows_epc or not is_illegal else trap.epc  # tvalepc, before there was thaddr
        fields |= {"thaddr": thaddr, "tval": tval & (1 << parameters.iaddress_width) - 1}
        self._synchronize(_TRAP, fields, pc, taken, where)

    def _synchronize(
        self, subformat: int, fields: dict[str, int], pc: int, taken: bool | None, where: dict[str, int]
    ) -> None:
        """Send format 3, subformat 0 or 1, at which a decoder can start."""
        self._out.sync(subformat, {"branch": 0 if taken else 1, **where, **fields}, pc)
        reset = self._started or not self.options.modes.resync_disabled
        self._branches.synchronize(pc, taken, reset=reset)
        if self._targets is not None:
            if reset:
                self._targets.reset()
            elif self._updiscon and subformat == _START:
                self._targets.follow(pc)
        if self._returns is not None:
            self._returns.synchronize(reset=reset)
        self._first = self._started = self._changed = self._context_due = self._notify = False
        self._resync, self._since_sync = Resync.COUNTING, 0

    def _where(self, context: Context, now: int) -> dict[str, int]:
        """Return the fields privilege, time and context."""
        options = self.options
        value = context.scontext or 0
        if options.hcontext_at is not None:
            value |= (context.hcontext or 0) << options.hcontext_at
        masked = {"time": now & self._time_mask, "context": value & self._context_mask}
        return {"privilege": privilege(context, options.parameters.privilege_width), **masked}

    # -- the resync timer

    def _count_sent(self) -> None:
        """Count a packet that does not synchronize."""
        if self._counts_packets:
            over = self._out.count - self._period
            self._resync = Resync.DUE if over > 0 else Resync.REACHED if over == 0 else Resync.COUNTING
        elif self._resync is Resync.REACHED:
            self._resync = Resync.DUE

    def _spend(self, units: int) -> None:
        """Count cycles or halfwords."""
        self._since_sync += units
        if self._since_sync >= self._period and self._resync is Resync.COUNTING:
            self._resync = Resync.REACHED


def privilege(context: Context, width: int) -> int:
    """Return the value of the field privilege ("Privilege level encoding"); for an unknown mode, that of M-mode.

    Fields of fewer than 3 bits cannot represent guests: VU and VS have the values of U and S.
    """
    mode = 3 if context.prv is None else context.prv
    if context.virtual and width > 2:
        mode += 5
    return mode & (1 << width) - 1
