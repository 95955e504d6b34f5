"""A toy transport and a toy source of traces are added as docs/architecture.md says, and used."""

from itertools import islice
from pathlib import Path

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.generations import procedures
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, SinkBuffer
from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session import program, report
from rvtrace_gdb.session.capture.model import (
    CapturedEncoder,
    CapturedSink,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.simulated.machine import Machine
from tests.session.board import BUFFER, DEMO, ENCODER, SINK, board, executed


class ToyTransport:
    """A `Target`: a wire straight to the bus of a machine. It counts what went over it."""

    def __init__(self, machine: Machine) -> None:
        self._bus = machine.bus
        self.words = 0

    def read32(self, address: int) -> int:
        self.words += 1
        return self._bus.read(address, 4)

    def write32(self, address: int, value: int) -> None:
        self.words += 1
        self._bus.write(address, 4, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        return b"".join(self.read32(at).to_bytes(4, "little") for at in range(address, address + nbytes, 4))


def test_a_toy_transport_captures_a_trace(tmp_path: Path) -> None:
    there = board(tmp_path)
    transport = ToyTransport(there.machine)
    target: Target = transport
    encoder = Component(target, ENCODER, RATIFIED["encoder"], "encoder0")
    sink = Component(target, SINK, RATIFIED["ram_sink"], "ram0")
    graph = Graph.build([sink, encoder], [("encoder0", "ram0")])
    steps = procedures(graph)
    in_force = steps.start(graph, GraphRequest(buffers={"ram0": SinkBuffer(BUFFER, 0x1000)}))
    retired = there.run(500)
    assert steps.stop(graph).failures == ()
    trace = steps.drain_all(graph, in_force).drained["ram0"].data
    image = Image.from_elf(str(DEMO))
    trace_options = registry.options_of_encoder(CapturedEncoder(0, in_force.encoders[0]))
    history = registry.decode(trace, image, trace_options).histories[0]
    assert list(history.pcs()) == list(islice(executed(), retired))
    assert transport.words > 100


class ToySource(TraceSource):
    """A `TraceSource`: a program that ran elsewhere; each read-out brings `PIECE` instructions more."""

    PIECE = 300

    def __init__(self, pcs: list[int], image: Image) -> None:
        self.tracing = self.incomplete = True
        self.failure: RvtraceError | None = None
        self.notes = ["a toy made this"]
        self._pcs, self._image = pcs, image
        self._ran = 0
        self._captured = capture_of(RawImport("toy", b"", EncoderOptions().of_decoder, image))

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        return self._captured.encoders

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return self._captured.sinks

    def started(self) -> list[str]:
        return [report.line("tracing", "a toy"), *(report.line("note", note) for note in self.notes)]

    def status(self) -> list[str]:
        return [report.line("toy", f"{self._ran} instructions")]

    def ended(self) -> list[str]:
        return self.status()

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        return None

    def unread(self) -> int:
        return len(self._pcs) - self._ran

    def read_out(self, progress: Progress) -> None:
        if not self.tracing:
            return
        self._ran = min(self._ran + self.PIECE, len(self._pcs))
        sent: list[bytes] = []
        encoder = Encoder(EncoderOptions(), sent.append)
        encoder.start(Sync.TRACE_ENABLE)
        encoder.retire(list(blocks_from_pcs(self._pcs[: self._ran], self._image)))
        encoder.stop(Evcode.TRACE_DISABLED)
        self._captured = capture_of(RawImport("toy", b"".join(sent), EncoderOptions().of_decoder, self._image))
        self.incomplete = False

    def stop(self, progress: Progress) -> None:
        self.read_out(progress)
        self.tracing = False

    def abandon(self) -> None:
        self.tracing = False

    def close(self) -> None: ...


def test_a_toy_source_is_traced_listed_stopped_and_saved(tmp_path: Path) -> None:
    pcs = list(islice(executed(), 1000))
    there = program.program_of(str(DEMO))
    source: TraceSource = ToySource(pcs, there.image())
    session, context = Session(), Context(str(DEMO))
    reading = DecodedCapture(program.new_capture("a toy", there.image()), there)
    assert session.begin(source, reading, "target:   a toy") == [*source.started()]
    session.check_free(ToySource)  # a trace of its own kind may replace it
    first = session.decoded(context)[0]
    assert list(first.pcs()) == pcs[:300]
    listing = session.history("", 10, context)
    rows = session.rows(listing.begin, listing.end)
    assert [row[1] for row in rows if isinstance(row[1], int)] == pcs[590:600]
    assert session.stop()[0] == "Tracing stopped." and not source.tracing
    assert list(session.decoded(context)[0].pcs()) == pcs[:900]
    file = tmp_path / "toy.rvt"
    session.save(file, context)
    session.close()
    opened = Session()
    opened.open(file, None)
    assert list(opened.decoded()[0].pcs()) == pcs[:900]
