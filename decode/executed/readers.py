"""Execution logs and how they are read: lists of addresses, and the logs of Spike. QEMU's are in `qemu`.

A log is plain or gzip, a file or standard input, and is read in pieces of constant size (`Log`). A `Reader` makes of it
pieces of what ran, which are addresses, traps and contexts.

A list of addresses has one a line, hexadecimal, with or without 0x, as most simulators can be made to print them. The
lists of the reference code (riscv-non-isa/tg-nexus-trace, refcode/c/NexRvConv.c), with the kind and size of each
instruction ("0x20010522,L4") or without, are read too, up to ".end" where they have one. Comments start with #, ; or
//. A list does not name its traps.

Logs of Spike, the RISC-V ISA simulator, are made by `-l`, `--log-commits`, or both. Source: riscv-isa-sim,
riscv/processor.cc (disasm, take_trap) and riscv/execute.cc (commit_log_print_insn):

    core   0: 0x0000000080000184 (0x00000000) c.unimp                   -l, before the instruction is executed
    core   0: Executed 12 times                                         -l, of the last one, before another one
    core   0: exception trap_illegal_instruction, epc 0x0000000080000184
    core   0:           tval 0x0000000000000000
    core   0: exception interrupt #7, epc 0x00000000800000b0
    core   0: 3 0x0000000080000420 (0x34202973) x18 0x0000000000000002  --log-commits: privilege, what it wrote

With -l every trap is in the log. Commits alone do not tell them, but they tell privilege modes and the context CSRs.
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

from rvtrace_gdb.decode.executed.encoder_ingress import Trap
from rvtrace_gdb.decode.program.csrs import Context
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction, length
from rvtrace_gdb.support.errors import RvtraceError

HEAD = 64
"""How many lines are read to recognize a format."""

_LONGEST_HEAD_LINE = 1 << 12  # bytes; a file without line ends is no log
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
            self._raw = self._open(path)
            self.size = _size(self._raw)
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

    def _open(self, path: str) -> io.BufferedReader:
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
            self._head = self._read(lambda: list(islice(short_lines, HEAD)))
        return self._head

    def batches(self) -> Iterator[list[bytes]]:
        """Yield all lines, with their ends, in batches of about a quarter of a MiB."""
        batch = self.head()
        while batch:
            yield batch
            self.line += len(batch)
            batch = self._read(lambda: self._lines.readlines(_BUFFER))

    def _read(self, lines: Callable[[], list[bytes]]) -> list[bytes]:
        try:
            return lines()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise LogError(self.name, None, f"is a damaged gzip file ({error})") from None
        except OSError as error:
            raise LogError(self.name, None, f"cannot be read: {error.strerror}") from None

    def error(self, index: int, problem: str) -> LogError:
        """Return the error for the line at *index* of the batch yielded last."""
        return LogError(self.name, self.line + index + 1, problem)


def _size(file: BinaryIO) -> int | None:
    """Return the size of a file on disk; None for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


Piece = list[int] | Trap | Context
"""Addresses of instructions that retired, in order; or what happened between two of them."""

_SHOWN = 60  # characters of a bad line


class Reader(ABC):
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

    @classmethod
    @abstractmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a log that begins with these lines has this format."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """Yield what ran, oldest first. Raises LogError."""

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


class PendingTrap(NamedTuple):
    """A trap whose handler is what runs next."""

    epc: int
    interrupt: bool
    cause: int
    tval: int = 0


class EventReader(Reader):
    """A reader of a log that has traps and privilege modes besides instructions."""

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        super().__init__(log, image, hart)
        self._out: list[Piece] = []  # not yielded yet
        self._pcs: list[int] = []  # retired, not in `_out` yet
        self._trap: PendingTrap | None = None

    def _take(self) -> list[Piece]:
        """Return the pieces that were read since the last call."""
        out, pcs = self._out, self._pcs
        self._out, self._pcs = [], []
        return [*out, pcs] if pcs else out

    def _cut(self, mark: Trap | Context) -> None:
        """Put *mark* after all instructions that have retired."""
        self._out += [self._pcs, mark] if self._pcs else [mark]
        self._pcs = []


_LINE = re.compile(
    rb"\s*(?:(?:0[xX])?([0-9a-fA-F]{1,16})(?:,(?:BN|B|L|[JC]I?|R)[24])?\s*)?(?:(?:#|;|//).*)?", re.DOTALL
)
_END = b".e"
_SIGN_EXTENDED = 0xFFFF_FFFF


class PcListReader(Reader):
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

    def pieces(self) -> Iterator[Piece]:
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
                pcs.append(self._address(index, match[1]))
        return pcs, False

    def _address(self, index: int, digits: bytes) -> int:
        pc = int(digits, 16)
        if self.image.xlen == 32 and pc >> 32 == _SIGN_EXTENDED:
            pc &= 0xFFFF_FFFF
        if pc >> self.image.xlen:
            raise self.log.error(index, f"0x{pc:x} is not an address of a {self.image.xlen}-bit hart")
        if pc & 1:
            raise self.log.error(index, f"no instruction can be at 0x{pc:x}, an odd address")
        return pc


_CORE = rb"core +(\d+): "
_INSTRUCTION = re.compile(rb"(?:" + _CORE + rb")?(?:(\d) )?0x([0-9a-f]+) \(0x([0-9a-f]+)\)")
_EXCEPTION = re.compile(_CORE + rb"exception (?:trap_(\w+)|interrupt #(\d+)|[^,]*), epc 0x([0-9a-f]+)\s")
_TVAL = re.compile(_CORE + rb" *tval 0x([0-9a-f]+)\s")
_REPEATED = re.compile(_CORE + rb"Executed (\d+) times\s")
_SYMBOL = re.compile(_CORE + rb">>>>")
_CONTEXT = re.compile(rb" c\d+_([sh]context) 0x([0-9a-f]+)")

# Privileged Architecture, "Machine Cause Register", under the names Spike gives them.
CAUSES = {
    b"instruction_address_misaligned": 0, b"instruction_access_fault": 1, b"illegal_instruction": 2, b"breakpoint": 3,
    b"load_address_misaligned": 4, b"load_access_fault": 5, b"store_address_misaligned": 6, b"store_access_fault": 7,
    b"user_ecall": 8, b"supervisor_ecall": 9, b"virtual_supervisor_ecall": 10, b"machine_ecall": 11,
    b"instruction_page_fault": 12, b"load_page_fault": 13, b"store_page_fault": 15, b"double_trap": 16,
    b"software_check": 18, b"instruction_guest_page_fault": 20, b"load_guest_page_fault": 21,
    b"virtual_instruction": 22, b"store_guest_page_fault": 23,
}  # fmt: skip
CUSTOM_CAUSE = 24  # the first one for custom use: for names not listed
_FETCH_FAULTS = (1, 12, 20)  # no instruction was fetched, so none was logged

_LOOP_PIECE = 1 << 14  # addresses; a loop of one instruction comes in pieces of this size, the same object
_LISTED = -1  # in place of the privilege mode: the line is one of -l
_OTHER_HART = -2  # the line is about another hart


class SpikeReader(EventReader):
    """A reader of Spike's logs. The instruction words in them are compared with the image."""

    expected = "a line of a Spike log (core   0: 0x... (0x...) ..., or core   0: 3 0x... (0x...) ...)"
    advice = "give Spike -l, with or without --log-commits"

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        super().__init__(log, image, hart)
        self._mask = (1 << image.xlen) - 1
        self._known: dict[bytes, tuple[int, int]] = {}  # (mode, pc) by a line up to the instruction word
        self._last: int | None = None  # the last instruction: what follows tells whether it retired
        self._times = 1
        self._committed = False
        self._commits = False  # the log has commits
        self._context = Context()
        self._new_context = False  # holds from after the last instruction on

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a line is one of Spike's."""
        return any(_INSTRUCTION.match(line) for line in head)

    def pieces(self) -> Iterator[Piece]:
        """Yield what ran, oldest first. Raises LogError."""
        known = self._known
        for batch in self.log.batches():
            for index, line in enumerate(batch):
                entry = known.get(line[: line.find(b")") + 1]) or self._learn(index, line)
                if entry is None:
                    continue
                mode, pc = entry
                if mode == _LISTED:
                    self._begin(pc)
                elif mode != _OTHER_HART:
                    self._commit(mode, pc, line)
            yield from self._take()
        if self._committed or not self._commits:
            self._settle(None)
        yield from self._take()

    def _learn(self, index: int, line: bytes) -> tuple[int, int] | None:
        """Return the meaning of a line that occurs for the first time; None if it is not about an instruction."""
        match = _INSTRUCTION.match(line)
        if match is None:
            self._other(index, line)
            return None
        hart, mode, digits, word = match.groups()
        if not self._is_of_hart(index, int(hart or b"0")):
            entry = (_OTHER_HART, 0)
        else:
            pc = int(digits, 16) & self._mask
            self._check_code(index, pc, int(word, 16))
            entry = (_LISTED if mode is None else int(mode), pc)
            self.exact = self.exact or mode is None
            self._commits = self._commits or mode is not None
        self._known[match[0]] = entry
        return entry

    def _check_code(self, index: int, pc: int, word: int) -> None:
        """Raise LogError if the image has another instruction at *pc*."""
        try:
            size = length(word & 0xFFFF)
        except UndecodableInstruction:  # it will trap
            size = 2
        data = (word & (1 << 8 * size) - 1).to_bytes(size, "little")
        try:
            in_image = self.image.read(pc, min(size, 4))  # longer ones are not logged in full
        except CodeMissing:
            self.missing[pc] = data
            return
        if in_image != data[:4]:
            raise self.log.error(
                index,
                f"at 0x{pc:x} the instruction 0x{int.from_bytes(data[:4], 'little'):x} ran, but {self.image.path} has"
                f" 0x{int.from_bytes(in_image, 'little'):x} there: is this the program that ran?",
            )

    def _begin(self, pc: int) -> None:
        """Begin the next instruction: the one before it has retired."""
        if self._trap is None and self._times == 1 and not self._new_context and self._last is not None:
            self._pcs.append(self._last)
        else:
            self._settle(pc)
        self._last, self._committed = pc, False

    def _commit(self, mode: int, pc: int, line: bytes) -> None:
        if pc != self._last or self._committed:
            self._begin(pc)
        self._committed = True
        if mode != self._context.prv:
            self._context = self._context._replace(prv=mode)
            self._cut(self._context)
        if b"context 0x" in line:
            self._write_contexts(line)

    def _write_contexts(self, line: bytes) -> None:
        for name, value in _CONTEXT.findall(line):
            written = int(value, 16)
            if name == b"scontext":
                self._context = self._context._replace(scontext=written)
            else:
                self._context = self._context._replace(hcontext=written)
            self._new_context = True

    def _settle(self, next_pc: int | None) -> None:
        """Output the last instruction and what came after it, before *next_pc*."""
        if self._last is not None:
            pieces, rest = divmod(self._times, _LOOP_PIECE)
            self._pcs += [self._last] * rest
            if pieces:
                self._out += [self._pcs, *[[self._last] * _LOOP_PIECE] * pieces]
                self._pcs = []
        if self._new_context:
            self._cut(self._context)
        if self._trap is not None and next_pc is not None:
            self._cut(Trap(*self._trap, handler=next_pc))
        self._last, self._times, self._trap, self._new_context = None, 1, None, False

    def _other(self, index: int, line: bytes) -> None:
        """Process a line that is not about an instruction; lines that do not begin with `core` are program output."""
        if not line.startswith(b"core"):
            return
        for pattern, meaning in _OTHERS:
            if match := pattern.match(line):
                if self._is_of_hart(index, int(match[1])):
                    meaning(self, match)
                return
        self._bad_line(index, line)

    def _exception(self, match: re.Match[bytes]) -> None:
        _, name, interrupt, digits = match.groups()
        epc = int(digits, 16) & self._mask
        if self._trap is not None:  # the handler could not be fetched
            self._settle(epc)
        self.exact = True
        cause = int(interrupt) if interrupt else CAUSES.get(name, CUSTOM_CAUSE)
        self._trap = PendingTrap(epc, bool(interrupt), cause)
        if not interrupt and epc == self._last and not self._committed and cause not in _FETCH_FAULTS:
            self._times -= 1

    def _tval(self, match: re.Match[bytes]) -> None:
        if self._trap is not None:
            self._trap = self._trap._replace(tval=int(match[2], 16) & self._mask)

    def _repeated(self, match: re.Match[bytes]) -> None:
        """Repeat an instruction that jumps to itself: it is listed once, and this line comes when another one is
        listed.
        """
        if not self._commits:
            self._times += int(match[2]) - 1

    def _symbol(self, match: re.Match[bytes]) -> None:
        """Process the symbol name at the next instruction."""


_OTHERS = (
    (_EXCEPTION, SpikeReader._exception),
    (_TVAL, SpikeReader._tval),
    (_REPEATED, SpikeReader._repeated),
    (_SYMBOL, SpikeReader._symbol),
)
