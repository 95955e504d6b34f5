"""How simulated trace components can be built, and what can be wrong with them."""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from tests.transport.simulated.devices.rig import Rig
from tests.transport.simulated.devices.test_component import (
    ACTIVE,
    CONTROL,
    EMPTY,
    ENABLE,
    IMPL,
    LIMIT,
    SMEM,
    WP,
    Registers,
)
from tests.transport.simulated.devices.test_funnel import on_bus
from tests.transport.simulated.devices.test_ram_sink import running, sink_with
from tests.transport.simulated.encoder.traces import TS_ACTIVE, compiled

RAM = 0x2000_1000
HIGH_BUFFER = 0x12_3000_0000


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("builds"), "rv64imac")


def encoder_with(elf: Path, build: ComponentBuild) -> Registers:
    rig = Rig(elf)
    sink, _ = rig.sink()
    return rig.encoder(sink, build=build)[1]


class TestWhatIsHardWired:
    def test_fields_with_one_value(self, elf: Path) -> None:
        te = encoder_with(elf, ComponentBuild(fixed={"trTeInstSyncMode": 2, "trTeInstSyncMax": 9, "trTeSrcBits": 0}))
        te.activate()
        for value in (0, 0xFFFF_FFFD):
            te[CONTROL] = value | ACTIVE
            assert (te[CONTROL] >> 16 & 3, te[CONTROL] >> 20 & 15) == (2, 9)
        te[8] = 0xFFFF_FFFF
        assert te[8] >> 28 == 0

    def test_fields_with_some_values(self, elf: Path) -> None:
        te = encoder_with(elf, ComponentBuild(allowed={"trTeInstMode": {0, 3}, "trTeInstSyncMax": range(2, 6)}))
        te.activate()
        becomes = []
        for mode in range(8):
            te[CONTROL] = ACTIVE | mode << 4
            becomes.append(te[CONTROL] >> 4 & 7)
        assert becomes == [0, 3, 3, 3, 3, 3, 3, 3], "a mode that is not 0 does not become 0"
        limits = []
        for exponent in (0, 3, 15):
            te[CONTROL] = ACTIVE | exponent << 20
            limits.append(te[CONTROL] >> 20 & 15)
        assert limits == [2, 3, 5]

    def test_a_timestamp_unit_that_is_active_with_its_encoder(self, elf: Path) -> None:
        te = encoder_with(elf, ComponentBuild(fixed={"trTsActive": 1}))
        te.activate()
        assert te[0x40] & TS_ACTIVE
        te[0x40] = 2 << 4 | 2
        assert te[0x40] & 0xFFFF == 2 << 4 | 2 | TS_ACTIVE, "written at once, there was no reset to leave"
        te[0x40] = 0
        assert te[0x40] & 0xFFFF == TS_ACTIVE

    def test_what_it_says_it_is(self) -> None:
        versions = ((0, 0), (1, 1), (1, 15), (2, 0), (15, 3))
        for version in versions:
            _, ram = sink_with(build=ComponentBuild(version=version, vendor=0x5A))
            ram.activate()
            assert ram[IMPL] == 0x5A00_3900 | version[1] << 4 | version[0]
        _, ram = sink_with(build=ComponentBuild(comp_type=0xA))
        ram.activate()
        assert ram[IMPL] >> 8 & 15 == 0xA


class TestWhatIsWrong:
    @pytest.mark.parametrize(("name", "bit"), [("Active", ACTIVE), ("Enable", ENABLE), ("Empty", EMPTY)])
    @pytest.mark.parametrize("level", [0, 1])
    def test_bits_that_never_change(self, name: str, bit: int, level: int) -> None:
        _, ram = sink_with(build=ComponentBuild(stuck={name: level}))
        seen = set()
        for value in (0, ACTIVE, ACTIVE | ENABLE, ACTIVE, 0):
            ram[CONTROL] = value
            seen |= {ram[CONTROL] & bit for _ in range(4)}
        assert seen == {bit * level}

    def test_empty_long_after_enable(self) -> None:
        pair = sink_with(build=ComponentBuild(flush_polls=3))
        running(pair, 64, 4)
        _, ram = pair
        ram[CONTROL] = ACTIVE | SMEM
        assert [ram[CONTROL] & (ENABLE | EMPTY) for _ in range(5)] == [ENABLE, 0, 0, 0, EMPTY]

    def test_bus_errors(self) -> None:
        _, ram = sink_with(build=ComponentBuild(faults={WP}))
        ram.activate()
        ram[LIMIT] = 12
        assert ram[LIMIT] == 12
        with pytest.raises(BusError):
            ram[WP]
        with pytest.raises(BusError):
            ram[WP] = 0

    def test_no_power_no_registers(self) -> None:
        _, ram = sink_with(build=ComponentBuild(powered_down=True))
        assert ram[CONTROL] == EMPTY
        with pytest.raises(BusError):
            ram[IMPL]
        ram.activate()
        assert ram[IMPL] >> 8 & 15 == 9


def test_a_component_of_any_kind_can_be_on_a_bus() -> None:
    sink, _ = sink_with()
    registers = on_bus(sink)
    assert registers[CONTROL] == EMPTY
