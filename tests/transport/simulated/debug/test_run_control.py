"""A Debug Module of several harts, against 3.2, 3.3, 3.6 and the registers of Debug Specification 1.0."""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugModuleRegisters, DebugSpec, SystemBusAccess
from rvtrace_gdb.transport.simulated.debug.run_control import DebugHarts
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from tests.transport.simulated.debug.test_debug_module import Hart

# Addresses and bits as in the specification's tables, not taken from the code under test.
DMCONTROL, DMSTATUS, HAWINDOWSEL, HAWINDOW, DMCS2, HALTSUM0 = 0x10, 0x11, 0x14, 0x15, 0x32, 0x40
HALTREQ, RESUMEREQ, HARTRESET, ACKHAVERESET, HASEL = 1 << 31, 1 << 30, 1 << 29, 1 << 28, 1 << 26
DMACTIVE = 1
ANYHALTED, ALLHALTED, ANYRUNNING, ALLRUNNING, ANYUNAVAIL, ALLUNAVAIL = (1 << n for n in range(8, 14))
ANYNONEXISTENT, ALLNONEXISTENT, ANYRESUMEACK, ALLRESUMEACK, ANYHAVERESET, ALLHAVERESET = (1 << n for n in range(14, 20))
STATES = ANYHALTED | ALLHALTED | ANYRUNNING | ALLRUNNING | ANYUNAVAIL | ALLUNAVAIL
HGWRITE = 2


def sel(hart: int, bits: int = 0) -> int:
    return hart << 16 | bits | DMACTIVE


class Rig:
    """*count* harts; the log of `resets` has what was asked for when all was reset."""

    def __init__(self, count: int = 3, spec: DebugSpec = DebugSpec.V1_0) -> None:
        self.harts = [Hart(64) for _ in range(count)]
        self.resets: list[list[list[str]]] = []
        bus = Bus(ram_size=0x1000)
        sba = SystemBusAccess(bus, address_bits=64, spec=spec, written=lambda address: None)
        self.dm = DebugModuleRegisters(self.harts[0], sba, spec, others=self.harts[1:], reset=self._reset)
        self.dm.write(DMCONTROL, DMACTIVE)

    def _reset(self) -> None:
        self.resets.append([hart.log[-1:] for hart in self.harts])

    def control(self, hart: int, bits: int = 0) -> None:
        self.dm.write(DMCONTROL, sel(hart, bits))

    def status(self, hart: int, bits: int = 0) -> int:
        self.control(hart, bits)
        return self.dm.read(DMSTATUS)

    def group_of(self, hart: int) -> int:
        self.control(hart)
        return self.dm.read(DMCS2) >> 2 & 31

    def group(self, hart: int, group: int) -> None:
        self.control(hart)
        self.dm.write(DMCS2, group << 2 | HGWRITE)


def test_requests_are_for_the_selected_hart() -> None:
    rig = Rig()
    rig.control(1, HALTREQ)
    assert [hart.log for hart in rig.harts] == [[], ["halt HALTREQ"], []]
    assert [rig.status(n) & STATES for n in range(3)] == [
        ANYRUNNING | ALLRUNNING, ANYHALTED | ALLHALTED, ANYRUNNING | ALLRUNNING,
    ]  # fmt: skip
    assert rig.dm.read(HALTSUM0) == 0b010
    rig.control(1, RESUMEREQ)
    assert [rig.status(n) & (ANYRESUMEACK | ALLRESUMEACK) for n in range(3)] == [0, ANYRESUMEACK | ALLRESUMEACK, 0]


def test_any_and_all_of_the_hart_array_mask() -> None:
    rig = Rig()
    rig.dm.write(HAWINDOW, 0b101)
    assert (rig.dm.read(HAWINDOW), rig.dm.read(HAWINDOWSEL)) == (0b101, 0)
    rig.control(0, HALTREQ)
    assert rig.status(0, HASEL) & STATES == ANYHALTED | ANYRUNNING
    assert rig.status(1, HASEL) & STATES == ANYHALTED | ANYRUNNING
    rig.control(0, HASEL | HALTREQ)
    assert rig.status(0, HASEL) & STATES == ANYHALTED | ALLHALTED
    assert rig.dm.read(HALTSUM0) == 0b101
    assert rig.status(3, HASEL) & (ANYNONEXISTENT | ALLNONEXISTENT | STATES) == ANYNONEXISTENT | ANYHALTED
    rig.control(0, HASEL | RESUMEREQ)
    assert rig.status(0, HASEL) & (STATES | ALLRESUMEACK) == ANYRUNNING | ALLRUNNING | ALLRESUMEACK
    rig.dm.write(HAWINDOW, 0xFFFF_FFFF)
    assert rig.dm.read(HAWINDOW) == 0b111


def test_havereset_is_acknowledged_hart_by_hart() -> None:
    rig = Rig()
    rig.control(1, ACKHAVERESET)
    assert [bool(rig.status(n) & ALLHAVERESET) for n in range(3)] == [True, False, True]
    rig.dm.write(HAWINDOW, 0b011)
    assert rig.status(0, HASEL) & (ANYHAVERESET | ALLHAVERESET) == ANYHAVERESET


def test_hartreset_is_of_the_selected_hart_alone() -> None:
    rig = Rig()
    for n in range(3):
        rig.control(n, ACKHAVERESET)
    rig.control(1, HARTRESET | HALTREQ)
    assert rig.dm.read(DMCONTROL) == sel(1, HARTRESET)
    assert rig.dm.read(DMSTATUS) & STATES == ANYUNAVAIL | ALLUNAVAIL
    rig.control(1, HALTREQ)
    assert [hart.log for hart in rig.harts] == [[], ["halt HALTREQ", "reset", "start HALTREQ"], []]
    assert [bool(rig.status(n) & ALLHAVERESET) for n in range(3)] == [False, True, False]
    assert rig.resets == []


def test_a_hart_that_halts_takes_its_group_along() -> None:
    rig = Rig(4)
    for n in (0, 1, 3):
        rig.group(n, 1)
    assert [rig.group_of(n) for n in range(4)] == [1, 1, 0, 1]
    rig.harts[3].halt(DebugCause.TRIGGER)
    rig.dm.harts.has_halted(rig.harts[3])
    assert [hart.log for hart in rig.harts] == [["halt GROUP"], ["halt GROUP"], [], ["halt TRIGGER"]]
    assert rig.dm.read(HALTSUM0) == 0b1011
    rig.control(0, RESUMEREQ)
    assert rig.dm.read(HALTSUM0) == 0b1010, "a halted member does not halt one that resumes"


def test_0_13_has_no_groups() -> None:
    rig = Rig(2, DebugSpec.V0_13)
    rig.group(0, 1)
    assert rig.dm.read(DMCS2) == 0


def test_one_hart_has_none_of_it() -> None:
    rig = Rig(1)
    rig.dm.write(DMCONTROL, HASEL | HARTRESET | DMACTIVE)
    rig.dm.write(HAWINDOW, 1)
    rig.dm.write(DMCS2, 1 << 2 | HGWRITE)
    assert [rig.dm.read(a) for a in (DMCONTROL, HAWINDOW, DMCS2)] == [DMACTIVE, 0, 0]
    assert rig.harts[0].log == []


@pytest.mark.parametrize("count", [0, 33])
def test_so_many_harts_there_are_not(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} harts: a Debug Module has 1 to 32"):
        DebugHarts([Hart(64) for _ in range(count)], lambda: None)
