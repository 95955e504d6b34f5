"""pyusb's backend interface in front of device models: no libusb. Failures have libusb's errno.

Ref: pyusb, usb/backend/__init__.py (IBackend); USB 2.0, 9.6 for the descriptors.
"""

import errno
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import usb.backend
import usb.core

from tests.transport.usb.device_model import STALL, Wire

_DEVICE = [
    "bLength",
    "bDescriptorType",
    "bcdUSB",
    "bDeviceClass",
    "bDeviceSubClass",
    "bDeviceProtocol",
    "bMaxPacketSize0",
    "idVendor",
    "idProduct",
    "bcdDevice",
    "iManufacturer",
    "iProduct",
    "iSerialNumber",
    "bNumConfigurations",
]
_CONFIGURATION = [
    "bLength",
    "bDescriptorType",
    "wTotalLength",
    "bNumInterfaces",
    "bConfigurationValue",
    "iConfiguration",
    "bmAttributes",
    "bMaxPower",
]
_INTERFACE = [
    "bLength",
    "bDescriptorType",
    "bInterfaceNumber",
    "bAlternateSetting",
    "bNumEndpoints",
    "bInterfaceClass",
    "bInterfaceSubClass",
    "bInterfaceProtocol",
    "iInterface",
]
_ENDPOINT = [
    "bLength", "bDescriptorType", "bEndpointAddress", "bmAttributes", "wMaxPacketSize", "bInterval",
]  # fmt: skip


def failure(number: int) -> usb.core.USBError:
    """As pyusb's libusb backend raises it."""
    kind = usb.core.USBTimeoutError if number == errno.ETIMEDOUT else usb.core.USBError
    return kind(errno.errorcode[number], None, number)


@dataclass
class Port:
    """Where a device is plugged in. *kernel*: interfaces a kernel driver has; *open_error*, *claim_error*: errno."""

    wire: Wire
    address: int = 2
    kernel: set[int] = field(default_factory=set)
    open_error: int = 0
    claim_error: int = 0
    claimed: set[int] = field(default_factory=set)
    opened: int = 0


class Backend(usb.backend.IBackend):  # type: ignore[misc]
    """A bus with devices in it."""

    def __init__(self, ports: Sequence[Port]) -> None:
        super().__init__()
        self.ports = ports

    def enumerate_devices(self) -> Iterator[Port]:
        yield from (port for port in self.ports if port.wire.plugged)

    def get_device_descriptor(self, dev: Port) -> Any:
        described = _named(_DEVICE, "<BBHBBBBHHHBBBB", dev.wire.device.device)
        described.bus, described.address, described.port_number = 1, dev.address, dev.address
        described.port_numbers, described.speed = (dev.address,), 2
        return described

    def get_configuration_descriptor(self, dev: Port, config: int) -> Any:
        if config:
            raise IndexError
        return _extra(_named(_CONFIGURATION, "<BBHBBBBB", dev.wire.device.configuration))

    def get_interface_descriptor(self, dev: Port, intf: int, alt: int, config: int) -> Any:
        if alt:
            raise IndexError
        return _interfaces(dev)[intf][0]

    def get_endpoint_descriptor(self, dev: Port, ep: int, intf: int, alt: int, config: int) -> Any:
        return _interfaces(dev)[intf][1][ep]

    def open_device(self, dev: Port) -> Port:
        _raise(dev.open_error or (0 if dev.wire.plugged else errno.ENODEV))
        dev.opened += 1
        return dev

    def close_device(self, dev_handle: Port) -> None:
        dev_handle.opened -= 1

    def set_configuration(self, dev_handle: Port, config_value: int) -> None:
        raise AssertionError("a driver need not, and setting it disturbs the device's other functions")

    def get_configuration(self, dev_handle: Port) -> int:
        _raise(0 if dev_handle.wire.plugged else errno.ENODEV)
        return 1

    def claim_interface(self, dev_handle: Port, intf: int) -> None:
        busy = intf in dev_handle.kernel or intf in dev_handle.claimed
        _raise(dev_handle.claim_error or (errno.EBUSY if busy else 0))
        dev_handle.claimed.add(intf)

    def release_interface(self, dev_handle: Port, intf: int) -> None:
        dev_handle.claimed.discard(intf)
        _raise(0 if dev_handle.wire.plugged else errno.ENODEV)

    def is_kernel_driver_active(self, dev_handle: Port, intf: int) -> bool:
        return intf in dev_handle.kernel

    def detach_kernel_driver(self, dev_handle: Port, intf: int) -> None:
        dev_handle.kernel.discard(intf)

    def attach_kernel_driver(self, dev_handle: Port, intf: int) -> None:
        dev_handle.kernel.add(intf)

    def bulk_write(self, dev_handle: Port, ep: int, intf: int, data: "array[int]", timeout: int) -> int:
        assert intf in dev_handle.claimed
        wire, text = dev_handle.wire, data.tobytes()
        _raise(0 if wire.begin() else errno.ENODEV)
        size = wire.device.packet
        for start in range(0, len(text), size):
            _raise(0 if wire.device.out(ep, text[start : start + size]) else errno.ETIMEDOUT)
        return len(text)

    def bulk_read(self, dev_handle: Port, ep: int, intf: int, buff: "array[int]", timeout: int) -> int:
        assert intf in dev_handle.claimed
        wire, got = dev_handle.wire, bytearray()
        _raise(0 if wire.begin() else errno.ENODEV)
        while len(got) < len(buff):
            packet = wire.device.into(ep, len(buff) - len(got))
            if packet is None:
                _raise(0 if got else errno.ETIMEDOUT)
                break
            got += packet
            if len(packet) < wire.device.packet:
                break
        buff[: len(got)] = array("B", got)
        return len(got)

    def ctrl_transfer(
        self, dev_handle: Port, bmRequestType: int, bRequest: int, wValue: int, wIndex: int, data: Any, timeout: int
    ) -> int:
        _raise(0 if dev_handle.wire.begin() else errno.ENODEV)
        answer = dev_handle.wire.device.control(bmRequestType, bRequest, wValue, wIndex, len(data))
        if answer is STALL:
            raise failure(errno.EPIPE)
        if bmRequestType & 0x80:
            data[: len(answer)] = array("B", answer)
            return len(answer)
        return len(data)


def _raise(number: int) -> None:
    if number:
        raise failure(number)


def _interfaces(port: Port) -> list[tuple[Any, list[Any]]]:
    text, at = port.wire.device.configuration, 9
    found: list[tuple[Any, list[Any]]] = []
    while at < len(text):
        if text[at + 1] == 4:
            found.append((_extra(_named(_INTERFACE, "<BBBBBBBBB", text[at:])), []))
        elif text[at + 1] == 5:
            endpoint = _extra(_named(_ENDPOINT, "<BBBBHB", text[at:]))
            endpoint.bRefresh = endpoint.bSynchAddress = 0
            found[-1][1].append(endpoint)
        at += text[at]
    return found


def _named(names: Sequence[str], layout: str, text: bytes) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(names, struct.unpack_from(layout, text), strict=True)))


def _extra(described: SimpleNamespace) -> SimpleNamespace:
    described.extra_descriptors = []
    return described
