"""The meaning of each message: given a state, the code that ran, the next state, and what there is to report.

This is the readable truth of the decoder; `decoder` only remembers its answers. Source: RISC-V N-Trace 1.0.0-rc7,
chapters 7, 8 and 11, with the ratified rule that every synchronizing message resets the encoder.

Two counts run through a trace: the halfwords the HIST bits have led over, and the halfwords I-CNT has reported. A
message may carry one without the other, so between two messages with both the decoder is `ahead` = consumed - reported.
That is no part of the state (a loop would never come back to the same state with it) but an argument of `step`.
"""

from collections.abc import Callable
from pathlib import PurePath

from decode.history import EventKind, Path, RepeatPath
from decode.image import Image
from decode.ntrace.layout import LAYOUTS, MAX_ICNT_BITS, BType, Rcode, Sync, Tcode
from decode.ntrace.message import Message
from decode.ntrace.options import Options
from decode.ntrace.state import (
    STARTS,
    Mode,
    Report,
    State,
    Step,
    evcode_text,
    resumed,
    sync_text,
    trap_reports,
)
from decode.ntrace.walk import BRANCH, JUMP, STOP, Walk, Walker

SYNC_TCODES = frozenset(tcode for tcode, layout in LAYOUTS.items() if any(f.name == "sync" for f in layout.fixed))


_CONTINUOUS = frozenset(
    {Sync.EXTERNAL_TRIGGER, Sync.PERIODIC, Sync.SEQUENTIAL_INSTRUCTION_COUNTER, Sync.TRACE_EVENT}
)
"""Reasons that do not interrupt the flow: F-ADDR is where it stands."""

_SILENT = frozenset({Sync.PERIODIC, Sync.SEQUENTIAL_INSTRUCTION_COUNTER})


class Automaton:
    """The states and steps of one program under one set of options."""

    def __init__(self, image: Image, options: Options) -> None:
        self._walker = Walker(image, btm=options.btm)
        self._btm = options.btm
        self._mask = (1 << image.xlen) - 1
        self._image_name = PurePath(image.path).name or "the program"
        self._states: dict[tuple[Mode, int, int], State] = {}
        self.lost = self._state(Mode.LOST, -1, 0)

    def forget(self) -> None:
        """Drops all states and their steps; those still held by a caller stay valid."""
        for state in self._states.values():
            state.clear()
        self._states = {(Mode.LOST, -1, 0): self.lost}
        self._walker.forget()

    def step(self, state: State, message: Message, ahead: int) -> Step:
        """What *message* means in *state*. Contradictions between trace and program are reports, not exceptions."""
        icnt = message.fields.get("icnt", 0)
        if icnt >> MAX_ICNT_BITS:
            why = f"I-CNT has {icnt.bit_length()} bits, more than {MAX_ICNT_BITS}"
            return self.loss(state, ahead, EventKind.LOSS, f"{message.name}: {why}")
        if message.tcode == Tcode.ERROR:
            return self._error(state, message, ahead)
        if state.mode is Mode.ON:
            return _HANDLERS[message.tcode](self, state, message, ahead)
        if message.tcode in SYNC_TCODES:
            return self._resume(state, message, ahead)
        if message.tcode == Tcode.PROG_TRACE_CORRELATION:
            report = Report(EventKind.TRACE_OFF, evcode_text(message))
            return Step(None, self._state(Mode.OFF, state.pc, 0), -ahead, (report,))
        return self.loss(state, ahead, EventKind.LOSS, f"{message.name} while tracing is off")

    def can_leave_lost(self, message: Message) -> bool:
        """Whether a message means something without knowing where the hart is."""
        return message.tcode in SYNC_TCODES or message.tcode in (Tcode.ERROR, Tcode.PROG_TRACE_CORRELATION)

    def tail(self, state: State, ahead: int) -> Path | None:
        """What ran for certain and was not walked yet: I-CNT reported it, the HIST bits after it have not come."""
        if state.mode is not Mode.ON or ahead >= 0:
            return None
        return self._walker.walk(state.pc, 1, -ahead).path

    def loss(self, state: State, ahead: int, kind: EventKind, text: str) -> Step:
        """The flow is lost here, for a reason outside the automaton or in a message; what is certain still ran."""
        return Step(self.tail(state, ahead), self.lost, -ahead, (Report(kind, text, lost=True),))

    def _state(self, mode: Mode, pc: int, reference: int) -> State:
        key = (mode, pc, reference)
        known = self._states.get(key)
        if known is None:
            known = self._states[key] = State(mode, pc, reference)
        return known

    def _on(self, pc: int) -> State:
        """The state after an address was transmitted."""
        return self._state(Mode.ON, pc, pc)

    # Messages in the middle of the flow (chapter 7, in its order)

    def _direct_branch(self, state: State, message: Message, ahead: int) -> Step:
        walk = self._covered(state, message, ahead)
        fault = walk.fault or ("" if walk.last and walk.last.kind == BRANCH else "there is no branch to take")
        if fault or walk.last is None:
            return self._mismatch(state, message, ahead, walk, fault)
        return Step(walk.path, self._state(Mode.ON, walk.last.taken, state.reference), -ahead)

    def _indirect_branch(self, state: State, message: Message, ahead: int) -> Step:
        walk = self._covered(state, message, ahead)
        pc = state.reference ^ message.fields["uaddr"] << 1 & self._mask
        b_type = message.fields["b_type"]
        fault = walk.fault or self._branch_without_bit(walk)
        if not fault and b_type == BType.JUMP and not self._can_jump(walk):
            fault = "there is no indirect jump"
        if fault:
            return self._mismatch(state, message, ahead, walk, fault)
        return Step(walk.path, self._on(pc), -ahead, trap_reports(b_type, self._resumption(walk), pc))

    def _error(self, state: State, message: Message, ahead: int) -> Step:
        etype, ecode = message.fields["etype"], message.fields["ecode"]
        if etype == 0:
            return self.loss(state, ahead, EventKind.OVERFLOW, f"the encoder lost messages (ECODE 0x{ecode:x})")
        return self.loss(state, ahead, EventKind.LOSS, f"the encoder reports error {etype} (ECODE 0x{ecode:x})")

    def _sync(self, state: State, message: Message, ahead: int) -> Step:
        """ProgTraceSync, DirectBranchSync, IndirectBranchSync, IndirectBranchHistSync while tracing is on."""
        sync, pc = message.fields["sync"], message.fields["faddr"] << 1 & self._mask
        b_type = message.fields.get("b_type", BType.JUMP)
        if sync == Sync.RESTART_FROM_FIFO_OVERRUN:
            report = Report(EventKind.OVERFLOW, sync_text(message), lost=True)
            return Step(self.tail(state, ahead), self._on(pc), -ahead, (report, *resumed(message, pc)))
        walk = self._covered(state, message, ahead)
        fault = walk.fault or self._broken_flow(walk, message, pc, b_type)
        if fault and sync in STARTS:
            report = Report(EventKind.LOSS, f"{sync_text(message)}, and no message of the stop before it", lost=True)
            return Step(self.tail(state, ahead), self._on(pc), -ahead, (report, *resumed(message, pc)))
        if fault:
            step = self._mismatch(state, message, ahead, walk, fault)
            return step._replace(state=self._on(pc), reports=step.reports + resumed(message, pc))
        reports = trap_reports(b_type, self._resumption(walk), pc)
        if sync not in _SILENT:
            kind = EventKind.TRACE_ON if sync in STARTS else EventKind.SYNC
            reports += (Report(kind, sync_text(message), next_pc=pc),)
        return Step(walk.path, self._on(pc), -ahead, reports)

    def _resource_full(self, state: State, message: Message, ahead: int) -> Step:
        rcode = message.fields["rcode"]
        if rcode == Rcode.ICNT:
            return self._full_icnt(state, message, ahead)
        if rcode == Rcode.HIST:
            return self._full_hist(state, message, ahead, 1)
        if rcode == Rcode.REPEATED_HIST:
            return self._full_hist(state, message, ahead, message.fields["hrepeat"])
        return self.loss(state, ahead, EventKind.LOSS, f"ResourceFull with RCODE {rcode}, which is not defined")

    def _full_icnt(self, state: State, message: Message, ahead: int) -> Step:
        icnt = message.fields["rdata"]
        if icnt >> MAX_ICNT_BITS:
            return self.loss(state, ahead, EventKind.LOSS, f"I-CNT has {icnt.bit_length()} bits, the maximum is 22")
        if icnt <= ahead:
            return Step(None, state, -icnt)
        walk = self._walker.walk_determined(state.pc, icnt - ahead)
        if walk.fault:
            return self._mismatch(state, message, ahead, walk, walk.fault)
        return Step(walk.path, self._state(Mode.ON, walk.pc, state.reference), walk.halfwords - icnt)

    def _full_hist(self, state: State, message: Message, ahead: int, times: int) -> Step:
        """*times* times the same outcomes. The places repeat sooner or later, so any number takes few steps."""
        hist = message.fields["rdata"]
        if not hist:
            return self.loss(state, ahead, EventKind.LOSS, "ResourceFull: HIST has no stop bit")
        parts: list[Path | RepeatPath] = []
        pc, consumed, done = state.pc, 0, 0
        seen: dict[int, tuple[int, int, int]] = {}  # pc: repetitions, parts and halfwords before it
        while done < times:
            if pc in seen:
                before, first, halfwords = seen[pc]
                rounds = (times - done) // (done - before)
                if rounds and parts[first:]:
                    parts.append(RepeatPath(Path(parts[first:]), rounds))
                consumed += rounds * (consumed - halfwords)
                done += rounds * (done - before)
                seen.clear()
                continue
            seen[pc] = (done, len(parts), consumed)
            walk = self._walker.walk(pc, hist, None)
            if walk.fault:
                whole = walk._replace(parts=[*parts, *walk.parts], halfwords=consumed + walk.halfwords)
                return self._mismatch(state, message, ahead, whole, walk.fault)
            if walk.path:
                parts.append(walk.path)
            consumed += walk.halfwords
            pc = walk.pc
            done += 1
        path = None if not parts else parts[0] if len(parts) == 1 else Path(parts)
        return Step(path, self._state(Mode.ON, pc, state.reference), consumed, counted=False)

    def _repeat_branch(self, state: State, message: Message, ahead: int) -> Step:
        return self.loss(state, ahead, EventKind.LOSS, "RepeatBranch, which this decoder does not know yet")

    def _correlation(self, state: State, message: Message, ahead: int) -> Step:
        walk = self._covered(state, message, ahead)
        if walk.fault:
            return self._mismatch(state, message, ahead, walk, walk.fault)
        report = Report(EventKind.TRACE_OFF, evcode_text(message))
        return Step(walk.path, self._state(Mode.OFF, self._resumption(walk), 0), -ahead, (report,))

    # What they have in common

    def _covered(self, state: State, message: Message, ahead: int) -> Walk:
        """The walk of a message with I-CNT, and HIST if it has one."""
        hist = message.fields.get("hist", 1)
        limit = message.fields["icnt"] - ahead
        if not hist:
            return Walk([], state.pc, 0, None, "HIST has no stop bit")
        if limit < 0:
            return Walk([], state.pc, 0, None, f"the branches in HIST are {-limit} halfwords further than I-CNT")
        return self._walker.walk(state.pc, hist, limit)

    def _resumption(self, walk: Walk) -> int:
        """Where execution goes on after a walk, -1 when only the trace can tell."""
        if walk.last is None:
            return walk.pc
        if walk.last.kind == STOP:
            return walk.last.fall
        return walk.last.fall if self._btm and walk.last.kind == BRANCH else -1

    def _branch_without_bit(self, walk: Walk) -> str:
        missing = walk.last is not None and walk.last.kind == BRANCH and not self._btm
        return "HIST has no bit for the branch" if missing else ""

    def _can_jump(self, walk: Walk) -> bool:
        """Whether the last instruction may go where only the trace knows: a jump, or a custom instruction (10.1).

        An encoder that does not report traps shows ecall like a jump.
        """
        if walk.last is not None:
            return walk.last.kind in (JUMP, STOP)
        return walk.last_pc is not None and self._walker.image.instruction(walk.last_pc).custom

    def _broken_flow(self, walk: Walk, message: Message, pc: int, b_type: int) -> str:
        """Why the flow cannot have come to F-ADDR, "" when it can.

        HIST may lack the bit of a branch that was the last instruction: F-ADDR tells its outcome.
        """
        if b_type != BType.JUMP or self._can_jump(walk) or message.fields["sync"] not in _CONTINUOUS | STARTS:
            return ""
        if walk.last is not None and walk.last.kind == BRANCH:
            must_take = message.tcode == Tcode.DIRECT_BRANCH_SYNC and self._btm
            possible = (walk.last.taken,) if must_take else (walk.last.taken, walk.last.fall)
            return "" if pc in possible else f"the branch cannot lead to F-ADDR 0x{pc:x}"
        return "" if walk.pc == pc else f"F-ADDR says 0x{pc:x}"

    def _resume(self, state: State, message: Message, ahead: int) -> Step:
        """A synchronizing message while lost or off: decoding starts at its address."""
        pc = message.fields["faddr"] << 1 & self._mask
        elsewhere = state.mode is Mode.OFF and state.pc not in (-1, pc)
        first, *rest = resumed(message, pc)
        return Step(None, self._on(pc), -ahead, (first._replace(elsewhere=elsewhere), *rest))

    def _mismatch(self, state: State, message: Message, ahead: int, walk: Walk, why: str) -> Step:
        added = self._walker.image.is_added(walk.at)
        code = "the code read from the target" if added else self._image_name
        text = f"trace does not match {code} at 0x{walk.at:x}: {why} ({message.name})"
        certain = self._walker.walk(state.pc, 1, max(-ahead, 0))
        path = (walk if walk.halfwords >= certain.halfwords else certain).path
        return Step(path, self.lost, -ahead, (Report(EventKind.MISMATCH, text, lost=True),))


_Handler = Callable[[Automaton, State, Message, int], Step]
_HANDLERS: dict[int, _Handler] = {
    Tcode.DIRECT_BRANCH: Automaton._direct_branch,
    Tcode.INDIRECT_BRANCH: Automaton._indirect_branch,
    Tcode.PROG_TRACE_SYNC: Automaton._sync,
    Tcode.DIRECT_BRANCH_SYNC: Automaton._sync,
    Tcode.INDIRECT_BRANCH_SYNC: Automaton._sync,
    Tcode.RESOURCE_FULL: Automaton._resource_full,
    Tcode.INDIRECT_BRANCH_HIST: Automaton._indirect_branch,
    Tcode.INDIRECT_BRANCH_HIST_SYNC: Automaton._sync,
    Tcode.REPEAT_BRANCH: Automaton._repeat_branch,
    Tcode.PROG_TRACE_CORRELATION: Automaton._correlation,
}
