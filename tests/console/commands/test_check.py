"""`rvtrace check`, and `--check` of the commands that show losses.

What is right follows from the damage: which byte of the trace was changed.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.tandem.corpus import DATA
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers import checked_captures
from tests.helpers.amounts import thorough

ETRACE = ("--etrace", "--sync-mode", "packets")
NTRACE = ("--btm", "--sync-mode", "messages")


class Done(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[[str], Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def main_with(words: str) -> Done:
        status = main(shlex.split(words))
        return Done(status, *capsys.readouterr())

    return main_with


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checked_captures.capture(tmp_path_factory.mktemp("sound"), *NTRACE)


@pytest.fixture(scope="module")
def damaged(sound: Path) -> tuple[Path, int]:
    return checked_captures.doubled(sound)


def test_a_sound_trace(sound: Path, run: Run) -> None:
    done = run(f"check {sound} --quiet")
    (row,) = map(json.loads, run(f"check {sound} --json --quiet").out.splitlines())
    assert (done.status, done.err) == (0, "")
    assert (row["conclusion"], row["hart"], row["differing"]) == ("agrees", 0, [])
    assert row["agree"] == row["intervals"] > 20
    assert done.out.splitlines() == [
        f"{row['agree']} intervals between synchronizations: {row['agree']} agree.",
        "No damage is seen: encoded again, the listing gives the bytes of the trace.",
    ]


def test_harts_of_which_the_same_is_said_are_one(sound: Path, damaged: tuple[Path, int], run: Run) -> None:
    """Three or more that follow each other, as gdb says it; JSON has them all."""
    harts = checked_captures.of_harts([*[sound] * 3, damaged[0], sound], sound.with_name("harts.rvt"))
    of_one = run(f"check {sound} --quiet").out.splitlines()
    lines = run(f"check {harts} --quiet").out.splitlines()
    assert lines[:2] == [f"harts 0 to 2: {of_one[0]}", of_one[1]] and lines[-2:] == [f"hart 4: {of_one[0]}", of_one[1]]
    assert sum(line.startswith("hart") for line in lines) == 3 and ", 1 differs." in lines[2]
    assert lines[2].startswith("hart 3: ")
    said = run_gdb(checked_captures.ELF, [SOURCE, f"trace open {harts}", "trace check", "trace status"])
    assert said["trace check"].splitlines() == lines
    checks = [line.split(maxsplit=1)[1] for line in said["trace status"].splitlines() if line.startswith("check:")]
    assert [check.partition(": ")[0] for check in checks] == ["harts 0 to 2", "hart 3", "hart 4"]
    rows = list(map(json.loads, run(f"check {harts} --json --quiet").out.splitlines()))
    assert [row["hart"] for row in rows] == list(range(5))
    assert run(f"check {harts} --hart 2 --quiet").out.splitlines() == of_one


def test_a_sound_trace_of_etrace(tmp_path: Path, run: Run) -> None:
    file = checked_captures.capture(tmp_path, *ETRACE)
    done = run(f"check {file} --json --quiet")
    row = json.loads(done.out)
    assert (done.status, row["conclusion"]) == (0, "agrees")
    assert row["agree"] == row["intervals"] > 3


def test_one_message_came_twice(sound: Path, damaged: tuple[Path, int], run: Run) -> None:
    """Bytes and instructions of the interval have the place, and no other interval is named."""
    file, byte = damaged
    done = run(f"check {file} --json --quiet")
    row = json.loads(done.out)
    (one,) = row["differing"]
    assert (done.status, row["conclusion"], row["differ"]) == (3, "differs", 1)
    assert row["agree"] == json.loads(run(f"check {sound} --json --quiet").out)["agree"] - 1
    assert one["trace-byte"] <= byte < one["trace-byte-end"] and one["timing"] == 1
    text = run(f"check {file} --quiet").out.splitlines()
    first, last = one["trace-byte"], one["trace-byte-end"] - 1
    assert text[1:] == [
        f"  bytes {first:#x} to {last:#x}, instructions {one['begin']} to {one['end']}:",
        "    longer or shorter than the encoder's period: messages lost, or too many",
        "What differs is damaged: this encoder sends other bytes for what is listed.",
    ]
    assert all(len(line) <= 80 for line in text)


@thorough("test_one_message_came_twice")
def test_it_is_a_loss_of_the_other_commands(damaged: tuple[Path, int], run: Run) -> None:
    """With --check, and without it they are what they were. The numbers of the instructions stay."""
    file, _ = damaged
    (one,) = json.loads(run(f"check {file} --json --quiet").out)["differing"]
    for words in ("gaps", "events --kind loss"):
        assert run(f"{words} {file} --json --quiet").out == ""
        (gap,) = map(json.loads, run(f"{words} {file} --check --json --quiet").out.splitlines())
        assert (gap["trace-byte"], gap["trace-byte-end"]) == (one["trace-byte"], one["trace-byte-end"])
        assert (gap["reason"], gap["position"]) == ("encoded-otherwise", one["end"] + 1)
        assert gap["text"].startswith("checked, and damaged before this place: ")
    assert run(f"decode {file} --quiet").out == run(f"decode {file} --check --quiet").out
    before, after = (run(f"decode {file} --events {more} --quiet").out.splitlines() for more in ("", "--check"))
    assert len(after) == len(before) + 1
    assert sum("checked, and damaged" in line for line in after) == 1
    assert "check: " not in run(f"status {file}").out
    (line,) = [line for line in run(f"status {file} --check").out.splitlines() if line.startswith("check:")]
    assert line.endswith(" agree, 1 differs: damaged")


@thorough("decode/check/test_sound_traces.py::test_encoders_whose_freedoms_show_in_one_interval")
def test_an_encoder_that_is_built_otherwise(sound: Path, tmp_path: Path, run: Run) -> None:
    """Messages of an encoder that synchronizes after 32, and registers that say 16: no interval has the period."""
    other = checked_captures.capture(tmp_path, *NTRACE, "--sync-max", "1")
    file = checked_captures.with_bytes(sound, b"".join(checked_captures.messages(other)), "other.rvt")
    done = run(f"check {file} --quiet")
    assert done.status == 4
    assert done.out.splitlines()[-1].startswith("Cannot tell for this encoder: ")
    (line,) = [line for line in run(f"status {file} --check").out.splitlines() if line.startswith("check:")]
    assert line.endswith(": cannot tell for this encoder")
    assert run(f"gaps {file} --check --quiet --json").out == ""


@thorough("test_one_message_came_twice")
def test_losses_that_were_known(sound: Path, run: Run) -> None:
    """A byte of zeros in the middle of a message: the decoder has a gap there, and the status says that it is lost."""
    sent = checked_captures.messages(sound)
    file = checked_captures.with_bytes(sound, b"".join([*sent[:200], b"\x01\x03", *sent[201:]]), "lost.rvt")
    done = run(f"check {file} --json --quiet")
    assert done.status == 3
    assert json.loads(done.out)["lost"] >= 1


def test_what_cannot_be_checked(run: Run) -> None:
    program = DATA / "riscv-tests" / "rv64mi-p-scall"
    done = run(f"check {DATA}/tandem/flute_rv64mi-p-scall.tvt --tandem --dialect flute --elf {program}")
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines()[-1] == (
        "rvtrace: a tandem trace is not checked so: it has what each instruction changed, and `rvtrace tandem verify`"
        " compares that with a model"
    )


def test_a_stream_has_no_check(run: Run) -> None:
    done = run(f"decode --follow --check no-such-file --ntrace --elf {checked_captures.ELF}")
    assert (done.status, done.err) == (1, "rvtrace: --check needs the whole trace: not with --follow\n")
