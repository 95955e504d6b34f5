"""The programs and sessions of test_hard_programs.py with E-Trace: listed as they ran, or what is lost is named."""

from pathlib import Path

import pytest

from tests.endtoend.trace.hard_programs import complete, instructions, interrupted_after, session
from tests.endtoend.trace.test_etrace_options import EVERYTHING

START = "trace start -format etrace"
ALL_ON = f"trace start {EVERYTHING}"
STARTS = pytest.mark.parametrize("start", [START, ALL_ON], ids=["plain", "everything"])
TO_THE_END = ["hbreak _exit", "continue", "stepi 3"]


# Traps


@pytest.mark.parametrize(
    ("start", "march", "isa"), [(START, "rv64imac_zicsr", "IMAC"), (ALL_ON, "rv32ima_zicsr", "IMA")]
)
def test_jumps_to_where_no_code_is(start: str, march: str, isa: str, tmp_path: Path) -> None:
    """A jump through a bad pointer: the trap tells where it went, and the trace goes on in the handler."""
    commands = [start, "hbreak handler", "continue", "stepi", "stepi 5", "continue 2", "delete"]
    commands += ["hbreak *0x1000", "continue 1", "stepi 4", "delete", "break *(handler+12)", "continue 3", "stepi 2"]
    outcome = session("bad_jumps.S", tmp_path, [*commands, "delete", *TO_THE_END], "--isa", isa, march=march)
    complete(outcome)
    assert len(outcome.retired) > 700
    assert "160 traps" in outcome.said["trace status"]


@STARTS
def test_nested_traps_of_user_code(start: str, tmp_path: Path) -> None:
    """Traps in the handler, traps right after mret, interrupts in between; stepping into and out of them.

    The program moves mtvec, so that traps must be told with their handlers.
    """
    start = start.replace(" -implicit-exceptions", "")
    commands = [start, "hbreak user", "continue", "stepi", "stepi 3", "delete", "break inner_handler"]
    commands += ["continue 2", "stepi 4", "delete", "hbreak interrupt", "continue 1", "stepi 9", "delete"]
    sim = ["--isa", "IMAC", "--trace-size", "0x100000"]
    outcome = session("nested_traps.S", tmp_path, [*commands, *TO_THE_END], *sim, march="rv32imac_zicsr")
    complete(outcome)
    assert len(outcome.retired) > 10000


def test_traps_for_ever_are_named(tmp_path: Path) -> None:
    """Nothing can be fetched at the handler: nothing retires any more, and the ring holds nothing else."""
    commands = [START, "hbreak round", "continue", "set $mtvec=0x1000", *interrupted_after(0.1)]
    outcome = session("bad_jumps.S", tmp_path, commands, "--trace-size", "4096")
    assert "no instruction ran in this trace, only traps" in outcome.listing


# Code


@pytest.mark.parametrize(("start", "march"), [(START, "rv32gc"), (ALL_ON, "rv64gc")])
def test_branchy_code_under_every_verb(start: str, march: str, tmp_path: Path) -> None:
    commands = [start, "break computed", "continue", "finish", "delete", "break once", "continue 3", "until"]
    commands += ["advance computed", "next", "step", "nexti", "watch *(int *)&sink", "continue 2", "delete"]
    commands += ["break deep if n == 0", "continue 1", "finish ", "tbreak branches", "continue 4", "stepi 40"]
    outcome = session("branchy.c", tmp_path, commands, march=march)
    complete(outcome)
    assert len(outcome.retired) > 1000


def test_long_code_without_a_branch(tmp_path: Path) -> None:
    """No packet for 32768 instructions."""
    commands = ["set trust-readonly-sections on", START, *TO_THE_END]  # saves reading it all from the target
    outcome = session("straight.S", tmp_path, commands, "--isa", "IMA", march="rv32ima_zicsr")
    complete(outcome)
    assert 4 * len(outcome.retired) > 2 << 16


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


def test_interrupted_at_any_moment(tmp_path: Path) -> None:
    commands = [START, *interrupted_after(0.01), *interrupted_after(0.02)]
    complete(session("branchy.c", tmp_path, [*commands, "stepi 3"], "--trace-size", "0x100000"))


@pytest.mark.parametrize(("size", "rounds"), [(1024, 16), (2048, 24)])
def test_a_small_ring_has_the_newest(size: int, rounds: int, tmp_path: Path) -> None:
    """It has wrapped at least once: a round is about 180 bytes."""
    commands = [START, "break once", f"ignore 1 {rounds - 1}", "continue", "stepi"]
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", str(size))
    listed = instructions(outcome.listing)
    assert listed and not outcome.gaps
    assert len(listed) < len(outcome.retired)
    assert listed == outcome.retired[-len(listed) :]
    assert outcome.same_elsewhere()


@pytest.mark.parametrize("size", [64, 256])
def test_a_full_buffer_that_stopped_has_the_oldest_and_says_so(size: int, tmp_path: Path) -> None:
    commands = [f"{START} -stop-on-wrap", "break once", "ignore 1 19", "continue", "stepi"]
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", str(size))
    listed = instructions(outcome.listing)
    assert listed and listed == outcome.retired[: len(listed)]
    assert "the trace ends where ram0 was full" in outcome.warnings
    assert outcome.same_elsewhere()


def test_a_ring_too_small_for_anything(tmp_path: Path) -> None:
    """It never holds an alignment sequence with a synchronization behind it."""
    commands = [START, "break once", "ignore 1 5", "continue"]
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", "32")
    assert "larger buffer" in outcome.listing


def test_the_program_switches_its_trace(tmp_path: Path) -> None:
    outcome = session("self_switching.c", tmp_path, [START, *TO_THE_END])
    assert instructions(outcome.listing) == outcome.retired
    assert len(outcome.gaps) == 5
    assert outcome.same_elsewhere()


def test_reset_is_a_gap(tmp_path: Path) -> None:
    """While halted, and while running."""
    commands = [START, "stepi 100", "monitor reset halt", "stepi 100 ", "monitor resume", "monitor reset run"]
    commands += ["monitor halt", "stepi 3"]  # something runs behind the reset, however soon the halt comes
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", "0x100000")
    assert instructions(outcome.listing) == outcome.retired
    assert len(outcome.gaps) == 2
