"""Which harts an export is of, and which part of what they ran: through the session, as gdb asks, and at the shell."""

import json
import sys
import types
from pathlib import Path
from typing import BinaryIO

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.export import EXPORTS, Export, ExportedTrace, Written
from rvtrace_gdb.session.exports.selection import ExportOptions
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from tests.helpers import reference_streams

PROGRAM = "median"
ELF = reference_streams.FOLDER / "median.elf"
STREAM = reference_streams.FOLDER / "median.1.nex"
TICKS = 10
"""From each message to the next."""


class Parts(types.ModuleType):
    """A writer of the parts that it is given: a line for each hart."""

    @staticmethod
    def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
        progress("writing", 0, 1)
        for it in trace.harts:
            part = f"{it.part.start} {it.part.stop}"
            file.write(f"{it.hart} {part} {it.exact.start} {it.exact.stop} {it.resolution}\n".encode())
        return Written(len(trace.harts))


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"{export.__package__}.parts", Parts("parts"))
    every = frozenset(ExportOptions._fields)
    toys = (Export("all", "all harts", "parts", True, every), Export("one", "one hart", "parts", False, every))
    monkeypatch.setattr(export, "EXPORTS", (*EXPORTS, *toys))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two harts that run the same program, the second one for half as long and at other times."""
    stream = STREAM.read_bytes()
    first = reference_streams.from_source(stream, 2, 1, (100, TICKS))
    second = reference_streams.from_source(stream, 2, 2, (1_000_000, TICKS))
    file = tmp_path_factory.mktemp("selection") / "two.bin"
    file.write_bytes(reference_streams.in_turn(first, second[: len(second) // 2]))
    return ["export", str(file), "--ntrace", "--src-bits", "2", "--timestamps", "--elf", str(ELF)]


def shown(capsys: pytest.CaptureFixture[str], words: list[str], *more: str) -> list[list[str]]:
    assert main([*words, *more, "-o", "-", "--quiet"]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], words: list[str], *more: str) -> str:
    assert main([*words, *more, "-o", "-", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    return err


def test_all_harts_unless_one_is_asked_for(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    length, _ = reference_streams.golden(PROGRAM)
    one, other = shown(capsys, words, "--to", "all")
    assert one == ["1", "0", str(length), "0", "0", "None"] and other[0] == "2" and int(other[2]) < length
    assert shown(capsys, words, "--to", "one") == [one]
    assert shown(capsys, words, "--to", "all", "--hart", "2") == [other]
    assert shown(capsys, words, "--to", "one", "--hart", "2") == [other]


def test_a_range_is_of_one_hart(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    part = ("--hart", "1", "--range", "11,+5", "--exact", "3,4", "--resolution", "0")
    assert shown(capsys, words, "--to", "all", *part) == [["1", "10", "15", "2", "4", "0"]]
    why = "a range has the numbers of one hart, and there are harts 1, 2: say which one"
    assert why in refused(capsys, words, "--to", "all", "--range", "11,+5")
    assert "Range out of bounds" in refused(capsys, words, "--to", "one", "--range", "99999999")
    assert "Bad range" in refused(capsys, words, "--to", "one", "--range", "9,3")


def test_a_time_is_of_all_harts(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """From one message to the tenth after it; the other hart has run nothing by then."""
    first, begin, end, *_ = shown(capsys, words, "--to", "all", "--time", f"100,{100 + 10 * TICKS}")[0]
    assert (first, begin) == ("1", "0") and 0 < int(end) < 2000
    assert "nothing ran then" in refused(capsys, words, "--to", "all", "--hart", "2", "--time", "1,2")
    assert "give a time in ticks" in refused(capsys, words, "--to", "all", "--time", "soon")
    assert "earlier than the first one" in refused(capsys, words, "--to", "all", "--time", "9,8")
    both = refused(capsys, words, "--to", "all", "--hart", "1", "--time", "9,10", "--range", "1,2")
    assert "both say which part is written" in both
    untimed = ["export", str(STREAM), "--ntrace", "--elf", str(ELF), "--to", "one", "--time", "1"]
    assert "time 1: the trace of hart 0 has no timestamps" in refused(capsys, untimed)


@pytest.mark.parametrize("name", [row.name for row in EXPORTS])
def test_an_option_that_a_form_does_not_have_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = export.named(name)
    for option, value in (("range", "1,2"), ("time", "5"), ("resolution", "7"), ("exact", "1,2")):
        if option not in row.options:
            why = refused(capsys, ["export", "missing.rvt"], "--to", name, f"--{option}", value)
            assert why == f"rvtrace: {option}: {name} has no such option, it is written as a whole\n"


def test_programs_get_the_harts(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--to", "all", "-o", str(tmp_path / "x"), "--json", "--quiet"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["harts"] == [1, 2] and facts["lines"] == 2 and "hart" not in facts


def test_gdb_asks_for_the_same(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "two.rvt"
    assert main(["import", *words[1:], "-o", str(capture), "--quiet"]) == 0
    session, file = Session(), tmp_path / "x"
    session.open(capture, None)

    def asked(name: str, **params: object) -> list[list[str]]:
        Methods(session).call("export", {"name": name, "path": str(file), "context": {}, **params}, silent)
        return [line.split() for line in file.read_text().splitlines()]

    capsys.readouterr()
    assert asked("all") == shown(capsys, ["export", str(capture)], "--to", "all")
    assert asked("all", hart=2, range="5,6") == [["2", "4", "6", "0", "0", "None"]]
    assert asked("one", time=f"100,{100 + TICKS}", exact="1,+3", resolution=9)[0][3:] == ["0", "3", "9"]
