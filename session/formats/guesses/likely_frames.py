"""Guesses that raw bytes, which were taken for a trace itself, are a trace in CoreSight frames."""

from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.frames import FrameForm
from rvtrace_gdb.decode.coresight.likelihood import likely_form
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.formats.guesses.detect_options import better_layout, nonsense, odd_messages
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions

_LOOKED_AT = 1 << 12  # bytes
_LEAST = 1 << 5  # bytes of a source
_MUCH = 4  # so many times less nonsense is much better
_FEW = 2


def frames_that_make_sense(data: bytes, options: EncoderTraceOptions, xlen: int, wrapped: bool) -> FrameForm | None:
    """Return the form of frames in which the beginning of *data* makes far more sense than as it is, with *options* or
    better ones; None if it does in none.
    """
    data = data[:_LOOKED_AT]
    form = likely_form(data)
    if form is None:
        return None
    trace = DemultiplexedTrace(form, data)
    streams = [stream for it in trace.atb_ids if len(stream := trace.stream(it)) >= _LEAST]
    size = sum(map(len, streams))
    if 2 * size < len(data):
        return None
    outside = _least_nonsense(data, options, xlen, wrapped)
    if outside <= _FEW:
        return None
    inside = 0
    for stream in streams:
        inside += _least_nonsense(stream, options, xlen, wrapped)
        if _MUCH * inside > outside:  # to look for better options in every source takes long
            return None
    return form


def _least_nonsense(data: bytes, options: EncoderTraceOptions, xlen: int, wrapped: bool) -> int:
    found = better_layout(data, options, xlen, wrapped=wrapped) or options
    if isinstance(found, EtraceTraceOptions):
        return nonsense(data, found, xlen, wrapped=wrapped)
    return odd_messages(data, found, xlen, wrapped=wrapped)
