"""CoreSight frames, of buffers and of pins, with the N-Trace of two harts in them, damaged anywhere."""

from __future__ import annotations

from rvtrace_gdb.decode.coresight.deformatter import Deformatter
from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.frames import BARRIER, FrameForm
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.session.formats.framed_sinks import FramedSinks
from rvtrace_gdb.session.formats.framed_stream import FramedFollower
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of
from rvtrace_gdb.session.formats.sinks import SinkDecoding
from rvtrace_gdb.session.formats.stream import StreamSource
from tests.fuzz.exercise import Exercise, Input
from tests.fuzz.kinds.ntrace import ntrace_of
from tests.session.formats.imports.test_framed import funnel

_BYTES = 70  # of each hart's trace
_STEP = 29  # bytes of a piece


class CoresightFrames(Exercise):
    """A variant is the form of the frames."""

    def __init__(self) -> None:
        trace = ntrace_of(1)
        self.program, self.options = trace.program, trace.trace_options
        assert isinstance(self.options, Options)
        self.seeds = []
        for form in FrameForm:
            frames = funnel({0x10: trace.data[:_BYTES], 0x11: trace.data[:_BYTES]}, form=form)
            self.seeds.append(Input(form.value, frames))
            self.seeds.append(Input(form.value, frames[32:96] + BARRIER + frames))

    def run(self, variant: str, data: bytes) -> None:
        form = FrameForm(variant)
        self._check_pieces(form, data)
        frames, (options, program) = ImportedFrames(form), (self.options, self.program)
        assert isinstance(options, Options)
        capture = capture_of(RawImport("it", data, options, program.base, frames=frames))
        framed = FramedSinks()
        found = framed.completed(SinkDecoding(framed.streams(capture.sinks), capture.encoders, program).result())
        total, *parts = found.accounting
        assert total == len(data) == sum(parts) and min(parts) >= 0, found.accounting
        follower = FramedFollower(StreamSource(options, None, False, frames), frames, program)
        for at in range(0, len(data), _STEP):
            list(follower.feed(data[at : at + _STEP]))
        list(follower.finish())
        assert follower.counts.bytes == len(data)
        assert len(follower.remarks()) < 10

    def _check_pieces(self, form: FrameForm, data: bytes) -> None:
        """The pieces in which frames come change nothing, and every byte has a place of its own."""
        trace, deformatter = DemultiplexedTrace(form, data), Deformatter(form)
        for at in range(0, len(data), _STEP):
            list(deformatter.unpacked(data[at : at + _STEP]))
        list(deformatter.finish())
        accounting = deformatter.accounting
        assert accounting.total == len(data)
        assert trace.accounting.sources == accounting.sources
        for atb_id in trace.atb_ids:
            places = [trace.offset_of(atb_id, index) for index in range(len(trace.stream(atb_id)))]
            assert places == sorted(set(places)), "in their order"
