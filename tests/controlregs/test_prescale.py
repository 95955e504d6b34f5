"""The clock that timestamps count can be divided: trTsPrescale of the unit that counts, and what is said of the others.

Bits are those of the Trace Control Interface 1.0: trTsMode 6:4, trTsPrescale 9:8, trTsEnable 15.
"""

import pytest

from rvtrace_gdb.controlregs import flow
from rvtrace_gdb.controlregs.graph_request import Buffer, GraphInForce, GraphRequest
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.controlregs.timestamp import TsMode
from tests.controlregs.graph_model import LOW, GraphEncoder, GraphFunnel, Models, World, ram, world

EXTERNAL, SYSTEM, CORE, SHARED = 1, 2, 3, 4


def started(w: World, mode: int, prescale: int) -> GraphInForce:
    trace = TraceRequest(timestamps=True, ts_mode=TsMode(mode), ts_prescale=prescale)
    return flow.start(w.graph, GraphRequest(trace, {"ram0": Buffer(LOW, 0x1000)}))


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
