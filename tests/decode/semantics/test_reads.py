"""What instructions read, for each of their results. What links are made of is compared with Spike's disassembly in
tests/session/questions/why; here is what no such program has.

Zcmp: The RISC-V Instruction Set Manual, Volume I, 20240411, 27.13: what the instructions do, and their encodings.
"""

import pytest

from rvtrace_gdb.decode.program.csrs import MEPC, X
from rvtrace_gdb.decode.semantics.reads import FLOW, MEMORY, Operand, OperationResult, ReadTable

RA, SP, S0, S1, A0, A1 = (X + n for n in (1, 2, 8, 9, 10, 11))
_ZCMP = ReadTable(32, zcm=True)


def test_push_and_pop() -> None:
    """cm.push {ra, s0}, -16 and cm.popret {ra, s0}, 16, which returns to what it has loaded itself."""
    pushed = _ZCMP.reads_of(0xB852)
    stored = [it for it in pushed.results if it.result == MEMORY]
    assert pushed.registers == {RA, S0, SP}
    assert {(it.registers, it.stored) for it in stored} == {((S0,), Operand(SP, -4, 4)), ((RA,), Operand(SP, -8, 4))}
    popped = _ZCMP.reads_of(0xBE52)
    loaded = {it.result: it.loaded for it in popped.results}
    assert loaded[S0] == Operand(SP, 12, 4)
    assert loaded[RA] == loaded[FLOW] == Operand(SP, 8, 4)
    assert popped.results_of(SP)[0].registers == (SP,)


def test_moves_of_pairs() -> None:
    """cm.mva01s s0, s1 and cm.mvsa01 s0, s1."""
    assert {(it.result, it.registers) for it in _ZCMP.reads_of(0xAC66).results} == {(A0, (S0,)), (A1, (S1,))}
    assert {(it.result, it.registers) for it in _ZCMP.reads_of(0xAC26).results} == {(S0, (A0,)), (S1, (A1,))}


@pytest.mark.parametrize("word", [0x0000000B, 0x02000057, 0xFFFFFFFF, 0x0000])
def test_what_is_not_known(word: int) -> None:
    """Of custom, of vectors, reserved, illegal: nobody says what it read."""
    reads = ReadTable(64, zcm=False).reads_of(word)
    assert not reads.is_known
    assert not reads.results


def test_csrs() -> None:
    """csrrw a0, mepc, a1; csrrs a0, mepc, x0; csrrci x0, mepc, 3; csrw mepc, a1; mret."""
    table = ReadTable(64, zcm=False)
    swap = table.reads_of(0x341 << 20 | 11 << 15 | 1 << 12 | 10 << 7 | 0x73)
    assert swap.results == (
        OperationResult(A0, (MEPC,), is_copy=True), OperationResult(MEPC, (A1,), is_copy=True),
    )  # fmt: skip
    assert table.reads_of(0x341 << 20 | 2 << 12 | 10 << 7 | 0x73).results == swap.results[:1]
    assert table.reads_of(0x341 << 20 | 3 << 15 | 7 << 12 | 0x73).results == (OperationResult(MEPC, (MEPC,)),)
    assert table.reads_of(0x341 << 20 | 11 << 15 | 1 << 12 | 0x73).results == swap.results[1:]
    assert table.reads_of(0x30200073).results == (OperationResult(FLOW, (MEPC,)),)
