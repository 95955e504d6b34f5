"""`trace history` of code that gdb cannot read, in the real gdb: kernel and process of a Linux capture."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.endtoend.command_line import printed
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.core_captures import sifive

KERNEL = "14591,14604"
MODIFIERS, HARTS = ("", "/r "), (0, 1)
GTOD = sifive("linux-static") / "gtod"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder, file = sifive("linux-static"), tmp_path_factory.mktemp("linux") / "x.rvt"
    words = ["--dialect", "sifive", "--src-bits", "2", "--elf", str(GTOD), "--maps", f"738={folder / 'gtod.map'}"]
    words += ["--kernel-pages", str(folder / "kmem"), "--vdso", str(folder / "gtod.vdso")]
    assert main(["import", str(sifive("linux-static.rtd")), *words, "-o", str(file)]) == 0
    yield file


@pytest.fixture(scope="module")
def shell(capture: Path) -> Callable[..., list[str]]:
    """What `rvtrace decode` prints, which disassembles in a gdb or objdump of its own."""
    return cache(lambda *words: printed("decode", capture, *words).splitlines())


def without_comments(lines: list[str]) -> list[str]:
    """Those on addresses that two instructions make: gdb has none where Python gives it the code."""
    return [line.partition(" # ")[0] for line in lines]


def rows(output: str) -> list[str]:
    return [line for line in output.splitlines() if "\t   0x" in line]


@pytest.fixture(scope="module", params=["of the program", "set by hand"])
def shown(request: pytest.FixtureRequest, capture: Path) -> dict[tuple[int, str], list[str]]:
    """What gdb lists of each hart with each modifier."""
    own = request.param == "of the program"
    commands = [*([] if own else ["set architecture riscv:rv64"]), SOURCE, f"trace open {capture}"]
    for hart in HARTS:
        commands += [f"set trace hart {hart}", *(listing(hart, modifier) for modifier in MODIFIERS)]
    said = run_gdb(GTOD if own else None, commands)
    return {(hart, modifier): rows(said[listing(hart, modifier)]) for hart in HARTS for modifier in MODIFIERS}


def listing(hart: int, modifier: str) -> str:
    """In a spelling of its own."""
    return f"trace history {modifier}{KERNEL}{' ' * hart}"


@pytest.mark.parametrize("modifier", MODIFIERS)
@pytest.mark.parametrize("hart", HARTS)
def test_it_reads_as_in_the_shell(
    hart: int, modifier: str, shown: dict[tuple[int, str], list[str]], shell: Callable[..., list[str]]
) -> None:
    lines = shown[hart, modifier]
    assert len(lines) == 14
    assert not [line for line in lines if "Cannot access memory" in line]
    assert lines == without_comments(shell(*f"{modifier}{KERNEL} --hart {hart}".split()))


def test_functions_of_the_process_have_their_names_without_its_elf(
    capture: Path, shell: Callable[..., list[str]]
) -> None:
    everything = shell("--hart", "1")
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
