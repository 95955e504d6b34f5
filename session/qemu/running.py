"""Running QEMU with a recorder, from the first word of its command line to its end."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rvtrace_gdb.session.description import Description, DescriptionError, OpenOcd
from rvtrace_gdb.session.description_text import text
from rvtrace_gdb.session.program import Program
from rvtrace_gdb.session.qemu.folder import made
from rvtrace_gdb.session.qemu.log_server import LogServer
from rvtrace_gdb.session.qemu.streaming import Streaming
from rvtrace_gdb.session.qemu.wanted import wanted
from rvtrace_gdb.session.request import trace_request
from rvtrace_gdb.support.output import OutputError, replacing
from rvtrace_gdb.support.progress import Progress
from rvtrace_gdb.transport.qemu import build, launch
from rvtrace_gdb.transport.qemu.errors import QemuError, QemuGone
from rvtrace_gdb.transport.qemu.ring import Ring

DEFAULT_BYTES = 1 << 22
_PATIENCE = 60.0  # seconds, until QEMU's recorder is there
_PAUSE = 0.02  # seconds
_TIMES = 3  # a QEMU that hangs is asked to end before it is ended
_WORD = 4  # bytes
Say = Callable[[str], None]
Tell = Callable[[Mapping[str, object]], None]


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


def run_qemu(run: Run, environ: Mapping[str, str], say: Say, progress: Progress, tell: Tell = lambda _: None) -> int:
    """Runs QEMU to its end; its exit status. *say* gets lines for the user, *tell* the same for a program: once QEMU is
    up, and of what *output* has.

    Raises QemuError, DescriptionError, BadElf, CaptureError.
    """
    named, options = launch.split(run.arguments)
    qemu = launch.find(run.program or named, options)
    program = None if run.elf is None else Program(run.elf)
    if program is not None:
        program.image()
    for path in (run.output, run.write_target):
        _check_folder(path)
    plugin = _plugin(run.source, qemu, environ, say)
    with ExitStack() as resources:
        folder = made(resources, run.ring_bytes, launch.harts(options))
        server, command = _recorder(run, qemu, options, plugin, folder, resources)
        child = resources.enter_context(launch.begin(command))
        resources.callback(_end, child)
        _forward_signals(child, resources)
        ring = _ring(folder, child)
        if ring is None:
            return _status(child.wait(), say)
        resources.callback(ring.close)
        if run.write_target is not None:
            _write_target(run.write_target, qemu, folder)
            say(f"the target description is in {run.write_target}: `set trace target {run.write_target}` in gdb")
        tell(
            {
                "qemu": _version(qemu), "process": child.pid, "source": "log" if plugin is None else "plugin",
                "harts": ring.harts, "folder": str(folder), "target": run.write_target,
            }
        )  # fmt: skip
        stream = None
        if run.output is not None and program is not None:
            encoder, notes = wanted(trace_request(run.options), program.image().xlen, run.options)
            for note in notes:
                say(note)
            stream = Streaming(ring, encoder, program, f"QEMU {_version(qemu)}", resources)
        _serve(child, server, stream, progress)
        if stream is not None and run.output is not None and (stream.instructions or not child.returncode):
            _save(stream, run.output, say, tell, progress)
        elif stream is not None and stream.failure is not None:
            raise stream.failure
        if server is not None and server.failure is not None:
            raise server.failure
        return _status(child.returncode, say)


def _status(code: int, say: Say) -> int:
    """As a shell has it."""
    if code >= 0:
        return code
    say(f"QEMU was ended by {signal.Signals(-code).name}")
    return 128 - code


def _check_folder(path: str | None) -> None:
    """What cannot be written in the end is not begun."""
    above = Path(os.path.realpath(path or ".")).parent
    if path not in (None, "-") and not above.is_dir():
        raise QemuError(f"{path}: there is no folder {above}")
    if path not in (None, "-") and not os.access(above, os.W_OK):
        raise QemuError(f"{path}: no permission to write in {above}")


def _recorder(
    run: Run, qemu: launch.Qemu, options: list[str], plugin: Path | None, folder: Path, resources: ExitStack
) -> tuple[LogServer | None, list[str]]:
    """What records besides QEMU, and QEMU's command line."""
    words, stalling = run.ring_bytes // _WORD, run.output is not None
    if plugin is not None:
        return None, launch.recorded_by_plugin(qemu, options, plugin, folder, words=words, stalling=stalling)
    try:
        server = LogServer(folder, words, launch.harts(options), qemu.xlen, stalling=stalling)
    except OSError as error:
        raise QemuError(f"{folder}: the recorder cannot begin: {error.strerror}") from None
    resources.callback(server.close)
    return server, launch.recorded_by_log(qemu, options, folder)


def _save(stream: Streaming, path: str, say: Say, tell: Tell, progress: Progress) -> None:
    stream.save(path, progress=progress)
    say(f"{stream.instructions} instructions are in {path}: {stream.size} bytes of trace")
    tell({"output": path, "instructions": stream.instructions, "bytes": stream.size})
    if stream.failure is not None:
        raise stream.failure


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
        if not ended and server is not None and server.failure is not None:
            child.kill()  # it hangs
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


def _write_target(path: str, qemu: launch.Qemu, folder: Path) -> None:
    described = Description(f"QEMU {_version(qemu)}", path, qemu.xlen, OpenOcd(), (), (), qemu=str(folder))
    try:
        with replacing(path) as file:
            file.write(text(described, "Written by `rvtrace qemu`; it holds as long as that QEMU runs.").encode())
    except OutputError as error:
        raise DescriptionError(error.problem, error.path) from None


def _forward_signals(child: "subprocess.Popen[bytes]", resources: ExitStack) -> None:
    """Ctrl-C and SIGTERM end QEMU, the third one whatever it does; rvtrace ends after it."""
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


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
