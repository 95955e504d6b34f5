"""The PIB sink on the simulated bus, against the Trace Control Interface 1.0, "Trace PIB Sink"."""


import pytest

from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.devices.sinks import PibSink, calibration, wire
from tests.transport.simulated.devices.rig import disable
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, EMPTY, ENABLE, Registers
from tests.transport.simulated.devices.test_funnel import Bytes, on_bus

MODES = (0, 4, 5, 8, 9, 10, 11, 12)
MANCHESTER, UART, P1, P2, P4, P8, P16 = MODES[1:]
CLK_CENTER, CALIBRATE = 1 << 8, 1 << 9


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


def test_modes_are_found_by_writing_them() -> None:
    _, registers, _ = sink_with()
    accepted = []
    for mode in range(16):
        registers[CONTROL] = ACTIVE | mode << 4
        if registers[CONTROL] >> 4 & 15 == mode:
            accepted.append(mode)
    assert accepted == list(MODES)


@pytest.mark.parametrize("mode", MODES)
def test_the_clock_is_centred_in_parallel_modes_only(mode: int) -> None:
    _, registers, _ = sink_with()
    registers[CONTROL] = ACTIVE | mode << 4 | CLK_CENTER
    assert bool(registers[CONTROL] & CLK_CENTER) is (mode >= 8)


def test_the_divider_is_slow_after_reset_and_as_wide_as_built() -> None:
    _, registers, _ = sink_with(divider_bits=6)
    assert registers[CONTROL] >> 16 == 63
    registers[CONTROL] = ACTIVE | 0xFFFF << 16
    assert registers[CONTROL] >> 16 == 63
    registers[CONTROL] = ACTIVE | 5 << 16
    assert registers[CONTROL] >> 16 == 5


def test_optional_bits_can_be_absent() -> None:
    build = ComponentBuild(fixed={"trPibCalibrate": 0, "trPibClkCenter": 0, "trPibAsyncFreq": 0})
    _, registers, _ = sink_with(build=build)
    registers[CONTROL] = ACTIVE | P8 << 4 | CLK_CENTER | CALIBRATE | 7 << 12
    assert registers[CONTROL] & 0xFFFF == ACTIVE | EMPTY | P8 << 4


def test_messages_reach_the_probe_while_enabled() -> None:
    sink, registers, got = enabled(P4)
    assert sink.accept(b"one") == 3
    disable(registers)
    assert sink.accept(b"two") == 0
    assert got.got == [b"one"]


def test_off_and_calibrating_it_takes_none() -> None:
    for mode, more in ((0, 0), (P8, CALIBRATE)):
        sink, _, _ = enabled(mode, more)
        assert not sink.ready
        assert sink.accept(b"one") == 0


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
