"""The execution of the console's lines, typed or piped: nearly all are passed to gdb.

gdb commands of several lines, up to their `end`, are collected and passed to gdb as a file. Source: "Command Files" and
"User-defined Commands" in gdb's manual.

The status line shows the state of the target and of the encoders, and how many bytes were captured.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import GdbError
from rvtrace_gdb.console.gdb_driver.state import TraceState, stop_of, trace_state
from rvtrace_gdb.console.scripts.language import file_name
from rvtrace_gdb.console.scripts.runner import FAILED, Runner, ScriptReport, StepLines, load
from rvtrace_gdb.console.scripts.verbs import listing
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.views import json_rows

_NESTING = re.compile(r"\s*(?:if|while|while-stepping|stepping|ws|commands|comm|define|def)(?=\s|$)")
"""Commands with a block of commands, which may be nested."""
_PLAIN = re.compile(r"\s*(?:(?:document|doc)\s|(?:python|py|guile|gu|compile code)\s*$)")
"""Commands with a block of any text, up to the next `end`."""
_END = re.compile(r"\s*end\s*$")
_JOINED = re.compile(r"(?<!\\)\\$")


class CommandBlock:
    """The lines of one command: `add` them until it is `complete`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._open: list[bool] = []  # for each open block: whether it contains any text
        self._joined = False

    def add(self, line: str) -> None:
        self.lines.append(line)
        joined, self._joined = self._joined, bool(_JOINED.search(line))
        if joined:
            return
        if self._open and _END.match(line):
            self._open.pop()
        elif self._open and self._open[-1]:
            return
        elif _PLAIN.match(line):
            self._open.append(True)
        elif _NESTING.match(line):
            self._open.append(False)

    @property
    def complete(self) -> bool:
        return not self._open and not self._joined

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def several(self) -> bool:
        """Whether there is more than one line, so that gdb must read them from a file."""
        return len(self.lines) > 1


PLACE_AT_LEAST = 24  # columns


class ConsoleStatus:
    """The status line, updated by what commands report, and by requests while tracing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._trace = TraceState()
        self._place = ""
        self._stale, self._moved, self._stops = False, True, -1

    def heard(self, command: str, text: str) -> None:
        """Update the state after a command."""
        self._moved = True
        with contextlib.suppress(RvtraceError):  # gdb has ended or is still busy: the command itself reports that
            reported = self._engine.reported_state()
            if reported is not None:
                self._learn(reported)
        self._stale = self._stale or self._trace.tracing

    def _learn(self, reported: Mapping[str, object]) -> None:
        state = trace_state(reported)
        if "ended" in reported:
            self._trace = state._replace(encoders=dict.fromkeys(self._trace.encoders, "stopped"))
        elif "nothing" in reported:
            self._trace = TraceState()
        elif state.known:
            self._trace = state
        self._stale = self._stale or "begun" in reported

    def refresh(self, *, traced: bool = True) -> bool:
        """Request the state if it may have changed, and return whether it has. After an error, the old state is kept.

        *traced*: whether to include the trace components, which takes longer.
        """
        before = (self._trace, self._place)
        state = self._engine.state
        try:
            if not state.running and (self._moved or self._stops != state.stops):
                self._moved, self._stops = False, state.stops
                self._place = self._asked_place() if state.connected else ""
            if traced and (self._stale or (state.running and self._trace.tracing)):
                self._stale = False
                self._trace = self._asked_trace()
        except RvtraceError:
            return False
        return (self._trace, self._place) != before

    def _asked_trace(self) -> TraceState:
        try:
            return self._engine.trace_state()
        except GdbError as error:
            if "session has ended" not in str(error):
                raise
            self._engine.listener("log", f"{error}\n")  # the session reports its end only once
            return TraceState()

    def text(self, columns: int) -> str:
        """Return the status in at most *columns* columns; the end of the place is cut first."""
        target, trace = self._target, str(self._trace)
        room = max(columns - len(f" | {trace}"), PLACE_AT_LEAST)
        if len(target) > room:
            target = target[: room - 1] + "…"
        return f"{target} | {trace}"[:columns]

    def __str__(self) -> str:
        return f"{self._target} | {self._trace}"

    @property
    def _target(self) -> str:
        state = self._engine.state
        return self._place if self._place and state.connected and not state.running else state.word

    def _asked_place(self) -> str:
        """Return where the selected hart is. In the past, or after a reset, this is not where the program stopped."""
        at = self._engine.query("-rvtrace-position --brief")
        if at.get("state") not in ("live", "past"):
            return ""
        frames = self._engine.query("-stack-list-frames 0 0").get("stack", [])
        place = stop_of({"frame": frames[0]}).place if frames else "an unknown place"
        hart = f"hart {at['hart']} " if "hart" in at and self._engine.state.several else ""
        if at["state"] == "past":
            return f"{hart}in the past, {at['number']} of {at['length']}, at {place}"
        return f"{hart}stopped at {place}"


KEYS = """The console takes the commands of gdb: `help`, `help trace`, `help trace start` explain them.
Commands of its own:
    script FILE.rvts   run a script of `rvtrace run` here, on the present connection
    shell COMMAND      or !COMMAND: a command of the system's shell
    quit [STATUS]      or Ctrl-D: end
    help console       this
    help script        the verbs of scripts
Commands that end with `end` (define, while, if, commands, python, document) are typed, or pasted, line by line.

Keys: Tab completes commands, options, symbols and files; Ctrl-R searches the lines typed before, in earlier sessions,
too; Ctrl-C ends the running command, or drops the typed line; an empty line repeats a step, or shows the next page.
"""
SCRIPT = """Run a script of `rvtrace run` here, on the present connection: script FILE.rvts
`connect` without an argument keeps that connection. A failed assertion is an error; variables stay, as gdb's.
docs/scripts.md explains the verbs, and so does `!rvtrace run --verbs`. In short:

"""
_OWN = ("script", "quit", "exit", "help console", "help script")
_REPEATED = re.compile(
    r"(?:s|si|n|ni|step|stepi|next|nexti|c|continue|fg|up|down|rs|rsi|rn|rni|rc"
    r"|reverse-(?:step|stepi|next|nexti|continue))(?:\s.*)?"
)
_LISTED = re.compile(r"(?P<word>x|l|list)(?:/\S+)?(?:\s.*)?")
_PAGED = re.compile(r"(?:rv)?trace\s+(?:history|functions|find|events|gaps|data|dump)(?P<arguments>\s.*)?")
_WRITERS = re.compile(r"(?:rv)?trace\s+who-wrote\s.*")
_RANGE = re.compile(r"\s[-+]?\d+(?:,\S*)?(?=\s|$)")
_QUIT = re.compile(r"(?:q|quit|exit)(?:\s+(?P<status>.+))?")
_SHELL = re.compile(r"(?:(?:shell|!)(?=\W|$)|!)\s*(?P<command>.*)|(?P<make>make(?:\s.*)?)", re.DOTALL)
_TERMINAL = {
    "pi": "python-interactive needs gdb's own terminal: `python` ... `end` does the same here",
    "python-interactive": "python-interactive needs gdb's own terminal: `python` ... `end` does the same here",
    "e": "edit needs gdb's own terminal: `shell` with your editor does the same here",
    "edit": "edit needs gdb's own terminal: `shell` with your editor does the same here",
}
"""Commands that would read gdb's standard input, with the errors for them."""


class Quit(Exception):
    """Ends the console, with this exit status; None: with the status of the commands before."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__()
        self.status = status


class Shell:
    """Executes lines. *heard*: called with each command and its output; *typed*: whether a user types at a terminal."""

    def __init__(
        self, engine: Engine, heard: Callable[[str, str], None] = lambda command, text: None, *, typed: bool = False,
        shown: bool = True,
    ) -> None:
        self.engine = engine
        self.done = ""
        """The last command, all its lines."""
        self._typed, self._shown = typed, shown
        self._report: dict[str, object] = {}
        self._heard = heard
        self._block = CommandBlock()
        self._last = ""

    @property
    def waiting(self) -> bool:
        """Whether a command is not complete, so that the next line is part of it."""
        return bool(self._block.lines)

    def drop(self) -> None:
        """Forget the lines of a command that is not complete."""
        self._block = CommandBlock()

    def line(self, line: str) -> str:
        """Execute a line, or keep it as part of a block; returns what was printed.

        An empty line that the user types repeats the last one. Raises Quit, RvtraceError (Cancelled after Ctrl-C;
        GdbGone ends the console).
        """
        if not self.waiting:
            if not line.strip():
                line = self._last if self._typed else ""
            elif self._typed:
                self._last = _again(line.strip())
            if not line.strip():
                return ""
        self._block.add(line)
        if not self._block.complete:
            return ""
        block, self._block = self._block, CommandBlock()
        self.done = block.text
        text = ""
        try:
            text = self._several(block) if block.several else self._command(block.text.strip())
        finally:
            self._heard(block.text, text)
        return text

    def results(self) -> dict[str, object]:
        """Return what the last command has printed, as fields; of a script, its report."""
        own, self._report = self._report, {}
        found: dict[str, Any] = {}
        with contextlib.suppress(RvtraceError):  # gdb has ended or is busy
            found = self.engine.results()
        if "dump" in found:
            found["dump"] = [_message(row) for row in found["dump"]]
        return {**found, **own}

    def complete(self, text: str) -> list[str]:
        """Return the completions of a line."""
        own = [word for word in _OWN if word.startswith(text) and text]
        if text.startswith("script "):
            return [f"script {name}" for name in _files(text.removeprefix("script ").lstrip(), ".rvts")]
        return sorted({*own, *self.engine.complete(text)})

    def _command(self, line: str) -> str:
        leaves, shell = _QUIT.fullmatch(line), _SHELL.fullmatch(line)
        if leaves is not None:
            raise Quit(self._exit_status(leaves["status"]) if leaves["status"] else None)
        if shell is not None:
            return self._shell(shell["make"] or shell["command"])
        word, _, rest = line.partition(" ")
        if word == "script":
            return self._script(rest.strip())
        own = {"console": KEYS, "script": f"{SCRIPT}{listing()}\n"}.get(" ".join(line.split()[1:]))
        if line.split()[0] == "help" and own is not None:
            self.engine.listener("console", own)
            return own
        if word in _TERMINAL and not (rest and word.startswith("p")):
            raise RvtraceError(_TERMINAL[word])
        text = self.engine.load(rest.strip()) if word == "load" else self.engine.execute(line)
        if word == "cd":  # the shell and scripts use the same current directory
            os.chdir(str(self.engine.query("-environment-pwd").get("cwd", ".")))
        if line == "help":
            self.engine.listener("console", "\nType `help console` for the console's own commands and its keys.\n")
        return text

    def _exit_status(self, expression: str) -> int:
        return Bench.of_engine(self.engine).number(expression) & 0xFF

    def _shell(self, command: str) -> str:
        """Run a shell command on the console's terminal, which gdb does not have; without one, an interactive shell."""
        command = command or (os.environ.get("SHELL", "/bin/sh") if self._typed else "")
        if not command:
            raise RvtraceError("shell: which command? `shell COMMAND`")
        with _sigint_to_the_child():
            done = subprocess.run(command, shell=True, check=False, stdin=None if self._typed else subprocess.DEVNULL)
        if done.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
            raise Cancelled
        if done.returncode < 0:
            raise RvtraceError(f"shell: ended by signal {-done.returncode}")
        if done.returncode:
            raise RvtraceError(f"shell: exit status {done.returncode}")
        return ""

    def _several(self, block: CommandBlock) -> str:
        with tempfile.NamedTemporaryFile(
            "w", suffix=".gdb", prefix="rvtrace-", delete=False, encoding="utf-8", errors="surrogateescape"
        ) as file:
            file.write(block.text + "\n")
        try:
            return self.engine.execute(f"source {file.name}")
        except GdbError as error:
            where = re.compile(rf"{re.escape(file.name)}:(\d+): Error in sourced command file:\s*")
            raise GdbError(where.sub(r"line \1: ", str(error))) from None
        finally:
            os.unlink(file.name)

    def _script(self, name: str) -> str:
        if not name:
            raise RvtraceError("script: which? `script FILE.rvts`")
        path = Path(file_name(name))
        nodes = load(path)
        report = ScriptReport(str(path), {"rvtrace": tool()})
        runner = Runner(Bench.of_engine(self.engine), report, StepLines(shown=self._shown))
        with self.engine.quietly():
            runner.run(nodes)
        self._report = {"report": report.as_json()}
        failed = [f"{path}:{check['line']}: {check['why']}" for check in report.asserts if not check["passed"]]
        if report.problem is not None:
            if report.problem["message"] == str(Cancelled()):
                raise Cancelled
            line = f":{report.problem['line']}" if "line" in report.problem else ""
            failed.append(f"{path}{line}: {report.problem['message']}")
        if failed:
            raise RvtraceError(f"{FAILED}: " + "; ".join(failed))
        return ""


def _message(row: Mapping[str, Any]) -> Any:
    """Return a message of `trace dump` with its fields, as `rvtrace dump --json` has it."""
    return json.loads(json_rows.message("", row["number"], row["trace-byte"], row["text"]))


def _files(begun: str, ending: str) -> list[str]:
    """Return the folders, and the files with this ending, that complete a name; spaces are not escaped."""
    quote = begun[0] if begun[:1] in ("'", '"') else ""
    folder, slash, start = begun[len(quote) :].rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").expanduser().iterdir())
    except (OSError, RuntimeError):
        return []
    shown = [it for it in found if it.name.startswith(start) and (start or not it.name.startswith("."))]
    folders = {it for it in shown if it.is_dir()}
    names = [it.name + ("/" if it in folders else quote) for it in shown if it in folders or it.suffix == ending]
    return [f"{quote}{folder}{slash}{name}" for name in names]


def _again(line: str) -> str:
    """Return the command that an empty line after this one executes; empty for most commands."""
    listed, paged = _LISTED.fullmatch(line), _PAGED.fullmatch(line)
    if listed is not None:
        return listed["word"]
    if paged is not None and not _RANGE.search(paged["arguments"] or ""):
        return line if re.search(r"\s[-+]$", line) else f"{line} +"
    if _WRITERS.fullmatch(line):
        return "trace who-wrote -before"
    return line if _REPEATED.fullmatch(line) else ""


@contextlib.contextmanager
def _sigint_to_the_child() -> Iterator[None]:
    """Ctrl-C goes to all on the terminal: the console lets the child have it."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # one that is ignored, the child would ignore
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
