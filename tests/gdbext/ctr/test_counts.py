"""`trace ctr count`, `counts`, `sample`: counts over many stops are those of one recording that was big enough."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.gdbext.ctr.test_commands import connected
from tests.gdbext.gdb_process import run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo

AGAIN = ["monitor reset halt", "maintenance flush register-cache", "load"]
START = "trace ctr start -only calls -depth"
RECORD = re.compile(r"^\d+\t0x(\w+) <.*?> at \S+ -> 0x(\w+) <.*?> at \S+\t([^,\n]*).*$", re.M)
COUNTED = re.compile(r"^ +(\d+) +(?:\d+|-)  0x(\w+) <.*?> at \S+ -> 0x(\w+) <.*?> at \S+\t(.*)$", re.M)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("counts")
    elf = demo(folder)
    (folder / "each.gdb").write_text("break mul\ncommands\nsilent\ntrace ctr count\ncontinue\nend\n")
    wrong = ["trace ctr counts", "trace ctr sample -often 3", "trace ctr sample -every 0", "trace ctr counts -most"]
    commands = [
        *wrong, "tbreak start_timer", "continue", f"{START} 32", "tbreak on_trap", "continue ",
        "trace ctr show --json 0,999", "trace ctr show 0,999",
        *AGAIN, "tbreak start_timer ", "continue  ", f"{START} 16", f"source {folder / 'each.gdb'}", "tbreak on_trap ",
        "continue   ", "trace ctr count", "trace ctr counts -all", "trace ctr counts ", "trace ctr counts --json",
        "trace ctr counts -clear", "delete", "tbreak finish", "continue    ", "trace ctr start -depth 16",
        "trace ctr sample -every 40 -times 2",
    ]  # fmt: skip
    with connected("1.0", elf, folder) as first:
        return run_gdb(elf, [*first, *commands])


@thorough("gdbext/ctr/test_page.py::test_gdb_prints_what_the_page_says")
def test_counts_over_many_stops_are_those_of_one_recording(said: dict[str, str]) -> None:
    recorded = Counter(RECORD.findall(said["trace ctr show 0,999"]))
    assert 16 < recorded.total() < 32
    counted = {
        (source, target, kind): int(n) for n, source, target, kind in COUNTED.findall(said["trace ctr counts -all"])
    }
    assert counted == recorded
    first = said["trace ctr counts -all"].splitlines()[0]
    assert first == f"{recorded.total()} transfers at 6 stops, {len(recorded)} different"
    ten = COUNTED.findall(said["trace ctr counts "])
    assert [int(row[0]) for row in ten] == [n for _, n in recorded.most_common(10)]


def transfer_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["from"]["addr"].removeprefix("0x"), row["to"]["addr"].removeprefix("0x"), row["type"]


@thorough("gdbext/ctr/test_show.py::test_a_line_for_each_record_and_for_what_ran_before_it")
def test_records_and_counts_as_json(said: dict[str, str]) -> None:
    """With the fields of docs/console.md."""
    rows = [json.loads(line) for line in said["trace ctr counts --json"].splitlines()]
    assert [(str(row["times"]), *transfer_of(row)) for row in rows] == COUNTED.findall(said["trace ctr counts "])
    records = [json.loads(line) for line in said["trace ctr show --json 0,999"].splitlines()]
    assert [transfer_of(row) for row in records] == RECORD.findall(said["trace ctr show 0,999"])
    assert records[0]["number"] == 0
    assert all({"func", "file", "line"} <= set(row["from"]) for row in records)


@thorough("gdbext/ctr/test_page.py::test_gdb_prints_what_the_page_says")
def test_sampling_stops_and_goes_on(said: dict[str, str]) -> None:
    """The program is at its last loop by then: how often it goes round in that time is up to the machine."""
    summary = next(line for line in said["trace ctr sample -every 40 -times 2"].splitlines() if " stops" in line)
    total = re.match(r"(\d+) transfers at 2 stops, \d+ different; the records were full at ", summary)
    first = COUNTED.findall(said["trace ctr sample -every 40 -times 2"])[0]
    assert total is not None and 2 * int(first[0]) > int(total[1]) >= 16
    assert first[1] == first[2] and first[3] == "direct jump"


@thorough("gdbext/ctr/test_options.py::test_what_makes_no_sense_is_refused")
@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("trace ctr counts", "nothing is counted yet: `trace ctr count` counts here, `trace ctr sample` at stops"),
        ("trace ctr sample -often 3", "trace ctr sample: unknown option -often. See `help trace ctr sample`."),
        ("trace ctr sample -every 0", "trace ctr sample: -every takes a number from 1 on, got: 0."),
        ("trace ctr counts -most", "trace ctr counts: unknown option -most. See `help trace ctr counts`."),
    ],
)
def test_what_is_wrong_is_one_line(said: dict[str, str], command: str, line: str) -> None:
    assert said[command].strip() == line
