"""What ran in the Common Trace Format, which Trace Compass and Babeltrace read: a stream for each hart.

The form is a folder of files; what is written is a tar archive of it, a single file that can go through a pipe. Trace
Compass imports archives; `tar xf` makes the folder for Babeltrace. Functions begin and end, traps are taken, and what
is missing is there; each event has the number of its instruction.
"""

import tarfile
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import BinaryIO

from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.decode.calls.slices.drawn import SliceBegin, SliceEnd, Slices, SliceTrack
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.missing import missing_parts
from rvtrace_gdb.session import version
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import cause
from rvtrace_gdb.session.exports.profiles.stacks import ProfileNames
from rvtrace_gdb.session.exports.timelines.axis import INSTRUCTIONS, TICKS
from rvtrace_gdb.session.exports.timelines.ctf_stream import (
    METADATA,
    NOT_KNOWN,
    CtfEvent,
    CtfStream,
    EventId,
    entry_fields,
    exit_fields,
    missing_fields,
    task_fields,
    trap_fields,
)
from rvtrace_gdb.session.exports.timelines.tracks import BACK
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.support.text import printable

FOLDER = "trace"
MOST = 1_000_000
"""So many functions that begin, of each hart, are a trace that viewers take: some 80 MB."""
_AT_ONCE = 1 << 12
_INTERRUPT = {TrapKind.INTERRUPT: 1, TrapKind.EXCEPTION: 0}


class TooManyCalls(RvtraceError):
    """A part that has too many calls."""

    def __init__(self, hart: int) -> None:
        super().__init__(
            f"ctf: more than {MOST} functions begin on hart {hart}: choose a part with --range A,B or --time T,T"
        )


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the events of all harts. Raises TooManyCalls."""
    axes = [HistoryAxis(hart.history) for hart in trace.harts]
    timed = all(axis.timed for axis in axes)
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
        text = METADATA.format(version=printable(version.tool()), unit=TICKS if timed else INSTRUCTIONS)
        with TemporaryFile() as metadata:
            metadata.write(text.encode())
            _add(archive, "metadata", metadata)
        for hart, axis in zip(trace.harts, axes, strict=True):
            with TemporaryFile() as made:
                stream = CtfStream(made, hart.hart)
                for number, event in enumerate(_hart_events(hart, progress)):
                    if number % _AT_ONCE == 0:
                        progress("writing (events)", number, None)
                    stream.add(axis(event.position) if timed else event.position, event)
                stream.flush()
                _add(archive, f"hart{hart.hart}", made)
    return Written(None, {BACK: sum(axis.goes_back for axis in axes)})


def _add(archive: tarfile.TarFile, name: str, content: BinaryIO) -> None:
    """Add a file to the folder. It has no date, so that the same trace is the same archive."""
    member = tarfile.TarInfo(f"{FOLDER}/{name}")
    member.size, member.mode = content.tell(), 0o644
    content.seek(0)
    archive.addfile(member, content)


def _hart_events(trace: ExportedTrace, progress: Progress) -> Iterator[CtfEvent]:
    """Yield the events of a hart in order. Slices are in order on each track alone."""
    found = [*_missing_events(trace), *_trap_events(trace), *_call_events(trace, progress)]
    found.sort(key=lambda event: event.position)
    yield from found


def _call_events(trace: ExportedTrace, progress: Progress) -> Iterator[CtfEvent]:
    """Yield where functions begin and end. Raises TooManyCalls."""
    names, tasks, number = ProfileNames(trace, progress), dict[SliceTrack, int](), 0
    open_names: dict[int, list[str]] = {}
    slices = Slices(trace.calls(progress), trace.part, lambda begin, end: False, trace.owners(progress))
    for item in slices.drawn_items(progress):
        is_new, task = item.track not in tasks, tasks.setdefault(item.track, len(tasks))
        if is_new and item.track.owner is not None:
            yield CtfEvent(item.position, EventId.TASK, task_fields(task, printable(item.track.owner)))
        stack = open_names.setdefault(task, [])
        if isinstance(item, SliceBegin):
            number += 1
            if number > MOST:
                raise TooManyCalls(trace.hart)
            name = names.name(names.frame_at(item.position, item.function, trap=item.trap))
            stack.append(name)
            address = 0 if item.function == UNKNOWN else item.function
            fields = entry_fields(address, task, name, called=item.called)
            yield CtfEvent(item.position, EventId.FUNCTION_ENTRY, fields)
        elif isinstance(item, SliceEnd):
            yield CtfEvent(item.position, EventId.FUNCTION_EXIT, exit_fields(task, stack.pop()))


def _trap_events(trace: ExportedTrace) -> Iterator[CtfEvent]:
    for event in trace.history.events_between(trace.part.start, trace.part.stop):
        if event.kind is EventKind.TRAP and isinstance(event.fact, Trap):
            interrupt = _INTERRUPT.get(event.fact.kind, NOT_KNOWN)
            number = NOT_KNOWN if event.fact.cause is None else event.fact.cause
            yield CtfEvent(event.position, EventId.TRAP, trap_fields(interrupt, number, printable(event.text)))


def _missing_events(trace: ExportedTrace) -> Iterator[CtfEvent]:
    """Yield the gaps, and the losses whose place is not known where they were noticed."""
    for it in missing_parts(trace.history, trace.part):
        yield CtfEvent(it.begin, EventId.MISSING, missing_fields(cause(it.event), printable(it.event.as_gap)))
