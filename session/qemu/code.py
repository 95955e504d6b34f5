"""The code that ran, as QEMU's translation blocks: the recorder writes down each one once, before it first runs."""

import os
from collections.abc import Iterator
from pathlib import Path

from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.ingress import UNINFERABLE, Block
from rvtrace_gdb.decode.instructions import Instruction, IType, classify
from rvtrace_gdb.transport.qemu.errors import QemuError
from rvtrace_gdb.transport.qemu.ring import CODE, Ring

_UNKNOWN_MODE = 0xF
_GUEST = 4
_NOWHERE = -1


class Entered:
    """A translation block. *mode* is None where it is not known.

    block     all of it
    repeated  where its last instruction is, unless that can lead to itself: when execution goes on there, it did not
              retire, but is begun anew
    followers the blocks that were seen to come after all of it, as its code has it, and in the same mode
    """

    __slots__ = ("_instructions", "_parts", "_xlen", "block", "followers", "mode", "pc", "pcs", "repeated")

    def __init__(self, pc: int, mode: int, instructions: list[Instruction], xlen: int) -> None:
        self.pc, self._instructions, self._xlen = pc, instructions, xlen
        self.mode = None if mode == _UNKNOWN_MODE else Context(mode & 3, bool(mode & _GUEST))
        self.pcs = [pc]
        for instruction in instructions[:-1]:
            self.pcs.append(self.pcs[-1] + instruction.length)
        self._parts: dict[tuple[int, int], Block] = {}
        self.followers: set[Entered] = set()
        self.block = self.part(0, len(instructions))
        self.repeated = _NOWHERE if self.may_stay(len(instructions)) else self.pcs[-1]

    def __len__(self) -> int:
        return len(self.pcs)

    def part(self, begin: int, end: int) -> Block:
        """Its instructions *begin* to *end* - 1, at least one."""
        found = self._parts.get((begin, end))
        if found is None:
            found = Block.of(self.pcs[begin], self._instructions[begin:end], self._xlen)
            self._parts[begin, end] = found
        return found

    def may_stay(self, count: int) -> bool:
        """Whether the last of the first *count* instructions can lead to itself: a jump."""
        last = self._instructions[count - 1]
        return last.offset == 0 or last.is_uninferable


class Code:
    """The blocks in the file of *ring*'s recorder, by their number. *image*: what the program is made of otherwise."""

    def __init__(self, ring: Ring, image: Image) -> None:
        self._path, self._ring, self._image = ring.folder / CODE, ring, image
        self.blocks: list[Entered] = []
        self._read = 0  # bytes of the file
        self._file = self._path.open("rb") if self._path.exists() else None
        self._fresh: list[tuple[int, bytes]] = []
        self.changed: int | None = None
        """The lowest address where other code ran than the program is known to have."""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def refresh(self) -> None:
        """Reads what was added. Raises QemuError."""
        size = self._ring.code_bytes
        if self._file is None or size <= self._read:
            return
        self._file.seek(self._read)
        data = self._file.read(size - self._read)
        self._read += len(data)
        for line in data.splitlines():
            self.blocks.append(self._block(line))

    def why_missing(self, number: int) -> str:
        """For the user: why a block is not there."""
        if self._ring.failed:
            return lacking(self._ring)
        return f"{self._path}: the recorder has not told what block {number} is"

    def take_fresh(self) -> list[tuple[int, bytes]]:
        """(address, bytes) of the blocks that were read since this was last asked."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def _block(self, line: bytes) -> Entered:
        try:
            pc, mode, *words = line.split()
            codes = [bytes.fromhex(word.decode())[::-1] for word in words]
            address = int(pc, 16)
            instructions = list(self._instructions(address, codes))
            self._fresh.append((address, b"".join(codes)))
            return Entered(address, int(mode, 16), instructions, self._image.xlen)
        except (ValueError, IndexError, UndecodableInstruction) as error:
            raise QemuError(f"{self._path}: is damaged: {error}") from None

    def _instructions(self, address: int, codes: list[bytes]) -> Iterator[Instruction]:
        for code in codes:
            yield self._instruction(address, code)
            address += len(code)

    def _instruction(self, address: int, code: bytes) -> Instruction:
        """As the program has it, which knows more of some; else by itself."""
        try:
            if self._image.knows(address):
                if self._image.read(address, len(code)) == code:
                    return self._image.instruction(address)
                self.changed = address if self.changed is None else min(address, self.changed)
        except (CodeMissing, UndecodableInstruction):
            pass
        return instruction_of(code, self._image.xlen)


def instruction_of(code: bytes, xlen: int) -> Instruction:
    """What these bytes are by themselves; what is no instruction at all raises an exception, and has the length that
    QEMU says.
    """
    try:
        return classify(int.from_bytes(code[:4], "little"), xlen)
    except UndecodableInstruction:
        return Instruction(len(code), IType.EXCEPTION)


def lacking(ring: Ring) -> str:
    """For the user: what it means that the recorder has failed."""
    why = os.strerror(ring.failed)
    return f"{ring.folder}: code or traps are missing: the recorder cannot write down what happens: {why}"


def may_follow(block: Block, pc: int) -> bool:
    """Whether execution can come to *pc* after *block* by itself."""
    return pc in (block.fall, block.taken_target) or block.ending == UNINFERABLE


def exists(folder: Path) -> bool:
    """Whether there is a recorder in *folder*."""
    return (folder / CODE).exists()
