"""Something breaks between any two accesses to the target: nobody is misled, and what was captured is kept.

Every access of every procedure is tried, with everything that can happen to each kind of component: it is reset, one
access is refused, all are, it reads all ones or all zeros, it no longer changes, or the way to the target is gone.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.capabilities import capabilities
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.procedures import read_status
from rvtrace_gdb.controlregs.trace_control.request import Buffer, GraphRequest, GraphSettings, Pins, TraceRequest
from rvtrace_gdb.support.errors import RvtraceError
from tests.controlregs.graph.graph_model import LOW, GraphBridge, GraphEncoder, GraphFunnel, GraphPib, World, ram, world
from tests.controlregs.interruptions import EVENTS, Breaking, one_line
from tests.controlregs.trace_control.component_model import ENABLE
from tests.helpers.amounts import LONG

REQUEST = GraphRequest(
    TraceRequest(timestamps=True),
    {"ram0": Buffer(LOW, 0x400), "ram1": Buffer()},
    {"pib0": Pins(PibMode.PARALLEL_4)},
    {"atb0": 0x11},
)
NAMES = ("ram0", "ram1", "pib0", "atb0", "f0", "enc0", "enc1")
TRACE = {"enc0": b"abcdefgh" * 6, "enc1": b"01234567" * 5}
WHOLE = {"ram0": TRACE["enc0"] + b"TAIL", "ram1": TRACE["enc1"] + b"TAIL"}


def board() -> World:
    """One of each, and both kinds of memory."""
    models: dict[str, Any] = {
        "ram0": ram(), "ram1": ram(), "pib0": GraphPib(), "atb0": GraphBridge(), "f0": GraphFunnel(),
        "enc0": GraphEncoder(), "enc1": GraphEncoder(),
    }  # fmt: skip
    edges = [("f0", "ram0"), ("f0", "pib0"), ("f0", "atb0"), ("enc0", "f0"), ("enc1", "ram1")]
    return world(models, edges, bus=Breaking)


def target(w: World) -> Breaking:
    assert isinstance(w.target, Breaking)
    return w.target


def trace(w: World) -> None:
    """Both encoders send, in pieces."""
    for name, data in TRACE.items():
        for n in range(0, len(data), 8):
            w.models[name].sink.store(data[n : n + 8])


def sweep(
    event: str, prepare: Callable[[World], Any], act: Callable[[World, Any], Any], names: tuple[str, ...] = NAMES
) -> Iterator[tuple[World, str, Any, RvtraceError | None]]:
    """*act* on a new board after *prepare*, with *event* before each access to each of the components: the board, the
    component, and what *act* returned or raised. What happens to a component shows when it is accessed next.
    If this is not the long run, each access has one of the events.
    """
    apart = 1 if LONG else len(EVENTS)
    plain = board()
    prepared = prepare(plain)
    target(plain).arm("", 0, None)
    act(plain, prepared)
    for victim in names if event != "cable out" else names[:1]:
        for at, base in enumerate(target(plain).seen):
            if (base != plain.bases[victim] and event != "cable out") or (at + EVENTS.index(event)) % apart:
                continue
            w = board()
            prepared = prepare(w)
            target(w).arm(event, w.bases[victim], at)
            try:
                yield w, victim, act(w, prepared), None
            except RvtraceError as error:
                one_line(error)
                assert event == "cable out" or isinstance(error, ComponentError), error
                yield w, victim, None, error


def nothing(_: World) -> None: ...


def start(w: World, _: object = None) -> GraphSettings:
    return procedures.start(w.graph, REQUEST)


def traced(w: World) -> GraphSettings:
    got = start(w)
    trace(w)
    return got


def stopped(w: World) -> GraphSettings:
    got = traced(w)
    assert procedures.stop(w.graph) == procedures.StopResult((), ())
    return got


def off(w: World, *but: str) -> None:
    """Nothing goes on tracing that could be reached."""
    for name, model in w.models.items():
        assert name in but or not model.control & ENABLE, f"{name} is left on"


def ended(w: World, victim: str) -> bool:
    """A stop tells that a component was reset, or it was not, and all trace is there."""
    in_reset = not w.models[victim].control
    stopped = procedures.stop(w.graph)
    if in_reset:
        return stopped == procedures.StopResult((), (f"{victim} was reset while tracing; its trace ends there",))
    data = {name: drained.data for name, drained in procedures.drain_all(w.graph).drained.items()}
    return stopped == procedures.StopResult((), ()) and all(data[name].startswith(WHOLE[name]) for name in WHOLE)


def names_it(error: RvtraceError, w: World, victim: str) -> bool:
    """The component is named, where it is, and a value or an address that was met."""
    return f"{victim} at {w.bases[victim]:#x}: " in str(error)


@pytest.mark.parametrize("event", EVENTS)
def test_start(event: str) -> None:
    gone = event in ("dead bus", "all ones", "all zeros", "frozen")
    for w, victim, got, error in sweep(event, nothing, start):
        at = target(w).at
        if error is not None:
            if event == "cable out":
                assert str(error) == "the cable is out"
                continue
            assert names_it(error, w, victim), (at, victim, str(error))
            off(w, *[victim] * gone)
            continue
        # It was before its own reset, or is not looked at any more.
        target(w).repair()
        if event == "reset":
            trace(w)
            assert ended(w, victim), (at, victim)
        for encoder in got.encoders:
            assert (encoder.format, encoder.inst_mode, encoder.protocol_version) == (1, 6, (1, 0)), (at, victim)
            assert encoder.timestamps, (at, victim)
        assert [sink.size for sink in got.ram_sinks] == [0x400, 256]
        assert (got.pib_sinks[0].mode, got.bridges[0].atb_id) == (PibMode.PARALLEL_4, 0x11), (at, victim)


@pytest.mark.parametrize("event", EVENTS)
def test_stop(event: str) -> None:
    """What reached a sink that still answers is read out, to the last byte if nothing on its way broke."""
    gone = event in ("dead bus", "all ones", "all zeros", "frozen")
    for w, victim, got, error in sweep(event, traced, lambda w, _: procedures.stop(w.graph)):
        at = target(w).at
        if error is not None:
            assert str(error) == "the cable is out"
            target(w).repair()
            procedures.raise_failures(procedures.stop(w.graph))
            off(w)
            assert {n: d.data for n, d in procedures.drain_all(w.graph).drained.items()} == WHOLE
            continue
        assert set(got.lost) <= set(), (event, victim, at, got.lost)
        for failure in got.failures:
            assert names_it(failure, w, victim), (at, victim, str(failure))
        off(w, *[victim] * (gone or event == "bus error"))
        drains = procedures.drain_all(w.graph)
        for name, drained in drains.drained.items():
            if name == victim:
                assert WHOLE[name].startswith(drained.data), (at, victim, name)
            elif victim in ("enc0", "f0", "enc1") and victim in _ways(name):
                assert drained.data in (WHOLE[name], WHOLE[name][:-4], WHOLE[name][:-8], WHOLE[name][:-12]), (at, name)
            else:
                assert drained.data == WHOLE[name], (at, victim, name)
        assert set(drains.failures) <= {victim}
        for failure in drains.failures.values():
            assert names_it(failure, w, victim)


def _ways(sink: str) -> tuple[str, ...]:
    return {"ram0": ("enc0", "f0"), "ram1": ("enc1",)}[sink]


@pytest.mark.parametrize("event", EVENTS)
def test_drain(event: str) -> None:
    """Either the trace, or a failure with its beginning; once it answers again, all of it."""
    for w, victim, drains, error in sweep(event, stopped, lambda w, got: procedures.drain_all(w.graph, got)):
        at = target(w).at
        assert error is None
        for name, drained in drains.drained.items():
            assert drained.data == WHOLE[name], (event, at, victim, name)
        for name, failure in drains.failures.items():
            if event != "cable out" or hasattr(failure, "component"):
                assert name == victim or event == "cable out"
                assert names_it(failure, w, name), str(failure)
            partial = getattr(failure, "partial", b"")
            assert WHOLE[name].startswith(partial), (event, at, victim)
        target(w).repair()
        if event != "reset":
            assert {n: d.data for n, d in procedures.drain_all(w.graph).drained.items()} == WHOLE, (event, at, victim)


@pytest.mark.parametrize("event", EVENTS)
def test_resume(event: str) -> None:
    gone = event in ("dead bus", "all ones", "all zeros", "frozen")
    for w, victim, _, error in sweep(event, stopped, lambda w, got: procedures.resume(w.graph, got)):
        at = target(w).at
        if error is None:
            if event == "reset":
                assert ended(w, victim), (at, victim)
            continue
        if event == "cable out":
            assert str(error) == "the cable is out"
            target(w).repair()
            procedures.raise_failures(procedures.stop(w.graph))
        else:
            assert names_it(error, w, victim), (at, victim, str(error))
        off(w, *[victim] * gone)
        target(w).repair()
        data = {n: d.data for n, d in procedures.drain_all(w.graph).drained.items()}
        assert all(data[name].startswith(WHOLE[name]) for name in data), (event, at, victim)


@pytest.mark.parametrize("event", EVENTS)
def test_look(event: str) -> None:
    for w, victim, seen, error in sweep(event, traced, lambda w, _: read_status(w.graph)):
        if error is not None:
            assert str(error) == "the cable is out"
            continue
        assert set(seen.problems) <= {victim}
        for problem in seen.problems.values():
            assert names_it(problem, w, victim)
        for sink in seen.ram_sinks:
            assert not sink.active or (sink.wrapped, sink.pointer) == (False, _pointer(sink.name)), (event, sink)
        assert not any(encoder.lost for encoder in seen.encoders), (event, victim)


def _pointer(name: str) -> int:
    """Where the trace that reached the sink ends: the funnel keeps its last piece."""
    return LOW + len(TRACE["enc0"]) - 8 if name == "ram0" else len(TRACE["enc1"])


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", ["ram0", "pib0", "atb0", "f0", "enc0"])
def test_capabilities(event: str, name: str) -> None:
    """Also while it is broken open: it is in reset again, and nothing that cannot be is said of it."""
    expected = capabilities(board().component(name))
    for w, victim, found, error in sweep(event, nothing, lambda w, _: capabilities(w.component(name)), (name,)):
        if error is None:
            if event in ("reset", "bus error", "cable out") or victim != name:
                assert found == expected, (event, target(w).at)
            continue
        assert event == "cable out" or (victim == name and names_it(error, w, name)), str(error)
        assert not w.models[name].control & ENABLE
        if event == "bus error":
            assert w.models[name].control == 0, (target(w).at, str(error))
