"""What ran, from the packets of gem5's E-Trace and the program.

Source: gem5/gem5, pull request 3264 (src/cpu/o3/probe/etrace.cc at 03960ac and 3d85162), for what its probe does where
E-Trace leaves it open or has it otherwise:

- Each direct jump, and each return whose target is implied, sends the branches before it without an address: fewer than
  31 of them lead up to the jump.
- An address is that of the instruction after an indirect jump. Before a trap, a resynchronization, and the end it is
  the last instruction that ran, and is sent only with branches: a trap in straight code is not told where it hit.
- A resynchronization names an instruction that has run; the first START, and that of another privilege mode, one that
  is about to run, whose outcome comes again with the branches behind it.
"""

from collections.abc import Sequence
from contextlib import suppress
from enum import Flag, auto

from rvtrace_gdb.decode.branches.gem5.packets import CutMessage, Gem5Field, Gem5Kind, Gem5Packet, message_at
from rvtrace_gdb.decode.branches.items import NO_SETTINGS, Settings
from rvtrace_gdb.decode.branches.walk import StraightCode, TransferHistory, skipped
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import Loss, StartReason, StopReason, Trap, TrapKind
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import Instruction, IType, sequential_target
from rvtrace_gdb.support.errors import Progress, silent

_OFTEN = 1 << 12  # packets between two calls of the progress
_FULL_MAP = 31
_IMPLICIT_RETURN, _SEQUENTIAL = 1 << 0, 1 << 3  # bits of ioptions
_START, _END = 1, 2  # qual_status
_BREAKPOINT, _ECALLS = 3, range(8, 12)  # causes
_CALLS = (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL)
_AGAIN = "the trace goes on at the next START"


def history_of(
    data: bytes,
    program: Program,
    settings: Settings = NO_SETTINGS,
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> SourceHistories:
    """Return what ran. Raises only what *progress* raises."""
    decoder = _Gem5Decoder(TransferHistory(program, "packet"))
    offset = count = 0
    while offset < len(data):
        if not count % _OFTEN:
            progress("decoding", offset, len(data))
        found = message_at(data, offset)
        decoder.take(found, offset)
        offset += found.size
        count += 1
    decoder.end(len(data))
    return decoder.history.finish(len(data), decoder.skipped)


class _Contradiction(Exception):
    """The packets do not fit the program. *code*: where, and why."""

    def __init__(self, code: StraightCode) -> None:
        self.code = code


class _NotTold(Exception):
    """What ran does not follow from the packets."""


class _AddressMeaning(Flag):
    """What an address may be: that of the last instruction that ran, of one that runs next, or the target of a jump."""

    LAST = auto()
    NEXT = auto()
    TARGET = auto()


def _meaning_of(packet: Gem5Packet, address: int, following: Gem5Packet | None, priv: int | None) -> _AddressMeaning:
    """Return what the address of a packet may be, by the packet that follows. *priv*: the mode before that."""
    if not packet.outcomes:
        return _AddressMeaning.TARGET
    if following is None or following.kind in (Gem5Kind.TRAP, Gem5Kind.SUPPORT):
        return _AddressMeaning.LAST | _AddressMeaning.TARGET
    if following.kind is Gem5Kind.CONTEXT:
        return _AddressMeaning.NEXT
    is_named = following.kind is Gem5Kind.START and following.number(Gem5Field.ADDRESS) == address
    return _AddressMeaning.LAST if is_named and following.number(Gem5Field.PRIV) == priv else _AddressMeaning.TARGET


class _Gem5Decoder:
    """Makes a history of packets. *skipped*: bytes that could not be used."""

    def __init__(self, history: TransferHistory) -> None:
        self.history, self.skipped = history, 0
        self._mask = (1 << history.xlen) - 1
        self._pc: int | None = None  # what runs next; None: not known
        self._last: int | None = None  # what ran last
        self._priv: int | None = None
        self._context: int | None = None
        self._reported: int | None = None  # the address that differences are added to; None: not known
        self._options = 0  # ioptions
        self._calls: list[int] = []  # where functions return to
        self._waiting: Gem5Packet | None = None  # with an address: what follows says what it is
        self._before: Gem5Kind | None = None
        self._certain = False  # `_last` was told to be the last instruction before what comes

    def take(self, cut: CutMessage, offset: int) -> None:
        """Add a packet."""
        packet = cut.packet
        if packet is None:
            if cut.problem:
                self.skipped += cut.size
                self._reported = None
                self._lost(skipped(cut.size, cut.problem), offset)
            return
        try:
            self._settle(packet)
            self._apply(packet, offset)
            if self._pc is not None and not self._waiting:
                self.history.builder.time(packet.number(Gem5Field.TICK))
        except _Contradiction as error:
            self.history.contradiction(error.code, offset)
            self._forget()
        except _NotTold as error:
            self._lost(skipped(0, str(error)), offset)
        if packet.kind is Gem5Kind.START:
            self._reported = packet.number(Gem5Field.ADDRESS)
        self._before = packet.kind

    def end(self, offset: int) -> None:
        """End the trace where it was cut off."""
        if self._pc is not None:
            with suppress(_Contradiction, _NotTold):
                self._settle(None)
            self.history.off(offset, StopReason.END_NOT_RECORDED)

    def _lost(self, loss: Loss, offset: int) -> None:
        """Add a gap, and wait for a START."""
        if self._pc is not None or self._before is None:
            self.history.loss(loss, offset)
        self._forget()

    def _forget(self) -> None:
        self._pc = self._last = self._waiting = None
        self._calls.clear()

    def _apply(self, packet: Gem5Packet, offset: int) -> None:
        kind = packet.kind
        if kind is Gem5Kind.SUPPORT:
            self._take_support(packet, offset)
        elif kind is Gem5Kind.START:
            self._take_start(packet, offset)
        elif kind is Gem5Kind.TRAP:
            self._take_trap(packet, offset)
        elif kind is Gem5Kind.CONTEXT:
            self._context = packet.number(Gem5Field.CONTEXT)
            self._say_context()
        elif self._pc is None:
            self._add_difference(packet)
        elif packet.number(Gem5Field.BRANCH_PRED_COUNT):
            raise _NotTold(f"packets do not say which branches gem5's branchPrediction left out: {_AGAIN}")
        elif kind is Gem5Kind.BRANCH_MAP:
            self._take_map(packet)
        else:
            self._add_difference(packet)
            self._waiting = packet

    def _add_difference(self, packet: Gem5Packet) -> None:
        """Take an address: the earlier form of the probe sends the difference as the address, the later one both."""
        if packet.kind is Gem5Kind.BRANCH_MAP or Gem5Field.JTC_INDEX in packet.fields:
            return
        address = packet.number(Gem5Field.ADDRESS)
        if Gem5Field.SADDRESS in packet.fields and Gem5Field.ADDRESS in packet.fields:
            self._reported = address & self._mask
        elif self._reported is not None:
            self._reported = self._reported + (packet.number(Gem5Field.SADDRESS) or address) & self._mask

    def _say_context(self) -> None:
        self.history.builder.context(ProgramContext(prv=self._priv, scontext=self._context))

    # What addresses stand for

    def _settle(self, following: Gem5Packet | None) -> None:
        """Add what a packet with an address reports; the packet after it, None at the end, says what the address is."""
        packet, self._waiting = self._waiting, None
        self._certain = False
        if packet is None or self._pc is None or self._reported is None:
            return
        outcomes, address = packet.outcomes, self._reported
        self._take_branches(outcomes)
        if Gem5Field.JTC_INDEX in packet.fields:
            raise _NotTold(f"packets do not say what gem5's jump target cache has in an entry: {_AGAIN}")
        code = self.history.code.up_to_transfer(self._pc)
        straight = code.pcs if code.why else code.pcs[:-1]
        meaning = _meaning_of(packet, address, following, self._priv)
        has_run = _AddressMeaning.LAST in meaning and (address == self._last or address in straight)
        leads_there = not code.why and self._instruction(code.last).is_uninferable
        if has_run and leads_there and _AddressMeaning.TARGET in meaning:
            raise _NotTold(f"an address may be that of the last instruction or that of the next one: {_AGAIN}")
        if has_run:
            self._run_through(address, straight)
        elif _AddressMeaning.NEXT in meaning and address in code.pcs:
            self._run_up_to(address, code)
        else:
            self._add_jump(address)

    def _run_up_to(self, address: int, code: StraightCode) -> None:
        before = code.pcs[: code.pcs.index(address)]
        self.history.run(before)
        self._last, self._pc = before[-1] if before else self._last, address

    def _run_through(self, address: int, straight: Sequence[int]) -> None:
        """Add the code up to *address*, which ran last."""
        self._certain = True
        if address == self._last and address not in straight:
            return
        ran = tuple(straight[: straight.index(address) + 1])
        self.history.run(ran)
        self._last, self._pc = address, address + self._instruction(address).length & self._mask

    def _instruction(self, pc: int) -> Instruction:
        found = self.history.code.instruction(pc)
        if isinstance(found, str):
            raise _Contradiction(StraightCode((), found, pc))
        return found

    def _next_transfer(self) -> tuple[StraightCode, Instruction]:
        """Return the code up to the next transfer of control, and that. Raises _Contradiction after what ran of it."""
        assert self._pc is not None
        found = self.history.code.up_to_transfer(self._pc)
        if found.why:
            self.history.run(found.pcs)
            raise _Contradiction(found)
        return found, self._instruction(found.last)

    def _take_branches(self, outcomes: Sequence[bool]) -> None:
        """Add the code up to and with these branches."""
        for taken in outcomes:
            found, branch = self._next_transfer()
            if not branch.is_branch or branch.offset is None:
                self.history.run(found.pcs[:-1])
                raise _Contradiction(StraightCode((), "a branch is reported at another instruction", found.last))
            self.history.run(found.pcs)
            self._last = found.last
            self._pc = found.last + (branch.offset if taken else branch.length) & self._mask

    def _add_jump(self, address: int) -> None:
        """Add the code up to an indirect jump to *address*."""
        found, jump = self._next_transfer()
        if not jump.is_uninferable:
            self.history.run(found.pcs[:-1])
            raise _Contradiction(StraightCode((), f"0x{address:x} is reported where no jump leads there", found.last))
        self.history.run(found.pcs)
        self._call(found.last, jump)
        self._last, self._pc = found.last, address

    def _call(self, pc: int, jump: Instruction) -> None:
        if jump.itype in (IType.RETURN, IType.COROUTINE_SWAP) and self._calls:
            self._calls.pop()
        if jump.itype in _CALLS or jump.itype is IType.COROUTINE_SWAP:
            self._calls.append(pc + jump.length & self._mask)

    # The packets

    def _take_map(self, packet: Gem5Packet) -> None:
        """Add branches, and the direct jump that sent them, unless there was no room for more."""
        outcomes = packet.outcomes
        self._take_branches(outcomes)
        if len(outcomes) == _FULL_MAP:
            return
        found, jump = self._next_transfer()
        target = self._implied_target(found, jump)
        if target is None:
            self.history.run(found.pcs[:-1])
            raise _Contradiction(StraightCode((), "a jump without an address is reported here", found.last))
        self.history.run(found.pcs)
        self._call(found.last, jump)
        self._last, self._pc = found.last, target & self._mask

    def _implied_target(self, code: StraightCode, jump: Instruction) -> int | None:
        """Return where a jump leads that needs no address."""
        if jump.is_inferable_jump and jump.offset is not None:
            return code.last + jump.offset
        if jump.itype is IType.RETURN and self._options & _IMPLICIT_RETURN and self._calls:
            return self._calls[-1]
        if self._options & _SEQUENTIAL and len(code.pcs) > 1:
            return sequential_target(self._instruction(code.pcs[-2]), code.pcs[-2], jump, self.history.xlen)
        return None

    def _take_support(self, packet: Gem5Packet, offset: int) -> None:
        """Take the options; what ran before a start, and after an end, is not in the trace."""
        self._options = packet.number(Gem5Field.IOPTIONS)
        if self._pc is not None and packet.number(Gem5Field.QUAL_STATUS) in (_START, _END):
            ends = packet.number(Gem5Field.QUAL_STATUS) == _END
            known = StopReason.TRACE_DISABLED if ends else StopReason.MODE_NOT_RECORDED
            self.history.off(offset, known if self._certain else StopReason.END_NOT_RECORDED)
            self._forget()

    def _take_start(self, packet: Gem5Packet, offset: int) -> None:
        """Begin, or compare where the hart is."""
        address, priv = packet.number(Gem5Field.ADDRESS) & self._mask, packet.number(Gem5Field.PRIV)
        has_run = self._before not in (None, Gem5Kind.SUPPORT, Gem5Kind.TRAP) and priv == self._priv
        self._priv = priv
        if self._pc is None:
            self._begin_history(address, offset, packet, has_run=has_run)
            return
        if self._pc == address and not has_run:
            self._say_context()
            return
        if has_run and address == self._last:
            return
        found = self.history.straight(self._pc, address)
        self.history.run(found.pcs if has_run or found.why else found.pcs[:-1])
        if found.why:
            self.history.contradiction(found, offset)
            self._forget()
            self._begin_history(address, offset, packet, has_run=has_run)
            return
        self._last = address
        self._pc = address + self._instruction(address).length & self._mask if has_run else address
        self._say_context()

    def _begin_history(self, address: int, offset: int, packet: Gem5Packet, *, has_run: bool) -> None:
        """Begin at an instruction. *has_run*: packets have reported what it did."""
        instruction = self._instruction(address)
        reason = StartReason.PERIODIC if has_run else StartReason.TRACING_STARTS
        self.history.start(address, offset, reason)
        self._pc = address
        self._say_context()
        if not has_run or instruction.itype is IType.NONE:
            return
        self.history.run((address,))
        self._last = address
        if instruction.is_branch and instruction.offset is not None:
            taken = not packet.number(Gem5Field.BRANCH_MAP) & 1
            self._pc = address + (instruction.offset if taken else instruction.length) & self._mask
        elif instruction.is_inferable_jump and instruction.offset is not None:
            self._pc = address + instruction.offset & self._mask
        elif instruction.is_uninferable and self._reported is not None:
            self._pc = self._reported
        else:
            raise _NotTold(f"where the hart went from 0x{address:x} is not in the trace: {_AGAIN}")

    def _take_trap(self, packet: Gem5Packet, offset: int) -> None:
        """Add a trap. Where it hit is known after branches, and where the next instruction always traps."""
        interrupt = bool(packet.number(Gem5Field.INTERRUPT))
        handler = packet.number(Gem5Field.ADDRESS) & self._mask
        if Gem5Field.ADDRESS not in packet.fields:
            raise _NotTold(f"the address of the trap handler is not in the trace (implicitException): {_AGAIN}")
        kind = TrapKind.INTERRUPT if interrupt else TrapKind.EXCEPTION
        trap = Trap(kind, packet.number(Gem5Field.CAUSE), None if interrupt else packet.number(Gem5Field.TVAL))
        self._reported, was_known = handler, self._pc is not None
        epc = self._hit(trap)
        history = self.history
        if epc is None:
            if was_known:
                history.loss(skipped(0, "where in straight code a trap hit is not in the trace"), offset)
            history.builder.add_gap()
            history.builder.resume(handler, offset)
        history.add_trap(trap, offset, epc, handler)
        self._pc, self._last = handler, None
        self._priv = packet.number(Gem5Field.PRIV)
        self._say_context()

    def _hit(self, trap: Trap) -> int | None:
        """Return the instruction that a trap hit, after adding what ran up to it; None: not known."""
        if self._pc is None:
            return None
        if self._certain:
            return self._pc
        found = self.history.code.up_to_transfer(self._pc)
        if not found.why and len(found.pcs) == 1:
            return self._pc
        asked = trap.kind is TrapKind.EXCEPTION and (trap.cause == _BREAKPOINT or trap.cause in _ECALLS)
        if found.why or not asked or self._instruction(found.last).itype is not IType.EXCEPTION:
            return None
        self.history.run(found.pcs[:-1])
        return found.last
