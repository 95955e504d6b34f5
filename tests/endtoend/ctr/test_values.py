"""Registers of the past from Control Transfer Records of the real QEMU 10: each that is shown is what its log has.

The log has the registers before each instruction. It is from the same run, and knows nothing of the records.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo
from tests.helpers.qemu10 import NAMES, X, running

TARGET = """
[[memory]]
address = 0x80000000
size = 0x4000000
kind = "ram"
"""
LOOKS = ["trace values", "reverse-stepi", "info registers", "print i"]


class Ran(NamedTuple):
    """What a capture knows of a run, and what ran: (pc and registers before) each instruction, the last one first.

    said: what gdb answered
    """

    past: Past
    pcs: list[int]
    log: list[dict[str, int]]
    said: dict[str, str]


def ran(folder: Path, *stop: str) -> Ran:
    """Record from main on, with as many entries as there are, up to where gdb gets with *stop*; save, and open it."""
    elf, capture = demo(folder), folder / "x.rvt"
    (folder / "target.toml").write_text(TARGET)
    with running(elf, folder, logged=True, registers=True) as machine:
        begin = [SOURCE, f"set trace target {folder}/target.toml", f"trace connect :{machine.port}"]
        record = ["tbreak main", "continue", "print/x $pc", "trace ctr start -depth 256", *stop]
        said = run_gdb(elf, [*begin, *record, f"trace save {capture}", *LOOKS, "disconnect"])
        log = machine.registers()
    session = Session()
    session.open(capture, None)
    selected = session.selected(Context())
    past = past_of(session, selected)
    assert past is not None
    return Ran(past, list(selected.history.pcs())[::-1], log[::-1], said)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All that ran since `trace ctr start` is in the records."""
    return ran(tmp_path_factory.mktemp("short"), "tbreak classify", "ignore $bpnum 5", "continue ")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Older records were overwritten."""
    return ran(tmp_path_factory.mktemp("long"), "tbreak finish", "continue ")


def instructions(run: Ran) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each position of the history with the registers of the log there, the last one first."""
    log = iter(run.log)
    for back, pc in enumerate(run.pcs, 1):
        before = next(log)
        while before["pc"] != pc:  # it was begun again, or is what comes behind the last one
            before = next(log)
        yield len(run.pcs) - back, before


@pytest.mark.parametrize(("run_name", "least"), [("short", 0.99), *long_only(("long", 0.9))])
def test_each_register_is_that_of_the_log(request: pytest.FixtureRequest, run_name: str, least: float) -> None:
    run: Ran = request.getfixturevalue(run_name)
    known = 0
    for position, before in instructions(run):
        registers = run.past.registers(position)
        for name, number in zip(NAMES, X, strict=True):
            assert registers.get(name, before[number]) == before[number], (position, name)
            known += name in registers
    assert known >= least * 31 * len(run.pcs) > 2000


def test_what_ran_since_the_start_is_all_there(short: Ran) -> None:
    """From the place where `trace ctr start` was given on, as the log has it."""
    begin = int(short.said["print/x $pc"].split()[-1], 16)
    there = next(number for number, before in enumerate(short.log) if before["pc"] == begin)
    logged = [before["pc"] for before in short.log[: there + 1]]
    assert short.pcs[-1] == begin and short.pcs == logged[-len(short.pcs) :]


def test_gdb_shows_them_while_the_hart_stands_there(short: Ran) -> None:
    assert "Registers and memory are reconstructed" in short.said["trace values"]
    _, before = next(instructions(short))
    shown = re.findall(r"^(\w+) +0x([0-9a-f]+)", short.said["info registers"], re.MULTILINE)
    values = {"s0" if name == "fp" else name: int(value, 16) for name, value in shown}
    assert values == {"pc": before["pc"], **{name: before[number] for name, number in zip(NAMES, X, strict=True)}}
    assert int(short.said["print i"].split()[-1]) == before["x9"] == 5  # the first round is number 0
