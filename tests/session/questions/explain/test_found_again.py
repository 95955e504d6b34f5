"""The bug of every tutorial is found again with `rvtrace explain` and at most two more questions.

What must come out is what the page says: each expectation is looked for in its text, too.
"""

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import EXAMPLES, HOME, compile_program
from tests.helpers.example_captures import RAM, RUN, example_capture
from tests.session.board import board

PAGES = HOME / "docs" / "tutorials"
NEXT = "the last command of Next:"


class Search(NamedTuple):
    """What is asked of a program after `rvtrace explain`, at most twice: NEXT is what that proposes last, FILE the
    capture. *found*: what the tutorial's page says, in the words of the answers.
    """

    program: str
    asked: tuple[str, ...]
    found: tuple[str, ...]


SEARCHES = {
    "it-hangs": Search(
        "hang", (NEXT, "why FILE $a0 --branches --at 342"),
        ("sent_count", "mask_interrupts", "uart_set_speed", "return -1", "hang.c:57", "#285|@285"),
    ),
    "a-trap-loop": Search("trap_loop", (NEXT,), ("read_reg", "trap_loop.c:15", "trap_loop.c:33", "0x0")),
    "a-smashed-stack": Search(
        "smashed_stack", (NEXT,), ("greet", "0x7266202c7265646e", "smashed_stack.c:17", "smashed_stack.c:32", "copy"),
    ),
    "who-changed-this-variable": Search(
        "changed_variable", ("why FILE filter.limit",),
        ("149", "1000", "changed_variable.c:16", "changed_variable.c:22", "i <= SAMPLES"),
    ),
    "interrupt-latency": Search(
        "latency", ("calls-of FILE on_timer", "why FILE $pc --branches --at 6086"),
        ("8875|time 8870", "crc_of", "latency.c:46", "log_word"),
    ),
    "a-cpp-program": Search(
        "cpp_sensors", (NEXT, "why FILE value --at 155"),
        ("202", "average<4>(sensors::sensor)", "sensors::sensor::read", "cpp_sensors.cpp:23", "cpp_sensors.cpp:33"),
    ),
    "a-rust-program": Search(
        "rust_tank", ("why FILE rust_tank::tank::TANK.level",),
        ("rust_tank.rs:36", "4294967294", "4294967295", "@195|195", "self.level = self.level - litres"),
    ),
    "coverage-in-ci": Search(
        "checksum", ("sql FILE 'SELECT file, line FROM lines WHERE times = 0 ORDER BY line'",), ("14", "16"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("found")


def answer(line: str, file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the shell prints for a command, whose name `rvtrace` may be left out."""
    words = [str(file) if word == "FILE" else word for word in shlex.split(line.removeprefix("rvtrace "))]
    assert main([*words, "--quiet"]) == 0, line
    return capsys.readouterr().out


def proposed(explained: str) -> str:
    """The last command that an explanation proposes."""
    return explained.partition("\nNext: ")[2].splitlines()[-1].strip()


def captured(folder: Path, name: str) -> Path:
    if name in RUN:
        return example_capture(folder, name)
    elf = compile_program(folder, EXAMPLES / f"{name}.c")
    target, file = board(folder, elf), folder / f"{name}.rvt"
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(600)
    session.save(file, context)
    session.close()
    return file


@pytest.mark.parametrize("page", SEARCHES)
def test_the_bug_is_found_again(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search, text = SEARCHES[page], (PAGES / f"{page}.md").read_text(encoding="utf-8")
    file = captured(folder, search.program)
    explained = answer("explain FILE", file, capsys)
    assert len(search.asked) <= 2
    said = explained + "".join(
        answer(proposed(explained) if it is NEXT else it, file, capsys) for it in search.asked
    )  # fmt: skip
    for fact in search.found:
        either = fact.split("|")
        assert any(it in text for it in either), f"the page does not say {fact}"
        assert any(it in said for it in either), f"{fact}\n{said}"


def test_every_tutorial_has_its_search() -> None:
    """These two are asked below."""
    assert {*SEARCHES, "several-harts", "a-trace-somebody-sent"} == {it.stem for it in PAGES.glob("*.md")}


def test_two_harts_write_what_they_read_before_the_other_wrote(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/tutorials/several-harts.md: the balance is read in line 27 and written in line 29, and is 30 in the end."""
    file = example_capture(folder, "two_harts")
    assert "findings" in answer("explain FILE --json", file, capsys)
    times = {line: _times(answer(f"log FILE two_harts.c:{line} amount --json", file, capsys)) for line in (27, 29)}
    lost = 0
    for hart in (0, 1):
        pairs = zip(times[27][hart], times[29][hart], strict=True)
        lost += sum(any(read < it < wrote for it in times[29][1 - hart]) for read, wrote in pairs)
    assert len(times[29][0]) + len(times[29][1]) == 40
    assert 0 < lost <= 2 * (40 - 30)  # each payment that is lost is one of a pair, and times are those of messages


def _times(rows: str) -> dict[int, list[int]]:
    """The times of the rows of each hart."""
    found: dict[int, list[int]] = {0: [], 1: []}
    for row in map(json.loads, rows.splitlines()):
        found[row["hart"]].append(row["time"])
    return found


def test_what_somebody_sent_is_said_to_have_been_encoded_with_other_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/tutorials/a-trace-somebody-sent.md"""
    elf = compile_program(folder, EXAMPLES / "demo.c")
    target, sent = board(folder, elf), folder / "sent.bin"
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {"timestamps": True, "implicit_return": "full"})
    target.run(2000)
    session.save(folder / "sent.rvt", context)
    session.close()
    sent.write_bytes(capture_file.load(folder / "sent.rvt").sinks[0].data)
    assert main(["explain", str(sent), "--ntrace", "--elf", str(elf), "--quiet"]) == 0
    said, hint = capsys.readouterr()
    page = (PAGES / "a-trace-somebody-sent.md").read_text(encoding="utf-8")
    (advice,) = re.findall(r"hint: +(the trace fits far better with .*)", page)
    assert advice in hint
    assert "Missing: 1 gap, the last at #92" in said and "91 instructions can be read" in page
    assert proposed(said).startswith("rvtrace calls-of") and "Next: rvtrace gaps" in said


def test_why_a_place_ran_is_asked_without_a_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/tutorials/it-hangs.md: the backtrace at 330; and without -branches there is nothing to say of the pc."""
    file = example_capture(folder, "hang")
    rows = answer("why FILE $pc --branches --at 330", file, capsys).splitlines()
    page = (PAGES / "it-hangs.md").read_text(encoding="utf-8")
    for row, place in zip(rows, ("hang.c:41", "hang.c:57"), strict=False):
        assert "called at\t" in row and place in row and place in page
    assert main(["why", str(file), "$pc", "--at", "330", "--quiet"]) == 1
    assert "every instruction writes the pc" in capsys.readouterr().err
