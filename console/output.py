"""The output of a command: rows, notes and progress, with `--quiet` and `--json` for all commands (docs/json.md)."""

import argparse
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self, TextIO

from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.support import colours
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.files import atomic_output
from rvtrace_gdb.support.text import Problem, RowPiece, coloured_rows, columns, json_line, rows

PAGE: ContextVar[int] = ContextVar("page", default=0)
"""How many rows of a list the commands in this context show at once, as gdb's do; 0: all."""
WIDE_ENOUGH = 100  # columns, as gdbext.screen.WIDE_ENOUGH
COLOURS_WHEN = ("auto", "always", "never")
_AS_IT_IS = ("utf-8", "utf8")
_EVERY = 1024  # lines written at once, and between two updates of the progress


def add_arguments(parser: argparse.ArgumentParser, of_json: str) -> None:
    """Add `--quiet` and `--json`. *of_json*: what an object stands for, as in "each message"."""
    parser.add_argument("--quiet", action="store_true", help="print no progress, and only problems besides the output")
    parser.add_argument("--json", action="store_true", help=f"print a JSON object on standard output for {of_json}")


def add_color(parser: argparse.ArgumentParser) -> None:
    """Add `--color`, for commands that print lists."""
    parser.add_argument(
        "--color", choices=COLOURS_WHEN, default="auto", help="colours; auto (default): on a terminal, without NO_COLOR"
    )


@dataclass(frozen=True)
class OutputOptions:
    """The options of `add_arguments` and `add_color`. *color*: one of `COLOURS_WHEN`."""

    quiet: bool = False
    json: bool = False
    color: str = "never"

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "OutputOptions":
        """Return the options of a command that may have only some of them."""
        return cls(
            getattr(args, "quiet", False), getattr(args, "json", False), getattr(args, "color", "never"),
        )  # fmt: skip

    def paint(self) -> colours.Paint:
        """Return what colours the rows of a command: nothing in JSON, and in what is not a terminal's."""
        return colours.painted if not self.json and has_colours(self.color, sys.stdout) else colours.plain


def has_colours(when: str, stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether lines on *stream* have colours. *when*: one of `COLOURS_WHEN`.

    `auto` follows the conventions of https://no-color.org and of CLICOLOR_FORCE: a variable counts if it is not empty.
    """
    if when != "auto":
        return when == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return environ.get("TERM", "dumb") not in ("", "dumb") and not stream.closed and stream.isatty()


def text_of(lines: Sequence[str], paint: colours.Paint) -> str:
    """Return rows that were made with *paint*, safe to print."""
    return rows(lines) if paint is colours.plain else coloured_rows(lines)


def write(piece: RowPiece) -> None:
    """Write rows to standard output, where they are seen at once."""
    stream = sys.stdout
    stream.flush()
    if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() in _AS_IT_IS and os.linesep == "\n":
        stream.buffer.write(piece.text)
    else:
        stream.write(piece.text.decode())
    stream.flush()


class CommandOutput:
    """The output of a command: `with CommandOutput(options) as output:` shows a progress bar until the first rows are
    written.

    *label*: that of the bar until progress is reported.
    """

    def __init__(self, options: OutputOptions, label: str = "working") -> None:
        self._quiet, self.json = options.quiet, options.json
        """Whether the rows are JSON, for programs."""
        self.paint = options.paint()
        """Colours parts of a row, if rows have colours."""
        self.narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < WIDE_ENOUGH
        """Whether rows with two addresses fit on the terminal only if addresses are short."""
        self.progress = ProgressLine(not self._quiet, label)
        self.total: int | None = None
        """How many rows will be printed, set by what makes them; None: unknown."""

    def __enter__(self) -> Self:
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.__exit__(kind, error, trace)

    def say(self, lines: Iterable[str], where: TextIO | None = None) -> None:
        """Print notes, which `--quiet` suppresses except for problems. *where*: default standard error."""
        for line in lines:
            if not self._quiet or isinstance(line, Problem):
                self.progress.clear()
                print(columns(line), file=where or sys.stderr)

    def rows(self, lines: Iterable[str], label: str = "writing (lines)", total: int | None = None) -> int:
        """Print rows, one per line, and return their number; *label*, *total*: as for `pieces`."""
        return self.pieces(self.pieces_of(lines), label, total)

    def pieces(self, pieces: Iterable[RowPiece], label: str = "writing (lines)", total: int | None = None) -> int:
        """Print rows that come in pieces, and return their number.

        There is no progress bar after the first row, except when the rows go elsewhere than to the terminal of the bar.
        *label*, *total*: those of that bar; None: `total`.
        """
        elsewhere, number = is_elsewhere(), 0
        for piece in pieces:
            expected = self.total if total is None else total
            if elsewhere and expected and number:
                self.progress(label, number, expected)
            elif not elsewhere and not number:
                self.progress.__exit__(None, None, None)
            write(piece)
            number += piece.number
        return number

    def pieces_of(self, lines: Iterable[str]) -> Iterator[RowPiece]:
        """Yield rows in pieces, for a terminal one by one."""
        at_once = 1 if sys.stdout.isatty() else _EVERY
        rest = iter(lines)
        while some := list(islice(rest, at_once)):
            yield RowPiece(text_of(some, self.paint).encode(), len(some))

    @contextmanager
    def file(self, place: str) -> Iterator[tuple[BinaryIO, Progress]]:
        """Yield a file to write, as `atomic_output` does, and what shows the progress of that.

        Nothing shows it while the file goes to the terminal of the bar. Raises OutputError.
        """
        is_bar_off = place == "-" and not is_elsewhere()
        if is_bar_off:
            self.progress.__exit__(None, None, None)
        with atomic_output(place) as file:
            yield file, silent if is_bar_off else self.progress

    def facts(self, facts: Mapping[str, object]) -> None:
        """Print one JSON object about what was done."""
        self.rows([json_line(facts)])


def is_elsewhere() -> bool:
    """Return whether a progress bar on the terminal disturbs nobody: standard output is a file, or a pipe to a program
    that does not itself print on this terminal, as `less` and `grep` may do, and `gzip >FILE` does not.
    """
    try:
        kind = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(kind) or (stat.S_ISFIFO(kind) and not _others_print_here())


def _others_print_here() -> bool:
    """Return whether a program of this pipeline has the terminal of the progress bar as its output.

    Where the system does not tell, so it is taken.
    """
    try:
        terminal, ours = os.ttyname(2), _Process.from_name("self")
        others = [_Process.from_name(name) for name in os.listdir("/proc") if name.isdecimal()]
    except (OSError, ValueError, AttributeError):
        return True
    by_number = {it.number: it for it in others if it is not None}
    waiting = ours
    while waiting is not None:  # what started this one waits for it
        by_number.pop(waiting.number, None)
        waiting = by_number.get(waiting.parent)
    return ours is None or any(it.group == ours.group and it.output in (terminal, "") for it in by_number.values())


class _Process(NamedTuple):
    """A process of Linux. *output*: the file that is its standard output, "" if that cannot be found out."""

    number: int
    parent: int
    group: int
    output: str

    @classmethod
    def from_name(cls, name: str) -> "_Process | None":
        """Return the process of a folder of /proc, None if it has ended."""
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            return None
        parent, group = text.rpartition(")")[2].split()[1:3]
        try:
            output = os.readlink(f"/proc/{name}/fd/1")
        except OSError:
            output = ""
        return cls(int(text.split()[0]), int(parent), int(group), output)
