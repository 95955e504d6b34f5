"""The sessions of docs/serve.md are what the real gdb prints: live, and of the capture that was saved there."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.console.commands.serve.served import serving
from tests.gdbext.gdb_process import run_gdb
from tests.helpers.cross_compiler import demo
from tests.helpers.page_sessions import Exchange, sessions, shown

REPLAYED, ASKED, LIVE = sessions("serve.md")
_NOISE = re.compile(r"Reading .*|warning: File transfers .*|note:     registers and memory .*|[a-z ]+: \d+ %")
OF_OPENOCD = (
    "monitor targets", "monitor reg a0", "monitor reg nothing", "monitor nothing", "monitor help halt", "monitor usage",
    "monitor trace_point", "monitor echo trace",
)  # fmt: skip
"""Commands that pass."""
SHADOWED = ("monitor trace point", "monitor eval trace history")
BESIDES = (*OF_OPENOCD, *SHADOWED, "monitor trace status")
"""Not on the page: commands of OpenOCD pass, and others see the live target."""


class Rigged:
    """What gdb printed in each session of the page, by its commands."""

    def __init__(self, folder: Path) -> None:
        self.elf, self.file, self.folder = demo(folder), folder / "demo.rvt", folder
        with ExitStack() as ends:
            with Rig(self.elf, folder / "rig") as rig:
                words = ("--connect", f"127.0.0.1:{rig.gdb_port}", "--elf", self.elf, "--target", rig.target_file)
                server = ends.enter_context(serving(*words, "-o", self.file))
                self.live = self.typed(LIVE, server.port, *BESIDES)
                self.direct = run_gdb(None, [f"target remote :{rig.gdb_port}", *OF_OPENOCD, "monitor trace history"])
            self.file.rename(folder / "live.rvt")
            with server.client() as client:
                self.left = [client.stop("bs"), *client.monitor("trace history"), *client.monitor("trace save")]
            (folder / "live.rvt").rename(self.file)
        with serving(self.file) as server:
            self.replayed = self.typed(REPLAYED, server.port)
            begin = ("target remote localhost:40123", "monitor trace goto 1725", "stepi  ")
            self.answered = self.typed([*(Exchange(command, []) for command in begin), *ASKED], server.port)

    def typed(self, session: Sequence[Exchange], port: int, *more: str) -> dict[str, str]:
        own = {command: command.replace("40123", str(port)) for command in [*(it.command for it in session), *more]}
        said = run_gdb(None, list(own.values()))
        return {command: said[typed] for command, typed in own.items()}


@pytest.fixture(scope="module")
def rigged(tmp_path_factory: pytest.TempPathFactory) -> Rigged:
    return Rigged(tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize("session", ["live", "replayed", "answered"])
def test_gdb_prints_what_the_page_says(rigged: Rigged, session: str) -> None:
    said: dict[str, str] = getattr(rigged, session)
    for command, lines in {"live": LIVE, "replayed": REPLAYED, "answered": ASKED}[session]:
        printed = [line for line in shown(said[command], rigged.folder) if not _NOISE.fullmatch(line)]
        assert printed == lines, command


def test_commands_of_openocd_pass_and_others_see_the_live_target(rigged: Rigged) -> None:
    assert "riscv" in rigged.live["monitor targets"] and "0x" in rigged.live["monitor reg a0"]
    for command in OF_OPENOCD:
        assert rigged.live[command] == rigged.direct[command], command
    assert rigged.live["monitor eval trace history"] == rigged.direct["monitor trace history"]
    assert "`monitor eval trace point`" in rigged.live["monitor trace point"]
    assert "encoder:  encoder0 at 0x20000000: tracing" in rigged.live["monitor trace status"]
    assert rigged.file.exists()


def test_a_debugger_that_comes_when_the_target_is_gone_finds_what_was_recorded(rigged: Rigged) -> None:
    stop, *lines = rigged.left
    assert stop.startswith("T05")
    assert any(line.startswith("2006\t") and "<main+76>" in line for line in lines)
    assert any(re.fullmatch("Saved 1108 bytes of trace.*demo.rvt.", line) for line in lines)
