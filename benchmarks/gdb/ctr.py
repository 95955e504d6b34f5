"""How long reading 256 entries of Control Transfer Records takes in each way, in gdb, compared with one by one.

    python benchmarks/gdb/ctr.py [qemu] [openocd]

One by one is what gdb commands would do: `set $siselect = ...`, `print $siselect`, `print $sireg` and so on, each a
round trip of its own. Every way reads the same entries with the same checks, a few times; the medians are compared,
measured inside gdb, where the user waits. With each ratio: how often the session asked gdb for something.
"""

import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.console.bench.rig import Rig
from tests.ctr_model.programs import build
from tests.gdbext.csrs.csr_questions import SISELECT, Request, ask, entries
from tests.gdbext.gdb_process import GDB
from tests.helpers.cross_compiler import demo
from tests.helpers.qemu10 import running

ROUNDS = 3
_ONE_BY_ONE = """
import time
def one_by_one(prefix):
    def name(register): return '$' + prefix + register
    gdb.set_convenience_variable('kept', 0)
    began = time.monotonic()
    for entry in range(256):
        gdb.execute(f"set {name('siselect')} = {0x200 + entry}")
        for register in ('siselect', 'sireg', 'sireg2', 'sireg3'):
            int(gdb.parse_and_eval(name(register)))
    print('SECONDS', time.monotonic() - began)
def timed(request):
    began = time.monotonic()
    request()
    print('SECONDS', time.monotonic() - began)
"""


class Target:
    """*connections*: gdb's commands that connect; *ways*: what is measured; *prefix*: of the names of CSRs."""

    def __init__(self, elf: Path, connections: dict[str, str], ways: dict[str, list[str]], prefix: str) -> None:
        self.elf, self.connections, self.ways, self.prefix = elf, connections, ways, prefix


@contextmanager
def qemu(folder: Path) -> Iterator[Target]:
    elf = build(folder, "jumps")
    with running(elf, folder) as machine:
        yield Target(elf, connections(machine.port), {"packets": [], "named": []}, "")


@contextmanager
def openocd(folder: Path) -> Iterator[Target]:
    elf = demo(folder)
    with Rig(elf, folder / "rig", "--ctr", "1.0") as rig:
        ways = {"auto": [], "packets": [], "named": [], "openocd": [f"set trace openocd-port {rig.tcl_port}"]}
        yield Target(elf, connections(rig.gdb_port), ways, "csr_")


TARGETS = {"qemu": qemu, "openocd": openocd}


def connections(port: int) -> dict[str, str]:
    return {"direct": f"target extended-remote :{port}", "proxy": f"trace connect localhost:{port}"}


def measure(target: Target, folder: Path, connect: str, way: str | None) -> tuple[float, int]:
    """Seconds, and questions to gdb; *way*: None for one by one."""
    rounds: list[Request | str] = []
    if way is None:
        rounds = [f"python one_by_one({target.prefix!r}){' ' * n}" for n in range(ROUNDS)]
        before: list[str] = []
    else:
        batches = [entries(range(first, first + 16)) for first in range(0, 256, 16)]
        request = Request(*batches, [[SISELECT, 0]], way=way)
        rounds = [request, *(f"python timed(request_0){' ' * n}" for n in range(ROUNDS))]
        before = target.ways[way]
    asked = ask(GDB, target.elf, folder, target.connections[connect], *before, f"python exec({_ONE_BY_ONE!r})", *rounds)
    outputs = "".join(asked.outputs[command] for command in asked.outputs if "timed(" in command or "one_by" in command)
    seconds = [float(number) for number in re.findall(r"SECONDS ([0-9.]+)", outputs)]
    questions = 0 if way is None else len(json.loads(outputs.split("\n")[0])["asked"])
    return statistics.median(seconds[-ROUNDS:]), questions


def main() -> None:
    for name in sys.argv[1:] or TARGETS:
        with tempfile.TemporaryDirectory() as folder, TARGETS[name](Path(folder)) as target:
            for connect in target.connections:
                slow, _ = measure(target, Path(folder), connect, None)
                print(f"{name:8} {connect:7} one by one {slow:6.3f} s")
                for way in target.ways:
                    seconds, questions = measure(target, Path(folder), connect, way)
                    ratio = f"{seconds / slow:5.2f} of that"
                    print(f"{name:8} {connect:7} {way:10} {seconds:6.3f} s  {ratio}, {questions} questions to gdb")


if __name__ == "__main__":
    main()
