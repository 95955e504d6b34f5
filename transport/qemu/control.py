"""What is said to a recorder and to QEMU while it runs: over sockets in the recorder's folder."""

import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

from rvtrace_gdb.transport.qemu.errors import QemuError, QemuGone
from rvtrace_gdb.transport.qemu.ring import CONTROL, QMP

_PATIENCE = 20.0  # seconds; both answer at once unless the machine is very busy
_ANSWER_LIMIT = 1 << 20  # bytes


def settle(folder: Path) -> None:
    """All that ran is in the ring afterwards, with how far each hart is in its last block. To be called only while the
    program is stopped. Raises QemuError.
    """
    _command(folder, "settle")


def record(folder: Path, on: bool) -> None:
    """Begin to record what runs from now on, or end it. Raises QemuError."""
    _command(folder, "on" if on else "off")


def runs(folder: Path) -> bool:
    """Whether QEMU runs the program now; a debugger stops it. Raises QemuError.

    Source: QEMU's documentation of QMP: a greeting, `qmp_capabilities`, then commands; events come in between.
    """
    with closing(_connected(folder, QMP)) as link, link.makefile("r", encoding="utf-8") as lines:
        try:
            _json(lines.readline(_ANSWER_LIMIT))
            for command in ("qmp_capabilities", "query-status"):
                link.sendall(json.dumps({"execute": command}).encode() + b"\n")
                answer = _json(lines.readline(_ANSWER_LIMIT))
                while "event" in answer:
                    answer = _json(lines.readline(_ANSWER_LIMIT))
            return bool(answer["return"]["running"])
        except TimeoutError:
            raise QemuError(f"{folder / QMP}: QEMU does not say whether it runs") from None
        except (OSError, ValueError, KeyError, TypeError):  # cut off in the middle: it is just ending
            raise QemuGone(str(folder)) from None


def _json(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return found


def _command(folder: Path, command: str) -> None:
    with closing(_connected(folder, CONTROL)) as link:
        try:
            link.sendall(f"{command}\n".encode())
            answer = link.recv(16)
        except TimeoutError:
            raise QemuError(f"{folder / CONTROL}: the recorder does not answer") from None
        except OSError:
            raise QemuGone(str(folder)) from None
    if answer != b"ok\n":
        raise QemuGone(str(folder))


def _connected(folder: Path, name: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(_PATIENCE)
    try:
        link.connect(str(folder / name))
    except (FileNotFoundError, NotADirectoryError, ConnectionError):
        link.close()
        raise QemuGone(str(folder)) from None
    except OSError as error:
        link.close()
        raise QemuError(f"{folder / name}: cannot be reached: {error.strerror or error}") from None
    return link
