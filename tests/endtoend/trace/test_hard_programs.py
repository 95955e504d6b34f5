"""Programs and sessions that are hard on a tracer: every one must be listed as it ran, or what is lost be named."""

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
from tests.helpers.amounts import long_only, thorough

TO_THE_END = ["trace start", "hbreak _exit", "continue", "stepi 3"]


# Traps


@thorough("decode/ntrace/test_loss.py::test_code_that_is_not_there")
@pytest.mark.parametrize(("march", "isa"), [("rv64imac_zicsr", "IMAC"), *long_only(("rv32ima_zicsr", "IMA"))])
def test_jumps_to_where_no_code_is(march: str, isa: str, tmp_path: Path) -> None:
    """With breakpoints where nothing can be fetched, and on the first and the last instruction of the handler."""
    commands = ["trace start", "hbreak handler", "continue", "stepi", "stepi 5", "continue 2", "delete"]
    commands += ["hbreak *0x1000", "continue 1", "stepi 4", "delete", "break *(handler+12)", "continue 3", "stepi 2"]
    outcome = session("bad_jumps.S", tmp_path, [*commands, "delete", *TO_THE_END[1:]], "--isa", isa, march=march)
    complete(outcome)
    assert len(outcome.retired) > 700
    assert "160 traps" in outcome.said["trace status"]


@pytest.mark.parametrize(("march", "isa"), [("rv32ima_zicsr", "IMA"), *long_only(("rv64imac_zicsr", "IMAC"))])
def test_nested_traps_of_user_code(march: str, isa: str, tmp_path: Path) -> None:
    """Traps in the handler, traps right after mret, interrupts in between; stepping into and out of them."""
    commands = ["trace start", "hbreak user", "continue", "stepi", "stepi 3", "delete", "break inner_handler"]
    commands += ["continue 2", "stepi 4", "delete", "hbreak interrupt", "continue 1", "stepi 9", "delete"]
    outcome = session("nested_traps.S", tmp_path, [*commands, *TO_THE_END[1:]], "--isa", isa, march=march)
    complete(outcome)
    assert len(outcome.retired) > 5000


@thorough("endtoend/trace/test_trap_loop.py::test_the_loop_is_one_line")
def test_traps_for_ever_are_named(tmp_path: Path) -> None:
    """Nothing can be fetched at the handler: nothing retires any more, and the ring holds nothing else."""
    commands = ["trace start", "hbreak round", "continue", "set $mtvec=0x1000", *interrupted_after(0.1)]
    outcome = session("bad_jumps.S", tmp_path, commands, "--trace-size", "4096")
    assert "no instruction ran in this trace, only traps" in outcome.listing
    assert "the last an exception 1 (instruction access fault), tval 0x1000, read from the hart" in outcome.listing
    assert "the handler at 0x1000; older trace was overwritten, with what led there" in outcome.listing
    assert "`trace start -stop-on-wrap` keeps the beginning" in outcome.listing


# Code


@pytest.mark.parametrize("march", ["rv64gc", *long_only("rv32gc")])
def test_branchy_code_under_every_verb(march: str, tmp_path: Path) -> None:
    commands = ["trace start", "break computed", "continue", "finish", "delete", "break once", "continue 3", "until"]
    commands += ["advance computed", "next", "step", "nexti", "watch *(int *)&sink", "continue 2", "delete"]
    commands += ["break deep if n == 0", "continue 1", "finish ", "tbreak branches", "continue 4", "stepi 40"]
    outcome = session("branchy.c", tmp_path, commands, march=march)
    complete(outcome)
    assert len(outcome.retired) > 1000


@thorough("decode/ntrace/test_growth.py::test_a_loop_without_branches_for_hours")
def test_long_code_without_a_branch(tmp_path: Path) -> None:
    """E-Trace has no packet for 32768 instructions, and the listing does not read each function anew for each line."""
    commands = ["trace start -format etrace", "hbreak _exit", "continue", "stepi 3"]
    outcome = session("straight.S", tmp_path, commands, "--isa", "IMA", march="rv32ima_zicsr", first=30000)
    assert 4 * len(outcome.retired) > 2 << 16
    complete(outcome, first=30000)


@thorough("test_self_modifying_code_is_named")
def test_code_that_is_loaded_while_it_is_traced(tmp_path: Path) -> None:
    """Also where memory was read when there was no code in it yet; and what the capture then holds."""
    commands = ["trace start", "break finish", "continue", "trace history", "continue 1"]
    outcome = session("late_code.c", tmp_path, commands)
    complete(outcome)
    assert {pc for pc in outcome.retired if pc >= 0x80400000} >= {0x80400000, 0x80400102}
    assert not outcome.warnings


@thorough("test_self_modifying_code_is_named")
def test_code_that_is_gone_is_named(tmp_path: Path) -> None:
    outcome = session("late_code.c", tmp_path, ["trace start", "break finish", "ignore 1 2", "continue"])
    [gap] = outcome.gaps
    assert "does not match the code read from the target at 0x804004" in gap
    assert "that memory has changed since the code in it ran" in outcome.warnings
    assert outcome.same_elsewhere()


def test_self_modifying_code_is_named(tmp_path: Path) -> None:
    """The ELF does not say what ran: a gap, and all that is listed after the next synchronization is right again."""
    commands = ["trace start -sync-period 128", "break finish", "continue"]
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
    """By OpenOCD, which takes milliseconds, or by gdb, which takes so long that the list has 400,000 instructions."""
    outcome = session("branchy.c", tmp_path, ["trace start", *interruptions, "stepi 3"], "--trace-size", "0x100000")
    complete(outcome)
    assert len(outcome.retired) > 1000


RING, STOPPING = "trace start", "trace start -stop-on-wrap"
RINGS, STOPPED = [64, *long_only(512)], [256, *long_only(16)]
BUFFERS = [*((size, RING) for size in RINGS), *((size, STOPPING) for size in STOPPED), (8, RING), (8, STOPPING)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], Outcome]:
    """What came out of each of BUFFERS; those before it in the same session are of no matter."""
    return dict(zip(BUFFERS, in_small_buffers(tmp_path_factory.mktemp("small"), BUFFERS), strict=True))


@thorough("endtoend/trace/test_first_trace.py::test_a_buffer_that_wraps_keeps_the_newest")
@pytest.mark.parametrize("size", RINGS)
def test_a_tiny_ring_has_the_newest(size: int, small: dict[tuple[int, str], Outcome]) -> None:
    outcome = small[size, RING]
    listed = instructions(outcome.listing)
    assert listed and not outcome.gaps
    assert listed == outcome.retired[-len(listed) :]
    assert outcome.same_elsewhere()


@thorough("endtoend/trace/test_first_trace.py::test_stop_on_wrap_keeps_the_oldest")
@pytest.mark.parametrize("size", STOPPED)
def test_a_full_buffer_that_stopped_has_the_oldest_and_says_so(
    size: int, small: dict[tuple[int, str], Outcome]
) -> None:
    outcome = small[size, STOPPING]
    listed = instructions(outcome.listing)
    assert listed and listed == outcome.retired[: len(listed)]
    assert "the trace ends where ram0 was full" in outcome.warnings
    assert outcome.same_elsewhere()


@thorough("endtoend/trace/test_first_trace.py::test_a_buffer_that_wraps_keeps_the_newest")
@pytest.mark.parametrize("start", [RING, STOPPING])
def test_a_buffer_too_small_for_anything(start: str, small: dict[tuple[int, str], Outcome]) -> None:
    assert "larger buffer" in small[8, start].listing


@thorough("endtoend/trace/test_failures.py::test_the_hart_is_reset")
def test_reset_is_a_gap(tmp_path: Path) -> None:
    """While halted, and while running."""
    commands = ["trace start", "stepi 20", "monitor reset halt", "stepi 20 ", "monitor resume; sleep 1; reset run"]
    outcome = session("branchy.c", tmp_path, [*commands, "monitor halt"], "--trace-size", "0x100000")
    assert instructions(outcome.listing) == outcome.retired
    assert outcome.reasons == [
        "entry into debug mode, then exit from debug mode at another place",
        "trace disabled, then exit from reset at another place",
    ]
