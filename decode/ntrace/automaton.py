"""The meaning of each message: given a state, the code that ran, the next state, and what there is to report.

This is the readable truth of the decoder; `hart` only remembers its answers. Source: RISC-V N-Trace 1.0, the chapters
on messages, field encoding, optimization extensions and decoding; what other dialects do differently is in `dialect`.

Two counts run through a trace: the halfwords the HIST bits have led over, and the halfwords I-CNT has reported. A
message may carry one without the other, so between two messages with both the decoder is `ahead` = consumed - reported.
That is no part of the state (a loop would never come back to the same state with it) but an argument of `step`. So is
the call stack, for the same reason.
"""

from collections.abc import Callable

from decode.callstack import CLEARS, CallEffect, Calls, Stack, effect
from decode.history import Context, EventKind, Path
from decode.ntrace.layout import LAYOUTS, MAX_ICNT_BITS, MAX_REPEAT_BITS, BType, Evcode, Rcode, Sync, Tcode
from decode.ntrace.message import Message
from decode.ntrace.options import Options
from decode.ntrace.process import Format, Process
from decode.ntrace.repeats import walk_repeated
from decode.ntrace.state import (
    STARTS,
    STOPPED,
    Mode,
    State,
    Step,
    evcode_text,
    resumed,
    sync_text,
    trap_reports,
)
from decode.ntrace.walk import Walk, Walker, Walkers
from decode.reports import Report, contradiction
from decode.segments import BRANCH, DIRECT, JUMP, NOWHERE, STOP
from decode.streams import Program

SYNC_TCODES = frozenset(tcode for tcode, layout in LAYOUTS.items() if any(f.name == "sync" for f in layout.fixed))

_CONTINUOUS = frozenset({Sync.EXTERNAL_TRIGGER, Sync.PERIODIC, Sync.SEQUENTIAL_INSTRUCTION_COUNTER, Sync.TRACE_EVENT})
"""Reasons that do not interrupt the flow: F-ADDR is where it stands."""

_SILENT = frozenset({Sync.PERIODIC, Sync.SEQUENTIAL_INSTRUCTION_COUNTER})

_HALTS = frozenset({Evcode.DEBUG_MODE, Evcode.LOW_POWER})
"""Reasons of a stop while which nothing runs."""

_UNKNOWN = Context()


class Automaton:
    """The states and steps of one program under one set of options. *walkers*: those of other harts, to be shared."""

    def __init__(self, program: Program, options: Options, walkers: Walkers | None = None) -> None:
        self._program = program
        self._options = options
        self._dialect = options.dialect
        self._btm = options.btm
        self._mask = (1 << program.xlen) - 1
        sent = options.sent_address_bits
        self._sign = 1 << (sent - 1) if 0 < sent < program.xlen else 0
        self._walkers = walkers or Walkers(options)
        self._walker_in: dict[Context, Walker] = {}
        self._states: dict[tuple[Mode, int, int, Context], State] = {}
        self.lost = self._lost(_UNKNOWN)

    def forget(self) -> None:
        """Drops all states and their steps; those still held by a caller stay valid."""
        for state in self._states.values():
            state.clear()
        self._states = {(Mode.LOST, NOWHERE, 0, _UNKNOWN): self.lost}
        self._walkers.forget()
        self._walker_in.clear()

    def step(self, state: State, message: Message, ahead: int, stack: Stack = None) -> Step:
        """What *message* means in *state*. Contradictions between trace and program are reports, not exceptions."""
        icnt = message.fields.get("icnt", 0)
        if icnt >> MAX_ICNT_BITS:
            why = f"I-CNT has {icnt.bit_length()} bits, more than {MAX_ICNT_BITS}"
            return self.loss(state, ahead, stack, EventKind.LOSS, f"{message.name}: {why}")
        if message.tcode == Tcode.ERROR:
            return self._error(state, message, ahead, stack)
        if message.tcode == Tcode.OWNERSHIP:
            return self._ownership(state, message, ahead, stack)
        if state.mode is Mode.ON:
            return _HANDLERS[message.tcode](self, state, message, ahead, stack)
        if message.tcode in SYNC_TCODES:
            return self._resume(state, message, ahead)
        if message.tcode == Tcode.PROG_TRACE_CORRELATION:
            report = Report(EventKind.TRACE_OFF, evcode_text(message, self._dialect))
            mode = state.mode if state.mode in STOPPED else Mode.OFF
            return Step(None, self._state(mode, state.pc, 0, state.context), -ahead, (report,))
        return self.loss(state, ahead, stack, EventKind.LOSS, f"{message.name} while tracing is off")

    def can_leave_lost(self, message: Message) -> bool:
        """Whether a message means something without knowing where the hart is."""
        alone = (Tcode.ERROR, Tcode.OWNERSHIP, Tcode.PROG_TRACE_CORRELATION)
        return message.tcode in SYNC_TCODES or message.tcode in alone

    def tail(self, state: State, ahead: int, stack: Stack) -> Path | None:
        """What ran for certain and was not walked yet: I-CNT reported it, the HIST bits after it have not come."""
        return self._certain(state, ahead, stack).path

    def loss(self, state: State, ahead: int, stack: Stack, kind: EventKind, text: str) -> Step:
        """The flow is lost here, for a reason outside the automaton or in a message; what is certain still ran."""
        certain = self._certain(state, ahead, stack)
        report = Report(kind, text, lost=True)
        return Step(certain.path, self._lost(state.context), -ahead, (report,), calls=_cleared(certain))

    def _certain(self, state: State, ahead: int, stack: Stack) -> Walk:
        """The walk of what `tail` tells."""
        if state.mode is not Mode.ON or ahead >= 0:
            return Walk([], state.pc, 0, Calls(stack))
        return self._walker(state).walk(state.pc, 1, -ahead, stack)

    def _state(self, mode: Mode, pc: int, reference: int, context: Context) -> State:
        key = (mode, pc, reference, context)
        known = self._states.get(key)
        if known is None:
            known = self._states[key] = State(mode, pc, reference, context)
        return known

    def _on(self, pc: int, context: Context) -> State:
        """The state after an address was transmitted."""
        return self._state(Mode.ON, pc, pc, context)

    def _lost(self, context: Context) -> State:
        return self._state(Mode.LOST, NOWHERE, 0, context)

    def _walker(self, state: State) -> Walker:
        """Who walks the code of the state's context."""
        walker = self._walker_in.get(state.context)
        if walker is None:
            walker = self._walkers.of(self._program.image_of(state.context))
            self._walker_in[state.context] = walker
        return walker

    def _full_address(self, faddr: int) -> int:
        """The address F-ADDR stands for (8.1)."""
        return self._signed(faddr << 1 & self._mask)

    def _unique_address(self, state: State, uaddr: int) -> int:
        """The address U-ADDR stands for (8.1)."""
        return self._signed((state.reference ^ uaddr << 1) & self._mask)

    def _signed(self, address: int) -> int:
        """Of an address sent without its upper bits, all of it."""
        if not self._sign:
            return address
        low = address & 2 * self._sign - 1
        return (low ^ self._sign) - self._sign & self._mask

    # Messages in the middle of the flow (chapter 7, in its order)

    def _ownership(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        process = Process.of(message.fields["process"])
        if process.format is Format.RESERVED:
            report = Report(EventKind.NOTE, "Ownership with the reserved FORMAT 1 ignored")
            return Step(None, state, 0, (report,), counted=False)
        context = state.context._replace(prv=process.prv, virtual=bool(process.v))
        if process.format is Format.SCONTEXT:
            context = context._replace(scontext=process.context)
        elif process.format is Format.HCONTEXT:
            context = context._replace(hcontext=process.context)
        if context == state.context:
            return Step(None, state, 0, counted=False)
        certain = self._certain(state, ahead, stack)
        after = sum(map(len, certain.parts))
        report = Report(EventKind.CONTEXT, str(context), context=context, after=after)
        following = self._state(state.mode, state.pc, state.reference, context)
        taken = certain.calls.taken  # looked at, and still there
        calls = CallEffect(tuple(taken), tuple(address for address in reversed(taken) if address is not None))
        return Step(None, following, 0, (report,), counted=ahead < 0, calls=calls if taken else None)

    def _direct_branch(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        walk = self._covered(state, message, ahead, stack)
        pc = self._branched(state, walk)
        if walk.fault or pc == NOWHERE:
            return self._mismatch(state, message, ahead, stack, walk, walk.fault or "there is no branch to take")
        following = self._state(Mode.ON, pc, state.reference, state.context)
        return Step(walk.path, following, -ahead, calls=effect(walk.calls))

    def _branched(self, state: State, walk: Walk) -> int:
        """Where the branch at the end of a walk goes when taken, or the direct jump where those are reported too."""
        if walk.last is not None:
            return walk.last.taken if walk.last.kind == BRANCH else NOWHERE
        if (self._options.all_jumps or self._dialect.jump_ends_branch) and walk.last_pc is not None:
            ends = self._walker(state).image.instruction(walk.last_pc)
            return walk.pc if ends.is_inferable_jump else NOWHERE
        return NOWHERE

    def _indirect_branch(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        walk = self._covered(state, message, ahead, stack)
        pc = self._unique_address(state, message.fields["uaddr"])
        b_type = message.fields["b_type"]
        fault = walk.fault or self._branch_without_bit(walk)
        if not fault and b_type == BType.JUMP and not self._can_jump(state, walk):
            fault = "there is no indirect jump"
        if fault:
            return self._mismatch(state, message, ahead, stack, walk, fault)
        epc = self._resumption(walk, trapped=b_type != BType.JUMP)
        reports = trap_reports(b_type, epc, pc, self._dialect)
        return Step(walk.path, self._on(pc, state.context), -ahead, reports, calls=effect(walk.calls))

    def _error(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        etype, ecode = message.fields["etype"], message.fields["ecode"]
        if etype == 0:
            text = f"the encoder lost messages (ECODE 0x{ecode:x})"
            return self.loss(state, ahead, stack, EventKind.OVERFLOW, text)
        text = f"the encoder reports error {etype} (ECODE 0x{ecode:x})"
        return self.loss(state, ahead, stack, EventKind.LOSS, text)

    def _sync(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        """ProgTraceSync, DirectBranchSync, IndirectBranchSync, IndirectBranchHistSync while tracing is on."""
        sync, pc = message.fields["sync"], self._full_address(message.fields["faddr"])
        b_type = message.fields.get("b_type", BType.JUMP)
        following = self._on(pc, state.context)
        why = sync_text(message, self._dialect)
        resumption = resumed(message, pc, self._dialect)
        if sync == Sync.RESTART_FROM_FIFO_OVERRUN:
            step = self.loss(state, ahead, stack, EventKind.OVERFLOW, why)
            return step._replace(state=following, reports=step.reports + resumption)
        walk = self._covered(state, message, ahead, stack)
        fault = walk.fault or self._broken_flow(state, walk, message, pc, b_type)
        if sync in self._dialect.keeps_state and "hist" not in message.fields and self._branch_without_bit(walk):
            return self._marked(state, message, ahead, stack)
        if fault and sync in STARTS:
            step = self.loss(state, ahead, stack, EventKind.LOSS, f"{why}, and no message of the stop before it")
            return step._replace(state=following, reports=step.reports + resumption)
        if fault and self._lacks_hist(message, walk):
            report = Report(EventKind.LOSS, f"{why}, and no HIST for the branches before it", lost=True)
            return Step(walk.path, following, -ahead, (report, *resumption), calls=_cleared(walk))
        if fault:
            step = self._mismatch(state, message, ahead, stack, walk, fault)
            return step._replace(state=following, reports=step.reports + resumption)
        epc = self._resumption(walk, trapped=b_type != BType.JUMP)
        reports = trap_reports(b_type, epc, pc, self._dialect)
        if sync not in _SILENT:
            kind = EventKind.TRACE_ON if sync in STARTS else EventKind.SYNC
            reports += (Report(kind, why, next_pc=pc),)
        kept = effect(walk.calls) if sync in self._dialect.keeps_state else _cleared(walk)
        return Step(walk.path, following, -ahead, reports, calls=kept)

    def _marked(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        """A marker in the middle of HIST, which goes on (rc7): its bits are to come."""
        pc = self._full_address(message.fields["faddr"])
        report = Report(EventKind.SYNC, sync_text(message, self._dialect), next_pc=pc)
        step = self._counted(state, message, ahead, stack, message.fields["icnt"])
        if step.state.mode is not Mode.ON:
            return step
        return step._replace(
            state=self._state(Mode.ON, step.state.pc, pc, state.context), reports=(*step.reports, report)
        )

    def _resource_full(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        rcode, value = message.fields["rcode"], message.fields["rdata"]
        if rcode == Rcode.ICNT:
            if value >> MAX_ICNT_BITS:
                text = f"I-CNT has {value.bit_length()} bits, the maximum is {MAX_ICNT_BITS}"
                return self.loss(state, ahead, stack, EventKind.LOSS, text)
            return self._counted(state, message, ahead, stack, value)
        if rcode == Rcode.HIST:
            return self._outcomes(state, message, ahead, stack, value, 1)
        if rcode == Rcode.REPEATED_HIST:
            return self._outcomes(state, message, ahead, stack, value, message.fields["hrepeat"])
        if rcode in self._dialect.run_rcodes:
            hist = 0b10 | self._dialect.run_rcodes[rcode]
            return self._outcomes(state, message, ahead, stack, hist, value)
        text = f"ResourceFull with RCODE {rcode}, which is not defined"
        return self.loss(state, ahead, stack, EventKind.LOSS, text)

    def _counted(self, state: State, message: Message, ahead: int, stack: Stack, icnt: int) -> Step:
        """I-CNT alone: as far as the code leads without an outcome."""
        if icnt <= ahead:
            return Step(None, state, -icnt)
        walk = self._walker(state).walk_determined(state.pc, icnt - ahead, stack)
        if walk.fault:
            return self._mismatch(state, message, ahead, stack, walk, walk.fault)
        following = self._state(Mode.ON, walk.pc, state.reference, state.context)
        return Step(walk.path, following, walk.halfwords - icnt, calls=effect(walk.calls))

    def _outcomes(self, state: State, message: Message, ahead: int, stack: Stack, hist: int, times: int) -> Step:
        """*times* times the same outcomes, and what I-CNT had told of more."""
        if not hist:
            return self.loss(state, ahead, stack, EventKind.LOSS, "ResourceFull: HIST has no stop bit")
        if times >> MAX_REPEAT_BITS:
            text = f"ResourceFull: HREPEAT has {times.bit_length()} bits, more than {MAX_REPEAT_BITS}"
            return self.loss(state, ahead, stack, EventKind.LOSS, text)
        walker = self._walker(state)
        if times == 1:
            walk = walker.walk(state.pc, hist, None, stack)
        else:
            walk = walk_repeated(walker, state.pc, hist, times, stack)
        if walk.fault:
            step = self._mismatch(state, message, ahead, stack, walk, walk.fault)
            return step if ahead < 0 else step._replace(ahead=0, counted=False)  # as below: for any `ahead`
        if ahead + walk.halfwords < 0:
            further = walker.walk_determined(walk.pc, -ahead - walk.halfwords, walk.calls.stack())
            walk = walk if further.fault else walk.then(further)
        following = self._state(Mode.ON, walk.pc, state.reference, state.context)
        return Step(walk.path, following, walk.halfwords, counted=ahead < 0, calls=effect(walk.calls))

    def _correlation(self, state: State, message: Message, ahead: int, stack: Stack) -> Step:
        walk = self._covered(state, message, ahead, stack)
        if walk.fault:
            return self._mismatch(state, message, ahead, stack, walk, walk.fault)
        mode = Mode.HALTED if message.fields["evcode"] in _HALTS else Mode.OFF
        pc = self._resumption(walk, trapped=mode is Mode.OFF)  # a jump that need not be reported was none to report
        if walk.last is not None and walk.last.kind in (DIRECT, STOP):  # a jump HIST has no bit for; a trap follows
            pc = walk.last.fall if walk.last.kind == DIRECT else NOWHERE
        untold = self._untold(walk) if pc == NOWHERE and mode is Mode.OFF else ""
        report = Report(EventKind.TRACE_OFF, evcode_text(message, self._dialect) + untold)
        return Step(walk.path, self._state(mode, pc, 0, state.context), -ahead, (report,), calls=_cleared(walk))

    def _untold(self, walk: Walk) -> str:
        """Why nobody knows what comes next where tracing stops."""
        if walk.last is not None and walk.last.kind == BRANCH:
            return " at a branch whose outcome is not in the trace"
        if walk.last is not None and walk.last.kind == STOP:
            return " at a trap whose handler is not in the trace"
        return " at a jump whose target is not in the trace"

    # What they have in common

    def _covered(self, state: State, message: Message, ahead: int, stack: Stack) -> Walk:
        """The walk of a message with I-CNT, and HIST if it has one; a jump that was reported has been made."""
        hist = message.fields.get("hist", 1)
        limit = message.fields["icnt"] - ahead
        if not hist:
            return Walk([], state.pc, 0, Calls(stack), None, "HIST has no stop bit")
        if limit < 0:
            why = f"the branches in HIST are {-limit} halfwords further than I-CNT"
            return Walk([], state.pc, 0, Calls(stack), None, why)
        return self._walker(state).walk(state.pc, hist, limit, stack)

    def _resumption(self, walk: Walk, *, trapped: bool = False) -> int:
        """Where execution goes on after a walk, NOWHERE when only the trace can tell.

        *trapped*: a trap was reported there, and no jump: one that the walk ended at was not to be reported. Takes the
        return of a jump off the call stack, and remembers its call.
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

    def _branch_without_bit(self, walk: Walk) -> str:
        missing = walk.last is not None and walk.last.kind in (BRANCH, DIRECT) and not self._btm
        return "HIST has no bit for the branch" if missing else ""

    def _lacks_hist(self, message: Message, walk: Walk) -> bool:
        """Whether outcomes are missing because ProgTraceSync cannot report them (8.5, note 2)."""
        return message.tcode == Tcode.PROG_TRACE_SYNC and bool(self._branch_without_bit(walk))

    def _can_jump(self, state: State, walk: Walk) -> bool:
        """Whether the last instruction may go where only the trace knows: a jump, or a custom instruction (10.1).

        An encoder that does not report traps shows ecall like a jump.
        """
        if walk.last is not None:
            return walk.last.kind in (JUMP, STOP)
        return walk.last_pc is not None and self._walker(state).image.instruction(walk.last_pc).custom

    def _broken_flow(self, state: State, walk: Walk, message: Message, pc: int, b_type: int) -> str:
        """Why the flow cannot have come to F-ADDR, "" when it can.

        HIST may lack the bit of a branch that was the last instruction: F-ADDR tells its outcome.
        """
        if b_type != BType.JUMP or self._can_jump(state, walk) or message.fields["sync"] not in _CONTINUOUS | STARTS:
            return ""
        if walk.last is not None and walk.last.kind == BRANCH:
            possible = pc in (walk.last.taken, walk.last.fall)
            return "" if possible else f"the branch cannot lead to F-ADDR 0x{pc:x}"
        here = walk.last.fall if walk.last is not None else walk.pc
        return "" if here == pc else f"F-ADDR says 0x{pc:x}"

    def _resume(self, state: State, message: Message, ahead: int) -> Step:
        """A synchronizing message while lost or off: decoding starts at its address."""
        pc = self._full_address(message.fields["faddr"])
        elsewhere = state.mode in STOPPED and state.pc not in (NOWHERE, pc)
        untold = state.mode is Mode.OFF and state.pc == NOWHERE
        first, *rest = resumed(message, pc, self._dialect)
        reports = (first._replace(elsewhere=elsewhere, untold=untold), *rest)
        return Step(None, self._on(pc, state.context), -ahead, reports, calls=CLEARS)

    def _mismatch(self, state: State, message: Message, ahead: int, stack: Stack, walk: Walk, why: str) -> Step:
        image = self._walker(state).image
        certain = self._certain(state, ahead, stack)
        path = (walk if walk.halfwords >= certain.halfwords else certain).path
        report = contradiction(self._program, image, walk.at, why, message.name)
        return Step(path, self._lost(state.context), -ahead, (report,), calls=_cleared(walk, certain))


def _cleared(*walks: Walk) -> CallEffect:
    """The effect of a step that forgets the call stack, but only after these walks used it."""
    longest = max((walk.calls.taken for walk in walks), key=len)
    return CallEffect(tuple(longest), (), True) if longest else CLEARS


_Handler = Callable[[Automaton, State, Message, int, Stack], Step]
_HANDLERS: dict[int, _Handler] = {
    Tcode.DIRECT_BRANCH: Automaton._direct_branch,
    Tcode.INDIRECT_BRANCH: Automaton._indirect_branch,
    Tcode.PROG_TRACE_SYNC: Automaton._sync,
    Tcode.DIRECT_BRANCH_SYNC: Automaton._sync,
    Tcode.INDIRECT_BRANCH_SYNC: Automaton._sync,
    Tcode.RESOURCE_FULL: Automaton._resource_full,
    Tcode.INDIRECT_BRANCH_HIST: Automaton._indirect_branch,
    Tcode.INDIRECT_BRANCH_HIST_SYNC: Automaton._sync,
    Tcode.PROG_TRACE_CORRELATION: Automaton._correlation,
}
