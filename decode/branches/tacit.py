"""TACIT, the trace format of Berkeley's encoder for Rocket cores (L-trace), in the mode in which nothing is predicted.

Source: ucb-bar/tacit_decoder (src/frontend: packet.rs, c_header.rs, f_header.rs, trap_type.rs; 457aad8); the encoder,
tacit/TacitEncoder.scala. The first byte of a packet:

    1:0  0 taken branch, 1 branch not taken, 3 inferable jump: the packet is this byte, 7:2 the time since the last one
         2: 4:2 is the kind of packet (`TacitKind`), 7:5 the sort of trap or synchronization

Numbers have 7 bits in a byte, the lowest first; bit 7 is set in the last byte. Addresses are without their bit 0; the
target of an indirect jump or a trap is sent as XOR with the address that it was left at. Every branch and every jump
has a packet. A synchronization begins the trace, the next one ends it.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.branches.items import BranchItem
from rvtrace_gdb.decode.branches.walk import StraightCode, TransferHistory, skipped
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import Accounting, StartReason, StopReason, Trap, TrapKind
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.support.errors import Progress, silent

_OFTEN = 1 << 12  # packets between two calls of the progress
_NUMBER_BITS, _LAST = 7, 0x80
_MOST_BYTES = 10  # of a number of 64 bits
_FULL, _COMPRESSED_TIME = 2, 0x3F


class TacitKind(IntEnum):
    """The kinds of packets (f_header)."""

    TAKEN = 0
    NOT_TAKEN = 1
    UNINFERABLE_JUMP = 2
    INFERABLE_JUMP = 3
    TRAP = 4
    SYNC = 5
    VALUE = 6
    RESERVED = 7


class TrapSort(IntEnum):
    """What a trap packet is about (trap_type)."""

    EXCEPTION = 1
    INTERRUPT = 2
    RETURN = 4


class SyncSort(IntEnum):
    """What a synchronization is, in the encoder's later form; 0 in the earlier one."""

    UNTOLD = 0
    START = 1
    PERIODIC = 2
    END = 3


COMPRESSED = {0: TacitKind.TAKEN, 1: TacitKind.NOT_TAKEN, 3: TacitKind.INFERABLE_JUMP}
"""The kinds that fit a byte, by its bits 1:0."""
_COMPRESSED_BITS = {kind: bits for bits, kind in COMPRESSED.items()}
_NUMBERS = {
    TacitKind.TAKEN: 1, TacitKind.NOT_TAKEN: 1, TacitKind.INFERABLE_JUMP: 1, TacitKind.UNINFERABLE_JUMP: 2,
    TacitKind.TRAP: 3, TacitKind.SYNC: 2,
}  # fmt: skip
_NAMES = {
    TacitKind.TAKEN: "Taken", TacitKind.NOT_TAKEN: "NotTaken", TacitKind.INFERABLE_JUMP: "InferableJump",
    TacitKind.UNINFERABLE_JUMP: "UninferableJump", TacitKind.TRAP: "Trap", TacitKind.SYNC: "Sync",
}  # fmt: skip


class TacitPacket(NamedTuple):
    """A packet. *time*: since the packet before, of a synchronization the absolute time. *address*: of a trap where it
    was left at, of a synchronization the hart's; *target*: XOR that address, and without bit 0, as it is sent. *sort*:
    `TrapSort` or `SyncSort`.
    """

    kind: TacitKind
    time: int
    address: int = 0
    target: int = 0
    sort: int = 0

    def __str__(self) -> str:
        more = f" target^={self.target:#x}" if self.kind in (TacitKind.UNINFERABLE_JUMP, TacitKind.TRAP) else ""
        if self.kind in (TacitKind.TRAP, TacitKind.SYNC):
            named: type[IntEnum] = TrapSort if self.kind is TacitKind.TRAP else SyncSort
            sort = named(self.sort).name.lower() if self.sort in set(named) else str(self.sort)
            more = f" {sort} address=0x{self.address:x}{more}"
        return f"{_NAMES[self.kind]}{more} time={self.time if self.kind is TacitKind.SYNC else f'+{self.time}'}"


def packet_bytes(packet: TacitPacket) -> bytes:
    """Return the bytes of a packet, in a single one where it fits."""
    kind = packet.kind
    if kind in _COMPRESSED_BITS and packet.time <= _COMPRESSED_TIME:
        return bytes([_COMPRESSED_BITS[kind] | packet.time << 2])
    head = bytes([_FULL | kind << 2 | packet.sort << 5])
    numbers = {
        TacitKind.UNINFERABLE_JUMP: (packet.target,), TacitKind.TRAP: (packet.address >> 1, packet.target),
        TacitKind.SYNC: (packet.address >> 1,),
    }.get(kind, ())  # fmt: skip
    return head + b"".join(map(_number_bytes, (*numbers, packet.time)))


def _number_bytes(value: int) -> bytes:
    groups = [value & 0x7F]
    while value := value >> _NUMBER_BITS:
        groups.append(value & 0x7F)
    return bytes([*groups[:-1], groups[-1] | _LAST])


class _CutPacket(NamedTuple):
    """A packet and its size; *problem*: why there is none."""

    packet: TacitPacket | None
    size: int
    problem: str = ""


def packet_at(data: bytes, offset: int) -> _CutPacket:
    """Return the packet that begins at *offset*."""
    first = data[offset]
    if first & 3 != _FULL:
        return _CutPacket(TacitPacket(COMPRESSED[first & 3], first >> 2), 1)
    kind, sort = TacitKind(first >> 2 & 7), first >> 5
    if kind not in _NUMBERS:
        return _CutPacket(None, 1, f"packets of kind {kind.value} are not defined")
    numbers, at = list[int](), offset + 1
    for _ in range(_NUMBERS[kind]):
        value = 0
        for place in range(_MOST_BYTES + 1):
            if at >= len(data):
                return _CutPacket(None, len(data) - offset, "the trace ends in the middle of a packet")
            if place == _MOST_BYTES:
                return _CutPacket(None, 1, "a number has more than 64 bits")
            value |= (data[at] & 0x7F) << _NUMBER_BITS * place
            at += 1
            if data[at - 1] & _LAST:
                break
        numbers.append(value)
    size = at - offset
    if max(numbers) >> 64:
        return _CutPacket(None, 1, "a number has more than 64 bits")
    if kind is TacitKind.TRAP:
        return _CutPacket(TacitPacket(kind, numbers[2], numbers[0] << 1, numbers[1], sort), size)
    if kind is TacitKind.SYNC:
        return _CutPacket(TacitPacket(kind, numbers[1], numbers[0] << 1, sort=sort), size)
    return _CutPacket(TacitPacket(kind, numbers[-1], target=numbers[0] if len(numbers) > 1 else 0), size)


def items_of(data: bytes) -> Iterator[BranchItem]:
    """Yield the packets, and bytes that are none."""
    offset = 0
    while offset < len(data):
        found = packet_at(data, offset)
        raw = data[offset : offset + found.size]
        text = f"{raw.hex(' ')} # {found.problem}" if found.packet is None else str(found.packet)
        yield BranchItem(offset, raw, text, found.problem)
        offset += found.size


def history_of(data: bytes, program: Program, *, wrapped: bool = False, progress: Progress = silent) -> SourceHistories:
    """Return what ran. Decoding starts at a synchronization. Raises only what *progress* raises."""
    decoder = _TacitDecoder(TransferHistory(program, "packet"))
    offset = count = 0
    while offset < len(data):
        if not count % _OFTEN:
            progress("decoding", offset, len(data))
        found = packet_at(data, offset)
        decoder.take(found, offset)
        offset += found.size
        count += 1
    decoder.end(len(data))
    skipped_bytes = decoder.skipped
    accounting = Accounting(len(data), len(data) - skipped_bytes, 0, skipped_bytes)
    history = decoder.history.builder.finish(accounting)
    return SourceHistories({0: history}, accounting)


class _TacitDecoder:
    """Makes a history of packets. *skipped*: bytes that could not be used."""

    def __init__(self, history: TransferHistory) -> None:
        self.history, self.skipped = history, 0
        self._mask = (1 << history.xlen) - 1
        self._pc: int | None = None  # where the hart goes on; None: not known
        self._begun = self._is_fresh = False
        self._time = 0

    def take(self, cut: _CutPacket, offset: int) -> None:
        """Add a packet."""
        packet = cut.packet
        if packet is None:
            self._lost(cut.size, offset, cut.problem)
        elif packet.kind is TacitKind.SYNC:
            self._take_sync(packet, offset)
        elif self._pc is None:
            self._lost(cut.size, offset, "packets before a synchronization")
        else:
            self._time += packet.time
            self._is_fresh = False
            wrong = self._add_trap(packet, offset) if packet.kind is TacitKind.TRAP else self._add_transfer(packet)
            if wrong is None:
                self.history.builder.time(self._time)
            else:
                self.history.contradiction(wrong, offset)
                self._pc = None

    def _lost(self, size: int, offset: int, why: str) -> None:
        self.skipped += size
        if self._pc is not None or not self._begun:
            self.history.loss(skipped(size, why), offset)
        self._begun, self._pc = True, None

    def _take_sync(self, packet: TacitPacket, offset: int) -> None:
        history, address = self.history, packet.address & self._mask
        begins = self._pc is None or packet.sort == SyncSort.START
        self._time = packet.time
        if self._pc is not None and packet.sort != SyncSort.START:
            found = self.history.straight(self._pc, address)
            ends = packet.sort != SyncSort.PERIODIC
            begins = bool(found.why) and packet.sort != SyncSort.END
            if not (found.why and self._is_fresh):  # of two in a row the first one has ended what is lost
                history.run(found.pcs if ends or found.why else found.pcs[:-1])
            if found.why and not self._is_fresh:
                history.contradiction(found, offset)
            elif ends and not found.why:
                history.builder.time(self._time)
                history.off(offset, StopReason.TRACE_DISABLED)
            self._pc = None if ends else address
        elif self._pc is not None and not self._is_fresh:
            history.off(offset, StopReason.END_NOT_RECORDED)
        if begins:
            history.start(address, offset, StartReason.PERIODIC if packet.sort == 2 else StartReason.TRACING_STARTS)
            history.builder.time(self._time)
            self._pc = address
        self._begun, self._is_fresh = True, begins

    def _add_transfer(self, packet: TacitPacket) -> StraightCode | None:
        """Add the code up to the branch or jump of a packet; return what contradicts it."""
        assert self._pc is not None
        history = self.history
        found = history.code.up_to_transfer(self._pc)
        if found.why:
            history.run(found.pcs)
            return found
        last, instruction = found.last, history.code.instruction(found.last)
        assert not isinstance(instruction, str)
        kind = packet.kind
        if kind is TacitKind.TAKEN and instruction.is_branch and instruction.offset is not None:
            target = last + instruction.offset
        elif packet.kind is TacitKind.NOT_TAKEN and instruction.is_branch:
            target = last + instruction.length
        elif (
            packet.kind is TacitKind.INFERABLE_JUMP and instruction.is_inferable_jump and instruction.offset is not None
        ):
            target = last + instruction.offset
        elif packet.kind is TacitKind.UNINFERABLE_JUMP and instruction.is_uninferable:
            target = (packet.target ^ last >> 1) << 1
        else:
            history.run(found.pcs[:-1])
            return StraightCode((), f"{_NAMES[packet.kind]} at another instruction", last)
        history.run(found.pcs)
        self._pc = target & self._mask
        return None

    def _add_trap(self, packet: TacitPacket, offset: int) -> StraightCode | None:
        """Add the code up to a trap, or a return from one, and that; return what contradicts it."""
        assert self._pc is not None
        epc = packet.address & self._mask
        target = (packet.target ^ epc >> 1) << 1 & self._mask
        found = StraightCode((epc,)) if epc == self._pc else self.history.straight(self._pc, epc)
        if found.why:
            self.history.run(found.pcs)
            return found
        returns = packet.sort == TrapSort.RETURN
        self.history.run(found.pcs if returns else found.pcs[:-1])
        if returns:
            instruction = self.history.code.instruction(epc)
            if isinstance(instruction, str) or instruction.itype is not IType.TRAP_RETURN:
                return StraightCode((), "a return from a trap at another instruction", epc)
        else:
            kinds = {TrapSort.EXCEPTION: TrapKind.EXCEPTION, TrapSort.INTERRUPT: TrapKind.INTERRUPT}
            known = packet.sort in (TrapSort.EXCEPTION, TrapSort.INTERRUPT)
            kind = kinds[TrapSort(packet.sort)] if known else TrapKind.UNKNOWN
            self.history.add_trap(Trap(kind), offset, epc, target)
        self._pc = target
        return None

    def end(self, offset: int) -> None:
        """End the trace where it was cut off."""
        if self._pc is not None:
            self.history.off(offset, StopReason.END_NOT_RECORDED)


class TacitEncoder:
    """What TACIT's encoder sends of a hart that retires blocks and takes traps; time counts instructions."""

    def __init__(self) -> None:
        self._now = self._sent = 0
        self._last: int | None = None
        self._open: Block | None = None  # the last block, as long as it is not known where it led

    def packets_of(self, items: Iterable[Block | IngressTrap]) -> Iterator[TacitPacket]:
        """Yield the packets that these make."""
        for item in items:
            here = item.epc if isinstance(item, IngressTrap) else item.pc
            if self._last is None:
                self._sent = self._now
                yield TacitPacket(TacitKind.SYNC, self._now, here)
            yield from self._resolved(here)
            if isinstance(item, IngressTrap):
                sort = TrapSort.INTERRUPT if item.interrupt else TrapSort.EXCEPTION
                yield TacitPacket(TacitKind.TRAP, self._elapsed(), item.epc, (item.epc ^ item.handler) >> 1, sort)
                self._last = item.epc
                continue
            self._now += item.instructions
            self._last = item.fall - 2 * item.lengths[-1]
            self._open = item if item.itype is not IType.NONE else None

    def stop(self) -> Iterator[TacitPacket]:
        """Yield the end of the trace."""
        if self._last is not None:
            yield TacitPacket(TacitKind.SYNC, self._now, self._last)
        self._last = self._open = None

    def _elapsed(self) -> int:
        elapsed, self._sent = self._now - self._sent, self._now
        return elapsed

    def _resolved(self, here: int) -> Iterator[TacitPacket]:
        """Yield the packet of the last block's end, which led here."""
        block, self._open = self._open, None
        if block is None:
            return
        last = block.fall - 2 * block.lengths[-1]
        if block.itype is IType.NOT_TAKEN:
            yield TacitPacket(TacitKind.NOT_TAKEN if here == block.fall else TacitKind.TAKEN, self._elapsed())
        elif block.itype is IType.TRAP_RETURN:
            yield TacitPacket(TacitKind.TRAP, self._elapsed(), last, (last ^ here) >> 1, TrapSort.RETURN)
        elif block.ending == 2:
            yield TacitPacket(TacitKind.UNINFERABLE_JUMP, self._elapsed(), target=(last ^ here) >> 1)
        else:
            yield TacitPacket(TacitKind.INFERABLE_JUMP, self._elapsed())
