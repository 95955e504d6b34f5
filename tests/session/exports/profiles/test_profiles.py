"""Profiles: their totals are those of what ran, read by the rules of their readers and not by the writers' code."""

import gzip
import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.exports import extra_library
from rvtrace_gdb.session.exports.export import ExportedTrace, write
from rvtrace_gdb.session.session import Session
from tests.helpers.reference_streams import golden
from tests.session.board import board
from tests.session.exports import exported
from tests.session.exports.exported import PROGRAMS, export, options, ran_in, retired, stream
from tests.session.exports.profiles.pprof_file import profile_of

Stacks = dict[tuple[str, ...], int]
"""Instructions by the names of the functions, outermost first."""


def folded(data: bytes) -> Stacks:
    """As flamegraph.pl reads a line: the number behind the last blank, frames between semicolons."""
    found: Stacks = {}
    for line in data.decode().splitlines():
        stack, _, count = line.rpartition(" ")
        assert tuple(stack.split(";")) not in found
        found[tuple(stack.split(";"))] = int(count)
    return found


def speedscope(data: bytes) -> Stacks:
    """By the rules of speedscope's file format; the name of the profile comes first, as in folded stacks."""
    file = json.loads(data)
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str)
    found: Counter[tuple[str, ...]] = Counter()
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "none", 0)
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
            assert all(0 <= number < len(frames) for number in sample)
            found[profile["name"].partition(",")[0], *(frames[number]["name"] for number in sample)] += weight
    return dict(found)


def pprof(data: bytes) -> Stacks:
    """By the fields of profile.proto, read without protobuf."""
    profile = profile_of(gzip.decompress(data))
    found: Counter[tuple[str, ...]] = Counter()
    for sample in profile.samples:
        found[f"hart {sample.labels['hart']}", *reversed(sample.functions)] += sample.values["instructions"]
    return {stack: count for stack, count in found.items() if count}


READERS = {"folded": folded, "speedscope": speedscope, "pprof": pprof}
each_form = pytest.mark.parametrize("form", READERS)


@pytest.mark.parametrize("program", PROGRAMS)
@each_form
def test_the_totals_are_those_of_what_ran(form: str, program: str, tmp_path: Path) -> None:
    stacks = READERS[form](export(form, tmp_path / "x", stream(program), options(program)))
    assert sum(stacks.values()) == golden(program)[0]
    assert {stack[0] for stack in stacks} == {"hart 0"}
    leaves: Counter[str] = Counter()
    for stack, count in stacks.items():
        leaves[stack[-1].removesuffix(" [trap]")] += count
    assert leaves == ran_in(program, retired(program), set(leaves))


@each_form
def test_parts_have_what_ran_in_them(form: str, tmp_path: Path) -> None:
    """Two parts, one of them in the middle of calls, add up to the whole, stack by stack."""
    middle, end = 5000, golden("towers")[0]
    parts = [
        READERS[form](export(form, tmp_path / "x", stream("towers"), options("towers"), "--range", numbers))
        for numbers in (f"1,{middle}", f"{middle + 1},{end}")
    ]
    for stacks, pcs in zip(parts, (retired("towers")[:middle], retired("towers")[middle:]), strict=True):
        leaves: Counter[str] = Counter()
        for stack, count in stacks.items():
            leaves[stack[-1].removesuffix(" [trap]")] += count
        assert leaves == ran_in("towers", pcs, set(leaves))
    whole = READERS[form](export(form, tmp_path / "x", stream("towers"), options("towers")))
    assert Counter(parts[0]) + Counter(parts[1]) == Counter(whole)


def test_a_time_is_of_all_harts(tmp_path: Path) -> None:
    """The instructions of each hart are those that the rows of the same time have."""
    trace, words = exported.two_harts(tmp_path)
    part = ("--time", "200,400")
    stacks = folded(export("folded", tmp_path / "x", trace, words, *part))
    sums: Counter[str] = Counter()
    for stack, count in stacks.items():
        sums[stack[0]] += count
    rows = [json.loads(row) for row in export("jsonl", tmp_path / "y", trace, words, *part).splitlines()]
    assert sums == Counter(f"hart {row['hart']}" for row in rows if "inst" in row) and len(sums) == 2


def test_towers_call_themselves(tmp_path: Path) -> None:
    """The towers of Hanoi with seven discs take 2**7 - 1 moves, in seven levels of calls; the benchmark runs twice."""
    lines = folded(export("folded", tmp_path / "x", stream("towers"), options("towers")))
    assert max(stack.count("towers_solve_h") for stack in lines) == 7
    profile = profile_of(gzip.decompress(export("pprof", tmp_path / "y", stream("towers"), options("towers"))))
    calls = [sample.values["calls"] for sample in profile.samples if sample.functions[0] == "towers_solve_h"]
    assert sum(calls) == 2 * (2**7 - 1)


@each_form
def test_all_harts_are_there_unless_one_is_asked_for(form: str, tmp_path: Path) -> None:
    trace, words = exported.two_harts(tmp_path)
    stacks = READERS[form](export(form, tmp_path / "x", trace, words))
    sums = {hart: sum(count for stack, count in stacks.items() if stack[0] == hart) for hart in ("hart 1", "hart 2")}
    assert sums["hart 1"] == golden("median")[0] > sums["hart 2"] > 1000
    alone = READERS[form](export(form, tmp_path / "x", trace, words, "--hart", "2"))
    assert alone == {stack: count for stack, count in stacks.items() if stack[0] == "hart 2"}


def losses(form: str, data: bytes) -> list[str]:
    """What a file says of losses, in the place that its form has for it."""
    if form == "pprof":
        return [comment.partition(": ")[2] for comment in profile_of(gzip.decompress(data)).comments]
    return [stack[-1].strip("[]") for stack, count in READERS[form](data).items() if not count]


@each_form
def test_losses_are_in_it(form: str, tmp_path: Path) -> None:
    trace = exported.damaged(tmp_path)
    data = export(form, tmp_path / "x", trace, options("towers"))
    assert sum(READERS[form](data).values()) < golden("towers")[0]
    said = losses(form, data)
    assert said and all(text.startswith("lost: ") and text.endswith((" time", " times")) for text in said)
    times = sum(int(text.split()[-2]) for text in said)
    listed = exported.opened(trace, "towers").decoded()[0]
    gaps = [at for at, pc in enumerate(listed.pcs(), 1) if pc == GAP]
    assert times == len(gaps) > 0
    assert losses(form, export(form, tmp_path / "x", trace, options("towers"), "--range", f"1,{gaps[0] - 1}")) == []
    assert losses(form, export(form, tmp_path / "x", stream("towers"), options("towers"))) == []


def test_a_source_line_is_where_the_debug_information_says(tmp_path: Path) -> None:
    demo = board(tmp_path)
    context = demo.describe()
    with closing(Session(demo.connect, {})) as session:
        session.start(context)
        demo.run(700)
        trace = ExportedTrace(session, session.selected(context))
        with (tmp_path / "x").open("wb") as file:
            write("speedscope", trace, file)
    frames = json.loads((tmp_path / "x").read_bytes())["shared"]["frames"]
    placed = {frame["name"]: (frame["file"].rpartition("/")[2], frame["line"]) for frame in frames if "line" in frame}
    assert {"main", "leaf"} <= set(placed)
    assert placed == exported.addr2line(demo.elf, list(placed))


@pytest.mark.parametrize("name", ["pprof"])
def test_without_the_library_it_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(module: str) -> Any:
        raise ImportError(module)

    monkeypatch.setattr(extra_library, "import_module", absent)
    trace = str(stream("towers"))
    assert main(["export", trace, *options("towers"), "--to", name, "-o", str(tmp_path / "x"), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("rvtrace: pprof: protobuf is not installed: ") and said.count("\n") == 1
    assert said.endswith("-m pip install protobuf (or 'rvtrace-gdb[views]')\n")
    assert not (tmp_path / "x").exists()
