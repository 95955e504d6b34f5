"""Lines of `trace history` against gdb's own `disassemble` and `list`, in the real gdb, from a capture made here."""

import re
from collections.abc import Iterator

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo

ALL = "1,100000"
ROW = re.compile(r"^\d+\t(?:=> |   )(0x[0-9a-f]+ <.*)$", re.M)
OWN = re.compile(r"^(?:=> |   )(0x[0-9a-f]+ <.*)$", re.M)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("listing")
    elf = demo(folder)
    functions = ["_start", "main", "fib", "classify", "add", "sub", "mul", "on_trap", "start_timer"]
    with Rig(elf, folder / "rig") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        commands += ["trace start", "break finish", "continue", "list demo.c:1,100"]
        commands += [f"trace history {modifier}{ALL}" for modifier in ("", "/r ", "/f ", "/s ")]
        commands += [f"disassemble {name}" for name in functions] + [f"disassemble /r {name}" for name in functions]
        yield run_gdb(elf, commands)


def own(outputs: dict[str, str], command: str) -> set[str]:
    """Rows of gdb's own `disassemble` of all functions, where the function's name is left out."""
    return {row for key, text in outputs.items() if re.match(rf"{command} \w", key) for row in OWN.findall(text)}


@pytest.mark.parametrize(("modifier", "command"), [("", "disassemble"), ("/r ", "disassemble /r")])
def test_an_instruction_reads_as_in_disassemble(modifier: str, command: str, outputs: dict[str, str]) -> None:
    listed = set(ROW.findall(outputs[f"trace history {modifier}{ALL}"]))
    assert len(listed) > 100
    assert {re.sub(r"<[\w.]*\+", "<+", row, count=1) for row in listed} <= own(outputs, command)


def test_f_leaves_the_function_out(outputs: dict[str, str]) -> None:
    assert set(ROW.findall(outputs[f"trace history /f {ALL}"])) <= own(outputs, "disassemble")


def test_s_shows_the_source_before_its_instructions(outputs: dict[str, str]) -> None:
    listing = outputs[f"trace history /s {ALL}"]
    source = dict(line.split("\t", 1) for line in outputs["list demo.c:1,100"].splitlines() if "\t" in line)
    shown = re.findall(r"^(?:\S*/)?demo\.c:(\d+)\t(.*)$", listing, re.M)
    assert len(set(shown)) > 20
    assert all(source[number] == text for number, text in shown)
    fib = listing.index("<fib+0>")
    assert "static int fib" in listing[fib - 200 : fib]


def test_s_does_not_repeat_a_line_it_has_just_shown(outputs: dict[str, str]) -> None:
    """The first instruction of classify() belongs to two lines, the next to one of them: gdb shows that once."""
    listing = outputs[f"trace history /s {ALL}"]
    begin = listing.index("<classify+0>")
    assert "demo.c" not in listing[begin : listing.index("<classify+4>", begin)]
