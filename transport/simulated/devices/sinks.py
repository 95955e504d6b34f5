"""The ends of the trace of the simulated target: RAM sink, PIB sink and ATB bridge, and what is connected to them.

Fields and offsets come from the tables in `controlregs`. The PIB sink sends trace out on pins to a probe: that is
anything with `write`, which gets the bytes as they are sent; `wire` has the pins. The ATB bridge sends it to an Arm
Trace Bus, as transfers: ATID, and the valid bytes of ATDATA. Either can be connected with a file, or with a socket. As
with pins, bytes that are not read are lost: to have all of it, connect before the trace is started.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace RAM Sink", "Trace PIB Sink", "Trace ATB Bridge".
"""

import contextlib
import socket
import struct
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.devices.component import ENABLE, ComponentBuild
from rvtrace_gdb.transport.simulated.devices.output import TraceConsumer, async_interval

_START, _LIMIT = component_registers.RAM_START_LOW.offset, component_registers.RAM_LIMIT_LOW.offset
_WP, _RP = component_registers.RAM_WP_LOW.offset, component_registers.RAM_RP_LOW.offset
_DATA = component_registers.RAM_DATA.offset
_HIGH = 4  # from trRam..Low to trRam..High
_WRAP = component_registers.RAM_WP_LOW.mask("trRamWrap")
_ADDRESS_BITS = (1 << 30) - 1
_WORD = 4  # bytes; what SRAM is accessed by
_POINTERS = ("trRamStart", "trRamLimit", "trRamWP", "trRamRP")


class RamSink(TraceConsumer):
    """A RAM sink with up to two kinds of storage: *sram_size* bytes of its own, and the RAM on *bus* (SMEM).

    *modes*: the kinds it has. *access_bytes*: the width of the words it writes to system memory; an incomplete word
    waits inside for more, or for the flush. Limit is the address of the last word written before the pointer returns to
    Start. *address_bits*: the width of bus addresses; with 32 the High registers do not exist. *window*: trRamData
    works in SMEM mode too. *sram_size* is a power of two.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        sram_size: int = 0x1_0000,
        modes: Collection[RamMode] = tuple(RamMode),
        access_bytes: int = _WORD,
        address_bits: int = 32,
        window: bool = False,
        build: ComponentBuild | None = None,
    ) -> None:
        _check_build(sram_size, access_bytes)
        self._bus = bus
        self._sram = bytearray(sram_size)
        self._modes, self._access_bytes = tuple(sorted(modes)), access_bytes
        self._address_bits, self._window = address_bits, window
        self._queue = b""  # less than a word
        low = {name + "Low": _ADDRESS_BITS for name in _POINTERS}
        high = {name + "High": (1 << address_bits - 32) - 1 for name in _POINTERS}
        super().__init__(
            component_registers.RAM_SINK,
            implemented={"trRamMode": 1, "trRamStopOnWrap": 1, "trRamAsyncFreq": 7, "trRamWrap": 1, **low, **high},
            constant={"trRamHasSRAM": int(RamMode.SRAM in modes), "trRamHasSMEM": int(RamMode.SMEM in modes)},
            control_default={"trRamMode": self._modes[0]},
            build=build,
        )

    @property
    def async_interval(self) -> int:
        return async_interval(self.field("trRamAsyncFreq"))

    def accept(self, data: bytes) -> int:
        """Store *data*. Return how many bytes were taken: fewer once the sink is off or has stopped."""
        if not self.ready:
            return 0
        waiting, self._queue = len(self._queue), self._queue + data
        whole = len(self._queue) - len(self._queue) % self._width
        stored = self._store_words(self._queue[:whole])
        self._queue = self._queue[whole:] if self.enabled else b""
        return len(data) if self.enabled else stored - waiting

    # -- registers

    @property
    def empty(self) -> bool:
        return super().empty and not self._queue

    def deactivated(self) -> None:
        self._queue = b""

    def control_changed(self, before: int) -> None:
        for register in self.block.registers:
            if _START <= register.offset <= _RP + _HIGH:
                self._registers[register.offset] = self.in_force(register, self._registers[register.offset])

    def flushed(self) -> None:
        queue, self._queue = self._queue, b""
        if queue:
            self._store_words(queue + self.filling * (-len(queue) % self._width), flushing=True)

    def legalize(self, register: Register, value: int) -> int:
        """In SRAM mode Start is fixed and the other pointers wrap at the memory's size; in SMEM mode there is no RP,
        unless there is a window."""
        if register is component_registers.RAM_CONTROL:
            mode = register.get(value, "trRamMode")
            return register.put(value, "trRamMode", mode if mode in self._modes else self._modes[0])
        if not _START <= register.offset <= _RP + _HIGH:
            return value
        name = register.name.removesuffix("Low").removesuffix("High")
        absent = "trRamStart" if self._is_sram else "trRamRP" if not self._window else ""
        if name == absent:
            return 0
        if register.name.endswith("High"):
            return 0 if self._is_sram else value
        flag = value & _WRAP if register.offset == _WP else 0
        width = _WORD if register.offset == _RP else self._width
        return value & self._space - 1 & ~(width - 1) & 0xFFFF_FFFF | flag

    def store(self, register: Register, value: int) -> None:
        if not self.enabled:  # software must not move the pointers of a running sink; this one does not let it
            super().store(register, value)

    def load(self, register: Register) -> int:
        if register.offset == _DATA and (self._is_sram or self._window):
            return self._next_word()
        return super().load(register)

    @property
    def _is_sram(self) -> bool:
        return self.field("trRamMode") == RamMode.SRAM

    @property
    def _width(self) -> int:
        return _WORD if self._is_sram else self._access_bytes

    @property
    def _space(self) -> int:
        """The size of the address space: addresses start again from 0 there."""
        return len(self._sram) if self._is_sram else 1 << self._address_bits

    def _pointer(self, low: int) -> int:
        return self._registers[low + _HIGH] << 32 | self._registers[low] & ~(_WORD - 1)

    def _point(self, low: int, address: int, flag: int = 0) -> None:
        self._registers[low + _HIGH], self._registers[low] = address >> 32, address & 0xFFFF_FFFF | flag

    # -- memory

    def _store_words(self, data: bytes, *, flushing: bool = False) -> int:
        """Write whole words; returns how many bytes there was room for before the sink stopped."""
        stored = 0
        while stored < len(data) and (self.enabled or flushing):
            pointer = self._pointer(_WP)
            # Only the very word at Limit turns the pointer back, so one set beyond Limit runs on, as in hardware.
            room = (self._pointer(_LIMIT) - pointer) % self._space + self._width
            piece = data[stored : stored + room]
            self._put(pointer, piece)
            stored += len(piece)
            self._advance(pointer + len(piece), full=len(piece) == room)
        return stored

    def _next_word(self) -> int:
        """Return trRamData: the word at the read pointer, which then advances, from Limit to Start, unless trace comes
        in.
        """
        pointer = self._pointer(_RP)
        if not self.enabled:
            at_limit = pointer == self._pointer(_LIMIT) + self._width - _WORD
            self._point(_RP, self._pointer(_START) if at_limit else (pointer + _WORD) % self._space)
        if self._is_sram:
            return int.from_bytes(self._sram[pointer : pointer + _WORD], "little")
        try:
            return int.from_bytes(self._bus.read_bytes(pointer, _WORD), "little")
        except BusError:
            return 0

    def _advance(self, pointer: int, *, full: bool) -> None:
        if not full:
            self._point(_WP, pointer % self._space, self._registers[_WP] & _WRAP)
            return
        self._point(_WP, self._pointer(_START), _WRAP)
        if self.field("trRamStopOnWrap"):
            self._control &= ~ENABLE

    def _put(self, address: int, data: bytes) -> None:
        if self._is_sram:
            first = data[: len(self._sram) - address]
            self._sram[address : address + len(first)] = first
            self._sram[: len(data) - len(first)] = data[len(first) :]
            return
        try:
            self._bus.write_bytes(address, data)
        except BusError:
            return  # the document has no error bit: what is sent to where no memory is, is gone


def _check_build(sram_size: int, access_bytes: int) -> None:
    """Check how a sink is built. Raises ValueError for what is impossible."""
    if sram_size & sram_size - 1 or sram_size < 8:
        raise ValueError(f"an SRAM of {sram_size} bytes: the size must be a power of two")
    if access_bytes & access_bytes - 1 or access_bytes < _WORD:
        raise ValueError(f"words of {access_bytes} bytes: the size must be a power of two, and 4 or more")


_PARALLEL = {
    PibMode.PARALLEL_1: 1, PibMode.PARALLEL_2: 2, PibMode.PARALLEL_4: 4, PibMode.PARALLEL_8: 8, PibMode.PARALLEL_16: 16,
}  # fmt: skip
"""How many TRC_DATA pins."""
_CALIBRATION = {
    PibMode.PARALLEL_2: b"\x66\x66\xcc\x33",
    PibMode.PARALLEL_4: b"\x5a\x5a\xf0\x0f",
    PibMode.PARALLEL_16: b"\xaa\xaa\x55\x55\x00\x00\xff\xff",
}
_ELSEWHERE = b"\xaa\x55\x00\xff"
_PERIODS = 16  # of calibration whenever time passes, which is when a register is accessed


class PinProbe(Protocol):
    """A receiver connected to the pins: a file, a socket's file, another receiver."""

    def write(self, data: bytes, /) -> object: ...


class PibSink(TraceConsumer):
    """A PIB sink. *modes*: those it has besides Off; other modes become Off. *divider_bits*: the width of trPibDivider,
    all ones after reset.
    """

    by_message = True

    def __init__(
        self,
        probe: PinProbe,
        *,
        modes: Collection[PibMode] = tuple(PibMode),
        divider_bits: int = 16,
        build: ComponentBuild | None = None,
    ) -> None:
        slowest = (1 << divider_bits) - 1
        self._probe = probe
        self._modes = {PibMode.OFF, *modes}
        super().__init__(
            component_registers.PIB_SINK,
            implemented={
                "trPibMode": 15, "trPibClkCenter": 1, "trPibCalibrate": 1, "trPibAsyncFreq": 7, "trPibDivider": slowest,
            },
            constant={},
            control_default={"trPibDivider": slowest},
            build=build,
        )  # fmt: skip

    @property
    def mode(self) -> PibMode:
        return PibMode(self.field("trPibMode"))

    @property
    def async_interval(self) -> int:
        return async_interval(self.field("trPibAsyncFreq"))

    @property
    def ready(self) -> bool:
        return super().ready and self.mode != PibMode.OFF and not self.field("trPibCalibrate")

    def accept(self, data: bytes) -> int:
        """Take one whole message. On 16 pins the next one begins with a new beat."""
        if not self.ready:
            return 0
        odd = self.mode == PibMode.PARALLEL_16 and len(data) % 2
        self._probe.write(data + self.filling if odd else data)
        return len(data)

    def before_access(self) -> None:
        self.pull()
        if self.enabled and self.mode != PibMode.OFF and self.field("trPibCalibrate"):
            self._probe.write(calibration(self.mode) * _PERIODS)

    def legalize(self, register: Register, value: int) -> int:
        if register is component_registers.PIB_CONTROL:
            if register.get(value, "trPibMode") not in self._modes:
                value = register.put(value, "trPibMode", PibMode.OFF)
            if register.get(value, "trPibMode") not in _PARALLEL:
                value = register.put(value, "trPibClkCenter", 0)
        return value


def calibration(mode: PibMode) -> bytes:
    """Return one period of the calibration pattern."""
    return _CALIBRATION.get(mode, _ELSEWHERE)


def wire(mode: PibMode, message: bytes) -> Iterator[int]:
    """Yield TRC_DATA at each edge of the clock, or for each phase or bit of the one pin of the serial modes."""
    bits = [byte >> n & 1 for byte in message for n in range(8)]
    if mode == PibMode.SWT_MANCHESTER:  # start, the bits, stop: two phases each
        yield from (1, 0)
        for bit in bits:
            yield from (1, 0) if bit else (0, 1)
        yield from (0, 0)
    elif mode == PibMode.SWT_UART:
        for first in range(0, len(bits), 8):
            yield from (0, *bits[first : first + 8], 1)
    else:
        pins = _PARALLEL[mode]
        for first in range(0, len(bits), pins):
            yield sum(bit << pin for pin, bit in enumerate(bits[first : first + pins]))


SinkTransfer = Callable[[int, bytes], None]


def record(atid: int, data: bytes, width: int) -> bytes:
    """Return the record of a transfer over a bus of *width* bytes: ATID, ATBYTES, ATDATA."""
    return bytes((atid, len(data) - 1)) + data.ljust(width, b"\0")


class AtbBridge(TraceConsumer):
    """An ATB bridge. Every transfer has *width* bytes, except the last one of a flush."""

    def __init__(
        self, bus: SinkTransfer, *, width: int = 4, build: ComponentBuild | None = None
    ) -> None:
        if width not in (1, 2, 4, 8, 16):
            raise ValueError(f"ATB is 1, 2, 4, 8 or 16 bytes wide, not {width}")
        super().__init__(
            component_registers.ATB_BRIDGE,
            implemented={"trAtbBridgeAsyncFreq": 7},
            constant={},
            control_default={},
            build=build,
        )
        self._bus = bus
        self._width = width
        self._queue = b""

    @property
    def async_interval(self) -> int:
        return async_interval(self.field("trAtbBridgeAsyncFreq"))

    @property
    def empty(self) -> bool:
        return super().empty and not self._queue

    def accept(self, data: bytes) -> int:
        """Take whole messages; they need not begin with a transfer."""
        if not self.ready:
            return 0
        self._queue += data
        self.transfer_whole()
        return len(data)

    @property
    def bus_takes(self) -> bool:
        """Whether the bus has room."""
        return True

    def transfer_whole(self) -> None:
        """Send what are whole transfers, as far as the bus has room."""
        while len(self._queue) >= self._width and self.bus_takes:
            self._transfer()

    def flushed(self) -> None:
        while self._queue and self.bus_takes:
            self._transfer()

    def deactivated(self) -> None:
        self._queue = b""

    def _transfer(self) -> None:
        piece, self._queue = self._queue[: self._width], self._queue[self._width :]
        self._bus(self.field("trAtbBridgeID"), piece)


_SEND_TIMEOUT = 10  # seconds a reader may leave bytes unread before it counts as dead


class StreamError(RvtraceError):
    """A file that cannot be written."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror}")
        self.path = path


class PinStream(Protocol):
    """A probe that is to be closed."""

    def write(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class FileStream:
    """Writes all bytes to a new file as soon as they are sent. Raises StreamError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise StreamError(path, error) from None

    def write(self, data: bytes, /) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise StreamError(self._path, error) from None

    def close(self) -> None:
        self._file.close()


class SocketStream:
    """Sends the bytes to one reader after the other that connects to *listener*, which is closed with this."""

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._reader: socket.socket | None = None

    def write(self, data: bytes, /) -> None:
        """Send the bytes. A reader that has disconnected, or has not read for long, gets no more."""
        if self._reader is None:
            self._reader = self._accepted()
        if self._reader is not None:
            try:
                self._reader.sendall(data)
            except OSError:
                self._reader.close()
                self._reader = None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._listener.close()

    def _accepted(self) -> socket.socket | None:
        with contextlib.suppress(BlockingIOError):
            reader, _ = self._listener.accept()
            reader.setblocking(True)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT, 0))
            return reader
        return None


def transfers(probe: PinProbe, width: int) -> SinkTransfer:
    """Return a function that passes transfers over an Arm trace bus of *width* bytes to *probe*, in the format of
    """

    def transfer(atid: int, data: bytes) -> None:
        for n in range(0, len(data), width):
            probe.write(record(atid, data[n : n + width], width))

    return transfer
