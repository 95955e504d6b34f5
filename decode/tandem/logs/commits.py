"""What readers of logs share, and the tandem trace of what they read.

A log has what each instruction wrote; most forms do not name traps. Where the next instruction is one to which the code
cannot lead, there was a trap: it is in the trace, its cause is not. The trace has the dialect `RECONSTRUCTED`: what an
instruction writes and the log does not have is unknown behind it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.executed.readers import Log, LogError
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction, classify, length
from rvtrace_gdb.decode.tandem.effects import Steps, destinations
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder, Retired
from rvtrace_gdb.decode.tandem.protocol import GPR, FullRegister, Instr, TandemParameters
from rvtrace_gdb.support.errors import Progress, silent

_BATCH = 1 << 12  # instructions
_MACHINE = 3
_OF_TRAPS = frozenset(number for taken in csrs.TRAPS for number in (taken.status, taken.epc, taken.cause, taken.tval))
_SHOWN = 60  # characters of a bad line


class HeldRegisters(NamedTuple):
    """What registers hold before the next instruction, whatever the log said before: (number, value) each. Everything
    else is unknown there.
    """

    values: tuple[tuple[int, int], ...]


Logged = Retired | HeldRegisters | FullRegister
"""What a log says: an instruction or a trap; what registers hold; a register that changed by itself."""


class CommitReader(ABC):
    """The reader of one form of log. *image*: the program, for code that is not in the log, and to compare with.

    *hart*: whose lines are read; None: the only one's. Reading raises LogError.

    mismatch  the first instruction that ran and differs in the image; "": none
    notes     what was left out, a line each
    initial   what registers held before the first instruction; complete when all has been read
    """

    expected: str
    """The form of a line, for messages."""
    supervisor = True
    """Whether the hart may have S-mode, and so virtual memory."""

    def __init__(self, log: Log, xlen: int, image: Image | None = None, hart: int | None = None) -> None:
        self.log, self.xlen, self.image, self.hart = log, xlen, image, hart
        self.mask = (1 << xlen) - 1
        self.mismatch = ""
        self.notes: list[str] = []
        self.initial: dict[int, int] = {}
        self._any_hart = hart is None
        self._passed_by: set[int] = set()  # harts of lines that do not count
        self._compared: set[int] = set()

    @classmethod
    @abstractmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a log that begins with these lines has this form."""

    @classmethod
    @abstractmethod
    def xlen_in(cls, head: Sequence[bytes]) -> int | None:
        """Return XLEN of the hart of a log that begins with these lines, None if they do not tell."""

    @abstractmethod
    def commits(self) -> Iterator[Logged]:
        """Yield what the hart did, oldest first. To be called once."""

    def is_ours(self, index: int, hart: int) -> bool:
        """Return whether a line about *hart* counts. Raises LogError for a second hart if none was chosen."""
        if self.hart is None:
            self.hart = hart
        elif hart != self.hart and self._any_hart:
            raise self.log.error(index, f"hart {hart} after lines of hart {self.hart}: choose one with --hart")
        if hart != self.hart:
            self._passed_by.add(hart)
        return hart == self.hart

    def check_hart(self) -> None:
        """Raises LogError if nothing was read because all lines are of other harts."""
        if self._passed_by:
            there = ", ".join(map(str, sorted(self._passed_by)))
            raise LogError(self.log.name, None, f"hart {self.hart} is not in this log, which has {there}")

    def bad_line(self, index: int, line: bytes) -> LogError | None:
        """Return the error for a malformed line; None if it is the last one and cut off, which is noted."""
        if not line.endswith(b"\n"):
            self.notes.append("the last line is cut off and was ignored")
            return None
        text = line.decode("ascii", "replace").strip()
        text = "".join(character if character.isprintable() else "?" for character in text)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
        return self.log.error(index, f"expected {self.expected}, found `{shown}`")

    def compare(self, pc: int, ran: Instr) -> None:
        """Compare an instruction with the image, until one differs: the trace has what ran, whatever the image has."""
        if self.image is None or self.mismatch or pc in self._compared:
            return
        self._compared.add(pc)
        try:
            in_image = int.from_bytes(self.image.read(pc, ran.length), "little")
        except CodeMissing:
            return
        if in_image != ran.word:
            self.mismatch = (
                f"at 0x{pc:x} the instruction 0x{ran.word:x} ran, but {self.image.path} has 0x{in_image:x} there:"
                " is this the program that ran?"
            )

    def in_program(self, pc: int) -> Instr | None:
        """Return the instruction of the program at an address, None if it is unknown."""
        try:
            if self.image is None:
                return None
            size = min(self.image.instruction(pc).length, 4)  # no trace has longer ones
            return Instr(int.from_bytes(self.image.read(pc, size), "little"), size)
        except (CodeMissing, UndecodableInstruction):
            return None


def instr_of(word: int) -> Instr:
    """Return an instruction with its length; what is not one counts as 4 bytes."""
    try:
        size = 2 if length(word & 0xFFFF) == 2 else 4
    except UndecodableInstruction:
        size = 4
    return Instr(word & (1 << 8 * size) - 1, size)


class UnloggedTraps:
    """Adds the traps that a log does not name: where an instruction is followed by one to which it cannot lead."""

    def __init__(self, xlen: int) -> None:
        self.count = 0
        self._xlen, self._mask = xlen, (1 << xlen) - 1
        self._steps = Steps(xlen)

    @property
    def note(self) -> str:
        """How many there were."""
        return "1 trap is not in the log" if self.count == 1 else f"{self.count} traps are not in the log"

    def follows(self, retired: Retired) -> bool:
        """Return whether the instruction can lead to what ran next, as far as that is known."""
        if retired.instr is None or retired.own is None or retired.pc is None:
            return True
        return retired.pc - retired.own & self._mask in self._steps[retired.instr.word]

    def completed(self, retired: Retired, mode: int | None) -> Iterator[Retired]:
        """Yield what *retired* is: an instruction, a trap of it, or an instruction and then a trap. *mode*: in which
        what follows runs.
        """
        instr, own = retired.instr, retired.own
        if instr is None or own is None or retired.pc is None or instr.word in csrs.XRETS:
            yield retired
        elif retired.privilege is not None or self._is_exception(instr):
            self.count += not retired.csrs
            yield retired._replace(privilege=self._mode_of_trap(retired.privilege, mode))
        elif self.follows(retired):
            yield retired
        else:
            self.count += 1
            interrupted = self._steps.target(instr.word, own) & self._mask
            yield retired._replace(pc=None if interrupted & 1 else interrupted)
            yield Retired(retired.pc, privilege=self._mode_of_trap(None, mode), own=interrupted)

    def _mode_of_trap(self, trapped_to: int | None, following: int | None) -> int:
        return trapped_to if trapped_to is not None else _MACHINE if following is None else following

    def _is_exception(self, instr: Instr) -> bool:
        return classify(instr.word, self._xlen).itype is IType.EXCEPTION


class UnloggedWrites:
    """Adds the CSRs that an instruction may write and the log does not have, because it left them alone, or wrote them
    as parts of others: they are what the log had last.
    """

    def __init__(self, xlen: int) -> None:
        self._destinations, self._parts = destinations(xlen), csrs.parts(xlen)
        self._all = (1 << xlen) - 1
        self._known: dict[int, tuple[int, int]] = {}  # by register: its value, and which bits of it are known

    def completed(self, retired: Retired) -> Retired:
        """Return an instruction with the values that it has left alone, before those that it wrote."""
        if retired.privilege is not None:  # a trap or a return changes what is not in the log
            self._known = {number: known for number, known in self._known.items() if number not in _OF_TRAPS}
        for number, value in retired.csrs:
            self._note_write(number, value)
        if retired.privilege is not None or retired.instr is None:
            return retired
        written = {number for number, _ in retired.csrs}
        unlogged = (it for it in self._destinations[retired.instr.word] if it < GPR and it not in written)
        kept = tuple((number, held) for number in unlogged if (held := self._kept_value(number)) is not None)
        return retired._replace(csrs=(*kept, *retired.csrs)) if kept else retired

    def _csr_part(self, number: int) -> csrs.CsrPart:
        return self._parts.get(number) or csrs.CsrPart(number, self._all)

    def _note_write(self, number: int, value: int) -> None:
        part = self._csr_part(number)
        if part.delegated:
            self._known.pop(part.register, None)
            return
        held, bits = self._known.get(part.register, (0, 0))
        self._known[part.register] = held & ~part.mask | value << part.shift & part.mask, bits | part.mask

    def _kept_value(self, number: int) -> int | None:
        part = self._csr_part(number)
        held, bits = self._known.get(part.register, (0, 0))
        return None if part.delegated or part.mask & ~bits else (held & part.mask) >> part.shift


def trace_of(reader: CommitReader, parameters: TandemParameters, progress: Progress = silent) -> bytes:
    """Return the tandem trace of a log. Raises LogError, also for a log without an instruction, BadElement, and what
    *progress* raises.
    """
    begin, made = bytearray(), bytearray()
    encoder, count = GroupEncoder(parameters, made.extend), 0
    first: Retired | None = None
    for logged in reader.commits():
        if isinstance(logged, Retired):
            first = first or logged
            if not count % _BATCH and reader.log.size is not None:
                progress("reading the log", reader.log.done, reader.log.size)
            encoder.put(logged)
            count += 1
        elif isinstance(logged, FullRegister):
            encoder.put_state(logged)
        else:
            encoder.initialize(*(FullRegister(*it) for it in logged.values))
    encoder.finish()
    if first is None or first.own is None:
        reader.check_hart()
        raise LogError(reader.log.name, None, f"has no instruction: expected {reader.expected}")
    held = tuple(FullRegister(*it) for it in sorted(reader.initial.items()))
    GroupEncoder(parameters, begin.extend).begin(first.own, first.own_privilege, held)
    return bytes(begin + made)
