"""Accesses attached to the history: by order, kind, size and number, or not at all."""

import random
from collections.abc import Sequence

import pytest

import rvtrace_gdb.decode.history.accesses as accesses_module
from rvtrace_gdb.decode.history.accesses import access_text, locate_accesses, overlaps
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import History, Path, RepeatPath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CSR,
    LOAD,
    MULTIPLE,
    STORE,
    STORE_FAILURE,
    AccessNote,
    MemoryAccess,
)
from tests.decode.etrace.data.test_differences import reference_accesses
from tests.decode.etrace.vectors import expected, image
from tests.helpers.amounts import LONG, each_seed
from tests.helpers.event_facts import lost

# Encodings: the RISC-V Instruction Set Manual, volume I; `test_memory_access` holds ours against objdump.
LW, LD, SW, SB = 0x0005_2583, 0x0005_3583, 0x00B5_2023, 0x00B5_0023  # of a1, 0(a0)
NOP, AMOADD, SC, VLE = 0x0000_0013, 0x00B5_252F, 0x18B5_262F, 0x0205_6407
CSRR_MHARTID, CSRW_MSCRATCH = 0xF140_25F3, 0x3405_9073
CM_PUSH_RA_S0 = 0xB852


def history(code: Sequence[int], *parts: Sequence[int]) -> tuple[History, Image]:
    """The instructions of *code* from 0 on, and a history of them: *parts* by their numbers, a gap between two."""
    program = Image(64)
    program.zcm = True
    places = [0]
    for word in code:
        size = 2 if word & 3 != 3 else 4
        program.add_code(places[-1], word.to_bytes(size, "little"))
        places.append(places[-1] + size)
    builder = HistoryBuilder()
    for number, part in enumerate(parts):
        if number:
            builder.gap(EventKind.LOSS, 0, lost())
        builder.append(Path([tuple(places[index] for index in part)]))
    return builder.finish(Accounting(0, 0, 0, 0)), program


def placed(found: tuple[History, Image], *accesses: MemoryAccess) -> list[int | None]:
    return [access.position for access in locate_accesses(*found, accesses)]


def notes(found: tuple[History, Image], *accesses: MemoryAccess) -> list[AccessNote | None]:
    """The last note of each."""
    return [access.notes[-1] if access.notes else None for access in locate_accesses(*found, accesses)]


def load(size: int = 4, sync: int = 0, *notes: AccessNote) -> MemoryAccess:
    return MemoryAccess(LOAD, size, sync=sync, notes=notes)


def store(size: int = 4, sync: int = 0) -> MemoryAccess:
    return MemoryAccess(STORE, size, sync=sync)


def test_in_order() -> None:
    ran = history([LW, NOP, SW, LD], range(4))
    assert placed(ran, load(), store(), load(8)) == [0, 2, 3]


def test_nothing_to_attach() -> None:
    assert locate_accesses(*history([LW], [0]), []) == []


def test_another_kind_or_size_gets_no_place() -> None:
    ran = history([LW, NOP, SW, LD], range(4))
    assert notes(ran, load(), load(), load(8)) == [AccessNote.DISAGREE] * 3
    assert notes(ran, load(), store(), load(4)) == [AccessNote.DISAGREE] * 3


def test_kinds_the_encoder_does_not_trace_are_passed_over() -> None:
    """Atomics and CSRs are "independently optional"; here only stores are in the trace."""
    ran = history([LW, AMOADD, SW, CSRR_MHARTID, SB], range(5))
    assert placed(ran, store(4), store(1)) == [2, 4]


def test_atomics_and_csrs() -> None:
    ran = history([AMOADD, CSRR_MHARTID, CSRW_MSCRATCH], range(3))
    told = [
        MemoryAccess(ATOMIC, 4, "add", sync=0),
        MemoryAccess(CSR, 8, "rs", 0xF14, sync=0),
        MemoryAccess(CSR, 8, "rw", 0x340, sync=0),
    ]
    assert placed(ran, *told) == [0, 1, 2]
    other = [told[0], told[1]._replace(address=0x340), told[2]]
    assert notes(ran, *other) == [AccessNote.DISAGREE] * 3


def test_several_accesses_of_one_instruction() -> None:
    ran = history([CM_PUSH_RA_S0, SW], range(2))
    told = MemoryAccess(STORE, 8, MULTIPLE, sync=0)
    assert placed(ran, told, told, store()) == [0, 0, 1]


def test_a_store_conditional_may_fail_silently() -> None:
    ran = history([SC, LW, SC, LD], range(4))
    assert placed(ran, store(), load(), load(8)) == [0, 1, 3]
    assert placed(ran, load(), store(), load(8)) == [1, 2, 3]
    failed = MemoryAccess(ATOMIC, 4, STORE_FAILURE, sync=0)
    assert placed(ran, failed, load(), store(), load(8)) == [0, 1, 2, 3]


def test_which_of_two_failed_is_not_known() -> None:
    ran = history([SC, SC, LW], range(3))
    assert notes(ran, store(), load()) == [AccessNote.AMBIGUOUS, None]
    assert placed(ran, store(), load()) == [None, 2]


def test_vector_loads_have_any_number() -> None:
    ran = history([LW, VLE, LD, VLE, SW], range(5))
    assert placed(ran, load(4), load(1), load(1), load(8), store()) == [0, 1, 1, 2, 4]


def test_instructions_after_the_last_packet_are_not_in_the_history() -> None:
    ran = history([LW, SW], range(2))
    assert placed(ran, load(), store(), load(8)) == [0, 1, None]
    assert notes(ran, load(), store(), load(8)) == [None, None, AccessNote.BEYOND]


def test_too_few_accesses() -> None:
    """Nothing tells which of many loads are missing."""
    ran = history([LW] * 9, range(9))
    assert notes(ran, *[load()] * 4) == [AccessNote.AMBIGUOUS] * 4
    assert placed(ran, *[load()] * 9) == list(range(9))


def test_a_stretch_that_does_not_agree_leaves_the_next_alone() -> None:
    """Synchronizations at 0, 4 and 8; a packet of the second stretch is of no instruction there."""
    ran = history([LW, SW, LD, SB] * 3, range(12))
    stretch = [load(4), store(4), load(8), store(1)]
    told = [a._replace(sync=0) for a in stretch] + [load(4, 4), store(4, 4), load(2, 4), store(1, 4)]
    told += [a._replace(sync=8) for a in stretch]
    assert placed(ran, *told) == [0, 1, 2, 3, None, None, None, None, 8, 9, 10, 11]
    assert notes(ran, *told)[4:8] == [AccessNote.DISAGREE] * 4


def test_an_access_that_is_missing_leaves_certain_ones_their_places() -> None:
    """Of the second stretch the load of 8 bytes is missing: no other instruction near can have made the others."""
    ran = history([SB, NOP, NOP, NOP, LW, SW, LD, SB, *[NOP] * 3, SW], range(12))
    told = [store(1, 0), load(4, 4), store(4, 4), store(1, 4), store(4, 11)]
    assert placed(ran, *told) == [0, 4, 5, 7, 11]


def test_a_synchronization_without_accesses_is_passed_over() -> None:
    ran = history([LW, NOP, NOP, SW], range(4))
    assert placed(ran, load(sync=0), store(sync=3)) == [0, 3]


def test_accesses_told_after_the_synchronization_that_follows_them() -> None:
    ran = history([LW, SW, LD, SB] * 3, range(12))
    told = [load(4, 0), store(4, 0), load(8, 0), store(1, 4), load(4, 4), store(4, 4), load(8, 4), store(1, 8)]
    told += [load(4, 8), store(4, 8), load(8, 8), store(1, 8)]
    assert placed(ran, *told) == list(range(12))


def test_accesses_told_before_the_synchronization_of_their_instruction() -> None:
    ran = history([LW, SW, LD, SB] * 2, range(8))
    told = [load(4, 0), store(4, 0), load(8, 0), store(1, 0), load(4, 0), store(4, 4), load(8, 4), store(1, 4)]
    assert placed(ran, *told) == list(range(8))


def test_the_first_access_was_told_before_the_first_synchronization() -> None:
    ran = history([LW, SW, LD, SB], range(4))
    assert placed(ran, load(4, -1), store(4, 0), load(8, 0), store(1, 0)) == [None, 1, 2, 3]


def test_what_is_missing_may_be_missing_anywhere() -> None:
    """Of four stores three are in the trace: which ones, only another kind of access among them tells."""
    alike = history([SW] * 4, range(4))
    assert notes(alike, *[store()] * 3) == [AccessNote.AMBIGUOUS] * 3
    ends_alike = history([LW, SB, SW, SW, SW], range(5))
    assert placed(ends_alike, load(), store(1), store(), store()) == [0, 1, None, None]
    differ = history([SW, LW, SW, LD], range(4))
    assert placed(differ, store(), load(), store()) == [0, 1, 2]


def test_a_stretch_that_agrees_does_not_suffer_from_its_neighbour() -> None:
    ran = history([SW] * 8, range(8))
    assert placed(ran, *[store(4, 0)] * 3, *[store(4, 4)] * 4) == [None, None, None, 4, 5, 6, 7]


@each_seed(range(400))
def test_what_has_a_place_has_the_right_one(seed: int) -> None:
    """Random loads and stores in random stretches; of some, accesses are lost without a word."""
    r = random.Random(seed)
    code = r.choices([LW, LD, SW, SB, NOP], r.choices([1, 0.01, 4, 20], k=5), k=200)
    kinds = {LW: load(4), LD: load(8), SW: store(4), SB: store(1)}
    syncs = [0, *sorted(r.sample(range(1, 200), r.randrange(12)))]
    true = [
        kinds[word]._replace(position=number, sync=max(sync for sync in syncs if sync <= number))
        for number, word in enumerate(code)
        if word in kinds
    ]
    lost = r.choice([0, 0, 0.01, 0.1])
    last = {access.kind: access for access in true}.values()  # a kind that is not there at all says something else
    told = [access for access in true if access in last or r.random() >= lost]
    found = locate_accesses(*history(code, range(200)), [access._replace(position=None) for access in told])
    wrong = [access for access, right in zip(found, told, strict=True) if access.position not in (None, right.position)]
    assert not wrong
    if len(told) == len(true):
        assert [access.position for access in found] == [access.position for access in true]
    else:
        assert lost


def test_accesses_while_out_of_sync() -> None:
    ran = history([LW, SW], range(2))
    late = load(4, -1, AccessNote.NO_REQUEST)
    told = (load(4, -1), load(4, 0), late, store(4, 0))
    assert notes(ran, *told) == [AccessNote.NOT_IN_SYNC, None, AccessNote.NO_REQUEST, None]
    assert placed(ran, load(4, -1), load(4, 0), late, store(4, 0)) == [None, 0, None, 1]
    assert notes(ran, load(4, -1)) == [AccessNote.NOT_IN_SYNC]


def test_a_loss_of_data_packets_ends_a_stretch() -> None:
    """The six stores after the load were lost; nothing is known until the next synchronization."""
    ran = history([LW, *[SW] * 6, LD, SB], range(9))
    assert placed(ran, load(4, 0, AccessNote.LOST_AFTER), store(1, -1), load(8, 7), store(1, 7)) == [0, None, 7, 8]
    assert notes(ran, load(4, 0), store(1, -1), load(8, 7), store(1, 7))[1] == AccessNote.NOT_IN_SYNC


def test_a_gap_ends_a_stretch() -> None:
    """Three instructions, the gap (position 3), two more. Of the accesses in the gap nothing is known."""
    ran = history([LW, SW, NOP, LD, SB], [0, 1, 2], [3, 4])
    assert placed(ran, load(4, 0), store(4, 0), store(4, 0), load(8, 4), store(1, 4)) == [0, 1, None, 4, 5]


def test_code_that_is_missing_accesses_nothing() -> None:
    found, _ = history([LW, SW], range(2))
    assert notes((found, Image(64)), load(), store()) == [AccessNote.BEYOND, AccessNote.BEYOND]


def test_a_history_out_of_proportion_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes can say that a loop went round 10**12 times: no reason to count all its loads, or to wait.

    How many positions are examined all the same, and kept, is less than elsewhere here, but in the long run.
    """
    if not LONG:
        monkeypatch.setattr(accesses_module, "_POSITIONS", (1 << 20, 256))
        monkeypatch.setattr(accesses_module, "_SLOTS", (1 << 16, 16))
    program = Image(64)
    program.add_code(0, LW.to_bytes(4, "little") + NOP.to_bytes(4, "little") + SW.to_bytes(4, "little"))
    for unit in (0, 4):  # with and without accesses in the loop
        builder = HistoryBuilder()
        builder.append(Path([(0, 4, 8)]))
        builder.append(RepeatPath(Path([(unit,)]), 10**12))
        builder.append(Path([(0, 8)]))
        ran = builder.finish(Accounting(0, 0, 0, 0))
        told = [load(4, 0), store(4, 0), store(4, 3 + 10**12)]
        assert notes((ran, program), *told) == [AccessNote.TOO_FAR] * 3
        late = [load(4, 3 + 10**12), store(4, 3 + 10**12)]
        assert placed((ran, program), *late) == [3 + 10**12, 4 + 10**12]


def test_what_spike_says_of_qsort() -> None:
    """All accesses of the first 30000 instructions: their addresses and kinds from Spike, their places from its PCs."""
    builder = HistoryBuilder()
    builder.append(Path([tuple(expected("qsort", "o01"))]))
    ran = builder.finish(Accounting(0, 0, 0, 0))
    told = [access._replace(sync=0) for access in reference_accesses()]
    found = locate_accesses(ran, image("qsort"), told)
    assert sum(access.position is not None for access in found) == 8754
    assert all(access.notes == ((AccessNote.BEYOND,) if number >= 8754 else ()) for number, access in enumerate(found))
    positions = [access.position for access in found[:8754]]
    assert positions == sorted(positions, key=lambda position: position or 0)


def test_words() -> None:
    access = MemoryAccess(LOAD, 4, "", 0x8000_5B40, 0x2A)
    assert access_text(access, 32, lambda _: ("buffer", 8)) == "load 4 bytes at 0x80005b40 <buffer+8> = 0x0000002a"
    assert access_text(MemoryAccess(STORE, 1, MULTIPLE, None, 7), 64) == "store 1 byte = 0x07"
    assert (
        access_text(MemoryAccess(ATOMIC, 8, "add", 0x10, None, 1), 32)
        == "atomic add 8 bytes at 0x00000010, operand 0x0000000000000001"
    )
    assert access_text(MemoryAccess(CSR, 4, "rs", 0x300, 8, 1), 32) == "csr rs 0x300 = 0x00000008, operand 0x00000001"
    assert access_text(MemoryAccess(LOAD, 2, failed=True, notes=(AccessNote.BEYOND,)), 32) == (
        "load 2 bytes, failed # its place is not known: its instruction is not in the history"
    )


def test_touches() -> None:
    access = MemoryAccess(STORE, 4, "", 0x100, 0)
    assert [overlaps(access, begin, 2) for begin in (0xFE, 0xFF, 0x100, 0x103, 0x104)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not overlaps(MemoryAccess(STORE, 4), 0, 1 << 64)
    assert not overlaps(MemoryAccess(CSR, 8, "rw", 0x300), 0x300, 8)
