"""Real gdb-multiarch, real openocd, simulated target: `trace history` where one has gone back to, and beside gdb's own.

What is expected comes from the hart's own list of what it retired, and from `record instruction-history`, to which
`trace native` gives the same instructions.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDBS, SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo

ALL = "1,1000000"
SOURCE_LINE = re.compile(r"(?:\S*/)?(?:demo\.c|start\.S):\d+\t")
ROW = re.compile(r"^(\d+)\t(=> |   )0x([0-9a-f]+)", re.M)


class Page(NamedTuple):
    """The rows of a listing: first and last number, and which of them are marked."""

    first: int
    last: int
    marked: list[int]


def page(listing: str, retired: list[int]) -> Page:
    """What is shown, which must be what was retired."""
    rows = [(int(number), mark, int(pc, 16)) for number, mark, pc in ROW.findall(listing)]
    assert rows and [pc for _, _, pc in rows] == retired[rows[0][0] - 1 : rows[-1][0]]
    return Page(rows[0][0], rows[-1][0], [number for number, mark, _ in rows if mark == "=> "])


@pytest.fixture(scope="module", params=[*GDBS[:1], *long_only(*GDBS[1:])])
def outcome(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, str], list[int]]:
    """What gdb printed at each place, and what was retired."""
    folder = tmp_path_factory.mktemp("past")
    elf, log = demo(folder), folder / "retired.log"
    commands = ["trace start", "break finish", "continue", "trace history"]
    commands += ["reverse-stepi", "trace history ", "reverse-stepi 20", "trace history  ", "trace history -"]
    commands += ["trace goto 500", "trace history   ", "trace history    ", f"trace history {ALL}", "stepi"]
    commands += ["trace history     ", "trace goto 500 ", "trace history  -", "trace history -all"]
    commands += [
        "trace goto begin",
        "trace history      ",
        "trace history   -",
        "trace goto end",
        "trace history       ",
    ]
    commands += ["trace live", "trace history        ", f"trace history  {ALL}"]
    commands += [f"trace history {modifiers} {ALL}" for modifiers in ("/a", "/arf", "/ap", "/as")]
    commands += ["trace native", *(f"record instruction-history {it} {ALL}" for it in ("", "/rf", "/p", "/s"))]
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
        said = run_gdb(elf, [*begin, *commands], gdb=request.param)
    return said, retired_pcs(log)


Outcome = tuple[dict[str, str], list[int]]


def test_the_listing_starts_where_one_is_and_its_line_is_marked(outcome: Outcome) -> None:
    """Filled up from before where fewer than ten follow, as gdb does; moving begins anew, also by a step."""
    said, retired = outcome
    count = len(retired)
    assert page(said["trace history"], retired) == (count - 9, count, [])
    assert page(said["trace history "], retired) == (count - 9, count, [count])
    assert page(said["trace history  "], retired) == (count - 20, count - 11, [count - 20])
    assert page(said["trace history -"], retired) == (count - 30, count - 21, [])
    assert page(said["trace history   "], retired) == (500, 509, [500])
    assert page(said["trace history    "], retired) == (510, 519, [])
    assert page(said["trace history     "], retired) == (501, 510, [501])
    assert page(said["trace history  -"], retired) == (491, 500, [500])
    assert page(said["trace history      "], retired) == (1, 10, [1])
    assert said["trace history   -"].strip() == "At the start of the branch trace record."


def test_of_all_instances_only_the_one_where_one_is_is_marked(outcome: Outcome) -> None:
    said, retired = outcome
    assert retired.count(retired[499]) > 5
    assert page(said[f"trace history {ALL}"], retired) == (1, len(retired), [500])
    [line] = [line for line in said["trace history -all"].splitlines() if "\t=> " in line]
    assert line.startswith("500\t0:500\t=> 0x")


def test_at_the_end_and_in_the_present_the_newest_are_shown(outcome: Outcome) -> None:
    said, retired = outcome
    count = len(retired)
    assert page(said["trace history       "], retired) == (count - 9, count, [count])
    assert page(said["trace history        "], retired) == (count - 9, count, [])


def test_the_lines_are_those_of_gdbs_own_command(outcome: Outcome) -> None:
    """Byte for byte, without what gdb does not know of: what happened in between."""
    said, retired = outcome
    own = said[f"record instruction-history  {ALL}"]
    assert len(own.splitlines()) == len(retired) > 1500
    assert said[f"trace history /a {ALL}"] == own
    assert said[f"trace history /ap {ALL}"] == said[f"record instruction-history /p {ALL}"]
    assert said[f"trace history /arf {ALL}"] == said[f"record instruction-history /rf {ALL}"]
    with_events = said[f"trace history  {ALL}"].splitlines(keepends=True)
    assert "".join(line for line in with_events if line[0] != "\t") == own and len(with_events) > len(retired)


def test_source_lines_are_where_gdbs_own_command_has_them(outcome: Outcome) -> None:
    """gdb 13 leaves out the second of two lines that begin at one instruction (btrace_line_range_add): we do not."""
    own = iter(outcome[0][f"record instruction-history /s {ALL}"].splitlines())
    ours, expected, extra = outcome[0][f"trace history /as {ALL}"].splitlines(), next(own, None), []
    for before, line in pairwise(["", *ours]):
        if line == expected:
            expected = next(own, None)
        else:
            extra.append(SOURCE_LINE.match(line) and SOURCE_LINE.match(before))
    assert expected is None, "nothing of gdb's is missing"
    assert len(extra) < 60 and all(extra)


def test_nothing_of_this_prints_a_traceback(outcome: Outcome) -> None:
    for command, text in outcome[0].items():
        assert "Traceback" not in text and "Python Exception" not in text, f"{command}: {text}"
