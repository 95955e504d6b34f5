"""External triggers of the simulated encoder, against the Trace Control Interface 1.0, "External Trace Triggers"."""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.devices.encoder import ExternalTriggers, TraceEncoder
from tests.transport.simulated.devices.rig import HTM, Rig, disable, start_sink, stored
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, ENABLE, TRACING, Registers
from tests.transport.simulated.encoder.traces import TRIGGERS, compiled
from tests.transport.simulated.nexus import PROG_TRACE_CORRELATION, PROG_TRACE_SYNC, SYNCHRONIZING, messages

INPUTS, OUTPUTS = 0x54, 0x58
ON, OFF, NOTIFY = 2, 3, 4


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("triggers"), "rv64imac")


class Run:
    def __init__(self, elf: Path, inputs: int, outputs: int = 0, trigger_enable: int = TRIGGERS) -> None:
        self.fired: list[int] = []
        self.rig = Rig(elf)
        sink, self.ram = self.rig.sink()
        self.encoder: TraceEncoder
        self.te: Registers
        self.encoder, self.te = self.rig.encoder(sink, triggers=ExternalTriggers(3, 3, self.fired.append))
        start_sink(self.ram)
        self.te.activate()
        for offset in (0x08, 0x0C, 0x10, 0x1C, 0x40):
            self.te[offset] = 0
        self.te[INPUTS], self.te[OUTPUTS] = inputs, outputs
        self.options = ACTIVE | HTM | trigger_enable
        self.te[CONTROL] = self.options | ENABLE
        self.te.poll(ENABLE, ENABLE)


def test_inputs_switch_and_mark_the_trace(elf: Path) -> None:
    run = Run(elf, ON | OFF << 4 | NOTIFY << 8)
    for number in (0, 2, 1, 0):
        run.rig.run(50)
        run.encoder.external_trigger(number)
        assert bool(run.te[CONTROL] & TRACING) is (number != 1)
    run.rig.run(50)
    disable(run.te)
    found = messages(stored(run.ram))
    kinds = [(m.tcode == PROG_TRACE_CORRELATION, m.fixed[0]) for m in found if m.tcode in (*SYNCHRONIZING, 33)]
    assert kinds == [(False, 5), (False, 6), (True, 4), (False, 5), (True, 4)], "on, event, off, on, off"
    assert found[0].tcode == PROG_TRACE_SYNC


def test_only_where_triggers_are_enabled(elf: Path) -> None:
    run = Run(elf, ON, trigger_enable=0)
    run.encoder.external_trigger(0)
    assert not run.te[CONTROL] & TRACING


def test_outputs_tell_of_both_changes(elf: Path) -> None:
    run = Run(elf, ON | OFF << 4, 0b01 | 0b10 << 4 | 0b11 << 8)
    run.encoder.external_trigger(0)
    assert run.fired == [0, 2]
    run.encoder.external_trigger(0)
    assert run.fired == [0, 2], "nothing changed"
    run.te[CONTROL] = run.options | ENABLE
    assert run.fired == [0, 2, 1, 2], "software has switched it off"


def test_more_than_there_can_be() -> None:
    for counts in ((9, 0), (0, 9)):
        with pytest.raises(ValueError, match="up to 8"):
            ExternalTriggers(*counts)
