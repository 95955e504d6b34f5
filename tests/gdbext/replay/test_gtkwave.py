"""GTKWave itself, on a display that nobody sees, and gdb in a terminal: the marker follows gdb, and gdb the marker.

GTKWave runs a second script beside ours, which says where the marker is and moves it as the user's hand would.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gdbext.gdb_process import GDB, SOURCE, gdb_environ
from tests.helpers.page_sessions import sessions
from tests.helpers.wait import until
from tests.session.exports.exported import elf, opened, two_harts
from tests.session.exports.timelines.dumps import Waves
from tests.terminal import Terminal

_PROBE = """\
proc probe {{}} {{
    if {{[file exists {{{folder}/move}}]}} {{
        set moved [open {{{folder}/move}}]
        gtkwave::setMarker [string trim [read $moved]]
        close $moved
        file delete {{{folder}/move}}
    }}
    set new [open {{{folder}/new}} w]
    puts $new "[gtkwave::getMarker] [gtkwave::getWindowStartTime] [gtkwave::getWindowEndTime]"
    puts $new $rvtrace::last
    puts $new [gtkwave::getDisplayedSignals]
    close $new
    file rename -force {{{folder}/new}} {{{folder}/now}}
    after 50 probe
}}
probe
"""
_WRAPPER = """\
#!/bin/sh
script=${{1#--tcl_init=}}
printf 'source {{%s}}\\nsource {{%s}}\\n' "$script" {folder}/probe.tcl > {folder}/both.tcl
exec {gtkwave} --tcl_init={folder}/both.tcl "$2"
"""
"""GTKWave with both scripts."""
_MOVED = "The cursor of the waveform viewer was moved: `trace goto cursor` goes there."


class Shown(NamedTuple):
    """What GTKWave shows. *told*: where our script has last said, or been told, that the marker is."""

    marker: int
    start: int
    end: int
    told: int
    signals: list[str]


class Desk:
    """A terminal with gdb and a GTKWave that it has started, with the folder of the second script."""

    def __init__(self, folder: Path, terminal: Terminal, times: dict[int, int]) -> None:
        self._folder, self.terminal, self.times = folder, terminal, times

    def shown(self) -> Shown | None:
        try:
            place, told, signals = self._folder.joinpath("now").read_text().splitlines()
        except FileNotFoundError:
            return None
        marker, start, end = map(int, place.split())
        return Shown(marker, start, end, int(told), signals.split())

    def wait_for_marker(self, number: int) -> None:
        def is_there() -> bool:
            now = self.shown()
            return now is not None and now.marker == self.times[number] and now.start <= now.marker <= now.end

        until(is_there, f"the marker at {self.times[number]}: {self.shown()}")

    def move(self, number: int) -> None:
        """Put the marker at an instruction."""
        moved = self._folder / "moving"
        moved.write_text(str(self.times[number]))
        moved.rename(self._folder / "move")
        until(lambda: not self._folder.joinpath("move").exists(), "GTKWave")


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with server:
        assert server.stdout is not None
        try:
            yield f":{server.stdout.readline().decode().strip()}"
        finally:
            server.terminate()


@pytest.fixture
def desk(display: str, tmp_path: Path) -> Iterator[Desk]:
    """A gdb at the end of a trace, after what the page types."""
    trace, _ = two_harts(tmp_path)
    opened(trace, "median", "--src-bits", "2", "--timestamps")
    program = tmp_path / "bin" / "gtkwave"
    tmp_path.joinpath("probe.tcl").write_text(_PROBE.format(folder=tmp_path))
    program.parent.mkdir()
    program.write_text(_WRAPPER.format(gtkwave=shutil.which("gtkwave"), folder=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environ = gdb_environ(DISPLAY=display, HOME=str(tmp_path), PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    begin = ["set pagination off", SOURCE, f"cd {tmp_path}", f"trace open {trace.with_suffix('.rvt')}", "trace replay"]
    command = [GDB, "-q", "-nx", str(elf("median")), *(word for it in begin for word in ("-ex", it))]
    with Terminal(command, 120, 40, environ) as terminal:
        terminal.wait_for("[15011 of 15011]")
        for asked, lines in sessions("waves.md")[0]:
            terminal.enter(asked)
            for line in lines:
                terminal.wait_for(line.replace("/home/me", str(tmp_path)))
        terminal.wait_for("[1 of 15011]")
        waves = Waves(tmp_path / "demo.vcd", "vcd").instructions("hart1")
        times = {it.levels["number"]: it.time for it in waves if isinstance(it.levels["number"], int)}
        yield Desk(tmp_path, terminal, times)


def test_both_ways(desk: Desk) -> None:
    terminal = desk.terminal
    desk.wait_for_marker(1)
    shown = desk.shown()
    assert shown is not None
    assert [it.split(".")[2].split("[")[0] for it in shown.signals[:4]] == ["number", "number", "pc", "pc"]
    terminal.enter("stepi 30")
    desk.wait_for_marker(31)
    terminal.enter("reverse-stepi")
    desk.wait_for_marker(30)

    desk.move(700)
    terminal.wait_for("(gdb) trace goto cursor")
    screen = terminal.wait_for("[700 of ")
    assert screen.rstrip().endswith("(gdb)")

    terminal.type("print 1000 +")
    desk.move(800)
    until(lambda: (now := desk.shown()) and now.marker == desk.times[800] == now.told, "the marker")
    terminal.enter(" 234")
    screen = terminal.wait(lambda it: _MOVED in it or "[800 of " in it, "what comes of the cursor")
    assert "(gdb) print 1000 + 234\n$1 = 1234\n" in screen, "what is typed is not disturbed"
    if "[800 of " not in screen:  # gdb had heard of it before the line was entered
        terminal.enter("trace goto cursor")
    terminal.wait_for("[800 of ")

    terminal.enter("trace waves off")
    terminal.wait_for("GTKWave follows no more, and stays as it is.")
    terminal.enter("trace goto 50")
    terminal.wait_for("[50 of ")
    assert (now := desk.shown()) is not None and now.marker == desk.times[800]
