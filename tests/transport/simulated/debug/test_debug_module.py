"""The Debug Module, against the register descriptions of Debug Specification 1.0 (and 0.13.2 where they differ)."""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugModuleRegisters, DebugSpec, SystemBusAccess
from rvtrace_gdb.transport.simulated.debug.run_control import NoSuchRegister
from rvtrace_gdb.transport.simulated.hart.block import DebugCause

# Addresses and bits as in the specification's tables, not taken from the code under test.
DATA0, DATA1, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND = 0x04, 0x05, 0x10, 0x11, 0x16, 0x17
ABSTRACTAUTO, SBCS, SBADDRESS0, SBADDRESS1, SBDATA0, SBDATA1 = 0x18, 0x38, 0x39, 0x3A, 0x3C, 0x3D
HALTREQ, RESUMEREQ, ACKHAVERESET, NDMRESET, DMACTIVE = 1 << 31, 1 << 30, 1 << 28, 2, 1
HALTED, RUNNING, UNAVAIL, NONEXISTENT, HAVERESET = (3 << n for n in (8, 10, 12, 14, 18))
RAM = 0x8000_0000


class Hart:
    """Registers in a dictionary, and a log of what the Debug Module asked for."""

    def __init__(self, xlen: int) -> None:
        self.xlen = xlen
        self.halted = False
        self.registers = {0x7B0: 0x4000_0003, **{0x1000 + n: 0 for n in range(64)}}
        self.log: list[str] = []
        self.steps = False

    def halt(self, cause: DebugCause) -> None:
        self.halted = True
        self.log.append(f"halt {cause.name}")

    def resume(self) -> None:
        self.halted = self.steps
        self.log.append("resume")

    def hold_in_reset(self) -> None:
        self.halted = False
        self.log.append("reset")

    def leave_reset(self, halt: DebugCause | None) -> None:
        self.halted = halt is not None
        self.log.append(f"start {halt.name if halt else 'running'}")

    def register_bits(self, regno: int) -> int:
        if regno not in self.registers:
            raise NoSuchRegister
        return 64 if regno >= 0x1020 else self.xlen

    def read_register(self, regno: int) -> int:
        return self.registers[regno]

    def write_register(self, regno: int, value: int) -> None:
        self.registers[regno] = value


def debug_module(xlen: int = 64, spec: DebugSpec = DebugSpec.V1_0) -> tuple[DebugModuleRegisters, Hart, Bus]:
    hart, bus = Hart(xlen), Bus(ram_size=0x1000)
    sba = SystemBusAccess(bus, address_bits=xlen, spec=spec, written=lambda a: hart.log.append(f"write {a:#x}"))
    dm = DebugModuleRegisters(hart, sba, spec)
    dm.write(DMCONTROL, DMACTIVE)
    return dm, hart, bus


def halted(xlen: int = 64, spec: DebugSpec = DebugSpec.V1_0) -> tuple[DebugModuleRegisters, Hart, Bus]:
    dm, hart, bus = debug_module(xlen, spec)
    dm.write(DMCONTROL, HALTREQ | DMACTIVE)
    dm.write(DMCONTROL, DMACTIVE)
    return dm, hart, bus


def cmderr(dm: DebugModuleRegisters) -> int:
    return dm.read(ABSTRACTCS) >> 8 & 7


def access(regno: int, *, size: int = 64, write: bool = False, increment: bool = False, extra: int = 0) -> int:
    """An Access Register command (3.7.1.1) with transfer set."""
    return {32: 2, 64: 3, 128: 4}[size] << 20 | increment << 19 | 1 << 17 | write << 16 | regno | extra


def test_nothing_but_dmactive_can_be_set_while_inactive() -> None:
    dm, hart, _ = debug_module()
    dm.write(DMCONTROL, 0)
    dm.write(DATA0, 5)
    dm.write(SBCS, 1 << 16)
    assert dm.read(DMCONTROL) == 0
    dm.write(DMCONTROL, DMACTIVE)
    assert dm.read(DMCONTROL) == DMACTIVE
    assert dm.read(DATA0) == 0
    assert dm.read(SBCS) >> 17 & 7 == 2, "sbaccess resets to 2"
    assert hart.log == []


def test_inactivity_resets_the_module_and_leaves_the_hart() -> None:
    dm, hart, _ = halted()
    dm.write(DATA0, 5)
    dm.write(COMMAND, access(0x5FF))
    dm.write(ABSTRACTAUTO, 1)
    dm.write(DMCONTROL, 0)
    dm.write(DMCONTROL, DMACTIVE)
    assert (dm.read(DATA0), dm.read(ABSTRACTAUTO), cmderr(dm), hart.halted) == (0, 0, 0, True)


def test_hartsel_beyond_the_only_hart_is_nonexistent() -> None:
    dm, hart, _ = debug_module()
    dm.write(DMCONTROL, 0x3FF << 16 | 0x3FF << 6 | 1 << 26 | DMACTIVE)
    assert dm.read(DMCONTROL) == 1 << 16 | DMACTIVE, "HARTSELLEN 1, no hasel"
    assert dm.read(DMSTATUS) & (NONEXISTENT | HALTED | RUNNING | HAVERESET) == NONEXISTENT
    dm.write(DMCONTROL, 1 << 16 | HALTREQ | DMACTIVE)
    assert hart.log == []
    dm.write(COMMAND, access(0x1008))
    assert cmderr(dm) == 4


def test_havereset_until_acknowledged() -> None:
    dm, _, _ = debug_module()
    assert dm.read(DMSTATUS) & HAVERESET == HAVERESET
    dm.write(DMCONTROL, ACKHAVERESET | DMACTIVE)
    assert not dm.read(DMSTATUS) & HAVERESET


@pytest.mark.parametrize(("spec", "pending"), [(DebugSpec.V0_13, 0), (DebugSpec.V1_0, 1)])
def test_ndmreset(spec: DebugSpec, pending: int) -> None:
    dm, hart, _ = debug_module(spec=spec)
    dm.write(DMCONTROL, ACKHAVERESET | DMACTIVE)
    dm.write(DMCONTROL, NDMRESET | DMACTIVE)
    assert dm.read(DMCONTROL) & NDMRESET
    assert dm.read(DMSTATUS) >> 24 & 1 == pending, "ndmresetpending"
    assert dm.read(DMSTATUS) & (UNAVAIL | RUNNING | HALTED) == UNAVAIL
    dm.write(DMCONTROL, DMACTIVE)
    assert dm.read(DMSTATUS) & (HAVERESET | RUNNING) == HAVERESET | RUNNING
    assert not dm.read(DMSTATUS) >> 24 & 1
    assert hart.log == ["reset", "start running"]


def test_resethaltreq_stays_until_cleared() -> None:
    dm, hart, _ = debug_module()
    assert dm.read(DMSTATUS) >> 5 & 1, "hasresethaltreq"
    dm.write(DMCONTROL, 1 << 3 | DMACTIVE)
    for _ in range(2):
        dm.write(DMCONTROL, NDMRESET | DMACTIVE)
        dm.write(DMCONTROL, DMACTIVE)
    dm.write(DMCONTROL, 1 << 2 | DMACTIVE)
    dm.write(DMCONTROL, NDMRESET | DMACTIVE)
    dm.write(DMCONTROL, DMACTIVE)
    assert hart.log == ["reset", "start RESETHALTREQ"] * 2 + ["reset", "start running"]


def test_the_reset_pin_does_what_ndmreset_does() -> None:
    dm, hart, _ = debug_module()
    dm.system_reset(True)
    dm.write(DMCONTROL, DMACTIVE)
    assert dm.read(DMSTATUS) & UNAVAIL, "a write of dmcontrol does not release the pin"
    dm.system_reset(False)
    assert hart.log == ["reset", "start running"]


def test_floating_point_registers_are_wider_than_xlen_32() -> None:
    dm, hart, _ = halted(32)
    hart.registers[0x1021] = 0x3FF0_0000_0000_0001
    dm.write(COMMAND, access(0x1021, size=64))
    assert (dm.read(DATA0), dm.read(DATA1), cmderr(dm)) == (1, 0x3FF0_0000, 0)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (access(0x1008, size=64), 2),  # RV32 has no 64-bit s0: how a debugger finds out XLEN
        (access(0x1008, size=128), 2),
        (access(0x1008, size=32, extra=1 << 18), 2),  # postexec without a program buffer
        (1 << 24, 2),  # Quick Access
        (2 << 24 | 2 << 20, 2),  # Access Memory
        (access(0x5FF, size=32), 3),  # no such CSR: exception
        (access(0xC000, size=32), 3),
        (access(0x5FF, size=32) & ~(1 << 17), 0),  # no transfer: nothing to fail
    ],
)
def test_commands_that_cannot_be(command: int, expected: int) -> None:
    dm, _, _ = halted(32)
    dm.write(COMMAND, command)
    assert cmderr(dm) == expected


def test_cmderr_stops_commands_until_it_is_cleared_by_writing_ones() -> None:
    dm, hart, _ = halted()
    dm.write(COMMAND, access(0x5FF))
    dm.write(DATA0, 7)
    dm.write(COMMAND, access(0x1008, write=True))
    assert hart.registers[0x1008] == 0
    dm.write(ABSTRACTCS, 0)
    assert cmderr(dm) == 3
    dm.write(ABSTRACTCS, 7 << 8)
    assert cmderr(dm) == 0
    dm.write(COMMAND, access(0x1008, write=True))
    assert hart.registers[0x1008] == 7


def test_autoexec_and_postincrement_walk_the_registers() -> None:
    dm, hart, _ = halted(32)
    for n in range(4):
        hart.registers[0x1008 + n] = 100 + n
    dm.write(COMMAND, access(0x1008, size=32, increment=True))
    dm.write(ABSTRACTAUTO, 0xFFFF_FFFF)
    assert dm.read(ABSTRACTAUTO) == 3, "bits of the two data registers; no program buffer"
    assert [dm.read(DATA0) for _ in range(3)] == [100, 101, 102]
    dm.write(ABSTRACTAUTO, 0)
    assert [dm.read(DATA0) for _ in range(2)] == [103, 103]


@pytest.mark.parametrize("log2", range(4))
def test_system_bus_writes_and_reads_of_every_size(log2: int) -> None:
    dm, hart, bus = debug_module()
    size = 1 << log2
    dm.write(SBCS, log2 << 17 | 1 << 16)
    dm.write(SBADDRESS0, RAM + 0x10)
    for n in range(3):
        dm.write(SBDATA1, 0x1111_1111 * n)
        dm.write(SBDATA0, 0xA1B2_C300 + n)
    expected = [((0x1111_1111 * n) << 32 | 0xA1B2_C300 + n) & (1 << 8 * size) - 1 for n in range(3)]
    assert [bus.read(RAM + 0x10 + n * size, size) for n in range(3)] == expected
    assert dm.read(SBADDRESS0) == RAM + 0x10 + 3 * size
    assert hart.log == [f"write {RAM + 0x10 + n * size:#x}" for n in range(3)]
    dm.write(SBCS, log2 << 17 | 1 << 20 | 1 << 16 | 1 << 15)
    dm.write(SBADDRESS0, RAM + 0x10)
    got = []
    for _ in range(3):
        high = dm.read(SBDATA1)  # first: only sbdata0 starts the next access
        got.append((high << 32 | dm.read(SBDATA0)) & (1 << 8 * size) - 1)
    assert got == expected


def test_system_bus_access_of_high_addresses() -> None:
    dm, _, _ = debug_module()
    dm.write(SBCS, 2 << 17 | 1 << 20)
    dm.write(SBADDRESS1, 0x1)
    dm.write(SBADDRESS0, RAM)
    assert dm.read(SBADDRESS1) == 1
    assert dm.read(SBCS) >> 12 & 7 == 2, "nothing at 0x180000000"


@pytest.mark.parametrize(
    ("log2", "address", "error"),
    [(2, RAM + 2, 3), (3, RAM + 4, 3), (1, RAM + 1, 3), (4, RAM, 4), (7, RAM, 4), (2, 0x1000, 2), (2, RAM + 0x1000, 2)],
)
def test_sberror_is_sticky_and_stops_accesses(log2: int, address: int, error: int) -> None:
    dm, _, bus = debug_module()
    dm.write(SBCS, log2 << 17 | 1 << 20 | 1 << 16)
    dm.write(SBADDRESS0, address)
    assert dm.read(SBCS) >> 12 & 7 == error
    assert dm.read(SBADDRESS0) == address, "no access, no increment"
    dm.write(SBCS, 2 << 17 | 1 << 16)
    dm.write(SBADDRESS0, RAM)
    dm.write(SBDATA0, 0x77)
    assert bus.read(RAM, 4) == 0
    dm.write(SBCS, 7 << 12 | 2 << 17)
    assert dm.read(SBCS) >> 12 & 7 == 0
    dm.write(SBDATA0, 0x77)
    assert bus.read(RAM, 4) == 0x77


@pytest.mark.parametrize(("spec", "moved"), [(DebugSpec.V0_13, 4), (DebugSpec.V1_0, 0)])
def test_only_0_13_increments_without_an_access(spec: DebugSpec, moved: int) -> None:
    dm, _, _ = debug_module(spec=spec)
    dm.write(SBCS, 2 << 17 | 1 << 16)
    dm.write(SBADDRESS0, RAM)
    dm.read(SBDATA0)
    assert dm.read(SBADDRESS0) == RAM + moved
