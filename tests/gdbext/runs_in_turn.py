"""One simulated target and one gdb for many runs of a program: each begins with a reset of the target."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB, SOURCE, run_gdb

DIRECTLY, THROUGH_RVTRACE = "target extended-remote :{}", "trace connect localhost:{}"
_AGAIN = ("trace stop", "delete", "monitor reset halt", "maintenance flush register-cache")


class Run(NamedTuple):
    """What gdb printed to each command, and what the hart retired."""

    said: dict[str, str]
    retired: list[int]


def said_in_turn(
    rig: Rig, runs: Mapping[str, Sequence[str]], gdb: str = GDB, connect: str = DIRECTLY
) -> dict[str, dict[str, str]]:
    """What gdb printed in each run, by its name. *rig* has not been started.

    Before each run but the first tracing is stopped and breakpoints are deleted; gdb's settings stay. Commands may have
    up to nine blanks at their ends.
    """
    with rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", connect.format(rig.gdb_port)]
        for number, run in enumerate(runs.values()):
            commands += [told_apart(command, number) for command in (*(_AGAIN if number else ()), *run)]
        said = run_gdb(rig.elf, commands, gdb=gdb)
    return {
        name: {command: said[told_apart(command, number)] for command in run}
        for number, (name, run) in enumerate(runs.items())
    }


def in_turn(
    rig: Rig, log: Path, runs: Mapping[str, Sequence[str]], gdb: str = GDB, connect: str = DIRECTLY
) -> dict[str, Run]:
    """As `said_in_turn`, with what the hart retired. *log* is where *rig* logs that.

    Each run must be traced from the first instruction of the program on, which is executed once.
    """
    said = said_in_turn(rig, runs, gdb, connect)
    pieces = each_start(retired_pcs(log))
    return {name: Run(said[name], retired) for name, retired in zip(said, pieces, strict=True)}


def each_start(pcs: list[int]) -> list[list[int]]:
    """What retired after each reset: all of them begin at the same place, to which nothing else leads."""
    starts = [at for at, pc in enumerate(pcs) if pc == pcs[0]]
    return [pcs[start:end] for start, end in pairwise([*starts, len(pcs)])]


def told_apart(command: str, number: int) -> str:
    """The command of this run, in a spelling of its own."""
    return f"{command}{' ' * 10 * number}"
