"""No false alarm: sound traces of our encoders in all their options, of the reference encoders, and of real cores."""

import csv
import random
from dataclasses import fields, replace
from typing import Any

import pytest

from rvtrace_gdb.decode.check.etrace import StreamChecker as EtraceChecker
from rvtrace_gdb.decode.check.ntrace import StreamChecker as NtraceChecker
from rvtrace_gdb.decode.check.verdict import Verdict
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Dialect, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.options import Options as EtraceOptions
from rvtrace_gdb.decode.ntrace.messages import Tcode
from rvtrace_gdb.decode.ntrace.options import (
    DIALECTS,
    EncoderOptions,
    ImplicitReturn,
    InstSyncMode,
    Options,
    SyncPlacement,
)
from rvtrace_gdb.decode.program.image import Image
from tests.decode.etrace import vectors
from tests.decode.etrace.encoder.test_vectors import ran, reference
from tests.decode.etrace.random_programs import Case as EtraceCase
from tests.decode.etrace.test_missing_packets import drawn as etrace_fields
from tests.decode.ntrace import test_sifive as captures
from tests.decode.ntrace.encodings import FIELDS, decoder_options, legal
from tests.decode.ntrace.encodings import Case as NtraceCase
from tests.decode.ntrace.test_reference import MODES, REFERENCE, image
from tests.helpers.amounts import LONG, each_seed
from tests.helpers.core_captures import sifive


def of_etrace(
    data: bytes, program: Image, options: EtraceOptions, encapsulation: Encapsulation | None = None
) -> Verdict:
    checker = EtraceChecker(program, options, encapsulation or Encapsulation(), split=False)
    checker.feed(data)
    return checker.verdicts()[0]


def of_ntrace(data: bytes, program: Image, options: Options) -> list[Verdict]:
    checker = NtraceChecker(program, options)
    checker.feed(data)
    return [*checker.verdicts().values()]


def assert_sound(verdict: Verdict) -> None:
    assert (verdict.damaged, verdict.content, verdict.timing, verdict.is_unsure) == ((), 0, 0, False)
    assert verdict.agreed


# Our encoders


@each_seed(range(60))
def test_our_etrace_encoder(seed: int) -> None:
    """Random programs with traps and lost packets, and an encoder with random parameters, modes and freedoms."""
    rng = random.Random(seed)
    fields = etrace_fields(rng)
    case = EtraceCase(seed, fields, steps=800, trap_rate=rng.choice([0, 0.01, 0.1]), breaks=rng.choice([0, 0.01]))
    verdict = of_etrace(case.trace, case.image, replace(case.options, sync_packets=case.encoder_options.period))
    assert (verdict.damaged, verdict.is_unsure) == ((), False)


_SWITCHES = (
    "btm", "all_jumps", "extend_addr_msb", "timestamps", "context", "b_type_extended", "indirect_without_hist",
    "correlation_without_hist", "full_at_once", "repeated_history",
)  # fmt: skip

_NOT_DRAWN = {
    "sequential_jump", "repeat_branch", "icnt_full_sync", "icnt_by_block", "hist_full_first", "repeat_shortest",
    "repeat_broken_by_icnt", "marks_keep_hist", "trap_return_sync", "ownership_full", "exact_context",
    "context_by_sync", "empty_fields",
}  # fmt: skip
"""Switches that keep their default. A sequential jump needs blocks as they run, which random executions cut."""
_DIALECTS = ("1.0", "1.0", "sifive")


def test_each_switch_and_dialect_is_drawn_or_said_not_to_be() -> None:
    """Of rc7 no encoder with its marks is drawn: its streams are in tests/decode/ntrace/examples/test_rc7.py."""
    switches = {field.name for field in fields(EncoderOptions) if isinstance(field.default, bool)}
    assert switches == {*_SWITCHES} | _NOT_DRAWN
    assert {*DIALECTS} == {*_DIALECTS, "rc7"}


def ntrace_fields(rng: random.Random) -> dict[str, Any]:
    """An encoder as it may be built."""
    fields: dict[str, Any] = {name: getattr(EncoderOptions(), name) for name in FIELDS} | {"dialect": "1.0"}
    fields |= {name: rng.random() < 0.5 for name in _SWITCHES}
    fields |= {
        "sync_mode": rng.choice([InstSyncMode.MESSAGES, *InstSyncMode]), "sync_max": rng.randrange(4),
        "icnt_limit": rng.choice([64, 512, 1 << 16]), "hist_limit": rng.choice([17, 32]),
        "implicit_return": rng.choice([*ImplicitReturn]), "return_depth": rng.choice([8, 32]),
        "sync_placement": rng.choice([*SyncPlacement]), "linear_sync": rng.choice([None, Tcode.PROG_TRACE_SYNC]),
        "dialect": rng.choice(_DIALECTS),
    }  # fmt: skip
    return legal(fields)


@pytest.mark.parametrize("seed", [193, 943, 2045, 2199] if LONG else [193, 2045])
def test_encoders_whose_freedoms_show_in_one_interval(seed: int) -> None:
    """193: I-CNT is full in one interval alone, which has both 63 and 64 for a limit of 64. 943: HIST is repeated in
    one interval alone, and Ownership messages in others end the counts. 2045: it never is, but waiting for that delays
    a message, and so the synchronization after it. 2199: an interval with Ownership messages agrees by chance with
    another way to count repetitions.
    """
    assert_ours_is_sound(seed)


@each_seed(range(60))
def test_our_ntrace_encoder(seed: int) -> None:
    assert_ours_is_sound(seed)


def assert_ours_is_sound(seed: int) -> None:
    rng = random.Random(seed)
    fields = ntrace_fields(rng)
    case = NtraceCase(seed, fields, rng.choice([(0, 0), (3, 5)]), steps=800)
    (verdict,) = of_ntrace(case.trace, case.program.image(), decoder_options(case.encoder_options))
    assert (verdict.damaged, verdict.is_unsure) == ((), False)


# The reference encoders


def streams() -> list[tuple[str, str]]:
    with open(REFERENCE / "golden.tsv", newline="") as file:
        return [(row["program"], row["mode"]) for row in csv.DictReader(file, delimiter="\t")]


_PROGRAMS = ("median", "towers", "vvadd") if LONG else ("median",)


@pytest.mark.parametrize(("program", "mode"), [one for one in streams() if one[0] in _PROGRAMS])
def test_the_ntrace_reference(program: str, mode: str) -> None:
    """One interval from start to stop: the way the reference encoder is built is found out from it."""
    options = Options(btm=mode == "0", implicit_return=MODES[mode].implicit_return)
    (verdict,) = of_ntrace((REFERENCE / f"{program}.{mode}.nex").read_bytes(), image(program), options)
    assert_sound(verdict)
    assert verdict.agreed == 1


@pytest.mark.parametrize("option", vectors.OPTIONS)
@pytest.mark.parametrize("program", ["towers", "br_j_asm", "torture64"] if LONG else ["br_j_asm"])
def test_the_etrace_reference_in_all_options(program: str, option: str) -> None:
    """torture64 has 300 traps, and two things that the reference encoder does in another way than the document."""
    found = vectors.vector(program, option)
    options = replace(vectors.options(found), sync_packets=found.resync or 0)
    assert_sound(of_etrace(vectors.framed(found.packets), vectors.image(program), options))


@pytest.mark.parametrize("name", ["dhrystone", "median", "pmp", "qsort"] if LONG else ["median"])
def test_the_official_etrace_model(name: str) -> None:
    options, packets = reference(vectors.ROOT / "reference" / "itype3_basic" / name)
    verdict = of_etrace(vectors.framed(packets), ran(name)[1], replace(options.decoder, sync_packets=options.period))
    assert_sound(verdict)


# Real cores


@pytest.mark.parametrize("name", [*captures.EQUAL, "timestamp"])
def test_captures_of_sifive_cores(name: str) -> None:
    """They are built in other ways than the reference: ICNT of several instructions at once (dv-uaddr1), DirectBranch
    for jumps (ca-vector-gemm), any order of two registers that are full (e31_coremark_release).
    """
    program = Image.from_elf(sifive(f"{name}.elf"))
    for verdict in of_ntrace(captures.trace(name), program, captures.options(name)):
        assert_sound(verdict)


def test_what_is_no_flow_is_not_judged() -> None:
    """pc-sample-sync has nothing but samples of the pc: the check cannot tell."""
    program = Image.from_elf(sifive("pc-sample-sync.elf"))
    (verdict,) = of_ntrace(captures.trace("pc-sample-sync"), program, captures.options("pc-sample-sync"))
    assert not verdict.damaged


@pytest.mark.parametrize(("capture", "elf"), [("hello_culsans", "hello_culsans.riscv"), ("l1_test", "l1.riscv")])
def test_captures_of_rv_tracer(capture: str, elf: str) -> None:
    folder = vectors.ROOT / "rv_tracer" / capture
    told = {name: value for name, value in DEFAULTS[Dialect.PULP].items() if name in vars(Parameters())}
    options = EtraceOptions(Parameters(**told), support=SupportLayout.PULP, dialect=Dialect.PULP)  # type: ignore[arg-type]
    data = (folder / "packets.bin").read_bytes()
    assert_sound(of_etrace(data, Image.from_elf(folder / elf), options, Encapsulation("pulp")))
