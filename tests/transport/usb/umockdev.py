"""Programs with the real libusb on a device model: `umockdev_bus.py` has them, the model stays in this process."""

import errno
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.transport.usb.device_model import STALL
from tests.transport.usb.rig import Rig

BUS = Path(__file__).with_name("umockdev_bus.py")
SYSTEM_PYTHON = "/usr/bin/python3"  # which has Debian's gi
CONTROL, CLAIM, OUT, IN = range(4)
NAK = -errno.EAGAIN
HOME = BUS.parent.parent.parent


def run(rig: Rig, folder: Path, *command: str, seconds: float = 120) -> "subprocess.CompletedProcess[str]":
    """What *command* does, in *folder*, with the device, which time passes for while it is asked."""
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listening:
        path = f"{short}/usb"  # the path of a socket may have about a hundred characters
        listening.bind(path)
        listening.listen()
        threading.Thread(target=_serve, args=(rig, listening), daemon=True).start()
        descriptors = rig.device.device + rig.device.configuration
        return _ended([SYSTEM_PYTHON, str(BUS), path, descriptors.hex(), *command], folder, seconds)


def _ended(arguments: Sequence[str], folder: Path, seconds: float) -> "subprocess.CompletedProcess[str]":
    """With all its children, however it ends."""
    environment = dict(os.environ, PYTHONPATH=str(HOME), G_MESSAGES_DEBUG="")
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    ) as program:
        try:
            out, err = program.communicate(timeout=seconds)
        except BaseException:
            os.killpg(program.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(arguments, program.returncode, out, err)


def _serve(rig: Rig, listening: socket.socket) -> None:
    """Up to the end of who asks, which may be killed in the middle."""
    connection, _ = listening.accept()
    with suppress(ConnectionError), connection, connection.makefile("rb") as requests:
        while head := requests.read(10):
            what, endpoint, length, size = struct.unpack("<BBII", head)
            status, data = _answer(rig, what, endpoint, length, requests.read(size))
            connection.sendall(struct.pack("<iI", status, len(data)) + data)


def _answer(rig: Rig, what: int, endpoint: int, length: int, data: bytes) -> tuple[int, bytes]:
    """See `umockdev_bus.Device.ask`."""
    device, wire = rig.device, rig.wire
    if what == CLAIM:
        return -rig.port.claim_error, b""
    if not wire.plugged or not wire.begin():
        return -errno.ENODEV, b""
    if what == CONTROL:
        request_type, request, value, index, wanted = struct.unpack_from("<BBHHH", data)
        answer = device.control(request_type, request, value, index, wanted)
        if answer is STALL:
            return -errno.EPIPE, b""
        return (len(answer), answer) if request_type & 0x80 else (wanted, b"")
    if what == OUT:
        return _out(rig, endpoint, [data[n : n + device.packet] for n in range(0, len(data), device.packet)])
    return _into(rig, endpoint, length)


def _out(rig: Rig, endpoint: int, packets: Sequence[bytes]) -> tuple[int, bytes]:
    taken = 0
    for packet in packets:
        if not rig.device.out(endpoint, packet):
            return taken or NAK, b""
        taken += len(packet)
    return taken, b""


def _into(rig: Rig, endpoint: int, length: int) -> tuple[int, bytes]:
    got = b""
    while len(got) < length:
        packet = rig.device.into(endpoint, length - len(got))
        if packet is None:
            return (len(got), got) if got else (NAK, b"")
        got += packet
        if len(packet) < rig.device.packet:
            break
    return len(got), got
