"""The walk over the program: the instructions for a number of halfwords and a sequence of branch outcomes.

A walk proceeds from segment to segment. Repeated outcomes (a HIST repeated HREPEAT times, a run of branches with the
same outcome) are walked until the walk returns to an earlier pc.
"""

from bisect import bisect_right
from types import ModuleType
from typing import Any, NamedTuple

from rvtrace_gdb.decode.history.history import Path, PathPart, RepeatPath
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.stepping import control_flow as stepping
from rvtrace_gdb.decode.stepping.control_flow import (
    BRANCH,
    CONTINUES,
    DIRECT,
    FOR_EVER,
    JUMP,
    MARKED_AFTER,
    MISSING,
    NO_MARK,
    NOWHERE,
    RUN_BITS,
    RUN_MASK,
    STEPS_AT_MOST,
    Segment,
    Segments,
    Stack,
    StackMark,
    WalkCalls,
    after,
)

_MOST_COMPILED = 1 << 62  # of outcomes and halfwords


class _WalkPoint(NamedTuple):
    """A point of a walk: the pc, the number of parts and halfwords before it, and the call stack there."""

    pc: int
    parts: int
    walked: int
    calls: StackMark


_NO_PLACE = _WalkPoint(NOWHERE, 0, 0, NO_MARK)


class Run(NamedTuple):
    """The walk of RUN_BITS outcomes. *taken* and *left* are as in `WalkCalls`."""

    path: Path
    pc: int
    halfwords: int
    taken: tuple[int | None, ...]
    left: tuple[int, ...]


class WalkResult(NamedTuple):
    """The result of a walk.

    parts      the instructions walked
    pc         the next instruction; NOWHERE if only the trace determines it
    halfwords  the length of the walk
    calls      the effect on the call stack
    last       the segment at whose undecided end the walk stopped (BRANCH or DIRECT without an outcome, JUMP, STOP), or
               None
    fault      why the code contradicts the trace, "" if it does not
    """

    parts: list[PathPart]
    pc: int
    halfwords: int
    calls: WalkCalls
    last: Segment | None = None
    fault: str = ""

    @property
    def path(self) -> Path | None:
        """The instructions walked, None if there are none."""
        return Path(self.parts) if self.parts else None

    def then(self, other: "WalkResult") -> "WalkResult":
        """Return this walk followed by *other*, which starts where this one ended."""
        self.calls.redo(tuple(other.calls.taken), tuple(other.calls.left))
        halfwords = self.halfwords + other.halfwords
        return WalkResult(
            self.parts + other.parts, other.pc, halfwords, calls=self.calls, last=other.last, fault=other.fault
        )

    @property
    def fault_address(self) -> int:
        """The address of a fault: the next instruction if it is known, else the last one."""
        return self.pc if self.pc >= 0 or not self.parts else self.last_pc or 0

    @property
    def last_pc(self) -> int | None:
        """The address of the last instruction walked, None if there is none."""
        if not self.parts:
            return None
        part = self.parts[-1]
        return part[-1] if isinstance(part, tuple) else part.last


class Walker(stepping.ProgramWalker[Run]):
    """Walks one program. In BTM, branches without an outcome are not taken."""

    def __init__(self, image: Image, options: Options) -> None:
        segments = Segments(
            image,
            stacked=bool(options.implicit_return),
            sequential=options.sequential_jump,
            reported=options.all_jumps and not options.btm,
        )
        super().__init__(image, segments, stacked=bool(options.implicit_return))
        self._btm = options.btm
        self._jump_reported = options.btm and (options.all_jumps or options.dialect.jump_ends_branch)

    def walk(self, pc: int, hist: int, limit: int | None, stack: Stack = None, *, runs: bool = True) -> WalkResult:
        """Walk *limit* halfwords from *pc* on, consuming the outcomes in *hist*, a HIST field.

        With *limit* None the walk ends after the last outcome. It ends early where only the trace determines what
        follows. *runs*: whether remembered runs may be used.
        """
        if self.compiled is not None and pc >= 0 and 0 < hist < _MOST_COMPILED and (limit or 0) < _MOST_COMPILED:
            bits, length = hist.bit_length() - 1, -1 if limit is None else limit
            result = self.compiled.walk(pc, hist, bits, length, stack, runs)
            if result is not None:
                parts, pc, walked, taken, left, last, _, _ = result
                calls = WalkCalls(stack)
                calls.redo(taken, left)
                return WalkResult(parts, pc, walked, calls, last)
        return self._walk_here(pc, hist, limit, stack, runs=runs)

    def _walk_here(self, pc: int, hist: int, limit: int | None, stack: Stack, *, runs: bool) -> WalkResult:
        """Do the same as `walk` without the kernel."""
        bits = hist.bit_length() - 1
        parts: list[PathPart] = []
        walked = 0
        calls = WalkCalls(stack)
        steps, first, before, marked = 0, 0, 0, _NO_PLACE  # since the last outcome
        known = self._segments.segments
        while bits if limit is None else walked < limit:
            if bits >= RUN_BITS and runs:
                run = self._fitting_run(pc, hist >> (bits - RUN_BITS) & RUN_MASK, walked, limit, calls)
                if run is not None:
                    parts.append(run.path)
                    walked += run.halfwords
                    bits -= RUN_BITS
                    pc = run.pc
                    steps, first, before = 0, len(parts), walked
                    continue
            segment = known.get(pc) or self._segments.segment_at(pc)
            if limit is not None and walked + segment.halfwords > limit:
                return _ended_in_segment(segment, parts, walked, limit, bits, calls)
            if segment.pcs:
                parts.append(segment.pcs)
                walked += segment.halfwords
            kind = segment.kind
            if kind == BRANCH and bits:
                bits -= 1
                pc = segment.taken if hist >> bits & 1 else segment.fall
                steps, first, before = 0, len(parts), walked
                continue
            if kind == CONTINUES:
                pc = segment.fall
            else:
                pc, stop = self._after(segment, hist, bits, walked, limit, calls)
                if stop is not None:
                    last = None if kind == MISSING else segment
                    return WalkResult(parts, pc, walked, calls=calls, last=last, fault=stop)
                if segment.reported:
                    bits -= 1
                    steps, first, before = 0, len(parts), walked
            # The trace did not decide anything here: if the pc is an earlier one, the code can only loop.
            steps += 1
            if steps < MARKED_AFTER:
                continue
            fault = _endless_loop(marked, pc, steps, bits, calls)
            if fault:  # it is not known how often that ran
                return WalkResult(parts[:first], pc, before, calls, last=None, fault=fault)
            if pc == marked.pc and steps > MARKED_AFTER:
                walked = _add_rounds(marked, parts, walked, limit, calls)
            if steps & steps - 1 == 0:
                marked = _WalkPoint(pc, len(parts), walked, calls.mark())
        fault = f"{_bit_count(bits)} of HIST more than there are branches" if bits else ""
        return WalkResult(parts, pc, walked, calls, last=None, fault=fault)

    def _fitting_run(self, pc: int, outcomes: int, walked: int, limit: int | None, calls: WalkCalls) -> Run | None:
        """Return the remembered walk of these outcomes if it does not go past the limit, and apply it to *calls*."""
        run = self._remembered_run(pc, outcomes, calls)
        if run is None or (limit is not None and walked + run.halfwords > limit):
            return None
        return run if calls.redo(run.taken, run.left) else None

    def _after(
        self, segment: Segment, hist: int, bits: int, walked: int, limit: int | None, calls: WalkCalls
    ) -> tuple[int, str | None]:
        """Return where a walk goes on after a segment, and None. If it ends there, return why: "" if the trace ends
        there, too, and else the contradiction.
        """
        kind = segment.kind
        if kind == DIRECT:
            fault = _direct_jump_fault(segment, hist, bits, walked, limit)
            if fault is None and segment.calls:
                calls.push(segment.returns_to)
            return segment.fall if fault is None else NOWHERE, fault
        if kind == BRANCH:
            if self._btm and limit is not None and walked < limit:
                return segment.fall, None
            return NOWHERE, "HIST has no bit for the branch" if walked != limit else ""
        if kind == MISSING:
            return segment.fall, segment.why if walked != limit else None
        target = self._jump_target(segment, calls) if kind == JUMP and walked != limit else NOWHERE
        return target, _unexpected_end(segment, bits, walked, limit) if target == NOWHERE else None

    def confirmed(self, walk: WalkResult, pc: int, hist: int, stack: Stack) -> WalkResult:
        """Return the *walk* of a contradicted message from *pc* on, but only as far as its HIST led if it then went
        round a loop: nothing but its I-CNT says how often.

        *hist* is 0 for a message without I-CNT, whose walk is returned as it is.
        """
        if not hist or not walk.parts:
            return walk
        told = self.walk(pc, hist, None, stack)
        if told.halfwords >= walk.halfwords:
            return walk
        rest = told if told.fault else self.walk(told.pc, 0b11, None, told.calls.stack())
        goes_round = rest is told or (rest.fault and not rest.parts)  # the walk to a further outcome never ends
        return told if goes_round else walk

    def walk_determined(self, pc: int, limit: int, stack: Stack = None) -> WalkResult:
        """Walk without outcomes as `walk` does, but stop before an instruction with an undecided successor.

        At a sequential jump, stop before the instruction that loads its register: only both determine the target.
        """
        walk = self.walk(pc, 1, limit, stack)
        if walk.last is None:
            return walk if walk.fault else self._before_end(walk)
        last = walk.last
        kept = len(last.pcs) - (2 if last.kind == JUMP and last.taken != NOWHERE else 1)
        walk.parts[-1:] = [last.pcs[:kept]] if kept else []
        before = last.ends[kept - 1] if kept else 0
        return WalkResult(walk.parts, last.pcs[kept], walk.halfwords - last.halfwords + before, walk.calls)

    def _before_end(self, walk: WalkResult) -> WalkResult:
        """Return *walk* without its last instruction if a message may be about that.

        This is a direct jump if these are reported, or a custom instruction that may jump (10.1).
        """
        last, pc = walk.parts[-1] if walk.parts else (), walk.last_pc
        if pc is None or not isinstance(last, tuple):
            return walk
        instruction = self.image.instruction(pc)
        if not instruction.custom and not (self._jump_reported and instruction.is_inferable_jump):
            return walk
        if self._stacked and instruction.itype is IType.INFERABLE_CALL:
            walk.calls.pop()  # it is made when the walk goes on
        rest = [*walk.parts[:-1], *([last[:-1]] if len(last) > 1 else [])]
        return WalkResult(rest, pc, walk.halfwords - instruction.length // 2, walk.calls)

    def _jump_target(self, segment: Segment, calls: WalkCalls) -> int:
        """Return the target of a jump in the middle of a walk; NOWHERE if only the trace determines it."""
        if segment.taken != NOWHERE:
            target = segment.taken
        elif segment.returns:
            address = calls.pop()
            target = NOWHERE if address is None else address
        else:
            return NOWHERE
        if segment.calls and target != NOWHERE:
            calls.push(segment.fall)
        return target

    def _run(self, pc: int, outcomes: int, stack: Stack) -> Run | None:
        walk = self.walk(pc, 1 << RUN_BITS | outcomes, None, stack, runs=False)
        if walk.fault or walk.pc == NOWHERE:
            return None
        return Run(Path(walk.parts), walk.pc, walk.halfwords, tuple(walk.calls.taken), tuple(walk.calls.left))

    def _run_contents(self, run: Run) -> tuple[Any, ...]:
        return run.path, run.pc, run.halfwords, run.taken, run.left, 0, None


class Walkers:
    """The walkers of all traced programs. Harts and contexts with the same image share one."""

    def __init__(self, options: Options, kernel: ModuleType | None = None) -> None:
        self._options = options
        self._kernel = kernel
        self._walkers: dict[int, Walker] = {}  # by the image's id; the walker keeps the image

    def walker_of(self, image: Image) -> Walker:
        """Return the walker of *image*."""
        walker = self._walkers.get(id(image))
        if walker is None:
            walker = self._walkers[id(image)] = Walker(image, self._options)
            if self._kernel is not None:
                walker.compile(self._kernel, falls_through=self._options.btm)
        return walker

    def forget(self) -> None:
        """Drop what the walkers remember. It is built again when needed."""
        for walker in self._walkers.values():
            walker.forget()


def _ended_in_segment(
    segment: Segment, parts: list[PathPart], walked: int, limit: int, bits: int, calls: WalkCalls
) -> WalkResult:
    """Return the walk that ends inside a segment."""
    count = bisect_right(segment.ends, limit - walked)
    end = segment.ends[count - 1] if count else 0
    if count:
        parts.append(segment.pcs[:count])
    fault = ""
    if walked + end != limit:
        fault = "I-CNT ends inside the instruction"
    elif bits:
        fault = f"{_bit_count(bits)} of HIST more than there are branches"
    return WalkResult(parts, segment.pcs[count], walked + end, calls, last=None, fault=fault)


def _direct_jump_fault(segment: Segment, hist: int, bits: int, walked: int, limit: int | None) -> str | None:
    """Return why a walk cannot pass a direct jump: "" if only the outcome at its end is missing, None if it can."""
    if not segment.reported:
        return None
    if not bits:
        return "HIST has no bit for the direct jump" if walked != limit else ""
    return None if hist >> (bits - 1) & 1 else "HIST says that a direct jump was not taken"


def _unexpected_end(segment: Segment, bits: int, walked: int, limit: int | None) -> str:
    """Return why a walk to an undecided end contradicts the trace, "" if it does not."""
    what = "an indirect jump" if segment.kind == JUMP else "an instruction that raises an exception"
    if segment.returns:
        what = "a return with no call before it"
    if bits:
        return f"{_bit_count(bits)} of HIST left at {what}"
    return f"I-CNT goes past {what}" if walked != limit else ""


def _bit_count(count: int) -> str:
    return "1 bit" if count == 1 else f"{count} bits"


def _endless_loop(since: _WalkPoint, pc: int, steps: int, bits: int, calls: WalkCalls) -> str:
    """Return the fault of a walk that no outcome ends: it is at *pc* after so many *steps*, "" if it may go on."""
    if bits and pc == since.pc and steps > MARKED_AFTER and calls.rounds(since.calls, FOR_EVER) == FOR_EVER:
        return f"{_bit_count(bits)} of HIST left, and the code has no branch"
    too_many = steps > STEPS_AT_MOST and steps & steps - 1 == 0
    return f"more than {steps - 1} jumps and branches in a row" if too_many else ""


def _add_rounds(
    since: _WalkPoint, parts: list[PathPart], walked: int, limit: int | None, calls: WalkCalls
) -> int:
    """Add as many rounds from that point as fit, but not the last one, and return the halfwords walked."""
    length = walked - since.walked
    rounds = calls.rounds(since.calls, FOR_EVER if limit is None else max(limit - walked - 1, 0) // length)
    if rounds:
        parts.append(RepeatPath(Path(parts[since.parts :]), rounds))
        calls.repeat(since.calls, rounds)
    return walked + rounds * length


_OUTCOMES = 1 << 16  # outcomes walked one by one; a program without a repeated pc after so many has no loop


class _RepetitionStart(NamedTuple):
    """The point at which repetition *done* began: pc, number of parts and halfwords before it, and call stack."""

    pc: int
    done: int
    parts: int
    halfwords: int
    calls: StackMark


def walk_repeated(walker: Walker, pc: int, hist: int, times: int, stack: Stack) -> WalkResult:
    """Walk the outcomes in *hist* *times* times from *pc* on.

    Sooner or later a repetition starts at an earlier pc, and everything repeats from there on, so that few steps are
    taken for any number. The pc is compared with one that is replaced after 1, 2, 4, 8, ... repetitions (Brent's
    algorithm).
    """
    parts: list[PathPart] = []
    calls = WalkCalls(stack)
    halfwords = done = steps = 0
    outcomes = hist.bit_length()
    while done < times:
        if steps & steps - 1 == 0:
            since = _RepetitionStart(pc, done, len(parts), halfwords, calls.mark())
        steps += 1
        walk = walker.walk(pc, hist, None, stack)
        taken, left = tuple(walk.calls.taken), tuple(walk.calls.left)
        calls.redo(taken, left)
        stack = after(stack, len(taken), left)
        parts += walk.parts
        pc, halfwords, done = walk.pc, halfwords + walk.halfwords, done + 1
        fault = walk.fault or (
            "the repeated HIST never leads back to the same pc" if steps * outcomes > _OUTCOMES else ""
        )
        if fault:
            return WalkResult(parts, pc, halfwords, calls=calls, last=walk.last, fault=fault)
        if pc == since.pc:
            rounds = calls.rounds(since.calls, (times - done) // (done - since.done))
            if rounds:
                if parts[since.parts :]:
                    parts.append(RepeatPath(Path(parts[since.parts :]), rounds))
                calls.repeat(since.calls, rounds)
                stack = calls.stack()
                halfwords += rounds * (halfwords - since.halfwords)
                done += rounds * (done - since.done)
    return WalkResult(parts, pc, halfwords, calls)
