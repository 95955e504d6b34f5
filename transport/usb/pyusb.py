"""What is used of pyusb, which has no types of its own, and how it is loaded: only when a device is looked for.

Ref: pyusb, docs/tutorial.rst; the names of descriptors' fields are those of the USB 2.0 specification, chapter 9.
"""

import importlib
from collections.abc import Iterable, Iterator
from typing import Protocol, cast

from rvtrace_gdb.transport.usb.errors import PyusbMissing


class EndpointDescriptor(Protocol):
    """An endpoint of an interface."""

    wMaxPacketSize: int
    bmAttributes: int
    bEndpointAddress: int

    def write(self, data: bytes, timeout: int) -> int:
        """Return how many bytes were taken. *timeout*: in milliseconds, as everywhere. Raises `PyusbCore.USBError`."""

    def read(self, size: int, timeout: int) -> Iterable[int]:
        """Return the bytes of one transfer. Raises `PyusbCore.USBError`."""


class InterfaceDescriptor(Protocol):
    """An interface of a configuration, with its endpoints."""

    bInterfaceNumber: int
    bInterfaceClass: int
    bInterfaceSubClass: int
    bInterfaceProtocol: int

    def __iter__(self) -> Iterator[EndpointDescriptor]: ...


class UsbDevice(Protocol):
    """A device that is plugged in. All methods raise `PyusbCore.USBError`."""

    idVendor: int
    idProduct: int
    bus: int | None
    address: int | None

    @property
    def serial_number(self) -> str | None: ...

    def get_active_configuration(self) -> Iterable[InterfaceDescriptor]: ...

    def ctrl_transfer(
        self, request_type: int, request: int, value: int, index: int, data: bytes | int | None, timeout: int
    ) -> Iterable[int] | int:
        """Return the bytes that came, or how many were sent."""

    def is_kernel_driver_active(self, interface: int) -> bool: ...

    def detach_kernel_driver(self, interface: int) -> None: ...

    def attach_kernel_driver(self, interface: int) -> None: ...

    def clear_halt(self, endpoint: EndpointDescriptor) -> None: ...


class PyusbBackend(Protocol):
    """A library below pyusb, such as libusb, or a test's."""


class PyusbCore(Protocol):
    """The module `usb.core`."""

    USBError: type[OSError]
    USBTimeoutError: type[OSError]
    NoBackendError: type[Exception]

    def find(self, *, find_all: bool, backend: PyusbBackend | None) -> Iterable[UsbDevice]: ...


class PyusbUtil(Protocol):
    """The module `usb.util`."""

    def claim_interface(self, device: UsbDevice, interface: int) -> None: ...

    def release_interface(self, device: UsbDevice, interface: int) -> None: ...

    def dispose_resources(self, device: UsbDevice) -> None: ...


def pyusb_core() -> PyusbCore:
    """Return the module. Raises PyusbMissing."""
    try:
        return cast("PyusbCore", importlib.import_module("usb.core"))
    except ImportError:
        raise PyusbMissing from None


def pyusb_util() -> PyusbUtil:
    """Return the module, once the other one is loaded."""
    return cast("PyusbUtil", importlib.import_module("usb.util"))
