"""A target that goes away in the middle: its debug module is reset, or it has no power. Nothing wrong is taken for an
answer, what came before is kept, and the next use works.

Ref: RISC-V Debug Specification 1.0, 3.14.2 (dmactive 0: the module's state takes its reset values, and stays so).
"""

import errno
import struct
from collections.abc import Callable, Sequence

import pytest

from rvtrace_gdb.transport.usb import jtag
from rvtrace_gdb.transport.usb.errors import DebugModuleLost, DmiFailed, JtagProblem, TransferFailed, UsbLost
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.jtag import Chain
from rvtrace_gdb.transport.usb.target import UsbConnection, UsbTarget
from tests.transport.usb.backend import failure
from tests.transport.usb.device_model import Wire
from tests.transport.usb.esp_device import EspDevice, ScanChain
from tests.transport.usb.mpsse_device import MpsseDevice
from tests.transport.usb.rig import Rig, plugged
from tests.transport.usb.slow_debug_module import DMCONTROL, Chip, CountingTap, SlowDtm

BASE, WORDS = 0x8000_0000, 4
WAYS: dict[str, Callable[[], Chip]] = {
    "bus": lambda: Chip(has_bus=True),
    "busy bus": lambda: Chip(has_bus=True, bus_busy=2),
    "commands": lambda: Chip(memory_by_command=True, progbufsize=0, xlen=64),
    "programs": lambda: Chip(command_busy=1),
}


class Forgetful:
    """A debug module that is reset before its DMI access number *when*."""

    def __init__(self, chip: Chip) -> None:
        self.chip, self.when, self.accesses = chip, -1, 0

    def read(self, address: int) -> int:
        self._pass()
        return self.chip.read(address)

    def write(self, address: int, value: int) -> None:
        self._pass()
        if address == DMCONTROL or self.chip._active:
            self.chip.write(address, value)

    def _pass(self) -> None:
        if self.accesses == self.when:
            fresh = Chip(progbufsize=self.chip.progbufsize)
            for name in vars(fresh):
                if name.startswith("_"):
                    setattr(self.chip, name, getattr(fresh, name))
        self.accesses += 1


def expected(count: int) -> bytes:
    """What a `Chip` has in memory."""
    return struct.pack(f"<{count}I", *(a ^ 0x5A5A5A5A for a in range(BASE, BASE + 4 * count, 4)))


@pytest.mark.parametrize("way", WAYS)
def test_a_debug_module_that_is_reset_at_any_access(way: str) -> None:
    """What is read is right, or refused."""
    module = Forgetful(WAYS[way]())
    rig = plugged(EspDevice(CountingTap(SlowDtm(module, 0))))
    lost = 0
    with rig.target() as usb:
        usb.read_block(BASE, 4 * WORDS)
        before = module.accesses
        usb.read_block(BASE, 4 * WORDS)
        for n in range(0, module.accesses - before, 1 if way == "bus" else 2):
            module.when = module.accesses + n
            try:
                assert usb.read_block(BASE, 4 * WORDS) == expected(WORDS)
            except DebugModuleLost as error:
                assert "the target was reset, or lost its power; repeat the command" in str(error)
                assert expected(WORDS).startswith(error.partial)
                lost += 1
            module.when = -1
            assert usb.read_block(BASE, 4 * WORDS) == expected(WORDS)
            if usb.state() != "halted":
                usb.halt()
    assert lost > WORDS // 2


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("make", [EspDevice, MpsseDevice], ids=["esp", "mpsse"])
def test_without_power_in_the_middle_and_with_it_again(
    make: type[EspDevice] | type[MpsseDevice], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jtag, "PATIENCE", 0.01)
    tap = CountingTap(SlowDtm(Chip(has_bus=True), 0))
    rig = plugged(make(tap))
    with rig.target() as usb:
        assert usb.read_block(BASE, 16) == expected(4)
        monkeypatch.setattr(tap, "rise", lambda tms, tdi: setattr(tap, "tdo", level))
        monkeypatch.setattr(tap, "fall", lambda: None)
        for wrong in ((DebugModuleLost, DmiFailed), JtagProblem):
            with pytest.raises(wrong) as caught:
                usb.read_block(BASE, 16)
            assert isinstance(caught.value, UsbLost) and "power" in str(caught.value)
        monkeypatch.undo()
        assert usb.read_block(BASE, 16) == expected(4)


class Bypassed:
    """A TAP with an instruction register of *bits*, of which nothing but BYPASS is used."""

    def __init__(self, bits: int) -> None:
        self._bits, self._state, self.tdo = bits, "reset", 1
        self._shift: list[int] = []
        self.loaded: list[int] = []

    def fall(self) -> None:
        self.tdo = self._shift[0] if self._state in ("shift dr", "shift ir") else 1

    def rise(self, tms: int, tdi: int) -> None:
        if self._state in ("shift dr", "shift ir"):
            self._shift = [*self._shift[1:], tdi]
        elif self._state == "capture ir":
            self._shift = [1] + [0] * (self._bits - 1)  # 1149.1: the two lowest bits are 01
        elif self._state == "capture dr":
            self._shift = [0]
        elif self._state == "update ir":
            self.loaded.append(sum(bit << n for n, bit in enumerate(self._shift)))
        self._state = _NEXT[self._state][tms]


_NEXT = {
    "reset": ("idle", "reset"), "idle": ("idle", "select dr"), "select dr": ("capture dr", "select ir"),
    "capture dr": ("shift dr", "exit1 dr"), "shift dr": ("shift dr", "exit1 dr"), "exit1 dr": ("pause dr", "update dr"),
    "pause dr": ("pause dr", "exit2 dr"), "exit2 dr": ("shift dr", "update dr"), "update dr": ("idle", "select dr"),
    "select ir": ("capture ir", "reset"), "capture ir": ("shift ir", "exit1 ir"), "shift ir": ("shift ir", "exit1 ir"),
    "exit1 ir": ("pause ir", "update ir"), "pause ir": ("pause ir", "exit2 ir"), "exit2 ir": ("shift ir", "update ir"),
    "update ir": ("idle", "select dr"),
}  # fmt: skip
"""IEEE Std 1149.1, figure "TAP controller state diagram": by TMS 0, 1."""


@pytest.mark.parametrize(("nearer", "farther"), [((4,), (7,)), ((), (6, 2)), ((9, 3, 8), ())])
@pytest.mark.parametrize("make", [EspDevice, MpsseDevice], ids=["esp", "mpsse"])
def test_a_chain_with_other_taps_of_any_length(
    make: type[EspDevice] | type[MpsseDevice], nearer: Sequence[int], farther: Sequence[int]
) -> None:
    """They are left in BYPASS, all ones."""
    others = [Bypassed(bits) for bits in (*nearer, *farther)]
    tap = CountingTap(SlowDtm(Chip(has_bus=True), 0))
    backend = plugged(make(ScanChain([*others[: len(nearer)], tap, *others[len(nearer) :]]))).backend
    adapter = plugged_adapter(make, backend)
    lengths = (*nearer, 5, *farther)
    with UsbTarget(UsbConnection(lambda: Chain(adapter(), lengths, len(nearer)))) as usb:
        assert usb.read_block(BASE, 40) == expected(10)
        usb.write32(BASE, 9)
        assert usb.read32(BASE) == 9
    assert all(set(other.loaded[1:]) == {(1 << other._bits) - 1} for other in others)
    with UsbTarget(UsbConnection(lambda: Chain(adapter()))) as usb, pytest.raises(JtagProblem, match="ir_lengths"):
        usb.state()


def plugged_adapter(make: type[EspDevice] | type[MpsseDevice], backend: object) -> Callable[[], EspJtag]:
    from rvtrace_gdb.transport.usb.mpsse import Mpsse

    return lambda: EspJtag(backend=backend) if make is EspDevice else Mpsse(backend=backend)  # type: ignore[return-value]


def test_an_endpoint_that_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and set going again: the cable need not be pulled."""
    rig: Rig = plugged(EspDevice(CountingTap(SlowDtm(Chip(has_bus=True), 0))))
    usual, cleared = rig.backend.bulk_read, list[int]()

    def stalled(*arguments: object) -> int:
        if not cleared:
            raise failure(errno.EPIPE)
        return usual(*arguments)  # type: ignore[arg-type]

    with rig.target() as usb:
        usb.state()
        monkeypatch.setattr(rig.backend, "bulk_read", stalled)
        monkeypatch.setattr(rig.backend, "clear_halt", lambda handle, endpoint: cleared.append(endpoint))
        with pytest.raises(TransferFailed, match="failed while captured bits were read"):
            usb.read_block(BASE, 16)
        assert len(cleared) == 1 and cleared[0] & 0x80
        assert usb.read_block(BASE, 16) == expected(4)
    assert isinstance(rig.wire, Wire) and rig.port.opened == 0
