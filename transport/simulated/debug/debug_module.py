"""The simulated Debug Module: its registers, abstract commands, and System Bus Access; it has no program buffer.

Its harts are in `run_control`. Names are the specification's. An abstract command is over before the next DMI access,
so abstractcs.busy is 0; so is a system bus access, so sbbusy and sbbusyerror are 0. System bus accesses reach memory
and devices, whether the hart runs or not. `DebugSpec` says which Debug Specification is followed where the versions
differ.

Source: RISC-V Debug Specification 1.0, chapter 3 (Debug Module; section 3.10 "System Bus Access" and the registers
sbcs, sbaddress and sbdata), its registers in section 3.14; 0.13.2 where `DebugSpec.V0_13` is asked for.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.debug.run_control import DebuggedHart, DebugHarts, NoSuchRegister
from rvtrace_gdb.transport.usb.debug_module import CmdErr


class DebugSpec(Enum):
    """The Debug Specification that is followed; the value is the argument of `--debug-spec`.

    The differences that show here (Debug Specification 1.0, 1.2.1 "Versions", and the registers of both versions):
    dmstatus.version is 2 or 3, dmstatus.ndmresetpending and dtmcs.errinfo are new in 1.0, and 0.13 increments sbaddress
    at every read of sbdata0.
    """

    V0_13 = "0.13"
    V1_0 = "1.0"


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
    """The registers sbcs, sbaddress0/1 and sbdata0/1. *written* is called with the address of each write that
    succeeded.
    """

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

    def _access_size(self) -> int:
        """Return the number of bytes of the next access; 0 if it is impossible, with sberror set."""
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
        size = self._access_size()
        if size:
            try:
                self._data = self._bus.read(self._address, size)
            except BusError:
                self._error = SBERROR_ADDRESS
            else:
                self._increment(size)

    def _bus_write(self) -> None:
        size = self._access_size()
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


DATA0, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND, ABSTRACTAUTO, HALTSUM0 = 0x04, 0x10, 0x11, 0x16, 0x17, 0x18, 0x40
HAWINDOW, DMCS2 = 0x15, 0x32

NDMRESET, DMACTIVE = 1 << 1, 1 << 0

# dmstatus
NDMRESETPENDING = 1 << 24
AUTHENTICATED, HASRESETHALTREQ = 1 << 7, 1 << 5
VERSION = {DebugSpec.V0_13: 2, DebugSpec.V1_0: 3}

DATACOUNT = 2
CMDTYPE_ACCESS_REGISTER = 0
AARPOSTINCREMENT, POSTEXEC, TRANSFER, WRITE = 1 << 19, 1 << 18, 1 << 17, 1 << 16


class DebugModuleRegisters:
    """The registers of the Debug Module on the DMI. Registers that are not implemented read 0 and ignore writes.

    *others*: the harts besides the first, *reset*: see `DebugHarts`.
    """

    def __init__(
        self,
        hart: DebuggedHart,
        system_bus: SystemBusAccess,
        spec: DebugSpec = DebugSpec.V1_0,
        *,
        others: Sequence[DebuggedHart] = (),
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        self.harts = DebugHarts((hart, *others), reset)
        self._system_bus = system_bus
        self._spec = spec
        self._nreset = False
        self._deactivate()
        self._readers: dict[int, Callable[[int], int]] = {
            DMCONTROL: lambda _: self._dmcontrol,
            DMSTATUS: lambda _: self._read_dmstatus(),
            ABSTRACTCS: lambda _: self._cmderr << 8 | DATACOUNT,
            ABSTRACTAUTO: lambda _: self._autoexec,
            HALTSUM0: lambda _: self.harts.haltsum0,
            HAWINDOW: lambda _: self.harts.hawindow,
            **{DATA0 + n: self._read_data for n in range(DATACOUNT)},
            **dict.fromkeys((SBCS, SBADDRESS0, SBADDRESS1, SBDATA0, SBDATA1), system_bus.read),
        }
        self._writers: dict[int, Callable[[int, int], None]] = {
            ABSTRACTCS: self._write_abstractcs,
            COMMAND: self._write_command,
            ABSTRACTAUTO: self._write_abstractauto,
            HAWINDOW: lambda _, value: self.harts.write_hawindow(value),
            **{DATA0 + n: self._write_data for n in range(DATACOUNT)},
            **dict.fromkeys((SBCS, SBADDRESS0, SBADDRESS1, SBDATA0, SBDATA1), system_bus.write),
        }
        if spec is DebugSpec.V1_0:
            self._readers[DMCS2] = lambda _: self.harts.dmcs2
            self._writers[DMCS2] = lambda _, value: self.harts.write_dmcs2(value)

    def _deactivate(self) -> None:
        """Give everything its reset value, as dmactive 0 does. The harts stay as they are, which is a choice."""
        self._dmcontrol = 0
        self.harts.deactivate()
        self._data = [0] * DATACOUNT
        self._command = 0
        self._cmderr = int(CmdErr.NONE)
        self._autoexec = 0
        self._system_bus.reset()

    def read(self, address: int) -> int:
        """Do a DMI read."""
        reader = self._readers.get(address)
        if reader is None or not (self._dmcontrol & DMACTIVE or address == DMSTATUS):
            return 0
        return reader(address)

    def write(self, address: int, value: int) -> None:
        """Do a DMI write."""
        if address == DMCONTROL:
            self._write_dmcontrol(value)
        elif self._dmcontrol & DMACTIVE:
            writer = self._writers.get(address)
            if writer is not None:
                writer(address, value)

    def system_reset(self, asserted: bool) -> None:
        """Set the nRESET pin of the debug connector, which resets what ndmreset does."""
        self._nreset = asserted
        self._follow_reset()

    def _follow_reset(self) -> None:
        self.harts.follow_reset(self._nreset or bool(self._dmcontrol & NDMRESET))

    # -- dmcontrol and dmstatus

    def _read_dmstatus(self) -> int:
        status = VERSION[self._spec] | AUTHENTICATED | HASRESETHALTREQ
        if self.harts.in_reset and self._spec is DebugSpec.V1_0:
            status |= NDMRESETPENDING
        return status | self.harts.status

    def _write_dmcontrol(self, value: int) -> None:
        if value & DMACTIVE:
            self._dmcontrol = value & (self.harts.dmcontrol_bits | NDMRESET | DMACTIVE)
            self.harts.write_dmcontrol(value)
        else:
            self._deactivate()
        self._follow_reset()

    # -- abstract commands

    def _write_abstractcs(self, _: int, value: int) -> None:
        self._cmderr &= ~(value >> 8)

    def _write_abstractauto(self, _: int, value: int) -> None:
        self._autoexec = value & (1 << DATACOUNT) - 1

    def _write_command(self, _: int, value: int) -> None:
        if self._cmderr == CmdErr.NONE:
            self._command = value
            self._execute()

    def _read_data(self, address: int) -> int:
        value = self._data[address - DATA0]
        self._autoexecute(address)
        return value

    def _write_data(self, address: int, value: int) -> None:
        self._data[address - DATA0] = value
        self._autoexecute(address)

    def _autoexecute(self, address: int) -> None:
        if self._autoexec >> (address - DATA0) & 1 and self._cmderr == CmdErr.NONE:
            self._execute()

    def _execute(self) -> None:
        command, port = self._command, self.harts.current
        if command >> 24 != CMDTYPE_ACCESS_REGISTER or command & POSTEXEC:
            self._cmderr = CmdErr.NOT_SUPPORTED
        elif port is None or not port.accessible:
            self._cmderr = CmdErr.HALT_RESUME
        elif command & TRANSFER:
            try:
                self._transfer(command, port.hart)
            except NoSuchRegister:
                self._cmderr = CmdErr.EXCEPTION

    def _transfer(self, command: int, hart: DebuggedHart) -> None:
        regno = command & 0xFFFF
        size = 8 << (command >> 20 & 7)
        if size < 32 or size > hart.register_bits(regno):
            self._cmderr = CmdErr.NOT_SUPPORTED
            return
        if command & WRITE:
            hart.write_register(regno, (self._data[1] << 32 | self._data[0]) & (1 << size) - 1)
        else:
            value = hart.read_register(regno)
            self._data[0] = value & 0xFFFFFFFF
            if size == 64:
                self._data[1] = value >> 32 & 0xFFFFFFFF
        if command & AARPOSTINCREMENT:
            self._command = command & ~0xFFFF | regno + 1 & 0xFFFF
