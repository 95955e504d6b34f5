"""A trace being made on a target: started, read out as often as wanted, stopped.

Whatever happens on the way, bytes that were read are kept; what went wrong is in `failure` until a read-out succeeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from controlregs import procedures, timestamp
from controlregs.component import Component
from controlregs.encoder import CONTROL, DATA_CONTROL, ENCODER, INST_FEATURES, Format
from controlregs.errors import ComponentError, DrainFailed
from controlregs.fields import BLOCK_BYTES
from controlregs.ram_sink import RAM_SINK, START_LOW, WP_LOW, RamMode
from controlregs.request import EncoderInForce, TraceInForce, TraceRequest
from session import live_report, report
from session.captured import CapturedEncoder, CapturedRecords, CapturedSink, Unregistered
from session.context import Context
from session.description import Description, Encoder, RamSink
from session.errors import NotResumed, SetUpLost, Unsupported
from session.etrace_settings import Value
from session.link import Link
from session.ring import Ring
from support.errors import Cancelled, RvtraceError
from support.progress import Progress, silent

_SET_UP = {
    CONTROL: (
        "trTeInstMode", "trTeFormat", "trTeContext", "trTeInstSyncMode", "trTeInstSyncMax", "trTeInhibitSrc",
    ),
    INST_FEATURES: tuple(INST_FEATURES.by_name),
    timestamp.CONTROL: ("trTsMode", "trTsPrescale", "trTsEnable"),
    DATA_CONTROL: ("trTeDataNoValue", "trTeDataNoAddr", "trTeDataAddrCompress"),
}  # fmt: skip
"""The fields that decide what an encoder sends."""


@dataclass(frozen=True)
class Hardware:
    """The components of a description that are used together: the encoders, and the one sink they feed."""

    encoders: tuple[Encoder, ...]
    sink: RamSink

    @classmethod
    def of(cls, description: Description) -> "Hardware":
        """Raises `Unsupported` for what cannot be traced together yet."""
        if len(description.encoders) > 1:
            names = ", ".join(encoder.name for encoder in description.encoders)
            raise Unsupported(
                f"{description.file}: only one encoder can be traced yet, there are {names}: remove all but one"
            )
        return cls(description.encoders, description.sink_of(description.encoders[0]))

    @property
    def registers(self) -> tuple[range, ...]:
        """The addresses of the components' registers."""
        bases = [*(encoder.base for encoder in self.encoders), self.sink.base]
        return tuple(range(base, base + BLOCK_BYTES) for base in bases)


class LiveTrace:
    """A trace on the target behind *link*. `start` makes one."""

    def __init__(
        self, link: Link, hardware: Hardware, sink: Component, encoders: Sequence[Component], ring: Ring
    ) -> None:
        self.link, self.hardware = link, hardware
        self._sink, self._encoders, self._ring = sink, encoders, ring
        self.xlen: int | None = None
        """Of the harts, once it is known."""
        self.tvec: int | None = None
        """Where traps lead, as far as it is known."""
        self.in_force: TraceInForce
        self.captured: CapturedSink
        self.tracing = False
        """The components are enabled, or are to be again after an interruption."""
        self.failure: RvtraceError | None = None
        """Why the last read-out is not complete, or the trace could not be resumed after it."""
        self.behind = False
        """The buffer may hold more than was read out."""
        self.notes: list[str] = []

    @classmethod
    def start(cls, link: Link, hardware: Hardware, request: TraceRequest, progress: Progress = silent) -> "LiveTrace":
        """Set up and start everything; what was in the buffer is lost. Raises ComponentError and transport errors."""
        ring = Ring(link)
        sink = Component(ring, hardware.sink.base, RAM_SINK, hardware.sink.name)
        encoders = [Component(ring, encoder.base, ENCODER, encoder.name) for encoder in hardware.encoders]
        trace = cls(link, hardware, sink, encoders, ring)
        trace.in_force = procedures.start(sink, encoders, request, progress)
        names = tuple(encoder.name for encoder in hardware.encoders)
        trace.captured = CapturedSink(trace.in_force.sink, b"", False, 0, names, ())
        trace.notes = list(trace.in_force.notes)
        trace.tracing = trace.behind = True
        ring.start = trace.in_force.sink.start
        return trace

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        pairs = zip(self.hardware.encoders, self.in_force.encoders, strict=True)
        return tuple(CapturedEncoder(encoder.hart, now, self._unregistered(encoder, now)) for encoder, now in pairs)

    def _unregistered(self, encoder: Encoder, in_force: EncoderInForce) -> Unregistered:
        """What is known of an encoder and not from its registers."""
        if in_force.format != Format.E_TRACE:
            return Unregistered()
        known: dict[str, Value] = {} if self.xlen is None else {"iaddress_width": self.xlen}
        if self.tvec is not None and in_force.feature("trTeInstNoTrapAddr"):
            known["trap_vector"] = f"{self.tvec:#x}"
        return Unregistered(etrace={**known, **encoder.etrace})

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return (self.captured,)

    @property
    def records(self) -> tuple[CapturedRecords, ...]:
        return ()

    def started(self) -> list[str]:
        """What was set up, and what was not granted, a line each."""
        return live_report.started(self)

    def status(self) -> list[str]:
        """The components as they are now, as far as they can be asked, and what is known to be lost, a line each."""
        return live_report.status(self)

    def ended(self) -> list[str]:
        """What the sink held when the trace was stopped."""
        return [report.sink(self.in_force.sink, None, self.captured)]

    def told(self, context: Context) -> None:
        """Where traps lead, if gdb says it."""
        self.tvec = self.tvec if context.tvec is None else context.tvec

    def components(self) -> tuple[procedures.SinkStatus, tuple[procedures.EncoderStatus, ...]]:
        """The state of the components now. Raises ComponentError and transport errors."""
        return procedures.status(self._sink, self._encoders)

    def unread(self) -> int:
        """About how many bytes reading out would take from the target. Raises as `components`."""
        sink, _ = self.components()
        whole = self.in_force.sink.size
        if sink.wrapped or self.captured.wrapped:
            return whole
        return min(max(0, sink.pointer - self.in_force.sink.start - len(self.captured.data)), whole)

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """The same twice: nothing ran in between. None: that cannot be told. *runs*: how often the target was resumed.

        Reading out makes some encoders send messages, which in a full ring cost the oldest ones and renumber the rows,
        so that paging backward would never get anywhere.
        """
        if runs is None:
            return None
        try:
            return (runs, *self.components()) if self.link.state() == "halted" else None
        except RvtraceError:
            return None

    def read_out(self, progress: Progress = silent) -> None:
        """Bring `captured` up to date and go on tracing. Raises only what *progress* raises.

        An encoder keeps its last messages until it is disabled, so it is, for the moment the read-out takes; the sink's
        write pointer stays, so that the ring goes on.
        """
        if not self.tracing:
            if self.behind:
                self._read(progress)
            return
        try:
            self._read(progress)
        finally:
            if self.tracing:
                self._resume()

    def stop(self, progress: Progress = silent) -> None:
        """End the trace and bring `captured` up to date. Raises only what *progress* raises."""
        try:
            if self.tracing or self.behind:
                self._read(progress)
        finally:
            self.tracing = False

    def abandon(self) -> None:
        """Touch the target no more; it is being used for something else."""
        self.tracing = self.behind = False
        self.failure = None

    def close(self) -> None:
        """End the link; a trace that runs goes on in the target."""
        self.link.close()

    def _read(self, progress: Progress) -> None:
        self.failure, self.behind = None, True
        try:
            self._stop_components(progress)
            self._check_sink()
            self._prepare_ring()
            drained = procedures.drain(self._sink, self.in_force.sink, progress)
        except Cancelled:
            raise
        except DrainFailed as error:
            self.failure = error
            self._keep(error)
        except RvtraceError as error:
            self.failure = error
        else:
            self.behind = False
            overwritten = drained.wrapped and not self.in_force.sink.stop_on_wrap
            self.captured = replace(self.captured, data=drained.data, wrapped=overwritten, missing=0)
            if drained.wrapped and not overwritten:
                self.tracing = False  # the sink has stopped by itself
            self._check_encoders()

    def _check_sink(self) -> None:
        """Raises `SetUpLost` when the buffer is not where it was: what its registers say now is not about our trace."""
        before = self.in_force.sink
        if before.mode is not RamMode.SMEM or not self._sink.get(RAM_SINK.control, "trRamActive"):
            return
        if self._sink.read(START_LOW) != before.start & 0xFFFF_FFFF:
            self.tracing = False
            raise SetUpLost(self._sink.name, START_LOW.name)

    def _check_encoders(self) -> None:
        """An encoder that was reset must not go on: what it would send then cannot be read as what it sent before."""
        try:
            for component, before in zip(self._encoders, self.in_force.encoders, strict=True):
                values = (before.control, before.features, before.ts_control, before.data_control)
                for (register, fields), value in zip(_SET_UP.items(), values, strict=True):
                    if (component.read(register) ^ value) & register.mask(*fields):
                        raise SetUpLost(component.name, register.name)
        except SetUpLost as error:
            self.tracing, self.failure = False, error
        except RvtraceError:
            return  # resuming will meet it, and say so

    def _keep(self, error: DrainFailed) -> None:
        """What was read before is worth more than a shorter piece, even if that is newer."""
        overwritten = error.wrapped and not self.in_force.sink.stop_on_wrap
        missing = error.wanted - len(error.partial)
        if len(error.partial) >= len(self.captured.data):
            self.captured = replace(self.captured, data=error.partial, wrapped=overwritten, missing=missing)
        else:
            known = len(error.partial) if overwritten else len(self.captured.data)
            self.captured = replace(self.captured, missing=error.wanted - known)

    def _stop_components(self, progress: Progress) -> None:
        try:
            stopped = procedures.stop(self._sink, self._encoders, progress)
        except ComponentError as error:
            self._note(str(error))  # what reached the sink can still be read, if that has stopped
            return
        for note in stopped.notes:
            self._note(note)
        lost = sorted({*self.captured.lost, *stopped.lost})
        self.captured = replace(self.captured, lost=tuple(lost))

    def _prepare_ring(self) -> None:
        """What is known of the buffer stays true as long as nothing was overwritten."""
        in_memory = self.in_force.sink.mode is RamMode.SMEM
        valid = in_memory and not self.captured.wrapped and not self._sink.get(WP_LOW, "trRamWrap")
        self._ring.known = self.captured.data if valid else b""

    def _resume(self) -> None:
        self.behind = True
        try:
            procedures.enable(self._sink)
            for component, before in zip(self._encoders, self.in_force.encoders, strict=True):
                procedures.enable(component)
                procedures.begin(component, data=bool(before.data("trTeDataTracing")))
        except RvtraceError as error:
            self.failure = self.failure or NotResumed(error)

    def _note(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)
