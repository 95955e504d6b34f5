"""Loads, stores and atomics that compiled code does not do itself: devices, faults, reservations, watchpoints, HTIF.

Sources: The RISC-V Instruction Set Manual, Volume I, 20240411, chapter 14 "A"; Volume II, 3.1.15 for the causes and
3.6.3 for reservations. Where they leave it open it is as in Spike: misaligned accesses trap before anything else is
looked at, AMO faults are store faults, only memory can be reserved, SC checks its address with or without reservation.
"""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.transport.simulated.arithmetic import AMO
from rvtrace_gdb.transport.simulated.block import (
    LOAD_ACCESS_FAULT,
    LOAD_MISALIGNED,
    STORE_ACCESS_FAULT,
    STORE_MISALIGNED,
    Trap,
)
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.isa import signed
from rvtrace_gdb.transport.simulated.triggers import Access, TriggerModule


class AccessingHart(Protocol):
    """What data accesses need of the hart."""

    bus: Bus
    xlen: int
    position: int
    triggers: TriggerModule

    def fire(self, access: Access, address: int, nbytes: int) -> None:
        """Enter Debug Mode or raise a breakpoint exception if a trigger fits."""


class DataAccess:
    """The slow half of one hart's load-store unit. Values are unsigned.

    `tohost` is an address at which stores call `stored_tohost`, None for none.
    """

    def __init__(self, hart: AccessingHart, stored_tohost: Callable[[], None]) -> None:
        self._hart = hart
        self._bus = hart.bus
        self._base = hart.bus.main.base
        self._mask = (1 << hart.xlen) - 1
        self._stored_tohost = stored_tohost
        self._reservation: int | None = None
        self.tohost: int | None = None

    def reset(self) -> None:
        self._reservation = None

    def load(self, offset: int, nbytes: int, position: int) -> int:
        """A load that is not an aligned one from main memory. *offset* counts from the start of main memory."""
        self._hart.position = position
        return self._read(offset + self._base & self._mask, nbytes)

    def store(self, offset: int, nbytes: int, position: int, value: int) -> None:
        """A store that is not an aligned one to main memory, or one to `tohost`."""
        self._hart.position = position
        self._write(offset + self._base & self._mask, nbytes, value)

    def load_reserved(self, address: int, nbytes: int) -> int:
        self._watch(Access.LOAD, address, nbytes)
        if address & nbytes - 1:
            raise Trap(LOAD_MISALIGNED, address)
        try:
            value = int.from_bytes(self._bus.read_bytes(address, nbytes), "little")
        except BusError:
            raise Trap(LOAD_ACCESS_FAULT, address) from None
        self._reservation = address
        return signed(value, 8 * nbytes) & self._mask

    def store_conditional(self, address: int, value: int, nbytes: int) -> int:
        """Returns what goes to rd: 0 when stored, 1 when not."""
        self._watch(Access.STORE, address, nbytes)
        if address & nbytes - 1:
            raise Trap(STORE_MISALIGNED, address)
        try:
            self._bus.read_bytes(address, nbytes)  # faults without a reservation, too
        except BusError:
            raise Trap(STORE_ACCESS_FAULT, address) from None
        reserved, self._reservation = self._reservation == address, None
        if reserved:
            self._write(address, nbytes, value)
        return int(not reserved)

    def atomic(self, operation: str, address: int, value: int, nbytes: int) -> int:
        """An AMO. Returns the old value for rd."""
        self._watch(Access.LOAD | Access.STORE, address, nbytes)
        if address & nbytes - 1:
            raise Trap(STORE_MISALIGNED, address)
        try:
            old = self._bus.read(address, nbytes)
        except BusError:
            raise Trap(STORE_ACCESS_FAULT, address) from None
        bits = 8 * nbytes
        self._write(address, nbytes, AMO[operation](old, value & (1 << bits) - 1, bits))
        return signed(old, bits) & self._mask

    def _watch(self, access: Access, address: int, nbytes: int) -> None:
        if self._hart.triggers.watched & access:
            self._hart.fire(access, address, nbytes)

    def _read(self, address: int, nbytes: int) -> int:
        if address & nbytes - 1:
            raise Trap(LOAD_MISALIGNED, address)
        try:
            return self._bus.read(address, nbytes)
        except BusError:
            raise Trap(LOAD_ACCESS_FAULT, address) from None

    def _write(self, address: int, nbytes: int, value: int) -> None:
        if address & nbytes - 1:
            raise Trap(STORE_MISALIGNED, address)
        try:
            self._bus.write(address, nbytes, value)
        except BusError:
            raise Trap(STORE_ACCESS_FAULT, address) from None
        if address == self.tohost:
            self._stored_tohost()
