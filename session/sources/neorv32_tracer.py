"""A trace that NEORV32's TRACER records: it is started, read out repeatedly, and stopped.

What was read out is kept. TRACER keeps the newest entries: where it may have been full since it was read out, older
ones may be missing before those that it had, and the first of them begins a new part of the trace (its bit FIRST is
set). Where the hart was halted when tracing began and when it was read out is kept with the entries, and so is that
tracing ended at the stop address: what ran before the first and after the last entry follows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rvtrace_gdb.controlregs.neorv32.procedures import TracerAccess, TracerStatus
from rvtrace_gdb.controlregs.neorv32.registers import DROPPED_AT_ONCE, STOP_ADDR_OFF
from rvtrace_gdb.decode.branches.neorv32 import BEGIN, EBREAK, END, ENTRY, LAST
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import BranchPort, CapturedBranches, SavedAt, SavedRegisters
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import Description, TracerDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources import TraceOwner
from rvtrace_gdb.session.sources.options import chosen_components
from rvtrace_gdb.session.sources.transfers import TransferSource, begin_transfers, refuse_filters, without_effect
from rvtrace_gdb.session.target.link import ConnectLink, Link, csrs_of, halted_of
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import counted

_UNREAD = ", more still in TRACER (the next list of what ran reads them)"
_STOPS = "trigger_off"
_HIGHEST = 0xFFFF_FFFD  # the one above switches STOP_ADDR off
_REGISTERS = 0x10  # bytes
_DCSR, _CAUSE, _CAUSES, _EBREAK = 0x7B0, 6, 7, 1  # Debug Specification 1.0, 4.9.1


class TracerTrace(TransferSource):
    """The trace of *tracer* on the target that *link* leads to. *stop_addr*: it ends with the instruction there. Raises
    ComponentError and transport errors.
    """

    def __init__(self, link: Link, tracer: TracerDescription, stop_addr: int | None = None) -> None:
        super().__init__(link, [tracer.hart])
        self.tracer, self._stop_addr = tracer, stop_addr
        self._access = TracerAccess(link, tracer.base, tracer.name)
        self._entries: list[tuple[int, int]] = []
        with link.unpolled():
            self._in_force = self._access.start(tracer.hart, STOP_ADDR_OFF if stop_addr is None else stop_addr)
        self._ends: dict[str, int] = {}
        self._captured = self._capture()

    def begins_at(self, saved: Iterable[SavedRegisters]) -> None:
        """Note where its hart was halted when tracing began, if *saved* has it."""
        for one in saved:
            if (one.hart, one.at) == (self.tracer.hart, SavedAt.START):
                self._ends[BEGIN] = one.pc

    @property
    def branches(self) -> tuple[CapturedBranches, ...]:
        """The trace; the same object until more was read."""
        now = self._capture()
        if now != self._captured:
            self._captured = now
        return (self._captured,)

    def _capture(self) -> CapturedBranches:
        told = self._in_force
        ends = {name: at for name, at in self._ends.items() if name == BEGIN or not self.incomplete}
        registers = {"CTRL": told.ctrl, "STOP_ADDR": told.stop_addr, **ends}
        port = BranchPort(self.tracer.name, "neorv32", tuple(registers.items()))
        data = b"".join(ENTRY.pack(*entry) for entry in self._entries)
        first = self._entries[0][0] & 1 if self._entries else 1
        return CapturedBranches(self.tracer.hart, port, data, wrapped=not first)

    def started(self) -> list[str]:
        text = f"{self.tracer.name}, hart {self.tracer.hart}: TRACER of NEORV32, {self._in_force.depth} entries"
        text += "" if self._stop_addr is None else f", ends with the instruction at {self._stop_addr:#x}"
        return [report.line("tracing", text, begun=True), *report.notes(self.notes)]

    def status(self) -> list[str]:
        now = self._now()
        state = "off" if now is None or not now.running else "tracing"
        more = _UNREAD if now is not None and now.available else ""
        return [self._tracer_line(f"{more}, {state}", state), *report.notes(self.notes), *report.failure(self)]

    def ended(self) -> list[str]:
        return [self._tracer_line(", off", "off"), *report.notes(self.notes)]

    def _tracer_line(self, more: str, state: str) -> str:
        size = ENTRY.size * len(self._entries)
        text = f"{self.tracer.name}, hart {self.tracer.hart}: {counted(len(self._entries), 'pair')}{more}"
        return report.line("tracer", text, encoders=[(self.tracer.name, state)], filled=(size, 0))

    def _device_state(self) -> object:
        return self._access.status()

    def unread(self) -> int:
        """Return about how many bytes a read-out would fetch: at most the whole buffer."""
        with self.link.unpolled():
            now = self._access.status()
        return ENTRY.size * now.depth if now.available else 0

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing or self.incomplete:
            with self.link.unpolled():
                self._drain(progress, ending=False)

    def stop(self, progress: Progress = silent) -> None:
        """End the trace, and read out what is new."""
        if self.tracing or self.incomplete:
            with self.link.unpolled():
                self._drain(progress, ending=True)
                if self.state is not None and not self.incomplete:
                    self.state.end(self.halted)
        self.tracing = self.tracing and self.failure is not None

    def _drain(self, progress: Progress, *, ending: bool) -> None:
        """Read all entries. A hart that runs goes untraced meanwhile, which the trace shows."""
        hart = self.tracer.hart
        self.failure, self.incomplete, self.halted = None, True, ()
        for name in (END, EBREAK):
            self._ends.pop(name, None)
        if self.state is not None:
            self.state.forget_end()
        fresh: list[tuple[int, int]] = []
        try:
            halted = halted_of(self.link, [hart])
            self._look_whether_it_ended()
            stops = self.tracing and (ending or hart not in halted)
            if stops:
                self._access.stop(hart)
            try:
                self._access.drain(fresh, self._in_force.depth, progress)
            finally:
                self._add_entries(fresh)
                if stops and not ending:
                    self._access.resume(hart)
            if self.tracing:
                self._note_halt()
        except RvtraceError as error:
            self.failure = error
            return
        self.incomplete, self.halted = False, halted

    def _look_whether_it_ended(self) -> None:
        """Note that tracing stopped by itself: at the stop address, or because the processor was reset."""
        now = self._access.status()
        if not self.tracing or now.running:
            return
        self.tracing = False
        if not now.switched_on:
            self.notes.append(f"{self.tracer.name} was reset, and what it held is lost: `trace start` starts it again")
        elif self._stop_addr is not None:
            self._ends[LAST] = self._stop_addr
            self.notes.append(f"tracing ended with the instruction at {self._stop_addr:#x}")
        else:
            self.notes.append(f"{self.tracer.name} was stopped on the target")

    def _note_halt(self) -> None:
        """Note where the hart is halted now, and whether by a breakpoint. Raises the transport's errors."""
        found = None if self.state is None else self.state.registers_now(self.tracer.hart)
        if found is not None:
            self._ends[END] = found.pc
            self._ends[EBREAK] = int(self._was_breakpoint())

    def _was_breakpoint(self) -> bool:
        dcsr = csrs_of(self.link, self.tracer.hart, {_DCSR: "dcsr"}).run([(_DCSR, None)])[0]
        return isinstance(dcsr, int) and dcsr >> _CAUSE & _CAUSES == _EBREAK

    def _add_entries(self, fresh: list[tuple[int, int]]) -> None:
        """Add entries. Of a buffer that may have been full older ones may be missing."""
        if self._entries and fresh and len(fresh) >= self._in_force.depth - DROPPED_AT_ONCE:
            fresh[0] = fresh[0][0] | 1, fresh[0][1]
            note = "the buffer was full between two read-outs: older entries may be missing, and there is a gap"
            self.notes += [] if note in self.notes else [note]
        self._entries += fresh

    def _now(self) -> TracerStatus | None:
        try:
            with self.link.unpolled():
                return self._access.status()
        except RvtraceError as error:
            self.failure = self.failure or error
            return None


def start(
    session: TraceOwner, description: Description, context: Context, options: Mapping[str, Any], connect: ConnectLink,
    progress: Progress = silent,
) -> list[str]:  # fmt: skip
    """Start tracing; see `begin_transfers`."""
    tracer = _chosen_tracer(description, options)
    stop_addr = _stop_address(options)

    def started_source(link: Link) -> TracerTrace:
        live = TracerTrace(link, tracer, stop_addr)
        what = "a TRACER has no settings besides its hart and -trigger-off"
        live.notes += without_effect(options, what, (_STOPS,))
        return live

    places = [(tracer.name, tracer.hart, range(tracer.base, tracer.base + _REGISTERS))]
    return begin_transfers(session, description, context, options, connect, started_source, places, progress)


def _chosen_tracer(description: Description, options: Mapping[str, Any]) -> TracerDescription:
    names, harts = chosen_components(options)
    if len(harts) > 1:
        raise BadOption("a TRACER traces one hart: give one with -hart")
    known = [tracer for tracer in description.tracers if not names or tracer.name in names]
    if not known:
        there = ", ".join(tracer.name for tracer in description.tracers)
        raise BadOption(f"there is no TRACER {names[0]!r} in the target description, it has {there}")
    return replace(known[0], hart=harts[0]) if harts else known[0]


def _stop_address(options: Mapping[str, Any]) -> int | None:
    """Return the address that -trigger-off names, None: none. Raises BadOption for what would be misleading."""
    refuse_filters(options, "a TRACER has no filters, and no triggers but one -trigger-off", (_STOPS,))
    places: list[int] = options.get(_STOPS) or []
    if len(places) > 1:
        raise BadOption(f"a TRACER stops at one address (STOP_ADDR), and -trigger-off has {len(places)}")
    if places and not places[0] <= _HIGHEST:
        raise BadOption(f"-trigger-off: {places[0]:#x} is not an address of 32 bits")
    return places[0] if places else None
