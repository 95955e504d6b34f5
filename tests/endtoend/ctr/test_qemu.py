"""Control Transfer Records in the real gdb, of the real QEMU 10: what is shown is what its own log says.

Expected records come from the model that reads the documents, expected instructions between them from the log.
"""

import random
from pathlib import Path

import pytest

from tests.endtoend.ctr.gdb_run import Run, Setting, check, run_each
from tests.gdbext.gdb_process import GDB, GDB16
from tests.helpers.amounts import LONG, long_only, thorough
from tests.helpers.cross_compiler import HOME, compile_program, demo

ALL_MODES = 7
EXC, INTR, TRET, NTBR, TKBR = (1 << bit for bit in (33, 34, 35, 36, 37))
INDCALL, DIRCALL, INDJMP, DIRJMP, CORSWAP, RET, INDLJMP, DIRLJMP = (1 << bit for bit in range(40, 48))
JUMPS = INDJMP | DIRJMP | INDLJMP | DIRLJMP
START = "trace ctr start -depth 128"
BY_PACKETS = Setting([START], "finish", ALL_MODES, 128, before=["set trace ctr-access packets"])
BY_NAME = Setting([START], "finish", ALL_MODES, 128, before=["set trace ctr-access named"])
BY_ITSELF = Setting([START], "finish", ALL_MODES, 128, before=["set trace ctr-access auto"])
NEW = GDB16 or GDB
WAYS = [
    pytest.param("target remote", [BY_PACKETS, BY_NAME], 10, NEW, id="remote-new"),
    pytest.param("trace connect", [BY_ITSELF], 8, GDB, id="connect-gdb"),
    *long_only(
        pytest.param("target remote", [BY_PACKETS, BY_NAME], 9, GDB, id="remote-gdb"),
        pytest.param("trace connect", [BY_ITSELF], 7, NEW, id="connect-new"),
    ),
]
"""With QEMU's clock: interrupts come at other places, with some of them before anything ran since a transfer. rvtrace's
proxy, which reads the records after `trace connect`, does not know which gdb it is.
"""


@pytest.mark.parametrize(("connect", "settings", "clock", "gdb"), WAYS)
def test_everything_that_ran_since_the_start(
    tmp_path: Path, connect: str, settings: list[Setting], clock: int, gdb: str
) -> None:
    """With all kinds of transfers recorded, nothing between two records is left open."""
    for run in run_each(demo(tmp_path), tmp_path, settings, gdb=gdb, connect=connect, clock=clock):
        assert run.check() == 128
        assert None not in run.shown.history.values()


OPTIONS = [
    ("", ALL_MODES, 1.0),
    ("-not-taken", ALL_MODES | NTBR, 1.0),
    ("-only calls,returns", ALL_MODES | EXC | INTR | TRET | TKBR | JUMPS, 0.5),
    ("-only traps", ALL_MODES | TKBR | INDCALL | DIRCALL | JUMPS | CORSWAP | RET, 0.0),
    *long_only(
        ("-modes m", 4, 1.0),
        ("-without branches", ALL_MODES | TKBR, 0.5),
        ("-without direct-call,direct-jump", ALL_MODES | DIRCALL | DIRJMP, 1.0),
        ("-without function-return", ALL_MODES | RET, 0.5),
        ("-without traps", ALL_MODES | EXC | INTR | TRET, 0.9),
    ),
]
FEW = "-depth 16"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """One for each of OPTIONS, and FEW."""
    folder = tmp_path_factory.mktemp("options")
    settings = {options: Setting([f"trace ctr start {options}"], "finish", control) for options, control, _ in OPTIONS}
    settings[FEW] = Setting([f"trace ctr start {FEW}"], "finish", ALL_MODES, 16)
    return dict(zip(settings, run_each(demo(folder), folder, [*settings.values()]), strict=True))


@pytest.mark.parametrize(
    ("options", "least"), [(it[0], it[2]) for it in OPTIONS], ids=[it[0] or "none" for it in OPTIONS]
)
def test_options_choose_what_is_recorded(runs: dict[str, Run], options: str, least: float) -> None:
    """*least*: of what ran between records, this part is known at least."""
    run = runs[options]
    assert run.check() >= least * (run.expected.valid - 1)
    assert run.expected.valid > 3


def test_the_check_notices(runs: dict[str, Run]) -> None:
    """An instruction more or less, or another, in what is said to have run does not pass."""
    run = runs[FEW]
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
PROGRAMS = [
    ("hard/branchy.c", "once", "-Og"),
    *long_only(("sim_work.c", "checksum", "-Og"), ("sim_work.c", "checksum", "-O2")),
]
SEEDS = range(20261201, 20261206) if LONG else (20261202, 20261204)  # returns are left out; most of all kinds are


def some_left_out(seed: int, stop: str) -> Setting:
    """Any types at random, with branches not taken or without them."""
    chosen = random.Random(seed)
    without = sorted(chosen.sample(sorted(TYPES), chosen.randrange(1, 8)))
    not_taken = chosen.random() < 0.5
    control = sum(TYPES[kind] for kind in without) + ALL_MODES + (NTBR if not_taken else 0)
    command = f"trace ctr start -without {','.join(without)}{' -not-taken' if not_taken else ''}"
    return Setting([command], stop, control, times=chosen.randrange(2, 12))


@thorough("test_everything_that_ran_since_the_start")
@pytest.mark.parametrize(("name", "stop", "optimization"), PROGRAMS)
def test_nothing_wrong_is_said(tmp_path: Path, name: str, stop: str, optimization: str) -> None:
    """Any types left out at random: instructions that are shown as certain did run, in code of all kinds."""
    source = HOME / "tests" / "programs" / name
    elf = compile_program(tmp_path, source, march="rv64gc", options=(optimization,))
    settings = [some_left_out(seed, stop) for seed in SEEDS]
    for setting, run in zip(settings, run_each(elf, tmp_path, settings), strict=True):
        run.check()
        assert run.expected.valid > 3, setting.commands
