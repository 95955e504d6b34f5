"""The step function of the E-Trace decoder: for a state and a packet, the code that ran, the next state, and reports.

This module and `branch_packets` define what packets mean; `hart` only remembers the results. The call stack, the branch
predictor and the jump target cache are not part of a state but arguments of `step`: otherwise a loop would rarely
return to the same state. A synchronization that no encoder sends is recognized as damaged bytes (`impossible_value`).

Sources: Efficient Trace for RISC-V 2.0, "Decoder", "Instruction Trace Encoder Output Packets" and table "Privilege
level encoding"; for irets and the standard support packet the v0.8 extensions; the privileged architecture, tables of
the causes in mcause: causes that are designated for custom or platform use are possible.
"""

from collections.abc import Callable
from dataclasses import replace

from rvtrace_gdb.decode.etrace.branch_packets import BranchPackets
from rvtrace_gdb.decode.etrace.layout import Packet, SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Dialect, Options, Setup, SupportLayout
from rvtrace_gdb.decode.etrace.packet import QualStatus, apply_support
from rvtrace_gdb.decode.etrace.prediction_tables import PredictionTables, TableEffect
from rvtrace_gdb.decode.etrace.return_stack import replacement
from rvtrace_gdb.decode.etrace.state import (
    HartKnowledge,
    Mode,
    ReportedTrap,
    State,
    Step,
    WalkArrival,
    WalkGoal,
    WalkProgress,
)
from rvtrace_gdb.decode.etrace.state_table import STOPPED, StateTable, StepResult, one_instruction, packet_name
from rvtrace_gdb.decode.etrace.walk import Walker
from rvtrace_gdb.decode.history.events import (
    EventKind,
    Loss,
    LossCause,
    Open,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
)
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.control_flow import CLEARS, NOWHERE, Stack
from rvtrace_gdb.decode.stepping.reports import Report

_PRIVILEGES = (2, 7)
_EXCEPTIONS = frozenset({14, 17, *range(32, 48)})
_LAST_EXCEPTION = 63
_LAST_INTERRUPT = 4095


def impossible_value(packet: Packet, name: str) -> Loss | None:
    """Return the loss for a field of a format 3 packet with an impossible value, None if arrived is none.

    *name*: the name of the packet for the loss.
    """
    fields = packet.fields
    if fields.get("privilege") in _PRIVILEGES:
        return Loss(LossCause.RESERVED, (name, "privilege", fields["privilege"]))
    if "ecause" in fields and _is_reserved(fields["ecause"], interrupt=bool(fields["interrupt"])):
        return Loss(LossCause.RESERVED, (name, "ecause", fields["ecause"]))
    if fields.get("address", 0) & 1:
        return Loss(LossCause.IMPOSSIBLE, (f"{name}: an instruction at the odd address 0x{fields['address']:x}",))
    return None


def _is_reserved(cause: int, *, interrupt: bool) -> bool:
    if interrupt:
        return cause > _LAST_INTERRUPT
    return cause in _EXCEPTIONS or cause > _LAST_EXCEPTION


class StepFunction:
    """The states and steps of one program under one set of options."""

    def __init__(self, program: Program, options: Options) -> None:
        self._options = options
        self._mask = (1 << program.xlen) - 1
        self._states = StateTable(program, options)
        self._branches = BranchPackets(self._states, program.xlen, options.branch_count_bits)
        self.initial = self._states.initial
        self.forget = self._states.forget
        self.compiled_by = self._states.compiled_by
        self.state, self.is_shared, self.walker = self._states.state, self._states.is_shared, self._states.walker
        self.loss = self._states.loss

    def step(self, state: State, packet: Packet, stack: Stack, tables: PredictionTables) -> StepResult:
        """Return the step of *packet* in *state*.

        Contradictions between trace and program are reports, not exceptions.
        """
        if packet.format != TeInstFormat.SYNC:
            return self._branches.step(state.knowledge, packet, stack, tables)
        if impossible := impossible_value(packet, packet_name(packet)):
            return StepResult(self._states.loss(state, EventKind.LOSS, impossible))
        return _SYNCS[SyncSubformat(packet.subformat or 0)](self, state.knowledge, packet, stack, tables)

    def can_resume(self, state: State, packet: Packet) -> bool:
        """Whether a packet determines the pc of the hart, which is not known in *state*."""
        if state.knowledge.mode is Mode.ADRIFT:
            return packet.format == TeInstFormat.SYNC or "address" in packet.fields
        return state.knowledge.mode is Mode.LOST and packet.format == TeInstFormat.SYNC

    def end(self, state: State) -> tuple[Report, ...]:
        """Return the remaining reports at the end of the trace."""
        return self._states.pending_trap(state.knowledge, None)

    # Format 3

    def _start_step(
        self, knowledge: HartKnowledge, packet: Packet, stack: Stack, tables: PredictionTables
    ) -> StepResult:
        """Handle subformat 0: start of tracing, or resynchronization."""
        address = packet.fields["address"] & self._mask
        context = self._states.context(knowledge, packet)
        arrived = knowledge._replace(context=context)
        if knowledge.mode is not Mode.ON:
            if self._states.walker(arrived).is_unknown(address):
                return self._sync_without_code(arrived, packet, address, self._states.pending_trap(knowledge, address))
            resumption = self._resume_step(knowledge, packet, address, context, stack)
            return StepResult(resumption, knowledge.mode is not Mode.TRAPPED)
        walker = self._states.walker(knowledge)
        same = knowledge.context.prv is None or context.prv == knowledge.context.prv
        walk, arrival = self._walk_to_start(knowledge, walker, address, stack, same=same)
        repeats = address == knowledge.last_pc
        reported_twice = repeats and self._options.dialect is Dialect.PULP
        if reported_twice and (arrival is not WalkArrival.INFERRED or walker.is_branch(address)):
            arrival = WalkArrival.FAULT  # it synchronizes at instructions that it has reported before, also branches
        if arrival is WalkArrival.FAULT and repeats:
            walk = walker.start(knowledge.next_pc, knowledge.last_pc, stack)
            walk.parts = []
        elif arrival is WalkArrival.FAULT:
            return self._states.mismatch(knowledge, packet, walk, walk.fault)._replace(cacheable=False, retry=True)
        if self._states.walker(arrived).is_unknown(address):
            return self._sync_without_code(arrived, packet, address, path=walk.before_last())
        known = walk.next_pc if arrival is WalkArrival.INFERRED else NOWHERE
        targets = tables.entries((address,)) if arrival is WalkArrival.JUMPED else ()
        result = self._synchronized(knowledge, packet, walk, address, context, known)
        if reported_twice and knowledge.next_pc != NOWHERE and walker.is_branch(address):
            result = self._keeps_outcome(knowledge, result)
        effect = result.step.tables
        if knowledge.setup.modes.resync_disabled and effect is not None:
            result = result._replace(step=replace(result.step, tables=replace(effect, targets=targets)))
        return result

    def _walk_to_start(
        self, knowledge: HartKnowledge, walker: Walker, address: int, stack: Stack, *, same: bool
    ) -> tuple[WalkProgress, WalkArrival]:
        """Walk to the instruction of a synchronization while the hart runs. *same*: in the privilege mode it had."""
        walk = self._walk_to_sync(knowledge, walker, address if same else NOWHERE, stack)
        if walk.fault:
            return walk, WalkArrival.FAULT
        arrival = walker.reach(walk, WalkGoal(address, inferable=same))
        if arrival is WalkArrival.FAULT and not same:
            walk = self._walk_to_sync(knowledge, walker, address, stack)
            arrival = walker.reach(walk, WalkGoal(address))
        return walk, arrival

    def _keeps_outcome(self, knowledge: HartKnowledge, result: StepResult) -> StepResult:
        """Continue after a repeated branch where it led before: rv_tracer's branch bit is not its outcome then."""
        state = self._states.state(result.step.state.knowledge._replace(next_pc=knowledge.next_pc))
        return result._replace(step=replace(result.step, state=state))

    def _walk_to_sync(self, knowledge: HartKnowledge, walker: Walker, address: int, stack: Stack) -> WalkProgress:
        """Return the start of the walk to a synchronization at *address*, NOWHERE if only an xRET can lead arrived.

        If the last address is one step before the synchronization, it was reported because of it. Otherwise it was the
        target of a jump, as in `start_walk` of `branch_packets.py`.
        """
        if knowledge.next_pc in (NOWHERE, address):
            knowledge = knowledge._replace(inferred=None)
        return self._branches.start_walk(knowledge, walker, stack)[0]

    def _synchronized(
        self,
        knowledge: HartKnowledge,
        packet: Packet,
        walk: WalkProgress,
        address: int,
        context: ProgramContext,
        known_pc: int,
    ) -> StepResult:
        """Return the result of a walk that reached the address of a synchronization.

        *known_pc*: the next pc, or NOWHERE.
        """
        keeps = knowledge.setup.modes.resync_disabled
        settled, following, effect = self._settle_address(knowledge, packet, address, context, keeps=keeps)
        is_branch = self._states.walker(knowledge).is_branch(address)
        if known_pc != NOWHERE and following.knowledge.next_pc == NOWHERE and not is_branch:
            following = self._states.state(following.knowledge._replace(next_pc=known_pc))
        reports = self._states.context_reports(knowledge, context)
        splits = bool(walk.parts) and (bool(reports) or "time" in packet.fields)
        path, last_one = (walk.before_last(), one_instruction(address)) if splits else (walk.path, None)
        calls = walk.calls.effect() if keeps else walk.calls.effect(clears=True, left=tuple(settled.calls.left))
        step = Step(
            path=path, state=following, reports=reports, landing=last_one, calls=calls, tables=effect, synchronizes=True
        )
        return StepResult(step, not (walk.calls.overflowed or keeps))

    def _settle_address(
        self,
        knowledge: HartKnowledge,
        packet: Packet,
        address: int,
        context: ProgramContext,
        *,
        keeps: bool,
        stack: Stack = None,
    ) -> tuple[WalkProgress, State, TableEffect | None]:
        """Return the walk, the state and the effect after the instruction that a synchronizing packet reports.

        *keeps*: whether predictor and cache are kept. *stack*: the calls that remain valid.
        """
        knowledge = knowledge._replace(context=context)
        walker = self._states.walker(knowledge)
        walk = walker.start(NOWHERE, address, stack)
        walker.retire_at(walk, address, not packet.fields["branch"] if walker.is_branch(address) else None)
        following = knowledge._replace(
            mode=Mode.ON, next_pc=walk.next_pc, last_pc=address, reference=address, inferred=None, trap=None
        )
        effect = None
        modes = knowledge.setup.modes
        if modes.branch_prediction or modes.jump_target_cache:
            effect = TableEffect(PredictionTables(knowledge.setup.parameters).training(walk.outcomes), (), not keeps)
        return walk, self._states.state(following), effect

    def _resume_step(
        self, knowledge: HartKnowledge, packet: Packet, address: int, context: ProgramContext, stack: Stack
    ) -> Step:
        """Return the step that starts decoding at the address of a synchronizing packet."""
        continues = knowledge.mode is Mode.TRAPPED and knowledge.setup.modes.resync_disabled
        kept = stack if continues else None
        walk, following, effect = self._settle_address(knowledge, packet, address, context, keeps=continues, stack=kept)
        if knowledge.mode is Mode.TRAPPED:
            pending = self._states.pending_trap(knowledge, address)
            reports = tuple(report._replace(resumed=address) for report in pending)
        elif knowledge.mode in STOPPED:
            moved, maybe_moved = self._states.is_gap(knowledge, address)
            start = Start(StartReason.TRACING_STARTS)
            traced = Report(EventKind.TRACE_ON, start, next_pc=address, resumed=address)
            reports = (traced._replace(moved=moved, maybe_moved=maybe_moved),)
        else:
            reports = (Report(EventKind.SYNC, Start(StartReason.UNSPECIFIED), next_pc=address, resumed=address),)
        reports += self._states.context_reports(knowledge, context)
        return Step(
            path=None,
            state=following,
            reports=reports,
            landing=one_instruction(address),
            calls=replacement(walk.calls.stack()),
            tables=effect,
            synchronizes=True,
        )

    def _trap_step(
        self, knowledge: HartKnowledge, packet: Packet, stack: Stack, tables: PredictionTables
    ) -> StepResult:
        """Handle subformat 1: an exception or interrupt."""
        walker = self._states.walker(knowledge)
        reported = knowledge.last_pc  # by the packet before
        if knowledge.mode is Mode.ON and walker.is_unknown(reported):
            report = self._states.contradiction(knowledge, packet, reported, walker.why_unknown(reported))
            return StepResult(Step(None, self._states.lost(knowledge), (report,), calls=CLEARS), False, retry=True)
        fields = packet.fields
        interrupt = bool(fields["interrupt"])
        taken = Trap.with_cause(fields["ecause"], fields.get("tval"), interrupt=interrupt)
        address = fields["address"] & self._mask if "address" in fields else NOWHERE
        if not fields["thaddr"]:
            epc = self._epc(knowledge, NOWHERE if interrupt else address, stack)
            return self._trap_without_handler(knowledge, stack, taken, epc, address)
        handler = self._trap_handler(packet, address)
        return self._trap_with_handler(knowledge, packet, stack, taken, self._epc(knowledge, NOWHERE, stack), handler)

    def _trap_without_handler(
        self, knowledge: HartKnowledge, stack: Stack, taken: Trap, epc: int, address: int
    ) -> StepResult:
        """Handle a trap whose handler a later packet reports. *address*: that in the packet."""
        # A trap at the first instruction after a filter would be in the trace.
        gap = self._states.is_gap(knowledge, epc if knowledge.mode is Mode.HALTED else NOWHERE)
        pending = ReportedTrap(taken, epc, address, *gap)
        following = knowledge._replace(mode=Mode.TRAPPED, next_pc=NOWHERE, last_pc=NOWHERE, inferred=None, trap=pending)
        reports = self._states.pending_trap(knowledge, None)
        kept = self._stack_after_trap(knowledge, stack)
        calls = None if kept is stack else replacement(kept)
        cacheable = not knowledge.setup.modes.resync_disabled  # else a return before it depends on the stack
        return StepResult(Step(None, self._states.state(following), reports, calls=calls), cacheable)

    def _trap_handler(self, packet: Packet, address: int) -> int:
        """Return where a trap leads: to the *address* in its packet, or to what the options say; NOWHERE: unknown."""
        if address != NOWHERE:
            return address
        known = self._options.trap_handlers.handler_of(packet.fields["ecause"], bool(packet.fields["interrupt"]))
        return NOWHERE if known is None else known & self._mask

    def _trap_with_handler(
        self, knowledge: HartKnowledge, packet: Packet, stack: Stack, taken: Trap, epc: int, handler: int
    ) -> StepResult:
        """Handle a trap that is reported with its handler, whose first instruction ran; NOWHERE: nobody knows it."""
        before = self._states.pending_trap(knowledge, None)
        last_pc = None if epc < 0 else epc
        if handler == NOWHERE:
            lost = Report(EventKind.LOSS, Loss(LossCause.UNKNOWN_HANDLER), lost=True)
            reports = (*before, Report(EventKind.TRAP, taken, last_pc=last_pc), lost)
            return StepResult(Step(None, self._states.lost(knowledge), reports, calls=CLEARS))
        context = self._states.context(knowledge, packet)
        arrived = knowledge._replace(context=context)
        if self._states.walker(arrived).is_unknown(handler):
            trap = Report(EventKind.TRAP, taken, last_pc, handler)
            return self._sync_without_code(arrived, packet, handler, (*before, trap))
        starts = knowledge.mode in (Mode.LOST, Mode.ADRIFT, *STOPPED)
        keeps = knowledge.setup.modes.resync_disabled and not starts
        kept = self._stack_after_trap(knowledge, stack) if keeps else None
        walk, state, effect = self._settle_address(knowledge, packet, handler, context, keeps=keeps, stack=kept)
        resumed = handler if starts or knowledge.mode is Mode.TRAPPED else None
        gap = self._states.is_gap(knowledge, NOWHERE)
        trap = Report(EventKind.TRAP, taken, last_pc, handler, False, *gap, resumed)
        reports = (*before, trap, *self._states.context_reports(knowledge, context))
        calls = replacement(walk.calls.stack())
        epc_from_stack = knowledge.setup.modes.implicit_return and knowledge.next_pc == NOWHERE  # the EPC may be
        step = Step(
            path=None,
            state=state,
            reports=reports,
            landing=one_instruction(handler),
            calls=calls,
            tables=effect,
            synchronizes=True,
        )
        return StepResult(step, not (keeps or epc_from_stack))

    def _sync_without_code(
        self,
        knowledge: HartKnowledge,
        packet: Packet,
        address: int,
        before: tuple[Report, ...] = (),
        path: Path | None = None,
    ) -> StepResult:
        """Return the gap for a synchronization at an address without code.

        *knowledge* has the packet's context; *before*: earlier reports, which are dropped if the program is complete,
        because the packet is then not credible.
        """
        why = self._states.walker(knowledge).why_unknown(address)
        report = self._states.contradiction(knowledge, packet, address, why)
        following = self._states.without_code(knowledge._replace(reference=address, trap=None))
        reports = (report,) if report.kind is EventKind.MISMATCH else (*before, report)
        return StepResult(Step(path, following, reports, calls=CLEARS), path is None)

    def _epc(self, knowledge: HartKnowledge, reported: int, stack: Stack) -> int:
        """Return the EPC of a trap, NOWHERE if it is not known.

        *reported*: the address in its packet if that is the EPC of an exception where no code leads; NOWHERE if it is
        the handler's, or undefined, as that of an interrupt.
        """
        if knowledge.mode is Mode.TRAPPED and knowledge.trap is not None:
            # The second trap hit the first one's handler. 2.0 calls that packet's address undefined, 2.0.5 uses it.
            extended = knowledge.setup.parameters.iret_ext or self._options.support is SupportLayout.STANDARD
            other = knowledge.trap.epc not in (NOWHERE, knowledge.trap.address)
            return knowledge.trap.address if extended and other else NOWHERE
        if knowledge.mode is not Mode.ON:
            return reported  # "exception on the 1st traced instruction" (2.0.5)
        if knowledge.next_pc != NOWHERE:
            return knowledge.next_pc
        walker = self._states.walker(knowledge)
        if walker.raises(knowledge.last_pc):
            return knowledge.last_pc
        if not walker.is_uninferable(knowledge.last_pc):
            return NOWHERE
        if reported != NOWHERE:
            return reported
        implicit = knowledge.setup.modes.implicit_return and walker.is_return(knowledge.last_pc)
        return stack[0] if implicit and stack is not None else NOWHERE

    def _stack_after_trap(self, knowledge: HartKnowledge, stack: Stack) -> Stack:
        """Return the call stack after a trap, if it is kept at a synchronization.

        A call or return right before the trap retired, so the encoder has counted it, but no walk has passed it.
        """
        if not knowledge.setup.modes.resync_disabled or knowledge.mode is not Mode.ON or knowledge.next_pc != NOWHERE:
            return stack
        walk = self._states.walker(knowledge).start(NOWHERE, knowledge.last_pc, stack)
        self._states.walker(knowledge).leave(walk)
        return walk.calls.stack() if walk.calls.taken or walk.calls.left else stack

    def _context_change(
        self, knowledge: HartKnowledge, packet: Packet, stack: Stack, tables: PredictionTables
    ) -> StepResult:
        """Handle subformat 2: the context has changed, at an imprecise place. The flow continues."""
        context = self._states.context(knowledge, packet)
        following = self._states.state(knowledge._replace(context=context))
        return StepResult(Step(None, following, self._states.context_reports(knowledge, context)))

    def _support(self, knowledge: HartKnowledge, packet: Packet, stack: Stack, tables: PredictionTables) -> StepResult:
        """Handle subformat 3: the encoder's settings, and why tracing stopped."""
        fields = packet.fields
        knowledge = self._set_up(knowledge, packet)
        qual_status = fields.get("qual_status", QualStatus.NO_CHANGE)
        if qual_status == QualStatus.TRACE_LOST:
            why = Loss(LossCause.PACKETS_LOST)
            return StepResult(self._states.loss(self._states.state(knowledge), EventKind.OVERFLOW, why))
        if qual_status == QualStatus.NO_CHANGE and fields.get("ienable", 1):
            mode = Mode.OFF if knowledge.mode is Mode.LOST else knowledge.mode
            return StepResult(Step(None, self._states.state(knowledge._replace(mode=mode))))
        if knowledge.mode in STOPPED:
            return StepResult(Step(None, self._states.state(knowledge), calls=CLEARS))
        walk = WalkProgress(NOWHERE, NOWHERE, self._states.walker(knowledge).start(NOWHERE, NOWHERE, stack).calls)
        at = knowledge.next_pc if knowledge.mode is Mode.ON and qual_status != QualStatus.NO_CHANGE else NOWHERE
        if knowledge.mode is Mode.ON and knowledge.inferred is not None and qual_status == QualStatus.ENDED_NTR:
            walk, _ = self._branches.start_walk(knowledge, self._states.walker(knowledge), stack)
            at = NOWHERE if walk.fault else walk.next_pc
        reports = self._states.pending_trap(knowledge, None)
        if walk.fault:
            reports += (self._states.contradiction(knowledge, packet, walk.place, walk.fault),)
        halted = self._options.unfiltered and bool(fields.get("ienable", 1))
        open_end = None if halted or walk.fault or at != NOWHERE else self._open_end(knowledge, qual_status)
        reports += (Report(EventKind.TRACE_OFF, Stop(StopReason.UNSPECIFIED, open=open_end)),)
        mode = Mode.HALTED if halted else Mode.OFF
        following = knowledge._replace(mode=mode, next_pc=at, last_pc=NOWHERE, inferred=None, trap=None)
        calls = walk.calls.effect(clears=True)
        return StepResult(
            Step(walk.path, self._states.state(following), reports, calls=calls), not walk.calls.overflowed
        )

    def _open_end(self, knowledge: HartKnowledge, qual_status: int) -> Open | None:
        """Return why the next instruction is not known where tracing stops."""
        if knowledge.mode not in (Mode.ON, Mode.TRAPPED):
            return None
        if knowledge.mode is Mode.TRAPPED or self._states.walker(knowledge).raises(knowledge.last_pc):
            return Open.TRAP
        return Open.PLACE if qual_status == QualStatus.NO_CHANGE else Open.JUMP

    def _set_up(self, knowledge: HartKnowledge, packet: Packet) -> HartKnowledge:
        """Return what is known with the parameters and modes of a support packet."""
        if self._options.pinned:
            return knowledge
        parameters, modes = apply_support(packet, self._options)
        return knowledge._replace(setup=Setup(parameters, modes))


_Handler = Callable[[StepFunction, HartKnowledge, Packet, Stack, PredictionTables], StepResult]
_SYNCS: dict[SyncSubformat, _Handler] = {
    SyncSubformat.START: StepFunction._start_step,
    SyncSubformat.TRAP: StepFunction._trap_step,
    SyncSubformat.CONTEXT: StepFunction._context_change,
    SyncSubformat.SUPPORT: StepFunction._support,
}
