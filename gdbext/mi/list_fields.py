"""The rows of every list as fields, by the list's name in a request (`list_rows.ROW_TYPES`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rvtrace_gdb.gdbext.expressions import Storage
from rvtrace_gdb.gdbext.mi.fields import Rows
from rvtrace_gdb.rows.answers import WriterAnswer
from rvtrace_gdb.rows.list_rows import AccessRow, HartRows, MessageRow, Page
from rvtrace_gdb.rows.list_text import Fields


def of_page(what: str, page: Page) -> Fields:
    """Return a piece of the list *what*: its rows under the list's name."""
    fields: Fields = {"dump" if what == "messages" else what: list(_rows(what, page))}
    return fields if page.hart is None else {"hart": page.hart, **fields}


def of_writer(storage: Storage, found: WriterAnswer) -> Fields:
    """Return the answer of `trace who-wrote`."""
    if found.writer is None:
        return {"hart": found.hart, "messages": list(found.none)}
    return {"hart": found.hart, "writer": Rows().writer(storage, found.writer, found.below)}


def _rows(what: str, page: Page) -> Iterable[Fields]:
    rows = Rows(opcodes=True)
    if what == "history":
        return _stripped(rows.history(page.rows))
    if what == "interleaved":
        return _of_harts(rows, page.rows)
    if what == "functions":
        return rows.functions(page.rows)
    if what == "calls":
        return rows.calls(page.rows)
    if what == "messages":
        return map(_message, page.rows)
    if what == "accesses":
        return (_access(rows, row) for row in page.rows)
    if what == "records":
        return (record(rows, row) for row in page.rows)
    return rows.found(page.rows)


def _of_harts(rows: Rows, runs: Iterable[HartRows]) -> Iterable[Fields]:
    for run in runs:
        yield from ({"hart": run.hart, **fields} for fields in _stripped(rows.history(run.rows)))  # type: ignore[arg-type]


def _stripped(rows: Iterable[Fields]) -> Iterable[Fields]:
    """Return instructions without the blanks that fill the column of their bytes."""
    for fields in rows:
        yield {**fields, "opcodes": fields["opcodes"].strip()} if "opcodes" in fields else fields


def _message(row: MessageRow) -> Fields:
    return {"number": row.number, "trace-byte": row.offset, "text": row.text}


def _access(rows: Rows, row: AccessRow) -> Fields:
    at = {} if row.pc is None else rows.place((row.pc,))
    fields = {"number": row.number, "position": row.instruction, **at, "text": row.text, "trace-byte": row.offset}
    return {name: value for name, value in fields.items() if value is not None}


def record(rows: Rows, row: Mapping[str, Any]) -> Fields:
    """Return a Control Transfer Record; one that is not valid has its number alone."""
    if not row["valid"]:
        return {"number": row["number"]}
    fields: Fields = {name: rows.place((row[name],)) for name in ("from", "to") if row[name] is not None}
    fields |= {"type": row["type"], "mispredicted": int(row["mispredicted"]) or None, "cycles": row["cycles"]}
    fields |= {"saturated": int(row["saturated"]) or None, "between": _between(row["between"])}
    return {"number": row["number"], **{name: value for name, value in fields.items() if value is not None}}


def _between(between: Mapping[str, Any] | None) -> Fields | None:
    """Return what ran between two records: how many instructions, with their numbers, or why it is not known."""
    if between is None:
        return None
    found: Fields = {}
    if between["first"] <= between["last"]:
        found = {"begin": between["first"], "end": between["last"]}
    return {**found, **({"why": between["why"]} if between["why"] else {"instructions": between["instructions"]})}
