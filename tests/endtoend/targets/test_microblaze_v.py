"""AMD MicroBlaze V, alone and with an MDM V: real gdb and real OpenOCD on its registers and their limits."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim import devices
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.description.library.shipped import shipped
from rvtrace_gdb.transport.simulated.wiring import Wiring
from tests.endtoend.retired_instructions import listed_pcs
from tests.endtoend.targets.boards import RecordedBoard, recorded
from tests.transport.simulated.chips import Chip, encoder, smem
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.sim_command.device_files import Kept

RV32 = "rv32imac_zicsr"
TRIGGER = "trace start -trigger-on choose"
FEATURES = "trace start -implicit-return full -repeated-history -stall"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> RecordedBoard:
    refused = ["trace stop", TRIGGER, "trace stop", FEATURES, "trace regs encoder0"]
    return recorded(tmp_path_factory.mktemp("core"), "microblaze-v", 1, march=RV32, commands=refused)


def test_the_embedded_buffer(core: RecordedBoard) -> None:
    core.check_all_harts()
    assert "into:     buffer0: SRAM, 131072 bytes, keeps the newest" in core.said["trace start"]


def test_synchronization_is_by_messages(core: RecordedBoard) -> None:
    assert re.search(r"N-Trace 1\.0 HTM, sync every \d+ messages$", core.said["trace start"], re.M)
    assert "synchronisation every 16 to 524288 messages," in core.said["trace info"]


def test_what_it_has_not_is_said_in_one_line(core: RecordedBoard) -> None:
    assert core.said[TRIGGER].splitlines() == [
        "encoder0 at 0x2000: does not take trigger actions (trTeInstTrigEnable stays 0): trace without triggers, or"
        " -range a part"
    ]
    assert [line for line in core.said[FEATURES].splitlines() if line.startswith("note:")] == [
        "note:     encoder0 has no repeated history (trTeInstEnRepeatedHistory stays 0)",
        "note:     encoder0 has no implicit return (trTeInstEnImplicitReturn stays 0)",
        "note:     encoder0 cannot stall its hart; trace may be lost when the path is full",
    ]


def test_what_the_manual_prints_otherwise(tmp_path: Path, core: RecordedBoard) -> None:
    """The width of the source is 2 bits after a reset, even with one hart; here it is fixed, and read back. trTeImpl
    ends in 0x15. There is no trRamStartLow at 0x3010, while at 0x3014 there is a register that can be written.
    """
    devices = tmp_path / "devices.toml"
    fixed = "fixed = {trTeSrcBits = 2, trTeSrcID = 1}"
    devices.write_text(f"[encoder0]\nversion = [5, 1]\n{fixed}\n[buffer0]\nfixed = {{trRamStartLow = 0}}")
    board = recorded(tmp_path, "microblaze-v", 1, march=RV32, sim=("--devices", str(devices)))
    board.check_all_harts()
    [encoder], [before] = load(board.capture).encoders, load(core.capture).encoders
    assert (encoder.in_force.src_bits, encoder.in_force.src_id) == (2, 1)
    assert before.in_force.src_bits == 0
    note = "encoder0 at 0x2000: trace control interface 5.1 is used as 1.0: it is what AMD's manual of MicroBlaze V"
    assert f"note:     {note}" in board.said["trace start"]
    assert note in board.said["trace info"]


@pytest.mark.parametrize("name", ["microblaze-v", "microblaze-v-mdm"])
def test_registers_after_a_reset(name: str, tmp_path: Path) -> None:
    """As UG1629 prints them: trTeControl 0x1000000, trTsControl 0x30; the source ID has 2 bits. Active adds 1."""
    profile = shipped(name).devices
    assert profile is not None
    wiring = Wiring((encoder(0, "ram0"), smem("ram0")))
    opened = Kept()
    chip = Chip(compiled(tmp_path), devices.built(wiring, profile, lambda name, where, folder: opened), harts=1)
    registers = chip["encoder0"]
    registers.activate()
    assert registers[0x00] & 0x0700_0000 == 0x0100_0000
    assert registers[0x08] >> 28 == 2
    registers[0x40] = 1
    assert registers[0x40] & 0x00FF_FFFF == 0x31, "trTsWidth is that of the simulated counter"


def test_system_memory_behind_the_funnel(tmp_path: Path) -> None:
    board = recorded(tmp_path, "microblaze-v-mdm", 2, march=RV32)
    board.check_all_harts()
    assert "into:     sink0: SMEM 0x30000000, 65536 bytes, keeps the newest" in board.said["trace start"]


NAMES = {"pib_sink": "PIB sink", "axi_stream_sink": "AXI4-Stream sink"}
SINKS = {"pib_sink": 'mode = "parallel_4"', "axi_stream_sink": ""}


@pytest.mark.parametrize("kind", SINKS)
def test_trace_that_leaves_the_chip(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins, and the stream that is no component of the interface: what comes out is decoded with the saved settings."""
    target, stream = tmp_path / "board.toml", tmp_path / "stream.bin"
    text = shipped("microblaze-v-mdm").text()
    sink = text.index('type = "ram_sink"\nbase = 0x2000')
    target.write_text(f'{text[:sink]}type = "{kind}"\nbase = 0x2000\n{SINKS[kind]}\n')
    devices = tmp_path / "devices.toml"
    profile = shipped("microblaze-v-mdm").devices
    assert profile is not None
    devices.write_text(profile.read_text().partition("[all.ram_sink]")[0])
    board = recorded(
        tmp_path, str(target), 2, march=RV32, commands=["trace info  ", "trace regs sink0", "trace stop"],
        sim=("--devices", str(devices), "--isa", "IMAC", "--stream", f"sink0={stream}"),
    )  # fmt: skip
    what = {"pib_sink": "pins, parallel 4", "axi_stream_sink": "AXI4-Stream: what receives it has to record it"}[kind]
    assert f"into:     sink0: {what}" in board.said["trace start"]
    assert re.search(r"^(pins|stream): +sink0 at 0x2000: on$", board.said["trace status"], re.M)
    assert board.said["trace regs sink0"].startswith(f"sink0 at 0x2000: {NAMES[kind]}\n  tr")
    assert main(["decode", str(stream), "--settings", str(board.capture), "--elf", str(board.elf), "--quiet"]) == 0
    rows = capsys.readouterr().out.splitlines()
    for hart, retired in enumerate(board.retired):
        own = [line.removeprefix(f"hart {hart}\t") for line in rows if line.startswith(f"hart {hart}\t")]
        assert listed_pcs("\n".join(own)) == retired
