"""A program: a USB bus with one device on it, for programs that use the real libusb. Runs in the system's own Python.

umockdev gives a program its own /sys and /dev, and brings its ioctls on the device's file here; what they ask is passed
on to the device model, which is in another process, at the other end of a socket.

    umockdev_bus.py SOCKET DESCRIPTORS(hex) COMMAND...

Ref: Linux, Documentation/driver-api/usb/usb.rst and include/uapi/linux/usbdevice_fs.h (struct usbdevfs_urb on 64-bit
machines), drivers/usb/core/devio.c (what of a file's transfers is left when it is closed); umockdev's reference manual,
UMockdevIoctlBase: ioctls are handled in a thread of its own, and nothing else here works on transfers.
"""

import errno
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gi  # type: ignore[import-not-found,import-untyped,unused-ignore]

gi.require_version("UMockdev", "1.0")
from gi.repository import GLib, UMockdev  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: E402

NODE = "/dev/bus/usb/001/002"
CONTROL, CLAIM, OUT, IN = range(4)
NAK = -errno.EAGAIN
# Numbers of ioctls of type 'U'.
(SETINTERFACE, SETCONFIGURATION, GETDRIVER, SUBMITURB, DISCARDURB, REAPURB, REAPURBNDELAY) = (
    0x04, 0x05, 0x08, 0x0A, 0x0B, 0x0C, 0x0D,
)  # fmt: skip
(CLAIMINTERFACE, RELEASEINTERFACE, IOCTL, RESET, CLEAR_HALT, GET_CAPABILITIES, DISCONNECT_CLAIM) = (
    0x0F, 0x10, 0x12, 0x14, 0x15, 0x1A, 0x1B,
)  # fmt: skip
ZERO_PACKET, NO_PACKET_SIZE_LIMIT = 1, 4
URB_BYTES, STATUS, BUFFER, LENGTH, ACTUAL = 56, 4, 16, 24, 28
URB_CONTROL = 2

ENDING = 2.0  # seconds that programs which the command has left behind have to close the device


class Pending(NamedTuple):
    """A transfer that is not over. *address*: of its URB in the program; *done*: bytes."""

    address: bytes
    urb: Any
    buffer: Any
    endpoint: int
    length: int
    done: int


class Device:
    """The model at the other end of the socket."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)

    def ask(self, what: int, endpoint: int, length: int, data: bytes = b"") -> tuple[int, bytes]:
        """A count, or an errno below 0, and data from the device."""
        self._socket.sendall(struct.pack("<BBII", what, endpoint, length, len(data)) + data)
        status, size = struct.unpack("<iI", self._receive(8))
        return status, self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise EOFError("the device model has ended")
            data += piece
        return data


@dataclass
class File:
    """The device's file, as one program has it open. *finished*: URBs that it has not asked for yet."""

    finished: list[Any] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)


class Ioctls(UMockdev.IoctlBase):  # type: ignore[misc]
    """All that is asked of the device. The device is asked whenever a program asks what is finished, which libusb does
    all the time while it waits: a file of umockdev's can always be read."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.failed: Callable[[], None] = lambda: None
        self._files: dict[Any, File] = {}

    def do_handle_ioctl(self, client: Any) -> bool:
        try:
            result, number = self._handle(self._file(client), client.get_request() & 0xFF, client.get_arg())
        except GLib.Error:  # the program was killed
            result, number = -1, errno.EIO
        except Exception as error:  # noqa: BLE001  # an exception is lost in GLib: the test would only hang
            print(f"umockdev_bus: {error!r}", file=sys.stderr)  # noqa: T201
            self.failed()
            result, number = -1, errno.EIO
        client.complete(result, number)
        return True

    def closed(self) -> bool:
        """Whether no program has the device open."""
        return not any(client.get_connected() for client in list(self._files))

    def _file(self, client: Any) -> File:
        """Those of programs that have ended are forgotten with all their transfers, as their memory is."""
        for other in [known for known in self._files if not known.get_connected()]:
            del self._files[other]
        return self._files.setdefault(client, File())

    def _handle(self, file: File, number: int, argument: Any) -> tuple[int, int]:
        """The ioctl's result and errno."""
        if number == GET_CAPABILITIES:
            argument.resolve(0, 4).update(0, list(struct.pack("<I", ZERO_PACKET | NO_PACKET_SIZE_LIMIT)))
            return 0, 0
        if number in (CLAIMINTERFACE, DISCONNECT_CLAIM):
            status, _ = self.device.ask(CLAIM, argument.resolve(0, 4).retrieve()[0], 0)
            return (-1, -status) if status < 0 else (0, 0)
        if number == GETDRIVER:
            return -1, errno.ENODATA
        if number == SUBMITURB:
            address = bytes(argument.retrieve())
            return self._submit(file, address, argument.resolve(0, URB_BYTES))
        if number in (REAPURB, REAPURBNDELAY):
            return self._reap(file, argument)
        if number == DISCARDURB:
            return self._discard(file, bytes(argument.retrieve()))
        if number in (SETINTERFACE, SETCONFIGURATION, RELEASEINTERFACE, IOCTL, RESET, CLEAR_HALT):
            return 0, 0
        return -1, errno.ENOTTY

    def _submit(self, file: File, address: bytes, urb: Any) -> tuple[int, int]:
        raw = bytes(urb.retrieve())
        kind, endpoint, length = raw[0], raw[1], struct.unpack_from("<i", raw, LENGTH)[0]
        buffer = urb.resolve(BUFFER, length)  # None: it is empty, or the program was killed just now
        if kind == URB_CONTROL:
            status, data = self.device.ask(CONTROL, 0, length, bytes(buffer.retrieve()))
            if status == -errno.ENODEV:
                return -1, errno.ENODEV
            if data:
                buffer.update(8, list(data))
            _finish(file, urb, min(status, 0), max(status, 0))
            return 0, 0
        waiting = self._transfer(file, Pending(address, urb, buffer, endpoint, length, 0))
        if waiting is not None and waiting.done < 0:
            return -1, -waiting.done
        file.pending += [waiting] if waiting else []
        self._go_on(file)
        return 0, 0

    def _transfer(self, file: File, waiting: Pending) -> "Pending | None":
        """As much of it as the device takes or gives now; None: it is finished."""
        _, urb, buffer, endpoint, length, done = waiting
        if endpoint & 0x80:
            status, data = self.device.ask(IN, endpoint, length)
            if status >= 0:
                if data:
                    buffer.update(0, list(data))
                done = len(data)
        else:
            data = b"" if buffer is None else bytes(buffer.retrieve())[done:]
            status, _ = self.device.ask(OUT, endpoint, length, data)
            done += max(status, 0)
            if status >= 0 and done < length:
                status = NAK
        if status == NAK:
            return waiting._replace(done=done)
        if status < 0:
            return waiting._replace(done=status)
        _finish(file, urb, 0, done)
        return None

    def _go_on(self, file: File) -> None:
        """One transfer may make room, or have data, for another."""
        still = [self._transfer(file, waiting) for waiting in file.pending]
        for waiting in still:
            if waiting is not None and waiting.done < 0:
                _finish(file, waiting.urb, waiting.done, 0)
        file.pending = [waiting for waiting in still if waiting is not None and waiting.done >= 0]

    def _discard(self, file: File, address: bytes) -> tuple[int, int]:
        found = next((waiting for waiting in file.pending if waiting.address == address), None)
        if found is None:
            return -1, errno.EINVAL
        file.pending.remove(found)
        _finish(file, found.urb, -errno.ENOENT, found.done)
        return 0, 0

    def _reap(self, file: File, argument: Any) -> tuple[int, int]:
        if not file.finished:
            self._go_on(file)
        if not file.finished:
            return -1, errno.EAGAIN
        argument.resolve(0, 8).set_ptr(0, file.finished.pop(0))
        return 0, 0


def _finish(file: File, urb: Any, status: int, actual: int) -> None:
    urb.update(STATUS, list(struct.pack("<i", status)))
    urb.update(ACTUAL, list(struct.pack("<i", actual)))
    file.finished.append(urb)


def described(descriptors: str) -> str:
    """The device for umockdev, as udev knows it."""
    raw = bytes.fromhex(descriptors)
    vendor, product = struct.unpack_from("<HH", raw, 8)
    attributes = {
        "busnum": "1", "devnum": "2", "devpath": "1", "speed": "12", "version": " 2.00", "maxchild": "0",
        "bConfigurationValue": "1", "bNumConfigurations": "1", "bDeviceClass": "00",
        "idVendor": f"{vendor:04x}", "idProduct": f"{product:04x}",
    }  # fmt: skip
    properties = {
        "DEVTYPE": "usb_device", "SUBSYSTEM": "usb", "BUSNUM": "001", "DEVNUM": "002", "DEVNAME": NODE,
        "MAJOR": "189", "MINOR": "1",
    }  # fmt: skip
    lines = ["P: /devices/usb1/1-1", f"N: {NODE.removeprefix('/dev/')}"]
    lines += [f"E: {name}={value}" for name, value in properties.items()]
    lines += [f"A: {name}={value}" for name, value in attributes.items()]
    return "\n".join([*lines, f"H: descriptors={descriptors.upper()}", ""])


def main(path: str, descriptors: str, *command: str) -> int:
    testbed = UMockdev.Testbed.new()
    testbed.add_from_string(described(descriptors))
    ioctls = Ioctls(Device(path))
    testbed.attach_ioctl(NODE, ioctls)
    loop = GLib.MainLoop()
    env = dict(os.environ, LD_PRELOAD="libumockdev-preload.so.0", UMOCKDEV_DIR=testbed.get_root_dir())
    program = subprocess.Popen(command, env=env)
    ioctls.failed = program.kill
    GLib.child_watch_add(GLib.PRIORITY_DEFAULT, program.pid, lambda pid, status: loop.quit())
    loop.run()
    deadline = time.monotonic() + ENDING
    while not ioctls.closed() and time.monotonic() < deadline:  # umockdev kills whoever uses what is gone
        time.sleep(0.01)
    return program.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
