"""What a hart reports of its execution: what retired, to a list; each single instruction, to a witness."""

from collections.abc import Callable

from rvtrace_gdb.transport.simulated.hart.block import (
    Accessed,
    BlockPart,
    HartBlock,
    Situation,
    TrapEntry,
    Witness,
)

HartItem = HartBlock | BlockPart | TrapEntry | Situation | Accessed


class RetirementReports:
    """The list and the witness of one hart, see `hart.Hart`.

    situations         whether `Situation`s are in the list, too
    situation_changed  whether there is one to report at the end of the block
    accesses           whether what instructions access is in the list, before their block
    listening          whether the list takes what the present block accesses: not if it was given within the block
    """

    def __init__(self) -> None:
        self.retired: list[HartItem] | None = None
        self.witness: Witness | None = None
        self.situations = False
        self.situation_changed = False
        self.accesses = False
        self.listening = False

    def take_list(self, retired: list[HartItem] | None) -> None:
        """Report to this list from the next block on, None: to none."""
        self.retired = retired
        self.listening = self.listening and retired is not None

    def begin_block(self) -> Callable[[HartItem], None] | None:
        """Return what adds to the list, None if there is none."""
        self.listening = self.retired is not None
        return None if self.retired is None else self.retired.append

    def accessed(
        self, place: int, kind: str, size: int, operation: str, address: int, value: int, *operand: int
    ) -> None:
        """Note what an instruction has accessed: the fields of `Accessed`. Called by compiled code."""
        if self.witness is not None:
            self.witness.accessed(place, kind, size, operation, address, value, *operand)
            if not self.accesses:
                return
        if self.listening and self.retired is not None:
            self.retired.append(Accessed(place, kind, size, operation, address, value, *operand))

    def single(self, block: HartBlock) -> None:
        """Report a block of one instruction."""
        if self.retired is not None:
            self.retired.append(block)
        if self.witness is not None:
            self.witness.retired(block)

    def part(self, block: HartBlock, count: int) -> None:
        """Report the first *count* instructions of a block, the next of which trapped."""
        if count and self.retired is not None:
            self.retired.append(BlockPart(block, count))

    def trapped(self, trap: TrapEntry) -> None:
        """Report a trap."""
        if self.retired is not None:
            self.retired.append(trap)
        if self.witness is not None:
            self.witness.trapped(trap)
