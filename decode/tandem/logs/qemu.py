"""QEMU's log of what ran and of the registers before it: `-d exec,nochain,int,cpu`, one instruction in each block.

`-singlestep` lets QEMU log each instruction, since 8.1 `-accel tcg,one-insn-per-tb=on`; with fpu in the list the log
has the floating-point registers, with in_asm instructions that are not in the program. Source: QEMU,
target/riscv/cpu.c (riscv_cpu_dump_state); the other lines are shown in `decode/executed/qemu.py`:

    Trace 0: 0x7fbfe8000240 [0000000000000000/0000000000001004/00209003/ff000201]
     pc       0000000000001004
     mstatus  0000000a00000000
     x0/zero  0000000000000000 x1/ra    0000000000000000 x2/sp    0000000000000000 x3/gp    0000000000000000

What an instruction wrote is what differs before the next one. Memory is not in the log: a store has written the
register that it names, to the address that it computes, both of which are known.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.decode.executed.qemu import (
    CAUSE_MASK,
    COUNT_MASK,
    REWOUND_LINE,
    STOPPED_LINE,
    TRACE_LINE,
    TRAP_LINE,
)
from rvtrace_gdb.decode.executed.readers import Log, LogError
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import CSRS, F, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.semantics.addressed import addressed
from rvtrace_gdb.decode.tandem.effects import Anywhere, Steps, destinations, stored_size
from rvtrace_gdb.decode.tandem.encoder import Retired
from rvtrace_gdb.decode.tandem.logs.commits import CommitReader, HeldRegisters, Logged
from rvtrace_gdb.decode.tandem.protocol import FullRegister, Instr
from rvtrace_gdb.decode.tandem.wording import X as XS
from rvtrace_gdb.support.text import counted

_STATE = re.compile(rb" (\w+) +([0-9a-f]{8}(?:[0-9a-f]{8})?)\s*$")
_REGISTERS = re.compile(rb" ([xf])(\d+)/\w+ +([0-9a-f]{8}(?:[0-9a-f]{8})?)(?=\s)")
_WORD = re.compile(rb"0x([0-9a-f]+):  ([0-9a-f]{8}|[0-9a-f]{4})\s")
_HART_STATE = re.compile(rb" mhartid  +([0-9a-f]+)\s*$")
_HEAD_STATE = re.compile(rb" pc  +([0-9a-f]+)\s*$")
_SINGLE = "let it run one instruction after the other (-singlestep; since 8.1: -accel tcg,one-insn-per-tb=on)"
_BY_ITSELF = frozenset((csrs.MIP, csrs.SIP, csrs.VSCAUSE + 2))  # a device changes these at any time
_MODES = (0, 1, 3)
_RESET = 0x1000
"""Where a hart begins in QEMU (DEFAULT_RSTVEC): in M-mode, as after every reset (Privileged Architecture, "Reset")."""


class _QemuTrap(NamedTuple):
    interrupt: bool
    cause: int
    epc: int
    tval: int


@dataclass
class _QemuBlock:
    """One instruction: where it was, what registers held before it, and the trap that followed."""

    index: int
    pc: int
    state: dict[int, int] = field(default_factory=dict)
    trap: _QemuTrap | None = None


class QemuStates(CommitReader):
    """A reader of such a log. What the code of is not known, such as a boot ROM, is left out."""

    expected = "what QEMU writes with -d exec,nochain,int,cpu -singlestep (Trace 0: ..., and lines with registers)"

    def __init__(self, log: Log, xlen: int, image: Image | None = None, hart: int | None = None) -> None:
        super().__init__(log, xlen, image, hart)
        self._destinations, self._steps = destinations(xlen), Steps(xlen)
        self._words: dict[int, Instr] = {}  # of in_asm
        self._codes: dict[int, Instr | None] = {}
        self._privilege: int | None = None
        self._in_pieces = False  # something was left out before the next instruction
        self._left_out = self._doubled = 0
        self._hart_id: int | None = None  # mhartid of our hart
        self._ours_began = True  # what ran last is of our hart
        self._others_began = False  # something of another hart ran

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether there are lines with registers among those of what ran."""
        return any(map(TRACE_LINE.match, head)) and any(map(_HEAD_STATE.match, head))

    @classmethod
    def xlen_in(cls, head: Sequence[bytes]) -> int | None:
        """Return XLEN by the digits of the pc."""
        found = next((match for match in map(_HEAD_STATE.match, head) if match), None)
        return None if found is None else 4 * len(found[1])

    def commits(self) -> Iterator[Logged]:
        """Yield what the hart did, oldest first. The last instruction's effects are not in the log: it is left out."""
        last: _QemuBlock | None = None
        begun = False
        for block in self._blocks():
            if last is None and block.pc == _RESET and not any(block.state.get(X + n) for n in range(1, 32)):
                self._privilege = _MODES[-1]
            if last is not None:
                for logged in self._between(last, block):
                    if not begun and isinstance(logged, Retired):
                        self.initial, begun, self._in_pieces = last.state, True, False
                    if begun:
                        yield logged
            last = block
        if self._left_out and not begun:
            raise LogError(self.log.name, None, self._why_nothing())
        if self._left_out:
            many = "1 instruction is" if self._left_out == 1 else f"{self._left_out} instructions are"
            self.notes.append(f"{many} not in the program and left out: -d in_asm logs them")
        if self._doubled:
            self.notes.append(f"{self._doubled} of the traps directly before another one left out")

    # -- what ran

    def _why_nothing(self) -> str:
        """Return why nothing of the log can be used: of no address the code is known."""
        if self.image is None:
            return "has no code of what ran: give the program (--elf), or QEMU -d in_asm, too"
        return (
            f"{counted(self._left_out, 'instruction')} ran, and {self.image.path} has code at none of their addresses:"
            " is this the program that ran?"
        )

    def _between(self, last: _QemuBlock, block: _QemuBlock) -> Iterator[Logged]:
        """Yield what an instruction did, and the trap after it."""
        instr = self._code(last.pc)
        if instr is None:
            self._left_out += 1
            self._in_pieces = True
            return
        if self._in_pieces:
            self._in_pieces = False
            yield HeldRegisters(tuple(sorted(last.state.items())))
        self.compare(last.pc, instr)
        self._compare_effects(last, block, instr)
        yield from (FullRegister(it, block.state[it]) for it in sorted(self._changed_by_themselves(last, block, instr)))
        trap, before = last.trap, self._privilege
        written = self._written(last.state, block.state, instr)
        if trap is None:
            yield self._executed(last, block.pc, instr, written, before)
        elif trap.interrupt or trap.epc != last.pc:
            kept = {number: value for number, value in written.items() if number not in _TRAP_STATE}
            yield self._executed(last, trap.epc, instr, kept, before)
            yield self._trapped(trap, block, last.state, None)
        else:
            yield self._trapped(trap, block, last.state, instr)._replace(own_privilege=before)

    def _compare_effects(self, last: _QemuBlock, block: _QemuBlock, instr: Instr) -> None:
        """Compare what happened with what an instruction of the program can do, until that differs: the log has no
        opcodes. What goes on elsewhere does not count (a trap without int in QEMU's list), nor a reset, nor what has
        effects that nobody here knows: custom instructions, semihosting.
        """
        steps = self._steps[instr.word]
        if self.image is None or self.mismatch or last.pc in self._words or last.trap is not None:
            return
        if isinstance(steps, Anywhere) or block.pc == _RESET:
            return
        may_write, length = self._destinations[instr.word], block.pc - last.pc & self.mask
        new = {it: value for it, value in block.state.items() if X < it < X + 32 and last.state.get(it) != value}
        wrong = next((it for it in new if it not in may_write), None)
        happened = ""
        if wrong is not None:
            happened = f"{XS[wrong - X]} changed to 0x{new[wrong]:x}"
        elif length in (2, 4) and length not in steps:
            happened = f"an instruction of {length} bytes ran"
        if happened:
            self.mismatch = (
                f"at 0x{last.pc:x} {happened}, but {self.image.path} has the instruction 0x{instr.word:x} there, which"
                " does not do that: is this the program that ran?"
            )

    def _changed_by_themselves(self, last: _QemuBlock, block: _QemuBlock, instr: Instr) -> set[int]:
        """Return the registers that changed by themselves."""
        moved = {it for it in _BY_ITSELF & block.state.keys() if last.state.get(it) != block.state[it]}
        return moved - self._destinations[instr.word]

    def _written(self, old: dict[int, int], new: dict[int, int], instr: Instr) -> dict[int, int]:
        """Return what changed, and what the instruction writes, in the order of the numbers: x and f last."""
        may_write = self._destinations[instr.word]
        return {
            number: value
            for number, value in sorted(new.items())
            if number in may_write or (old.get(number) != value and number not in _BY_ITSELF)
        }

    def _executed(
        self, last: _QemuBlock, pc: int, instr: Instr, written: dict[int, int], before: int | None
    ) -> Retired:
        address, stored = self._accessed(last.state, instr)
        privilege = None
        if instr.word in csrs.XRETS:
            self._privilege = privilege = self._returned_to(last.state, instr.word)
        return Retired(
            pc, instr, csrs=tuple(written.items()), eaddr=address, memdata=stored, privilege=privilege, own=last.pc,
            own_privilege=before,
        )  # fmt: skip

    def _returned_to(self, state: dict[int, int], word: int) -> int | None:
        status = state.get(csrs.MSTATUS)
        if status is None:
            return None
        if csrs.XRETS[word] == csrs.MEPC:
            mode = status >> csrs.MPP_SHIFT & 3
            return mode if mode in _MODES else None
        return status >> csrs.SPP_SHIFT & 1

    def _trapped(self, trap: _QemuTrap, block: _QemuBlock, old: dict[int, int], instr: Instr | None) -> Retired:
        """Return a trap, of which the state before the handler's first instruction tells where it led."""
        state, mode = block.state, self._trap_mode(trap, block)
        taken = csrs.TRAPS[1] if mode == 1 else csrs.TRAPS[0]
        told = {taken.cause: trap.cause | trap.interrupt << self.xlen - 1, taken.epc: trap.epc, taken.tval: trap.tval}
        for number in _TRAP_STATE & state.keys():
            if number == csrs.MSTATUS or old.get(number) != state[number]:
                told[number] = state[number]
        self._privilege = mode
        return Retired(block.pc, instr, csrs=tuple(sorted(told.items())), privilege=mode, own=trap.epc)

    def _trap_mode(self, trap: _QemuTrap, block: _QemuBlock) -> int:
        """Return the mode whose registers name the trap; of two, the one whose handler runs next."""
        value = trap.cause | trap.interrupt << self.xlen - 1
        for taken, base in ((csrs.TRAPS[1], CSRS["stvec"]), (csrs.TRAPS[0], CSRS["mtvec"])):
            state = block.state
            named = state.get(taken.epc) == trap.epc and state.get(taken.cause) == value
            if named and 0 <= block.pc - (state.get(base, 0) & ~3) <= 4 * trap.cause:
                return taken.mode
        return csrs.TRAPS[0].mode

    def _accessed(self, state: dict[int, int], instr: Instr) -> tuple[int | None, tuple[int, int] | None]:
        """Return the address of a load or store, and (bytes, value) of a store."""
        place = addressed(instr.word, self.xlen)
        if place is None or (place.base != X and place.base not in state):
            return None, None
        address = (state.get(place.base, 0) + place.offset) & self.mask
        size, value = stored_size(instr.word, self.xlen), state.get(place.data, 0 if place.data == X else None)
        if size not in (1, 2, 4, 8) or value is None:
            return address, None
        return address, (size, value & (1 << 8 * size) - 1)

    def _code(self, pc: int) -> Instr | None:
        if pc not in self._codes or self._codes[pc] is None:
            self._codes[pc] = self._words.get(pc) or self.in_program(pc)
        return self._codes[pc]

    # -- lines

    def _blocks(self) -> Iterator[_QemuBlock]:
        """Yield what began to run, each when the next one does. Raises LogError."""
        last: _QemuBlock | None = None
        before: _QemuBlock | None = None
        self._ours_began = dump_is_ours = True
        for batch in self.log.batches():
            for index, line in enumerate(batch):
                if not line.endswith(b"\n"):
                    self.bad_line(index, line)
                elif line.startswith(b"Trace "):
                    block = self._begun(index, line)
                    self._ours_began = block is not None
                    if block is not None:
                        if last is not None:
                            yield self._checked(last)
                        before, last = last or before, block
                elif line.startswith((b"Stopped", b"cpu_io_rec")):
                    last = None if last is not None and self._was_left(line, last) else last
                elif line.startswith(b"riscv_cpu_do_int"):
                    self._take_trap(index, line, last or before)
                elif line.startswith(b" "):
                    dump_is_ours = self._is_of_our_dump(line, line_before=dump_is_ours)
                    if dump_is_ours and last is not None:
                        self._read_state(line, last.state)
                elif match := _WORD.match(line):
                    self._words[int(match[1], 16)] = Instr(int(match[2], 16), len(match[2]) // 2)
        if last is not None and last.state:
            yield last

    def _begun(self, index: int, line: bytes) -> _QemuBlock | None:
        """Return the block that begins; None: of another hart."""
        match = TRACE_LINE.match(line)
        if match is None:
            error = self.bad_line(index, line)
            assert error is not None
            raise error
        if not self.is_ours(index, int(match[1])):
            self._others_began = True
            return None
        if self._hart_id is None:
            self._hart_id = int(match[1])
        if match[3] is not None and int(match[3], 16) & COUNT_MASK != 1:
            raise self.log.error(index, f"several instructions ran here, so what each wrote is unknown: {_SINGLE}")
        return _QemuBlock(self.log.line + index + 1, int(match[2], 16) & self.mask)

    def _is_of_our_dump(self, line: bytes, *, line_before: bool) -> bool:
        """Return whether a line with registers is of our hart. *line_before*: whether the line before it was.

        Harts of QEMU log at the same time, so that what another one ran may come between a line and its registers; the
        registers have the number of their hart (mhartid), which need not be that of the line.
        """
        if _HEAD_STATE.match(line):
            return self._ours_began
        match = _HART_STATE.match(line)
        if match is None:
            return line_before
        number = int(match[1], 16)
        if not self._others_began:
            self._hart_id = number
        return number == self._hart_id

    def _checked(self, block: _QemuBlock) -> _QemuBlock:
        """Return a block. Raises LogError if the log has no registers before it."""
        if not block.state:
            raise LogError(self.log.name, block.index, "there are no registers after this line: give QEMU -d cpu, too")
        return block

    def _was_left(self, line: bytes, last: _QemuBlock) -> bool:
        """Return whether the line says that the last block did not run after all."""
        match = STOPPED_LINE.match(line) or REWOUND_LINE.match(line)
        return match is not None and int(match[1], 16) & self.mask == last.pc

    def _take_trap(self, index: int, line: bytes, last: _QemuBlock | None) -> None:
        match = TRAP_LINE.match(line)
        if match is None:
            error = self.bad_line(index, line)
            assert error is not None
            raise error
        if last is None or not self.is_ours(index, int(match[1])):
            return
        self._doubled += last.trap is not None
        tval = int(match[5] or b"0", 16) & self.mask
        cause, epc = int(match[3], 16) & CAUSE_MASK, int(match[4], 16) & self.mask
        last.trap = _QemuTrap(match[2] == b"1", cause, epc, tval)

    def _read_state(self, line: bytes, state: dict[int, int]) -> None:
        if match := _STATE.match(line):
            number = CSRS.get(match[1].decode("ascii", "replace"))
            if number is not None:
                state[number] = int(match[2], 16) & self.mask
            return
        for kind, digits, value in _REGISTERS.findall(line):
            number = int(digits)
            if 0 < number < 32 or kind == b"f":
                state[(X if kind == b"x" else F) + number & 0xFFFF] = int(value, 16)


_TRAP_STATE = frozenset(number for taken in csrs.TRAPS[:2] for number in (taken.epc, taken.cause, taken.tval)) | {
    csrs.MSTATUS
}
"""What traps write."""
