"""A gdb as a child process that is driven through its machine interface: commands with tokens, answers by token.

pygdbmi's controller is not used: it ends each read after a silence, so that a late answer is taken for the next
command's. Here a command waits for the record that has its token, as long as gdb sends anything. The records are parsed
by pygdbmi's parser, except for lines that it does not support. Source: "GDB/MI Output Syntax" and "-target-download" in
gdb's manual.

gdb's standard error is a terminal of its own, on which rvtrace writes the progress of long work, "label: done/total"
(gdbext/tracer.py, RVTRACE_PROGRESS=plain): each such line becomes a call of *progress*.

The functions at the end find the gdb to use, create its environment, and explain why one is not usable.
"""

import contextlib
import errno
import itertools
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rvtrace_gdb
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_STATUS = re.compile(r"^\d*\+(\S+?),\{(.*)\}\s*$")
"""An asynchronous status record, `+download,{...}`, which pygdbmi takes for output of the program."""
_FIELD = re.compile(r'([a-z-]+)="((?:[^"\\]|\\.)*)"')
_PROMPT = re.compile(r"^\(gdb\)\s*$")


class MissingLibrary(RvtraceError):
    """A library that only the console and scripts need is not installed; *name*: that of the library."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed: {shlex.quote(sys.executable)} -m pip install {name}")
        self.name = name


class MiRecord(NamedTuple):
    """A record of gdb.

    *kind*: result (`^`), notify (`*`, `=`), status (`+`); console (`~`), target (`@`), log (`&`), output (anything
    else), which have text. *name*: for results done, running, connected, error, exit; for the others the event.
    """

    kind: str
    name: str
    fields: dict[str, Any]
    text: str
    token: int | None


def parser() -> Callable[[str], MiRecord | None]:
    """Return a function that parses a line into a record; None for a prompt. Raises `MissingLibrary`."""
    try:
        from pygdbmi.gdbmiparser import parse_response
    except ImportError:
        raise MissingLibrary("pygdbmi") from None

    def parse(line: str) -> MiRecord | None:
        if _PROMPT.match(line):
            return None
        status = _STATUS.match(line)
        if status is not None:
            return MiRecord("status", status[1], dict(_FIELD.findall(status[2])), "", None)
        found = parse_response(line)
        payload = found["payload"]
        fields = payload if isinstance(payload, dict) else {}
        text = payload if isinstance(payload, str) else ""
        if found["type"] == "output":
            text += "\n"
        return MiRecord(found["type"], found["message"] or "", fields, text, found.get("token"))

    return parse


def quoted(text: str) -> str:
    """Return a parameter of an MI command as a C string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


SILENCE = 60.0
"""The seconds without output from gdb after which a command fails."""
LEAVE_SECONDS = 5.0
"""The seconds that gdb has to detach from its target before it is killed."""
_TURN = 0.1  # seconds: Python delivers Ctrl-C between two waits at the latest
_PROGRESS = re.compile(r"^(?P<label>.+): (?P<done>\d+)(?:/(?P<total>\d+))?$")
_DRAWN = re.compile(r"\r\x1b\[K|\r?\n")
_NOISE = 4000  # characters kept of other text on standard error


class GdbGone(RvtraceError):
    """gdb could not be started, or has ended; *last_words*: its last output."""

    def __init__(self, what: str, last_words: str = "") -> None:
        last = last_words.strip().splitlines()[-1] if last_words.strip() else ""
        super().__init__(f"{what}: {last}" if last else what)
        self.last_words = last_words


class GdbError(RvtraceError):
    """gdb refused a command; the text is its message."""


class GdbTimeout(RvtraceError):
    """gdb did not answer in time. *seconds*: how long it sent nothing."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what}: no answer within {seconds:g} s")
        self.seconds = seconds


def _encoded_command(text: str) -> bytes:
    """Encode a command for gdb. Bytes that were not valid UTF-8 in the user's input are restored."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate
        return text.encode(errors="replace")


class Mi(Closeable):
    """A gdb process: `with Mi(["gdb-multiarch", "app.elf"]) as mi:`.

    *words*: its command line without the option that chooses the interface. *heard* is called with every record as it
    arrives, answers included. Raises GdbGone, MissingLibrary.
    """

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        heard: Callable[[MiRecord], None] = lambda record: None,
        progress: Progress = silent,
    ) -> None:
        self._parse = parser()
        self._heard = heard
        self.progress = progress
        self.signals = 0
        """How often gdb was sent Ctrl-C."""
        self._tokens = itertools.count(1)
        self._answers: dict[int, list[MiRecord]] = {}
        self._line, self._drawn = b"", ""
        self.noise = ""
        """The end of the text on gdb's standard error that is not progress."""
        self._alive = time.monotonic()
        self._stderr, theirs = pty.openpty()
        try:
            self.process = subprocess.Popen(
                [*words, "--interpreter=mi"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs,
                env=dict(environ), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            os.close(self._stderr)
            raise GdbGone(f"{words[0]} cannot be started: {error.strerror}") from None
        finally:
            os.close(theirs)
        self._open = True

    def close(self) -> None:
        """End gdb, after it had time to detach from its target."""
        if not self._open:
            return
        self._open = False
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(OSError):
            self.process.stdin.write(b"-gdb-exit\n")
            self.process.stdin.close()
        try:
            self.process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        os.close(self._stderr)

    def command(self, text: str, seconds: float = SILENCE) -> dict[str, Any]:
        """Run an MI command and return the fields of its result. Raises GdbError, GdbTimeout, GdbGone."""
        return self.answer(self.send(text), text, seconds).fields

    def send(self, text: str) -> int:
        """Send a command and return the token of its answers. Raises GdbGone."""
        token = next(self._tokens)
        self._answers[token] = []
        assert self.process.stdin
        try:
            self.process.stdin.write(_encoded_command(f"{token}{text}\n"))
            self.process.stdin.flush()
        except (OSError, ValueError):
            raise self._gone() from None
        self._alive = time.monotonic()
        return token

    def answer(self, token: int, what: str, seconds: float = SILENCE) -> MiRecord:
        """Wait for the next answer to a command, and remove it. Raises GdbError, GdbTimeout, GdbGone."""
        waiting = self._answers[token]
        if not self.wait(lambda: bool(waiting), silence=seconds):
            raise GdbTimeout(f"gdb, {what}", seconds)
        record = waiting.pop(0)
        if record.name == "error":
            raise GdbError(str(record.fields.get("msg", "")).strip())
        return record

    def answered(self, token: int) -> MiRecord | None:
        """Remove and return the next answer that has arrived; None without one."""
        waiting = self._answers.get(token)
        return waiting.pop(0) if waiting else None

    def forget(self, token: int) -> None:
        """Discard all answers to a command from now on."""
        self._answers.pop(token, None)

    def wait(self, has_come: Callable[[], bool], *, seconds: float | None = None, silence: float | None = None) -> bool:
        """Read until *has_come* returns True, and return whether it did.

        *seconds*: the time limit; *silence*: the limit of the time without output from gdb. Raises GdbGone, and what
        *heard* and *progress* raise.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not has_come():
            now = time.monotonic()
            if end is not None and now >= end:
                return False
            if silence is not None and now - self._alive >= silence:
                return False
            self.read(_TURN if end is None else min(_TURN, end - now))
        return True

    def read(self, seconds: float = 0.0) -> bool:
        """Read what arrives within *seconds*, and return whether anything did. Raises GdbGone."""
        assert self.process.stdout
        out = self.process.stdout.fileno()
        ready, _, _ = select.select([out, self._stderr], [], [], seconds)
        if self._stderr in ready:
            self._read_drawn()
        if out in ready:
            data = os.read(out, 1 << 16)
            if not data:
                raise self._gone()
            self._split_lines(data)
        if ready:
            self._alive = time.monotonic()
        return bool(ready)

    def signal(self) -> None:
        """Send gdb the signal of Ctrl-C in its terminal."""
        self.signals += 1
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)

    def _split_lines(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            record = self._parse(text) if text else None
            if record is None:
                continue
            if record.kind == "result" and record.token in self._answers:
                self._answers[record.token].append(record)
            self._heard(record)

    def _read_drawn(self) -> None:
        try:
            data = os.read(self._stderr, 1 << 12)
        except OSError as error:  # EIO: the other end is closed
            if error.errno != errno.EIO:
                raise
            time.sleep(_TURN)
            return
        *whole, self._drawn = _DRAWN.split(self._drawn + data.decode(errors="replace"))
        for line in [*whole, self._drawn]:
            found = _PROGRESS.match(line)
            if found is not None:
                total = found["total"]
                self.progress(found["label"], int(found["done"]), None if total is None else int(total))
            elif line is not self._drawn and line.strip():
                self.noise = (self.noise + line + "\n")[-_NOISE:]

    def _gone(self) -> GdbGone:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        said = self.noise + self._line.decode(errors="replace")
        code = self.process.returncode
        killed_by = f" (signal {-code})" if code is not None and code < 0 else ""
        return GdbGone(f"gdb has ended{killed_by}", said)


GDB_NAMES = ("gdb-multiarch", "riscv64-unknown-elf-gdb", "riscv32-unknown-elf-gdb", "riscv-none-elf-gdb", "gdb")
"""The programs that are searched for, in this order."""
RVTRACE = Path(rvtrace_gdb.__file__).resolve().parent.parent / "rvtrace.py"
"""The file that gdb sources."""


def find_gdb(named: str | None = None) -> str:
    """Return the gdb to start: *named*, $RVTRACE_GDB, or the first that is installed. Raises `GdbGone`."""
    wanted = named or os.environ.get("RVTRACE_GDB")
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise GdbGone(f"{wanted}: there is no such program; --gdb names the gdb to use")
        return found
    for name in GDB_NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise GdbGone(f"no gdb is installed ({', '.join(GDB_NAMES)}): apt install gdb-multiarch, or name yours with --gdb")


def gdb_environ(given: Mapping[str, str] = os.environ, *, coloured: bool = False) -> dict[str, str]:
    """Return the environment for gdb: without drawing on a terminal, and with progress in numbers (see above).

    *coloured*: the lists of rvtrace have colours; what gdb itself prints has none over the machine interface.
    """
    return {**given, "TERM": "dumb", "RVTRACE_PROGRESS": "plain", "RVTRACE_COLOR": "always" if coloured else "never"}


def unusable_gdb(gdb: str, why: str) -> GdbGone:
    """Return the error for a gdb that could not load rvtrace. *why*: its output."""
    lines = [line for line in why.strip().splitlines() if line.strip()]
    said = lines[-1].strip() if lines else "it did not say why"
    if "Python scripting is not supported" in why or "was not built with" in why:
        return GdbGone(f"{gdb} was built without Python: use gdb-multiarch, or name another with --gdb")
    if not lines:
        return GdbGone(f"{gdb} is too old: 12 is the first that has machine interface commands in Python")
    return GdbGone(f"{gdb} cannot load {RVTRACE.name}: {said}")
