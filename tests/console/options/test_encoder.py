"""The options of `rvtrace encode` and the fields of EncoderOptions: none is forgotten, and each is what it says."""

import argparse
import dataclasses
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.options import encoder
from rvtrace_gdb.decode.ntrace.messages import Tcode
from rvtrace_gdb.decode.ntrace.options import (
    RC7,
    SIFIVE,
    EncoderOptions,
    ImplicitReturn,
    InstSyncMode,
    Options,
    SyncPlacement,
)
from tests.helpers import reference_streams

FIELDS = {field.name: field for field in dataclasses.fields(EncoderOptions)}
ARGUMENTS = [
    "encode",
    "--elf",
    str(reference_streams.FOLDER / "t1.elf"),
    "--pcs",
    str(reference_streams.FOLDER / "t1.pcs.gz"),
]


def options(*words: str, xlen: int = 64) -> EncoderOptions:
    own = argparse.ArgumentParser()
    encoder.add_arguments(own)
    return encoder.options(encoder.given_options(own.parse_args(words)), xlen)


def test_every_field_has_one_option_in_one_group() -> None:
    listed = [name for group in encoder.HELP.values() for name in group]
    assert sorted(listed) == sorted(FIELDS)


def test_the_defaults_are_those_of_the_encoder() -> None:
    assert options() == EncoderOptions()
    assert options(xlen=32) == EncoderOptions(xlen=32)


@pytest.mark.parametrize("name", FIELDS)
def test_each_option_sets_its_field(name: str) -> None:
    """To any value but the default: the option is the field's name, --no-... where the default is on."""
    default = FIELDS[name].default
    word = "--" + name.replace("_", "-")
    extra = {"src_id": ["--src-bits", "9"], "icnt_full_sync": ["--btm"]}.get(name, [])
    if isinstance(default, bool):
        values = options(*extra, word.replace("--", "--no-", 1) if default else word)
        assert getattr(values, name) is not default
    elif name == "xlen":
        assert options(word, "32", xlen=32).xlen == 32
    elif name in encoder.CHOICES:
        for text, value in encoder.CHOICES[name].items():
            assert getattr(options(word, text), name) == value
    elif isinstance(default, tuple):
        assert getattr(options(word, "2,5,7"), name) == (2, 5, 7)
    else:
        assert getattr(options(*extra, word, "0x7"), name) == 7


def test_choices_are_called_as_in_the_documents() -> None:
    words = "--dialect rc7 --sync-mode cycles --sync-placement next-branch --linear-sync indirect-branch-hist-sync"
    values = options(*words.split(), "--implicit-return", "partial")
    assert values.dialect is RC7
    assert values.sync_mode is InstSyncMode.CYCLES
    assert values.sync_placement is SyncPlacement.NEXT_BRANCH
    assert values.linear_sync is Tcode.INDIRECT_BRANCH_HIST_SYNC
    assert values.implicit_return is ImplicitReturn.PARTIAL_STACK


def test_what_a_decoder_must_know_of_them() -> None:
    words = "--src-bits 4 --src-id 9 --timestamps --timestamp-bits 40 --implicit-return counter --sequential-jump"
    words += " --all-jumps --extend-addr-msb --dialect sifive"
    assert options(*words.split()).of_decoder == Options(
        src_bits=4, src_id=9, timestamps=True, timestamp_bits=40, implicit_return=ImplicitReturn.COUNTER,
        sequential_jump=True, all_jumps=True, extend_addr_msb=True, dialect=SIFIVE,
    )  # fmt: skip
    assert options("--btm").of_decoder == Options(btm=True)
    assert options("--repeated-history", "--hrepeat-limit", "0x100000").of_decoder == Options(repeat_bits=21)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--src-id 3", "src"),
        ("--icnt-limit 0", "--icnt-limit must be at least 1"),
        ("--xlen 64", "--xlen 64: the ELF is an RV32 program"),
        ("--hist-chunks 3,4 --repeated-history", "--hist-chunks"),
        ("--icnt-full-sync", "--icnt-full-sync"),
    ],
)
def test_options_no_encoder_can_have_are_one_line(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ARGUMENTS, *words.split()]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("rvtrace: ") and captured.err.count("\n") == 1
    assert said in captured.err


@pytest.mark.parametrize(
    "words", ["--icnt-limit many", "--sync sometime", "--evcode 17", "--limit -3", "--limit 0", "--dialect 2.0"]
)
def test_values_that_are_none(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*ARGUMENTS, *words.split()])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("rvtrace encode: error: argument " + words.split()[0])


def test_the_help_names_registers_and_sections(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["encode", "--help-encoder"])
    text = " ".join(capsys.readouterr().out.split())
    for group in encoder.HELP:
        assert f"{group}:" in text
    for word in ("trTeInstMode", "trTeInstSyncMode", "trTeInstEnRepeatedHistory", '"Maximum Field Sizes"'):
        assert word in text


ALONE = {
    "sync_max": "3", "sync_placement": "separate", "return_depth": "1", "partial_bits": "1", "hrepeat_limit": "2",
    "repeat_trims": "5", "bcnt_limit": "2", "run_minimum": "2", "timestamp_bits": "4", "timestamp_sparse": "7",
    "hist_limit": "7", "hist_chunks": "3",
}  # fmt: skip
"""Values that would change much, if they changed anything."""


@pytest.mark.parametrize("name", encoder._NEEDED)
def test_options_that_change_nothing_are_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And change nothing: the bytes are the same."""
    wanted, there = encoder._NEEDED[name]
    btm = [] if there(EncoderOptions(btm=True)) else ["--btm"] if there(EncoderOptions()) else []
    word = "--" + name.replace("_", "-")
    for file, words in (("without", btm), ("with", [*btm, word, *([ALONE[name]] if name in ALONE else [])])):
        assert main([*ARGUMENTS, *words, "--limit", "20000", "-o", str(tmp_path / file)]) == 0
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()
    said = capsys.readouterr().err.splitlines()
    assert f"note: {word} has no effect, it needs {wanted}" in said
    assert len(said) == 3, "and nothing is said where it is not given"


def test_options_that_change_something_are_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--sync-mode messages --sync-max 1 --implicit-return partial --partial-bits 4 --return-depth 3"
    words += " --repeated-history --hrepeat-limit 9 --timestamps --timestamp-bits 20 --hist-limit 20"
    assert main([*ARGUMENTS, *words.split(), "--limit", "50"]) == 0
    assert "note:" not in capsys.readouterr().err


def test_a_log_without_privilege_modes_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ARGUMENTS, "--context", "--limit", "50"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "note: no Ownership messages: no privilege modes are in this log (format pcs)"
