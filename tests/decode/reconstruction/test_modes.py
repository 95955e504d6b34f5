"""Executing programs of riscv-tests again, in M, S and U mode: registers and what is known of CSRs, against Spike's."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.constants import NoConstants
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart
from rvtrace_gdb.decode.reconstruction.known_memory import KnownMemory
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import Truth, history_of
from tests.helpers.amounts import long_only
from tests.transport.simulated.hart.spike import SpikeTrap, run_spike

PROGRAMS = Path(__file__).resolve().parents[2] / "data" / "riscv-tests"
RAM = Extent(0x8000_0000, 1 << 22)
MSTATUS, MHARTID, FCSR = 0x300, 0xF14, 3
_OF_TRAPS = range(0x341, 0x344)
QUICK = ("rv64si-p-csr", "rv64mi-p-illegal", "rv32mi-p-csr", "rv64uc-p-rvc")
OTHERS = (
    "rv32mi-p-ma_addr", "rv32mi-p-scall", "rv32ua-p-lrsc", "rv64mi-p-csr", "rv64si-p-scall", "rv64ua-p-amoadd_d",
    "rv64ud-p-fadd", "rv64ud-p-ldst", "rv64ui-p-sd",
)  # fmt: skip


@pytest.mark.parametrize("supervisor", [True, False], ids=["s-mode", "unexpected"])
@pytest.mark.parametrize("name", [*QUICK, *long_only(*OTHERS)])
def test_no_value_is_wrong(name: str, supervisor: bool, tmp_path: Path) -> None:
    """*supervisor*: the hart is known to have S-mode. Else sret is an instruction that nobody expects."""
    if "si-p" not in name and not supervisor:
        return
    image = Image.from_elf(PROGRAMS / name)
    run = run_spike(PROGRAMS / name, tmp_path, steps=500, priv="msu")
    machine = HartMachine(image.xlen, [*"IMAFDC", *(["S"] if supervisor else [])], [RAM], machine_only=False)
    known = {FCSR: 0, MHARTID: 0}
    beginning = KnownState(x=(0, *run.x[1:]), f=[0] * 32, csrs=known, privilege=3, memory=image.segments)
    forward = Forward(history_of(run), image, machine, beginning)
    truth, position, has_status = Truth(), 0, True
    asked = held = 0
    for step in run.steps:
        if isinstance(step, SpikeTrap):
            has_status = False  # Spike does not log what a trap does to it
            continue
        hart = forward.hart_at(position)
        for number, value in truth.x.items():
            assert hart.x[number] in (None, value), (position, f"x{number}")
            asked, held = asked + 1, held + (hart.x[number] is not None)
        for number in hart.csrs.keys() & truth.csrs.keys() - set(_OF_TRAPS):
            assert hart.csrs[number] == truth.csrs[number], (position, hex(number))
        bits, mask = hart.status
        if has_status and MSTATUS in truth.csrs:
            assert (bits ^ truth.csrs[MSTATUS]) & mask == 0, (position, hex(mask))
        truth.apply(step)
        has_status = has_status or MSTATUS in step.csrs
        position += 1
    assert held > (0.8 if supervisor else 0) * asked


@pytest.mark.parametrize("xlen", [32, 64])
def test_what_sd_says(xlen: int) -> None:
    """Privileged Architecture, 3.1.6.6: SD is set while FS, VS or XS is Dirty; it is read-only."""
    hart, summary = ExecutedHart(xlen, KnownMemory([], NoConstants())), 1 << xlen - 1
    for operation, value, expected in (("c", 3 << 13, None), ("c", summary, summary), ("s", 8, summary)):
        hart.begin(KnownState(privilege=3, csrs={MSTATUS: 0}))
        hart.dirty()
        hart.csr(operation, MSTATUS, value, True, False, 0)
        bits, mask = hart.status
        assert (bits & summary if mask & summary else None) == expected
