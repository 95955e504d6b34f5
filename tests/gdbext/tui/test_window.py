"""`layout trace` in the real gdb, in a real terminal, driven by keys: what it shows against the log of the hart itself,
against gdb's own listing of the source, and against the program's symbols.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB, NEWEST_GDB, PATIENT, SOME_GDBS, SOURCE, gdb_environ, newest_gdb, run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import compile_program, demo
from tests.terminal import Terminal

ROW = re.compile(r"^│ *(\d+) (  |=>|->) 0x([0-9a-f]+) <([\w.]+)\+\d+> +(\S.*?) *│?$", re.M)
GAP = re.compile(r"^│ *(\d+) !! \[(.*?)\]? *│$", re.M)
TITLE = re.compile(r"^┌─(?:trace: hart 0, )?(.*?)─*┐$", re.M)
UTF8 = {"LC_ALL": "C.UTF-8"}
"""In the C locale gdb's borders are other characters; `test_in_the_c_locale` looks at what is in them."""
FAILURES = ("Traceback", "Python Exception", "internal error", "Error occurred")
SELF_SWITCHING = Path(__file__).resolve().parents[2] / "programs" / "hard" / "self_switching.c"


class Row(NamedTuple):
    """An instruction in the window."""

    number: int
    mark: str
    pc: int
    text: str


def rows(screen: str) -> list[Row]:
    found = [Row(int(number), mark.strip(), int(pc, 16), text) for number, mark, pc, _, text in ROW.findall(screen)]
    assert [row.number for row in found] == sorted({row.number for row in found})
    return found


def marked(screen: str, mark: str = "=>") -> int | None:
    """The number of the one line with a mark."""
    found = [row.number for row in rows(screen) if row.mark == mark]
    return found[0] if len(found) == 1 else None


class Debugger:
    """gdb in a terminal. What it says is waited for; no picture may show that something broke."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._commands = 0

    def command(self, text: str) -> str:
        """The screen with the prompt behind what the command printed."""
        self._commands += 1
        self.terminal.enter(text)
        self.terminal.enter(f"echo [{self._commands}]\\n")
        return self.settled(lambda screen: screen.rstrip().endswith(f"\n[{self._commands}]\n(gdb)"), text)

    def settled(self, there: object, what: str) -> str:
        assert callable(there)
        screen = self.terminal.wait(there, what)
        assert not any(failure in screen for failure in FAILURES), screen
        return screen

    def row(self, number: int, mark: str = "=>") -> str:
        """The screen when the line with this number has the mark."""
        return self.settled(lambda screen: marked(screen, mark) == number, f"{mark} at {number}")


@contextmanager
def gdb(elf: Path, *commands: str, program: str = GDB, **environ: str) -> Iterator[Debugger]:
    """gdb in a terminal, after some commands that need nobody to look."""
    words = [program, "-q", "-nx", str(elf)]
    for command in ("set confirm off", "set pagination off", "set width 0", PATIENT, SOURCE, *commands):
        words += ["-ex", command]
    with Terminal([*words, "-ex", "echo ready\\n"], 120, 40, gdb_environ(**UTF8, **environ)) as terminal:
        debugger = Debugger(terminal)
        debugger.settled(lambda screen: "ready\n(gdb)" in screen, "prompt")
        yield debugger


class Traced(NamedTuple):
    """A capture that is whole, its program, and what the hart retired."""

    elf: Path
    capture: Path
    retired: list[int]

    def check(self, screen: str) -> list[Row]:
        """The instructions in a picture are the ones that ran."""
        found = rows(screen)
        assert [row.pc for row in found] == [self.retired[row.number - 1] for row in found], screen
        return found


def traced(elf: Path, folder: Path, stop: str) -> Traced:
    with Rig(elf, folder / "rig", "--log-retired", str(folder / "retired.log")) as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        run_gdb(elf, [*commands, "trace start", f"hbreak {stop}", "continue", f"trace save {folder}/x.rvt"])
    return Traced(elf, folder / "x.rvt", retired_pcs(folder / "retired.log"))


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("window")
    return traced(demo(folder), folder, "finish")


@pytest.fixture(scope="module")
def with_gaps(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("gaps")
    return traced(compile_program(folder, SELF_SWITCHING), folder, "_exit")


@contextmanager
def window(it: Traced, *, program: str = GDB, **environ: str) -> Iterator[Debugger]:
    """The window with a capture."""
    with gdb(it.elf, f"trace open {it.capture}", program=program, **environ) as debugger:
        debugger.terminal.enter("layout trace")
        debugger.settled(lambda screen: "so far" in screen and screen.rstrip().endswith("(gdb)"), "history window")
        yield debugger


def test_in_the_c_locale(it: Traced) -> None:
    words = [GDB, "-q", "-nx", str(it.elf), "-ex", SOURCE, "-ex", f"trace open {it.capture}", "-ex", "layout trace"]
    with Terminal(words, 120, 40, gdb_environ(LC_ALL="C")) as terminal:
        screen = terminal.wait(lambda screen: "so far" in screen and "<main+76>" in screen, "history window")
    assert not any(failure in screen for failure in FAILURES), screen


@pytest.fixture(scope="module")
def one_window(it: Traced) -> Iterator[Debugger]:
    with window(it, RVTRACE_PYTHON=sys.executable) as debugger:  # so that its session can be killed
        yield debugger


@pytest.fixture
def debugger(it: Traced, one_window: Debugger, tmp_path: Path) -> Debugger:
    """The window of many tests, as if it were just opened; keys are for it."""
    commands = ["layout src", f"file {it.elf}", f"trace open {it.capture}", "layout trace", "focus trace"]
    (tmp_path / "anew").write_text("\n".join(commands))
    one_window.terminal.resize(120, 40)
    one_window.command(f"source {tmp_path / 'anew'}")
    one_window.settled(lambda screen: "so far" in screen, "history window")
    return one_window


def source_of(screen: str) -> dict[int, str]:
    """The lines in the source window; number 0 where there are none yet."""
    lines = re.findall(r"^│[ bBhH+>-]{3} +(\d+) (.*?) *│$", screen, re.M)
    return {int(number): text for number, text in lines} or {0: ""}


def middle_of_source(screen: str) -> int:
    """The line in the middle of the source window, which is the lower one, if its first line is not the file's."""
    borders = [row for row, line in enumerate(screen.splitlines()) if line.startswith(("┌", "└"))]
    top, bottom = [0, 0, *borders][-2:]
    return min(source_of(screen)) + (bottom - top - 1) // 2


def line_of(elf: Path, pc: int) -> int:
    command = ["riscv64-unknown-elf-addr2line", "-e", str(elf), hex(pc)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(found.split(":")[1].split()[0])


def test_in_the_present_the_newest_is_shown(it: Traced, debugger: Debugger) -> None:
    screen = debugger.terminal.screen()
    assert f"no gaps, {len(it.retired)} so far" in screen
    found = it.check(screen)
    assert len(found) > 5
    assert found[-1].number == len(it.retired)


@newest_gdb
def test_it_scrolls_and_the_source_with_it(gdb: str, it: Traced) -> None:
    """The line of the instruction in the middle is in the middle of the source window, each time."""
    text = (Path(__file__).resolve().parents[3] / "examples" / "demo.c").read_text().splitlines()
    with window(it, program=gdb) as debugger:
        at = rows(debugger.command("focus trace"))[-1].number
        for key in ("PageUp", "Up", "Up", "PageUp", "Down", "PageUp"):
            debugger.terminal.press(key)
            screen = debugger.settled(lambda screen, at=at: marked(screen, "->") not in (None, at), f"move by {key}")
            found = it.check(screen)
            at = marked(screen, "->") or 0
            assert abs([row.number for row in found].index(at) - len(found) // 2) <= 1
            line = line_of(it.elf, it.retired[at - 1])
            screen = debugger.settled(lambda screen, line=line: middle_of_source(screen) == line, f"line {line}")
            assert source_of(screen)[line].strip() == text[line - 1].strip()
        before = source_of(screen)
        assert source_of(debugger.command("print 1")) == before  # it stays where it was scrolled to
        assert marked(debugger.command("print 2"), "->") == at


def test_it_ends_where_the_history_does(it: Traced, debugger: Debugger) -> None:
    debugger.terminal.press(*["PageDown"] * 3)
    debugger.terminal.enter("+ 10 trace")
    assert it.check(debugger.command("print 1"))[-1].number == len(it.retired)
    debugger.command("- 1000000 trace")
    assert it.check(debugger.command("print 2"))[0].number == 1


def test_it_scrolls_sideways(it: Traced, debugger: Debugger) -> None:
    before = debugger.terminal.screen().splitlines()[1]
    debugger.terminal.press("Right", "Right")
    debugger.settled(lambda screen: screen.splitlines()[1].startswith(f"│{before[3:60]}"), "lines cut at their left")
    debugger.terminal.press("Left", "Left", "Left")
    debugger.settled(lambda screen: screen.splitlines()[1] == before, "whole lines")


def test_a_click_shows_the_source_of_a_line(it: Traced, debugger: Debugger) -> None:
    wanted = rows(debugger.terminal.screen())[1]
    debugger.terminal.click(10, 2)
    debugger.row(wanted.number, "->")
    line = line_of(it.elf, wanted.pc)
    debugger.settled(lambda screen: line in source_of(screen), f"line {line}")


@thorough("test_in_the_present_the_newest_is_shown")
def test_loss_is_shown(with_gaps: Traced, debugger: Debugger) -> None:
    """The program switches its trace off five times. Numbers count gaps, which the hart's log does not have."""
    debugger.terminal.resize(120, 100)
    debugger.command(f"file {with_gaps.elf}")
    debugger.command(f"trace open {with_gaps.capture}")
    debugger.settled(lambda screen: "5 GAPS" in screen, "gaps")
    debugger.terminal.press("PageUp")
    screen = debugger.settled(lambda screen: GAP.search(screen), "gap")
    ((number, text),) = GAP.findall(screen)
    assert text.startswith("trace disabled, then trace enabled at another place")
    shown = {row.number: row for row in rows(screen)}
    before, behind = shown[int(number) - 1], shown[int(number) + 1]
    index = behind.number - 1 - 5  # of the instruction behind the fifth gap, in the log
    assert with_gaps.retired[index - 1 : index + 1] == [before.pc, behind.pc]


def test_without_a_trace_it_says_what_to_do(it: Traced) -> None:
    with gdb(it.elf) as debugger:
        debugger.terminal.enter("layout trace")
        debugger.terminal.wait_for("there is no trace: `trace start` makes one")
        debugger.command(f"trace open {it.capture}")
        assert it.check(debugger.settled(lambda screen: "so far" in screen, "history"))


def test_in_narrow_and_small_terminals(it: Traced, debugger: Debugger) -> None:
    for columns, height in ((40, 15), (20, 10), (200, 60), (80, 24)):
        debugger.terminal.resize(columns, height)
        debugger.settled(lambda screen, columns=columns: width(screen) == columns, f"{columns} columns")
        debugger.command(f"print {columns}")
    screen = debugger.settled(lambda screen: rows(screen) and width(screen) == 80, "rows")
    assert it.check(screen)[-1].number == len(it.retired)


def width(screen: str) -> int:
    """Of the window at the top, frame and all."""
    return len(screen.splitlines()[0])


def test_it_follows_what_is_opened(it: Traced, with_gaps: Traced, debugger: Debugger) -> None:
    """Another program, another capture: nothing of the one before stays."""
    debugger.command(f"file {with_gaps.elf}")
    debugger.command(f"trace open {with_gaps.capture}")
    debugger.settled(lambda screen: "5 GAPS" in screen, "gaps")
    debugger.command(f"file {it.elf}")
    debugger.command(f"trace open {it.capture}")
    screen = debugger.settled(lambda screen: f"{len(it.retired)} so far" in screen, "first capture")
    assert it.check(screen)[-1].number == len(it.retired)


def test_a_session_that_ended_is_replaced(it: Traced, debugger: Debugger) -> None:
    gdb_process = debugger.terminal.ask("#{pane_pid}")
    children = subprocess.run(["pgrep", "-P", gdb_process], check=True, capture_output=True, text=True).stdout
    (session,) = children.split()
    os.kill(int(session), signal.SIGKILL)
    debugger.command("print 1")
    debugger.settled(lambda screen: "session has ended" in screen or "there is no trace" in screen, "message")
    debugger.command(f"trace open {it.capture}")
    assert it.check(debugger.settled(lambda screen: "so far" in screen, "history"))


def test_what_goes_wrong_is_said_in_the_window(it: Traced, debugger: Debugger) -> None:
    """Whatever it is: no traceback over the screen, and the lines that were there stay."""
    debugger.command("python import gdb, sys; w = sys.modules['rvtrace_gdb.gdbext.tui.window']; look = w.look")
    for error, text in (("ZeroDivisionError()", "ZeroDivisionError"), ("KeyboardInterrupt()", "Interrupted: ")):
        debugger.command(f"python w.look = lambda *_, **__: (_ for _ in ()).throw({error})")
        screen = debugger.settled(lambda screen, text=text: f"│{text}" in screen, text)
        assert it.check(screen)[-1].number == len(it.retired)
    debugger.command("python w.look = look")
    debugger.settled(lambda screen: "Interrupted" not in screen and rows(screen), "history")


@thorough("test_a_session_that_ended_is_replaced")
def test_a_second_source_leaves_a_window_that_works(it: Traced) -> None:
    with window(it) as debugger:
        debugger.command(SOURCE)
        debugger.settled(lambda screen: "loaded again" in screen, "what to do")
        debugger.command("layout src")
        debugger.command(f"trace open {it.capture}")
        debugger.command("layout trace")
        assert it.check(debugger.settled(lambda screen: "so far" in screen, "history"))


def test_a_gdb_without_windows(it: Traced) -> None:
    outputs = run_gdb(it.elf, ["python del gdb.register_window_type", SOURCE, f"trace open {it.capture}", "trace here"])
    assert "Error" not in outputs[SOURCE] + outputs[f"trace open {it.capture}"]
    assert "x.rvt" in outputs[f"trace open {it.capture}"]


def test_nothing_is_done_when_it_is_not_shown(it: Traced, debugger: Debugger) -> None:
    debugger.command("layout src")
    debugger.command("python import gdb, sys; w = sys.modules['rvtrace_gdb.gdbext.tui.window']")
    assert "handlers: []" in debugger.command("python print('handlers:', w.shown)")


@pytest.fixture(scope="module")
def board(it: Traced, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Debugger]:
    """The same program, which does the same, on a target."""
    with Rig(it.elf, tmp_path_factory.mktemp("board") / "rig") as rig:
        commands = [f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}", "trace start"]
        with gdb(it.elf, *commands, program=request.param) as debugger:
            yield debugger


@pytest.fixture
def live(board: Debugger, tmp_path: Path) -> Debugger:
    """It is traced from its beginning on and has stopped in finish(); nothing was read out, and no window is there."""
    commands = ["tui disable", "trace live", "delete", "trace stop", "monitor reset halt"]
    commands += ["maintenance flush register-cache", "trace start", "break finish", "continue"]
    (tmp_path / "again").write_text("\n".join(commands))
    board.command("set trace window-bytes 262144")
    assert re.search(r"^Breakpoint \d+, finish", board.command(f"source {tmp_path / 'again'}"), re.M)
    return board


some_boards = pytest.mark.parametrize("board", SOME_GDBS, indirect=True)
newest_board = pytest.mark.parametrize("board", NEWEST_GDB, indirect=True)


@some_boards
def test_it_follows_the_place_in_the_past(it: Traced, live: Debugger) -> None:
    """Backward, forward, to any place, to the callers, and back to the present."""
    debugger, last = live, len(it.retired)
    debugger.command("layout trace")
    debugger.settled(lambda screen: f"{last} so far" in screen, "history")
    debugger.command("reverse-stepi")
    it.check(debugger.row(last))
    debugger.command("reverse-stepi 3")
    it.check(debugger.row(last - 3))
    debugger.command("stepi")
    debugger.row(last - 2)
    debugger.settled(lambda screen: f"{last - 2} of {last}" in screen, "title")
    debugger.command("trace goto 700")
    screen = debugger.row(700)
    assert it.check(screen)[len(it.check(screen)) // 2].number == 700
    debugger.command("up")
    screen = debugger.settled(lambda screen: marked(screen) not in (None, 700), "place of the call")
    at = marked(screen) or 0
    call = next(row for row in it.check(screen) if row.number == at)
    assert call.text.startswith("jal ")
    assert it.retired[at] == int(call.text.split()[1], 16)  # what ran next is what was called
    debugger.command("trace goto begin")
    debugger.row(1)
    debugger.command("trace live")
    screen = debugger.settled(lambda screen: f"{last} so far" in screen, "present")
    assert marked(screen) is None
    assert it.check(screen)[-1].number == last


@thorough("test_it_follows_the_place_in_the_past")
@newest_board
def test_keys_of_single_key_mode_go_backward(it: Traced, live: Debugger) -> None:
    debugger, last = live, len(it.retired)
    debugger.command("layout trace")
    debugger.settled(lambda screen: f"{last} so far" in screen, "history")
    debugger.terminal.press("C-x", "s")
    debugger.terminal.wait_for("SingleKey")
    for key, number in (("I", last), ("I", last - 1), ("i", last), ("B", 1), ("i", 2), ("I", 1)):
        debugger.terminal.type(key)
        debugger.row(number)
    debugger.terminal.type("T")
    debugger.terminal.press("PageDown")
    at = marked(debugger.settled(lambda screen: marked(screen, "->"), "scrolled window"), "->")
    debugger.terminal.type("G")
    debugger.row(at or 0)
    debugger.terminal.type("L")
    debugger.settled(lambda screen: f"{last} so far" in screen, "present")
    debugger.terminal.type("q")  # to the prompt again


@thorough("test_it_follows_the_place_in_the_past")
@some_boards
def test_much_new_trace_is_read_only_when_asked_for(it: Traced, live: Debugger) -> None:
    debugger, last = live, len(it.retired)
    debugger.command("set trace window-bytes 0")
    debugger.command("layout trace")
    debugger.settled(lambda screen: "newer trace are not read out yet: `trace history`" in screen, "note")
    debugger.command("trace history")
    screen = debugger.settled(lambda screen: f"{last} so far" in screen, "history")
    assert "not read out" not in screen
    debugger.command("stepi")
    debugger.settled(lambda screen: "not read out yet" in screen and f"{last} so far" in screen, "note, and older rows")
    debugger.command("set trace window-bytes unlimited")
    debugger.settled(lambda screen: f"{last + 1} so far" in screen and "not read out" not in screen, "newest")


@thorough("gdbext/test_settings.py::test_a_listing_while_the_program_runs")
@newest_board
def test_a_running_program_is_not_read_out(it: Traced, live: Debugger) -> None:
    debugger, last = live, len(it.retired)
    debugger.command("layout trace")
    debugger.settled(lambda screen: f"{last} so far" in screen, "history")
    debugger.command("delete")
    debugger.command("continue&")
    debugger.command("print 1")
    debugger.settled(lambda screen: "The program is running" in screen and f"{last} so far" in screen, "note")
    debugger.terminal.enter("interrupt")  # what it stops comes when it likes, behind a prompt
    debugger.settled(lambda screen: "The program is running" not in screen and "so far" in screen, "newest")
