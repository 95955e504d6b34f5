"""Serial lines, which deliver bytes as they are: 8 data bits, no parity, no flow control, nothing translated."""

import contextlib
import errno
import fcntl
import os
import struct
import sys
import termios

from rvtrace_gdb.transport.stream.descriptors import Descriptor
from rvtrace_gdb.transport.stream.interface import NoStream

_LINUX = sys.platform.startswith("linux")
_TERMIOS2 = struct.Struct("=4IB19s2I")  # Linux, asm-generic/termbits.h; with any speed as a number
_TCGETS2, _TCSETS2 = 0x802C542A, 0x402C542B
_CBAUD, _BOTHER = 0o010017, 0o010000
_STANDARD = {getattr(termios, name): int(name[1:]) for name in dir(termios) if name[0] == "B" and name[1:].isdigit()}


def open_serial(name: str, fd: int, baud: int | None) -> Descriptor:
    """The serial line behind *fd*, at *baud* bits per second; None: as it is set. Raises NoStream.

    It is set back when it is closed; no other program can open it until then.
    """
    try:
        before = termios.tcgetattr(fd)
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, termios.TIOCEXCL)
        _make_raw(fd)
        if baud is not None:
            _set_speed(fd, baud)
        speed = _speed(fd)
        if baud not in (None, speed):
            raise NoStream(name, f"does not do {baud} baud")
    except (OSError, termios.error) as error:
        os.close(fd)
        number = error.args[0] if error.args else 0
        if number == errno.EINVAL and baud is not None:
            raise NoStream(name, f"does not do {baud} baud") from None
        if number in (errno.EIO, errno.ENXIO, errno.ENODEV):  # /dev/ttyS* are there for ports that no chip is behind
            raise NoStream(name, "there is no device behind it") from None
        raise NoStream(name, f"cannot be set up as a serial line: {os.strerror(number)}") from None

    def close() -> None:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)
            fcntl.ioctl(fd, termios.TIOCNXCL)
        os.close(fd)

    return Descriptor(name, f"serial line, {speed} baud", fd, close, ends=False)


def _make_raw(fd: int) -> None:
    """As cfmakeraw(3) has it; bytes that came before are not of interest to anybody but the one who asks now."""
    made = termios.tcgetattr(fd)
    made[0] = termios.IGNBRK
    made[1] = 0
    made[2] = made[2] & ~(termios.CSIZE | termios.PARENB | termios.CSTOPB | termios.CRTSCTS) | (
        termios.CS8 | termios.CREAD | termios.CLOCAL
    )
    made[3] = 0
    made[6][termios.VMIN], made[6][termios.VTIME] = 1, 0
    termios.tcsetattr(fd, termios.TCSANOW, made)


def _set_speed(fd: int, baud: int) -> None:
    standard = next((constant for constant, speed in _STANDARD.items() if speed == baud), None)
    if standard is not None:
        made = termios.tcgetattr(fd)
        made[4] = made[5] = standard
        termios.tcsetattr(fd, termios.TCSANOW, made)
    elif _LINUX:
        *flags, line, characters, _, _ = _termios2(fd)
        flags[2] = flags[2] & ~_CBAUD | _BOTHER
        fcntl.ioctl(fd, _TCSETS2, _TERMIOS2.pack(*flags, line, characters, baud, baud))
    else:
        raise OSError(errno.EINVAL, "no standard speed")


def _speed(fd: int) -> int:
    if _LINUX:
        return int(_termios2(fd)[-1])
    return _STANDARD.get(termios.tcgetattr(fd)[5], 0)


def _termios2(fd: int) -> tuple[int, ...]:
    return _TERMIOS2.unpack(fcntl.ioctl(fd, _TCGETS2, bytes(_TERMIOS2.size)))
