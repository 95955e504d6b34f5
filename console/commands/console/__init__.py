"""`rvtrace console`: gdb's commands with line editing, completion and a status line, or lines from a pipe."""

import argparse
import io
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module

from rvtrace_gdb.console import output
from rvtrace_gdb.console.bench.rig import TargetRequest, add_target_options, target_of
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.console.shell import ConsoleStatus, Quit, Shell
from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import GdbGone
from rvtrace_gdb.console.gdb_driver.state import ProgramStop
from rvtrace_gdb.console.progress import ProgressLine, ending, on_signals
from rvtrace_gdb.console.scripts.runner import UNNAMED
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support import colours
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.text import printable

EXAMPLES = (
    ("console --elf app.elf --sim", "try it on a simulated target"),
    ("console --elf app.elf --target board.toml --connect :3333", "a board, through OpenOCD"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the sub-command."""
    parser.description = (
        "Runs commands of gdb and rvtrace, typed or from a pipe. With a pipe, the exit status is 1 if a command failed."
    )
    add_target_options(parser)
    parser.add_argument(
        "-ex", action="append", default=[], metavar="COMMAND", help="run this command first; may be repeated",
    )  # fmt: skip
    parser.add_argument("--nx", action="store_true", help="do not read .gdbinit")
    parser.add_argument("--stop-on-error", action="store_true", help="with a pipe: end at the first command that fails")
    parser.add_argument("--quiet", action="store_true", help="no greeting, no progress")
    parser.add_argument("--json", action="store_true", help="with a pipe: print a JSON object for each command")
    output.add_color(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the console and return its exit status: 2 if gdb cannot be started or has ended."""
    typed, shown = sys.stdin.isatty() and not arguments.json, output.OutputOptions.from_arguments(arguments)
    wanted = TargetRequest.from_arguments(arguments)
    screen = Screen(progress=not (shown.quiet or shown.json), shown=not shown.json)
    try:
        if typed:
            _needs_the_prompt()
        with (
            ending(),
            target_of(wanted, lambda text: screen.show_message("target", text)) as (target, connect),
            Engine(
                wanted.elf, target, gdb=wanted.gdb, init=not arguments.nx, listener=screen.show_message,
                progress=screen.progress, coloured=shown.paint() is not colours.plain,
                environ={**os.environ, "RVTRACE_RESULTS": f"{shown.json:d}", "RVTRACE_CONSOLE": _terminal(typed)},
            ) as engine,
        ):  # fmt: skip
            engine.silence = None  # a user has Ctrl-C, and a pipe may wait
            begin = [f"trace connect {connect}"] if connect else []
            console = _Console(engine, screen, shown, typed=typed, stop_on_error=arguments.stop_on_error)
            with on_signals((signal.SIGINT,), lambda number: engine.interrupt()):  # it interrupts only the command
                return console.run([*begin, *arguments.ex])
    except RvtraceError as error:
        screen.clear()
        print(f"rvtrace: {printable(str(error))}", file=sys.stderr)
        return 2


def _terminal(typed: bool) -> str:
    """Return the name of the terminal that shows what gdb prints, for gdb; "" if there is none."""
    try:
        return os.ttyname(sys.stdout.fileno()) if typed else ""
    except OSError:  # the output is redirected
        return ""


def _needs_the_prompt() -> None:
    """Raise MissingLibrary, before anything is started, if prompt-toolkit is not installed."""
    import_module("rvtrace_gdb.console.commands.console.prompt")


def _stop_fields(stop: ProgramStop) -> dict[str, object]:
    """Return where and why the program stopped, with the names of MI."""
    addr = None if stop.address is None else f"{stop.address:#x}"
    fields = {"reason": stop.reason, "addr": addr, "func": stop.function, "file": stop.file, "line": stop.line}
    fields |= {"signal": stop.signal, "bkptno": stop.breakpoint}
    return {name: value for name, value in fields.items() if value not in (None, "")}


_LONG = re.compile(
    r"(?:rv)?trace\s|load\b"
    r"|(?:c|continue|fg|r|run|j|jump|u|until|advance|fin|finish|s|si|step|stepi|n|ni|next|nexti|rc|rs|rsi|rn|rni"
    r"|reverse-\w+|call)(?:\s[^&]*)?$"
)
"""Commands for which a bar shows how long they take already: work of ours, and what lets the program run."""


class Screen:
    """Shows gdb's output as it arrives, and progress. *shown*: whether output is shown at all."""

    def __init__(self, *, progress: bool, shown: bool) -> None:
        self._wanted = progress
        self._line = ProgressLine(enabled=False)
        self._shown = shown
        self.busy = ""
        """The command that runs; empty while the user types, when nothing is drawn."""

    def begins(self, command: str) -> None:
        """Note that a command starts. For those that may take long, a bar is drawn even before they report progress."""
        self.busy = command.strip()
        self._line = ProgressLine(self._wanted, self.busy if _LONG.match(self.busy) else "").__enter__()

    def show_message(self, kind: str, text: str) -> None:
        self._line.clear()
        if kind == "log":
            print(text.rstrip("\n"), file=sys.stderr)
        elif self._shown or kind == "target":
            print(text, end="", flush=True, file=sys.stdout if self._shown else sys.stderr)
        if text.endswith("\n") and _LONG.match(self.busy):
            self._line(self.busy, 0)

    def progress(self, label: str, done: int, total: int | None = None) -> None:
        """Show progress, as `support.errors.Progress`."""
        if self.busy:
            self._line(self.busy if label == UNNAMED else label, done, total)

    def clear(self) -> None:
        """Erase the bar: the command has ended."""
        self.busy = ""
        self._line.__exit__(None, None, None)


class _Console:
    """Does the lines that are *typed*, or piped. *stop_on_error*: piped lines end at the first that fails."""

    def __init__(
        self, engine: Engine, screen: Screen, shown: output.OutputOptions, *, typed: bool, stop_on_error: bool
    ) -> None:
        self._engine, self._screen, self._shown, self._typed = engine, screen, shown, typed
        self._stop_on_error = stop_on_error
        self.status = ConsoleStatus(engine)
        self.shell = Shell(engine, self.status.heard, typed=typed, shown=not shown.json)
        self._failed = False

    def run(self, first: list[str]) -> int:
        """Execute all lines and return the exit status."""
        try:
            if self._typed and not self._shown.quiet:
                gdb = self._gdb_version().partition("\n")[0]
                print(f"{tool()}, {gdb}\n`help console` for keys, `help trace` for commands")
            for line in first:
                self._do(line)
            self._read_all(self._typed_lines() if self._typed else self._piped_lines())
        except Quit as leave:
            if leave.status is not None:
                return leave.status
        return 1 if self._failed and not self._typed else 0

    def _gdb_version(self) -> str:
        with self._engine.quietly():
            return self._engine.execute("show version")

    def _read_all(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._do(line)
        if self.shell.waiting:
            self._fail("the last command has no `end`", self.shell.drop)

    def _typed_lines(self) -> Iterator[str]:
        from rvtrace_gdb.console.commands.console.prompt import Prompt

        prompt = Prompt(self.shell, self.status)
        while True:
            try:
                lines = prompt.read().split("\n")
                for line in lines:  # several: they were pasted; an empty one between them repeats nothing
                    if line.strip() or len(lines) == 1 or self.shell.waiting:
                        yield line
            except KeyboardInterrupt:  # the line, or the block, that was typed
                self.shell.drop()
            except EOFError:
                return

    def _piped_lines(self) -> Iterator[str]:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")
        for line in sys.stdin:
            yield line.rstrip("\n")

    def _do(self, line: str) -> None:
        began, text, problem = time.monotonic(), "", ""
        stops = self._engine.state.stops
        self._screen.begins(line)
        try:
            text = self.shell.line(line)
        except GdbGone:
            raise
        except Cancelled:
            problem = "interrupted"
        except RvtraceError as error:
            problem = str(error)
        finally:
            self._screen.clear()
        if self._shown.json and not self.shell.waiting and line.strip():
            row = {"command": self.shell.done, "status": "error" if problem else "ok", "output": text, "error": problem}
            seconds = round(time.monotonic() - began, 3)
            print(json.dumps({**row, "seconds": seconds, **self._results(stops)}), flush=True)
        if problem:
            self._fail(problem)

    def _results(self, stops: int) -> dict[str, object]:
        """Return what a command has printed, as fields. *stops*: the number of stops before it."""
        state = self._engine.state
        stopped = {"stop": _stop_fields(state.last)} if state.stops > stops else {}
        found = self.shell.results()
        place = {"position": found.pop("position")} if "position" in found else {}
        return {**stopped, **place, **({"result": found} if found else {})}

    def _fail(self, problem: str, then: Callable[[], None] = lambda: None) -> None:
        self._failed = True
        then()
        if not self._shown.json:
            print(problem, file=sys.stderr, flush=True)
        if self._stop_on_error and not self._typed:
            raise Quit(1)
