"""gdb sessions on the programs of tests/programs/everything: traces with many settings, one after the other."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from tests.endtoend.command_line import printed
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.transport.simulated.encoder.traces import HIGH32, HIGH64, LOW

TARGETS = {
    "rv64": ("rv64imac", LOW), "rv32": ("rv32imac", LOW), "rv64-high": ("rv64imac", HIGH64),
    "rv32-high": ("rv32imac", HIGH32),
}  # fmt: skip
"""Compiler architecture, and where code and RAM begin."""
FEW = ("rv32", "rv64-high")
"""Both architectures. The others differ from one of them in where the program is."""
TARGET_NAMES = [*FEW, *long_only("rv64", "rv32-high")]

SYMBOL = "round_done"
"""Every round of the program in user mode ends there."""


class Outcome(NamedTuple):
    """A trace. *started*, *listing*, *status*: what gdb printed. *retired*: what the hart retired meanwhile, as it says
    itself."""

    elf: Path
    capture: Path
    started: str
    listing: str
    status: str
    retired: list[int]

    def history(self) -> History:
        """What the capture holds, times and contexts included."""
        return _history(self.capture, self.elf)

    def decoded(self) -> str:
        """The listing by `rvtrace decode`, of the capture alone."""
        return printed("decode", self.capture, "--elf", self.elf)

    def dumped(self) -> list[str]:
        """The lines of `rvtrace dump`."""
        return printed("dump", self.capture).splitlines()


@cache
def _history(capture: Path, elf: Path) -> History:
    session = Session()
    session.open(capture, str(elf))
    return session.decoded(Context(str(elf)))[0]


def traced(
    elf: Path, folder: Path, settings: list[str], *sim: str, before: tuple[str, ...] = (), rounds: int = 1
) -> list[Outcome]:
    """One trace for each of *settings* (options of `trace start`), each of so many rounds. *before*: gdb commands."""
    log = folder / "retired.log"
    captures = [folder / f"{n}.rvt" for n in range(len(settings))]
    commands = [f"break {SYMBOL}", "continue", f"ignore 1 {rounds - 1}", *before]
    for n, options in enumerate(settings):
        again = " " * n  # the same command, in a spelling of its own
        commands += [f"trace start {options}{again}", f"ignore 1 {rounds - 1}{again}", f"continue 1{again}"]
        commands += [f"trace history /a 1,10000000{again}", f"trace status{again}", f"trace save {captures[n]}"]
        commands.append(f"trace stop{again}")
    with Rig(elf, folder / "rig", "--isa", "IMAC", "--log-retired", str(log), *sim) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        begin.append("set trust-readonly-sections on")  # the code is what the program's file says
        said = run_gdb(elf, [*begin, *commands])
    return list(_outcomes(elf, settings, captures, said, retired_pcs(log)))


def _outcomes(
    elf: Path, settings: list[str], captures: list[Path], said: dict[str, str], retired: list[int]
) -> list[Outcome]:
    """The log is of all traces: each one has as much of it as it lists, and nothing is left in the end."""
    outcomes = []
    for n, (options, capture) in enumerate(zip(settings, captures, strict=True)):
        again = " " * n
        listing = said[f"trace history /a 1,10000000{again}"]
        part, retired = retired[: len(listed_pcs(listing))], retired[len(listed_pcs(listing)) :]
        started, status = said[f"trace start {options}{again}"], said[f"trace status{again}"]
        outcomes.append(Outcome(elf, capture, started, listing, status, part))
    assert not retired, "traced, and in no listing"
    return outcomes


def check(outcome: Outcome) -> None:
    """What gdb lists is what the hart retired, without a gap, and the hardware did what it was asked for."""
    assert len(outcome.retired) > 3000
    assert listed_pcs(outcome.listing) == outcome.retired
    assert "0 gaps" in outcome.status
    assert "note:" not in outcome.started
