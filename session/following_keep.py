"""What arrived, kept: the bytes at once, in a file beside the capture they become in the end, a piece at a time."""

import json
import mmap
import os
import tempfile
import zipfile
from collections.abc import Callable
from typing import BinaryIO, cast

from session import capture_json
from session.capture import CaptureError
from session.captured import Capture
from support.output import OutputError, replacing
from support.progress import Progress, silent

_PIECE = 1 << 20  # bytes


class Kept:
    """The file that bytes go to until `save`; *path*: of the capture. Raises CaptureError.

    It is called as the capture, with ".part" behind: who kills us finds the bytes there.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if not path or path == "-" or "\0" in path:
            raise CaptureError(path, "give the name of a file for the capture")
        if os.path.isdir(path):
            raise CaptureError(path, "cannot be written: is a folder")
        self.file = self._made(path)

    def _made(self, path: str) -> BinaryIO:
        if os.path.exists(path) and not os.path.isfile(path):  # a device
            return cast(BinaryIO, tempfile.TemporaryFile(buffering=0))
        try:
            return cast(BinaryIO, open(f"{path}.part", "x+b", buffering=0))
        except FileExistsError:
            why = "is there, with the bytes of a run that was killed: `rvtrace import` takes them; then remove it"
            raise CaptureError(f"{path}.part", why) from None
        except OSError as error:
            raise CaptureError(path, f"cannot be written: {error.strerror}") from None

    def save(self, size: int, capture_of: Callable[[bytes], Capture], progress: Progress = silent) -> int:
        """Write the capture of the first *size* bytes, which *capture_of* makes; how many they were.

        Raises CaptureError, which says where they still are.
        """
        try:
            if not size:
                write_capture(capture_of(b""), self.path, progress)
            else:
                with mmap.mmap(self.file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
                    write_capture(capture_of(cast(bytes, mapped)), self.path, progress)
        except CaptureError as error:
            raise CaptureError(error.file, f"{error.problem}; the bytes are in {self.file.name}") from None
        self.remove()
        return size

    def remove(self) -> None:
        """The bytes are kept elsewhere, or there are none."""
        if isinstance(self.file.name, str) and os.path.exists(self.file.name):
            os.unlink(self.file.name)

    def close(self) -> None:
        """The bytes stay where they are."""
        self.file.close()


def write_capture(capture: Capture, path: str, progress: Progress = silent) -> None:
    """As `session.capture.save`, a piece at a time: bytes may be mapped from a file. Raises CaptureError."""
    description, members = capture_json.describe(capture)
    total = sum(map(len, members.values()))
    done = 0
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as container:
            container.writestr(capture_json.NAME, json.dumps(description, indent=1))
            for name, data in members.items():
                with container.open(name, "w", force_zip64=len(data) >= 1 << 31) as member:
                    for at in range(0, len(data), _PIECE):
                        progress("writing the capture", done + at, total)
                        member.write(data[at : at + _PIECE])
                done += len(data)
    except OutputError as error:
        raise CaptureError(error.path, error.problem) from None
