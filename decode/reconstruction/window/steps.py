"""Instructions taken apart once for each address: what a window does for each time they ran.

Registers have the numbers 0 to 31 (x), 32 to 63 (f), and from 64 on those CSRs whose values are followed.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import FRM
from rvtrace_gdb.decode.reconstruction.window.classes import BOXED
from rvtrace_gdb.decode.reconstruction.window.floating import FloatingRule, floating_rule
from rvtrace_gdb.decode.reconstruction.window.functions import constant
from rvtrace_gdb.decode.reconstruction.window.rules import InstructionRule, atomic_rule, value_rule
from rvtrace_gdb.decode.reconstruction.window.shapes import loaded_shape
from rvtrace_gdb.decode.semantics import zcmp
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.operations import BRANCHES, FP_LOADS, FP_STORES, LOADS, STORES, VALUES

F0 = 32
MSCRATCH, SSCRATCH, MEPC, SEPC, MCAUSE, SCAUSE = 0x340, 0x140, 0x341, 0x141, 0x342, 0x142
CSRS = {number: 64 + index for index, number in enumerate((MSCRATCH, SSCRATCH, MEPC, SEPC, MCAUSE, SCAUSE, FRM))}
"""The CSRs that are followed, and their numbers as registers."""
REGISTERS = 64 + len(CSRS)


class WindowStep(NamedTuple):
    """What an instruction does, or a part of it. Of the fields, each kind has those that it needs.

    kind     which method of the construction handles it
    rd       the register that it writes; 0: none
    a, b     registers that it reads
    imm      an immediate, or a constant result; of a branch, its target
    size     bytes that it accesses; of a branch, the address behind it
    form     how what is loaded becomes a register: "s", "u" or "f", see `rules.extended`; of a branch, its name
    shape    of what is loaded
    """

    kind: str
    rd: int = 0
    a: int = 0
    b: int = 0
    imm: int = 0
    size: int = 0
    form: str = "u"
    shape: int = 0
    rule: InstructionRule | FloatingRule | None = None
    op: Operation | None = None
    sources: tuple[int, ...] = ()


class StepTable:
    """Makes the steps of instructions. *extensions*: those that the hart has, see `HartMachine`."""

    def __init__(self, xlen: int, extensions: tuple[str, ...]) -> None:
        self._xlen, self._decoder = xlen, Decoder(xlen, extensions)
        self._zcm = "Zcmp" in extensions

    def steps(self, pc: int, word: int) -> list[WindowStep]:
        """Return what an instruction does, in order."""
        several = zcmp.operations(word, self._xlen) if self._zcm and word & 3 != 3 else ()
        return [step for op in several or [self._decoder.decode(word)] for step in self._steps(op, pc)]

    def _steps(self, op: Operation, pc: int) -> Iterator[WindowStep]:
        name = op.name
        if name in LOADS:
            size, is_signed = LOADS[name]
            shape = loaded_shape(name, self._xlen)
            yield WindowStep("load", op.rd, op.rs1, 0, op.imm, size, "s" if is_signed else "u", shape)
        elif name in STORES:
            yield WindowStep("store", 0, op.rs1, op.rs2, op.imm, STORES[name])
        elif name in FP_LOADS:
            size = FP_LOADS[name]
            yield WindowStep("load", F0 + op.rd, op.rs1, 0, op.imm, size, "f", BOXED if size == 4 else 64)
        elif name in FP_STORES:
            yield WindowStep("store", 0, op.rs1, F0 + op.rs2, op.imm, FP_STORES[name])
        elif name in VALUES:
            if op.rd:
                yield self._value_step(op, pc)
        elif name in BRANCHES:
            yield from self._branch(op, pc)
        else:
            yield from self._other(op, pc)

    def _value_step(self, op: Operation, pc: int) -> WindowStep:
        name, rd, a, b = op.name, op.rd, op.rs1, op.rs2
        if name in ("lui", "auipc") or (name == "addi" and not a):
            return WindowStep("constant", rd, imm=constant(op, pc, self._xlen))
        if name == "addi":
            return WindowStep("addi", rd, a, imm=op.imm) if op.imm else WindowStep("copy", rd, a)
        if name in ("add", "or", "xor") and 0 in (a, b):
            return WindowStep("copy", rd, a or b)
        if name == "sub" and not b:
            return WindowStep("copy", rd, a)
        if name == "addiw" and not op.imm:
            return WindowStep("sext", rd, a, rule=value_rule(name, 0, self._xlen))
        rule = value_rule(name, op.imm, self._xlen)
        return WindowStep("binary" if rule.is_binary else "unary", rd, a, b, rule=rule)

    def _branch(self, op: Operation, pc: int) -> Iterator[WindowStep]:
        mask = (1 << self._xlen) - 1
        target, behind = pc + op.imm & mask, pc + op.length & mask
        if target != behind:
            yield WindowStep("branch", 0, op.rs1, op.rs2, target, behind, form=op.name)

    def _other(self, op: Operation, pc: int) -> Iterator[WindowStep]:
        name, _, rest = op.name.partition(".")
        size = 8 if rest.startswith("d") else 4
        if op.name in ("jal", "jalr"):
            behind = pc + op.length & (1 << self._xlen) - 1
            yield WindowStep(op.name, op.rd, op.rs1, imm=op.imm, size=behind)
        elif op.name == "illegal":
            yield WindowStep("undefined", op=op)
        elif name == "lr":
            yield WindowStep("load", op.rd, op.rs1, 0, 0, size, "s", -32 if size < self._xlen // 8 else self._xlen)
        elif name == "sc":
            yield WindowStep("sc", op.rd, op.rs1, op.rs2, size=size)
        elif name.startswith("amo"):
            yield self._atomic(op, name[3:], size)
        elif name.startswith("csrr"):
            yield WindowStep("csr", op.rd, op.rs1, imm=op.imm, op=op)
        elif op.name in ("ecall", "ebreak"):
            yield WindowStep("call", op=op)
        elif op.name == "fence":
            yield WindowStep("fence")
        elif op.name[0] == "f" and not op.name.startswith("fence"):
            yield self._floating(op)

    def _atomic(self, op: Operation, operation: str, size: int) -> WindowStep:
        rule = None if operation == "swap" else atomic_rule(operation, size, self._xlen)
        shape = -32 if size < self._xlen // 8 else self._xlen
        return WindowStep("atomic", op.rd, op.rs1, op.rs2, 0, size, "s", shape, rule=rule)

    def _floating(self, op: Operation) -> WindowStep:
        """A move that loses nothing is a copy; one of 32 bits is an extension."""
        a = F0 + op.rs1
        if op.name == "fsgnj.d" and op.rs1 == op.rs2:
            return WindowStep("copy", F0 + op.rd, a)
        if op.name in ("fmv.x.d", "fmv.x.w"):
            return (
                WindowStep("copy", op.rd, a)
                if op.name[-1] == "d"
                else WindowStep("extend", op.rd, a, form="s", shape=-32)
            )
        if op.name == "fmv.d.x":
            return WindowStep("copy", F0 + op.rd, op.rs1)
        if op.name == "fmv.w.x":
            return WindowStep("extend", F0 + op.rd, op.rs1, form="f", shape=BOXED)
        rule = floating_rule(op.name, op.rm, op.rs1 == op.rs2, self._xlen)
        does = rule.does
        sources = tuple((F0 if it[0] == "f" else 0) + int(getattr(op, it[1:])) for it in does.sources)
        shape = 64 if not does.boxed else BOXED
        if does.to_integer:
            word = -32 if self._xlen == 64 else 32
            shape = 1 if op.name[:3] in ("feq", "flt", "fle") else 10 if op.name[:6] == "fclass" else word
            shape = self._xlen if op.name.startswith("fcvt.l") else shape
        rd = op.rd if does.to_integer else F0 + op.rd
        return WindowStep("floating", rd, shape=shape, rule=rule, sources=sources)
