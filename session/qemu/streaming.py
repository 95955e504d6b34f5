"""All that QEMU runs, from its start to its end, into a capture file, in constant memory.

The recorder makes the harts wait for the reader (see `transport.qemu.ring.Ring.stalling`). What the encoders send goes
to a file for each hart at once; the capture is put together in the end, in pieces.
"""

import mmap
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, cast

from rvtrace_gdb.session import capture as capture_file
from rvtrace_gdb.session.beginning import begun
from rvtrace_gdb.session.program import Program
from rvtrace_gdb.session.qemu import in_force, report
from rvtrace_gdb.session.qemu.code import Code, lacking
from rvtrace_gdb.session.qemu.encoding import encoder_for
from rvtrace_gdb.session.qemu.records import Records
from rvtrace_gdb.session.qemu.wanted import Wanted
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.qemu.errors import QemuError
from rvtrace_gdb.transport.qemu.ring import Ring

_BATCH = 1 << 14  # words; the harts go on while these are encoded
_FAR = 1 << 62  # words: no ring gets there


class _Hart:
    def __init__(self, ring: Ring, hart: int, code: Code, wanted: Wanted, file: IO[bytes]) -> None:
        self.hart, self.file = hart, file
        self._ring, self._at = ring, 0
        self._records = Records(code, contexts=bool(getattr(wanted.options, "context", False)) is True)
        self.encoder = encoder_for(wanted)

    def read(self) -> bool:
        """Takes what there is; whether there was anything."""
        end = min(self._ring.written(self.hart), self._at + _BATCH)
        if end == self._at:
            return False
        words = self._ring.words(self.hart, self._at, end)
        self._ring.done(self.hart, end)
        self._at = end
        self.file.write(self.encoder.feed(self._records.feed(words)))
        return True

    def drop(self) -> None:
        """Nothing more is wanted."""
        self._ring.done(self.hart, _FAR)

    def finish(self, *, whole: bool) -> None:
        """No more is read. *whole*: all that ran was."""
        rest = self._records.open_end(self._ring.began(self.hart)) if whole else []
        tail = self.encoder.end(rest)
        self.encoder.instructions += sum(getattr(item, "instructions", 0) for item in rest)
        self.file.write(tail)
        self.file.flush()


class Streaming:
    """`read` again and again, until it says that nothing is there and QEMU has ended; then `save`."""

    def __init__(self, ring: Ring, wanted: Wanted, program: Program, target: str, resources: ExitStack) -> None:
        self.failure: QemuError | None = None
        """Why what ran later is missing. The harts wait for nobody any more."""
        self._ring, self._program, self._target, self._wanted = ring, program, target, wanted
        self._image = program.image()
        self._code = Code(ring, self._image)
        resources.callback(self._code.close)
        self._harts = [
            _Hart(ring, hart, self._code, wanted, resources.enter_context(_file())) for hart in range(ring.harts)
        ]

    @property
    def is_lacking(self) -> bool:
        """Whether something that is read, or will be, is missing."""
        return self.failure is not None or bool(self._ring.failed)

    @property
    def instructions(self) -> int:
        """Retired so far, of all harts."""
        return sum(hart.encoder.instructions for hart in self._harts)

    @property
    def size(self) -> int:
        """Bytes of trace so far, of all harts."""
        return sum(hart.file.tell() for hart in self._harts)

    def read(self) -> bool:
        """Encodes what there is by now; whether there was anything. What cannot be encoded ends it: `failure`."""
        try:
            found = [hart.read() for hart in self._harts] if self.failure is None else []
        except (QemuError, OSError) as error:
            self.failure, found = _failure(error), []
            for hart in self._harts:
                hart.drop()
        for address, data in self._code.take_fresh():
            if not self._image.knows(address):
                self._image.add_code(address, data)
        return any(found)

    def save(self, path: str, notes: tuple[str, ...] = (), progress: Progress = silent) -> None:
        """What there was as a capture. Raises CaptureError, QemuError."""
        try:
            self._save(path, notes, progress)
        except OSError as error:
            raise _failure(error) from None

    def _save(self, path: str, notes: tuple[str, ...], progress: Progress) -> None:
        if self.failure is None and self._ring.failed:
            self.failure = QemuError(lacking(self._ring))
        with ExitStack() as maps:
            sinks = []
            for hart in self._harts:
                hart.finish(whole=self.failure is None)
                sinks.append(in_force.sink(hart.hart, _mapped(hart.file, maps), wrapped=False))
            capture = replace(
                begun(self._target, self._image),
                encoders=tuple(in_force.encoder(hart.hart, self._wanted, self._image) for hart in self._harts),
                sinks=tuple(sinks),
                code=tuple(self._image.code),
                notes=(*notes, *([] if self._code.changed is None else [report.changed(self._code.changed)])),
            )
            capture_file.save(capture, path, progress)


def _failure(error: QemuError | OSError) -> QemuError:
    if isinstance(error, QemuError):
        return error
    return QemuError(f"{tempfile.gettempdir()}: what was encoded cannot be kept: {error.strerror}")


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()  # gone when it is closed


def _mapped(file: IO[bytes], maps: ExitStack) -> bytes:
    """The bytes of a file that are not all in memory; they have a length and slices, as all that is asked of them."""
    if not file.tell():
        return b""
    return cast(bytes, maps.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
