"""`trace check` in the real gdb: what it finds is among the losses of the session, in the past, too."""

import re

import pytest

from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers import checked_captures

_COMMANDS = (
    "trace gaps", "trace check", "trace gaps ", "trace status", "trace check ", "trace events loss",
    'interpreter-exec mi "-rvtrace-check"',
)  # fmt: skip
_IN_THE_PAST = ("trace replay", "trace goto 5000", "trace check   ", "reverse-stepi", "trace position", "trace gaps  ")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What gdb prints. One message of a loop came twice."""
    sound = checked_captures.capture(tmp_path_factory.mktemp("check"), "--btm", "--sync-mode", "messages")
    file, byte = checked_captures.doubled(sound)
    opened = f"trace open {file}"
    commands = [SOURCE, f"trace open {sound}", "trace check  ", opened, *_COMMANDS, opened, *_IN_THE_PAST]
    return {**run_gdb(checked_captures.ELF, commands), "byte": str(byte)}


def test_before_the_check(said: dict[str, str]) -> None:
    assert said["trace gaps"] == "No gaps: the history is complete.\n"


def test_the_interval_is_named(said: dict[str, str]) -> None:
    counts, one, _, meaning = said["trace check"].splitlines()
    assert re.fullmatch(r"(\d+) intervals between synchronizations: \d+ agree, 1 differs\.", counts)
    found = re.match(r"  bytes (0x\w+) to (0x\w+), instructions (\d+) to (\d+):$", one)
    assert found is not None
    assert int(found[1], 16) <= int(said["byte"]) <= int(found[2], 16)
    assert meaning.startswith("What differs is damaged: ")
    assert said["trace check "] == said["trace check"]


def test_it_is_a_loss(said: dict[str, str]) -> None:
    (gap,) = said["trace gaps "].splitlines()
    assert "loss: checked, and damaged before this place: " in gap
    assert said["trace events loss"].splitlines() == [gap]
    (check,) = [line for line in said["trace status"].splitlines() if line.startswith("check:")]
    assert check.endswith(" agree, 1 differs: damaged")
    assert "cannot be decoded" not in said["trace status"]


def test_the_past_keeps_its_numbers(said: dict[str, str]) -> None:
    assert said["trace check   "] == said["trace check"]
    assert said["trace position"].startswith("In the past, at instruction 4999 of ")
    assert said["trace gaps  "] == said["trace gaps "]


def test_a_sound_trace(said: dict[str, str]) -> None:
    counts, meaning = said["trace check  "].splitlines()
    assert re.fullmatch(r"(\d+) intervals between synchronizations: \1 agree\.", counts)
    assert meaning.startswith("No damage is seen: ")


def test_the_machine_interface(said: dict[str, str]) -> None:
    answer = said['interpreter-exec mi "-rvtrace-check"']
    assert re.match(r'\^done,checks=\[{hart="0",conclusion="differs",intervals="\d+",agree="\d+",differ="1",', answer)
