"""Real gdb, real openocd, simulated target: gdb's commands, backward and forward, lead where the hart was.

What is expected comes from the hart's own log of what it retired and from objdump (see
`tests.endtoend.reverse.walk_model`).
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.gdb_process import GDB, GDB16, NEWEST, SOURCE, run_gdb
from tests.helpers.amounts import LONG, long_only
from tests.helpers.cross_compiler import demo

WALKER = f"source {Path(__file__).resolve().parent / 'walker.py'}"
COMMANDS = 1_000 if LONG else 150
KINDS = 11  # four that step or run, in both directions; trace goto, break, delete


class Reached(NamedTuple):
    """Where a command led: a number of the history, negative for the present; and what was wrong."""

    command: str
    number: int
    pc: int
    error: str


class Ground:
    """A program that ran to `finish` on a traced target; a gdb walks in what ran."""

    def __init__(self, folder: Path, march: str, options: str) -> None:
        self.folder, self.options = folder, options
        self.elf = demo(folder, march)
        self.code = Code(self.elf)

    def walk(self, commands: Sequence[str], gdb: str, *more: str) -> tuple[Walk, list[Reached], dict[str, str]]:
        """Where *commands* led, by the model's list; then what gdb said to *more*, and to all before."""
        log, result, script = (self.folder / name for name in ("retired.log", "result.txt", "commands.txt"))
        script.write_text("\n".join(commands))
        with Rig(self.elf, self.folder / "rig", "--isa", "IMAC", "--log-retired", str(log)) as rig:
            begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
            begin += [f"trace start {self.options}", "tbreak finish", "continue"]
            files = {"WALK_COMMANDS": str(script), "WALK_RESULT": str(result)}
            said = run_gdb(self.elf, [*begin, WALKER, *more], gdb=gdb, **files)
        model = Walk(self.code, retired_pcs(log), frozenset([self.code.symbols["on_trap"]]))
        rows = [line.split("\t") for line in result.read_text().splitlines()]
        return model, [Reached(row[0], int(row[1]), int(row[2], 16), row[3]) for row in rows], said


def random_commands(seed: int, count: int, symbols: dict[str, int]) -> list[str]:
    """Of all kinds, more of them backward."""
    chance = random.Random(seed)
    places = [f"*{symbols[name]:#x}" for name in ("finish", "classify", "fib", "add", "sub", "mul", "on_trap")]

    def back(command: str) -> str:
        return f"reverse-{command}" if chance.random() < 0.6 else command

    kinds = [lambda: back(f"stepi {chance.choice((1, 1, 1, 2, 7))}")] * 4 + [lambda: back("nexti")] * 4
    kinds += [lambda: back("continue"), lambda: back("finish")] * 2
    kinds += [lambda: f"goto {chance.random():.6f}", lambda: f"trace goto {chance.choice(('begin', 'end', 'live'))}"]
    kinds += [lambda: f"break {chance.choice(places)}", lambda: "delete"]
    return [chance.choice(kinds)() for _ in range(count)]


class Follower:
    """Goes through what was executed, and compares each place with the model's."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.here = walk, walk.present - 1  # after `trace goto end`

    def check(self, done: Reached) -> None:
        name, _, rest = done.command.partition(" ")
        direction = -1 if name.startswith("reverse-") else 1
        before = self.here
        self.here = self.leads(name.removeprefix("reverse-"), rest, direction)
        present = self.here == self.walk.present
        number = done.number if done.number > 0 else self.walk.present + 1
        assert number == self.here + 1, f"{done} from {before + 1} of {self.walk.present}, expected {self.here + 1}"
        if not present:
            assert done.pc == self.walk.pcs[self.here], done

    def leads(self, name: str, rest: str, direction: int) -> int:
        walk, here = self.walk, self.here
        if name == "stepi":
            return walk.stepi(here, direction, int(rest))
        if name == "trace":
            place = rest.split()[1]
            places = {"begin": 0, "end": walk.present - 1, "live": walk.present}
            return places[place] if place in places else int(place) - 1
        if name == "break":
            walk.breakpoints.add(int(rest[1:], 16))
        elif name == "delete":
            walk.breakpoints.clear()
        else:
            steps = {"nexti": walk.nexti, "finish": walk.finish, "continue": walk.run}
            return steps[name](here, direction)
        return here


RV64 = ("rv64imac_zicsr", "")
RV32 = ("rv32imac_zicsr", "-format etrace -implicit-return full")
NEW = GDB16 or GDB
WALKS = [(*RV64, GDB, 0), (*RV32, NEW, 1)]
WALKS += long_only((*RV32, GDB, 0), (*RV64, NEW, 0), *((*RV64, GDB, seed) for seed in range(1, 10)))
WALKS += long_only((*RV64, NEWEST, 10), (*RV32, NEWEST, 2))


@pytest.mark.parametrize(("march", "options", "gdb", "seed"), WALKS)
def test_random_commands_end_where_the_model_says(
    march: str, options: str, gdb: str, seed: int, tmp_path: Path
) -> None:
    """Each kind of them in both formats of a trace; more than ten thousand in the long run."""
    ground = Ground(tmp_path, march, options)
    commands = random_commands(seed, COMMANDS, ground.code.symbols)
    walk, reached, _ = ground.walk(commands, gdb)
    follower = Follower(walk)
    for done in reached:
        follower.check(done)
    assert len(reached) > COMMANDS * 0.9
    assert {done.command.split()[0] for done in reached} == {command.split()[0] for command in commands} - {"goto"}
    assert len({done.command.split()[0] for done in reached}) == KINDS
