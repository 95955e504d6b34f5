"""The registers of the simulated encoder's filters and comparators, and their counters of nested traps."""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.devices.filters import FilterRegisters, FilterUnits
from rvtrace_gdb.transport.simulated.hart.block import TrapEntry
from tests.transport.simulated.devices.rig import DATA_FILTERS, Rig
from tests.transport.simulated.devices.test_component import Registers
from tests.transport.simulated.encoder.test_filters import COMPARATOR, FILTER, M
from tests.transport.simulated.encoder.traces import compiled


@pytest.fixture(scope="module")
def elf64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("filtered64"), "rv64imac")


def registers(elf64: Path, units: FilterUnits) -> Registers:
    rig = Rig(elf64)
    sink, _ = rig.sink()
    _, te = rig.encoder(sink, filters=units)
    te.activate()
    return te


def test_fields(elf64: Path) -> None:
    te = registers(elf64, FilterUnits(16, 2))
    for offset in range(0x20):
        te[FILTER + 0x1E0 + (offset & ~3)] = 0xFFFF_FFFF
    unit = [te[FILTER + 0x1E0 + offset] for offset in range(0, 0x20, 4)]
    comp_1 = 1 << 5 | 1 << 9 | 1 << 13  # the highest comparator there is
    assert unit[0] == 0b1111 | comp_1 | 1 << 4 | 1 << 8 | 1 << 12 | 3 << 24, "no impdef"
    assert unit[1] == 1 << 8 | 1 << 3 | 1, "user and machine mode"
    assert unit[2:4] == [0xFFFF_FFFF] * 2
    assert unit[4:] == [0, 0, 0xF << 16 | 0xFF73, 0], "the types and sizes there are"
    te[COMPARATOR + 0x20] = 0xFFFF_FFFF
    assert te[COMPARATOR + 0x20] == 0xF77F


def test_without_data_and_comparators(elf64: Path) -> None:
    te = registers(elf64, FilterUnits(1, data=False))
    te[DATA_FILTERS] = te[FILTER] = te[FILTER + 0x18] = 0xFFFF_FFFF
    assert (te[DATA_FILTERS], te[FILTER], te[FILTER + 0x18]) == (0, 0b1111, 0)


def test_more_than_the_document_has() -> None:
    for counts in ((17, 0), (0, 9), (-1, 0)):
        with pytest.raises(ValueError, match="16 filters and 8 comparators"):
            FilterUnits(*counts)


def test_nested_traps_beyond_the_counter_end_it_early() -> None:
    fields = ("Enable", "MatchPrivilege", "MatchEcause", "MatchInterrupt", "MatchImpdef", "MatchDtype", "MatchDsize")
    control = {f"trTeFilter{name}": int(name in ("Enable", "MatchEcause")) for name in fields}
    control |= {f"trTeFilter{name}{n}": 0 for name in ("MatchComp", "Comp") for n in (1, 2, 3)}
    inst = {"trTeFilterMatchChoicePrivilege": 0, "trTeFilterMatchValueInterrupt": 0}
    data = {"trTeFilterMatchChoiceDtype": 0, "trTeFilterMatchChoiceDsize": 0}
    unit = FilterRegisters(control, inst, 1 << 5, data, nesting_bits=2)
    trap = TrapEntry(0, 5, 0, False, 0x100, M)
    held = []
    for _ in range(4):
        unit.trap(trap)
        held.append(unit.matches(M, (), None))
    for _ in range(4):
        unit.returned()
        held.append(unit.matches(M, (), None))
    assert held == [True] * 4 + [True, True, False, False], "counts to 3 and no further"
