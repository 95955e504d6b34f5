"""`rvtrace run` and `rvtrace console` on QEMU, started for them or there already: a stub that is not OpenOCD's."""

import re
from pathlib import Path

import pytest

import rvtrace_gdb
from rvtrace_gdb.console.bench.rig import RigError, machine
from rvtrace_gdb.support.errors import RvtraceError
from tests.console.commands.console.test_piped import console
from tests.console.scripts.script_runs import run_script
from tests.helpers import qemu10
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import EXAMPLES, compile_program, demo

DEMO, SOAK = (EXAMPLES / "scripts" / f"{name}.rvts" for name in ("demo", "soak"))
UART = """
static volatile char *const uart = (volatile char *)0x10000000;
void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }
int main(void)
{
    for (const char *at = "from the program\\n>"; *at; at++)
        *uart = *at;
    finish();
    return 0;
}
"""


def test_the_demo_runs_as_on_the_simulated_target(tmp_path: Path) -> None:
    """tests/console/scripts/test_documented.py has the same script there."""
    elf, output = demo(tmp_path), tmp_path / "o.rvt"
    done = run_script(tmp_path, DEMO.read_text(), "--qemu", "--elf", elf, "-o", output)
    assert (done.status, done.err) == (0, "")
    assert done.asserts == [True] * 4
    assert [step["text"].split()[0] for step in done.report["steps"][:6]] == [
        "connect", "load", "start", "run", "stop", "decode",
    ]  # fmt: skip
    offline = run_script(tmp_path, f"open {output}\nassert no loss\nassert ran on_trap", "--elf", elf)
    assert offline.asserts == [True, True]


@thorough("console/scripts/test_documented.py::test_the_example_with_rounds")
def test_rounds_in_the_console(tmp_path: Path) -> None:
    """Each with a reset, which is another one than OpenOCD's."""
    lines = f"set $rounds = 2\nscript {SOAK}\ninfo line fib\ntrace status\n"
    done = console(lines, "--qemu", qemu10.QEMU10, "--elf", demo(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    rounds = [line for line in done.stdout.splitlines() if line.startswith("round ")]
    assert rounds == ["round 1: 3 interrupts", "round 2: 3 interrupts"]  # its clock goes by the instructions
    assert "starts at address 0x8000005" in done.stdout and "history: " in done.stdout


def test_running_to_places_and_what_the_program_prints(tmp_path: Path) -> None:
    """The output is shown between the lines, each of which begins a line."""
    source = tmp_path / "uart.c"
    source.write_text(UART)
    elf = compile_program(tmp_path, source)
    text = """connect
        run until main within 60s
        assert value $pc == &main
        run until finish within 60s
        run until done within 60s
        gdb monitor info version
        run for 200ms
        run until main within 300ms"""
    done = run_script(tmp_path, text, "--elf", elf, "--qemu")
    assert done.asserts == [True]
    assert done.err == "x.rvts:8: run until main within 300ms: " \
        "main was not reached within 0.3 s: the program is in done (start.S:25)\n"  # fmt: skip
    assert done.status == 1
    shown = done.out.splitlines()
    assert "from the program" in shown and ">" in shown, done.out
    assert re.fullmatch(r"rvtrace qemu: .*: what runs is taken from QEMU's log, which is far slower", shown[0]) or (
        shown[0] == "rvtrace qemu: what runs is recorded by a plugin in QEMU"
    )


@thorough("test_the_demo_runs_as_on_the_simulated_target")
def test_a_bench(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    with (
        rvtrace_gdb.QemuRig(elf, tmp_path / "rig", f"{qemu10.QEMU10} -smp 2") as rig,
        rvtrace_gdb.Bench(elf, target=rig.target_file) as bench,
    ):
        assert rig.source == "rvtrace qemu: what runs is recorded by a plugin in QEMU"
        bench.connect(f":{rig.gdb_port}")
        assert bench.where().place == "0x1000"
        bench.start("-hart 0")
        bench.gdb("set scheduler-locking on")  # else it may be the other hart that comes to fib
        assert bench.run_until("fib", within=60).function == "fib"
        bench.stop()
        assert bench.ran("_start") and bench.losses() == [] and not bench.ran("classify")
        assert bench.status().captured
        assert bench.reset().place == "0x1000"


def test_what_is_not_said_is_as_usual() -> None:
    elf = Path("a b.elf")
    usual = ["-M", "virt", "-bios", "none", "-display", "none", "-serial", "stdio", "-icount", "shift=7,sleep=off"]
    assert machine(elf, "") == [*usual, "-kernel", "a b.elf"]
    assert machine(elf, "/x/qemu-system-riscv32 -smp 2") == [
        "/x/qemu-system-riscv32", *usual[:-2], "-kernel", "a b.elf", "-smp", "2",
    ]  # fmt: skip
    assert machine(elf, "-machine spike -nographic -accel tcg -bios 'my fw'") == [
        "-machine", "spike", "-nographic", "-accel", "tcg", "-bios", "my fw",
    ]  # fmt: skip
    assert machine(elf, "-kernel x -bios none")[-4:] == ["-kernel", "x", "-bios", "none"]
    assert machine(elf, "-bios none")[-4:] == ["-kernel", "a b.elf", "-bios", "none"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("-smp 2 -s", "--qemu: -s cannot be given here: rvtrace chooses the port"),
        ("--S", "--qemu: -S cannot be given here: QEMU waits for gdb anyway"),
        ("-M 'virt", "--qemu -M 'virt: no closing quotation"),
        ("virt", "--qemu virt: expected arguments of QEMU, as in --qemu '-M virt -smp 2'"),
    ],
)
def test_what_cannot_be_said(options: str, problem: str) -> None:
    with pytest.raises(RvtraceError) as caught:
        machine(Path("x.elf"), options)
    assert str(caught.value) == problem


def test_a_qemu_that_does_not_start(tmp_path: Path) -> None:
    """The line that says why, not the advice below it."""
    rig = rvtrace_gdb.QemuRig(demo(tmp_path), tmp_path / "rig", f"{qemu10.QEMU10} -M nonsense")
    with pytest.raises(RigError, match=r"^QEMU did not start: qemu-system-riscv64: unsupported machine type"), rig:
        pass


def test_the_option_takes_only_what_is_qemus(tmp_path: Path) -> None:
    done = run_script(tmp_path, "echo hello", "--qemu", "-s", "--elf", demo(tmp_path))
    assert (done.status, done.err) == (2, "x.rvts: --qemu: -s cannot be given here: rvtrace chooses the port\n")
    both = run_script(tmp_path, "echo hello", "--sim", "--qemu", "--elf", demo(tmp_path))
    assert (both.status, both.err) == (2, "x.rvts: --sim, --qemu: give only one of them\n")
    alone = run_script(tmp_path, "echo hello", "--qemu", "--quiet")
    assert alone.err == "x.rvts: --qemu: needs --elf, and takes neither --target nor --connect\n"


def test_what_the_hart_recorded_itself(tmp_path: Path) -> None:
    """Its last transfers are a trace as any other: what ran, in which order; the rest is a gap, and nobody's absence
    is believed."""
    text = """connect
        run until fib within 60s
        trace ctr start -depth 64
        run until finish within 60s
        trace ctr show
        assert ran classify
        assert order classify finish
        assert order classify fib
        save"""
    elf = demo(tmp_path)
    with qemu10.running(elf, tmp_path) as target:
        done = run_script(tmp_path, text, "--elf", elf, "--connect", f":{target.port}", "-o", tmp_path / "o.rvt")
    assert "assert ran classify" in done.err + done.out, done
    assert (done.status, done.err) == (1, "x.rvts:8: assert order classify fib: fib did not run\n")
    offline = run_script(tmp_path, f"open {tmp_path / 'o.rvt'}\nassert ran classify\nassert ran fib", "--elf", elf)
    assert offline.asserts == [True, False]
