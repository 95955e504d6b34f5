"""The step function of the N-Trace decoder: for a state and a message, the code that ran, the next state, and reports.

This module defines what messages mean; `hart` only remembers its results. Source: RISC-V N-Trace 1.0, the chapters on
messages, field encoding, optimization extensions and decoding; the differences of other dialects are in `options`. The
file is longer than others because it is one table, of all messages that change one state.

A decoder counts halfwords twice: those that the HIST bits have covered, and those that I-CNT has reported. A message
may have one without the other, so that between two messages with both the decoder is `ahead` = covered - reported. This
number is not part of the state, because a loop would never return to the same state with it, but an argument of `step`.
For the same reason the call stack is an argument.
"""

from collections.abc import Callable
from dataclasses import replace

from rvtrace_gdb.decode.history.events import (
    ContextChange,
    EventKind,
    Loss,
    LossCause,
    Note,
    NoteCause,
    Open,
    StartReason,
)
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.ntrace.event_step import hart_event_step, is_hart_event, sample_step
from rvtrace_gdb.decode.ntrace.in_circuit import hart_event
from rvtrace_gdb.decode.ntrace.messages import (
    LAYOUTS,
    MAX_RUN_BITS,
    VENDOR_SYNCS,
    BType,
    Evcode,
    Message,
    ProcessField,
    ProcessFormat,
    Rcode,
    Sync,
    Tcode,
)
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.state import (
    STARTS,
    STOPPED,
    Mode,
    State,
    Step,
    impossible_value,
    resumption_reports,
    start_of,
    stop_of,
    trap_reports,
)
from rvtrace_gdb.decode.ntrace.walk import Walker, Walkers, WalkResult, walk_repeated
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.control_flow import (
    BRANCH,
    CLEARS,
    DIRECT,
    JUMP,
    NOWHERE,
    STOP,
    CallEffect,
    Stack,
    WalkCalls,
    effect,
)
from rvtrace_gdb.decode.stepping.reports import Report, contradiction_report

SYNC_TCODES = frozenset(tcode for tcode, layout in LAYOUTS.items() if any(f.name == "sync" for f in layout.fixed))

_CONTINUOUS = frozenset(sync for sync in Sync if sync.goes_on)
"""SYNC values that do not interrupt the flow: F-ADDR is the next instruction."""

_SILENT = frozenset(sync for sync in Sync if sync.silent)

_HALTS = frozenset({Evcode.DEBUG_MODE, Evcode.LOW_POWER})
"""EVCODE values of a stop during which the hart does not run."""

_UNKNOWN = ProgramContext()


class StepFunction:
    """The states and steps of one program under one set of options. *walkers* are shared with other harts."""

    def __init__(self, program: Program, options: Options, walkers: Walkers | None = None) -> None:
        self.program = program
        self._options = options
        self._dialect = options.dialect
        self._btm = options.btm
        self.mask = (1 << program.xlen) - 1
        sent = options.sent_address_bits
        self._sign = 1 << (sent - 1) if 0 < sent < program.xlen else 0
        self._walkers = walkers or Walkers(options)
        self._walker_of_context: dict[ProgramContext, Walker] = {}
        self._states: dict[tuple[Mode, int, int, ProgramContext, int], State] = {}
        self.lost = self._lost_state(_UNKNOWN)

    def forget(self) -> None:
        """Drop all states and their steps. States that a caller still holds stay valid."""
        for state in self._states.values():
            state.clear()
        self._states = {(Mode.LOST, NOWHERE, 0, _UNKNOWN, NOWHERE): self.lost}
        self._walkers.forget()
        self._walker_of_context.clear()

    def step(self, state: State, message: Message, ahead: int, stack: Stack = None) -> Step:
        """Return the step of *message* in *state*.

        Contradictions between trace and program are reports, not exceptions.
        """
        why = impossible_value(message, ahead)
        if why is not None:
            return self.loss(state, ahead, stack, EventKind.LOSS, why)
        if message.tcode == Tcode.ERROR:
            return self._error(state, message, ahead, stack)
        if message.tcode == Tcode.OWNERSHIP:
            return self._ownership(state, message, ahead, stack)
        if is_hart_event(message):
            event = hart_event(message, ports=self._dialect.stimulus_ports)
            assert event is not None
            return hart_event_step(self, state, message, event)
        if self._is_sample(state, message, ahead):
            return sample_step(self, state, message)
        if state.mode is Mode.ON:
            return HANDLERS[message.tcode](self, state, message, ahead, stack)
        if message.tcode in SYNC_TCODES:
            return self._resume_step(state, message, ahead)
        if message.tcode == Tcode.PROG_TRACE_CORRELATION:
            report = Report(EventKind.TRACE_OFF, stop_of(message, self._dialect))
            mode = state.mode if state.mode in STOPPED else Mode.OFF
            return Step(None, self.shared_state(mode, state.pc, state.reference, state.context), -ahead, (report,))
        return self.loss(state, ahead, stack, EventKind.LOSS, Loss(LossCause.WHILE_OFF, (message.name,)))

    def can_leave_lost(self, message: Message) -> bool:
        """Whether a message has a meaning while the pc of the hart is not known."""
        alone = (Tcode.ERROR, Tcode.OWNERSHIP, Tcode.PROG_TRACE_CORRELATION)
        return message.tcode in SYNC_TCODES or message.tcode in alone

    def after_event(self, state: State, address: int) -> State:
        """Return *state* after an event with this address, to which the next U-ADDR is relative."""
        return self.shared_state(state.mode, state.pc, address, state.context, state.branch)

    def _is_sample(self, state: State, message: Message, ahead: int) -> bool:
        """Whether a synchronizing message only says where the hart was: a PC sample, unless the flow is there."""
        if self._dialect.starts.get(message.fields.get("sync", -1)) is not StartReason.PC_SAMPLE:
            return False
        return state.mode is not Mode.ON or message.fields["icnt"] <= max(ahead, 0)

    def tail(self, state: State, ahead: int, stack: Stack) -> Path | None:
        """Return the instructions that ran for certain but are not in a step yet.

        I-CNT has reported them, and the HIST bits for what follows have not arrived.
        """
        return self._certain(state, ahead, stack).path

    def loss(self, state: State, ahead: int, stack: Stack, kind: EventKind, why: Loss) -> Step:
        """Return the step of a loss of the flow for the reason *why*.

        It contains the instructions that ran for certain.
        """
        certain = self._certain(state, ahead, stack)
        report = Report(kind, why, lost=True)
        return Step(certain.path, self._lost_state(state.context), -ahead, (report,), calls=_clearing_effect(certain))

    def _certain(self, state: State, ahead: int, stack: Stack) -> WalkResult:
        """Return the walk over the instructions that `tail` returns."""
        if state.mode is not Mode.ON or ahead >= 0:
            return WalkResult([], state.pc, 0, WalkCalls(stack))
        return self.walker(state).walk(state.pc, 1, -ahead, stack)

    def shared_state(
        self, mode: Mode, pc: int, reference: int, context: ProgramContext, branch: int = NOWHERE
    ) -> State:
        """Return the state in which this is known."""
        key = (mode, pc, reference, context, branch)
        known = self._states.get(key)
        if known is None:
            known = self._states[key] = State(mode, pc, reference, context, branch)
        return known

    def is_shared(self, state: State) -> bool:
        """Whether *state* is the one that `shared_state` returns, and not of before a `forget`."""
        key = (state.mode, state.pc, state.reference, state.context, state.branch)
        return self._states.get(key) is state

    def _on(self, pc: int, context: ProgramContext) -> State:
        """Return the state after the address *pc* was transmitted."""
        return self.shared_state(Mode.ON, pc, pc, context)

    def _lost_state(self, context: ProgramContext) -> State:
        return self.shared_state(Mode.LOST, NOWHERE, 0, context)

    def walker(self, state: State) -> Walker:
        """Return the walker for the code of the state's context."""
        walker = self._walker_of_context.get(state.context)
        if walker is None:
            walker = self._walkers.walker_of(self.program.image_of(state.context))
            self._walker_of_context[state.context] = walker
        return walker

    def full_address(self, faddr: int) -> int:
        """Return the address for F-ADDR (8.1)."""
        return self._sign_extended(faddr << 1 & self.mask)

    def unique_address(self, reference: int, uaddr: int) -> int:
        """Return the address for U-ADDR after the address *reference* (8.1)."""
        return self._sign_extended((reference ^ uaddr << 1) & self.mask)

    def _sign_extended(self, address: int) -> int:
        """Return the whole address if it was sent without its upper bits: they are copies of the highest bit sent."""
        if not self._sign:
            return address
        low = address & 2 * self._sign - 1
        return (low ^ self._sign) - self._sign & self.mask

    # Messages in the middle of the flow (chapter 7, in its order)

    def _ownership(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        process = ProcessField.from_field(message.fields["process"])
        if process.reserved:
            report = Report(EventKind.NOTE, Note(NoteCause.RESERVED_OWNERSHIP, (process.reserved,)))
            return Step(None, state, 0, (report,), counted=False)
        context = state.context._replace(prv=process.prv, virtual=bool(process.v))
        if process.format is ProcessFormat.SCONTEXT:
            context = context._replace(scontext=process.context)
        elif process.format is ProcessFormat.HCONTEXT:
            context = context._replace(hcontext=process.context)
        if context == state.context:
            return Step(None, state, 0, counted=False)
        certain = self._certain(state, ahead, stack)
        after = sum(map(len, certain.parts))
        report = Report(EventKind.CONTEXT, ContextChange(state.context, context), after=after)
        following = self.shared_state(state.mode, state.pc, state.reference, context)
        taken = certain.calls.taken  # popped by that walk, and pushed back
        calls = CallEffect(tuple(taken), tuple(address for address in reversed(taken) if address is not None))
        return Step(None, following, 0, (report,), counted=ahead < 0, calls=calls if taken else None)

    def _direct_branch(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        walk = self._walk_message(state, message, ahead, stack)
        pc = self._branch_target(state, walk)
        if walk.fault or pc == NOWHERE:
            return self._mismatch(state, message, ahead, stack, walk, walk.fault or "there is no branch to take")
        following = self.shared_state(Mode.ON, pc, state.reference, state.context)
        return Step(walk.path, following, -ahead, calls=effect(walk.calls))

    def _branch_target(self, state: State, walk: WalkResult) -> int:
        """Return the target of the branch at the end of a walk, or of the direct jump if these are reported too."""
        if walk.last is not None:
            return walk.last.taken if walk.last.kind == BRANCH else NOWHERE
        if (self._options.all_jumps or self._dialect.jump_ends_branch) and walk.last_pc is not None:
            ends = self.walker(state).image.instruction(walk.last_pc)
            return walk.pc if ends.is_inferable_jump else NOWHERE
        return NOWHERE

    def _indirect_branch(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        walk = self._walk_message(state, message, ahead, stack)
        pc = self.unique_address(state.reference, message.fields["uaddr"])
        b_type = message.fields["b_type"]
        fault = walk.fault or self._branch_without_bit(walk)
        if not fault and b_type == BType.JUMP and not self._can_jump(state, walk):
            fault = "there is no indirect jump"
        epc = NOWHERE if fault else self._resumption(walk, trapped=b_type != BType.JUMP)
        fault = fault or self._unreported_jump(walk, epc, b_type)
        if fault:
            return self._mismatch(state, message, ahead, stack, walk, fault)
        reports = trap_reports(b_type, epc, pc, self._dialect)
        return Step(walk.path, self._on(pc, state.context), -ahead, reports, calls=effect(walk.calls))

    def _error(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        etype, ecode = message.fields["etype"], message.fields["ecode"]
        if etype == 0:
            return self.loss(state, ahead, stack, EventKind.OVERFLOW, Loss(LossCause.MESSAGES_LOST, (ecode,)))
        return self.loss(state, ahead, stack, EventKind.LOSS, Loss(LossCause.ENCODER_ERROR, (etype, ecode)))

    def _sync(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        """Handle ProgTraceSync, DirectBranchSync, IndirectBranchSync and IndirectBranchHistSync while tracing is on."""
        sync, pc = message.fields["sync"], self.full_address(message.fields["faddr"])
        b_type = message.fields.get("b_type", BType.JUMP)
        following = self._on(pc, state.context)
        start = start_of(message, self._dialect)
        resumption = resumption_reports(message, pc, self._dialect)
        if sync == Sync.RESTART_FROM_FIFO_OVERRUN:
            step = self.loss(state, ahead, stack, EventKind.OVERFLOW, Loss(LossCause.FIFO_OVERRUN))
            return replace(step, state=following, reports=step.reports + resumption)
        walk = self._walk_message(state, message, ahead, stack)
        fault = walk.fault or self._broken_flow(state, walk, message, pc, b_type)
        if sync in self._dialect.keeps_state and "hist" not in message.fields and self._branch_without_bit(walk):
            return self._marker_sync(state, message, ahead, stack)
        if fault and (again := self._recounted_branch(state, message)) is not None:
            return again
        if fault and sync in STARTS:
            step = self.loss(state, ahead, stack, EventKind.LOSS, Loss(LossCause.NO_STOP, start=start))
            return replace(step, state=following, reports=step.reports + resumption)
        if fault and message.tcode == Tcode.PROG_TRACE_SYNC and self._branch_without_bit(walk):  # 8.5, note 2
            report = Report(EventKind.LOSS, Loss(LossCause.NO_HIST, start=start), lost=True)
            return Step(walk.path, following, -ahead, (report, *resumption), calls=_clearing_effect(walk))
        epc = NOWHERE if fault else self._resumption(walk, trapped=b_type != BType.JUMP)
        fault = fault or self._unreported_jump(walk, epc, b_type)
        if fault:
            step = self._mismatch(state, message, ahead, stack, walk, fault)
            if self._is_noise(state, sync, pc):
                return step
            return replace(step, state=following, reports=step.reports + resumption)
        reports = trap_reports(b_type, epc, pc, self._dialect)
        if sync not in _SILENT:
            kind = EventKind.TRACE_ON if sync in STARTS else EventKind.SYNC
            reports += (Report(kind, start, next_pc=pc),)
        kept = effect(walk.calls) if sync in self._dialect.keeps_state else _clearing_effect(walk)
        if self._dialect.recounts_branch and self._branch_without_bit(walk):
            following = self.shared_state(Mode.ON, pc, pc, state.context, walk.last_pc or NOWHERE)
        return Step(walk.path, following, -ahead, reports, calls=kept)

    def _recounted_branch(self, state: State, message: Message) -> Step | None:
        """Handle a synchronizing message that counts the branch of the one before it again, with the bit that it
        lacked.

        Returns None if the message does not do so.
        """
        hist, icnt = message.fields.get("hist", 0), message.fields["icnt"]
        if state.branch == NOWHERE or hist < 0b10:
            return None
        branch = self.walker(state).image.instruction(state.branch)
        outcome, rest = hist >> hist.bit_length() - 2 & 1, hist.bit_length() - 2
        target = state.branch + (branch.offset or 0 if outcome else branch.length) & self.mask
        fields = {"icnt": icnt - branch.length // 2, "hist": 1 << rest | hist & (1 << rest) - 1}
        if target != state.pc or fields["icnt"] < 0:
            return None
        once = message._replace(fields={**message.fields, **fields})
        step = self._sync(self._on(state.pc, state.context), once, 0, None)
        if any(report.lost for report in step.reports):
            return None
        note = Note(NoteCause.BRANCH_AGAIN, (message.name, state.branch))
        return replace(step, reports=(Report(EventKind.NOTE, note), *step.reports))

    def _marker_sync(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        """Handle a marker in the middle of a HIST that continues (rc7): its bits follow in a later message."""
        pc = self.full_address(message.fields["faddr"])
        report = Report(EventKind.SYNC, start_of(message, self._dialect), next_pc=pc)
        step = self._walk_icnt(state, message, ahead, stack, message.fields["icnt"])
        if step.state.mode is not Mode.ON:
            return step
        following = self.shared_state(Mode.ON, step.state.pc, pc, state.context)
        return replace(step, state=following, reports=(*step.reports, report))

    def _resource_full(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        rcode, value = message.fields["rcode"], message.fields["rdata"]
        if rcode == Rcode.ICNT:
            return self._walk_icnt(state, message, ahead, stack, value)
        if rcode == Rcode.HIST:
            return self._walk_hist(state, message, ahead, stack, value, 1)
        if rcode == Rcode.REPEATED_HIST:
            times = message.fields["hrepeat"]
            return self._walk_hist(state, message, ahead, stack, value, times, most=self._options.repeat_bits)
        if rcode in self._dialect.run_rcodes:
            hist = 0b10 | self._dialect.run_rcodes[rcode]
            most = max(MAX_RUN_BITS, self._options.repeat_bits)
            return self._walk_hist(state, message, ahead, stack, hist, value, most=most)
        return self.loss(state, ahead, stack, EventKind.LOSS, Loss(LossCause.UNDEFINED_RCODE, (rcode,)))

    def _walk_icnt(self, state: State, message: Message, ahead: int, stack: Stack, icnt: int) -> Step:
        """Handle I-CNT without HIST: walk as far as the code leads without an outcome."""
        if icnt <= ahead:
            return Step(None, state, -icnt)
        walk = self.walker(state).walk_determined(state.pc, icnt - ahead, stack)
        if walk.fault:
            return self._mismatch(state, message, ahead, stack, walk, walk.fault)
        following = self.shared_state(Mode.ON, walk.pc, state.reference, state.context)
        return Step(walk.path, following, walk.halfwords - icnt, calls=effect(walk.calls))

    def _walk_hist(
        self, state: State, message: Message, ahead: int, stack: Stack, hist: int, times: int, *, most: int = 1
    ) -> Step:
        """Handle *times* repetitions of the outcomes in *hist*, then the rest of what I-CNT has reported.

        *most*: the greatest number of bits that *times* can have.
        """
        if not hist:
            return self.loss(state, ahead, stack, EventKind.LOSS, Loss(LossCause.NO_STOP_BIT))
        if times >> most:
            why = Loss(LossCause.REPETITION_TOO_LARGE, (message.name, times.bit_length(), most))
            return self.loss(state, ahead, stack, EventKind.LOSS, why)
        walker = self.walker(state)
        if times == 1:
            walk = walker.walk(state.pc, hist, None, stack)
        else:
            walk = walk_repeated(walker, state.pc, hist, times, stack)
        if walk.fault:
            step = self._mismatch(state, message, ahead, stack, walk, walk.fault)
            return step if ahead < 0 else replace(step, ahead=0, counted=False)  # valid for any `ahead` >= 0, as below
        if ahead + walk.halfwords < 0:
            further = walker.walk_determined(walk.pc, -ahead - walk.halfwords, walk.calls.stack())
            walk = walk if further.fault else walk.then(further)
        following = self.shared_state(Mode.ON, walk.pc, state.reference, state.context)
        return Step(walk.path, following, walk.halfwords, counted=ahead < 0, calls=effect(walk.calls))

    def _correlation(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        walk = self._walk_message(state, message, ahead, stack)
        if walk.fault:
            return self._mismatch(state, message, ahead, stack, walk, walk.fault)
        mode = Mode.HALTED if message.fields["evcode"] in _HALTS else Mode.OFF
        pc = self._resumption(walk, trapped=mode is Mode.OFF)  # a jump that need not be reported counts as not reported
        if walk.last is not None and walk.last.kind in (DIRECT, STOP):  # a jump without a HIST bit; a trap follows
            pc = walk.last.fall if walk.last.kind == DIRECT else NOWHERE
        open_end = self._open_end(walk) if pc == NOWHERE and mode is Mode.OFF else None
        report = Report(EventKind.TRACE_OFF, stop_of(message, self._dialect)._replace(open=open_end))
        following = self.shared_state(mode, pc, state.reference, state.context)
        return Step(walk.path, following, -ahead, (report,), calls=_clearing_effect(walk))

    def _open_end(self, walk: WalkResult) -> Open:
        """Return why the next instruction is not known where tracing stops."""
        if walk.last is not None and walk.last.kind == BRANCH:
            return Open.BRANCH
        return Open.TRAP if walk.last is not None and walk.last.kind == STOP else Open.JUMP

    # Common parts

    def _walk_message(self, state: State, message: Message, ahead: int, stack: Stack) -> WalkResult:
        """Return the walk of a message with I-CNT, and with HIST if it has this field."""
        hist = message.fields.get("hist", 1)
        limit = message.fields["icnt"] - ahead
        if not hist:
            return WalkResult([], state.pc, 0, WalkCalls(stack), fault="HIST has no stop bit")
        if limit < 0:
            why = f"the branches in HIST are {-limit} halfwords further than I-CNT"
            return WalkResult([], state.pc, 0, WalkCalls(stack), fault=why)
        return self.walker(state).walk(state.pc, hist, limit, stack)

    def _resumption(self, walk: WalkResult, *, trapped: bool = False) -> int:
        """Return the next instruction after a walk, NOWHERE if only the trace determines it.

        *trapped*: the message reports a trap and no jump, so a jump at the end of the walk is one that need not be
        reported. Applies the call and return of such a jump to the call stack.
        """
        last = walk.last
        if last is None:
            return walk.pc
        if last.kind == STOP:
            return last.fall
        if last.kind == JUMP:
            returned = walk.calls.pop() if last.returns else None
            if last.calls:
                walk.calls.push(last.fall)
            if not trapped:
                return NOWHERE
            return last.taken if last.taken != NOWHERE else NOWHERE if returned is None else returned
        return last.fall if self._btm and last.kind == BRANCH else NOWHERE

    def _branch_without_bit(self, walk: WalkResult) -> str:
        missing = walk.last is not None and walk.last.kind in (BRANCH, DIRECT) and not self._btm
        return "HIST has no bit for the branch" if missing else ""

    def _unreported_jump(self, walk: WalkResult, epc: int, b_type: int) -> str:
        """Return why no trap can have followed a walk, "" if one can: the jump at its end has to be reported before."""
        possible = b_type == BType.JUMP or epc != NOWHERE or walk.last is None or walk.last.kind != JUMP
        return "" if possible else "a trap after a jump whose target was not reported"

    def _is_noise(self, state: State, sync: int, pc: int) -> bool:
        """Whether a synchronizing message that contradicts the flow is noise.

        It is if its reason is reserved, or if there is no code at its address and the program is complete there.
        """
        if sync not in self._dialect.starts and sync not in VENDOR_SYNCS:
            return True
        image = self.walker(state).image
        return not (self.program.partial or image.absent_at(pc) or image.knows(pc))

    def _can_jump(self, state: State, walk: WalkResult) -> bool:
        """Whether the target of the last instruction may come only from the trace: a jump or a custom instruction
        (10.1).

        An encoder that does not report traps reports ecall like a jump.
        """
        if walk.last is not None:
            return walk.last.kind in (JUMP, STOP)
        last = None if walk.last_pc is None else self.walker(state).image.instruction(walk.last_pc)
        return last is not None and (last.custom or last.served)

    def _broken_flow(self, state: State, walk: WalkResult, message: Message, pc: int, b_type: int) -> str:
        """Return why the flow cannot have reached F-ADDR, "" if it can.

        HIST may lack the bit of a branch that was the last instruction: F-ADDR shows its outcome.
        """
        if b_type != BType.JUMP or self._can_jump(state, walk) or message.fields["sync"] not in _CONTINUOUS | STARTS:
            return ""
        if walk.last is not None and walk.last.kind == BRANCH:
            possible = pc in (walk.last.taken, walk.last.fall)
            return "" if possible else f"the branch cannot lead to F-ADDR 0x{pc:x}"
        here = walk.last.fall if walk.last is not None else walk.pc
        return "" if here == pc else f"F-ADDR says 0x{pc:x}"

    def _resume_step(self, state: State, message: Message, ahead: int) -> Step:
        """Handle a synchronizing message while the pc is unknown or tracing is off: decoding starts at its address."""
        pc = self.full_address(message.fields["faddr"])
        moved = state.mode in STOPPED and state.pc not in (NOWHERE, pc)
        maybe_moved = state.mode is Mode.OFF and state.pc == NOWHERE
        first, *rest = resumption_reports(message, pc, self._dialect)
        reports = (first._replace(moved=moved, maybe_moved=maybe_moved), *rest)
        return Step(None, self._on(pc, state.context), -ahead, reports, calls=CLEARS)

    def _mismatch(self, state: State, message: Message, ahead: int, stack: Stack, walk: WalkResult, why: str) -> Step:
        """Return the step of a message that contradicts the program.

        Its walk is listed if HIST bits matched branches, or if code is missing. I-CNT alone matches any code (BTM). The
        F-ADDR of a synchronizing message may be anywhere on the walk, and what follows it would be listed twice.
        """
        image = self.walker(state).image
        certain = self._certain(state, ahead, stack)
        fitted = not self._btm and message.tcode not in SYNC_TCODES
        hist = message.fields.get("hist", int(message.tcode != Tcode.RESOURCE_FULL))
        confirmed = self.walker(state).confirmed(walk, state.pc, hist, stack)
        listed = (fitted or not image.knows(walk.fault_address)) and confirmed.halfwords >= certain.halfwords
        path = (confirmed if listed else certain).path
        report = contradiction_report(self.program, image, walk.fault_address, why, message.name)
        return Step(path, self._lost_state(state.context), -ahead, (report,), calls=_clearing_effect(walk, certain))


def _clearing_effect(*walks: WalkResult) -> CallEffect:
    """Return the effect of a step that clears the call stack after these walks have used it."""
    longest = max((walk.calls.taken for walk in walks), key=len)
    return CallEffect(tuple(longest), (), True) if longest else CLEARS


_Handler = Callable[[StepFunction, State, Message, int, Stack], Step]
HANDLERS: dict[int, _Handler] = {
    Tcode.DIRECT_BRANCH: StepFunction._direct_branch,
    Tcode.INDIRECT_BRANCH: StepFunction._indirect_branch,
    Tcode.PROG_TRACE_SYNC: StepFunction._sync,
    Tcode.DIRECT_BRANCH_SYNC: StepFunction._sync,
    Tcode.INDIRECT_BRANCH_SYNC: StepFunction._sync,
    Tcode.RESOURCE_FULL: StepFunction._resource_full,
    Tcode.INDIRECT_BRANCH_HIST: StepFunction._indirect_branch,
    Tcode.INDIRECT_BRANCH_HIST_SYNC: StepFunction._sync,
    Tcode.PROG_TRACE_CORRELATION: StepFunction._correlation,
}
