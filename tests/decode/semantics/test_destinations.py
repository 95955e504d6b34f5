"""Which registers an instruction writes, against what Spike says that it wrote."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.csrs import FCSR, F, X
from rvtrace_gdb.decode.semantics.destinations import Destinations
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.programs import assemble
from tests.transport.simulated.hart.spike import Commit, run_spike

_FLAGS = {1, 2, 3}  # fflags, frm, fcsr


@pytest.mark.parametrize("march", ["rv64imafdc", "rv32imafdc"])
def test_exactly_the_registers_that_spike_writes(march: str, tmp_path: Path) -> None:
    xlen = int(march[2:4])
    text = torture.floating_point(xlen) if xlen == 32 else torture.integer(xlen)
    written, words = Destinations(xlen), set[int]()
    for step in run_spike(assemble(tmp_path, "words", text, march), tmp_path).steps:
        if not isinstance(step, Commit) or step.word in words:
            continue
        words.add(step.word)
        expected = {X + number for number in step.x} | {F + number for number in step.f}
        mine = written[step.word]
        assert {it for it in mine if it >= X} == expected, hex(step.word)
        named = {FCSR if number in _FLAGS else number for number in step.csrs} - {0x300}
        assert named <= {FCSR if it in _FLAGS else it for it in mine}, hex(step.word)
    assert len(words) > 300


def test_what_nobody_knows() -> None:
    """vadd.vv, whose registers are not integer registers; a custom instruction of 16 bits, which may write anything."""
    assert {X + 1, F + 1} <= Destinations(64)[0x0220_80D7]
    assert len(Destinations(64)[0x9C00]) == 64
    assert not any(Destinations(64)[word] for word in (0x3020_0073, 0x0000_0073, 0x1050_0073))  # mret, ecall, wfi


def test_both_meanings_of_an_encoding() -> None:
    """cm.push {ra}, -16 of Zcmp is c.fsdsp of D, which writes nothing: what is said must hold for each hart."""
    assert Destinations(32)[0xB842] == {X + 2}
