"""The ATB bridge on the simulated bus, against the Trace Control Interface 1.0, "Trace ATB Bridge"."""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.devices.sinks import AtbBridge, record
from tests.transport.simulated.devices.rig import Log, Rig, disable, start_encoder
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, EMPTY, ENABLE, IMPL, Registers
from tests.transport.simulated.devices.test_funnel import on_bus
from tests.transport.simulated.encoder.traces import compiled

ID = 8  # lowest bit of trAtbBridgeID


class AtbRecords:
    """A bus of *width* bytes whose transfers are stored as records: ATID, ATBYTES, ATDATA (see `decode`'s `atb`)."""

    def __init__(self, width: int) -> None:
        self.data = bytearray()
        self._width = width

    def __call__(self, atid: int, data: bytes) -> None:
        self.data += record(atid, data, self._width)


def bridge(width: int = 4, atid: int = 0x2A) -> tuple[AtbBridge, Registers, list[tuple[int, bytes]]]:
    transfers: list[tuple[int, bytes]] = []
    component = AtbBridge(lambda atid, data: transfers.append((atid, data)), width=width)
    registers = on_bus(component)
    registers.activate()
    registers[CONTROL] = ACTIVE | atid << ID
    registers[CONTROL] = ACTIVE | ENABLE | atid << ID
    registers.poll(ENABLE, ENABLE)
    return component, registers, transfers


def test_it_identifies_itself() -> None:
    _, registers, _ = bridge()
    impl = registers[IMPL]
    assert (impl & 0xF, impl >> 4 & 0xF, impl >> 8 & 0xF) == (1, 0, 0xE), "interface 1.0, an ATB bridge"


def test_the_id_takes_any_value() -> None:
    _, registers, _ = bridge(atid=0x7F)
    assert registers[CONTROL] >> ID & 0x7F == 0x7F


def test_the_rate_of_synchronization_is_in_the_implementation_register() -> None:
    component, registers, _ = bridge()
    registers[IMPL] = 0xFFFF_FFFF
    assert registers[IMPL] == 7 << 12 | 0xE01, "all else is read-only"
    often = component.async_interval
    registers[IMPL] = 1 << 12
    assert 0 < component.async_interval < often, "bigger number, bigger distance"
    registers[IMPL] = 0
    assert component.async_interval == 0


def test_transfers_have_the_id_and_are_as_wide_as_the_bus() -> None:
    component, registers, transfers = bridge(4)
    assert component.accept(b"abcdef") == 6
    assert transfers == [(0x2A, b"abcd")]
    assert not registers[CONTROL] & EMPTY, "the rest waits"
    component.accept(b"gh")
    assert transfers[1:] == [(0x2A, b"efgh")]
    component.accept(b"i")
    disable(registers)
    assert transfers[2:] == [(0x2A, b"i")]
    assert component.accept(b"j") == 0


def test_only_widths_the_bus_can_have() -> None:
    with pytest.raises(ValueError, match="8 or 16 bytes wide, not 3"):
        AtbBridge(lambda atid, data: None, width=3)


def test_a_trace_over_the_bus(tmp_path: Path) -> None:
    """Records as in Arm IHI 0032B: ATID, ATBYTES (one less than the bytes that are valid), ATDATA."""
    rig = Rig(compiled(tmp_path, "rv64imac"))
    bus = AtbRecords(8)
    component = AtbBridge(bus, width=8)
    registers = rig.add(component)
    encoder, te = rig.encoder(component)
    log = Log(3, 0)
    encoder.watch = log
    registers.activate()
    registers[CONTROL] = ACTIVE | 0x11 << ID
    registers[CONTROL] = ACTIVE | ENABLE | 0x11 << ID
    registers.poll(ENABLE, ENABLE)
    start_encoder(te)
    rig.run(800)
    disable(te)
    disable(registers)
    records = [bytes(bus.data[at : at + 10]) for at in range(0, len(bus.data), 10)]
    assert {record[0] for record in records} == {0x11}
    trace = b"".join(record[2 : 3 + record[1]] for record in records)
    assert rig.pcs(trace) == [step.pc for step in log.steps if step.trap is None]
