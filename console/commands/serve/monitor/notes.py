"""`note` of `monitor trace`: notes at places of the past, as `trace note` makes, lists and deletes them in gdb."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows import note_text
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries import notes
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.views.addresses import address_text

_OPTIONS = {"-at": 1, "-hart": 0, "-delete": 1}
"""The least number of each."""
USAGE = """\
monitor trace note [-at N] [-hart N] TEXT
       monitor trace note
       monitor trace note -delete N

TEXT is noted at instruction N, by default where the debugger is in the past.
Without arguments all notes are listed. `monitor trace history` shows a note
before the instruction where it is. Notes are kept in the capture file that is
served, if the server can write it; those of a trace that was recorded here, by
`monitor trace save`."""


class NoteUsage(RvtraceError):
    """Words that are no note."""


class _ProgramSymbols(NamedTuple):
    """The symbols in the lines of notes."""

    image: Image

    def address_text(self, place: Place) -> str:
        symbol = self.image.symbol(place[0]) if len(place) == 1 else place[1:]
        return address_text(place[0], self.image.xlen, symbol)

    def paint(self, what: str, text: str) -> str:
        return text


def note(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    """Make a note, delete one, or list all, and yield the lines. Raises NoteUsage, and as `session.queries.notes`."""
    given, text = _note_words(words)
    if "delete" in given and (text or len(given) > 1):
        raise NoteUsage("trace note: -delete N takes nothing else")
    if given and not text and "delete" not in given:
        raise NoteUsage("trace note: what is to be noted? TEXT is missing")
    session, progress = request.session, request.progress
    context = replace(request.debugger.context, thread_hart=request.hart, hart=given.get("hart"))
    decoded = session.harts(context, progress)
    if given or text:
        _check_kept(session)
    if "delete" in given:
        lines = notes.delete(session, given["delete"], progress)
        yield from (f"Note {given['delete']} is deleted.", *lines)
        return
    if text:
        made, lines = notes.add(session, *_note_place(request, context, given), text, progress)
        yield from lines
        rows = [notes.row_of(made, decoded)]
    else:
        rows = notes.rows(session, decoded)
    if not rows:
        yield note_text.NONE
    symbols = _ProgramSymbols(decoded.program.all_programs)
    for row in rows:
        yield note_text.note_line(row, symbols, several=len(decoded.harts.histories) > 1)


def _check_kept(session: Session) -> None:
    """Raise NoteUsage where notes could not be kept."""
    if session.live is None and notes.file_of(session) is None:
        raise NoteUsage("trace note: this trace keeps no notes, it is not in a capture file")


def _note_place(request: MonitorRequest, context: Context, given: Mapping[str, int]) -> tuple[SelectedHistory, int]:
    """Return the place of a new note. Raises NoteUsage: the debugger is in the present, or in another history."""
    choose = request.session.selected_of_thread if context.hart is None else request.session.selected
    selected = choose(context, request.progress)
    number = given.get("at")
    if number is None and selected.hart == request.places.selected().hart:
        number = request.places.number()
    if number is None:
        raise NoteUsage("trace note: go to a place of the past first (`trace goto`), or say which (-at N)")
    return selected, min(number, len(selected.history)) if "at" not in given else number


def _note_words(words: Sequence[str]) -> tuple[dict[str, int], str]:
    """Return the options and the text. Raises NoteUsage."""
    rest, given = list(words), dict[str, int]()
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        least = _OPTIONS.get(option.replace("--", "-", 1))
        if least is None:
            raise NoteUsage(f"trace note: unknown option {option}: see `trace help note`")
        value = rest.pop(0) if rest else ""
        if not (value.isdecimal() and value.isascii() and len(value) < 19 and int(value) >= least):
            raise NoteUsage(f"trace note: {option} takes a number: see `trace help note`")
        given[option.strip("-")] = int(value)
    return given, " ".join(rest)
