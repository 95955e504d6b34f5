"""The simulated target as the real OpenOCD sees it: both widths, both versions of the Debug Specification."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import compile_program
from tests.helpers.openocd_crash import kill_openocd
from tests.helpers.wait import until
from tests.transport.simulated.openocd import OpenOcd, Tcl, TclError

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "sim_debug.c"
SCRATCH = 0x8007_0000
SBERROR_FREE = 0x8000_0000


class Target:
    """One running rig, and the program's symbols."""

    def __init__(self, rig: OpenOcd, elf: Path, xlen: int) -> None:
        self.rig = rig
        self.tcl: Tcl = rig.tcl
        self.xlen = xlen
        self._elf = ElfFile(elf)

    def address(self, symbol: str) -> int:
        address = self._elf.symbol(symbol)
        assert address is not None
        return address

    def wait_progress(self) -> None:
        """Until the program, which runs, counts."""
        counter = self.address("counter")
        first = self.tcl.words(counter, 1)
        until(lambda: self.tcl.words(counter, 1) != first, "the program makes progress")

    def wait_halted(self) -> None:
        until(lambda: self.tcl.state == "halted", "the hart halts")

    def cause(self) -> int:
        return self.tcl.reg("dcsr") >> 6 & 7


@pytest.fixture(
    scope="module",
    params=[("rv64gc", "0.13"), ("rv32gc", "1.0"), *long_only(("rv64gc", "1.0"), ("rv32imac_zicsr", "0.13"))],
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    march, spec = request.param
    folder = tmp_path_factory.mktemp("openocd")
    elf = compile_program(folder, PROGRAM, march=march, options=("-O1", "-fno-inline"))
    isa = "IMAFDC" if march.endswith("gc") else "IMAC"
    with OpenOcd(elf, folder, "--debug-spec", spec, "--isa", isa) as rig:
        yield Target(rig, elf, int(march[2:4]))


@pytest.fixture
def target(shared: Target) -> Target:
    """The shared target, freshly reset, halted at its entry, without breakpoints."""
    shared.tcl("rbp all")
    shared.tcl("reset halt")
    return shared


def test_examined(target: Target) -> None:
    log = target.rig.openocd_log.read_text().partition("starting gdb server")[0]
    assert f"hart 0: XLEN={target.xlen}, misa=" in log
    assert "datacount=2 progbufsize=0" in log
    assert "found 1 harts" in log
    assert "Error" not in log


def test_halted_at_the_entry(target: Target) -> None:
    assert target.tcl.reg("pc") == target.address("_start") == 0x8000_0000


def test_general_registers(target: Target) -> None:
    pattern = 0x8899_AABB_CCDD_EEFF & (1 << target.xlen) - 1
    for name in ("ra", "a0", "t6"):
        target.tcl.set_reg(name, pattern)
        assert target.tcl.reg(name) == pattern
    target.tcl.set_reg("zero", pattern)
    assert target.tcl.reg("zero") == 0


def test_csrs(target: Target) -> None:
    target.tcl.set_reg("mscratch", 0x1234_5678)
    assert target.tcl.reg("mscratch") == 0x1234_5678
    assert target.tcl.reg("misa") >> target.xlen - 2 == (2 if target.xlen == 64 else 1)
    before = target.tcl.reg("minstret")
    target.tcl("step")
    assert target.tcl.reg("minstret") == before + 1


def test_a_csr_that_does_not_exist_is_an_error_and_the_others_still_work(target: Target) -> None:
    with pytest.raises(TclError):
        target.tcl.reg("satp")
    assert target.tcl.reg("mhartid") == 0


def test_floating_point_registers(target: Target) -> None:
    has_fp = target.tcl.reg("misa") >> 5 & 1
    if not has_fp:
        with pytest.raises(TclError):
            target.tcl.reg("ft0")
        return
    target.tcl.set_reg("fs0", 0x3FF8_0000_0000_0001)
    assert target.tcl.reg("fs0") == 0x3FF8_0000_0000_0001
    target.tcl.set_reg("fcsr", 0xE5)
    assert (target.tcl.reg("frm"), target.tcl.reg("fflags")) == (7, 5)


def test_the_program_counter_can_be_set(target: Target) -> None:
    target.tcl.set_reg("pc", target.address("inner"))
    target.tcl("step")
    assert target.address("inner") < target.tcl.reg("pc") < target.address("inner") + 8


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_memory_of_every_width(target: Target, bits: int) -> None:
    value = 0x8182_8384_8586_8788 & (1 << bits) - 1
    target.tcl.store(SCRATCH, value, bits)
    assert int(target.tcl(f"read_memory {SCRATCH:#x} {bits} 1"), 0) == value


def test_memory_while_running(target: Target) -> None:
    target.tcl("resume")
    assert target.tcl.state == "running"
    target.wait_progress()
    target.tcl.store(SCRATCH, 77)
    assert target.tcl.words(SCRATCH, 1) == [77]
    assert target.tcl.state == "running"


def test_a_block_of_memory_to_its_very_end(target: Target) -> None:
    """The last words of the trace memory: a bus access beyond its end would be an error."""
    end = 0x3001_0000
    for n in range(4):
        target.tcl.store(end - 16 + 4 * n, n)
    assert target.tcl.words(end - 16, 4) == [0, 1, 2, 3]


def test_memory_that_is_not_there_is_an_error_that_does_not_stick(target: Target) -> None:
    with pytest.raises(TclError):
        target.tcl.words(0x1800_0000, 1)
    with pytest.raises(TclError):
        target.tcl.words(0x2FFF_FFFC, 2)
    assert len(target.tcl.words(SBERROR_FREE, 2)) == 2


def test_step_over_every_instruction_of_the_start(target: Target) -> None:
    pcs = []
    for _ in range(6):
        pcs.append(target.tcl.reg("pc"))
        target.tcl("step")
        assert target.cause() == 4, "step"
    assert pcs[0] == target.address("_start")
    assert pcs == sorted(set(pcs))


def test_halt_and_resume(target: Target) -> None:
    target.tcl("resume")
    assert target.tcl.state == "running"
    target.tcl("halt")
    assert target.tcl.state == "halted"
    assert target.cause() == 3, "haltreq"


def test_registers_of_a_running_hart_are_refused(target: Target) -> None:
    target.tcl("resume")
    with pytest.raises(TclError):
        target.tcl.reg("mscratch")
    target.tcl("halt")
    target.tcl.reg("mscratch")


@pytest.mark.parametrize(("kind", "length", "cause"), [("hw", 4, 2), ("", 4, 1), ("", 2, 1)])
def test_breakpoints(target: Target, kind: str, length: int, cause: int) -> None:
    """Hardware: a trigger fires before the instruction. Software: ebreak, or c.ebreak in two bytes."""
    where = target.address("inner")
    target.tcl(f"bp {where:#x} {length} {kind}")
    for _ in range(2):
        target.tcl("resume")
        target.wait_halted()
        assert (target.tcl.reg("pc"), target.cause()) == (where, cause)
    target.tcl(f"rbp {where:#x}")
    target.tcl("resume")
    assert target.tcl.state == "running"


def test_a_watchpoint(target: Target) -> None:
    target.tcl(f"bp {target.address('main'):#x} 2 hw")  # until then the start-up code clears the variable
    target.tcl("resume")
    target.wait_halted()
    target.tcl("rbp all")
    target.tcl(f"wp {target.address('watched'):#x} 4 w")
    target.tcl("resume")
    target.wait_halted()
    assert target.cause() == 2
    assert target.tcl.words(target.address("watched"), 1) == [0], "fires before the store"
    assert 0 < target.tcl.reg("pc") - target.address("work") < 64
    target.tcl(f"rwp {target.address('watched'):#x}")


def test_there_are_four_triggers_and_no_fifth(target: Target) -> None:
    places = [target.address("_start") + 64 + 4 * n for n in range(5)]
    for place in places[:4]:
        target.tcl(f"bp {place:#x} 4 hw")
    with pytest.raises(TclError):
        target.tcl(f"bp {places[4]:#x} 4 hw")
    target.tcl(f"rbp {places[0]:#x}")
    target.tcl(f"bp {places[4]:#x} 4 hw")


def test_an_ebreak_of_the_program_enters_debug_mode(target: Target) -> None:
    target.tcl.store(SCRATCH, 0x0010_0073)
    target.tcl.set_reg("pc", SCRATCH)
    target.tcl("resume")
    target.wait_halted()
    assert (target.tcl.reg("pc"), target.cause()) == (SCRATCH, 1)


def test_code_written_by_the_debugger_is_what_runs_next(target: Target) -> None:
    target.tcl("resume")
    target.wait_progress()
    target.tcl("halt")
    where = target.address("inner")
    original = int(target.tcl(f"read_memory {where:#x} 16 1"), 0)
    target.tcl.store(where, 0x9002, 16)  # c.ebreak
    target.tcl("resume")
    target.wait_halted()
    assert target.tcl.reg("pc") == where
    target.tcl.store(where, original, 16)


def test_reset_run(target: Target) -> None:
    target.tcl("reset run")
    assert target.tcl.state == "running"
    target.wait_progress()
    target.tcl("halt")
    assert target.tcl.reg("pc") != target.address("_start")


def test_trace_registers_are_on_the_system_bus(target: Target) -> None:
    encoder = 0x2000_0000
    target.tcl.store(encoder, 0)
    target.tcl.words(encoder, 1)
    target.tcl.store(encoder, 1)
    assert not target.tcl.words(encoder, 1)[0] & 1
    assert target.tcl.words(encoder, 1)[0] & 1
    assert target.tcl.words(encoder + 4, 1)[0] & 0xFFF == 0x101


def test_openocd_dies_and_another_takes_over(tmp_path: Path) -> None:
    """The target outlives its debugger, and keeps the state the hart is in."""
    elf = compile_program(tmp_path, PROGRAM)
    with OpenOcd(elf, tmp_path / "rig") as rig:
        rig.tcl("step")
        pc = rig.tcl.reg("pc")
        kill_openocd(rig)
        rig.start_openocd()
        assert rig.tcl.reg("pc") == pc
        rig.tcl("resume")
        Target(rig, elf, 64).wait_progress()
        kill_openocd(rig)
        rig.start_openocd()
        assert rig.tcl.reg("pc") != pc
        assert rig.simulator.poll() is None
