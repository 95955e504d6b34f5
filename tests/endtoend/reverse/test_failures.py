"""What goes wrong while gdb is in the past, or on its way there: gdb stays whole, and one line says what happened.

Real gdb 13.1, real OpenOCD, simulated target. What is expected of places comes from the source and the hart's log.
Tests that leave the target alive share it: each begins with a reset.
"""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.proxy.stepping import FIRST_STEPPING_SECONDS
from tests.endtoend.reverse.typed_gdb import POS, beginning, power_off, typed, without_prompts
from tests.gdbext.gdb_process import GDBS, SOURCE, newest_gdb, run_gdb
from tests.gdbext.test_interrupt import PROGRAM
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import compile_program, demo
from tests.helpers.openocd_crash import kill_openocd

MANY = 20
# A condition: what it prints does not go through gdb's own output, which would count lines.
FALSE = f"""
import os
times = []
class False_(gdb.Function):
    def invoke(self):
        times.append(None)
        if len(times) == {MANY}:
            os.write(1, b"[false {MANY} times]")
        return False
False_("false")
"""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("breaking"))


@pytest.fixture(scope="module")
def rig(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with Rig(elf, tmp_path_factory.mktemp("rig") / "rig") as rig:
        yield rig


ONE_GDB = pytest.mark.parametrize("gdb", [*GDBS[:1], *long_only(*GDBS[1:])])
"""For what rvtrace alone decides; gdb 16 takes the same way in the long run."""


@contextmanager
def no_stub(answer: bytes | None) -> Iterator[tuple[int, threading.Event]]:
    """A port at which somebody answers this, and hangs up; None: says nothing. The event: something was asked."""
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with ExitStack() as ends, suppress(OSError):
                while True:
                    connection = ends.enter_context(server.accept()[0])
                    connection.settimeout(60)
                    if connection.recv(4096):
                        asked.set()
                    if answer is not None:
                        connection.sendall(answer)
                        connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1]), asked
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_where_there_is_no_past_one_line_says_so_and_no_setting_changes(rig: Rig) -> None:
    commands = ["reverse-stepi", "reverse-next", "reverse-finish", "reverse-continue", "reverse-until", "trace goto 1"]
    settings = ["show print finish", "show print frame-arguments", "show print entry-values"]
    begin = beginning(rig, traced=False)
    nothing_yet = ["trace start", "reverse-step", "set exec-direction reverse", "stepi"]
    said = run_gdb(rig.elf, [*begin, *commands, *settings, *nothing_yet])
    for command in commands:
        assert said[command] == "there is no trace: `trace start` makes one, `trace open FILE` shows a saved one\n"
    for command in ("reverse-step", "stepi"):
        assert said[command] == "nothing has been traced yet: let the program run (`continue`), then ask again\n"
    assert "is on" in said[settings[0]] and '"scalars"' in said[settings[1]] and '"default"' in said[settings[2]]


@thorough("test_breakpoints_and_registers_are_right_in_the_present")
def test_a_step_over_a_breakpoint_that_ends_in_the_present(rig: Rig) -> None:
    """gdb 13 and 16 that are told of the end of the history then never send a packet again."""
    begin = beginning(rig)
    back = ["reverse-stepi", "break *$pc", "stepi", POS, "stepi ", "print $pc", "reverse-stepi 2", "stepi 9"]
    said = run_gdb(rig.elf, [*begin, *back, f"{POS} ", "reverse-stepi ", "continue", f"{POS}  ", "stepi  ", "next"])
    assert said[POS].split()[-1] == said[f"{POS} "].split()[-1] == said[f"{POS}  "].split()[-1] == "-1"
    assert "This is the end of the trace." in said["stepi"]
    assert said["stepi 9"].count("stopped") + said["stepi 9"].count("No more reverse-execution history") <= 1
    assert "<finish+4>" in said["print $pc"]  # `stepi ` ran the target


def test_openocd_dies_in_the_present(rig: Rig) -> None:
    """gdb 13 and 16 crash when the connection ends while they find frames."""
    with typed(rig) as gdb:
        gdb.run("trace history")
        kill_openocd(rig)
        assert "closed the connection; what was traced is kept" in gdb.run("bt")
        assert "#0  finish" in gdb.run("bt")
        assert "<_start+0>" in gdb.run("trace history 1,2")
        assert "Remote connection closed" in gdb.run("info threads") + gdb.run("stepi")
        assert "no OpenOCD and no other gdb stub" in gdb.run(f"trace connect localhost:{rig.gdb_port}")
        rig.start_openocd()
        gdb.run(f"trace connect localhost:{rig.gdb_port}")
        gdb.run("reverse-stepi")
        assert gdb.place() > 2000
        gdb.run("trace live")


@thorough("test_openocd_dies_in_the_present")
def test_openocd_dies_before_the_first_command_of_a_stop(rig: Rig) -> None:
    """Which hart a thread is has not been asked there yet: nothing of what gdb says of the end is lost."""
    with typed(rig) as gdb:
        gdb.run("trace history")
        gdb.run("stepi")
        kill_openocd(rig)
        said = gdb.run("trace history 1,2")
        assert len(re.findall(r"^[12]\t.*0x\w+ <", said, re.M)) == 2, said
        said += gdb.run("info threads")
        assert len(re.findall("Remote c.* closed|Target disconnected", said)) == 1, said
        rig.start_openocd()


@thorough("test_openocd_dies_in_the_present")
def test_a_present_that_cannot_be_read_is_not_entered(elf: Path, tmp_path: Path) -> None:
    unreadable = "the target does not report its registers, so gdb stays in the past"
    with Rig(elf, tmp_path / "rig") as rig, typed(rig) as gdb:
        gdb.run("reverse-step")
        gdb.run("monitor reset run")
        for command in ("continue", "trace live", "next"):
            assert unreadable in gdb.run(command)
            assert gdb.place() > 0
        gdb.run("monitor halt")
        gdb.run("trace live")
        assert gdb.place() == -1
        target, own = (re.search(r"0x[0-9a-f]+", gdb.run(command)) for command in ("monitor reg pc", "print/x $pc"))
        assert target is not None and own is not None and int(target[0], 16) == int(own[0], 16)
        gdb.run("reverse-stepi")
        power_off(rig)
        assert unreadable in gdb.run("trace live")
        assert gdb.place() > 0
        assert "<_start+0>" in gdb.run("trace history 1,2")


def test_what_is_no_stub_is_told_in_one_line(rig: Rig) -> None:
    with typed(rig, traced=False) as gdb:
        gdb.run("disconnect")
        with no_stub(b"HTTP/1.1 400 Bad Request\r\n\r\n<html>$5</html>") as (port, _):
            said = without_prompts(gdb.run(f"trace connect localhost:{port}"))
        wrong = f"no OpenOCD and no other gdb stub at localhost:{port}: what is there does not speak gdb's protocol"
        assert said.startswith(wrong)
        gdb.run("set remotetimeout 2")  # which is gdb's own
        with no_stub(None) as (port, asked):
            gdb.type(f"trace connect localhost:{port}")
            assert asked.wait(60)
            gdb.interrupt()
            assert "Quit" in gdb.answer()
        assert "Timeout limit to wait for target to respond is 2." in gdb.run("show remotetimeout")
        assert "_start ()" in gdb.run(f"trace connect localhost:{rig.gdb_port}")


@thorough("test_interrupts")
def test_goto_while_the_program_runs_leaves_nothing_behind(rig: Rig) -> None:
    with typed(rig) as gdb:
        gdb.run("continue&")
        for command in ("trace goto 5", "trace live"):
            assert "The program is running: stop it first" in gdb.run(command)
        assert "Cannot execute this command while the selected thread is running" in gdb.run("reverse-stepi")
        gdb.run("interrupt")
        deadline = time.monotonic() + 60
        while not re.search(r"\$\d+ = -1", gdb.run(POS)):  # an error while it runs
            assert time.monotonic() < deadline
        gdb.run("reverse-stepi")
        assert gdb.place() > 2000


def test_interrupts(tmp_path: Path) -> None:
    """While the trace is read out: nothing has changed. On a way of many short ones, because a condition is false."""
    elf = compile_program(tmp_path, PROGRAM)
    with Rig(elf, tmp_path / "rig", "--trace-size", "65536") as rig, typed(rig, traced=False) as gdb:
        gdb.run("trace start")
        gdb.fills_the_buffer(rig)
        gdb.reports()
        gdb.type("reverse-stepi")
        gdb.until("[reading trace: ")
        gdb.interrupt()
        assert "Quit" in gdb.answer()
        assert gdb.place() == -1
        assert '"scalars"' in gdb.run("show print frame-arguments")
        gdb.run("reverse-stepi")  # the trace is read out: what is interrupted next is the way
        gdb.run(f"python exec({FALSE!r})")
        gdb.run("break shift if $false() || $trace_pos == 1")
        gdb.type("reverse-continue")
        gdb.until(f"[false {MANY} times]")
        gdb.interrupt()
        said = gdb.answer()
        assert "SIGINT" in said or "Error in testing breakpoint condition:\nQuit" in said, "gdb's own, in the condition"
        assert gdb.place() > 0


@thorough("test_interrupts")
@ONE_GDB
def test_a_user_who_thinks_between_two_steps(gdb: str, rig: Rig) -> None:
    """Longer than a command may take before it is said how far it is."""
    with typed(rig, gdb=gdb) as session:
        session.run("reverse-stepi")
        time.sleep(FIRST_STEPPING_SECONDS + 0.1)
        session.run("reverse-stepi")
        assert session.place() > 2000
        assert "stepping, at number" not in session.said


def test_breakpoints_and_registers_are_right_in_the_present(rig: Rig) -> None:
    """Looked at through the debug port's side door, not through gdb."""
    registers = "info registers pc sp ra a0 mcycle mstatus trace_pos"
    with typed(rig) as gdb:
        before = gdb.run(registers)
        gdb.run("break classify")
        gdb.run("reverse-step")
        gdb.run("break fib")
        assert "Breakpoint 2" in gdb.run("reverse-continue")
        gdb.run("delete 2")
        gdb.run("load")
        assert "which cannot be changed; `trace live` returns to the present" in gdb.said
        gdb.run("trace live")
        values = r"^(?:\(gdb\) )*(\w+ +0x.*)$"
        assert re.findall(values, gdb.run(registers), re.M) == re.findall(values, before, re.M) != []
        words = [gdb.run(f"monitor mdh {name}") for name in ("0x80000056", "0x80000088")]
        code = [gdb.run(f"x/xh {name}") for name in ("0x80000056", "0x80000088")]
        for word, known in zip(words, code, strict=True):
            assert re.findall(r": (\w{4})\b", word) == re.findall(r":\s+0x(\w{4})", known)
        gdb.run("monitor reset halt")
        gdb.run("maintenance flush register-cache")
        assert "fib (n=" in gdb.run("continue")


@thorough("test_where_there_is_no_past_one_line_says_so_and_no_setting_changes")
def test_a_command_that_fails_before_it_goes_back_leaves_gdb_in_the_present(rig: Rig) -> None:
    with typed(rig) as gdb:
        for command, error in (
            ("reverse-next nosuch", 'No symbol "nosuch" in current context.'),
            ("trace goto 100000", "there is no number 100000"),
            ("trace goto nosuch", 'No symbol "nosuch" in current context.'),
        ):
            assert error in gdb.run(command)
            assert gdb.place() == -1
            assert "is on" in gdb.run("show print finish")
            assert re.search(r"\$\d+ = 2\b", gdb.run("print fib(3)"))  # that runs the target


OUTERMOST = """
frame = gdb.newest_frame()
while frame.older().type() != gdb.DUMMY_FRAME:
    frame = frame.older()
frame.select()
"""


@thorough("test_interrupts")
@newest_gdb
def test_a_function_that_the_user_called_and_a_breakpoint_interrupted(gdb: str, rig: Rig) -> None:
    """gdb 13 to 18 that keep the frame of such a call cannot find frames without sp: it is refused until it is gone."""
    call = ["break fib if n == 1", "print fib(3)", "delete", "stepi"]
    refused = ["reverse-stepi 5", "trace goto -1", "reverse-next", "reverse-continue", "trace goto fib"]
    ended = ["finish", "finish ", "finish  ", "reverse-stepi 5 ", f"{POS} ", "reverse-stepi", f"{POS}  ", "trace live"]
    given_up = [f"python exec({OUTERMOST!r})", "return", "info registers pc", "reverse-stepi 2", f"{POS}   "]
    commands = [*beginning(rig), *call, "backtrace", *refused, POS, "trace history", *ended]
    said = run_gdb(rig.elf, [*commands, *[f"{it}    " for it in call], "trace history ", *given_up], gdb=gdb)
    assert "<function called from gdb>" in said["backtrace"]
    for command in refused:
        assert said[command] == (
            "The function that you called has not returned, and gdb cannot find frames in the past while it keeps that"
            " call: let it return (`finish`), or give it up (`return` in its outermost frame), then go back.\n"
        )
    assert said[POS].split()[-1] == "-1"
    assert "finish (value" in said["finish  "]  # where the call was made
    places = [int(said[f"{POS}{it}"].split()[-1]) for it in (" ", "  ")]
    assert places[0] - places[1] == 1 and places[1] > 2000
    assert "<finish>" in said["info registers pc"]
    newest = int(said["trace history "].split("\n")[-2].split("\t")[0])
    assert int(said[f"{POS}   "].split()[-1]) == newest - 1
    assert not any("not saved" in it and "PC not saved" not in it for it in said.values())


@thorough("gdbext/test_programs.py::test_the_past_follows_a_program_that_is_loaded_in_it")
def test_loaded_again_in_the_past(rig: Rig) -> None:
    commands = [*beginning(rig), "reverse-step", f"{SOURCE} ", "show osabi", "show print finish", "bt"]
    said = run_gdb(rig.elf, [*commands, f"trace connect localhost:{rig.gdb_port} ", "info registers pc"])
    assert "gdb is no longer connected" in said[f"{SOURCE} "]
    assert '"auto"' in said["show osabi"] and "is on" in said["show print finish"] and "No stack" in said["bt"]
    assert "<finish>" in said["info registers pc"]


@thorough("gdbext/mi/test_past.py::test_why_memory_is_not_known_is_said_where_there_is_no_prompt")
@newest_gdb
def test_why_memory_is_not_known_is_said_once_in_each_stay(gdb: str, rig: Rig, tmp_path: Path) -> None:
    """And not before somebody asks for it."""
    note, returns = "the trace shows what ran there, not what memory held", "; `trace live` returns to the present"
    with typed(rig, gdb=gdb) as session:
        session.run("set trace values off")
        for _ in range(2):
            for command in ("reverse-step", "reverse-next", "backtrace", "trace goto fib", "info locals", "x/2i $pc"):
                assert note not in session.run(command)
            said = session.run("print result")
            assert "Cannot access memory at address" in said and said.count(note) == said.count(returns) == 1
            assert note not in session.run("x/2xw &result")
            session.run("trace live")
            assert re.search(r"\$\d+ = 0\b", session.run("print result"))
        assert session.said.count(note) == 2
        session.run(f"trace save {tmp_path / 'x.rvt'}")
        for command in ("trace stop", "disconnect", f"trace open {tmp_path / 'x.rvt'}", "trace replay"):
            session.run(command)
        said = session.run("print result")
        assert said.count(note) == 1 and returns not in said


@ONE_GDB
def test_a_trace_alone_does_not_take_the_place_of_a_target(gdb: str, rig: Rig, tmp_path: Path) -> None:
    """It is refused, and there is a way back to the target."""
    with typed(rig, gdb=gdb) as session:
        kept = tmp_path / "kept.rvt"
        session.run(f"trace save {kept}")
        session.run("trace stop")
        stub = f"localhost:{rig.gdb_port}"
        for place in ("in the present", "in the past"):
            said = session.run("trace replay")
            assert f"connected to a target ({stub})" in said and "`trace live` connects it again" in said, place
            session.run("reverse-stepi")
        assert session.place() > 2000
        session.run("trace live")
        for back in ("trace live", "trace goto live", "trace connect"):
            session.run("disconnect")
            session.run(f"trace open {kept}")
            session.run("trace replay")
            assert session.place() > 2000
            assert "`trace connect` connects gdb to a target" in session.run("trace start")
            session.run(back)
            assert session.place() == -1
            assert "finish (value=" in session.run("frame")
        session.run("disconnect")
        deadline = time.monotonic() + 60
        while "finish (value=" not in session.run("frame"):  # OpenOCD takes one gdb, until it has noticed its end
            assert time.monotonic() < deadline
            session.run(f"target extended-remote :{rig.gdb_port}")
        assert f"`trace connect :{rig.gdb_port}` connects it again" in session.run("trace replay")
        session.run("trace connect")
        assert session.place() == -1
        assert "rvtrace is already between gdb and the target" in session.run("trace connect")
