"""Returns to addresses that no call can have left: the sign of a saved return address that was overwritten.

A return is looked at if the code says that the program meant to return where it was called: it loaded the return
address from its stack, and did not take another stack. What contexts, co-routines and longjmp return with comes from a
stack or a buffer of another, so their returns are none of these; nor is a return to an address that follows a call,
which somebody may have left. Where the function is not known, nothing is said.

Source: RISC-V Instruction Set Manual, volume I (opcode map; "C" Standard Extension, instruction listings).
"""

import re
from collections.abc import Iterable, Iterator

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction, length

_SP, _FP = 2, 8
_STACK = (_SP, _FP)
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP})
_LONGEST = 1 << 14
"""Bytes of a function that are looked at."""
_LABELS = 8  # that code falls through before a return
_LOAD, _OP_IMM, _OP = 0x03, 0x13, 0x33
_WRITING = frozenset({_LOAD, _OP_IMM, 0x17, 0x1B, 0x2F, _OP, 0x37, 0x3B, 0x67, 0x6F, 0x73})
"""The opcodes that write an integer register whose number is in bits 11 to 7."""
_NOPS = (0x0000_0013, 0x0001, 0x0000)


def _class(values: Iterable[int]) -> bytes:
    """Return the part of a regular expression that matches one of these bytes."""
    return b"[" + b"".join(rb"\x%02x" % value for value in values) + b"]"


_OTHERS = _class(high << 4 | 1 for high in range(16) if high)
_MAY_SET_STACK = re.compile(
    b"|".join(
        (
            _class((_LOAD, 0x17, 0x1B, 0x2F, _OP, 0x37, 0x3B, 0x73)) + _class(high << 4 | 1 for high in range(16)),
            _class((_OP_IMM,))
            + b"(?:"
            + _OTHERS
            + rb"|\x01"
            + _class(it for it in range(256) if it & 15 not in (1, 4))
            + b")",
            _class(range(2, 256, 4)) + _class((0x41, 0x51, 0x61, 0x71, 0x81)),
            _class(range(1, 256, 4)) + _class((0x41, 0x51)),
        )
    ),
    re.DOTALL,
)
"""Code without a match has no instruction that writes sp, but those that add to it: 32 bits by their opcodes with
rd = 2, then compressed ones.
"""

CallCode = tuple[int, Instruction, int]
"""An instruction: its address, what it does to the flow, and its encoding."""


class Returns:
    """The returns of one program. *image* has the code that returns."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._loaded: dict[int, bool] = {}
        self._switching: dict[int, bool] = {}

    def is_unexpected(self, pc: int, to: int, into: Image) -> bool:
        """Return whether the return at *pc* takes its address from the stack, and no call can have left *to* there.

        *into*: the program that has *to*.
        """
        return not follows_call(into, to) and self._takes_address_from_stack(pc)

    def takes_stack(self, pc: int) -> bool:
        """Return whether the function that the instruction at *pc* leaves takes another stack before it: it may go on
        in another task. False where its beginning is not known.
        """
        found = self._switching.get(pc)
        if found is None:
            begin = self._function_begin(pc)
            found = begin is not None and self._takes_stack(begin, pc)
            self._switching[pc] = found
        return found

    def _takes_stack(self, begin: int, pc: int) -> bool:
        try:
            code = self._image.read(begin, pc - begin)
        except CodeMissing:
            return False
        if _MAY_SET_STACK.search(code) is None:  # most functions: there is no need to look at each instruction
            return False
        return any(sets_stack(word, it.length) for _, it, word in _decoded(self._image, begin, pc))

    def _takes_address_from_stack(self, pc: int) -> bool:
        found = self._loaded.get(pc)
        if found is None:
            found = self._loaded[pc] = self._look(pc)
        return found

    def _look(self, pc: int) -> bool:
        code = list(self._code_before(pc))
        if not code or any(sets_stack(word, instruction.length) for _, instruction, word in code):
            return False
        via = code[-1][1].via
        if via is None:
            return True  # cm.popret and cm.popretz
        if via.offset:
            return False
        for _, instruction, word in reversed(code[:-1]):
            if _ends(instruction):
                return False
            if self._image.zcm and _pops(word, instruction.length):
                return via.register == 1
            if _written_register(word, instruction.length, self._image.xlen) == via.register:
                return _is_stack_load(word, instruction.length)
        return False

    def _code_before(self, pc: int) -> Iterator[CallCode]:
        """Yield the code of the function, up to the instruction at *pc*; nothing where that is not known."""
        begin = self._function_begin(pc)
        if begin is None:
            return
        for _ in range(_LABELS):
            before = self._function_begin(begin - 2)
            if before is None or not self._falls_through(before, begin):
                break
            begin = before
        code = list(_decoded(self._image, begin, pc + 1))
        if code and code[-1][0] == pc:
            yield from code

    def _function_begin(self, pc: int) -> int | None:
        """Return where the function begins that contains an address."""
        found = self._image.function(pc)
        return None if found is None or pc - found > _LONGEST else found

    def _falls_through(self, begin: int, end: int) -> bool:
        """Return whether the code before a label runs into it: then the label is not a function's."""
        code = list(_decoded(self._image, begin, end))
        while code and code[-1][2] in _NOPS:
            code.pop()
        return bool(code) and not _ends(code[-1][1])


def follows_call(image: Image, address: int) -> bool:
    """Return whether the instruction before an address is a call, in the same function."""
    if image.function(address) == address:
        return False  # what is before does not return: abort, longjmp
    return any(_is_call(image, address - size, size) for size in (2, 4))


def _is_call(image: Image, pc: int, size: int) -> bool:
    """Return whether there is a call of this size at an address. The target is not asked for its code."""
    if not image.knows(pc):
        return False
    try:
        if length(int.from_bytes(image.read(pc, 2), "little")) != size:
            return False
        return image.instruction(pc).itype in _CALLS
    except (CodeMissing, UndecodableInstruction):
        return False


def sets_stack_at(image: Image, pc: int) -> bool:
    """Return whether the instruction at an address takes another stack; False where there is no code."""
    return any(sets_stack(word, instruction.length) for _, instruction, word in _decoded(image, pc, pc + 1))


def sets_stack(word: int, size: int) -> bool:
    """Return whether an instruction gives sp a value that is not computed from sp or the frame pointer."""
    if size == 2:
        return _sets_stack16(word)
    if size != 4 or _written_register(word, 4, 64) != _SP:
        return False
    rs1, rs2 = word >> 15 & 31, word >> 20 & 31
    if word & 0x7F == _OP_IMM:
        return rs1 not in _STACK
    return word & 0x7F != _OP or (rs1 not in _STACK and rs2 not in _STACK)


def _sets_stack16(half: int) -> bool:
    quadrant, funct3, rd = half & 0b11, half >> 13, half >> 7 & 31
    if rd != _SP or quadrant not in (1, 2):
        return False
    if quadrant == 1:
        return funct3 == 0b010  # c.li; c.addi and c.addi16sp add
    is_move = funct3 == 0b100 and half >> 12 & 1 == 0 and half >> 2 & 31 not in (0, *_STACK)
    return funct3 in (0b000, 0b010) or is_move or funct3 == 0b011


def _written_register(word: int, size: int, xlen: int) -> int:
    """Return the integer register that an instruction writes, of those that a return or a stack may use; 0: none."""
    rd = word >> 7 & 31
    if size == 4:
        return rd if word & 0x7F in _WRITING else 0
    quadrant, funct3, rs2 = word & 0b11, word >> 13, word >> 2 & 31
    if size != 2 or quadrant not in (1, 2):
        return 0
    if quadrant == 1:
        return 1 if funct3 == 0b001 and xlen == 32 else rd if funct3 < 0b100 else 0  # c.jal, c.addi to c.lui
    if funct3 == 0b100:
        return rd if rs2 else word >> 12 & 1  # c.mv and c.add; c.jalr writes ra
    return rd if funct3 in (0b000, 0b010) or (funct3 == 0b011 and xlen == 64) else 0


def _is_stack_load(word: int, size: int) -> bool:
    """Return whether an instruction that writes a register loads it from the stack."""
    if size == 2:
        return word & 0b11 == 2 and word >> 13 in (0b010, 0b011)
    return word & 0x7F == _LOAD and word >> 15 & 31 in _STACK


def _pops(half: int, size: int) -> bool:
    """Return whether an instruction is cm.pop."""
    return size == 2 and half & 0xFF03 == 0xBA02


def _ends(instruction: Instruction) -> bool:
    """Return whether what follows an instruction does not run after it."""
    if instruction.itype in _CALLS:
        return False
    return instruction.is_inferable_jump or instruction.is_uninferable


def _decoded(image: Image, begin: int, end: int) -> Iterator[CallCode]:
    """Yield the instructions from one address to another, up to the first for which there is no code."""
    while begin < end:
        try:
            instruction = image.instruction(begin)
            word = int.from_bytes(image.read(begin, instruction.length), "little")
        except (CodeMissing, UndecodableInstruction):
            return
        yield begin, instruction, word
        begin += instruction.length
