"""The hart against Spike: the same instructions, registers, CSRs, stores and traps, one by one.

Every program is run twice: single-stepped, comparing all state after each instruction, and in compiled blocks,
comparing what the hart tells the tracer.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.helpers.amounts import LONG, crossed, long_only
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.lockstep import (
    after_boot_rom,
    compare_around_interrupts,
    compare_blocks,
    compare_steps,
    make_hart,
    run_told,
    told_by_spike,
)
from tests.transport.simulated.hart.programs import assemble, build, with_macros
from tests.transport.simulated.hart.spike import MAIN_MEMORY, Memory, SpikeRun, run_spike, without_htif_waits

DATA = Path(__file__).resolve().parents[3] / "data"
RISCV_TESTS = sorted(path for path in (DATA / "riscv-tests").iterdir() if path.suffix != ".md")
# Calls, arithmetic, recursion, and a program that is linked elsewhere; the others are compiled code as well.
REFERENCE = [DATA / "ntrace-reference" / f"{name}.elf" for name in (
    "dhrystone", "t1", "towers", *long_only("median", "mt-matmul", "multiply", "qsort", "rsort", "vvadd")
)]  # fmt: skip
# Where programs are linked that do not run in memory at 0x80000000.
MEMORY: dict[str, Memory] = {
    "rv32-hello": ((0xBFFF_F000, 128 << 20),),
    "t1.elf": ((0x8000_0000, 1 << 20), (0x2001_0000, 64 << 10)),
}
FULL = ("rv64imafdc", "rv32imafdc")
INTEGER = ("rv64imac", "rv32imac")
BOTH_WIDTHS = ("rv64imafdc", "rv32imac", *long_only("rv32imafdc", "rv64imac"))


def compare(elf: Path, run: SpikeRun, extensions: str = "IMAFDC", memory: Memory = MAIN_MEMORY) -> None:
    compare_steps(after_boot_rom(make_hart(elf, extensions, memory=memory), run), run)
    compare_blocks(after_boot_rom(make_hart(elf, extensions, memory=memory), run), told_by_spike(run.steps))


def run_and_compare(folder: Path, elf: Path, march: str, least: int, memory: Memory = MAIN_MEMORY) -> None:
    """*least*: how many steps the program has, at least, so that a test cannot become empty unnoticed."""
    extensions = march[4:].upper()
    run = run_spike(elf, folder, extensions, memory=memory)
    assert len(run.steps) >= least
    compare(elf, run, extensions, memory)


@pytest.mark.parametrize("elf", RISCV_TESTS if LONG else RISCV_TESTS[::2], ids=lambda path: path.name)
def test_riscv_tests(elf: Path, tmp_path: Path) -> None:
    """Those for S mode and for another board trap early and go round in their handlers, on both alike."""
    memory = MEMORY.get(elf.name, MAIN_MEMORY)
    compare(elf, run_spike(elf, tmp_path, steps=4000 if LONG else 1000, memory=memory), memory=memory)


@pytest.mark.parametrize("elf", REFERENCE, ids=lambda path: path.stem)
def test_benchmarks_of_the_trace_reference(elf: Path, tmp_path: Path) -> None:
    memory = MEMORY.get(elf.name, MAIN_MEMORY)
    run = run_spike(elf, tmp_path, steps=12_000 if LONG else 6000, memory=memory)
    fromhost = ElfFile(elf).symbol("fromhost")
    compare(elf, run if fromhost is None else without_htif_waits(run, fromhost), memory=memory)


def test_program_counters_of_the_reference_encoder() -> None:
    """The list that came with the capture of t1 begins where tracing was switched on."""
    with gzip.open(DATA / "ntrace-reference" / "t1.pcs.gz", "rt") as lines:
        expected = [int(line, 16) for line in lines]
    hart = make_hart(DATA / "ntrace-reference" / "t1.elf", "IMC", memory=MEMORY["t1.elf"])
    ours = [pc for _, pc, _ in run_told(hart, 220_000)]
    start = next(index for index in range(len(ours)) if ours[index : index + 20] == expected[:20])
    assert len(expected) == 164_959
    assert ours[start : start + len(expected)] == expected


@pytest.mark.parametrize("march", BOTH_WIDTHS)
def test_compiled_program(march: str, tmp_path: Path) -> None:
    rounds = 2 if LONG else 1
    elf = build(tmp_path, "start.S", with_macros(tmp_path, "workload.c", ROUNDS=rounds), march=march)
    run_and_compare(tmp_path, elf, march, least=15_000 * rounds)


@pytest.mark.parametrize("march", BOTH_WIDTHS)
def test_exceptions_and_privilege(march: str, tmp_path: Path) -> None:
    run_and_compare(tmp_path, build(tmp_path, "traps.S", march=march), march, least=3000)


@pytest.mark.parametrize("march", ["rv64ima", "rv32ima"])
def test_jumps_without_compressed_instructions(march: str, tmp_path: Path) -> None:
    run_and_compare(tmp_path, build(tmp_path, "misaligned_jumps.S", march=march), march, least=100)


@pytest.mark.parametrize("march", INTEGER)
def test_end_of_memory(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, "memory_end.S", march=march)
    run_and_compare(tmp_path, elf, march, least=30, memory=((0x8000_0000, 0x5000),))


@pytest.mark.parametrize("march", ["rv64imac", *long_only("rv32imac")])
def test_interrupts(march: str, tmp_path: Path) -> None:
    """RV32's, with the timer's registers in halves, are QEMU's to judge in each run (`test_qemu`)."""
    elf = build(tmp_path, "interrupts.S", march=march)
    extensions = march[4:].upper()
    run = run_spike(elf, tmp_path, extensions)
    compare_steps(after_boot_rom(make_hart(elf, extensions), run), run)
    compare_around_interrupts(
        after_boot_rom(make_hart(elf, extensions), run), told_by_spike(run.steps), least=35_000
    )


@pytest.mark.parametrize("march", FULL)
def test_random_instructions(march: str, tmp_path: Path) -> None:
    memory: Memory = ((0x9000_0000, 1 << 20),)
    count = 3000 if LONG else 300
    text = torture.random_words(int(march[2:4]), count)
    elf = assemble(tmp_path, "random", text, march, origin=memory[0][0])
    run_and_compare(tmp_path, elf, march, least=3 * count, memory=memory)


GENERATED: tuple[tuple[Callable[[int], str], int], ...] = (
    (torture.integer, 3000 if LONG else 2000),
    (torture.memory, 5000 if LONG else 2500),
    (torture.floating_point_state, 1000),
    (torture.floating_point, 9000 if LONG else 3000),
)


@pytest.mark.parametrize(
    ("generated", "march"),
    crossed(GENERATED, FULL),
    ids=lambda value: value if isinstance(value, str) else value[0].__name__,
)
def test_generated_program(generated: tuple[Callable[[int], str], int], march: str, tmp_path: Path) -> None:
    generate, least = generated
    elf = assemble(tmp_path, "generated", generate(int(march[2:4])), march)
    run_and_compare(tmp_path, elf, march, least)


@pytest.mark.parametrize("march", FULL)
def test_all_csr_numbers(march: str, tmp_path: Path) -> None:
    elf = assemble(tmp_path, "csrs", torture.csr_sweep(), march)
    run = run_spike(elf, tmp_path)
    assert len(run.steps) > (50_000 if LONG else 6000)
    compare_steps(after_boot_rom(make_hart(elf), run), run)
