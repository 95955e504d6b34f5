"""Something breaks between any two accesses to the target: nobody is misled, and what was captured is kept.

The accesses of every procedure are tried, with everything that can happen to each kind of component: it is reset, one
access is refused, all are, it reads all ones or all zeros, it no longer changes, or the way to the target is gone.
Components of version 1.0 are models written from the document, those of version 0 the devices of the simulated target.
What an undisturbed run on the same board leaves is what there has to be.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from rvtrace_gdb.controlregs import generations
from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.procedures import StopResult
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibPins, SinkBuffer, TraceRequest
from rvtrace_gdb.support.errors import RvtraceError
from tests.controlregs.graph.graph_model import LOW, GraphBridge, GraphEncoder, GraphFunnel, GraphPib, World, ram, world
from tests.controlregs.interruptions import EVENTS, Breaking, one_line
from tests.controlregs.sifive_v0 import board as v0
from tests.controlregs.trace_control.component_model import ENABLE
from tests.helpers.amounts import LONG

REQUEST = GraphRequest(
    TraceRequest(timestamps=True),
    {"ram0": SinkBuffer(LOW, 0x400), "ram1": SinkBuffer()},
    {"pib0": PibPins(PibMode.PARALLEL_4)},
    {"atb0": 0x11},
)
TRACE = {"enc0": b"abcdefgh" * 6, "enc1": b"01234567" * 5}
WAYS = {"ram0": ("enc0", "f0"), "ram1": ("enc1",)}
"""By sink: what its trace comes through."""
GONE = ("dead bus", "all ones", "all zeros", "frozen")
APART = 1 if LONG else 13  # prime: about half of the accesses have one of the events
Outcome = tuple[World, str, Any, RvtraceError | None]


@dataclass
class Kind:
    """A board with one of each component, and both kinds of memory.

    *hosts*: by sink, the component that it is inside of. *tail*: bytes that may be missing at the end of a trace on
    whose way something broke.
    """

    board: Callable[[], World]
    send: Callable[[World, str, bytes], None]
    check: Callable[[World, str, GraphSettings], None]
    hosts: dict[str, str]
    tail: int

    @cached_property
    def whole(self) -> dict[str, bytes]:
        """What reaches the memories when nothing breaks."""
        w = self.board()
        self.stopped(w)
        data = drained(w)
        assert all(TRACE[WAYS[name][0]] in data[name] for name in WAYS)
        return data

    def trace(self, w: World) -> None:
        """The encoders send, in pieces."""
        for name, data in TRACE.items():
            for n in range(0, len(data), 8):
                self.send(w, name, data[n : n + 8])

    def traced(self, w: World) -> GraphSettings:
        got = start(w)
        self.trace(w)
        return got

    def stopped(self, w: World) -> GraphSettings:
        got = self.traced(w)
        assert procedures(w).stop(w.graph) == StopResult((), ())
        return got

    def names_it(self, error: RvtraceError, w: World, victim: str) -> bool:
        """The component is named, or a sink in it, where it is."""
        names = (victim, *(sink for sink, host in self.hosts.items() if host == victim))
        return any(f"{name} at {w.bases[victim]:#x}: " in str(error) for name in names)

    def ended(self, w: World, victim: str) -> bool:
        """A stop tells that a component was reset, or it was not, and all trace is there."""
        in_reset = not w.models[victim].control
        stopped = procedures(w).stop(w.graph)
        if in_reset:
            return f"{victim} was reset while tracing; its trace ends there" in stopped.notes
        return not stopped.failures and all(data.startswith(self.whole[name][:8]) for name, data in drained(w).items())

    def sweep(self, event: str, prepare: Callable[[World], Any], act: Callable[[World, Any], Any]) -> Iterator[Outcome]:
        """*act* on a new board after *prepare*, with *event* before each access to each of the components: the board,
        the component, and what *act* returned or raised. What happens to a component shows when it is accessed next.
        """
        plain = self.board()
        prepared = prepare(plain)
        target(plain).arm("", 0, None)
        act(plain, prepared)
        for_all = event == "cable out"
        for victim in list(plain.bases)[: 1 if for_all else None]:
            for at, base in enumerate(target(plain).seen):
                if (for_all or base == plain.bases[victim]) and _tried(at, event):
                    yield self._disturbed(event, victim, at, prepare, act)

    def _disturbed(
        self, event: str, victim: str, at: int, prepare: Callable[[World], Any], act: Callable[[World, Any], Any]
    ) -> Outcome:
        w = self.board()
        prepared, got, raised = prepare(w), None, None
        target(w).arm(event, w.bases[victim], at)
        try:
            got = act(w, prepared)
        except RvtraceError as error:
            one_line(error)
            assert event == "cable out" or isinstance(error, ComponentError), error
            raised = error
        outside = getattr(w.models.get("bus"), "outside", ())
        assert not outside, f"{event} of {victim} at {at}: stored at {outside}"
        return w, victim, got, raised


def _tried(at: int, event: str) -> bool:
    return (at + 2 * EVENTS.index(event)) % APART == 0


def procedures(w: World) -> Any:
    return generations.procedures(w.graph)


def start(w: World, _: object = None) -> GraphSettings:
    return procedures(w).start(w.graph, REQUEST)  # type: ignore[no-any-return]


def drained(w: World) -> dict[str, bytes]:
    return {name: found.data for name, found in procedures(w).drain_all(w.graph).drained.items()}


def target(w: World) -> Breaking:
    assert isinstance(w.target, Breaking)
    return w.target


def off(w: World, *but: str) -> None:
    """Nothing goes on tracing that could be reached."""
    for name in w.bases:
        assert name in but or not w.models[name].control & ENABLE, f"{name} is left on"


def ratified_board() -> World:
    models: dict[str, Any] = {
        "ram0": ram(), "ram1": ram(), "pib0": GraphPib(), "atb0": GraphBridge(), "f0": GraphFunnel(),
        "enc0": GraphEncoder(), "enc1": GraphEncoder(),
    }  # fmt: skip
    edges = [("f0", "ram0"), ("f0", "pib0"), ("f0", "atb0"), ("enc0", "f0"), ("enc1", "ram1")]
    return world(models, edges, bus=Breaking)


def check_ratified(w: World, victim: str, got: GraphSettings) -> None:
    for encoder in got.encoders:
        assert (encoder.format, encoder.inst_mode, encoder.protocol_version) == (1, 6, (1, 0)), victim
    assert got.bridges[0].atb_id == 0x11


def check_v0(w: World, victim: str, got: GraphSettings) -> None:
    assert [(e.src_id, e.inst_mode) for e in got.encoders] == [(n, 6) for n in range(3)], victim
    if w.models[victim].control:
        for encoder in got.encoders:  # a reset on the way leaves its source ID in messages
            inhibited = w.models[encoder.name].device.field("teInhibitSrc")
            assert encoder.src_bits == (0 if inhibited else 2), victim


RATIFIED = Kind(
    ratified_board, lambda w, name, data: w.models[name].sink.store(data), check_ratified,
    {name: name for name in ("ram0", "ram1", "pib0", "atb0")}, 12,
)  # fmt: skip
VERSION_0 = Kind(v0.board, v0.send, check_v0, v0.SINKS, 0x1000)
both = pytest.mark.parametrize("kind", [RATIFIED, VERSION_0], ids=["1.0", "0"])
each_event = pytest.mark.parametrize("event", EVENTS)


@both
@each_event
def test_start(kind: Kind, event: str) -> None:
    for w, victim, got, error in kind.sweep(event, lambda w: None, start):
        at = target(w).at
        if error is not None:
            if event == "cable out":
                assert str(error) == "the cable is out"
                continue
            assert kind.names_it(error, w, victim), (at, victim, str(error))
            off(w, *[victim] * (event in GONE))
            continue
        target(w).repair()  # it was before its own reset, or is not looked at any more
        if event == "reset":
            kind.trace(w)
            assert kind.ended(w, victim), (at, victim)
        assert [sink.size for sink in got.ram_sinks] == [0x400, 256], (at, victim)
        assert all(encoder.timestamps for encoder in got.encoders), (at, victim)
        was_reset = event == "reset" and victim == kind.hosts["pib0"]  # at the last access its mode was read again
        assert was_reset or got.pib_sinks[0].mode == PibMode.PARALLEL_4, (at, victim)
        kind.check(w, victim, got)


@both
@each_event
def test_stop(kind: Kind, event: str) -> None:
    """What reached a sink that still answers is read out, to the last byte if nothing on its way broke."""
    for w, victim, got, error in kind.sweep(event, kind.traced, lambda w, _: procedures(w).stop(w.graph)):
        at = target(w).at
        if error is not None:
            assert str(error) == "the cable is out"
            target(w).repair()
            procedures(w).raise_failures(procedures(w).stop(w.graph))
            off(w)
            assert drained(w) == kind.whole
            continue
        for failure in got.failures:
            assert kind.names_it(failure, w, victim), (at, victim, str(failure))
        off(w, *[victim] * (event in GONE or event == "bus error"))
        drains = procedures(w).drain_all(w.graph)
        for name, found in drains.drained.items():
            whole, host = kind.whole[name], kind.hosts[name]
            if victim in (host, *WAYS[name]):
                assert whole.startswith(found.data), (event, at, victim, name)
                assert victim == host or len(found.data) >= len(whole) - kind.tail, (event, at, victim, name)
            else:
                assert found.data == whole, (event, at, victim, name)
        for name, failure in drains.failures.items():
            assert kind.hosts[name] == victim
            assert kind.names_it(failure, w, victim), str(failure)


@both
@each_event
def test_drain(kind: Kind, event: str) -> None:
    """Either the trace, or a failure with its beginning; once it answers again, all of it."""
    for w, victim, drains, error in kind.sweep(
        event, kind.stopped, lambda w, got: procedures(w).drain_all(w.graph, got)
    ):
        at = target(w).at
        assert error is None
        for name, found in drains.drained.items():
            assert found.data == kind.whole[name], (event, at, victim, name)
        for name, failure in drains.failures.items():
            if event != "cable out" or hasattr(failure, "component"):
                assert kind.hosts[name] == victim or event == "cable out"
                assert kind.names_it(failure, w, kind.hosts[name]), str(failure)
            assert kind.whole[name].startswith(getattr(failure, "partial", b"")), (event, at, victim)
        target(w).repair()
        if event != "reset":
            assert drained(w) == kind.whole, (event, at, victim)


@both
@each_event
def test_resume(kind: Kind, event: str) -> None:
    """No sink whose pointers were lost is let loose: `sweep` sees stores to elsewhere."""

    def act(w: World, got: GraphSettings) -> None:
        try:
            procedures(w).resume(w.graph, got)
        finally:
            if kind is VERSION_0:  # the models of 1.0 refuse trace that is sent to a sink that is off
                kind.trace(w)

    for w, victim, _, error in kind.sweep(event, kind.stopped, act):
        at = target(w).at
        if error is None:
            if event == "reset":
                assert kind.ended(w, victim), (at, victim)
            continue
        if event == "cable out":
            assert str(error) == "the cable is out"
            target(w).repair()
            procedures(w).raise_failures(procedures(w).stop(w.graph))
        else:
            assert kind.names_it(error, w, victim), (at, victim, str(error))
        off(w, *[victim] * (event in GONE))
        target(w).repair()
        others = {name: data for name, data in drained(w).items() if kind.hosts[name] != victim or kind is RATIFIED}
        assert all(data.startswith(kind.whole[name]) for name, data in others.items()), (event, at, victim)


@both
@each_event
def test_look(kind: Kind, event: str) -> None:
    plain = kind.board()
    kind.traced(plain)
    pointers = {sink.name: sink.pointer for sink in procedures(plain).read_status(plain.graph).ram_sinks}
    for w, victim, seen, error in kind.sweep(event, kind.traced, lambda w, _: procedures(w).read_status(w.graph)):
        if error is not None:
            assert str(error) == "the cable is out"
            continue
        for name, problem in seen.problems.items():
            assert kind.hosts.get(name, name) == victim
            assert kind.names_it(problem, w, victim)
        for sink in seen.ram_sinks:
            assert not sink.active or (sink.wrapped, sink.pointer) == (False, pointers[sink.name]), (event, sink)
        assert not any(encoder.lost for encoder in seen.encoders), (event, victim, target(w).at)
