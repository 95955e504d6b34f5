"""Cutting the bytes of a TACIT trace into packets.

Nothing marks where a packet begins, so after bytes that are none the next one is searched byte by byte. The layout, and
how branches are reported, is that of the last synchronization.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.branches.items import NO_SETTINGS, BranchItem, Settings
from rvtrace_gdb.decode.branches.tacit.packets import (
    COMPRESSED,
    FULL,
    LAST,
    NUMBER_BITS,
    PRV_CHECK,
    USER,
    BranchMode,
    SyncSort,
    TacitConfiguration,
    TacitKind,
    TacitPacket,
    TrapSort,
)

_MOST_BYTES = 10  # of a number of 64 bits
_PRV_BITS = 0o77
CUT_OFF = "the trace ends in the middle of a packet"
MODE_REGISTER, ENTRIES_SETTING = "TR_TE_BRANCH_MODE", "bp_entries"
"""The settings of a trace that does not say how branches are reported."""
OFF_IN_DEBUG_MODE = "off_in_debug_mode"
"""The setting of a trace that was off while its hart was halted, and at no other time."""


def predicting(entries: int) -> tuple[tuple[str, int], ...]:
    """Return the settings of a trace in which branches are predicted, with so many entries."""
    return (MODE_REGISTER, int(BranchMode.PREDICT)), (ENTRIES_SETTING, entries)


class CutPacket(NamedTuple):
    """A packet and its size; *problem*: why there is none."""

    packet: TacitPacket | None
    size: int
    problem: str = ""


class _NotAPacket(Exception):
    """Why bytes are no packet. *size*: how many, 0: all that follow."""

    def __init__(self, problem: str, size: int = 1) -> None:
        super().__init__(problem)
        self.problem, self.size = problem, size


class PacketReader:
    """Reads the packets of *data*, one after the other. *settings*: registers, by name, as they were while tracing.

    `configuration` is how branches are reported: as the last start packet says, or else as *settings* do.
    `is_off_in_debug_mode`: see OFF_IN_DEBUG_MODE.
    """

    def __init__(self, data: bytes, settings: Settings = NO_SETTINGS) -> None:
        self._data, self._at, self._has_context = data, 0, False
        self.is_off_in_debug_mode = bool(settings.get(OFF_IN_DEBUG_MODE))
        default = TacitConfiguration()
        mode, entries = settings.get(MODE_REGISTER, default.mode), settings.get(ENTRIES_SETTING, default.entries)
        self.configuration = TacitConfiguration(mode, entries if 0 < entries <= 1 << 32 else default.entries)

    def __iter__(self) -> Iterator[tuple[int, CutPacket]]:
        """Yield the offset of each packet, and the packet; or bytes that are none."""
        while (offset := self._at) < len(self._data):
            try:
                packet = self._packet()
                cut = CutPacket(packet, self._at - offset)
                self._note(packet)
            except _NotAPacket as error:
                size = error.size or len(self._data) - offset
                cut = CutPacket(None, size, error.problem)
                self._at = offset + size
            yield offset, cut

    def _note(self, packet: TacitPacket) -> None:
        """Remember the layout and the configuration of a synchronization."""
        if packet.kind is TacitKind.SYNC:
            self._has_context = packet.prv is not None
            if packet.sort == SyncSort.START and packet.number is not None:
                self.configuration = TacitConfiguration.from_number(packet.number)

    def _packet(self) -> TacitPacket:
        """Return the packet here, and go on to the next one. Raises _NotAPacket."""
        first = self._byte()
        if first & 3 != FULL:
            return TacitPacket(COMPRESSED[first & 3], first >> 2)
        kind, sort = TacitKind(first >> 2 & 7), first >> 5
        if kind is TacitKind.SYNC:
            return self._sync(sort)
        if kind is TacitKind.TRAP:
            return self._trap(sort)
        if kind in (TacitKind.VALUE, TacitKind.RESERVED):
            raise _NotAPacket(f"packets of kind {kind.value} are not defined")
        if sort:
            raise _NotAPacket(f"bits 7:5 are {sort}, and must be 0 in packets of kind {kind.value}")
        target = self._number() if kind is TacitKind.UNINFERABLE_JUMP else 0
        return TacitPacket(kind, self._number(), target=target)

    def _sync(self, sort: int) -> TacitPacket:
        if sort == SyncSort.UNTOLD:
            address = self._number() << 1
            return TacitPacket(TacitKind.SYNC, self._number(), address)
        if sort not in set(SyncSort):
            raise _NotAPacket(f"synchronizations of type {sort} are not defined")
        prv, from_prv = self._privileges()
        ctx, number = self._number(), None
        if sort in (SyncSort.START, SyncSort.PAUSE, SyncSort.RESUME) or self._byte_is(LAST):
            number = self._number()  # an end has it in the specification, and not in the encoder of 32c52c6
        address = self._number() << 1
        return TacitPacket(TacitKind.SYNC, self._number(), address, 0, sort, prv, from_prv, ctx, number)

    def _trap(self, sort: int) -> TacitPacket:
        prv, from_prv, ctx = None, 0, None
        if sort not in set(TrapSort):
            raise _NotAPacket(f"traps of type {sort} are not defined")
        if self._has_context:
            prv, from_prv = self._privileges()
            ctx = self._number() if sort == TrapSort.RETURN and prv == USER else None
        address, target = self._number() << 1, self._number()
        return TacitPacket(TacitKind.TRAP, self._number(), address, target, sort, prv, from_prv, ctx)

    def _privileges(self) -> tuple[int, int]:
        byte = self._byte()
        if byte & ~_PRV_BITS != PRV_CHECK:
            raise _NotAPacket(f"0x{byte:02x} is no pair of privilege modes, whose bits 7:6 are 2")
        return byte >> 3 & 7, byte & 7

    def _byte_is(self, value: int) -> bool:
        return self._at < len(self._data) and self._data[self._at] == value

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise self._cut_off()
        self._at += 1
        return self._data[self._at - 1]

    def _number(self) -> int:
        data, at, value = self._data, self._at, 0
        for place in range(_MOST_BYTES):
            if at >= len(data):
                raise self._cut_off()
            value |= (data[at] & 0x7F) << NUMBER_BITS * place
            at += 1
            if data[at - 1] & LAST:
                break
        else:
            raise _NotAPacket("a number has more than 64 bits")
        if value >> 64:
            raise _NotAPacket("a number has more than 64 bits")
        self._at = at
        return value

    def _cut_off(self) -> _NotAPacket:
        return _NotAPacket(CUT_OFF, 0)


def items_of(data: bytes, settings: Settings = NO_SETTINGS) -> Iterator[BranchItem]:
    """Yield the packets, and bytes that are none."""
    reader = PacketReader(data, settings)
    for offset, found in reader:
        raw = data[offset : offset + found.size]
        mode = reader.configuration.mode
        text = f"{raw.hex(' ')} # {found.problem}" if found.packet is None else found.packet.text(mode)
        yield BranchItem(offset, raw, text, found.problem)
