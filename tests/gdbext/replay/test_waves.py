"""A waveform viewer follows gdb in the past, and gdb follows its cursor: with a peer that follows the description of
WCP, and a file that pyvcd reads. The real GTKWave is in `test_gtkwave`.
"""

import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.gdb_driver.mi import MiRecord
from tests.gdbext.gdb_process import GDB
from tests.helpers.cross_compiler import HOME
from tests.helpers.gdb_mi import GdbMi, MiError
from tests.helpers.wait import until
from tests.session.exports.exported import elf, export, opened, two_harts
from tests.session.exports.timelines.dumps import Waves
from tests.session.waves.wcp_peer import WcpPeer


class Replayed:
    """A gdb at the end of a trace of two harts with times, without a target, and what an export of the trace says."""

    def __init__(self, folder: Path) -> None:
        trace, words = two_harts(folder)
        opened(trace, "median", "--src-bits", "2", "--timestamps")
        self.file = folder / "it.vcd"
        export("vcd", self.file, trace, words, "--time", "0,300")
        waves = Waves(self.file, "vcd")
        self.times = {
            int(hart[-1]): {moment.levels["number"]: moment.time for moment in waves.instructions(hart)}
            for hart in waves.harts
        }
        surfer = folder / "surfer"
        surfer.write_text(_SURFER.format(python=sys.executable, home=HOME))
        surfer.chmod(surfer.stat().st_mode | stat.S_IXUSR)
        opening = (f"trace open {trace.with_suffix('.rvt')}", "trace replay")
        self.gdb = GdbMi(elf("median"), GDB, *opening, PATH=f"{folder}:/usr/bin:/bin", SAID=str(folder / "said"))
        self.said = folder / "said"

    def hart(self) -> int:
        """The hart of the selected thread, by its own numbering in the target's description."""
        return int(self.gdb.cli("info threads").partition("* ")[2].split()[0])

    def number(self) -> int:
        return int(self.gdb.command("-data-evaluate-expression $trace_pos")["value"])

    def went(self, since: int) -> int:
        """The number at which gdb stops next."""
        self.gdb.stopped(since)
        return self.number()


_SURFER = """#!{python}
import sys, time
sys.path.insert(0, "{home}")
from tests.session.waves.wcp_peer import WcpPeer
file, option, port = sys.argv[1:]
assert option == "--wcp-initiate"
with WcpPeer(int(port)) as peer:
    while peer.cursor is None:
        time.sleep(0.01)
    import os
    open(os.environ["SAID"], "w").write(f"{{file}} {{peer.cursor}}")
"""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replayed]:
    it = Replayed(tmp_path_factory.mktemp("waves"))
    try:
        yield it
    finally:
        it.gdb.close()


def is_stop(record: MiRecord) -> bool:
    return (record.kind, record.name) == ("notify", "stopped")


def test_both_ways(replayed: Replayed) -> None:
    gdb = replayed.gdb
    with WcpPeer(echoes=True) as peer:
        assert "Surfer follows." in gdb.cli(f"trace waves surfer {peer.port} {replayed.file}")
        until(lambda: peer.loaded == str(replayed.file), "the file")
        times = replayed.times[replayed.hart()]
        for command in ("trace goto 100", "reverse-stepi", "reverse-step", "stepi 7", "trace goto 900"):
            since = len(gdb.records)
            gdb.cli(command)
            peer.wait_for_cursor(times[replayed.went(since)])
        for number in (411, 412, 17):
            since = len(gdb.records)
            peer.move(times[number])
            assert replayed.went(since) == number
        since = len(gdb.records)
        between = next(number for number in range(200, 600) if times[number + 1] - times[number] > 1)
        peer.move(times[between] + 1)
        assert replayed.went(since) == between
        assert peer.cursor == times[between] + 1, "the cursor stays where the user has put it"
        assert "Surfer follows, with " in gdb.cli("trace waves")

        gdb.cli("set trace waves-cursor off")
        peer.move(times[33])
        since = len(gdb.records)
        until(lambda: "where the debugger" not in _error(gdb, "trace goto cursor"), "the cursor")
        assert replayed.went(since) == 33
        gdb.cli("set trace waves-cursor goto")

        gdb.cli("trace goto 40")
        peer.wait_for_cursor(times[40])
        assert _error(gdb, "trace goto cursor") == "the cursor of Surfer is where the debugger has put it"
        peer.move(1)
        until(lambda: "is at 1, where the trace has nothing" in _error(gdb, "trace goto cursor"), "the reason")
        assert replayed.number() == 40

        peer.hang_up()
        until(lambda: "follow any more: it has ended the connection" in gdb.cli("trace waves"), "its end")
        since = len(gdb.records)
        gdb.cli("stepi")
        assert "any more" not in gdb.console(since), "that has been said"
    assert _error(gdb, "trace goto cursor").startswith("Surfer is not connected any more")


def test_other_waveforms_have_an_axis_of_their_own(replayed: Replayed, tmp_path: Path) -> None:
    """Time 0 of the trace is at 1000 of the design's waveforms, and a tick takes 10 units there."""
    gdb, file = replayed.gdb, tmp_path / "design.vcd"
    file.write_text("$timescale 1 ps $end $scope module t $end $var wire 1 ! c $end $enddefinitions $end\n")
    begin = replayed.times[replayed.hart()][1]
    with WcpPeer() as peer:
        gdb.cli("trace goto 1")
        gdb.cli(f"trace waves surfer :{peer.port} {file}")
        ticks = {1: 100, 2: 155}[replayed.hart()]
        peer.wait_for_cursor(ticks)
        gdb.cli("set trace waves-offset 1000")
        gdb.cli("set trace waves-scale 10")
        peer.wait_for_cursor(1000 + 10 * ticks)
        assert "a tick of the trace is 10 of the viewer's units of time, from 1000 on" in gdb.cli("trace waves")
        gdb.cli("set trace waves-offset auto")
        gdb.cli("set trace waves-scale auto")
        assert begin and "Surfer follows no more" in gdb.cli("trace waves off")
    assert "No waveform viewer follows." in gdb.cli("trace waves off")


def test_the_place_is_that_of_the_selected_thread(replayed: Replayed) -> None:
    gdb = replayed.gdb
    with WcpPeer() as peer:
        gdb.cli(f"trace waves surfer {peer.port} {replayed.file}")
        for thread in (2, 1):
            gdb.cli(f"thread {thread}")
            since = len(gdb.records)
            gdb.cli("trace goto 60")
            peer.wait_for_cursor(replayed.times[thread][replayed.went(since)])
        assert replayed.times[1][60] != replayed.times[2][60]
        gdb.cli("trace waves off")


def test_surfer_is_started(replayed: Replayed) -> None:
    """With the option by which it connects to us."""
    replayed.gdb.cli("trace goto 55")
    assert "Surfer starts with" in replayed.gdb.cli(f"trace waves surfer {replayed.file}")
    until(lambda: replayed.said.exists() and replayed.said.read_text(), "the cursor")
    assert replayed.said.read_text() == f"{replayed.file} {replayed.times[replayed.hart()][55]}"
    replayed.gdb.cli("trace waves off")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("surfer 1", "no viewer waits at 127.0.0.1:1: Connection refused"),
        ("surfer 70000", "70000 is not HOST:PORT"),
        ("surfer a b", "a is not HOST:PORT"),
        ("surfer -listen x", "-listen takes a port, 0 for any, got: x"),
        ("surfer /nowhere/x.vcd", "cannot read /nowhere/x.vcd: No such file or directory"),
        ("gtkwave /nowhere/x.vcd", "cannot read /nowhere/x.vcd: No such file or directory"),
        ("gtkwave a b", "b: one word too many"),
        ("verdi", "verdi: what is it"),
    ],
)
def test_what_cannot_be_is_one_line(replayed: Replayed, words: str, error: str) -> None:
    said = _error(replayed.gdb, f"trace waves {words}")
    assert error in said and "\n" not in said.strip()


@pytest.mark.parametrize(
    "setting", ["waves-scale 0", "waves-scale -1", "waves-scale 0/5", "waves-offset 1/0", "waves-offset x"]
)
def test_what_cannot_be_set(replayed: Replayed, setting: str) -> None:
    assert setting.split()[1] in _error(replayed.gdb, f"set trace {setting}")


def _error(gdb: GdbMi, command: str) -> str:
    """The error of a command, "" if there is none."""
    try:
        gdb.cli(command)
    except MiError as error:
        return str(error)
    return ""
