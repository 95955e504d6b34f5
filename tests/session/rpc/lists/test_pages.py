"""Parts of lists for programs that ask by number: `page`, against the whole list that `trace` commands give."""

import re
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.list_text import MODIFIERS, computed_words
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.rpc.lists import pages
from rvtrace_gdb.session.rpc.protocol import BadRequest
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.helpers import reference_streams

ELF = reference_streams.FOLDER / "median.elf"
STREAM = reference_streams.FOLDER / "median.1.nex"
LISTS: dict[str, dict[str, Any]] = {
    "history": {},
    "functions": {},
    "calls": {"depth": 0},
    "events": {},
    "executions": {"name": "main", "first": 0x8000_0000},
}


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Methods:
    capture = tmp_path_factory.mktemp("pages") / "x.rvt"
    assert main(["import", str(STREAM), "--elf", str(ELF), "-o", str(capture)]) == 0
    methods = Methods(Session())
    methods.call("open", {"path": str(capture), "elf": str(ELF)}, silent)
    return methods


def page(methods: Methods, what: str, begin: int | None, count: int) -> dict[str, Any]:
    asked = {"context": {"elf": str(ELF)}, "what": what, "begin": begin, "count": count}
    found = methods.call("page", {**asked, **LISTS[what]}, silent)
    assert isinstance(found, dict)
    return found


def whole(methods: Methods, what: str) -> list[Any]:
    """All rows, as `trace` commands request them."""
    asked = {"context": {"elf": str(ELF)}, "what": what, **LISTS[what]}
    found = methods.call("page", {"args": "1,999999", "size": 0, **asked}, silent)
    rows = list(found["rows"])
    for begin in range(1 + len(rows), found["end"], 4000):
        more = {**asked, "begin": begin, "end": min(begin + 4000, found["end"])}
        rows += methods.call("rows", more, silent)["rows"]
    return rows


@pytest.mark.parametrize("what", LISTS)
def test_parts_of_a_list(what: str, methods: Methods) -> None:
    rows = whole(methods, what)
    assert rows != []
    length = len(rows)
    for begin, count in ((1, 3), (1, 4096), (max(length - 1, 1), 100), (length + 1, 5), (length + 1000, 5)):
        found = page(methods, what, begin, count)
        assert (found["length"], found["begin"], found["hart"]) == (length, begin, 0)
        assert found["rows"] == rows[begin - 1 : begin - 1 + count]


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"begin": 0, "count": 5}, "page: at most 4096 from 1 on can be requested at once"),
        ({"begin": 1, "count": 4097}, "page: at most 4096 from 1 on can be requested at once"),
        ({"begin": -1, "count": 5}, "page: begin is -1, which is not what protocol 2 says"),
        ({"begin": 1}, "page: count is None, which is not what protocol 2 says"),
        ({"begin": 1, "count": 1, "what": "nonsense"}, "page: what is 'nonsense', which is not what protocol 2 says"),
    ],
)
def test_what_is_no_page(params: dict[str, Any], line: str, methods: Methods) -> None:
    with pytest.raises(BadRequest) as caught:
        methods.call("page", {"what": "history", "context": {"elf": str(ELF)}, **params}, silent)
    assert str(caught.value) == line


def test_without_a_trace(tmp_path: Path) -> None:
    with pytest.raises(NoTrace):
        page(Methods(Session()), "history", 1, 5)


CHANGED: dict[str, list[dict[str, Any]]] = {
    "history": [],
    "messages": [{"offset": 40}],
    "events": [{"kinds": ["sync"]}],
    "executions": [{"first": 0x8000_0004}],
    "functions": [],
    "calls": [{"depth": 1}],
}
"""Parameters of the lists of a trace of instructions, with values that have other answers than those of `LISTS`;
those of modifiers besides.
"""

ELSEWHERE = {
    "history": {"events", "times", "at"},  # of a trace with interruptions or timestamps; of a hart in the past
    "executions": {
        "name",
        "last",
        "others",
        "function",
        "functions",
        "also",
        "pc",
    },  # tests/session/queries/lists/test_search.py; a live hart
    "functions": {"process", "thread"},  # tests/session/perf_data/test_threads.py
}
"""Parameters that this trace does not show. Of *fold*, too, which is for rows that repeat: test_folding.py."""


def test_each_parameter_of_a_list_changes_its_answer(methods: Methods) -> None:
    """A parameter that is not passed on would leave its column empty in gdb, in an IDE and in a shell alike."""
    assert {what for what in MODIFIERS if computed_words(what)} <= set(CHANGED)
    for what, others in CHANGED.items():
        modified = [{word: True} for word in computed_words(what)]
        asked = {"context": {"elf": str(ELF)}, "what": what, "args": "1,200", "size": 0, **LISTS.get(what, {})}
        answers = [methods.call("page", {**asked, **other}, silent) for other in ({}, *others, *modified)]
        assert all(answers[0] != other for other in answers[1:]), what
        assert documented(what) - ELSEWHERE.get(what, set()) - {"fold"} == set().union(*others), what


def documented(what: str) -> set[str]:
    """The parameters of a list in the table at the top of pages.py; a line without a name goes on with the last."""
    rows = [
        [cell.strip() for cell in line.split("|")[1:4]] for line in (pages.__doc__ or "").splitlines() if "|" in line
    ]
    cells, name = "", ""
    for row in rows:
        name = row[0] or name
        cells += row[2] if what in name.split(", ") else ""
    return set(re.findall(r"\*(\w+)\*", cells))
