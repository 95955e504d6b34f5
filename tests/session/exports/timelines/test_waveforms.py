"""Waveforms, read by pyvcd and by GTKWave's converters: at each place they say what ran, and nothing in gaps."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.exports.timelines import waveform_axis
from tests.decode.tandem.corpus import DATA, decoded, trace_bytes
from tests.session.exports.exported import (
    PROGRAMS,
    export,
    names_at,
    options,
    retired,
    stream,
    two_harts,
)
from tests.session.exports.timelines.dumps import Waves

CORE = "flute_rv64ui-p-add"
OF_CORE = ["--tandem", "--dialect", "flute", "--elf", str(DATA / "riscv-tests" / "rv64ui-p-add")]
FORMS = ("vcd", "fst")
both = pytest.mark.parametrize("form", FORMS)
def written(form: str, folder: Path, trace: Path, words: Sequence[str], *more: str) -> Waves:
    out = folder / f"it.{form}"
    export(form, out, trace, list(words), *more)
    return Waves(out, form)


@both
def test_each_instruction_is_there(form: str, tmp_path: Path) -> None:
    program = PROGRAMS[0]
    waves = written(form, tmp_path, stream(program), options(program))
    assert list(waves.harts) == ["hart0"] and waves.timescale.replace(" ", "") == "1ns"
    found = waves.instructions("hart0")
    pcs = retired(program)
    assert [moment.levels["pc"] for moment in found] == pcs
    assert [moment.levels["number"] for moment in found] == list(range(1, len(pcs) + 1))
    assert [moment.time for moment in found] == list(range(1, len(pcs) + 1))  # without times: the numbers
    last = waves.harts["hart0"][-1]
    assert last.levels["pc"] is None and last.levels["function"] == "[end]"
    for moment in found[:: len(found) // 200]:
        pc = moment.levels["pc"]
        assert isinstance(pc, int) and moment.levels["function"] in names_at(program, pc)


@both
def test_harts_stand_at_their_times(form: str, tmp_path: Path) -> None:
    """Ticks of the messages: 10 apart from 100 on, and from 155 on. All of an interval is drawn before the next one."""
    trace, words = two_harts(tmp_path)
    waves = written(form, tmp_path, trace, words, "--time", "100,900")
    scale = {"1ns": 1, "1ps": 1000, "1fs": 10**6}[waves.timescale.replace(" ", "")]
    pcs = retired("median")
    for hart, first in (("hart1", 100), ("hart2", 155)):
        found = waves.instructions(hart)
        assert [moment.levels["pc"] for moment in found] == pcs[: len(found)]
        assert found[0].time == first * scale
        times = [moment.time for moment in found]
        assert all(before < after for before, after in pairwise(times))
        ticks = {time // scale for time in times if time % scale == 0}
        assert {(tick - first) % 10 for tick in ticks if scale > 1} == {0}
    assert len(waves.instructions("hart1")) > len(waves.instructions("hart2")) > 1000


def test_a_window_has_the_places_of_the_whole(tmp_path: Path) -> None:
    trace, words = two_harts(tmp_path)
    whole = written("vcd", tmp_path, trace, words, "--hart", "1", "--range", "1,+3000")
    part = written("vcd", tmp_path, trace, words, "--hart", "1", "--range", "501,+1000")
    assert part.timescale == whole.timescale
    found, expected = part.instructions("hart1"), whole.instructions("hart1")[500:1500]
    assert [it._replace(levels={}) for it in found] == [it._replace(levels={}) for it in expected]
    assert [it.levels["pc"] for it in found] == [it.levels["pc"] for it in expected]


@both
def test_nothing_is_known_in_a_gap(form: str, tmp_path: Path) -> None:
    """Bytes of a core's trace are missing in the middle; what ran before and after is as in the whole trace."""
    data, cut = trace_bytes(CORE), tmp_path / "cut.tvt"
    cut.write_bytes(data[:3000] + b"\xff" * 40 + data[3040:])
    pcs = list(decoded(CORE).history.pcs())
    found = written(form, tmp_path, cut, OF_CORE).instructions("hart0")
    [gap] = [number for number, moment in enumerate(found) if moment.levels["missing"]]
    assert found[gap].levels == {
        **dict.fromkeys(found[gap].levels), "number": gap + 1, "function": found[gap].levels["function"], "missing": 1,
    }  # fmt: skip
    assert str(found[gap].levels["function"]).startswith("[lost: ")
    assert [moment.levels["pc"] for moment in found[:gap]] == pcs[:gap]
    ran = [moment.levels["pc"] for moment in found[gap + 1 :]]
    assert ran == pcs[-len(ran) :] and gap > 100 and len(ran) > 100
    assert {moment.levels["missing"] for moment in found[gap + 1 :]} == {0}


def test_traps_and_privilege_are_those_of_the_core(tmp_path: Path) -> None:
    """A trace of a core of which the whole log of Spike is known: its modes and causes."""
    name = "flute_rv64mi-p-illegal"
    words = ["--tandem", "--dialect", "flute", "--elf", str(DATA / "riscv-tests" / "rv64mi-p-illegal")]
    waves = written("vcd", tmp_path, DATA / "tandem" / f"{name}.tvt", words)
    taken = [moment.levels for moment in waves.instructions("hart0") if moment.levels["trap"]]
    # Nine: the third is the supervisor software interrupt, the last an environment call from S-mode.
    assert [level["cause"] for level in taken] == [2, 2, 1, 2, 2, 2, 2, 2, 9]
    assert [level["interrupt"] for level in taken] == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert {level["privilege"] for level in taken} == {3}
    assert {moment.levels["privilege"] for moment in waves.instructions("hart0")} == {1, 3}


@both
def test_too_much_is_one_line(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waveform_axis, "MOST", 1000)
    out = tmp_path / "it"
    words = ["export", str(stream("towers")), *options("towers"), "--to", form, "-o", str(out), "--quiet"]
    assert main(words) == 1
    why = f"rvtrace: {form}: {len(retired('towers'))} instructions would be written one by one, and at most 1000 are:"
    assert capsys.readouterr().err.startswith(why) and not out.exists()
    assert main([*words, "--range", "1,1000"]) == 0


def test_without_the_converter_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["export", str(stream("towers")), *options("towers"), "--to", "fst", "-o", str(tmp_path / "it"), "--quiet"]
    assert main(words) == 1
    expected = "rvtrace: fst: vcd2fst is not installed: apt install gtkwave (or write vcd, which it reads, too)\n"
    assert capsys.readouterr().err == expected
