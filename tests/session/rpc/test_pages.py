"""Parts of lists for programs that ask by number: `page`, against the whole list that `trace` commands give."""

from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.errors import NoTrace
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


@pytest.mark.parametrize("what", LISTS)
def test_without_a_number_the_newest(what: str, methods: Methods) -> None:
    rows = whole(methods, what)
    expected = rows[:2] if what == "calls" else rows[-2:]
    assert page(methods, what, None, 2)["rows"] == expected
    assert page(methods, what, None, 0)["rows"] == []
    assert page(methods, what, None, 0)["length"] == len(rows)


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"begin": 0, "count": 5}, "page: at most 4096 from 1 on can be requested at once"),
        ({"begin": 1, "count": 4097}, "page: at most 4096 from 1 on can be requested at once"),
        ({"begin": -1, "count": 5}, "page: begin is -1, which is not what protocol 1 says"),
        ({"begin": 1}, "page: count is None, which is not what protocol 1 says"),
        ({"begin": 1, "count": 1, "what": "nonsense"}, "page: what is 'nonsense', which is not what protocol 1 says"),
    ],
)
def test_what_is_no_page(params: dict[str, Any], line: str, methods: Methods) -> None:
    with pytest.raises(BadRequest) as caught:
        methods.call("page", {"what": "history", "context": {"elf": str(ELF)}, **params}, silent)
    assert str(caught.value) == line


def test_without_a_trace(tmp_path: Path) -> None:
    with pytest.raises(NoTrace):
        page(Methods(Session()), "history", 1, 5)
