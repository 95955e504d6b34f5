"""`rvtrace top`: its last table has the figures of the whole trace, and on a terminal it is drawn again and again."""

import gzip
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from tests.console.commands.test_follow import ELF, MADE, STREAM, written
from tests.console.interruption import meanwhile
from tests.gdbext.gdb_process import HOME, gdb_environ
from tests.helpers import reference_streams
from tests.helpers.started_python import rvtrace
from tests.terminal import Terminal

DAMAGED = STREAM[:700] + b"\x02\xfe\x03" + STREAM[740:]
SEVERAL = reference_streams.in_turn(
    *(reference_streams.from_source(STREAM, 2, src, (1000 + src, 10)) for src in (1, 3))
)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def objects(capfd: pytest.CaptureFixture[str], fifo: Path, data: bytes, *words: str) -> list[dict[str, Any]]:
    """Those that `rvtrace top --json` prints of bytes that come in pieces."""
    with meanwhile(written(fifo, data, len(data))):
        assert main(["top", str(fifo), "--json", "--top", "0", *words]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (STREAM, ()), (DAMAGED, ()), (SEVERAL, ("--src-bits", "2", "--timestamps")),
        (SEVERAL, ("--src-bits", "2", "--timestamps", "--hart", "3")),
    ],
    ids=["whole", "damaged", "several", "one-of-several"],
)  # fmt: skip
def test_the_last_table_is_that_of_the_report(
    data: bytes, words: tuple[str, ...], fifo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    last = objects(capfd, fifo, data, *MADE, *words)[-1]
    file = tmp_path / "raw.bin"
    file.write_bytes(data)
    assert main(["report", str(file), "--json", "--top", "0", *MADE, *words]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (last["instructions"], last["gaps"]) == (report["instructions"], report["gaps"])
    assert last["bytes"] == len(data) and last["why"] == "the end of the stream"
    own = {row["func"]: row["own"] for row in report["functions"]}
    assert {row["func"]: row["times"] for row in last["functions"]} == own
    edges = [(row["from"], row["to"], row.get("flow"), row["times"]) for row in report["edges"]]
    assert [(row["from"], row["to"], row.get("flow"), row["times"]) for row in last["edges"]] == edges
    losses = sorted((row["kind"], row["cause"], row["times"]) for row in report["losses"])
    assert sorted((row["kind"], row["cause"], row["times"]) for row in last["losses"]) == losses
    assert bool(losses) == (data is DAMAGED)


def test_functions_are_those_of_the_retired_list(fifo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = reference_streams.FOLDER
    image = Image.from_elf(folder / "t1.elf")
    with gzip.open(folder / "t1.pcs.gz", "rt") as lines:
        pcs = [int(line, 16) for line in lines]
    expected = Counter((image.symbol(pc) or ("", 0))[0] for pc in pcs)
    data = (folder / "t1.4.nex").read_bytes()
    made = ["--ntrace", "--implicit-return", "full", "--elf", str(folder / "t1.elf")]
    found = objects(capfd, fifo, data, *made)
    assert found[-1]["instructions"] == len(pcs)
    assert {row.get("func", ""): row["times"] for row in found[-1]["functions"]} == expected
    since = sum(it["since"] for it in found[:-1])  # the last one is of the whole run
    assert since <= len(pcs) == found[-1]["since"]


def test_a_pipe_gets_one_table(fifo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with meanwhile(written(fifo, DAMAGED)):
        assert main(["top", str(fifo), *MADE, "--top", "3"]) == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("Hart 0: ") and out.count("self %") == 1 and "\x1b" not in out
    assert lines[3].split()[-1] == "median" and "missing" in out
    assert max(map(len, lines)) <= 80
    assert ", 1 loss" in err


def test_nothing_is_known_of_an_empty_stream(fifo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with meanwhile(written(fifo, b"")):
        main(["top", str(fifo), *MADE])
    assert capfd.readouterr().out == "No instruction is known yet.\n"


@pytest.mark.parametrize("words", [["--json"], []])
def test_a_full_disk_is_one_line(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "raw.bin"
    file.write_bytes(STREAM)
    with file.open("rb") as data, open("/dev/full", "wb") as full:
        done = rvtrace("top", "-", *MADE, *words, stdin=data.fileno(), stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "rvtrace: standard output: cannot be written: No space left on device"


def test_a_capture_is_for_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(tmp_path / "x.rvt"), "--elf", ELF]) == 1
    assert "give --ntrace, --etrace or --tandem" in capsys.readouterr().err.replace("Give", "give")


def test_on_a_terminal(tmp_path: Path) -> None:
    """The table grows with the file; Ctrl-C leaves the last one, once."""
    file = tmp_path / "grows.bin"
    file.write_bytes(STREAM[:300])
    words = [sys.executable, "-m", "rvtrace_gdb", "top", str(file), *MADE, "--top", "3"]
    shell = ["bash", "-c", f"cd {HOME}; {' '.join(words)}; echo status $?"]
    with Terminal(shell, 80, 30, gdb_environ(NO_COLOR="1")) as terminal:
        first = terminal.wait_for("self %")
        assert "300 bytes: " in first
        with file.open("ab") as more:
            more.write(STREAM[300:])
        seen = terminal.wait_for(f"{len(STREAM)} bytes: ")
        assert seen.count("self %") == 1 and "Hart 0: 15011 instructions" in seen
        assert "8270" in next(line for line in seen.splitlines() if line.endswith("  median"))
        terminal.press("C-c")
        last = terminal.wait_for("status 0")
        assert last.count("self %") == 1 and last.count("Hart 0: 15011 instructions") == 1
        assert "; Ctrl-C ends (" not in last and "Ctrl-C: " in last
