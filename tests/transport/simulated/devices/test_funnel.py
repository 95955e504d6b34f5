"""The funnel on the simulated bus, against the Trace Control Interface 1.0, "Trace Funnel"."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.devices.funnel import Funnel
from rvtrace_gdb.transport.simulated.devices.output import TraceConsumer
from rvtrace_gdb.transport.simulated.devices.sinks import PibSink
from tests.transport.simulated.devices.rig import TS_CONTROL, disable, enable
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, EMPTY, ENABLE, Registers
from tests.transport.simulated.encoder.traces import TS_ACTIVE

BASE = 0x2000_0000
DIS_INPUT, COUNTER_LOW = 0x08, 0x48
SYSTEM, COUNT = 2 << 4, 2


class Bytes:
    """What arrived, one entry for each message."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.got.append(data)


def probe() -> tuple[PibSink, Bytes]:
    """A sink that is on and shows the messages it gets."""
    got = Bytes()
    sink = PibSink(got)
    sink.write(0, 4, ACTIVE)
    sink.write(0, 4, ACTIVE | 5 << 4)
    sink.write(0, 4, ACTIVE | ENABLE | 5 << 4)
    sink.settle()
    return sink, got


def on_bus(component: TraceConsumer, base: int = BASE) -> Registers:
    bus = Bus(ram_size=0x1000)
    bus.add(base, 0x1000, component.read, component.write)
    return Registers(bus, base)


def funnel_to_probe(inputs: int = 3, depth: int = 2) -> tuple[Funnel, Registers, Bytes]:
    sink, got = probe()
    funnel = Funnel([sink], inputs=inputs, depth=depth)
    registers = on_bus(funnel)
    registers.activate()
    registers[DIS_INPUT] = 0
    enable(registers)
    return funnel, registers, got


def test_more_inputs_than_the_document_has() -> None:
    for inputs in (0, 17):
        with pytest.raises(ValueError, match="up to 16 inputs"):
            Funnel([], inputs=inputs)


def test_one_message_of_each_input_in_turn() -> None:
    funnel, registers, got = funnel_to_probe()
    first, second, third = funnel.inputs
    for message in (b"a1", b"a2"):
        first.accept(message)
    second.accept(b"b1")
    third.accept(b"c1")
    assert got.got == [], "they wait in the funnel"
    assert not registers[CONTROL] & EMPTY
    first.accept(b"a3")
    assert got.got == [b"a1", b"b1", b"c1", b"a2"]
    disable(registers)
    assert got.got[4:] == [b"a3"]


def test_a_flush_sends_what_is_inside() -> None:
    funnel, registers, got = funnel_to_probe()
    funnel.inputs[2].accept(b"one")
    registers[CONTROL] = ACTIVE
    assert registers[CONTROL] & (ENABLE | EMPTY) == ENABLE
    assert registers[CONTROL] & (ENABLE | EMPTY) == EMPTY
    assert got.got == [b"one"]


def test_a_cut_input_takes_messages_and_drops_them() -> None:
    funnel, registers, got = funnel_to_probe()
    registers[DIS_INPUT] = 0b010
    assert funnel.inputs[1].accept(b"gone") == 4
    funnel.inputs[0].accept(b"kept")
    disable(registers)
    assert got.got == [b"kept"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=60), st.integers(1, 4))
def test_every_message_arrives_whole_once_and_in_its_order(events: list[tuple[int, bool]], depth: int) -> None:
    """Whatever input they come to, and whether or not the sink takes any just then; what was not taken does not."""
    sink, got = probe()
    funnel = Funnel([sink], inputs=3, depth=depth)
    registers = on_bus(funnel)
    registers.activate()
    registers[DIS_INPUT] = 0
    enable(registers)
    taken: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for n, (number, jammed) in enumerate(events):
        sink.jammed = jammed
        message = bytes((number, n)) * (n % 3 + 1)
        if funnel.inputs[number].accept(message):
            taken[number].append(message)
    sink.jammed = False
    disable(registers)
    assert {number: [m for m in got.got if m[0] == number] for number in taken} == taken


class TestTime:
    def registers(self, funnel: Funnel) -> Registers:
        registers = on_bus(funnel)
        registers.activate()
        return registers

    def test_the_top_funnel_counts(self) -> None:
        now = [1000]
        sink, _ = probe()
        registers = self.registers(Funnel([sink], system_clock=lambda: now[0]))
        for value in (0, TS_ACTIVE, TS_ACTIVE | SYSTEM | COUNT | 4):
            registers[TS_CONTROL] = value
        now[0] += 77
        assert registers[COUNTER_LOW] == 77
        registers[TS_CONTROL] = 0xFFFF_FFFF
        assert registers[TS_CONTROL] & 1 << 15 == 0, "trTsEnable is for encoders only"
        assert registers[TS_CONTROL] >> 24 & 63 == 40


    def test_an_external_value_is_taken_as_it_is(self) -> None:
        sink, _ = probe()
        registers = self.registers(Funnel([sink], external=lambda: 0x12_3456_789A))
        for value in (0, TS_ACTIVE, TS_ACTIVE | 1 << 4 | 3 << 8):
            registers[TS_CONTROL] = value
        assert (registers[COUNTER_LOW], registers[COUNTER_LOW + 4]) == (0x3456_789A, 0x12)

    def test_a_funnel_below_passes_it_on_while_active(self) -> None:
        sink, _ = probe()
        now = [500]
        top = Funnel([sink], system_clock=lambda: now[0])
        middle = Funnel([top.inputs[0]], above=top.timestamps)
        upper, lower = self.registers(top), self.registers(middle)
        for value in (0, TS_ACTIVE, TS_ACTIVE | SYSTEM | COUNT | 4):
            upper[TS_CONTROL] = value
        assert lower[COUNTER_LOW] == upper[COUNTER_LOW] == 0
        now[0] += 400
        assert lower[COUNTER_LOW] == upper[COUNTER_LOW] == 400
        lower[CONTROL] = 0
        lower.poll(ACTIVE, 0)
        assert middle.timestamps.counter == 0
