"""gdb's commands, backward and forward, where registers and memory are known and gdb's own unwinder makes the frames.

They lead where the model of `tests.endtoend.reverse.walk_model` says, as where pc alone is known. The addresses that
ran are those of the trace, which other tests hold against the hart and against Spike.
"""

import random
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.protocol import Parameters
from tests.endtoend.reverse.test_commands import WALKER, Follower, Reached, random_commands
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.gdb_process import GDB, GDB16, GDB18, SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo

COMMANDS = 150


@pytest.mark.parametrize("gdb", [GDB18 or GDB, *long_only(GDB16 or GDB)])
def test_random_commands_end_where_the_model_says(gdb: str, tmp_path: Path) -> None:
    elf = demo(tmp_path, "rv32imac_zicsr")
    code, trace = Code(elf), tmp_path / "x.tvt"
    script, result = tmp_path / "commands.txt", tmp_path / "result.txt"
    script.write_text("\n".join(random_commands(random.Random(9).randrange(1000), COMMANDS, code.symbols)))
    with Rig(elf, tmp_path / "rig", "--isa", "IMAC", "--tandem", str(trace)) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
        files = {"WALK_COMMANDS": str(script), "WALK_RESULT": str(result)}
        run_gdb(elf, [*begin, "trace start", "tbreak finish", "continue", WALKER], gdb=gdb, **files)
    ran = list(decode(trace.read_bytes(), Image.from_elf(elf), Parameters(32, 64)).history.pcs())
    if code.symbols["finish"] in ran:  # the hart ran on when gdb let go of it
        ran = ran[: ran.index(code.symbols["finish"])]
    follower = Follower(Walk(code, ran, frozenset([code.symbols["on_trap"]])))
    rows = [line.split("\t") for line in result.read_text().splitlines()]
    for row in rows:
        follower.check(Reached(row[0], int(row[1]), int(row[2], 16), row[3]))
    assert len(rows) > COMMANDS * 0.8
