"""Traces of shipped targets, recorded with real gdb and real OpenOCD on the simulated target that has their limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.description.library.shipped import shipped, target_names
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled


@dataclass(frozen=True)
class RecordedBoard:
    """*said*: what gdb printed; *retired*: the instructions of each hart; *elf*: the program; *capture*: the saved one.
    """

    said: dict[str, str]
    retired: list[list[int]]
    elf: Path
    capture: Path

    def listed(self, hart: int) -> list[int]:
        """The instructions that `trace history` lists of a hart: all but those before the first one that its number
        leaves out.
        """
        return listed_pcs(self.said[listing(hart)])

    def check_all_harts(self) -> None:
        """What is listed is what ran."""
        for hart, retired in enumerate(self.retired):
            assert self.listed(hart) == retired[hart:]
            assert len(retired) > 50


def listing(hart: int) -> str:
    """The command that lists all, in a spelling of its own for each hart."""
    return f"trace history /at {hart + 1},10000000"


def recorded(
    folder: Path, target: str, harts: int, *, march: str = "rv64imac_zicsr", start: str = "trace start",
    commands: Sequence[str] = (), sim: Sequence[str] = (),
) -> RecordedBoard:  # fmt: skip
    """Record meet.c on a *target*, which the simulator and gdb get by its name or as a file; of a template gdb gets the
    description that the simulator writes. *commands*: more for gdb, at the end.
    """
    elf = compiled(folder, PROGRAMS / "meet.c", march, (f"-DHARTS={harts}",))
    log, capture = folder / "log", folder / "x.rvt"
    with Rig(elf, folder / "rig", "--target", target, "--log-retired", str(log), *sim) as rig:
        by_name = target in target_names() and not shipped(target).template
        said = run_gdb(elf, [
            SOURCE, f"set trace target {target if by_name else rig.target_file}",
            f"set trace openocd-port {rig.tcl_port}", f"target extended-remote :{rig.gdb_port}",
            "trace info", start, "break met", "continue", "trace status",
            *(word for hart in range(harts) for word in (f"thread {hart + 1}", listing(hart))),
            *commands, f"trace save {capture}",
        ])  # fmt: skip
    logs = [Path(f"{log}.{hart}") if harts > 1 else log for hart in range(harts)]
    return RecordedBoard(said, [retired_pcs(path) for path in logs], elf, capture)
