"""What is said of a trace that is being made, where several sinks or nobody answers."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.procedures import GraphStatus, PassingStatus
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings
from rvtrace_gdb.session.capture.model import CapturedSink
from rvtrace_gdb.session.sources.trace_control_lines import status

NOBODY = GraphStatus((), (), (), {})
FUNNEL = GraphStatus((), (), (PassingStatus("f0", True, True, True),), {})


def trace(now: GraphStatus, harts: dict[int, str], sinks: tuple[CapturedSink, ...] = ()) -> Any:
    return SimpleNamespace(
        waits=False,
        link=SimpleNamespace(unpolled=nullcontext),
        harts=lambda: harts,
        components_now=lambda: now,
        components=SimpleNamespace(
            in_force=SimpleNamespace(encoders=()),
            graph=SimpleNamespace(funnels=(), pib_sinks=(), bridges=(), stream_sinks=(), passing=()),
            sinks=(),
        ),
        sinks=sinks,
        notes=[],
        tracing=False,
        failure=None,
    )


def captured(name: str) -> CapturedSink:
    in_force = SinkSettings(name, 0x1000, 1, 0x3901, 0, 0xFC, 4)
    assert in_force.mode is RamMode.SRAM
    return CapturedSink(in_force, b"", False, 0, ("encoder0",), ("encoder0",))


def test_what_is_lost_on_the_way_to_two_sinks_is_said_once() -> None:
    lines = status(trace(NOBODY, {}, (captured("ram0"), captured("ram1"))))
    assert lines.count("lost:     encoder0 dropped messages or stalled its hart") == 1


@pytest.mark.parametrize(
    ("now", "harts", "line"),
    [
        (FUNNEL, {0: "running"}, "hart:     running"),
        (FUNNEL, {0: "running", 1: "halted"}, "harts:    0 running, 1 halted"),
        (NOBODY, {0: "running"}, "hart:     running when OpenOCD saw it last"),
        (NOBODY, {0: "running", 1: "halted"}, "harts:    0 running, 1 halted when OpenOCD saw them last"),
        (NOBODY, {}, "hart:     cannot be reached"),
    ],
)
def test_the_state_of_a_hart_is_only_as_good_as_the_way_to_the_chip(
    now: GraphStatus, harts: dict[int, str], line: str
) -> None:
    assert status(trace(now, harts))[0] == line
