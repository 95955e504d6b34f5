"""Places in the program at the shell: lines, and functions of a file, as `trace find` in gdb has them."""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"
TWO, REMOVED = CASES / "same-names", CASES / "removed-code"


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Code at address 0."""
    capture = tmp_path_factory.mktemp("removed") / "o.rvt"
    program = ["--elf", str(REMOVED / "app.elf"), "--pcs", str(REMOVED / "pcs.txt")]
    assert main(["encode", *program, "--ntrace", "--limit", "17", "-o", str(capture), "--quiet"]) == 0
    return capture


def _find(capture: Path, elf: Path, place: str, capsys: pytest.CaptureFixture[str]) -> list[int] | str:
    """Return the numbers of the instructions, or what is wrong."""
    capsys.readouterr()
    code = main(["find", str(capture), place, "--elf", str(elf), "--quiet"])
    out, err = capsys.readouterr()
    assert code == bool(err) and err.count("\n") <= 1
    return err.strip().removeprefix("rvtrace: ") or [int(one) for one in re.findall(r"^\d+\t@(\d+)\t", out, re.M)]


@pytest.mark.parametrize(("place", "found"), [
    ("a/util.c:5", [5]), ("b/util.c:5", [11]), ("util.c:5", [5, 11]), ("./a/util.c:5", [5]), ("'a/util.c':5", [5]),
    ("two/a/util.c:5", [5]), ("util.c:util_a", [5]), ("a/util.c:util_a", [5]), ("b/util.c:util_b", [11]),
    ("'util.c':util_b", [11]), ("a/util.c:util_a,a/util.c:util_a", [5]), ("*a/util.c:util_a", [5]),
])  # fmt: skip
def test_two_files_of_one_name(place: str, found: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """As `trace find` in gdb: the README of the public reports has what is right."""
    assert _find(TWO / "o.rvt", TWO / "t.elf", place, capsys) == found


@pytest.mark.parametrize(("place", "said"), [
    ("nosuchdir/util.c:5", r"nosuchdir/util.c:5: the program has no source file nosuchdir/util.c; it has /.*/a/util.c,"
     r" /.*/b/util.c"),
    ("nosuch.c:5", r"nosuch.c:5: the program has no source file nosuch.c"),
    ("a/util.c:999", r"a/util.c:999: no code of the program is from that line"),
    ("b/util.c:util_a", r"b/util.c:util_a: b/util.c has no function util_a, another file has"),
    ("nosuch.c:util_a", r"nosuch.c:util_a: the program has no source file nosuch.c"),
    ("a/util.c:nothing", r"a/util.c:nothing: neither a function of the program, nor an address"),
])  # fmt: skip
def test_what_is_not_there_is_named(place: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _find(TWO / "o.rvt", TWO / "t.elf", place, capsys)
    assert isinstance(found, str) and re.fullmatch(said, found), found


@pytest.mark.parametrize(("words", "said"), [
    *((f"{verb} FILE util_a", "util_a is a function, and has no value: `rvtrace calls-of FILE util_a` shows its calls,"
       " `rvtrace why FILE '$pc' --branches --at N` why instruction N ran") for verb in ("why", "values", "who-wrote")),
    ("why FILE utl_a", 'utl_a: No symbol "utl_a" in current context. Did you mean util_a?'),
    ("why FILE nosuch", 'nosuch: No symbol "nosuch" in current context.'),
    ("calls-of FILE utl_a", "utl_a: neither a function of the program, nor an address. Did you mean util_a?"),
    ("values FILE utl_a", 'utl_a: No symbol "utl_a" in current context. Did you mean util_a?'),
])  # fmt: skip
def test_name_of_a_function_and_a_name_like_it(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, elf = str(TWO / "o.rvt"), str(TWO / "t.elf")
    capsys.readouterr()
    assert main([*(capture if it == "FILE" else it for it in words.split()), "--elf", elf, "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"rvtrace: {said.replace('FILE', capture).replace('ELF', elf)}\n")


def test_lines_of_functions_that_the_linker_removed(removed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They stand at address 0 in the line table, where the function `used` is."""
    assert _find(removed, REMOVED / "app.elf", "app.c:10", capsys) == [5, 12]
    for line in (3, 5, 14, 16, 18):
        said = _find(removed, REMOVED / "app.elf", f"app.c:{line}", capsys)
        assert said == f"app.c:{line}: no code of the program is from that line"


def test_a_stripped_program(removed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    elf = tmp_path / "app.elf"
    command = ["riscv64-unknown-elf-strip", "--strip-debug", "-o", str(elf), str(REMOVED / "app.elf")]
    subprocess.run(command, check=True)
    why = "it has no debug information (compile with -g, and do not strip it)"
    assert _find(removed, elf, "app.c:10", capsys) == f"app.c:10: no line is known: {elf}: {why}"
    assert _find(removed, elf, "app.c:used", capsys) == f"app.c:used: no line is known: {elf}: {why}"


def test_a_function_of_a_file_elsewhere(removed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    elf = str(REMOVED / "app.elf")
    assert main(["coverage", str(removed), "app.c:used", "--elf", elf, "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["         2         5 of 5 100%  used"]
    assert main(["coverage", str(removed), "x.c:used", "--elf", elf, "--quiet"]) == 1
    assert capsys.readouterr().err.startswith("rvtrace: x.c:used: the program has no source file x.c")
    begin = ["encode", "--elf", elf, "--pcs", str(REMOVED / "pcs.txt"), "--ntrace", "--start", "app.c:used"]
    assert main([*begin, "-o", str(tmp_path / "x.rvt"), "--quiet"]) == 0
    assert _find(tmp_path / "x.rvt", REMOVED / "app.elf", "used", capsys) == [1, 8]
