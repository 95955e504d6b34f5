"""The walk over the program under E-Trace: over the branches whose outcomes a packet reports, then up to its address.

A walk knows the instruction that retires next (`WalkProgress.next_pc`) or, where only the next packet determines that,
the last one that retired (`WalkProgress.last_pc`).

Source: Efficient Trace for RISC-V 2.0, "Decoder"; 2.0.5 for `irets`.
"""

from types import ModuleType
from typing import Any, NamedTuple

from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.prediction_tables import PredictionTables
from rvtrace_gdb.decode.etrace.return_stack import ReturnStack, StackLimits
from rvtrace_gdb.decode.etrace.state import WalkArrival, WalkGoal, WalkProgress
from rvtrace_gdb.decode.history.history import Path, RepeatPath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType, sequential_target
from rvtrace_gdb.decode.stepping import control_flow as stepping
from rvtrace_gdb.decode.stepping.control_flow import (
    BRANCH,
    CONTINUES,
    DIRECT,
    JUMP,
    MARKED_AFTER,
    MISSING,
    NO_MARK,
    NOWHERE,
    RUN_BITS,
    RUN_MASK,
    ClosedLoop,
    Segment,
    Segments,
    Stack,
)

_LOOKED_AHEAD = 1 << 12  # segments


class Run(NamedTuple):
    """The walk of RUN_BITS outcomes. *taken*, *left*, *peak*: as in `ReturnStack`; *outcomes*: as in `WalkProgress`."""

    path: Path
    next_pc: int
    taken: tuple[int | None, ...]
    left: tuple[int, ...]
    peak: int
    outcomes: tuple[tuple[int, bool], ...]


class Walker(stepping.ProgramWalker[Run]):
    """Walks one program for an encoder with these parameters and modes."""

    def __init__(self, image: Image, parameters: Parameters, modes: Modes) -> None:
        segments = Segments(image, stacked=modes.implicit_return, sequential=modes.sijump, swaps=False, absolute=True)
        super().__init__(image, segments, stacked=modes.implicit_return)
        self._limits = StackLimits(parameters)
        self._counts_all = parameters.iret_ext  # irets; else irdepth
        self._sequential = modes.sijump
        self._trains = modes.branch_prediction

    def start(self, next_pc: int, last_pc: int, stack: Stack) -> WalkProgress:
        """Start a walk."""
        walk = WalkProgress(next_pc, last_pc, ReturnStack(stack, self._limits))
        if self._sequential and next_pc != NOWHERE and last_pc != NOWHERE:
            walk.pair = self.pair(last_pc, next_pc)
        return walk

    # What instructions are to E-Trace

    def is_branch(self, address: int) -> bool:
        """Whether there is a branch at *address*."""
        segment = self._segments.segment_at(address)
        return segment.kind == BRANCH and len(segment.pcs) == 1

    def is_unknown(self, address: int) -> bool:
        """Whether there is no code at *address*."""
        segment = self._segments.segment_at(address)
        return segment.kind == MISSING and not segment.pcs

    def why_unknown(self, address: int) -> str:
        """Return why there is no code at *address*."""
        return self._segments.segment_at(address).why

    def is_uninferable(self, address: int) -> bool:
        """Whether only the trace determines the target of the instruction at *address*, apart from implicit returns."""
        segment = self._segments.segment_at(address)
        return segment.kind == JUMP and len(segment.pcs) == 1 and segment.taken == NOWHERE

    def is_return(self, address: int) -> bool:
        """Whether the instruction at *address* may be an implicit return."""
        segment = self._segments.segment_at(address)
        return segment.kind == JUMP and len(segment.pcs) == 1 and segment.returns

    def raises(self, address: int) -> bool:
        """Whether the instruction at *address* is ecall or ebreak."""
        return not self.is_unknown(address) and self.image.instruction(address).itype is IType.EXCEPTION

    def pair(self, last_pc: int, next_pc: int) -> Segment | None:
        """Return the jump at *next_pc* with its target if the instruction before it, at *last_pc*, determines it."""
        segment = self._segments.segments.get(next_pc) or self._segments.segment_at(next_pc)
        if segment.kind != JUMP or len(segment.pcs) > 1 or segment.taken != NOWHERE or self.is_unknown(last_pc):
            return None
        before, jump = self.image.instruction(last_pc), self.image.instruction(next_pc)
        target = sequential_target(before, last_pc, jump, self.image.xlen)
        if target is None or last_pc + before.length != next_pc:
            return None
        paired = Segment(JUMP, [next_pc], [jump.length // 2], segment.fall, target)
        paired.calls, paired.returns = segment.calls, segment.returns
        return paired

    # Over branches

    def compiled_by(self, kernel: ModuleType) -> None:
        """Have *kernel* walk in the usual case."""
        if not self._limits.repeats:
            self.compile(
                kernel,
                lowest_first=True,
                pops_known=self._counts_all,
                trains=self._trains,
                entries=self._limits.entries,
            )

    def spend(self, walk: WalkProgress, bits: int, count: int, *, runs: bool = True) -> None:
        """Walk over *count* branches. Bit 0 of *bits* is the outcome of the first one: 0 taken, 1 not taken."""
        calls = walk.calls
        usual = count and walk.next_pc != NOWHERE and walk.pair is None and calls.unused
        if self.compiled is not None and usual:
            outcomes = bits & (1 << count) - 1
            result = self.compiled.walk(walk.next_pc, outcomes, count, -1, calls.stack(), runs)
            if result is not None:
                parts, walk.next_pc, _, taken, left, _, branches, peak = result
                walk.parts += parts
                walk.outcomes += branches
                walk.irets = 0
                calls.follow(taken, left, peak)
                return
        self._spend_here(walk, bits, count, runs=runs)

    def _spend_here(self, walk: WalkProgress, bits: int, count: int, *, runs: bool) -> None:
        """Do the same as `spend` without the kernel."""
        known, parts, calls, trains = self._segments.segments, walk.parts, walk.calls, self._trains
        steps, first = 0, len(parts)  # since the last branch
        loop: ClosedLoop | None = None
        while count:
            next_pc = walk.next_pc
            if count >= RUN_BITS and runs and next_pc != NOWHERE and walk.pair is None:
                run = self._remembered_run(next_pc, bits & RUN_MASK, calls)
                if run is not None and calls.follow(run.taken, run.left, run.peak):
                    parts.append(run.path)
                    walk.outcomes += run.outcomes
                    walk.next_pc = run.next_pc
                    walk.irets = 0
                    bits >>= RUN_BITS
                    count -= RUN_BITS
                    steps, first = 0, len(parts)
                    continue
            plain = next_pc != NOWHERE and walk.pair is None
            segment = (known.get(next_pc) or self._segments.segment_at(next_pc)) if plain else self._next(walk)
            if next_pc != NOWHERE:
                parts.append(segment.pcs)
            if segment.kind == BRANCH:
                taken = not bits & 1
                if trains:
                    walk.outcomes.append((segment.pcs[-1], taken))
                walk.next_pc = segment.taken if taken else segment.fall
                walk.irets = 0
                bits >>= 1
                count -= 1
                steps, first = 0, len(parts)
                continue
            if not self._advance(walk, segment):
                walk.fault = _stop_reason(segment, f"{_outcomes_are(count)} left")
                return
            steps += 1
            if steps >= MARKED_AFTER and (loop := loop or ClosedLoop(calls)).holds(steps, walk.next_pc):
                walk.fault = f"{_outcomes_are(count)} left, and the code has none"
                del parts[first:]  # it is not known how often that ran
                return

    def predict(self, walk: WalkProgress, tables: PredictionTables, count: int, before: dict[int, int]) -> None:
        """Walk over *count* branches with the outcomes that *tables* predict, and train them.

        *before*: as for `train`.
        """
        parts, calls = walk.parts, walk.calls
        steps, straight = 0, len(parts)  # since the last branch
        loop: ClosedLoop | None = None
        done = 0
        # Once pc, predictor and calls are all the same as before, the rest of the count consists of whole rounds.
        marked, first, since, depth, mark, settled = NOWHERE, 0, 0, 0, NO_MARK, False
        while done < count:
            next_pc = walk.next_pc
            if steps == 0 and next_pc == marked and settled and done > since and calls.depth == depth:
                rounds = calls.rounds(mark, (count - done) // (done - since))
                if rounds:
                    parts.append(RepeatPath(Path(parts[first:]), rounds))
                    calls.repeat(mark, rounds)
                    done += rounds * (done - since)
                    marked, straight = NOWHERE, len(parts)
                    continue
            if steps == 0 and done >= MARKED_AFTER and done & done - 1 == 0:
                marked, first, since, depth, mark, settled = next_pc, len(parts), done, calls.depth, calls.mark(), True
            segment = self._next(walk)
            if next_pc != NOWHERE:
                parts.append(segment.pcs)
            if segment.kind == BRANCH:
                taken = tables.predicts(segment.pcs[-1])
                if tables.train(segment.pcs[-1], taken, before):
                    settled = False
                walk.next_pc = segment.taken if taken else segment.fall
                walk.irets = 0
                done += 1
                if loop is not None and steps >= MARKED_AFTER:
                    loop.leave()
                steps, straight = 0, len(parts)
                continue
            if not self._advance(walk, segment):
                walk.fault = _stop_reason(segment, f"{_outcomes_are(count - done)} left")
                return
            steps += 1
            if steps >= MARKED_AFTER and (loop := loop or ClosedLoop(calls)).holds(steps, walk.next_pc):
                walk.fault = f"{_outcomes_are(count - done)} left, and the code has none"
                del parts[straight:]  # it is not known how often that ran
                return

    # Up to an address

    def reach(self, walk: WalkProgress, goal: WalkGoal) -> WalkArrival:
        """Walk on without passing a branch until the instruction that the packet reports has retired.

        If the walk never reaches it, it is not known how much of the code ran; if code is missing, all code before it
        ran.
        """
        first = len(walk.parts)
        arrival = self._reach(walk, goal)
        if arrival is WalkArrival.FAULT and not walk.missing:
            del walk.parts[first:]
        return arrival

    def _reach(self, walk: WalkProgress, goal: WalkGoal) -> WalkArrival:
        calls, address = walk.calls, goal.address
        steps = 0
        loop: ClosedLoop | None = None
        first = 0  # instruction of a segment the walk may end at
        while True:
            known = walk.next_pc != NOWHERE
            segment = self._next(walk)
            pcs = segment.pcs if known else ()
            if goal.inferable and address in pcs[first:] and self._may_stop(walk, goal):
                last = pcs.index(address, first) + 1
                if self._comes_again(walk, segment, last, goal):
                    walk.fault = (
                        f"irets {goal.returns} fits two executions of the return at 0x{address:x}, which a call to its"
                        " own return address leads to"
                    )
                    return WalkArrival.FAULT
                walk.parts.append(pcs[:last])
                self._retire(walk, segment, last)
                return WalkArrival.INFERRED
            walk.parts.append(pcs)
            if address is None and segment.kind == BRANCH:
                walk.next_pc, walk.last_pc = NOWHERE, segment.pcs[-1]
                return WalkArrival.INFERRED
            reported = self._is_reported(walk, segment, goal)
            returned = calls.top() if segment.kind == JUMP and segment.returns and calls.depth else None
            if reported and self._counts_all:
                calls.pop()
            if reported or not self._advance(walk, segment):
                return self._end_at_jump(walk, segment, address, returned)
            # irets does not count a return whose target is reported, so an implicit one does not lead to the goal.
            first = int(returned is not None and goal.counted and goal.returns is not None)
            steps += 1
            if steps >= MARKED_AFTER and (loop := loop or ClosedLoop(calls)).holds(steps, walk.next_pc):
                walk.fault = f"the code never reaches 0x{address or 0:x}"
                return WalkArrival.FAULT

    def _comes_again(self, walk: WalkProgress, segment: Segment, last: int, goal: WalkGoal) -> bool:
        """Whether the reported instruction is a return to itself, so that irets is the same both times."""
        is_return = last == len(segment.pcs) and segment.kind == JUMP and segment.returns
        return is_return and goal.counted and goal.returns is not None and walk.calls.top() == goal.address

    def is_ambiguous(self, walk: WalkProgress, goal: WalkGoal) -> bool:
        """Whether irdepth fits the first return on the walk and also a later one, or the address.

        The decoder of 2.0 takes the first; its encoders may mean any of them (issue 254 of the specification).
        """
        ahead = WalkProgress(walk.next_pc, walk.last_pc, ReturnStack(walk.calls.stack(), self._limits))
        found = False
        for _ in range(_LOOKED_AHEAD):
            known = ahead.next_pc != NOWHERE
            segment = self._next(ahead)
            if goal.inferable and known and goal.address in segment.pcs and self._may_stop(ahead, goal):
                return found
            if self._is_reported(ahead, segment, goal):
                if found:
                    return True
                found = True
            if not self._advance(ahead, segment):
                return found and segment.kind == JUMP and ahead.calls.depth == goal.returns
        return False

    def retire_at(self, walk: WalkProgress, address: int, outcome: bool | None) -> None:
        """Retire the instruction at *address*. *outcome*: whether it was taken, if it is a branch."""
        walk.last_pc, walk.next_pc = address, NOWHERE
        segment = self._segments.segment_at(address)
        if segment.kind == BRANCH and len(segment.pcs) == 1 and outcome is not None:
            if self._trains:
                walk.outcomes.append((address, outcome))
            walk.next_pc = segment.taken if outcome else segment.fall
        elif segment.pcs:
            self._retire(walk, segment, 1)
        if self._sequential and walk.next_pc != NOWHERE:
            walk.pair = self.pair(walk.last_pc, walk.next_pc)

    def leave(self, walk: WalkProgress) -> None:
        """Apply the effect of the last instruction on the call stack, wherever it leads."""
        segment = self._next(walk)
        if segment.kind == JUMP and segment.returns and self._counts_all:
            walk.calls.pop()
        if segment.kind == JUMP and segment.calls:
            walk.calls.push(segment.fall)

    # Common parts

    def _next(self, walk: WalkProgress) -> Segment:
        """Return the segment that follows, or that of the last instruction if its successor is undecided."""
        if walk.pair is not None:
            pair, walk.pair = walk.pair, None
            return pair
        next_pc = walk.next_pc if walk.next_pc != NOWHERE else walk.last_pc
        return self._segments.segments.get(next_pc) or self._segments.segment_at(next_pc)

    def _advance(self, walk: WalkProgress, segment: Segment) -> bool:
        """Walk past a segment's last instruction, which is not a branch. False: only a packet determines the next
        one.
        """
        kind, calls = segment.kind, walk.calls
        if kind == DIRECT:
            if segment.calls:
                calls.push(segment.returns_to)
            walk.next_pc = segment.fall
        elif kind == CONTINUES:
            walk.next_pc = segment.fall
        elif kind == JUMP and segment.taken != NOWHERE:
            if segment.returns and self._counts_all:
                calls.pop()
            if segment.calls:
                calls.push(segment.fall)
            walk.next_pc = segment.taken
        elif kind == JUMP and segment.returns:
            address = calls.pop()
            if address is None:
                walk.next_pc, walk.last_pc = NOWHERE, segment.pcs[-1]
                return False
            walk.irets += 1
            walk.next_pc = address
        else:
            walk.last_pc = segment.pcs[-1] if segment.pcs else walk.last_pc
            walk.next_pc = segment.fall if kind == MISSING else NOWHERE
            walk.missing = kind == MISSING
            return False
        return True

    def _end_at_jump(
        self, walk: WalkProgress, segment: Segment, address: int | None, returned: int | None
    ) -> WalkArrival:
        """End a walk at a segment whose successor only a packet determines, which it does for a jump."""
        if segment.kind != JUMP or address is None:
            missing = "cannot resolve the branch: the packet has no outcome for it" if segment.kind == BRANCH else ""
            walk.fault = missing or _stop_reason(segment, "the next branch is reported" if address is None else "")
            if segment.kind == BRANCH:
                walk.next_pc, walk.last_pc = NOWHERE, segment.pcs[-1]
            return WalkArrival.FAULT
        if segment.calls:
            walk.calls.push(segment.fall)
        walk.parts.append((address,))
        self.retire_at(walk, address, None)
        return WalkArrival.RETURNED if returned == address else WalkArrival.JUMPED

    def _retire(self, walk: WalkProgress, segment: Segment, retired: int) -> None:
        """Retire the first *retired* instructions of a segment, and determine the next one if possible."""
        walk.last_pc = segment.pcs[retired - 1]
        if retired < len(segment.pcs):
            walk.next_pc = segment.pcs[retired]
        elif segment.kind == DIRECT or segment.kind == CONTINUES or (segment.taken != NOWHERE and segment.kind == JUMP):
            self._advance(walk, segment)
        else:
            walk.next_pc = segment.fall if segment.kind == MISSING else NOWHERE

    def _may_stop(self, walk: WalkProgress, goal: WalkGoal) -> bool:
        """Whether the number of implicit returns is the one that the packet reports, if any."""
        if goal.returns is None:
            return not goal.counted or walk.irets == 0
        if not self._counts_all:
            return goal.returns == walk.calls.depth
        return goal.returns == walk.irets

    def _is_reported(self, walk: WalkProgress, segment: Segment, goal: WalkGoal) -> bool:
        """Whether the packet reports the target of the return at the end of a segment although it could be implicit."""
        if goal.returns is None or segment.kind != JUMP or not segment.returns or segment.taken != NOWHERE:
            return False
        if walk.calls.depth == 0:
            return False
        return goal.returns == (walk.irets if self._counts_all else walk.calls.depth)

    def _run(self, pc: int, outcomes: int, stack: Stack) -> Run | None:
        walk = self.start(pc, NOWHERE, stack)
        self.spend(walk, outcomes, RUN_BITS, runs=False)
        used = walk.calls
        if walk.fault or walk.next_pc == NOWHERE or used.overflowed:
            return None
        peak, outcomes_seen = used.peak - used.first, tuple(walk.outcomes)
        return Run(
            Path(walk.parts), walk.next_pc, tuple(used.taken), left=tuple(used.left), peak=peak, outcomes=outcomes_seen
        )

    def _run_contents(self, run: Run) -> tuple[Any, ...]:
        return run.path, run.next_pc, 0, run.taken, run.left, run.peak, run.outcomes


def _stop_reason(segment: Segment, what: str) -> str:
    """Return why a walk cannot pass the end of a segment."""
    if segment.kind == MISSING:
        return segment.why
    end = "an uninferable jump" if segment.kind == JUMP else "an instruction that raises an exception"
    return f"{what} at {end}" if what else f"the code ends at {end}"


def _outcomes_are(count: int) -> str:
    return "1 branch outcome is" if count == 1 else f"{count} branch outcomes are"
