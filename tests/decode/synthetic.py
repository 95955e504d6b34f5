"""Random programs and random executions of them, for properties that must hold on code no one tuned anything for.

The executions come from here, not from the code under test: this file knows what it assembled and where that may go on.
"""

import random
from typing import NamedTuple

from decode.image import Image
from decode.ingress import Block, Trap
from tests.decode import assembler as asm


class Spot(NamedTuple):
    """One instruction. *targets*: where a branch can go beside the next instruction, a direct jump instead of it."""

    length: int
    kind: str
    targets: tuple[int, ...]


class Program:
    """Code at *base*, starting anywhere, leading anywhere within itself."""

    def __init__(self, rng: random.Random, xlen: int, size: int) -> None:
        self.xlen = xlen
        self.base = rng.choice([0x1000, 0x8000_0000, 0xFFFF_F000 if xlen == 32 else 0xFFFF_FFFF_8000_0000])
        self.base &= (1 << xlen) - 1
        kinds = [rng.choice(_MIX) for _ in range(size)]
        kinds[-1] = "ret"  # nothing runs off the end
        addresses = [self.base]
        for kind in kinds:
            addresses.append(addresses[-1] + _LENGTHS[kind])
        self.end = addresses.pop()
        self.starts = addresses
        self.spots: dict[int, Spot] = {}
        code = bytearray()
        for address, kind in zip(addresses, kinds, strict=True):
            reach = _REACH.get(kind, 0)
            targets = [target for target in addresses if abs(target - address) <= reach]
            target = rng.choice(targets) if targets else 0
            code += _assemble(kind, target - address, rng)
            self.spots[address] = Spot(_LENGTHS[kind], kind, (target,) if targets else ())
        self.code = bytes(code)

    def image(self, shift: int = 0) -> Image:
        """The program as the decoder gets it; *shift* bytes of c.nop before it make it the wrong one."""
        image = Image(self.xlen)
        image.add_code(self.base, asm.C_NOP * (shift // 2) + self.code)
        return image


_LENGTHS = {
    "c.nop": 2, "nop": 4, "long": 6, "beq": 4, "c.beqz": 2, "j": 4, "c.j": 2, "call": 4, "ret": 2, "jump": 4, "mret": 4,
}  # fmt: skip
_MIX = ["c.nop"] * 6 + ["nop"] * 6 + ["beq"] * 4 + ["c.beqz"] * 4
_MIX += ["long", "j", "c.j", "call", "ret", "jump", "mret"]
_REACH = {"beq": 4000, "c.beqz": 250, "j": 1 << 19, "c.j": 2000, "call": 1 << 19}


def _assemble(kind: str, offset: int, rng: random.Random) -> bytes:
    simple = {"c.nop": asm.C_NOP, "nop": asm.NOP, "long": asm.LONG_48, "mret": asm.MRET}
    if kind in simple:
        return simple[kind]
    if kind in ("ret", "jump"):
        rd, rs1 = rng.choice([0, 1, 5, 7]), rng.choice([1, 5, 6])
        return asm.c_jr(rs1) if kind == "ret" else asm.jalr(rd, rs1)
    return {"beq": asm.beq, "c.beqz": asm.c_beqz, "j": asm.jal, "c.j": asm.c_j, "call": _call}[kind](offset)


def _call(offset: int) -> bytes:
    return asm.jal(offset, 1)


class Run(NamedTuple):
    """An execution: the addresses, what the hart told the encoder, and where it would go on."""

    pcs: list[int]
    items: list[Block | Trap]
    next_pc: int
    traps: list[tuple[int, Trap]]
    """Position of the handler's first instruction, and the trap."""


def execute(program: Program, rng: random.Random, steps: int, trap_rate: float) -> Run:
    """Runs *steps* instructions; branches and jumps go at random, traps come between any two, several at once too."""
    image = program.image()
    pcs: list[int] = []
    items: list[Block | Trap] = []
    traps: list[tuple[int, Trap]] = []
    block: list[int] = []
    pc = rng.choice(program.starts)
    # Outcomes and targets are taken from short lists, so that loops come up and repeat themselves.
    habits: dict[int, list[int]] = {}

    def close() -> None:
        if block:
            items.append(Block.of(block[0], map(image.instruction, block)))
            block.clear()

    while len(pcs) < steps:
        while rng.random() < trap_rate:
            close()
            trap = Trap(pc, rng.random() < 0.5, 0, 0, rng.choice(program.starts))
            items.append(trap)
            traps.append((len(pcs), trap))
            pc = trap.handler
        spot = program.spots[pc]
        pcs.append(pc)
        block.append(pc)
        fall = pc + spot.length
        if spot.kind in ("beq", "c.beqz"):
            habit = habits.setdefault(pc, [rng.choice([fall, *spot.targets]) for _ in range(rng.randint(1, 5))])
        elif spot.kind in ("j", "c.j", "call"):
            habit = list(spot.targets)
        elif spot.kind in ("ret", "jump", "mret"):
            habit = habits.setdefault(pc, [rng.choice(program.starts) for _ in range(rng.randint(1, 3))])
        else:
            pc = fall
            if rng.random() < 0.02:
                close()  # a hart may report a straight run in pieces
            continue
        pc = rng.choice(habit)
        close()
    close()
    return Run(pcs, items, pc, traps)
