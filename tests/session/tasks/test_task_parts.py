"""`--task` of `rvtrace decode` and `rvtrace intervals`, against the hooks of the kernel and the lists of all tasks."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.session.tasks.runs import kept_run


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main([*words, "--quiet"]) == 0
    return capsys.readouterr().out.splitlines()


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said(capsys, *words, "--json")]


def test_the_listing_of_a_task_has_its_turns_alone(capsys: pytest.CaptureFixture[str]) -> None:
    run = kept_run("freertos")
    file = str(run.capture)
    [tasks] = rows(capsys, "tasks", file)
    everything = said(capsys, "decode", file)
    listed = {it["task"]: said(capsys, "decode", file, "--task", f"{it['name']} ({it['id']})") for it in tasks["tasks"]}
    assert {name: len(lines) for name, lines in listed.items() if name != "worker"} == {
        it["task"]: it["instructions"] for it in tasks["tasks"] if it["task"] != "worker"
    }
    for name, lines in listed.items():
        assert all(everything[int(line.split("\t")[0]) - 1] == line for line in lines[:50]), name
    taker = listed["taker"]
    for words, expected in ((["1,3"], taker[:3]), (["-4"], taker[-4:]), (["100,+2"], taker[99:101])):
        assert said(capsys, "decode", file, *words, "--task", "taker") == expected
    assert rows(capsys, "decode", file, "1,2", "--task", "taker")[1]["number"] == int(taker[1].split("\t")[0])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--events"], "--task taker: not with --events: `rvtrace events` has it, too"),
        (["99999"], "numbers go from 1 to 15897"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["decode", str(kept_run("freertos").capture), *words, "--task", "taker"]) == 1
    assert problem in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("what", [["--calls", "nested"], ["--traps"], ["nested", "mixed"]])
def test_intervals_begin_in_the_turns_of_the_task(capsys: pytest.CaptureFixture[str], what: list[str]) -> None:
    """Those of all tasks are all there are; the calls are as many as the list of the task has entries."""
    file = str(kept_run("freertos").capture)
    [tasks] = rows(capsys, "tasks", file)
    [all_of_them] = rows(capsys, "intervals", file, *what)
    ran_ids = [it["id"] for it in tasks["tasks"] if it["turns"]]
    each = {number: rows(capsys, "intervals", file, *what, "--task", str(number))[0] for number in ran_ids}
    assert sum(it["measured"] for it in each.values()) == all_of_them["measured"] > 10
    assert sum(it["open"] for it in each.values()) == all_of_them["open"]
    if what[0] == "--calls":
        names, measured = {it["id"]: it["name"] for it in tasks["tasks"]}, Counter[str]()
        for number, it in each.items():
            measured[names[number]] += it["measured"] + it["open"]
        assert +measured == Counter(row["task"].split()[0] for row in rows(capsys, "find", file, what[1]))
    [part] = rows(capsys, "intervals", file, *what, "--task", "worker", "60000,+40000")
    assert 0 < part["measured"] <= sum(each[it]["measured"] for it in (3, 4))


def test_a_report_of_a_task_counts_what_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    """As the tree of its calls does; all tasks, and what ran before them, are everything."""
    run = kept_run("freertos")
    file, words = str(run.capture), ["functions", "harts", "--top", "0"]
    [tasks] = rows(capsys, "tasks", file)
    ran_ids = [it["id"] for it in tasks["tasks"] if it["turns"]]
    each = {it: rows(capsys, "report", file, *words, "--task", str(it))[0] for it in ran_ids}
    assert 0 <= tasks["instructions"] - tasks["outside"] - sum(it["instructions"] for it in each.values()) < 100
    calls = rows(capsys, "calls", file, "--depth", "0", "--task", "1")
    own = Counter[str]()
    for line in calls:
        own[line.get("func", "")] += line["own-instructions"]
    assert {it["func"]: it["own"] for it in each[1]["functions"] if it["own"]} == dict(+own)
    [part] = rows(capsys, "report", file, *words, "--task", "1", "60000,+20000")
    assert 0 < part["instructions"] < each[1]["instructions"]
    asked = "trace report -task maker functions -top 2"
    machine = 'interpreter-exec mi "-rvtrace-report --task 1 --top 1"'
    answers = run_gdb(run.elf, [SOURCE, f"trace open {file}", asked, machine, "complete trace report -task mak"])
    assert answers[asked].splitlines()[0] == f"Hart 0: {each[1]['instructions']} instructions."
    assert f'instructions="{each[1]["instructions"]}"' in answers[machine]
    assert answers["complete trace report -task mak"].strip() == "trace report -task maker"
    assert main(["report", file, "--html", "-", "--task", "1"]) == 1
    assert "a page has everything" in capsys.readouterr().err


def test_gdb_measures_the_intervals_of_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    run = kept_run("freertos")
    own = said(capsys, "intervals", str(run.capture), "--calls", "nested", "--task", "worker (3)")
    asked = 'trace intervals -task "worker #3" nested'
    machine = 'interpreter-exec mi "-rvtrace-intervals --task 3 nested"'
    completed = "complete trace intervals -task mak"
    answers = run_gdb(run.elf, [SOURCE, f"trace open {run.capture}", asked, machine, completed])
    measured = re.search(r"(\d+) measured", own[0])
    assert measured is not None
    assert answers[asked].splitlines()[0] == f"calls of nested, of task worker #3 alone: {measured[0]}"
    assert f'measured="{measured[1]}"' in answers[machine]
    assert answers[completed].strip() == "trace intervals -task maker"
