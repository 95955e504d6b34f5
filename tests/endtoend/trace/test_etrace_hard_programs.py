"""The programs and sessions of test_hard_programs.py with E-Trace: listed as they ran, or what is lost is named."""

from pathlib import Path

import pytest

from tests.endtoend.trace.hard_programs import (
    complete,
    in_small_buffers,
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


# The buffer


def test_a_ring_too_small_for_anything(tmp_path: Path) -> None:
    """It never holds an alignment sequence with a synchronization behind it."""
    [outcome] = in_small_buffers(tmp_path, [(32, START)])
    assert "larger buffer" in outcome.listing
