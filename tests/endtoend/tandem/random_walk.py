"""A random walk of gdb through the past of the demo that sends a tandem trace, against the model of what ran."""

import random
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from tests.endtoend.reverse.test_commands import WALKER, Follower, Reached, random_commands
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo


def check_walk(gdb: str, folder: Path, count: int, **environ: str) -> None:
    """Let gdb go *count* random ways, and look whether each led where the model says. *environ*: more for gdb."""
    elf = demo(folder, "rv32imac_zicsr")
    code, trace = Code(elf), folder / "x.tvt"
    script, result = folder / "commands.txt", folder / "result.txt"
    script.write_text("\n".join(random_commands(random.Random(9).randrange(1000), count, code.symbols)))
    with Rig(elf, folder / "rig", "--isa", "IMAC", "--tandem", str(trace)) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
        files = {"WALK_COMMANDS": str(script), "WALK_RESULT": str(result), **environ}
        run_gdb(elf, [*begin, "trace start", "tbreak finish", "continue", WALKER], gdb=gdb, **files)
    ran = list(decode(trace.read_bytes(), Image.from_elf(elf), TandemParameters(32, 64)).history.pcs())
    if code.symbols["finish"] in ran:  # the hart ran on when gdb let go of it
        ran = ran[: ran.index(code.symbols["finish"])]
    follower = Follower(Walk(code, ran, frozenset([code.symbols["on_trap"]])))
    rows = [line.split("\t") for line in result.read_text().splitlines()]
    for row in rows:
        follower.check(Reached(row[0], int(row[1]), int(row[2], 16), row[3]))
    assert len(rows) > count * 0.8
