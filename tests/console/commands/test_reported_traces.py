"""Traces on which some decoder once went wrong (tests/data/reported-traces/README.md): what is shown of them.

What is right follows from the documents, and from the few instructions of each program.
"""

import json
import re
from pathlib import Path

import pytest

from tests.helpers import reference_streams
from tests.helpers.started_python import rvtrace

DATA = Path(__file__).parents[2] / "data"
TRACES, PROGRAMS = DATA / "reported-traces", DATA / "ntrace-reference"
_REFERENCE = (
    "--etrace --encapsulation smi --context-width 32 --ecause-width 5 --bpred-size 6 --cache-size 5 --return-stack-size"
    " 5 --f0s-width 1 --sequential-jump --branch-prediction --jump-target-cache --implicit-return on --iret-ext"
    " --ecall-retires --support standard"
)
REFERENCE = _REFERENCE.split()
"""How the reference streams with all extensions were made."""


def status(*arguments: object) -> list[str]:
    """What `rvtrace status` says."""
    done = rvtrace("status", *arguments)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def captured(folder: Path, trace: str, elf: str) -> Path:
    """The E-Trace packets of this file as a capture."""
    capture = folder / f"{trace}.rvt"
    done = rvtrace("import", TRACES / f"{trace}.bin", "--etrace", "--elf", TRACES / elf, "-o", capture, "--quiet")
    assert done.returncode == 0, done
    return capture


def traps(capture: Path, elf: str) -> list[str]:
    """The texts of the traps, without the place in the trace."""
    done = rvtrace("events", capture, "--elf", TRACES / elf, "--kind", "trap", "--quiet")
    return [line.split("trap: ")[1].split("; trace byte")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("a", ["interrupt 7 (machine timer interrupt)"]),
        ("b", ["interrupt 7 (machine timer interrupt)"]),
        ("c", ["exception 12 (instruction page fault), tval 0x80000100, at 0x80000100 <target+0>"]),
        ("d", ["interrupt 7 (machine timer interrupt), at 0x8000000c <_start+12>",
               "exception 1 (instruction access fault), tval 0x80000040"]),
        ("e", ["interrupt 7 (machine timer interrupt), at 0x8000000c <_start+12>",
               "exception 1 (instruction access fault), tval 0x80000040"]),
        ("f", ["exception 2 (illegal instruction), at 0x80000008 <_start+8>",
               "exception 1 (instruction access fault), tval 0x80000040"]),
        ("g", ["interrupt 7 (machine timer interrupt)"]),
    ],
)  # fmt: skip
def test_where_an_interrupt_hit_is_not_read_where_it_is_undefined(tmp_path: Path, trace: str, said: list[str]) -> None:
    """thaddr 0: "undefined for other exceptions and interrupts"; of an exception at a jump's target it is the EPC."""
    assert traps(captured(tmp_path, f"interrupt-{trace}", "interrupt.elf"), "interrupt.elf") == said


@pytest.mark.parametrize("trace", ["interrupt-call-epc", "interrupt-call-undefined0"])
def test_an_interrupt_before_the_first_instruction_of_a_function(tmp_path: Path, trace: str) -> None:
    """Whatever the undefined address is: the handler's return shows the function that had been called."""
    capture = captured(tmp_path, trace, "interrupt-call.elf")
    assert traps(capture, "interrupt-call.elf") == ["interrupt 7 (machine timer interrupt)"]
    done = rvtrace("calls", capture, "--elf", TRACES / "interrupt-call.elf", "--quiet")
    assert [re.split(r"(?<=\d)  (?=[ _a-z])", line)[-1] for line in done.stdout.splitlines()[1:]] == [
        "_start", "  caller", "    callee", "      handler [trap]",
    ]  # fmt: skip


def test_a_packet_that_comes_twice_before_a_loop_without_a_branch() -> None:
    """15,017 instructions ran. `j .` has none of the outcomes that are left over: no round of it is listed."""
    elves = ["--elf", TRACES / "rom.elf", "--elf", PROGRAMS / "towers.elf"]
    said = "\n".join(status(TRACES / "etrace-packet-twice.te_inst_raw", *REFERENCE, *elves))
    assert "history:  15003 instructions, 1 gap" in said
    assert "549 branch outcomes are left, and the code has none" in said


def test_a_branch_count_that_nobody_meant() -> None:
    """One of 2^32 - 1 in a stream of 30,000 instructions: noise, which is said with what would believe it."""
    trace = TRACES / "etrace-branch-count.te_inst_raw"
    known = [*REFERENCE, "--elf", TRACES / "rom.elf", "--elf", PROGRAMS / "qsort.elf"]
    said = "\n".join(status(trace, *known))
    assert "a branch_count of 32 bits, more than 28, is taken for noise: raise branch_count_bits" in said
    assert "history:  9123 instructions, 1 gap" in said
    said = "\n".join(status(trace, *known, "--branch-count-bits", "32"))
    assert "history:  17179897264 instructions, 0 gaps" in said
    warned = "warning: at byte 0x2a: te_inst format 0 subformat 0 alone says that 4294967326 branches went as predicted"
    assert warned in said


def test_a_width_that_the_encoder_does_not_have_is_named() -> None:
    """No synchronization can be decoded with it: advice on a larger buffer, or on more of them, would not help."""
    elves = ["--elf", TRACES / "rom.elf", "--elf", PROGRAMS / "towers.elf"]
    words = [*REFERENCE, "--privilege-width", "1", *elves]
    done = rvtrace("functions", TRACES / "etrace-packet-twice.te_inst_raw", *words)
    assert done.returncode == 1 and "the trace fits far better without --privilege-width" in done.stderr
    problem = "in which no synchronization can be decoded with privilege_width 1: privilege_width 2 fits the trace"
    assert done.stderr.splitlines()[-1] == f"rvtrace: 238 bytes of trace, {problem}"


@pytest.mark.parametrize("trace", ["j-hist31", "j-ibh"])
@pytest.mark.parametrize("mode", [[], ["--btm"]], ids=["htm", "btm"])
def test_a_loop_without_a_branch_that_nothing_counts(trace: str, mode: list[str]) -> None:
    """The messages contradict the program; no row of `j .` is listed, of which nothing says how often it ran."""
    said = status(TRACES / f"{trace}.nex", "--ntrace", *mode, "--elf", TRACES / "j.elf")
    assert any("history:  0 instructions" in line for line in said)
    assert any("trace does not match j.elf at 0x80000004" in line for line in said)


def test_times_that_go_back_are_said_once() -> None:
    """In a warning and as an event; `rvtrace dump` marks each of the two messages."""
    known = [TRACES / "time-back.nex", "--ntrace", "--timestamps", "--elf", TRACES / "time-back.elf"]
    back = "the time goes back from 1000 to 5: times before and after this place cannot be compared"
    assert [line for line in status(*known) if "goes back" in line] == [f"warning: at byte 0xa: {back}"]
    rows = [json.loads(line) for line in rvtrace("events", *known, "--json", "--quiet").stdout.splitlines()]
    assert [row["text"] for row in rows if "goes back" in row["text"]] == [back]
    dumped = rvtrace("dump", *known[:3]).stdout.splitlines()
    assert [number for number, line in enumerate(dumped, 1) if "the time goes back from" in line] == [2, 4]


def test_a_ring_that_wrapped_is_not_complete() -> None:
    """From where it begins on nothing is missing, and what was overwritten is not denied."""
    folder = reference_streams.FOLDER
    done = rvtrace("gaps", folder / "median.1.nex", "--ntrace", "--wrapped", "--elf", folder / "median.elf")
    [said] = [line for line in (done.stdout + done.stderr).splitlines() if "No gaps" in line]
    assert said == "No gaps: from its first instruction on the history is complete. Older trace was overwritten."
