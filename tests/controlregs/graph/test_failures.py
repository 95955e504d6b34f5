"""What goes wrong in a graph: it is named with register and value, and keeps nothing else from being done."""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import (
    ComponentTimeout,
    SettingRefused,
    StopFailed,
    UnsupportedVersion,
    WrongComponent,
)
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.procedures import read_status
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, PibPins, SinkBuffer, TraceRequest
from tests.controlregs.graph.graph_model import (
    LOW,
    GraphBridge,
    GraphEncoder,
    GraphFunnel,
    GraphPib,
    Models,
    World,
    ram,
    world,
)
from tests.controlregs.trace_control.component_model import ACTIVE, EMPTY, ENABLE

REQUEST = GraphRequest(
    TraceRequest(), {"ram0": SinkBuffer(LOW, 0x400)}, {"pib0": PibPins(PibMode.PARALLEL_4)}, {"atb0": 0x11}
)
KINDS: dict[str, Any] = {"ram0": ram, "pib0": GraphPib, "atb0": GraphBridge, "f0": GraphFunnel, "enc0": GraphEncoder}
PREFIX = {"ram0": "trRam", "pib0": "trPib", "atb0": "trAtbBridge", "f0": "trFunnel", "enc0": "trTe"}
TYPES = {"ram0": 0x3901, "pib0": 0xA01, "atb0": 0xE01, "f0": 0x801, "enc0": 0x1_0101}
EDGES = [("f0", "ram0"), ("f0", "pib0"), ("f0", "atb0"), ("enc0", "f0")]


def all_kinds(**options: dict[str, Any]) -> World:
    """One of each: an encoder, a funnel, and all three ways out of it."""
    models: Models = {name: kind(**options.get(name, {})) for name, kind in KINDS.items()}
    return world(models, EDGES, timeout=0.02)


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize("bit", ["Active", "Enable"])
def test_a_start_that_hangs(name: str, bit: str) -> None:
    """And what was enabled before is off again."""
    w = all_kinds(**{name: {"never": ACTIVE if bit == "Active" else ENABLE}})
    with pytest.raises(ComponentTimeout) as caught:
        procedures.start(w.graph, REQUEST)
    assert str(caught.value).startswith(
        f"{name} at {w.bases[name]:#x}: {PREFIX[name]}Control did not reach {PREFIX[name]}{bit}=1 within 0.02 s "
        f"(it reads {caught.value.value:#010x}); check the component's clock and power"
    )
    assert not any(model.control & ENABLE for model in w.models.values())


@pytest.mark.parametrize("name", list(KINDS))
def test_never_empty(name: str) -> None:
    w = all_kinds(**{name: {"never": EMPTY}})
    procedures.start(w.graph, REQUEST)
    w.models["enc0"].sink.store(b"0123")
    stopped = procedures.stop(w.graph)
    waited = f"{PREFIX[name]}Enable=0 {PREFIX[name]}Empty=1"
    with pytest.raises(ComponentTimeout, match=f"^{name} at .* did not reach {waited} within"):
        procedures.raise_failures(stopped)
    assert len(stopped.failures) == 1
    assert not any(model.shown & ENABLE for model in w.models.values())
    assert procedures.drain_all(w.graph).drained["ram0"].data == b"0123TAIL"


def test_several_that_fail_are_all_named() -> None:
    w = all_kinds(enc0={"never": EMPTY}, pib0={"never": EMPTY})
    procedures.start(w.graph, REQUEST)
    w.target.refused.add(w.bases["f0"])
    with pytest.raises(StopFailed) as caught:
        procedures.raise_failures(procedures.stop(w.graph))
    assert [failure.component for failure in caught.value.failures] == ["enc0", "f0", "pib0"]
    assert "; f0 at 0x20003000: trFunnelControl (0x20003000) cannot be read" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not any(w.models[name].shown & ENABLE for name in ("enc0", "ram0", "pib0", "atb0"))


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize(
    ("version", "text"),
    [(0x00, "0.0, pre-ratified"), (0x30, "0.3, pre-ratified"), (0x02, "2.0, newer"), (0xFF, "15.15, newer")],
)
def test_versions_that_are_refused(name: str, version: int, text: str) -> None:
    impl = TYPES[name] & ~0xFF | version
    w = all_kinds(**{name: {"impl": impl}})
    with pytest.raises(UnsupportedVersion) as caught:
        procedures.start(w.graph, REQUEST)
    said = str(caught.value)
    assert said.startswith(f"{name} at {w.bases[name]:#x}: trace control interface {text}")
    assert "rvtrace knows 1.0" in said and f"{impl:#010x}" in said
    assert w.switched == []


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize(("version", "text"), [(0x10, "0.1 is used as 1.0: it is 1.0 with"), (0x15, "5.1 is used as")])
def test_versions_that_stand_for_1_0(name: str, version: int, text: str) -> None:
    """If the type is right: the SpacemiT K3's log, and AMD's manual of MicroBlaze V. Else it is another component."""
    impl = TYPES[name] & ~0xFF | version
    (note,) = procedures.start(all_kinds(**{name: {"impl": impl}}).graph, REQUEST).notes
    assert note.startswith(f"{name} at 0x2000")
    assert f"trace control interface {text}" in note and f"(tr??Impl reads {impl:#010x})" in note
    w = all_kinds(**{name: {"impl": impl & ~0xF00 | 0x300}})
    with pytest.raises(UnsupportedVersion):
        procedures.start(w.graph, REQUEST)
    assert w.switched == []


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize(("version", "text"), [(0x11, "1.1 is a newer one"), (0xF1, "1.15 is experimental")])
def test_newer_minor_versions_are_used_with_a_warning(name: str, version: int, text: str) -> None:
    impl = TYPES[name] & ~0xFF | version
    (note,) = procedures.start(all_kinds(**{name: {"impl": impl}}).graph, REQUEST).notes
    assert note.startswith(f"{name} at 0x2000")
    assert f"trace control interface {text}, used as 1.0 (tr??Impl reads {impl:#010x})" in note


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize("other", list(KINDS))
def test_another_kind_of_component(name: str, other: str) -> None:
    if name == other:
        assert procedures.start(all_kinds().graph, REQUEST).notes == ()
        return
    w = all_kinds(**{name: {"impl": TYPES[other]}})
    with pytest.raises(WrongComponent, match=f"^{name} at .*: this is an? .*, not an? .*; correct the target"):
        procedures.start(w.graph, REQUEST)
    assert w.switched == []


def test_a_full_sink_holds_up_what_feeds_it() -> None:
    """Stop-on-wrap: the funnel cannot be rid of what it has, and that is not a failure."""
    w = all_kinds()
    graph = world({"ram0": ram(), "f0": GraphFunnel(), "enc0": GraphEncoder()}, EDGES[:1] + EDGES[3:], timeout=0.02)
    request = GraphRequest(TraceRequest(stop_on_wrap=True), {"ram0": SinkBuffer(LOW, 0x40)})
    got = procedures.start(graph.graph, request)
    graph.models["enc0"].sink.store(b"A" * 0x40)
    graph.models["enc0"].sink.store(b"B" * 8)
    assert not read_status(graph.graph).ram_sinks[0].enabled
    graph.models["f0"].blocked = True
    stopped = procedures.stop(graph.graph)
    assert stopped.notes == ("f0 still has trace for which there was no room in ram0",)
    assert stopped.failures == ()
    assert procedures.drain_all(graph.graph, got).drained["ram0"].data == b"A" * 0x40
    assert w.switched == []


def test_a_sink_that_does_not_answer_is_not_taken_for_a_full_one() -> None:
    w = world({"ram0": ram(), "f0": GraphFunnel(), "enc0": GraphEncoder()}, EDGES[:1] + EDGES[3:], timeout=0.02)
    procedures.start(w.graph, GraphRequest(TraceRequest(stop_on_wrap=True), {"ram0": SinkBuffer(LOW, 0x40)}))
    w.models["enc0"].sink.store(b"A" * 8)
    w.models["f0"].blocked = True
    w.target.refused.add(w.bases["ram0"])
    stopped = procedures.stop(w.graph)
    assert ([failure.component for failure in stopped.failures], stopped.notes) == (["f0", "ram0"], ())


def test_buffers_that_overlap_are_refused() -> None:
    models: Models = {"ram0": ram(), "ram1": ram(), "enc0": GraphEncoder(), "enc1": GraphEncoder()}
    w = world(models, [("enc0", "ram0"), ("enc1", "ram1")])
    buffers = {"ram0": SinkBuffer(LOW, 0x400), "ram1": SinkBuffer(LOW + 0x3FC, 0x400)}
    with pytest.raises(SettingRefused, match="its buffer 0x800003fc to 0x800007fc overlaps that of ram0"):
        procedures.start(w.graph, GraphRequest(buffers=buffers))
    assert w.switched == []


def test_an_input_that_stays_cut_is_refused() -> None:
    w = all_kinds(f0={"cut_always": 1})
    with pytest.raises(SettingRefused) as caught:
        procedures.start(w.graph, REQUEST)
    assert str(caught.value) == (
        "f0 at 0x20003000: its input 0 stays cut (trFunnelDisInput reads 0x0001), so no trace of enc0 passes; use"
        " another route"
    )


def test_lost_trace_is_reported_per_encoder() -> None:
    models: Models = {"ram0": ram(), "f0": GraphFunnel(), "enc0": GraphEncoder(), "enc1": GraphEncoder()}
    w = world(models, [("f0", "ram0"), ("enc0", "f0"), ("enc1", "f0")])
    procedures.start(w.graph, REQUEST)
    w.models["enc1"].overflow = True
    assert [encoder.lost for encoder in read_status(w.graph).encoders] == [False, True]
    assert procedures.stop(w.graph).lost == ("enc1",)
