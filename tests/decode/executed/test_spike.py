"""Spike's logs, real ones, against the tests' own reading of them (`tests.transport.simulated.hart.spike`)."""

import tempfile
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.readers import LogError
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.executed.logs import PROGRAMS, spike_log
from tests.decode.executed.reading import Told, executed_pcs, read, told, told_by_spike
from tests.helpers.amounts import crossed, long_only
from tests.transport.simulated.hart.programs import build
from tests.transport.simulated.hart.spike import Commit, run_spike

PROGRAMS_WITH_TRAPS: dict[str, tuple[str | Path, ...]] = {
    "calls_and_traps": ("start.S", PROGRAMS / "calls_and_traps.c"),
    "traps": ("traps.S",),
    "interrupts": ("interrupts.S",),
    "spins": (PROGRAMS / "spins.S",),
}
FLAGS = {"l": ("-l",), "l+commits": ("-l", "--log-commits"), "commits": ("--log-commits",)}


MARCHES = ["rv64imac", "rv32imac"]
WITH_TRAPS = ["l", "l+commits"]
"""The flags that have traps logged."""
EACH_WITH_FLAGS = [
    (program, flags, MARCHES[(at + more) % 2])
    for at, program in enumerate(PROGRAMS_WITH_TRAPS)
    for more, flags in enumerate(WITH_TRAPS)
]
MORE_WITH_FLAGS = [it for it in product(PROGRAMS_WITH_TRAPS, WITH_TRAPS, MARCHES) if it not in EACH_WITH_FLAGS]


@pytest.fixture(scope="module", params=MARCHES)
def march(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def executed(program: str, march: str) -> list[Told]:
    """What runs, as the tests read Spike's log."""
    with tempfile.TemporaryDirectory() as folder:
        elf = build(Path(folder), *PROGRAMS_WITH_TRAPS[program], march=march)
        return told_by_spike(run_spike(elf, Path(folder), "IMAC").steps)


@pytest.mark.parametrize(("program", "flags", "march"), [*EACH_WITH_FLAGS, *long_only(*MORE_WITH_FLAGS)])
def test_every_instruction_and_trap(program: str, flags: str, march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, *PROGRAMS_WITH_TRAPS[program], march=march)
    expected = executed(program, march)
    items, notes = read(spike_log(elf, tmp_path, *FLAGS[flags]), elf)
    # The instruction at which Spike stops is listed before it is executed.
    assert told(items)[: len(expected)] == expected
    assert len(expected) > 300
    assert len(told(items)) - len(expected) <= 1
    assert notes == []


@pytest.mark.parametrize(("program", "march"), crossed(list(PROGRAMS_WITH_TRAPS), MARCHES))
def test_commits_alone_have_every_instruction(program: str, march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, *PROGRAMS_WITH_TRAPS[program], march=march)
    expected = [pc for what, pc, _ in executed(program, march) if what == "retired"]
    items, notes = read(spike_log(elf, tmp_path, "--log-commits"), elf)
    assert executed_pcs(items) == expected
    (note,) = notes
    assert "guessed" in note and "-l" in note


def test_what_a_commit_log_cannot_tell_of_traps_is_guessed(tmp_path: Path) -> None:
    """Where the code cannot have gone on (after a trap return it can): the right places, an ecall known as one."""
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    exact = [item for item in read(spike_log(elf, tmp_path, "-l"), elf)[0] if isinstance(item, IngressTrap)]
    guessed = [
        item for item in read(spike_log(elf, tmp_path, "--log-commits"), elf)[0] if isinstance(item, IngressTrap)
    ]
    places = {(trap.epc, trap.handler): trap for trap in exact}
    assert {(trap.epc, trap.handler) for trap in guessed} <= places.keys()
    calls = [trap for trap in guessed if places[trap.epc, trap.handler].cause in (3, 8, 11)]  # ebreak, ecalls
    assert calls and not any(trap.interrupt for trap in calls)


def test_a_log_without_traps_says_how_they_would_be_in_it(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    _, notes = read(spike_log(elf, tmp_path, "--log-commits"), elf)
    assert notes == ["no trap is in the log; if there were any, give Spike -l, with or without --log-commits"]


@pytest.mark.parametrize("march", [*MARCHES[:1], *long_only(MARCHES[1])])
def test_privilege_modes_are_contexts(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, "traps.S", march=march)
    commits = [step for step in run_spike(elf, tmp_path, "IMAC").steps if isinstance(step, Commit)]
    expected = [(commit.pc, commit.privilege) for commit in commits]
    assert {privilege for _, privilege in expected} == {0, 3}
    for flags in ("l+commits", "commits"):
        items, _ = read(spike_log(elf, tmp_path, *FLAGS[flags]), elf, contexts=True)
        context = ProgramContext()
        ours = []
        for item in items:
            if isinstance(item, ProgramContext):
                context = item
            else:
                ours += [(pc, context.prv) for pc in executed_pcs([item])]
        assert ours == expected


def test_a_write_of_scontext_is_a_context_from_the_next_instruction_on(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, PROGRAMS / "contexts.S", march=march)
    log = spike_log(elf, tmp_path, "-l", "--log-commits", priv="msu", lines=200)
    writes = [line for line in log.read_text().splitlines() if "csrw    scontext" in line]
    after = [int(line.split()[2], 16) + 4 for line in writes]
    items, _ = read(log, elf, contexts=True)
    at = [i for i, item in enumerate(items) if isinstance(item, ProgramContext)]
    assert [items[i] for i in at] == [
        ProgramContext(3),
        ProgramContext(3, scontext=17),
        ProgramContext(3, scontext=0x2345),
    ]
    starts = [block.pc for block in (items[i + 1] for i in at) if isinstance(block, Block)]
    assert starts[1:] == after


def test_one_hart_of_several(tmp_path: Path) -> None:
    """Two real logs, line by line in turn."""
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    first = spike_log(elf, tmp_path, "-l", lines=5000).read_text().splitlines(keepends=True)
    second = spike_log(elf, tmp_path, "-l", "--log-commits", lines=5000).read_text().splitlines(keepends=True)
    both = tmp_path / "both.log"
    other = [line.replace("core   0:", "core   1:") for line in second]
    both.write_text("".join(line for pair in zip(first, other, strict=True) for line in pair))
    alone = tmp_path / "alone.log"
    for hart, lines in ((0, first), (1, second)):
        alone.write_text("".join(lines))
        assert told(read(both, elf, hart=hart)[0]) == told(read(alone, elf)[0])
    with pytest.raises(LogError, match=r"both.log, line 2: hart 1 after lines of hart 0: choose one with --hart"):
        read(both, elf)


def test_code_that_only_the_log_has(tmp_path: Path) -> None:
    """The boot ROM is in no ELF: it is left out, unless asked for."""
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    log = spike_log(elf, tmp_path, "-l", lines=3000)
    assert executed_pcs(read(log, elf)[0])[0] == 0x8000_0000
    items, notes = read(log, elf, starts=lambda pc: pc == 0x1000)
    assert executed_pcs(items)[:7] == [0x1000, 0x1004, 0x1008, 0x100C, 0x1010, 0x8000_0000, 0x8000_0004]
    assert notes == [f"20 bytes of code are not in {elf} and were taken from the log"]


def test_the_log_of_another_program_is_noticed(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    other = build(tmp_path, "traps.S", march="rv64imac")
    with pytest.raises(LogError, match=r"line 7: at 0x80000000 the instruction 0x\w+ ran, but .*traps.* has 0x\w+"):
        read(spike_log(elf, tmp_path, "-l", lines=3000), other)


def test_lines_that_are_missing_are_noticed(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    log = spike_log(elf, tmp_path, "-l", lines=6000)
    lines = log.read_text().splitlines(keepends=True)
    returning = next(i for i, line in enumerate(lines) if i > 1000 and line.endswith(" ret\n"))
    log.write_text("".join(lines[:returning] + lines[returning + 1 :]))
    why = r"execution continues at 0x\w+, which only a trap can do, and the log has none there"
    with pytest.raises(LogError, match=why):
        read(log, elf)


def test_a_bad_line_is_one_clear_error(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    log = spike_log(elf, tmp_path, "-l", lines=100)
    lines = log.read_text().splitlines(keepends=True)
    lines[70] = "core   0: 0x0000000080000q12 (0x162000ef) jal\n"
    log.write_text("".join(lines))
    expected = (
        r"line 71: expected a line of a Spike log \(.*\), found `core   0: 0x0000000080000q12 \(0x162000ef\) jal`$"
    )
    with pytest.raises(LogError, match=expected):
        read(log, elf)


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    log = spike_log(elf, tmp_path, "-l", lines=3000)
    whole = executed_pcs(read(log, elf)[0])
    last = log.read_text().splitlines(keepends=True)[-1]
    for kept in range(8, last.index(")")):
        log.write_text(log.read_text()[: -len(last)] + last[:kept])
        items, notes = read(log, elf)
        assert executed_pcs(items) == whole[:-1]
        assert notes == ["the last line is cut off and was ignored"]
        log.write_text(log.read_text()[:-kept] + last)


def test_what_a_program_prints_between_the_lines_is_passed_over(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv64imac")
    log = spike_log(elf, tmp_path, "-l", lines=3000)
    before = told(read(log, elf)[0])
    log.write_text("warning: something\n" + log.read_text().replace("\n", "\nHello, world!\n", 500))
    assert told(read(log, elf)[0]) == before
