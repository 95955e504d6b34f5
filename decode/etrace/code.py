"""What the instructions of a program are to E-Trace, as far as the flow is concerned."""

from rvtrace_gdb.decode.etrace.options import Modes
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import sequential_target
from rvtrace_gdb.decode.segments import BRANCH, CONTINUES, DIRECT, JUMP, MISSING, NOWHERE, Segment, Segments


class Code:
    """One program, for an encoder in these modes."""

    def __init__(self, image: Image, modes: Modes) -> None:
        self.image = image
        self._segments = Segments(
            image, stacked=modes.implicit_return, sequential=modes.sijump, swaps=False, absolute=True
        )

    def is_branch(self, address: int) -> bool:
        """Whether the instruction at *address* is a branch; not, where there is none."""
        segment = self._segments.at(address)
        return segment.kind == BRANCH and len(segment.pcs) == 1

    def is_unknown(self, address: int) -> bool:
        """Whether there is no code at *address*."""
        segment = self._segments.at(address)
        return segment.kind == MISSING and not segment.pcs

    def why_unknown(self, address: int) -> str:
        """Why there is none."""
        return self._segments.at(address).why

    def is_uninferable(self, address: int) -> bool:
        """Whether only the trace tells where the instruction at *address* leads (implicit returns apart)."""
        segment = self._segments.at(address)
        return segment.kind == JUMP and len(segment.pcs) == 1 and segment.taken == NOWHERE

    def is_return(self, address: int) -> bool:
        """Whether the instruction at *address* may be an implicit return."""
        segment = self._segments.at(address)
        return segment.kind == JUMP and len(segment.pcs) == 1 and segment.returns

    def raises(self, address: int) -> bool:
        """Whether the instruction at *address* is ecall or ebreak."""
        segment = self._segments.at(address)
        return len(segment.pcs) == 1 and segment.kind not in (BRANCH, JUMP, DIRECT, CONTINUES, MISSING)

    def pair(self, behind: int, at: int) -> Segment | None:
        """The jump at *at* as a segment with a target, if the instruction right before it loads its register."""
        segment = self._segments.known.get(at) or self._segments.at(at)
        if segment.kind != JUMP or len(segment.pcs) > 1 or segment.taken != NOWHERE or self.is_unknown(behind):
            return None
        before, jump = self.image.instruction(behind), self.image.instruction(at)
        target = sequential_target(before, behind, jump, self.image.xlen)
        if target is None or behind + before.length != at:
            return None
        paired = Segment(JUMP, [at], [jump.length // 2], segment.fall, target)
        paired.calls, paired.returns = segment.calls, segment.returns
        return paired
