"""A trace that can be decoded in pieces (`session.formats.long_traces.trace_pieces`)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.session.capture.model import Captured, CapturedEncoder, CapturedSink
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.format import PiecewiseDecoding
from rvtrace_gdb.session.formats.long_traces.trace_pieces import MakeDecoder
from rvtrace_gdb.session.formats.sinks import feeding, options_of, sources


class Indivisible(Exception):
    """A trace that cannot be decoded in pieces. Its text says why, of "it"."""


class DivisibleTrace(NamedTuple):
    """The bytes of one sink, and what decodes them. *times*: they may have times; *wrapped*: older trace was
    overwritten.
    """

    data: bytes
    make: MakeDecoder
    program: ContextImages
    times: bool
    fed: list[CapturedEncoder]
    has_sources: bool
    wrapped: bool

    def harts(self, lengths: Mapping[int, int]) -> dict[int, int]:
        """Return the hart of each source. *lengths*: how many instructions each has sent."""
        return dict(sources(self.fed, has_sources=self.has_sources, sizes=lengths))


def divisible(
    sinks: Sequence[Captured], encoders: tuple[CapturedEncoder, ...], program: ContextImages
) -> DivisibleTrace:
    """Return the trace of a capture. Raises `NoTrace`, `Unsupported`, and Indivisible: it has several sinks, or its
    format cannot be decoded in pieces.
    """
    sink = sinks[0]
    if len(sinks) != 1:
        raise Indivisible(f"it is in {len(sinks)} sinks")
    if not isinstance(sink, CapturedSink):
        raise Indivisible("its records are no N-Trace or E-Trace")
    if sink.breaks:
        raise Indivisible("parts of it are missing")
    if sink.marks:
        raise Indivisible("what ran is known from an operating system's records, too")
    fed = feeding(sink, encoders)
    trace_options = options_of(fed)
    trace_format = registry.format_of(trace_options)
    begun = trace_format.decoding(b"", program, trace_options, wrapped=sink.wrapped, stop_at_error=False)
    if not isinstance(begun, PiecewiseDecoding):
        raise Indivisible("a decoder of its format cannot go on in the middle")
    times = trace_format.has_times(trace_options)
    return DivisibleTrace(
        sink.data, begun.make, program, times, fed, trace_format.has_sources(trace_options), sink.wrapped
    )
