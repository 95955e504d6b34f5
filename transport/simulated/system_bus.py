"""System Bus Access of the simulated Debug Module: memory and devices, whether the hart runs or not.

Source: RISC-V Debug Specification 1.0, section 3.10 "System Bus Access" and the registers sbcs, sbaddress and sbdata;
0.13.2 where `DebugSpec.V0_13` is asked for. An access is over before the next DMI access: sbbusy and sbbusyerror are 0.
"""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.debug_spec import DebugSpec

SBCS, SBADDRESS0, SBADDRESS1, SBDATA0, SBDATA1 = 0x38, 0x39, 0x3A, 0x3C, 0x3D

SBVERSION = 1 << 29
SBREADONADDR = 1 << 20
SBACCESS_SHIFT, SBACCESS_MASK = 17, 7
SBAUTOINCREMENT = 1 << 16
SBREADONDATA = 1 << 15
SBERROR_SHIFT, SBERROR_MASK = 12, 7
SBASIZE_SHIFT = 5
SBACCESS_8_TO_64 = 0b01111
_WRITABLE = SBREADONADDR | SBACCESS_MASK << SBACCESS_SHIFT | SBAUTOINCREMENT | SBREADONDATA
_RESET = 2 << SBACCESS_SHIFT

SBERROR_ADDRESS, SBERROR_ALIGNMENT, SBERROR_SIZE = 2, 3, 4


class MemoryBus(Protocol):
    def read(self, address: int, nbytes: int) -> int: ...

    def write(self, address: int, nbytes: int, value: int) -> None: ...


class SystemBusAccess:
    """The registers sbcs, sbaddress0/1 and sbdata0/1. *written* is told the address of each write that succeeded."""

    def __init__(self, bus: MemoryBus, *, address_bits: int, spec: DebugSpec, written: Callable[[int], None]) -> None:
        self._bus = bus
        self._constant = SBVERSION | address_bits << SBASIZE_SHIFT | SBACCESS_8_TO_64
        self._address_mask = (1 << address_bits) - 1
        self._increment_always = spec is DebugSpec.V0_13
        self._written = written
        self.reset()

    def reset(self) -> None:
        self._control = _RESET
        self._error = 0
        self._address = 0
        self._data = 0

    def read(self, register: int) -> int:
        if register == SBDATA0:
            return self._read_data0()
        if register == SBCS:
            return self._constant | self._control | self._error << SBERROR_SHIFT
        if register == SBDATA1:
            return self._data >> 32
        return self._address >> (32 if register == SBADDRESS1 else 0) & 0xFFFFFFFF

    def write(self, register: int, value: int) -> None:
        if register == SBDATA0:
            self._data = self._data & ~0xFFFFFFFF | value
            self._bus_write()
        elif register == SBCS:
            self._error &= ~(value >> SBERROR_SHIFT & SBERROR_MASK)
            self._control = value & _WRITABLE
        elif register == SBDATA1:
            self._data = self._data & 0xFFFFFFFF | value << 32
        elif register == SBADDRESS1:
            self._address = (self._address & 0xFFFFFFFF | value << 32) & self._address_mask
        else:
            self._address = self._address & ~0xFFFFFFFF | value
            if self._control & SBREADONADDR:
                self._bus_read()

    def _read_data0(self) -> int:
        value = self._data & 0xFFFFFFFF
        if self._control & SBREADONDATA:
            self._bus_read()
        elif self._increment_always and not self._error:
            self._increment(1 << (self._control >> SBACCESS_SHIFT & SBACCESS_MASK))
        return value

    def _size(self) -> int:
        """Bytes of the next access, or 0 with sberror set if it cannot be."""
        size = 1 << (self._control >> SBACCESS_SHIFT & SBACCESS_MASK)
        if self._error:
            return 0
        if size > 8:
            self._error = SBERROR_SIZE
            return 0
        if self._address & size - 1:
            self._error = SBERROR_ALIGNMENT
            return 0
        return size

    def _bus_read(self) -> None:
        size = self._size()
        if size:
            try:
                self._data = self._bus.read(self._address, size)
            except BusError:
                self._error = SBERROR_ADDRESS
            else:
                self._increment(size)

    def _bus_write(self) -> None:
        size = self._size()
        if size:
            try:
                self._bus.write(self._address, size, self._data & (1 << 8 * size) - 1)
            except BusError:
                self._error = SBERROR_ADDRESS
            else:
                self._written(self._address)
                self._increment(size)

    def _increment(self, size: int) -> None:
        if self._control & SBAUTOINCREMENT:
            self._address = self._address + size & self._address_mask
