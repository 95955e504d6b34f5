"""Random programs for RV64, a hart that runs them, and a recorder: what really ran, and what CTR says of it.

Types by the table "Control Transfer Type Definitions" of RISC-V Control Transfer Records 1.0. Nothing here uses the
code under test: a program knows what it assembled.
"""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.decode.ctr.records import CtrRecord
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm

BASE = 0x8000_0000
A0, T1, T2, SP = 10, 6, 7, 2
JUMPS = frozenset({8, 9, 10, 11, 12, 13, 14, 15})
ALL = frozenset({1, 2, 3, 4, 5}) | JUMPS
"""Types that leave a record, but for those that are inhibited."""


class Op(NamedTuple):
    """An instruction. *type*: of its transfer, 4 for a branch, 1 for ecall and ebreak, 0 for none.

    target  line a direct one goes to; rd: link register, or what is written; rs: the register an indirect one goes by,
    or what is saved; offset: of a load or store, from sp; or what is added to sp
    """

    name: str
    type: int = 0
    length: int = 4
    target: int = 0
    rd: int = 0
    rs: int = 0
    offset: int = 0


def _sd(rs2: int, rs1: int, offset: int) -> bytes:
    word = (offset >> 5 & 0x7F) << 25 | rs2 << 20 | rs1 << 15 | 3 << 12 | (offset & 31) << 7 | 0x23
    return word.to_bytes(4, "little")


def _ld(rd: int, rs1: int, offset: int) -> bytes:
    return ((offset & 0xFFF) << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x03).to_bytes(4, "little")


def _addi(rd: int, rs1: int, immediate: int) -> bytes:
    return ((immediate & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x13).to_bytes(4, "little")


def _code(op: Op, distance: int) -> bytes:
    """The bytes of an instruction that goes *distance* far, if it goes anywhere by itself."""
    short = op.length == 2
    match op.name:
        case "nop":
            return asm.C_NOP if short else asm.NOP
        case "branch":
            return asm.c_beqz(distance) if short else asm.beq(distance)
        case "direct":
            return asm.c_j(distance) if short else asm.jal(distance, op.rd)
        case "indirect":
            if short:
                return asm.c_jalr(op.rs) if op.rd else asm.c_jr(op.rs)
            return asm.jalr(op.rd, op.rs)
        case "upper":
            return asm.auipc(T1, 0)
        case "near":  # by the auipc before it
            return asm.jalr(0, T1, distance + 4)
        case "load":
            return _ld(op.rd, SP, op.offset)
        case "spoil":
            return _ld(op.rd, A0, 0)
        case "save":
            return _sd(op.rs, SP, op.offset)
        case "move":
            return _addi(op.rd, op.rs, 0)
        case "stack":
            return _addi(SP, SP, op.offset)
    return {"ecall": asm.ECALL, "ebreak": asm.EBREAK, "mret": asm.MRET}[op.name]


class Program:
    """*ops* at the addresses *pcs*; `at`: which one is at an address."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.ops: list[Op] = []
        while len(self.ops) < size:
            self.ops += _some(rng, len(self.ops), size)
        self.ops.append(Op("direct", 11, target=rng.randrange(len(self.ops))))  # nothing runs off the end
        self.pcs = [BASE]
        for op in self.ops:
            self.pcs.append(self.pcs[-1] + op.length)
        self.pcs.pop()
        self.at = dict(zip(self.pcs, self.ops, strict=True))
        self.code = b"".join(_code(op, self.to(op) - pc) for pc, op in self.at.items())

    def to(self, op: Op) -> int:
        """Where an instruction goes by itself."""
        return self.pcs[min(op.target, len(self.pcs) - 1)]

    def image(self, shift: int = 0) -> Image:
        """As the decoder gets it; *shift* bytes of c.nop before it make it the wrong one."""
        image = Image(64)
        image.add_code(BASE, asm.C_NOP * (shift // 2) + self.code)
        return image


def _some(rng: random.Random, here: int, size: int) -> list[Op]:
    """An instruction, or a few that belong together."""
    target = rng.randrange(size) if rng.random() < 0.3 else min(here + rng.randint(1, 5), size)
    link, size_of = rng.choice([1, 5]), rng.choice([2, 4])
    match rng.choice(["nop"] * 4 + ["branch"] * 3 + ["call", "ret"] * 2 + ["jump", "other", "stack", "odd"]):
        case "branch":
            return [Op("branch", 4, size_of, target)]
        case "call":
            return [Op("direct", 9, 4, target, link)]
        case "ret":
            return [Op("indirect", 13, size_of, rs=link)]
        case "jump":
            return rng.choice(
                [
                    [Op("direct", 11, size_of, target)],
                    [Op("indirect", 10, size_of, rs=T1)],
                    [Op("indirect", 8, size_of, rd=1, rs=T1)],
                    [Op("upper"), Op("near", 10, 4, target)],
                ]
            )
        case "other":
            swap = Op("indirect", 12, rd=6 - link, rs=link)
            return [rng.choice([swap, Op("direct", 15, 4, target, T2), Op("indirect", 14, 4, rd=T2, rs=T1)])]
        case "stack":
            push = [Op("stack", offset=-16), Op("save", rs=1, offset=8)]
            pop = [Op("load", rd=1, offset=8), Op("stack", offset=16), Op("indirect", 13, size_of, rs=1)]
            return rng.choice([push, pop, [Op("save", rs=A0, offset=rng.choice([0, 8]))], [Op("move", rd=5, rs=1)]])
        case "odd":
            return [rng.choice([Op("ecall", 1), Op("ebreak", 1), Op("mret", 3), Op("spoil", rd=link)])]
    return [Op("nop", length=size_of)]


class Event(NamedTuple):
    """An instruction that retired, or a trap: nothing retired. *type*: 0 for no transfer."""

    pc: int
    type: int
    to: int
    retired: bool = True


@dataclass
class Hart:
    """Runs a program. *traps*: exceptions and interrupts go into its own code; else they come back unseen."""

    program: Program
    rng: random.Random
    traps: bool = True
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pc = self.anywhere()
        self.registers = {1: self.anywhere(), 5: self.anywhere(), T1: self.anywhere(), A0: self.anywhere(), SP: 1 << 16}
        self.memory: dict[int, int] = {}
        self.epc = self.anywhere()

    def anywhere(self) -> int:
        return self.rng.choice(self.program.pcs)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        op, pc = self.program.at[self.pc], self.pc
        fall = pc + op.length
        if self.traps and self.rng.random() < 0.03:
            self._trap(2)
        elif op.type == 1 and self.traps and (op.name == "ecall" or self.rng.random() < 0.5):
            self._trap(1)
        elif op.type == 1:
            self.pc = fall  # a debugger, or code in another mode, has dealt with it
        else:
            kind, self.pc = self._go(op, fall)
            self.events.append(Event(pc, kind, self.pc))

    def _trap(self, kind: int) -> None:
        handler = self.anywhere()
        self.events.append(Event(self.pc, kind, handler, False))
        self.epc, self.pc = self.pc, handler

    def _go(self, op: Op, fall: int) -> tuple[int, int]:
        """What a retiring instruction does: the type of its transfer, and where it goes."""
        registers = self.registers
        if op.name == "branch":
            return (5, self.program.to(op)) if self.rng.random() < 0.5 else (4, fall)
        if op.name == "mret":
            return 3, self.rng.choice([self.epc, self.anywhere()])
        if op.name == "direct" or (op.name == "near" and self._came_by_upper()):
            to = self.program.to(op)
        elif op.name == "near":
            to = self.anywhere()
        elif op.name == "indirect":
            to = self.anywhere() if op.rs == T1 else registers[op.rs]
        else:
            self._do(op)
            return 0, fall
        if op.rd in registers:
            registers[op.rd] = fall
        return op.type, to

    def _came_by_upper(self) -> bool:
        """Whether the instruction right before loaded the register."""
        last = self.events[-1] if self.events else None
        return last is not None and last.to == self.pc and self.program.at[last.pc].name == "upper"

    def _do(self, op: Op) -> None:
        registers, at = self.registers, self.registers[SP] + op.offset
        match op.name:
            case "spoil":
                registers[op.rd] = self.anywhere()
            case "move":
                registers[op.rd] = registers[op.rs]
            case "stack":
                registers[SP] = at
            case "save":
                self.memory[at] = registers[op.rs]
            case "load":
                registers[op.rd] = self.memory.setdefault(at, self.anywhere())


def recorded(events: list[Event], types: frozenset[int]) -> tuple[list[CtrRecord], list[list[int]]]:
    """The records of *events*, oldest first, and what ran before each of them: its source included. Behind the last
    record, what ran since."""
    records: list[CtrRecord] = []
    stretches: list[list[int]] = [[]]
    for event in events:
        if event.retired:
            stretches[-1].append(event.pc)
        if event.type in types:
            records.append(CtrRecord(event.pc, event.to, IType(event.type), offset=24 * len(records)))
            stretches.append([])
    return records, stretches
