"""The program in pieces a walk can take whole: all that runs inevitably from an address on, through direct jumps, up to
the next instruction whose successor the code alone does not tell."""

from itertools import accumulate

from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import Instruction, IType, sequential_target

CONTINUES, BRANCH, JUMP, STOP, MISSING, DIRECT = range(6)
"""How a segment ends: it was long enough; a conditional branch; an uninferable jump; an instruction that raises an
exception (ecall, ebreak); no code there; a direct jump that counts (it is reported, or it is a call to remember)."""

_MAX_SEGMENT = 1024  # instructions
_BLOCK = 512  # bytes; long code is cut at multiples of it, so that it is the same pieces from wherever it is entered
_HELD_AT_MOST = 1 << 19  # instructions in all segments (about 0.1 KB each)

_CALLS = frozenset({IType.UNINFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN})
_SWAPS = frozenset({IType.COROUTINE_SWAP})

NOWHERE = -1
"""No address: not known, or not there."""


class Segment:
    """What runs inevitably from an address on.

    pcs        addresses of its instructions, in order of execution
    ends       halfwords up to and with each of them
    halfwords  of all of them
    kind       how it ends
    fall       where it goes on: CONTINUES and DIRECT, at once; BRANCH, not taken; MISSING, where there is nothing;
               JUMP and STOP, the next instruction in memory
    taken      BRANCH: its target. JUMP: where it goes if the instruction before tells, else NOWHERE
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
    """The segments of one program under one set of options, built when first asked for."""

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

        *sequential*: targets that the instruction before a jump sets are known; *absolute*: and those of jumps by x0.
        *reported*: the trace has an outcome for direct jumps, too.
        """
        self.image = image
        self.known: dict[int, Segment] = {}
        self._held = 0
        self._mask = (1 << image.xlen) - 1
        self._stacked = stacked
        self._sequential = sequential
        self._reported = reported
        self._absolute = absolute
        self._calls = _CALLS | _SWAPS if swaps else _CALLS
        self._returns = _RETURNS | _SWAPS if swaps else _RETURNS

    def at(self, pc: int) -> Segment:
        """The segment that starts at *pc*."""
        segment = self.known.get(pc)
        if segment is None:
            segment = self._build(pc)
            if self._held > _HELD_AT_MOST:
                self.forget()
            self._held += len(segment.pcs)
            self.known[pc] = segment
        return segment

    def forget(self) -> None:
        """Drops all of them; they are built again when needed."""
        self.known.clear()
        self._held = 0

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
            end = self._end(instruction, before, pcs, lengths)
            if end is not None:
                return end
            before = instruction
            pc = pc + (instruction.offset if instruction.is_inferable_jump else instruction.length) & self._mask  # type: ignore[operator]
        return Segment(CONTINUES, pcs, lengths, pc)

    def _end(
        self, instruction: Instruction, before: Instruction | None, pcs: list[int], lengths: list[int]
    ) -> Segment | None:
        """The segment that ends with *instruction*, None when it goes on."""
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
        return Segment(STOP, pcs, lengths, fall) if instruction.itype is IType.EXCEPTION else None

    def _direct(self, instruction: Instruction, pcs: list[int], lengths: list[int], fall: int) -> Segment | None:
        """A direct jump ends a segment only where it counts."""
        if instruction.offset is None:
            return Segment(MISSING, pcs, lengths, pcs[-1], why="the jump table of cm.jt and cm.jalt (jvt) is not known")
        calls = self._stacked and instruction.itype is IType.INFERABLE_CALL
        if not calls and not self._reported:
            return None
        segment = Segment(DIRECT, pcs, lengths, pcs[-1] + instruction.offset & self._mask)
        segment.calls, segment.reported, segment.returns_to = calls, self._reported, fall
        return segment


def _is_long(pcs: list[int], last: Instruction, pc: int) -> bool:
    """Whether a segment need not go on at *pc*."""
    return len(pcs) >= _MAX_SEGMENT or (pc ^ pcs[-1] >= _BLOCK and not last.is_inferable_jump)
