"""The methods of the session protocol for notes at places of the past.

| method | params                      | result                                                     |
|--------|-----------------------------|------------------------------------------------------------|
| note   | context, text, number, hart | {lines, harts, notes}: *notes* has the one that was made   |
|        | context, delete             | {lines, harts, notes: []}                                  |
|        | context                     | {lines, harts, notes}: all notes                           |

*number*: of the instruction, null: where the hart is in the past. *hart*: null: the context's. *notes*: rows
`rows.answers.NoteRow`. *harts*: how many harts the trace has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rvtrace_gdb.rows.answers import NoteRow
from rvtrace_gdb.session.queries import notes
from rvtrace_gdb.session.queries.notes import NoteError
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def note(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Make, delete or list notes, see the module. Raises NoteError, CaptureError, and as `Session.history`."""
    context = params.context()
    hart = params.optional_number("hart")
    if hart is not None:
        context = replace(context, hart=hart)
    if params.given("delete"):
        deleted = params.number("delete")
        lines = notes.delete(session, deleted, progress)
        return _answer(session, [f"Note {deleted} is deleted.", *lines], ())
    if not params.given("text"):
        decoded = session.harts(context, progress)
        return _answer(session, session.warnings(), notes.rows(session, decoded))
    selected = session.selected(context, progress)
    number = params.optional_number("number")
    if number is None and session.debugger is not None:
        number = session.debugger.number(selected.hart)
    if number is None:
        raise NoteError("gdb is in the present: go to a place of the past first (`trace goto`), or say which (`-at N`)")
    made, lines = notes.add(session, selected, number, params.text("text"), progress)
    now = session.require_capture().decoded
    row = () if now is None else (notes.row_of(made, now),)
    return _answer(session, [*selected.lines, *lines], row)


def _answer(session: Session, lines: list[str], rows: Sequence[NoteRow]) -> JsonMessage:
    decoded = session.require_capture().decoded
    return {"lines": lines, "harts": 0 if decoded is None else len(decoded.harts.histories), "notes": list(rows)}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"note": note}
