"""Real gdb-multiarch, real openocd, simulated target: what a trap loop prints, once instead of five hundred times.

The program says how many times it traps; the hart's own list of what it retired says where.
"""

import re
from itertools import pairwise

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.trace.test_find import names
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.page_sessions import sessions, shown

TRAPS = 500


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], list[int]]:
    """What gdb printed, and the numbers of the instructions with which the handler began."""
    folder = tmp_path_factory.mktemp("loop")
    elf, log = compile_program(folder, HOME / "tests" / "programs" / "trap_loop.c"), folder / "retired.log"
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        commands += ["set trust-readonly-sections on", "trace connect", "break done", "trace start", "continue"]
        commands += ["trace events", "trace events -", "trace functions", "trace events -unfolded exception"]
        commands += ["trace functions -unfolded 1,1000", "trace events trap 1,1000", "trace goto first exception"]
        commands += ["trace goto last trap", "trace goto first event", "trace goto first"]
        found = run_gdb(elf, commands)
    handler = names(elf)["on_trap"]
    return found, [number for number, pc in enumerate(retired_pcs(log), 1) if pc == handler]


def test_the_loop_is_one_line(said: tuple[dict[str, str], list[int]]) -> None:
    out, traps = said
    assert len(traps) == TRAPS
    [way] = {after - before for before, after in pairwise(traps)}
    tail = f"x{TRAPS}, @{traps[0]} to @{traps[-1]}, every {way} instructions"
    events, functions = (out[command].strip().splitlines() for command in ("trace events", "trace functions"))
    assert [line.endswith(tail) for line in events] == [False, True, False]
    assert events[1].startswith(f"2\t@{traps[0]}\t") and events[2].startswith(f"{TRAPS + 2}\t@")
    assert f"3\ton_trap [exception]; {tail}" in functions and len(functions) < 8
    assert out["trace events -"].strip() == "At the start of the list."


def test_every_row_is_shown_on_request(said: tuple[dict[str, str], list[int]]) -> None:
    out, traps = said
    unfolded = out["trace events -unfolded exception"].strip().splitlines()
    assert [int(line.split("@")[1].split()[0]) for line in unfolded] == traps[-10:]
    assert [int(at) for at in re.findall(r"@(\d+)\s", out["trace events trap 1,1000"])] == traps
    assert out["trace functions -unfolded 1,1000"].count("on_trap [exception]\n") == TRAPS
    assert "every" not in out["trace functions -unfolded 1,1000"] + out["trace events trap 1,1000"]


def test_going_to_the_first_and_the_last(said: tuple[dict[str, str], list[int]]) -> None:
    out, traps = said
    for command, number, event in (
        ("first exception", traps[0], f"Event 1 of {TRAPS}"), ("last trap", traps[-1], f"Event {TRAPS} of {TRAPS}"),
        ("first event", 1, "Event 1 of"),
    ):  # fmt: skip
        assert f"[{number} of " in out[f"trace goto {command}"] and event in out[f"trace goto {command}"]
    assert 'No symbol "first"' in out["trace goto first"], "a function may have that name"


def test_the_page_says_what_is_printed(said: tuple[dict[str, str], list[int]]) -> None:
    [exchange] = next(found for found in sessions("finding.md") if "every" in found[0].lines[1])
    assert shown(said[0][exchange.command]) == exchange.lines
