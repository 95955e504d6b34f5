"""Captures of other traces for `rvtrace tandem`: what is known of the values in them, as a tandem trace."""

import argparse
from dataclasses import replace

from rvtrace_gdb.console.options import raw
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats.raw_import import tandem_capture
from rvtrace_gdb.session.past.as_tandem import TandemOfPast
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError


class NoValues(RvtraceError):
    """A capture whose trace has no values, and nothing from which they could be reconstructed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: it has no tandem trace, and no registers and memory from which values could be reconstructed:"
            " start the trace with the hart halted (docs/values.md)"
        )


def known_of(capture: Capture, args: argparse.Namespace, progress: Progress) -> tuple[Capture, list[str]]:
    """Return what is known of the values of a hart as a capture with a tandem trace, and what is to say about that.

    Raises NoValues, and as `Session.open_capture` and `Session.selected` do.
    """
    session, name = Session(), raw.title(args.file)
    session.open_capture(capture, name, raw.one_elf(args))
    it = session.selected(Context(hart=args.hart), progress)
    past = past_of(session, it, progress)
    if past is None:
        raise NoValues(name)
    past.prepare(progress)
    trace = TandemOfPast(past, it.program)
    data = b"".join(trace.pieces(progress))
    made = tandem_capture(args.file, data, trace.parameters, it.program.base, hart=it.hart)
    elf = made.elf if capture.elf is None else capture.elf
    note = "its values are reconstructed from what ran and from what was known where the trace begins, or ends"
    return replace(made, target=capture.target, created=capture.created, elf=elf), [f"note: {note}"]
