"""Whole graphs of components are started and stopped in the document's order, and no trace is lost on the way."""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.buffer_readout import DrainedBuffer
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.procedures import read_status
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibPins, SinkBuffer, TraceRequest
from tests.controlregs.graph.graph_model import LOW, GraphBridge, GraphEncoder, GraphFunnel, GraphPib, World, ram, world
from tests.controlregs.trace_control.component_model import ACTIVE, ENABLE, TRACING

BUFFER = SinkBuffer(LOW + 0x1000, 0x1000)
REQUEST = GraphRequest(TraceRequest(), {"ram0": BUFFER}, {"pib0": PibPins(PibMode.PARALLEL_4)}, {"atb0": 5})


def encoders(count: int, **options: Any) -> dict[str, Any]:
    return {f"enc{n}": GraphEncoder(tail=b"END%d" % n, junk=n + 1, **options) for n in range(count)}


def two_levels(**options: Any) -> World:
    """Four encoders, two funnels below a third one, into memory."""
    models = {"ram0": ram(), "top": GraphFunnel(), "left": GraphFunnel(), "right": GraphFunnel(), **encoders(4)}
    edges = [("top", "ram0"), ("left", "top"), ("right", "top")]
    edges += [("enc0", "left"), ("enc1", "left"), ("enc2", "right"), ("enc3", "right")]
    return world(models | options, edges)


def run(w: World, request: GraphRequest = REQUEST) -> GraphSettings:
    """A start, some trace of each encoder, and a stop."""
    got = procedures.start(w.graph, request)
    for encoder in w.graph.encoders:
        w.models[encoder.name].sink.store(encoder.name.encode())
    stopped = procedures.stop(w.graph)
    assert stopped == procedures.StopResult((), ())
    return got


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("junk", range(3))
def test_two_levels_of_funnels(delay: int, junk: int) -> None:
    w = two_levels(
        ram0=ram(delay=delay, junk=junk),
        top=GraphFunnel(delay=delay, junk=junk),
        left=GraphFunnel(delay=delay, junk=junk + 7),
        enc0=GraphEncoder(tail=b"END0", delay=delay, junk=junk),
    )
    for _ in range(2):
        w.target.switched.clear()
        got = run(w)
        assert got.notes == ()
        assert got.streams == {"ram0": ("enc0", "enc1", "enc2", "enc3")}
        drained = procedures.drain_all(w.graph, got)
        data = drained.drained["ram0"].data
        assert not drained.failures
        assert sorted(data[n : n + 4] for n in range(0, len(data), 4)) == sorted(
            piece % n for n in range(4) for piece in (b"enc%d", b"END%d")
        )
        up = ["+ram0", "+top", "+left", "+right", "+enc0", "+enc1", "+enc2", "+enc3"]
        down = ["-enc0", "-enc1", "-enc2", "-enc3", "-right", "-left", "-top", "-ram0"]
        assert w.switched == up + down


def test_everything_is_tracing_after_a_start() -> None:
    w = two_levels()
    procedures.start(w.graph, REQUEST)
    for name, model in w.models.items():
        assert model.shown == ACTIVE | ENABLE, name
        assert name[:3] != "enc" or model.control & TRACING
    now = read_status(w.graph)
    assert [(s.name, s.active, s.enabled) for s in now.passing] == [(n, True, True) for n in ("top", "left", "right")]
    assert all(s.enabled and s.tracing for s in now.encoders) and len(now.encoders) == 4
    assert (now.ram_sinks[0].enabled, now.ram_sinks[0].pointer, now.problems) == (True, LOW + 0x1000, {})


def test_pins_and_atb() -> None:
    """One encoder sends through pins, another to ATB, each on its own."""
    pib, bridge = GraphPib(), GraphBridge()
    w = world({"pib0": pib, "atb0": bridge, **encoders(2)}, [("enc0", "pib0"), ("enc1", "atb0")])
    got = run(w)
    assert got.notes == ()
    assert (pib.sent, bridge.sent) == (b"enc0END0", b"enc1END1")
    assert got.pib_sinks[0].mode == PibMode.PARALLEL_4
    assert (got.bridges[0].atb_id, got.bridges[0].async_freq) == (5, 0)
    assert got.streams == {"pib0": ("enc0",), "atb0": ("enc1",)}
    assert [encoder.src_bits for encoder in got.encoders] == [0, 0]
    assert procedures.drain_all(w.graph, got) == procedures.DrainResults({}, {})


def test_one_encoder_into_memory_and_to_pins() -> None:
    w = world({"ram0": ram(), "pib0": GraphPib(), **encoders(1)}, [("enc0", "ram0"), ("enc0", "pib0")])
    got = run(w)
    assert procedures.drain_all(w.graph, got).drained == {"ram0": DrainedBuffer(b"enc0END0", False)}
    assert w.models["pib0"].sent == b"enc0END0"
    assert w.switched == ["+ram0", "+pib0", "+enc0", "-enc0", "-ram0", "-pib0"]


def test_the_receiver_is_started_between_set_up_and_enable() -> None:
    pib = GraphPib()
    w = world({"pib0": pib, **encoders(1)}, [("enc0", "pib0")])
    seen = []
    procedures.start(w.graph, REQUEST, receive=lambda pins: seen.append((pins.name, pins.mode, pib.control & ENABLE)))
    assert seen == [("pib0", PibMode.PARALLEL_4, 0)]


def test_a_way_that_is_not_used_is_cut() -> None:
    """Both encoders are connected to both funnels; each is to go its own way."""
    models = {"ram0": ram(), "ram1": ram(), "f0": GraphFunnel(), "f1": GraphFunnel(), **encoders(2)}
    w = world(
        models,
        [("f0", "ram0"), ("f1", "ram1"), ("enc0", "f0"), ("enc1", "f1")],
        not_used=[("enc1", "f0"), ("enc0", "f1")],
        inputs={"f0": {"enc0": 3, "enc1": 15}, "f1": {"enc0": 0, "enc1": 1}},
    )
    buffers = {"ram0": SinkBuffer(LOW, 0x400), "ram1": SinkBuffer(LOW + 0x400, 0x400)}
    got = run(w, GraphRequest(buffers=buffers))
    assert got.notes == ()
    assert [funnel.cut for funnel in got.funnels] == [1 << 15, 1 << 0]
    drained = procedures.drain_all(w.graph, got).drained
    assert {name: drain.data for name, drain in drained.items()} == {"ram0": b"enc0END0", "ram1": b"enc1END1"}


def test_what_is_not_traced_is_kept_off() -> None:
    """The funnel has no trFunnelDisInput: an encoder that is not traced must be off, and is not touched else."""
    models = {"ram0": ram(), "f0": GraphFunnel(cuts=0), **encoders(2)}
    edges = [("f0", "ram0"), ("enc0", "f0")]
    w = world(models, edges, not_used=[("enc1", "f0")], unused=["enc1"])
    other = w.models["enc1"]
    other.delay = 0
    other.write(0, 1)
    other.registers[8] = 0x77
    w.models["ram0"].shown = ENABLE  # of an earlier session
    w.models["f0"].shown = ENABLE
    other.registers.update(dict.fromkeys((0xC, 0x10, 0x1C, 0x50, 0x54, 0x58), 0))
    other.write(0, 1 << 24 | 0x61 | ENABLE | TRACING)
    got = procedures.start(w.graph, REQUEST)
    assert got.notes == () and got.encoders[0].src_bits == 0
    assert other.control & (ACTIVE | ENABLE | TRACING) == ACTIVE and other.registers[8] == 0x77


def test_an_input_that_cannot_be_cut_is_said() -> None:
    models = {"ram0": ram(), "ram1": ram(), "f0": GraphFunnel(cuts=0xFFFE), **encoders(2)}
    w = world(
        models,
        [("f0", "ram0"), ("enc1", "f0"), ("enc0", "ram1")],
        not_used=[("enc0", "f0")],
        inputs={"f0": {"enc0": 0, "enc1": 1}},
    )
    got = procedures.start(w.graph, GraphRequest(buffers={"ram0": BUFFER}))
    assert got.notes == (
        "f0 cannot cut its input 0 (trFunnelDisInput reads 0x0000): what enc0 sends there also passes",
    )


def test_a_read_out_in_between() -> None:
    """Stopped, drained, and resumed: the pointer stays, and the order is kept."""
    w = two_levels()
    got = procedures.start(w.graph, REQUEST)
    w.models["enc2"].sink.store(b"one.")
    procedures.raise_failures(procedures.stop(w.graph))
    first = procedures.drain_all(w.graph, got).drained["ram0"].data
    w.target.switched.clear()
    procedures.resume(w.graph, got)
    assert w.switched == ["+ram0", "+top", "+left", "+right", "+enc0", "+enc1", "+enc2", "+enc3"]
    assert all(w.models[f"enc{n}"].control & TRACING for n in range(4))
    w.models["enc0"].sink.store(b"two.")
    procedures.raise_failures(procedures.stop(w.graph))
    second = procedures.drain_all(w.graph, got).drained["ram0"].data
    assert second.startswith(first) and b"two." in second[len(first) :]


def test_two_ram_sinks_of_their_own_kinds() -> None:
    w = world({"ram0": ram(), "ram1": ram(sram=128), **encoders(2)}, [("enc0", "ram0"), ("enc1", "ram1")])
    got = run(w)
    assert [(sink.name, sink.mode.name, sink.size) for sink in got.ram_sinks] == [
        ("ram0", "SMEM", 0x1000),
        ("ram1", "SRAM", 128),
    ]
    drained = procedures.drain_all(w.graph, got).drained
    assert (drained["ram0"].data, drained["ram1"].data) == (b"enc0END0", b"enc1END1")
