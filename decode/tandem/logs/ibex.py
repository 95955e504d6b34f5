"""The text trace of Ibex and CHERIoT-Ibex, `trace_core_00000000.log`.

Source: ibex, rtl/ibex_tracer.sv (printbuffer_dumpline) and doc/03_reference/tracer.rst; cheriot-ibex,
rtl/ibex_tracer.sv. A header, and a line for each instruction, in columns with a tab between them:

    Time  Cycle  PC        Insn      Decoded instruction      Register and memory contents
     130     61  00000150  4481      c.li    x9,0             x9=0x00000000
     142     67  0000015c  c622      c.swsp  x8,12(x2)        x2:0x00002000 x8:0x00000000 PA:0x0000200c store:0x00000000

xN:0x... is a register that was read, xN=0x... one that was written; of a capability (CHERIoT) the address, + and the
rest, whose first digit is the tag. Of a store that is shorter than a word CHERIoT-Ibex has ? in place of the digits
that are not written; Ibex always has 8 digits. --> marks an instruction that trapped (CHERIoT-Ibex). CSRs and traps are
not in the trace; the hart has M-mode and U-mode, and traps lead to M-mode.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.csrs import XRETS, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import reach
from rvtrace_gdb.decode.tandem.effects import destinations
from rvtrace_gdb.decode.tandem.encoder import Retired
from rvtrace_gdb.decode.tandem.logs.commits import CommitReader, HeldRegisters, Logged, UnloggedTraps, instr_of

_LINE = re.compile(
    rb"\s*\d+\s*\t\s*\d+\s*\t([0-9a-f]{8})\t\s*([0-9a-f]{8}|[0-9a-f]{4})\s*(?:\t(.*))?\r?\n?$", re.DOTALL
)
_HEADER = re.compile(rb"\s*Time\s+Cycle")
_REGISTER = re.compile(rb"x(\d|[12]\d|3[01])([:=])0x([0-9a-f]{8})(?:\+0x[0-9a-f]+)?")
_ADDRESS = re.compile(rb"PA:0x([0-9a-f]{8})")
_STORE = re.compile(rb"store:0x(\?*)([0-9a-f]{2,8})(?:\+0x([01])([0-9a-f]{8}))?")
_LOAD = re.compile(rb"load:0x[0-9a-f]{8}(?:\+0x[0-9a-f]+)?")
_CONTENT = re.compile(rb"(?:x\d+[:=]|PA:|store:|load:)0x")
_TRAPPED = b"-->"
_MACHINE = 3
_WORD, _CAPABILITY = 4, 8  # bytes


class _IbexLine(NamedTuple):
    """An instruction. *read*: registers before it; *stored*: (bytes, value)."""

    pc: int
    word: int
    trapped: bool
    read: tuple[tuple[int, int], ...]
    written: tuple[int, int] | None
    address: int | None
    stored: tuple[int, int] | None


class IbexTrace(CommitReader):
    """A reader of such a trace. What registers held at the beginning is known of those that are read before they are
    written.
    """

    expected = "a line of the Ibex tracer (time, cycle, pc, instruction, decoded, registers and memory)"
    supervisor = False

    def __init__(self, log: Log, xlen: int, image: Image | None = None, hart: int | None = None) -> None:
        super().__init__(log, xlen, image, hart)
        self._traps, self._destinations = UnloggedTraps(xlen), destinations(xlen)

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether the first line is the header, or an instruction."""
        return bool(head) and bool(_HEADER.match(head[0]) or _LINE.match(head[0]))

    @classmethod
    def xlen_in(cls, head: Sequence[bytes]) -> int | None:
        """Return 32."""
        return 32

    def commits(self) -> Iterator[Logged]:
        """Yield what the hart did, oldest first, with its traps, of which the trace has no cause."""
        held, mode = dict[int, int](), None
        is_whole = True
        for line, following in pairwise(chain(self._lines(), (None,))):
            assert line is not None
            if any(held.get(number, value) != value for number, value in line.read):
                is_whole, held = False, {}
                yield HeldRegisters(tuple((X + number, value) for number, value in line.read))
            for number, value in line.read:
                if number not in held and is_whole:
                    self.initial[X + number] = value
                held[number] = value
            if line.written is not None:
                held[line.written[0]] = line.written[1]
            for retired in self._traps.completed(self._retired(line, following, mode), _MACHINE):
                mode = mode if retired.privilege is None else retired.privilege
                yield retired
            mode = None if line.word in XRETS else mode
        if self._traps.count:
            self.notes.append(f"{self._traps.note}: their causes are unknown")

    def _retired(self, line: _IbexLine, following: _IbexLine | None, mode: int | None) -> Retired:
        pc, instr = None if following is None else following.pc, instr_of(line.word)
        stored = line.stored
        if stored is not None and not stored[0]:
            found = reach(line.word, self.xlen)
            size = found.size if found is not None and 0 < found.size < _WORD else _WORD
            stored = size, stored[1] & (1 << 8 * size) - 1
        retired = Retired(
            pc, instr, gpr=line.written, eaddr=line.address, memdata=stored, own=line.pc, own_privilege=mode
        )
        return retired._replace(privilege=_MACHINE) if self._has_trapped(line, retired) else retired

    def _has_trapped(self, line: _IbexLine, retired: Retired) -> bool:
        """Return whether it is marked, or did not write the register that it names and what follows is elsewhere."""
        unwritten = line.written is None and any(X < it < X + 32 for it in self._destinations[line.word])
        return line.trapped or (unwritten and not self._traps.follows(retired))

    def _lines(self) -> Iterator[_IbexLine]:
        for batch in self.log.batches():
            for index, text in enumerate(batch):
                if _HEADER.match(text) or not text.strip():
                    continue
                match = _LINE.match(text)
                line = None if match is None or not text.endswith(b"\n") else self._ibex_line(match)
                if line is not None:
                    self.compare(line.pc, instr_of(line.word))
                    yield line
                elif error := self.bad_line(index, text):
                    raise error

    def _ibex_line(self, match: re.Match[bytes]) -> _IbexLine | None:
        """Return the line; None: it is damaged."""
        read, written, address, stored = dict[int, int](), [], [], []
        decoded = match[3] or b""
        for content in decoded.split():
            if not _CONTENT.match(content):
                continue
            if found := _REGISTER.fullmatch(content):
                number, value = int(found[1]), int(found[3], 16)
                if found[2] == b"=":
                    written.append((number, value))
                elif number:
                    read[number] = value
            elif found := _ADDRESS.fullmatch(content):
                address.append(int(found[1], 16))
            elif found := _STORE.fullmatch(content):
                stored.append(_stored(found))
            elif not _LOAD.fullmatch(content):
                return None
        if max(len(written), len(address), len(stored)) > 1 or len(stored) > len(address):
            return None
        return _IbexLine(
            int(match[1], 16), int(match[2], 16), decoded.startswith(_TRAPPED), tuple(read.items()),
            next(iter(written), None), next(iter(address), None), next(iter(stored), None),
        )  # fmt: skip


def _stored(store: re.Match[bytes]) -> tuple[int, int]:
    """Return (bytes, value) of a store; 0 bytes: the instruction tells how many."""
    value = int(store[2], 16)
    if store[4] is not None:
        return _CAPABILITY, value | int(store[4], 16) << 32
    return (len(store[2]) // 2 if store[1] else 0), value
