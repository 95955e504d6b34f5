"""A real gdb with rvtrace loaded, driven over its machine interface: what the console and scripts do, gdb does.

So every `trace` command, its options, its help and its completion are those of gdb: there is one table of each.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rvtrace_gdb.console import engine_gdb
from rvtrace_gdb.console.engine_trace import TraceState, trace_state
from rvtrace_gdb.console.engine_waiting import GENTLE, Said, Waiting
from rvtrace_gdb.console.mi import GdbError, Mi
from rvtrace_gdb.console.mi_records import Record, quoted
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent

SETTINGS = ("confirm off", "pagination off", "width 0", "height 0", "mi-async on", "style enabled off")


class Engine(Waiting):
    """`with Engine("app.elf", target="board.toml") as engine: engine.execute("trace status")`

    *gdb*: its program; *init*: read the user's own .gdbinit; *said*: see `Said`. Raises GdbGone, GdbError,
    MissingLibrary: all of them one line.
    """

    def __init__(
        self,
        elf: str | os.PathLike[str] | None = None,
        target: str | os.PathLike[str] | None = None,
        *,
        gdb: str | None = None,
        init: bool = False,
        said: Said = lambda kind, text: None,
        progress: Progress = silent,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(said)
        self.elf = None if elf is None else Path(elf).resolve()
        self.target = None if target is None else Path(target).resolve()
        self.program = engine_gdb.find(gdb)
        self._texts: list[str] | None = None
        self._check_files()
        words = [self.program, "-q", *([] if init else ["-nx"])]
        self.mi = Mi(words, engine_gdb.environ(environ), self._heard, progress)
        try:
            self._set_up()
        except BaseException:
            self.mi.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End gdb; a program that runs is left running, as gdb's own `quit` leaves it."""
        with self.lock:
            self.mi.close()

    def execute(self, command: str) -> str:
        """Run a command of gdb's command line, to its end: of one that lets the program run, until that stops.

        What it printed. `interrupt`, from a signal handler or another thread, ends it. Raises GdbError, GdbGone,
        NoAnswer; Cancelled when it was interrupted.
        """
        with self.lock:
            self._begin()
            self._texts, self._log = [], []
            token = self.mi.send(f"-interpreter-exec console {quoted(command)}")
            try:
                self._to_its_end(token, command)
            finally:
                text, self._texts = "".join(self._texts), None
                self.mi.forget(token)
            self._tell_log()
            return text

    def query(self, command: str) -> dict[str, Any]:
        """The result of an MI command. Raises as `execute`."""
        with self.lock:
            self._begin()
            self._log = []
            token = self.mi.send(command)
            try:
                fields = self._awaited(token, command).fields
            except GdbError as error:
                raise GdbError(str(error).removeprefix(f"{command.split()[0]}: ")) from None
            finally:
                self.mi.forget(token)
            self._tell_log()
            return fields

    def evaluate(self, expression: str) -> str:
        """The value of an expression of gdb's, as `output` would print it. Raises GdbError."""
        return str(self.query(f"-data-evaluate-expression {quoted(expression)}").get("value", ""))

    def load(self, words: str) -> str:
        """gdb's `load WORDS`, which only so tells how far it is. What it printed; as `execute`."""
        with self.lock:
            self._texts = []
            try:
                done = self.query(f"-target-download {words}".rstrip())
                address, size, rate = (str(done.get(key, 0)) for key in ("address", "load-size", "transfer-rate"))
                self._tell(f"Start address {address}, load size {size}\nTransfer rate: {int(rate) // 8192} KB/sec.\n")
                return "".join(self._texts)
            finally:
                self._texts = None

    def _tell(self, text: str) -> None:
        """As if gdb had printed it."""
        if self._texts is not None:
            self._texts.append(text)
        self.said("console", text)

    def complete(self, text: str) -> list[str]:
        """Lines that gdb would make of this one with the Tab key."""
        try:
            found = self.query(f"-complete {quoted(text)}").get("matches", [])
        except GdbError:
            return []
        return [str(line) for line in found]

    def trace_state(self) -> TraceState:
        """What `trace status` says now. Raises as `execute`."""
        return trace_state(self.query("-rvtrace-status"))

    def told(self) -> Mapping[str, Any] | None:
        """What commands have told of the trace since this was asked last; None: nothing. Raises as `execute`.

        Notes that come with it are told as if gdb had printed them.
        """
        found = self.query("-rvtrace-told")
        for line in found.get("messages", []):
            self._tell(f"{line}\n")
        told: Mapping[str, Any] | None = found.get("told")
        return told

    def resume(self) -> None:
        """Let the program run. Raises GdbError."""
        self.query("-exec-continue")
        self.mi.wait(lambda: self.state.running, seconds=GENTLE)  # its record comes behind the answer

    def poll(self) -> bool:
        """Take what gdb says by itself; whether there was anything."""
        with self.lock:
            heard = False
            while self.mi.read(0.0):
                heard = True
            self._tell_log()
            return heard

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """What gdb says is not told meanwhile, but for warnings and what the target prints."""
        said = self.said
        self.said = lambda kind, text: said(kind, text) if kind in ("log", "target") else None
        try:
            yield
        finally:
            self.said = said

    # Below: how it is done

    def _check_files(self) -> None:
        for what in (self.elf, self.target):
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
            said = self.execute(f"source {engine_gdb.RVTRACE}")
        except GdbError as error:
            raise engine_gdb.unusable(self.program, str(error)) from None
        found = self.query("-info-gdb-mi-command rvtrace-status").get("command", {})
        if found.get("exists") != "true":
            raise engine_gdb.unusable(self.program, said)
        if self.elf is not None:
            self.query(f"-file-exec-and-symbols {quoted(str(self.elf))}")
        if self.target is not None:
            self.execute(f"set trace target {self.target}")

    def _heard(self, record: Record) -> None:
        self.state.heard(record)
        if record.kind in ("console", "target", "output"):
            if self._texts is not None and record.kind != "target":
                self._texts.append(record.text)
            self.said(record.kind, record.text)
        elif record.kind == "log":
            self._log.append(record.text)
        elif record.kind == "status" and record.name == "download":
            self._downloaded(record.fields)

    def _downloaded(self, fields: Mapping[str, str]) -> None:
        """A section begins, or goes on."""
        if self._texts is not None and "section-size" in fields and "section-sent" not in fields:
            self._tell(f"Loading section {fields.get('section')}, size {int(fields['section-size']):#x}\n")
        sent, total = fields.get("total-sent"), fields.get("total-size")
        if sent and total:
            self.mi.progress(f"loading {fields.get('section', '')}".strip(), int(sent), int(total))

    def _to_its_end(self, token: int, command: str) -> None:
        before = self.state.stops
        record = self._awaited(token, command)
        if record.name != "running" or command.rstrip().endswith("&"):
            return
        self._tell_log()
        self._while_running(lambda: self.state.stops > before)
        ping = self.mi.send("-list-features")  # answered when gdb is done with all the command entails
        self._while_running(lambda: self.mi.answered(ping) is not None)
        self.mi.forget(ping)
        late = self.mi.answered(token)  # a file that was sourced ends with an error
        if late is not None:
            self._check(late)
