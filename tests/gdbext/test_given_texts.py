"""`trace history` of code that gdb cannot read, in the real gdb: kernel and process of a Linux capture."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.endtoend.command_line import printed
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.core_captures import sifive
from tests.helpers.without_guesses import without_guesses

KERNEL = "14591,14604"
LISTED = [(0, "/r "), *long_only((1, ""), (0, ""), (1, "/r "))]
"""Harts, and modifiers of their listings."""
MAIN, OF_MAIN = "<main+0>", "115035,+7"
"""What hart 1 runs there."""
GTOD = sifive("linux-static") / "gtod"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder, file = sifive("linux-static"), tmp_path_factory.mktemp("linux") / "x.rvt"
    words = ["--dialect", "sifive", "--src-bits", "2", "--elf", str(GTOD), "--maps", f"738={folder / 'gtod.map'}"]
    words += ["--kernel-pages", str(folder / "kmem"), "--vdso", str(folder / "gtod.vdso")]
    with without_guesses():
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


def of_kernel(shell: Callable[..., list[str]], hart: int, modifier: str) -> list[str]:
    return shell(*f"{modifier}{KERNEL} --hart {hart}".split())


@pytest.fixture(scope="module", params=["set by hand", *long_only("of the program")])
def said(request: pytest.FixtureRequest, capture: Path) -> dict[str, str]:
    """What gdb lists of each hart; without a program also of the process, and at last without an architecture."""
    own = request.param == "of the program"
    commands = [*([] if own else ["set architecture riscv:rv64"]), SOURCE, f"trace open {capture}"]
    for hart, modifier in LISTED:
        commands += [f"set trace hart {hart}", listing(hart, modifier)]
    if not own:
        commands += ["set trace hart 1 ", f"trace history {OF_MAIN}"]
        commands += ["set trace hart", "set architecture auto", "trace history 14604,14605"]
    return run_gdb(GTOD if own else None, commands)


def listing(hart: int, modifier: str) -> str:
    """In a spelling of its own."""
    return f"trace history {modifier}{KERNEL}{' ' * hart}"


@pytest.mark.parametrize(("hart", "modifier"), LISTED)
def test_it_reads_as_in_the_shell(
    hart: int, modifier: str, said: dict[str, str], shell: Callable[..., list[str]]
) -> None:
    lines = rows(said[listing(hart, modifier)])
    assert len(lines) == 14
    assert not [line for line in lines if "Cannot access memory" in line]
    assert lines == without_comments(of_kernel(shell, hart, modifier))


@pytest.mark.parametrize("said", ["set by hand"], indirect=True)
def test_functions_of_the_process_have_their_names_without_its_elf(
    said: dict[str, str], shell: Callable[..., list[str]]
) -> None:
    shown = rows(said[f"trace history {OF_MAIN}"])
    assert shown == without_comments(shell(OF_MAIN, "--hart", "1"))
    assert MAIN in shown[0]


@pytest.mark.parametrize("said", ["set by hand"], indirect=True)
def test_a_gdb_for_another_architecture_shows_the_bytes(said: dict[str, str]) -> None:
    assert [line.split("\t", 2)[2] for line in rows(said["trace history 14604,14605"])] == [
        ".2byte\t0x6142",
        ".4byte\t0x10200073",
    ]
