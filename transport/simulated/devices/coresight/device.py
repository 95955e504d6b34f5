"""What all CoreSight devices of the simulated target have: the lock, claim tags, identification, posted writes.

Where the manuals leave a choice, the one is taken that exposes a careless driver: the lock is closed after reset, and a
write arrives only when the device is accessed again, or time passes.

Behaviour: Arm CoreSight Architecture Specification (IHI 0029), management registers; offsets from `controlregs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.coresight import registers
from rvtrace_gdb.controlregs.coresight.registers import CoresightBlock
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.devices.component import ACTIVE, ENABLE, ComponentBuild
from rvtrace_gdb.transport.simulated.devices.output import TraceConsumer, TraceOutput

_CLAIM_TAGS = 0xF
_CLASS_9 = {0xFF0: 0x0D, 0xFF4: 0x90, 0xFF8: 0x05, 0xFFC: 0xB1}  # CIDR0 to CIDR3 of each CoreSight component
_ARM = {registers.PIDR1.offset: 0xB0, registers.PIDR2.offset: 0x0B, registers.PIDR4.offset: 0x04, **_CLASS_9}
_ALL_ALLOWED = 0xFF


class AtbTransfer(bytes):
    """Bytes on Arm's trace bus, with the ID of their source."""

    atid: int

    @classmethod
    def with_id(cls, atid: int, data: bytes) -> "AtbTransfer":
        transfer = cls(data)
        transfer.atid = atid
        return transfer


@dataclass(frozen=True)
class CoresightBuild:
    """How a CoreSight device is built. *locked*: its lock is closed after reset; None: it has none.

    *keeps_locked*: the key does not open it. *claimed*: claim tags that are set. *not_ready*: a flush never ends.
    *flush_polls*: reads of FFCR, and of STS, until that is seen to be done. *authstatus*: AUTHSTATUS.
    """

    locked: bool | None = True
    keeps_locked: bool = False
    claimed: int = 0
    not_ready: bool = False
    flush_polls: int = 2
    authstatus: int = _ALL_ALLOWED


class CoresightDevice(TraceConsumer):
    """Registers of *block*; *identity*: DEVTYPE, and Arm's number of the part."""

    by_message = True

    def __init__(self, block: CoresightBlock, identity: tuple[int, int], variant: CoresightBuild | None = None) -> None:
        self.block = block
        self.build = ComponentBuild()
        self.variant = variant or CoresightBuild()
        devtype, part = identity
        self._identity: Mapping[int, int] = {
            **_ARM,
            registers.DEVTYPE.offset: devtype,
            registers.PIDR0.offset: part & 0xFF,
            registers.PIDR1.offset: _ARM[registers.PIDR1.offset] | part >> 8,
            registers.AUTHSTATUS.offset: self.variant.authstatus,
        }
        self.locked = bool(self.variant.locked)
        self.claims = self.variant.claimed
        self._posted: list[tuple[int, int]] = []
        self._control, self._shown, self._unsettled = ACTIVE, ENABLE, False  # so that it settles as all components do
        self._registers: dict[int, int] = {}

    # -- what a device does

    def load_register(self, register: Register) -> int:
        """Return what a read of one of its own registers gives."""
        return self._registers.get(register.offset, 0)

    def store_register(self, register: Register, value: int) -> None:
        """Store a value that arrives at one of its own registers, while the lock is open."""
        self._registers[register.offset] = value

    @property
    def empty(self) -> bool:
        return True

    @property
    def async_interval(self) -> int:
        return 0

    def flushed(self) -> None:
        """Let the writes that were posted arrive."""
        posted, self._posted = self._posted, []
        for offset, value in posted:
            self._arrive(offset, value)

    # -- the bus side

    def read(self, offset: int, nbytes: int) -> int:
        if nbytes == 8:
            return self.read(offset, 4) | self.read(offset + 4, 4) << 32
        self.before_access()
        self.settle()
        word = self._read_word(offset & ~3)
        return word >> 8 * (offset & 3) & (1 << 8 * nbytes) - 1

    def write(self, offset: int, nbytes: int, value: int) -> None:
        if nbytes != 4 or offset & 3:
            raise BusError(offset, nbytes)
        self.settle()
        self._posted.append((offset, value))
        self._unsettled = True

    def _read_word(self, offset: int) -> int:
        if offset in self._identity:
            return self._identity[offset]
        if offset == registers.CLAIMSET.offset:
            return _CLAIM_TAGS
        if offset == registers.CLAIMCLR.offset:
            return self.claims
        if offset == registers.LSR.offset:
            return 0 if self.variant.locked is None else 1 | self.locked << 1
        register = self.block.by_offset.get(offset)
        return 0 if register is None else self.load_register(register)

    def _arrive(self, offset: int, value: int) -> None:
        if offset == registers.LAR.offset:
            self.locked = self.variant.locked is not None and (value != registers.UNLOCK or self.variant.keeps_locked)
        elif self.locked:
            return
        elif offset == registers.CLAIMSET.offset:
            self.claims |= value & _CLAIM_TAGS
        elif offset == registers.CLAIMCLR.offset:
            self.claims &= ~value
        elif offset in self.block.by_offset and offset not in self._identity:
            self.store_register(self.block.by_offset[offset], value)


class BusInput:
    """One input of a device that has several: the `TraceOutput` of what is connected to it."""

    by_message = True
    filling = b"\xff"

    def __init__(self, owner: TraceConsumer, is_open: Callable[[], bool], take: Callable[[bytes], None]) -> None:
        self._owner, self._is_open, self._take = owner, is_open, take

    @property
    def enabled(self) -> bool:
        return self._is_open()

    @property
    def ready(self) -> bool:
        return self._is_open() and self._owner.ready

    @property
    def async_interval(self) -> int:
        return 0

    def fed_by(self, drain: Callable[[], None]) -> None:
        self._owner.fed_by(drain)

    def accept(self, data: bytes) -> int:
        if not self.ready:
            return 0
        self._take(data)
        return len(data)


BusOutputs = Sequence[TraceOutput]
