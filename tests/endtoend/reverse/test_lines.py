"""Real gdb in the past of a program with everything source lines are about: where next, step and the like may lead.

What ran is QEMU's log; what is right is worked out from it, the line table and calls
(`tests.endtoend.reverse.line_rules`).
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.endtoend.command_line import printed
from tests.endtoend.reverse.line_rules import Lines, LineWalk
from tests.endtoend.reverse.qemu_session import ran
from tests.endtoend.reverse.test_commands import WALKER, Reached
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.gdb_process import GDB, GDB16, NEWEST, SOURCE, run_gdb
from tests.helpers import qemu
from tests.helpers.amounts import LONG, long_only
from tests.helpers.cross_compiler import HOME, compile_program

PROGRAMS = HOME / "tests" / "programs" / "reverse"
STEPPED, ADVANCED = (70, 70) if LONG else (40, 12)  # from how many places


class Ground:
    """A program, optimized as *optimization* says, that ran to `finish` in QEMU; its capture."""

    def __init__(self, folder: Path, optimization: str) -> None:
        self.folder = folder
        options = (optimization, "-DPERIOD=2")
        self.elf = compile_program(folder, PROGRAMS / "lines.c", PROGRAMS / "bare.S", options=options)
        with qemu.running(self.elf, folder) as machine:
            run_gdb(self.elf, [f"target extended-remote :{machine.port}", "break finish", "continue", "kill"])
        self.code = Code(self.elf)
        self.pcs = ran(folder / "qemu.log")
        (folder / "0.pcs").write_text("".join(f"{pc:x}\n" for pc in self.pcs))
        pcs = ("--pcs", folder / "0.pcs", "--format", "pcs")
        printed("encode", "--elf", self.elf, *pcs, "-o", folder / "now.rvt")
        self.walk = Walk(self.code, self.pcs, frozenset([self.code.symbols["on_trap"]]))
        self.lines = LineWalk(self.walk, Lines(self.elf), optimization=optimization)

    def reached(self, commands: Sequence[str], gdb: str) -> list[tuple[str, int, int]]:
        """(command, position before, position after) of those that no `trace goto` is."""
        script, result = self.folder / "commands.txt", self.folder / "result.txt"
        script.write_text("\n".join(commands))
        begin = [SOURCE, f"trace open {self.folder / 'now.rvt'}", "trace replay", WALKER]
        run_gdb(self.elf, begin, gdb=gdb, WALK_COMMANDS=str(script), WALK_RESULT=str(result))
        rows = [line.split("\t") for line in result.read_text().splitlines()]
        found, here, reverse = [], len(self.pcs) - 1, ""
        for it in (Reached(row[0], int(row[1]), int(row[2], 16), row[3]) for row in rows):
            there = it.number - 1
            assert it.pc == self.pcs[there], it
            if it.command.startswith("set exec-direction"):
                reverse = "reverse-" if it.command.endswith("reverse") else ""
            elif not it.command.startswith("trace goto"):
                found.append((reverse + it.command, here, there))
            here = there
        return found


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ground]:
    """By optimization."""
    return cache(lambda optimization: Ground(tmp_path_factory.mktemp("lines"), optimization))


def everywhere(ground: Ground, chance: random.Random, kinds: Sequence[Sequence[str]], count: int) -> list[str]:
    """Commands from places all over the history, each followed by those that undo it."""
    found = []
    for _ in range(count):
        found += [f"trace goto {chance.randrange(60, len(ground.pcs))}", *chance.choice(kinds)]
    return found


KINDS = [
    ["next", "next", "reverse-next", "reverse-next"],
    ["reverse-next", "reverse-next", "next"],
    ["step", "step", "reverse-step"],
    ["reverse-step", "reverse-step", "step"],
    ["reverse-next", "reverse-step", "next", "step"],
    ["until", "reverse-until", "until"],
    ["set exec-direction reverse", "next", "step", "set exec-direction forward"],
]


PLACES = ["leaf", "twice", "sum_to", "round_of", "on_trap", "bare"]
NEW = GDB16 or GDB
CASES = [("-Og", NEW), *long_only(("-O2", GDB), ("-O0", GDB), ("-O0", NEW), ("-Og", GDB), ("-O2", NEW))]
CASES += long_only(("-Og", NEWEST))  # without inlined functions: `advance` of gdb 18 misses their callers, also live


@pytest.mark.parametrize(("optimization", "gdb"), CASES)
def test_lines_are_stepped_through_and_advance_leads_to_the_place(
    grounds: Callable[[str], Ground], optimization: str, gdb: str
) -> None:
    """Or, advance, out of the function."""
    ground = grounds(optimization)
    commands = everywhere(ground, random.Random(5), KINDS, STEPPED)
    kinds = [[f"{back}advance *{ground.code.symbols[name]:#x}"] for name in PLACES for back in ("", "reverse-")]
    reached = ground.reached([*commands, *everywhere(ground, random.Random(6), kinds, ADVANCED)], gdb)
    lines, advances = ([it for it in reached if ("advance" in it[0]) is is_one] for is_one in (False, True))
    wrong = [(it, ground.lines.wrong(*it)) for it in lines]
    assert [it for it in wrong if it[1]] == []
    assert min(Counter(command for command, _, _ in lines).values()) >= 5
    assert [(it, expected) for it in advances if it[2] not in (expected := advanced(ground, *it))] == []
    assert len(advances) == ADVANCED


def advanced(ground: Ground, command: str, here: int, there: int) -> set[int]:
    """Where advance may lead: to the address, or to where the caller goes on, in the call that called; else to an end.

    Of a function that was entered by a tail call gdb may take for the caller what left by it, and never goes on; also
    live.
    """
    walk, pcs = ground.walk, ground.pcs
    wanted = int(command.partition("*")[2], 16)
    calls = walk.called_at[here]
    out = next((p for p in range(here + 1, len(pcs)) if len(walk.called_at[p]) < len(calls)), None)
    steps = range(here - 1, -1, -1) if command.startswith("reverse-") else range(here + 1, len(pcs))
    end = 0 if command.startswith("reverse-") else len(pcs) - 1
    # gdb takes calls of a function from the same depth for the same: their frames are at one place of the stack
    back = (p for p in steps if out is not None and pcs[p] == pcs[out] and len(walk.called_at[p]) == len(calls) - 1)
    reached = next((p for p in steps if pcs[p] == wanted), end)
    returned = min(next(back, end), reached, key=lambda p: abs(p - here))
    is_tail = bool(calls) and ground.code.function(pcs[calls[-1] + 1]) != ground.code.function(pcs[here])
    return {returned, reached} if is_tail else {returned}
