"""States that are kept on the way: whoever goes backward and forward finds the registers and memory of the place."""

from random import Random

import pytest

from rvtrace_gdb.decode.reconstruction import checkpoints as checkpoints_module
from rvtrace_gdb.decode.reconstruction import forward as forward_module
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.small_histories import history, program

RAM = Extent(0x8000_0000, 1 << 20)
ROUND = (0x0015_0513, 0x00A6_3023, 0x7F86_0613, 0x00A6_B023)
"""addi a0, a0, 1; sd a0, 0(a2); addi a2, a2, 2040; sd a0, 0(a3)"""
DISTANCE, ROUNDS = 2040, 300
FIXED = RAM.end - 8


def check(hart: ExecutedHart, position: int) -> None:
    """Compare with what the instructions before a position do, reckoned."""
    rounds, rest = divmod(position, len(ROUND))
    assert hart.x[10] == rounds + (rest > 0), position
    assert hart.x[12] == RAM.address + DISTANCE * (rounds + (rest > 2)), position
    assert hart.memory.load(FIXED, 8) == rounds, position
    for number in range(ROUNDS):
        stored = number < rounds + (rest > 1)
        assert hart.memory.load(RAM.address + DISTANCE * number, 8) == (number + 1 if stored else 0), (position, number)


@pytest.mark.parametrize("most", [checkpoints_module._MOST_PAGES, 12])
def test_walks(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"STRIDE": 500, "_STEP": 128, "_BACKWARD": 4, "_FINEST": 8}.items():
        monkeypatch.setattr(forward_module, name, value)
    monkeypatch.setattr(checkpoints_module, "_MOST_PAGES", most)
    x = (0, *[None] * 9, 0, 0, RAM.address, FIXED, *[None] * 18)
    begin = KnownState(x=x, privilege=3, memory=[(RAM.address, bytes(RAM.size))])
    words, length = list(ROUND) * ROUNDS, len(ROUND) * ROUNDS
    machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
    found, random = Forward(history([length]), program(words), machine, begin), Random(1)
    position = length
    for _ in range(250):
        check(found.hart_at(position), position)
        away = random.randrange(length + 1), position + random.randrange(40), *[position - random.randrange(30)] * 6
        position = min(max(random.choice(away), 0), length)
