"""What a user does with a target over USB by hand: look which adapters and harts there are, halt, resume, registers,
memory.

A user halts all harts unless told which: a program runs on all of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rvtrace_gdb.session.description import Usb
from rvtrace_gdb.session.errors import BadOption, HartUnreachable
from rvtrace_gdb.session.usb_link import UsbLink, link_by
from rvtrace_gdb.session.usb_names import GPRS, NAMED, csr, gpr
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.usb import esp_jtag, mpsse
from rvtrace_gdb.transport.usb.device import Present, Wanted, present
from rvtrace_gdb.transport.usb.errors import DebugModuleProblem, NoSuchDevice, SeveralDevices, UsbError

KINDS = {"esp": (esp_jtag.KIND, esp_jtag.IDS), "mpsse": (mpsse.KIND, mpsse.IDS)}


class HartState(NamedTuple):
    """*pc*: None while it is not halted."""

    hart: int
    state: str
    pc: int | None


class RegisterValue(NamedTuple):
    """*value*: or why it cannot be accessed. *bits*: of the register."""

    name: str
    value: int | str
    bits: int


def adapters() -> list[tuple[str, Present]]:
    """What is plugged in that could be an adapter: by its name in a description. Raises UsbError leaves."""
    return [(name, found) for name, (kind, ids) in KINDS.items() for found in present(Wanted(kind, ids))]


def only_adapter(serial: str | None = None) -> str:
    """The name of the only adapter that is plugged in. Raises NoSuchDevice, SeveralDevices."""
    there = adapters()
    found = [(name, it) for name, it in there if serial in (None, it.serial)]
    wanted = "of a kind that rvtrace knows" + (f" with serial number {serial}" if serial else "")
    if not found:
        raise NoSuchDevice(wanted, [where(it) for _, it in there])
    if len({name for name, _ in found}) > 1:
        raise SeveralDevices(wanted, [f"{name} {where(it)}" for name, it in found])
    return found[0][0]


def where(it: Present) -> str:
    """E.g. "303a:1001 at bus 1 device 2, serial 60:55:F9:00:00:01"."""
    text = f"{it.vendor:04x}:{it.product:04x} at bus {it.bus} device {it.address}"
    return text + (f", serial {it.serial}" if it.serial else "")


class UsbBench:
    """Harts and memory behind the adapter *usb*. It is connected when first used.

    All methods raise UsbError leaves, and those about one hart HartUnreachable.
    """

    def __init__(self, usb: Usb) -> None:
        self.link: UsbLink = link_by(usb)

    def close(self) -> None:
        """Others may use the adapter. Harts stay as they are."""
        self.link.close()

    def described(self) -> str:
        return self.link.described()

    def harts(self) -> list[HartState]:
        """All there are."""
        self.link.state(0)  # which connects
        return [self._state(hart) for hart in range(len(self.link.targets))]

    def halt(self, hart: int | None = None) -> list[HartState]:
        """Halt *hart*, None: all that are there. How all are afterwards."""
        return self._each(hart, self.link.halt)

    def resume(self, hart: int | None = None) -> list[HartState]:
        """As `halt`."""
        return self._each(hart, self.link.resume)

    def step(self, hart: int) -> list[HartState]:
        """One instruction. Raises HartNotHalted."""
        self._check(hart)
        self.link.step(hart)
        return self.harts()

    def registers(self, hart: int, words: Sequence[str]) -> list[RegisterValue]:
        """Each of *words* is a register, which is read, or `NAME=VALUE`, which is written and read back.

        None: pc and the general registers. Raises BadOption, HartNotHalted.
        """
        wishes = [_wish(word) for word in words] or [("pc", None), *((name, None) for name in GPRS[1:])]
        self._check(hart)
        with self.link.registers(hart) as registers:
            bits = registers.xlen
            for name, value in wishes:
                if value is not None and value >> bits:
                    raise BadOption(f"{name}={value:#x}: the register has {bits} bits")
        return [RegisterValue(name, self._register(hart, name, value), bits) for name, value in wishes]

    def read(self, address: int, size: int, progress: Progress = silent) -> bytes:
        """*size* bytes of physical memory, by accesses to whole words. An error has what came before as `partial`."""
        first, last = address & ~3, address + size + 3 & ~3
        try:
            data = self.link.read_block(first, last - first, progress)
        except UsbError as error:
            error.partial, error.wanted = error.partial[address - first :][:size], size
            raise
        return data[address - first : address - first + size]

    def write(self, address: int, words: Sequence[int]) -> None:
        """32-bit words, one after the other."""
        if address % 4:
            raise BadOption(f"the address {address:#x} is no multiple of 4")
        for n, word in enumerate(words):
            self.link.write32(address + 4 * n, word)

    def _register(self, hart: int, name: str, value: int | None) -> int | str:
        number = gpr(name)
        if number is not None:
            if value is not None:
                self.link.write_gpr(number, value, hart)
            return self.link.read_gpr(number, hart)
        register = name if name in NAMED else csr(name)
        assert register is not None  # _wish has seen to it
        accesses: list[tuple[int | str, int | None]] = [] if value is None else [(register, value)]
        return self.link.csrs(hart).run([*accesses, (register, None)])[-1]

    def _each(self, hart: int | None, do: Any) -> list[HartState]:
        if hart is not None:
            self._check(hart)
            do(hart)
            return self.harts()
        there = [it.hart for it in self.harts() if it.state not in ("unavailable", "nonexistent")]
        if not there:
            raise DebugModuleProblem(
                self.link.described(), "no hart is available: is the target powered, and out of reset?"
            )
        for number in there:
            do(number)
        return self.harts()

    def _state(self, hart: int) -> HartState:
        state = self.link.state(hart)
        pc = self.link.csrs(hart).run([("pc", None)])[0] if state == "halted" else None
        return HartState(hart, state, pc if isinstance(pc, int) else None)

    def _check(self, hart: int) -> None:
        self.link.state(0)
        if hart >= len(self.link.targets):
            raise HartUnreachable(
                hart, f"the debug module has {len(self.link.targets)} ({', '.join(self.link.targets)})"
            )


@contextmanager
def bench(usb: Usb) -> Iterator[UsbBench]:
    """One that is let go of at the end."""
    it = UsbBench(usb)
    try:
        yield it
    finally:
        it.close()


def hart_lines(harts: Sequence[HartState]) -> list[str]:
    """A line for each, e.g. "hart 0: halted at 0x80000000"."""
    return [f"hart {it.hart}: {it.state}" + ("" if it.pc is None else f" at {it.pc:#x}") for it in harts]


def register_lines(registers: Sequence[RegisterValue]) -> list[str]:
    """A line for each."""
    wide = max((len(it.name) for it in registers), default=0)
    return [
        f"{it.name:{wide}}  " + (it.value if isinstance(it.value, str) else f"{it.value:#0{it.bits // 4 + 2}x}")
        for it in registers
    ]


def _wish(word: str) -> tuple[str, int | None]:
    name, equals, text = word.partition("=")
    name = name.strip().lower()
    if gpr(name) is None and name not in NAMED and csr(name) is None:
        raise BadOption(f"there is no register {name!r}: it is pc, x0 to x31, ra, sp, ..., or a CSR (mepc, 0x341)")
    if not equals:
        return name, None
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise BadOption(f"{word}: {text!r} is no number from 0 on")
    return name, value
