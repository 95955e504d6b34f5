"""Names of C++ and Rust at the shell: what gdb prints of the same capture, and finds by the same names."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, run_gdb

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"
CPP, RUST = CASES / "cpp-names", CASES / "rust"

LISTS = {
    "decode": "trace history 1,1000000",
    "functions": "trace functions 1,1000000",
    "calls": "trace calls",
    "events": "trace events 1,1000000",
}
FOUND_IN_CPP = [
    "ns::add", "add", "ns::add<int, long>", "'ns::add<int,long>(int, long)'", "ns::add<char,short>", "box",
    "ns::box::box", "'box::box(int, int)'", "ns::box::operator()", "'operator()(int) const'", "ns::box::operator<",
    "'operator <'",
    "'ns::(anonymous namespace)::hidden'", "hidden", "'hidden(int, int)'", "main", "'main()'", "finish",
    "app.cpp:hidden", "app.cpp:ns::add", "_ZN2ns3addIilEElT_T0_",
]  # fmt: skip
FOUND_IN_RUST = ["app::work::twice", "app::rust_main", "choose", "rust_main", "_RNvNtCsli3NGoEiSOP_3app4work5twice"]


class Traced(NamedTuple):
    """A program, a capture, and what gdb prints of it."""

    elf: Path
    capture: Path
    said: dict[str, str]


@pytest.fixture(scope="module")
def rust_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rust")
    script, capture = folder / "x.rvts", folder / "x.rvt"
    script.write_text("start\nrun until finish\nstop\n")
    assert main(["run", str(script), "--sim", "--elf", str(RUST / "app.elf"), "-o", str(capture), "--quiet"]) == 0
    return capture


@pytest.fixture(scope="module", params=["app.elf", "nodebug.elf", "rust"])
def traced(request: pytest.FixtureRequest) -> Traced:
    is_rust = request.param == "rust"
    elf = RUST / "app.elf" if is_rust else CPP / request.param
    capture = request.getfixturevalue("rust_capture") if is_rust else CPP / "x.rvt"
    names = FOUND_IN_RUST if is_rust else FOUND_IN_CPP if request.param == "app.elf" else []
    asked = [*LISTS.values(), "trace coverage -all", *(f"trace find {name} 1,1000000" for name in names)]
    return Traced(elf, capture, run_gdb(elf, [SOURCE, f"trace open {capture}", *asked]))


def _shell(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("words", LISTS)
def test_the_shell_prints_the_names_of_gdb(traced: Traced, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _shell(capsys, words, traced.capture, "--elf", traced.elf, "--quiet")
    assert found == traced.said[LISTS[words]].strip("\n").splitlines()
    assert not any("_ZN" in line or "_RN" in line for line in found)


def test_coverage_has_the_names_of_gdb(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    row = re.compile(r" (\d+ of \d+) +\d+%  (\S.*)$", re.M)
    found = _shell(capsys, "coverage", traced.capture, "--elf", traced.elf, "--quiet", "--all")
    assert sorted(row.findall("\n".join(found))) == sorted(row.findall(traced.said["trace coverage -all"]))


def test_functions_are_found_by_their_names(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    for asked, said in traced.said.items():
        if asked.startswith("trace find "):
            name = asked.removeprefix("trace find ").removesuffix(" 1,1000000").strip("'")
            found = _shell(capsys, "find", traced.capture, name, "--elf", traced.elf, "--quiet")
            assert found == said.strip("\n").splitlines(), asked
