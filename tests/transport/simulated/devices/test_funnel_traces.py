"""Traces of real programs through a funnel: two harts, two funnels, two ways out, shared time."""

from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.transport.simulated.devices.funnel import Funnel
from tests.transport.simulated.devices.rig import (
    HTM,
    TS_CONTROL,
    Log,
    Rig,
    disable,
    enable,
    start_encoder,
    start_sink,
    stored,
)
from tests.transport.simulated.devices.test_component import CONTROL, OVERFLOW, Registers
from tests.transport.simulated.devices.test_funnel import COUNT, COUNTER_LOW, DIS_INPUT, SHARED, SYSTEM, probe
from tests.transport.simulated.encoder.traces import TIME, TS_ACTIVE, compiled
from tests.transport.simulated.nexus import PROG_TRACE_SYNC, messages


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("funnel"), "rv64imac")


class Harts:
    """Two machines, each with an encoder, whose trace one funnel puts together."""

    def __init__(self, elf: Path, *, deep: bool = False, options: int = HTM) -> None:
        self.rigs = [Rig(elf), Rig(elf)]
        sink, self.ram = self.rigs[0].sink()
        self.funnel = Funnel([sink], inputs=4)
        top = self.rigs[0].add(self.funnel)
        self.funnels, outputs = [top], list(self.funnel.inputs[1:3])
        if deep:
            below = Funnel([self.funnel.inputs[1]], inputs=1, depth=3)
            self.funnels.append(self.rigs[0].add(below))
            outputs[0] = below.inputs[0]
        start_sink(self.ram)
        for registers in self.funnels:
            registers.activate()
            registers[DIS_INPUT] = 0
            enable(registers)
        self.logs, self.te = [Log(3, 0), Log(3, 0)], []
        for number, (rig, output) in enumerate(zip(self.rigs, outputs, strict=True)):
            encoder, te = rig.encoder(output)
            encoder.watch = self.logs[number]
            self.te.append(te)
            start_encoder(te, options, lambda te=te, n=number: te.__setitem__(8, 4 << 28 | n + 3 << 16))  # type: ignore[misc]

    def stop(self) -> bytes:
        for registers in (*self.te, *reversed(self.funnels)):
            disable(registers)
        return stored(self.ram)


@pytest.mark.parametrize("deep", [False, True])
def test_two_harts_in_one_stream(elf: Path, deep: bool) -> None:
    harts = Harts(elf, deep=deep)
    for _ in range(20):
        harts.rigs[0].run(300)
        harts.rigs[1].run(200)
    data = harts.stop()
    sources = [message.src for message in messages(data, src_bits=4)]
    assert set(sources) == {3, 4}
    assert sum(a != b for a, b in pairwise(sources)) > 40, "they alternate"
    for number, log in enumerate(harts.logs):
        history = decode(data, harts.rigs[0].image, Options(src_bits=4, src_id=number + 3))
        assert list(history.pcs(0, len(history))) == [step.pc for step in log.steps if step.trap is None]


def test_a_cut_encoder_is_not_in_the_stream(elf: Path) -> None:
    harts = Harts(elf)
    harts.funnels[0][DIS_INPUT] = 1 << 1
    harts.rigs[0].run(500)
    harts.rigs[1].run(500)
    assert not harts.te[0][CONTROL] & OVERFLOW
    assert messages(harts.stop(), src_bits=4)[0].tcode == PROG_TRACE_SYNC


def test_a_funnel_that_is_full_makes_encoders_lose_trace(elf: Path) -> None:
    harts = Harts(elf)
    harts.funnel.jammed = True
    harts.rigs[0].run(500)
    assert harts.te[0][CONTROL] & OVERFLOW


def test_a_local_sink_and_a_funnel(elf: Path) -> None:
    """The document's fourth topology: an encoder with a RAM sink of its own; the path that is in use gets the trace."""
    traces = []
    for to_funnel, to_sink in ((True, False), (False, True), (True, True)):
        rig = Rig(elf)
        far, got = probe()
        funnel = Funnel([far], inputs=2)
        sink, ram = rig.sink()
        upper = rig.add(funnel)
        _, te = rig.encoder(sink, also=[funnel.inputs[1]])
        upper.activate()
        upper[DIS_INPUT] = 0 if to_funnel else 0b10
        enable(upper)
        ram.activate()
        if to_sink:
            start_sink(ram)
        start_encoder(te)
        rig.run(800)
        disable(te)
        assert not te[CONTROL] & OVERFLOW
        disable(upper)
        traces.append((messages(b"".join(got.got)), messages(stored(ram)) if to_sink else []))
    whole = traces[0][0]
    assert len(whole) > 20
    assert traces == [(whole, []), ([], whole), (whole, whole)]


def test_shared_time_in_messages(elf: Path) -> None:
    """The encoder's messages have the funnel's time."""
    rig = Rig(elf)
    far, got = probe()
    funnel = Funnel([far], inputs=1, system_clock=lambda: rig.hart.elapsed)
    upper = rig.add(funnel)
    _, te = rig.encoder(funnel.inputs[0], time_from=funnel.timestamps)
    upper.activate()
    upper[DIS_INPUT] = 0
    enable(upper)
    rig.run(100)
    for value in (0, TS_ACTIVE, TS_ACTIVE | SYSTEM | COUNT | 4):
        upper[TS_CONTROL] = value

    def shared(te: Registers) -> None:
        for value in (0, TS_ACTIVE, TIME & ~0x70 | SHARED):
            te[TS_CONTROL] = value
        assert te[TS_CONTROL] >> 4 & 7 == 4

    start_encoder(te, HTM, lambda: shared(te))
    before = upper[COUNTER_LOW]
    assert te[COUNTER_LOW] == before
    rig.run(1000)
    assert te[COUNTER_LOW] == upper[COUNTER_LOW] == before + 1000
    disable(te)
    disable(upper)
    found = messages(b"".join(got.got))
    assert found[0].variable[-1] in (before, before + 1)
    assert before + 990 <= sum(m.variable[-1] for m in found) <= before + 1001, "differences"
