"""Encoders that follow triggers: what is set up, when tracing is left off, and that a read-out does not switch it on.

Registers and bits are numbers here, from the Trace Control Interface 1.0.
"""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TrigAction
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Triggers
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, SinkBuffer, TraceRequest
from tests.controlregs.graph.graph_model import BLOCKS, LOW, GraphEncoder, World, ram, world
from tests.controlregs.trace_control.component_model import ENABLE, TRACING

TRIG_ENABLE = 1 << 11
DATA_CONTROL, TRIG_DBG, TRIG_IN, TRIG_OUT = 0x10, 0x50, 0x54, 0x58
ON, OFF, NOTIFY = TrigAction.TRACE_ON, TrigAction.TRACE_OFF, TrigAction.TRACE_NOTIFY
DATA, DATA_TRACING, DATA_TRIG_ENABLE = 1, 2, 4
DATA_FIELDS = 0x0003_0000
BUFFER = {"ram0": SinkBuffer(LOW, 0x1000)}
ON_AND_OFF = Triggers(on=(0x8000_0056,), off=(0x8000_0088, 0x8000_0100))


class _Encoder(GraphEncoder):
    """*held*: the bits of trTeTrigDbgControl."""

    held = 0

    def configured(self) -> bool:
        return not self.control & TRACING

    def legal(self, offset: int, value: int) -> int:
        if offset == TRIG_OUT:
            return value & 0x3  # one output, which can tell both
        return value & self.held if offset == TRIG_DBG else super().legal(offset, value)


BLOCKS[_Encoder] = BLOCKS[GraphEncoder]


def two(**options: Any) -> World:
    """Two encoders into one funnel would be as good: what triggers do concerns each on its own."""
    encoders = {name: _Encoder(**options) for name in ("enc0", "enc1")}
    return world({"ram0": ram(), **encoders}, [("enc0", "ram0"), ("enc1", "ram0")])


def request(triggers: Triggers | None, **more: Any) -> GraphRequest:
    return GraphRequest(TraceRequest(triggers=triggers, **more), BUFFER)


def controls(w: World, bits: int) -> list[int]:
    return [w.models[name].control & bits for name in ("enc0", "enc1")]


@pytest.mark.parametrize("junk", range(4))
@pytest.mark.parametrize(
    ("triggers", "bits"),
    [
        (None, TRACING),
        (ON_AND_OFF, TRIG_ENABLE),
        (Triggers(on=(2,)), TRIG_ENABLE),
        (Triggers(off=(2,)), TRIG_ENABLE | TRACING),
        (Triggers(notify=(2,)), TRACING),
        (Triggers(inputs=((0, ON),)), TRIG_ENABLE),
        (Triggers(inputs=((1, OFF),)), TRIG_ENABLE | TRACING),
        (Triggers(inputs=((1, NOTIFY),)), TRACING),
    ],
)
def test_what_is_on_when_it_has_started(triggers: Triggers | None, bits: int, junk: int) -> None:
    """Marks need no permission; whatever the registers hold after reset."""
    w = two(junk=junk)
    procedures.start(w.graph, request(triggers))
    assert controls(w, TRACING | TRIG_ENABLE | ENABLE) == [bits | ENABLE] * 2


def test_it_is_said() -> None:
    w = two()
    started = procedures.start(w.graph, request(Triggers((0x56,), (0x88, 0x100), (0xD4,))))
    text = "begins to trace at 0x56, ends at 0x88 and 0x100, marks 0xd4"
    assert started.notes == (f"enc0 {text}", f"enc1 {text}")


def test_encoders_without_triggers() -> None:
    w = two(fixed_zeros=6 << 24 | TRIG_ENABLE)
    with pytest.raises(SettingRefused) as caught:
        procedures.start(w.graph, request(ON_AND_OFF))
    assert str(caught.value) == (
        "enc0 at 0x20001000: does not take trigger actions (trTeInstTrigEnable stays 0): trace without triggers, or"
        " -range a part"
    )
    assert controls(w, ENABLE) == [0, 0]
    procedures.start(w.graph, request(Triggers(notify=(2,))))


def test_a_read_out_leaves_it_as_the_triggers_had_it() -> None:
    """One encoder was switched on meanwhile, the other one is still waiting."""
    w = two()
    got = procedures.start(w.graph, request(ON_AND_OFF))
    for traced in (False, True, False):
        w.models["enc0"].control = w.models["enc0"].control & ~TRACING | TRACING * traced
        stopped = procedures.stop(w.graph)
        assert stopped.off == (("enc1",) if traced else ("enc0", "enc1")) and not stopped.failures
        procedures.resume(w.graph, got, off=stopped.off)
        assert controls(w, TRACING | TRIG_ENABLE) == [TRIG_ENABLE | TRACING * traced, TRIG_ENABLE]
    assert procedures.stop(w.graph).off == ("enc0", "enc1")


def test_without_triggers_nothing_waits() -> None:
    w = two()
    got = procedures.start(w.graph, request(None))
    w.models["enc0"].control &= ~TRACING  # by somebody else
    stopped = procedures.stop(w.graph)
    assert stopped.off == ()
    procedures.resume(w.graph, got, off=stopped.off)
    assert controls(w, TRACING) == [TRACING] * 2


@pytest.mark.parametrize("follows", [True, False])
def test_loads_and_stores(follows: bool) -> None:
    """They go on and off with the instructions, where the encoder has a bit for that."""
    w = two(data=DATA | DATA_TRACING | DATA_TRIG_ENABLE * follows | DATA_FIELDS)
    got = procedures.start(w.graph, request(ON_AND_OFF, data=True))
    said = "enc0: triggers do not switch data trace (trTeDataTrigEnable stays 0), which is always on"
    assert (said in got.notes) is not follows

    def data() -> int:
        return int(w.models["enc0"].registers[DATA_CONTROL]) & (DATA_TRACING | DATA_TRIG_ENABLE)

    assert data() == (DATA_TRIG_ENABLE if follows else DATA_TRACING)
    for on in (True, False):
        w.models["enc0"].control = w.models["enc0"].control & ~TRACING | TRACING * on
        if follows:
            tracing = w.models["enc0"].registers[DATA_CONTROL] & ~DATA_TRACING
            w.models["enc0"].registers[DATA_CONTROL] = tracing | DATA_TRACING * on
        stopped = procedures.stop(w.graph)
        w.models["enc0"].registers[DATA_CONTROL] &= ~DATA_TRACING  # as some do when they are switched off
        procedures.resume(w.graph, got, off=stopped.off)
        assert data() == (DATA_TRIG_ENABLE | DATA_TRACING * on if follows else DATA_TRACING)


def test_loads_and_stores_without_a_place_to_begin_at() -> None:
    w = two(data=DATA | DATA_TRACING | DATA_TRIG_ENABLE | DATA_FIELDS)
    procedures.start(w.graph, request(Triggers(off=(2,)), data=True))
    assert w.models["enc0"].registers[DATA_CONTROL] & 7 == DATA | DATA_TRACING | DATA_TRIG_ENABLE


def test_what_the_vendor_wants() -> None:
    w = two()
    for name in ("enc0", "enc1"):
        w.models[name].held = 0xFFFF
    procedures.start(w.graph, request(ON_AND_OFF))
    assert w.models["enc0"].registers[TRIG_DBG] == 0
    procedures.start(w.graph, request(Triggers(on=(2,), control=0x1234)))
    assert [w.models[name].registers[TRIG_DBG] for name in ("enc0", "enc1")] == [0x1234] * 2
    with pytest.raises(SettingRefused) as caught:
        procedures.start(w.graph, request(Triggers(on=(2,), control=0x1_1234)))
    assert str(caught.value) == "enc0 at 0x20001000: does not keep 0x11234 in trTeTrigDbgControl (it reads 0x1234)"


def test_external_triggers() -> None:
    """Inputs 0 and 1, output 0; as registers have them: four bits for each."""
    w = two()
    started = procedures.start(w.graph, request(Triggers(inputs=((1, ON), (0, OFF)), outputs=((0, 3),))))
    assert [w.models["enc0"].registers[offset] for offset in (TRIG_IN, TRIG_OUT)] == [0x23, 0x3]
    assert "enc0 trigger input 1: trace-on, trigger input 0: trace-off" in started.notes
    procedures.start(w.graph, request(None))
    assert [w.models["enc0"].registers[offset] for offset in (TRIG_IN, TRIG_OUT)] == [0, 0]


@pytest.mark.parametrize(
    ("triggers", "line"),
    [
        (Triggers(inputs=((2, ON),)), "cannot use trigger input 2 for this (trTeTrigExtInAction2 reads 0, not 2)"),
        (Triggers(outputs=((7, 1),)), "cannot use trigger output 7 for this (trTeTrigExtOutEvent7 reads 0, not 1)"),
    ],
)
def test_external_triggers_that_are_not_there(triggers: Triggers, line: str) -> None:
    w = two()
    with pytest.raises(SettingRefused) as caught:
        procedures.start(w.graph, request(triggers))
    assert str(caught.value) == f"enc0 at 0x20001000: {line}"
    assert controls(w, ENABLE) == [0, 0]
