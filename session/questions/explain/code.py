"""What instructions depend on and change, by their encodings alone: the data flow of loops, the constants in code.

Sources: those of `decode.semantics`.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.code import word_at
from rvtrace_gdb.decode.semantics import operations, zcmp
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.templates import fp_template
from rvtrace_gdb.decode.semantics.writes import EXTENSIONS

SP = 2
_COUNTERS = frozenset({*range(0xC00, 0xC20), *range(0xC80, 0xCA0), *range(0xB00, 0xB20), *range(0xB80, 0xBA0)})
"""CSRs that count by themselves, user and machine (Privileged Architecture, "CSR Listing")."""
_UPPER = ("lui", "auipc")
_FIRST, _SECOND = re.compile(r"\{[suw]?a\}"), re.compile(r"\{[suw]?b\}")
"""The operands in templates of `decode.semantics.operations`."""


class CodeRole(Enum):
    """What an instruction does, as far as a loop depends on it."""

    BRANCH = "branch"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    CSR = "csr"
    WAIT = "wfi"
    DIVISION = "division"
    OTHER = "other"
    UNKNOWN = "unknown"
    """What its result depends on is not followed, or not known."""


class CodeEffect(NamedTuple):
    """What an instruction does.

    sources   the integer registers that it reads; *address*: that with which it forms an address, None: none
    targets   the integer registers that it writes
    size      bytes of its access to memory
    counts    the CSR that it reads counts by itself
    """

    role: CodeRole
    name: str
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    address: int | None = None
    offset: int = 0
    size: int = 0
    counts: bool = False


class Code:
    """The instructions of a program, by their addresses. An instruction that is not known may read and write all."""

    def __init__(self, image: Image, words: Mapping[int, int] | None = None) -> None:
        """*words*: what ran at some addresses, as the trace says it."""
        self.image, self.xlen = image, image.xlen
        self._words = words or {}
        self._effects: dict[int, CodeEffect] = {}
        self._operations: dict[int, Operation] = {}

    def operation(self, pc: int) -> Operation:
        """Return the decoded instruction at an address."""
        found = self._operations.get(pc)
        if found is None:
            found = self._operations[pc] = _decoder(self.xlen, self.image.zcm).decode(self._code_word(pc))
        return found

    def _code_word(self, pc: int) -> int:
        found = self._words.get(pc)
        return word_at(self.image, pc) if found is None else found

    def effect(self, pc: int) -> CodeEffect:
        """Return what the instruction at an address does."""
        found = self._effects.get(pc)
        if found is None:
            word = self._code_word(pc)
            several = zcmp.operations(word, self.xlen) if self.image.zcm and word & 3 != 3 else ()
            found = self._effects[pc] = _together([effect_of(it) for it in several or (self.operation(pc),)])
        return found

    def stack_move(self, pc: int, registers: Mapping[int, int]) -> int | None:
        """Return by how much the instruction at an address moves sp; None: it does not, or by something that is not
        known. *registers*: those that are known.
        """
        if SP not in self.effect(pc).targets:
            return None
        word = self._code_word(pc)
        several = zcmp.operations(word, self.xlen) if self.image.zcm and word & 3 != 3 else ()
        moves = [it for it in several or (self.operation(pc),) if it.rd == SP and it.name in ("addi", "add")]
        if len(moves) != 1 or SP not in (moves[0].rs1, moves[0].rs2 if moves[0].name == "add" else SP):
            return None
        op = moves[0]
        if op.name == "addi":
            return op.imm if op.rs1 == SP else None
        by = registers.get(op.rs2 if op.rs1 == SP else op.rs1)
        return None if by is None else by - (by >> self.xlen - 1 << self.xlen)


@lru_cache(maxsize=8)
def _decoder(xlen: int, zcm: bool) -> Decoder:
    return Decoder(xlen, tuple(name for name in EXTENSIONS if not zcm or name not in "FD"))


def effect_of(op: Operation) -> CodeEffect:
    """Return what one operation does."""
    name = op.name
    targets = (op.rd,) if op.rd else ()
    if name == "illegal":
        return CodeEffect(CodeRole.UNKNOWN, name)
    if name in operations.BRANCHES:
        return CodeEffect(CodeRole.BRANCH, name, _registers(op.rs1, op.rs2))
    if name in operations.LOADS:
        return CodeEffect(CodeRole.LOAD, name, _registers(op.rs1), targets, op.rs1, op.imm, _size(name))
    if name in operations.FP_LOADS:
        return CodeEffect(CodeRole.LOAD, name, _registers(op.rs1), (), op.rs1, op.imm, operations.FP_LOADS[name])
    if name in operations.STORES:
        return CodeEffect(CodeRole.STORE, name, _registers(op.rs1, op.rs2), (), op.rs1, op.imm, operations.STORES[name])
    if name in operations.FP_STORES:
        return CodeEffect(CodeRole.STORE, name, _registers(op.rs1), (), op.rs1, op.imm, operations.FP_STORES[name])
    if name.startswith(("lr.", "sc.", "amo")):
        size = 8 if name.endswith(".d") else 4
        return CodeEffect(CodeRole.ATOMIC, name, _registers(op.rs1, op.rs2), targets, op.rs1, 0, size)
    if name.startswith("csrr"):
        sources = () if name.endswith("i") else _registers(op.rs1)
        return CodeEffect(CodeRole.CSR, name, sources, targets, offset=op.imm, counts=op.imm in _COUNTERS)
    if name == "wfi":
        return CodeEffect(CodeRole.WAIT, name)
    if _is_floating(name):
        return _floating(op)
    role = CodeRole.DIVISION if name.rstrip("uw") in ("div", "rem") else CodeRole.OTHER
    return CodeEffect(role, name, _source_registers(op), targets)


def _size(load: str) -> int:
    return {"b": 1, "h": 2, "w": 4, "d": 8}[load.rstrip("u")[-1]]


def _is_floating(name: str) -> bool:
    return name[0] == "f" and not name.startswith("fence")


def _floating(op: Operation) -> CodeEffect:
    """Return what an instruction of floating point does to integer registers: others are not followed."""
    if fp_template(op).to_integer:
        return CodeEffect(CodeRole.UNKNOWN, op.name, (), _registers(op.rd))
    return CodeEffect(CodeRole.OTHER, op.name)


def _source_registers(op: Operation) -> tuple[int, ...]:
    if op.name == "jalr":
        return _registers(op.rs1)
    template = operations.VALUES.get(op.name, "")
    return _registers(op.rs1 if _FIRST.search(template) else 0, op.rs2 if _SECOND.search(template) else 0)


def _registers(*numbers: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for number in numbers if number))


def _together(several: Sequence[CodeEffect]) -> CodeEffect:
    """Return what an instruction does that does what several do, in order."""
    if len(several) == 1:
        return several[0]
    sources = tuple(dict.fromkeys(source for it in several for source in it.sources))
    targets = tuple(dict.fromkeys(target for it in several for target in it.targets))
    return CodeEffect(CodeRole.OTHER, several[0].name, sources, targets)


def constant_of(op: Operation, pc: int, registers: Mapping[int, int], xlen: int) -> int | None:
    """Return the value that an instruction gives to its register, of registers that are known; None: it is not known,
    or no value that addresses are made of.
    """
    mask = (1 << xlen) - 1
    if op.name in _UPPER:
        return op.imm + (pc if op.name == "auipc" else 0) & mask
    first = 0 if op.rs1 == 0 else registers.get(op.rs1)
    if op.name == "addi":
        return None if first is None else first + op.imm & mask
    if op.name == "add":
        second = 0 if op.rs2 == 0 else registers.get(op.rs2)
        return None if first is None or second is None else first + second & mask
    return None
