"""Profiles and timelines by task, of the real FreeRTOS, against what the kernel's hooks noted."""

import io
import json
import re
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.export import named, write
from rvtrace_gdb.session.exports.selection import ExportOptions, exported
from rvtrace_gdb.session.session import Session
from tests.helpers.task_systems import Note, freertos
from tests.session.exports.perf.traced_program import perf
from tests.session.tasks.captures import RUN, TaskCapture, captured, turns_noted

ENTRIES = {"maker", "taker", "worker", "boss", "child", "victim", "prvIdleTask"}
ENTRY = {"IDLE": "prvIdleTask", "prey": "victim"}
TAIL = 150
"""Instructions from a hook to where the task goes on, at most."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> TaskCapture:
    return captured(freertos(tmp_path_factory.mktemp("freertos")))


@cache
def opened(capture: Path) -> Session:
    """An export leaves a session as it is: it may have decoded, and have the tasks."""
    session = Session()
    session.open(capture, None)
    return session


def written(capture: TaskCapture, form: str, options: ExportOptions | None = None) -> bytes:
    trace = exported(opened(capture.file), Context(), named(form), options or ExportOptions())
    file = io.BytesIO()
    write(form, trace, file)
    return file.getvalue()


def label(note: Note, noted: list[Note]) -> str:
    """A name, with the kernel's number where another task has the same."""
    alike = {other.number for other in noted if other.name == note.name}
    return f"{note.name} #{note.number}" if len(alike) > 1 else note.name


def test_folded_stacks_begin_with_the_task_and_then_the_function_that_it_was_made_with(capture: TaskCapture) -> None:
    noted = turns_noted(capture.notes)
    ran: Counter[str] = Counter()
    for line in written(capture, "folded").decode().splitlines():
        stack, _, count = line.rpartition(" ")
        _, task, *functions = stack.split(";")
        ran[task] += int(count)
        if task != "[no task]":
            name = task.split(" #")[0]
            assert ENTRIES & set(functions) <= {ENTRY.get(name, name)}
    lengths: Counter[str] = Counter()
    for note, end in zip(noted, [*(after.when for after in noted[1:]), RUN], strict=True):
        lengths[label(note, noted)] += end - note.when
    times = Counter(label(note, noted) for note in noted)
    assert ran.keys() == {*lengths, "[no task]"} and len(lengths) > 10
    assert all(abs(ran[task] - length) <= TAIL * times[task] for task, length in lengths.items())
    assert sum(ran.values()) == pytest.approx(RUN, abs=100)


def test_other_profiles_have_the_task_as_the_outermost_frame(capture: TaskCapture) -> None:
    names = {label(note, turns_noted(capture.notes)) for note in turns_noted(capture.notes)}
    speedscope = json.loads(written(capture, "speedscope"))
    frames = [frame["name"] for frame in speedscope["shared"]["frames"]]
    outermost = {frames[stack[0]] for stack in speedscope["profiles"][0]["samples"]}
    assert outermost == {*names, "[no task]"}
    heads = (line for line in written(capture, "perf-stacks").decode().splitlines() if "instructions:" in line)
    assert {head.partition(" 1/1 ")[0] for head in heads} == {*names, "[no task]"}


def test_tracks_of_timelines_have_the_names_of_tasks(capture: TaskCapture) -> None:
    noted = turns_noted(capture.notes)
    events = json.loads(written(capture, "chrome"))["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert set(tracks.values()) == {"calls", "traps", *(f"task {label(note, noted)}" for note in noted)}
    for event in events:
        if event["ph"] == "B" and event["name"] in ENTRIES:
            name = tracks[event["tid"]].removeprefix("task ").split(" #")[0]
            assert event["name"] == ENTRY.get(name, name)


def test_ctf_says_which_task_has_a_number(capture: TaskCapture, tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(written(capture, "ctf"))) as archive:
        stream = archive.extractfile("trace/hart0")
        assert stream is not None
        data = stream.read()
    noted = turns_noted(capture.notes)
    assert all(label(note, noted).encode() + b"\0" in data for note in noted)


def test_perf_reports_instructions_by_task(capture: TaskCapture, tmp_path: Path) -> None:
    """Tasks are threads of the hart's process, as many of whose instructions are sampled as folded stacks have."""
    data = tmp_path / "perf.data"
    data.write_bytes(written(capture, "perf-data", ExportOptions("100001,140000", itrace="i1i")))
    report = perf("report", "--stdio", "-s", "comm", "-n", data=data)
    found = {name: int(times) for times, name in re.findall(r"^ +[\d.]+% +(\d+)  (\S+)", report, re.MULTILINE)}
    ran: Counter[str] = Counter()
    for line in written(capture, "folded", ExportOptions("100001,140000")).decode().splitlines():
        stack, _, count = line.rpartition(" ")
        ran[stack.split(";")[1].replace("[no task]", "hart0").replace(" ", "-")] += int(count)
    assert found == ran and len(found) > 4
