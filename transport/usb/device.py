"""USB devices through pyusb: finding, claiming and using them, with every possible failure described in words.

pyusb is imported when a device is looked for (`pyusb`), so rvtrace runs without it.

Ref: pyusb, docs/tutorial.rst; USB 2.0 specification, chapter 9 (descriptors); errno values as Linux has them.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.transport.usb.errors import (
    Claimed,
    LibusbMissing,
    NoSuchDevice,
    NotAnAdapter,
    NotPermitted,
    SeveralDevices,
    TransferFailed,
    Unplugged,
    UsbError,
    UsbTimeout,
)
from rvtrace_gdb.transport.usb.pyusb import (
    EndpointDescriptor,
    InterfaceDescriptor,
    PyusbBackend,
    PyusbCore,
    UsbDevice,
    pyusb_core,
    pyusb_util,
)

TIMEOUT = 2.0  # seconds for one transfer; nothing an adapter does takes a hundredth of that
_GONE = (errno.ENODEV, errno.ENOENT, errno.ESHUTDOWN, errno.ENXIO)
_TIMED_OUT = (errno.ETIMEDOUT, errno.ETIME)


@dataclass(frozen=True)
class DeviceQuery:
    """The device to look for: its kind, in words, the pairs (idVendor, idProduct) of that kind, and its serial number.
    """

    kind: str
    ids: Sequence[tuple[int, int]]
    serial: str | None = None

    def __str__(self) -> str:
        ids = ", ".join(f"{vendor:04x}:{product:04x}" for vendor, product in self.ids)
        return f"{self.kind} ({ids})" + (f" with serial number {self.serial}" if self.serial else "")


def udev_rule(vendor: int, product: int) -> str:
    """Return the udev rule that lets the logged-in user use such a device."""
    return f'SUBSYSTEM=="usb", ATTR{{idVendor}}=="{vendor:04x}", ATTR{{idProduct}}=="{product:04x}", TAG+="uaccess"'


class BulkEndpoints(NamedTuple):
    """The bulk endpoints of an interface. *out*: to the device; *into*: from it, IN in the specification."""

    out: EndpointDescriptor
    into: EndpointDescriptor


class UsbInterface:
    """One claimed interface of a USB device, with a bulk endpoint in each direction.

    All methods raise `UsbLost` leaves. *name*: the device, for messages.
    """

    def __init__(
        self, device: UsbDevice, name: str, number: int, endpoints: BulkEndpoints, core: PyusbCore
    ) -> None:
        self.name, self.number = name, number
        self._device, self._core = device, core
        self._out, self._in = endpoints
        self.packet: int = self._in.wMaxPacketSize
        self._detached = False

    def write(self, data: bytes, doing: str) -> None:
        """Send all of *data* to the bulk OUT endpoint."""
        sent = 0
        while sent < len(data):
            with self._in_words(doing), self._stalling(self._out):
                taken = self._out.write(data[sent:], timeout=_milliseconds(TIMEOUT))
            if not taken:
                raise UsbTimeout(self.name, doing, TIMEOUT)
            sent += taken

    def read(self, size: int, doing: str, seconds: float = TIMEOUT) -> bytes:
        """Return the data of one transfer from the bulk IN endpoint: up to *size* bytes, which are whole packets."""
        with self._in_words(doing, seconds), self._stalling(self._in):
            return bytes(self._in.read(size, timeout=_milliseconds(seconds)))

    def discard(self, seconds: float = 0.05) -> None:
        """Read and discard data left from another program, until nothing arrives for *seconds*."""
        for _ in range(1000):
            try:
                if not self.read(self.packet, "emptying its buffer", seconds):
                    return
            except UsbTimeout:
                return

    def control(self, request_type: int, request: int, value: int, index: int, data: bytes | int = b"") -> bytes:
        """Do a control transfer: *data* to the device, or as many bytes from it."""
        with self._in_words(f"it was set up (request {request})"):
            length = _milliseconds(TIMEOUT)
            answer = self._device.ctrl_transfer(request_type, request, value, index, data or None, timeout=length)
            return bytes(answer) if isinstance(data, int) else b""

    def claim(self) -> None:
        """Claim the interface. Raises Claimed, NotPermitted and UsbLost leaves."""
        util = pyusb_util()
        with self._in_words("it was claimed"):
            with suppress(NotImplementedError):
                if self._device.is_kernel_driver_active(self.number):
                    self._device.detach_kernel_driver(self.number)
                    self._detached = True
            util.claim_interface(self._device, self.number)

    def close(self) -> None:
        """Release the interface for others. Raises nothing: a device that is gone is also released."""
        util = pyusb_util()
        errors = (self._core.USBError, NotImplementedError)
        with suppress(*errors):
            util.release_interface(self._device, self.number)
        if self._detached:
            with suppress(*errors):
                self._device.attach_kernel_driver(self.number)
        with suppress(*errors):
            util.dispose_resources(self._device)

    @contextmanager
    def _stalling(self, endpoint: EndpointDescriptor) -> Iterator[None]:
        """Clear a stall of the endpoint, so that the next program can use the device."""
        try:
            yield
        except self._core.USBError as error:
            if error.errno == errno.EPIPE:
                with suppress(self._core.USBError, NotImplementedError):
                    self._device.clear_halt(endpoint)
            raise

    @contextmanager
    def _in_words(self, doing: str, seconds: float = TIMEOUT) -> Iterator[None]:
        with _translated_errors(self._device, self.name, self._core, doing, seconds):
            yield


def open_interface(
    query: DeviceQuery,
    choose: Callable[[InterfaceDescriptor], bool],
    interface: int | None = None,
    backend: PyusbBackend | None = None,
) -> UsbInterface:
    """Return the interface that *choose* picks (or number *interface*) of the only device that matches *query*,
    claimed.

    *backend*: pyusb's, None: libusb. Raises UsbError leaves.
    """
    core = pyusb_core()
    device, name = _only(query, core, backend)
    with _translated_errors(device, name, core, "its descriptors were read", TIMEOUT):
        configuration = device.get_active_configuration()
    found = next((each for each in configuration if choose(each) and interface in (None, each.bInterfaceNumber)), None)
    if found is None:
        raise NotAnAdapter(name, "it has no JTAG interface" + ("" if interface is None else f" number {interface}"))
    claimed = UsbInterface(device, name, found.bInterfaceNumber, _bulk_endpoints(found, name), core)
    try:
        claimed.claim()
    except BaseException:
        claimed.close()
        raise
    return claimed


@dataclass(frozen=True)
class AttachedDevice:
    """A device that is plugged in. *serial* None: it has none, or it may not be read. *problem*: why it cannot be used
    now, as far as that is visible without claiming it.
    """

    kind: str
    vendor: int
    product: int
    bus: int
    address: int
    serial: str | None
    problem: str | None


def attached_devices(query: DeviceQuery, backend: PyusbBackend | None = None) -> list[AttachedDevice]:
    """Return all devices of that kind. Nothing is claimed. Raises UsbError leaves."""
    core = pyusb_core()
    return [_present(device, query.kind, core) for device in _matching_devices(query, core, backend)]


def _present(device: UsbDevice, kind: str, core: PyusbCore) -> AttachedDevice:
    problem = None
    try:
        with _translated_errors(device, _device_name(device, core), core, "it was opened", TIMEOUT):
            device.get_active_configuration()
        holders = _holders(_node(device))
        problem = f"in use by {', '.join(holders)}" if holders else None
    except UsbError as error:
        problem = str(error)
    attached = AttachedDevice(
        kind=kind,
        vendor=device.idVendor,
        product=device.idProduct,
        bus=device.bus or 0,
        address=device.address or 0,
        serial=_serial(device, core),
        problem=problem,
    )
    pyusb_util().dispose_resources(device)
    return attached


def _matching_devices(query: DeviceQuery, core: PyusbCore, backend: PyusbBackend | None) -> list[UsbDevice]:
    try:
        found = core.find(find_all=True, backend=backend)
        return [device for device in found if (device.idVendor, device.idProduct) in query.ids]
    except core.NoBackendError:
        raise LibusbMissing from None


def _only(query: DeviceQuery, core: PyusbCore, backend: PyusbBackend | None) -> tuple[UsbDevice, str]:
    devices = _matching_devices(query, core, backend)
    fitting = [device for device in devices if query.serial in (None, _serial(device, core))]
    if not fitting:
        for device in devices:  # one that may not be opened does not tell its serial number: it may be the one
            with _translated_errors(device, _device_name(device, core), core, "it was opened", TIMEOUT):
                device.get_active_configuration()
        raise NoSuchDevice(str(query), [_device_name(device, core) for device in devices])
    if len(fitting) > 1:
        raise SeveralDevices(str(query), [_device_name(device, core) for device in fitting])
    for other in devices:  # not when the collector comes to it, which may be in the middle of anything
        if other is not fitting[0]:
            pyusb_util().dispose_resources(other)
    return fitting[0], _device_name(fitting[0], core)


def _device_name(device: UsbDevice, core: PyusbCore) -> str:
    """Return the device's name, such as `303a:1001 at bus 1 device 2, serial 60:55:F9:01:02:03`."""
    serial = _serial(device, core)
    where = f"{device.idVendor:04x}:{device.idProduct:04x} at bus {device.bus} device {device.address}"
    return where + (f", serial {serial}" if serial else "")


def _serial(device: UsbDevice, core: PyusbCore) -> str | None:
    """Return the serial number; None if the device has none, or if it may not be read."""
    try:
        serial: str | None = device.serial_number
    except (ValueError, core.USBError):  # ValueError: pyusb knows no language, as its strings cannot be read
        return None
    return serial.strip("\0") if serial else None


def _bulk_endpoints(interface: InterfaceDescriptor, name: str) -> BulkEndpoints:
    bulk = [endpoint for endpoint in interface if endpoint.bmAttributes & 3 == 2]
    out = next((endpoint for endpoint in bulk if not endpoint.bEndpointAddress & 0x80), None)
    into = next((endpoint for endpoint in bulk if endpoint.bEndpointAddress & 0x80), None)
    if out is None or into is None:
        raise NotAnAdapter(name, "its interface lacks bulk endpoints")
    return BulkEndpoints(out, into)


@contextmanager
def _translated_errors(device: UsbDevice, name: str, core: PyusbCore, doing: str, seconds: float) -> Iterator[None]:
    """Translate pyusb's errors to `UsbError` leaves."""
    try:
        yield
    except core.USBError as error:
        raise _in_words(error, device, name, core, doing, seconds) from error


def _in_words(error: OSError, device: UsbDevice, name: str, core: PyusbCore, doing: str, seconds: float) -> UsbError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return _not_permitted(device, name)
    if error.errno == errno.EBUSY:
        return Claimed(name, _holders(_node(device)))
    if error.errno in _GONE:
        return Unplugged(name)
    if isinstance(error, core.USBTimeoutError) or error.errno in _TIMED_OUT:
        return UsbTimeout(name, doing, seconds)
    return TransferFailed(name, doing, " ".join(str(error).split()))


def _not_permitted(device: UsbDevice, name: str) -> NotPermitted:
    return NotPermitted(name, _node(device), udev_rule(device.idVendor, device.idProduct))


def _node(device: UsbDevice) -> str:
    return f"/dev/bus/usb/{device.bus or 0:03d}/{device.address or 0:03d}"


def _holders(node: str, processes: Path = Path("/proc")) -> list[str]:
    """Return the other programs that have the file *node* open: "openocd (process 123)"."""
    holders = []
    for process in processes.glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and any(os.readlink(fd) == node for fd in (process / "fd").iterdir()):
                holders.append(f"{(process / 'comm').read_text().strip()} (process {process.name})")
        except OSError:  # it has ended, or belongs to another user
            continue
    return sorted(holders)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
