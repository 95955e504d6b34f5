"""`trace history` of code that gdb cannot read, in the real gdb: kernel and process of a Linux capture."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.main import main
from tests.gdb.running import SOURCE, run_gdb
from tests.vectors import sifive

KERNEL = "14591,14604"
GTOD = sifive("linux-static") / "gtod"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder, file = sifive("linux-static"), tmp_path_factory.mktemp("linux") / "x.rvt"
    words = ["--dialect", "sifive", "--src-bits", "2", "--elf", str(GTOD), "--maps", f"738={folder / 'gtod.map'}"]
    words += ["--kernel-pages", str(folder / "kmem"), "--vdso", str(folder / "gtod.vdso")]
    assert main(["import", str(sifive("linux-static.rtd")), *words, "-o", str(file)]) == 0
    yield file


def shell(capsys: pytest.CaptureFixture[str], capture: Path, *words: str) -> list[str]:
    """What `rvtrace decode` prints, which disassembles in a gdb or objdump of its own."""
    capsys.readouterr()
    assert main(["decode", str(capture), *words]) == 0
    return capsys.readouterr().out.splitlines()


def without_comments(lines: list[str]) -> list[str]:
    """Those on addresses that two instructions make: gdb has none where Python gives it the code."""
    return [line.partition(" # ")[0] for line in lines]


def rows(output: str) -> list[str]:
    return [line for line in output.splitlines() if "\t   0x" in line]


@pytest.mark.parametrize("architecture", ["of the program", "set by hand"])
@pytest.mark.parametrize("modifier", ["", "/r "])
@pytest.mark.parametrize("hart", [0, 1])
def test_it_reads_as_in_the_shell(
    architecture: str, modifier: str, hart: int, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = architecture == "of the program"
    first = [] if own else ["set architecture riscv:rv64"]
    listing = f"trace history {modifier}{KERNEL}"
    commands = [*first, SOURCE, f"trace open {capture}", f"set trace hart {hart}", listing]
    shown = rows(run_gdb(GTOD if own else None, commands)[listing])
    assert len(shown) == 14
    assert not [line for line in shown if "Cannot access memory" in line]
    assert shown == without_comments(shell(capsys, capture, *f"{modifier}{KERNEL} --hart {hart}".split()))


def test_functions_of_the_process_have_their_names_without_its_elf(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = shell(capsys, capture, "--hart", "1")
    number = next(n for n, line in enumerate(everything, 1) if "<main+0>" in line)
    listing = f"trace history {number},+7"
    commands = ["set architecture riscv:rv64", SOURCE, f"trace open {capture}", "set trace hart 1", listing]
    shown = rows(run_gdb(None, commands)[listing])
    assert shown == without_comments(everything[number - 1 : number + 6])
    assert "<main+0>" in shown[0]


def test_a_gdb_for_another_architecture_shows_the_bytes(capture: Path) -> None:
    outputs = run_gdb(None, [SOURCE, f"trace open {capture}", "trace history 14604,14605"])
    assert [line.split("\t", 2)[2] for line in rows(outputs["trace history 14604,14605"])] == [
        ".2byte\t0x6142",
        ".4byte\t0x10200073",
    ]
