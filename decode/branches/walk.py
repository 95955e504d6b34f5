"""What runs between two transfers of control: straight code, which the program determines."""

from typing import NamedTuple

from rvtrace_gdb.decode.history.builder import HistoryBuilder, SourceHistories
from rvtrace_gdb.decode.history.events import (
    Accounting,
    EventKind,
    Loss,
    LossCause,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
)
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.decode.stepping.reports import contradiction_report

_ELSEWHERE = frozenset({IType.UNINFERABLE_CALL, IType.RETURN, IType.TRAP_RETURN})
_MOST = 1 << 16  # instructions in a row without a transfer: more are noise


class StraightCode(NamedTuple):
    """Instructions in a row. *why*: what contradicts the program at *at*, "" if nothing does."""

    pcs: tuple[int, ...]
    why: str = ""
    at: int = 0

    @property
    def last(self) -> int:
        """The address of the last one."""
        return self.pcs[-1]


class TransferCode:
    """The program, as transfers of control cut it. Remembers what it has looked at."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._to_goals: dict[tuple[int, int], StraightCode] = {}
        self._to_transfers: dict[int, StraightCode] = {}
        self._paths: dict[tuple[int, ...], Path] = {}

    def instruction(self, pc: int) -> Instruction | str:
        """Return the instruction at an address, or why there is none."""
        try:
            return self.image.instruction(pc)
        except CodeMissing:
            return "there is no code"
        except UndecodableInstruction as error:
            return str(error)

    def up_to(self, pc: int, goal: int) -> StraightCode:
        """Return the instructions from *pc* to *goal*, both included, past branches that are not taken."""
        found = self._to_goals.get((pc, goal))
        if found is None:
            found = self._to_goals[pc, goal] = self._walk(pc, goal)
        return found

    def up_to_transfer(self, pc: int) -> StraightCode:
        """Return the instructions from *pc* to the next branch or jump, or what always traps, included."""
        found = self._to_transfers.get(pc)
        if found is None:
            found = self._to_transfers[pc] = self._walk(pc, None)
        return found

    def before_halt(self, pc: int, end: int) -> tuple[int, ...] | None:
        """Return the instructions from *pc* on that ran before a hart was halted at *end*, None: that is not certain.

        They are straight code, after which there was one transfer at most, by a branch or a direct jump to *end*. More
        than one way to get there is not certain, nor a way by an indirect jump; calls and returns do not lead into the
        straight code in front of them.
        """
        ways: list[tuple[int, ...]] = []
        pcs: list[int] = []
        while len(pcs) < _MOST:
            found = self.instruction(pc)
            if isinstance(found, str):
                break
            pcs.append(pc)
            if found.offset is not None and self.may_transfer(pc, end):
                ways.append(tuple(pcs))
            if found.itype not in (IType.NONE, IType.NOT_TAKEN):
                if found.is_uninferable and found.itype not in _ELSEWHERE:
                    return None
                break
            pc += found.length
            if pc == end:
                ways.append(tuple(pcs))
        return ways[0] if len(ways) == 1 else None

    def path(self, pcs: tuple[int, ...]) -> Path:
        """Return the path of these instructions, the same for the same ones."""
        return self._paths.setdefault(pcs, Path((pcs,)))

    def may_transfer(self, pc: int, target: int) -> bool:
        """Return whether the instruction at *pc* can transfer control to *target*, other than by a trap."""
        found = self.instruction(pc)
        if isinstance(found, str):
            return False
        if found.is_uninferable or found.custom or (found.is_inferable_jump and found.offset is None):
            return True
        return found.offset is not None and pc + found.offset & (1 << self.image.xlen) - 1 == target

    def _walk(self, pc: int, goal: int | None) -> StraightCode:
        pcs: list[int] = []
        while len(pcs) < _MOST:
            found = self.instruction(pc)
            if isinstance(found, str):
                return StraightCode(tuple(pcs), found, pc)
            pcs.append(pc)
            if pc == goal or (goal is None and found.itype is not IType.NONE):
                return StraightCode(tuple(pcs))
            if found.itype not in (IType.NONE, IType.NOT_TAKEN):
                return StraightCode(tuple(pcs), "this instruction never continues at the next one", pc)
            pc += found.length
            if goal is not None and pc > goal:
                return StraightCode(tuple(pcs), f"straight code does not lead to 0x{goal:x}", goal)
        return StraightCode(tuple(pcs), "no transfer of control follows", pcs[0])


class TransferHistory:
    """The history that a decoder of transfers makes. *entry*: what an entry is called in messages."""

    def __init__(self, program: Program, entry: str) -> None:
        self.builder = HistoryBuilder()
        self.code = TransferCode(program.image_of(ProgramContext()))
        self.xlen = self.code.image.xlen
        self._program, self._entry = program, entry

    def start(self, pc: int, offset: int, reason: StartReason) -> None:
        """Begin at *pc*, or go on there: after what ran before, an event has to say why there is a gap."""
        self.builder.add_gap()
        self.builder.resume(pc, offset)
        self.builder.event(EventKind.SYNC, offset, Start(reason), next_pc=pc)

    def go_on_at(self, pc: int, offset: int, reason: StartReason) -> None:
        """Go on at *pc*, where the hart was when tracing stopped."""
        self.builder.resume(pc, offset)
        self.builder.event(EventKind.SYNC, offset, Start(reason), next_pc=pc)

    def straight(self, pc: int, goal: int) -> StraightCode:
        """Return the code from *pc* to *goal* of a trace in which every branch has an entry."""
        found = self.code.up_to(pc, goal)
        for at, one in enumerate(found.pcs[:-1]):
            instruction = self.code.instruction(one)
            if not isinstance(instruction, str) and instruction.is_branch:
                return StraightCode(found.pcs[:at], "a branch without an entry", one)
        return found

    def run(self, pcs: tuple[int, ...]) -> None:
        """Add instructions that ran."""
        if pcs:
            self.builder.append(self.code.path(pcs))

    def add_trap(self, trap: Trap, offset: int, epc: int | None, handler: int) -> None:
        """Add a trap."""
        self.builder.event(EventKind.TRAP, offset, trap, last_pc=epc, next_pc=handler)

    def contradiction(self, code: StraightCode, offset: int) -> None:
        """Add a gap for what contradicts the program."""
        report = contradiction_report(self._program, self.code.image, code.at, code.why, self._entry)
        assert isinstance(report.fact, Loss)
        self.builder.gap(report.kind, offset, report.fact)

    def loss(self, cause: Loss, offset: int) -> None:
        """Add a gap for bytes that are no entry."""
        self.builder.gap(EventKind.LOSS, offset, cause)

    def finish(self, total: int, skipped: int) -> SourceHistories:
        """Return the history, of a trace of *total* bytes of which *skipped* could not be used."""
        accounting = Accounting(total, total - skipped, 0, skipped)
        return SourceHistories({0: self.builder.finish(accounting)}, accounting)

    def off(self, offset: int, reason: StopReason) -> None:
        """Record that what follows is not in the trace."""
        self.builder.event(EventKind.TRACE_OFF, offset, Stop(reason))


def skipped(size: int, why: str) -> Loss:
    """Return the loss of bytes that are no entry."""
    return Loss(LossCause.SKIPPED, (size, why))
