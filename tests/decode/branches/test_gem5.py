"""gem5's E-Trace: what Spike ran comes back from what the probe's published source makes of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.decode.branches.gem5 import history_of, items_of
from rvtrace_gdb.decode.branches.gem5.packets import BadGem5, uncompressed
from rvtrace_gdb.decode.history.events import EventKind, Trap
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.branches.gem5_probe import Commit, Probe, commits_of, compressed, header, written
from tests.decode.branches.test_tacit import executed
from tests.helpers.spike import needs_spike


def pieces_between_gaps(pcs: Sequence[int]) -> list[list[int]]:
    pieces: list[list[int]] = [[]]
    for pc in pcs:
        if pc < 0:
            pieces.append([])
        else:
            pieces[-1].append(pc)
    return [piece for piece in pieces if piece]


@needs_spike
@pytest.mark.parametrize(
    ("early", "modes", "implicit", "period"),
    [(False, False, False, 10_000), (True, False, False, 97), (False, True, True, 61), (False, False, True, 1000)],
)
def test_what_spike_ran_comes_back(early: bool, modes: bool, implicit: bool, period: int, tmp_path: Path) -> None:
    elf, items = executed("rv64imac", tmp_path)
    probe = Probe(period=period, early=early, implicit=implicit)
    commits = list(commits_of(items, modes=modes))
    for commit in commits:
        probe.commit(commit)
    sent = probe.end()
    histories = history_of(sent, Image.from_elf(elf))
    history, ran = histories.histories[0], [one.pc for one in commits]
    assert [event.text for event in history.events if event.kind is EventKind.MISMATCH] == []
    assert histories.accounting == (len(sent), len(sent), 0, 0)
    at, pieces = 0, pieces_between_gaps(list(history.pcs()))
    for piece in pieces:
        at = next(place for place in range(at, len(ran)) if ran[place : place + len(piece)] == piece)
        at += len(piece)
    assert history.gaps <= probe.untold
    untold = [event for event in history.events if "where in straight code" in event.text]
    assert len(untold) <= probe.untold
    traps = [commit.trap for commit in commits if commit.trap is not None]
    told = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [event.next_pc for event in told] == [trap.handler for trap in traps] != []
    for event, trap in zip(told, traps, strict=True):
        assert event.last_pc in (None, trap.epc) and isinstance(event.fact, Trap)
        assert (event.fact.cause, event.fact.kind.value == "interrupt") == (trap.cause, trap.interrupt)
    cut = [at for at, one in enumerate(commits) if one.trap is not None] + [len(commits)]
    straight = sum(straight_before(commits, at) for at in cut)
    assert 0 <= len(ran) - sum(map(len, pieces)) <= straight


def straight_before(commits: Sequence[Commit], at: int) -> int:
    """How many instructions ran directly before one without a transfer of control."""
    begin = at
    while begin > 0 and commits[begin - 1].itype is IType.NONE and (begin == at or commits[begin].trap is None):
        begin -= 1
    return at - begin


def traced(tmp_path: Path, count: int = 3000) -> tuple[Path, list[int], bytes]:
    """A program, the instructions that ran, and the trace of them."""
    elf, items = executed("rv64imac", tmp_path)
    probe, commits = Probe(period=200), list(commits_of(items, modes=False))[:count]
    for commit in commits:
        probe.commit(commit)
    return elf, [one.pc for one in commits], probe.end()


@needs_spike
def test_damage_is_a_gap_up_to_the_next_start(tmp_path: Path) -> None:
    elf, ran, sent = traced(tmp_path)
    entries = list(items_of(sent))
    hit = entries[len(entries) // 3]
    damaged = sent[: hit.offset] + bytes([len(hit.raw) - 1]) + b"\xff" * (len(hit.raw) - 1) + sent[hit.end :]
    histories = history_of(damaged, Image.from_elf(elf))
    loss = next(event for event in histories.histories[0].events if event.offset == hit.offset and event.is_loss)
    assert "not a protobuf message" in loss.text and histories.accounting.skipped == len(hit.raw)
    pieces = pieces_between_gaps(list(histories.histories[0].pcs()))
    at = 0
    for piece in pieces:
        at = next(place for place in range(at, len(ran)) if ran[place : place + len(piece)] == piece) + len(piece)
    assert at > len(ran) - 100, "it goes on at the next START"


@needs_spike
def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    elf, ran, sent = traced(tmp_path, 400)
    whole = compressed(sent)
    content = uncompressed(whole[: len(whole) * 2 // 3])
    assert sent.startswith(content) and content != sent
    histories = history_of(content, Image.from_elf(elf))
    pieces = pieces_between_gaps(list(histories.histories[0].pcs()))
    assert pieces and pieces[0] == ran[: len(pieces[0])]
    assert "the trace ends in the middle of a message" in [item.problem for item in items_of(content)][-1]


LOOP = Image(64)
LOOP.add_code(0x8000_0000, bytes.fromhex("1305a5ff e30e05fe 67800000 13000000"))
"""addi a0,a0,-6; beqz a0,-4; ret; nop"""


@pytest.mark.parametrize(
    ("packets", "why"),
    [
        ([{"format": 1, "branch_count": 0, "branch_pred_count": 3, "saddress": 4}], "branchPrediction left out"),
        ([{"format": 1, "branch_map": 1, "branch_count": 1, "jtc_index": 3}, {"format": 3}], "jump target cache"),
        ([{"format": 3, "subformat": 1, "cause": 2}], "implicitException"),
        ([{"format": 0, "branch_count": 0}], "a jump without an address is reported here"),
        ([{"format": 0, "branch_map": 3, "branch_count": 2}], "a branch is reported at another instruction"),
        (
            # the address is that of the branch, which ran last, or where the ret led to; what follows does not say
            [{"format": 1, "branch_map": 1, "branch_count": 1, "saddress": 4}, {"format": 3, "subformat": 3}],
            "that of the last instruction or that of the next one",
        ),
    ],
)
def test_what_does_not_follow_is_a_gap_with_its_reason(packets: list[dict[str, int]], why: str) -> None:
    data = header() + written("ETracePacket", format=3, address=0x8000_0000, branch_map=1, branch_count=1, priv=3)
    data += b"".join(written("ETracePacket", **packet) for packet in packets)
    history = history_of(data, LOOP).histories[0]
    assert why in " ".join(event.text for event in history.events if event.is_loss)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file begins with nothing"),
        (b"PERF", "the file begins with 50 45 52 46"),
        (b"\x1f\x8b\0\0\0", "cannot be decompressed"),
        (b"gem5\x05\xff", "the header behind 'gem5' is not a protobuf message"),
        (header(ver=2), "version 2 of gem5's E-Trace"),
    ],
)
def test_other_files_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadGem5, match=why):
        uncompressed(data)


def test_the_lines_of_the_dump() -> None:
    data = header() + written("ETracePacket", tick=500, format=1, branch_map=2, branch_count=2, saddress=-8, address=16)
    assert [item.text for item in items_of(data + b"\x05")] == [
        "Header ver=1 tick_freq=1000000000000 arch_width=64",
        "BRANCH_MAP_ADDR address=0x10 branch_map=0x2 branch_count=2 saddress=-8 tick=500",
        "05 # the trace ends in the middle of a message",
    ]
