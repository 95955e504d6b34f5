"""`monitor trace ...` in every debugger: rvtrace's commands, sent by the packet qRcmd.

A debugger prints what comes back: gdb `monitor trace functions`, LLDB `process plugin packet monitor trace functions`.
Other commands are those of the stub, and pass. Source: GDB manual, "General Query Packets" (qRcmd).
"""

import argparse
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from rvtrace_gdb.console.commands import Subcommand
from rvtrace_gdb.console.commands.intervals import IntervalsRequest
from rvtrace_gdb.console.commands.serve.monitor.own_commands import OWN
from rvtrace_gdb.console.commands.serve.monitor.page import PageFull, PrintedPage
from rvtrace_gdb.console.commands.serve.monitor.places import MOST_ROWS
from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest, OwnCommand
from rvtrace_gdb.console.commands.serve.monitor.shell_verbs import (
    ELSEWHERE,
    VerbUsage,
    arguments,
    has_rows_last,
    help_text,
    is_cut,
    is_of_thread,
    names_something,
    verbs,
)
from rvtrace_gdb.console.commands.serve.monitor.typed_commands import in_monitor
from rvtrace_gdb.console.options.request import OPEN_TRACES
from rvtrace_gdb.console.output import PAGE
from rvtrace_gdb.console.progress import WATCH
from rvtrace_gdb.session import report
from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.proxy.connection import ConnectionEnded, StubGone
from rvtrace_gdb.session.proxy.protocol.wire import WireGone
from rvtrace_gdb.session.proxy.stepping import ReplayProgress
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.system import OutOfMemory
from rvtrace_gdb.support.text import columns, printable

log = logging.getLogger("rvtrace.session")
PREFIX = b"qRcmd,"
NAMES = ("trace", "rvtrace")
_LONGEST = 60  # characters of a name that a message repeats
ROWS = 10
"""Rows of a list in a page, as in gdb."""
_THREAD, _HEXADECIMAL = "--thread", re.compile("[0-9a-f]{1,16}")
_NO_TARGET = "there is no target, only its trace: `monitor trace help`"
_ABOUT = """\
Usage: monitor trace COMMAND [ARGUMENT ...]

`monitor trace help COMMAND` explains one. A list shows {size} rows, at first the
last ones; with - after it those before, without it those after them. `monitor
trace size N` sets how many, 0: all. A RANGE is shown whole.
"""
_OF_OPENOCD = """\
All other commands are the target's. OpenOCD's own `trace history` and `trace
point`: `monitor eval trace history`.
"""


class _LastPage(NamedTuple):
    """The page that was shown last: which command, and which of its lines."""

    words: tuple[str, ...]
    begin: int
    end: int


class Monitor:
    """The `Extension` with rvtrace's commands. *file*: the name of the trace that is served, a key of `OPEN_TRACES`.

    *commands*: the table of the shell's; *own*: others besides `OWN`. *replays*: there is no stub whose
    commands these could be.
    """

    prefixes = (PREFIX,)

    def __init__(
        self,
        session: Session,
        file: str,
        commands: Sequence[Subcommand],
        own: Mapping[str, OwnCommand] | None = None,
        *,
        replays: bool = True,
    ) -> None:
        self._session, self._file, self._replays = session, file, replays
        self._commands = commands
        self._own = {**OWN, **(own or {})}
        named = {row.name for row in commands if row.name not in ELSEWHERE}
        self._typed = in_monitor({*named, *self._own, "help", "size"}, printable(shlex.quote(file)))
        self._size = ROWS
        self._last: _LastPage | None = None
        self._measured: list[str] = []  # the words of the last `intervals`
        self._client: ExtensionContext | None = None  # whose pages these are

    def features(self) -> str:
        return ""

    def worded(self, line: str) -> str:
        """Return a line with the commands in it as they are typed here."""
        return self._typed(line)

    def prepare(self, goes_on: Callable[[], bool]) -> None:
        """Load the commands of the shell, before a client waits for that, as long as *goes_on* says so."""
        any(not goes_on() for _ in verbs(self._commands))

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        try:
            text = bytes.fromhex(packet[len(PREFIX) :].decode()).decode()
        except ValueError:
            return None
        words = _words(text)
        if words[:1] == ["help"] and self._replays:
            words.insert(0, NAMES[0])
        if not words or words[0] not in NAMES:
            if not self._replays:
                return None
            connection.print(_NO_TARGET)
            return b"OK"
        with connection.lock:
            if connection is not self._client:
                self._client, self._last, self._size, self._measured = connection, None, ROWS, []
                self._session.restart_pages()
            try:
                self._print(words[1:], connection)
            finally:
                if self._session.live is not None:
                    self._session.live.let_go()
        return b"OK"

    def _print(self, words: list[str], connection: ExtensionContext) -> None:
        """Print what a command says, or what is wrong with it."""
        debugger, progress = self._session.debugger, ReplayProgress(connection.is_unheard, connection.print)
        assert isinstance(debugger, ProxyDebugger)
        words, hart = self._of_thread(words, connection.hart)
        request = MonitorRequest(self._session, debugger, connection, progress, self._size, hart)
        is_heard = ReplayProgress(connection.is_unheard, lambda line: None)
        try:
            for line in self._lines(words, request):
                is_heard("", 0)
                connection.print(columns(line))
        except (WireGone, ConnectionEnded, StubGone):
            raise
        except RvtraceError as error:
            connection.print(columns(str(error)))
        except MemoryError:
            connection.print(str(OutOfMemory()))
        except Exception as error:
            log.exception("monitor %r", words)
            what = " ".join(f"{type(error).__name__}: {error}".split())
            connection.print(columns(f"internal error, please report it ({what})"))

    def _of_thread(self, words: list[str], hart: int | None) -> tuple[list[str], int | None]:
        """Return a command, and the hart that it is about, from words that may begin with `--thread NUMBER`: LLDB tells
        the server with no packet which thread its user has selected.
        """
        debugger = self._session.debugger
        if words[:1] != [_THREAD] or len(words) < 2 or not _HEXADECIMAL.fullmatch(words[1]):
            return words, hart
        assert isinstance(debugger, ProxyDebugger)
        return words[2:], debugger.hart_of(words[1])

    def _lines(self, words: list[str], request: MonitorRequest) -> Iterable[str]:
        name, rest = (words[0], words[1:]) if words else ("help", [])
        if name in ("help", "--help", "-h"):
            return self._help(rest)
        if name == "size":
            return self._set_size(rest)
        if name == "goto" and rest[:1] == ["worst"]:
            rest = [str(self._worst(rest[1:], request))]
        if name in self._own:
            return self._own[name].run(request, rest)
        row = next((row for row in verbs(self._commands) if row.name == name), None)
        if row is None:
            return [self._no_command(name)]
        return self._shell(row, rest, request)

    def _set_size(self, words: list[str]) -> list[str]:
        if words:
            if len(words) > 1 or not words[0].isdecimal() or len(words[0]) > 6:
                return ["trace size: give a number of rows, 0 for all"]
            self._size = int(words[0])
        return [f"A page has {self._size} rows." if self._size else "A list is shown whole."]

    # Help

    def _help(self, words: list[str]) -> Iterator[str]:
        if not words:
            yield from _ABOUT.format(size=self._size or "all").splitlines()
            yield from [] if self._replays else _OF_OPENOCD.splitlines()
            yield ""
            for name, line in self.command_table():
                yield f"{name:<16}{line}"
            return
        name = words[0]
        row = next((row for row in verbs(self._commands) if row.name == name), None)
        if name in self._own:
            yield from f"{self._own[name].help.capitalize()}.\nUsage: {self._own[name].usage}".splitlines()
        elif row is not None:
            yield from help_text(row).splitlines()
        else:
            yield self._no_command(name)

    def _no_command(self, name: str) -> str:
        name = name[:_LONGEST]
        of_stub = "" if self._replays else f"; OpenOCD's own is `monitor eval trace {name}`"
        return f"there is no command `monitor trace {name}`: `trace help` lists them{of_stub}"

    def command_table(self) -> Iterator[tuple[str, str]]:
        """Yield each command with its line of help."""
        yield from ((name, own.help) for name, own in self._own.items())
        yield from ((row.name, row.help) for row in verbs(self._commands) if row.name not in self._own)
        yield "size", "set how many rows of a list are shown at once"

    # Commands of the shell

    def _shell(self, row: Subcommand, words: list[str], request: MonitorRequest) -> list[str]:
        turn = words.pop() if words[-1:] in (["-"], ["+"]) else ""
        is_word = bool(turn) and has_rows_last(row)
        args = self._arguments(row, [*words, turn] if is_word else words, request)
        if turn and not is_cut(row.name) and not is_word:
            args.range = turn
        if row.name == "intervals":
            self._measured = words
        begin, end = self._extent(row, tuple(words), getattr(args, "range", ""), back=turn == "-")
        page = PrintedPage(begin, end, self._preamble_lines(request))
        more = not _is_whole(lambda: args.run(args), page, request)
        self._last = _LastPage((row.name, *words), begin, end if more else 0)
        return [*page.lines, *(["The same command again shows more."] if more else [])]

    def _arguments(self, row: Subcommand, words: list[str], request: MonitorRequest) -> argparse.Namespace:
        """Return the parsed words, about the place where the debugger is. Raises VerbUsage."""
        args = arguments(row, self._file, words)
        if is_of_thread(row.name) and getattr(args, "hart", 0) is None:
            args.hart = request.hart if self._has_hart(request) else None
        if getattr(args, "at", 0) is None and names_something(row, vars(args)):
            args.at = request.places.number() if self._is_before_end(request) else None
        if hasattr(args, "values"):
            args.values = request.debugger.context.values
        return args

    def _worst(self, words: list[str], request: MonitorRequest) -> int:
        """Return where the longest interval begins, of those that were measured last, or of *words*.

        Raises VerbUsage, and as `IntervalsRequest.longest`.
        """
        row = next(row for row in verbs(self._commands) if row.name == "intervals")
        if not words and not self._measured:
            raise VerbUsage("trace goto worst: of what? `trace intervals` measures, or name a FUNCTION here")
        args = self._arguments(row, words or self._measured, request)
        asked = IntervalsRequest.from_arguments(args)
        return asked.longest(self._session, request.places.selected().hart, request.progress)

    def _extent(self, row: Subcommand, words: tuple[str, ...], numbers: object, *, back: bool) -> tuple[int, int]:
        """Return which lines are shown: the next page of what was shown last, the one before it, or the first."""
        size = self._size if is_cut(row.name) and not numbers and self._size else MOST_ROWS
        last, begin = self._last, 0
        if last is not None and last.words == (row.name, *words):
            begin = max(last.begin - size, 0) if back else last.end
        return begin, begin + size

    def _has_hart(self, request: MonitorRequest) -> bool:
        return request.hart in self._session.harts(request.debugger.context, request.progress).harts.histories

    def _is_before_end(self, request: MonitorRequest) -> bool:
        number = request.places.number()
        return number is not None and number <= len(request.debugger.timeline.selected(request.hart).history)

    def _preamble_lines(self, request: MonitorRequest) -> frozenset[str]:
        """Return the lines that each command of the shell begins with: the server has said them."""
        decoded = self._session.harts(request.debugger.context, request.progress)
        said = [*OPEN_TRACES[self._file].about, *report.histories(decoded.harts), *self._session.warnings()]
        return frozenset(columns(line) for line in [*said, *report.checks(decoded.checked or ())])


def _is_whole(run: Callable[[], object], page: PrintedPage, request: MonitorRequest) -> bool:
    """Let a command of the shell print on a page. Returns whether that has everything."""
    tokens = WATCH.set(request.progress), PAGE.set(request.size)
    try:
        with page.taking(), suppress(SystemExit):
            run()
    except PageFull:
        return False
    finally:
        WATCH.reset(tokens[0])
        PAGE.reset(tokens[1])
    return True


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
