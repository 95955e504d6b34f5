"""Finding and claiming a USB device: everything that can go wrong is one line that says what to do."""

import errno
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import usb.core

from rvtrace_gdb.support.errors import Cancelled
from rvtrace_gdb.transport.usb import device
from rvtrace_gdb.transport.usb.errors import (
    Claimed,
    JtagProblem,
    LibusbMissing,
    NoSuchDevice,
    NotAnAdapter,
    NotPermitted,
    PyusbMissing,
    SeveralDevices,
    TransferFailed,
    Unplugged,
    UsbError,
    UsbTimeout,
)
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.jtag import Chain
from rvtrace_gdb.transport.usb.mpsse import Mpsse
from rvtrace_gdb.transport.usb.target import UsbConnection, UsbTarget
from tests.helpers.amounts import long_only
from tests.transport.usb.backend import Backend, Port
from tests.transport.usb.device_model import Wire
from tests.transport.usb.esp_device import EspDevice
from tests.transport.usb.mpsse_device import MpsseDevice
from tests.transport.usb.rig import Rig, plugged
from tests.transport.usb.slow_debug_module import Chip, CountingTap, SlowDtm

BASE = 0x8000_0000


def tap(chip: Chip | None = None) -> CountingTap:
    return CountingTap(SlowDtm(chip or Chip(has_bus=True), 0))


@pytest.fixture(params=[EspDevice, MpsseDevice], ids=["esp", "mpsse"])
def rig(request: pytest.FixtureRequest) -> Rig:
    return plugged(request.param(tap()))


def wrong(rig: Rig, kind: type[UsbError]) -> str:
    """The line a user gets."""
    with rig.target() as target, pytest.raises(kind) as caught:
        target.read32(BASE)
    line = str(caught.value)
    assert "\n" not in line and "Errno" not in line
    return line


def test_no_device() -> None:
    with pytest.raises(NoSuchDevice, match=r"Espressif USB-JTAG \(303a:1001\), none of its kind .* plugged in"):
        EspJtag(backend=Backend([]))


def test_the_one_with_the_serial_number() -> None:
    ports = [Port(Wire(EspDevice(tap(), serial)), address) for address, serial in ((2, "AA"), (3, "BB"))]
    backend = Backend(ports)
    with pytest.raises(SeveralDevices, match=r"AA, .*BB; select one with `serial`"):
        EspJtag(backend=backend)
    with pytest.raises(NoSuchDevice, match="serial number CC, there is 303a:1001 at bus 1 device 2, serial AA, "):
        EspJtag(serial="CC", backend=backend)
    adapter = EspJtag(serial="BB", backend=backend)
    assert "device 3" in adapter.name and ports[1].claimed == {2}
    adapter.close()
    assert ports[1].claimed == set() and [port.opened for port in ports] == [0, 0]


def test_no_permission_prints_the_udev_rule(rig: Rig) -> None:
    rig.port.open_error = errno.EACCES
    line = wrong(rig, NotPermitted)
    vendor = "303a" if isinstance(rig.device, EspDevice) else "0403"
    assert f'SUBSYSTEM=="usb", ATTR{{idVendor}}=="{vendor}", ATTR{{idProduct}}==' in line
    assert 'TAG+="uaccess"' in line and "/etc/udev/rules.d/" in line and "/dev/bus/usb/001/002" in line


def test_one_that_may_not_be_opened_may_be_the_one_with_the_serial_number() -> None:
    ports = [Port(Wire(EspDevice(tap(), serial)), address) for address, serial in ((2, "AA"), (3, "BB"))]
    ports[0].open_error = errno.EACCES
    adapter = EspJtag(serial="BB", backend=Backend(ports))
    assert "device 3, serial BB" in adapter.name
    adapter.close()
    with pytest.raises(NotPermitted, match=r"you may not use the USB device 303a:1001 at bus 1 device 2 \(/dev"):
        EspJtag(serial="AA", backend=Backend(ports))


def test_the_documented_rule() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "usb.md").read_text()
    assert f"    {device.udev_rule(0x303A, 0x1001)}\n" in page


def test_claimed_by_another_program(rig: Rig) -> None:
    rig.port.claim_error = errno.EBUSY
    assert "is in use by another program (an OpenOCD?): end that first" in wrong(rig, Claimed)


def test_who_has_it_open_is_said(tmp_path: Path) -> None:
    for number, name, node in ((7, "openocd", "/dev/bus/usb/001/002"), (8, "bash", "/dev/null")):
        (tmp_path / str(number) / "fd").mkdir(parents=True)
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
        (tmp_path / str(number) / "fd" / "3").symlink_to(node)
    assert device._holders("/dev/bus/usb/001/002", tmp_path) == ["openocd (process 7)"]
    assert "in use by openocd (process 7): end that" in str(Claimed("x", ["openocd (process 7)"]))


def test_a_kernel_driver_is_taken_off_and_put_back() -> None:
    rig = plugged(MpsseDevice(tap()))
    rig.port.kernel = {0, 1}
    with rig.target() as target:
        assert target.read32(BASE) == BASE ^ 0x5A5A5A5A
        assert rig.port.kernel == {1}
    assert rig.port.kernel == {0, 1}


@pytest.mark.parametrize(
    ("rig", "transfers"),
    [
        (EspDevice, 0), (MpsseDevice, 2), (EspDevice, 150), (MpsseDevice, 150),
        *long_only((EspDevice, 1), (MpsseDevice, 1), (EspDevice, 20), (MpsseDevice, 20)),
    ],
    indirect=["rig"],
)  # fmt: skip
def test_unplugged_at_any_moment_and_plugged_in_again(rig: Rig, transfers: int) -> None:
    """What was read is kept, whole words of the right memory; the next use works."""
    wanted = b"".join((a ^ 0x5A5A5A5A).to_bytes(4, "little") for a in range(BASE, BASE + 0x4000, 4))
    target = rig.target()
    target.state()
    if isinstance(rig.device, MpsseDevice):
        transfers //= 2
    rig.wire.unplug_after = rig.wire.transfers + transfers
    with pytest.raises(Unplugged, match="is gone: it was unplugged") as caught:
        target.read_block(BASE, 0x4000)
    kept = f"({len(caught.value.partial)} of 16384 bytes were read and are kept)"
    assert (kept in str(caught.value)) == bool(caught.value.partial)
    assert wanted.startswith(caught.value.partial) and len(caught.value.partial) < 0x4000
    if transfers >= 75:
        assert caught.value.partial
    with pytest.raises((NoSuchDevice, Unplugged)):
        target.state()
    rig.wire.plugged, rig.wire.unplug_after = True, None
    had = len(caught.value.partial)
    assert caught.value.partial + target.read_block(BASE + had, 0x4000 - had) == wanted
    target.close()
    assert rig.port.opened == 0 and not rig.port.claimed


def test_cancelled_and_gone_on_with(rig: Rig) -> None:
    def stop(label: str, done: int, total: int | None = None) -> None:
        if done:
            raise Cancelled

    with rig.target() as target:
        with pytest.raises(Cancelled):
            target.read_block(BASE, 0x4000, stop)
        opened = rig.port.opened
        assert target.read32(BASE) == BASE ^ 0x5A5A5A5A and rig.port.opened == opened


def test_interrupted_in_the_middle_of_a_transfer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C: what comes back later must not be taken for the answer to the next request."""
    with rig.target() as target:
        target.state()
        usual = rig.backend.bulk_read

        def interrupted(*arguments: Any) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr(rig.backend, "bulk_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            target.read_block(BASE, 64)
        monkeypatch.setattr(rig.backend, "bulk_read", usual)
        assert target.read_block(BASE + 4, 8) == b"".join(
            (a ^ 0x5A5A5A5A).to_bytes(4, "little") for a in (BASE + 4, BASE + 8)
        )


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = plugged(EspDevice(tap()))
    with rig.target() as target:
        target.state()
        monkeypatch.setattr(rig.device, "into", lambda endpoint, length: None)
        with pytest.raises(UsbTimeout, match="did not answer within 2 s while captured bits were read: plug it out"):
            target.state()


def test_any_other_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = plugged(EspDevice(tap()))

    def fail(*arguments: Any) -> int:
        raise usb.core.USBError("Input/Output Error", -1, errno.EIO)

    with rig.target() as target:
        target.state()
        monkeypatch.setattr(rig.backend, "bulk_write", fail)
        with pytest.raises(TransferFailed, match=r"failed while commands were sent: .*Input/Output Error"):
            target.state()


def test_a_device_without_jtag() -> None:
    rig = plugged(EspDevice(tap()))
    rig.device.configuration = MpsseDevice(tap()).configuration
    assert "it has no JTAG interface" in wrong(rig, NotAnAdapter)
    with pytest.raises(NotAnAdapter, match="no JTAG interface number 3"):
        Mpsse(interface=3, backend=plugged(MpsseDevice(tap())).backend)


class Stuck:
    """TDO that nothing drives."""

    def __init__(self, level: int) -> None:
        self.tdo = level

    def fall(self) -> None: ...

    def rise(self, tms: int, tdi: int) -> None: ...


@pytest.mark.parametrize("level", [0, 1])
def test_nothing_behind_the_adapter(level: int) -> None:
    rig = plugged(EspDevice(Stuck(level)))
    assert "JTAG does not answer (TDO does not follow TDI): is the board powered" in wrong(rig, JtagProblem)
    assert rig.port.opened == 0


def test_a_chip_that_is_no_risc_v() -> None:
    dtm = SlowDtm(Chip(), 0)
    dtm.dtmcs = 0x0000_0000
    line = wrong(plugged(EspDevice(CountingTap(dtm))), JtagProblem)
    assert "dtmcs reads 0x00000000, which is not a debug transport" in line


def test_a_wrong_chain() -> None:
    backend = plugged(EspDevice(tap())).backend

    def chain(lengths: list[int] | None, position: int) -> Chain:
        return Chain(EspJtag(backend=backend), lengths, position)

    for lengths, position, said in (
        ([5, 5], 0, r"has 1 TAP with 5 bits .*, not 2 \(5, 5 bits\): correct `ir_lengths`"),
        ([4], 0, r"not 1 \(4 bits\)"),
        (None, 1, "there is no TAP 1 in a chain of 1: correct `tap`"),
    ):
        target = UsbTarget(UsbConnection(partial(chain, lengths, position)))
        with target, pytest.raises(JtagProblem, match=said):
            target.state()


def test_what_another_program_left_in_the_buffers() -> None:
    """It captured bits and was killed: they are not taken for ours."""
    rig = plugged(EspDevice(tap()))
    rig.device.out(2, bytes([0x44] * 60))
    rig.device.out(2, bytes([0x45] * 3))
    with rig.target() as target:
        assert target.read32(BASE) == BASE ^ 0x5A5A5A5A


def test_another_program_left_no_room_in_the_buffers() -> None:
    """It was killed before it read what its commands captured: the device takes no more until somebody does."""
    rig = plugged(EspDevice(tap()))
    while rig.device.out(2, bytes([0x44] * 64)):
        pass
    with rig.target() as target:
        assert target.read32(BASE) == BASE ^ 0x5A5A5A5A


def test_the_clock_is_set() -> None:
    device = EspDevice(tap())
    EspJtag(khz=1000, backend=plugged(device).backend).close()
    assert device.divider == 24  # 48 MHz / 2 / 24 (table 32.3-5: half of the base clock is the most)
    EspJtag(khz=10**6, backend=plugged(device).backend).close()
    assert device.divider == 1
    ftdi = MpsseDevice(tap())
    Mpsse(khz=1000, layout=(0x0088, 0x308B), backend=plugged(ftdi).backend).close()
    assert ftdi.divisor == 29  # AN_108, 3.8.2: 60 MHz / ((1 + 29) * 2)
    assert (ftdi.low, ftdi.high, ftdi.mode) == ((0x88, 0x8B), (0x00, 0x30), 2)


def test_an_mpsse_with_little_room() -> None:
    """The FT232H has 1 KiB: more is never asked for at once."""
    with plugged(MpsseDevice(tap(), room=1024)).target() as target:
        assert len(target.read_block(BASE, 0x2000)) == 0x2000


def test_without_pyusb(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("usb", "usb.core", "usb.util"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(PyusbMissing, match=r"not installed: \S*python\S* -m pip install pyusb$"):
        EspJtag()


def test_without_libusb(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(**_: Any) -> Any:
        raise usb.core.NoBackendError("No backend available")

    monkeypatch.setattr(usb.core, "find", find)
    with pytest.raises(LibusbMissing, match=r"apt install libusb-1\.0-0"):
        EspJtag()
