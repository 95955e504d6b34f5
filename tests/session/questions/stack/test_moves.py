"""What parts of a history do to sp: Zcmp, by its specification; nested and repeated parts, by adding up."""

from random import Random

import pytest

from rvtrace_gdb.decode.history.history import Path, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.explain.code import Code
from rvtrace_gdb.session.questions.stack.moves import PartMoves

PUSH, POP, POPRET = 0xB802, 0xBA02, 0xBE02
AT = 0x8000_0000


@pytest.mark.parametrize(
    ("xlen", "word", "by"),
    [  # Zc 1.0, "cm.push": stack_adj_base of rlist, and 16 times spimm more
        (64, PUSH | 5 << 4, -16),
        (64, PUSH | 5 << 4 | 2 << 2, -48),
        (64, PUSH | 15 << 4 | 3 << 2, -160),
        (32, PUSH | 7 << 4, -16),
        (32, PUSH | 15 << 4 | 1 << 2, -80),
        (64, POP | 5 << 4 | 1 << 2, 32),
        (64, POPRET | 15 << 4, 112),
    ],
)
def test_pushes_and_pops_of_zcmp(xlen: int, word: int, by: int) -> None:
    image = Image(xlen)
    image.zcm = True
    image.add_code(AT, word.to_bytes(2, "little"))
    [segment] = PartMoves(Code(image)).of_part((AT,))
    assert (segment.by, segment.lowest.low) == (by, min(by, 0))


def addi_sp(by: int) -> bytes:
    return ((by & 0xFFF) << 20 | 2 << 15 | 2 << 7 | 0x13).to_bytes(4, "little")


def random_part(random: Random, depth: int) -> PathPart:
    if not depth:
        return tuple(AT + 4 * random.randrange(8) for _ in range(random.randrange(1, 6)))
    inner = Path([random_part(random, random.randrange(depth)) for _ in range(random.randrange(1, 4))])
    return RepeatPath(inner, random.randrange(1, 5)) if random.random() < 0.4 else inner


@pytest.mark.parametrize("seed", range(40))
def test_a_piece_moves_sp_as_its_instructions_do(seed: int) -> None:
    random = Random(seed)
    moves = [random.randrange(-64, 64) for _ in range(8)]
    image = Image(64)
    image.add_code(AT, b"".join(map(addi_sp, moves)))
    part = random_part(random, 3)
    pcs = list(part if isinstance(part, tuple) else [pc for it in part.chunks(0, part.count) for pc in it])
    start = random.randrange(len(pcs))
    stop = random.randrange(start + 1, len(pcs) + 1)
    [segment] = PartMoves(Code(image)).of_piece(part, start, stop)
    values, sp = [0], 0
    for pc in pcs[start:stop]:
        sp += moves[(pc - AT) // 4]
        values.append(sp)
    assert (segment.by, segment.lowest.low) == (sp, min(values))
    [low] = segment.lows.values()
    assert low.low == min(values[1:]) and values[low.at + 1] == low.low
