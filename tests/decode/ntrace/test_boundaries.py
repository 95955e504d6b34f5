"""Messages that end at awkward places: right behind a jump that is reported.

A full I-CNT may be reported in any moment (1.0, "I-CNT Details"). What ends there may be reported by the next message,
with I-CNT 0, or not at all; only that one tells.
"""

from typing import Any

import pytest

from rvtrace_gdb.decode.ntrace.options import SIFIVE
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, image_of, message, started, stopped


def full(icnt: int) -> bytes:
    return message("ResourceFull", rcode=0, rdata=icnt)


def check(image: Image, pcs: list[int], *messages: bytes, **options: Any) -> None:
    history = decoded(image, *messages, **options)
    assert list(history.pcs()) == pcs
    assert history.gaps == 0


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("code", ["j", "call"])
def test_a_full_i_cnt_behind_a_direct_jump_that_is_reported(code: str, reported: bool) -> None:
    """trTeInstEnAllJumps in BTM: DirectBranch with I-CNT 0. (SiFive's BTM reports some, and some not.)"""
    image = image_of((0x100, [asm.jal(0x100, code == "call")]), (0x200, [asm.C_NOP]))
    messages = [started(), full(2), message("DirectBranch", icnt=0) if reported else b"", stopped(1, None)]
    check(image, [0x100, 0x200], *messages, btm=True, dialect=SIFIVE)
    if reported:
        check(image, [0x100, 0x200], *messages, btm=True, all_jumps=True)
