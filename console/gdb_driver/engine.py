"""A real gdb with rvtrace loaded, driven over its machine interface: the console and scripts use its commands.

So every `trace` command, its options, its help and its completion are those of gdb, and there is one table of each.
"""

import base64
import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.gdb_driver import mi
from rvtrace_gdb.console.gdb_driver.mi import GdbError, GdbGone, GdbTimeout, Mi, MiRecord, quoted
from rvtrace_gdb.console.gdb_driver.state import ProgramStop, Running, TraceState, trace_state
from rvtrace_gdb.session.description.library import shipped
from rvtrace_gdb.session.program import placement
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.colours import without
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.support.inputs import is_pipe, pipe_refused

HALT_SECONDS = 10.0
"""The seconds within which a program must stop after a request."""
SILENCE = 300.0
"""The seconds without output after which a script gives up on gdb: writing flash takes less."""
INTERRUPTS_AT_MOST = 3
"""The number of interrupts before gdb is killed."""
_PROGRESS_SECONDS = 0.5  # seconds between two reports of progress
INTERRUPT_SECONDS = 1.0
"""The seconds within which one way to interrupt the program should work."""
_QUIT = "Quit\n"  # what gdb writes to its log when Ctrl-C has ended a command
# What it writes when Ctrl-C has ended a function in Python that gdb called meanwhile, and nothing else.
_LOST_IN_PYTHON = "Python Exception <class 'KeyboardInterrupt'>"
# The prefix of gdb's own errors that pass through a command in Python.
_IN_PYTHON, _RAISED = "Error occurred in Python: ", "Python Exception <class 'gdb.error'>: "

_NOT_RUN = "The program is not being run."
_NOT_CONNECTED = (
    "The program is not being run: gdb has no connection to the target. `trace connect` makes one by OpenOCD; over "
    "USB, without one, `trace usb resume` lets it run (in a script: `gdb trace usb resume`)."
)

TextListener = Callable[[str, str], None]
"""Called with text as it arrives: its kind (console, target, output: to be shown; log: gdb's warnings and errors), and
the text.
"""


class ProgramNotStopped(RvtraceError):
    """The program did not stop after a request."""


SETTINGS = ("confirm off", "pagination off", "width 0", "height 0", "mi-async on", "style enabled off")


def _check_text(command: str) -> None:
    """Raise GdbError for a command of rvtrace's with bytes that are not text: gdb's Python, and gdb 13, end at them."""
    if re.match(r"-rvtrace|trace |set trace ", command) and not _BYTE.isdisjoint(command):
        shown = "".join(f"\\x{ord(it) - 0xDC00:02x}" if it in _BYTE else it for it in command)
        raise GdbError(f"{shown}: gdb takes no path that is not UTF-8")


_BYTE = frozenset(map(chr, range(0xDC80, 0xDD00)))
"""What `os.fsdecode` makes of bytes that are not UTF-8."""


class Engine(Closeable):
    """A gdb with rvtrace: `with Engine("app.elf", target="board.toml") as engine: engine.execute("trace status")`.

    *elf*: FILE, or FILE@OFFSET for a program that is in memory so many bytes above the addresses it was linked for.
    *gdb*: its program; *init*: read the user's own .gdbinit; *said*: see `TextListener`; *coloured*: what is said has
    colours, which the texts that methods return never have. Raises GdbGone, GdbError, MissingLibrary: all of them one
    line.
    """

    def __init__(
        self,
        elf: str | os.PathLike[str] | None = None,
        target: str | os.PathLike[str] | None = None,
        *,
        gdb: str | None = None,
        init: bool = False,
        listener: TextListener = lambda kind, text: None,
        progress: Progress = silent,
        environ: Mapping[str, str] = os.environ,
        coloured: bool = False,
    ) -> None:
        self.lock = threading.RLock()
        """Held while a thread uses gdb."""
        self.listener = listener
        self.state = Running()
        self.silence: float | None = SILENCE
        """The seconds without output from gdb after which a command fails; None: no limit."""
        self.remembers = False
        """Whether an interrupt between two commands ends the next one; else it is ignored."""
        self._interrupt_requested = False
        self._has_broken_off = False
        self._log: list[str] = []
        for given in (elf, target):
            if given is not None and is_pipe(given):
                raise RvtraceError(pipe_refused(given, "gdb"))
        path, self.offset = ("", 0) if elf is None else placement(os.fspath(elf))
        self.elf = None if elf is None else Path(path).resolve()
        self.target = None if target is None else Path(target).resolve()
        self.program = mi.find_gdb(gdb)
        self._texts: list[str] | None = None
        self._check_files()
        words = [self.program, "-q", *([] if init else ["-nx"])]
        self.mi = Mi(words, mi.gdb_environ(environ, coloured=coloured), self._heard, progress)
        try:
            self._set_up()
        except BaseException:
            self.mi.close()
            raise

    def close(self) -> None:
        """End gdb; a running program keeps running, as with gdb's own `quit`."""
        with self.lock:
            self.mi.close()

    def execute(self, command: str) -> str:
        """Run a gdb command and return what it prints. If it lets the program run, wait until the program stops.

        `interrupt`, from a signal handler or another thread, ends it. Raises GdbError, GdbGone, GdbTimeout; Cancelled
        if it was interrupted.
        """
        with self.lock:
            _check_text(command)
            self._begin_command()
            self._texts, self._log = [], []
            token = self.mi.send(f"-interpreter-exec console {quoted(command)}")
            try:
                self._to_its_end(token, command)
            finally:
                text, self._texts = "".join(self._texts), None
                self.mi.forget(token)
            self._report_log()
            return text

    def query(self, command: str) -> dict[str, Any]:
        """Run an MI command and return its result. Raises as `execute`."""
        with self.lock:
            _check_text(command)
            self._begin_command()
            self._log = []
            token = self.mi.send(command)
            try:
                fields = self._awaited(token, command).fields
            except GdbError as error:
                raise GdbError(str(error).removeprefix(f"{command.split()[0]}: ")) from None
            finally:
                self.mi.forget(token)
            self._report_log()
            return fields

    def evaluate(self, expression: str, language: str | None = None) -> str:
        """Return the value of an expression, as gdb's `output` would print it. Raises GdbError.

        *language*: that of the expression, if it is not the one that gdb has now.
        """
        option = "" if language is None else f"--language {language} "
        return str(self.query(f"-data-evaluate-expression {option}{quoted(expression)}").get("value", ""))

    def load(self, words: str) -> str:
        """Run gdb's `load WORDS` by its MI command, which reports progress. Returns the output, raises as `execute`."""
        with self.lock:
            self._texts = []
            try:
                done = self.query(f"-target-download {words}".rstrip())
                address, size, rate = (str(done.get(key, 0)) for key in ("address", "load-size", "transfer-rate"))
                self._report_text(
                    f"Start address {address}, load size {size}\nTransfer rate: {int(rate) // 8192} KB/sec.\n"
                )
                return "".join(self._texts)
            finally:
                self._texts = None

    def _report_text(self, text: str) -> None:
        """Report a text as if gdb had printed it."""
        if self._texts is not None:
            self._texts.append(text)
        self.listener("console", text)

    def complete(self, text: str) -> list[str]:
        """Return the completions of a line, as with the Tab key in gdb."""
        try:
            found = self.query(f"-complete {quoted(text)}").get("matches", [])
        except GdbError:
            return []
        return [str(line) for line in found]

    def trace_state(self) -> TraceState:
        """Return the state that `trace status` prints. Raises as `execute`."""
        return trace_state(self.query("-rvtrace-status"))

    def reported_state(self) -> Mapping[str, Any] | None:
        """Return the state of the trace that commands have reported since the last call; None without one.

        Notes in the answer are reported as if gdb had printed them. Raises as `execute`.
        """
        found = self.query("-rvtrace-told")
        for line in found.get("messages", []):
            self._report_text(f"{line}\n")
        state: Mapping[str, Any] | None = found.get("told")
        return state

    def results(self) -> dict[str, Any]:
        """Return what the commands since the last call have printed, as fields. Raises as `execute`."""
        found: dict[str, Any] = json.loads(base64.b64decode(self.query("-rvtrace-results").get("json", "e30=")))
        return found

    def resume(self) -> None:
        """Let the program run. Raises GdbError."""
        self.query("-exec-continue")
        self.mi.wait(lambda: self.state.running, seconds=INTERRUPT_SECONDS)  # its record comes after the answer

    def poll(self) -> bool:
        """Read what gdb sends without a command; return whether there was anything."""
        with self.lock:
            heard = False
            while self.mi.read(0.0):
                heard = True
            self._report_log()
            return heard

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Do not report gdb's output within this context, except warnings and the output of the target."""
        said = self.listener
        self.listener = lambda kind, text: said(kind, text) if kind in ("log", "target") else None
        try:
            yield
        finally:
            self.listener = said

    def await_stop(self, before: int, seconds: float | None) -> ProgramStop | None:
        """Wait for the stop after number *before*; None if it is not in time. Raises Cancelled, GdbGone."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.state.stops == before:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            turn = _PROGRESS_SECONDS if left is None else min(_PROGRESS_SECONDS, left)
            self.mi.wait(lambda: self.state.stops > before or self._interrupt_requested, seconds=turn)
            self._raise_if_interrupted()
            if left is not None and seconds:
                self.mi.progress("waiting for the program (ms)", int(1000 * (seconds - left)), int(1000 * seconds) or 1)
        return self.state.last

    def halt(self) -> ProgramStop:
        """Stop the program. Raises ProgramNotStopped, GdbError."""
        before = self.state.stops
        if not self.state.running:
            return self.state.last
        self.mi.forget(self.mi.send("-exec-interrupt"))
        if not self.mi.wait(lambda: self.state.stops > before, seconds=HALT_SECONDS):
            raise ProgramNotStopped(f"the program did not stop within {HALT_SECONDS:g} s after the request")
        return self.state.last

    def interrupt(self) -> None:
        """Request the end of the current command. May be called at any time, also by a signal handler."""
        self._interrupt_requested = True

    def use(self, elf: Path, offset: int = 0) -> None:
        """Let gdb have this program, which is in memory *offset* bytes above the addresses it was linked for."""
        self.elf, self.offset = elf, offset
        if not offset:
            self.query(f"-file-exec-and-symbols {quoted(str(elf))}")
            return
        self.query(f"-file-exec-file {quoted(str(elf))}")
        self.execute(f"symbol-file {quoted(str(elf))} -o {offset:#x}")

    # Implementation

    def _check_files(self) -> None:
        target = None if self.target is None else shipped.path_of(str(self.target))
        for what in (self.elf, target):
            if what is not None and not what.is_file():
                raise RvtraceError(f"{what}: {'is a folder' if what.is_dir() else 'there is no such file'}")

    def _set_up(self) -> None:
        for setting in SETTINGS:
            try:
                self.query(f"-gdb-set {setting}")
            except GdbError:
                if not setting.startswith("style"):  # which gdb has since version 9
                    raise
        try:
            said = self.execute(f"source {mi.RVTRACE}")
        except GdbError as error:
            raise mi.unusable_gdb(self.program, str(error)) from None
        found = self.query("-info-gdb-mi-command rvtrace-status").get("command", {})
        if found.get("exists") != "true":
            raise mi.unusable_gdb(self.program, said)
        if self.elf is not None:
            self.use(self.elf, self.offset)
        if self.target is not None:
            self.execute(f"set trace target {self.target}")

    def _heard(self, record: MiRecord) -> None:
        self.state.heard(record)
        if record.kind in ("console", "target", "output"):
            if self._texts is not None and record.kind != "target":
                self._texts.append(without(record.text))
            self.listener(record.kind, record.text)
        elif record.kind == "log":
            self._log.append(record.text)
        elif record.kind == "status" and record.name == "download":
            self._downloaded(record.fields)

    def _downloaded(self, fields: Mapping[str, str]) -> None:
        """Report the progress of `load`: a section begins, or is under way."""
        if self._texts is not None and "section-size" in fields and "section-sent" not in fields:
            self._report_text(f"Loading section {fields.get('section')}, size {int(fields['section-size']):#x}\n")
        sent, total = fields.get("total-sent"), fields.get("total-size")
        if sent and total:
            self.mi.progress(f"loading {fields.get('section', '')}".strip(), int(sent), int(total))

    def _to_its_end(self, token: int, command: str) -> None:
        before, signals = self.state.stops, self.mi.signals
        record = self._awaited(token, command)
        if record.name != "running" or command.rstrip().endswith("&"):
            return
        self.mi.wait(lambda: self.state.running or self.state.stops > before, seconds=INTERRUPT_SECONDS)
        if self.mi.signals > signals:
            self._await_break(before)
        self._report_log()
        self._while_running(lambda: self.state.stops > before)
        ping = self.mi.send("-list-features")  # answered after gdb has finished the whole command
        self._while_running(lambda: self.mi.answered(ping) is not None)
        self.mi.forget(ping)
        late = self.mi.answered(token)  # a file that was sourced ends with an error
        if late is not None:
            self._raise_error(late)

    def _report_log(self, besides: str = "") -> None:
        """Report gdb's warnings, except lines in *besides*, an error that gdb repeats there."""
        log, self._log = self._log, []
        for text in log:
            if text.strip() and text.strip() not in besides:
                self.listener("log", text)

    def _awaited(self, token: int, command: str) -> MiRecord:
        """Wait for the answer to a command; Ctrl-C is passed to gdb. Raises GdbTimeout, GdbError, Cancelled."""
        waited, interrupted = time.monotonic(), 0
        found: list[MiRecord] = []

        def there() -> bool:
            record = self.mi.answered(token)
            if record is not None:
                found.append(record)
            return bool(found) or self._interrupt_requested

        while not found:
            if not self.mi.wait(there, silence=self.silence):
                raise GdbTimeout(f"gdb, {command}", time.monotonic() - waited)
            if self._interrupt_requested and not found:
                self._interrupt_requested, interrupted = False, interrupted + 1
                self._limit_interrupts(interrupted)
                self.mi.signal()
        if interrupted and found[0].name == "error":
            self._log = []
            raise Cancelled
        self._interrupt_requested = self._interrupt_requested or (self.remembers and interrupted > 0)
        self._raise_error(found[0])
        return found[0]

    def _begin_command(self) -> None:
        """Prepare for a command. Raises Cancelled."""
        if self.remembers:
            self._raise_if_interrupted()
        self._interrupt_requested = False
        if self._has_broken_off:
            self._has_broken_off = False
            self._flush_frames()

    def _flush_frames(self) -> None:
        """Let gdb compute its frames anew.

        Where Ctrl-C came while gdb 13 computed one, it keeps what is half of a frame, and aborts at the next step:
        "compute_frame_id: Assertion `frame_id_p (fi->this_id.value)' failed".
        """
        command = f"-interpreter-exec console {quoted('maintenance flush register-cache')}"
        with self.quietly(), contextlib.suppress(GdbError, GdbTimeout):
            self.mi.command(command, INTERRUPT_SECONDS)

    def _limit_interrupts(self, interrupted: int) -> None:
        """Kill gdb and raise GdbGone after too many interrupts without effect."""
        if interrupted == INTERRUPTS_AT_MOST:
            self.mi.process.kill()
            raise GdbGone(f"gdb did not react to {INTERRUPTS_AT_MOST} interrupts, and was killed")

    def _raise_error(self, record: MiRecord) -> None:
        if record.name == "error":
            message = str(record.fields.get("msg", "")).strip().removeprefix(_IN_PYTHON)
            self._report_log(f"{_IN_PYTHON}{message}\n{_RAISED}{message}")
            raise GdbError(_NOT_CONNECTED if message == _NOT_RUN and not self.state.connected else message)

    def _while_running(self, has_come: Callable[[], bool]) -> None:
        """Wait without limit. Ctrl-C stops the program. Raises GdbGone if that fails, as when the probe is gone."""
        done, interrupted, stops = False, 0, self.state.stops

        def check() -> bool:
            nonlocal done
            done = done or has_come()
            return done or self._interrupt_requested

        while not done:
            self.mi.wait(check)
            if not done:
                interrupted = 1 if self.state.stops > stops else interrupted + 1
                self._interrupt_requested, stops = False, self.state.stops
                self._limit_interrupts(interrupted)
                self._break_off()

    def _break_off(self) -> None:
        """Stop the program: with some commands gdb reacts to signals while it runs, with others to its input.

        "Quit" says that gdb has ended a command between two steps. A request to stop would then reach a target that
        has stopped, and gdb would take the Ctrl-C after the next one for the second in vain, and disconnect.
        """
        before = self.state.stops
        self._report_log()
        self.mi.signal()
        self._await_break(before)

    def _await_break(self, before: int) -> None:
        """Wait for the stop after number *before*: gdb was sent Ctrl-C. Other ways follow if it does not come."""

        def stopped() -> bool:
            return not self.state.running or self.state.stops > before

        def lost() -> bool:
            return any(_LOST_IN_PYTHON in text for text in self._log)

        self._has_broken_off = True
        self.mi.wait(lambda: stopped() or _QUIT in self._log or lost(), seconds=INTERRUPT_SECONDS)
        if lost() and not stopped():
            self._report_log()
            self.mi.signal()
            self.mi.wait(lambda: stopped() or _QUIT in self._log, seconds=INTERRUPT_SECONDS)
        if _QUIT in self._log and not stopped():
            self._check_stopped()
        if stopped():
            return
        self.mi.forget(self.mi.send("-exec-interrupt"))
        if not self.mi.wait(stopped, seconds=INTERRUPT_SECONDS):
            self._check_stopped()

    def _check_stopped(self) -> None:
        """Check whether the program has stopped: gdb does not report a stop by a signal between two steps of many."""
        token = self.mi.send("-thread-info")
        found: list[MiRecord] = []

        def there() -> bool:
            record = self.mi.answered(token)
            if record is not None:
                found.append(record)
            return bool(found)

        self.mi.wait(there, seconds=INTERRUPT_SECONDS)
        self.mi.forget(token)
        threads = found[0].fields.get("threads", []) if found else []
        if threads and all(thread.get("state") == "stopped" for thread in threads):
            current = str(found[0].fields.get("current-thread-id"))
            self.state.found_stopped(next((it for it in threads if str(it.get("id")) == current), threads[0]))

    def _raise_if_interrupted(self) -> None:
        if self._interrupt_requested:
            self._interrupt_requested = False
            raise Cancelled
