"""QEMU's logs of translation blocks, real ones, against its logs of single instructions as the tests read those
(`tests.transport.simulated.hart.qemu`), which need no guess where a block ends."""

import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.executed.readers import LogError
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.executed.logs import CLOCK, PROGRAMS, qemu_log, spike_log
from tests.decode.executed.reading import Told, executed_pcs, read, told, told_by_qemu
from tests.helpers.amounts import crossed, long_only, some_of
from tests.transport.simulated.hart.programs import build
from tests.transport.simulated.hart.qemu import run_qemu

STEPS = some_of(30_000, 5)
SOURCES: dict[str, tuple[str | Path, ...]] = {
    "calls_and_traps": ("start.S", PROGRAMS / "calls_and_traps.c"),
    "workload": ("start.S", "workload.c"),
    "traps": ("traps.S",),
    "interrupts": ("interrupts.S",),
    "blocks": (PROGRAMS / "blocks.S",),
}


MARCHES = ["rv64imac", "rv32imac"]


def by_turns(cases: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Each case with an architecture, those in turn; with the other one in the long run."""
    each = [(*case, MARCHES[at % 2]) for at, case in enumerate(cases)]
    return [*each, *long_only(*((*case, MARCHES[at % 2 - 1]) for at, case in enumerate(cases)))]


@pytest.fixture(scope="module", params=MARCHES)
def march(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def executed(program: str, march: str) -> list[Told]:
    """What runs, as the tests read QEMU's log of single instructions."""
    with tempfile.TemporaryDirectory() as folder:
        return told_by_qemu(run_qemu(build(Path(folder), *SOURCES[program], march=march), STEPS, CLOCK))


# QEMU 7.2 disassembles an instruction of reserved length for ever: `traps` has one.
LOGS = [
    *((program, "exec,nochain,int") for program in SOURCES),
    *((program, "exec,nochain,int,in_asm") for program in SOURCES if program != "traps"),
    ("calls_and_traps", "exec,nochain,int,in_asm,cpu"),
]


@pytest.mark.parametrize(("program", "what", "march"), by_turns(LOGS))
def test_every_instruction_and_trap(program: str, what: str, march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, *SOURCES[program], march=march)
    expected = executed(program, march)
    items, _ = read(qemu_log(elf, tmp_path, *CLOCK, what=what, lines=400_000 if "cpu" in what else STEPS), elf)
    ours = told(items)
    both = min(len(ours), STEPS)
    assert both > 5000
    assert ours[:both] == expected[:both]


@pytest.mark.parametrize(("program", "march"), by_turns([(program,) for program in SOURCES]))
def test_blocks_of_one_instruction(program: str, march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, *SOURCES[program], march=march)
    expected = executed(program, march)
    ours = told(read(qemu_log(elf, tmp_path, *CLOCK, "-singlestep", lines=STEPS), elf)[0])
    assert ours == expected[: len(ours)]
    assert len(ours) > 0.9 * STEPS


@pytest.mark.parametrize(
    ("program", "options"), crossed(list(SOURCES), [CLOCK, (*CLOCK, "-singlestep")]), ids=lambda it: str(it).split()[-1]
)
def test_logs_of_older_versions(program: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """Before 6.1 the cflags are not logged, and flags are written as by %#x (accel/tcg/cpu-exec.c of 2.12)."""
    elf = build(tmp_path, *SOURCES[program], march="rv64imac")
    log = qemu_log(elf, tmp_path, *options, lines=STEPS)
    expected = told(read(log, elf)[0])
    older = re.sub(r"/0*([0-9a-f]+)/[0-9a-f]{8}\]", r"/0x\1]", log.read_text())
    older = re.sub(r"cause:0*([0-9a-f]+), (epc:0x\w+), tval:.*", r"cause:\1, \2, tval:0x0, desc=x", older)
    assert older.count("/0x") > 1000
    log.write_text(older)
    assert told(read(log, elf)[0]) == expected


@pytest.mark.parametrize("program", SOURCES)
def test_logs_of_newer_versions(program: str, tmp_path: Path) -> None:
    """cs_base in 8 digits, and "rewound" with the address of the instruction: since 8.1 a block does not know its own
    (accel/tcg/cpu-exec.c and translate-all.c of 10.0)."""
    elf = build(tmp_path, *SOURCES[program], march="rv64imac")
    log = qemu_log(elf, tmp_path, *CLOCK, lines=STEPS)
    expected = told(read(log, elf)[0])
    newer = re.sub(r"\[0{16}/", "[00000000/", log.read_text())
    newer = re.sub(r"(rewound execution of TB to )\w+(\nTrace .*?/)(\w+)(/)", r"\1\3\2\3\4", newer)
    log.write_text(newer)
    assert told(read(log, elf)[0]) == expected


@pytest.mark.parametrize("march", [*MARCHES[1:], *long_only(MARCHES[0])])
def test_privilege_modes_where_in_asm_tells_them(march: str, tmp_path: Path) -> None:
    """As Spike's commits have them."""
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march=march)
    by_spike = modes(spike_log(elf, tmp_path, "-l", "--log-commits"), elf)
    by_qemu = modes(qemu_log(elf, tmp_path, what="exec,nochain,int,in_asm", lines=30_000), elf)
    assert {mode for _, mode in by_spike} == {0, 3}
    assert by_qemu[: len(by_spike)] == by_spike


def modes(log: Path, elf: Path) -> list[tuple[int, int | None]]:
    context = ProgramContext()
    found = []
    for item in read(log, elf, contexts=True)[0]:
        if isinstance(item, ProgramContext):
            context = item
        found += [(pc, context.prv) for pc in executed_pcs([item])]
    return found


def test_no_contexts_without_in_asm(tmp_path: Path) -> None:
    elf = build(tmp_path, "traps.S", march="rv64imac")
    items, _ = read(qemu_log(elf, tmp_path, lines=2000), elf, contexts=True)
    assert not any(isinstance(item, ProgramContext) for item in items)


def test_one_hart_of_several(tmp_path: Path) -> None:
    """The other one counts, and never gets to what the first one does."""
    elf = build(tmp_path, PROGRAMS / "blocks.S", march=MARCHES[0])
    log = qemu_log(elf, tmp_path, harts=2, lines=5000)
    first = executed_pcs(read(log, elf, hart=0)[0])
    alone = executed_pcs(read(qemu_log(elf, tmp_path, lines=60_000, name="alone.log"), elf)[0])
    both = min(len(first), len(alone))
    assert both > 2000 and first[:both] == alone[:both]
    second = set(executed_pcs(read(log, elf, hart=1)[0])[2:])
    assert second and not second & set(first[2:])
    with pytest.raises(LogError, match=r"line \d+: hart \d after lines of hart \d: choose one with --hart"):
        read(log, elf)


def test_a_log_that_leaves_blocks_out_is_refused(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    with pytest.raises(
        LogError, match=r"line 1: the log omits blocks \(nochain is missing\): give QEMU -d exec,nochain,int"
    ):
        read(qemu_log(elf, tmp_path, what="exec,int", lines=20), elf)


def test_without_int_traps_are_guessed_and_said_to_be(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    items, notes = read(qemu_log(elf, tmp_path, what="exec,nochain"), elf)
    traps = sum(isinstance(item, IngressTrap) for item in items)
    assert traps > 10
    assert notes == [f"{traps} traps were guessed, from steps the code cannot make: give QEMU -d exec,nochain,int"]


def test_the_log_of_another_program_is_noticed(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    other = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    with pytest.raises(LogError, match=r"execution continues at 0x\w+, .* did .*workload.* run"):
        read(qemu_log(elf, tmp_path), other)


def test_a_bad_line_is_one_clear_error(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    log = qemu_log(elf, tmp_path, lines=1000)
    whole = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*whole[:99], "Trace 0: 0x7f24 [80000000]\n", *whole[99:]]))
    with pytest.raises(LogError, match=r"qemu.log, line 100: expected a line of QEMU's .*, found `Trace 0: 0x7f24 \[8"):
        read(log, elf)
    log.write_text("".join([*whole, "Trace 0: 0x7f24 [8000"]))
    _, notes = read(log, elf)
    assert "the last line is cut off and was ignored" in notes
