"""Where the program stands, it has come to, though what is there has not run: assertions count it.

How often the program came somewhere is what gdb says that stopped it there, each time.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.console.scripts.script_runs import run_script
from tests.console.scripts.test_run import Board
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import compile_program, demo

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "vectored.c"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = tmp_path_factory.mktemp("standing")
    with Rig(demo(folder), folder / "rig") as rig:
        yield Board(rig, folder)


STANDS = "the program is stopped at finish, about to run it, which counts"


def test_a_function_that_is_about_to_run(board: Board, tmp_path: Path) -> None:
    done = board.run(
        tmp_path,
        "run until *finish within 60s\nassert not ran finish\nassert ran finish\nassert calls finish == 1\n"
        "assert calls finish < 1\nassert order main finish\nassert not ran done\nset count = calls finish\n"
        "assert value $count == 1\nassert no loss\nassert not ran *&finish\n"
        "gdb stepi\nassert calls finish == 1\nassert not ran finish\nassert ran finish\n",
    )
    assert done.asserts == [False, True, True, False, True, True, True, True, False, True, False, True]
    assert done.status == 1
    said = {(check["text"], check["why"]) for check in done.report["asserts"]}
    assert ("assert not ran finish", STANDS) in said and ("assert ran finish", STANDS) in said
    assert ("assert not ran finish", "finish ran once") in said and ("assert ran finish", "") in said
    assert f"  assert ran finish: 1; {STANDS}" in done.out
    assert f": assert not ran finish: {STANDS}\n" in done.err


def test_it_counts_with_those_that_ran(board: Board, tmp_path: Path) -> None:
    """gdb stops there three times."""
    text = "".join(f"run until *fib within 60s\nassert calls fib == {count}\n" for count in range(1, 4))
    done = board.run(tmp_path, f"{text}stop\nassert calls fib == 3\nassert calls *fib == 3\nassert calls fib != 2")
    assert (done.status, done.asserts) == (0, [True] * 6), done.err


@thorough("test_it_counts_with_those_that_ran")
def test_of_a_capture_file_it_does_not(board: Board, tmp_path: Path) -> None:
    """What ran behind its end nobody knows."""
    file = tmp_path / "x.rvt"
    text = f"run until *finish within 60s\nstop\nassert ran finish\nsave {file}\nopen {file}\n"
    done = board.run(tmp_path, f"{text}assert ran finish\nassert not ran finish")
    assert done.asserts == [True, False, True]


@thorough("gdbext/replay/test_position_display.py::test_an_event_is_named")
def test_an_interrupt_that_has_just_come_to_its_handler(tmp_path: Path) -> None:
    elf = compile_program(tmp_path, PROGRAM)
    text = (
        "connect\nload\nstart\nrun until *on_timer within 60s\nassert interrupt latency of on_timer < 100\n"
        "set first = interrupt latency of on_timer\ngdb stepi\nassert interrupt latency of on_timer <= $first\n"
    )
    with Rig(elf, tmp_path / "rig") as rig:
        options = ["--elf", elf, "--target", rig.target_file, "--connect", f":{rig.gdb_port}"]
        done = run_script(tmp_path, text, *options)
    assert (done.status, done.asserts) == (0, [True, True]), done.err
    first, second = (check["measured"] for check in done.report["asserts"])
    assert first == second
