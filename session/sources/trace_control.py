"""A trace that encoders record on a target: it is started, read out repeatedly, and stopped.

Bytes that were read are kept whatever happens; `failure` has the last error until a read-out succeeds.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rvtrace_gdb.controlregs import generations
from rvtrace_gdb.controlregs.errors import ComponentAccess, ComponentError, TraceInvalid
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.controlregs.trace_control.procedures import GraphStatus
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, TraceRequest
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session import program as session_program
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.etrace_settings import SettingValue
from rvtrace_gdb.session.capture.model import (
    CapturedEncoder,
    CapturedSink,
    CapturedTrap,
    Unregistered,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.session.description.memory import believed
from rvtrace_gdb.session.description.model import Description, EncoderDescription
from rvtrace_gdb.session.errors import NotResumed, NotStopped, joined
from rvtrace_gdb.session.sources import TraceOwner, TraceSource, trace_control_lines
from rvtrace_gdb.session.sources.hardware import Hardware, unreadable
from rvtrace_gdb.session.sources.last_traps import LastTraps
from rvtrace_gdb.session.sources.live_sinks import IncrementalBuffer
from rvtrace_gdb.session.sources.notes import TraceNotes
from rvtrace_gdb.session.sources.notify_triggers import set_needed
from rvtrace_gdb.session.sources.options import Armed, arm, chosen_components, trace_request, unsupported_notes
from rvtrace_gdb.session.sources.started_components import StartedComponents
from rvtrace_gdb.session.target.link import (
    ConnectLink,
    Link,
    Marks,
    checked,
    halted_of,
    notes_of,
    open_link,
    pcs_of,
    power_states,
    states,
)
from rvtrace_gdb.session.target.target_state import LinkReader, SavedTarget, wishes_of
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent


class LiveTrace(TraceSource):
    """A trace on the target that *link* leads to. `start` creates one."""

    def __init__(self, link: Link, hardware: Hardware, components: StartedComponents, armed: Armed) -> None:
        self.link, self.hardware, self.components = link, hardware, components
        self.armed = armed
        """The triggers that switch the trace on and off in the harts."""
        self.xlen: int | None = None
        """The register width of the harts in bits, once it is known."""
        self.tvec: int | None = None
        """The address of the trap handler, if it is known."""
        self.tracing = True
        """The components are enabled, or will be again after an interruption."""
        self.failure: RvtraceError | None = None
        """Why the last read-out is incomplete, or why the trace could not be resumed after it."""
        self.incomplete = True
        """The buffers may hold more than was read out."""
        self._going: RvtraceError | None = None
        """Why encoders could not be stopped by the last attempt."""
        self._invalid = False
        """What could not be read by the last attempt is not valid: there is nothing more to read."""
        self._last_traps = LastTraps.through(link)
        self._ends: dict[int, int] = {}
        self._marks = Marks(link)
        self.notes = TraceNotes([*hardware.notes, *components.in_force.notes, *armed.notes])

    @classmethod
    def start(
        cls, link: Link, hardware: Hardware, request: TraceRequest, image: Image, progress: Progress = silent
    ) -> "LiveTrace":
        """Set up and start all components to trace the program in *image*; the contents of the buffers are lost. Raises
        ComponentError and transport errors.
        """
        rings = {sink.name: IncrementalBuffer(link) for sink in hardware.sinks}
        graph = hardware.graph(link, rings)
        with link.unpolled():
            armed = arm(link, hardware.encoders, request.triggers)
            try:
                in_force = generations.procedures(graph).start(graph, hardware.request(request), progress)
            except BaseException:
                armed.disarm()
                raise
            trace = cls(link, hardware, StartedComponents(graph, in_force, rings), armed)
            trace.notes += trace._needed_triggers(request, image)
            trace.notes += [*unreadable(link, in_force.ram_sinks), *notes_of(link)]
        return trace

    def _needed_triggers(self, request: TraceRequest, image: Image) -> list[str]:
        """Set the triggers that the encoders need, as they are set up now. Return lines about them."""
        requested = request.triggers.notify if request.triggers is not None else ()
        settings = {encoder.hart: encoder.in_force for encoder in self.encoders}
        known = len(self.armed.notes)
        lines = set_needed(self.armed, self.hardware.topology.description, settings, requested, image)
        return [*self.armed.notes[known:], *lines]

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        harts = {encoder.name: encoder for encoder in self.hardware.encoders}
        made = ((harts[now.name], now) for now in self.components.in_force.encoders)
        return tuple(CapturedEncoder(encoder.hart, now, self._unregistered(encoder, now)) for encoder, now in made)

    def _unregistered(self, encoder: EncoderDescription, in_force: EncoderSettings) -> Unregistered:
        """Return what is known of an encoder without its registers."""
        graph = self.components.in_force
        clock = graph.clocks.get(encoder.name)
        widths = {funnel.name: funnel.timestamp_bits for funnel in graph.funnels}
        bits = widths[clock] or None if clock and not in_force.timestamp_bits else None
        if in_force.format != TeFormat.E_TRACE:
            return Unregistered(timestamp_bits=bits, repeat_bits=encoder.repeat_bits)
        known: dict[str, SettingValue] = {} if self.xlen is None else {"iaddress_width": self.xlen}
        if self.tvec is not None and in_force.feature("trTeInstNoTrapAddr"):
            known["trap_vector"] = f"{self.tvec:#x}"
        if bits is not None and in_force.timestamps:
            known["timestamp_bytes"] = -(-bits // 8)
        return Unregistered(etrace={**known, **encoder.etrace})

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return tuple(sink.captured for sink in self.components.sinks)

    @property
    def ends(self) -> Mapping[int, int]:
        return self._ends

    @property
    def traps(self) -> tuple[CapturedTrap, ...]:
        return self._last_traps.traps(self.sinks)

    def ask_of_trap(self, hart: int) -> None:
        self._last_traps.ask(hart, self.sinks)

    def started(self) -> list[str]:
        """Return lines about what was set up, and which requests were not granted."""
        return trace_control_lines.started(self)

    def status(self) -> list[str]:
        """Return lines about the components' current state, as far as it can be read, and known losses."""
        return trace_control_lines.status(self)

    def ended(self) -> list[str]:
        """Return lines about what the sinks held when the trace was stopped."""
        return trace_control_lines.ended(self)

    def unlisted(self) -> list[str]:
        return self.notes.unlisted()

    def use_context(self, context: Context) -> None:
        """Take over the address of the trap handler, if gdb sent it, and it is that of this target."""
        if context.tvec is not None and self.is_of(context.openocd):
            self.tvec = context.tvec

    def is_of(self, openocd: str | None) -> bool:
        return self._marks.is_own(openocd)

    def components_now(self) -> GraphStatus:
        """Return the components' current state, as far as it can be read. Raises transport errors."""
        with self.link.unpolled():
            self._ask_power()
            return self.components.status()

    def _ask_power(self) -> None:
        """Find out which harts are off: the registers of their components are not touched. Raises transport errors."""
        if self.hardware.power is not None:
            self.hardware.power.ask()
            off = {hart: self.hardware.needing(hart) for hart in self.hardware.power.off}
            for line in self.components.leave_out(off):
                self.notes.once(line)

    def harts(self) -> dict[int, str]:
        """Return the state of each traced hart ("halted", "running", ...). Raises transport errors."""
        asked = states if self.hardware.power is None else power_states
        return asked(self.link, [encoder.hart for encoder in self.hardware.encoders])

    def _harts_on(self) -> list[int]:
        """Return the traced harts that were on at the last `_ask_power`."""
        off = {} if self.hardware.power is None else self.hardware.power.off
        return [encoder.hart for encoder in self.hardware.encoders if encoder.hart not in off]

    def unread(self) -> int:
        """Return about how many bytes a read-out would fetch from the target. Raises as `components_now`."""
        with self.link.unpolled():
            return self.components.unread()

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """Return a value that stays the same as long as nothing runs, None if that is unknown. *runs*: how often the
        target was resumed.

        It avoids needless read-outs: these make some encoders send messages, which in a full ring overwrite the oldest
        ones and renumber the rows, so that paging backward would never advance.
        """
        if runs is None:
            return None
        try:
            with self.link.unpolled():
                now = self.components_now()
                return (runs, now) if set(states(self.link, self._harts_on()).values()) == {"halted"} else None
        except RvtraceError:
            return None

    def read_out(self, progress: Progress = silent) -> None:
        """Bring `captured` up to date and continue tracing. Raises only what *progress* raises.

        An encoder keeps its last messages until it is disabled, so it is disabled during the read-out; the sinks' write
        pointers are kept, so that the rings continue. One that would begin anew, and was not read to its end, does not:
        the trace waits for the next read-out.
        """
        if not self.tracing and not self.incomplete:
            return
        waited = self.waits
        with self.link.unpolled():
            try:
                self._read_sinks(progress)
                if waited:  # the harts may have run since, and the trace does not say where to
                    self.halted, self._ends = (), {}
            finally:
                if self.tracing and not self.waits:
                    self._resume_trace()

    @property
    def waits(self) -> bool:
        """Whether the trace goes on only when a sink was read to its end, whose ring would begin anew."""
        return self.tracing and any(sink.has_unread for sink in self.components.sinks)

    def stop(self, progress: Progress = silent) -> None:
        """End the trace and bring `captured` up to date. Raises what *progress* raises, and NotStopped."""
        with self.link.unpolled():
            self._going = None
            try:
                if self.tracing or self.incomplete:
                    self._read_sinks(progress, ending=True)
                    for encoder in self.encoders:  # later its hart may have run on without a trace
                        if encoder.in_force.format == TeFormat.N_TRACE:  # E-Trace has the causes of traps
                            self.ask_of_trap(encoder.hart)
                    if self.state is not None and not self.incomplete:
                        self.state.end(self.halted)
            finally:
                self._last_traps.may_ask(())
                self._note_end()
                self._give_back(progress)
        if self.tracing and self._going is not None:
            raise NotStopped(self._going)

    def _note_end(self) -> None:
        """Note that the trace has ended, unless encoders go on: then all components do."""
        if self._going is None or not self.tracing:
            self.tracing = False
            self._disarm()
        elif isinstance(self._going, ComponentError | Cancelled) and not self.waits:  # the others can be reached
            self._resume_trace()

    def _give_back(self, progress: Progress = silent) -> None:
        """Give back what others on the target use, too, once its trace was read."""
        if self.tracing or (self.incomplete and not self._invalid):
            return
        self.incomplete = False
        with suppress(RvtraceError):
            for problem in self.components.give_back(progress):
                self.notes.once(problem)

    def abandon(self) -> None:
        """Do not access the target any more: another trace uses it."""
        self._disarm()
        with suppress(RvtraceError):
            self.components.give_back()
        self.tracing = self.incomplete = False
        self.failure = None

    def close(self) -> None:
        """End the link; a running trace continues on the target."""
        self.link.close()

    def _read_sinks(self, progress: Progress, *, ending: bool = False) -> None:
        self.failure, self.incomplete, self.halted, self._invalid = None, True, (), False
        try:
            self._ask_power()
        except RvtraceError as error:
            self.failure = error
            return
        self._last_traps.may_ask(())
        if self.state is not None:
            self.state.forget_end()
        halted = halted_of(self.link, self._harts_on())
        try:
            refused = self._stop_components(progress, ending=ending)
            lost = self.components.lost_sinks()
            self.tracing = self.tracing and not lost
            failures = lost or self._drain(progress) or refused
        except Cancelled:
            for sink in self.components.sinks:
                sink.interrupted = True
            raise
        except RvtraceError as error:
            self.failure = error
            return
        self._invalid = bool(failures) and all(isinstance(failure, TraceInvalid) for failure in failures)
        if failures:
            self.failure = joined(failures)
            return
        self.incomplete, self.halted = False, halted if self.tracing else ()
        self._check_encoders()
        self._ends = pcs_of(self.link, self._harts_on())
        if self.tracing:
            self._last_traps.may_ask(halted)

    def _drain(self, progress: Progress) -> list[RvtraceError]:
        """Read all sinks, and return the errors of those that failed. Raises what *progress* and the transport raise.
        """
        failures = self.components.drain(progress)
        if any(sink.full for sink in self.components.sinks):
            self.tracing = False
        return failures

    def _check_encoders(self) -> None:
        """End the trace if an encoder was reset: what it would send next cannot continue what it sent before."""
        try:
            reset = self.components.reset_encoder()
        except RvtraceError:
            return  # resuming will fail the same way, and report it
        if reset is not None:
            self.tracing, self.failure = False, reset

    def _stop_components(self, progress: Progress, *, ending: bool) -> list[RvtraceError]:
        """Return the refused accesses to components that will be stopped again; the next time they may be granted."""
        self._going = Cancelled()
        try:
            stopped = self.components.stop(progress)
        except RvtraceError as error:
            self._going = error
            raise
        going = [failure for failure in stopped.failures if self.components.goes_on(failure)]
        self._going = joined(going) if going else None
        again = bool(going) if ending else any(isinstance(failure, ComponentAccess) for failure in stopped.failures)
        for failure in () if again else stopped.failures:  # else the trace goes on, and that is said
            self.notes.once(str(failure))  # trace in the sinks can still be read, if these have stopped
        for note in stopped.notes:
            self.notes.once(note)
        return [failure for failure in stopped.failures if again]

    def _resume_trace(self) -> None:
        self.incomplete = True
        try:
            self.components.resume()
        except RvtraceError as error:
            self.failure = self.failure or NotResumed(error)

    def _disarm(self) -> None:
        """Remove the harts' triggers; those of a hart that cannot be reached now, at the next call."""
        for line in self.armed.disarm():
            self.notes.once(line)


def start(
    session: TraceOwner,
    description: Description,
    context: Context,
    options: Mapping[str, Any],
    connect: ConnectLink,
    progress: Progress = silent,
) -> list[str]:
    """Start tracing, and drop the trace that the session had. Return lines about what was set up.

    *connect* opens the link to OpenOCD. Raises NoElf, BadElf, WrongXlen, DescriptionError, BadOption, Busy, and the
    errors of the transport and the components.
    """
    hardware = Hardware.from_description(description, *chosen_components(options))
    image = session_program.program_of(context.elf).image()
    request = trace_request(options, image)
    wishes = wishes_of(options, context.save_memory)
    link = open_link(description, hardware.encoders[0], checked(connect, context.openocd), hardware.encoders[1:])
    try:
        hardware = hardware.powered(link)
        session_program.check_xlen(image, description, hardware.encoders[0].hart, link)
        session.check_free(LiveTrace)
        if session.live is not None:
            session.live.abandon()
        live = LiveTrace.start(link, hardware, request, image, progress)
    except BaseException:
        link.close()
        raise
    live.xlen = image.xlen
    live.notes += unsupported_notes(options)
    harts = [encoder.hart for encoder in hardware.encoders]
    live.state = SavedTarget(LinkReader(link), harts, image, believed(description), wishes)
    with link.unpolled():
        live.state.begin(progress)
    live.notes += live.state.unsaid()
    target = session_program.CodeOnTarget(link, hardware.registers)
    program = session_program.program_of(context.elf, target, context.others)
    capture = session_program.new_capture(description.name, image)
    return session.begin(live, DecodedCapture(capture, program, target), report.target(description))
