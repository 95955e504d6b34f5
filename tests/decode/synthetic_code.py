"""The instructions of the programs the tests invent, one kind at a time: their bytes, and where they may go on."""

import random
from typing import NamedTuple

from tests.decode import assembler as asm

LINK = (1, 5)
T1, T2 = 6, 7

BRANCHES = ("beq", "c.beqz")
DIRECT = ("j", "c.j", "call")
INDIRECT = ("jump", "icall", "ret", "swap", "mret", "constant jump")

REACH = {"beq": 4000, "c.beqz": 250, "j": 1 << 19, "c.j": 2000, "call": 1 << 19}
"""How far a kind with a target in its code can go, in bytes."""

_PLAIN = {"c.nop": asm.C_NOP, "nop": asm.NOP, "long": asm.LONG_48, "custom": asm.CUSTOM_0, "ecall": asm.ECALL}
_FIXED = {kind: len(code) for kind, code in _PLAIN.items()}
_FIXED |= {"beq": 4, "c.beqz": 2, "j": 4, "c.j": 2, "call": 4, "swap": 4, "mret": 4}
_FIXED |= {"pair": 8, "c.pair": 6, "pair call": 8}


class Line(NamedTuple):
    """An instruction still to be placed; of the kinds "pair", "c.pair" and "pair call" two: a constant, a jump to it.

    to      number of the line it goes to, -1 for any in reach
    role    what an execution should do with it: "loop", "guard" (of a call), "spin" (a jump to itself), or ""
    length  in bytes
    """

    kind: str
    to: int = -1
    role: str = ""
    length: int = 0

    def sized(self, rng: random.Random) -> "Line":
        """With its length, which is free for indirect jumps."""
        return self._replace(length=_FIXED.get(self.kind) or rng.choice([2, 2, 4]))


class Spot(NamedTuple):
    """One instruction in its place.

    targets  where a branch goes if taken, a direct jump, or an indirect one whose constant was loaded just before
    pops     it is a return (both with *pushes*: a co-routine swap), by N-Trace's table "Generating itype"
    pushes   it is a call
    role     as in `Line`
    """

    length: int
    kind: str
    targets: tuple[int, ...] = ()
    pops: bool = False
    pushes: bool = False
    role: str = ""


Placed = list[tuple[bytes, Spot]]


def place(line: Line, address: int, target: int, xlen: int, rng: random.Random, *, possible: bool = False) -> Placed:
    """The bytes and spots of a line at *address* that goes to *target*, if it goes anywhere.

    *possible*: no jump to a constant that executions take for a jump to anywhere.
    """
    kind, mask = line.kind, (1 << xlen) - 1
    if kind in _PLAIN:
        return [(_PLAIN[kind], Spot(line.length, kind))]
    if kind == "mret":
        return [(rng.choice([asm.MRET, asm.SRET]), Spot(4, kind))]
    if "pair" in kind:
        return _pair(line, address, target, mask, rng, possible)
    if kind in REACH:
        return [_direct(line, target - address, target & mask, rng)]
    rd, rs1 = _registers(kind, line.length, rng)
    if line.length == 4:
        code = asm.jalr(rd, rs1)
    else:
        code = asm.c_jalr(rs1) if rd else asm.c_jr(rs1)
    targets = (target & mask,) if line.role == "spin" else ()
    return [(code, Spot(line.length, kind, targets, _pops(rd, rs1), rd in LINK, line.role))]


def _direct(line: Line, offset: int, target: int, rng: random.Random) -> tuple[bytes, Spot]:
    rd = rng.choice(LINK) if line.kind == "call" else 0
    assemble = {"beq": asm.beq, "c.beqz": asm.c_beqz, "c.j": asm.c_j}.get(line.kind)
    code = assemble(offset) if assemble else asm.jal(offset, rd)
    return code, Spot(line.length, line.kind, (target,), False, rd in LINK, line.role)


def _pops(rd: int, rs1: int) -> bool:
    return rs1 in LINK and rd != rs1


def _registers(kind: str, length: int, rng: random.Random) -> tuple[int, int]:
    """rd and rs1 that make a jump one of this kind."""
    if kind == "icall":
        return (1, rng.choice([1, T1])) if length == 2 else rng.choice([(1, T1), (5, T1), (1, 1), (5, 5)])
    if kind == "swap":
        return rng.choice([(1, 5), (5, 1)])
    rd = 0 if length == 2 else rng.choice([0, T2])
    return rd, rng.choice(LINK) if kind == "ret" else T1


def _pair(line: Line, address: int, target: int, mask: int, rng: random.Random, possible: bool) -> Placed:
    """lui, auipc or c.lui, and a jump through its register; where the constant does not reach, it is another one."""
    size = line.length - 4
    rd = rng.choice(LINK) if line.kind == "pair call" else rng.choice([0, 0, T2])
    register = rng.choice([T1, T2, rd or T1])  # through its own link register it is a call like any other
    relative = size == 4 and rng.random() < 0.6
    distance = target - (address if relative else 0)
    low = (distance + 0x800 & 0xFFF) - 0x800
    upper = distance - low >> 12 & 0xF_FFFF
    upper -= (upper & 0x8_0000) << 1
    reached = (address if relative else 0) + (upper << 12) + low & mask
    if size == 2:
        upper = upper if -32 <= upper < 32 and upper else 1
        reached = (upper << 12) + low & mask
    assemble = asm.c_lui if size == 2 else asm.auipc if relative else asm.lui
    known = (target & mask,) if reached == target & mask else ()
    if not known:
        register, low = T1, 0
        assemble, upper = (asm.c_lui, 1) if size == 2 else (asm.lui, 0x12345)
        if rng.random() < 0.5 or possible:
            return _no_pair(size, rd)
    jump = Spot(4, "constant jump", known, False, rd in LINK)
    return [(assemble(register, upper), Spot(size, "upper")), (asm.jalr(rd, register, low), jump)]


def _no_pair(size: int, rd: int) -> Placed:
    plain = "c.nop" if size == 2 else "nop"
    return [(_PLAIN[plain], Spot(size, plain)), (asm.jalr(rd, T1), Spot(4, "constant jump", (), False, rd in LINK))]
