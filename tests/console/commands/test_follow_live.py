"""Real gdb and OpenOCD trace the simulated target to its pins, and what leaves them is followed as it comes.

What is expected of each hart is the list of what it retired.
"""

import shlex
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 8
BOARD = "\n".join(
    f'[[component]]\nname = "e{n}"\ntype = "encoder"\nbase = {0x4000_0000 + n * 0x1000:#x}\nhart = {n}\nto = ["top"]'
    for n in range(HARTS)
) + """
[[component]]
name = "top"
type = "funnel"
base = 0x40010000
[[component]]
name = "pins"
type = "pib_sink"
base = 0x40020000
mode = "parallel_8"
"""  # fmt: skip


class Outcome(NamedTuple):
    """*listing*: what the follower printed, *said* beside it; *saved*, *status*: what these commands of gdb said."""

    listing: list[str]
    said: list[str]
    saved: str
    status: str
    retired: list[list[int]]
    folder: Path


@pytest.fixture(scope="module", params=["-format etrace"])
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("pins")
    elf = compiled(folder, PROGRAMS / "meet.c")
    board, log, said = folder / "board.toml", folder / "log", folder / "said"
    board.write_text(BOARD)
    options = ["--target", str(board), "--log-retired", str(log), "--stream", f"pins=unix:{folder / 'pins'}"]
    with Rig(elf, folder / "rig", *options) as rig:
        words = [sys.executable, "-m", "rvtrace_gdb", "decode", "--follow", f"unix:{folder / 'pins'}"]
        words += ["--settings", str(folder / "settings.rvt"), "-o", str(folder / "x.rvt")]
        listing = folder / "listing"
        follow = f"cd {HOME}; {shlex.join(words)} > {listing} 2> {said} & until grep -q e {said}; do sleep 0.05; done"
        commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]
        commands += [f"trace start -to pins {request.param}", "break met", f"trace save {folder / 'settings.rvt'}"]
        commands += ["trace status", f"shell {follow}", "continue", "trace stop"]
        printed = run_gdb(elf, commands)
    assert (folder / "settings.rvt").exists(), "\n".join(printed.values())
    end = time.monotonic() + 60
    while "the end of the stream" not in said.read_text():
        assert time.monotonic() < end, said.read_text()
        time.sleep(0.02)
    retired = [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)]
    saved, status = printed[f"trace save {folder / 'settings.rvt'}"], printed["trace status"]
    return Outcome(listing.read_text().splitlines(), said.read_text().splitlines(), saved, status, retired, folder)


def test_each_hart_is_listed_as_it_ran(outcome: Outcome) -> None:
    for hart in range(HARTS):
        own = [line.removeprefix(f"hart {hart}\t") for line in outcome.listing if line.startswith(f"hart {hart}\t")]
        assert listed_pcs("\n".join(own)) == outcome.retired[hart]
        assert len(own) > 300
    assert outcome.saved.startswith("Saved the settings of the trace to ")
    assert "history:  this trace leaves the chip and is recorded by a probe, not by a RAM sink" in outcome.status


def test_what_was_kept_is_what_was_followed(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    """The bytes with the settings, too, are what a probe would have recorded."""
    assert main(["decode", str(outcome.folder / "x.rvt")]) == 0
    out = capsys.readouterr().out
    assert sorted(out.splitlines()) == sorted(outcome.listing)
    record = outcome.folder / "record.bin"
    record.write_bytes(load(outcome.folder / "x.rvt").sinks[0].data)
    assert main(["decode", str(record), "--settings", str(outcome.folder / "settings.rvt")]) == 0
    assert capsys.readouterr().out == out
