"""The recorder for a QEMU without the plugin: it writes QEMU's log into the same ring as the plugin would.

The log comes through a pipe, so it is never on a disk; `LogServer` reads it and answers the commands of a session. When
a block is translated, the log shows its instructions and its end (in_asm). Of each execution of a block it shows:

* the block was left before an instruction that trapped (int),
* it was not begun: "Stopped execution of TB chain before",
* one of its instructions is executed alone: "cpu_io_recompile: rewound execution of TB to" (QEMU 7.2 names the block,
  not the instruction, so it is where execution continues),
* wfi leaves it in any case,
* and if the next block is in the middle of it and no jump leads there, an instruction before that left it.

Sources: as `decode.executed.qemu`; target/riscv/op_helper.c (helper_wfi).
"""

import errno
import fcntl
import os
import re
import select
import socket
import sys
import termios
from array import array
from pathlib import Path

from rvtrace_gdb.decode.executed.qemu import MODE_LINE, STOPPED_LINE, TRAP_LINE
from rvtrace_gdb.session.sources.qemu.records import Entered, instruction_of, may_follow
from rvtrace_gdb.transport.qemu.recorder import (
    BLOCK,
    CODE,
    CONTROL,
    DATA,
    FIELD,
    LOG,
    PARTIAL,
    RECORDING_BEGAN,
    TRAP,
    QemuError,
    Ring,
)

_TRACE = re.compile(rb"Trace (\d+): (\S+) (\[[0-9a-f]+/([0-9a-f]+)/\S+\])")
_REWOUND = re.compile(rb"cpu_io_recompile: rewound execution of TB to ([0-9a-f]+)")
_CODE = re.compile(rb"0x([0-9a-f]+):  ([0-9a-f]+)\s")
_WFI = b"10500073"
_UNKNOWN, _GUEST = 0xF, 4
_ENDLESS = "QEMU's log hangs at an instruction that its disassembler does not know: use --source plugin"
_LONGEST_BLOCK = 512  # instructions: QEMU's TCG_MAX_INSNS
_MOST_LINES = 1 << 16  # blocks remembered


class _LoggedHart:
    """*words* are not in the ring yet; the last block is held until the next line about it."""

    def __init__(self) -> None:
        self.words = array("I")
        self.last: Entered | None = None
        self.tracing = False
        self.rewound = False  # an instruction of the last block will be executed alone, and those after it


class LogSource:
    """Parses the log, which is fed in pieces of any size, and fills *ring*; blocks are written to its folder."""

    def __init__(self, ring: Ring, xlen: int) -> None:
        self._ring, self._xlen = ring, xlen
        self._harts = [_LoggedHart() for _ in range(ring.harts)]
        self._current = self._harts[0]  # the hart of the last line
        self._rest = b""
        self._blocks: list[Entered] = []
        self._numbers: dict[bytes, int] = {}  # numbers of blocks, by the text that describes them
        self._texts: list[bytes] = []  # and the reverse
        self._lines: dict[bytes, tuple[int, _LoggedHart]] = {}  # the parsed lines of the log
        self._homes: dict[bytes, int] = {}  # by where QEMU keeps the translation
        self._places: dict[bytes, int] = {}
        self._fresh: dict[int, int] = {}  # translated, not executed yet: number by address
        self._listing: list[tuple[int, bytes]] | None = None
        self._mode = _UNKNOWN
        self._code = os.open(ring.folder / CODE, os.O_WRONLY | os.O_APPEND)

    def close(self) -> None:
        os.close(self._code)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of the log."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        known = self._lines
        for line in lines:
            found = known.get(line)
            if found is not None and not self._fresh and self._listing is None:
                self._enter(*found)
            else:
                self._learn_line(line)
        for number, hart in enumerate(self._harts):
            self._flush(number, hart, keep=1)

    def record(self, on: bool) -> None:
        """Switch recording on or off. What was executed before it is switched on is not recorded."""
        self._ring.record(on)
        for hart in self._harts:
            hart.last, hart.tracing, hart.rewound = None, False, False
            hart.words = array("I")

    def settle(self) -> None:
        """Note that the whole log was fed, and all harts are stopped."""
        for number, hart in enumerate(self._harts):
            self._flush(number, hart, keep=0)
            self._ring.set_began(
                number, 0 if hart.rewound else _LONGEST_BLOCK
            )  # of the last block, unless the log reports it

    def _flush(self, number: int, hart: _LoggedHart, keep: int) -> None:
        if len(hart.words) > keep:
            end = len(hart.words) - keep
            self._ring.write(number, hart.words[:end])
            hart.words = hart.words[end:]

    def _enter(self, number: int, hart: _LoggedHart) -> None:
        self._current = hart
        if not self._ring.recording:
            return
        if not hart.tracing:
            hart.tracing = True
            hart.words.append(TRAP | RECORDING_BEGAN)
        block, last = self._blocks[number], hart.last
        if last is not None and block.pc in last.pcs and (hart.rewound or not may_follow(last.block, block.pc)):
            hart.words.append(PARTIAL | last.pcs.index(block.pc))
        hart.words.append(BLOCK | number)
        hart.last, hart.rewound = block, False

    def _learn_line(self, line: bytes) -> None:
        if self._listing is not None and self._lists(line):
            return
        if line.startswith(b"Trace "):
            self._traced(line)
        elif line.startswith(b"IN:"):
            self._listing, self._mode = [], _UNKNOWN
        elif found := TRAP_LINE.match(line):
            self._note_trap(found)
        elif (found := STOPPED_LINE.match(line)) and self._current.last is not None:
            if self._current.last.pc == int(found[1], 16) and self._current.words:
                self._current.words.pop()
                self._current.last = None  # the fate of the previous block is known: it led here
        elif (found := _REWOUND.match(line)) and self._current.last is not None:
            self._current.rewound = int(found[1], 16) in self._current.last.pcs

    def _traced(self, line: bytes) -> None:
        found = _TRACE.match(line)
        if found is None or int(found[1]) >= len(self._harts):
            return
        pc = int(found[4], 16)
        number = self._fresh.pop(pc, None)
        if number is None:
            number = self._homes.get(found[2], self._places.get(found[3]))
        if number is None:
            return  # its listing is missing: QEMU's log began later
        if self._blocks[number].pc != pc:
            number = self._moved(number, pc)
        if len(self._lines) >= _MOST_LINES:
            self._lines.clear()
            self._homes.clear()
        hart = self._harts[int(found[1])]
        self._lines[line], self._homes[found[2]], self._places[found[3]] = (number, hart), number, number
        self._enter(number, hart)

    def _lists(self, line: bytes) -> bool:
        """Parse a line of in_asm; return whether it was one."""
        assert self._listing is not None
        if found := _CODE.match(line):
            if self._listing and self._listing[-1][0] == int(found[1], 16):
                raise QemuError(f"0x{found[1].decode()}: {_ENDLESS}")
            if len(self._listing) < _LONGEST_BLOCK and not any(code == _WFI for _, code in self._listing[-1:]):
                self._listing.append((int(found[1], 16), found[2]))
        elif found := MODE_LINE.match(line):
            self._mode = int(found[1]) | (_GUEST if found[2] == b"1" else 0)
        elif line:
            listing, self._listing = self._listing, None
            if listing:
                self._translated(listing)
            return False
        return True

    def _translated(self, listing: list[tuple[int, bytes]]) -> None:
        pc = listing[0][0]
        self._fresh[pc] = self._block_number(b"%x %x %s\n" % (pc, self._mode, b" ".join(code for _, code in listing)))

    def _moved(self, number: int, pc: int) -> int:
        """Return the same code at another address: QEMU translates it once, wherever the memory is mapped."""
        text = self._texts[number]
        return self._block_number(b"%x %s" % (pc, text[text.index(b" ") + 1 :]))

    def _block_number(self, text: bytes) -> int:
        """Return the number of the block that this text describes, which may be a new one."""
        number = self._numbers.get(text)
        if number is None:
            pc, mode, *codes = text.split()
            instructions = [instruction_of(bytes.fromhex(code[-8:].decode())[::-1], self._xlen) for code in codes]
            number = self._numbers[text] = len(self._blocks)
            self._blocks.append(Entered(int(pc, 16), int(mode, 16), instructions, self._xlen))
            self._texts.append(text)
            self._write_down(text)
        return number

    def _write_down(self, text: bytes) -> None:
        if self._ring.failed:
            return
        try:
            if os.write(self._code, text) == len(text):
                self._ring.set_code_bytes(self._ring.code_bytes + len(text))
                return
            self._ring.fail(errno.ENOSPC)
        except OSError as error:
            self._ring.fail(error.errno or errno.EIO)

    def _note_trap(self, match: "re.Match[bytes]") -> None:
        number = int(match[1])
        if number >= len(self._harts) or not self._ring.recording:
            return
        hart = self._current = self._harts[number]
        interrupt, cause, epc, tval = match[2] == b"1", int(match[3], 16), int(match[4], 16), int(match[5] or b"0", 16)
        if not hart.tracing:
            return
        if hart.last is not None and epc in hart.last.pcs and (hart.rewound or not interrupt):
            hart.words.append(PARTIAL | hart.last.pcs.index(epc) + (not interrupt))
        hart.words.append(TRAP | interrupt)
        for value in (epc, cause, tval):
            hart.words.extend(DATA | value >> shift & FIELD for shift in (0, 30, 60))
        hart.last, hart.rewound = None, False


def pipe(path: Path) -> int:
    """Create a pipe at *path*; return its end for reading, which raises BlockingIOError when it is empty."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


_PIECE = 1 << 18  # bytes
_ROOM = 1 << 12  # blocks that a ring has room for while the log is read


class LogServer:
    """A server to call `serve` on repeatedly. *stalling*: record from the start, and let QEMU wait while the ring is
    full.
    """

    def __init__(self, folder: Path, words: int, harts: int, xlen: int, *, stalling: bool) -> None:
        self._log = pipe(folder / LOG)
        self._ring = Ring.create(folder, words, harts, stalling=stalling, recording=stalling)
        self._source = LogSource(self._ring, xlen)
        self._calls = socket.socket(socket.AF_UNIX)
        self._calls.bind(str(folder / CONTROL))
        self._calls.listen(8)
        self.failure: QemuError | None = None
        """Why the log cannot be read any further; what was read before is in the ring."""

    def serve(self, patience: float) -> bool:
        """Do what is due, waiting at most *patience* seconds; return whether there was any of the log."""
        if self._ring.stalling and any(self._ring.room(hart) < _ROOM for hart in range(self._ring.harts)):
            return True
        ready, _, _ = select.select([self._log, self._calls.fileno()], [], [], patience)
        if self._calls.fileno() in ready:
            self._obey()
        return self._log in ready and self._read_piece()

    def finish(self) -> None:
        """Note that QEMU has ended."""
        self._drain()
        self._source.settle()
        self._ring.end()

    def close(self) -> None:
        self._calls.close()
        os.close(self._log)
        self._source.close()
        self._ring.close()

    def _read_piece(self) -> bool:
        return bool(self._piece(_PIECE))

    def _piece(self, size: int) -> bytes:
        """Take at most *size* bytes of the log."""
        try:
            data = os.read(self._log, size)
        except BlockingIOError:
            return b""
        if self.failure is None:
            try:
                self._source.feed(data)
            except QemuError as error:
                self.failure = error
        return data

    def _drain(self) -> None:
        while self._read_piece():
            pass

    def _read_waiting(self) -> None:
        """Read what is in the pipe now; while the program runs it is never empty."""
        waiting = bytearray(4)
        fcntl.ioctl(self._log, termios.FIONREAD, waiting)
        left = int.from_bytes(waiting, sys.byteorder)
        while left > 0 and (data := self._piece(left)):
            left -= len(data)

    def _obey(self) -> None:
        caller, _ = self._calls.accept()
        with caller:
            caller.settimeout(1)
            try:
                command = caller.recv(64).decode(errors="replace").strip()
                self._read_waiting()  # what QEMU wrote before belongs to the time before
                if command == "settle":
                    self._source.settle()
                else:
                    self._source.record(command == "on")
                caller.sendall(b"ok\n")
            except OSError:
                return  # the requester has ended
