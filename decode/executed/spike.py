"""Logs of Spike, the RISC-V ISA simulator, are made by `-l`, `--log-commits`, or both. Source: riscv-isa-sim,
riscv/processor.cc (disasm, take_trap) and riscv/execute.cc (commit_log_print_insn):

    core   0: 0x0000000080000184 (0x00000000) c.unimp                   -l, before the instruction is executed
    core   0: Executed 12 times                                         -l, of the last one, before another one
    core   0: exception trap_illegal_instruction, epc 0x0000000080000184
    core   0:           tval 0x0000000000000000
    core   0: exception interrupt #7, epc 0x00000000800000b0
    core   0: 3 0x0000000080000420 (0x34202973) x18 0x0000000000000002  --log-commits: privilege, what it wrote

With -l every trap is in the log. Commits alone do not tell them, but they tell privilege modes and the context CSRs.

What the program prints is on the same terminal, or in the same file with `> log 2>&1`: lines of its own are passed over
and counted, and a line of Spike's after what was printed without a line end is read from where it begins.
"""

import re
from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.executed.readers import EventReader, Log, LoggedTrap, LogPiece
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction, length

_CORE = rb"core +(\d+): "
_LINE_BEGINS = re.compile(rb"core +\d+: ")
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


def own_part(line: bytes) -> bytes | None:
    """Return what is Spike's of a line: all of it, or what comes after something the program printed; None: nothing.

    Raises ValueError if there is an instruction in it that cannot be read: two lines in one, or a damaged one.
    """
    begin = _LINE_BEGINS.search(line)
    if begin is None:
        if _INSTRUCTION.search(line):
            raise ValueError
        return None
    if _LINE_BEGINS.search(line, begin.end()):
        raise ValueError
    return line[begin.start() :]


class SpikeReader(EventReader):
    """A reader of Spike's logs. The instruction words in them are compared with the image."""

    expected = "a line of a Spike log (core   0: 0x... (0x...) ..., or core   0: 3 0x... (0x...) ...)"
    advice = "give Spike -l, with or without --log-commits"

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        super().__init__(log, image, hart)
        self._mask = (1 << image.xlen) - 1
        self._meanings: dict[bytes, tuple[int, int]] = {}  # (mode, pc) by a line up to the instruction word
        self._last: int | None = None  # the last instruction: what follows tells whether it retired
        self._times = 1
        self._committed = False
        self._commits = False  # the log has commits
        self._context = ProgramContext()
        self._new_context = False  # holds from after the last instruction on

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a line is one of Spike's."""
        return any(_INSTRUCTION.match(line) for line in head)

    def pieces(self) -> Iterator[LogPiece]:
        """Yield what ran, oldest first. Raises LogError."""
        known = self._meanings
        for batch in self.log.batches():
            if b"".join(batch).count(b"core ") > len(batch):
                self._refuse_doubled(batch)
            for index, line in enumerate(batch):
                entry = known.get(line[: line.find(b")") + 1]) or self._learn_line(index, line)
                if entry is None:
                    continue
                mode, pc = entry
                if mode == _LISTED:
                    self._begin_instruction(pc)
                elif mode != _OTHER_HART:
                    self._commit(mode, pc, line)
            yield from self._take_pieces()
        if self._committed or not self._commits:
            self._output_last(None)
        self._note_others()
        yield from self._take_pieces()

    def _refuse_doubled(self, batch: Sequence[bytes]) -> None:
        """Raise LogError if a line is two: their order is known, but not what is missing between them."""
        for index, line in enumerate(batch):
            first = _LINE_BEGINS.search(line)
            if first is not None and _LINE_BEGINS.search(line, first.end()):
                self._bad_line(index, line)

    def _learn_line(self, index: int, line: bytes) -> tuple[int, int] | None:
        """Return the meaning of a line that occurs for the first time; None if it is not about an instruction."""
        match = _INSTRUCTION.match(line)
        if match is None:
            if not line.startswith(b"core"):
                return self._learn_rest(index, line)
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
        self._meanings[match[0]] = entry
        return entry

    def _learn_rest(self, index: int, line: bytes) -> tuple[int, int] | None:
        """Do the same for a line that does not begin as one of Spike's: the program may have printed before it."""
        try:
            rest = own_part(line)
        except ValueError:
            self._bad_line(index, line)
            return None
        if rest is None:
            self._other_line(index)
            return None
        return self._meanings.get(rest[: rest.find(b")") + 1]) or self._learn_line(index, rest)

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

    def _begin_instruction(self, pc: int) -> None:
        """Begin the next instruction: the one before it has retired."""
        if self._trap is None and self._times == 1 and not self._new_context and self._last is not None:
            self._pcs.append(self._last)
        else:
            self._output_last(pc)
        self._last, self._committed = pc, False

    def _commit(self, mode: int, pc: int, line: bytes) -> None:
        if pc != self._last or self._committed:
            self._begin_instruction(pc)
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

    def _output_last(self, next_pc: int | None) -> None:
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
            self._cut(IngressTrap(*self._trap, handler=next_pc))
        self._last, self._times, self._trap, self._new_context = None, 1, None, False

    def _other(self, index: int, line: bytes) -> None:
        """Process a line that is not about an instruction."""
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
            self._output_last(epc)
        self.exact = True
        cause = int(interrupt) if interrupt else CAUSES.get(name, CUSTOM_CAUSE)
        self._trap = LoggedTrap(epc, bool(interrupt), cause)
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
