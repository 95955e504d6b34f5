"""What the tests of hard programs share: a session on a program of tests/programs/hard, and what came out of it."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.command_line import printed
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.endtoend.trace.one_after_the_other import traces
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import compile_program

PROGRAMS = Path(__file__).resolve().parents[2] / "programs" / "hard"
GAP = re.compile(r"^\d+\t\[(.*)\]$", re.M)
WARNING = re.compile(r"^warning: .*$", re.M)
CHANGING = ("late_code.c", "patched_machine.S", "self_modifying.c")
ALL = "trace history /a 1,100000000"
_TCL_PORT = "(the Tcl port)"
"""In commands for a rig that is not there yet."""


class Outcome(NamedTuple):
    """*said*: what each gdb command printed. *retired*: what the hart retired while traced. *decoded*: what
    `rvtrace decode` lists of the capture, with nothing but the capture and the ELF."""

    said: dict[str, str]
    retired: list[int]
    decoded: str

    @property
    def listing(self) -> str:
        return self.said[ALL]

    @property
    def gaps(self) -> list[str]:
        return GAP.findall(self.listing)

    @property
    def reasons(self) -> list[str]:
        """What is said in the place of each gap, without the byte of the trace."""
        assert all(re.search(r"; trace byte 0x[0-9a-f]+$", gap) for gap in self.gaps)
        return [gap.partition("; trace byte ")[0] for gap in self.gaps]

    @property
    def warnings(self) -> str:
        return "\n".join(line for text in self.said.values() for line in WARNING.findall(text))

    def same_elsewhere(self) -> bool:
        """Addresses, not texts: gdb reads the instruction that is there now, a capture holds the one that ran."""
        return instructions(self.decoded) == instructions(self.listing)


def instructions(listing: str) -> list[int]:
    """The addresses of a listing that may have gaps and warnings in it."""
    rows = [line for line in listing.splitlines() if re.match(r"\d+\t(?!\[)", line)]
    addresses = [re.search(r"0x([0-9a-f]+)", row) for row in rows]
    return [int(address[1], 16) for address in addresses if address]


def session(
    program: str, folder: Path, commands: list[str], *sim: str, march: str = "rv64gc", first: int = 1
) -> Outcome:
    """Run gdb commands on a program under the simulator, then list all (from instruction *first* on), and save it.

    gdb reads from the target only code that may have changed; that of other programs is what its file says.
    """
    elf = compile_program(folder, PROGRAMS / program, march=march)
    log, capture = folder / "retired.log", folder / "x.rvt"
    trusted = "off" if program in CHANGING else "on"
    with Rig(elf, folder / "rig", "--log-retired", str(log), *sim) as rig:
        commands = [command.replace(_TCL_PORT, str(rig.tcl_port)) for command in commands]
        begin = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        begin.append(f"set trust-readonly-sections {trusted}")
        listing = ALL.replace("1,", f"{first},")
        said = run_gdb(elf, [*begin, *commands, listing, f"trace save {capture}", "trace status"])
        said[ALL] = said[listing]
    for text in said.values():
        assert "Traceback" not in text and "Python Exception" not in text and "internal error" not in text, text
    return Outcome(said, retired_pcs(log), printed("decode", capture, "--elf", elf, failing=True))


def in_small_buffers(folder: Path, wanted: list[tuple[int, str]]) -> list[Outcome]:
    """Trace 20 rounds of branchy.c for each of *wanted*, one session for all: (size of the buffer, `trace start`)."""
    elf = compile_program(folder, PROGRAMS / "branchy.c", march="rv64gc")
    log, each = folder / "retired.log", []
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        described = rig.target_file.read_text()
        assert "\nsize = 0x10000\n" in described
        for number, (size, start) in enumerate(wanted):
            target, capture = folder / f"{number}.toml", folder / f"{number}.rvt"
            target.write_text(described.replace("\nsize = 0x10000\n", f"\nsize = {size}\n"))
            own = [f"set trace target {target}", start, "continue", "stepi", ALL, f"trace save {capture}"]
            each.append([*own, "trace status"])
        parts = traces(rig, log, ["hbreak seldom"], each)
    return [
        Outcome(said, retired, printed("decode", folder / f"{number}.rvt", "--elf", elf, failing=True))
        for number, (said, retired) in enumerate(parts)
    ]


def halted_after(milliseconds: int) -> list[str]:
    """The program runs for so long, and OpenOCD halts it, wherever it is then; each call has its own spelling."""
    return [f"monitor resume; sleep {milliseconds}; halt", "maintenance flush register-cache" + " " * milliseconds]


def interrupted_after(seconds: float) -> list[str]:
    """`continue`, and Ctrl-C after so long; each call its own spelling, as `run_gdb` wants it."""
    interrupt = f"{sys.executable} -I {Path(__file__).with_name('ctrl_c.py')} {_TCL_PORT} $PPID {seconds}"
    return [f"shell {interrupt} &", "continue" + " " * int(1000 * seconds)]


HALTS = [*halted_after(1), *halted_after(3), *halted_after(7)]
CONTROL_C = [*interrupted_after(0.01), *interrupted_after(0.02)]


def complete(outcome: Outcome, first: int = 1) -> None:
    """All that retired is listed, in gdb (from instruction *first* on) and elsewhere, without a gap."""
    assert listed_pcs(outcome.listing) == outcome.retired[first - 1 :]
    assert instructions(outcome.decoded) == outcome.retired
