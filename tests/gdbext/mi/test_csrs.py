"""Going back as an IDE does: gdb's machine interface asks rvtrace's commands nothing before it steps back.

The records are then read by the proxy's own thread, while gdb waits for an answer to a packet (bs).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.ctr_model.programs import build
from tests.gdbext.gdb_process import GDBS, SOURCE, run_gdb
from tests.helpers.amounts import LONG
from tests.helpers.qemu10 import running

BACK = 'interpreter-exec mi "-exec-step-instruction --reverse"'
STRAIGHT = 32  # bytes into exercise: behind its second jump come two instructions of four bytes
WAYS = [("qemu", "packets"), ("qemu", "named"), ("openocd", "auto"), ("openocd", "openocd")]
CASES = [
    pytest.param(stub, way, *gdb.values, id=f"{stub}-{way}-{gdb.id}")
    for stub, way in (WAYS if LONG else WAYS[:1])
    for gdb in (GDBS if LONG else GDBS[-1:])
]
"""gdb goes back in QEMU; in the long run behind OpenOCD, too, and in all ways with each version."""


@contextmanager
def target(stub: str, elf: Path, folder: Path) -> Iterator[tuple[int, int | None]]:
    """The ports of the stub and of OpenOCD's Tcl server."""
    if stub == "qemu":
        with running(elf, folder) as machine:
            yield machine.port, None
    else:
        with Rig(elf, folder / "rig", "--ctr", "1.0") as rig:
            yield rig.gdb_port, rig.tcl_port


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("programs"), "jumps")


@pytest.mark.parametrize(("stub", "way", "gdb"), CASES)
def test_a_step_back_reads_the_records(stub: str, way: str, gdb: str, elf: Path, tmp_path: Path) -> None:
    with target(stub, elf, tmp_path) as (port, tcl_port):
        commands = [SOURCE, f"trace connect localhost:{port}", f"set trace ctr-access {way}"]
        commands += [f"set trace openocd-port {tcl_port}"] if way == "openocd" else []
        commands += [f"break *((char *) &exercise + {STRAIGHT + 8})",
                     "trace ctr start", "continue", BACK, f"{BACK} ", "print (char *) $pc - (char *) &exercise",
                     "print $trace_pos > 1", "stepi", "stepi ", "print (char *) $pc - (char *) &exercise "]  # fmt: skip
        outputs = run_gdb(elf, commands, gdb=gdb)
    assert outputs["trace ctr start"].startswith("ctr0:"), outputs
    assert outputs["print (char *) $pc - (char *) &exercise"].strip() == f"$1 = {STRAIGHT}", outputs
    assert outputs["print $trace_pos > 1"].strip() == "$2 = 1", "it is in the past"
    assert outputs["print (char *) $pc - (char *) &exercise "].strip() == f"$3 = {STRAIGHT + 8}", outputs
