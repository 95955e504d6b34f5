"""The hart against QEMU: the same executed addresses and traps. It logs no registers; `test_spike` compares them.

Of its programs one in three is tried here if this is not the long run.

Not compared here: rv*mi-p-ma_addr (QEMU carries out misaligned accesses), rv32mi-p-breakpoint (other triggers),
rv64mi-p-illegal and rv64si-* (QEMU 7.2 keeps S-mode CSRs on a hart without S mode), rv*-irq and rv32-hello (written for
another board).
"""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.helpers.amounts import LONG, long_only
from tests.transport.simulated.hart.lockstep import (
    Told,
    compare_around_interrupts,
    compare_blocks,
    make_hart,
    run_told,
    told_by_qemu,
)
from tests.transport.simulated.hart.programs import build
from tests.transport.simulated.hart.qemu import run_qemu

DATA = Path(__file__).resolve().parents[3] / "data"
NAMES = ("mi-p-csr", "mi-p-scall", "mi-p-sbreak", "mi-p-shamt", "ua-p-", "uc-p-", "ud-p-", "uf-p-", "ui-p-", "um-p-")
RISCV_TESTS = sorted(path for path in (DATA / "riscv-tests").iterdir() if any(name in path.name for name in NAMES))
BENCHMARKS = ("dhrystone", *long_only("mt-matmul", "qsort", "rsort"))
MRET = 0x30200073
STEPS = 4000


def hart_like_qemu(elf: Path, extensions: str = "IMAFDC") -> Hart:
    """QEMU's `virt` board has no HTIF: programs wait for its answer for ever."""
    hart = make_hart(elf, extensions)
    hart.htif = None
    return hart


def from_first_mret(told: list[Told]) -> list[Told]:
    """The start-up code of riscv-tests tries out what the hart has; QEMU has S-mode CSRs. It ends with an mret."""
    return told[next(index for index, entry in enumerate(told) if entry[2] == MRET) :]


@pytest.mark.parametrize("elf", RISCV_TESTS if LONG else RISCV_TESTS[::3], ids=lambda path: path.name)
def test_riscv_tests(elf: Path) -> None:
    theirs = from_first_mret(told_by_qemu(run_qemu(elf, STEPS), elf))
    ours = from_first_mret(run_told(hart_like_qemu(elf), STEPS))
    both = min(len(theirs), len(ours))
    assert both > 0.9 * STEPS
    assert ours[:both] == theirs[:both]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_of_the_trace_reference(name: str) -> None:
    elf = DATA / "ntrace-reference" / f"{name}.elf"
    compare_blocks(hart_like_qemu(elf), told_by_qemu(run_qemu(elf, 30_000), elf))


@pytest.mark.parametrize("march", ["rv64imac", "rv32imafdc", *long_only("rv64imafdc", "rv32imac")])
def test_compiled_program(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march=march)
    compare_blocks(hart_like_qemu(elf, march[4:].upper()), told_by_qemu(run_qemu(elf, 30_000), elf))


@pytest.mark.parametrize("march", ["rv32imac", *long_only("rv64imac")])
def test_interrupts(march: str, tmp_path: Path) -> None:
    """RV64's are Spike's to judge in each run (`test_spike`).

    QEMU's clock ticks once in 100 instructions (`-icount`), and it takes interrupts between its own blocks: when they
    come differs, what they interrupt and what they do does not.
    """
    elf = build(tmp_path, "interrupts.S", march=march)
    theirs = told_by_qemu(run_qemu(elf, 60_000, ("-icount", "shift=0,sleep=off")), elf)
    compare_around_interrupts(hart_like_qemu(elf, march[4:].upper()), theirs, least=35_000)
