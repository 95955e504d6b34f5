"""Several traces in one gdb session: what gdb said in each, and what the hart says it retired meanwhile."""

from collections.abc import Sequence
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb


def traces(
    rig: Rig, log: Path, before: Sequence[str], each: Sequence[Sequence[str]]
) -> list[tuple[dict[str, str], list[int]]]:
    """Run *before*, and then the commands of each trace, with `trace stop` behind them.

    *rig*: logs what retires to *log*. gdb knows of code what the program's file says.
    """
    logged = f"python print(os.path.getsize('{log}'))"
    commands = [SOURCE, "python import os", f"set trace target {rig.target_file}", "set trust-readonly-sections on"]
    commands += [f"target extended-remote :{rig.gdb_port}", *before, logged]
    spelled = [  # each command once, as `run_gdb` wants it
        {command: command + " " * number for command in (*own, "trace stop", logged)}
        for number, own in enumerate(each, 1)
    ]
    said = run_gdb(rig.elf, [*commands, *(command for own in spelled for command in own.values())])
    ends = [int(said[logged + " " * number]) for number in range(len(each) + 1)]
    lines = log.read_bytes()
    return [
        (
            {command: said[spelling] for command, spelling in own.items()},
            [int(line, 16) for line in lines[ends[number] : ends[number + 1]].split()],
        )
        for number, own in enumerate(spelled)
    ]
