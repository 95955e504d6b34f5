"""The sinks of TACIT that write packets into memory.

Ref: ucb-bar/tacit (91f4bcb), TraceSinkDMA.scala: the sink writes words of the bus, 8 bytes, as they are full; FLUSH has
it write the last one, after which addresses are no longer those of whole words: a trace that goes on begins anew, at
the start of the buffer. ADDR is taken over only while the sink has nothing to write. It has no limit: it goes on
writing behind the buffer.

ucb-ee194-tapeout/tacit (522516d), TraceSinkDMA.scala: a later sink has a limit, and nothing with which the last word
could be flushed: it is written when more packets come. RESET begins at the start of the buffer, and leaves that word.
"""

import time
from dataclasses import dataclass
from typing import ClassVar, Protocol

from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, SettingRefused
from rvtrace_gdb.controlregs.fields import Register, RegisterBlock
from rvtrace_gdb.controlregs.tacit.registers import (
    LIMITED_ADDR,
    LIMITED_COUNT,
    LIMITED_SINK,
    SINK,
    TR_SK_DMA_ADDR,
    TR_SK_DMA_COUNT,
    TR_SK_DMA_FLUSH,
    TR_SK_DMA_FLUSH_DONE,
    TR_SK_DMA_MAX_SIZE,
    TR_SK_DMA_MODE,
    TR_SK_DMA_RESET,
    SinkModeCode,
)
from rvtrace_gdb.controlregs.target import Target, WideTarget

PATIENCE = 1.0  # seconds
_FLUSH, _RESET = TR_SK_DMA_FLUSH.mask("FLUSH"), TR_SK_DMA_RESET.mask("RESET")
_HALF = 4  # bytes
_WIDEST_WORD = 16  # bytes of a word of the bus


class NeedsWideAccess(ComponentError):
    """The transport cannot write 64 bits at once, which the sink needs."""

    def __init__(self, name: str, base: int) -> None:
        super().__init__(name, base, f"{name} at {base:#x} takes 64 bits at once alone: reach it by OpenOCD")


class TacitSinkAccess(Protocol):
    """A sink of TACIT. All methods raise the transport's errors.

    *has_limit*: it does not write behind its buffer.
    """

    registers: ClassVar[RegisterBlock]
    has_limit: ClassVar[bool]

    def prepare(self, buffer: int, size: int) -> None:
        """Begin at the start of the *buffer*, while its encoder is off. Raises NeedsWideAccess, SettingRefused."""

    def finish(self) -> None:
        """Have all written that can be, after its encoder was switched off. Raises ComponentTimeout."""

    def bytes_written(self) -> int:
        """Return how many bytes were written into the buffer."""

    def is_full(self, written: int, size: int) -> bool:
        """Return whether packets may be missing, or have been written behind the buffer."""


@dataclass(frozen=True)
class _SinkRegisters:
    """The registers of the sink at *base* of a target. *name*: for messages."""

    target: Target
    base: int
    name: str

    def read(self, register: Register) -> int:
        return self.target.read32(self.base + register.offset)

    def write(self, register: Register, value: int) -> None:
        self.target.write32(self.base + register.offset, value)

    def read_wide(self, low: Register) -> int:
        """Return 64 bits, which may change meanwhile."""
        address = self.base + low.offset
        high = self.target.read32(address + _HALF)
        while True:
            bits, before = self.target.read32(address), high
            high = self.target.read32(address + _HALF)
            if high == before:
                return high << 32 | bits

    def write_wide(self, low: Register, value: int) -> None:
        """Write 64 bits, until the sink has taken them. Raises NeedsWideAccess, SettingRefused."""
        if not isinstance(self.target, WideTarget):
            raise NeedsWideAccess(self.name, self.base)
        began = time.monotonic()
        while True:
            self.target.write64(self.base + low.offset, value)
            found = self.read_wide(low)
            if found == value:
                return
            if time.monotonic() - began > PATIENCE:
                text = f"{low.name} reads {found:#x} after {value:#x} was written: check the address of the sink"
                raise SettingRefused(self.name, self.base, text)


class FlushedSink(_SinkRegisters):
    """The sink that can be flushed, and has no limit."""

    registers: ClassVar[RegisterBlock] = SINK
    has_limit: ClassVar[bool] = False

    def prepare(self, buffer: int, size: int) -> None:
        """Begin at the start of the *buffer*. What is left of an earlier trace keeps it from taking an address."""
        self.write(TR_SK_DMA_FLUSH, _FLUSH)
        self.write_wide(TR_SK_DMA_ADDR, buffer)
        self.write_wide(TR_SK_DMA_COUNT, 0)
        self.write(TR_SK_DMA_FLUSH, 0)

    def finish(self) -> None:
        """Flush. DONE may be that of an earlier flush, so the count has to stand still, too."""
        self.write(TR_SK_DMA_FLUSH, _FLUSH)
        last, began = -1, time.monotonic()
        while True:
            done, now = self.read(TR_SK_DMA_FLUSH_DONE), self.bytes_written()
            if done and now == last:
                return
            last = now
            if time.monotonic() - began > PATIENCE:
                raise ComponentTimeout(self.name, self.base, TR_SK_DMA_FLUSH_DONE, "DONE=1", done, PATIENCE)

    def bytes_written(self) -> int:
        """Return how many bytes were written, also behind the buffer."""
        return self.read_wide(TR_SK_DMA_COUNT)

    def is_full(self, written: int, size: int) -> bool:
        """Return whether it has written behind the buffer."""
        return written > size


class LimitedSink(_SinkRegisters):
    """The later sink, which drops what finds no room."""

    registers: ClassVar[RegisterBlock] = LIMITED_SINK
    has_limit: ClassVar[bool] = True

    def prepare(self, buffer: int, size: int) -> None:
        """Begin at the start of the *buffer*, with what is left of an earlier trace."""
        self.write_wide(LIMITED_ADDR, buffer)
        self.write_wide(TR_SK_DMA_MAX_SIZE, size)
        self.write(TR_SK_DMA_MODE, SinkModeCode.OVERFLOW)
        self.write(TR_SK_DMA_RESET, _RESET)
        written = self.bytes_written()
        if written or self.read(TR_SK_DMA_MODE) != SinkModeCode.OVERFLOW:
            text = f"TR_SK_DMA_COUNT reads {written:#x} after a reset: check the address and the sort of the sink"
            raise SettingRefused(self.name, self.base, text)

    def finish(self) -> None:
        """Do nothing: the last word cannot be flushed."""

    def bytes_written(self) -> int:
        """Return how many bytes were written."""
        return self.read_wide(LIMITED_COUNT)

    def is_full(self, written: int, size: int) -> bool:
        """Return whether the next word may have found no room."""
        return size - written < _WIDEST_WORD
