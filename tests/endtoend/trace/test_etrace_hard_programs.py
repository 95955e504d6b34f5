"""The programs and sessions of test_hard_programs.py with E-Trace: listed as they ran, or what is lost is named."""

from pathlib import Path

import pytest

from tests.endtoend.trace.hard_programs import (
    CONTROL_C,
    HALTS,
    Outcome,
    complete,
    in_small_buffers,
    instructions,
    interrupted_after,
    session,
)
from tests.endtoend.trace.test_etrace_options import EVERYTHING
from tests.helpers.amounts import long_only

START = "trace start -format etrace"
ALL_ON = f"trace start {EVERYTHING}"
TO_THE_END = ["hbreak _exit", "continue", "stepi 3"]


# Traps


@pytest.mark.parametrize(
    ("start", "march", "isa"), [(ALL_ON, "rv32ima_zicsr", "IMA"), *long_only((START, "rv64imac_zicsr", "IMAC"))]
)
def test_jumps_to_where_no_code_is(start: str, march: str, isa: str, tmp_path: Path) -> None:
    """A jump through a bad pointer: the trap tells where it went, and the trace goes on in the handler."""
    commands = [start, "hbreak handler", "continue", "stepi", "stepi 5", "continue 2", "delete"]
    commands += ["hbreak *0x1000", "continue 1", "stepi 4", "delete", "break *(handler+12)", "continue 3", "stepi 2"]
    outcome = session("bad_jumps.S", tmp_path, [*commands, "delete", *TO_THE_END], "--isa", isa, march=march)
    complete(outcome)
    assert len(outcome.retired) > 700
    assert "160 traps" in outcome.said["trace status"]


@pytest.mark.parametrize(("start", "march"), [(ALL_ON, "rv64imac_zicsr"), *long_only((START, "rv32imac_zicsr"))])
def test_nested_traps_of_user_code(start: str, march: str, tmp_path: Path) -> None:
    """Traps in the handler, traps right after mret, interrupts in between; stepping into and out of them.

    The program moves mtvec, so that traps must be told with their handlers.
    """
    start = start.replace(" -implicit-exceptions", "")
    commands = [start, "hbreak user", "continue", "stepi", "stepi 3", "delete", "break inner_handler"]
    commands += ["continue 2", "stepi 4", "delete", "hbreak interrupt", "continue 1", "stepi 9", "delete"]
    sim = ["--isa", "IMAC", "--trace-size", "0x100000"]
    outcome = session("nested_traps.S", tmp_path, [*commands, *TO_THE_END], *sim, march=march)
    complete(outcome)
    assert len(outcome.retired) > 5000


def test_traps_for_ever_are_named(tmp_path: Path) -> None:
    """Nothing can be fetched at the handler: nothing retires any more, and the ring holds nothing else."""
    commands = [START, "hbreak round", "continue", "set $mtvec=0x1000", *interrupted_after(0.1)]
    outcome = session("bad_jumps.S", tmp_path, commands, "--trace-size", "4096")
    assert "no instruction ran in this trace, only traps" in outcome.listing


# Code


@pytest.mark.parametrize(("start", "march"), [(ALL_ON, "rv32gc"), *long_only((START, "rv64gc"))])
def test_branchy_code_under_every_verb(start: str, march: str, tmp_path: Path) -> None:
    commands = [start, "break computed", "continue", "finish", "delete", "break once", "continue 3", "until"]
    commands += ["advance computed", "next", "step", "nexti", "watch *(int *)&sink", "continue 2", "delete"]
    commands += ["break deep if n == 0", "continue 1", "finish ", "tbreak branches", "continue 4", "stepi 40"]
    outcome = session("branchy.c", tmp_path, commands, march=march)
    complete(outcome)
    assert len(outcome.retired) > 1000


def test_code_that_is_loaded_while_it_is_traced(tmp_path: Path) -> None:
    commands = [ALL_ON, "break finish", "continue", "trace history", "continue 1"]
    outcome = session("late_code.c", tmp_path, commands)
    complete(outcome)
    assert {pc for pc in outcome.retired if pc >= 0x80400000} >= {0x80400000, 0x80400102}
    assert not outcome.warnings


def test_self_modifying_code_is_named(tmp_path: Path) -> None:
    """The ELF does not say what ran: a gap, and all that is listed after the next synchronization is right again."""
    commands = [f"{START} -sync-period 128", "break finish", "continue"]
    outcome = session("self_modifying.c", tmp_path, commands)
    assert outcome.gaps and "does not match self_modifying-rv64gc.elf" in outcome.gaps[0]
    assert "is this the program that ran?" in outcome.warnings
    after = instructions(outcome.listing[outcome.listing.rindex("\t[") :])
    assert len(after) > 500
    assert after == outcome.retired[-len(after) :]
    assert outcome.same_elsewhere()


# The buffer, and tracing itself


@pytest.mark.parametrize("interruptions", [HALTS, *long_only(CONTROL_C)], ids=lambda commands: commands[-1].split()[0])
def test_interrupted_at_any_moment(interruptions: list[str], tmp_path: Path) -> None:
    outcome = session("branchy.c", tmp_path, [START, *interruptions, "stepi 3"], "--trace-size", "0x100000")
    complete(outcome)
    assert len(outcome.retired) > 1000


STOPPING = f"{START} -stop-on-wrap"
BUFFERS = [(1024, START), (2048, START), (64, STOPPING), (256, STOPPING), (32, START)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Outcome]:
    """What came out of a buffer of each size."""
    outcomes = in_small_buffers(tmp_path_factory.mktemp("small"), BUFFERS)
    return {size: outcome for (size, _), outcome in zip(BUFFERS, outcomes, strict=True)}


@pytest.mark.parametrize("size", [1024, 2048])
def test_a_small_ring_has_the_newest(size: int, small: dict[int, Outcome]) -> None:
    """It has wrapped at least once: a round is about 180 bytes."""
    listed = instructions(small[size].listing)
    assert listed and not small[size].gaps
    assert len(listed) < len(small[size].retired)
    assert listed == small[size].retired[-len(listed) :]
    assert small[size].same_elsewhere()


@pytest.mark.parametrize("size", [64, 256])
def test_a_full_buffer_that_stopped_has_the_oldest_and_says_so(size: int, small: dict[int, Outcome]) -> None:
    listed = instructions(small[size].listing)
    assert listed and listed == small[size].retired[: len(listed)]
    assert "the trace ends where ram0 was full" in small[size].warnings
    assert small[size].same_elsewhere()


def test_a_ring_too_small_for_anything(small: dict[int, Outcome]) -> None:
    """It never holds an alignment sequence with a synchronization behind it."""
    assert "larger buffer" in small[32].listing


def test_the_program_switches_its_trace(tmp_path: Path) -> None:
    outcome = session("self_switching.c", tmp_path, [START, *TO_THE_END])
    assert instructions(outcome.listing) == outcome.retired
    assert len(outcome.gaps) == 5
    assert outcome.same_elsewhere()


def test_reset_is_a_gap(tmp_path: Path) -> None:
    """While halted, and while running."""
    commands = [START, "stepi 20", "monitor reset halt", "stepi 20 ", "monitor resume; sleep 1; reset run"]
    commands += ["monitor halt", "stepi 3"]  # something runs behind the reset, however soon the halt comes
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", "0x100000")
    assert instructions(outcome.listing) == outcome.retired
    assert len(outcome.gaps) == 2
