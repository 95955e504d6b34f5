"""Execution logs and how they are read: lists of addresses. Spike's logs are in `spike`, QEMU's in `qemu`.

A log is plain or gzip, a file or standard input, and is read in pieces of constant size (`Log`). A `LogReader` makes of
it pieces of what ran, which are addresses, traps and contexts.

A list of addresses has one a line, hexadecimal, with or without 0x, as most simulators can be made to print them. The
lists of the reference code (riscv-non-isa/tg-nexus-trace, refcode/c/NexRvConv.c), with the kind and size of each
instruction ("0x20010522,L4") or without, are read too, up to ".end" where they have one. Comments start with #, ; or
//. A list does not name its traps.
"""

import gzip
import io
import os
import re
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import islice
from operator import or_
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.errors import RvtraceError

HEAD = 64
"""How many lines are read to recognize a format."""

_LONGEST_HEAD_LINE = 1 << 12  # bytes; a file without line ends is not a log
_BUFFER = 1 << 18  # bytes
_GZIP = b"\x1f\x8b"


class LogError(RvtraceError):
    """An execution log cannot be used. *file*: its name; *line*: the number of the line at fault, if there is one."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = file, line, problem
        super().__init__(f"{file}: {problem}" if line is None else f"{file}, line {line}: {problem}")


class Log:
    """The lines of the file *path*, or of standard input for `-`, used as `with Log(path) as log:`.

    gzip is recognized by its first bytes. Every method that reads raises LogError if the file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == "-" else path
        self.line = 0
        """How many lines precede the batch yielded last."""
        self._head: list[bytes] = []
        self._opened = ExitStack()
        try:
            self._raw = self._open_file(path)
            self.size = _file_size(self._raw)
            compressed = self._raw.peek(2)[:2] == _GZIP
        except OSError as error:
            raise LogError(self.name, None, f"cannot be read: {error.strerror}") from None
        self._lines: BinaryIO = self._raw
        if compressed:
            self._lines = io.BufferedReader(gzip.GzipFile(fileobj=self._raw), _BUFFER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def _open_file(self, path: str) -> io.BufferedReader:
        if path != "-":
            return io.BufferedReader(self._opened.enter_context(open(path, "rb", buffering=0)), _BUFFER)
        assert isinstance(sys.stdin.buffer, io.BufferedReader)
        return sys.stdin.buffer

    @property
    def done(self) -> int:
        """Bytes of the file read so far, of `size`; valid only if that is known."""
        return self._raw.tell()

    def head(self) -> list[bytes]:
        """Return the first lines; `batches` yields them again. To be called before it."""
        if not self._head:
            short_lines = iter(lambda: self._lines.readline(_LONGEST_HEAD_LINE), b"")
            self._head = self._read_lines(lambda: list(islice(short_lines, HEAD)))
        return self._head

    def batches(self) -> Iterator[list[bytes]]:
        """Yield all lines, with their ends, in batches of about a quarter of a MiB."""
        batch = self.head()
        while batch:
            yield batch
            self.line += len(batch)
            batch = self._read_lines(lambda: self._lines.readlines(_BUFFER))

    def _read_lines(self, lines: Callable[[], list[bytes]]) -> list[bytes]:
        try:
            return lines()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise LogError(self.name, None, f"is a damaged gzip file ({error})") from None
        except OSError as error:
            raise LogError(self.name, None, f"cannot be read: {error.strerror}") from None

    def error(self, index: int, problem: str) -> LogError:
        """Return the error for the line at *index* of the batch yielded last."""
        return LogError(self.name, self.line + index + 1, problem)


def _file_size(file: BinaryIO) -> int | None:
    """Return the size of a file on disk; None for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


LogPiece = list[int] | IngressTrap | ProgramContext
"""Addresses of instructions that retired, in order; or what happened between two of them."""

_SHOWN = 60  # characters of a bad line


class LogReader(ABC):
    """The reader of one format. `pieces` reads as much of the log as is consumed; the attributes describe that part.

    hart     whose lines are read; None until the first line names one
    exact    the log names every trap, so a step the code cannot make is an error; else it is taken for a trap
    missing  instructions of the pieces that are in the log but not in the image; the user of the pieces removes them
    notes    what was left out, a line each
    """

    expected: str
    """The form of a line, for messages."""

    advice: str
    """How to get a log that names its traps, for messages."""

    can_name_traps = True
    """Whether some logs of this format name their traps."""

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        self.log, self.image, self.hart = log, image, hart
        self.exact = False
        self.missing: dict[int, bytes] = {}
        self.notes: list[str] = []
        self._all_harts_known = hart is not None
        self._others = self._first_other = 0  # lines that are none of this format's, and the number of the first

    @classmethod
    @abstractmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a log that begins with these lines has this format."""

    @abstractmethod
    def pieces(self) -> Iterator[LogPiece]:
        """Yield what ran, oldest first. Raises LogError."""

    def _other_line(self, index: int) -> None:
        """Count a line that is none of this format's: what the program printed, as a rule."""
        self._others += 1
        self._first_other = self._first_other or self.log.line + index + 1

    def _note_others(self) -> None:
        """Note how many lines were none of this format's."""
        if self._others:
            what = "1 line is" if self._others == 1 else f"{self._others} lines are"
            which = f"line {self._first_other}" if self._others == 1 else f"the first is line {self._first_other}"
            self.notes.append(f"{what} not the simulator's and not used, as what the program prints: {which}")

    def _bad_line(self, index: int, line: bytes) -> None:
        """Raise the error for a malformed line, unless it is the last one and cut off."""
        if not line.endswith(b"\n"):
            self.notes.append("the last line is cut off and was ignored")
            return
        text = line.decode("ascii", "replace").strip()
        text = "".join(character if character.isprintable() else "?" for character in text)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
        raise self.log.error(index, f"expected {self.expected}, found `{shown}`")

    def _is_of_hart(self, index: int, hart: int) -> bool:
        """Return whether a line about *hart* counts. Raises LogError for a second hart if none was chosen."""
        if self.hart is None:
            self.hart = hart
        elif hart != self.hart and not self._all_harts_known:
            raise self.log.error(index, f"hart {hart} after lines of hart {self.hart}: choose one with --hart")
        return hart == self.hart


class LoggedTrap(NamedTuple):
    """A trap whose handler is what runs next."""

    epc: int
    interrupt: bool
    cause: int
    tval: int = 0


class EventReader(LogReader):
    """A reader of a log that has traps and privilege modes besides instructions."""

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        super().__init__(log, image, hart)
        self._out: list[LogPiece] = []  # not yielded yet
        self._pcs: list[int] = []  # retired, not in `_out` yet
        self._trap: LoggedTrap | None = None

    def _take_pieces(self) -> list[LogPiece]:
        """Return the pieces that were read since the last call."""
        out, pcs = self._out, self._pcs
        self._out, self._pcs = [], []
        return [*out, pcs] if pcs else out

    def _cut(self, mark: IngressTrap | ProgramContext) -> None:
        """Put *mark* after all instructions that have retired."""
        self._out += [self._pcs, mark] if self._pcs else [mark]
        self._pcs = []


_LINE = re.compile(
    rb"\s*(?:(?:0[xX])?([0-9a-fA-F]{1,16})(?:,(?:BN|B|L|[JC]I?|R)[24])?\s*)?(?:(?:#|;|//).*)?", re.DOTALL
)
_END = b".e"
_SIGN_EXTENDED = 0xFFFF_FFFF


class PcListReader(LogReader):
    """A reader of lists of addresses."""

    expected = "an address in hexadecimal (80000000, 0x80000000, or 0x80000000,L4)"
    advice = "a list of addresses does not show traps; the logs of Spike (-l) and QEMU (-d exec,nochain,int) do"
    can_name_traps = False

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether the first line that is neither blank nor a comment is an address."""
        for line in head:
            match = _LINE.fullmatch(line)
            if match is None or match[1]:
                return match is not None
        return False

    def pieces(self) -> Iterator[LogPiece]:
        """Yield the addresses, in lists of a batch of lines each. Raises LogError."""
        for batch in self.log.batches():
            ended = False
            try:
                pcs = [int(line, 16) for line in batch]  # holds for nothing but bare addresses
            except ValueError:
                pcs, ended = self._line_by_line(batch)
            else:
                together = reduce(or_, pcs)
                if together & 1 or not 0 <= together < 1 << self.image.xlen:
                    pcs, ended = self._line_by_line(batch)
            yield pcs
            if ended:
                return

    def _line_by_line(self, batch: list[bytes]) -> tuple[list[int], bool]:
        """Return the addresses in *batch*, and whether the list ends there."""
        pcs: list[int] = []
        for index, line in enumerate(batch):
            if line.startswith(_END):
                return pcs, True
            match = _LINE.fullmatch(line)
            if match is None:
                self._bad_line(index, line)
            elif match[1]:
                pcs.append(self._listed_pc(index, match[1]))
        return pcs, False

    def _listed_pc(self, index: int, digits: bytes) -> int:
        pc = int(digits, 16)
        if self.image.xlen == 32 and pc >> 32 == _SIGN_EXTENDED:
            pc &= 0xFFFF_FFFF
        if pc >> self.image.xlen:
            raise self.log.error(index, f"0x{pc:x} is not an address of a {self.image.xlen}-bit hart")
        if pc & 1:
            raise self.log.error(index, f"no instruction can be at 0x{pc:x}, an odd address")
        return pc
