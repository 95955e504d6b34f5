"""Every optional feature of the simulated encoder, by its register field: it does what it says, and is decoded."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.ntrace.messages import Tcode
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, SyncPlacement
from rvtrace_gdb.transport.simulated.devices.component import IMPLEMENTED as TIMESTAMP_FIELDS
from tests.helpers.amounts import LONG, crossed
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, INST_FEATURES, TE, TS_CONTROL, Registers
from tests.transport.simulated.encoder.traces import (
    ADDRESS_MSB,
    ALL_JUMPS,
    BTM,
    CONTEXT,
    EVERYTHING,
    HIGH64,
    HTM,
    IMPLICIT_RETURN,
    PLACES,
    RARE_SYNC,
    REPEATED,
    SEQUENTIAL,
    TIME,
    Traced,
    compiled,
    machine_with,
    trace,
)
from tests.transport.simulated.nexus import (
    DIRECT_BRANCH,
    INDIRECT_BRANCH,
    INDIRECT_BRANCH_HIST,
    PROG_TRACE_SYNC,
    REPEAT_BRANCH,
    RESOURCE_FULL,
    SYNCHRONIZING,
    messages,
)

FEATURES = [0, SEQUENTIAL, IMPLICIT_RETURN[0], IMPLICIT_RETURN[2], IMPLICIT_RETURN[3], REPEATED, ALL_JUMPS, ADDRESS_MSB]
MODES = pytest.mark.parametrize("mode", [HTM, BTM], ids=["HTM", "BTM"])
SYNCS = 0, 1 << 16, 3 << 16 | 2 << 20  # off, every 16 messages, every 64 halfwords
FREEDOMS = [
    EncoderOptions(icnt_limit=40, hist_limit=5, return_depth=3, partial_bits=4, hrepeat_limit=3, bcnt_limit=2),
    EncoderOptions(full_at_once=False, hist_limit=7, icnt_limit=100, timestamp_sparse=3, idle_bytes=1),
    EncoderOptions(hist_chunks=(3, 2), hist_full_first=True, icnt_by_block=True, icnt_limit=64, field_padding=1),
    EncoderOptions(sync_placement=SyncPlacement.SEPARATE, linear_sync=Tcode.PROG_TRACE_SYNC, idle_before_sync=3),
    EncoderOptions(sync_placement=SyncPlacement.NEXT_BRANCH, indirect_without_hist=True, repeat_branch=True),
    EncoderOptions(exact_context=True, ownership_full=True, trap_return_sync=True, b_type_extended=False),
    EncoderOptions(repeat_shortest=True, hist_limit=20, repeat_broken_by_icnt=True, icnt_limit=200, empty_fields=True),
    EncoderOptions(btm=True, icnt_full_sync=True, icnt_limit=20, linear_sync=Tcode.INDIRECT_BRANCH_SYNC),
    EncoderOptions(linear_sync=Tcode.DIRECT_BRANCH_SYNC, icnt_limit=70, hist_limit=9, run_minimum=3),
]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rv64"), "rv64imac")


def counted(traced: Traced) -> Counter[int]:
    """How many messages of each kind, of a trace without SRC."""
    return Counter(message.tcode for message in messages(traced.data))


@pytest.mark.parametrize(("features", "mode"), crossed(FEATURES, (HTM, BTM)), ids=hex)
def test_each_feature_alone(mode: int, features: int, elf: Path) -> None:
    trace(machine_with(elf), elf, mode | RARE_SYNC, features).check()


@pytest.mark.parametrize(("mode", "place", "sync"), crossed((HTM, BTM), list(PLACES), SYNCS))
def test_everything_on(mode: int, place: str, sync: int, tmp_path: Path) -> None:
    march, base = PLACES[place]
    elf = compiled(tmp_path, march, base)
    machine = machine_with(elf, base=base)
    trace(machine, elf, mode | CONTEXT | sync, EVERYTHING | 6 << 28 | 0x2A << 16, TIME).check()


@pytest.mark.parametrize(
    ("number", "mode"),
    [
        *((number, HTM) for number in range(len(FREEDOMS)) if LONG or number not in (5, 7)),
        *((number, BTM) for number in range(len(FREEDOMS)) if LONG or number in (0, 3, 4, 5, 7)),
    ],
)
def test_everything_on_in_encoders_built_otherwise(mode: int, number: int, elf: Path) -> None:
    """Each where its freedoms are used: histories are HTM's, counts of branches BTM's."""
    machine = machine_with(elf, built_with=FREEDOMS[number])
    trace(machine, elf, mode | CONTEXT | 3 << 16 | 4 << 20, EVERYTHING, TIME).check()


@MODES
def test_an_encoder_that_only_counts_calls(mode: int, tmp_path: Path) -> None:
    """N-Trace 1.0, "Implicit Return Optimization": for programs that do not change return addresses."""
    elf = compiled(tmp_path, "rv64imac", user="well_behaved.c")
    for depth in (1, 5, 32):
        machine = machine_with(elf, built_with=EncoderOptions(return_depth=depth))
        trace(machine, elf, mode | RARE_SYNC, IMPLICIT_RETURN[1]).check()


@pytest.mark.parametrize(("mode", "slice_length"), crossed((HTM, BTM), (1, 50)))
def test_slices_of_any_length_give_the_same_trace(mode: int, slice_length: int, elf: Path) -> None:
    """How often the hart's blocks are passed on to the encoder must not show."""
    settings = mode | CONTEXT | 3 << 16 | 5 << 20, EVERYTHING, TIME | 1 << 8
    long, short = (trace(machine_with(elf), elf, *settings, slice_length=n) for n in (7000, slice_length))
    size = min(len(long.data), len(short.data)) - 40  # how far they ran, and the message about that, may differ
    assert long.data[:size] == short.data[:size]


# What each feature is for


def test_btm_reports_each_taken_branch(elf: Path) -> None:
    htm, btm = (counted(trace(machine_with(elf), elf, mode | RARE_SYNC)) for mode in (HTM, BTM))
    assert btm[DIRECT_BRANCH] > 500 and htm[DIRECT_BRANCH] == 0
    assert btm[INDIRECT_BRANCH] == htm[INDIRECT_BRANCH_HIST]
    assert btm[INDIRECT_BRANCH_HIST] == btm[RESOURCE_FULL] == 0


def test_implicit_return_leaves_returns_out(elf: Path) -> None:
    kinds = [counted(trace(machine_with(elf), elf, BTM | RARE_SYNC, IMPLICIT_RETURN[m])) for m in (0, 3)]
    without = counted(trace(machine_with(elf), elf, BTM | RARE_SYNC))
    assert kinds[0] == kinds[1], "mode 0 does not say how it is done: here, in the best way"
    assert kinds[1][INDIRECT_BRANCH] < without[INDIRECT_BRANCH] / 2


def test_the_enable_bit_decides_about_implicit_return(elf: Path) -> None:
    """Trace Control Interface: trTeInstImplicitReturnMode matters if enabled by trTeInstEnImplicitReturn."""
    assert trace(machine_with(elf), elf, features=3 << 6).data == trace(machine_with(elf), elf).data


def test_sequential_jumps_are_left_out(elf: Path) -> None:
    """Four pairs of auipc and jalr a round: a call, a jump over a word, a tail call; the fourth has an addi between."""
    with_it, without = (trace(machine_with(elf), elf, BTM | RARE_SYNC, f) for f in (SEQUENTIAL, 0))
    assert counted(without)[INDIRECT_BRANCH] - counted(with_it)[INDIRECT_BRANCH] == 3 * rounds(with_it)


def rounds(traced: Traced) -> int:
    """How often sequential_jumps ran: it has the only jump over a word of zeros."""
    return traced.retired.count(max(pc for pc in traced.retired))  # far_away's return: its section is the last


def test_repeated_history_is_counted(elf: Path) -> None:
    with_it, without = (trace(machine_with(elf), elf, HTM | RARE_SYNC, f) for f in (REPEATED, 0))
    repeated = [m for m in messages(with_it.data) if m.tcode == RESOURCE_FULL and m.fixed == (2,)]
    assert repeated and all(len(m.variable) == 2 and m.variable[1] >= 2 for m in repeated)
    assert len(with_it.data) < len(without.data)
    assert not [m for m in messages(without.data) if m.tcode == RESOURCE_FULL and m.fixed == (2,)]


def test_repeated_branches_are_counted_in_btm(elf: Path) -> None:
    with_it, without = (counted(trace(machine_with(elf), elf, BTM | RARE_SYNC, f)) for f in (REPEATED, 0))
    assert with_it[REPEAT_BRANCH] > 0 == without[REPEAT_BRANCH]
    assert with_it.total() < without.total() / 2


def test_all_jumps_are_reported(elf: Path) -> None:
    with_it, without = (counted(trace(machine_with(elf), elf, BTM | RARE_SYNC, f)) for f in (ALL_JUMPS, 0))
    assert with_it[DIRECT_BRANCH] > without[DIRECT_BRANCH]
    assert with_it[INDIRECT_BRANCH] == without[INDIRECT_BRANCH]


def test_high_addresses_are_sent_without_their_ones(tmp_path: Path) -> None:
    """N-Trace 1.0, "Virtual Addresses Optimization": only whole groups of six bits are left out."""
    elf = compiled(tmp_path, "rv64imac", HIGH64)
    with_it, without = (
        next(m for m in messages(trace(machine_with(elf, base=HIGH64), elf, HTM, f).data) if m.tcode == PROG_TRACE_SYNC)
        for f in (ADDRESS_MSB, 0)
    )
    assert without.variable == (0, HIGH64 >> 1)
    assert with_it.variable == (0, HIGH64 >> 1 & (1 << 36) - 1)


def test_the_source_id_is_in_every_message(elf: Path) -> None:
    traced = trace(machine_with(elf), elf, HTM | CONTEXT | RARE_SYNC, EVERYTHING | 3 << 28 | 5 << 16, TIME)
    assert {m.src for m in messages(traced.data, src_bits=3)} == {5}


@MODES
def test_synchronization_by_cycles(mode: int, elf: Path) -> None:
    """One cycle per instruction: a synchronizing message at least every so many, and not much more often."""
    traced = trace(machine_with(elf), elf, mode | 2 << 16 | 3 << 20, timestamps=TIME)
    times = [m.variable[-1] for m in messages(traced.data) if m.tcode in SYNCHRONIZING]
    steps = [after - before for before, after in pairwise(times)]
    assert len(steps) > 30
    assert min(steps) >= 1 << 7 and max(steps) <= (1 << 7) + 64, "it is due at the end of a block"


# Fields that do not exist


def test_an_encoder_without_optional_fields(elf: Path) -> None:
    absent = ["trTeContext", "trTeInstEnAllJumps", "trTeInstImplicitReturnMode", "trTeInstTrigEnable"]
    te = Registers(machine_with(elf, absent=[*absent, *TIMESTAMP_FIELDS]).bus, TE)
    te.activate()
    te[CONTROL] = 0xFFFF_FFFD
    assert te[CONTROL] & (1 << 9 | 1 << 11) == 0
    te[INST_FEATURES] = 0xFFFF_FFFF
    assert te[INST_FEATURES] & 0xFFFF == 0x7CC & ~(1 << 9 | 3 << 6)
    for _ in range(2):
        te[TS_CONTROL] = 0xFFFF_FFFF
        assert te[TS_CONTROL] == 0


def test_what_an_encoder_is_built_with_decides_what_can_be_set(elf: Path) -> None:
    """Repetition is counted in full HISTs; SYNC=4 for a full I-CNT is for BTM (N-Trace 1.0, "I-CNT Details")."""
    te = Registers(machine_with(elf, built_with=EncoderOptions(hist_chunks=(2,))).bus, TE)
    te.activate()
    te[INST_FEATURES] = REPEATED
    assert te[INST_FEATURES] == 0
    te = Registers(machine_with(elf, built_with=EncoderOptions(btm=True, icnt_full_sync=True)).bus, TE)
    te.activate()
    te[CONTROL] = ACTIVE | HTM
    assert te[CONTROL] & 7 << 4 == BTM
