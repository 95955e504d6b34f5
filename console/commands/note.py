"""`rvtrace note`: notes at places of the past, in the capture file itself, as `trace note` has them in gdb."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.shown_list import ShownTrace
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.rows.answers import NoteRow
from rvtrace_gdb.rows.note_text import note_fields, note_line
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries import notes
from rvtrace_gdb.session.queries.notes import NoteError
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import json_line

EXAMPLES = (
    ('note demo.rvt --at 1200 "the count is already wrong here"', "note something at instruction 1200"),
    ("note demo.rvt", "list the notes"),
    ("note demo.rvt --delete 1", "delete the note that the list calls 1"),
)
_NONE = "There are no notes: `rvtrace note FILE --at N TEXT` makes one."


@dataclass(frozen=True)
class NoteRequest:
    """What the command line asks for. *text*: to be noted at the instruction *at*; "": nothing. *delete*: a note."""

    trace: RequestedTrace
    text: str
    at: int | None
    hart: int | None
    delete: int | None


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace note`."""
    parser.usage = "%(prog)s FILE [--at N [--hart N] TEXT | --delete N] [options]"
    parser.description = (
        "Notes something at a place of the past, in the capture file itself, as `trace note` does in gdb; lists the"
        " notes, or deletes one. Nothing else in the file changes."
    )
    number = inputs.number_from(1, (1 << 63) - 1)
    parser.add_argument("capture", metavar="FILE", help="a capture, which is changed")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what is noted (default: list the notes)")
    parser.add_argument("--at", type=number, metavar="N", help="at the instruction with this number of the history")
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="of this hart (default: first)"
    )
    parser.add_argument("--delete", type=number, metavar="N", help="delete the note that the list calls N")
    output.add_arguments(parser, "each note")
    output.add_color(parser)
    inputs.add_program_arguments(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make, delete or list notes. Raises NoteError, CaptureError, and as `Session.open_capture`."""
    trace = RequestedTrace(args.capture, None, inputs.Programs.from_arguments(args))
    request = NoteRequest(trace, " ".join(args.text), args.at, args.hart, args.delete)
    if request.text and request.delete is not None:
        raise NoteError("--delete N takes no TEXT")
    if bool(request.text) != (request.at is not None):
        raise NoteError("a note needs both a TEXT and its place, --at N")
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        _print(request, shown)
    return 0


def _print(request: NoteRequest, shown: CommandOutput) -> None:
    session = Session()
    about = request.trace.open(session)
    decoded = session.harts(progress=shown.progress)
    shown.say([*about, *session.warnings()])
    changes = bool(request.text) or request.delete is not None
    if changes and notes.file_of(session) is None:
        raise NoteError(f"{request.trace.name}: keeps no notes, it is not a capture file (`rvtrace import` makes one)")
    rows = []
    if request.delete is not None:
        shown.say(notes.delete(session, request.delete, shown.progress))
    elif request.text:
        selected = session.selected(Context(hart=request.hart), shown.progress)
        made, lines = notes.add(session, selected, request.at or 0, request.text, shown.progress)
        shown.say(lines)
        rows = [notes.row_of(made, decoded)]
    else:
        rows = notes.rows(session, decoded)
    harts = decoded.harts.histories
    shown.rows(_lines(rows, ShownTrace(session, decoded, shown, min(harts), len(harts) > 1), request.delete))


def _lines(rows: list[NoteRow], shown: ShownTrace, deleted: int | None) -> Iterator[str]:
    if not rows and not shown.output.json:
        yield _NONE if deleted is None else f"Note {deleted} is deleted."
    for row in rows:
        if shown.output.json:
            yield json_line(note_fields(row, shown))
        else:
            yield note_line(row, shown, several=shown.is_one_of_several)
