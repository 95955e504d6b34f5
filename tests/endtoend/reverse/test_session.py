"""Real gdb, real openocd, simulated target: a session in the past reads as one of gdb's own.

What is expected of places comes from the source and the hart's log; what is expected of texts, from gdb's manual and
from what gdb prints live.
"""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.gdb_process import GDB, GDB16, NEWEST, NEWEST_GDB, SETTINGS, SOURCE, gdb_environ, killed, run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import EXAMPLES, demo

SOURCE_LINES = (EXAMPLES / "demo.c").read_text().splitlines()


def line_of(text: str) -> int:
    """The number of the one line of demo.c with this text."""
    (found,) = [number for number, line in enumerate(SOURCE_LINES, 1) if text in line]
    return found


KILL = "(OpenOCD is killed)"


class Past:
    """What gdb said in one session, and the model of what the hart did."""

    def __init__(self, folder: Path, gdb: str, commands: list[str]) -> None:
        elf, log = demo(folder), folder / "retired.log"
        with Rig(elf, folder / "rig", "--isa", "IMAC", "--log-retired", str(log)) as rig:
            begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
            begin += ["trace start", "tbreak finish", "continue"]
            commands = [killed(rig.openocd.pid, "KILL") if it == KILL else it for it in commands]
            self.said = run_gdb(elf, [*begin, *commands], gdb=gdb)
        self.code = Code(elf)
        self.symbols = self.code.symbols
        self.walk = Walk(self.code, retired_pcs(log), frozenset([self.symbols["on_trap"]]))

    def last(self, name: str, before: int | None = None) -> int:
        """The number of the last time a function was entered."""
        here = self.walk.present if before is None else before - 1
        entry = self.symbols[name]
        return next(p for p in range(here - 1, -1, -1) if self.walk.pcs[p] == entry) + 1


COMMANDS = [
    "set trace values off",
    "reverse-step", "printf \"A %d\\n\", $trace_pos",
    "trace goto fib", "printf \"B %d\\n\", $trace_pos", "backtrace", "up 2", "printf \"C %d\\n\", $trace_pos",
    "frame 0", "finish", "printf \"D %d\\n\", $trace_pos",
    "trace goto event trap", "printf \"E %d\\n\", $trace_pos",
    "trace goto -next event trap", "printf \"F %d\\n\", $trace_pos", "backtrace 2",
    "reverse-stepi", "printf \"G %d\\n\", $trace_pos",
    "break fib if $trace_pos < 300", "reverse-continue", "printf \"H %d\\n\", $trace_pos", "delete",
    "print $sp", "x/2xw &result", "set var result = 5", "print $pc = 0", "x/2i $pc",
    "trace goto begin", "reverse-stepi ", "trace goto end", "printf \"I %d\\n\", $trace_pos", "stepi",
    "printf \"J %d\\n\", $trace_pos", "print value", "show print finish", "trace live",
    "reverse-finish", "printf \"K %d\\n\", $trace_pos", "reverse-next", "reverse-until",
    "printf \"L %d\\n\", $trace_pos",
    "trace goto 1000000", "trace goto nowhere", "trace goto", "trace goto -next fib", "trace stop", "trace start ",
]  # fmt: skip


@pytest.fixture(scope="module", params=NEWEST_GDB)
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past"), request.param, COMMANDS)


def place(past: Past, letter: str) -> int:
    """What $trace_pos was when it was printed with this letter."""
    (found,) = re.findall(rf"^{letter} (-?\d+)$", "\n".join(past.said.values()), re.M)
    return int(found)


def test_a_step_back_goes_to_the_call(past: Past) -> None:
    assert f"{line_of('return finish(sum)')}\t    return finish(sum);" in past.said["reverse-step"]
    assert place(past, "A") <= past.walk.present


def test_goto_a_function_and_its_callers(past: Past) -> None:
    number = past.last("fib")
    assert place(past, "B") == number
    calls = past.walk.called_at[number - 1]
    frames = re.findall(r"^#(\d+) +(?:0x([0-9a-f]+) in )?(\w+) \(", past.said["backtrace"], re.M)
    assert [name for _, _, name in frames] == ["fib"] * (len(calls) - 1) + ["main"]
    behind = [past.code.calls[past.walk.pcs[at]] for at in reversed(calls)][: len(frames) - 1]
    assert [int(pc, 16) for _, pc, _ in frames[1:]] == behind
    assert place(past, "C") == calls[-2] + 1  # two frames up: where the call was made
    assert place(past, "D") == past.walk.finish(number - 1, 1) + 1
    assert "Value returned" not in past.said["finish"] or "<not displayed>" in past.said["finish"]


def test_goto_events(past: Past) -> None:
    handler = past.symbols["on_trap"]
    traps = [p + 1 for p, pc in enumerate(past.walk.pcs) if pc == handler]
    assert "there is none before this place" in past.said["trace goto event trap"]
    assert place(past, "E") == place(past, "D")
    assert place(past, "F") == traps[0]
    assert re.search(r"#0 +on_trap \(\).*\n#1 ", past.said["backtrace 2"])
    assert place(past, "G") == traps[0] - 1


def test_a_condition_stops_backward(past: Past) -> None:
    assert "Breakpoint" in past.said["reverse-continue"] and "fib (n=...)" in past.said["reverse-continue"]
    assert 0 < place(past, "H") < 300


def test_what_is_not_known_is_not_invented(past: Past) -> None:
    # $1 is what finish could not show
    assert past.said["print $sp"] == "$2 = <unavailable>\n"
    assert "Cannot access memory at address" in past.said["x/2xw &result"]
    assert "Cannot access memory at address" in past.said["set var result = 5"]
    assert "the past cannot be changed" in past.said["print $pc = 0"]
    assert len(past.said["x/2i $pc"].strip().splitlines()) == 2
    assert "=> 0x" in past.said["x/2i $pc"]


def test_both_ends(past: Past) -> None:
    assert re.search("No more reverse-execution|Reached end of recorded", past.said["reverse-stepi "])
    assert place(past, "I") == past.walk.present
    assert place(past, "J") == -1
    value = re.fullmatch(r"\$\d+ = (\d+)\n", past.said["print value"])
    assert value is not None and int(value[1]) > 0  # the present has its registers again
    assert past.said["show print finish"] == "Printing of return value after `finish' is on.\n"
    assert past.said["trace live"] == "This is the present.\n"


def test_finish_and_until_backward(past: Past) -> None:
    last_call = max(p for p in range(past.walk.present) if p in past.walk.called_at[past.walk.present])
    assert place(past, "K") == last_call + 1
    assert place(past, "L") < place(past, "K")


def test_what_cannot_be_is_one_line(past: Past) -> None:
    length = past.walk.present
    assert past.said["trace goto 1000000"] == f"there is no number 1000000 in the history, which has 1 to {length}\n"
    assert 'No symbol "nowhere" in current context.' in past.said["trace goto nowhere"]
    assert "where to?" in past.said["trace goto"]
    assert "there is none after this place" in past.said["trace goto -next fib"]
    for command in ("trace stop", "trace start "):
        assert "you are in the past, return to the present first (`trace live`)" in past.said[command]
    for command, output in past.said.items():
        assert "Traceback" not in output and "Python Exception" not in output, command


@thorough("test_what_is_not_known_is_not_invented")
@pytest.mark.parametrize("gdb", [GDB, *long_only(GDB16 or GDB, NEWEST)])
def test_a_stack_whose_beginning_is_not_known_just_ends(tmp_path: Path, gdb: str) -> None:
    """A small ring: who called what ran first in it was overwritten. Typed, for only then gdb says why a stack ends."""
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig", "--trace-size", "256") as rig:
        typed = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
        typed += ["trace start", "tbreak finish", "continue"]
        typed += ["trace goto begin", "backtrace", "trace goto end", "backtrace", "info frame-filter", "trace live"]
        typed += ["info frame-filter"]
        done = subprocess.run(
            [gdb, "-q", "-nx", str(elf), "-ex", "set confirm off"], input="\n".join([*SETTINGS, *typed]), text=True,
            capture_output=True, timeout=300, env=gdb_environ(), check=False,
        )  # fmt: skip
    said = done.stdout + done.stderr
    assert "corrupt" not in said
    assert len(re.findall(r"^\(gdb\) #0 ", said, re.M)) == 2
    assert re.findall(r"(Yes|No) +rvtrace", said) == ["Yes", "No"]


@pytest.mark.parametrize("gdb", [GDB16 or GDB, *long_only(GDB, NEWEST)])
def test_the_past_outlives_openocd(tmp_path: Path, gdb: str) -> None:
    saved = tmp_path / "kept.rvt"
    commands = [
        "reverse-stepi", KILL, "reverse-stepi ", "backtrace", "trace goto fib",
        "info threads", "continue", "stepi", "trace live", "trace stop", "trace history 1,3", f"trace save {saved}",
        "disconnect", "trace history 2,4", "info registers pc",
    ]  # fmt: skip
    past = Past(tmp_path, gdb, commands)
    said = past.said
    assert f"{line_of('return finish(sum)')}\t" in said["reverse-stepi "]
    assert "main ()" in said["backtrace"]
    assert "fib (n=n@entry=1)" in said["trace goto fib"]
    assert "No more reverse-execution history" in said["continue"] or "Reached end" in said["continue"]
    assert "there is no present to return to" in said["trace live"] and "`disconnect`" in said["trace live"]
    assert "the target is gone: `disconnect` first" in said["trace stop"] and "`trace live`" not in said["trace stop"]
    for command in ("trace history 1,3", "trace history 2,4"):
        assert len(re.findall(r"^\d+\t(?:   |=> )0x[0-9a-f]+ <_start\+\d+>:", said[command], re.M)) == 3, said[command]
    assert saved.is_file()
    for command, output in said.items():
        assert "Protocol error" not in output and "Traceback" not in output and "E01" not in output, (command, output)
