"""Starting, stopping and reading TACIT's encoder and its DMA sink.

Ref: ucb-bar/tacit (91f4bcb), TraceSinkDMA.scala. The sink writes words of the bus, 8 bytes, as they are full; FLUSH has
it write the last one, after which addresses are no longer those of whole words: a trace that goes on begins anew, at
the start of the buffer. ADDR is taken over only while the sink has nothing to write. It has no limit: it goes on
writing behind the buffer.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.tacit.registers import (
    TR_SK_DMA_ADDR,
    TR_SK_DMA_ADDR_HIGH,
    TR_SK_DMA_COUNT,
    TR_SK_DMA_COUNT_HIGH,
    TR_SK_DMA_FLUSH,
    TR_SK_DMA_FLUSH_DONE,
    TR_TE_BRANCH_MODE,
    TR_TE_CTRL,
    TR_TE_TARGET,
)
from rvtrace_gdb.controlregs.target import Target, WideTarget

_ENABLE = TR_TE_CTRL.mask("ENABLE")
DISABLED, ENABLED = TR_TE_CTRL.mask("ACTIVE"), TR_TE_CTRL.mask("ACTIVE", "ENABLE")
"""The values of TR_TE_CTRL."""
_PATIENCE = 1.0  # seconds
_FLUSH = TR_SK_DMA_FLUSH.mask("FLUSH")


class NoTacit(ComponentError):
    """There is no encoder of TACIT at this address: what was written is not read back."""

    def __init__(self, name: str, base: int, register: Register, written: int, value: int) -> None:
        super().__init__(
            name,
            base,
            f"{name} at {base:#x} is not an encoder of TACIT: {register.name} reads {value:#x} after {written:#x} was"
            " written; check the address in the target description",
        )


class NeedsWideAccess(ComponentError):
    """The transport cannot write 64 bits at once, which the sink needs."""

    def __init__(self, name: str, base: int) -> None:
        super().__init__(name, base, f"{name} at {base:#x}: its sink takes 64 bits at once alone: reach it by OpenOCD")


class TacitStatus(NamedTuple):
    """What the encoder's registers read. *written*: the bytes in the buffer."""

    control: int
    target: int
    branch_mode: int
    written: int

    @property
    def plausible(self) -> bool:
        """Whether an encoder can hold this: the other bits of TR_TE_CTRL are 0."""
        return not self.control & ~ENABLED

    @property
    def is_on(self) -> bool:
        """Whether tracing is on."""
        return bool(self.control & _ENABLE)


@dataclass(frozen=True)
class TacitAccess:
    """An encoder at *base* of a target, with its DMA sink at *sink*. *name*: for messages. All methods raise the
    transport's errors.
    """

    target: Target
    base: int
    sink: int
    name: str = "tacit"

    def status(self) -> TacitStatus:
        """Return its state."""
        control, target, mode = map(self._read_encoder, (TR_TE_CTRL, TR_TE_TARGET, TR_TE_BRANCH_MODE))
        return TacitStatus(control, target, mode, self.bytes_written())

    def prepare(self, number: int, branch_mode: int, buffer: int) -> None:
        """Set up a trace that begins at the start of the *buffer*, and is off. *number*: of the sink in the design.

        Raises NoTacit, NeedsWideAccess, SettingRefused.
        """
        self.switch_off()
        self._set_encoder(TR_TE_TARGET, number)
        self._set_encoder(TR_TE_BRANCH_MODE, branch_mode)
        self._write_sink(TR_SK_DMA_FLUSH, _FLUSH)  # what is left of an earlier trace keeps it from taking an address
        self._set_wide(TR_SK_DMA_ADDR, TR_SK_DMA_ADDR_HIGH, buffer)
        self._set_wide(TR_SK_DMA_COUNT, TR_SK_DMA_COUNT_HIGH, 0)
        self._write_sink(TR_SK_DMA_FLUSH, 0)

    def switch_on(self) -> None:
        """Begin to trace. Raises NoTacit."""
        self._set_encoder(TR_TE_CTRL, ENABLED)

    def switch_off(self) -> None:
        """End the trace. Raises NoTacit."""
        self._set_encoder(TR_TE_CTRL, DISABLED)

    def stop(self) -> int:
        """End the trace, and return how many bytes were written. Raises NoTacit, ComponentTimeout."""
        self.switch_off()
        self._write_sink(TR_SK_DMA_FLUSH, _FLUSH)
        last, began = -1, time.monotonic()
        while True:
            done = self._read_sink(TR_SK_DMA_FLUSH_DONE)
            count = self.bytes_written()
            if done and count == last:  # DONE may be that of an earlier flush
                return count
            last = count
            self._check_time(began, TR_SK_DMA_FLUSH_DONE, "DONE=1", done)

    def bytes_written(self) -> int:
        """Return how many bytes were written into the buffer."""
        high = self._read_sink(TR_SK_DMA_COUNT_HIGH)
        while True:
            low, before = self._read_sink(TR_SK_DMA_COUNT), high
            high = self._read_sink(TR_SK_DMA_COUNT_HIGH)
            if high == before:
                return high << 32 | low

    def _set_encoder(self, register: Register, value: int) -> None:
        self.target.write32(self.base + register.offset, value)
        found = self._read_encoder(register)
        if found != value:
            raise NoTacit(self.name, self.base, register, value, found)

    def _set_wide(self, low: Register, high: Register, value: int) -> None:
        """Write 64 bits, until the sink has taken them."""
        if not isinstance(self.target, WideTarget):
            raise NeedsWideAccess(self.name, self.base)
        began = time.monotonic()
        while True:
            self.target.write64(self.sink + low.offset, value)
            found = self._read_sink(high) << 32 | self._read_sink(low)
            if found == value:
                return
            if time.monotonic() - began > _PATIENCE:
                text = f"{low.name} reads {found:#x} after {value:#x} was written: check the address of the sink"
                raise SettingRefused(f"the sink of {self.name}", self.sink, text)

    def _check_time(self, began: float, register: Register, waited_for: str, value: int) -> None:
        seconds = time.monotonic() - began
        if seconds > _PATIENCE:
            raise ComponentTimeout(f"the sink of {self.name}", self.sink, register, waited_for, value, _PATIENCE)

    def _read_encoder(self, register: Register) -> int:
        return self.target.read32(self.base + register.offset)

    def _read_sink(self, register: Register) -> int:
        return self.target.read32(self.sink + register.offset)

    def _write_sink(self, register: Register, value: int) -> None:
        self.target.write32(self.sink + register.offset, value)
