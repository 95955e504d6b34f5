"""Lists of what one task did, of the real FreeRTOS, against what the kernel's hooks noted."""

from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.lists.search import BadQuery
from rvtrace_gdb.session.rpc.lists import pages
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.reader import ListedTask
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import AtEnd, TaskTurns
from rvtrace_gdb.support.errors import silent
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.task_systems import freertos
from tests.session.tasks.captures import RUN, TaskCapture, captured, turns_noted

TAIL = 150
"""Instructions from a hook to where its function ends, at most."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return freertos(tmp_path_factory.mktemp("freertos"))


@pytest.fixture(scope="module")
def capture(program: Path) -> TaskCapture:
    return captured(program)


@pytest.fixture(scope="module")
def session(capture: TaskCapture) -> Session:
    session = Session()
    session.open(capture.file, None)
    return session


def page(session: Session, what: str, **given: Any) -> dict[str, Any]:
    return pages.page(session, Params({"what": what, "context": {}, **given}, "page"), silent)


def whole(session: Session, what: str, **given: Any) -> list[Any]:
    found = list[Any]()
    while more := page(session, what, begin=len(found) + 1, count=ROWS_AT_ONCE, **given)["rows"]:
        found += more
    return found


def history_of(session: Session) -> History:
    return session.selected(Context()).history


def names_at(capture: TaskCapture, positions: list[int]) -> list[str]:
    """The task that the hooks say at positions, without what is just behind a hook: it may be of both."""
    noted = turns_noted(capture.notes)
    whens = [note.when for note in noted]
    found = [bisect_right(whens, position) - 1 for position in positions]
    return [noted[at].name for at, position in zip(found, positions, strict=True) if position > noted[at].when + TAIL]


def test_instructions_of_a_task_keep_their_numbers_and_are_all_that_it_ran(
    session: Session, capture: TaskCapture
) -> None:
    numbers = [row[0] for row in whole(session, "history", task="maker")]
    positions = [number - 1 for number in numbers]
    assert positions == sorted(set(positions)) and set(names_at(capture, positions)) == {"maker"}
    others = sorted(set(range(len(history_of(session)))) - set(positions))
    first = turns_noted(capture.notes)[0].when
    assert "maker" not in names_at(capture, [at for at in others if at > first])


def test_what_is_found_of_a_task_is_where_the_hooks_say_it_ran(
    session: Session, capture: TaskCapture, program: Path
) -> None:
    mixed, history = symbol_address(program, "mixed"), history_of(session)
    ran = [at for at in range(len(history)) if history.pc(at) == mixed]
    found = {
        name: [row.position - 1 for row in whole(session, "executions", name="mixed", first=mixed, task=name)]
        for name in ("maker", "worker", "child", "prey", "victim")
    }
    noted = turns_noted(capture.notes)
    whens = [note.when for note in noted]
    for name, positions in found.items():
        assert positions == [at for at in ran if noted[bisect_right(whens, at) - 1].name == name] != []


def test_functions_of_a_task_are_numbered_in_their_list_and_turn_by_turn(
    session: Session, capture: TaskCapture
) -> None:
    rows = whole(session, "functions", task="taker")
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert set(names_at(capture, [row.begin - 1 for row in rows])) == {"taker"}
    of_all = {row.begin: row for row in whole(session, "functions")}
    assert all(row._replace(number=0) == of_all[row.begin]._replace(number=0) for row in rows)
    last = page(session, "functions", args="", size=5, task="taker", fold=True)
    assert [row.begin for row in last["rows"]] == [row.begin for row in rows[-5:]]


def test_calls_of_a_task_are_those_of_its_own_stack(session: Session, capture: TaskCapture, program: Path) -> None:
    noted = turns_noted(capture.notes)
    entries = {symbol_address(program, name): name for name in ("maker", "taker", "worker", "boss", "child", "victim")}
    for name in ("maker", "taker", "boss", "worker"):
        rows = page(session, "calls", begin=1, count=4000, depth=0, task=name)["rows"]
        assert {entries[row.pc] for row in rows if row.pc in entries} == {name}
        ends = [*(after.when for after in noted[1:]), RUN]
        ran = sum(end - note.when for note, end in zip(noted, ends, strict=True) if note.name == name)
        total = sum(row.instructions for row in rows if not row.level)
        assert abs(total - ran) < TAIL * sum(note.name == name for note in noted)


def test_what_happened_is_between_the_instructions_of_a_task(session: Session, capture: TaskCapture) -> None:
    found = page(session, "history", begin=1, count=4000, task="worker", events=True)
    numbers = {row[0] for row in found["rows"]}
    assert found["events"] and {it.number for it in found["events"]} <= numbers


def test_a_number_an_address_and_a_pattern_name_a_task(session: Session, capture: TaskCapture) -> None:
    of = {note.number: note for note in turns_noted(capture.notes)}
    taker = whole(session, "functions", task="taker")
    assert whole(session, "functions", task=str(taker_number(of))) == taker
    assert whole(session, "functions", task=hex(of[taker_number(of)].task)) == taker
    assert whole(session, "functions", task="tak*") == taker
    both = [len(whole(session, "functions", task=str(number))) for number, note in of.items() if note.name == "worker"]
    assert len(both) == 2 and len(whole(session, "functions", task="worker")) == sum(both)


def taker_number(of: dict[int, Any]) -> int:
    return next(number for number, note in of.items() if note.name == "taker")


def test_a_task_that_there_is_not(session: Session) -> None:
    with pytest.raises(BadQuery, match=r"nobody is none of the tasks: boss #\d+, taker #\d+, "):
        page(session, "functions", args="", size=5, task="nobody")


def test_a_task_that_did_not_run(session: Session) -> None:
    with pytest.raises(BadQuery, match=r"keeper did not run; these did: boss #\d+, taker "):
        turns = tasks_of(session, session.selected(Context()))
        end = AtEnd([ListedTask(0x8000, "keeper", 99, "ready", None, None)], complete=False)
        TaskTurns(turns.system, turns.tasks, turns.turns, end).tasks_named("keeper")


def test_labels_that_tell_tasks_of_one_name_apart_name_them(session: Session, capture: TaskCapture) -> None:
    turns = tasks_of(session, session.selected(Context()))
    numbers = {note.number for note in turns_noted(capture.notes) if note.name == "worker"}
    assert len(numbers) == 2
    for number in numbers:
        assert turns.tasks_named(f"worker #{number}") == turns.tasks_named(str(number)) != []
