"""The device model does what the manual's own example says; and the driver packs its commands as the manual allows."""

import random

import pytest

from rvtrace_gdb.transport.usb.esp_jtag import CAP, FLUSH, PACKET, _compressed, _transfers
from tests.helpers.amounts import each_seed
from tests.transport.usb.esp_device import JTAG_IN, JTAG_OUT, EspDevice


class Recorder:
    """Wires that remember what was clocked; TDO is 1 at every third clock."""

    def __init__(self) -> None:
        self.levels: list[tuple[int, int]] = []

    @property
    def tdo(self) -> int:
        return int(len(self.levels) % 3 == 0)

    def fall(self) -> None: ...

    def rise(self, tms: int, tdi: int) -> None:
        self.levels.append((tms, tdi))


def test_the_example_of_the_manual() -> None:
    """32.3.4: 0x0D 0x5E 0xCF is command 1 twice, then command 3 fifty-one times."""
    wires = Recorder()
    device = EspDevice(wires)
    assert device.out(JTAG_OUT, bytes((0x0D, 0x5E, 0xCF, 0xAA)))
    assert wires.levels == [(0, 0)] * 2 + [(0, 1)] * 51  # bits of CMD_CLK: cap tms tdi (table 32.3-3)
    packet = device.into(JTAG_IN, 64)
    assert packet is not None and len(packet) == (51 + 7) // 8
    bits = [packet[n // 8] >> n % 8 & 1 for n in range(51)]
    assert bits == [int((2 + n) % 3 == 0) for n in range(51)]


def test_it_stops_when_both_buffers_are_full() -> None:
    """32.3.5: at most 128 bytes of captured data without the host reading it."""
    device = EspDevice(Recorder())
    sent = 0
    while device.out(JTAG_OUT, bytes([0x44] * 64)):
        sent += 64
        assert sent < 2000
    assert device.clocks == 8 * 128
    assert len(device.into(JTAG_IN, 64) or b"") == 64
    assert device.clocks > 8 * 128


@each_seed(range(20))
def test_packed_commands_are_the_same_commands(seed: int) -> None:
    """Whatever is captured, no write waits for a read that does not come: the device never has to refuse one."""
    chance = random.Random(seed)
    commands = bytearray()
    while len(commands) < 3000:
        commands += bytes([chance.randrange(8)]) * chance.choice((1, 1, 2, 3, 5, 40, 64, 65, 200))
    wires = Recorder()
    device = EspDevice(wires)
    received, pending = b"", 0
    for data, bits in _transfers(_compressed(commands)):
        for start in range(0, len(data), PACKET):
            assert device.out(JTAG_OUT, data[start : start + PACKET]), "the device has no room"
        pending += bits
        while pending >= 8 * PACKET:
            received += device.into(JTAG_IN, 64) or pytest.fail("a full buffer is there to be read")
            pending -= 8 * PACKET
    while packet := device.into(JTAG_IN, 64):
        received += packet
    assert wires.levels == [(c >> 1 & 1, c & 1) for c in commands]
    wanted = [int(n % 3 == 0) for n, c in enumerate(commands) if c & CAP]
    assert [received[n // 8] >> n % 8 & 1 for n in range(len(wanted))] == wanted
    assert len(received) == (len(wanted) + 7) // 8


def test_runs_are_short() -> None:
    data = b"".join(data for data, _ in _transfers(_compressed(bytearray(64))))
    assert len(data) <= 4 and data[-1] & 15 == FLUSH
