"""LLDB before a target of two harts, and in a capture of them: its threads are harts, each in its own history.

What is expected is what each hart retired, which the simulated target logs.
"""

import random
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.commands.serve.instructions import ServedPlace, lines
from rvtrace_gdb.console.main import main
from tests.console.commands.serve.served import serving
from tests.endtoend.lldb.lldb_process import LLDBS, answers, number_in, run_lldb
from tests.endtoend.lldb.test_walk import SCRIPT, walked
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import EXAMPLES, compile_program, symbol_address

COMMANDS = 400 if LONG else 30
BACK, WHERE = "reverse-continue", "register read pc trace_pos"
LIVE = [
    SCRIPT, "rvtrace start", "breakpoint set --name finish", "process continue", "thread list", "reverse-stepi", WHERE,
    "thread select 2", "reverse-stepi ", f"{WHERE} ", "breakpoint set --name note", BACK, f"{WHERE}  ",
    "thread select 1", f"{WHERE}   ", f"{BACK} ", f"{WHERE}    ",
    "watchpoint set expression --size 4 -- &balance", f"{BACK}  ", f"{WHERE}     ",
    "reverse-stepi --thread-id 2", f"{WHERE}      ", "reverse-stepi --thread-id 7", "reverse-next 3",
    "rvtrace save", "process detach",
]  # fmt: skip
with_lldb = pytest.mark.parametrize("lldb", LLDBS, scope="module")


class Harts(NamedTuple):
    """What LLDB printed before the target, what each hart retired, and the capture that was saved."""

    said: dict[str, str]
    retired: list[list[int]]
    elf: Path
    capture: Path


@pytest.fixture(scope="module")
def harts(lldb: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harts]:
    folder = tmp_path_factory.mktemp("harts")
    elf = compile_program(folder, EXAMPLES / "two_harts" / "two_harts.c", start=EXAMPLES / "two_harts" / "start.S")
    log, file = folder / "retired", folder / "two.rvt"
    with Rig(elf, folder / "rig", "--harts", "2", "--log-retired", str(log)) as rig:
        words = ("--connect", f":{rig.gdb_port}", "--elf", elf, "--target", rig.target_file, "-o", file)
        with serving(*words) as server:
            balance = f"{symbol_address(elf, 'balance'):#x}"
            commands = [f"gdb-remote {server.port}", *(it.replace("&balance", balance) for it in LIVE)]
            said = answers(run_lldb(lldb, elf, commands), commands)
    yield Harts(said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(2)], elf, file)


@with_lldb
def test_each_thread_goes_back_in_what_its_hart_ran(harts: Harts) -> None:
    code, (first, second) = Code(harts.elf), harts.retired
    note = code.symbols["note"]
    assert harts.said["thread list"].count("thread #") == 2
    assert _place(harts, WHERE) == (first[-1], len(first))
    assert _place(harts, f"{WHERE} ") == (second[-1], len(second))
    assert _place(harts, f"{WHERE}  ") == (note, _last(second, note))
    assert _place(harts, f"{WHERE}   ") == (first[-1], len(first)), "the other one has not moved"
    assert _place(harts, f"{WHERE}    ") == (note, _last(first, note))
    before = _last(first[: _last(first, note) - 1], note)
    [line] = re.findall(r"-> \d+ (.*)", harts.said[f"{BACK}  "])
    assert line.strip() == "balance = before + amount;"
    assert before < _place(harts, f"{WHERE}     ")[1] < _last(first, note), "payments are written between notes"
    at = _last(second, note) - 1
    assert _place(harts, f"{WHERE}      ") == (second[at - 1], at), "the thread that is named"
    assert "error: there is no thread with the id 7" in harts.said["reverse-stepi --thread-id 7"]
    assert "error: reverse-next takes no arguments but --thread-id" in harts.said["reverse-next 3"]


@with_lldb
def test_random_commands_move_the_thread_that_is_selected_alone(lldb: str, harts: Harts, tmp_path: Path) -> None:
    code, chance = Code(harts.elf), random.Random(36)
    walks = [Walk(code, pcs, frozenset()) for pcs in harts.retired]
    commands = list(_random(chance, [len(pcs) for pcs in harts.retired], code.symbols["note"]))
    with serving(harts.capture) as server:
        reached = walked(lldb, server, tmp_path, commands, harts.elf)
    places, thread = [len(pcs) for pcs in harts.retired], 0
    for it in reached:
        name, _, rest = it.command.partition(" ")
        if name == "thread":
            thread = int(rest) - 1
        elif name == "break":
            for walk in walks:
                walk.breakpoints.add(int(rest, 16))
        else:
            places[thread] = _leads(walks[thread], places[thread], name, rest)
        assert it.number == places[thread] + 1, f"{it.command} on hart {thread}: {it.number} {it.error}"
    assert len(reached) == len(commands)
    assert {"thread 2", "run-back", "reverse-stepi", "stepi"} <= set(commands)


@with_lldb
def test_the_printed_line_finds_the_sources_of_a_pack(lldb: str, harts: Harts, tmp_path: Path) -> None:
    pack = tmp_path / "two.rvtz"
    assert main(["pack", str(harts.capture), "-o", str(pack)]) == 0
    with serving(pack) as server:
        place = server.place
        sources = tuple(place["sources"].items()) if isinstance(place["sources"], dict) else ()
        printed = lines(ServedPlace(str(place["where"]), server.port, str(place["program"]), sources))
        [line] = [it for it in printed if it.startswith("LLDB:")]
        program, *options = shlex.split(line)[2:]
        typed = [it for it in options if it != "-o"]
        said = answers(run_lldb(lldb, Path(program), [*typed, "source info"]), [*typed, "source info"])
    unpacked = Path(program).parents[2]
    assert (unpacked / "source").is_dir() and f": {unpacked}/source/" in said["source info"]
    assert "-> " in said[f"gdb-remote {server.port}"], "the line is shown"


def _leads(walk: Walk, here: int, name: str, rest: str) -> int:
    """Where a command leads."""
    if name == "goto":
        return int(rest) - 1
    if name == "reverse-stepi":
        return walk.stepi(here, -1)
    if name == "stepi":  # LLDB steps on where an instruction jumps to itself
        there = walk.stepi(here, 1)
        while there < walk.present and walk.pcs[there] == walk.pcs[here]:
            there = walk.stepi(there, 1)
        return there
    return walk.run(here, -1)


def _random(chance: random.Random, lengths: Sequence[int], note: int) -> Iterator[str]:
    yield from ("thread 1", "goto 200", "thread 2", "goto 300", f"break {note:#x}")
    thread = 1
    for _ in range(COMMANDS):
        kind = chance.choice(["goto", "reverse-stepi", "stepi", "run-back", "thread"])
        if kind == "thread":
            thread = chance.randrange(2)
            yield f"thread {thread + 1}"
        else:
            yield f"goto {chance.randrange(2, lengths[thread])}" if kind == "goto" else kind


def _last(pcs: list[int], pc: int) -> int:
    """The number of the last instruction at an address."""
    return len(pcs) - pcs[::-1].index(pc)


def _place(harts: Harts, command: str) -> tuple[int, int]:
    """The address, and the number in the history."""
    said = harts.said[command]
    lines = {line.split()[0]: line for line in said.splitlines() if "=" in line}
    return int(lines["pc"].split()[2], 16), number_in(lines["trace_pos"])
