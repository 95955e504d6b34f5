"""Where gdb is in the past: after each stop, in the prompt, and in what commands say. The hart says what it retired."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, gdb_environ, run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo
from tests.terminal import Terminal

Said = tuple[dict[str, str], list[int]]
"""What gdb printed for each command, and the addresses that the hart retired."""
STOPS = [
    "reverse-step", "reverse-stepi 3", "trace goto fib", "trace goto 5", "stepi 2", "reverse-continue",
    "trace goto end", "trace goto -7",
]  # fmt: skip
ASKED = ["trace position", "info record", "trace status"]
SILENT = ["tbreak classify", "commands\nsilent\nend", "continue "]


@pytest.fixture(scope="module", params=NEWEST_GDB)
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("where")
    elf, log = demo(folder, "rv64imac_zicsr"), folder / "retired.log"
    quiet = folder / "quiet.gdb"
    quiet.write_text("tbreak classify\ncommands\nsilent\nend\ntrace goto begin\ncontinue\n")
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        commands = [
            SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", "trace start",
            "break finish", "continue", "trace position  ", "trace history 1,1",
            *[command for stop in STOPS for command in (stop, f"output/x $pc {'+ 0' * STOPS.index(stop)}")],
            *ASKED, "trace goto event 2", "trace goto event", f"source {quiet}",
            "set trace position off", "trace goto 5 ", "set trace position stop", "trace live", "trace status ",
        ]  # fmt: skip
        outputs = run_gdb(elf, commands, gdb=request.param)
    return outputs, retired_pcs(log)


@pytest.mark.parametrize("stop", STOPS)
def test_each_stop_in_the_past_says_which_instruction_is_next(said: Said, stop: str) -> None:
    outputs, retired = said
    number, length = map(int, re.findall(r"^\[(\d+) of (\d+)\]$", outputs[stop], re.M)[-1])
    pc = outputs[f"output/x $pc {'+ 0' * STOPS.index(stop)}"]
    assert length == len(retired) and retired[number - 1] == int(pc, 16)


def test_commands_say_it(said: Said) -> None:
    outputs, retired = said
    place = f"at instruction {len(retired) - 6} of {len(retired)}"
    assert outputs["trace position"].strip() == f"In the past, {place}."
    assert outputs["info record"].strip().endswith(f"In the past, {place}.")
    assert f"\npast:     {place} (`trace live` returns to the present)\n" in outputs["trace status"]
    assert outputs["trace position  "].strip() == "In the present." and "past:" not in outputs["trace status "]


def test_an_event_is_named(said: Said) -> None:
    """The second is the timer interrupt of the program; before it tracing began."""
    outputs, _ = said
    assert re.search(r"^Event 2 of 4: trap: interrupt, at 0x[0-9a-f]+ <\w+\+\d+>$", outputs["trace goto event 2"], re.M)
    assert re.search("^Event 1 of 4: trace on", outputs["trace goto event"], re.M)


def test_where_nothing_is_to_be_said(said: Said) -> None:
    """A silent breakpoint, the setting `off`, and the present."""
    outputs, _ = said
    quiet = next(text for command, text in outputs.items() if command.startswith("source") and "quiet" in command)
    assert len(re.findall(r"^\[\d+ of \d+\]$", quiet, re.M)) == 1, "that of trace goto begin"
    assert " of " not in outputs["trace goto 5 "] and " of " not in outputs["trace live"]


@thorough("test_each_stop_in_the_past_says_which_instruction_is_next")
def test_the_prompt(tmp_path: Path) -> None:
    """Also one that is set meanwhile, and one of another extension."""
    elf = demo(tmp_path, "rv64imac_zicsr")
    with Rig(elf, tmp_path / "rig") as rig:
        commands = [
            "set pagination off", "python gdb.prompt_hook = lambda now: f'<{now.strip()}> '", SOURCE,
            f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", "trace start", "break finish",
            "continue", "set trace position prompt", "trace goto 5", "stepi", "set prompt (x)", "stepi", "trace live",
        ]  # fmt: skip
        script = tmp_path / "x.gdb"
        script.write_text("\n".join(commands[:-5]))
        with Terminal(["gdb-multiarch", "-q", "-nx", str(elf), "-x", str(script)], 120, 40, gdb_environ()) as terminal:
            terminal.wait_for("<(gdb)>")
            for command in commands[-5:]:
                terminal.enter(command)
            terminal.enter("echo done\\n")
            terminal.wait_for("\ndone")
            screen = terminal.screen()
    prompts = re.findall(r"^(\S.*?) ?(?=trace goto|stepi|set prompt|trace live|echo)", screen, re.M)
    assert prompts == ["<(gdb)>", "(past 5/2006)", "(past 6/2006)", "(past 6/2006)", "(past 7/2006)", "<(x)>"]
