"""Random programs, for properties that must hold on code no one tuned anything for.

What they may do comes from here and from `executions`, not from the code under test: these files know what they
assembled and where that may go on.
"""

import random
from collections.abc import Sequence

from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.synthetic_code import BRANCHES, DIRECT, REACH, Line, Spot, place

MIXES = {
    "plain": ["c.nop", "nop"] * 6,
    "branch": ["beq", "c.beqz"] * 4,
    "jump": ["j", "c.j", "call", "ret", "jump", "mret", "icall"],
    "odd": ["long", "custom", "swap", "ecall", "pair", "c.pair", "pair call"],
}
"""Kinds of instructions for a program without structure, by group."""

BASES = {32: (0x1_0000, 0x8000_0000, 0xFFFF_F000), 64: (0x1_0000, 0x8000_0000, 0x7F_FFFF_F000, 0xFFFF_FFFF_8000_0000)}
"""Where programs start: low, at the top of 32 bits, above 4 GiB, and where Linux keeps its kernel."""


class Program:
    """Code at *base*, leading anywhere within itself, started at any of *starts*.

    *mix*: groups of MIXES, for a row of instructions without any structure; () for functions with loops, calls and
    returns (*functions*: where they start), some of them trap handlers (*handlers*). *forward*: without a structure,
    too, direct jumps go forward only and over something, so that there is no loop without a branch or an indirect jump,
    and no call of the instruction behind it; and jumps to constants go there.
    """

    def __init__(
        self,
        rng: random.Random,
        xlen: int,
        size: int,
        mix: Sequence[str] = ("plain", "branch", "jump", "odd"),
        *,
        forward: bool = False,
    ) -> None:
        self.xlen = xlen
        self.mask = (1 << xlen) - 1
        self.base = rng.choice(BASES[xlen])
        entries: tuple[list[int], list[int]] = ([], [])
        made = _soup(rng, size, mix, forward) if mix else _functions(rng, size, entries)
        lines = [line.sized(rng) for line in made]
        at = [self.base]
        for line in lines:
            at.append(at[-1] + line.length)
        self.end = at.pop()
        self.functions, self.handlers = ([at[i] & self.mask for i in found] for found in entries)
        self.spots: dict[int, Spot] = {}
        self.starts: list[int] = []
        code = bytearray()
        for line, address in zip(lines, at, strict=True):
            near = [start for start in at if abs(start - address) <= REACH.get(line.kind, 1 << 40)]
            target = at[line.to] if 0 <= line.to < len(at) else rng.choice(near)
            for instruction, spot in place(line, address, target, xlen, rng, possible=forward):
                self.starts.append(self.base + len(code) & self.mask)
                self.spots[self.starts[-1]] = spot
                code += instruction
        self.code = bytes(code)

    def image(self, shift: int = 0) -> Image:
        """The program as the decoder gets it; *shift* bytes of c.nop before it make it the wrong one."""
        image = Image(self.xlen)
        image.add_code(self.base, asm.C_NOP * (shift // 2) + self.code)
        return image


def _soup(rng: random.Random, size: int, mix: Sequence[str], forward: bool) -> list[Line]:
    """Instructions in any order."""
    kinds = [kind for group in mix for kind in MIXES[group]]
    lines = [*[Line(rng.choice(kinds)) for _ in range(size)], Line("ret")]  # nothing runs off the end
    if not forward:
        return lines
    far = [i for i, line in enumerate(lines) if line.kind in DIRECT or "pair" in line.kind]
    for i in far:
        lines[i] = lines[i]._replace(to=rng.randint(i + 2, size)) if i + 2 <= size else Line("c.nop")
    return lines


def _functions(rng: random.Random, size: int, entries: tuple[list[int], list[int]]) -> list[Line]:
    """Functions one after the other; fills in the lines where functions and handlers start."""
    functions, handlers = entries
    count = rng.randint(2, 6)
    lines: list[Line] = []
    while len(functions) < count or len(lines) < size:
        handler = rng.random() < 0.25
        (handlers if handler else functions).append(len(lines))
        for _ in range(rng.randint(1, 5)):
            lines += _piece(rng, len(lines), count)
        lines.append(Line("mret" if handler else "ret"))
    # A line that goes to -2 - n goes to the start of function n.
    return [line._replace(to=functions[-2 - line.to]) if line.to < -1 else line for line in lines]


def _piece(rng: random.Random, first: int, functions: int) -> list[Line]:
    """A few lines from number *first* on that end where the next piece begins."""
    body = [Line(rng.choice(["c.nop", "nop"])) for _ in range(rng.randint(0, 3))]
    after = first + len(body) + 1
    called = -2 - rng.randrange(functions)
    match rng.choice(["plain", "loop", "loop", "call", "call", "if", "spin", "pair", "odd"]):
        case "loop":
            return [*body, Line(rng.choice(BRANCHES), first, "loop")]
        case "call":
            call = Line(rng.choice(["call", "call", "icall", "pair call"]), called)
            return [*body, Line("beq", after + 1, "guard"), call]
        case "if":
            return [Line(rng.choice(BRANCHES), after), *body]
        case "spin":
            return [*body, Line("jump", after - 1, "spin")]
        case "pair":
            return [Line(rng.choice(["pair", "c.pair"]), after), *body]
        case "odd":
            return [*body, Line(rng.choice(["swap", "ecall", "long", "custom", "j"]), after)]
    return body
