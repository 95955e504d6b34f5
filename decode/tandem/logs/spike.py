"""From Spike's commit log to a tandem trace: `spike -l --log-commits`, or `--log-commits` alone.

Source: riscv-isa-sim, riscv/execute.cc (commit_log_print_insn) and riscv/processor.cc (take_trap); the lines are shown
in `decode/executed/readers.py`. The log has what an instruction wrote, but not what a trap changed besides xepc, xcause
and xtval: the trace has no mstatus there, and no instruction that was not logged.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.executed.readers import Log, LogError
from rvtrace_gdb.decode.executed.spike import CAUSES, CUSTOM_CAUSE, own_part
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import reach
from rvtrace_gdb.decode.tandem.effects import bus_operation, is_atomic
from rvtrace_gdb.decode.tandem.encoder import Retired
from rvtrace_gdb.decode.tandem.logs.commits import CommitReader, Logged, UnloggedTraps, UnloggedWrites, instr_of
from rvtrace_gdb.decode.tandem.protocol import Instr

_CORE = rb"core +(\d+): "
_LISTED = re.compile(_CORE + rb"0x([0-9a-f]+) \(0x([0-9a-f]+)\)")
_COMMIT = re.compile(_CORE + rb"(\d) 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(.*)")
_EXCEPTION = re.compile(_CORE + rb"exception (?:trap_(\w+)|interrupt #(\d+)|[^,]*), epc 0x([0-9a-f]+)\s")
_TVAL = re.compile(_CORE + rb" *tval 0x([0-9a-f]+)\s")
_WITHOUT_STEP = re.compile(_CORE + rb"(?:Executed \d+ times\s|>>>>| *tval )")
_WRITE = re.compile(rb" (?:([xf])(\d+) +0x([0-9a-f]+)|c(\d+)_\S+ 0x([0-9a-f]+)|mem 0x([0-9a-f]+)(?: 0x([0-9a-f]+))?)")
_FETCH_FAULTS = (1, 12, 20)
_MACHINE = 3


_VALUE_DIGITS, _STORE_DIGITS = (0, 8, 16), (0, 2, 4, 8, 16)  # 0: there is none

_CommitWrites = Sequence[tuple[bytes, ...]]  # what `_WRITE` finds


class _CommitStep(NamedTuple):
    """An instruction that retired, or a trap; its address, and the mode of the hart."""

    pc: int
    mode: int | None
    word: int | None
    writes: _CommitWrites = ()
    cause: int | None = None
    interrupt: bool = False
    tval: int = 0


class CommitLog(CommitReader):
    """A reader of a commit log. The image is also the source of instructions that trapped, if the log does not have
    them. Reading raises LogError also for a malformed line that begins like Spike's, and for a log of the other XLEN.
    """

    expected = "what `spike -l --log-commits` writes (core   0: 3 0x... (0x...) x5  0x...)"

    def __init__(self, log: Log, xlen: int, image: Image | None = None, hart: int | None = None) -> None:
        super().__init__(log, xlen, image, hart)
        self._listed: tuple[int, int] | None = None
        self._has_listing = False  # of -l, which names traps
        self._gprs: dict[int, int] = {}

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a line is one of Spike's."""
        return any(_COMMIT.match(line) or _LISTED.match(line) for line in _own_parts(head))

    @classmethod
    def xlen_in(cls, head: Sequence[bytes]) -> int | None:
        """Return XLEN by the digits of the first address; old versions write 16 of RV32, too."""
        found = next((match for match in map(_COMMIT.match, _own_parts(head)) if match), None)
        return None if found is None else 32 if len(found[3]) == 8 else 64

    def commits(self) -> Iterator[Logged]:
        """Yield what the hart did, oldest first, with the traps that the log does not name. To be called once."""
        traps, writes, has_commits = UnloggedTraps(self.xlen), UnloggedWrites(self.xlen), False
        for retired, following in pairwise(chain(self.retired(), (None,))):
            assert retired is not None
            has_commits = has_commits or retired.own_privilege is not None
            for one in traps.completed(retired, None if following is None else following.own_privilege):
                yield writes.completed(one)
        if not has_commits:
            self.check_hart()
            raise LogError(self.log.name, None, f"has no commit lines: expected {self.expected}")
        if traps.count:
            missing = ", though `spike -l` names traps: lines may be missing there"
            self.notes.append(f"{traps.note}{missing if self._has_listing else ': `spike -l` names them'}")

    def retired(self) -> Iterator[Retired]:
        """Yield what the hart did, oldest first. To be called once."""
        step = None
        for following in self._steps():
            if step is not None:
                yield self._retired(step, following)
            step = following
        if step is not None and step.cause is None:
            yield self._retired(step, None)

    def _steps(self) -> Iterator[_CommitStep]:
        trap: _CommitStep | None = None
        for batch in self.log.batches():
            for index, line in enumerate(batch):
                if not line.endswith(b"\n"):  # it was cut off
                    continue
                line = self._own_part(index, line)
                if not line:
                    continue
                if trap is not None:
                    match = _TVAL.match(line)
                    yield trap._replace(tval=int(match[2], 16) & self.mask) if match else trap
                    trap = None
                    if match:
                        continue
                if match := _COMMIT.match(line):
                    if self.is_ours(index, int(match[1])):
                        pc, word = self._parsed_pc(index, match[3]), int(match[4], 16)
                        self.compare(pc, instr_of(word))
                        yield _CommitStep(pc, int(match[2]), word, self._writes(index, match[5]))
                elif match := _LISTED.match(line):
                    if self.is_ours(index, int(match[1])):
                        self._has_listing = True
                        self._listed = int(match[2], 16) & self.mask, int(match[3], 16)
                elif match := _EXCEPTION.match(line):
                    trap = self._trap_step(match) if self.is_ours(index, int(match[1])) else None
                elif not _WITHOUT_STEP.match(line):
                    raise self.log.error(index, "is not a line of a Spike log that can be read: the log is damaged")
        if trap is not None:
            yield trap

    def _own_part(self, index: int, line: bytes) -> bytes:
        """Return what is Spike's of a line, nothing if it is what the program printed. Raises LogError."""
        try:
            return own_part(line) or b""
        except ValueError:
            raise self.log.error(index, "is not one line of a Spike log, but parts of some") from None

    def _parsed_pc(self, index: int, digits: bytes) -> int:
        """Return the address: Spike writes 8 digits on RV32, or, in old versions, 16 with sign extension."""
        pc = int(digits, 16)
        other = len(digits) == 16 and pc >> 31 not in (0, (1 << 33) - 1) if self.xlen == 32 else len(digits) == 8
        if other:
            ran = 96 - self.xlen
            raise self.log.error(index, f"RV{ran} ran, and the program is RV{self.xlen}: is this the right ELF?")
        return pc & self.mask

    def _writes(self, index: int, text: bytes) -> _CommitWrites:
        found = _WRITE.findall(text)
        for _, _, value, _, csr_value, _, data in found:
            if len(value or csr_value) not in _VALUE_DIGITS or len(data) not in _STORE_DIGITS:
                raise self.log.error(index, "a value has digits too few or too many: the log is damaged")
        return found

    def _trap_step(self, match: re.Match[bytes]) -> _CommitStep:
        epc = int(match[4], 16) & self.mask
        cause = int(match[3]) if match[3] else CAUSES.get(match[2], CUSTOM_CAUSE)
        word = None if match[3] or cause in _FETCH_FAULTS else self._word_at(epc)
        return _CommitStep(epc, None, word, cause=cause, interrupt=bool(match[3]))

    def _word_at(self, pc: int) -> int | None:
        """Return the instruction that trapped, from the log or from the program."""
        if self._listed is not None and self._listed[0] == pc:
            return self._listed[1]
        found = self.in_program(pc)
        return None if found is None else found.word

    def _retired(self, step: _CommitStep, following: _CommitStep | None) -> Retired:
        pc = None if following is None else following.pc
        instr = None if step.word is None else instr_of(step.word)
        if step.cause is not None:
            return self._trapped(step, following, pc, instr)
        returns = instr is not None and instr.word in csrs.XRETS
        changed = following is not None and returns and following.mode is not None
        privilege = following.mode if changed and following is not None else None
        retired = Retired(pc, instr, own=step.pc, privilege=privilege, own_privilege=step.mode)
        return self._with_writes(retired, step.writes)

    def _trapped(
        self, step: _CommitStep, following: _CommitStep | None, pc: int | None, instr: Instr | None
    ) -> Retired:
        to = _MACHINE if following is None or following.mode is None else following.mode
        taken = csrs.TRAPS[0] if to == _MACHINE else csrs.TRAPS[1]
        cause = (step.cause or 0) | step.interrupt << self.xlen - 1
        written = ((taken.cause, cause), (taken.epc, step.pc), (taken.tval, step.tval))
        return Retired(pc, instr, csrs=written, privilege=to, own=step.pc)

    def _with_writes(self, retired: Retired, writes: _CommitWrites) -> Retired:
        """Add what the instruction wrote, according to the log."""
        for kind, number, value, csr, csr_value, address, data in writes:
            if kind == b"x":
                retired = retired._replace(gpr=(int(number), int(value, 16) & self.mask))
            elif kind == b"f":
                retired = retired._replace(fpr=(int(number), int(value, 16)))
            elif csr:
                retired = retired._replace(csrs=(*retired.csrs, (int(csr), int(csr_value, 16) & self.mask)))
            elif data:
                retired = retired._replace(eaddr=int(address, 16), memdata=(len(data) // 2, int(data, 16)))
            else:
                retired = retired._replace(eaddr=int(address, 16))
        if retired.memdata is not None and retired.instr is not None and is_atomic(retired.instr.word):
            retired = retired._replace(operand=self._gprs.get(retired.instr.word >> 20 & 31))
        if retired.gpr is not None:
            self._gprs[retired.gpr[0]] = retired.gpr[1]
        return retired._replace(loaded=self._load_result(retired)) if retired.eaddr is not None else retired

    def _load_result(self, retired: Retired) -> tuple[int, int] | None:
        """Return what a load or an atomic operation read, from what it wrote."""
        written = retired.gpr or retired.fpr
        if (
            written is None
            or retired.instr is None
            or (retired.memdata is not None and bus_operation(retired.instr.word) is None)
        ):
            return None
        found = reach(retired.instr.word, self.xlen)
        return None if found is None or not found.size else (found.size, written[1] & (1 << 8 * found.size) - 1)


def _own_parts(head: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is Spike's of the lines of a log, which may begin with something else: what was printed, a time."""
    for line in head:
        with suppress(ValueError):
            yield own_part(line) or b""
