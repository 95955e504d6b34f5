"""Reports of traces of several programs and harts, with losses: what they add up to is what a stepped hart retired."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb import hart_profiles, hot_functions, hot_lines
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.report_rows import SECTIONS, ProfileReport, report_of
from rvtrace_gdb.rows.report_text import report_fields
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.lists.pages import RangeError
from rvtrace_gdb.session.rpc.protocol import BadRequest
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.gdbext.commands.test_dump import ELF, STREAM
from tests.helpers import reference_streams
from tests.reports.coverage.traced import PROGRAMS, program, retired, trace


def opened(capture: Path) -> Session:
    session = Session()
    session.open(capture, None)
    return session


def call(session: Session, **params: Any) -> list[ProfileReport]:
    answer = Methods(session).call("report", {"context": {}, **params}, silent)
    return [report_of(report) for report in json.loads(json.dumps(answer["reports"]))]


def by_function(elf: Path, pcs: Sequence[int]) -> Counter[int]:
    """By where they begin: names may be those of several."""
    image = Image.from_elf(elf)
    return Counter(image.function(pc) or 0 for pc in pcs)


def own_of(report: ProfileReport) -> Counter[int]:
    return Counter({row.place[0]: row.own for row in report.sections["functions"] if row.own})


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def pcs(elf: Path) -> list[int]:
    return retired(elf)


@pytest.mark.parametrize("form", [["--ntrace"], ["--ntrace", "--btm"], ["--etrace"]], ids=" ".join)
def test_what_ran_is_what_was_retired(form: list[str], elf: Path, pcs: list[int], tmp_path: Path) -> None:
    session = opened(trace(elf, pcs, tmp_path / "x.rvt", *form))
    [report] = call(session, top=0)
    assert (report.hart, report.instructions, report.gaps, report.ticks) == (0, len(pcs), 0, None)
    sections = report.sections
    assert own_of(report) == by_function(elf, pcs)
    assert sum(row.own for row in sections["calls"] if not row.hidden) <= len(pcs)
    assert sum(row.instructions for row in sections["blocks"]) == len(pcs)
    image = Image.from_elf(elf)
    for row in sections["branches"]:
        outcomes = Counter(after for pc, after in pairwise(pcs) if pc == row.place[0])
        assert (row.taken, row.taken + row.not_taken) == (outcomes[row.target[0]], outcomes.total())
        assert image.instruction(row.place[0]).is_branch
    ways = Counter(pairwise(pcs))
    assert all(row.times == ways[row.source[0], row.target[0]] for row in sections["edges"]) and sections["edges"]


def test_a_range(elf: Path, pcs: list[int], tmp_path: Path) -> None:
    session = opened(trace(elf, pcs, tmp_path / "x.rvt"))
    [report] = call(session, args="101,300", top=0, sections=["functions"])
    assert list(report.sections) == ["functions"]
    assert own_of(report) == by_function(elf, pcs[100:300])
    with pytest.raises(RangeError, match="Range out of bounds"):
        call(session, args="999999999,+3")


def test_losses_are_counted_and_said(elf: Path, pcs: list[int], tmp_path: Path) -> None:
    """Bytes of the trace are damaged: what ran there is missing, and nothing else ran more often than it did."""
    raw = trace(elf, pcs, tmp_path / "raw.bin", "--ntrace", "--sync-max", "2", "--sync-mode", "messages")
    data = bytearray(raw.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20] = bytes([0x55]) * 20
    raw.write_bytes(data)
    capture = tmp_path / "damaged.rvt"
    assert main(["import", str(raw), "--ntrace", "--elf", str(elf), "-o", str(capture), "--quiet"]) == 0
    session = opened(capture)
    [report], history = call(session, top=0), session.harts().harts.histories[0]
    assert report.gaps == history.gaps > 0 and report.instructions == history.instructions < len(pcs)
    assert own_of(report).total() == report.instructions and own_of(report) <= by_function(elf, pcs)
    lost = [row for row in report.sections["losses"] if row.lost]
    assert sum(row.times for row in lost) == len([event for event in history.events if event.is_loss])
    assert sum(row.size for row in lost) > 0
    assert all(middle - 40 < place.offset < middle + 40 for row in lost for place in row.places)


@pytest.fixture(scope="module")
def two_harts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of two harts; of the second one it has only the beginning."""
    folder = tmp_path_factory.mktemp("harts")
    harts = [reference_streams.from_source(STREAM, 2, 0), reference_streams.from_source(STREAM[:400], 2, 1)]
    (folder / "raw.bin").write_bytes(reference_streams.in_turn(*harts))
    command = ["import", str(folder / "raw.bin"), "--elf", str(ELF), "--src-bits", "2", "-o", str(folder / "x.rvt")]
    assert main(command) == 0
    return folder / "x.rvt"


def test_all_harts_and_each(two_harts: Path) -> None:
    session = opened(two_harts)
    total, first, second = call(session, all=1, each=1, top=0)
    histories = session.harts().harts.histories
    assert (total.hart, first.hart, second.hart) == (None, 0, 1)
    assert [one.instructions for one in (first, second)] == [histories[hart].instructions for hart in (0, 1)]
    assert own_of(total) == own_of(first) + own_of(second) and own_of(first) != own_of(second)
    assert [(row.hart, row.instructions) for row in total.sections["harts"]] == [
        (hart, histories[hart].instructions) for hart in (0, 1)
    ]
    assert call(session, hart=1, top=0) == [second]
    assert call(session, all=1, top=0) == [total]
    with pytest.raises(RangeError, match="a RANGE has the numbers of one hart, and there are harts 0, 1: say which"):
        call(session, all=1, args="1,5")


def test_bad_requests(two_harts: Path) -> None:
    with pytest.raises(BadRequest, match="there is no section nope: they are harts, functions"):
        call(opened(two_harts), sections=["nope"])
    with pytest.raises(NoTrace):
        call(Session())


def test_the_shell_prints_the_same(two_harts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(two_harts), "--json", "--each", "--top", "3", "--quiet"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [report_fields(report) for report in call(opened(two_harts), all=1, each=1, top=3)]
    command = ["report", str(two_harts), "lines", "functions", "--hart", "1", "1,50", "--json"]
    assert main(command) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"hart", "instructions", "gaps", "functions", "lines"}


def test_rows_fit_80_columns(two_harts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(two_harts), *SECTIONS, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == [] and len(lines) > 60
    assert lines[0].startswith("All harts: ") and "None: lines, traps, losses." in lines


def test_bad_words(two_harts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(two_harts), "nope"]) == 1
    assert f"nope: neither a RANGE (A,B or A,+N or A,-N, or A) nor a section: {', '.join(SECTIONS)}" in (
        capsys.readouterr().err
    )
    assert main(["report", str(two_harts), "1,5", "6", "--hart", "0"]) == 1
    assert "1,5 and 6: give one RANGE" in capsys.readouterr().err


def test_without_gdb(elf: Path, pcs: list[int], tmp_path: Path) -> None:
    """The public names."""
    [profile] = hart_profiles(opened(trace(elf, pcs, tmp_path / "x.rvt")), Context()).values()
    assert {row.function[1]: row.own for row in hot_functions(profile)} == by_function(elf, pcs)
    assert {Path(row.line.path).name for row in hot_lines(profile)} >= {path.name for path in PROGRAMS.glob("main.c")}
