"""The rows of the shell's commands about the trace that is open: what `rvtrace COMMAND FILE --json` prints."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from rvtrace_gdb.console.commands import Subcommand
from rvtrace_gdb.console.commands.serve.monitor.page import PageFull, PrintedPage
from rvtrace_gdb.console.commands.serve.monitor.shell_verbs import VerbUsage, arguments
from rvtrace_gdb.console.progress import WATCH
from rvtrace_gdb.support.errors import Progress, RvtraceError

JsonRow = dict[str, Any]


class AskedWrongly(RvtraceError):
    """Arguments that a command does not take."""


class VerbRows(NamedTuple):
    """Rows of a command, its notes, and whether there are more rows."""

    rows: list[JsonRow]
    notes: list[str]
    more: bool


class ShellVerbs:
    """The commands of the table *commands*, about the trace that is open as *file*, a key of `OPEN_TRACES`."""

    def __init__(self, commands: Sequence[Subcommand], file: str) -> None:
        self._commands = {row.name: row for row in commands}
        self._file = file

    def rows(self, name: str, words: Sequence[str], progress: Progress, skip: int = 0, most: int = 100) -> VerbRows:
        """Return up to *most* rows of a command after the first *skip*. Raises AskedWrongly, and as the command."""
        try:
            args = arguments(self._commands[name], self._file, [*words, "--json"])
        except VerbUsage as error:
            raise AskedWrongly(error.problem) from None
        args.quiet = True
        page, more = PrintedPage(skip, skip + most, frozenset()), False
        token = WATCH.set(progress)
        try:
            with page.taking(), suppress(SystemExit):
                args.run(args)
        except PageFull:
            more = True
        finally:
            WATCH.reset(token)
        rows = [json.loads(line) for line in page.lines if line.startswith("{")]
        return VerbRows(rows, [line for line in page.lines if not line.startswith("{")], more)
