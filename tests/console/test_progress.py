"""Bars of progress: what they say, where they are drawn, and that nothing of them stays."""

import contextlib
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console import output
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.gdbext.progress_bar import Bar, BarLine, speaks_utf8
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of
from tests.gdbext.gdb_process import GDB, HOME, SOURCE, gdb_environ
from tests.helpers import reference_streams
from tests.helpers.amounts import thorough
from tests.terminal import Terminal

UTF8 = {"TERM": "xterm", "LANG": "de_DE.UTF-8"}


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def looks(label: str, *reports: tuple[float, int], total: int | None, columns: int = 100, plain: bool = False) -> str:
    """A bar after reports of (seconds since the first, done)."""
    clock = Clock()
    bar = Bar(clock)
    for seconds, done in reports:
        clock.now = 100.0 + seconds
        bar.report(label, done, total)
    return bar.text(columns, plain)


def test_a_bar_says_how_far_how_fast_and_how_long_yet() -> None:
    """A quarter in 2 s: 6 s are left."""
    assert looks("reading trace", (0, 0), (2, 16384), total=65536) == (
        "reading trace |██████                  |  25%  16.0/64.0 KiB  8.0 KiB/s  0:06 left"
    )


@pytest.mark.parametrize(
    ("label", "done", "total", "shown"),
    [
        ("decoding", 300, 900, "300/900 bytes  150 bytes/s"),
        ("decoding", 3 << 20, 96 << 20, "3.0/96.0 MiB  1.5 MiB/s"),
        ("encoding (instructions)", 500_000, 20_000_000, "0.5/20.0 M instructions  250.0 k/s"),
        ("reading registers of ram0 (registers)", 4, 40, "4/40 registers  2/s"),
        ("waiting for the program (ms)", 2000, 5000, "40%  2.0/5.0 s  0:03 left"),
        ("searching (parts)", 100, 400, "25%  0:06 left"),
        ("waiting for ram0 (trRamEmpty=1)", 1, 2, "waiting for ram0 (trRamEmpty=1) |"),
    ],
)
def test_units(label: str, done: int, total: int, shown: str) -> None:
    text = looks(label, (0, 0), (2, done), total=total)
    assert shown in text
    assert text.startswith(re.sub(r" \((instructions|registers|ms|parts)\)$", "", label) + " |")


def test_where_the_end_is_not_known_it_says_how_long_it_took() -> None:
    assert looks("encoding (instructions)", (0, 0), (65, 1_300_000), total=None) == (
        "encoding  1.3 M instructions  20.0 k/s  1:05"
    )
    assert looks("connecting", (0, 0), (3700, 0), total=None) == "connecting  1:01:40"


def test_a_bar_is_never_wider_than_the_terminal() -> None:
    reports = ((0.0, 0), (2.0, 16384))
    for columns in range(1, 100):
        text = looks("reading trace", *reports, total=65536, columns=columns)
        assert len(text) <= columns
        if columns >= len("reading trace  25%"):
            assert text.startswith("reading trace") and " 25%" in text
        assert len(looks("connecting", *reports, total=None, columns=columns)) <= columns


def test_what_is_left_out_first() -> None:
    texts = [looks("pull", (0, 0), (2, 16384), total=65536, columns=columns) for columns in (100, 60, 46, 30, 16)]
    has = [[part in text for part in ("25%", "|", "left", "/64.0 KiB", "KiB/s")] for text in texts]
    assert has == [[True] * (5 - n) + [False] * n for n in (0, 0, 1, 2, 4)]


def test_without_utf8_it_is_ascii() -> None:
    text = looks("reading trace", (0, 0), (2, 32768), total=65536, plain=True)
    assert text.isascii() and "|############            |" in text
    assert looks("a long label", (0, 0), (2, 1), total=2, columns=12, plain=True) == "a long~  50%"


@pytest.mark.parametrize(
    ("environ", "utf8"),
    [
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "C"}, False),
        ({}, False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LC_CTYPE": "C.UTF-8"}, False),  # Python's own doing, where there is no locale
    ],
)
def test_which_locales_are_utf8(environ: dict[str, str], utf8: bool) -> None:
    assert speaks_utf8(environ) is utf8


def test_the_newest_pace_counts() -> None:
    """Ten times slower after a quick beginning: the time that is left follows."""
    slow = [(float(second), 50000 + 1000 * second) for second in range(1, 21)]
    text = looks("pull", (0, 0), *slow, total=100000)
    left = re.search(r"(\d+):(\d\d) left", text)
    assert left and 28 <= 60 * int(left[1]) + int(left[2]) <= 35  # 30000 at 1000 a second


def test_what_was_done_before_is_not_this_works_pace() -> None:
    """90 in 0.9 s, of 910 that are left."""
    assert looks("pull", (0, 1000), (0.9, 1090), total=2000).endswith("  100 bytes/s  0:10 left")


# On a terminal


class Screen:
    """One row of a terminal: what stands there after everything that was written."""

    def __init__(self, columns: int = 80) -> None:
        self.clock = Clock()
        self._master, self.terminal = pty.openpty()
        self.resize(columns)
        os.set_blocking(self._master, False)

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def written(self) -> str:
        data = b""
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self._master, 1 << 16):
                data += more
        return data.decode()

    def row(self) -> str:
        return self.written().rpartition("\r\x1b[K")[2]

    def close(self) -> None:
        os.close(self._master)
        os.close(self.terminal)


@pytest.fixture
def screen() -> Iterator[Screen]:
    found = Screen()
    yield found
    found.close()


def line_on(screen: Screen, **environ: str) -> BarLine:
    return BarLine(screen.terminal, {**UTF8, **environ}, screen.clock)


def test_short_work_draws_nothing(screen: Screen) -> None:
    line = line_on(screen)
    for tenth in range(5):
        screen.clock.now = 100 + tenth / 10
        line("decoding", tenth, 5)
    line.end()
    assert screen.written() == ""


def test_long_work_draws_a_few_times_a_second_and_leaves_nothing(screen: Screen) -> None:
    line = line_on(screen)
    for hundredth in range(200):
        screen.clock.now = 100 + hundredth / 100
        line("decoding", hundredth, 200)
    written = screen.written()
    assert 10 <= written.count("decoding |") <= 16
    line.end()
    assert screen.written() == "\r\x1b[K"


def test_it_goes_away_for_what_is_printed_and_comes_back(screen: Screen) -> None:
    line = line_on(screen)
    line("decoding", 1, 4)
    screen.clock.now += 1
    line("decoding", 2, 4)
    assert " 50% " in screen.row()
    line.clear()
    assert screen.written() == "\r\x1b[K"
    screen.clock.now += 1
    line.tick()
    assert screen.written() == "", "nothing while somebody prints"
    line("decoding", 3, 4)
    assert " 75% " in screen.row()


def test_it_goes_on_while_nothing_is_reported(screen: Screen) -> None:
    line = line_on(screen)
    line.begin("connecting")
    for second in (1, 2, 3):
        screen.clock.now = 100 + second
        line.tick()
        assert screen.row() == f"connecting  0:0{second}"


def test_a_terminal_that_is_made_narrow(screen: Screen) -> None:
    line = line_on(screen, VTE_VERSION="7000")  # one that breaks lines anew
    line("decoding", 1, 4)
    screen.clock.now += 1
    line("decoding", 2, 4)
    wide = screen.row()
    assert 60 < len(wide) < 80
    screen.resize(30)
    screen.clock.now += 1
    line("decoding", 3, 4)
    assert screen.written().startswith("\r\x1b[2A\x1b[J"), "three rows of 30"
    screen.resize(20)
    screen.clock.now += 1
    line("decoding", 3, 4)
    assert len(screen.written().rpartition("\x1b[J")[2]) < 20


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": ""}])
def test_nothing_on_a_terminal_that_cannot(screen: Screen, environ: dict[str, str]) -> None:
    line = line_on(screen, **environ)
    if environ["TERM"]:
        assert not line.able
    line("decoding", 1, 4)
    screen.clock.now += 2
    line("decoding", 2, 4)
    line.end()
    assert screen.written() == "" or not environ["TERM"]


def test_nothing_in_a_file(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as file:
        clock = Clock()
        line = BarLine(file.fileno(), UTF8, clock)
        line("decoding", 1, 4)
        clock.now += 2
        line("decoding", 2, 4)
        line.end()
    assert (tmp_path / "log").read_bytes() == b""


def test_a_terminal_that_has_gone_is_no_error(screen: Screen) -> None:
    line = BarLine(screen.terminal, UTF8, screen.clock)
    copy = os.dup(screen.terminal)
    os.dup2(os.open(os.devnull, os.O_RDONLY), screen.terminal)  # writing fails from now on
    line("decoding", 1, 4)
    screen.clock.now += 2
    line("decoding", 2, 4)
    line.end()
    os.dup2(copy, screen.terminal)


def test_without_a_terminal_the_commands_line_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w") as nothing:
        monkeypatch.setattr(sys, "stderr", nothing)
        with ProgressLine() as progress:
            progress("decoding", 1, 2)
            progress.clear()
            assert progress._thread is None


# Of whole programs

GDB_ITSELF = """import os, time
from rvtrace_gdb.gdbext.tracer import tracer
with tracer().at_work("counting lines"):
    for _ in range(600):  # until it is seen
        if not os.path.exists("SEEN"): time.sleep(0.1)
print("done")
"""
TIMES = 100  # so long that a bar is seen
BAR = re.compile(r"^decoding \|█.*\| +\d+%  .*MiB", re.M)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("long") / "long.nex"
    file.write_bytes((reference_streams.FOLDER / "dhrystone.0.nex").read_bytes() * TIMES)
    return file


def words(stream: Path) -> list[str]:
    elf = str(reference_streams.FOLDER / "dhrystone.elf")
    return ["decode", str(stream), "--ntrace", "--btm", "--elf", elf]


AGAIN = 'until "$@"; echo end $?; [ -e "$0" ]; do :; done; echo over; exec sleep 60'
"""For sh: a command, and another time if the file $0 is not there when it ends, because nobody saw its bar."""


SLOWLY = {"RVTRACE_KERNEL": "0"}
"""With the kernel this stream takes less time than has to pass before there is a bar."""


def test_a_command_shows_a_bar_that_goes_away(stream: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rvtrace_gdb", *words(stream), "1,+3"]
    environ = {**gdb_environ(), **SLOWLY, "PYTHONPATH": str(HOME), "LC_ALL": "", "LANG": "C.UTF-8"}
    seen = tmp_path / "seen"
    with Terminal(["sh", "-c", AGAIN, str(seen), *command], 100, 24, environ) as terminal:
        terminal.wait(lambda screen: BAR.search(screen), "a bar", moving=True)
        seen.touch()
        screen = terminal.wait_for("over")
    assert "█" not in screen and "decoding" not in screen
    assert screen.splitlines()[0].startswith("capture: ")
    assert re.search(r"^1\s.*\n2\s.*\n3\s.*\nend 0\nover$", screen.rstrip(), re.M)


ASKED = "import sys; from rvtrace_gdb.console.output import is_elsewhere; open('said', 'a').write(f'{is_elsewhere()} ')"


def test_which_rows_a_bar_does_not_disturb(tmp_path: Path) -> None:
    """Those in a file, and those in a pipe whose reader does not print on this terminal itself."""
    ask = shlex.join([sys.executable, "-c", ASKED])
    lines = [f"{ask} >out", f"{ask} | cat >out", f"{ask} | cat | cat >out", f"{ask} | cat", ask, f"{ask} | cat | cat"]
    ours, terminal = pty.openpty()
    environ = {**gdb_environ(), "PYTHONPATH": str(HOME)}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    script = ["sh", "-c", "\n".join(lines)]
    subprocess.run(script, **streams, cwd=tmp_path, env=environ, start_new_session=True, check=True)  # type: ignore[call-overload]
    os.close(terminal)
    os.close(ours)
    assert (tmp_path / "said").read_text().split() == ["True"] * 3 + ["False"] * 3


def test_the_bar_counts_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "is_elsewhere", lambda: True)
    shown, seen = output.CommandOutput(output.OutputOptions()), list[tuple[str, int, int | None]]()
    monkeypatch.setattr(shown, "progress", lambda *reported: seen.append(reported))
    shown.total = 3000
    assert shown.rows(map(str, range(3000))) == 3000
    assert seen == [("writing (lines)", 1024, 3000), ("writing (lines)", 2048, 3000)]
    assert len(capsys.readouterr().out.splitlines()) == 3000


def test_ctrl_c_is_one_line(stream: Path, tmp_path: Path) -> None:
    long = tmp_path / "longer.nex"  # so long that it has not ended when the key comes
    long.write_bytes(stream.read_bytes() * 20)
    command = [sys.executable, "-m", "rvtrace_gdb", *words(long), "--events"]  # rows would come while it is decoded
    environ = {**gdb_environ(), "PYTHONPATH": str(HOME)}
    with Terminal(
        ["sh", "-c", 'trap : INT; "$@"; echo end $?; exec sleep 60', "sh", *command], 100, 24, environ
    ) as terminal:
        terminal.wait(lambda screen: re.search(r"^decoding \|", screen, re.M), "a bar", moving=True)
        terminal.press("C-c")
        screen = terminal.wait_for("end 130")
    assert [row.strip().removeprefix("^C") for row in screen.splitlines() if row.strip()] == [
        "rvtrace: interrupted", "end 130",
    ]  # fmt: skip


@thorough("test_a_command_shows_a_bar_that_goes_away")
def test_gdb_shows_the_same(stream: Path, tmp_path: Path) -> None:
    elf, file = reference_streams.FOLDER / "dhrystone.elf", str(tmp_path / "long.rvt")
    data = stream.read_bytes() * 4
    capture_file.save(capture_of(RawImport("long.nex", data, Options(btm=True), Image.from_elf(str(elf)))), file)
    command = [GDB, "-q", "-nx", "-ex", "set height 0", "-ex", SOURCE, "-ex", f"trace open {file}", str(elf)]
    environ = {**gdb_environ(), **SLOWLY, "LC_ALL": "C.UTF-8"}
    with Terminal(command, 100, 24, environ) as terminal:
        terminal.wait(lambda screen: screen.rstrip().endswith("(gdb)") and "encoder0" in screen, "a prompt")
        terminal.enter("trace gaps")
        terminal.wait(lambda screen: BAR.search(screen), "a bar", moving=True)
        screen = terminal.wait(lambda screen: screen.rstrip().endswith("(gdb)"), "a prompt")
        assert "decoding" not in screen and "█" not in screen
        seen = tmp_path / "seen"
        terminal.enter(f"python exec({GDB_ITSELF.replace('SEEN', str(seen))!r})")
        took = re.compile(r"^counting lines +\d+:\d\d$", re.M)
        terminal.wait(lambda screen: took.search(screen), "how long it takes", moving=True)
        seen.touch()
        screen = terminal.wait(lambda screen: screen.rstrip().endswith("done\n(gdb)"), "a prompt")
    assert not re.search(r"^counting", screen, re.M)
