"""Real gdb and real OpenOCD on the HiFive Premier P550 as its target description has it: four harts, version 0.

What is expected of each hart is the list of what it retired.
"""

import json
import re
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.formats.sinks import decode
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 4
P550 = "hifive-premier-p550"


class Outcome(NamedTuple):
    said: dict[str, str]
    retired: list[list[int]]
    capture: Path
    elf: Path


def listing(hart: int) -> str:
    """The command that lists all, in a spelling of its own for each hart."""
    return f"trace history /at {hart + 1},10000000"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("p550")
    source = folder / "meet.c"
    source.write_text(f'#define HARTS {HARTS}\n#include "{PROGRAMS / "meet.c"}"\n')
    elf = compiled(folder, source)
    log, capture = folder / "log", folder / "x.rvt"
    with Rig(elf, folder / "rig", "--target", P550, "--log-retired", str(log)) as rig:
        commands = [SOURCE, f"set trace target {P550}", f"set trace openocd-port {rig.tcl_port}"]
        commands += [f"target extended-remote :{rig.gdb_port}"]
        commands += ["trace info", "trace start -timestamps -implicit-return full", "break met", "continue"]
        commands += ["trace status"]
        for hart in range(HARTS):
            commands += [f"thread {hart + 1}", listing(hart)]
        commands += ["trace regs -live", f"trace save {capture}", "trace stop", "disconnect"]
        said = run_gdb(elf, [*commands, f"trace open {capture}", "trace regs", "trace dump 1,3"])
    return Outcome(said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)], capture, elf)


def test_every_hart_is_listed_as_it_ran(outcome: Outcome) -> None:
    for hart in range(HARTS):
        listed = listed_pcs(outcome.said[listing(hart)])
        assert listed == outcome.retired[hart][hart:]
        assert len(listed) > 300


def test_the_capture_says_the_same(outcome: Outcome) -> None:
    capture = load(outcome.capture)
    (sink,) = capture.sinks
    found = decode([sink], capture.encoders, Image.from_elf(outcome.elf))
    assert {hart: list(history.pcs()) for hart, history in found.histories.items()} == dict(enumerate(outcome.retired))
    assert found.accounting.skipped == 0 and not found.notes


def test_the_registers_in_the_capture(outcome: Outcome) -> None:
    with zipfile.ZipFile(outcome.capture) as container:
        description = json.loads(container.read("capture.json"))
    assert description["version"] == 4
    for hart, encoder in enumerate(description["encoders"]):
        registers = encoder["registers"]
        assert sorted(registers) == ["teControl", "teImpl", "tsControl"]
        assert int(registers["teControl"], 16) & 0x8F00_0077 == 0x8100_0077  # to the funnel, Nexus, teInstruction 7
        assert int(registers["teImpl"], 16) == 0x0200_0100 | hart << 20 | hart << 28
        assert encoder["unregistered"] == {}
    (sink,) = description["sinks"]
    assert sorted(sink["registers"]) == ["tfControl", "tfImpl"]
    assert (sink["start"], sink["limit"], sink["access_bytes"]) == ("0x100000000", "0x100fffff8", 8)
    said = outcome.said["trace regs"]
    assert re.search(r"^encoder2 at 0x102000: pre-ratified trace encoder, hart 2, in the capture$", said, re.M)
    assert re.search(r"^ram0 at 0x18000: RAM sink in a pre-ratified trace funnel, in the capture$", said, re.M)
    assert (
        re.search(r"^  teSinkLimit 0x00fffff8: teSinkLimit=0xfffff8$", said, re.M) or "teSinkLimit 0x00fffff8" in said
    )


def test_what_is_said(outcome: Outcome) -> None:
    info, start = outcome.said["trace info"], outcome.said["trace start -timestamps -implicit-return full"]
    assert len(re.findall(r"has N-Trace older than 1\.0, HTM, HTM with repeated history and", info)) == 4
    assert "buffers in system memory with addresses of 40 bits, aligned to 8 bytes" in info
    assert "encoder0 to encoder3: " in start
    assert "calls with a counter, not with a stack of full addresses" in start
    assert "ram0: SMEM 0x100000000, 16777216 bytes, keeps the newest" in start
    status = outcome.said["trace status"]
    assert re.search(r"^funnel: +funnel0 at 0x18000: on$", status, re.M)
    assert re.search(r"^encoder: +encoder0 to encoder3: tracing, N-Trace .*HTM.*timestamps", status, re.M)
    assert "TSTAMP" in outcome.said["trace dump 1,3"]
    assert "teControl" in outcome.said["trace regs -live"] and "tfControl" in outcome.said["trace regs -live"]
