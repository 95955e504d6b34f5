"""Sourced in gdb behind rvtrace.py: which columns of the session's rows the commands show, by lists of one row.

For each list a command prints a row whose columns all have a value, and then for each column one with another value.
Printed is {list: {column: [whether the command printed something else, whether programs got something else]}},
{list: names of the fields}; {list: letters of modifiers, each of
which alone changes what is printed of the row}, and {list: help of its command}. What programs get is the answer of the
MI command, and of lists without one what `rvtrace console --json` prints.
"""

import json
import sys
from typing import Any

import gdb


def ours(module: str) -> Any:
    return sys.modules[f"rvtrace_gdb.{module}"]


def address(function: str) -> int:
    return int(gdb.parse_and_eval(f"&{function}"))


COMMANDS = {
    "history": ("trace history", "history"),
    "messages": ("trace dump", None),
    "accesses": ("trace data", None),
    "events": ("trace events", "events"),
    "gaps": ("trace gaps", "gaps"),
    "executions": ("trace find main", None),
    "functions": ("trace functions", "functions"),
    "calls": ("trace calls", "calls"),
    "records": ("trace ctr show", None),
    "log": ("trace log main 1+0", None),
    "calls_of": ("trace calls-of main", None),
    "differences": ("trace diff other.rvt", None),
}
"""The list's command, and its MI command."""
LETTERS = {
    what: "".join(it.letter for it in table)
    for what, table in ours("rows.list_text").MODIFIERS.items()
    if what not in ("history", "interleaved", "records")  # which would leave columns out, or need other rows
}
"""The modifiers that add columns."""
VALUES: dict[str, tuple[Any, Any]] = {
    "int": (7, 8), "float": (0.25, 0.5), "str": ("one", "another"), "bool": (True, False),
}  # fmt: skip
"""Two values of a type; those of addresses are functions of the program."""

WITHOUT: dict[tuple[str, str], dict[str, None]] = {
    **{(what, column): {"name": None} for what in ("functions", "calls") for column in ("pc", "addresses")},
    ("accesses", "offset"): {"pc": None},
    **{(what, "text"): {"expected": None} for what in ("events", "gaps")},
}
"""What is left out of the row so that a column is shown: gdb's name for one of the session's, or another place."""


def two_values(kind: Any, column: str) -> tuple[Any, Any]:
    """Two values of a column, by its type, or where that does not say it, by its name."""
    pcs = address("main"), address("fib")
    special: dict[str, tuple[Any, Any]] = {
        "pc": pcs,
        "facts": ({"cause": 1}, {"cause": 2}),
        "arguments": ([{"what": "n", "value": "5"}], [{"what": "n", "value": "6"}]),
        "values": ([{"what": "n", "value": "5"}], [{"what": "n", "value": "6"}]),
        "returned": ({"value": "5"}, {"value": "6"}),
        "called": (["one"], ["another"]),
        "between": ([3, 1, 3, None], [4, 1, 4, None]),
        **dict.fromkeys(("here", "source", "target", "expected", "addresses"), ([pcs[0]], [pcs[1]])),
    }
    if column in special:
        return special[column]
    if kind.__name__ == "HistoryRow" and column == "text":
        return "1141", "0141"  # code
    annotation = kind.__annotations__[column]
    return VALUES[getattr(annotation, "__forward_arg__", annotation).partition(" ")[0]]


DIFF: dict[str, Any] = {
    **dict.fromkeys(ours("rows.diff_rows").DiffAnswer._fields, 1), "by": "instructions", "lines": [], "first": None,
}
"""The answer that is above the list of differences."""


class Answering:
    """In place of the session: each list has one row."""

    def __init__(self) -> None:
        self.row: list[Any] = []

    def request(self, method: str, **params: Any) -> Any:
        if method == "diff":
            return DIFF
        assert method == "page", method
        return {"begin": 1, "end": 2, "hart": None, "rows": [self.row], "events": [], "length": 1}


def printed(command: str, letters: str) -> str:
    return str(gdb.execute(f"{command} /{letters}" if letters else command, to_string=True))


def shown(what: str, row: Any, answering: Answering) -> tuple[str, Any]:
    """What the command prints of a row, and what programs get."""
    command, mi = COMMANDS[what]
    answering.row = json.loads(json.dumps(row))
    fields = next((it.run([])[it.name] for it in ours("gdbext.mi.commands").TABLE if it.name == mi), None)
    if mi is None:
        page = ours("gdbext.paged_list").page_of(what, answering.request("page"))
        fields = ours("gdbext.mi.fields").page_fields(what, page)
    return printed(command, LETTERS.get(what, "")), fields


answering = Answering()
ours("gdbext.tracer").tracer().request = answering.request
found: dict[str, Any] = {}
named: dict[str, Any] = {}
lettered: dict[str, str] = {}
for what, kind in ours("rows.list_rows").ROW_TYPES.items():
    if what not in COMMANDS:
        continue
    values = {column: two_values(kind, column) for column in kind._fields}
    if what == "executions":
        values["kind"] = "execution", "sync"
    sample = kind(**{column: two[0] for column, two in values.items()})
    _, fields = shown(what, sample, answering)
    named[what] = sorted(fields[0]) if COMMANDS[what][1] else sorted(fields["dump" if what == "messages" else what][0])
    found[what] = {}
    shown(what, sample._replace(**WITHOUT.get((what, "pc"), {})), answering)
    lettered[what] = "".join(
        it for it in LETTERS.get(what, "") if printed(COMMANDS[what][0], it) != printed(COMMANDS[what][0], "")
    )
    for column, two in values.items():
        plain = sample._replace(**WITHOUT.get((what, column), {}))
        before, before_fields = shown(what, plain, answering)
        other, other_fields = shown(what, plain._replace(**{column: two[1]}), answering)
        found[what][column] = [other != before, other_fields != before_fields]
helps = {what: gdb.execute(f"help {command}", to_string=True) for what, (command, _) in COMMANDS.items()}
gdb.write(json.dumps([found, named, lettered, helps]) + "\n")
