"""The simulated Debug Module: run control, reset and abstract commands for one hart; no program buffer.

Source: RISC-V Debug Specification 1.0, chapter 3 (Debug Module), its registers in section 3.14; 0.13.2 where asked for.
Names are the specification's. An abstract command is over before the next DMI access, so abstractcs.busy is 0.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from transport.simulated.block import DebugCause
from transport.simulated.debug_spec import DebugSpec
from transport.simulated.system_bus import SBADDRESS0, SBADDRESS1, SBCS, SBDATA0, SBDATA1, SystemBusAccess

DATA0, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND, ABSTRACTAUTO, HALTSUM0 = 0x04, 0x10, 0x11, 0x16, 0x17, 0x18, 0x40

HALTREQ, RESUMEREQ, ACKHAVERESET = 1 << 31, 1 << 30, 1 << 28
SETRESETHALTREQ, CLRRESETHALTREQ = 1 << 3, 1 << 2
NDMRESET, DMACTIVE = 1 << 1, 1 << 0
HARTSEL = 0x3FFFFC0  # hartsello and hartselhi
HARTSEL_WRITABLE = 1 << 16  # HARTSELLEN is 1: one bit too many, so that a hart can be selected that is not there

# dmstatus; the fields of harts are pairs (any, all), equal while one hart is selected at a time
NDMRESETPENDING = 1 << 24
HAVERESET, RESUMEACK, NONEXISTENT, UNAVAIL, RUNNING, HALTED = 3 << 18, 3 << 16, 3 << 14, 3 << 12, 3 << 10, 3 << 8
AUTHENTICATED, HASRESETHALTREQ = 1 << 7, 1 << 5
VERSION = {DebugSpec.V0_13: 2, DebugSpec.V1_0: 3}

DATACOUNT = 2
CMDTYPE_ACCESS_REGISTER = 0
AARPOSTINCREMENT, POSTEXEC, TRANSFER, WRITE = 1 << 19, 1 << 18, 1 << 17, 1 << 16


class CmdErr(IntEnum):
    NONE = 0
    BUSY = 1
    NOT_SUPPORTED = 2
    EXCEPTION = 3
    HALT_RESUME = 4
    BUS = 5
    OTHER = 7


class NoSuchRegister(Exception):
    """The selected hart has no register of this number (or none that is accessible now)."""


class DebuggedHart(Protocol):
    """The hart as its Debug Module sees it."""

    @property
    def halted(self) -> bool: ...

    def halt(self, cause: DebugCause) -> None:
        """Enter Debug Mode."""

    def resume(self) -> None:
        """Leave Debug Mode; with dcsr.step set the hart is back in it on return."""

    def hold_in_reset(self) -> None:
        """Reset the hart and everything else but the Debug Module; nothing runs until `leave_reset`."""

    def leave_reset(self, halt: DebugCause | None) -> None:
        """Start at the reset vector, or enter Debug Mode before the first instruction."""

    def register_bits(self, regno: int) -> int:
        """The width of a register by its number for abstract commands. Raises NoSuchRegister."""

    def read_register(self, regno: int) -> int:
        """Raises NoSuchRegister."""

    def write_register(self, regno: int, value: int) -> None:
        """Raises NoSuchRegister."""


class DebugModule:
    """Registers of the Debug Module on the DMI. Registers that are not implemented read 0 and ignore writes."""

    def __init__(self, hart: DebuggedHart, system_bus: SystemBusAccess, spec: DebugSpec = DebugSpec.V1_0) -> None:
        self._hart = hart
        self._system_bus = system_bus
        self._spec = spec
        self._nreset = self._in_reset = False
        self._havereset = True
        self._deactivate()
        self._readers: dict[int, Callable[[int], int]] = {
            DMCONTROL: lambda _: self._dmcontrol,
            DMSTATUS: lambda _: self._read_dmstatus(),
            ABSTRACTCS: lambda _: self._cmderr << 8 | DATACOUNT,
            ABSTRACTAUTO: lambda _: self._autoexec,
            HALTSUM0: lambda _: int(self._hart.halted),
            **{DATA0 + n: self._read_data for n in range(DATACOUNT)},
            **dict.fromkeys((SBCS, SBADDRESS0, SBADDRESS1, SBDATA0, SBDATA1), system_bus.read),
        }
        self._writers: dict[int, Callable[[int, int], None]] = {
            ABSTRACTCS: self._write_abstractcs,
            COMMAND: self._write_command,
            ABSTRACTAUTO: self._write_abstractauto,
            **{DATA0 + n: self._write_data for n in range(DATACOUNT)},
            **dict.fromkeys((SBCS, SBADDRESS0, SBADDRESS1, SBDATA0, SBDATA1), system_bus.write),
        }

    def _deactivate(self) -> None:
        """dmactive 0: everything takes its reset value. The hart stays as it is, a choice the specification leaves."""
        self._dmcontrol = 0
        self._haltreq = False
        self._resumeack = False
        self._resethaltreq = False
        self._data = [0] * DATACOUNT
        self._command = 0
        self._cmderr = int(CmdErr.NONE)
        self._autoexec = 0
        self._system_bus.reset()

    def read(self, address: int) -> int:
        """A DMI read."""
        reader = self._readers.get(address)
        if reader is None or not (self._dmcontrol & DMACTIVE or address == DMSTATUS):
            return 0
        return reader(address)

    def write(self, address: int, value: int) -> None:
        """A DMI write."""
        if address == DMCONTROL:
            self._write_dmcontrol(value)
        elif self._dmcontrol & DMACTIVE:
            writer = self._writers.get(address)
            if writer is not None:
                writer(address, value)

    def system_reset(self, asserted: bool) -> None:
        """The nRESET pin of the debug connector, which resets what ndmreset does."""
        self._nreset = asserted
        self._follow_reset()

    def _follow_reset(self) -> None:
        asserted = self._nreset or bool(self._dmcontrol & NDMRESET)
        if asserted and not self._in_reset:
            self._hart.hold_in_reset()
        elif self._in_reset and not asserted:
            self._havereset = True
            cause = DebugCause.RESETHALTREQ if self._resethaltreq else DebugCause.HALTREQ if self._haltreq else None
            self._hart.leave_reset(cause)
        self._in_reset = asserted

    # -- dmcontrol and dmstatus

    @property
    def _selected(self) -> bool:
        return not self._dmcontrol & HARTSEL

    def _read_dmstatus(self) -> int:
        status = VERSION[self._spec] | AUTHENTICATED | HASRESETHALTREQ
        if self._in_reset and self._spec is DebugSpec.V1_0:
            status |= NDMRESETPENDING
        if not self._selected:
            return status | NONEXISTENT
        status |= UNAVAIL if self._in_reset else HALTED if self._hart.halted else RUNNING
        return status | (RESUMEACK if self._resumeack else 0) | (HAVERESET if self._havereset else 0)

    def _write_dmcontrol(self, value: int) -> None:
        if not value & DMACTIVE:
            self._deactivate()
            self._follow_reset()
            return
        self._dmcontrol = value & (HARTSEL_WRITABLE | NDMRESET | DMACTIVE)
        if self._selected:
            self._request(value)
        self._follow_reset()

    def _request(self, value: int) -> None:
        """The bits of dmcontrol that act on the selected hart."""
        if value & ACKHAVERESET:
            self._havereset = False
        if value & CLRRESETHALTREQ:
            self._resethaltreq = False
        elif value & SETRESETHALTREQ:
            self._resethaltreq = True
        self._haltreq = bool(value & HALTREQ)
        if self._in_reset:
            return
        if self._haltreq:
            if not self._hart.halted:
                self._hart.halt(DebugCause.HALTREQ)
        elif value & RESUMEREQ:
            self._resumeack = False
            if self._hart.halted:
                self._hart.resume()
                self._resumeack = True

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
        command = self._command
        if command >> 24 != CMDTYPE_ACCESS_REGISTER or command & POSTEXEC:
            self._cmderr = CmdErr.NOT_SUPPORTED
        elif not self._selected or self._in_reset or not self._hart.halted:
            self._cmderr = CmdErr.HALT_RESUME
        elif command & TRANSFER:
            try:
                self._transfer(command)
            except NoSuchRegister:
                self._cmderr = CmdErr.EXCEPTION

    def _transfer(self, command: int) -> None:
        regno = command & 0xFFFF
        size = 8 << (command >> 20 & 7)
        if size < 32 or size > self._hart.register_bits(regno):
            self._cmderr = CmdErr.NOT_SUPPORTED
            return
        if command & WRITE:
            self._hart.write_register(regno, (self._data[1] << 32 | self._data[0]) & (1 << size) - 1)
        else:
            value = self._hart.read_register(regno)
            self._data[0] = value & 0xFFFFFFFF
            if size == 64:
                self._data[1] = value >> 32 & 0xFFFFFFFF
        if command & AARPOSTINCREMENT:
            self._command = command & ~0xFFFF | regno + 1 & 0xFFFF
