"""Following the program: which instructions a number of halfwords and a row of branch outcomes stand for.

The code is taken in *segments*: all that runs inevitably from an address on, through direct jumps, up to the next
instruction whose successor the code does not tell. Segments are built once and kept.
"""

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from decode.errors import CodeMissing, UndecodableInstruction
from decode.history import Path, RepeatPath
from decode.image import Image
from decode.instructions import Instruction, IType

CONTINUES, BRANCH, JUMP, STOP, MISSING = range(5)
"""How a segment ends: it was long enough; a conditional branch; an uninferable jump; an instruction that raises an
exception (ecall, ebreak); no code there."""

_MAX_SEGMENT = 1024  # instructions

Part = tuple[int, ...] | Path | RepeatPath


class Segment:
    """What runs inevitably from an address on.

    pcs        addresses of its instructions, in order of execution
    ends       halfwords up to and with each of them
    halfwords  of all of them
    kind       how it ends
    fall       where it goes on: CONTINUES, at once; BRANCH, not taken; MISSING, where there is nothing
    taken      BRANCH: its target
    why        MISSING: what is missing
    """

    __slots__ = ("ends", "fall", "halfwords", "kind", "pcs", "taken", "why")

    def __init__(
        self, kind: int, pcs: list[int], lengths: list[int], fall: int, taken: int = -1, why: str = ""
    ) -> None:
        self.kind = kind
        self.pcs = tuple(pcs)
        self.ends = tuple(accumulate(lengths))
        self.halfwords = self.ends[-1] if lengths else 0
        self.fall = fall
        self.taken = taken
        self.why = why


class Walk(NamedTuple):
    """What a walk came to.

    pc         where execution goes on; -1 when only the trace can tell
    halfwords  how far it went
    last       the segment whose undecided end it came to (BRANCH without an outcome, JUMP, STOP), else None
    fault      why the code contradicts the trace, "" when it does not
    """

    parts: list[Part]
    pc: int
    halfwords: int
    last: Segment | None = None
    fault: str = ""

    @property
    def path(self) -> Path | None:
        """The instructions walked, None for none."""
        return Path(self.parts) if self.parts else None

    @property
    def at(self) -> int:
        """Where a fault is: the next instruction if it is known, else the last one."""
        return self.pc if self.pc >= 0 or not self.parts else self.last_pc or 0

    @property
    def last_pc(self) -> int | None:
        """The last instruction walked."""
        if not self.parts:
            return None
        part = self.parts[-1]
        return part[-1] if isinstance(part, tuple) else part.pc(len(part) - 1)


class Walker:
    """Walks one program. *btm*: branches without an outcome were not taken, as in Branch Trace Messaging."""

    def __init__(self, image: Image, *, btm: bool = False) -> None:
        self.image = image
        self._btm = btm
        self._segments: dict[int, Segment] = {}

    def segment(self, pc: int) -> Segment:
        """The segment that starts at *pc*."""
        if pc not in self._segments:
            self._segments[pc] = self._build(pc)
        return self._segments[pc]

    def forget(self) -> None:
        """Drops the segments; they are built again when needed."""
        self._segments.clear()

    def walk(self, pc: int, hist: int, limit: int | None) -> Walk:
        """From *pc* on, *limit* halfwords far, spending the outcomes in *hist*, a HIST field.

        limit None: up to the last outcome. The walk ends early where only the trace could tell how it goes on.
        """
        bits = hist.bit_length() - 1
        parts: list[Part] = []
        walked = 0
        seen: dict[int, tuple[int, int]] = {}
        segments = self._segments
        while bits if limit is None else walked < limit:
            segment = segments.get(pc) or self.segment(pc)
            if limit is not None and walked + segment.halfwords > limit:
                return self._within(segment, parts, walked, limit, bits)
            if segment.pcs:
                parts.append(segment.pcs)
                walked += segment.halfwords
            if segment.kind == BRANCH:
                if bits:
                    bits -= 1
                    pc = segment.taken if hist >> bits & 1 else segment.fall
                    seen.clear()
                elif self._btm and limit is not None and walked < limit:
                    pc = segment.fall
                else:
                    fault = "HIST has no bit for the branch" if walked != limit else ""
                    return Walk(parts, -1, walked, segment, fault)
            elif segment.kind == CONTINUES:
                pc = segment.fall
                if pc in seen:
                    if limit is None:
                        return Walk(parts, pc, walked, None, f"{_bits(bits)} of HIST left, and the code has no branch")
                    walked = _go_round(parts, seen[pc], walked, limit)
                    seen.clear()
                seen[pc] = (len(parts), walked)
            elif segment.kind == MISSING:
                pc = segment.fall
                if walked != limit:
                    return Walk(parts, pc, walked, None, segment.why)
            else:
                fault = f"{_bits(bits)} of HIST left at {_ENDS[segment.kind]}" if bits else ""
                if not fault and walked != limit:
                    fault = f"I-CNT goes past {_ENDS[segment.kind]}"
                return Walk(parts, -1, walked, segment, fault)
        return Walk(parts, pc, walked, None, f"{_bits(bits)} of HIST more than there are branches" if bits else "")

    def walk_determined(self, pc: int, limit: int) -> Walk:
        """As `walk` without outcomes, but never over an undecided end: it stops before that instruction."""
        walk = self.walk(pc, 1, limit)
        if walk.last is None:
            return walk
        last = walk.last
        if len(last.pcs) > 1:
            walk.parts[-1] = last.pcs[:-1]
        else:
            walk.parts.pop()
        before = last.ends[-2] if len(last.ends) > 1 else 0
        return Walk(walk.parts, last.pcs[-1], walk.halfwords - last.halfwords + before)

    def _within(self, segment: Segment, parts: list[Part], walked: int, limit: int, bits: int) -> Walk:
        """The walk ends inside a segment."""
        count = bisect_right(segment.ends, limit - walked)
        end = segment.ends[count - 1] if count else 0
        if count:
            parts.append(segment.pcs[:count])
        fault = ""
        if walked + end != limit:
            fault = "I-CNT ends inside the instruction"
        elif bits:
            fault = f"{_bits(bits)} of HIST more than there are branches"
        return Walk(parts, segment.pcs[count], walked + end, None, fault)

    def _build(self, pc: int) -> Segment:
        pcs: list[int] = []
        lengths: list[int] = []
        mask = (1 << self.image.xlen) - 1
        while len(pcs) < _MAX_SEGMENT:
            try:
                instruction = self.image.instruction(pc)
            except CodeMissing:
                return Segment(MISSING, pcs, lengths, pc, why="there is no code")
            except UndecodableInstruction as error:
                return Segment(MISSING, pcs, lengths, pc, why=str(error))
            pcs.append(pc)
            lengths.append(instruction.length // 2)
            fall = pc + instruction.length & mask
            target = -1 if instruction.offset is None else pc + instruction.offset & mask
            kind = _ending(instruction)
            if kind == BRANCH:
                return Segment(BRANCH, pcs, lengths, fall, target)
            if kind != CONTINUES:
                return Segment(kind, pcs, lengths, fall)
            if instruction.is_inferable_jump and target < 0:
                return Segment(MISSING, pcs, lengths, pc, why="the jump table of cm.jt and cm.jalt (jvt) is not known")
            pc = target if instruction.is_inferable_jump else fall
        return Segment(CONTINUES, pcs, lengths, pc)


_ENDS = {JUMP: "an indirect jump", STOP: "an instruction that raises an exception"}


def _bits(count: int) -> str:
    return "1 bit" if count == 1 else f"{count} bits"


def _ending(instruction: Instruction) -> int:
    if instruction.is_branch:
        return BRANCH
    if instruction.is_uninferable:
        return JUMP
    return STOP if instruction.itype is IType.EXCEPTION else CONTINUES


def _go_round(parts: list[Part], since: tuple[int, int], walked: int, limit: int) -> int:
    """The code loops for ever without a branch: adds as many whole rounds as fit; returns the halfwords walked then."""
    first, before = since
    rounds = (limit - walked) // (walked - before)
    if rounds:
        parts.append(RepeatPath(Path(parts[first:]), rounds))
    return walked + rounds * (walked - before)
