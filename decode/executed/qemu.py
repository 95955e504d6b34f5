"""The log of QEMU's `-d exec,nochain,int`: which translation blocks were entered, and the traps.

Source: QEMU 2.12 to 10, accel/tcg/cpu-exec.c (log_cpu_exec, cpu_tb_exec), accel/tcg/translate-all.c
(cpu_io_recompile), target/riscv/cpu_helper.c (riscv_cpu_do_interrupt), target/riscv/translate.c (riscv_tr_disas_log):

    Trace 0: 0x7f2478000740 [0000000000000000/0000000080000012/00203003/ff020200] main     since 6.1
    Trace 0: 0x7f2478000740 [0000000000000000/0000000080000012/0x203003] main              before
    riscv_cpu_do_interrupt: hart:0, async:0, cause:0000000000000002, epc:0x0000000080000184, tval:0x..., desc=...
    Stopped execution of TB chain before 0x7f2478000740 [0000000080000012] main
    cpu_io_recompile: rewound execution of TB to 0000000080000012

A block is logged when it is entered: what follows tells what was executed of it. It ran to its end, was not begun
("Stopped"), was left before an instruction that trapped, or before one that is now executed alone ("rewound"). With
in_asm the log tells besides where each block ends, and its privilege mode:

    IN: main
    Priv: 3; Virt: 0
    0x80000012:  2aa1              jal                     ra,344                  # 0x8000016a

Without in_asm the log has only the first address of a block. A block is a straight run of code that ends, at the
latest, with a jump or branch; where it may end before that is known from target/riscv/translate.c and is used only
where what ran next leaves a choice (`Translated`).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.executed.readers import EventReader, Log, LogError, LoggedTrap, LogPiece
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction

MOST = 512
"""The maximal number of instructions of a block (TCG_MAX_INSNS)."""

_PAGE = 0x1000  # bytes; a block stays within its page (TARGET_PAGE_SIZE)
_SYSTEM, _HYPERVISOR_LOAD = 0x73, 4
_MISC_MEM, _FENCE_I = 0x0F, 1
_OP_V, _VSET = 0x57, 7


class QemuCode:
    """The code that the blocks consist of."""

    def __init__(self, image: Image) -> None:
        self.image = image

    def straight(self, pc: int, most: int) -> list[int]:
        """Return the addresses from *pc* to the first jump, branch or trap instruction, or to the end of the known
        code.
        """
        pcs: list[int] = []
        while len(pcs) < most:
            instruction = self.instruction(pc)
            if instruction is None:
                break
            pcs.append(pc)
            if instruction.itype is not IType.NONE:
                break
            pc += instruction.length
        return pcs

    def instruction(self, pc: int) -> Instruction | None:
        """Return the instruction at *pc*, None if it is unknown or not an instruction."""
        try:
            return self.image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None

    def fall(self, pc: int) -> int:
        """Return the address after the instruction at *pc*."""
        return pc + self.image.instruction(pc).length

    def may_go(self, pc: int, next_pc: int) -> bool:
        """Return whether *next_pc* can follow the instruction at *pc*."""
        instruction = self.image.instruction(pc)
        if instruction.is_uninferable or (instruction.is_inferable_jump and instruction.offset is None):
            return True
        if instruction.offset is not None and next_pc == pc + instruction.offset:
            return True
        return next_pc == pc + instruction.length and not instruction.is_inferable_jump

    def is_one(self, pc: int, next_pc: int) -> bool | None:
        """Return whether the block at *pc* ended after its first instruction without need; *next_pc* is the next block.

        Returns None if that does not show whether all blocks have one instruction.
        """
        pcs = self.straight(pc, 2)
        if len(pcs) < 2 or self.ends_at(pcs) < 2:
            return None
        return next_pc == pcs[1]

    def ends_at(self, pcs: list[int]) -> int:
        """Return how many of the instructions *pcs*, a straight run, are translated together."""
        page = pcs[0] & -_PAGE
        for count, pc in enumerate(pcs[1:], 1):
            if self._ends_block(pcs[count - 1]) or self.fall(pc) - page > _PAGE or pc - page >= _PAGE:
                return count
        return len(pcs)

    def _ends_block(self, pc: int) -> bool:
        """Return whether QEMU leaves the block after this instruction because it may have changed how code is
        translated.
        """
        data = self.image.read(pc, min(self.image.instruction(pc).length, 4))
        opcode, funct3 = data[0] & 0x7F, data[1] >> 4 & 7
        return (
            (opcode == _SYSTEM and funct3 != _HYPERVISOR_LOAD)
            or (opcode == _MISC_MEM and funct3 == _FENCE_I)
            or (opcode == _OP_V and funct3 == _VSET)
        )


class Translated:
    """One block. *most* is the maximal number of its instructions.

    *end*: the address after it; *mode*: its privilege mode and whether it is in a guest; None if the log does not have
    them.
    """

    __slots__ = ("_end", "_most", "_runs", "_translator", "mode", "pc")

    def __init__(
        self, translator: QemuCode, pc: int, most: int, end: int | None = None, mode: tuple[int, bool] | None = None
    ) -> None:
        self._translator, self._most, self._end = translator, most, end
        self.pc, self.mode = pc, mode
        self._runs: dict[int, tuple[int, ...]] = {}

    def run_to(self, next_pc: int) -> tuple[int, ...]:
        """Return what was executed if the block ran to its end, and *next_pc* followed."""
        run = self._runs.get(next_pc)
        if run is None:
            run = self._runs[next_pc] = tuple(self._completed(next_pc))
        return run

    def run_before(self, pc: int) -> tuple[int, ...]:
        """Return what was executed if the block was left before the instruction at *pc*; all of it if *pc* is not in
        it.
        """
        if pc == self.pc:  # whatever stands there
            return ()
        pcs = self._straight()
        return tuple(pcs[: pcs.index(pc)]) if pc in pcs else self.run_to(pc)

    def covers(self, pc: int) -> bool:
        """Return whether the instruction at *pc* may be one of the block."""
        return pc == self.pc or pc in self._straight()

    def _straight(self) -> list[int]:
        pcs = self._translator.straight(self.pc, self._most)
        return pcs if self._end is None else [pc for pc in pcs if pc < self._end]

    def _completed(self, next_pc: int) -> list[int]:
        pcs, translator = self._straight(), self._translator
        if not pcs:
            return [self.pc]  # of unknown code: the reader of the addresses will see that
        if next_pc == translator.fall(pcs[-1]):
            return pcs
        natural = translator.ends_at(pcs)
        if next_pc not in pcs[1:]:
            return pcs if translator.may_go(pcs[-1], next_pc) else pcs[:natural]
        count = pcs.index(next_pc, 1)
        both = translator.may_go(pcs[-1], next_pc)  # it ended before the instruction there, or went back to it
        return pcs if both and count != natural else pcs[:count]


TRACE_LINE = re.compile(rb"Trace (\d+): \S+ \[[0-9a-f]+/([0-9a-f]+)/(?:0x)?[0-9a-f]+(?:/([0-9a-f]+))?\]")
TRAP_LINE = re.compile(
    rb"riscv_cpu_do_interrupt: hart:(\d+), async:(\d), cause:([0-9a-f]+), epc:0x([0-9a-f]+)(?:, tval:0x([0-9a-f]+))?,"
)
STOPPED_LINE = re.compile(rb"Stopped execution of TB chain before \S+ \[([0-9a-f]+)\]")
REWOUND_LINE = re.compile(rb"cpu_io_recompile: rewound execution of TB to ([0-9a-f]+)\s")
MODE_LINE = re.compile(rb"Priv: (\d+); Virt: (\d)")
ASM_LINE = re.compile(rb"0x([0-9a-f]+):  ")
_ASM = b"IN:"
_LINE_BEGINS = re.compile(
    rb"(?:^IN:|IN: |^Trace |Trace \d+: |riscv_cpu_do_interrupt: hart|Stopped execution of TB|cpu_io_recompile: rewound)"
)
_UNUSED = re.compile(rb"\s*$|-+\s*$|Priv: |OBJD-|Linking TBs|0x[0-9a-f]+:  ")
"""What else QEMU logs with these options; other lines are somebody else's."""

# Of the flags a block was translated with (cflags), the same since they are logged.
COUNT_MASK, _NO_CHAIN = 0x1FF, 0x200
CAUSE_MASK = 0x7FFF_FFFF  # old versions leave the top bit of an interrupt in


class QemuLogReader(EventReader):
    """A reader of QEMU's log of executed blocks; the instructions come from the image."""

    expected = "a line of QEMU's -d exec,nochain,int"
    advice = "give QEMU -d exec,nochain,int"

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        super().__init__(log, image, hart)
        self._translator = QemuCode(image)
        self._most = MOST
        self._blocks: dict[bytes, Translated | None] = {}  # by the line; None: of another hart
        self._listing = False  # in_asm lists a new block right now:
        self._first = self._final = -1  # the addresses of its first and last instruction so far
        self._mode: tuple[int, bool] | None = None  # its privilege mode, whether in a guest
        self._listed: dict[int, tuple[int | None, tuple[int, bool] | None]] = {}  # (end, mode) by address, the newest
        self._new_listing = False  # so the next line may be known and mean another block
        self._last: Translated | None = None  # entered last: what follows tells what was executed of it
        self._rewound = False
        self._context: tuple[int, bool] | None = None

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Return whether a line is one of QEMU's."""
        return any(line.startswith((b"Trace ", _ASM, b"riscv_cpu_do_interrupt: ")) for line in head)

    def pieces(self) -> Iterator[LogPiece]:
        """Yield what ran, oldest first. Raises LogError.

        How much of the last block ran is not known: it is left out.
        """
        known, entered = self._blocks, False
        self._most = 1 if self._is_one_by_one() else MOST
        for batch in self.log.batches():
            for index, line in enumerate(batch):
                if line in known and not self._new_listing:
                    block = known[line]
                else:
                    block = self._learn_line(index, line)
                if block is not None:
                    self._enter_block(block)
            entered = entered or self._last is not None or bool(self._pcs or self._out)
            yield from self._take_pieces()
        if not entered and not self._blocks:
            raise LogError(self.log.name, None, f"has no line `Trace ...`, so it does not say what ran: {self.advice}")
        self._note_others()

    def _is_one_by_one(self) -> bool:
        """Return whether the log begins with blocks of one instruction each, if the lines themselves do not show it."""
        matches = [TRACE_LINE.match(line) for line in self.log.head()]
        pcs = [None if match is None or match[3] is not None else int(match[2], 16) for match in matches]
        steps = [
            self._translator.is_one(pc, after) for pc, after in pairwise(pcs) if pc is not None and after is not None
        ]
        return True in steps and False not in steps

    def _enter_block(self, block: Translated) -> None:
        pc = block.pc
        if self._last is not None and not self._rewound:
            self._pcs += self._last.run_to(pc)
        elif self._last is not None:
            self._pcs += self._last.run_before(pc)
            self._rewound = False
        if self._trap is not None:
            self._cut(IngressTrap(*self._trap, handler=pc))
            self._trap = None
        if block.mode is not None and block.mode != self._context:
            self._context = block.mode
            self._cut(ProgramContext(*block.mode))
        self._last = block

    def _learn_line(self, index: int, line: bytes) -> Translated | None:
        """Return the block that is entered; None for any other line."""
        if self._listing and self._lists(line):
            return None
        begin = _LINE_BEGINS.search(line)
        if begin is None:
            if not _UNUSED.match(line):
                self._other_line(index)
            return None
        line = line[begin.start() :]  # after what the program printed without a line end
        if line.startswith(b"Trace "):
            return self._translated_block(index, line)
        if line.startswith(_ASM):
            self._listing, self._first, self._mode = True, -1, None
        elif line.startswith(b"riscv_cpu_do_interrupt: hart"):
            self._take_trap(index, line)
        elif line.startswith(b"Stopped execution of TB"):
            self._stop_line(index, line)
        elif line.startswith(b"cpu_io_recompile: rewound"):
            self._rewind(index, line)
        return None

    def _translated_block(self, index: int, line: bytes) -> Translated | None:
        match = TRACE_LINE.match(line)
        if match is None:
            self._bad_line(index, line)
            return None
        self._new_listing = False
        if not self._is_of_hart(index, int(match[1])):
            self._blocks[line] = None
            return None
        pc, most = int(match[2], 16), 1 if self._rewound else self._most
        if match[3] is not None:
            cflags = int(match[3], 16)
            if not cflags & _NO_CHAIN:
                raise self.log.error(index, "the log omits blocks (nochain is missing): give QEMU -d exec,nochain,int")
            most = cflags & COUNT_MASK or MOST
        end, mode = self._listed.get(pc, (None, None))
        block = self._blocks[line] = Translated(self._translator, pc, most, end, mode)
        return block

    def _lists(self, line: bytes) -> bool:
        """Process a line of in_asm; return whether it was one."""
        if match := ASM_LINE.search(line):
            self._final = int(match[1], 16)
            if self._first < 0:
                self._first = self._final
        elif match := MODE_LINE.search(line):
            self._mode = int(match[1]), match[2] == b"1"
        else:
            self._listing = False
            if self._first >= 0:
                instruction = self._translator.instruction(self._final)
                end = None if instruction is None else self._final + instruction.length
                self._listed[self._first] = end, self._mode
                self._new_listing = True
            return False
        return True

    def _take_trap(self, index: int, line: bytes) -> None:
        match = TRAP_LINE.match(line)
        if match is None:
            self._bad_line(index, line)
            return
        if not self._is_of_hart(index, int(match[1])):
            return
        interrupt, cause, epc, tval = match[2] == b"1", int(match[3], 16), int(match[4], 16), int(match[5] or b"0", 16)
        self.exact = True
        if self._last is not None:
            in_the_middle = self._rewound or not interrupt
            self._pcs += self._last.run_before(epc) if in_the_middle else self._last.run_to(epc)
            self._last, self._rewound = None, False
        if self._trap is not None:  # the handler could not be fetched
            self._cut(IngressTrap(*self._trap, handler=epc))
        self._trap = LoggedTrap(epc, interrupt, cause & CAUSE_MASK, tval)

    def _stop_line(self, index: int, line: bytes) -> None:
        match = STOPPED_LINE.match(line)
        if match is None:
            self._bad_line(index, line)
        elif self._last is not None and self._last.pc == int(match[1], 16):
            self._last = None

    def _rewind(self, index: int, line: bytes) -> None:
        match = REWOUND_LINE.match(line)
        if match is None:
            self._bad_line(index, line)
        elif self._last is not None and self._last.covers(int(match[1], 16)):
            self._rewound = True
