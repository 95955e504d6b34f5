"""The packets of TACIT, and their bytes.

Sources: ucb-bar/tacit (91f4bcb), TacitEncoder.scala, and ucb-bar/tacit_decoder (457aad8), src/frontend/packet.rs, for
the plain layout; riscv-tacit/tacit (32c52c6), TacitEncoder.scala, TracePacketizer.scala, and the "TACIT Packet Encoding
Specification" 1.1 of its decoder, for the layout with privilege and context. The first byte of a packet:

    1:0  0 taken branch, 1 branch not taken, 3 inferable jump: the packet is this byte, 7:2 the time since the last one
         2: 4:2 is the kind of packet (`TacitKind`), 7:5 the sort of trap (`TrapSort`) or synchronization (`SyncSort`)

What follows, as far as the packet has it, in this order:

    prv      5:3 the privilege mode afterwards, 2:0 the one before, 7:6 always 2
    ctx      satp.ASID
    address  of a trap that of the instruction; of a start the configuration, of a resumption the packets that are lost
    target   of a synchronization the hart's address; else where control goes, XOR the instruction's address
    time     since the packet before; of a synchronization the absolute time

Numbers have 7 bits in a byte, the lowest first; bit 7 is set in the last byte. Addresses are without their bit 0. In
the plain layout no synchronization has a sort, and there is neither prv nor ctx; in the other every one has a sort,
`prv` and `ctx`, and traps have `prv`, returns to U-mode also `ctx`. The layout of a trap is thus that of the last
synchronization.
"""

from enum import IntEnum
from typing import NamedTuple

NUMBER_BITS, LAST = 7, 0x80
FULL, COMPRESSED_TIME = 2, 0x3F
PRV_CHECK = 2 << 6


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
    """What a synchronization is (sync_type); 0 in the plain layout."""

    UNTOLD = 0
    START = 1
    PERIODIC = 2
    END = 3
    PAUSE = 4
    RESUME = 5


class BranchMode(IntEnum):
    """How branches are reported (bp_mode, TR_TE_BRANCH_MODE)."""

    TARGET = 0
    """Each branch and each jump has a packet."""
    HISTORY = 1
    """No encoder has it: branches and direct jumps are then not reported at all."""
    PREDICT = 2
    """Branches that the predictor foretells are counted, others are reported; direct jumps are not."""


_LEAST_ENTRIES = 64


class TacitConfiguration(NamedTuple):
    """How an encoder reports branches. *entries*: of its predictor; 1024 is what Chipyard's configurations have."""

    mode: int = BranchMode.TARGET
    entries: int = 1024

    @property
    def encoded(self) -> int:
        """The number in a start packet."""
        return self.mode | (self.entries // _LEAST_ENTRIES).bit_length() - 1 << 2

    @classmethod
    def from_number(cls, number: int) -> "TacitConfiguration":
        """Return the configuration of a start packet."""
        return cls(number & 3, _LEAST_ENTRIES << (number >> 2 & 0x1F))


COMPRESSED = {0: TacitKind.TAKEN, 1: TacitKind.NOT_TAKEN, 3: TacitKind.INFERABLE_JUMP}
"""The kinds that fit a byte, by its bits 1:0."""
_COMPRESSED_BITS = {kind: bits for bits, kind in COMPRESSED.items()}
NAMES = {
    TacitKind.TAKEN: "Taken", TacitKind.NOT_TAKEN: "NotTaken", TacitKind.INFERABLE_JUMP: "InferableJump",
    TacitKind.UNINFERABLE_JUMP: "UninferableJump", TacitKind.TRAP: "Trap", TacitKind.SYNC: "Sync",
}  # fmt: skip
_PRIVILEGES = {0: "U", 1: "S", 3: "M"}
USER = 0


class TacitPacket(NamedTuple):
    """A packet. *time*: since the packet before, of a synchronization the absolute time. *address*: of a trap where it
    was left at, of a synchronization the hart's; *target*: XOR that address, and without bit 0, as it is sent. *sort*:
    `TrapSort` or `SyncSort`. *prv*: the privilege mode afterwards, None in the plain layout, and *from_prv* the one
    before; *ctx*: satp.ASID, where it is sent. *number*: of a start the configuration, of a resumption how many
    packets are lost; None: none is sent.
    """

    kind: TacitKind
    time: int
    address: int = 0
    target: int = 0
    sort: int = 0
    prv: int | None = None
    from_prv: int = 0
    ctx: int | None = None
    number: int | None = None

    def text(self, mode: int = BranchMode.TARGET) -> str:
        """Return what `trace dump` says of it. *mode*: how branches are reported."""
        if mode == BranchMode.PREDICT and self.kind is TacitKind.TAKEN:
            return f"Predicted {self.time}"
        if mode == BranchMode.PREDICT and self.kind is TacitKind.NOT_TAKEN:
            return f"Mispredicted time=+{self.time}"
        time = f"time={self.time if self.kind is TacitKind.SYNC else f'+{self.time}'}"
        return " ".join([NAMES[self.kind], *self._details(), time])

    def _details(self) -> list[str]:
        """Return the fields besides the time, as text."""
        fields = []
        if self.kind in (TacitKind.TRAP, TacitKind.SYNC):
            named: type[IntEnum] = TrapSort if self.kind is TacitKind.TRAP else SyncSort
            sort = named(self.sort).name.lower() if self.sort in set(named) else str(self.sort)
            fields += [sort, *self._context(), f"address=0x{self.address:x}"]
        if self.kind in (TacitKind.UNINFERABLE_JUMP, TacitKind.TRAP):
            fields.append(f"target^={self.target:#x}")
        return fields

    def _context(self) -> list[str]:
        fields = []
        if self.prv is not None:
            now = _PRIVILEGES.get(self.prv, str(self.prv))
            before = _PRIVILEGES.get(self.from_prv, str(self.from_prv))
            fields.append(f"prv={now}" if self.kind is TacitKind.SYNC else f"prv={before}->{now}")
        if self.ctx is not None:
            fields.append(f"ctx={self.ctx}")
        if self.number is not None and self.sort == SyncSort.START:
            mode, entries = TacitConfiguration.from_number(self.number)
            fields += [
                f"mode={BranchMode(mode).name.lower() if mode in set(BranchMode) else mode}",
                f"entries={entries}",
            ]
        elif self.number is not None and self.sort == SyncSort.RESUME:
            fields.append(f"lost={self.number}")
        return fields


def packet_bytes(packet: TacitPacket) -> bytes:
    """Return the bytes of a packet, in a single one where it fits."""
    kind = packet.kind
    if kind in _COMPRESSED_BITS and packet.time <= COMPRESSED_TIME:
        return bytes([_COMPRESSED_BITS[kind] | packet.time << 2])
    head = bytearray([FULL | kind << 2 | packet.sort << 5])
    if packet.prv is not None:
        head.append(PRV_CHECK | packet.prv << 3 | packet.from_prv)
    address = packet.address >> 1
    numbers = {
        TacitKind.UNINFERABLE_JUMP: (packet.target,), TacitKind.TRAP: (packet.ctx, address, packet.target),
        TacitKind.SYNC: (packet.ctx, packet.number, address),
    }.get(kind, ())  # fmt: skip
    return bytes(head) + b"".join(number_bytes(number) for number in (*numbers, packet.time) if number is not None)


def number_bytes(value: int) -> bytes:
    """Return the bytes of a number."""
    groups = [value & 0x7F]
    while value := value >> NUMBER_BITS:
        groups.append(value & 0x7F)
    return bytes([*groups[:-1], groups[-1] | LAST])
