"""NEORV32 with its TRACER, by its name: real gdb and real OpenOCD on the simulated one; what is listed is what ran."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.file import load
from rvtrace_gdb.session.description.library.shipped import shipped
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

NEORV32 = "neorv32"
LIST, COUNT = "trace history /a 1,1000000", "shell wc -l <"


class Recorded(NamedTuple):
    """*said*: what gdb printed; *retired*: what the hart retired while it was traced."""

    said: dict[str, str]
    retired: list[int]
    elf: Path
    capture: Path

    def listed(self, spaces: str = "") -> list[int]:
        return listed_pcs(self.said[LIST + spaces])

    def count(self, spaces: str = "") -> int:
        """How many instructions had retired then."""
        return int(next(said for command, said in self.said.items() if command.endswith("log" + spaces)))


def recorded(folder: Path, commands: Sequence[str], *sim: str) -> Recorded:
    """Run gdb on the program; a command that ends in COUNT counts what has retired."""
    elf = compiled(folder, PROGRAMS.parent / "executed" / "traps_and_stops.c", "rv32imac_zicsr")
    log, capture = folder / "log", folder / "x.rvt"
    with Rig(elf, folder / "rig", "--target", NEORV32, "--log-retired", str(log), *sim) as rig:
        said = run_gdb(elf, [
            SOURCE, f"set trace target {NEORV32}", f"set trace openocd-port {rig.tcl_port}",
            f"target extended-remote :{rig.gdb_port}", "break stop_here",
            *(command.replace(COUNT, f"{COUNT} {log}") for command in commands), f"trace save {capture}",
        ])  # fmt: skip
    return Recorded(said, retired_pcs(log), elf, capture)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """With a buffer that has room for all: two rounds of the program, and a third one up to a stop address."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "devices.toml").write_text("[tracer0]\ndepth = 1024\n")
    commands = [
        "trace info", "trace start", "trace regs tracer0", "continue", LIST, COUNT,
        "continue ", LIST + " ", COUNT + " ", "trace events", "trace check", "trace stop",
        "trace start -trigger-off chosen", "continue  ", LIST + "  ", "trace status",
    ]  # fmt: skip
    return recorded(folder, commands, "--devices", str(folder / "devices.toml"))


def test_from_the_first_instruction_to_the_breakpoint(whole: Recorded) -> None:
    """And on to the next one: what was read out is kept. There are an ecall, an illegal instruction, an interrupt."""
    assert whole.listed() == whole.retired[: whole.count()] and whole.count() > 300
    assert whole.listed(" ") == whole.retired[: whole.count(" ")] and whole.count(" ") > whole.count() + 300
    traps = re.findall(r"exception|interrupt or exception", whole.said["trace events"])
    assert len(traps) == 6, "an ecall, an illegal instruction and an interrupt in each of two rounds"


def test_its_state_and_registers_are_shown(whole: Recorded) -> None:
    assert "tracer0:  TRACER of NEORV32 at 0xfff30000, hart 0\n          1024 entries, off" in whole.said["trace info"]
    title, ctrl, stop_addr = whole.said["trace regs tracer0"].splitlines()
    assert title == "tracer0 at 0xfff30000: NEORV32 TRACER, hart 0"
    assert ctrl.startswith("  CTRL 0x00000511: EN=1") and stop_addr == "  STOP_ADDR 0xfffffffe"


def test_a_check_is_no_error(whole: Recorded) -> None:
    """It would end a script of gdb's."""
    assert whole.said["trace check"].rstrip().endswith(
        "each transfer was compared with the program when it was decoded: 0 gaps.\nNo damage is seen."
    )


def test_code_is_compressed_and_not(whole: Recorded) -> None:
    assert {after - before for before, after in zip(whole.retired, whole.retired[1:], strict=False)} >= {2, 4}


def test_it_ends_with_the_instruction_at_the_stop_address(whole: Recorded) -> None:
    own = whole.retired[whole.count(" ") :]
    assert whole.listed("  ") == own
    started = whole.said["trace start -trigger-off chosen"]
    assert re.search(r"tracer0, hart 0: TRACER of NEORV32, 1024 entries, ends with the instruction at 0x8", started)
    [symbol] = [line for line in _symbols(whole.elf) if line.endswith(" chosen")]
    assert own[-1] == int(symbol.split()[0], 16)
    assert f"tracing ended with the instruction at {own[-1]:#x}" in whole.said["trace status"]


def _symbols(elf: Path) -> list[str]:
    command = ["riscv64-unknown-elf-nm", str(elf)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_capture_has_the_same_end(whole: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(whole.capture), "--elf", str(whole.elf), "--quiet"]) == 0
    assert listed_pcs(capsys.readouterr().out) == whole.listed("  ")


def test_a_full_buffer_has_the_newest(tmp_path: Path) -> None:
    """With the 32 entries of the shipped target: the end of what ran; between two read-outs there is a gap."""
    board = recorded(tmp_path, ["trace start", "continue", LIST, COUNT, "continue ", "trace stop"])
    listed = board.listed()
    assert listed == board.retired[: board.count()][-len(listed) :] and len(listed) > 60
    assert re.search(r"30 pairs|31 pairs|6\d pairs", board.said["trace stop"])
    assert "older entries may be missing, and there is a gap" in board.said["trace stop"]


def test_init_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf, written = compiled(tmp_path, PROGRAMS / "meet.c", "rv32imac_zicsr", ("-DHARTS=1",)), tmp_path / "x.toml"
    with Rig(elf, tmp_path / "rig", "--target", NEORV32) as rig:
        assert main(["init", "--openocd", str(rig.folder / "openocd.cfg"), "-o", str(written)]) == 0
        found = capsys.readouterr().err
    assert "the chip: it is NEORV32 in an FPGA" in found and "marchid 0x13" in found
    assert "tracer0 at 0xfff30000: TRACER, 32 entries" in found
    description = load(written)
    assert description.tracers == shipped(NEORV32).description().tracers and description.xlen == 32
