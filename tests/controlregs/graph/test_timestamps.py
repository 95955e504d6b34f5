"""Where time comes from: the top funnel has it and all below share it; without funnels each encoder its own.

The clock that timestamps count can be divided: trTsPrescale of the unit that counts, and what is said of the others.
Bits are those of the Trace Control Interface 1.0: trTsMode 6:4, trTsPrescale 9:8, trTsEnable 15.
"""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, SinkBuffer, TraceRequest
from tests.controlregs.graph.graph_model import LOW, GraphEncoder, GraphFunnel, Models, World, ram, world

TIME = 0x40
RUNS, ENABLED = 0b11, 1 << 15  # trTsActive and trTsCount; trTsEnable
MODES = 7 << 4


def two_levels(**models: Any) -> World:
    made: Models = {"ram0": ram(), "top": GraphFunnel(), "low": GraphFunnel()}
    made |= {"enc0": GraphEncoder(), "enc1": GraphEncoder()}
    edges = [("top", "ram0"), ("low", "top"), ("enc0", "low"), ("enc1", "top")]
    return world(made | models, edges, timeout=0.02)


def start(w: World, mode: int = TsMode.INTERNAL_SYSTEM, on: bool = True) -> GraphSettings:
    request = TraceRequest(timestamps=on, ts_mode=mode)
    buffers = {"ram0": SinkBuffer(LOW, 0x1000), "ram1": SinkBuffer(LOW + 0x1000, 0x1000)}
    return procedures.start(w.graph, GraphRequest(request, buffers))


def modes(w: World) -> dict[str, int]:
    return {name: m.registers.get(TIME, 0) >> 4 & 7 for name, m in w.models.items() if name[:3] != "ram"}


@pytest.mark.parametrize("mode", [TsMode.INTERNAL_SYSTEM, TsMode.EXTERNAL])
def test_the_top_funnel_has_the_time(mode: TsMode) -> None:
    w = two_levels()
    got = start(w, mode)
    assert got.notes == ()
    assert modes(w) == {"top": mode, "low": 4, "enc0": 4, "enc1": 4}
    assert all(w.models[name].registers[TIME] & RUNS == RUNS for name in ("top", "low", "enc0", "enc1"))
    assert all(encoder.timestamps for encoder in got.encoders)
    assert got.clocks == {"enc0": "top", "enc1": "top"}
    assert [(f.name, f.ts_mode, f.timestamp_bits) for f in got.funnels] == [("top", mode, 40), ("low", 4, 40)]


def test_each_core_its_own() -> None:
    """Internal-core time is the encoders' only; funnels keep their units in reset."""
    w = two_levels()
    got = start(w, TsMode.INTERNAL_CORE)
    assert got.notes == () and got.clocks == {}
    assert modes(w) == {"top": 0, "low": 0, "enc0": 3, "enc1": 3}
    assert w.models["top"].registers[TIME] & 1 == 0


def test_without_timestamps_all_units_stay_in_reset() -> None:
    w = two_levels()
    assert start(w, on=False).notes == ()
    assert {name: m.registers[TIME] & 0x807F for name, m in w.models.items() if name != "ram0"} == dict.fromkeys(
        ("top", "low", "enc0", "enc1"), 0
    )


@pytest.mark.parametrize(
    ("models", "notes", "clocks"),
    [
        (
            {"top": GraphFunnel(timestamps=0)},
            [
                "top has no timestamp unit to share: each encoder below it counts its own, and times of different "
                "harts cannot be compared"
            ],
            {},
        ),
        (
            {"low": GraphFunnel(timestamps=0)},
            ["low cannot share the time of top (trTsMode reads 0, none)"],
            {"enc1": "top"},
        ),
        (
            {"top": GraphFunnel(timestamps=0x1F)},
            ["top: time comes from external, not internal_system"],
            {"enc0": "top", "enc1": "top"},
        ),
        (
            {"enc1": GraphEncoder(timestamps=0x802F)},
            [
                "enc1 cannot share the time of top, its own comes from internal_system: it cannot be compared with "
                "that of other harts"
            ],
            {"enc0": "top"},
        ),
        ({"enc0": GraphEncoder(timestamps=0)}, ["enc0 has no timestamps"], {"enc1": "top"}),
    ],
)
def test_what_cannot_be_had_is_said(models: dict[str, Any], notes: list[str], clocks: dict[str, str]) -> None:
    w = two_levels(**models)
    got = start(w)
    assert list(got.notes) == notes
    assert got.clocks == clocks


def test_a_unit_that_does_not_wake() -> None:
    """trTsActive stays 0 though there is a counter: tracing goes on without time."""
    models: Models = {"ram0": ram(), "top": GraphFunnel(timestamps=0x37E), "enc0": GraphEncoder()}
    w = world(models, [("top", "ram0"), ("enc0", "top")], timeout=0.02)
    assert start(w).notes == ("top has no time to give: its timestamp unit stays in reset (trTsActive reads 0)",)
    assert modes(w) == {"top": 0, "enc0": 2}


def test_two_top_funnels_are_two_clocks() -> None:
    models: Models = {"ram0": ram(), "ram1": ram(), "f0": GraphFunnel(), "f1": GraphFunnel()}
    models |= {"enc0": GraphEncoder(), "enc1": GraphEncoder()}
    edges = [("f0", "ram0"), ("f1", "ram1"), ("enc0", "f0"), ("enc1", "f1")]
    got = start(world(models, edges))
    assert got.notes == (
        "f0 and f1 each count their own time: times of harts below different ones cannot be compared",
    )
    assert got.clocks == {"enc0": "f0", "enc1": "f1"}
    assert start(world({**models, "ram0": ram(), "ram1": ram()}, edges), TsMode.EXTERNAL).notes == ()


def test_many_top_funnels_are_named_by_the_first_and_the_last() -> None:
    """In the order of their numbers, of which f10 has the highest."""
    numbers = range(8, 11)
    models: Models = {f"{kind}{n}": made() for n in numbers for kind, made in (("ram", ram), ("f", GraphFunnel))}
    models |= {f"enc{n}": GraphEncoder() for n in numbers}
    edges = [edge for n in numbers for edge in ((f"f{n}", f"ram{n}"), (f"enc{n}", f"f{n}"))]
    [note] = start(world(models, edges)).notes
    assert note.startswith("f8 to f10 each count their own time: ")


def test_an_encoder_beside_the_funnels_counts_itself() -> None:
    models: Models = {"ram0": ram(), "ram1": ram(), "f0": GraphFunnel(), "enc0": GraphEncoder(), "enc1": GraphEncoder()}
    w = world(models, [("f0", "ram0"), ("enc0", "f0"), ("enc1", "ram1")])
    assert start(w).clocks == {"enc0": "f0"}
    assert modes(w) == {"f0": 2, "enc0": 4, "enc1": 2}


EXTERNAL, SYSTEM, CORE, SHARED = 1, 2, 3, 4


def started(w: World, mode: int, prescale: int) -> GraphSettings:
    trace = TraceRequest(timestamps=True, ts_mode=TsMode(mode), ts_prescale=prescale)
    return procedures.start(w.graph, GraphRequest(trace, {"ram0": SinkBuffer(LOW, 0x1000)}))


def unit(w: World, name: str) -> tuple[int, int]:
    """trTsMode and trTsPrescale."""
    value = w.models[name].registers[0x40]
    return value >> 4 & 7, value >> 8 & 3


@pytest.mark.parametrize("prescale", range(4))
@pytest.mark.parametrize("mode", [SYSTEM, CORE])
def test_the_encoder_counts(mode: int, prescale: int) -> None:
    w = world({"ram0": ram(), "enc0": GraphEncoder()}, [("enc0", "ram0")])
    assert started(w, mode, prescale).notes == ()
    assert unit(w, "enc0") == (mode, prescale)


@pytest.mark.parametrize("prescale", range(4))
def test_the_funnel_at_the_top_counts(prescale: int) -> None:
    encoders = {name: GraphEncoder() for name in ("enc0", "enc1")}
    models: Models = {"ram0": ram(), "top": GraphFunnel(), "low": GraphFunnel(), **encoders}
    w = world(models, [("top", "ram0"), ("low", "top"), ("enc0", "low"), ("enc1", "low")])
    assert started(w, SYSTEM, prescale).notes == ()
    found = {name: unit(w, name) for name in ("top", "low", "enc0", "enc1")}
    assert found == {"top": (SYSTEM, prescale), **dict.fromkeys(("low", "enc0", "enc1"), (SHARED, 0))}


@pytest.mark.parametrize(
    ("timestamps", "mode", "prescale", "line"),
    [
        (0x00FF_807F, SYSTEM, 3, "enc0: its clock for timestamps is divided by 1, not by 64"),
        (0x00FF_817F, SYSTEM, 3, "enc0: its clock for timestamps is divided by 4, not by 64"),
        (0x00FF_837F, EXTERNAL, 2, "enc0: time comes from external, which cannot be divided"),
    ],
)
def test_what_is_not_granted_is_said(timestamps: int, mode: int, prescale: int, line: str) -> None:
    w = world({"ram0": ram(), "enc0": GraphEncoder(timestamps=timestamps)}, [("enc0", "ram0")])
    assert started(w, mode, prescale).notes == (line,)


def test_a_time_that_is_not_divided_by_anything_is_not_mentioned() -> None:
    w = world({"ram0": ram(), "enc0": GraphEncoder(timestamps=0x00FF_807F)}, [("enc0", "ram0")])
    assert started(w, EXTERNAL, 0).notes == started(w, SYSTEM, 0).notes == ()
