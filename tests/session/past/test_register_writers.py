"""The last write to a register by what ran alone: what else may have written it is said."""

import pytest

from rvtrace_gdb.decode.history.events import EventKind, Fact, Loss, LossCause, Start, StartReason, Trap, TrapKind
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import CSRS, PRIVILEGE, F, X
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine
from rvtrace_gdb.decode.semantics.writes import Writes, WriteTable
from rvtrace_gdb.session.past.past import INSTRUCTION, OUTSIDE, PC, TRAP, NoWrite, PastWrite
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from tests.decode.reconstruction.small_histories import BASE, history, program

NOP, SET_A0, ADD_A1 = 0x0000_0013, 0x0010_0513, 0x0015_8593  # nop; li a0, 1; addi a1, a1, 1
CUSTOM, VECTOR, FADD, CSR_MEPC, READ_MEPC = 0x0000_000B, 0x0220_8557, 0x02A5_7553, 0x3415_1073, 0x3410_2573
HALF = 0x04C5_F553  # fadd.h fa0, fa1, fa2, of Zfh
SET_FRM, SET_SSTATUS, READ_CYCLE = 0x0020_5073, 0x1005_1073, 0xC000_2573
HALT: tuple[EventKind, Fact] = (EventKind.SYNC, Start(StartReason.EXIT_FROM_DEBUG))
INTERRUPT: tuple[EventKind, Fact] = (EventKind.TRAP, Trap(TrapKind.INTERRUPT, 7))
GAP: tuple[EventKind, Fact] = (EventKind.LOSS, Loss(LossCause.FIFO_OVERRUN))


def writers(words: list[int], pieces: list[int | tuple[EventKind, Fact]], **more: object) -> RegisterWriters:
    return RegisterWriters(history(pieces), ContextImages(program(words)), **more)  # type: ignore[arg-type]


def last(found: RegisterWriters, position: int, register: int | str, below: int | None = None) -> PastWrite:
    number = CSRS[register] if isinstance(register, str) else register
    written = found.last(position, number, below)
    assert isinstance(written, PastWrite), written
    return written


def test_instructions() -> None:
    """Of several; of none; x0, which none writes."""
    found = writers([SET_A0, ADD_A1, SET_A0, NOP], [4])
    assert last(found, 4, X + 10) == PastWrite(INSTRUCTION, 2, 5, register=X + 10)
    assert last(found, 2, X + 10).position == 0 and last(found, 4, X + 10, below=5).position == 0
    assert found.last(4, X + 12) == found.last(0, X + 10) == found.last(4, X) == NoWrite()
    assert last(found, 3, PC) == PastWrite(INSTRUCTION, 2, 5, register=PC, old=BASE + 8, new=BASE + 12)


def test_a_csr_is_written_by_instructions_and_by_traps() -> None:
    found = writers([CSR_MEPC, NOP, READ_MEPC, NOP], [2, INTERRUPT, 2], machine_only=True)
    assert last(found, 4, "mepc") == PastWrite(TRAP, 2, 4, register=CSRS["mepc"])
    assert last(found, 1, "mepc").kind == INSTRUCTION and last(found, 4, "mepc", below=4).position == 0
    assert last(found, 4, "mstatus").kind == last(found, 4, PRIVILEGE).kind == last(found, 2, PC).kind == TRAP
    assert found.last(4, CSRS["scause"]) == NoWrite()
    unsure = last(writers([NOP, NOP], [1, INTERRUPT, 1]), 2, "mepc")
    assert unsure.kind == TRAP and "machine or to supervisor mode" in unsure.doubts[0]


def test_registers_that_share_bits() -> None:
    found = writers([SET_FRM, SET_SSTATUS, FADD], [3])
    assert last(found, 1, "fcsr").reported == CSRS["frm"] and last(found, 1, "frm").reported is None
    assert found.last(2, CSRS["fflags"]) == NoWrite()
    assert last(found, 2, "mstatus").reported == CSRS["sstatus"]
    assert last(found, 3, "fcsr").doubts == (
        "Floating-point instructions may have set flags in it since: the last one is at 3.",
    )
    assert "field FS" in last(found, 3, "mstatus").doubts[0]


@pytest.mark.parametrize(
    ("between", "line"),
    [
        (GAP, "Part of the trace is missing since (restart from FIFO overrun): it may have been written there."),
        (HALT, "The hart was halted since, before 2: a debugger may have written it."),
        ((EventKind.SYNC, Start(StartReason.EXIT_FROM_RESET)), "The hart was reset since, before 2"),
    ],
)
def test_what_may_have_written_it_since(between: tuple[EventKind, Fact], line: str) -> None:
    found = writers([SET_A0, NOP], [1, between, 1])
    (doubt,) = last(found, 2, X + 10).doubts
    assert doubt.startswith(line)
    nothing = found.last(2, X + 11)
    assert isinstance(nothing, NoWrite) and nothing.notes == (doubt,)


def test_a_debugger_whose_writes_are_known() -> None:
    found = writers([SET_A0, NOP], [1, HALT, 1], halts=[HaltWrites(1, {X + 11: 7})])
    assert last(found, 2, X + 11) == PastWrite(OUTSIDE, 1, 2, register=X + 11, new=7)
    assert last(found, 2, X + 10) == PastWrite(INSTRUCTION, 0, 1, register=X + 10)


def test_instructions_that_are_not_known() -> None:
    """A custom one may write everything; one of an extension that is not known here what its encoding allows."""
    found = writers([SET_A0, ADD_A1, CUSTOM, NOP], [4])
    assert last(found, 4, X + 10).doubts == (
        "The instruction at 3, at 0x1008, is not known to rvtrace: it may have written it since.",
    )
    found = writers([SET_A0, ADD_A1, HALF, NOP], [4])
    assert "at 3" in last(found, 4, X + 10).doubts[0] and found.last(4, X + 12) == NoWrite()
    found = writers([SET_A0, ADD_A1, VECTOR, NOP], [4])  # it writes v10, no other register of this number
    assert last(found, 4, X + 10).doubts == ()
    missing = RegisterWriters(history([2]), ContextImages(program([SET_A0])))
    assert "at 2, at 0x1004" in last(missing, 2, X + 10).doubts[0]


@pytest.mark.parametrize(
    ("words", "pieces", "halts", "count"),
    [
        ([SET_A0, ADD_A1, NOP], [3], [], 61),
        ([SET_A0, NOP], [1, GAP, 1], [], 0),
        ([SET_A0, NOP], [1, HALT, 1], [], 0),
        ([SET_A0, NOP], [1, HALT, 1], [HaltWrites(1, {X + 11: 7})], 61),
        ([SET_A0, CUSTOM], [2], [], 0),
        ([SET_A0, ADD_A1, VECTOR], [3], [], 61),
    ],
)
def test_registers_that_nothing_has_written(
    words: list[int], pieces: list[int | tuple[EventKind, Fact]], halts: list[HaltWrites], count: int
) -> None:
    """Those of which no writer and no doubt is found one by one."""
    found = writers(words, pieces, halts=halts)
    end = sum(it for it in pieces if isinstance(it, int))
    end += pieces.count(GAP)
    one_by_one = {it for it in range(X + 1, X + 64) if found.last(end, it) == NoWrite()}
    assert found.unwritten == one_by_one and len(found.unwritten) == count


def test_instructions_of_zcmp_are_known_on_harts_that_have_it() -> None:
    """0xB852 is cm.push {ra, s0}, or c.fsdsp for a hart with D."""
    for extensions, unknown in (("IC", [0, 1]), (("I", "C", "Zcmp"), [1]), ("IFDC", [1])):
        found = writers([0xB852, CUSTOM], [2]).unknown_instructions(HartMachine(64, extensions, []))
        assert sorted(position for position, _ in found) == unknown


def test_a_semihosting_call_returns_its_result_in_a0() -> None:
    found = writers([0x01F0_1013, 0x0010_0073, 0x4070_5013, NOP], [4])
    assert last(found, 4, X + 10).position == 1


@pytest.mark.parametrize(
    ("word", "zcm", "wanted"),
    [
        (0xB802 | 5 << 4, True, Writes(frozenset({X + 2}))),  # cm.push {ra, s0}
        (0xBA02 | 5 << 4, True, Writes(frozenset({X + 1, X + 2, X + 8}))),  # cm.pop {ra, s0}
        (0xB802 | 5 << 4, False, Writes()),  # c.fsdsp, in the same encoding
        (0x02A5_7553, False, Writes(frozenset({F + 10}), flags=True, floating=True)),
        (0xE205_0553, False, Writes(frozenset({X + 10}))),  # fmv.x.d a0, fa0
        (0x0005_3507, False, Writes(frozenset({F + 10}), floating=True)),  # fld fa0, 0(a0)
        (0x0AA5_352F, False, Writes(frozenset({X + 10}))),  # amoswap.d a0, a0, (a0)
        (0x3002_2073, False, Writes(frozenset({0x300}))),  # csrs mstatus, tp
        (0x3000_2073, False, Writes()),  # csrr zero, mstatus
        (0x0000_001F, False, Writes(possible=None)),  # 48 bits
    ],
)
def test_what_encodings_write(word: int, zcm: bool, wanted: Writes) -> None:
    assert WriteTable(64, zcm=zcm).writes_of(word) == wanted
