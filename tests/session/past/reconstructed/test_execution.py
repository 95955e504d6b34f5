"""What is believed less after a contradiction."""

from pathlib import Path

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.session.past.reconstructed.execution import Execution
from rvtrace_gdb.session.past.reconstructed.facts import Disagreement, Dropped, HartFacts
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import history_of, states
from tests.transport.simulated.hart.programs import assemble
from tests.transport.simulated.hart.spike import Commit, run_spike

RAM = Extent(0x8000_0000, 1 << 22)

FLAG = """
    .option norelax
    .globl _start
_start:
    la a0, flag
    li a3, 5
1:  lw a1, 0(a0)
    beqz a1, 1b
    addi a2, a1, 1
2:  addi a3, a3, -1
    bnez a3, 2b
    la a4, tohost
    li a5, 1
    sw a5, 0(a4)
3:  j 3b
    .data
    .balign 8
flag: .word 7
    .section .tohost, "aw"
    .balign 64
    .globl tohost, fromhost
tohost: .dword 0
fromhost: .dword 0
"""


def test_memory_that_something_else_writes(tmp_path: Path) -> None:
    """The debugger is told that the flag is 0, and the program finds 7 there: no value that follows from memory is
    believed any more, and what does not follow from memory stays.
    """
    elf = assemble(tmp_path, "flag", FLAG, "rv64imac")
    run = run_spike(elf, tmp_path, "IMAC")
    image, history = Image.from_elf(elf), history_of(run)
    (flag,) = {address for step in run.steps if isinstance(step, Commit) for address in step.loads}
    memory = [*image.segments, (flag, bytes(4))]
    machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
    found = Execution(history, image, HartFacts(machine, KnownState(privilege=3, memory=memory)))
    found.complete()
    at = next(position for position, _, step in states(run) if step.loads) + 1
    assert found.disagreements == [Disagreement(at, history.pc(at), Dropped.RAM)]
    assert found.forward is not None
    for position, truth, _ in states(run):
        hart = found.forward.hart_at(position)
        assert all(hart.x[number] in (None, value) for number, value in truth.x.items())
    assert (hart.x[13], hart.x[12], hart.x[11]) == (0, None, None)
