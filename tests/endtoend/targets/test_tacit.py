"""TACIT on simulated targets, by real OpenOCD and real gdb: what is listed is what ran."""

from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.description.library.shipped import shipped
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.endtoend.targets.boards import RecordedBoard, recorded
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

_ALL = "trace history /at 1,10000000"
_OWN = "set ::seen 1"


def test_chipyard(tmp_path: Path) -> None:
    board = recorded(tmp_path, "chipyard-tacit", 1)
    board.check_all_harts()
    assert "TACIT" in board.said["trace start"] and "the sink has no limit" in board.said["trace start"]
    assert "DMA sink at 0x3010000" in board.said["trace info"]
    assert "off until the hart runs" in board.said["trace status"]


def test_halts_and_steps_are_no_gaps(tmp_path: Path) -> None:
    """OpenOCD switches the encoder off in debug mode. What users have in the handlers of its events is kept."""
    steps = ["stepi", "stepi ", "next", "continue ", _ALL, "trace gaps", "reverse-stepi", "trace stop"]
    handler = "monitor sim.cpu cget -event halted"
    board = _recorded(tmp_path, "chipyard-tacit", steps, [handler])
    assert listed_pcs(board.said[_ALL]) == board.retired[0] and len(board.retired[0]) > 500
    assert "No gaps" in board.said["trace gaps"]
    assert board.said[handler].strip() == _OWN


def _recorded(
    folder: Path, target: str, commands: list[str], after: list[str], start: str = "trace start"
) -> RecordedBoard:  # fmt: skip
    elf = compiled(folder, PROGRAMS / "meet.c", "rv64imac_zicsr", ("-DHARTS=1",))
    log = folder / "log"
    with Rig(elf, folder / "rig", "--target", target, "--log-retired", str(log)) as rig:
        said = run_gdb(elf, [
            SOURCE, f"set trace target {target}", f"set trace openocd-port {rig.tcl_port}",
            f"target extended-remote :{rig.gdb_port}", f"monitor sim.cpu configure -event halted {{{_OWN}}}",
            start, "break met", "continue", *commands, *after,
        ])  # fmt: skip
    return RecordedBoard(said, [retired_pcs(log)], elf, folder / "x.rvt")


def test_predicted_branches(tmp_path: Path) -> None:
    """Up to the first halt; the branches after the last packet are not known."""
    start = "trace start -branch-prediction"
    board = _recorded(tmp_path, "chipyard-tacit", [_ALL, "trace status"], [], start)
    listed, retired = listed_pcs(board.said[_ALL]), board.retired[0]
    assert listed == retired[: len(listed)] and len(listed) > len(retired) / 2
    assert "branches predicted" in board.said[start]


def test_packets_with_contexts(tmp_path: Path) -> None:
    devices = tmp_path / "devices.toml"
    devices.write_text("[tacit0]\ncontexts = true\n")
    board = recorded(
        tmp_path, "chipyard-tacit", 1, commands=["trace dump 1,2", "trace regs tacit0"], sim=("--devices", str(devices))
    )
    board.check_all_harts()
    assert "Sync start prv=M ctx=0 mode=target entries=1024 address=0x80000000" in board.said["trace dump 1,2"]
    assert "TR_TE_TARGET" in board.said["trace regs tacit0"] and "TR_SK_DMA_COUNT" in board.said["trace regs tacit0"]


def test_a_sink_with_a_limit(tmp_path: Path) -> None:
    """Its last word comes with the next packets."""
    target = tmp_path / "limited.toml"
    target.write_text(shipped("chipyard-tacit").text() + "limited = true\n")
    board = recorded(tmp_path, str(target), 1, commands=["trace regs tacit0"])
    listed = board.listed(0)
    assert listed == board.retired[0][: len(listed)] and len(listed) > len(board.retired[0]) - 60
    assert "TR_SK_DMA_MAX_SIZE" in board.said["trace regs tacit0"]


def test_two_harts(tmp_path: Path) -> None:
    more = '\n[[tacit]]\nname = "tacit1"\nhart = 1\nstart = 0x86000000\nsize = 0x1000000\n'
    target = tmp_path / "two.toml"
    target.write_text(shipped("chipyard-tacit").text() + more)
    board = recorded(tmp_path, str(target), 2)
    board.check_all_harts()
