"""Timelines: read back by Perfetto's own messages, or as JSON, and compared with what ran."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.exports import extra_library
from tests.helpers.reference_streams import golden
from tests.session.exports import exported
from tests.session.exports.exported import PROGRAMS, export, options, ran_in, retired, stream

each_form = pytest.mark.parametrize("form", ["perfetto", "chrome"])


class Event(NamedTuple):
    """An event of a file. *phase*: B, E, i or C; times in the unit of the axis."""

    at: int
    phase: str
    hart: str
    track: str
    name: str
    category: str
    values: dict[str, Any]


class Slice(NamedTuple):
    """*alone*: its length without that of the slices in it."""

    begin: int
    end: int
    name: str
    category: str
    values: dict[str, Any]
    alone: int


def perfetto_events(data: bytes) -> Iterator[Event]:
    """Names are sent once, and the events of a sequence have their numbers."""
    trace = perfetto.Trace()
    trace.ParseFromString(data)
    names: dict[str, dict[int, str]] = {}
    tracks: dict[int, Any] = {}
    phases = {1: "B", 2: "E", 3: "i", 4: "C"}
    for packet in trace.packet:
        for field in ("event_names", "event_categories", "debug_annotation_names"):
            for row in getattr(packet.interned_data, field):
                assert row.iid not in names.setdefault(field, {})
                names[field][row.iid] = row.name
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event, values = packet.track_event, {}
        for it in event.debug_annotations:
            values[names["debug_annotation_names"][it.name_iid]] = it.string_value or it.int_value
        if event.type == perfetto.TrackEvent.TYPE_COUNTER:
            values["value"] = event.double_counter_value or event.counter_value
        track = tracks[event.track_uuid]
        process = tracks[track.parent_uuid].process.process_name
        name = names["event_names"][event.name_iid] if event.name_iid else ""
        category = names["event_categories"][event.category_iids[0]] if event.category_iids else ""
        yield Event(packet.timestamp, phases[event.type], process, track.name, name, category, values)


def chrome_events(data: bytes) -> Iterator[Event]:
    """By "Trace Event Format": names of processes and threads come in metadata; microseconds."""
    file = json.loads(data)
    processes, threads = dict[int, str](), dict[tuple[int, int], str]()
    for row in file["traceEvents"]:
        if row["ph"] == "M" and row["name"] == "process_name":
            processes[row["pid"]] = row["args"]["name"]
        elif row["ph"] == "M":
            threads[row["pid"], row["tid"]] = row["args"]["name"]
        else:
            track = row["name"] if row["ph"] == "C" else threads[row["pid"], row["tid"]]
            at = round(row["ts"] * 1000)
            name, category = row.get("name", ""), row.get("cat", "")
            yield Event(at, row["ph"], processes[row["pid"]], track, name, category, row.get("args", {}))


READERS = {"perfetto": perfetto_events, "chrome": chrome_events}


def slices(events: list[Event], track: str = "calls") -> list[Slice]:
    """The slices of a track, as viewers find them: sorted by time, those of the same time in the order of the file."""
    open_slices: list[tuple[Event, list[int]]] = []
    found = []
    for event in sorted((it for it in events if it.track == track), key=lambda it: it.at):
        if event.phase == "B":
            open_slices.append((event, [0]))
        elif event.phase == "E":
            begin, (inner,) = open_slices.pop()
            length = event.at - begin.at
            if open_slices:
                open_slices[-1][1][0] += length
            values = {**begin.values, **event.values}
            found.append(Slice(begin.at, event.at, begin.name, begin.category, values, length - inner))
    assert not open_slices
    return found


def read(form: str, data: bytes) -> list[Event]:
    return list(READERS[form](data))


@pytest.mark.parametrize("program", PROGRAMS)
@each_form
def test_the_slices_are_what_ran(form: str, program: str, tmp_path: Path) -> None:
    """Without what their callees ran, the slices of a function are as long as the instructions that ran in it."""
    data = export(form, tmp_path / "x", stream(program), options(program), "--resolution", "0")
    events = read(form, data)
    assert {it.hart for it in events} == {"hart 0 (1 ns is 1 instruction)"}
    alone: Counter[str] = Counter()
    for it in slices(events):
        alone[it.name.removesuffix(" [trap]")] += it.alone
    assert alone == ran_in(program, retired(program), set(alone))
    outermost = max(it.end for it in slices(events))
    assert outermost == golden(program)[0]


@each_form
def test_calls_are_drawn_or_counted(form: str, tmp_path: Path) -> None:
    """The towers are moved 2 * (2**7 - 1) times; how long a call takes follows from the addresses that ran."""
    exact = slices(read(form, export(form, tmp_path / "x", stream("towers"), options("towers"), "--resolution", "0")))
    moves = [it for it in exact if it.name == "towers_solve_h"]
    assert len(moves) == 2 * (2**7 - 1)
    called = sum("entered before" not in it.values for it in exact)
    for resolution in (10, 100, 3000):
        words = ("--resolution", str(resolution))
        events = read(form, export(form, tmp_path / "x", stream("towers"), options("towers"), *words))
        assert {it.hart for it in events} == {f"hart 0 (1 ns is 1 instruction, shorter than {resolution} summed up)"}
        found = slices(events)
        drawn = [it for it in found if it.category == "call"]
        assert [it[:3] for it in drawn] == [it[:3] for it in exact if it.end - it.begin >= resolution]
        assert all(it.end - it.begin >= resolution for it in found)
        summed = sum(it.values.get("calls", 0) + it.values.get("short calls in it", 0) for it in found)
        assert summed + sum("entered before" not in it.values for it in drawn) == called
        assert summed > 0


@each_form
def test_nothing_is_summed_up_where_it_is_to_be_exact(form: str, tmp_path: Path) -> None:
    words = options("towers")
    exact = slices(read(form, export(form, tmp_path / "x", stream("towers"), words, "--resolution", "0")))
    more = ("--resolution", "1000", "--exact", "5001,6000")
    found = slices(read(form, export(form, tmp_path / "x", stream("towers"), words, *more)))
    inside = [it[:3] for it in exact if it.begin < 6000 and it.end > 5000]
    assert [it[:3] for it in found if it.begin < 6000 and it.end > 5000 and it.category == "call"] == inside
    assert len(found) < len(exact) / 2


@each_form
def test_a_part_is_written_alone(form: str, tmp_path: Path) -> None:
    words = options("towers")
    whole = slices(read(form, export(form, tmp_path / "x", stream("towers"), words, "--resolution", "0")))
    part = slices(read(form, export(form, tmp_path / "x", stream("towers"), words, "--range", "5001,6000")))
    expected = [(max(it.begin, 5000), min(it.end, 6000), it.name) for it in whole if it.begin < 6000 and it.end > 5000]
    assert Counter(it[:3] for it in part) == Counter(expected)


@each_form
def test_harts_have_processes_and_times(form: str, tmp_path: Path) -> None:
    """The messages of the first hart come at 100, 110, ...; of the second one at 155, 165, ..., half as many."""
    trace, words = exported.two_harts(tmp_path)
    events = read(form, export(form, tmp_path / "x", trace, words))
    names = ["hart 1 (1 ns is 1 tick of the trace's time)", "hart 2 (1 ns is 1 tick of the trace's time)"]
    assert sorted({it.hart for it in events}) == names
    for name, first in zip(names, (100, 155), strict=True):
        own = [it for it in events if it.hart == name]
        assert min(it.at for it in own) == first and {it.at % 10 for it in own} == {first % 10}
        speeds = [it for it in own if it.track == "instructions per tick"]
        assert len(speeds) > 10 and all(it.phase == "C" for it in speeds)
    first, second = (max(it.at for it in events if it.hart == name) for name in names)
    ran = sum(
        (after.at - it.at) * it.values["value"]
        for it, after in zip(speeds_of(events, names[0]), speeds_of(events, names[0])[1:], strict=False)
    )
    assert ran <= golden("median")[0] and second < first
    alone = read(form, export(form, tmp_path / "x", trace, words, "--hart", "2"))
    assert alone == [it for it in events if it.hart == names[1]]


def speeds_of(events: list[Event], hart: str) -> list[Event]:
    return [it for it in events if it.hart == hart and it.track == "instructions per tick"]


@each_form
def test_losses_are_drawn_as_losses(form: str, tmp_path: Path) -> None:
    trace = exported.damaged(tmp_path)
    events = read(form, export(form, tmp_path / "x", trace, options("towers")))
    found = slices(events, "missing")
    pcs = list(exported.opened(trace, "towers").decoded()[0].pcs())
    assert [(it.begin, it.end) for it in found] == [(at, at + 1) for at, pc in enumerate(pcs) if pc == GAP] != []
    assert all(it.name.startswith("lost: ") and "trace byte" in it.values["why"] for it in found)
    calls = slices(events)
    for gap in found:  # nobody knows what ran there: no call reaches over it
        assert not any(it.begin < gap.end and it.end > gap.begin for it in calls)
    assert sum(it.alone for it in calls) == sum(pc != GAP for pc in pcs)


def test_perfetto_is_named_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(module: str) -> Any:
        raise ImportError(module)

    monkeypatch.setattr(extra_library, "import_module", absent)
    words = ["export", str(stream("towers")), *options("towers"), "--to", "perfetto", "-o", str(tmp_path / "x")]
    assert main([*words, "--quiet"]) == 1
    assert capsys.readouterr().err.startswith("rvtrace: perfetto: perfetto is not installed: ")
    assert not (tmp_path / "x").exists()
