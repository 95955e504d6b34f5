"""Whatever the graph, and however its components are built: every sink has the messages that had to come to it.

Started, traced, stopped, read out, gone on with, and stopped again.
"""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from rvtrace_gdb.controlregs.trace_control import procedures
from tests.controlregs.graph.random_graphs import Chip, Plan, messages, numbered, plans
from tests.helpers.amounts import some_of

TAIL = 1023
COUNT = 12


@settings(max_examples=some_of(60), suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_every_sink_has_its_trace(plan: Plan) -> None:
    chip = Chip(plan)
    got = procedures.start(chip.graph, chip.request)
    sent: list[int] = []
    for turn in range(2):
        chip.send(numbers := range(COUNT * turn, COUNT * (turn + 1)))
        sent += [*numbers, TAIL]
        stopped = procedures.stop(chip.graph)
        assert (stopped.notes, stopped.failures) == ((), ())
        assert not any(chip.enabled())
        drains = procedures.drain_all(chip.graph, got)
        assert not drains.failures
        assert set(got.streams) == set(drains.drained) | set(chip.received)
        for sink in got.ram_sinks:
            drained = drains.drained[sink.name]
            assert len(drained.data) <= sink.size
            assert len(drained.data) == sink.size or not drained.wrapped
            (newest if drained.wrapped else everything)(chip, sink.name, drained.data, sent)
        for name, receiver in chip.received.items():
            everything(chip, name, receiver.data, sent)
        if turn == 0:
            procedures.resume(chip.graph, got)


def everything(chip: Chip, name: str, data: bytes, sent: list[int]) -> None:
    assert Counter(numbered(messages(data))) == chip.expected(name, sent), name


def newest(chip: Chip, name: str, data: bytes, sent: list[int]) -> None:
    """The end of what had to come here, but that the first message may be cut."""
    seen = numbered(messages(data)[1:])
    assert Counter(seen) <= chip.expected(name, sent), name
    for source, times in chip.sources(name).items():
        if times == 1:  # in the order in which they were sent
            of_source = [number for which, number in seen if which == source]
            assert of_source == sent[len(sent) - len(of_source) :], (name, source)
