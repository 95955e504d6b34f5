"""The link to a target over USB, as its description says, instead of OpenOCD; and the user's commands on it.

A USB device can be claimed only once, so all links of this process to the same device share one connection. If they
differ (another description, with another speed or TAP), the last user has the device, and the others connect again when
they are used.

`UsbBench` lists adapters and harts, halts and resumes harts, and reads and writes registers and memory. By default it
halts all harts: a program runs on all of them. General registers are named as x1 or ra, CSRs as mepc, 0x341 or csr833.
Source: RISC-V Instruction Set Manual I, table "Assembler mnemonics".
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any, NamedTuple

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrRequest
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.errors import BadOption, HartUnreachable
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Driver
from rvtrace_gdb.transport.usb.device import AttachedDevice, DeviceQuery, attached_devices
from rvtrace_gdb.transport.usb.errors import (
    Claimed,
    DebugModuleProblem,
    NoSuchDevice,
    SeveralDevices,
    UsbError,
    UsbHartNotHalted,
)
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.jtag import Chain, Jtag
from rvtrace_gdb.transport.usb.mpsse import Mpsse
from rvtrace_gdb.transport.usb.target import UsbConnection, UsbCsrs, UsbTarget

_ABI = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"
GPRS = tuple(_ABI.split(" "))
NAMED = ("pc", "priv")


def gpr(name: str) -> int | None:
    """Return the number of a general register, None if it is none."""
    if name == "fp":
        return 8
    if name in GPRS:
        return GPRS.index(name)
    number = name[1:]
    return int(number) if name[:1] == "x" and number.isascii() and number.isdigit() and int(number) < 32 else None


def csr(name: str) -> int | None:
    """Return the number of a CSR, None if it is none."""
    if name in CSRS:
        return CSRS[name]
    try:
        number = int(name.removeprefix("csr"), 0)
    except ValueError:
        return None
    return number if 0 <= number < 0x1000 else None


_CONNECTIONS: dict[UsbDescription, UsbConnection] = {}
_LOCK = Lock()
_ONE_AT_A_TIME = RLock()
"""One lock for all connections: one may take the device from another, which must not be using it then."""


class UsbLink(UsbTarget):
    """A `session.target.link.Link` that also accesses the CSRs of harts without Tcl."""

    def csrs_of(self, hart: int) -> "UsbHartCsrs":
        """Return a `CsrAccess`. Raises HartUnreachable and the transport's errors."""
        self.state(0)  # which connects
        if hart >= len(self.targets):
            known = f"{len(self.targets)} ({', '.join(self.targets)})"
            raise HartUnreachable(hart, f"the debug module has {known}; correct `hart` in the target description")
        return UsbHartCsrs(self.csrs(hart), hart)


class HartRunsOverUsb(HartRuns):
    """A hart's registers cannot be accessed over USB because it runs."""

    def __init__(self, hart: int) -> None:
        super().__init__()
        self.hart = hart

    def __str__(self) -> str:
        return f"hart {self.hart} runs: halt it first (`trace usb halt`, or in a shell `rvtrace usb halt`)"


class UsbHartCsrs:
    """A `CsrAccess` over USB."""

    def __init__(self, csrs: UsbCsrs, hart: int) -> None:
        self.name = csrs.name
        self._csrs, self._hart = csrs, hart

    @property
    def xlen(self) -> int:
        try:
            return self._csrs.xlen
        except UsbHartNotHalted as error:
            raise self._in_words(error) from error

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        try:
            return self._csrs.run(accesses, progress)
        except UsbHartNotHalted as error:
            raise self._in_words(error) from error

    def _in_words(self, error: UsbHartNotHalted) -> HartRuns | HartUnreachable:
        if error.state == "running":
            return HartRunsOverUsb(self._hart)
        return HartUnreachable(self._hart, f"its state is {error.state}: is it powered, and out of reset?")


def link_by(usb: UsbDescription) -> UsbLink:
    """Return a link to the device that *usb* describes. It is opened at the first access."""
    with _LOCK:
        connection = _CONNECTIONS.setdefault(usb, UsbConnection(lambda: _chain(usb), _ONE_AT_A_TIME))
    return UsbLink(connection)


def _chain(usb: UsbDescription) -> Chain:
    """Return the scan chain. Raises UsbError leaves."""
    try:
        return Chain(_adapter(usb), usb.ir_lengths, usb.tap)
    except Claimed as error:
        with _LOCK:
            others = list(_CONNECTIONS.values())
        if not any(other.yield_device(error.device) for other in others):
            raise
    return Chain(_adapter(usb), usb.ir_lengths, usb.tap)


def _adapter(usb: UsbDescription) -> Jtag:
    adapter = ADAPTERS[usb.adapter]
    if adapter.driver is Driver.MPSSE:
        return Mpsse(usb.serial, usb.khz, usb.interface, usb.layout, adapter)
    return EspJtag(usb.serial, usb.khz, adapter)


ADAPTER_NAMES = tuple(ADAPTERS)
"""The names of adapters in descriptions."""


class HartState(NamedTuple):
    """The state of a hart. *pc*: None while it is not halted."""

    hart: int
    state: str
    pc: int | None


class RegisterValue(NamedTuple):
    """The *value* of a register, or why it cannot be accessed. *bits*: its width."""

    name: str
    value: int | str
    bits: int


def adapters() -> list[tuple[str, AttachedDevice]]:
    """Return the devices that may be adapters, by their name in a description. Raises UsbError leaves."""
    queries = {name: DeviceQuery(adapter.kind, adapter.ids) for name, adapter in ADAPTERS.items()}
    return [(name, found) for name, query in queries.items() for found in attached_devices(query)]


def only_adapter(serial: str | None = None) -> str:
    """Return the name of the only adapter that is plugged in. Raises NoSuchDevice, SeveralDevices."""
    there = adapters()
    found = [(name, it) for name, it in there if serial in (None, it.serial)]
    wanted = "of a kind that rvtrace knows" + (f" with serial number {serial}" if serial else "")
    if not found:
        raise NoSuchDevice(wanted, [where(it) for _, it in there])
    if len({name for name, _ in found}) > 1:
        raise SeveralDevices(wanted, [f"{name} {where(it)}" for name, it in found])
    return found[0][0]


def where(device: AttachedDevice) -> str:
    """Describe where a device is: "303a:1001 at bus 1 device 2, serial 60:55:F9:00:00:01"."""
    text = f"{device.vendor:04x}:{device.product:04x} at bus {device.bus} device {device.address}"
    return text + (f", serial {device.serial}" if device.serial else "")


class UsbBench:
    """The harts and the memory behind the adapter *usb*. It connects at the first access.

    All methods raise UsbError leaves; those for one hart also raise HartUnreachable.
    """

    def __init__(self, usb: UsbDescription) -> None:
        self.link: UsbLink = link_by(usb)

    def close(self) -> None:
        """Let other programs use the adapter. The harts' states do not change."""
        self.link.close()

    def description(self) -> str:
        return self.link.description()

    def harts(self) -> list[HartState]:
        """Return the states of all harts."""
        self.link.state(0)  # connects
        return [self._hart_state(hart) for hart in range(len(self.link.targets))]

    def identity(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the IDCODE, 0 for none, and mvendorid and marchid of each halted hart."""
        found = []
        for hart in range(len(self.link.targets)):
            if self.link.state(hart) == "halted":
                vendor, arch = self.link.csrs(hart).run([(CSRS["mvendorid"], None), (CSRS["marchid"], None)])
                if isinstance(vendor, int) and isinstance(arch, int):
                    found.append((vendor, arch))
        return self.link.idcode(), found

    def halt(self, hart: int | None = None) -> list[HartState]:
        """Halt *hart*, None: all harts. Return the states of all harts afterwards."""
        return self._each(hart, self.link.halt)

    def resume(self, hart: int | None = None) -> list[HartState]:
        """Resume *hart*, None: all harts. Return the states of all harts afterwards."""
        return self._each(hart, self.link.resume)

    def step(self, hart: int) -> list[HartState]:
        """Step one instruction. Raises UsbHartNotHalted."""
        self._check_hart(hart)
        self.link.step(hart)
        return self.harts()

    def registers(self, hart: int, words: Sequence[str]) -> list[RegisterValue]:
        """Read each register of *words*; one of the form `NAME=VALUE` is written, then read back.

        None: pc and the general registers. Raises BadOption, UsbHartNotHalted.
        """
        wishes = [_wish(word) for word in words] or [("pc", None), *((name, None) for name in GPRS[1:])]
        self._check_hart(hart)
        with self.link.registers(hart) as registers:
            bits = registers.xlen
            for name, value in wishes:
                if value is not None and value >> bits:
                    raise BadOption(f"{name}={value:#x}: the register has {bits} bits")
        return [RegisterValue(name, self._access_register(hart, name, value), bits) for name, value in wishes]

    def read(self, address: int, size: int, progress: Progress = silent) -> bytes:
        """Return *size* bytes of physical memory, read in whole words. An error has the bytes
        before it as `partial`.
        """
        first, last = address & ~3, address + size + 3 & ~3
        try:
            data = self.link.read_block(first, last - first, progress)
        except UsbError as error:
            error.partial, error.requested = error.partial[address - first :][:size], size
            raise
        return data[address - first : address - first + size]

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive 32-bit words."""
        if address % 4:
            raise BadOption(f"the address {address:#x} is not a multiple of 4")
        for n, word in enumerate(words):
            self.link.write32(address + 4 * n, word)

    def _access_register(self, hart: int, name: str, value: int | None) -> int | str:
        number = gpr(name)
        if number is not None:
            if value is not None:
                self.link.write_gpr(number, value, hart)
            return self.link.read_gpr(number, hart)
        register = name if name in NAMED else csr(name)
        assert register is not None  # _wish has checked it
        accesses: list[tuple[int | str, int | None]] = [] if value is None else [(register, value)]
        return self.link.csrs(hart).run([*accesses, (register, None)])[-1]

    def _each(self, hart: int | None, do: Any) -> list[HartState]:
        if hart is not None:
            self._check_hart(hart)
            do(hart)
            return self.harts()
        there = [it.hart for it in self.harts() if it.state not in ("unavailable", "nonexistent")]
        if not there:
            raise DebugModuleProblem(
                self.link.description(), "no hart is available: is the target powered, and out of reset?"
            )
        for number in there:
            do(number)
        return self.harts()

    def _hart_state(self, hart: int) -> HartState:
        state = self.link.state(hart)
        pc = self.link.csrs(hart).run([("pc", None)])[0] if state == "halted" else None
        return HartState(hart, state, pc if isinstance(pc, int) else None)

    def _check_hart(self, hart: int) -> None:
        self.link.state(0)
        if hart >= len(self.link.targets):
            raise HartUnreachable(
                hart, f"the debug module has {len(self.link.targets)} ({', '.join(self.link.targets)})"
            )


@contextmanager
def bench(usb: UsbDescription) -> Iterator[UsbBench]:
    """Provide a `UsbBench`, which is closed at the end."""
    it = UsbBench(usb)
    try:
        yield it
    finally:
        it.close()


def hart_lines(harts: Sequence[HartState]) -> list[str]:
    """Return a line for each hart, e.g. "hart 0: halted at 0x80000000"."""
    return [f"hart {it.hart}: {it.state}" + ("" if it.pc is None else f" at {it.pc:#x}") for it in harts]


def register_lines(registers: Sequence[RegisterValue]) -> list[str]:
    """Return a line for each register."""
    wide = max((len(it.name) for it in registers), default=0)
    return [
        f"{it.name:{wide}}  " + (it.value if isinstance(it.value, str) else f"{it.value:#0{it.bits // 4 + 2}x}")
        for it in registers
    ]


def _wish(word: str) -> tuple[str, int | None]:
    name, equals, text = word.partition("=")
    name = name.strip().lower()
    if gpr(name) is None and name not in NAMED and csr(name) is None:
        raise BadOption(f"there is no register {name!r}: give pc, x0 to x31, ra, sp, ..., or a CSR (mepc, 0x341)")
    if not equals:
        return name, None
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise BadOption(f"{word}: {text!r} is not a number from 0 on")
    return name, value
