"""Trace components as a driver meets them, written from the document's prose for these tests only.

Offsets and bit positions are spelled out here rather than taken from the tables under test. The models are strict: what
the document forbids (an access while Active=0, moving pointers of a running sink, 1 in a reserved bit) fails the test.
"""

import random
from dataclasses import dataclass, field

from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

ACTIVE, ENABLE, TRACING, EMPTY = 1, 2, 4, 8
OVERFLOW = 1 << 12
WORD = 0xFFFF_FFFF


class BusFault(RvtraceError):
    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__(f"bus error at {address:#x}")


class Unplugged(RvtraceError):
    def __init__(self) -> None:
        super().__init__("the cable is out")


class Model:
    """Control and Impl, with delays counted in reads of Control. *never*: bits of Control that stay as they are.

    A *lenient* one, of a world in which something has broken, does something that is bad where another one fails the
    test.
    """

    reserved = 0
    lenient = False

    def __init__(self, impl: int, *, delay: int = 2, never: int = 0, junk: int = 1) -> None:
        self.impl, self.delay, self.never = impl, delay, never
        self.random = random.Random(junk)
        self.registers: dict[int, int] = {}
        self.control = 0  # what it will be
        self.shown = 0  # Active, Enable as they read
        self.countdown = 0

    def legal(self, offset: int, value: int) -> int:
        """What a write of *value* leaves in the register."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        return True

    def changed(self, before: int) -> None:
        """Control was written."""

    def read(self, offset: int) -> int:
        if offset == 0:
            self._tick()
            bits = self.control & ~(ACTIVE | ENABLE) | self.shown
            return bits | (EMPTY if self.is_empty() and not self.countdown and not self.never & EMPTY else 0)
        self._must_be_active(offset)
        return self.impl if offset == 4 else self.registers.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        assert 0 <= value <= WORD
        if offset == 0:
            self._write_control(value)
        else:
            self._must_be_active(offset)
            assert offset != 4, "Impl is read-only"
            self.registers[offset] = self.legal(offset, value)

    def _must_be_active(self, offset: int) -> None:
        if not self.shown & ACTIVE:
            raise BusFault(offset)

    def _write_control(self, value: int) -> None:
        assert not value & self.reserved, f"reserved bits of Control written: {value & self.reserved:#x}"
        before = self.control
        if not value & ACTIVE:
            self.control = 0
            self.registers = {}
        elif not before & ACTIVE:
            assert self.lenient or value == ACTIVE, "first only Active is set"
            self.control = self.legal(0, self.random.getrandbits(32) & ~(ENABLE | EMPTY)) | ACTIVE | value & ENABLE
            self.registers = {n: self.legal(n, self.random.getrandbits(32)) for n in range(8, 0x80, 4)}
        else:
            self.control = self.legal(0, value) & ~EMPTY
        if (before ^ self.control) & (ACTIVE | ENABLE):
            self.countdown = self.delay
        self.changed(before)
        self._tick(0)

    def _tick(self, step: int = 1) -> None:
        if self.countdown:
            self.countdown = max(0, self.countdown - step)
        if not self.countdown:
            frozen = self.never & (ACTIVE | ENABLE)
            self.shown = self.shown & frozen | self.control & (ACTIVE | ENABLE) & ~frozen


class ModelEncoder(Model):
    """Sends *tail* to the sink when it is disabled; the rest of the trace the test stores there itself."""

    reserved = 0xF80C_4580
    control_mask = 0x07F3_BA77 & ~OVERFLOW

    def __init__(
        self,
        sink: "ModelSink",
        *,
        impl: int = 0x0001_0101,
        modes: tuple[int, ...] = (3, 6),
        sync_modes: tuple[int, ...] = (1, 2, 3),
        sync_max: tuple[int, ...] = tuple(range(16)),
        fixed_ones: int = 1 << 24,
        fixed_zeros: int = 6 << 24,
        features_mask: int = 0xFFFF_07FF,
        features_fixed: int = 0,
        timestamps: int = 0x00FF_837F,
        data: int = 0,
        tail: bytes = b"TAIL",
        **common: int,
    ) -> None:
        super().__init__(impl, **common)
        self.sink, self.modes, self.sync_modes, self.sync_max = sink, modes, sync_modes, sync_max
        self.fixed_ones, self.fixed_zeros = fixed_ones, fixed_zeros
        self.features_mask, self.features_fixed, self.timestamps = features_mask, features_fixed, timestamps
        self.data = data  # bits of trTeDataControl that can be written, and bit 0: data trace is implemented
        self.tail = tail
        self.overflow = True  # from before

    def legal(self, offset: int, value: int) -> int:
        if offset == 0:
            return self._legal_control(value)
        if offset == 8:
            return value & self.features_mask | self.features_fixed
        if offset == 0x40:
            return value & self.timestamps & ~4
        if offset == 0x10:
            return value & self.data | self.data & 1
        return value & {0xC: 0xFFFF, 0x1C: 0, 0x50: 0, 0x54: 0xFF, 0x58: 0}.get(offset, 0)

    def _legal_control(self, value: int) -> int:
        if value & OVERFLOW:
            self.overflow = False
        value = value & self.control_mask & ~self.fixed_zeros | self.fixed_ones
        value = _pick(value, 4, 7, self.modes)
        value = _pick(value, 16, 3, self.sync_modes)
        return _pick(value, 20, 15, self.sync_max)

    def read(self, offset: int) -> int:
        value = super().read(offset)
        return value | (OVERFLOW if offset == 0 and self.overflow and self.shown & ACTIVE else 0)

    def changed(self, before: int) -> None:
        if not before & ENABLE and self.control & ENABLE:
            self.overflow = False
            assert self.lenient or self.sink.shown & ENABLE, "the encoder was enabled before its sink"
            assert self.lenient or self.configured(), "the encoder was enabled before it was configured"
        if before & ENABLE and self.control & (ACTIVE | ENABLE) == ACTIVE:
            self.sink.store(self.tail)

    def configured(self) -> bool:
        """All registers software must initialise have their initial value."""
        tracing = self.registers.get(0x10, 0) & 0x7E  # what is traced of data may be chosen, but not begun
        return not tracing and not any(self.registers.get(n, 0) for n in (0xC, 0x1C, 0x50, 0x54, 0x58))


def _pick(value: int, lsb: int, mask: int, allowed: tuple[int, ...]) -> int:
    """The field becomes the allowed value nearest above what was written, else the highest."""
    wanted = value >> lsb & mask
    got = next((code for code in sorted(allowed) if code >= wanted), max(allowed))
    return value & ~(mask << lsb) | got << lsb


class ModelSink(Model):
    """A RAM sink over *memory* (SMEM, from *low* on) or its own SRAM of *sram* bytes. *width*: bytes of one store."""

    reserved = 0xFFFF_88E4

    def __init__(
        self,
        memory: bytearray,
        low: int,
        *,
        modes: tuple[int, ...] = (0, 1),
        sram: int = 256,
        width: int = 4,
        stops: tuple[int, ...] = (0, 1),
        fixed: dict[int, int] | None = None,
        high: int = 0,
        impl: int = 0x0000_3901,
        asyncs: int = 0,
        **common: int,
    ) -> None:
        super().__init__(impl, **common)
        self.asyncs = asyncs  # trRamAsyncFreq can be up to this: 0 or 7
        self.memory, self.low, self.modes, self.stops = memory, low, modes, stops
        self.sram = bytearray(sram)
        self.width, self.fixed, self.high = width, fixed or {}, high
        self.queue = b""  # not a whole store yet

    @property
    def in_sram(self) -> bool:
        return not self.control & 1 << 4

    def legal(self, offset: int, value: int) -> int:
        if offset == 0:
            writable = 0x0000_0113 | self.asyncs << 12
            return _pick(_pick(value & writable, 4, 1, self.modes), 8, 1, self.stops)
        if offset in self.fixed:
            return self.fixed[offset]
        if offset in (0x14, 0x1C, 0x24, 0x2C):
            return 0 if self.in_sram else value & self.high
        width = 4 if self.in_sram else self.width
        mask = WORD - (width - 1)
        if self.in_sram:
            mask &= len(self.sram) - 1
        if offset == 0x10:
            return 0 if self.in_sram else value & mask
        if offset == 0x20:
            return value & mask | value & 1
        if offset == 0x28:
            return value & mask if self.in_sram else 0
        return value & mask if offset == 0x18 else 0

    def write(self, offset: int, value: int) -> None:
        if offset in range(0x10, 0x28):
            works = self.shown & ENABLE or not self.is_empty()
            assert self.lenient or not works, f"{offset:#x} written while the sink works"
        super().write(offset, value)

    def read(self, offset: int) -> int:
        if offset == 0x40 and self.in_sram and self.shown & ACTIVE:
            return self._next_word()
        return super().read(offset)

    def is_empty(self) -> bool:
        return not self.queue

    def changed(self, before: int) -> None:
        if before & ENABLE and not self.control & ENABLE and self.queue:
            self.store(b"\xff" * (-len(self.queue) % self.width), flushing=True)

    def store(self, data: bytes, flushing: bool = False) -> None:
        if not (flushing or self.control & ENABLE):
            return  # lost
        self.queue += data
        width = 4 if self.in_sram else self.width
        while len(self.queue) >= width and (flushing or self.control & ENABLE):
            word, self.queue = self.queue[:width], self.queue[width:]
            self._put(word)

    def _put(self, word: bytes) -> None:
        low = self.registers[0x20]
        pointer = self._pair(0x20) & ~3
        storage, offset = (self.sram, pointer) if self.in_sram else (self.memory, pointer - self.low)
        assert 0 <= offset <= len(storage) - len(word), f"store outside of memory at {pointer:#x}"
        storage[offset : offset + len(word)] = word
        if pointer == self._pair(0x18):
            self.registers[0x20], self.registers[0x24] = self.registers[0x10] | 1, self.registers[0x14]
            if self.control & 1 << 8:
                self.control &= ~ENABLE
                self.shown &= ~ENABLE
                self.queue = b""
        else:
            pointer += len(word)
            self.registers[0x20], self.registers[0x24] = pointer & WORD | low & 1, pointer >> 32

    def _pair(self, low: int) -> int:
        return self.registers[low + 4] << 32 | self.registers[low]

    def _next_word(self) -> int:
        pointer = self.registers[0x28]
        self.registers[0x28] = self.registers[0x10] if pointer == self.registers[0x18] else pointer + 4
        return int.from_bytes(self.sram[pointer : pointer + 4], "little")


@dataclass
class ModelTarget:
    """A Target with only the three methods; *cut* after so many accesses, if given, the cable is pulled."""

    devices: dict[int, Model]
    memory: bytearray = field(default_factory=bytearray)
    low: int = 0
    cut: int | None = None

    def read32(self, address: int) -> int:
        self._count()
        device = self.devices.get(address & ~0xFFF)
        if device is None:
            raise BusFault(address)
        return device.read(address & 0xFFF)

    def write32(self, address: int, value: int) -> None:
        self._count()
        device = self.devices.get(address & ~0xFFF)
        if device is None:
            raise BusFault(address)
        device.write(address & 0xFFF, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        self._count()
        assert address % 4 == nbytes % 4 == 0
        if not self.low <= address <= address + nbytes <= self.low + len(self.memory):
            raise BusFault(address)
        progress("reading memory", 0, nbytes)
        return bytes(self.memory[address - self.low : address - self.low + nbytes])

    def _count(self) -> None:
        if self.cut is not None:
            self.cut -= 1
            if self.cut < 0:
                raise Unplugged()
