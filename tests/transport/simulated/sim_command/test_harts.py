"""`rvtrace sim --harts`: what it prints and writes, and what it refuses."""

import tomllib
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import sim
from rvtrace_gdb.transport.simulated.machine import build
from rvtrace_gdb.transport.simulated.server import listen_tcp
from tests.transport.simulated.devices.test_component import Registers
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.sim_command.test_command import refused, started, until


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("sim"))


def config(harts: int, *, separate: bool = False) -> list[str]:
    with listen_tcp(0) as listener:
        return sim.openocd_config(listener, 3333, 6666, None, harts, separate).splitlines()


def test_one_target_for_each_hart_and_one_gdb_for_all() -> None:
    lines = config(2)
    for number in range(2):
        target = f"target create sim.cpu{number} riscv -chain-position sim.cpu -coreid {number} -rtos hwthread"
        assert lines.count(target) == 1
        assert "riscv set_enable_virt2phys off" in lines[lines.index(target) : lines.index(target) + 3]
    assert "target smp sim.cpu0 sim.cpu1" in lines
    assert lines.index("targets sim.cpu0") > lines.index("target smp sim.cpu0 sim.cpu1")


def test_or_each_by_itself() -> None:
    lines = config(2, separate=True)
    assert "target create sim.cpu1 riscv -chain-position sim.cpu -coreid 1" in lines
    assert not [line for line in lines if line.startswith("target smp") or "hwthread" in line]


def test_one_hart_has_the_target_it_always_had() -> None:
    assert "target create sim.cpu riscv -chain-position sim.cpu" in config(1)
    assert not [line for line in config(1, separate=True) if "coreid" in line or line.startswith("targets")]


def test_the_target_has_an_encoder_for_each_hart(elf: Path) -> None:
    machine = build(elf, harts=3)
    components = tomllib.loads(sim.target_description(machine, "three"))["component"]
    assert [(c["name"], c["type"], c["base"], c.get("hart"), c.get("to")) for c in components] == [
        ("encoder0", "encoder", 0x2000_0000, 0, ["ram0"]),
        ("encoder1", "encoder", 0x2001_0000, 1, ["ram0"]),
        ("encoder2", "encoder", 0x2002_0000, 2, ["ram0"]),
        ("ram0", "ram_sink", 0x2000_1000, None, None),
    ]
    for component in components:
        registers = Registers(machine.bus, component["base"])
        registers.activate()
        assert registers[4] >> 8 & 15 == {"encoder": 1, "ram_sink": 9}[component["type"]], "tr??CompType"


def test_a_log_for_each_hart(elf: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started("--elf", str(elf), "--port", "0", "--harts", "2", "--log-retired", str(log)) as process:
        printed = until(process, "listening on")
        process.terminate()
        process.communicate(timeout=60)
    assert "2 harts RV64IMAFDC: " in printed
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["log.0", "log.1"]


@pytest.mark.parametrize("count", ["0", "-1", "33"])
def test_counts_that_cannot_be(elf: Path, capsys: pytest.CaptureFixture[str], count: str) -> None:
    assert f"--harts {count}: give 1 to 32" in refused(capsys, "--elf", str(elf), "--port", "0", "--harts", count)
