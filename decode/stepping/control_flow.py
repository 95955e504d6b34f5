"""The control flow that N-Trace and E-Trace decoders follow: segments of the program, and the return addresses.

A `Segment` is a piece of the program that can be taken as a whole: everything that inevitably runs from an address on,
through direct jumps, up to the next instruction whose successor is not determined by the code alone.

The call stack has the return addresses of the active calls, for returns that are not reported (implicit return, 1.0
chapter 9). Stacks are immutable and share their lower part. The effect of a message on a stack is stored apart from the
stack it was found with: the return addresses it popped, and those it left on top. So the messages of a function are
known, whatever its caller is.

A `ProgramWalker` goes over the program. Sequences of branch outcomes repeat even where messages do not, so the walks of
short sequences are remembered.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from rvtrace_gdb.decode.history.history import NO_CODE, Path
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction, sequential_target

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel import _kernel

CONTINUES, BRANCH, JUMP, STOP, MISSING, DIRECT = range(6)
"""How a segment ends: it reached the maximal length; a conditional branch; an uninferable jump; an instruction that
raises an exception (ecall, and ebreak but that of a semihosting call); missing code; a direct jump that matters (it is
reported, or it is a call to remember).
"""

_MAX_SEGMENT = 1024  # instructions
_BLOCK = 512  # bytes; long code is cut at multiples of it, so that it is the same pieces from wherever it is entered
_MOST_INSTRUCTIONS = 1 << 19  # instructions in all segments (about 0.1 KB each)

_CALLS = frozenset({IType.UNINFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN})
_SWAPS = frozenset({IType.COROUTINE_SWAP})

NOWHERE = -1
"""No address: unknown, or none exists."""


class Segment:
    """What inevitably runs from an address on.

    pcs        addresses of its instructions, in order of execution
    ends       halfwords up to and including each of them
    halfwords  of all of them
    kind       how it ends
    fall       the next address: after CONTINUES and DIRECT, always; after BRANCH, if not taken; MISSING: the address
               without code; JUMP and STOP: the next instruction in memory
    taken      BRANCH: its target. JUMP: its target if the instruction before determines it, else NOWHERE
    why        MISSING: what is missing
    calls      JUMP, DIRECT: the return address is remembered (*fall* of a JUMP, *returns_to* of a DIRECT)
    returns    JUMP: to the address remembered last
    reported   DIRECT: HIST has a bit for it
    """

    __slots__ = (
        "calls", "ends", "fall", "halfwords", "kind", "pcs", "reported", "returns", "returns_to", "taken", "why"
    )  # fmt: skip

    def __init__(
        self, kind: int, pcs: list[int], lengths: list[int], fall: int, taken: int = NOWHERE, why: str = ""
    ) -> None:
        self.kind = kind
        self.pcs = tuple(pcs)
        self.ends = tuple(accumulate(lengths))
        self.halfwords = self.ends[-1] if lengths else 0
        self.fall = fall
        self.taken = taken
        self.why = why
        self.calls = self.returns = self.reported = False
        self.returns_to = NOWHERE


class Segments:
    """The segments of one program under one set of options, built on first use."""

    def __init__(
        self,
        image: Image,
        *,
        stacked: bool,
        sequential: bool,
        reported: bool = False,
        swaps: bool = True,
        absolute: bool = False,
    ) -> None:
        """*stacked*: return addresses are remembered; *swaps*: a co-routine swap is a return and a call, not neither.

        *sequential*: targets that the instruction before a jump sets are known; *absolute*: so are those of jumps by
        x0. *reported*: the trace also has an outcome for direct jumps.
        """
        self.image = image
        self.segments: dict[int, Segment] = {}
        self._size = 0
        self._mask = (1 << image.xlen) - 1
        self._stacked = stacked
        self._sequential = sequential
        self._reported = reported
        self._absolute = absolute
        self._calls = _CALLS | _SWAPS if swaps else _CALLS
        self._returns = _RETURNS | _SWAPS if swaps else _RETURNS

    def segment_at(self, pc: int) -> Segment:
        """Return the segment that starts at *pc*."""
        segment = self.segments.get(pc)
        if segment is None:
            segment = self._build(pc)
            if self._size > _MOST_INSTRUCTIONS:
                self.forget()
            self._size += len(segment.pcs)
            self.segments[pc] = segment
        return segment

    def forget(self) -> None:
        """Drop all segments; they are built again when needed."""
        self.segments.clear()
        self._size = 0

    def _build(self, pc: int) -> Segment:
        pcs: list[int] = []
        lengths: list[int] = []
        before: Instruction | None = None
        while before is None or before.upper is not None or not _is_long(pcs, before, pc):
            try:
                instruction = self.image.instruction(pc)
            except CodeMissing:
                return Segment(MISSING, pcs, lengths, pc, why="there is no code")
            except UndecodableInstruction as error:
                return Segment(MISSING, pcs, lengths, pc, why=str(error))
            pcs.append(pc)
            lengths.append(instruction.length // 2)
            if instruction.itype is not IType.NONE:  # most are: it saves the calls
                end = self._segment_end(instruction, before, pcs, lengths)
                if end is not None:
                    return end
            before = instruction
            pc = pc + (instruction.offset if instruction.is_inferable_jump else instruction.length) & self._mask  # type: ignore[operator]
        return Segment(CONTINUES, pcs, lengths, pc)

    def _segment_end(
        self, instruction: Instruction, before: Instruction | None, pcs: list[int], lengths: list[int]
    ) -> Segment | None:
        """Return the segment that ends with *instruction*, None if it continues."""
        pc = pcs[-1]
        fall = pc + instruction.length & self._mask
        if instruction.is_inferable_jump:
            return self._direct(instruction, pcs, lengths, fall)
        if instruction.is_branch:
            assert instruction.offset is not None
            return Segment(BRANCH, pcs, lengths, fall, pc + instruction.offset & self._mask)
        if instruction.is_uninferable:
            segment = Segment(JUMP, pcs, lengths, fall)
            if self._sequential and before is not None:
                target = sequential_target(before, pcs[-2], instruction, self.image.xlen)
                segment.taken = NOWHERE if target is None else target
            if self._absolute and instruction.via is not None and instruction.via.register == 0:
                segment.taken = instruction.via.offset & self._mask & ~1
            if self._stacked:
                segment.calls = instruction.itype in self._calls
                segment.returns = instruction.itype in self._returns
            return segment
        stops = instruction.itype is IType.EXCEPTION and not instruction.served
        return Segment(STOP, pcs, lengths, fall) if stops else None

    def _direct(self, instruction: Instruction, pcs: list[int], lengths: list[int], fall: int) -> Segment | None:
        """Return the segment that ends with a direct jump, None if the jump does not matter."""
        if instruction.offset is None:
            return Segment(MISSING, pcs, lengths, pcs[-1], why="the jump table of cm.jt and cm.jalt (jvt) is not known")
        calls = self._stacked and instruction.itype is IType.INFERABLE_CALL
        if not calls and not self._reported:
            return None
        segment = Segment(DIRECT, pcs, lengths, pcs[-1] + instruction.offset & self._mask)
        segment.calls, segment.reported, segment.returns_to = calls, self._reported, fall
        return segment


def _is_long(pcs: list[int], last: Instruction, pc: int) -> bool:
    """Return whether a segment should end before *pc*."""
    return len(pcs) >= _MAX_SEGMENT or (pc ^ pcs[-1] >= _BLOCK and not last.is_inferable_jump)


Stack = tuple[int, "Stack", int] | None
"""(return address on top, the stack below, depth), None for the empty one."""

MAX_DEPTH = 1 << 11
"""Deeper stacks lose their oldest entries. The standard's encoders remember 32 calls, the deepest known 1023."""
KEPT_DEPTH = MAX_DEPTH // 2


def after(stack: Stack, taken: int, left: tuple[int, ...]) -> Stack:
    """Return *stack* without its *taken* uppermost entries and with *left* pushed on it, the last one on top."""
    for _ in range(taken):
        if stack is None:
            break
        stack = stack[1]
    return pushed(stack, left)


def pushed(stack: Stack, addresses: Sequence[int]) -> Stack:
    """Return *stack* with these return addresses on it, the last one on top."""
    depth = stack[2] if stack is not None else 0
    if depth + len(addresses) > MAX_DEPTH:
        stack, addresses = None, [*_newest(stack, KEPT_DEPTH - len(addresses)), *addresses[-KEPT_DEPTH:]]
        depth = 0
    for address in addresses:
        depth += 1
        stack = (address, stack, depth)
    return stack


def top(stack: Stack) -> int | None:
    """Return the return address on top, None for the empty stack."""
    return None if stack is None else stack[0]


def _newest(stack: Stack, count: int) -> list[int]:
    """Return the *count* uppermost addresses, the one on top last."""
    addresses: list[int] = []
    while stack is not None and len(addresses) < count:
        addresses.append(stack[0])
        stack = stack[1]
    return addresses[::-1]


class StackMark(NamedTuple):
    """A moment in the use of a stack: how many addresses had been popped, and those left."""

    taken: int
    left: tuple[int, ...]


class WalkCalls:
    """A stack used during one walk, and the effect of the walk on it.

    taken  what it popped off the stack it began with, None for each time that one was empty already
    left   what it left on top of the rest
    """

    __slots__ = ("_below", "_lowest", "left", "taken")

    def __init__(self, stack: Stack) -> None:
        self._below = stack
        self._lowest = 0  # how few were left at any time since the last mark
        self.taken: list[int | None] = []
        self.left: list[int] = []

    def push(self, address: int) -> None:
        """Push the return address of a call."""
        self.left.append(address)

    def pop(self) -> int | None:
        """Pop the target of a return, None if no call is known."""
        left = self.left
        if left:
            if len(left) <= self._lowest:
                self._lowest = len(left) - 1
            return left.pop()
        address = top(self._below)
        self.taken.append(address)
        if self._below is not None:
            self._below = self._below[1]
        return address

    def mark(self) -> StackMark:
        """Return this moment, for `rounds`."""
        self._lowest = len(self.left)
        return StackMark(len(self.taken), tuple(self.left))

    @property
    def lowest(self) -> int:
        """How few of the addresses left at the last mark have been there ever since."""
        return self._lowest

    def unmark(self, lowest: int) -> None:
        """Return to the mark before the last one. *lowest*: what `lowest` was when the last one was made."""
        self._lowest = min(self._lowest, lowest)

    def rounds(self, mark: StackMark, most: int) -> int:
        """Return how many times, at most *most*, the operations since *mark*, the last mark, can be
        repeated unchanged.
        """
        again = self.taken[mark.taken :]
        if not again and self._lowest >= len(mark.left):
            return most  # calls were made, and the older ones not touched
        if tuple(self.left) != mark.left:
            return 0
        count, below = 0, self._below
        while again and count < most:
            for address in again:
                if below is None or below[0] != address:
                    return count
                below = below[1]
            count += 1
        return most

    def repeat(self, mark: StackMark, times: int) -> None:
        """Repeat the operations since *mark* so many times, as `rounds` allows."""
        again, calls = self.taken[mark.taken :], self.left[len(mark.left) :]
        self.taken += again * times
        self._below = after(self._below, len(again) * times, ())
        if calls and not again:
            self.left += calls * min(times, MAX_DEPTH // len(calls) + 1)

    def stack(self) -> Stack:
        """The stack as it is now."""
        return pushed(self._below, self.left)

    def top(self) -> int | None:
        """The target of the next return."""
        return self.left[-1] if self.left else top(self._below)

    def redo(self, taken: tuple[int | None, ...], left: tuple[int, ...]) -> bool:
        """Repeat the effect of another walk; return whether it meets the same return addresses here."""
        own, below = len(self.left), self._below
        for count, address in enumerate(taken, 1):
            if count <= own:
                if self.left[-count] != address:
                    return False
            elif top(below) != address:
                return False
            else:
                below = below[1] if below is not None else None
        if taken:
            self.taken += taken[own:]
            self._below = below
            rest = max(own - len(taken), 0)
            del self.left[rest:]
            self._lowest = min(self._lowest, rest)
        self.left += left
        return True


@dataclass(slots=True)
class CallEffect:
    """The effect of a step on the call stack: it forgets the stack, or pops these return addresses off it and leaves
    others.

    *peak*: how much deeper than before the stack ever was, for encoders whose stack is not as deep as the program's.
    """

    taken: tuple[int | None, ...]
    left: tuple[int, ...]
    clears: bool = False
    peak: int = 0


CLEARS = CallEffect((), (), True)


def effect(calls: WalkCalls) -> CallEffect | None:
    """Return the effect of a walk on the call stack, None if there is none."""
    return CallEffect(tuple(calls.taken), tuple(calls.left)) if calls.taken or calls.left else None


RUN_BITS = 8
"""The number of consecutive outcomes whose walk is remembered."""

RUN_MASK = (1 << RUN_BITS) - 1

MARKED_AFTER = 4
"""Segments without an outcome before loops are detected; most walks never get there."""
STEPS_AT_MOST = 1 << 16
"""Segments without an outcome and without a loop: far more than any program has."""
FOR_EVER = 1 << 64
"""Rounds of a loop that nothing ends."""

NO_MARK = StackMark(0, ())


class ClosedLoop:
    """Notices that a walk goes round a loop that no outcome is in, and that nothing ends: every walk needs it.

    The walk asks `holds` after each segment from the one with the number MARKED_AFTER on, counted from the last
    outcome. The pc is compared with one that is replaced after 4, 8, 16, ... segments (Brent's algorithm).
    """

    __slots__ = ("_calls", "_lowest", "_mark", "_pc")

    def __init__(self, calls: WalkCalls) -> None:
        self._calls = calls
        self._pc = NOWHERE
        self._mark = NO_MARK
        self._lowest = 0

    def holds(self, steps: int, pc: int) -> bool:
        """Whether the walk, which goes on at *pc*, never leaves the loop. *steps*: segments since the last outcome."""
        calls = self._calls
        if steps > MARKED_AFTER and pc == self._pc and calls.rounds(self._mark, FOR_EVER) == FOR_EVER:
            return True
        if steps & steps - 1 == 0:
            self._lowest = calls.lowest if steps == MARKED_AFTER else min(self._lowest, calls.lowest)
            self._pc, self._mark = pc, calls.mark()
        return steps > STEPS_AT_MOST

    def leave(self) -> None:
        """Give the mark of the calls back to whoever made one before this stretch without an outcome."""
        self._calls.unmark(self._lowest)

_RUNS_AT_MOST = 1 << 16  # about 0.5 KB each


_OutcomeRun = TypeVar("_OutcomeRun")


class ProgramWalker(ABC, Generic[_OutcomeRun]):
    """Walks one program. *stacked*: return addresses are remembered, so that walks depend on them.

    *compiled* walks in the usual case, if there is a kernel; it has copies of the segments and runs.
    """

    def __init__(self, image: Image, segments: Segments, *, stacked: bool) -> None:
        self.image = image
        self.compiled: _kernel.Walker | None = None
        self._segments = segments
        self._stacked = stacked
        self._runs: dict[tuple[int, int, int | None], _OutcomeRun | None] = {}

    def compile(
        self,
        kernel: ModuleType,
        *,
        lowest_first: bool = False,
        falls_through: bool = False,
        pops_known: bool = False,
        trains: bool = False,
        entries: int = 0,
    ) -> None:
        """Walk with *kernel*; see `_kernel.Walker` for the rest."""
        self.compiled = kernel.Walker(
            self._segments.segment_at,
            self._compiled_run,
            Path,
            NO_CODE,
            self._stacked,
            lowest_first,
            falls_through,
            pops_known,
            trains,
            entries,
            _MOST_INSTRUCTIONS,
            _RUNS_AT_MOST,
        )

    def forget(self) -> None:
        """Drop the remembered segments and runs. They are built again when needed."""
        self._segments.forget()
        self._forget_runs()

    def _forget_runs(self) -> None:
        self._runs.clear()
        if self.compiled is not None:
            self.compiled.forget()  # what it has is what is here

    def _remembered_run(self, pc: int, outcomes: int, calls: WalkCalls) -> _OutcomeRun | None:
        """Return the walk of RUN_BITS outcomes from *pc* on, None if it has a fault or an undecided end."""
        key = (pc, outcomes, calls.top() if self._stacked else None)
        if key in self._runs:
            return self._runs[key]
        if len(self._runs) >= _RUNS_AT_MOST:
            self._forget_runs()
        run = self._runs[key] = self._run(pc, outcomes, calls.stack())
        return run

    def _compiled_run(self, pc: int, outcomes: int, stack: Stack) -> tuple[Any, ...] | None:
        """Return what the kernel needs of the walk of RUN_BITS outcomes."""
        run = self._remembered_run(pc, outcomes, WalkCalls(stack))
        return None if run is None else self._run_contents(run)

    @abstractmethod
    def _run(self, pc: int, outcomes: int, stack: Stack) -> _OutcomeRun | None:
        """Walk RUN_BITS outcomes."""

    @abstractmethod
    def _run_contents(self, run: _OutcomeRun) -> tuple[Any, ...]:
        """Return (path, next pc, halfwords, taken, left, peak, outcomes) of a run."""
