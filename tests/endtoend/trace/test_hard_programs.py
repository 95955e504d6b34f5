"""Programs and sessions that are hard on a tracer: every one must be listed as it ran, or what is lost be named."""

import re
from pathlib import Path

import pytest

from tests.endtoend.trace.hard_programs import complete, instructions, interrupted_after, session

TO_THE_END = ["trace start", "hbreak _exit", "continue", "stepi 3"]


# Traps


@pytest.mark.parametrize(("march", "isa"), [("rv64imac_zicsr", "IMAC"), ("rv32ima_zicsr", "IMA")])
def test_jumps_to_where_no_code_is(march: str, isa: str, tmp_path: Path) -> None:
    """With breakpoints where nothing can be fetched, and on the first and the last instruction of the handler."""
    commands = ["trace start", "hbreak handler", "continue", "stepi", "stepi 5", "continue 2", "delete"]
    commands += ["hbreak *0x1000", "continue 1", "stepi 4", "delete", "break *(handler+12)", "continue 3", "stepi 2"]
    outcome = session("bad_jumps.S", tmp_path, [*commands, "delete", *TO_THE_END[1:]], "--isa", isa, march=march)
    complete(outcome)
    assert len(outcome.retired) > 700
    assert "160 traps" in outcome.said["trace status"]


@pytest.mark.parametrize(("march", "isa"), [("rv32imac_zicsr", "IMAC"), ("rv64ima_zicsr", "IMA")])
def test_nested_traps_of_user_code(march: str, isa: str, tmp_path: Path) -> None:
    """Traps in the handler, traps right after mret, interrupts in between; stepping into and out of them."""
    commands = ["trace start", "hbreak user", "continue", "stepi", "stepi 3", "delete", "break inner_handler"]
    commands += ["continue 2", "stepi 4", "delete", "hbreak interrupt", "continue 1", "stepi 9", "delete"]
    outcome = session("nested_traps.S", tmp_path, [*commands, *TO_THE_END[1:]], "--isa", isa, march=march)
    complete(outcome)
    assert len(outcome.retired) > 10000


def test_traps_for_ever_are_named(tmp_path: Path) -> None:
    """Nothing can be fetched at the handler: nothing retires any more, and the ring holds nothing else."""
    commands = ["trace start", "hbreak round", "continue", "set $mtvec=0x1000", *interrupted_after(0.1)]
    outcome = session("bad_jumps.S", tmp_path, commands, "--trace-size", "4096")
    assert "no instruction ran in this trace, only traps" in outcome.listing
    assert "exception with the handler at 0x1000" in outcome.listing


def test_a_spinning_instruction(tmp_path: Path) -> None:
    """`j .`, interrupted by a timer: full counters are all there is to tell."""
    commands = ["trace start", "hbreak second", "continue", "stepi 4"]
    outcome = session("spin.S", tmp_path, [*commands, "trace stop"])
    complete(outcome)
    assert len(outcome.retired) > 4 << 16


# Code


@pytest.mark.parametrize("march", ["rv64gc", "rv32gc"])
def test_branchy_code_under_every_verb(march: str, tmp_path: Path) -> None:
    commands = ["trace start", "break computed", "continue", "finish", "delete", "break once", "continue 3", "until"]
    commands += ["advance computed", "next", "step", "nexti", "watch *(int *)&sink", "continue 2", "delete"]
    commands += ["break deep if n == 0", "continue 1", "finish ", "tbreak branches", "continue 4", "stepi 40"]
    outcome = session("branchy.c", tmp_path, commands, march=march)
    complete(outcome)
    assert len(outcome.retired) > 1000


def test_long_code_without_a_branch(tmp_path: Path) -> None:
    """I-CNT is full in the middle of it; and the listing does not read each function anew for each line."""
    commands = ["set trust-readonly-sections on", *TO_THE_END]  # saves reading it all from the target
    outcome = session("straight.S", tmp_path, commands, "--isa", "IMA", march="rv32ima_zicsr")
    complete(outcome)
    assert 4 * len(outcome.retired) > 2 << 16


def test_code_that_is_loaded_while_it_is_traced(tmp_path: Path) -> None:
    """Also where memory was read when there was no code in it yet; and what the capture then holds."""
    commands = ["trace start", "break finish", "continue", "trace history", "continue 1"]
    outcome = session("late_code.c", tmp_path, commands)
    complete(outcome)
    assert {pc for pc in outcome.retired if pc >= 0x80400000} >= {0x80400000, 0x80400102}
    assert not outcome.warnings


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


def test_interrupted_at_any_moment(tmp_path: Path) -> None:
    commands = ["trace start", *interrupted_after(0.01), *interrupted_after(0.02)]
    complete(session("branchy.c", tmp_path, [*commands, "stepi 3"], "--trace-size", "0x100000"))


@pytest.mark.parametrize("size", [64, 512])
def test_a_tiny_ring_has_the_newest(size: int, tmp_path: Path) -> None:
    commands = ["trace start", "break once", "ignore 1 19", "continue", "stepi"]
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", str(size))
    listed = instructions(outcome.listing)
    assert listed and not outcome.gaps
    assert listed == outcome.retired[-len(listed) :]
    assert outcome.same_elsewhere()


@pytest.mark.parametrize("size", [16, 256])
def test_a_full_buffer_that_stopped_has_the_oldest_and_says_so(size: int, tmp_path: Path) -> None:
    commands = ["trace start -stop-on-wrap", "break once", "ignore 1 19", "continue", "stepi"]
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", str(size))
    listed = instructions(outcome.listing)
    assert listed and listed == outcome.retired[: len(listed)]
    assert "the trace ends where ram0 was full" in outcome.warnings
    assert outcome.same_elsewhere()


@pytest.mark.parametrize("option", ["", " -stop-on-wrap"])
def test_a_buffer_too_small_for_anything(option: str, tmp_path: Path) -> None:
    commands = [f"trace start{option}", "break once", "ignore 1 19", "continue"]
    outcome = session("branchy.c", tmp_path, commands, "--trace-size", "8")
    assert "larger buffer" in outcome.listing


def _reasons(gaps: list[str]) -> list[str]:
    """What is said in the place of each, without the byte of the trace."""
    assert all(re.search(r"; trace byte 0x[0-9a-f]+$", gap) for gap in gaps)
    return [gap.partition("; trace byte ")[0] for gap in gaps]


def test_the_program_switches_its_trace(tmp_path: Path) -> None:
    outcome = session("self_switching.c", tmp_path, TO_THE_END)
    assert instructions(outcome.listing) == outcome.retired
    assert _reasons(outcome.gaps) == ["trace disabled, then trace enabled at another place"] * 5
    assert outcome.same_elsewhere()


def test_reset_is_a_gap(tmp_path: Path) -> None:
    """While halted, and while running."""
    commands = ["trace start", "stepi 100", "monitor reset halt", "stepi 100 ", "monitor resume", "monitor reset run"]
    outcome = session("branchy.c", tmp_path, [*commands, "monitor halt"], "--trace-size", "0x100000")
    assert instructions(outcome.listing) == outcome.retired
    assert _reasons(outcome.gaps) == [
        "entry into debug mode, then exit from debug mode at another place",
        "trace disabled, then exit from reset at another place",
    ]


@pytest.mark.parametrize(
    ("register", "named"), [(0x20000000, "encoder0 was reset"), (0x20001000, "ram0 at 0x20001000: is in reset")]
)
def test_a_component_that_is_reset_behind_our_back_is_named(register: int, named: str, tmp_path: Path) -> None:
    """As a system reset does on many chips: it is not started again with whatever its registers hold then."""
    commands = ["trace start", "stepi 100", "trace history", f"monitor mww {register:#x} 0", "stepi 10"]
    outcome = session("branchy.c", tmp_path, commands)
    listed = instructions(outcome.listing)
    assert len(listed) >= 99 and listed == outcome.retired[: len(listed)]
    assert named in outcome.warnings
