"""A trace that TACIT's encoder writes into memory: it is started, read out repeatedly, and stopped.

A Rocket or Shuttle that is halted by a debugger goes on to retire instructions, those of the Debug ROM, and its encoder
would go on to write packets of them, without a limit. So the encoder is on only while the hart runs: OpenOCD switches
it, in the handlers of its events. A hart that runs is read out without stopping its encoder.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rvtrace_gdb.controlregs.tacit.procedures import DISABLED, ENABLED, TacitAccess, TacitStatus, sink_of
from rvtrace_gdb.controlregs.tacit.registers import TR_TE_CTRL, BranchModeCode
from rvtrace_gdb.decode.branches.tacit.reader import ENTRIES_SETTING, MODE_REGISTER, OFF_IN_DEBUG_MODE
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import BranchPort, CapturedBranches
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import Description, TacitDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources import TraceOwner
from rvtrace_gdb.session.sources.options import chosen_components
from rvtrace_gdb.session.sources.transfers import TransferSource, begin_transfers, refuse_filters, without_effect
from rvtrace_gdb.session.target.link import ConnectLink, Link, halted_of
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import counted

_PREDICTION = "branch_prediction"
_WORD = 4
_NO_LIMIT = "the sink has no limit: if it is not stopped before its buffer is full, it overwrites what lies behind it"
_REGISTERS = 0x100  # bytes
_MARK = "rvtrace-tacit"


class _TacitBuffer:
    """The trace of one encoder. *data*: what was read; *read*: bytes of those that are in the buffer now; *ended*: the
    encoder is off, and what it sent is in the buffer; *full*: the buffer is; *overflow*: the bytes that were written
    behind it.
    """

    def __init__(self, link: Link, encoder: TacitDescription, mode: BranchModeCode) -> None:
        self.encoder, self._link, self._mode = encoder, link, mode
        self.sink = sink_of(link, encoder.sink, encoder.name, limited=encoder.limited)
        self.access = TacitAccess(link, encoder.base, self.sink, encoder.name)
        self.data, self.read, self.ended, self.full, self.overflow = bytearray(), 0, False, False, 0
        self.off_in_debug_mode = False

    def rewind(self) -> None:
        """Begin at the start of the buffer again; the encoder is off."""
        encoder = self.encoder
        self.access.prepare(encoder.target, self._mode, encoder.start, encoder.size)
        self.read, self.ended = 0, False

    def drain(self, progress: Progress, *, ending: bool) -> None:
        """Read what is new. *ending*: after the end of the trace in the buffer. Raises what *progress* raises, and
        transport errors: what was read is in `data`.
        """
        if ending and not self.ended:
            self.access.stop()
            self.ended = True
        written, size = self.sink.bytes_written(), self.encoder.size
        if self.sink.is_full(written, size):
            self.full, self.overflow = True, max(written - size, 0)
            if not self.ended:
                self.access.stop()
                self.ended = True
        self._read_to(min(written, size), progress)

    def _read_to(self, end: int, progress: Progress) -> None:
        """Read up to byte *end* of the buffer."""
        begin = self.read - self.read % _WORD
        if end <= self.read:
            return
        try:
            block = self._link.read_block(self.encoder.start + begin, -(-(end - begin) // _WORD) * _WORD, progress)
        except RvtraceError as error:
            self._keep_block(getattr(error, "partial", b""), begin, end)
            raise
        self._keep_block(block, begin, end)

    def _keep_block(self, block: bytes, begin: int, end: int) -> None:
        fresh = block[self.read - begin : end - begin]
        self.data += fresh
        self.read += len(fresh)

    def captured(self, registers: tuple[tuple[str, int], ...]) -> CapturedBranches:
        """Return the trace as it is in a capture."""
        port = BranchPort(self.encoder.name, "tacit", registers)
        return CapturedBranches(self.encoder.hart, port, bytes(self.data))

    def settings(self, status: TacitStatus) -> tuple[tuple[str, int], ...]:
        """Return what a decoder has to know, and the registers: *status* was read back."""
        found: tuple[tuple[str, int], ...] = ((TR_TE_CTRL.name, status.control), (MODE_REGISTER, status.branch_mode))
        if status.branch_mode == BranchModeCode.PREDICT:
            found += ((ENTRIES_SETTING, self.encoder.entries),)
        return (*found, (OFF_IN_DEBUG_MODE, 1)) if self.off_in_debug_mode else found


class _DebugEvents:
    """Handlers of OpenOCD's events that switch encoders on and off with their harts. What users have there, stays.

    Harts of a group (`target smp`) are resumed together, and OpenOCD has the event of one of them: that one switches
    all encoders on.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._installed: list[tuple[str, str, str]] = []

    def install(self, encoders: Sequence[TacitDescription]) -> None:
        """Switch each of *encoders* on when its hart runs, off when it is halted. Raises transport errors."""
        names = [self._link.targets[encoder.hart] for encoder in encoders]
        on = [_switching(name, encoder, ENABLED) for name, encoder in zip(names, encoders, strict=True)]
        off = [_switching(name, encoder, DISABLED) for name, encoder in zip(names, encoders, strict=True)]
        for number, name in enumerate(names):
            self._add_handler(name, "resume-start", on)
            self._add_handler(name, "step-start", [on[number]])
            self._add_handler(name, "step-end", [off[number]])
            self._add_handler(name, "halted", [off[number]])

    def _add_handler(self, name: str, event: str, commands: Sequence[str]) -> None:
        """Add commands to the handler of an event of the target called *name*."""
        before = self._link.command(f"{name} cget -event {event}")
        kept = "\n".join(line for line in before.splitlines() if _MARK not in line).strip()
        lines = "\n".join(f"catch {{{tcl}}} ;# {_MARK}" for tcl in commands)
        self._link.command(f"{name} configure -event {event} {{{kept}\n{lines}\n}}")
        self._installed.append((name, event, kept))

    def remove(self) -> None:
        """Leave the users' own handlers alone. Raises transport errors."""
        while self._installed:
            name, event, kept = self._installed.pop()
            self._link.command(f"{name} configure -event {event} {{{kept}}}")


def _switching(name: str, encoder: TacitDescription, value: int) -> str:
    """Return the command of OpenOCD that switches *encoder*, by the target called *name*."""
    return f"{name} write_memory {encoder.base + TR_TE_CTRL.offset:#x} 32 {value:#x} phys"


class TacitTrace(TransferSource):
    """The trace of *encoders* on the target that *link* leads to. *mode*: how branches are reported. Raises
    ComponentError and transport errors.
    """

    def __init__(self, link: Link, encoders: Sequence[TacitDescription], mode: BranchModeCode) -> None:
        super().__init__(link, [encoder.hart for encoder in encoders])
        self._mode = mode
        self._parts = [_TacitBuffer(link, encoder, mode) for encoder in encoders]
        self._events = _DebugEvents(link)
        with link.unpolled():
            try:
                self._begin_all()
            except BaseException:
                self._switch_off()
                raise
            self._in_force = [part.settings(part.access.status()) for part in self._parts]
        self._captured = self._capture()
        self.notes += [] if all(part.sink.has_limit for part in self._parts) else [_NO_LIMIT]

    def _begin_all(self) -> None:
        """Set up all encoders, and switch on those whose harts run."""
        halted = halted_of(self.link, self.harts)
        for part in self._parts:
            part.rewind()
        self._have_switched()
        for part in self._parts:
            if not (part.off_in_debug_mode and part.encoder.hart in halted):
                part.access.switch_on()

    def _switch_off(self) -> None:
        """Leave nothing behind that would write into the buffers, as far as the target can be reached."""
        with suppress(RvtraceError):
            self._events.remove()
            for part in self._parts:
                part.access.switch_off()

    def _have_switched(self) -> None:
        """Have OpenOCD switch the encoders, if it is there."""
        try:
            self._events.install([part.encoder for part in self._parts])
        except RvtraceError:
            self.notes.append("the encoder stays on while its hart is halted, and traces the Debug ROM then")
            return
        for part in self._parts:
            part.off_in_debug_mode = True

    @property
    def branches(self) -> tuple[CapturedBranches, ...]:
        """The traces; the same objects until more was read."""
        if [len(one.data) for one in self._captured] != [len(part.data) for part in self._parts]:
            self._captured = self._capture()
        return self._captured

    def _capture(self) -> tuple[CapturedBranches, ...]:
        return tuple(part.captured(told) for part, told in zip(self._parts, self._in_force, strict=True))

    def started(self) -> list[str]:
        lines = [
            report.line("tracing", f"{part.encoder.name}, hart {part.encoder.hart}: TACIT, {self._how()}", begun=True)
            for part in self._parts
        ]
        return [*lines, *report.notes(self.notes)]

    def _how(self) -> str:
        return "branches predicted" if self._mode is BranchModeCode.PREDICT else "every branch"

    def status(self) -> list[str]:
        lines = [self._part_line(part, self._state_of(part)) for part in self._parts]
        return [*lines, *report.notes(self.notes), *report.failure(self)]

    def ended(self) -> list[str]:
        return [self._part_line(part, "off") for part in self._parts]

    def _state_of(self, part: _TacitBuffer) -> str:
        try:
            with self.link.unpolled():
                now = part.access.status()
        except RvtraceError as error:
            self.failure = self.failure or error
            return "off"
        waits = self.tracing and part.off_in_debug_mode and not part.full
        return "tracing" if now.is_on else "waiting" if waits else "off"

    def _part_line(self, part: _TacitBuffer, state: str) -> str:
        encoder, size = part.encoder, len(part.data)
        shown = "off until the hart runs" if state == "waiting" else state
        text = f"{encoder.name}, hart {encoder.hart}: {counted(size, 'byte')}, {shown}"
        return report.line("tacit", text, encoders=[(encoder.name, state)], filled=(size, encoder.size))

    def close(self) -> None:
        """End the trace, which nobody reads any more, and would not end in its buffer; and the link."""
        if self.tracing:
            with suppress(RvtraceError), self.link.unpolled():
                self._switch_off()
        super().close()

    def _device_state(self) -> object:
        return [part.access.status() for part in self._parts]

    def unread(self) -> int:
        """Return about how many bytes a read-out would fetch."""
        with self.link.unpolled():
            return sum(max(min(part.sink.bytes_written(), part.encoder.size) - part.read, 0) for part in self._parts)

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing or self.incomplete:
            with self.link.unpolled():
                self._drain(progress, ending=False)

    def stop(self, progress: Progress = silent) -> None:
        """End the trace, and read out what is new."""
        if self.tracing or self.incomplete:
            with self.link.unpolled():
                self._remove_events()
                self._drain(progress, ending=True)
                if self.state is not None and not self.incomplete:
                    self.state.end(self.halted)
        self.tracing = self.tracing and self.failure is not None

    def _remove_events(self) -> None:
        try:
            self._events.remove()
        except RvtraceError as error:
            self.failure = error

    def _drain(self, progress: Progress, *, ending: bool) -> None:
        """Read all. The buffer of a hart that is halted is read to its end, and used again from its start."""
        self.failure, self.incomplete, self.halted = None, True, ()
        if self.state is not None:
            self.state.forget_end()
        try:
            halted = halted_of(self.link, self.harts)
            for part in self._parts:
                self._drain_part(part, progress, ending=ending, halted=part.encoder.hart in halted)
        except RvtraceError as error:
            self.failure = error
            return
        self.incomplete, self.halted = False, halted
        self.tracing = self.tracing and not all(part.full for part in self._parts)

    def _drain_part(self, part: _TacitBuffer, progress: Progress, *, ending: bool, halted: bool) -> None:
        ends = ending or halted
        part.drain(progress, ending=ends)
        if part.full:
            self._note_full(part)
        elif ends and not ending and self.tracing:
            part.rewind()
            if not part.off_in_debug_mode:
                part.access.switch_on()

    def _note_full(self, part: _TacitBuffer) -> None:
        """Note that the trace has ended, and what it overwrote."""
        encoder = part.encoder
        lost = "newer packets were dropped"
        if not part.sink.has_limit:
            end = encoder.start + encoder.size
            lost = f"{counted(part.overflow, 'byte')} from {end:#x} on were overwritten by packets"
        text = f"the buffer of {encoder.name} is full, and tracing has ended: {lost}"
        self.notes += [] if text in self.notes else [text]


def start(
    session: TraceOwner, description: Description, context: Context, options: Mapping[str, Any], connect: ConnectLink,
    progress: Progress = silent,
) -> list[str]:  # fmt: skip
    """Start tracing; see `begin_transfers`."""
    encoders = _chosen_encoders(description, options)
    refuse_filters(options, "TACIT has no filters and no triggers")
    mode = BranchModeCode.PREDICT if options.get(_PREDICTION) else BranchModeCode.TARGET

    def started_source(link: Link) -> TacitTrace:
        live = TacitTrace(link, encoders, mode)
        what = "TACIT has no settings besides branch prediction and its harts"
        live.notes += without_effect(options, what, (_PREDICTION,))
        return live

    places = [(one.name, one.hart, range(one.base, one.base + _REGISTERS)) for one in encoders]
    return begin_transfers(session, description, context, options, connect, started_source, places, progress)


def _chosen_encoders(description: Description, options: Mapping[str, Any]) -> list[TacitDescription]:
    names, harts = chosen_components(options)
    known = {encoder.name: encoder for encoder in description.tacit}
    for name in names:
        if name not in known:
            raise BadOption(f"there is no TACIT {name!r} in the target description, it has {', '.join(known)}")
    chosen = [encoder for encoder in known.values() if not names or encoder.name in names]
    traced = [encoder for encoder in chosen if not harts or encoder.hart in harts]
    missing = sorted(set(harts) - {encoder.hart for encoder in traced})
    if missing:
        raise BadOption(f"no TACIT of the target description traces hart {missing[0]}")
    return traced
