"""What docs/diff.md shows is what gdb prints of two such runs; and what gdb's other ways to ask print."""

from pathlib import Path

import pytest

from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import EXAMPLES, compile_program, symbol_address
from tests.helpers.page_sessions import sessions, shown
from tests.session.board import Board, board
from tests.tutorials.page import is_printed

MEMORY = '[[memory]]\naddress = 0x80000000\nsize = 0x80000\nkind = "ram"\n'
[PAGE] = sessions("diff.md")


def at_main(folder: Path, elf: Path, sample: int) -> Board:
    """A board that is halted at `main`, with another sample."""
    made = board(folder, elf)
    hart = made.machine.hart
    while hart.pc != symbol_address(elf, "main"):
        hart.step()
    hart.csr.debug.dpc = hart.pc
    made.machine.bus.write(symbol_address(elf, "samples") + 9, 1, sample)
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the program, good.rvt and bad.rvt, from `main` to `finish`."""
    folder = tmp_path_factory.mktemp("heater")
    elf = compile_program(folder, EXAMPLES / "heater.c").rename(folder / "heater.elf")
    for name, sample in (("good", 39), ("bad", 71)):
        made = at_main(folder, elf, sample)
        counted, steps = at_main(folder, elf, sample).machine.hart, 0
        while counted.pc != symbol_address(elf, "finish"):
            counted.step()
            steps += 1
        session, context = Session(connect=made.connect, environ={}), made.describe(extra=MEMORY)
        session.start(context, {})
        made.run(steps)
        session.stop(context=context)
        session.save(folder / f"{name}.rvt", context)
    return folder


def test_gdb_prints_what_the_page_says(runs: Path) -> None:
    others = ["trace diff bad.rvt 2,2", "trace diff", "trace diff +", "trace diff -hart 1 nothing.rvt"]
    begin = [SOURCE, f"cd {runs}", "set width 0"]
    machine = 'interpreter-exec mi "-rvtrace-diff --begin 2 --count 1 bad.rvt"'
    said = run_gdb(runs / "heater.elf", [*begin, *(command for command, _ in PAGE), *others, machine])
    for command, lines in PAGE:
        lines = [line.replace("B: 0x30", "B: ...") for line in lines]  # memory is not saved here
        assert is_printed(lines, "\n".join(shown(said[command]))), said[command]
    rows = shown(said["trace diff bad.rvt"])[-2:]
    assert shown(said["trace diff bad.rvt 2,2"])[-1] == rows[1]
    assert said["trace diff"].strip() == "At the end of the list of differences."
    assert "nothing.rvt: cannot be read: No such file or directory" in said["trace diff -hart 1 nothing.rvt"]
    assert 'differences=[{number="2",kind="differs",position="837"' in said[machine]
    assert "diff={" in said[machine] and 'value="40"' in said[machine]
