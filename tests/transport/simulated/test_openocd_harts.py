"""Several harts with the real OpenOCD and gdb: one SMP group with a thread for each, or each by itself."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import held_port
from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.gdbext.gdb_process import run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.wait import until
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.openocd import OpenOcd, Tcl

HARTS = 3
ENTRY = 0x8000_0000


class Target:
    """OpenOCD with a target for each hart."""

    def __init__(self, rig: OpenOcd, elf: Path) -> None:
        self.rig, self.tcl = rig, rig.tcl
        self._elf = ElfFile(elf)

    def address(self, symbol: str) -> int:
        address = self._elf.symbol(symbol)
        assert address is not None
        return address

    def on(self, hart: int) -> Tcl:
        self.tcl(f"targets sim.cpu{hart}")
        return self.tcl

    def states(self) -> list[str]:
        return [self.tcl(f"sim.cpu{hart} curstate") for hart in range(HARTS)]

    def pcs(self) -> list[int]:
        return [self.on(hart).reg("pc") for hart in range(HARTS)]

    def counts(self) -> list[int]:
        return [self.on(hart).reg("minstret") for hart in range(HARTS)]

    def causes(self) -> list[int]:
        return [self.on(hart).reg("dcsr") >> 6 & 7 for hart in range(HARTS)]

    def rounds(self) -> list[int]:
        return self.tcl.words(self.address("rounds"), HARTS)

    def wait(self, wanted: list[str]) -> None:
        until(lambda: self.states() == wanted)


def hold_run(held: ExitStack, count: int) -> int:
    """The first of so many ports in a row that nobody listens on, and that nobody is given until *held* closes."""
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(held_port())
            try:
                for port in range(first + 1, first + count):
                    stack.enter_context(held_port(port))
            except OSError:  # it is somebody's
                continue
            held.push(stack.pop_all())
            return first


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("harts"))


@pytest.fixture(scope="module", params=["1.0", *long_only("0.13")])
def shared(request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    options = ["--harts", str(HARTS), "--isa", "IMAC", "--debug-spec", request.param]
    with OpenOcd(elf, tmp_path_factory.mktemp("rig"), *options) as rig:
        yield Target(rig, elf)


@pytest.fixture
def target(shared: Target) -> Target:
    """All harts freshly reset, halted at the entry, without breakpoints."""
    shared.on(0)("rbp all")
    shared.tcl("reset halt")
    shared.wait(["halted"] * HARTS)
    return shared


def test_examined(target: Target) -> None:
    log = target.rig.openocd_log.read_text().partition("starting gdb server")[0]
    assert f"found {HARTS} harts" in log
    assert "Error" not in log
    assert [target.on(hart).reg("mhartid") for hart in range(HARTS)] == [0, 1, 2]


def test_all_halted_at_the_entry(target: Target) -> None:
    assert target.pcs() == [ENTRY] * HARTS
    assert target.counts() == [0] * HARTS


def test_registers_of_each(target: Target) -> None:
    for hart in range(HARTS):
        target.on(hart).set_reg("s1", 100 + hart)
    assert [target.on(hart).reg("s1") for hart in range(HARTS)] == [100, 101, 102]


def test_one_steps_while_the_others_stand(target: Target) -> None:
    target.on(1)("step")
    target.on(1)("step")
    target.on(2)("step")
    assert target.counts() == [0, 2, 1]
    assert target.states() == ["halted"] * HARTS


def test_all_resume_and_halt_together(target: Target) -> None:
    target.on(0)("resume")
    assert target.states() == ["running"] * HARTS
    until(lambda: min(target.rounds()) > 3)
    target.on(1)("halt")
    target.wait(["halted"] * HARTS)
    assert min(target.counts()) > 1000


@pytest.mark.parametrize("kind", ["hw", ""])
def test_a_breakpoint_that_one_hart_hits_halts_all(target: Target, kind: str) -> None:
    where = target.address("first")  # only hart 0 goes there
    target.on(0)(f"bp {where:#x} 2 {kind}")
    for _ in range(2):
        target.on(0)("resume")
        target.wait(["halted"] * HARTS)
        assert target.pcs()[0] == where
        assert target.causes()[0] == (2 if kind else 1)
    target.on(0)(f"rbp {where:#x}")


def test_reset_while_running(target: Target) -> None:
    target.on(0)("resume")
    until(lambda: min(target.rounds()) > 3)
    target.tcl("reset halt")
    target.wait(["halted"] * HARTS)
    assert target.pcs() == [ENTRY] * HARTS
    target.tcl("reset run")
    until(lambda: target.states() == ["running"] * HARTS)


def test_memory_while_all_run(target: Target) -> None:
    target.on(0)("resume")
    until(lambda: min(target.rounds()) > 0)
    first = target.rounds()
    until(lambda: all(new > old for new, old in zip(target.rounds(), first, strict=True)))
    assert target.tcl.words(target.address("wrong"), 1) == [0]


@thorough("transport/simulated/test_openocd_gdb.py::test_a_session")
def test_a_gdb_session(elf: Path, tmp_path: Path) -> None:
    script = {
        "info threads": r"\* 1 .*sim\.cpu0(.|\n)* 2 .*sim\.cpu1(.|\n)* 3 .*sim\.cpu2",
        "hbreak second if hart == 2": r"breakpoint 1 at",
        "continue": r'Thread 3 "sim\.cpu2" hit Breakpoint 1, second \(hart=hart@entry=2',
        "print $mhartid": r" = 2$",
        "thread 2": r"Switching to thread 2",
        "print $mhartid + 0": r" = 1$",
        "thread 1": r"Switching to thread 1",
        "print $c0 = $minstret": r" = \d+",
        "thread 3": r"Switching to thread 3",
        "set scheduler-locking on": r"^$",
        "print $c2 = $minstret": r" = \d+",
        "stepi": r"second",
        "print $minstret - $c2": r" = 1$",
        "thread 1 ": r"Switching to thread 1",
        "print $minstret - $c0": r" = 0$",
        "set scheduler-locking off": r"^$",
        "delete": r"^$",
        "hbreak first": r"breakpoint 2 at",
        "continue 1": r'Thread 1 "sim\.cpu0" hit Breakpoint 2, first \(hart=hart@entry=0',
        "thread apply all print $mhartid": r" = 2(.|\n)* = 1(.|\n)* = 0",
        "monitor reset halt": r"",
        "maintenance flush register-cache": r"",
        "thread apply all print/x $pc": r"(?:0x80000000(.|\n)*){3}",
    }
    with OpenOcd(elf, tmp_path / "rig", "--harts", str(HARTS), "--isa", "IMAC") as rig:
        connect = f"target extended-remote 127.0.0.1:{rig.gdb_port}"
        printed = run_gdb(elf, ["set osabi none", connect, *script])
    assert [command for command in printed if command in script] == list(script)
    for command, expected in script.items():
        text = printed[command]
        assert re.search(expected, text.strip(), re.M), f"{command}: {text}"


def test_each_hart_by_itself(elf: Path, tmp_path: Path) -> None:
    """Also that Control Transfer Records are told of to OpenOCD for each."""
    with ExitStack() as held:
        each_by_itself(elf, tmp_path, hold_run(held, HARTS))


def each_by_itself(elf: Path, tmp_path: Path, port: int) -> None:
    options = ["--harts", str(HARTS), "--separate-harts", "--gdb-port", str(port), "--isa", "IMAC", "--ctr", "1.0"]
    with OpenOcd(elf, tmp_path / "rig", *options) as rig:
        target = Target(rig, elf)
        for hart in range(HARTS):
            target.on(hart).set_reg("csr_mctrctl", 4)
            assert target.on(hart).reg("csr_mctrctl") & 4
        target.on(0)("resume")
        target.on(2)("resume")
        assert target.states() == ["running", "halted", "running"]
        until(lambda: min(target.rounds()[0], target.rounds()[2]) > 3)
        target.on(0)("halt")
        assert target.states() == ["halted", "halted", "running"]
        assert target.on(1).reg("pc") == ENTRY
        log = rig.openocd_log.read_text()
        assert all(f"starting gdb server for sim.cpu{hart} on {port + hart}" in log for hart in range(HARTS))
