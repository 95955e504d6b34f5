"""`rvtrace console` in a terminal (tmux's): what is seen after which keys."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.console.interruption import busy, when_it_runs
from tests.gdbext.gdb_process import HOME, gdb_environ
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo
from tests.terminal import Terminal

COLUMNS, ROWS = 120, 40
PROMPT = re.compile(r"^\(rvtrace\) *$", re.M)


class Typed:
    """A console that is typed at."""

    def __init__(self, terminal: Terminal, folder: Path) -> None:
        self.terminal, self.folder = terminal, folder

    def enter(self, command: str, text: str) -> str:
        """Type a line; the screen when it shows a text, and a prompt below."""
        self.terminal.enter(command)
        return self.wait(text)

    def wait(self, text: str) -> str:
        return self.terminal.wait(lambda screen: text in screen and PROMPT.search(screen), f"{text} and a prompt")

    def paste(self, text: str) -> None:
        self.terminal.type(f"\x1b[200~{text}\x1b[201~")

    def await_status(self, text: str) -> None:
        self.terminal.wait(lambda screen: text in status_of(screen), f"status {text}")

    def clear(self) -> None:
        """An empty screen but for the prompt."""
        self.terminal.press("C-g", "C-u", "C-l")
        self.terminal.wait(lambda screen: PROMPT.match(screen), "a clear screen")


def status_of(screen: str) -> str:
    """The status line."""
    return next((line.strip() for line in reversed(screen.splitlines()) if line.strip()), "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("typed")


@pytest.fixture(scope="module")
def rig(folder: Path) -> Iterator[Rig]:
    with Rig(demo(folder), folder / "rig") as rig:
        yield rig


@pytest.fixture(scope="module")
def typed(folder: Path, rig: Rig) -> Iterator[Typed]:
    words = ["--elf", rig.elf, "--target", rig.target_file, "--connect", f":{rig.gdb_port}", "--nx"]
    command = [sys.executable, "-m", "rvtrace_gdb", "console", *map(str, words)]
    environ = {**gdb_environ(), "PYTHONPATH": str(HOME), "XDG_STATE_HOME": str(folder)}
    with Terminal(command, COLUMNS, ROWS, environ) as terminal:
        typed = Typed(terminal, folder)
        typed.wait("_start () at ")
        yield typed


def test_the_status_line_follows_a_session(typed: Typed) -> None:
    first = "stopped at _start (start.S:7) | no trace"
    typed.terminal.wait(lambda screen: status_of(screen) == first, first)
    typed.enter("trace start", "keeps the newest")
    typed.await_status("stopped at _start (start.S:7) | trace tracing, 0 of 65536 bytes")
    typed.enter("tbreak finish", "Temporary breakpoint 1")
    typed.enter("continue", "finish (value=")
    bytes_there = re.compile(r"stopped at finish \(demo\.c:50\) \| trace tracing, [1-9]\d* of 65536")
    typed.terminal.wait(bytes_there.search, "bytes")
    typed.enter("trace stop", "Tracing stopped.")
    typed.await_status("trace stopped, ")
    typed.enter("trace status", "history:")
    typed.await_status("trace off, ")


def test_the_program_in_the_background(typed: Typed) -> None:
    """It stops by itself while nobody types: what gdb says then stands above the line that is typed."""
    typed.enter("monitor reset halt", "tap/device found")
    typed.enter("maintenance flush register-cache", "flushed")
    typed.enter("tbreak main", "Temporary breakpoint 2")
    typed.terminal.enter("continue &")
    typed.wait("Temporary breakpoint 2, main () at ")
    typed.await_status("stopped at main (demo.c:")
    typed.enter("tbreak done", "Temporary breakpoint 3")
    typed.terminal.enter("continue &")
    typed.wait("Temporary breakpoint 3, done () at ")
    typed.enter("continue &", "Continuing.")
    typed.await_status("running | ")
    typed.enter("interrupt", "SIGINT")
    typed.await_status("stopped at done (start.S:25) | ")


def test_tab_completes_commands_options_symbols_and_files(typed: Typed) -> None:
    (typed.folder / "capture-of-today.rvt").touch()
    (typed.folder / "a script.rvts").touch()
    for begun, wanted in (
        ("trace hist", "(rvtrace) trace history"),
        ("trace start -stop-o", "(rvtrace) trace start -stop-on-wrap"),
        ("trace find class", "(rvtrace) trace find classify"),
        ("break start_t", "(rvtrace) break start_timer"),
        (f"trace open {typed.folder}/capture-", f"(rvtrace) trace open {typed.folder}/capture-of-today.rvt"),
        (f"script {typed.folder}/a", f"(rvtrace) script {typed.folder}/a script.rvts"),
        ("scr", "(rvtrace) script"),
    ):
        typed.clear()
        typed.terminal.type(begun)
        typed.terminal.press("Tab")
        typed.terminal.wait(lambda screen, wanted=wanted: wanted in screen.replace("\n", ""), wanted)  # type: ignore[misc]
    typed.clear()
    typed.terminal.type("trace st")
    typed.terminal.press("Tab")
    offered = {"start", "status", "stop"}
    typed.terminal.wait(lambda screen: offered <= set(re.findall(r"^ +(\w+) *$", screen, re.M)), "a menu")
    typed.clear()
    typed.terminal.type("trace start -s")
    typed.terminal.press("Tab")
    typed.terminal.wait(lambda screen: re.search(r"-stall +stall the hart rather", screen), "what it is for")
    typed.clear()


def test_ctrl_c_stops_the_command_only(typed: Typed, tmp_path: Path) -> None:
    runs, sleeps = tmp_path / "runs", tmp_path / "sleeps"
    typed.clear()
    typed.terminal.enter(when_it_runs(runs))
    typed.terminal.enter("continue")
    typed.terminal.wait(lambda screen: "Continuing." in screen and runs.exists(), "it runs")
    typed.terminal.press("C-c")
    assert "Program received signal SIGINT, Interrupt." in typed.wait("SIGINT, Interrupt.")
    typed.terminal.enter(f"python {busy(sleeps)}")
    typed.terminal.wait(lambda screen: sleeps.exists(), "it sleeps")
    typed.terminal.press("C-c")
    typed.wait("interrupted")
    typed.enter("print 6 * 7", "$1 = 42")


def test_ctrl_c_drops_a_block_that_is_typed(typed: Typed) -> None:
    typed.clear()
    typed.terminal.enter("while 1")
    typed.terminal.wait(lambda screen: re.search(r"^> *$", screen, re.M), "a prompt for more")
    typed.terminal.press("C-c")
    typed.wait("")
    typed.enter("print 43", "= 43")
    for line in ("if 1", "echo from a block\\n"):
        typed.terminal.enter(line)
    typed.enter("end", "\nfrom a block")


def test_lines_that_are_pasted_at_once(typed: Typed) -> None:
    """As terminals paste: in brackets, all of it one input. Empty lines between commands repeat nothing."""
    typed.clear()
    typed.paste("define twice\nif 1\necho one\\n\n\nend\nend\ntwice\ntwice\n\n\nprint 40 + 4\n")
    screen = typed.enter("", "= 44")
    assert screen.count("\none") == 2
    typed.paste("while 1\necho again\\n\n")
    typed.enter("loop_break\rend", "\nagain")


def test_a_small_terminal(typed: Typed) -> None:
    """There is room for the line, and Tab."""
    typed.terminal.resize(30, 5)
    try:
        typed.enter("print 44 + 1", "= 45")
        typed.terminal.type("trace st")
        typed.terminal.press("Tab")
        screen = typed.terminal.wait(lambda screen: "trace st" in screen and "start" in screen, "a menu")
        assert "too small" not in screen
        typed.terminal.press("C-c")
    finally:
        typed.terminal.resize(COLUMNS, ROWS)
    typed.enter("print 45 + 1", "= 46")


def test_an_empty_line_repeats_steps_and_turns_pages(typed: Typed) -> None:
    typed.clear()
    typed.enter("trace history 1,3", "\n3")
    assert re.search(r"\n3 +\x1b\[34m0x[0-9a-f]{16}\x1b\[39m <\x1b\[33m_start", typed.terminal.screen(colours=True))
    typed.terminal.press("Enter")
    screen = typed.terminal.wait(lambda screen: len(PROMPT.findall(screen)) == 2, "another prompt")
    assert screen.count("\n1\t".expandtabs()) <= 1  # a range is not repeated
    typed.clear()
    first = typed.enter("stepi", "j done").count("j done")
    typed.terminal.press("Enter")
    typed.terminal.wait(lambda screen: screen.count("j done") == first + 1, "another step")


def test_help_and_history(typed: Typed) -> None:
    typed.clear()
    assert "Ctrl-R searches" in typed.enter("help console", "shows the next page.")
    assert "-timestamp-source HOW" in typed.enter("help trace start", "beside the program.")
    typed.clear()
    typed.terminal.press("C-r")
    typed.terminal.type("6 *")
    typed.terminal.wait(lambda screen: "print 6 * 7" in screen, "the line of before")
    typed.clear()
    kept = (typed.folder / "rvtrace" / "history").read_text()
    assert "+print 6 * 7\n" in kept and "+help trace start\n" in kept


def test_progress_is_drawn_and_goes_away(typed: Typed, tmp_path: Path) -> None:
    """What rvtrace writes in gdb (gdbext/tracer.py), drawn by the console; test_api has all from the target on."""
    typed.clear()
    seen = tmp_path / "seen"  # up to then it goes on
    write = 'os.write(2, b"\\r\\033[Kreading trace: %d/10" % min(i, 9)), time.sleep(0.1)'
    typed.terminal.enter(
        f"python import os, time; [({write}) for i in range(600) if not os.path.exists({str(seen)!r})]"
    )
    typed.terminal.wait(lambda screen: re.search(r"^reading trace \|.*\|.*\d%", screen, re.M), "a bar", moving=True)
    seen.touch()
    screen = typed.terminal.wait(lambda screen: PROMPT.search(screen), "a prompt")
    assert "reading trace |" not in screen


@thorough("test_the_status_line_follows_a_session")
def test_the_end_and_the_next_session(typed: Typed) -> None:
    """Ctrl-D, whatever was said before; another console has the lines. The last test: the console is gone."""
    typed.enter("print 98 + 1", "= 99")
    typed.terminal.press("C-d")
    typed.terminal.wait(lambda screen: typed.terminal.ask("#{pane_dead}") == "1", "the end")
    assert typed.terminal.ask("#{pane_dead_status}") in ("0", "")  # tmux does not always get to know it
    environ = {**gdb_environ(), "PYTHONPATH": str(HOME), "XDG_STATE_HOME": str(typed.folder)}
    with Terminal([sys.executable, "-m", "rvtrace_gdb", "console", "--nx"], COLUMNS, ROWS, environ) as terminal:
        again = Typed(terminal, typed.folder)
        again.wait("not connected | no trace")

        def recalled(screen: str) -> bool:
            """Lines are read in the background: a key that comes too early does nothing."""
            there = "(rvtrace) print 98 + 1" in screen
            if not there:
                terminal.press("Down", "Up")
            return there

        terminal.wait(recalled, "the line of before")
        (gdb,) = children(int(terminal.ask("#{pane_pid}")))
        os.kill(gdb, signal.SIGKILL)
        terminal.wait(lambda screen: "rvtrace: gdb has ended (signal 9)" in screen, "what happened to gdb")


@pytest.mark.parametrize("kind", ["a folder", "no home", "a full disk"])
def test_lines_that_cannot_be_kept(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rvtrace_gdb.console.commands.console import prompt

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if kind == "a folder":
        (tmp_path / "rvtrace" / "history").mkdir(parents=True)
    elif kind == "no home":
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("os.path.expanduser", lambda path: path)  # nobody knows this user
    history = prompt._history()
    if kind == "a full disk":
        (tmp_path / "rvtrace" / "history").unlink()
        (tmp_path / "rvtrace" / "history").symlink_to("/dev/full")
    history.append_string("a line \udcff")
    assert history.get_strings() == ["a line \udcff"]


def children(parent: int) -> list[int]:
    """The processes that one has started."""
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
