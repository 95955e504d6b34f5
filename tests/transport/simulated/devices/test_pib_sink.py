"""The PIB sink on the simulated bus, against the Trace Control Interface 1.0, "Trace PIB Sink"."""


import pytest

from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.transport.simulated.devices.sinks import PibSink, calibration, wire
from tests.transport.simulated.devices.rig import disable
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, ENABLE, Registers
from tests.transport.simulated.devices.test_funnel import Bytes, on_bus

MODES = (0, 4, 5, 8, 9, 10, 11, 12)
MANCHESTER, UART, P1, P2, P4, P8, P16 = MODES[1:]
CALIBRATE = 1 << 9


def sink_with(**options: object) -> tuple[PibSink, Registers, Bytes]:
    got = Bytes()
    sink = PibSink(got, **options)  # type: ignore[arg-type]
    registers = on_bus(sink)
    registers.activate()
    return sink, registers, got


def enabled(mode: int, more: int = 0) -> tuple[PibSink, Registers, Bytes]:
    sink, registers, got = sink_with()
    registers[CONTROL] = ACTIVE | mode << 4 | more
    registers[CONTROL] = ACTIVE | ENABLE | mode << 4 | more
    registers.poll(ENABLE, ENABLE)
    return sink, registers, got


def test_messages_reach_the_probe_while_enabled() -> None:
    sink, registers, got = enabled(P4)
    assert sink.accept(b"one") == 3
    disable(registers)
    assert sink.accept(b"two") == 0
    assert got.got == [b"one"]


# The document's table "PIB Calibration Patterns": bytes, and what is on the wires, one number for each edge.
CALIBRATION = [
    (P1, "AA 55 00 FF", [0, 1] * 4 + [1, 0] * 4 + [0] * 8 + [1] * 8),
    (P2, "66 66 CC 33", [2, 1, 2, 1, 2, 1, 2, 1, 0, 3, 0, 3, 3, 0, 3, 0]),
    (P4, "5A 5A F0 0F", [0xA, 5, 0xA, 5, 0, 0xF, 0xF, 0]),
    (P8, "AA 55 00 FF", [0xAA, 0x55, 0x00, 0xFF]),
    (P16, "AA AA 55 55 00 00 FF FF", [0xAAAA, 0x5555, 0x0000, 0xFFFF]),
]


@pytest.mark.parametrize(("mode", "pattern", "pins"), CALIBRATION)
def test_calibration(mode: int, pattern: str, pins: list[int]) -> None:
    _, registers, got = enabled(mode, CALIBRATE)
    assert registers[CONTROL] & CALIBRATE
    sent = b"".join(got.got)
    period = bytes.fromhex(pattern)
    assert sent
    assert sent == period * (len(sent) // len(period))
    assert list(wire(PibMode(mode), period)) == pins


@pytest.mark.parametrize("mode", [MANCHESTER, UART])
def test_calibration_of_the_serial_modes(mode: int) -> None:
    assert calibration(PibMode(mode)) == bytes.fromhex("AA 55 00 FF")


def test_manchester() -> None:
    """Start 10, a zero 01, a one 10, stop 00."""
    assert "".join(map(str, wire(PibMode.SWT_MANCHESTER, b"\x05"))) == "10" + "100110" + "01" * 5 + "00"


def test_uart() -> None:
    """A low start bit, eight bits with the lowest first, a high stop bit."""
    assert "".join(map(str, wire(PibMode.SWT_UART, b"\x05\x80"))) == "01010000010000000011"
