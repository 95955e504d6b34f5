"""Something breaks between any two accesses to components of version 0: as test_graph_breaking, for `sifive_v0.flow`.

What comes of it is compared with what an undisturbed run on the same board leaves.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.sifive_v0 import procedures
from rvtrace_gdb.controlregs.sifive_v0.procedures import read_status
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.request import Buffer, GraphRequest, GraphSettings, Pins, TraceRequest
from rvtrace_gdb.support.errors import RvtraceError
from tests.controlregs.graph.graph_model import World
from tests.controlregs.interruptions import EVENTS, Breaking, one_line
from tests.controlregs.sifive_v0.board import BASES, ENABLE, LOW, SINKS, board, send
from tests.helpers.amounts import LONG

REQUEST = GraphRequest(
    TraceRequest(timestamps=True),
    {"ram0": Buffer(LOW, 0x400), "ram1": Buffer()},
    {"pib0": Pins(PibMode.PARALLEL_4)},
)
TRACE = {"enc0": b"abcdefgh" * 6, "enc1": b"01234567" * 5, "enc2": b"pinspins"}
WAYS = {"ram0": ("enc0", "f0"), "ram1": ("enc1",)}
GONE = ("dead bus", "all ones", "all zeros", "frozen")


def target(w: World) -> Breaking:
    assert isinstance(w.target, Breaking)
    return w.target


def start(w: World, _: object = None) -> GraphSettings:
    return procedures.start(w.graph, REQUEST)


def trace(w: World) -> None:
    """All encoders send, in pieces."""
    for name, data in TRACE.items():
        for n in range(0, len(data), 8):
            send(w, name, data[n : n + 8])


def traced(w: World) -> GraphSettings:
    got = start(w)
    trace(w)
    return got


def stopped(w: World) -> GraphSettings:
    got = traced(w)
    assert procedures.stop(w.graph) == procedures.StopResult((), ())
    return got


def drained(w: World) -> dict[str, bytes]:
    return {name: it.data for name, it in procedures.drain_all(w.graph).drained.items()}


@cache
def whole() -> dict[str, bytes]:
    """What reaches the memories when nothing breaks."""
    w = board()
    stopped(w)
    data = drained(w)
    assert TRACE["enc0"] in data["ram0"]
    assert TRACE["enc1"] in data["ram1"]
    return data


def sweep(
    event: str, prepare: Callable[[World], Any], act: Callable[[World, Any], Any], every: int = 1
) -> Iterator[tuple[World, str, Any, RvtraceError | None]]:
    """*act* on a new board after *prepare*, with *event* before each access to each of the components: the board, the
    component, and what *act* returned or raised. *every*: only with so many accesses in between. If this is not the
    long run, each access has one event.
    """
    apart = every if LONG else len(EVENTS)
    plain = board()
    prepared = prepare(plain)
    target(plain).arm("", 0, None)
    act(plain, prepared)
    for victim in BASES if event != "cable out" else ("f0",):
        for at, base in enumerate(target(plain).seen):
            if (base != BASES[victim] and event != "cable out") or (at + EVENTS.index(event)) % apart:
                continue
            w = board()
            prepared = prepare(w)
            target(w).arm(event, BASES[victim], at)
            got, raised = None, None
            try:
                got = act(w, prepared)
            except RvtraceError as error:
                one_line(error)
                assert event == "cable out" or isinstance(error, ComponentError), error
                raised = error
            assert not w.models["bus"].outside, f"{event} of {victim} at {at}: stored at {w.models['bus'].outside}"
            yield w, victim, got, raised


def nothing(_: World) -> None: ...


def off(w: World, *but: str) -> None:
    """Nothing goes on tracing that could be reached."""
    for name in BASES:
        assert name in but or not w.models[name].control & ENABLE, f"{name} is left on"


def names_it(error: RvtraceError, victim: str) -> bool:
    """The component is named, or a sink in it, where it is."""
    names = (victim, *(sink for sink, host in SINKS.items() if host == victim))
    return any(f"{name} at {BASES[victim]:#x}: " in str(error) for name in names)


def ended(w: World, victim: str) -> bool:
    """A stop tells that a component was reset, or it was not, and all trace is there."""
    in_reset = not w.models[victim].control
    ending = procedures.stop(w.graph)
    if in_reset:
        return f"{victim} was reset while tracing; its trace ends there" in ending.notes
    return not ending.failures and all(data.startswith(whole()[name][:8]) for name, data in drained(w).items())


@pytest.mark.parametrize("event", EVENTS)
def test_start(event: str) -> None:
    for w, victim, got, error in sweep(event, nothing, start, every=3):
        at = target(w).at
        if error is not None:
            if event == "cable out":
                assert str(error) == "the cable is out"
                continue
            assert names_it(error, victim), (at, victim, str(error))
            off(w, *[victim] * (event in GONE))
            continue
        target(w).repair()
        if event == "reset":
            trace(w)
            assert ended(w, victim), (at, victim)
            assert not w.models["bus"].outside, (at, victim)
        assert [sink.size for sink in got.ram_sinks] == [0x400, 256], (at, victim)
        assert [(e.src_id, e.inst_mode) for e in got.encoders] == [(n, 6) for n in range(3)], (at, victim)
        if w.models[victim].control:
            for encoder in got.encoders:  # a reset on the way leaves its source ID in messages
                inhibited = w.models[encoder.name].device.field("teInhibitSrc")
                assert encoder.src_bits == (0 if inhibited else 2), (at, victim)
        assert all(e.timestamps for e in got.encoders), (at, victim)
        assert got.pib_sinks[0].mode == PibMode.PARALLEL_4, (at, victim)


@pytest.mark.parametrize("event", EVENTS)
def test_stop(event: str) -> None:
    """What reached a sink that still answers is read out, to the last byte if nothing on its way broke."""
    for w, victim, got, error in sweep(event, traced, lambda w, _: procedures.stop(w.graph)):
        at = target(w).at
        if error is not None:
            assert str(error) == "the cable is out"
            target(w).repair()
            procedures.raise_failures(procedures.stop(w.graph))
            off(w)
            assert drained(w) == whole()
            continue
        for failure in got.failures:
            assert names_it(failure, victim), (at, victim, str(failure))
        off(w, *[victim] * (event in GONE or event == "bus error"))
        drains = procedures.drain_all(w.graph)
        for name, found in drains.drained.items():
            if victim in WAYS[name]:
                assert whole()[name].startswith(found.data), (event, at, victim, name)
            else:
                assert found.data == whole()[name], (event, at, victim, name)
        for name, failure in drains.failures.items():
            assert SINKS[name] == victim
            assert names_it(failure, victim), str(failure)


@pytest.mark.parametrize("event", EVENTS)
def test_drain(event: str) -> None:
    """Either the trace, or a failure with its beginning; once it answers again, all of it."""
    for w, victim, drains, error in sweep(event, stopped, lambda w, got: procedures.drain_all(w.graph, got)):
        at = target(w).at
        assert error is None
        for name, found in drains.drained.items():
            assert found.data == whole()[name], (event, at, victim, name)
        for name, failure in drains.failures.items():
            if event != "cable out" or hasattr(failure, "component"):
                assert SINKS[name] == victim or event == "cable out"
                assert names_it(failure, SINKS[name]), str(failure)
            assert whole()[name].startswith(getattr(failure, "partial", b"")), (event, at, victim)
        target(w).repair()
        if event != "reset":
            assert drained(w) == whole(), (event, at, victim)


@pytest.mark.parametrize("event", EVENTS)
def test_resume(event: str) -> None:
    """No sink whose pointers were lost is let loose: `sweep` sees stores to elsewhere."""

    def act(w: World, got: GraphSettings) -> None:
        try:
            procedures.resume(w.graph, got)
        finally:
            trace(w)

    for w, victim, _, error in sweep(event, stopped, act):
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
            assert names_it(error, victim), (at, victim, str(error))
        off(w, *[victim] * (event in GONE))
        target(w).repair()
        data = drained(w)
        assert all(data[name].startswith(whole()[name]) for name in data if SINKS[name] != victim), (event, at, victim)


@pytest.mark.parametrize("event", EVENTS)
def test_look(event: str) -> None:
    pointers = {status.name: status.pointer for status in look_at_plain().ram_sinks}
    for w, victim, seen, error in sweep(event, traced, lambda w, _: read_status(w.graph)):
        if error is not None:
            assert str(error) == "the cable is out"
            continue
        for name, problem in seen.problems.items():
            assert SINKS.get(name, name) == victim
            assert names_it(problem, victim)
        for sink in seen.ram_sinks:
            assert not sink.active or (sink.wrapped, sink.pointer) == (False, pointers[sink.name]), (event, sink)
        assert not any(encoder.lost for encoder in seen.encoders), (event, victim, target(w).at)


def look_at_plain() -> Any:
    w = board()
    traced(w)
    return read_status(w.graph)
