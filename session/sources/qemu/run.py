"""Runs QEMU with a recorder, from its command line to its end.

The recorder writes into a folder of its own in memory, which is removed when `rvtrace qemu` ends. A process that was
killed cannot remove its folder. It held a lock on a file in it, so the next process can tell, and removes it.

`Streaming` writes everything that QEMU runs, from its start to its end, into a capture file, in constant memory. The
recorder makes the harts wait for the reader (see `transport.qemu.launch.plugin_command`). The encoders' output goes to
a file for each hart at once; the capture is assembled at the end, in pieces.
"""

import fcntl
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

from rvtrace_gdb.decode.program.regions import joined_code
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.description.model import Description, DescriptionError, OpenOcdDescription
from rvtrace_gdb.session.description.tables import text
from rvtrace_gdb.session.program import LoadedProgram, new_capture
from rvtrace_gdb.session.sources.options import trace_request
from rvtrace_gdb.session.sources.qemu import encoder, trace
from rvtrace_gdb.session.sources.qemu.encoder import QemuEncoderOptions, encoder_for, encoder_options
from rvtrace_gdb.session.sources.qemu.log_recorder import LogServer
from rvtrace_gdb.session.sources.qemu.records import HartRecords, RecordedCode, RecordedItems, lacking
from rvtrace_gdb.session.sources.qemu.saved import ResetReader
from rvtrace_gdb.session.target.target_state import SavedTarget, SaveRequest
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.files import OutputError, atomic_output
from rvtrace_gdb.support.text import counted
from rvtrace_gdb.transport.qemu import launch, recorder
from rvtrace_gdb.transport.qemu.recorder import QemuError, QemuGone, Ring

MEMORY = Path("/dev/shm")  # a file system in memory
_PREFIX = "rvtrace-qemu-"
_LOCK = "lock"
_BESIDE = 1 << 22
"""The memory in bytes that code, log and sockets need besides the rings, at least."""


def recorder_folder(resources: ExitStack, ring_bytes: int, harts: int) -> Path:
    """Create a folder with room for so many rings, which exists until *resources* are closed. Raises QemuError."""
    base = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    remove_stale_folders(base)
    needed = ring_bytes * harts + _BESIDE
    free = _free(base)
    if free < needed:
        text = f"{base}: {free >> 10} KiB are free, the recorder needs {needed >> 10}: make the rings smaller (--ring)"
        raise QemuError(f"{text}, or make room there")
    try:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base)))
        resources.callback(os.close, _locked(folder / _LOCK))
    except OSError as error:
        raise QemuError(f"{base}: no folder for the recorder can be made: {error.strerror}") from None
    return folder


def remove_stale_folders(base: Path) -> None:
    """Remove the folders of rvtrace's processes that were killed; other programs' folders may also have such names."""
    for lock in base.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            if os.lstat(lock.parent).st_uid != os.geteuid():
                continue
            file = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it is in use
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(file)


def _free(base: Path) -> int:
    try:
        found = os.statvfs(base)
    except OSError as error:
        raise QemuError(f"{base}: {error.strerror}") from None
    return found.f_bavail * found.f_frsize


def _locked(path: Path) -> int:
    """Create a file that is locked from its beginning."""
    fresh = path.with_name(f"{path.name}.new")
    file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    fresh.rename(path)
    return file


_BATCH = 1 << 14  # words; the harts continue while these are encoded
_FAR = 1 << 62  # words: no ring gets there


class _QemuHart:
    def __init__(self, ring: Ring, hart: int, code: RecordedCode, options: QemuEncoderOptions, file: IO[bytes]) -> None:
        self.hart, self.file = hart, file
        self._ring, self._at = ring, 0
        self._records = HartRecords(code, contexts=options.has_privilege, spaces=options.has_spaces)
        self.encoder = encoder_for(options)

    def read(self) -> bool:
        """Take what is there; return whether there was anything."""
        end = min(self._ring.written(self.hart), self._at + _BATCH)
        if end == self._at:
            return False
        words = self._ring.words(self.hart, self._at, end)
        self._ring.release(self.hart, end)
        self._at = end
        self.file.write(self.encoder.feed(self._records.feed(words)))
        return True

    def drop(self) -> None:
        """Discard the rest."""
        self._ring.release(self.hart, _FAR)

    def finish(self, *, complete: bool) -> None:
        """Read no more. *complete*: everything that ran was read."""
        rest = self._records.open_end(self._ring.began(self.hart)) if complete else RecordedItems()
        tail = self.encoder.end(rest)
        self.encoder.instructions += rest.instructions
        self.file.write(tail)
        self.file.flush()


class Streaming:
    """A stream to call `read` on until it returns False and QEMU has ended; then call `save`."""

    def __init__(
        self, ring: Ring, options: QemuEncoderOptions, program: LoadedProgram, target: str, resources: ExitStack
    ) -> None:
        self.failure: QemuError | None = None
        """Why what ran later is missing. The harts do not wait any more then."""
        self.state: SavedTarget | None = None
        """What is saved of the target where the run begins."""
        self._ring, self._program, self._target, self._options = ring, program, target, options
        self._image = program.image()
        self._code = RecordedCode(ring, self._image)
        resources.callback(self._code.close)
        self._harts = [
            _QemuHart(ring, hart, self._code, options, resources.enter_context(_file())) for hart in range(ring.harts)
        ]

    @property
    def is_lacking(self) -> bool:
        """Return whether something that is read, or will be, is missing."""
        return self.failure is not None or bool(self._ring.failed)

    @property
    def instructions(self) -> int:
        """The number of instructions retired so far, of all harts."""
        return sum(hart.encoder.instructions for hart in self._harts)

    @property
    def size(self) -> int:
        """The number of bytes of trace so far, of all harts."""
        return sum(hart.file.tell() for hart in self._harts)

    def read(self) -> bool:
        """Encode what is there; return whether there was anything. An encoding error ends it: see `failure`."""
        try:
            found = [hart.read() for hart in self._harts] if self.failure is None else []
        except (QemuError, OSError) as error:
            self.failure, found = _failure(error), []
            for hart in self._harts:
                hart.drop()
        for address, data in self._code.patched.items():
            if self._image.differs(address, data):
                self._image.replace_code(address, data)
        for address, data in self._code.take_fresh():
            if not self._image.knows(address):
                self._image.add_code(address, data)
        return any(found)

    def save(self, path: str, notes: tuple[str, ...] = (), progress: Progress = silent) -> None:
        """Write the capture. Raises CaptureError, QemuError."""
        try:
            self._save(path, notes, progress)
        except OSError as error:
            raise _failure(error) from None

    def _save(self, path: str, notes: tuple[str, ...], progress: Progress) -> None:
        self._code.refresh_images()
        if self.failure is None and self._ring.failed:
            self.failure = QemuError(lacking(self._ring))
        with ExitStack() as maps:
            sinks = []
            for hart in self._harts:
                hart.finish(complete=self.failure is None)
                sinks.append(encoder.sink(hart.hart, _mapped(hart.file, maps), wrapped=False))
            capture = replace(
                new_capture(self._target, self._image),
                encoders=tuple(encoder.encoder(hart.hart, self._options, self._image) for hart in self._harts),
                sinks=tuple(sinks),
                code=joined_code(self._image.code),
                patched=tuple(self._image.patched),
                images=self._code.images,
                registers=() if self.state is None else self.state.registers,
                memory=() if self.state is None else self.state.memory,
                ranges=() if self.state is None else self.state.ranges,
                notes=(*notes, *([] if self._code.changed is None else [trace.changed(self._code.changed)])),
            )
            capture_file.save(capture, path, progress)


def _failure(error: QemuError | OSError) -> QemuError:
    if isinstance(error, QemuError):
        return error
    return QemuError(f"{tempfile.gettempdir()}: what was encoded cannot be kept: {error.strerror}")


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()  # removed when it is closed


def _mapped(file: IO[bytes], maps: ExitStack) -> bytes:
    """Return the bytes of a file, which are not all in memory: an object with length and slices, which is all that is
    needed.
    """
    if not file.tell():
        return b""
    return cast(bytes, maps.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


DEFAULT_BYTES = 1 << 22
FROM_LOG = "what runs is taken from QEMU's log, which is far slower"
"""The end of the line that says why no plugin records."""
_PATIENCE = 60.0  # seconds, until QEMU's recorder is there
_PAUSE = 0.02  # seconds
_TIMES = 3  # a QEMU that hangs is asked to end before it is killed
_WORD = 4  # bytes
Say = Callable[[str], None]
Tell = Callable[[Mapping[str, object]], None]


@dataclass(frozen=True)
class QemuRun:
    """A run of QEMU. *source*: auto, plugin or log. *options*: of the encoder of *output*, as those of `trace start`.

    *elf*: the program that is encoded into *output*.
    """

    arguments: tuple[str, ...]
    program: str | None = None
    source: str = "auto"
    ring_bytes: int = DEFAULT_BYTES
    write_target: str | None = None
    output: str | None = None
    elf: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def run_qemu(
    run: QemuRun, environ: Mapping[str, str], say: Say, progress: Progress, tell: Tell = lambda _: None
) -> int:
    """Run QEMU to its end, and return its exit status.

    *say* gets lines for the user, *tell* the same facts for a program: when QEMU is running, and what the
    capture contains. Raises QemuError, DescriptionError, BadElf, CaptureError.
    """
    named, options = launch.split_arguments(run.arguments)
    qemu = launch.find_qemu(run.program or named, options)
    program = None if run.elf is None and run.output is None else LoadedProgram(run.elf or "", xlen=qemu.xlen)
    if program is not None:
        program.image()
    for path in (run.output, run.write_target):
        _check_folder(path)
    plugin = _plugin(run.source, qemu, environ, say)
    with ExitStack() as resources:
        folder = recorder_folder(resources, run.ring_bytes, launch.hart_count(options))
        held = run.output is not None and not launch.has_debugger(options)
        stop = ["-S"] if held and not launch.is_stopped_at_reset(options) else []
        server, command = _recorder(run, qemu, [*options, *stop], plugin, folder, resources)
        child = resources.enter_context(launch.start_qemu(command))
        resources.callback(_end_child, child)
        _forward_signals(child, resources)
        ring = _ring(folder, child)
        if ring is None:
            return _exit_status(child.wait(), say)
        resources.callback(ring.close)
        if run.write_target is not None:
            _write_target(run.write_target, qemu, options, folder)
            say(f"the target description is in {run.write_target}: `set trace target {run.write_target}` in gdb")
        started = {"qemu": _qemu_version(qemu), "process": child.pid, "source": "plugin" if plugin else "log"}
        tell({**started, "harts": ring.harts, "folder": str(folder), "target": run.write_target})
        stream = None
        if run.output is not None and program is not None:
            stream = _streaming(run, ring, program, qemu, say, resources)
            if held and _answers(folder, child):
                stream.state = _state_at_reset(folder, ring.harts, program, options)
                _let_run(folder, stopped=bool(stop))
        _serve(child, server, stream, progress)
        if stream is not None and run.output is not None and (stream.instructions or not child.returncode):
            _save(stream, run.output, say, tell, progress)
        for failed in (stream, server):
            if failed is not None and failed.failure is not None:
                raise failed.failure
        return _exit_status(child.returncode, say)


def _let_run(folder: Path, *, stopped: bool) -> None:
    """Let QEMU run, if rvtrace has *stopped* it at reset."""
    if stopped:
        with suppress(QemuGone):  # a short program has ended before QEMU could answer
            recorder.run(folder)


def _streaming(
    run: QemuRun, ring: Ring, program: LoadedProgram, qemu: launch.Qemu, say: Say, resources: ExitStack
) -> Streaming:
    """Return what encodes the blocks of a ring as they come. *say* gets what is to be noted of its settings."""
    encoder, notes = encoder_options(trace_request(run.options), program.image().xlen, run.options)
    for note in notes:
        say(note)
    return Streaming(ring, encoder, program, f"QEMU {_qemu_version(qemu)}", resources)


def _answers(folder: Path, child: "subprocess.Popen[bytes]") -> bool:
    """Wait until QEMU can be asked. Return whether it can: else it has ended. Raises QemuError."""
    deadline = time.monotonic() + _PATIENCE
    while child.poll() is None:
        try:
            recorder.is_running(folder)
        except QemuGone:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return True
    return False


def _state_at_reset(folder: Path, harts: int, program: LoadedProgram, options: Sequence[str]) -> SavedTarget:
    """Return what is saved of a QEMU that has run nothing yet: it is known how everything begins."""
    state = SavedTarget(ResetReader(folder), range(harts), program.image(), _ram_ranges(options), SaveRequest())
    state.begin()
    return state


def _ram_ranges(options: Sequence[str]) -> tuple[MemoryRange, ...]:
    found = launch.main_memory(options)
    return () if found is None else (MemoryRange(found.address, found.size, MemoryKind.RAM, dma=found.written),)


def _exit_status(code: int, say: Say) -> int:
    """Return the exit status in a shell's convention."""
    if code >= 0:
        return code
    say(f"QEMU was ended by {signal.Signals(-code).name}")
    return 128 - code


def _check_folder(path: str | None) -> None:
    """Raise QemuError now if the output cannot be written later."""
    above = Path(os.path.realpath(path or ".")).parent
    if path not in (None, "-") and not above.is_dir():
        raise QemuError(f"{path}: there is no folder {above}")
    if path not in (None, "-") and not os.access(above, os.W_OK):
        raise QemuError(f"{path}: no permission to write in {above}")


def _recorder(
    run: QemuRun, qemu: launch.Qemu, options: list[str], plugin: Path | None, folder: Path, resources: ExitStack
) -> tuple[LogServer | None, list[str]]:
    """Return the recorder besides QEMU, if one is needed, and QEMU's command line."""
    words, stalling = run.ring_bytes // _WORD, run.output is not None
    if plugin is not None:
        return None, launch.plugin_command(qemu, options, plugin, folder, words=words, stalling=stalling)
    try:
        server = LogServer(folder, words, launch.hart_count(options), qemu.xlen, stalling=stalling)
    except OSError as error:
        raise QemuError(f"{folder}: the recorder cannot start: {error.strerror}") from None
    resources.callback(server.close)
    return server, launch.log_command(qemu, options, folder)


def _save(stream: Streaming, path: str, say: Say, tell: Tell, progress: Progress) -> None:
    stream.save(path, progress=progress)
    are = "is" if stream.instructions == 1 else "are"
    say(f"{counted(stream.instructions, 'instruction')} {are} in {path}: {stream.size} bytes of trace")
    tell({"output": path, "instructions": stream.instructions, "bytes": stream.size})
    if stream.failure is not None:
        raise stream.failure


def _plugin(source: str, qemu: launch.Qemu, environ: Mapping[str, str], say: Say) -> Path | None:
    """Return the compiled plugin; None if the log must be used instead: *say* gets the reason."""
    if source == "log":
        return None
    try:
        if not qemu.plugins:
            raise launch.NoPlugin(f"{qemu.path} takes no plugins")
        if qemu.version < launch.PLUGIN_SINCE:
            raise launch.NoPlugin(f"{qemu.path} is QEMU {_qemu_version(qemu)}, plugins need 9.1")
        return launch.compiled_plugin(environ)
    except launch.NoPlugin as error:
        if source == "plugin":
            raise
        say(f"{error}: {FROM_LOG}")
        return None


def _qemu_version(qemu: launch.Qemu) -> str:
    return ".".join(map(str, qemu.version))


def _ring(folder: Path, child: "subprocess.Popen[bytes]") -> Ring | None:
    """Return the recorder's ring, once it exists; None if QEMU has ended before. Raises QemuError."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            return Ring.open(folder)
        except QemuGone:
            if child.poll() is not None:
                return None
            time.sleep(_PAUSE)
    raise QemuError("QEMU does not start: its recorder did not report")


def _serve(
    child: "subprocess.Popen[bytes]", server: LogServer | None, stream: Streaming | None, progress: Progress
) -> None:
    """Serve until QEMU has ended and everything it ran is read."""
    while True:
        ended = child.poll() is not None
        if not ended and server is not None and server.failure is not None:
            child.kill()  # it does not react
        busy = server is not None and server.serve(0 if stream is not None else _PAUSE)
        if ended and not busy and server is not None:
            server.finish()
        if stream is not None:
            busy = stream.read() or busy
            progress("recording (instructions)", stream.instructions)
            if stream.is_lacking and not ended:
                child.terminate()
        if ended and not busy:
            return
        if not busy and (server is None or stream is not None):
            time.sleep(_PAUSE)


def _write_target(path: str, qemu: launch.Qemu, options: Sequence[str], folder: Path) -> None:
    described = Description(
        f"QEMU {_qemu_version(qemu)}",
        path,
        qemu.xlen,
        OpenOcdDescription(),
        (),
        (),
        qemu=str(folder),
        memory=_ram_ranges(options),
    )
    try:
        with atomic_output(path) as file:
            file.write(text(described, "Written by `rvtrace qemu`; it is valid as long as that QEMU runs.").encode())
    except OutputError as error:
        raise DescriptionError(error.problem, error.path) from None


def _forward_signals(child: "subprocess.Popen[bytes]", resources: ExitStack) -> None:
    """Let Ctrl-C and SIGTERM end QEMU, the third one in any case; rvtrace ends after it."""
    asked = 0

    def end(*_: object) -> None:
        nonlocal asked
        asked += 1
        if asked < _TIMES:
            child.terminate()
        else:
            child.kill()

    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.signal(number, end)
        resources.callback(signal.signal, number, before)


def _end_child(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
