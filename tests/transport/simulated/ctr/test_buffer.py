"""The CTR buffer: logical entries, WRPTR and WRAP, depth changes, clearing, RAS emulation.

Expectations: CTR 1.0, "sctrdepth", "sctrstatus", "RAS Emulation Mode"; draft 0.1.4, 2.1, 2.4, 5.4.
A stack is compared with a Python list that does what the documents say of logical entries.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.transport.simulated.ctr.recorder import Mode, Recorder
from tests.helpers.amounts import LONG
from tests.transport.simulated.ctr.recorders import (
    CALL,
    CORSWAPINH,
    DIRCALLINH,
    RASEMU,
    RETINH,
    RETURN,
    SWAP,
    VERSIONS,
    jump,
    recorder,
    records,
    trap,
    trap_return,
)

both = pytest.mark.parametrize("version", VERSIONS)
DEPTHS = (16, 32, 64, 128, 256)


def numbered(made: Recorder, *numbers: int, type: TransferType = TransferType.DIRECT_JUMP) -> None:
    """Transfers from source 4 * number."""
    for number in numbers:
        made.transfer(jump(type, 4 * number, 0x1000))


def numbers(made: Recorder) -> list[int | None]:
    """All logical entries as what `numbered` calls them, None for an invalid one."""
    entries = [made.buffer.read(n) for n in range(made.buffer.depth)]
    return [e.source // 4 if e.source & 1 else None for e in entries]


@both
@pytest.mark.parametrize("depth", DEPTHS)
def test_the_youngest_is_entry_0_and_the_oldest_is_lost(version: str, depth: int) -> None:
    made = recorder(version, Mode.M)
    made.buffer.select(depth)
    assert numbers(made) == [None] * depth
    for count in range(1, 2 * depth + 3):
        numbered(made, count)
        if LONG or depth < 64 or count % depth < 3 or count % 16 == 0:  # all entries, where something begins anew
            wanted = [n if n > 0 else None for n in range(count, count - depth, -1)]
            assert numbers(made) == wanted
        assert made.buffer.wrptr == count % depth
        assert made.buffer.wrap == (count >= depth)


@both
def test_entries_above_the_depth_are_read_only_zero(version: str) -> None:
    made = recorder(version, Mode.M)
    made.buffer.select(32)
    numbered(made, *range(1, 33))
    made.buffer.select(16)
    for entry in range(16, 256):
        for word in range(3):
            made.buffer.write(entry, word, -1)
        assert made.buffer.read(entry) == (0, 0, 0)
    made.buffer.select(32)
    assert sorted(n for n in numbers(made) if n is not None) == list(range(1, 33))  # "unspecified but legal"


@both
def test_wrptr_has_only_the_bits_the_depth_needs(version: str) -> None:
    made = recorder(version, Mode.M)
    made.buffer.select(256)
    numbered(made, *range(0xAB))
    for depth in (128, 64, 32, 16):
        made.buffer.select(depth)
        assert made.buffer.wrptr == 0xAB & depth - 1


@both
def test_unsupported_depths(version: str) -> None:
    made = recorder(version, Mode.M, depths=(32, 64))
    assert made.buffer.depth == 32
    for asked, got in ((16, 32), (32, 32), (64, 64), (128, 64), (256, 64)):
        made.buffer.select(asked)
        assert made.buffer.depth == got


@both
def test_clearing_zeroes_every_entry_whatever_the_depth(version: str) -> None:
    made = recorder(version, Mode.M)
    made.buffer.select(256)
    numbered(made, *range(1, 257))
    made.buffer.select(16)
    made.buffer.clear()
    made.buffer.select(256)
    assert {made.buffer.read(n) for n in range(256)} == {(0, 0, 0)}


# -- RAS emulation


@both
def test_calls_are_recorded_and_returns_pop_them(version: str) -> None:
    made = recorder(version, Mode.M, control=RASEMU[version])
    numbered(made, 1, 2, 3, type=CALL)
    assert numbers(made) == [3, 2, 1] + [None] * 13
    made.transfer(jump(RETURN))
    assert numbers(made) == [2, 1] + [None] * 14
    popped = made.buffer.read(15)
    assert popped.source == 12  # it went to entry depth - 1, V is 0, the rest is kept
    assert made.buffer.wrptr == 2


@both
def test_a_swap_overwrites_the_youngest(version: str) -> None:
    made = recorder(version, Mode.M, control=RASEMU[version])
    numbered(made, 1, 2, type=CALL)
    numbered(made, 9, type=SWAP)
    assert numbers(made) == [9, 1] + [None] * 14
    assert made.buffer.wrptr == 2
    assert made.buffer.read(0).data & 0xF == 12


@both
def test_ras_emulation_ignores_other_transfers_and_the_filters(version: str) -> None:
    filters = 0xFF3F << 32 & ~(1 << 38)  # all that there are, but for ETEN's place
    made = recorder(version, Mode.M, Mode.U, control=RASEMU[version] | filters | DIRCALLINH | RETINH | CORSWAPINH)
    numbered(made, 7, type=CALL)
    for type in (4, 5, 10, 11, 14, 15):
        made.transfer(jump(TransferType(type)))
    made.transfer(trap(Mode.U, Mode.M))
    made.transfer(trap_return(Mode.M, Mode.U))
    assert numbers(made) == [7] + [None] * 15
    made.transfer(jump(RETURN, mode=Mode.U))
    assert records(made) == []


@both
@given(moves=st.lists(st.sampled_from([CALL, CALL, TransferType.INDIRECT_CALL, RETURN, SWAP]), max_size=120))
def test_a_stack_of_any_calls_returns_and_swaps(version: str, moves: list[TransferType]) -> None:
    """The document's words about logical entries, on a list; and WRPTR and WRAP by the draft's words about them."""
    made = recorder(version, Mode.M, control=RASEMU[version])
    stack: list[int | None] = [None] * 16
    wrptr, wrap = 0, False
    for number, move in enumerate(moves, 1):
        numbered(made, number, type=move)
        if move is RETURN:
            stack = [*stack[1:], None]
            wrptr, wrap = (wrptr - 1) % 16, wrap and wrptr != 0
        elif move is SWAP:
            stack[0] = number
        else:
            stack = [number, *stack[:-1]]
            wrptr, wrap = (wrptr + 1) % 16, wrap or wrptr == 15
        assert numbers(made) == stack
        assert (made.buffer.wrptr, made.buffer.wrap) == (wrptr, wrap)
