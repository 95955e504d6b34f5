"""Control Transfer Records in the real gdb, of the real QEMU 10: what is shown is what its own log says.

Expected records come from the model that reads the documents, expected instructions between them from the log.
"""

import random
from pathlib import Path

import pytest

from tests.endtoend.ctr.gdb_run import Run, check
from tests.gdbext.gdb_process import GDBS
from tests.helpers.cross_compiler import HOME, compile_program, demo

ALL_MODES = 7
EXC, INTR, TRET, NTBR, TKBR = (1 << bit for bit in (33, 34, 35, 36, 37))
INDCALL, DIRCALL, INDJMP, DIRJMP, CORSWAP, RET, INDLJMP, DIRLJMP = (1 << bit for bit in range(40, 48))
JUMPS = INDJMP | DIRJMP | INDLJMP | DIRLJMP
WAYS = [
    pytest.param("target remote", "packets", 10, id="packets"),
    pytest.param("target remote", "named", 9, id="named"),
    pytest.param("trace connect", "auto", 8, id="connect"),
]
"""And QEMU's clock: interrupts come at other places, with some of them before anything ran since a transfer."""


@pytest.mark.parametrize("gdb", GDBS)
@pytest.mark.parametrize(("connect", "way", "clock"), WAYS)
def test_everything_that_ran_since_the_start(tmp_path: Path, gdb: str, connect: str, way: str, clock: int) -> None:
    """With all kinds of transfers recorded, nothing between two records is left open."""
    commands = [f"set trace ctr-access {way}", "trace ctr start -depth 128"]
    run = Run(demo(tmp_path), tmp_path, commands, "finish", ALL_MODES, 128, gdb=gdb, connect=connect, clock=clock)
    assert run.check() == 128
    assert None not in run.shown.history.values()


OPTIONS = [
    ("", ALL_MODES, 1.0),
    ("-not-taken", ALL_MODES | NTBR, 1.0),
    ("-modes m", 4, 1.0),
    ("-only calls,returns", ALL_MODES | EXC | INTR | TRET | TKBR | JUMPS, 0.5),
    ("-only traps", ALL_MODES | TKBR | INDCALL | DIRCALL | JUMPS | CORSWAP | RET, 0.0),
    ("-without branches", ALL_MODES | TKBR, 0.5),
    ("-without direct-call,direct-jump", ALL_MODES | DIRCALL | DIRJMP, 1.0),
    ("-without function-return", ALL_MODES | RET, 0.5),
    ("-without traps", ALL_MODES | EXC | INTR | TRET, 0.9),
]


@pytest.mark.parametrize(("options", "control", "least"), OPTIONS, ids=[options or "none" for options, *_ in OPTIONS])
def test_options_choose_what_is_recorded(tmp_path: Path, options: str, control: int, least: float) -> None:
    """*least*: of what ran between records, this part is known at least."""
    run = Run(demo(tmp_path), tmp_path, [f"trace ctr start {options}"], "finish", control)
    assert run.check() >= least * (run.expected.valid - 1)
    assert run.expected.valid > 3


def test_the_check_notices(tmp_path: Path) -> None:
    """An instruction more or less, or another, in what is said to have run does not pass."""
    run = Run(demo(tmp_path), tmp_path, ["trace ctr start -depth 16"], "finish", ALL_MODES, 16)
    assert run.check() == 16
    pc = run.shown.history[20]
    for wrong in (None, (pc or 0) + 2):
        run.shown.history[20] = wrong
        with pytest.raises(AssertionError):
            check(run.shown, run.expected)
    run.shown.history[20] = pc
    kind = "direct jump" if run.shown.rows[3].kind != "direct jump" else "direct call"
    run.shown.rows[3] = run.shown.rows[3]._replace(kind=kind)
    with pytest.raises(AssertionError):
        check(run.shown, run.expected)


TYPES = {
    "exception": EXC, "interrupt": INTR, "trap-return": TRET, "taken-branch": TKBR, "indirect-call": INDCALL,
    "direct-call": DIRCALL, "indirect-jump": INDJMP, "direct-jump": DIRJMP, "co-routine-swap": CORSWAP,
    "function-return": RET, "other-indirect-jump": INDLJMP, "other-direct-jump": DIRLJMP,
}  # fmt: skip
PROGRAMS = [("sim_work.c", "checksum", "-Og"), ("sim_work.c", "checksum", "-O2"), ("hard/branchy.c", "once", "-Og")]
SEEDS = range(20261201, 20261206)


@pytest.mark.parametrize(("name", "stop", "optimization"), PROGRAMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_wrong_is_said(tmp_path: Path, seed: int, name: str, stop: str, optimization: str) -> None:
    """Any types left out at random: instructions that are shown as certain did run, in code of all kinds."""
    source = HOME / "tests" / "programs" / name
    elf = compile_program(tmp_path, source, march="rv64gc", options=(optimization,))
    chosen = random.Random(seed)
    without = sorted(chosen.sample(sorted(TYPES), chosen.randrange(1, 8)))
    not_taken = chosen.random() < 0.5
    control = sum(TYPES[kind] for kind in without) + ALL_MODES + (NTBR if not_taken else 0)
    command = f"trace ctr start -without {','.join(without)}{' -not-taken' if not_taken else ''}"
    run = Run(elf, tmp_path, [command], stop, control, times=chosen.randrange(2, 12))
    run.check()
    assert run.expected.valid > 3
