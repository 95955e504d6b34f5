"""Which captures use the states that others have left: the same trace of the same program, with all that is known."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session import kept_files
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture, CapturedSink
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past import states_name
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.reconstructed import execution as execution_module
from rvtrace_gdb.session.session import Session
from tests.session.board import board


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are kept, also of short histories."""
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(execution_module, "LEAST", 1)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """An N-Trace with the registers at its beginning."""
    demo = board(tmp_path_factory.mktemp("states"))
    demo.registers = True
    file, context = demo.folder / "demo.rvt", demo.describe()
    with closing(Session(demo.connect, {})) as session:
        session.start(context)
        demo.run(700)
        session.save(file, context)
    return capture_file.load(file)


def values(capture: Capture, *, values: str = "on", check: bool = False) -> list[dict[str, int]]:
    """The registers at some places, of a capture that is opened in a new session."""
    session = Session()
    session.open_capture(capture, "x.rvt", None)
    if check:
        session.check()
    selected = session.selected(Context())
    past = past_of(session, selected._replace(values=values))
    assert past is not None
    past.prepare()
    places = range(0, len(selected.history), 97)
    return [{name: it[name] for name in it} for it in map(past.registers, places)]


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_it_is_used_for_the_same_and_only_then(capture: Capture, folder: Path) -> None:
    first = values(capture)
    before = files(folder)
    assert len(before) == 1 and values(capture) == first and files(folder) == before


def with_data(capture: Capture, change: Callable[[bytes], bytes]) -> Capture:
    (sink,) = capture.captured
    assert isinstance(sink, CapturedSink)
    return replace(capture, sinks=(replace(sink, data=change(sink.data)),))


CHANGES: dict[str, Callable[[Capture], Capture]] = {
    "a register at the start": lambda it: replace(
        it, registers=tuple(replace(saved, registers={**saved.registers, 0x1009: 77}) for saved in it.registers)
    ),
    "less trace": lambda it: replace(
        with_data(it, lambda data: data[: len(data) // 2]), registers=it.registers[:1]  # they were read where it starts
    ),
    "trace that is damaged": lambda it: with_data(it, lambda data: data[:60] + bytes([255]) * 8 + data[68:]),
    "memory that is declared": lambda it: replace(it, ranges=(MemoryRange(0x8000_0000, 1 << 20, MemoryKind.RAM),)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_capture_has_another(what: str, capture: Capture, folder: Path) -> None:
    values(capture)
    before, other = files(folder), CHANGES[what](capture)
    with_files = values(other)
    assert len(files(folder)) == len(before) + 1
    assert values(other) == with_files
    for file in folder.iterdir():
        file.unlink()
    assert values(other) == with_files


def test_so_have_other_settings_other_code_and_another_version(
    capture: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values(capture)
    values(capture, values="registers")
    assert len(files(folder)) == 2
    monkeypatch.setattr(states_name, "tool", lambda: "rvtrace of tomorrow")
    values(capture)
    assert len(files(folder)) == 3
    monkeypatch.setattr(states_name, "sources_of", lambda *folders: (("execution.py", 1, 2),))
    values(capture)
    assert len(files(folder)) == 4


def test_a_trace_that_is_recorded_leaves_none(tmp_path: Path, folder: Path) -> None:
    demo = board(tmp_path)
    demo.registers = True
    context = demo.describe()
    with closing(Session(demo.connect, {})) as session:
        session.start(context)
        demo.run(700)
        past = past_of(session, session.selected(context))
        assert past is not None
        past.prepare()
    assert not folder.exists()
