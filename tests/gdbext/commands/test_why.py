"""`trace why` in the real gdb: what docs/why.md shows, and the same at the shell."""

import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.example_captures import example_capture
from tests.helpers.page_sessions import sessions, shown
from tests.tutorials.page import is_printed

MI = 'interpreter-exec mi "-rvtrace-why --depth 1 calibration.offset"'
MORE = (
    "trace goto end", "trace why -depth 2 calibration.offset", "trace why -row 4", "trace why -rows 1,2",
    "trace why -branches -thin $a5", "trace why -row 99", "trace why", "trace why -depth 0 sum", "trace why $pc",
    "trace goto -why 99", "trace why main", "trace log *0x8000010e channel", MI,
)  # fmt: skip
QUESTION = "calibration.offset"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example_capture(tmp_path_factory.mktemp("why"), "calibration")


def test_page_and_shell(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = next(capture.parent.glob("*.elf"))
    page = [it for session in sessions("why.md") for it in session]
    commands = [f"trace open {capture}", "trace replay", *(it.command for it in page), *MORE]
    out = run_gdb(elf, [SOURCE, *commands])
    for exchange in page:
        printed = shown(out[exchange.command])
        assert is_printed(exchange.lines, "\n".join(printed)), f"{exchange.command}\n{printed}"

    assert main(["why", str(capture), QUESTION]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == shown(out[f"trace why {QUESTION}"])[:-2]
    channel = out["trace log *0x8000010e channel"]
    assert [int(it) for it in re.findall(r"channel = ([0-5])\b", channel)] == list(range(6))
    assert out["trace why main"].startswith("trace why: main is a function, and has no value: `trace calls-of main` ")

    assert main(["why", str(capture), QUESTION, "--json", "--branches"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [it["number"] for it in rows] == list(range(1, len(rows) + 1))
    assert rows[len(lines)]["kind"] == "called"

    cut = shown(out["trace why -depth 2 calibration.offset"])
    assert [line for line in cut if line.endswith(" ...")]
    following = len([line for line in cut if line[0].isdigit()]) + 1
    deeper = shown(out["trace why -row 4"])
    assert re.match(rf"{following}\tslot\[5\] = 6 .*as in row 4", deeper[0])
    assert shown(out["trace why -rows 1,2"])[:2] == cut[:2]
    assert out["trace why -row 99"].startswith("-row 99: the answer has the rows 1 to ")
    assert out["trace why"].startswith("trace why: what? ")
    assert "-depth takes a number from 1 to 1000" in out["trace why -depth 0 sum"]
    assert out["trace why $pc"].startswith("every instruction writes the pc")
    assert "fewer rows" in out["trace goto -why 99"]
    assert '^done,length="' in out[MI]
    assert 'kind="' in out[MI]


def test_in_a_test_of_python(capture: Path) -> None:
    with Bench(str(next(capture.parent.glob("*.elf")))) as bench:
        bench.open(str(capture))
        rows = bench.why(QUESTION, branches=True, depth=2)
    assert (rows[0]["value"], rows[0]["code"]) == (30, "calibration.gain[slot[channel]] = scaled;")
    assert {"branch", "called", "before"} <= {row["kind"] for row in rows}
