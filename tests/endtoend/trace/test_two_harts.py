"""examples/two_harts, as docs/simulated-target.md says how to run it and docs/history.md shows it; the harts say what
they retired.
"""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import EXAMPLES, HOME
from tests.helpers.page_sessions import sessions, shown

HARTS = 2
SESSION = next(found for found in sessions("history.md") if any("two_harts" in row.command for row in found))
LISTED = ["trace history /a 1,1000000", "thread 1", "trace history /a 1,1000000 "]
AT_THE_END = [f"thread apply {hart + 1} print $sp" for hart in range(HARTS)]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled by the command of the page."""
    page = (HOME / "docs" / "simulated-target.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^    (riscv64-unknown-elf-gcc .*) -o two_harts\.elf$", page, re.M)
    elf = tmp_path_factory.mktemp("two") / "two_harts.elf"
    subprocess.run([*command.split(), "-o", str(elf)], cwd=EXAMPLES / "two_harts", check=True)
    return elf


@pytest.fixture(scope="module")
def outcome(elf: Path) -> tuple[dict[str, str], list[list[int]]]:
    """What gdb printed, and what each hart retired."""
    log = elf.with_name("retired")
    with Rig(elf, elf.parent / "rig", "--harts", str(HARTS), "--log-retired", str(log)) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]
        live = [*AT_THE_END, "print balance", "print/d notes"]
        there = [command for command, _ in SESSION]
        after = there.index("continue") + 1
        said = run_gdb(elf, [*begin, *there[:after], *live, *there[after:], *LISTED])
    return said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)]


def test_gdb_prints_what_the_page_says(outcome: tuple[dict[str, str], list[list[int]]]) -> None:
    said, _ = outcome
    assert [(command, shown(said[command])) for command, _ in SESSION] == SESSION


def test_each_hart_ran_to_where_it_ends(outcome: tuple[dict[str, str], list[list[int]]]) -> None:
    """Both histories are what the harts retired, and none is where a return address was overwritten."""
    said, retired = outcome
    assert [listed_pcs(said[command]) for command in (LISTED[2], LISTED[0])] == retired
    assert min(map(min, retired)) >= 0x8000_0000 and min(map(len, retired)) > 1000


def test_they_have_stacks_of_their_own_and_lose_payments(outcome: tuple[dict[str, str], list[list[int]]]) -> None:
    """Each payment that found the same balance as another one is lost."""
    said, _ = outcome
    stacks = [int(re.findall(r"0x([0-9a-f]+)", said[command])[-1], 16) for command in AT_THE_END]
    assert all(higher - lower == 1 << 14 for higher, lower in pairwise(stacks))
    found = re.findall(r"before = (\d+), amount = 1", said["print/d notes"])
    balance = int(said["print balance"].split()[-1])
    assert len(found) == 40 and len(set(found)) <= balance < 40
