"""What is remembered of a step holds only where nothing that matters is different: the call stack, the counts."""

from typing import Any

import pytest

from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import difference, encoded, image_of, message, started, stopped

T1 = 6
FULL_STACK = ImplicitReturn.FULL_STACK


def run(image: Image, *messages: bytes, memo_limit: int = MEMO_LIMIT, **options: Any) -> list[int]:
    """The addresses these messages stand for."""
    decoder = StreamDecoder(image, Options(**options), memo_limit=memo_limit, split=False)
    decoder.feed(b"".join(messages))
    return list(decoder.finish_one().pcs())


def jump(source: int, target: int, icnt: int, hist: int = 1) -> bytes:
    """IndirectBranchHist from the last address *source* to *target*."""
    return message("IndirectBranchHist", b_type=0, icnt=icnt, uaddr=(source ^ target) >> 1, hist=hist)


@pytest.mark.parametrize("memo_limit", [MEMO_LIMIT, 0])
def test_a_count_is_not_taken_for_a_return_address(memo_limit: int) -> None:
    """The same message in the same state: once it returns to 0x104, once it is 0x104 halfwords behind."""
    f, g, h, rest = 0x2000, 0x1800, 0x1000, 10
    first, ahead = 0x104, 0x104
    image = image_of(
        (0x100, [asm.jal(g - 0x100, 1), *[asm.C_NOP] * (ahead + rest - 3), asm.c_jr(T1)]),
        (g, [asm.c_jr(T1)]),
        (f, [asm.C_NOP, asm.c_jr(1)]),
        (h, [asm.jal(0x1200 - h, 1), *[asm.C_NOP] * (rest - 3), asm.c_jr(T1)]),
        (0x1200, [asm.jal(0x400, 1), *[asm.C_NOP] * (ahead - 4), asm.beq(f - (0x1204 + 2 * (ahead - 4)))]),
        (0x1600, [asm.c_jr(T1)]),
    )
    same = jump(f, h, ahead + rest)
    messages = [
        started(0x100),
        jump(0x100, f, 3),
        same,  # nop, return to 0x104, to the end of the code there, to h
        jump(h, f, 5),  # two calls
        message("ResourceFull", rcode=1, rdata=0b11),  # nop, return to 0x1204, to the branch, back to f
        same,  # nop, return to 0x1004, to h
        stopped(0),
    ]
    pcs = [0x100, g, f, f + 2, *range(first, first + 2 * (ahead + rest - 2), 2)]
    pcs += [h, 0x1200, 0x1600, f, f + 2, *range(0x1204, 0x1204 + 2 * (ahead - 4) + 2, 2)]
    pcs += [f, f + 2, *range(h + 4, h + 4 + 2 * (rest - 2), 2)]
    assert not difference(run(image, *messages, memo_limit=memo_limit, implicit_return=FULL_STACK), pcs)


@pytest.mark.parametrize("memo_limit", [MEMO_LIMIT, 0])
@pytest.mark.parametrize("depth", [100, 1023])
@pytest.mark.parametrize("btm", [False, True])
def test_one_message_for_all_returns_of_a_deep_recursion(btm: bool, depth: int, memo_limit: int) -> None:
    """The deepest call counter known has 1023 calls: SiFive's. Twice, so that the second time is remembered."""
    code = [asm.c_beqz(8), asm.jal(-2, 1), asm.C_NOP, asm.c_jr(1)]
    image = image_of((0x100, [asm.jal(0x100, 1), asm.c_j(-4)]), (0x200, code))
    once = [0x100, *[0x200, 0x202] * (depth - 1), 0x200, 0x208, *[0x206, 0x208] * (depth - 1), 0x104]
    messages = encoded(image, once * 3, 0x100, btm=btm, implicit_return=FULL_STACK, return_depth=1023)
    assert not btm or len(messages) < 7
    decoded = run(image, *messages, memo_limit=memo_limit, btm=btm, implicit_return=FULL_STACK)
    assert not difference(decoded, once * 3)


@pytest.mark.parametrize("memo_limit", [MEMO_LIMIT, 0])
@pytest.mark.parametrize("order", ["fits, fails, fits, fails", "fails, fits, fits, fails"])
def test_outcomes_that_contradict_the_code_only_with_another_caller(order: str, memo_limit: int) -> None:
    """The same full HIST at the same place: it fits what is behind one call, and not what is behind the other."""
    image = image_of(
        (0x100, [asm.jal(0x80, 1), asm.c_beqz(4), asm.C_NOP, asm.C_NOP]),
        (0x180, [asm.c_jr(T1)]),
        (0x200, [asm.jal(-0x80, 1), asm.C_NOP, asm.c_jr(T1)]),
        (0x300, [asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.c_jr(1)]),
    )
    full = message("ResourceFull", rcode=1, rdata=0b111)
    ran = {"fits": [0x100, 0x180, 0x300, 0x302, 0x306, 0x104]}
    ran["fails"] = [0x200, 0x180, 0x300, 0x302, 0x306, 0x204, 0x206, -1]
    messages: list[bytes] = []
    expected: list[int] = []
    for name in order.split(", "):
        messages += [started(ran[name][0]), jump(ran[name][0], 0x300, 3), full, stopped(4)]
        expected += [-1, *ran[name]] if expected[-1:] not in ([], [-1]) else ran[name]
    assert run(image, *messages, memo_limit=memo_limit, implicit_return=FULL_STACK) == expected
