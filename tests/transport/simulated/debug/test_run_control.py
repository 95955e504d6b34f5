"""A Debug Module of several harts, against 3.2, 3.3, 3.6 and the registers of Debug Specification 1.0."""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugModule, DebugSpec, SystemBusAccess
from rvtrace_gdb.transport.simulated.debug.run_control import DebugHarts
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from tests.transport.simulated.debug.test_debug_module import Hart, access, cmderr

# Addresses and bits as in the specification's tables, not taken from the code under test.
DATA0, DMCONTROL, DMSTATUS, HAWINDOWSEL, HAWINDOW, COMMAND, DMCS2, HALTSUM0 = (
    0x04, 0x10, 0x11, 0x14, 0x15, 0x17, 0x32, 0x40,
)  # fmt: skip
HALTREQ, RESUMEREQ, HARTRESET, ACKHAVERESET, HASEL = 1 << 31, 1 << 30, 1 << 29, 1 << 28, 1 << 26
SETRESETHALTREQ, NDMRESET, DMACTIVE = 8, 2, 1
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
        self.dm = DebugModule(self.harts[0], sba, spec, others=self.harts[1:], reset=self._reset)
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


@pytest.mark.parametrize(("count", "bits"), [(2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (32, 6)])
def test_hartsel_has_room_for_one_more(count: int, bits: int) -> None:
    rig = Rig(count)
    rig.dm.write(DMCONTROL, 0x3FF << 16 | 0x3FF << 6 | DMACTIVE)
    assert rig.dm.read(DMCONTROL) == ((1 << bits) - 1) << 16 | DMACTIVE
    for hart in range(count):
        assert not rig.status(hart) & (ANYNONEXISTENT | ALLNONEXISTENT)
    assert rig.status(count) & (STATES | ANYNONEXISTENT | ALLNONEXISTENT) == ANYNONEXISTENT | ALLNONEXISTENT


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


def test_registers_are_those_of_the_hart_in_hartsel() -> None:
    rig = Rig()
    for n, hart in enumerate(rig.harts):
        hart.registers[0x1008] = 100 + n
    rig.control(1, HALTREQ)
    rig.control(2, HALTREQ)
    for n in (1, 2):
        rig.dm.write(HAWINDOW, 0b111)
        rig.control(n, HASEL)
        rig.dm.write(COMMAND, access(0x1008))
        assert rig.dm.read(DATA0) == 100 + n
    rig.control(0)
    rig.dm.write(COMMAND, access(0x1008))
    assert cmderr(rig.dm) == 4, "it runs"


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


def test_ndmreset_resets_all_and_each_does_what_was_asked_of_it() -> None:
    rig = Rig()
    rig.control(1, HALTREQ)
    rig.control(2, SETRESETHALTREQ)
    rig.control(0, NDMRESET)
    assert rig.resets == [[["reset"]] * 3], "the rest of the system is reset when no hart runs any more"
    assert all(rig.status(n, NDMRESET) & STATES == ANYUNAVAIL | ALLUNAVAIL for n in (0, 2))
    rig.control(0)
    assert [hart.log[-1] for hart in rig.harts] == ["start running", "start HALTREQ", "start RESETHALTREQ"]
    assert len(rig.resets) == 1


def test_haltreq_of_a_hart_is_cleared_with_that_hart_only() -> None:
    rig = Rig(2)
    rig.control(0, HALTREQ)
    rig.control(1, HALTREQ)
    rig.control(1)
    rig.control(1, NDMRESET)
    rig.control(1)
    assert [hart.log[-1] for hart in rig.harts] == ["start HALTREQ", "start running"]


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


def test_joining_a_group_does_not_halt_and_group_0_is_none() -> None:
    rig = Rig()
    rig.control(0, HALTREQ)
    rig.dm.harts.has_halted(rig.harts[0])
    assert rig.dm.read(HALTSUM0) == 0b001
    rig.group(0, 7)
    rig.group(1, 7)
    assert rig.dm.read(HALTSUM0) == 0b001


def test_a_group_with_the_array_mask_in_one_write_and_nothing_without_hgwrite() -> None:
    rig = Rig()
    rig.dm.write(HAWINDOW, 0b110)
    rig.control(1, HASEL)
    rig.dm.write(DMCS2, 5 << 2)
    assert rig.dm.read(DMCS2) == 0
    rig.dm.write(DMCS2, 1 << 11 | 1 << 7 | 5 << 2 | HGWRITE | 1)
    assert rig.dm.read(DMCS2) == 5 << 2, "no external triggers, no resume groups"
    rig.control(0)
    assert rig.dm.read(DMCS2) == 0
    rig.control(2)
    assert rig.dm.read(DMCS2) == 5 << 2


def test_one_that_steps_in_a_resumed_group_halts_it_again() -> None:
    """`resume` of a hart that steps returns with it halted, and the others have resumed after it."""
    rig = Rig(2)
    rig.dm.write(HAWINDOW, 0b11)
    rig.control(0, HASEL)
    rig.dm.write(DMCS2, 1 << 2 | HGWRITE)
    rig.control(0, HASEL | HALTREQ)
    rig.harts[0].steps = True
    rig.control(0, HASEL | RESUMEREQ)
    assert [hart.log[-2:] for hart in rig.harts] == [["halt HALTREQ", "resume"], ["resume", "halt GROUP"]]
    assert rig.dm.read(DMSTATUS) & (STATES | ALLRESUMEACK) == ANYHALTED | ALLHALTED | ALLRESUMEACK


def test_dmactive_0_forgets_groups_masks_and_requests() -> None:
    rig = Rig()
    rig.group(1, 1)
    rig.dm.write(HAWINDOW, 7)
    rig.control(1, SETRESETHALTREQ)
    rig.dm.write(DMCONTROL, 0)
    rig.control(1)
    assert (rig.dm.read(DMCS2), rig.dm.read(HAWINDOW)) == (0, 0)
    rig.control(0, NDMRESET)
    rig.control(0)
    assert rig.harts[1].log == ["reset", "start running"]


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
