"""`--json` says what the lines say, with the names of docs/json.md; `--quiet` leaves errors and what was asked for."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.support.text import hint, warning
from tests.console.verbs import VERBS, option_names
from tests.gdbext.gdb_process import HOME
from tests.helpers import reference_streams

PAGE = (HOME / "docs" / "json.md").read_text(encoding="utf-8")
STREAM, ELF = str(reference_streams.FOLDER / "median.1.nex"), str(reference_streams.FOLDER / "median.elf")
RAW = [STREAM, "--ntrace", "--elf", ELF]
LOG = [
    "--elf",
    str(reference_streams.FOLDER / "t1.elf"),
    "--pcs",
    str(reference_streams.FOLDER / "t1.pcs.gz"),
    "--limit",
    "2000",
]
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command, to what it writes."""

    def run(*words: object) -> tuple[str, str]:
        assert main(list(map(str, words))) == 0
        said = capsys.readouterr()
        return said.out, said.err

    return run


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(row) for row in text.splitlines()]


def names(value: object) -> Iterator[str]:
    """All names of fields, but for columns of messages, which docs/messages.md has."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name != "fields":
                yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)


def explained(rows: list[dict[str, Any]]) -> bool:
    missing = {name for name in names(rows) if f"`{name}`" not in PAGE}
    assert not missing
    return True


def test_decode(run: Run) -> None:
    shown, said = run("decode", *RAW, "/r")
    objects, also_said = run("decode", *RAW, "--json")
    rows = rows_of(objects)
    assert said.splitlines()[2:] == also_said.splitlines()[2:] and explained(rows)
    assert len(rows) == len(shown.splitlines()) > 1000
    for line, row in zip(shown.splitlines(), rows, strict=True):
        place = f" <{row['func']}+{row['offset']}>" if "func" in row else ""
        number, address, opcodes, text = line.split("\t", 3)
        assert (number, address) == (str(row["number"]), f"   {row['addr']}{place}:")
        assert (opcodes.strip(), text) == (row["opcodes"], row["inst"]) and row["hart"] == 0
    assert rows_of(run("decode", *RAW, "5,+2", "--json")[0]) == rows[4:6]


def test_events(run: Run) -> None:
    lines = run("decode", *RAW, "--events")[0].splitlines()
    rows = rows_of(run("decode", *RAW, "--events", "--json")[0])
    assert explained(rows) and [row["number"] for row in rows] == list(range(1, len(lines) + 1))
    for line, row in zip(lines, rows, strict=True):
        number, kind, offset, *_ = line.split()
        assert (number, kind, offset) == (str(row["position"]), row["kind"], f"offset={row['trace-byte']:#x}")
        assert line.endswith(f"# {row['text']}")


def test_dump(run: Run) -> None:
    lines = run("dump", STREAM, "--ntrace", "--raw")[0].splitlines()
    rows = rows_of(run("dump", STREAM, "--ntrace", "--raw", "--json")[0])
    assert explained(rows) and {row["sink"] for row in rows} == {STREAM}
    for line, row in zip(lines, rows, strict=True):
        columns = [f"{name}={value}" for name, value in row["fields"].items()]
        meaning = f" # {row['text']}" if "text" in row else ""
        head = f"{row['number']}\t0x{row['trace-byte']:08x} {row['name']}"
        assert line == " ".join([head, *columns, f"RAW={row['bytes']}"]) + meaning


def test_import(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.rvt"
    out, said = run("import", *RAW, "-o", file, "--json")
    [facts] = rows_of(out)
    assert said == "" and explained([facts]) and facts["file"] == str(file) and facts["elf"] == ELF
    size = Path(STREAM).stat().st_size
    assert facts["sinks"][0]["bytes"] == facts["trace"]["bytes"] == size
    assert sum(facts["trace"][part] for part in ("decoded", "idle", "skipped")) == size
    instructions = len(run("decode", file)[0].splitlines())
    assert [(hart["hart"], hart["instructions"]) for hart in facts["harts"]] == [(0, instructions)]
    assert run("import", *RAW, "-o", file, "--quiet") == ("", "")


def test_encode(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.nex"
    out, said = run("encode", *LOG, "-o", file, "--json")
    [facts] = rows_of(out)
    assert said == "" and explained([facts])
    assert (facts["file"], facts["bytes"], facts["instructions"]) == (str(file), file.stat().st_size, 2000)
    summary = run("encode", *LOG)[1]
    assert f"2000 instructions: {facts['items']} messages, {facts['bytes']} bytes" in summary
    rows = rows_of(run("encode", *LOG, "--dump", "--json")[0])
    assert explained(rows) and len(rows) == len(run("encode", *LOG, "--dump")[0].splitlines())
    assert run("encode", *LOG, "-o", file, "--quiet") == ("", "")


@pytest.mark.parametrize("words", [["import", *RAW], ["encode", *LOG]], ids=["import", "encode"])
def test_two_things_on_standard_output_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "-o", "-", "--json"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "rvtrace: --json and -o - would both write to standard output\n")


def test_quiet_keeps_what_was_asked_for_and_what_goes_wrong(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["decode", *RAW, "1,3"], ["dump", STREAM, "--ntrace", "1,3"]):
        assert run(*words, "--quiet") == (run(*words)[0], "")
    assert main(["decode", str(tmp_path / "none.rvt"), "--quiet"]) == 1
    assert capsys.readouterr().err.startswith("rvtrace: ")
    CommandOutput(OutputOptions(quiet=True)).say(
        ["trace:    RV64", warning("it is another"), hint("so it fits"), "note: no"]
    )
    assert capsys.readouterr().err.splitlines() == ["warning: it is another", "hint:     so it fits"]


@pytest.mark.parametrize(("option", "first"), [("--json", '{"event": "serving", '), ("--quiet", "")])
def test_sim(option: str, first: str, tmp_path: Path) -> None:
    """With --quiet nothing is said up to the end."""
    told = tmp_path / "x.cfg"
    words = ["sim", "--elf", ELF, option, "--write-openocd", str(told), "--unix", str(tmp_path / "s")]
    command = [sys.executable, "-m", "rvtrace_gdb", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HOME) as process:
        assert process.stdout is not None
        if first:
            line = process.stdout.readline()
        else:
            while not (tmp_path / "s").exists() and process.poll() is None:
                pass
            line = ""
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=60)
    assert (rest, said, process.returncode) == ("", "", 0) or (not first and process.returncode in (0, -signal.SIGTERM))
    assert line.startswith(first) and bool(line) == bool(first)
    if first:
        [facts] = rows_of(line)
        assert explained([facts]) and facts["listening"] == str(tmp_path / "s") and not facts["running"]
        assert facts["openocd"] == told.read_text() and re.fullmatch(r"0x[0-9a-f]+", facts["addr"])


def test_the_page_has_every_command_that_has_the_option() -> None:
    """And no other. `-` stands where there is no JSON."""
    cells = dict(re.findall(r"^\| `rvtrace ([a-z -]+)` \| (.*?) \|", PAGE, re.M))
    options = {verb: option_names([verb]) for verb in VERBS}
    assert {verb: cell != "-" for verb, cell in cells.items()} == {
        verb: "--json" in names for verb, names in options.items() if {"--json", "--quiet"} & set(names)
    }
