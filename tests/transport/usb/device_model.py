"""A USB device as its host sees it: descriptors, control transfers, packets to and from bulk endpoints.

Ref: USB 2.0 specification, chapter 5.8 (bulk transfers: NAK while there is no room or no data), 9.4 and 9.6.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

DEVICE, CONFIGURATION, STRING = 1, 2, 3
STALL = None
"""The answer to a control request that the device does not know."""


class UsbDevice(Protocol):
    device: bytes
    configuration: bytes
    packet: int

    def control(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes | None:
        """The data of a control transfer; None: STALL."""
        ...

    def out(self, endpoint: int, packet: bytes) -> bool:
        """A packet arrives. False: NAK, it has no room."""
        ...

    def into(self, endpoint: int, length: int) -> bytes | None:
        """A packet goes to the host. None: NAK, it has none."""
        ...


@dataclass
class Wire:
    """The cable: what can go wrong with it, and what went over it."""

    device: UsbDevice
    plugged: bool = True
    unplug_after: int | None = None  # transfers
    transfers: int = 0
    between: Callable[[], None] = lambda: None
    """Called before each transfer: time passes in the target."""

    def begin(self) -> bool:
        """A transfer begins. False: the device is gone."""
        self.transfers += 1
        if self.unplug_after is not None and self.transfers > self.unplug_after:
            self.plugged = False
        if self.plugged:
            self.between()
        return self.plugged


def device_descriptor(vendor: int, product: int, strings: tuple[int, int, int] = (1, 2, 3)) -> bytes:
    return struct.pack("<BBHBBBBHHHBBBB", 18, 1, 0x0200, 0, 0, 0, 64, vendor, product, 0x0101, *strings, 1)


def configuration_descriptor(*interfaces: bytes) -> bytes:
    body = b"".join(interfaces)
    return struct.pack("<BBHBBBBB", 9, 2, 9 + len(body), len(interfaces), 1, 0, 0xC0, 250) + body


def interface_descriptor(number: int, kind: tuple[int, int, int], *endpoints: tuple[int, int, int]) -> bytes:
    """*endpoints*: address, attributes (2: bulk), packet size."""
    head = struct.pack("<BBBBBBBBB", 9, 4, number, 0, len(endpoints), *kind, 0)
    return head + b"".join(struct.pack("<BBBBHB", 7, 5, *endpoint, 1) for endpoint in endpoints)


def string_descriptor(strings: tuple[str, ...], index: int) -> bytes | None:
    if index == 0:
        return b"\x04\x03\x09\x04"
    if index > len(strings):
        return STALL
    text = strings[index - 1].encode("utf-16le")
    return bytes((len(text) + 2, 3)) + text


def standard(device: UsbDevice, strings: tuple[str, ...], request_type: int, request: int, value: int) -> bytes | None:
    """The standard requests that everything understands: GET_DESCRIPTOR, GET and SET_CONFIGURATION, SET_INTERFACE."""
    if (request_type, request) == (0x80, 6):
        kind, index = value >> 8, value & 0xFF
        if kind == DEVICE:
            return device.device
        if kind == CONFIGURATION:
            return device.configuration
        return string_descriptor(strings, index) if kind == STRING else STALL
    if (request_type, request) == (0x80, 8):
        return b"\x01"
    return b"" if (request_type, request) in ((0x00, 9), (0x01, 11), (0x02, 1)) else STALL
