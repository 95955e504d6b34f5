"""Running QEMU with a recorder, from the first word of its command line to its end."""

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from session.description import Description, DescriptionError, OpenOcd
from session.description_text import text
from session.program import Program
from session.qemu.log_server import LogServer
from session.qemu.streaming import Streaming
from session.qemu.wanted import wanted
from session.request import trace_request
from support.output import OutputError, replacing
from support.progress import Progress
from transport.qemu import build, launch
from transport.qemu.errors import QemuError, QemuGone
from transport.qemu.ring import Ring

DEFAULT_BYTES = 1 << 22
_MEMORY = Path("/dev/shm")  # a file system in memory
_PATIENCE = 60.0  # seconds, until QEMU's recorder is there
_PAUSE = 0.02  # seconds
_WORD = 4  # bytes
Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """What is wanted. *source*: auto, plugin or log. *options*: of the encoder of *output*, as those of `trace start`.

    *elf*: what is encoded into *output*.
    """

    arguments: tuple[str, ...]
    program: str | None = None
    source: str = "auto"
    ring_bytes: int = DEFAULT_BYTES
    write_target: str | None = None
    output: str | None = None
    elf: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def run_qemu(run: Run, environ: Mapping[str, str], say: Say, progress: Progress) -> int:
    """Runs QEMU to its end; its exit status. *say* gets lines for the user.

    Raises QemuError, DescriptionError, BadElf, CaptureError.
    """
    named, options = launch.split(run.arguments)
    qemu = launch.find(run.program or named, options)
    program = None if run.elf is None else Program(run.elf)
    if program is not None:
        program.image()
    plugin = _plugin(run.source, qemu, environ, say)
    with ExitStack() as resources:
        base = _MEMORY if _MEMORY.is_dir() else None
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="rvtrace-", dir=base)))
        words = run.ring_bytes // _WORD
        server = None
        if plugin is None:
            server = LogServer(folder, words, launch.harts(options), qemu.xlen, stalling=run.output is not None)
            resources.callback(server.close)
            command = launch.recorded_by_log(qemu, options, folder)
        else:
            command = launch.recorded_by_plugin(
                qemu, options, plugin, folder, words=words, stalling=run.output is not None
            )
        child = resources.enter_context(subprocess.Popen(command))
        resources.callback(_end, child)
        _forward_signals(child, resources)
        ring = _ring(folder, child)
        if ring is None:
            return child.wait()
        resources.callback(ring.close)
        if run.write_target is not None:
            _write_target(run.write_target, qemu, folder)
            say(f"the target description is in {run.write_target}: `set trace target {run.write_target}` in gdb")
        stream = None
        if run.output is not None and program is not None:
            encoder, notes = wanted(trace_request(run.options), program.image().xlen, run.options)
            for note in notes:
                say(note)
            stream = Streaming(ring, encoder, program, f"QEMU {_version(qemu)}", resources)
        _serve(child, server, stream, progress)
        if stream is not None and not stream.instructions and child.returncode:
            return child.returncode  # it has said itself why it did not begin
        if stream is not None and run.output is not None:
            stream.save(run.output, progress=progress)
            say(f"{stream.instructions} instructions are in {run.output}")
        return child.returncode


def _plugin(source: str, qemu: launch.Qemu, environ: Mapping[str, str], say: Say) -> Path | None:
    """The compiled plugin; None, after a line why, where the log has to do."""
    if source == "log":
        return None
    try:
        if not qemu.plugins:
            raise build.NoPlugin(f"{qemu.path} takes no plugins")
        if qemu.version < launch.PLUGIN_SINCE:
            raise build.NoPlugin(f"{qemu.path} is QEMU {_version(qemu)}, plugins need 9.1")
        return build.plugin(environ)
    except build.NoPlugin as error:
        if source == "plugin":
            raise
        say(f"{error}: what runs is taken from QEMU's log, which is far slower")
        return None


def _version(qemu: launch.Qemu) -> str:
    return ".".join(map(str, qemu.version))


def _ring(folder: Path, child: "subprocess.Popen[bytes]") -> Ring | None:
    """The recorder's, when it is there; None if QEMU has ended before. Raises QemuError."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            return Ring.opened(folder)
        except QemuGone:
            if child.poll() is not None:
                return None
            time.sleep(_PAUSE)
    raise QemuError("QEMU does not begin: its recorder did not come up")


def _serve(
    child: "subprocess.Popen[bytes]", server: LogServer | None, stream: Streaming | None, progress: Progress
) -> None:
    """Until QEMU has ended and all it ran is read."""
    while True:
        ended = child.poll() is not None
        busy = server is not None and server.serve(0 if stream is not None else _PAUSE)
        if ended and not busy and server is not None:
            server.finish()
        if stream is not None:
            busy = stream.read() or busy
            progress("instructions", stream.instructions)
        if ended and not busy:
            return
        if not busy and (server is None or stream is not None):
            time.sleep(_PAUSE)


def _write_target(path: str, qemu: launch.Qemu, folder: Path) -> None:
    described = Description(f"QEMU {_version(qemu)}", path, qemu.xlen, OpenOcd(), (), (), qemu=str(folder))
    try:
        with replacing(path) as file:
            file.write(text(described, "Written by `rvtrace qemu`; it holds as long as that QEMU runs.").encode())
    except OutputError as error:
        raise DescriptionError(error.problem, error.path) from None


def _forward_signals(child: "subprocess.Popen[bytes]", resources: ExitStack) -> None:
    """Ctrl-C and SIGTERM end QEMU; rvtrace ends after it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.signal(number, lambda *_: child.terminate())
        resources.callback(signal.signal, number, before)


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
