"""A Trace Memory Controller of the simulated target: ETB, ETF or ETR.

Trace is stored in frames, 16 bytes each, as whole words of its memory. A flush asks everything before it for its trace;
then, if it was told so, the TMC stops: the last frame is filled up, and the memory can be read.

Behaviour: CoreSight Trace Memory Controller Technical Reference Manual (DDI 0461); the registers are in `controlregs`.
The pointers of an ETR older than SoC-600 cannot be written; its ring begins anew when capture is switched on.
"""

import struct
from collections import deque
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.coresight import registers
from rvtrace_gdb.controlregs.coresight.registers import DevType, TmcMode, TmcType
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.devices.coresight.device import (
    AtbTransfer,
    BusOutputs,
    CoresightBuild,
    CoresightDevice,
)
from rvtrace_gdb.transport.simulated.devices.output import Outputs

TMC_KINDS = {kind.name.lower(): kind for kind in TmcType}
"""What a TMC can be built as, by name."""
_PARTS = {TmcType.ETB: 0x9E9, TmcType.ETR: 0x9E8, TmcType.ETF: 0x9EA}
_SOC_400 = 0x961
_PADDING = b"\x01" + bytes(15)  # a frame with nothing but the null ID
_PAGE, _ENTRIES, _LAST, _DATA, _LINK = 0x1000, 1024, 1, 2, 3
_WORD = 4
_RUNNING_WRITES = (registers.CTL, registers.FFCR)
_MASKS = {
    registers.RSZ: 0x7FFF_FFFF, registers.MODE: 3, registers.FFCR: 0x7773, registers.AXICTL: 0xF_0FBF,
    registers.RRPHI: 0xFF, registers.RWPHI: 0xFF, registers.DBAHI: 0xFF, registers.PSCR: 0x1F, registers.CTL: 1,
}  # fmt: skip
_UNDEFINED = 0xA5A5_A5A5


_REPEAT_FRAMES = 8
"""If the source has not changed for so many frames, its ID comes again (CoreSight Components TRM, DDI 0314H, 8.12)."""


def _new_formatter() -> FrameFormatter:
    return FrameFormatter(repeat_frames=_REPEAT_FRAMES)


@dataclass(frozen=True)
class TmcBuild(CoresightBuild):
    """*kind*: what it is built as; *size*: of its own memory in bytes; *width*: of a word of memory in bytes.

    *soc_600*: it is one of the newer parts, whose pointers can be written also in an ETR. *scatter*: it can use a
    table. *modes*: what MODE can be.
    """

    kind: TmcType = TmcType.ETB
    size: int = 0x1000
    width: int = 8
    soc_600: bool = False
    scatter: bool = True
    modes: tuple[TmcMode, ...] = field(default=tuple(TmcMode))


class TraceMemoryController(CoresightDevice):
    """A TMC. *bus*: on which an ETR writes. *outputs*: what an ETF feeds as a FIFO."""

    variant: TmcBuild

    def __init__(self, bus: Bus, outputs: BusOutputs = (), variant: TmcBuild | None = None) -> None:
        variant = variant or TmcBuild()
        devtype = DevType.FIFO if variant.kind is TmcType.ETF else DevType.BUFFER
        super().__init__(registers.TMC, (devtype, _PARTS[variant.kind] if variant.soc_600 else _SOC_400), variant)
        self._identity = {**self._identity, registers.DEVID.offset: self._devid()}
        self._bus = bus
        self._outputs = Outputs(outputs) if outputs else None
        if self._outputs is not None:
            self._outputs.connect(self._pass_on)
        self._memory = bytearray(variant.size)
        self._registers = {r.offset: _UNDEFINED & _MASKS.get(r, 0xFFFF_FFFF) for r in self.block.registers}
        for register in (registers.CTL, registers.FFCR, registers.ITCTRL):
            self._registers[register.offset] = 0
        self._fifo: deque[AtbTransfer] = deque()
        self._pages: tuple[int, ...] = ()
        self.stopped = self.memory_error = self.full = False
        self.written = 0
        """The offset in the ring where the next word is stored."""
        self._waiting = b""
        self._unread = 0
        self._formatter = _new_formatter()
        self._polls: dict[Register, int] = {}
        self._empty_ring()

    # -- trace

    @property
    def is_switched_on(self) -> bool:
        return bool(self._held_value(registers.CTL)) and not self.stopped

    @property
    def ready(self) -> bool:
        if self._is_link and self._outputs is not None:
            return super().ready and sum(map(len, self._fifo)) < self.variant.size
        return super().ready and not self.memory_error

    def accept(self, data: bytes) -> int:
        if not self.ready:
            return 0
        assert isinstance(data, AtbTransfer)
        if self._is_link:
            self._fifo.append(data)
            self._send_stored()
        else:
            self._store(self._formatter.put(data.atid, data))
        return len(data)

    def _pass_on(self) -> None:
        self.pull()
        self._send_stored()

    def _send_stored(self) -> None:
        while self._fifo and self._outputs is not None and self._outputs.ready:
            self._outputs.put(self._fifo.popleft())
            self._outputs.deliver()

    # -- memory

    @property
    def size(self) -> int:
        return self._held_value(registers.RSZ) * _WORD if self._is_etr else self.variant.size

    def _store(self, frames: bytes) -> None:
        """Store what is whole words of memory."""
        self._waiting += frames
        whole = len(self._waiting) - len(self._waiting) % max(self.variant.width, 1)
        data, self._waiting = self._waiting[:whole], self._waiting[whole:]
        for begin in range(0, len(data), 16 if whole % 16 == 0 else self.variant.width):
            step = 16 if whole % 16 == 0 else self.variant.width
            if self.memory_error:
                return
            self._write_frame(data[begin : begin + step])

    def _write_frame(self, data: bytes) -> None:
        try:
            if self._is_etr:
                self._bus.write_bytes(self._memory_place(self.written), data)
            else:
                self._memory[self.written : self.written + len(data)] = data
        except BusError:
            self.memory_error = True
            return
        self.written += len(data)
        if self.written >= self.size:
            self.written, self.full = 0, True

    def _memory_place(self, offset: int) -> int:
        if not self._is_scattered:
            return self._base + offset
        return self._pages[offset // _PAGE] + offset % _PAGE

    def _walk_table(self) -> tuple[int, ...]:
        """Walk the table; an entry that is none ends it."""
        found: list[int] = []
        page = self._base
        while True:
            for value in struct.unpack(f"<{_ENTRIES}I", self._bus.read_bytes(page, _PAGE)):
                address, kind = (value >> 4) << 12, value & 3
                if kind == _LINK:
                    page = address
                    break
                if kind in (_LAST, _DATA):
                    found.append(address)
                if kind != _DATA:
                    return tuple(found)
            else:
                return tuple(found)

    # -- start and stop

    def _empty_ring(self) -> None:
        self.stopped = self.memory_error = False
        self.written = 0
        self.full = False
        self._formatter = _new_formatter()
        self._waiting = b""
        self._unread = 0
        self._polls = {registers.FFCR: 0, registers.STS: 0}
        self._fifo.clear()

    def _start(self) -> None:
        full = self.full
        self._empty_ring()
        if self._is_etr and self._is_scattered:
            self._pages = self._walk_table()
        if not self._is_etr:
            self.written = self._held_value(registers.RWP) % self.size
        elif self.variant.soc_600:
            offset = (self._held_value(registers.RWPHI) << 32 | self._held_value(registers.RWP)) - self._base
            self.written, self.full = offset if 0 <= offset < self.size else 0, full

    def _flush(self, *, stop: bool) -> None:
        self.pull()
        self._send_stored()
        self._polls = dict.fromkeys(self._polls, self.variant.flush_polls)
        if not stop or self.stopped:
            return
        if not self._is_link:
            self._store(self._formatter.flush())
            while self._waiting and not self.memory_error:
                self._store(_PADDING)
        self.stopped = True
        self._unread = self.size if self.full else self.written
        self._registers[registers.RRP.offset] = self.written if self.full else 0

    # -- registers

    def before_access(self) -> None:
        if self._is_link:
            self._pass_on()
        else:
            self.pull()

    def store_register(self, register: Register, value: int) -> None:
        value &= _MASKS.get(register, 0xFFFF_FFFF)
        running = bool(self._held_value(registers.CTL))
        if running and register not in _RUNNING_WRITES:
            return
        if register is registers.STS:
            if self.variant.soc_600:
                self.full = bool(value & 1)
        elif register is registers.CTL:
            self._registers[register.offset] = value
            if value and not running:
                self._start()
            elif not value and running:
                self._formatter, self._waiting, self.stopped = _new_formatter(), b"", False
        elif register is registers.FFCR:
            self._registers[register.offset] = value & ~registers.FFCR.mask("FlushMan")
            if registers.FFCR.get(value, "FlushMan") and running:
                self._flush(stop=bool(registers.FFCR.get(value, "StopOnFl")))
        elif self._is_settable(register, value):
            self._registers[register.offset] = value

    def _is_settable(self, register: Register, value: int) -> bool:
        if register is registers.RSZ:
            return self._is_etr
        if register is registers.MODE:
            return value in self.variant.modes and (value != TmcMode.HARDWARE_FIFO or self.variant.kind is TmcType.ETF)
        if register in (registers.RRP, registers.RWP, registers.RRPHI, registers.RWPHI):
            return not self._is_etr or self.variant.soc_600
        return register not in (registers.LBUFLEVEL, registers.CBUFLEVEL, registers.FFSR, registers.RRD, registers.RWD)

    def load_register(self, register: Register) -> int:
        match register.name:
            case "STS":
                return self._status()
            case "FFCR":
                return self._held_value(register) | registers.FFCR.mask("FlushMan") * self._pending(register)
            case "FFSR":
                return self._polls[registers.FFCR] > 0 | self.stopped << 1
            case "RSZ":
                return self.size // _WORD
            case "RRD":
                return self._next_word()
            case "CBUFLEVEL" | "LBUFLEVEL":
                return (self.size if self.full else self.written) // _WORD
            case "RWP" | "RWPHI" | "RRP" | "RRPHI" if self._is_etr or (register is registers.RWP and self._runs):
                return self._pointer(register)
        return self._held_value(register)

    def _status(self) -> int:
        busy = self._pending(registers.STS)
        quiet = not self._runs or (self.stopped and not busy)
        return registers.STS.pack(
            Full=int(self.full), TMCReady=int(quiet), FtEmpty=int(quiet),
            Empty=int(not self._fifo and not self.written), MemErr=int(self.memory_error),
        )  # fmt: skip

    def _pending(self, register: Register) -> bool:
        """Return whether a flush is seen as not done yet; each read brings its end nearer."""
        if self._runs and self.variant.not_ready and self.stopped:
            return True
        if self._is_link and self._fifo:
            return True
        left = self._polls[register]
        self._polls[register] = max(left - 1, 0)
        return left > 0

    def _pointer(self, register: Register) -> int:
        """Return a pointer: of an ETR an address."""
        offset = self.written
        if not self._is_etr:
            return offset
        address = self._base if self._is_scattered and not self._pages else self._memory_place(offset)
        return address >> 32 if register.name.endswith("HI") else address & 0xFFFF_FFFF

    def _next_word(self) -> int:
        if self._is_etr or not self.stopped or not self._unread or self._held_value(registers.MODE):
            return registers.EMPTY_READ
        at = self._held_value(registers.RRP)
        self._registers[registers.RRP.offset] = (at + _WORD) % self.size
        self._unread -= _WORD
        return int.from_bytes(self._memory[at : at + _WORD], "little")

    # -- what it is

    def _held_value(self, register: Register) -> int:
        return self._registers[register.offset]

    @property
    def _runs(self) -> bool:
        return bool(self._held_value(registers.CTL))

    @property
    def _is_etr(self) -> bool:
        return self.variant.kind is TmcType.ETR

    @property
    def _is_link(self) -> bool:
        return self._held_value(registers.MODE) == TmcMode.HARDWARE_FIFO and self.variant.kind is TmcType.ETF

    @property
    def _is_scattered(self) -> bool:
        return bool(registers.AXICTL.get(self._held_value(registers.AXICTL), "ScatterGatherMode"))

    @property
    def _base(self) -> int:
        return self._held_value(registers.DBAHI) << 32 | self._held_value(registers.DBALO)

    def _devid(self) -> int:
        width = (self.variant.width // _WORD).bit_length() + 1
        return registers.DEVID.pack(
            CONFIGTYPE=self.variant.kind, MEMWIDTH=width, AXIAWVALID=1, AXIAW=40, NOSCAT=int(not self.variant.scatter)
        )
