"""Spike's golden logs of the corpus, by another reader, and what is known of them as a past."""

import gzip
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.readers import LogError
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from tests.decode.tandem.corpus import DATA, GOLDEN, Step, golden_steps, parameters_of, program_of
from tests.decode.tandem.logs.read_logs import read_log, written
from tests.helpers.amounts import LONG

_LINES = 700
NAMES = GOLDEN if LONG else [
    "flute_rv64mi-p-scall", "flute_rv64si-p-csr", "flute_rv64ua-p-amoadd_d", "flute_rv64ud-p-fadd",
    "flute_rv64uc-p-rvc", "piccolo_rv32mi-p-sbreak", "piccolo_rv32ui-p-sb",
]  # fmt: skip


def cut(name: str, folder: Path, *, listed: bool) -> Path:
    """The beginning of a golden log, with the lines of -l, which name traps, or without."""
    lines = gzip.decompress((DATA / "tandem" / f"{name}.spike.gz").read_bytes()).splitlines(keepends=True)[:_LINES]
    if not listed:
        lines = [line for line in lines if line.startswith((b"core   0: 3 ", b"core   0: 1 ", b"core   0: 0 "))]
    path = folder / f"{name}.log"
    path.write_bytes(b"".join(lines))
    return path


def steps_of(name: str, retired: int) -> list[Step]:
    """The steps up to so many instructions that retired."""
    steps, count = list[Step](), 0
    for step in golden_steps(name):
        if count == retired:
            break
        steps.append(step)
        count += step.cause is None
    return steps


@pytest.mark.parametrize("name", NAMES)
def test_registers_memory_and_traps_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    reader, found = read_log(cut(name, tmp_path, listed=True), parameters_of(name).xlen, program_of(name))
    assert not reader.notes and not reader.mismatch and not found.index.breaks
    steps = steps_of(name, found.history.instructions)
    assert list(found.history.pcs()) == [step.pc for step in steps if step.cause is None]
    assert len(steps) > 150
    for number, step in enumerate(steps, 1):
        state = found.after(number)
        assert {n: state.x(n) for n in step.x} == step.x
        assert {n: state.f(n) for n in step.f} == step.f
        assert {n: state.csr(n) for n in step.csrs} == step.csrs
        for address, stored in step.stores:
            assert state.memory(address, len(stored)) == list(stored)
    traps = [step for step in steps if step.cause is not None]
    told = found.index.traps[: len(traps)]
    assert [(it.epc, it.tval, it.interrupt) for it in told] == [
        (step.pc, step.tval, "interrupt" in (step.cause or "")) for step in traps
    ]


@pytest.mark.parametrize("name", ["flute_rv64mi-p-scall", "piccolo_rv32mi-p-sbreak"])
def test_traps_that_the_log_does_not_name(name: str, tmp_path: Path) -> None:
    """Without -l: where they were is known, why is not, and neither is what they wrote."""
    reader, found = read_log(cut(name, tmp_path, listed=False), parameters_of(name).xlen, program_of(name))
    steps = steps_of(name, found.history.instructions)
    assert list(found.history.pcs()) == [step.pc for step in steps if step.cause is None]
    assert not found.index.breaks
    retired_before = [
        sum(one.cause is None for one in steps[:at]) for at, step in enumerate(steps) if step.cause is not None
    ]
    events = [event for event in found.history.events if event.kind is EventKind.TRAP]
    assert [event.position for event in events] == retired_before != []
    assert all(event.fact == Trap(TrapKind.UNKNOWN) for event in events)
    assert reader.notes[0].startswith(f"{len(events)} trap" if len(events) > 1 else "1 trap is not in the log")
    behind = found.before(events[0].position)
    assert behind.csr(0x342) is None and behind.csr(0x341) is None and behind.csr(0x300) is None


def test_what_an_instruction_leaves_alone_stays_known(tmp_path: Path) -> None:
    """Spike has fflags where they change: after an addition without a flag they are what they were."""
    path = tmp_path / "fp.log"
    path.write_text(
        "core   0: 3 0x0000000080000000 (0x00301073) c3_fcsr 0x0000000000000020 c1_fflags 0x0000000000000000"
        " c2_frm 0x0000000000000001\n"
        "core   0: 3 0x0000000080000004 (0x00000053) f0  0x3ff0000000000000\n"
        "core   0: 3 0x0000000080000008 (0x00000013)\n"
    )
    _, found = read_log(path, 64)
    assert found.after(2).f(0) == 0x3FF0_0000_0000_0000
    assert found.after(2).csr(1) == 0 and found.after(2).csr(2) == 1


def test_lines_behind_a_time(tmp_path: Path) -> None:
    """As a build server writes what it ran: it is Spike's log all the same, and recognized."""
    log = cut("flute_rv64mi-p-scall", tmp_path, listed=True)
    (tmp_path / "timed.log").write_text("".join(f"[10:00:01] {line}" for line in log.read_text().splitlines(True)))
    program, xlen = program_of("flute_rv64mi-p-scall"), parameters_of("flute_rv64mi-p-scall").xlen
    _, plain = read_log(log, xlen, program)
    _, found = read_log(tmp_path / "timed.log", xlen, program)
    assert list(found.history.pcs()) == list(plain.history.pcs()) != []


@pytest.mark.parametrize(
    "line",
    ["core   2: 3 0x0000000080000000 (0x0001)", "Trace 2: 0x7f [0/0000000080000000/0/1]\n pc  80000000"],
)
def test_a_hart_that_is_not_in_the_log(line: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"hart 1 is not in this log, which has 2$"):
        read_log(written(tmp_path / "it.log", line), 64 if line.startswith("core") else 32, hart=1)


def test_lines_that_are_missing(tmp_path: Path) -> None:
    """The listing of -l names traps: a step that the code cannot make is none of them."""
    lines = [
        f"core   0: {mark}0x00000000800000{at:02x} (0x00000013){rest}"
        for at in (0, 4, 12, 16)
        for mark, rest in (("", " nop"), ("3 ", ""))
    ]
    reader, _ = read_log(written(tmp_path / "it.log", *lines), 64)
    assert reader.notes == ["1 trap is not in the log, though `spike -l` names traps: lines may be missing there"]
    reader, _ = read_log(written(tmp_path / "it.log", *lines[1::2]), 64)
    assert reader.notes == ["1 trap is not in the log: `spike -l` names them"]
