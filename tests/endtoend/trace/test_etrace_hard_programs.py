"""What is another way with E-Trace of the programs and sessions of test_hard_programs.py."""

from pathlib import Path

import pytest

from tests.endtoend.trace.hard_programs import complete, in_small_buffers, session
from tests.endtoend.trace.test_etrace_options import EVERYTHING
from tests.helpers.amounts import long_only, thorough

START = "trace start -format etrace"
ALL_ON = f"trace start {EVERYTHING}"
TO_THE_END = ["hbreak _exit", "continue", "stepi 3"]


@thorough("endtoend/trace/test_hard_programs.py::test_nested_traps_of_user_code")
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


@thorough("endtoend/trace/test_first_trace.py::test_a_buffer_that_wraps_keeps_the_newest")
def test_a_ring_too_small_for_anything(tmp_path: Path) -> None:
    """It never holds an alignment sequence with a synchronization behind it."""
    [outcome] = in_small_buffers(tmp_path, [(32, START)])
    assert "larger buffer" in outcome.listing
