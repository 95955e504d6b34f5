"""A program that is an image of contexts has the same names as one that a command is given with --elf."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from tests.reports.coverage import traced
from tests.session.perf_data.recorded import ARCH, started, with_trace
from tests.session.perf_data.test_importing import trace_of
from tests.session.perf_data.writer import Writer, attr

FUNCTION = "helper"
ASKED = {
    "coverage": ("coverage",),
    "find": ("find", FUNCTION),
    "intervals": ("intervals", "--calls", FUNCTION),
    "calls-of": ("calls-of", FUNCTION),
    "calls": ("calls",),
    "functions": ("functions",),
    "sql": ("sql", "select func, entered from coverage order by 1, 2"),
    "sql-functions": ("sql", "select number, func from functions order by number"),
    "log": ("log", "elsewhere", "value"),
}


def of_one_process(elf: Path, data: bytes) -> bytes:
    return with_trace(elf, [(data, 0)])


def of_two_processes(elf: Path, data: bytes) -> bytes:
    """The trace of the second one; both have the same program."""
    writer = Writer()
    started(writer, elf, 100)
    started(writer, elf, 200)
    writer.aux(0, 0, pid=100, tid=100, time=9)
    writer.aux(0, len(data), pid=200, tid=200, time=10)
    writer.auxtrace_info([9])
    writer.auxtrace(data)
    return writer.file([(attr(), [1])], ARCH)


RECORDED = {"one process": of_one_process, "two processes": of_two_processes}
PROCESSES = {"one process": "100", "two processes": "200"}
"""Which of them is traced."""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of one run: a capture whose program is that ELF, and those made of perf.data."""
    folder = tmp_path_factory.mktemp("names")
    elf = traced.program(folder / "program")
    data, settings = trace_of(elf, traced.retired(elf), folder / "it.rvt", "--ntrace")
    found = {"elf": settings}
    for name, recorded in RECORDED.items():
        file = folder / f"{name}.data"
        file.write_bytes(recorded(elf, data))
        found[name] = file.with_suffix(".rvt")
        words = ["--settings", str(settings), "--elf", str(elf), "--quiet"]
        assert main(["import", str(file), "-o", str(found[name]), *words]) == 0
    return found


def answer(capsys: pytest.CaptureFixture[str], capture: Path, verb: str, *words: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main([verb, str(capture), *words, "--json", "--quiet"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [{key: value for key, value in row.items() if key not in ("time", "ticks")} for row in found]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("recorded", RECORDED)
def test_answers_are_those_of_the_elf(
    asked: str, recorded: str, captures: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """And rows of matches say which process ran there, which a capture of the ELF alone does not know."""
    expected = answer(capsys, captures["elf"], *ASKED[asked])
    found = answer(capsys, captures[recorded], *ASKED[asked])
    processes = {str(row.pop("process", "")).partition(" ")[0] for row in found}
    assert expected and found == expected
    assert processes == {PROCESSES[recorded] if asked == "find" else ""}


@pytest.mark.parametrize("recorded", RECORDED)
def test_folded_stacks_have_names(recorded: str, captures: dict[str, Path], tmp_path: Path) -> None:
    texts = []
    for name in ("elf", recorded):
        out = tmp_path / f"{name}.folded"
        assert main(["export", str(captures[name]), "--to", "folded", "-o", str(out), "--quiet"]) == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1] and f";{FUNCTION}" in texts[0]


def test_where_programs_have_different_symbols_none_is_known(captures: dict[str, Path], tmp_path: Path) -> None:
    elf = next(captures["elf"].parent.glob("program/*.elf"))
    other = traced.program(tmp_path / "other", level="-O2")
    programs = ContextImages(Image())
    images = [Image.from_elf(path) for path in (elf, other)]
    for number, image in enumerate(images, 1):
        programs.attach(image, scontext=number)
    assert programs.all_programs is programs.all_programs and programs.reported_program is programs.all_programs
    different = same = 0
    for start, _ in images[0].symbols_named("main"):
        assert any(start == at for at, _ in programs.all_programs.symbols_named("main"))
    for pc in range(images[0].entry, images[0].entry + 1024, 2):
        first, second = (image.symbol(pc) for image in images)
        expected = (first or second) if first == second or None in (first, second) else None
        assert programs.all_programs.symbol(pc) == expected
        different += first != second and None not in (first, second)
        same += first == second and first is not None
    assert different and same


def test_programs_without_contexts_are_the_base(captures: dict[str, Path]) -> None:
    base = Image.from_elf(next(captures["elf"].parent.glob("program/*.elf")))
    assert ContextImages(base).all_programs is base and ContextImages(base).reported_program is base
