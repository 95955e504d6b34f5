"""Notes at places of the past: the session of docs/share.md in gdb, `rvtrace note`, and what the file keeps."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.note_text import note_line
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.model import CapturedSink, PlaceNote
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.program import CodeOnTarget
from rvtrace_gdb.session.queries import notes
from rvtrace_gdb.session.queries.notes import NoteError
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.link import Link
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers import reference_streams
from tests.helpers.page_sessions import sessions, shown
from tests.tutorials.page import is_printed

ELF = reference_streams.FOLDER / "median.elf"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("note") / "x.rvt"
    stream = reference_streams.FOLDER / "median.1.nex"
    assert main(["import", str(stream), "--ntrace", "--elf", str(ELF), "-o", str(made), "--quiet"]) == 0
    return made


@pytest.fixture
def capture(imported: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "demo.rvt"
    copy.write_bytes(imported.read_bytes())
    return copy


def note(*words: object) -> int:
    return main(["note", *map(str, words), "--quiet"])


def listed(capture: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert note(capture, "--json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_gdb_prints_what_the_page_says(capture: Path) -> None:
    """And what the machine interface and another gdb find in the file then."""
    session, history = sessions("share.md")
    end = ["trace note -delete 2", "trace note -delete 9", "trace note -at 3", "trace note -at 999999999 far away"]
    asked = ["trace note -at 3 -hart 7 x", 'interpreter-exec mi "-rvtrace-note --at 5 hello there"']
    typed = [it.command for it in (*session, *history)]
    said = run_gdb(ELF, [SOURCE, f"cd {capture.parent}", *typed, *end, *asked])
    for command, lines in (*session, *history):
        assert is_printed(lines, "\n".join(shown(said[command]))), f"{command}\n{said[command]}"
    assert said[end[1]].strip() == "there is no note 9: there is 1"
    assert "TEXT is missing" in said[end[2]] and "there is no instruction 999999999: the history has" in said[end[3]]
    assert "hart 7" in said[asked[0]]
    assert 'number="5"' in said[asked[1]] and 'text="hello there"' in said[asked[1]]
    kept = capture_file.load(capture).place_notes
    assert [(it.id, it.number, it.text) for it in kept] == [
        (1, 1725, "the handler comes before the count is set"), (2, 5, "hello there"),
    ]  # fmt: skip


def test_the_shell_notes_and_changes_nothing_else(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = members(capture)
    assert note(capture, "--at", 1200, "\x1b[31mit is  wrong\nalready") == 0
    assert note(capture, "--at", 7, "two", "words", "--json") == 0
    rows = listed(capture, capsys)
    assert [(it["id"], it["number"], it["text"]) for it in rows] == [
        (2, 7, "two words"), (1, 1200, "\x1b[31mit is wrong already"),
    ]  # fmt: skip
    history = Session()
    history.open(capture, str(ELF))
    pcs = history.decoded()[0]
    assert [int(it["addr"], 16) for it in rows] == [pcs.pc(6), pcs.pc(1199)]
    assert note(capture) == 0 and "\\x1b[31mit is wrong" in capsys.readouterr().out
    assert note(capture, "--delete", 1) == 0 and note(capture, "--delete", 2) == 0
    assert members(capture) == before and listed(capture, capsys) == []


def members(capture: Path) -> dict[str, Any]:
    with zipfile.ZipFile(capture) as container:
        found: dict[str, Any] = {name: container.read(name) for name in container.namelist()}
    return {**found, "capture.json": json.loads(found["capture.json"])}


def test_what_cannot_be_noted_is_one_line(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = [reference_streams.FOLDER / "median.1.nex", "--elf", ELF]
    for words, problem in (
        ([capture, "text"], "needs both a TEXT and its place"),
        ([capture, "--at", 3], "needs both a TEXT and its place"),
        ([capture, "--at", 3, "x", "--delete", 1], "--delete N takes no TEXT"),
        ([capture, "--at", 3, " "], "needs a text"),
        ([capture, "--at", 3, "x" * 4097], "4096 is the most"),
        ([capture, "--delete", 1], "there is no note 1"),
        ([*raw, "--at", 3, "x"], "is not a capture file"),
    ):
        assert note(*words) == 1
        error = capsys.readouterr().err
        assert problem in error and error.count("\n") == 1, error


def opened(capture: Path) -> Session:
    session = Session()
    session.open(capture, str(ELF))
    return session


def test_what_somebody_else_noted_meanwhile_stays(capture: Path) -> None:
    first, second = opened(capture), opened(capture)
    for session in (first, second):
        notes.add(session, session.selected(Context()), 10, "mine")
    assert [it.id for it in notes.rows(first, first.harts())] == [1]
    assert [it.id for it in notes.rows(second, second.harts())] == [1, 2]
    assert [it.id for it in capture_file.load(capture).place_notes] == [1, 2]


def test_another_trace_under_the_name_gets_no_notes(capture: Path) -> None:
    session = opened(capture)
    selected = session.selected(Context())
    capture_file.save(replace(capture_file.load(capture), created="2001-01-01T00:00:00Z"), capture)
    with pytest.raises(NoteError, match="has another trace by now"):
        notes.add(session, selected, 10, "mine")
    assert capture_file.load(capture).place_notes == ()


def test_a_file_that_cannot_be_written_is_said(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(capture)
    before = capture.read_bytes()

    def refused(*arguments: object) -> None:
        raise CaptureError(str(capture), "cannot be written: Permission denied")

    monkeypatch.setattr(capture_file, "save_notes", refused)
    made, lines = notes.add(session, session.selected(Context()), 10, "mine")
    assert "Permission denied: `trace save FILE` keeps it in another one" in lines[0]
    assert capture.read_bytes() == before
    session.save(capture.with_name("y.rvt"), Context())
    assert capture_file.load(capture.with_name("y.rvt")).place_notes == (made,)


_PLACES: list[tuple[Callable[[PlaceNote], PlaceNote], str]] = [
    (lambda it: replace(it, number=None), "@?  0x00000000"),
    (lambda it: replace(it, pc=0x1234), "[this history has another instruction there"),
    (lambda it: replace(it, number=1 << 40), "[this history has no such place]"),
    (lambda it: replace(it, hart=9), "[this history has no such place]"),
]


@pytest.mark.parametrize(("change", "says"), _PLACES)
def test_a_place_that_is_another_one_is_not_shown_as_it(
    capture: Path, change: Callable[[PlaceNote], PlaceNote], says: str
) -> None:
    session = opened(capture)
    made, _ = notes.add(session, session.selected(Context()), 10, "mine")
    row = notes.row_of(change(made), session.harts())
    assert row.doubt and says in note_line(row, _Plain())


class _Plain:
    """Symbols that are addresses alone."""

    def address_text(self, place: tuple[Any, ...]) -> str:
        return f"{place[0]:#018x}"

    def function_text(self, pc: int, name: str | None) -> str:
        return ""

    def source_lines(self, pc: int, name: str | None, addresses: object) -> str:
        return ""

    def paint(self, what: str, text: str) -> str:
        return text


def test_numbers_of_a_ring_that_has_overwritten_more_are_not_known(capture: Path) -> None:
    """As it is of a target: the trace is read out again, and its oldest part is gone."""
    session = opened(capture)
    made, _ = notes.add(session, session.selected(Context()), 10, "mine")
    reading = session.require_capture()
    sink = reading.capture.sinks[0]
    assert isinstance(sink, CapturedSink)
    reading._target = CodeOnTarget(cast(Link, None), ())  # all code is in the ELF: it is asked for nothing
    for wrapped, number in ((False, 10), (True, None)):
        cut = replace(sink, data=sink.data[: len(sink.data) // 2 - wrapped], wrapped=wrapped)
        reading.capture = replace(reading.capture, sinks=(cut,))
        reading.decode(str(ELF))
        assert [it.number for it in reading.capture.place_notes] == [number]
    assert made.number == 10
