"""What the encoder counts in place of sending it again: full HIST registers, branch messages, runs of branches."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import SIFIVE
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.ntrace.messages import Recorder, message, started, stopped

# Made by the reference encoder (refcode/c of riscv-non-isa/tg-nexus-trace, commit e0f02c6: NexRv -enco ... -rpt 2): a
# loop of two branches at 0x1000 and 0x1004. The pattern: outcomes of the first; the second is always taken.
LOOPS = {
    "28 of 31": ([1], 100, "240500836cc8fcfcfcfcfd1b8440280dfcfc1f"),
    "28 of 31, two": ([0, 1], 100, "240500836cc874dc74dc151f8440f00d5f"),
    "30 of 31": ([1, 0, 1, 1, 0], 150, "240500836c487cdcdcf475278440a815f4747cdcdc07"),
    "28 of 31, seven": ([0, 1, 1, 0, 1, 1, 1], 140, "240500836cc87c7cfcf4152784400815fcf4f4dc5f"),
    "no pattern": (
        [0, 0, 0, 0, 0, 0, 0, 1],
        120,
        "240500836cc4a8a8b8a8ab6c4454545c54d76c84a8a8aca8eb6c4454d45454f76c84a8e8a8a8bb6c4454745454df6c84a8b8a8a8af"
        "84406c155c54d4d7",
    ),
}
AS_REFERENCE = {"icnt_limit": 1 << 21, "indirect_without_hist": True, "correlation_without_hist": True}


def loop(pattern: Sequence[int], rounds: int) -> list[Block]:
    """At 0x1000 a branch that skips a c.nop when taken, at 0x1004 one back to 0x1000; then two c.nop at 0x1000."""
    skip, inner = Block(0x1000, b"\1", IType.NOT_TAKEN, 0x1004), Block(0x1002, b"\1")
    back = Block(0x1004, b"\1", IType.NOT_TAKEN, 0x1000)
    items: list[Block] = []
    for i in range(rounds):
        items += [skip, back] if pattern[i % len(pattern)] else [skip, inner, back]
    return [*items, Block(0x1000, b"\1\1")]


@pytest.mark.parametrize("name", LOOPS)
def test_patterns_as_the_reference_encoder_finds_them(name: str) -> None:
    """31, 30 or 28 bits of HIST that repeat (RCODE 2)."""
    pattern, rounds, expected = LOOPS[name]
    recorder = Recorder(Sync.EXIT_FROM_RESET, repeated_history=True, **AS_REFERENCE)
    recorder.retire(*loop(pattern, rounds))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert b"".join(recorder.raw).hex() == expected


@pytest.mark.parametrize(
    ("lengths", "branch", "expected"),
    [
        (b"\2\1\1", True, "240500837041010b782770410080050b84000f"),
        (b"\2\1", False, "240500831031037827103100800784000f"),
    ],
)
def test_repeated_indirect_branches_as_the_reference_encoder_counts_them(
    lengths: bytes, branch: bool, expected: str
) -> None:
    """A jump at 0x1004 or 0x1006 back to 0x1000, ten times (its option -rpt 1): sent once, counted nine times."""
    body = [Block(0x1000, b"\2\1", IType.NOT_TAKEN, 0x900), Block(0x1006, b"\1", IType.OTHER_UNINFERABLE)]
    if not branch:
        body = [Block(0x1000, lengths, IType.OTHER_UNINFERABLE)]
    recorder = Recorder(Sync.EXIT_FROM_RESET, repeat_branch=True, **AS_REFERENCE)
    recorder.retire(*body * 11, Block(0x2000, b"\2\1"))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert b"".join(recorder.raw).hex() == expected


BACK = Block(0x100, b"\1\2", IType.NOT_TAKEN, 0x100)
"""A taken branch to itself, unless what follows is elsewhere."""


def test_section_7_11_direct_branches_in_btm() -> None:
    """The sixth DirectBranch has another I-CNT; between, four are the same."""
    recorder = Recorder(btm=True, repeat_branch=True)
    recorder.retire(Block(0x0FE, b"\1"), *[BACK] * 6, Block(0x106, b"\1"))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert recorder.raw == [
        started(0x0FE),
        message("DirectBranch", icnt=4),
        message("DirectBranch", icnt=3),
        message("RepeatBranch", bcnt=3),
        stopped(4, None),
    ]


@pytest.mark.parametrize(("broken", "order"), [(False, [0, 2]), (True, [1, 0, 1])])
def test_a_full_i_cnt_between_two_full_hist(broken: bool, order: list[int]) -> None:
    """RCODEs in the order they are sent; "any sequence of ResourceFull" says the same (9.3)."""
    recorder = Recorder(repeated_history=True, hist_limit=5, icnt_limit=14, repeat_broken_by_icnt=broken)
    recorder.retire(*[BACK] * 8, Block(0x100, b"\1"))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert [fields["rcode"] for fields in recorder.messages() if "rcode" in fields] == order


def test_runs_of_branches_in_the_sifive_dialect() -> None:
    """RCODE 9 taken, 8 not taken; 16 are the shortest in SiFive's captures. HIST goes on after them."""
    branch = Block(0x100, b"\1", IType.NOT_TAKEN, 0x100)
    on = Block(0x102, b"\1", IType.NOT_TAKEN, 0x300)
    recorder = Recorder(repeated_history=True, dialect=SIFIVE)
    rest = [Block(0x104 + 2 * i, b"\1", IType.NOT_TAKEN, 0x300) for i in range(40)]
    recorder.retire(*[branch] * 41, on, *rest, Block(0x300, b"\1"))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert recorder.raw[1:] == [
        message("ResourceFull", rcode=9, rdata=40),
        message("ResourceFull", rcode=8, rdata=41),
        stopped(83, 0b11),
    ]


def test_section_8_4_counts_are_sent_before_a_synchronizing_message() -> None:
    """ "It includes HIST, I-CNT, HREPEAT and B-CNT counters"."""
    repeated = Recorder(repeated_history=True, hist_limit=3)
    branches = Recorder(repeat_branch=True, btm=True)
    for recorder in (repeated, branches):
        recorder.retire(*[BACK] * 6)
        recorder.encoder.mark(Sync.TRACE_EVENT)
        recorder.retire(BACK)
    assert repeated.raw[1:] == [
        message("ResourceFull", rcode=2, rdata=0b111, hrepeat=3),
        message("IndirectBranchHistSync", sync=6, b_type=0, icnt=18, faddr=0x80, hist=1),
    ]
    assert branches.raw[1:] == [
        message("DirectBranch", icnt=3),
        message("RepeatBranch", bcnt=4),
        message("DirectBranchSync", sync=6, icnt=3, faddr=0x80),
    ]


def test_lost_counts_stay_lost() -> None:
    """What is counted and not sent yet is among the lost messages."""
    recorder = Recorder(btm=True, repeat_branch=True)
    recorder.retire(*[BACK] * 4)
    recorder.encoder.error()
    recorder.retire(BACK)
    names = [fields["name"] for fields in recorder.messages()]
    assert names == ["ProgTraceSync", "DirectBranch", "Error", "ProgTraceSync"]
