"""What a command shows, and how much of it: `--quiet` and `--json`, the same for all commands (docs/json.md)."""

import argparse
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Self, TextIO

from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.support.text import Problem, columns, rows
from rvtrace_gdb.views import json_rows

_EVERY = 1024  # lines written at once, and between two signs of life


def add_arguments(parser: argparse.ArgumentParser, of_json: str) -> None:
    """`--quiet` and `--json`. *of_json*: what an object stands for, as in "each message"."""
    parser.add_argument("--quiet", action="store_true", help="no progress, and beside the output only what goes wrong")
    parser.add_argument("--json", action="store_true", help=f"on standard output a JSON object for {of_json}")


class Output:
    """`with Output(args) as output:` - a bar on the terminal while there is nothing to read, rows, and notes.

    *label*: of the bar until something is reported.
    """

    def __init__(self, args: argparse.Namespace, label: str = "working") -> None:
        self._quiet = bool(getattr(args, "quiet", False))
        self.json = bool(getattr(args, "json", False))
        """Whether programs read it."""
        self.progress = ProgressLine(not self._quiet, label)

    def __enter__(self) -> Self:
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.__exit__(kind, error, trace)

    def say(self, lines: Iterable[str], where: TextIO | None = None) -> None:
        """Notes, beside what is asked for. Those about what goes wrong are said in any case.

        *where*: default standard error.
        """
        for line in lines:
            if not self._quiet or isinstance(line, Problem):
                self.progress.clear()
                print(columns(line), file=where or sys.stderr)

    def rows(self, lines: Iterable[str], label: str = "writing (lines)", total: int | None = None) -> int:
        """What is asked for, a line each; how many there were.

        There is no bar behind the first one, but where they go to a file. *label*, *total*: of them.
        """
        into_file, number = _is_file(), 0
        at_once = 1 if sys.stdout.isatty() else _EVERY
        rest = iter(lines)
        while some := list(islice(rest, at_once)):
            if into_file and total and number:
                self.progress(label, number, total)
            elif not into_file and not number:
                self.progress.__exit__(None, None, None)
            sys.stdout.write(rows(some))
            number += len(some)
        return number

    def facts(self, facts: Mapping[str, Any]) -> None:
        """What was done, for programs."""
        self.rows([json_rows.line(facts)])


def _is_file() -> bool:
    """Whether standard output is a file, which nobody looks at while it is written."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False
