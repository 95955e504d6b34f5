"""Converts the words of a hart's ring (transport/qemu/plugin/plugin.c) to the input of an encoder.

The code that ran is known as QEMU's translation blocks: the recorder writes each one once, before it first runs. A
block that was entered is output when its fate is known: it ran to its end, or was left after some of its instructions
had begun. The last of these retired, unless

* it caused the exception that comes next, or
* execution continues at it though it cannot lead to itself: QEMU takes back an instruction that changes its own block,
  hits a watchpoint, or has to be executed alone, and begins it again.

Sources: QEMU 10, accel/tcg/translate-all.c (cpu_io_recompile), accel/tcg/tb-maint.c (the TB invalidates itself),
system/watchpoint.c; target/riscv/cpu_helper.c (riscv_cpu_do_interrupt).
"""

import os
from array import array
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, cast

from rvtrace_gdb.decode.executed.encoder_ingress import UNINFERABLE, Block, IngressTrap
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction, classify
from rvtrace_gdb.decode.program.regions import joined_code
from rvtrace_gdb.session.capture.model import CapturedImage
from rvtrace_gdb.transport.qemu.recorder import (
    ADDRESS_SPACE,
    BLOCK,
    CODE,
    DATA,
    FIELD,
    PARTIAL,
    RECORDING_BEGAN,
    SPACE_WORDS,
    TAG,
    TRAP,
    TRAP_WORDS,
    QemuError,
    Ring,
)

_UNKNOWN_MODE = 0xF
_USER = 0
_GUEST = 4
_NOWHERE = -1


class Entered:
    """A translation block. *mode* is None if it is unknown.

    block     the whole block
    repeated  the address of its last instruction, unless that can lead to itself: if execution continues there, it did
              not retire, but is begun again
    followers the blocks that have followed the whole block, where its code leads, and in the same mode
    number    among the blocks
    code      its bytes
    ran       it is recorded that it was entered
    own       other code of this address space than what the other ones have there, or had first: it is recorded
              whenever it is entered, as several address spaces may share it
    """

    __slots__ = (
        "_instructions", "_parts", "_xlen", "block", "code", "followers", "mode", "number", "own", "pc", "pcs", "ran",
        "repeated",
    )  # fmt: skip

    def __init__(self, pc: int, mode: int, instructions: list[Instruction], xlen: int, code: bytes = b"") -> None:
        self.pc, self._instructions, self._xlen, self.code = pc, instructions, xlen, code
        self.ran = self.own = False
        self.mode = None if mode == _UNKNOWN_MODE else ProgramContext(mode & 3, bool(mode & _GUEST))
        self.pcs = [pc]
        for instruction in instructions[:-1]:
            self.pcs.append(self.pcs[-1] + instruction.length)
        self.number = 0
        self._parts: dict[tuple[int, int], Block] = {}
        self.followers: set[Entered] = set()
        self.block = self.part(0, len(instructions))
        self.repeated = _NOWHERE if self.may_stay(len(instructions)) else self.pcs[-1]

    def __len__(self) -> int:
        return len(self.pcs)

    @property
    def end(self) -> int:
        """The address behind its last instruction."""
        return self.pc + len(self.code)

    def halfword(self, at: int) -> bytes:
        """Return the two bytes at address *at*, which is in it."""
        return self.code[at - self.pc : at - self.pc + 2]

    def part(self, begin: int, end: int) -> Block:
        """Return its instructions *begin* to *end* - 1, at least one."""
        found = self._parts.get((begin, end))
        if found is None:
            found = Block.from_instructions(self.pcs[begin], self._instructions[begin:end], self._xlen)
            self._parts[begin, end] = found
        return found

    def may_stay(self, count: int) -> bool:
        """Return whether the last of the first *count* instructions can lead to itself: a jump."""
        last = self._instructions[count - 1]
        return last.offset == 0 or last.is_uninferable


class RecordedCode:
    """The blocks in the file of *ring*'s recorder, by number. *image*: the program."""

    def __init__(self, ring: Ring, image: Image) -> None:
        self._path, self._ring, self._image = ring.folder / CODE, ring, image
        self.blocks: list[Entered | None] = []
        """By number; None: `block` makes it. Most that are translated while a system starts are never recorded."""
        self._lines: list[bytes] = []
        compiled = kernel()
        self.chain = None if compiled is None else compiled.Chain()
        """The blocks in the kernel, and those that have followed each other; None: there is no kernel."""
        self._read = 0  # bytes of the file
        self._file = self._path.open("rb") if self._path.exists() else None
        self._fresh: list[tuple[int, bytes]] = []
        self._ran: dict[int, bytes] = {}  # halfwords: the first that ran there
        self._spaces: dict[int, Image] = {}  # code that only one address space has, by ASID
        self._own: set[tuple[int, int]] = set()  # ASIDs and numbers of their blocks
        self._stale = False  # whether `images` lacks some
        self.images: tuple[CapturedImage, ...] = ()
        """The code of each address space whose code differs from what others have at the same addresses."""
        self.patched: dict[int, bytes] = {}
        """What ran in the place of the program's code in M- and S-mode: a kernel has changed it. Processes that are in
        memory at the same addresses are no such case."""
        self.changed: int | None = None
        """The lowest address at which code ran that differs from the program, None if there is none."""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def refresh(self) -> None:
        """Read blocks that were added. Raises QemuError."""
        size = self._ring.code_bytes
        if self._file is None or size <= self._read:
            return
        self._file.seek(self._read)
        data = self._file.read(size - self._read)
        self._read += len(data)
        for line in data.splitlines():
            self._lines.append(line)
            self.blocks.append(None)
            if self.chain is not None:
                self.chain.add(None, 0)

    def block(self, number: int) -> Entered:
        """Return the block with this number. Raises IndexError, QemuError."""
        entered = self.blocks[number]
        if entered is None:
            entered = self.blocks[number] = self._entered_block(self._lines[number])
            entered.number, self._lines[number] = number, b""
            if self.chain is not None:
                self.chain.set(number, entered.block, entered.block.instructions)
        return entered

    def why_missing(self, number: int) -> str:
        """Return a message that says why a block is missing."""
        if self._ring.failed:
            return lacking(self._ring)
        return f"{self._path}: the recorder has not described block {number}"

    def take_fresh(self) -> list[tuple[int, bytes]]:
        """Return (address, bytes) of the blocks that ran first since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def add_run(self, entered: Entered, asid: int | None = None) -> None:
        """Note that a block ran, in user mode in the address space *asid* if that is known. What was translated and
        never ran while it is recorded is no code of the trace: a kernel has changed it since, or the memory was another
        program's.
        """
        entered.ran = True
        is_process = entered.mode is not None and entered.mode.prv == _USER
        others = [] if entered.own else list(self._unusual(entered))
        if is_process and asid is not None and (entered.own or others):
            entered.own = True
            self._add_own(asid, entered)
            return
        self._fresh.append((entered.pc, entered.code))
        for at in others:
            code = entered.halfword(at)
            if is_process or (self._ran[at] != code and self._image.file_at(at) is not None):
                self._note_change(at)
            else:
                self.patched[at] = code

    def _unusual(self, entered: Entered) -> Iterator[int]:
        """Yield where it has another halfword than the program, or than the first that ran there, if that has none."""
        differs = self._image.differs(entered.pc, entered.code)
        for at in range(entered.pc, entered.end, 2):
            code = entered.halfword(at)
            if self._ran.setdefault(at, code) != code or (differs and self._differs(at, code)):
                yield at

    def _note_change(self, at: int) -> None:
        self.changed = at if self.changed is None else min(at, self.changed)

    def _add_own(self, asid: int, entered: Entered) -> None:
        if (asid, entered.number) in self._own:
            return
        self._own.add((asid, entered.number))
        space = self._spaces.setdefault(asid, Image(self._image.xlen))
        if space.differs(entered.pc, entered.code):
            self._note_change(entered.pc)
        if not all(map(space.knows, range(entered.pc, entered.end, 2))):
            space.add_code(entered.pc, entered.code)
            self._stale = True

    def refresh_images(self) -> None:
        """Have `images` be as of now."""
        if not self._stale:
            return
        self._stale = False
        self.images = tuple(
            CapturedImage(f"address space {asid}", asid, None, None, joined_code(space.segments))
            for asid, space in sorted(self._spaces.items())
        )

    def _differs(self, pc: int, code: bytes) -> bool:
        try:
            return self._image.read(pc, len(code)) != code
        except CodeMissing:
            return False

    def asid(self, satp: int) -> int:
        """Return the number of an address space in satp: privileged architecture, 12.1.11."""
        return satp >> 44 & 0xFFFF if self._image.xlen == 64 else satp >> 22 & 0x1FF

    def _entered_block(self, line: bytes) -> Entered:
        try:
            pc, mode, *words = line.split()
            codes = [bytes.fromhex(word.decode())[::-1] for word in words]
            address = int(pc, 16)
            instructions = list(self._instructions(address, codes))
            return Entered(address, int(mode, 16), instructions, self._image.xlen, b"".join(codes))
        except (ValueError, IndexError, UndecodableInstruction) as error:
            raise QemuError(f"{self._path}: is damaged: {error}") from None

    def _instructions(self, address: int, codes: list[bytes]) -> Iterator[Instruction]:
        for code in codes:
            yield self._program_instruction(address, code)
            address += len(code)

    def _program_instruction(self, address: int, code: bytes) -> Instruction:
        """Return the program's instruction, which may know more about it; if its code differs, decode *code*."""
        try:
            if self._image.knows(address) and self._image.read(address, len(code)) == code:
                return self._image.instruction(address)
        except (CodeMissing, UndecodableInstruction):
            pass
        return instruction_of(code, self._image.xlen)


def instruction_of(code: bytes, xlen: int) -> Instruction:
    """Decode an instruction. What is not an instruction raises an exception, and has the length that QEMU gives it."""
    try:
        return classify(int.from_bytes(code[:4], "little"), xlen)
    except UndecodableInstruction:
        return Instruction(len(code), IType.EXCEPTION)


def lacking(ring: Ring) -> str:
    """Return a message that says what it means that the recorder has failed."""
    why = os.strerror(ring.failed)
    return f"{ring.folder}: code or traps are missing: the recorder cannot write its records: {why}"


def may_follow(block: Block, pc: int) -> bool:
    """Return whether execution can continue at *pc* after *block* without a trap or jump from outside."""
    return pc in (block.fall, block.taken_target) or block.ending == UNINFERABLE


def exists(folder: Path) -> bool:
    """Return whether there is a recorder in *folder*."""
    return (folder / CODE).exists()


_ALL = -1
_MOST_TRAPS = 32
"""The limit for a handler that itself traps, for ever: the first traps and the newest are kept, as in the plugin."""
_HINDERED = Entered(0, 0, [Instruction(2, IType.NONE)], 64)
_MOST_DETOURS = 1 << 12
_CAUSE_MASK = 0x7FFF_FFFF  # old versions leave the top bit of an interrupt in


class Jumped(NamedTuple):
    """Execution continued at *pc* though the code does not lead there: a debugger set pc, or the machine was reset."""

    pc: int


class TrapTaken(NamedTuple):
    """A trap whose handler the next block, or the next trap, shows."""

    interrupt: bool
    epc: int
    cause: int
    tval: int


QemuIngressItem = Block | IngressTrap | ProgramContext | Jumped


class RecordedItems(list[QemuIngressItem]):
    """What ran. *instructions*: how many retired; *jumps*: how many `Jumped` are among the items."""

    def __init__(self) -> None:
        super().__init__()
        self.instructions = self.jumps = 0


class Detour(NamedTuple):
    """What a block left early, a trap, or both mean: the items, and what `HartRecords` knows after them."""

    items: list[QemuIngressItem]
    instructions: int
    last: Entered
    block: Block | None
    mode: ProgramContext | None


def _detour_length(words: "array[int]", at: int) -> int:
    """Return how many words from *at* on are a block's early end, a trap, or both, and the next block; 0: they are
    something else.
    """
    end, size = at, len(words)
    if end < size and words[end] & TAG == PARTIAL:
        end += 1
    if end < size and words[end] & (TAG | RECORDING_BEGAN | ADDRESS_SPACE) == TRAP:
        end += 1 + TRAP_WORDS
    return end + 1 - at if at < end < size and words[end] < DATA else 0


class HartRecords:
    """Collects what one hart ran. *code*: the blocks. *contexts*: privilege modes are also recorded, and ASIDs as
    scontext: QEMU has no such register. *spaces*: the trace will have them, so each may have its own code.
    """

    def __init__(self, code: RecordedCode, *, contexts: bool = False, spaces: bool = False) -> None:
        self._code, self._contexts, self._spaces = code, contexts, spaces
        self._out = RecordedItems()
        self._last: Entered | None = None  # the block entered last
        self._count = _ALL  # how many of its instructions had begun
        self._traps: list[TrapTaken] = []
        self._data: list[int] = []  # of a trap that is being read
        self._interrupt = self._is_space = False
        self._asid: int | None = None
        self._block: Block | None = None  # output last, if nothing came after it
        self._mode: ProgramContext | None = None
        self._detours: dict[tuple[int, ProgramContext | None, int | None, bytes], Detour] = {}

    def feed(self, words: "array[int]") -> RecordedItems:
        """Return what is known now, oldest first. Raises QemuError."""
        self._out = out = RecordedItems()
        if self._code.chain is None:
            self._feed_words(words, out)
            return out
        at, end = 0, len(words)
        while at < end:
            last = self._unhindered()
            detour = 0
            if last is not _HINDERED:
                at = self._follow(self._code.chain, words, at, last)
                detour = _detour_length(words, at)
            if detour:
                self._take_detour(words[at : at + detour])
                at += detour
            elif at < end:
                self._read_word(words[at])
                at += 1
        return out

    def _take_detour(self, words: "array[int]") -> None:
        """Read the end of a block, a trap, or both, and the block after them; what that means is remembered."""
        assert self._last is not None
        out, key = self._out, (self._last.number, self._mode, self._asid, words.tobytes())
        detour = self._detours.get(key)
        if detour is not None:
            out += detour.items
            out.instructions += detour.instructions
            self._last, self._block, self._mode = detour.last, detour.block, detour.mode
            return
        begin, instructions, jumps = len(out), out.instructions, out.jumps
        for word in words:
            self._read_word(word)
        items, block = out[begin:], self._block
        if items and out.jumps == jumps and (block is None or block in items):
            if len(self._detours) >= _MOST_DETOURS:
                self._detours.clear()
            self._detours[key] = Detour(items, out.instructions - instructions, self._last, block, self._mode)

    def _read_word(self, word: int) -> None:
        if word < DATA:
            self._enter(self._entered(word))
        else:
            self._other(word)

    def _follow(self, chain: Any, words: "array[int]", at: int, last: Entered) -> int:
        """Read the words of blocks that have followed each other before; return where others begin."""
        out = self._out
        begin, (at, number, instructions) = at, chain.run(words, at, last.number, out)
        if at > begin:
            out.instructions += instructions
            self._last, self._block = self._code.block(number), cast(Block, out[-1])
        return at

    def _feed_words(self, words: "array[int]", out: RecordedItems) -> None:
        """Do the same as `feed`, without a kernel."""
        append, blocks = out.append, self._code.blocks
        last, given = self._unhindered(), self._block
        for word in words:
            if word < DATA:
                entered = (blocks[word] if word < len(blocks) else None) or self._entered(word)
                if entered in last.followers:
                    given = last.block
                    append(given)
                    last = entered
                    continue
                if last is not _HINDERED:
                    self._last, self._block = last, given
                self._enter(entered)
            else:
                if last is not _HINDERED:
                    self._last, self._block = last, given
                self._other(word)
            last, given = self._unhindered(), self._block
        if last is not _HINDERED:
            self._last, self._block = last, given
        out.instructions = sum(map(getattr, out, repeat("instructions"), repeat(0)))

    def _unhindered(self) -> Entered:
        """Return the block that was entered last, if it is sure to be output when one of its `followers` is entered."""
        last, block = self._last, self._block
        if last is None or self._count != _ALL or self._traps:
            return _HINDERED
        return last if block is None or may_follow(block, last.pc) else _HINDERED

    def _enter(self, entered: Entered) -> None:
        if not entered.ran or entered.own:
            is_known = self._spaces and entered.mode is not None and entered.mode.prv == _USER
            self._code.add_run(entered, self._asid if is_known else None)
        last = self._last
        if last is not None and self._count == _ALL and not self._traps and last.repeated != entered.pc:
            self._give(last.block)
            if may_follow(last.block, entered.pc) and last.mode == entered.mode and not entered.own:
                last.followers.add(entered)
                if self._code.chain is not None:
                    self._code.chain.pair(last.number, entered.number)
        else:
            self._settle_block(entered.pc)
        if self._contexts and entered.mode is not None:
            now = entered.mode if self._asid is None else entered.mode._replace(scontext=self._asid)
            if now != self._mode:
                self._mode = now
                self._out.append(now)
        self._last, self._count = entered, _ALL

    def open_end(self, began: int) -> RecordedItems:
        """Return the retired instructions of the block that was entered last, of which *began* have begun.

        The program is stopped. `feed` will return them again.
        """
        last, kept = self._last, (self._count, self._block)
        self._out = out = RecordedItems()
        if last is None:
            return out
        if self._count == _ALL:
            self._count = min(began, len(last))
        traps, self._traps = self._traps, self._traps[:1]
        self._finish(self._traps[0].epc if self._traps else _ALL, last)
        self._traps = traps
        self._count, self._block = kept
        return out

    def _entered(self, number: int) -> Entered:
        if number >= len(self._code.blocks):
            self._code.refresh()
        try:
            return self._code.block(number)
        except IndexError:
            raise QemuError(self._code.why_missing(number)) from None

    def _other(self, word: int) -> None:
        tag = word & TAG
        if tag == PARTIAL:
            self._count = word & FIELD
        elif tag == TRAP and word & RECORDING_BEGAN:
            self._last, self._block, self._traps = None, None, []
        elif tag == TRAP:
            self._data, self._interrupt, self._is_space = [], bool(word & 1), bool(word & ADDRESS_SPACE)
        elif tag == DATA:
            self._data.append(word & FIELD)
            if self._is_space:
                if len(self._data) == SPACE_WORDS:
                    self._asid = self._code.asid(self._data[0] | self._data[1] << 30 | self._data[2] << 60)
            elif len(self._data) == TRAP_WORDS:
                data = self._data
                epc, cause, tval = (data[i] | data[i + 1] << 30 | data[i + 2] << 60 for i in (0, 3, 6))
                if len(self._traps) == _MOST_TRAPS:
                    self._traps.pop()
                self._traps.append(TrapTaken(self._interrupt, epc, cause & _CAUSE_MASK, tval))

    def _settle_block(self, pc: int) -> None:
        """Determine the fate of the previous block, now that one is entered at *pc*."""
        if self._last is not None:
            self._finish(self._traps[0].epc if self._traps else pc, self._last)
            self._out += self._handled(pc)
        self._traps = []

    def _handled(self, pc: int) -> Iterator[IngressTrap]:
        """Yield the traps, the last of which led to *pc*."""
        for number, trap in enumerate(self._traps, 1):
            handler = self._traps[number].epc if number < len(self._traps) else pc
            self._block = None
            yield IngressTrap(trap.epc, trap.interrupt, trap.cause, trap.tval, handler)

    def _finish(self, then: int, last: Entered) -> None:
        """Output the last block. *then*: where execution continued."""
        count = len(last) if self._count == _ALL else self._count
        if count and then == last.pcs[count - 1]:
            excepted = bool(self._traps) and not self._traps[0].interrupt
            if excepted or not last.may_stay(count):
                count -= 1
        if count:
            self._give(last.part(0, count))

    def _give(self, block: Block) -> None:
        if self._block is not None and not may_follow(self._block, block.pc):
            self._out.append(Jumped(block.pc))
            self._out.jumps += 1
        self._out.append(block)
        self._out.instructions += block.instructions
        self._block = block


assert BLOCK == 0, "feed tells blocks by their words being below DATA"
