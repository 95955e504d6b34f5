"""What TACIT's encoder sends of what a hart retires, one instruction after the other.

Source: ucb-bar/tacit (91f4bcb), TacitEncoder.scala: an instruction's packet is sent when the next one has retired, so
the last one before the end has none. What the layout with contexts adds: riscv-tacit/tacit (32c52c6).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.branches.tacit.packets import (
    BranchMode,
    SyncSort,
    TacitConfiguration,
    TacitKind,
    TacitPacket,
    TrapSort,
)
from rvtrace_gdb.decode.branches.tacit.predictor import CountingPredictor
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.instructions import Instruction, IType

_MACHINE = 3


class RetiredInstruction(NamedTuple):
    """An instruction that retired, or that trapped (*sort*: a trap that is no return). *size*: bytes. *time*: when."""

    pc: int
    size: int
    itype: IType
    time: int
    sort: int = 0
    prv: int = _MACHINE
    ctx: int = 0


class TacitEncoder:
    """An encoder from its start to its end. *has_context*: its layout. *predictor*: of one that was used before."""

    def __init__(
        self,
        configuration: TacitConfiguration | None = None,
        *,
        has_context: bool = False,
        predictor: CountingPredictor | None = None,
    ) -> None:
        self._configuration = configuration or TacitConfiguration()
        self._has_context = has_context
        self.predictor = predictor or CountingPredictor(self._configuration.entries)
        self._predicted = 0
        self._last: RetiredInstruction | None = None
        self._sent = 0  # the time of the last packet
        self._now = 0

    def retired(self, at: RetiredInstruction) -> Iterator[TacitPacket]:
        """Yield the packets that are sent when this has retired."""
        last, self._last = self._last, at
        if last is None:
            yield self._sync(at, SyncSort.START)
        elif last.sort or last.itype is IType.TRAP_RETURN:
            yield from self._right_predictions()
            yield self._trap(last, at)
        elif last.itype is IType.NOT_TAKEN:
            yield from self._branch_packets(last, taken=at.pc != last.pc + last.size)
        elif Instruction(last.size, last.itype).is_uninferable:
            yield from self._right_predictions()
            yield TacitPacket(TacitKind.UNINFERABLE_JUMP, self._elapsed(last), target=(last.pc ^ at.pc) >> 1)
        elif Instruction(last.size, last.itype).is_inferable_jump and self._configuration.mode == BranchMode.TARGET:
            yield TacitPacket(TacitKind.INFERABLE_JUMP, self._elapsed(last))

    def stop(self) -> Iterator[TacitPacket]:
        """Yield the end of the trace. Branches that were counted and not sent are lost."""
        if self._last is not None:
            yield self._sync(self._last, SyncSort.END)
        self._last = None

    def packets_of(self, items: Iterable[Block | IngressTrap]) -> Iterator[TacitPacket]:
        """Yield the packets of blocks and traps; time counts instructions."""
        for item in items:
            if isinstance(item, IngressTrap):
                sort = TrapSort.INTERRUPT if item.interrupt else TrapSort.EXCEPTION
                yield from self.retired(RetiredInstruction(item.epc, 0, IType.NONE, self._now, sort))
                continue
            pc, last = item.pc, len(item.lengths) - 1
            for number, halfwords in enumerate(item.lengths):
                self._now += 1
                itype = item.itype if number == last else IType.NONE
                yield from self.retired(RetiredInstruction(pc, 2 * halfwords, itype, self._now))
                pc += 2 * halfwords

    def _elapsed(self, at: RetiredInstruction) -> int:
        elapsed, self._sent = at.time - self._sent, at.time
        return elapsed

    def _branch_packets(self, last: RetiredInstruction, *, taken: bool) -> Iterator[TacitPacket]:
        mode = self._configuration.mode
        if mode == BranchMode.TARGET:
            yield TacitPacket(TacitKind.TAKEN if taken else TacitKind.NOT_TAKEN, self._elapsed(last))
        if mode != BranchMode.PREDICT:
            return
        right = self.predictor.predicts(last.pc) == taken
        self.predictor.learn_outcome(last.pc, taken=taken)
        if right:
            self._predicted += 1
            return
        yield from self._right_predictions()
        yield TacitPacket(TacitKind.NOT_TAKEN, self._elapsed(last))

    def _right_predictions(self) -> Iterator[TacitPacket]:
        """Yield the packet of the branches that were predicted right."""
        if self._predicted:
            yield TacitPacket(TacitKind.TAKEN, self._predicted)
        self._predicted = 0

    def _trap(self, last: RetiredInstruction, at: RetiredInstruction) -> TacitPacket:
        sort = last.sort or TrapSort.RETURN
        packet = TacitPacket(TacitKind.TRAP, self._elapsed(last), last.pc, (last.pc ^ at.pc) >> 1, sort)
        if not self._has_context:
            return packet
        ctx = last.ctx if sort == TrapSort.RETURN and at.prv == 0 else None
        return packet._replace(prv=at.prv, from_prv=last.prv, ctx=ctx)

    def _sync(self, at: RetiredInstruction, sort: SyncSort) -> TacitPacket:
        self._sent = at.time
        if not self._has_context:
            return TacitPacket(TacitKind.SYNC, at.time, at.pc)
        number = self._configuration.encoded if sort is SyncSort.START else None
        return TacitPacket(TacitKind.SYNC, at.time, at.pc, 0, sort, at.prv, 0, at.ctx, number)
