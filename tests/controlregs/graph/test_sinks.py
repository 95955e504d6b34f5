"""PIB sinks and ATB bridges: the programming sequence, what was not granted, and calibration."""

from typing import Any

import pytest

from rvtrace_gdb.controlregs import sifive_v0
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.fields import FieldRange
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibPins, TraceRequest
from tests.controlregs.graph.graph_model import GraphBridge, GraphEncoder, GraphFunnel, GraphPib, World, ram, world
from tests.controlregs.trace_control.component_model import ENABLE

ETRACE = {"impl": 0x0000_0101, "modes": (7,), "fixed_ones": 0, "fixed_zeros": 7 << 24}


def pins(pib: dict[str, Any], encoder: dict[str, Any] | None = None, **asked: Any) -> tuple[World, GraphSettings]:
    w = world({"pib0": GraphPib(**pib), "enc0": GraphEncoder(**encoder or {})}, [("enc0", "pib0")])
    return w, procedures.start(w.graph, GraphRequest(pins={"pib0": PibPins(**asked)}))


@pytest.mark.parametrize("mode", [mode for mode in PibMode if mode])
def test_all_modes(mode: PibMode) -> None:
    w, got = pins({}, mode=mode, divider=0x1234)
    assert got.notes == ()
    assert (got.pib_sinks[0].mode, got.pib_sinks[0].divider, got.pib_sinks[0].clk_center) == (mode, 0x1234, False)
    assert w.models["pib0"].control & 0xFFFF_03F2 == 0x1233 << 16 | mode << 4 | ENABLE


def test_clock_edges_in_the_middle_need_the_mode_first() -> None:
    """The model takes trPibClkCenter in parallel modes only."""
    _, got = pins({}, mode=PibMode.PARALLEL_16, clk_center=True)
    assert (got.pib_sinks[0].clk_center, got.notes) == (True, ())


@pytest.mark.parametrize(
    ("pib", "asked", "note"),
    [
        ({"dividers": 7}, {"divider": 20}, "pib0 divides its clock by 4, not by 20"),
        ({"centers": 0}, {"clk_center": True}, "pib0 cannot have the edge of its clock in the middle of a bit"),
        ({"fixed_ones": 1 << 8}, {"clk_center": False}, "pib0 always has the edge of its clock in the middle of a bit"),
    ],
)
def test_what_was_not_granted_is_said(pib: dict[str, Any], asked: dict[str, Any], note: str) -> None:
    assert pins(pib, mode=PibMode.PARALLEL_4, **asked)[1].notes == (note,)


@pytest.mark.parametrize(
    ("pib", "asked", "text"),
    [
        (
            {"modes": (4, 9)},
            {"mode": PibMode.PARALLEL_4},
            "it cannot send parallel_4 (trPibMode reads 0); give the mode your probe receives, it has swt_manchester, "
            "parallel_2",
        ),
        (
            {"modes": (0,)},
            {},
            "its pins are off (trPibMode reads 0); give the mode your probe receives, it has none at all",
        ),
        (
            {"fixed_ones": 1 << 9},
            {"mode": PibMode.SWT_UART},
            "always sends its calibration pattern, and no trace (trPibCalibrate stays 1)",
        ),
    ],
)
def test_what_nothing_works_without_is_refused(pib: dict[str, Any], asked: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingRefused) as caught:
        pins(pib, **asked)
    assert str(caught.value) == f"pib0 at 0x20000000: {text}"


def test_a_mode_that_is_hard_wired_need_not_be_given() -> None:
    _, got = pins({"modes": (), "fixed_ones": 10 << 4})
    assert (got.pib_sinks[0].mode, got.notes) == (10, ())


def test_a_divider_there_is_no_room_for() -> None:
    with pytest.raises(FieldRange, match="65536 does not fit trPibDivider, which has 16 bits"):
        pins({}, mode=PibMode.SWT_UART, divider=65537)


@pytest.mark.parametrize(("asyncs", "notes"), [(7, 0), (0, 1)])
def test_etrace_gets_alignment_sequences(asyncs: int, notes: int) -> None:
    _, got = pins({"asyncs": asyncs}, ETRACE, mode=PibMode.PARALLEL_4)
    assert (bool(got.pib_sinks[0].async_freq), len(got.notes)) == (bool(asyncs), notes)


def test_calibration() -> None:
    w, _ = pins({}, mode=PibMode.PARALLEL_4)
    pib = w.component("pib0")
    procedures.stop(w.graph)
    got = procedures.calibrate(pib, PibPins(PibMode.PARALLEL_8, divider=2))
    assert (got.mode, got.divider) == (PibMode.PARALLEL_8, 2)
    assert w.models["pib0"].control & (ENABLE | 1 << 9) == ENABLE | 1 << 9
    procedures.start(w.graph, GraphRequest(pins={"pib0": PibPins(PibMode.PARALLEL_8)}))
    assert w.models["pib0"].control & (ENABLE | 1 << 9) == ENABLE


def test_no_calibration_mode() -> None:
    w = world({"pib0": GraphPib(calibrates=0), "enc0": GraphEncoder()}, [("enc0", "pib0")])
    with pytest.raises(SettingRefused, match=r"has no calibration mode \(trPibCalibrate stays 0\); use it without"):
        procedures.calibrate(w.component("pib0"), PibPins(PibMode.PARALLEL_8))
    assert not w.models["pib0"].control & ENABLE


def bridge(options: dict[str, Any], atb_id: int | None, encoder: dict[str, Any] | None = None) -> GraphSettings:
    models = {"atb0": GraphBridge(**options), "f0": GraphFunnel(), "enc0": GraphEncoder(**encoder or {})}
    w = world({**models}, [("f0", "atb0"), ("enc0", "f0")])
    return procedures.start(w.graph, GraphRequest(atb_ids={} if atb_id is None else {"atb0": atb_id}))


@pytest.mark.parametrize("atb_id", [1, 0x6F])
def test_atb_ids(atb_id: int) -> None:
    got = bridge({}, atb_id)
    assert (got.bridges[0].atb_id, got.notes) == (atb_id, ())


def test_a_fixed_id() -> None:
    assert bridge({"fixed_id": 9}, 5).notes == ("atb0: its ID on ATB is 9, not 5",)
    assert bridge({"fixed_id": 9}, None).bridges[0].atb_id == 9


@pytest.mark.parametrize(("fixed", "asked"), [(0, None), (0, 5), (0x70, 3), (None, 0x7F)])
def test_reserved_ids_are_refused(fixed: int | None, asked: int | None) -> None:
    got = fixed if fixed is not None else asked
    text = f"its ID on ATB would be {got:#04x}, which is reserved there \\(trAtbBridgeID\\); give one of 1 to 111"
    with pytest.raises(SettingRefused, match=text):
        bridge({} if fixed is None else {"fixed_id": fixed}, asked)


def test_alignment_sequences_on_atb_are_set_in_impl() -> None:
    """The ratified text has trAtbBridgeAsyncFreq there."""
    assert bridge({}, 5, ETRACE).bridges[0].async_freq != 0
    assert bridge({}, 5).bridges[0].async_freq == 0


def test_asked_alignment() -> None:
    w = world({"pib0": GraphPib(), "enc0": GraphEncoder()}, [("enc0", "pib0")])
    request = GraphRequest(TraceRequest(async_freq=2), pins={"pib0": PibPins(PibMode.SWT_UART)})
    assert procedures.start(w.graph, request).pib_sinks[0].async_freq == 2


def test_the_interface_of_before_ratification_is_refused() -> None:
    w = world({"ram0": ram(), "enc0": GraphEncoder()}, [("enc0", "ram0")])
    old = Component(w.target, 0x10_0000, sifive_v0.ENCODER, "enc1")
    with pytest.raises(SettingRefused, match="enc1 at 0x100000: has the trace control interface older than"):
        Graph.build([w.component("ram0"), old], [("enc1", "ram0")])


@pytest.mark.parametrize(
    ("order", "edges", "text"),
    [
        (["enc0", "ram0"], [("enc0", "ram0")], "enc0 sends to ram0, which has to come before it"),
        (["ram0", "enc0"], [], "enc0 sends to nothing"),
        (["ram0", "ram0"], [], "two components have one name: ram0, ram0"),
        (["ram0", "f0", "enc0"], [("f0", "ram0"), ("enc0", "f0")], "enc0 has no input of f0"),
    ],
)
def test_a_graph_that_contradicts_itself(order: list[str], edges: list[tuple[str, str]], text: str) -> None:
    w = world({"ram0": ram(), "f0": GraphFunnel(), "enc0": GraphEncoder()}, [("f0", "ram0"), ("enc0", "f0")])
    with pytest.raises(ValueError, match=text):
        Graph.build([w.component(name) for name in order], edges)
