"""Every optional feature of the simulated E-Trace encoder, by its register field: it sends what the hart did."""

from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, EndReport
from rvtrace_gdb.decode.etrace.options import Parameters, SupportLayout
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from tests.helpers.amounts import crossed, long_only
from tests.transport.simulated.encoder.etrace_traces import (
    CACHE,
    CONTEXT_CHANGE,
    CYCLES,
    DATA_DIFFERENCES,
    DATA_TRACING,
    EVERYTHING,
    HALFWORDS,
    IMPLICIT_RETURN,
    NO_TRAP_ADDR,
    PACKETS,
    PREDICTION,
    RARE_SYNC,
    SEQUENTIAL,
    TIME,
    machine_with,
    trace,
)
from tests.transport.simulated.encoder.traces import PLACES, compiled
from tests.transport.simulated.hart.programs import build as compile_for_hart

FEATURES = [0, *(1 << n for n in range(6)), PREDICTION | CACHE, EVERYTHING]
SYNCS = 0, RARE_SYNC, PACKETS, CYCLES | 2 << 20, HALFWORDS | 2 << 20
STANDARD = ETraceBuild()


def built(support: SupportLayout = SupportLayout.REFERENCE, **parameters: int | bool) -> ETraceBuild:
    return ETraceBuild(EncoderOptions(Parameters(**parameters), support=support), data_trace=False)  # type: ignore[arg-type]


BUILDS = [
    built(),
    built(bpred_size=1, cache_size=1, return_stack_size=1, iret_ext=True),
    built(SupportLayout.STANDARD, bpred_size=7, cache_size=7, return_stack_size=2, call_counter_size=2, iret_ext=True),
    built(SupportLayout.STANDARD, time_width=32, context_width=16, f0s_width=2),
    built(ecall_retires=True, privilege_width=3, ecause_width=6),
    replace(STANDARD, encoder=replace(STANDARD.encoder, stop=EndReport.EARLY, shortest=False), timestamp_sparse=3),
]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rv64"), "rv64imac")


@pytest.mark.parametrize(("features", "sync"), crossed(FEATURES, SYNCS), ids=hex)
def test_each_feature_alone(features: int, sync: int, elf: Path) -> None:
    trace(machine_with(elf), elf, sync, features).check()


@pytest.mark.parametrize(("place", "sync"), crossed(list(PLACES), SYNCS))
def test_everything_on(place: str, sync: int, tmp_path: Path) -> None:
    march, base = PLACES[place]
    elf = compiled(tmp_path, march, base)
    features, data = EVERYTHING | 6 << 28 | 0x2A << 16, DATA_TRACING | DATA_DIFFERENCES
    trace(machine_with(elf, base=base), elf, sync, features, TIME, data).check()


@pytest.mark.parametrize("build", BUILDS, ids=range(len(BUILDS)))
def test_everything_on_in_encoders_built_otherwise(build: ETraceBuild, elf: Path) -> None:
    parameters = build.encoder.parameters
    features = NO_TRAP_ADDR | SEQUENTIAL
    features |= PREDICTION if parameters.bpred_size else 0
    features |= CACHE if parameters.cache_size else 0
    features |= IMPLICIT_RETURN if parameters.return_stack_size or parameters.call_counter_size else 0
    trace(machine_with(elf, build), elf, HALFWORDS | 4 << 20, features, TIME, built=build).check()


@pytest.mark.parametrize("iret_ext", [False, True])
def test_an_encoder_that_only_counts_calls(iret_ext: bool, tmp_path: Path) -> None:
    """For programs that do not change return addresses ("Implicit return mode").

    A counter of n bits, which irdepth has to hold, counts 2**n - 1 calls; only with irets it may count one more.
    """
    elf = compiled(tmp_path, "rv64imac", user="well_behaved.c")
    for size in (1, 3, 6):
        build = built(call_counter_size=size, iret_ext=iret_ext)
        traced = trace(machine_with(elf, build), elf, RARE_SYNC, IMPLICIT_RETURN, built=build)
        assert list(traced.history().pcs(0, len(traced.retired) + 1)) == traced.retired


def test_slices_of_any_length_give_the_same_trace(elf: Path) -> None:
    """How often the hart's blocks are passed on to the encoder must not show."""
    settings = HALFWORDS | 5 << 20, EVERYTHING, TIME, DATA_TRACING
    traces = [trace(machine_with(elf), elf, *settings, slice_length=n).data for n in (7000, 50, 1)]
    size = min(map(len, traces)) - 64  # how far they ran, and the packets about that, may differ
    assert size > 1000 and traces[0][:size] == traces[1][:size] == traces[2][:size]


# What each feature is for


def size_with(features: int, elf: Path) -> int:
    """The bytes of all packets."""
    quiet = replace(STANDARD, data_trace=False)
    return sum(map(len, trace(machine_with(elf, quiet), elf, RARE_SYNC, features, built=quiet).payloads()))


@pytest.fixture(scope="module")
def plain_size(elf: Path) -> int:
    return size_with(0, elf)


@pytest.mark.parametrize("features", [SEQUENTIAL, IMPLICIT_RETURN, PREDICTION, CACHE, NO_TRAP_ADDR], ids=hex)
def test_it_makes_the_trace_shorter(features: int, elf: Path, plain_size: int) -> None:
    assert size_with(features, elf) < plain_size


def test_sequential_jumps_are_left_out(elf: Path) -> None:
    """Four pairs of auipc and jalr a round: a call, a jump over a word, a tail call; the fourth has an addi between."""
    short, plain = (trace(machine_with(elf), elf, 0, wanted) for wanted in (SEQUENTIAL, 0))
    rounds = short.retired.count(max(short.retired))  # far_away's return: its section is the last
    assert 2 * rounds <= len(plain.payloads()) - len(short.payloads()) <= 3 * rounds


def test_contexts_are_told(elf: Path) -> None:
    """The tasks have scontext 17 and 4242; hcontext (mcontext) is 5 in the four bits above."""
    parameters = replace(STANDARD.encoder.parameters, context_width=20)
    encoder = replace(STANDARD.encoder, parameters=parameters, hcontext_at=16)
    for ctype in ContextType:
        build = replace(STANDARD, encoder=replace(encoder, context=ctype))
        traced = trace(machine_with(elf, build), elf, built=build)
        traced.check()
        contexts = {payload_context(payload) for payload in traced.payloads() if payload[0] & 15 in (3, 7)}
        assert contexts >= {5 << 16 | 17, 5 << 16 | 4242}
        assert (CONTEXT_CHANGE in traced.kinds()) is (ctype is ContextType.IMPRECISE)


def payload_context(payload: bytes) -> int:
    """Format 3, subformat 0 or 1: after format, subformat, branch and two bits of privilege."""
    return int.from_bytes(payload, "little", signed=True) >> 7 & 0xF_FFFF


def test_time_is_told_in_packets(elf: Path) -> None:
    """32 bits after the privilege, in cycles: one for each instruction."""
    build = built(SupportLayout.STANDARD, time_width=32)
    traced = trace(machine_with(elf, build), elf, HALFWORDS | 2 << 20, timestamps=TIME, built=build)
    found = [int.from_bytes(p, "little", signed=True) >> 7 & 0xFFFF_FFFF for p in traced.payloads() if p[0] & 15 == 3]
    assert found[0] == 0 and found == sorted(found) and found[-1] < len(traced.retired)
    assert all(traced.retired[time] << 1 for time in found)
    assert [traced.retired[time] & 0xFFFF_FFFF for time in found[:9]] == [
        int.from_bytes(p, "little", signed=True) >> 39 << 1 & 0xFFFF_FFFF for p in traced.payloads() if p[0] & 15 == 3
    ][:9]  # fmt: skip


PAIR = """
    .section .text.start, "ax", @progbits
    .globl _start, target
_start:
    .option norvc
    .rept {before}
    addi a0, a0, 1
    .endr
    lui t0, %hi(target)
    jalr x0, %lo(target)(t0)
    .word 0
target:
    addi a1, a1, 1
    bnez a1, _start
"""


@pytest.mark.parametrize("before", [62, 63, 64, *long_only(61, 65)])
def test_a_pair_that_stands_across_two_blocks_of_the_hart(before: int, tmp_path: Path) -> None:
    """The hart executes at most 64 instructions at once; a decoder knows nothing of that."""
    source = tmp_path / "pair.S"
    source.write_text(PAIR.format(before=before))
    elf = compile_for_hart(tmp_path, source, march="rv32imac", origin=0x8000_0000)
    traced = trace(machine_with(elf), elf, 0, SEQUENTIAL, instructions=3500)
    traced.check()
    branches = traced.retired.count(max(traced.retired))
    assert len(traced.payloads()) <= 4 + branches // 31, "nothing but branches, and the beginning and the end"
