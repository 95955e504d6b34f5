"""What is known of the values of a hart as a tandem trace: as a capture, and for exports that are made of values."""

from dataclasses import replace
from typing import BinaryIO

from rvtrace_gdb.decode.history.events import Loss, Note, Stop
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode, tandem_of
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import UNKNOWN_TIMES
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from rvtrace_gdb.session.past.as_tandem import TandemOfPast
from rvtrace_gdb.session.past.choice import PastSource, past_of
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


class NoValues(RvtraceError):
    """A trace without values, and nothing from which they could be reconstructed. *name*: what the trace is called."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: it has no tandem trace, and no registers and memory from which values could be reconstructed:"
            " start the trace with the hart halted (docs/values.md)"
        )


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write a capture. Raises NoValues, NoTrace."""
    capture, left_out = trace.session.capture(), dict[str, int]()
    if tandem_of(trace.history) is None:
        capture = known_as_tandem(trace.session, trace.selected, f"hart {trace.hart}", progress)
        left_out[UNKNOWN_TIMES] = len(trace.history.gap_positions)
    file.write(capture_file.dump(capture))
    return Written(None, left_out)


def known_as_tandem(session: PastSource, selected: SelectedHistory, name: str, progress: Progress = silent) -> Capture:
    """Return what is known of the values in a history as a capture with a tandem trace. *name*: the trace's.

    Raises NoValues, NoTrace.
    """
    groups, data = _groups(session, selected, name, progress)
    made = tandem_capture(name, data, groups.parameters, selected.program.base, hart=selected.hart)
    capture = session.capture()
    elf = made.elf if capture.elf is None else capture.elf
    return replace(made, target=capture.target, created=capture.created, elf=elf)


def tandem_trace(trace: ExportedTrace, progress: Progress = silent) -> DecodedTandem:
    """Return the tandem trace of a history, or what is known of the values in it as one, with its gaps.

    Raises NoValues.
    """
    found = tandem_of(trace.history)
    if found is not None:
        return found
    groups, data = _groups(trace.session, trace.selected, f"hart {trace.hart}", progress)
    found = decode(data, trace.program, groups.parameters, progress=progress)
    found.index.breaks += [_break(group, trace.history.gap_at(position)) for group, position in groups.gaps]
    return found


def _break(group: int, gap: Event) -> Break:
    assert isinstance(gap.fact, Loss | Stop | Note)
    return Break(group, max(gap.offset, 0), gap.fact, loss=gap.is_loss)


def _groups(
    session: PastSource, selected: SelectedHistory, name: str, progress: Progress
) -> tuple[TandemOfPast, bytes]:
    past = past_of(session, selected, progress)
    if past is None:
        raise NoValues(name)
    past.prepare(progress)
    groups = TandemOfPast(past, selected.program)
    return groups, b"".join(groups.pieces(progress))
