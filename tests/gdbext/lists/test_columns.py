"""Every column of the session's rows reaches the user: one that gdb's side forgets is noticed.

The session's side cannot forget one, because a row is not made without all its columns. For columns that are computed
on request, tests/session/rpc/lists/test_pages.py changes the parameters with which they are requested.
"""

import ast
import json
import re
from collections.abc import Sequence
from typing import Any, TypeGuard

import pytest

from rvtrace_gdb.rows import list_rows
from rvtrace_gdb.rows.list_rows import CallRow
from rvtrace_gdb.rows.list_text import HEADINGS, MODIFIERS, row_line
from rvtrace_gdb.session.rpc.lists.pages import LISTS
from tests.gdbext.gdb_process import GDB, HOME, SOURCE, run_gdb
from tests.helpers.cross_compiler import demo

CHANGES = f"source {HOME / 'tests' / 'gdbext' / 'lists' / 'column_changes.py'}"
DOCUMENTED = (HOME / "docs" / "ide.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    elf = demo(tmp_path_factory.mktemp("columns"))
    printed = run_gdb(elf, [SOURCE, CHANGES], gdb=GDB)[CHANGES]
    return json.loads(printed.splitlines()[-1])


def test_both_ends_have_the_same_lists() -> None:
    assert set(list_rows.ROW_TYPES) == set(LISTS)


def test_each_column_is_printed(changes: Any) -> None:
    """The facts of an event are for programs; where execution continued, or should have, is known of gaps and returns,
    whose rows executions share, as events share who ran then. The values of a log are in its text, and the line is in
    place of its address.
    """
    unknown = {f"executions {column}" for column in ("facts", "target", "expected")}
    runners = {f"{what} {column}" for what in ("events", "gaps") for column in RUNNERS}
    assert unseen(changes, 0) == {"events facts", "gaps facts", "log values", "log here", *unknown, *runners}


def test_programs_get_each_column(changes: Any) -> None:
    """The addresses of a function's instructions are for the source lines of `trace functions /l`."""
    assert unseen(changes, 1) == {"functions addresses"}


def unseen(changes: Any, end: int) -> set[str]:
    """The columns in which a change makes no difference. *end*: 0, of what is printed; 1, of what programs get."""
    found, *_ = changes
    return {f"{what} {column}" for what in found for column, seen in found[what].items() if not seen[end]}


def test_each_field_of_an_answer_is_documented(changes: Any) -> None:
    """The table of docs/ide.md has it in the line of its command, or it is one of a place, and no other; gaps are as
    events there.
    """
    _, named, *_ = changes
    assert named["gaps"] == named["events"]
    place = {"addr", "func", "offset", "file", "fullname", "line"}
    for what, (command, others) in MI.items():
        [line] = re.findall(rf"^\| `-rvtrace-{command}`(?: [^|]*)?\|[^|]*\|(.*) \|$", DOCUMENTED, re.M)
        fields = {field.partition("=")[0] for field in re.findall(r"`([a-z][a-z-]*(?:=\S*)?)`", line)} - place
        assert fields == {*named[what], what, *others} - place - NOT_THERE.get(what, set()), what


FACTS = {"interrupt", "value", "from-hart", "reason", "changed", "trace-byte-end"}
MI = {
    "history": ("history", {"gap", "opcodes"}),
    "executions": ("find", {"comes", "execution"}),
    "events": ("events", FACTS | {"mismatched-return"}),
    "functions": ("functions", {"gap"}),
    "calls": ("calls", set()),
}
"""The command of a list, and what its line names besides: fields of other rows than the one that is changed, facts of
events, fields of the answer.
"""
RUNNERS = {"task", "process", "thread"}
NOT_THERE = {"executions": {"cause", "expected", "to", "trace-byte"}, "events": RUNNERS}
"""Columns that rows of events alone have, or of executions."""


def test_each_modifier_changes_what_is_printed(changes: Any) -> None:
    """By itself; of messages it is the session that prints more: tests/session/rpc/lists/test_pages.py."""
    lettered = {what: letters for what, letters in changes[2].items() if letters}
    assert lettered == {"functions": "".join(it.letter for it in MODIFIERS["functions"])}


class Plain:
    """Symbols of lines: each function is called f."""

    def address_text(self, place: list_rows.Place) -> str:
        return "f"

    def function_text(self, pc: int, name: str | None) -> str:
        return "f"

    def source_lines(self, pc: int, name: str | None, addresses: Sequence[int]) -> str:
        return "f.c:1"

    def paint(self, what: str, text: str) -> str:
        return text


def test_a_heading_stands_above_each_column() -> None:
    """Numbers end where their heading does, and the last column begins there."""
    values: dict[str, Any] = dict.fromkeys(CallRow._fields, 7)
    rows = {"calls": CallRow(**{**values, "level": 0, "name": None, "trap": False, "hidden": None})}
    assert set(HEADINGS) == set(rows)
    for what, row in rows.items():
        heading, line = ([*re.finditer(r"\S+(?: \S+)*", text)] for text in (HEADINGS[what], row_line(row, Plain())))
        assert [it.end() for it in heading[:-1]] == [it.end() for it in line[:-1]], what
        assert heading[-1].start() == line[-1].start(), what


IN_HELP = {
    "calls": "how often it was called",
    "instructions": "how many instructions ran in it and all it called",
    "in it alone": "and in it alone",
    "function": "A line for each function",
}
"""What the help of `trace calls` says of each column."""


def test_help_explains_each_column_of_a_heading(changes: Any) -> None:
    assert re.findall(r"\S+(?: \S+)*", HEADINGS["calls"]) == list(IN_HELP)
    text = " ".join(changes[3]["calls"].split())
    assert {said for said in IN_HELP.values() if said not in text} == set()


PAGES = {"history": "history", "messages": "messages", "functions": "calls", "records": "ctr"}
"""The page of each list that has modifiers. Of records it has the one that `trace history` does not have."""
UNEXPLAINED = {"records": "at"}
"""Letters that say nothing of a list, and are accepted because they are those of `trace history`."""


def test_help_and_page_explain_each_modifier(changes: Any) -> None:
    assert set(PAGES) == set(MODIFIERS) - {"interleaved"}  # which is `trace history -all`
    for what, page in PAGES.items():
        letters = {it.letter for it in MODIFIERS[what]} - set(UNEXPLAINED.get(what, ""))
        assert letters <= set(re.findall(r"/([a-z])\b", changes[3][what])), what
        if what == "records":
            letters -= {it.letter for it in MODIFIERS["history"]}
        text = (HOME / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert letters <= set(re.findall(r"`/([a-z])`", text)), page


def test_the_readme_has_the_letters_of_each_command() -> None:
    text = (HOME / "README.md").read_text(encoding="utf-8")
    for what, command in {"history": "history [-all]", "functions": "functions", "messages": "dump"}.items():
        [letters] = re.findall(rf"`trace {re.escape(command)} \[/(\w+)\] ", text)
        assert sorted(letters) == sorted(it.letter for it in MODIFIERS[what]), command


def test_the_format_of_a_history_has_its_modifiers() -> None:
    """gdbext.listing, which prints a history, is loaded inside gdb alone: its class is read."""
    [listing] = [it for it in ast.parse((HOME / "gdbext" / "listing.py").read_text()).body if _is_format(it)]
    fields = [it.target.id for it in listing.body if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)]
    assert fields == list(dict.fromkeys(it.word for it in MODIFIERS["history"]))


def _is_format(statement: ast.stmt) -> TypeGuard[ast.ClassDef]:
    return isinstance(statement, ast.ClassDef) and statement.name == "HistoryFormat"
