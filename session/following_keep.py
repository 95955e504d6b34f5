"""What arrived, kept: the bytes at once, in a file beside the capture they become in the end, a piece at a time."""

import mmap
import os
import tempfile
from collections.abc import Callable
from typing import BinaryIO, cast

from rvtrace_gdb.session import capture as capture_file
from rvtrace_gdb.session.capture import CaptureError
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.support.output import opener_beside
from rvtrace_gdb.support.progress import Progress, silent


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
            return cast(BinaryIO, open(f"{path}.part", "x+b", buffering=0, opener=opener_beside(path)))
        except FileExistsError:
            why = "is there, with the bytes of a run that was killed: `rvtrace import` takes them; then remove it"
            raise CaptureError(f"{path}.part", why) from None
        except OSError as error:
            raise CaptureError(path, f"cannot be written: {error.strerror}") from None

    def save(self, size: int, capture_of: Callable[[bytes], Capture], progress: Progress = silent) -> None:
        """Write the capture of the first *size* bytes, at least one, which *capture_of* makes.

        Raises CaptureError, which says where they still are.
        """
        try:
            with mmap.mmap(self.file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
                capture_file.save(capture_of(cast(bytes, mapped)), self.path, progress)
        except CaptureError as error:
            still = f"; the {size} bytes are in {self.file.name}" if self._named else ""
            raise CaptureError(error.file, error.problem + still) from None
        self.remove()

    @property
    def _named(self) -> bool:
        """Whether the file that bytes go to can be found by anybody."""
        return isinstance(self.file.name, str)

    def remove(self) -> None:
        """The bytes are kept elsewhere, or there are none."""
        if self._named and os.path.exists(self.file.name):
            os.unlink(self.file.name)

    def close(self) -> None:
        """The bytes stay where they are."""
        self.file.close()
