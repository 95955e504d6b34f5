"""From TACIT's packets to a history.

A synchronization begins the trace, and another one ends it. What is between is a chain: after damage decoding goes on
at the next synchronization. Where the hart runs code that is not the program's (the Debug ROM of a halted Rocket, for
one) packets are passed over until a trap, or a return from one, says where it is.
"""

from rvtrace_gdb.decode.branches.items import NO_SETTINGS, Settings
from rvtrace_gdb.decode.branches.tacit.packets import (
    NAMES,
    BranchMode,
    SyncSort,
    TacitKind,
    TacitPacket,
    TrapSort,
)
from rvtrace_gdb.decode.branches.tacit.predictor import CountingPredictor
from rvtrace_gdb.decode.branches.tacit.reader import CUT_OFF, CutPacket, PacketReader
from rvtrace_gdb.decode.branches.walk import StraightCode, TransferHistory, skipped
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import (
    ContextChange,
    EventKind,
    Loss,
    LossCause,
    Note,
    NoteCause,
    StartReason,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.history.history import Path, RepeatPath
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.support.errors import Progress, silent

_OFTEN = 1 << 12  # packets, or predicted branches, between two calls of the progress
_MOST_PREDICTED = (1 << 32) - 1  # the encoder counts with 32 bits
_NOT_SENT = "how many branches were predicted right since the last packet is not sent"
_TRAP_KINDS = {TrapSort.EXCEPTION: TrapKind.EXCEPTION, TrapSort.INTERRUPT: TrapKind.INTERRUPT}


def history_of(
    data: bytes,
    program: Program,
    settings: Settings = NO_SETTINGS,
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> SourceHistories:
    """Return what ran. Decoding starts at a synchronization. *settings*: see `PacketReader`. Raises only what
    *progress* raises.
    """
    reader = PacketReader(data, settings)
    decoder = _TacitDecoder(TransferHistory(program, "packet"), reader, progress)
    for count, (offset, found) in enumerate(reader):
        if not count % _OFTEN:
            progress("decoding", offset, len(data))
        decoder.take(found, offset)
    decoder.end(len(data))
    return decoder.history.finish(len(data), decoder.skipped)


class _TacitDecoder:
    """Makes a history of packets. *skipped*: bytes that could not be used."""

    def __init__(self, history: TransferHistory, reader: PacketReader, progress: Progress) -> None:
        self.history, self.skipped = history, 0
        self._reader, self._progress = reader, progress
        self._mask = (1 << history.xlen) - 1
        self._pc: int | None = None  # where the hart goes on; None: not known
        self._begun = self._is_fresh = False
        self._is_framed = False  # packets begin where the reader thinks they do
        self._is_damaged = self._may_be_end = False  # the next synchronization, the last one: what it is, is not told
        self._halted_at: int | None = None  # the last instruction before a halt, until the hart goes on
        self._sends_whole = False  # the addresses of traps have their bit 0, as before 87ef14d
        self._time = 0
        self._context = ProgramContext()
        self._predictor: CountingPredictor | None = None
        self._stretches: dict[int, StraightCode] = {}

    @property
    def _branch_mode(self) -> int:
        return self._reader.configuration.mode

    def take(self, cut: CutPacket, offset: int) -> None:
        """Add a packet."""
        packet = cut.packet
        if packet is None:
            if cut.problem == CUT_OFF and self._pc is not None:
                self._note_cut_off(cut.size, offset)
                return
            self._is_framed = False
            self._lost(cut.size, offset, cut.problem)
        elif packet.kind is TacitKind.SYNC:
            self._take_sync(packet, offset)
        else:
            counts = self._branch_mode == BranchMode.PREDICT and packet.kind is TacitKind.TAKEN
            self._time += 0 if counts else packet.time
            if self._pc is not None:
                self._follow_packet(packet, offset)
            elif not self._rejoins(packet, offset):
                self._lost(cut.size, offset, "packets before a synchronization")

    def _note_cut_off(self, size: int, offset: int) -> None:
        """Note that the trace goes on behind what was read of it."""
        self.skipped += size
        self.history.builder.event(EventKind.NOTE, offset, Note(NoteCause.CUT_OFF, (CUT_OFF,)))

    def _follow_packet(self, packet: TacitPacket, offset: int) -> None:
        """Add what a packet says of a hart that was followed so far."""
        self._is_fresh = False
        if packet.kind is TacitKind.TRAP:
            wrong = self._add_trap(packet, offset)
        elif self._branch_mode == BranchMode.PREDICT and packet.kind is not TacitKind.UNINFERABLE_JUMP:
            wrong = self._add_predicted(packet)
        else:
            wrong = self._add_transfer(packet)
        if wrong is None:
            self.history.builder.time(self._time)
        else:
            self._contradicted(wrong, offset)

    def _contradicted(self, wrong: StraightCode, offset: int) -> None:
        self.history.contradiction(wrong, offset)
        self._pc = self._predictor = None
        self._is_damaged = True

    def _lost(self, size: int, offset: int, why: str) -> None:
        self.skipped += size
        if self._pc is not None or not self._begun:
            self.history.loss(skipped(size, why), offset)
        self._begun = self._is_damaged = True
        self._pc = self._predictor = self._halted_at = None

    # -- synchronizations

    def _take_sync(self, packet: TacitPacket, offset: int) -> None:
        self._time, followed = packet.time, self._pc is not None
        address = packet.address & self._mask
        starts = packet.sort in (SyncSort.START, SyncSort.RESUME)
        if packet.sort in (SyncSort.UNTOLD, SyncSort.PERIODIC):
            starts = not followed or (self._is_fresh and self._may_be_end)
        if starts:
            if followed and not self._is_fresh:
                self.history.off(offset, StopReason.END_NOT_RECORDED)
            self._start(packet, address, offset)
        elif packet.sort == SyncSort.PERIODIC and followed:
            self._add_periodic(address, offset)
        elif followed:
            self._add_end(packet, address, offset)
        self._begun, self._is_framed, self._is_fresh = True, True, starts

    def _start(self, packet: TacitPacket, address: int, offset: int) -> None:
        if self._goes_on_after_halt(packet, address):
            self.history.go_on_at(address, offset, StartReason.EXIT_FROM_DEBUG)
        else:
            self.history.start(address, offset, self._reason(packet))
        self.history.builder.time(self._time)
        self._note_context(packet, offset)
        self._pc = address
        self._may_be_end, self._is_damaged = self._is_damaged and packet.sort == SyncSort.UNTOLD, False
        # A new trace finds the predictor as the last one left it, with a count that was not sent.
        is_new = not self._begun or packet.sort == SyncSort.RESUME
        self._predictor = CountingPredictor(self._reader.configuration.entries) if is_new else None

    @staticmethod
    def _reason(packet: TacitPacket) -> StartReason:
        reasons = {SyncSort.PERIODIC: StartReason.PERIODIC, SyncSort.RESUME: StartReason.FIFO_OVERRUN}
        return reasons.get(SyncSort(packet.sort), StartReason.TRACING_STARTS)

    def _goes_on_after_halt(self, packet: TacitPacket, address: int) -> bool:
        """Return whether the hart goes on where it was halted: the trace was off in debug mode alone."""
        last, self._halted_at = self._halted_at, None
        if last is None or packet.sort == SyncSort.RESUME:
            return False
        code = self.history.code
        instruction = code.instruction(last)
        if isinstance(instruction, str):
            return False
        falls = instruction.itype in (IType.NONE, IType.NOT_TAKEN) and last + instruction.length == address
        return falls or (instruction.itype is not IType.NONE and code.may_transfer(last, address))

    def _add_periodic(self, address: int, offset: int) -> None:
        """Add the code up to a synchronization within the trace."""
        assert self._pc is not None
        found = self._straight(self._pc, address)
        if found.why:
            self.history.run(found.pcs)
            self._contradicted(found, offset)
        else:
            self.history.run(found.pcs[:-1])
            self._pc = address

    def _add_end(self, packet: TacitPacket, address: int, offset: int) -> None:
        """Add the code up to the end of the trace, or up to where packets were lost."""
        assert self._pc is not None
        history, stop = self.history, Stop(StopReason.TRACE_DISABLED)
        found = self._straight(self._pc, address)
        pauses = packet.sort == SyncSort.PAUSE
        if self._branch_mode != BranchMode.TARGET:
            stop = Stop(StopReason.NO_ROUTE, detail=(_NOT_SENT,))
        elif not found.why:
            history.run(found.pcs[:-1] if pauses else found.pcs)
            history.builder.time(self._time)
        elif not pauses and (last := self._unsent_transfer(address)) is not None:
            history.run((*last.pcs, address))  # of the last two instructions the encoder sends the address alone
            history.builder.time(self._time)
        elif pauses:
            history.run(found.pcs)
            self._contradicted(found, offset)
            return
        else:
            stop = Stop(StopReason.OTHER_ROUTE, detail=(address,))
        if pauses:
            history.loss(Loss(LossCause.PACKETS_LOST), offset)
        else:
            if stop.reason is StopReason.TRACE_DISABLED and self._reader.is_off_in_debug_mode:
                stop, self._halted_at = Stop(StopReason.DEBUG_MODE), address
            history.builder.event(EventKind.TRACE_OFF, offset, stop)
        self._pc = None

    def _unsent_transfer(self, address: int) -> StraightCode | None:
        """Return the code up to a transfer that can lead to *address*; None: the next one cannot."""
        assert self._pc is not None
        found = self.history.code.up_to_transfer(self._pc)
        if found.why:
            return None
        last = self.history.code.instruction(found.last)
        if isinstance(last, str) or last.offset is None:
            return None
        falls = last.is_branch and found.last + last.length == address
        return found if falls or (found.last + last.offset) & self._mask == address else None

    def _note_context(self, packet: TacitPacket, offset: int) -> None:
        """Note the privilege mode that a packet says."""
        if packet.prv is None or packet.prv == self._context.prv:
            return
        before, self._context = self._context, ProgramContext(packet.prv)
        self.history.builder.event(EventKind.CONTEXT, offset, ContextChange(before, self._context))
        self.history.builder.context(self._context)

    # -- branches and jumps

    def _add_transfer(self, packet: TacitPacket) -> StraightCode | None:
        """Add the code up to the branch or jump of a packet; return what contradicts it."""
        assert self._pc is not None
        history, kind = self.history, packet.kind
        found = self._to_transfer(self._pc)
        if found.why:
            history.run(found.pcs)
            return found
        last, instruction = found.last, history.code.instruction(found.last)
        assert not isinstance(instruction, str)
        target = None
        if kind is TacitKind.TAKEN and instruction.is_branch and instruction.offset is not None:
            target = last + instruction.offset
        elif kind is TacitKind.NOT_TAKEN and instruction.is_branch:
            target = last + instruction.length
        elif kind is TacitKind.INFERABLE_JUMP and instruction.is_inferable_jump and instruction.offset is not None:
            target = last + instruction.offset
        elif kind is TacitKind.UNINFERABLE_JUMP and instruction.is_uninferable:
            target = (packet.target ^ last >> 1) << 1
        if target is None:
            history.run(found.pcs[:-1])
            return StraightCode((), f"{NAMES[kind]} at another instruction", last)
        history.run(found.pcs)
        self._pc = target & self._mask
        return None

    def _to_transfer(self, pc: int) -> StraightCode:
        """Return the code up to the next instruction of which there is a packet, or a prediction."""
        code = self.history.code
        if self._branch_mode == BranchMode.TARGET:
            return code.up_to_transfer(pc)
        found = self._stretches.get(pc)
        if found is None:
            found = self._stretches[pc] = self._past_jumps(pc, None)
        return found

    def _past_jumps(self, pc: int, goal: int | None) -> StraightCode:
        """Return the code from *pc* on, past direct jumps, up to *goal*, or to the next branch or other jump."""
        code, pcs, seen = self.history.code, list[int](), set[int]()
        while pc not in seen:
            seen.add(pc)
            found = code.up_to_transfer(pc)
            if goal in found.pcs:
                return StraightCode((*pcs, *found.pcs[: found.pcs.index(goal) + 1]))
            pcs += found.pcs
            if found.why:
                return StraightCode(tuple(pcs), found.why, found.at)
            last = code.instruction(found.last)
            assert not isinstance(last, str)
            if last.offset is None or last.is_branch or not last.is_inferable_jump:
                why = "" if goal is None else "a branch or jump without an entry"
                return StraightCode(tuple(pcs[:-1] if why else pcs), why, found.last)
            pc = found.last + last.offset & self._mask
        return StraightCode(tuple(pcs), "jumps lead to themselves", pc)

    def _straight(self, pc: int, goal: int) -> StraightCode:
        """Return the code from *pc* to *goal* without anything of which there would be a packet."""
        if self._branch_mode == BranchMode.TARGET:
            return self.history.straight(pc, goal)
        return self._past_jumps(pc, goal)

    # -- predictions

    def _add_predicted(self, packet: TacitPacket) -> StraightCode | None:
        """Add branches that were predicted right, so many as the packet says, or one that was not."""
        assert self._pc is not None
        if self._predictor is None:
            return StraightCode((), "what the encoder's predictor has learned is not known here", self._pc)
        if packet.kind is TacitKind.INFERABLE_JUMP:
            return StraightCode((), "InferableJump while branches are predicted", self._pc)
        if packet.kind is TacitKind.NOT_TAKEN:
            found = self._add_branch(self._predictor, right=False)
            return found if found.why else None
        if packet.time > _MOST_PREDICTED:
            return StraightCode((), f"{packet.time} predictions: more than an encoder counts", self._pc)
        return self._add_right(self._predictor, packet.time)

    def _add_right(self, predictor: CountingPredictor, count: int) -> StraightCode | None:
        """Add *count* branches that were predicted right. Loops in which nothing is learned are entries of the history
        that are repeated.
        """
        begun: dict[int, int] = {}  # how many branches came before each pc, since something was learned
        paths: list[Path] = []
        version, number = predictor.version, 0
        while number < count:
            assert self._pc is not None
            if not number % _OFTEN:
                self._progress("decoding (predicted branches)", number, count)
            if predictor.version != version:
                begun, paths, version = {}, [], predictor.version
            first = begun.setdefault(self._pc, len(paths))
            rounds, rest = divmod(count - number, len(paths) - first) if first < len(paths) else (0, 0)
            if rounds:
                loop = paths[first:]
                self.history.builder.append(RepeatPath(loop[0] if len(loop) == 1 else Path(loop), rounds))
                number = count - rest
                continue
            found = self._add_branch(predictor, right=True)
            if found.why:
                return found
            paths.append(self.history.code.path(found.pcs))
            number += 1
        return None

    def _add_branch(self, predictor: CountingPredictor, *, right: bool) -> StraightCode:
        """Add the code up to the next branch, with the outcome that is predicted, or the other one. Return it, or what
        contradicts it.
        """
        assert self._pc is not None
        found = self._to_transfer(self._pc)
        instruction = self.history.code.instruction(found.last) if not found.why else ""
        if isinstance(instruction, str) or not instruction.is_branch or instruction.offset is None:
            self.history.run(found.pcs if found.why else found.pcs[:-1])
            return found if found.why else StraightCode((), "a prediction at another instruction", found.last)
        taken = predictor.predicts(found.last) == right
        predictor.learn_outcome(found.last, taken=taken)
        self.history.run(found.pcs)
        self._pc = found.last + (instruction.offset if taken else instruction.length) & self._mask
        return found

    # -- traps

    def _add_trap(self, packet: TacitPacket, offset: int) -> StraightCode | None:
        """Add the code up to a trap, or a return from one, and that; return what contradicts it."""
        assert self._pc is not None
        epc = self._address_of(packet)
        found = StraightCode((epc,)) if epc == self._pc else self._straight(self._pc, epc)
        if found.why and not self._sends_whole:
            whole = packet.address >> 1 & self._mask
            other = StraightCode((whole,)) if whole == self._pc else self._straight(self._pc, whole)
            if not other.why:
                self._sends_whole, epc, found = True, whole, other
        if found.why:
            self.history.run(found.pcs)
            return found
        returns = packet.sort == TrapSort.RETURN
        if returns and not self._is_return(epc):
            self.history.run(found.pcs[:-1])
            return StraightCode((), "a return from a trap at another instruction", epc)
        self.history.run(found.pcs if returns else found.pcs[:-1])
        self._go_to(packet, epc, offset)
        return None

    def _address_of(self, packet: TacitPacket) -> int:
        """Return the address at which a trap packet says that the hart was."""
        return packet.address >> self._sends_whole & self._mask

    def _go_to(self, packet: TacitPacket, epc: int, offset: int) -> None:
        """Go where a trap, or a return from one, leads."""
        target = (packet.target ^ epc >> 1) << 1 & self._mask
        if packet.sort != TrapSort.RETURN:
            self.history.add_trap(Trap(_TRAP_KINDS[TrapSort(packet.sort)]), offset, epc, target)
        self._note_context(packet, offset)
        self._pc = target

    def _rejoins(self, packet: TacitPacket, offset: int) -> bool:
        """Go on where a trap packet says that the hart is now, after code that is not the program's."""
        if packet.kind is not TacitKind.TRAP or not self._is_framed:
            return False
        epc = self._address_of(packet)
        target = (packet.target ^ epc >> 1) << 1 & self._mask
        known = not isinstance(self.history.code.instruction(epc), str)
        returns = packet.sort == TrapSort.RETURN
        if isinstance(self.history.code.instruction(target), str) or (returns and known and not self._is_return(epc)):
            return False
        if not known and not returns:
            return False
        self.history.start(target, offset, StartReason.KNOWN_CODE)
        self._go_to(packet, epc, offset)
        self.history.builder.time(self._time)
        self._is_damaged = False
        return True

    def _is_return(self, pc: int) -> bool:
        instruction = self.history.code.instruction(pc)
        return not isinstance(instruction, str) and instruction.itype is IType.TRAP_RETURN

    def end(self, offset: int) -> None:
        """End the trace where it was cut off."""
        if self._pc is not None:
            self.history.off(offset, StopReason.END_NOT_RECORDED)
