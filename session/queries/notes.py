"""Notes at places of the past: made, deleted, listed, and kept in the file of an opened capture.

The notes of a trace that was recorded are saved with it. Those of a capture that was opened are in its file at once: it
is read again before, as somebody else may have noted something in it since.
"""

import os
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.rows.answers import NoteRow
from rvtrace_gdb.rows.list_rows import Annotation, Happened
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.model import Capture, PlaceNote
from rvtrace_gdb.session.capture.place_notes import NOTES_LIMIT, TEXT_LIMIT
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.history_rows import pc_place
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import warning

NoteTuple = tuple[PlaceNote, ...]


class NoteError(RvtraceError):
    """A note that cannot be made, or that is not there."""


def checked_text(text: str) -> str:
    """Return the text of a note as one line. Raises NoteError."""
    line = " ".join(text.split())
    if not line:
        raise NoteError("a note needs a text")
    if len(line) > TEXT_LIMIT:
        raise NoteError(f"the note has {len(line)} characters; {TEXT_LIMIT} is the most")
    return line.encode(errors="replace").decode()


def add(
    session: Session, selected: SelectedHistory, number: int, text: str, progress: Progress = silent
) -> tuple[PlaceNote, list[str]]:
    """Note something at the instruction with a *number*, and return the note with lines for the user.

    Raises NoteError, CaptureError.
    """
    line, history = checked_text(text), selected.history
    if not 1 <= number <= len(history):
        raise NoteError(f"there is no instruction {number}: the history has the numbers 1 to {len(history)}")
    pc = history.pc(number - 1)
    made: list[PlaceNote] = []

    def change(notes: NoteTuple) -> NoteTuple:
        if len(notes) >= NOTES_LIMIT:
            raise NoteError(f"the trace has {NOTES_LIMIT} notes, which is the most")
        free = max((it.id for it in notes), default=0) + 1
        made.append(PlaceNote(free, selected.hart, number, None if pc == GAP else pc, line))
        return (*notes, made[-1])

    lines = _change(session, change, progress)
    return made[-1], lines


def delete(session: Session, note_id: int, progress: Progress = silent) -> list[str]:
    """Delete the note with this *note_id*, and return lines for the user. Raises NoteError, CaptureError."""

    def change(notes: NoteTuple) -> NoteTuple:
        left = tuple(it for it in notes if it.id != note_id)
        if len(left) == len(notes):
            there = ", ".join(str(it.id) for it in notes)
            raise NoteError(f"there is no note {note_id}" + (f": there is {there}" if notes else ""))
        return left

    return _change(session, change, progress)


def rows(session: Session, decoded: Decoded) -> list[NoteRow]:
    """Return the notes, in the order of harts and of instructions."""
    notes = session.require_capture().capture.place_notes
    ordered = sorted(notes, key=lambda it: (it.hart, it.number or 0, it.id))
    return [row_of(note, decoded) for note in ordered]


def row_of(note: PlaceNote, decoded: Decoded) -> NoteRow:
    """Return the row of a note."""
    history, doubt, place = decoded.harts.histories.get(note.hart), "", None
    if note.number is None:
        doubt = "its place is not known any more: older trace was overwritten since"
    elif history is None or note.number > len(history):
        doubt = "this history has no such place"
    else:
        pc = history.pc(note.number - 1)
        if (None if pc == GAP else pc) != note.pc:
            doubt = "this history has another instruction there: is it read with the program that ran?"
        elif note.pc is not None:
            place = pc_place(history, decoded.program, note.pc, note.number - 1)
    if place is None and note.pc is not None:
        place = (note.pc,)
    return NoteRow(note.id, note.hart, note.number, place, note.text, doubt)


def with_notes(
    between: Iterable[Annotation], notes: Sequence[PlaceNote], hart: int, begin: int, end: int
) -> list[Annotation]:
    """Return what happened before the rows numbered *begin* to *end* - 1 of a hart, with what is noted there."""
    found = list(between)
    here = [it for it in notes if it.hart == hart and it.number is not None and begin <= it.number < end]
    for note in here:
        said = Happened("note", f"note {note.id}: {note.text}", None, True)
        at = next((it for it in found if it.number == note.number), None)
        if at is not None:
            at.events.append(said)
        elif note.number is not None:
            insort(found, Annotation(note.number, [said], None, None), key=attrgetter("number"))
    return found


def _change(session: Session, change: Callable[[NoteTuple], NoteTuple], progress: Progress) -> list[str]:
    reading = session.require_capture()
    path = file_of(session)
    if path is None:
        reading.capture = replace(reading.capture, place_notes=change(reading.capture.place_notes))
        return ["`trace save FILE` keeps it with the trace."]
    there = capture_file.load(path, progress)
    if _trace(there) != _trace(reading.capture):
        raise NoteError(f"{path}: has another trace by now than the one that was opened: `trace open` it again")
    notes = change(there.place_notes)
    lines: list[str] = []
    try:
        capture_file.save_notes(path, notes, progress)
    except CaptureError as error:  # in a folder where others keep captures, for instance
        notes = change(reading.capture.place_notes)
        lines = [warning(f"not kept in the file, {error}: `trace save FILE` keeps it in another one")]
    reading.capture = replace(reading.capture, place_notes=notes)
    return lines


def file_of(session: Session) -> str | None:
    """Return the capture file that was opened; None: the trace was recorded here, or is of no capture file."""
    path = session.opened
    if path is None or not os.path.isfile(path) or not capture_file.begins_as_capture(path):
        return None
    return path


def _trace(capture: Capture) -> tuple[object, ...]:
    return capture.created, capture.sinks, capture.records, capture.tandem, capture.branches
