"""The flow chart that decides what an E-Trace encoder sends for an instruction.

Source: Efficient Trace for RISC-V 2.0, "Reference Compressed Branch Trace Algorithm" (the flow chart), with "Branch
Trace" and "Instruction Trace Encoder Output Packets", whose text decides where the chart would report an instruction
that never retires.
"""

from collections.abc import Callable

from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, EndReport, JumpTargets, Reached, ReturnReporting
from rvtrace_gdb.decode.etrace.encoder.output import MAX_BRANCH_COUNT, Branches, LocationFields, PacketOutput
from rvtrace_gdb.decode.etrace.encoder.state import (
    COUNTING,
    HartClock,
    HartContext,
    InstructionArrival,
    Next,
    PendingBlock,
    PendingTrap,
    Resync,
    ResyncTimer,
)
from rvtrace_gdb.decode.etrace.layout import SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext

_SYNC = int(TeInstFormat.SYNC)
_START = int(SyncSubformat.START)
_TRAP = int(SyncSubformat.TRAP)
_CONTEXT = int(SyncSubformat.CONTEXT)
_ILLEGAL_INSTRUCTION = 2


class FlowChart:
    """The registers of one encoder, and the packets that it sends for an instruction.

    packet_time  the time of the instruction for which packets are being sent
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self.options = options
        parameters, modes = options.parameters, options.modes
        self._out = PacketOutput(options, emit)
        self._location = LocationFields(options)
        self._branches = Branches(options)
        self._targets = JumpTargets(parameters) if modes.jump_target_cache else None
        self._returns = ReturnReporting(parameters) if modes.implicit_return else None
        self._clock = HartClock()
        self.packet_time = 0
        self._timer = ResyncTimer(options)
        self._context = HartContext(options.context)
        self._pending = PendingBlock()
        self._arrival = InstructionArrival()
        self._tracing = False
        self._reset()

    def _reset(self) -> None:
        """Discard everything that is pending, because tracing starts or stops."""
        self._pending.block = None
        self._arrival.fall_through()
        self._first = True  # no instruction has been reported by a synchronization packet yet
        self._trap: PendingTrap | None = None
        self._reported = False  # the last instruction in the chart was reported with its address
        self._notify = False  # the next instruction is to be reported
        self._notify_next = False  # the first instruction of the next block is to be reported
        self._context.reported()
        self._timer.restart()
        self._branches.clear()

    def _chart(
        self,
        pc: int,
        time: int,
        next: Next = Next.SAME,
        taken: bool | None = None,
        *,
        withheld: bool = False,
        joined: bool = False,
    ) -> None:
        """Process the instruction at *pc*, which retires at *time*.

        next      what follows it
        taken     whether a branch is taken; None: it is no branch
        withheld  whether the resync FSM waits, because no synchronization may follow this instruction
        joined    whether it is a jump to the constant that the instruction before it loads
        """
        branches, timer, context = self._branches, self._timer, self._context
        synchronizes = self._synchronizes(joined)
        self._reported = False
        self.packet_time = time
        if self._trap is not None:
            pending, self._trap = self._trap, None
            if pending.reported:
                self._synchronize(_START, {}, pc, taken, self._location.fields_at(context.current, time))
            else:
                self._report_trap(pending.trap, 1, pc, taken, self._location.fields_at(context.current, time))
        elif synchronizes:
            self._synchronize(_START, {}, pc, taken, self._location.fields_at(context.current, time))
        elif self._arrival.updiscon or self._notify or self._is_reported(next, withheld):
            self._report_instruction(pc, next, withheld)
        elif branches.is_due:
            self._out.send(*branches.alone())
            branches.clear()
            timer.packet_sent(self._out.count)
        elif context.due:
            self._out.send(_SYNC, _CONTEXT, self._location.fields_at(context.current, time))
            context.due = False
            timer.packet_sent(self._out.count)
        if timer.state is Resync.REACHED and not timer.counts_packets and not withheld:
            timer.state = Resync.DUE  # there was nothing to report before

    def _synchronizes(self, joined: bool = False) -> bool:
        """Whether the instruction has a synchronization packet, apart from traps.

        The target of a jump or return may also be reached in another way, so it is reported first, and the resync
        follows one instruction later. Only formats 0 to 2 can report that a return did not go to the expected address
        (irreport). A decoder that starts at a sequential jump does not know the constant that is its target: *joined*.
        """
        if self._first:
            return True
        arrival = self._arrival
        due = self._timer.state is Resync.DUE and not joined
        if due and not self._reported:
            due = not arrival.updiscon and arrival.reached is not Reached.EXPECTED
        return (due or self._context.changed) and arrival.reached is not Reached.MISSED

    def _is_reported(self, next: Next, withheld: bool) -> bool:
        """Whether the instruction must be reported because of what follows."""
        if next > Next.CHANGE or self._branches.count >= MAX_BRANCH_COUNT:
            return True
        timer = self._timer
        if timer.state is Resync.DUE and self._arrival.reached is Reached.EXPECTED:
            return True
        resyncs = timer.state is Resync.REACHED and not withheld
        if self._branches.count and (resyncs or next is Next.CHANGE):
            return True
        if self._returns is None or not self._returns.is_open:
            return False
        # The flow chart covers only branches; the rest follows from "irreport and irdepth".
        return next is Next.CHANGE or (resyncs and (self._context.due or not timer.counts_packets))

    def _report_instruction(self, pc: int, next: Next, withheld: bool) -> None:
        """Report the instruction at *pc* and the branches before it in format 0, 1 or 2."""
        updiscon, out, branches = self._arrival.updiscon, self._out, self._branches
        fields: dict[str, int] = {}  # the fields after the address
        if not updiscon:
            if self._notify:
                fields["notify"] = 1
        elif self._is_flagged(next, withheld):
            fields["updiscon"] = 1
        if self._returns is not None:
            fields.update(self._returns.fields(self._arrival.reached, target=updiscon))
            self._returns.reported()
        self._reported = True
        out.report(branches, pc, fields, self._cached(pc, fields))
        self._notify = False
        branches.clear()
        self._timer.packet_sent(out.count)

    def _is_flagged(self, next: Next, withheld: bool) -> bool:
        """Whether the target of an uninferable discontinuity is reported with updiscon."""
        options = self.options
        if next is not Next.SAME and (next is not Next.END or options.stop is EndReport.EARLY):
            return True
        if self._context.changed or (self._timer.state is not COUNTING and not withheld):
            return True
        return options.dialect is Dialect.PULP or options.dialect is Dialect.QEMU  # these flag every target

    def _cached(self, pc: int, fields: dict[str, int]) -> int | None:
        """Return the index in the jump target cache that can replace the address, None if there is none."""
        if self._targets is None or not self._arrival.updiscon:
            return None
        index = self._targets.follow(pc)
        return None if self._branches.is_counted or "updiscon" in fields else index

    @property
    def _reports_epc(self) -> bool:
        """Whether a trap can be reported with its EPC, because packets have thaddr."""
        return self.options.dialect is not Dialect.PT10

    def _report_trap_at_epc(self, trap: IngressTrap, context: ProgramContext) -> None:
        """Report a trap that was taken in this context with its EPC, not with its handler."""
        self._report_trap(trap, 0, trap.epc, None, self._location.fields_at(context, self._clock.now))

    def _report_trap(
        self, trap: IngressTrap, thaddr: int, pc: int, taken: bool | None, location: dict[str, int]
    ) -> None:
        parameters = self.options.parameters
        fields = {"ecause": trap.cause & (1 << parameters.ecause_width) - 1, "interrupt": int(trap.interrupt)}
        is_illegal = trap.cause == _ILLEGAL_INSTRUCTION and not trap.interrupt
        tval = trap.tval if self._reports_epc or not is_illegal else trap.epc  # tvalepc, before there was thaddr
        fields |= {"thaddr": thaddr, "tval": tval & (1 << parameters.iaddress_width) - 1}
        self._synchronize(_TRAP, fields, pc, taken, location)

    def _synchronize(
        self, subformat: int, fields: dict[str, int], pc: int, taken: bool | None, location: dict[str, int]
    ) -> None:
        """Send format 3, subformat 0 or 1, at which a decoder can start."""
        self._out.sync(subformat, {"branch": 0 if taken else 1, **location, **fields}, pc)
        reset = self._first or not self.options.modes.resync_disabled
        self._branches.synchronize(pc, taken, reset=reset)
        if self._targets is not None:
            if reset:
                self._targets.reset()
            elif self._arrival.updiscon and subformat == _START:
                self._targets.follow(pc)
        if self._returns is not None:
            self._returns.synchronize(reset=reset)
        self._first = self._notify = False
        self._context.reported()
        self._timer.restart()
