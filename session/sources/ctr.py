"""Control Transfer Records of one or several harts of a target, started by rvtrace or by the program.

The functions describe the records in lines that are ready to print.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rvtrace_gdb.controlregs.ctr import procedures
from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES, CtrEntry, TransferType, pack
from rvtrace_gdb.controlregs.ctr.procedures import CtrStatus, SavedSetup
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues, settings
from rvtrace_gdb.controlregs.ctr.versions import CtrVersion
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.decode.ctr.records import TYPE_NAMES
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.reconstruction.facts import MemoryRange
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import CapturedRecords, CapturedTrap
from rvtrace_gdb.session.formats.ctr import items
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.session.sources.last_traps import LastTraps
from rvtrace_gdb.session.target.access_reader import AccessReader
from rvtrace_gdb.session.target.csr_access import UsbAccess, Way
from rvtrace_gdb.session.target.target_state import LinkReader, SavedTarget, SaveRequest, TargetReader
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.support.text import warning

MODES = ("m", "s", "u", "vs", "vu")
_PLURALS = {"not-taken branch": "not-taken branches", "taken branch": "taken branches"}


def target(access: CsrAccess) -> str:
    """Describe how the hart is accessed."""
    return report.line("target", f"CSRs by {access.name}")


def recording(registers: CtrRegisterValues) -> str:
    """Describe what is recorded, e.g. "ctr0: CTR 1.0, 16 entries, M-, S- and U-mode, without direct jumps, freezes at
    breakpoints".
    """
    return report.line(
        registers.name,
        f"CTR {registers.version}, {registers.depth} entries, {_what(registers)}",
        encoders=[(registers.name, "stopped")],
    )


def held(records: CapturedRecords) -> str:
    """Describe how many records were read."""
    return report.line(records.in_force.name, _filled(records), records=_entry_counts(records))


def status(records: CapturedRecords, now: CtrStatus | RvtraceError | None) -> list[str]:
    """Describe a hart's records. *now*: its current status, or why it cannot be read; None: it is not read."""
    registers = now.in_force if isinstance(now, CtrStatus) else records.in_force
    lines = [recording(registers)]
    if isinstance(now, CtrStatus):
        state = "frozen" if settings(registers).frozen else "recording"
        lines.append(
            report.line(
                "state", _status_text(now), encoders=[(registers.name, state)], records=(now.recorded, registers.depth)
            )
        )
    else:
        lines.append(report.line("read", _filled(records), records=_entry_counts(records)))
    return [*lines, *([warning(now)] if isinstance(now, RvtraceError) else [])]


def failure(error: RvtraceError | None) -> list[str]:
    """Describe why the read-out is incomplete."""
    return [] if error is None else [warning(f"the records were not read: {error}")]


def _what(registers: CtrRegisterValues) -> str:
    found = settings(registers)
    modes = [f"{mode.upper()}-mode" for mode in MODES if mode in found.modes]
    if not modes:
        return "records nothing: no privilege mode is enabled"
    parts = [f"records {_joined(modes)}"]
    if found.ras:
        parts.append("RAS emulation (calls that have not returned)")
    else:
        parts += _filters(found.kinds)
    if found.external:
        parts.append(f"and traps into {_joined([f'{mode.upper()}-mode' for mode in sorted(found.external)])}")
    froze = [name for name, on in (("a breakpoint", found.freeze_breakpoint), ("an LCOFI", found.freeze_lcofi)) if on]
    return ", ".join([*parts, *([f"freezes at {' or '.join(froze)}"] if froze else [])])


def _filters(kinds: frozenset[TransferType]) -> list[str]:
    """Describe what is not recorded, and what is recorded additionally."""
    usual = [kind for kind in TYPE_NAMES if kind not in (IType.NONE, IType.UNINFERABLE_JUMP, IType.NOT_TAKEN)]
    missing = [_plural(kind) for kind in usual if TransferType(kind) not in kinds]
    there = [_plural(kind) for kind in usual if TransferType(kind) in kinds]
    not_taken = TransferType.NOT_TAKEN_BRANCH in kinds
    if not there:
        return ["only not-taken branches" if not_taken else "no kind of transfer"]
    more = ["not-taken branches, too"] if not_taken else []
    if not missing:
        return ["all kinds of transfers", *more]
    return [f"only {_joined(there)}" if len(there) < len(missing) else f"all but {_joined(missing)}", *more]


def _plural(kind: IType) -> str:
    name = TYPE_NAMES[kind]
    return _PLURALS.get(name, f"{name}s")


def _status_text(now: CtrStatus) -> str:
    found = settings(now.in_force)
    frozen = "frozen: nothing is recorded until FROZEN is cleared (`trace ctr start`)" if found.frozen else "not frozen"
    return f"{frozen}; {now.recorded} of {now.in_force.depth} entries have records, WRPTR {found.write_pointer}"


def _entry_counts(records: CapturedRecords) -> tuple[int, int]:
    """Return how many entries have records, and how many entries there are."""
    return sum(item.record is not None for item in items(records.data)), records.in_force.depth


def _filled(records: CapturedRecords) -> str:
    valid, depth = _entry_counts(records)
    there = len(records.data) // ENTRY_BYTES
    full = ", full: older ones were overwritten" if there == valid == depth else ""
    return f"{valid} of {depth} entries have records{full}"


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@dataclass
class HartRecorder:
    """The records of one hart. *saved*: its registers' values before rvtrace set them up, None if it did not; *set_up*:
    their values then. *begin*: where it was when recording began and its entries were empty, None if that is not known.
    """

    hart: int
    access: CsrAccess
    version: CtrVersion
    captured: CapturedRecords
    saved: SavedSetup | None = None
    set_up: CtrRegisterValues | None = None
    begin: int | None = None

    def differs(self, now: "procedures.CtrStatus | RvtraceError") -> bool:
        """Return whether *now* shows that the hart records differently than it was set up."""
        registers = self.set_up or self.captured.in_force
        if isinstance(now, RvtraceError):
            return not isinstance(now, HartRuns)
        return (now.in_force.control, now.in_force.depth) != (registers.control, registers.depth)


class CtrTrace(TraceSource):
    """The trace that *recorders* record. See `session.sources.TraceSource`."""

    shows_halts = False

    def __init__(self, recorders: list[HartRecorder], way: Way) -> None:
        self.recorders, self.way = recorders, way
        self.tracing = self.incomplete = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self.started_here = self.ours
        self._last_traps = LastTraps(self._hart_access)

    @property
    def records(self) -> tuple[CapturedRecords, ...]:
        return tuple(recorder.captured for recorder in self.recorders)

    @property
    def traps(self) -> tuple[CapturedTrap, ...]:
        return self._last_traps.traps(self.records)

    def ask_of_trap(self, hart: int) -> None:
        self._last_traps.ask(hart, self.records)
        self.let_go()

    @property
    def ours(self) -> bool:
        """Whether rvtrace started the recording."""
        return any(recorder.saved is not None for recorder in self.recorders)

    def has(self, hart: int) -> bool:
        """Return whether a hart's records are part of the trace."""
        return any(recorder.hart == hart for recorder in self.recorders)

    def started(self) -> list[str]:
        lines = [recording(recorder.captured.in_force) for recorder in self.recorders]
        return lines + report.notes(self.notes)

    def status(self) -> list[str]:
        """Describe the current state, without disturbing the records."""
        lines: list[str] = []
        reset: list[str] = []
        for recorder in self.recorders:
            now = self._recorder_status(recorder) if self.tracing else None
            lines += status(recorder.captured, now)
            reset += _reset_note(recorder, now)
        return lines + report.notes([*self.notes, *reset]) + failure(self.failure)

    def ended(self) -> list[str]:
        return [*(held(records) for records in self.records), *report.notes(self.notes)]

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        return None if runs is None else (runs,)

    def unread(self) -> int:
        """Return 0: reading is fast, however many records there are."""
        return 0

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing or self.incomplete:
            self._read_records(progress)

    def stop(self, progress: Progress = silent) -> None:
        """Stop recording, and restore the registers as rvtrace found them, unless the hart was reset since.
        Raises HartRuns.

        If it is interrupted while reading, recording continues; if later, another `stop` restores the rest.
        """
        reset = self._check_still()
        self.read_out(progress)
        for recorder in self.recorders:
            if _in_handler(recorder.captured):
                self.ask_of_trap(recorder.hart)
        self._last_traps.may_ask(())
        if self.tracing and not self.ours:
            self.notes = ["recording was not started by rvtrace, so it continues in the program"]
        self.tracing = False
        for recorder in reset:
            recorder.saved = None
        self._put_back(progress)
        self.notes += [note for recorder in reset for note in _was_reset(recorder)]

    def clear(self, progress: Progress = silent) -> None:
        """Empty all records; recording continues. Raises what the procedures raise."""
        for recorder in self.recorders:
            procedures.clear(recorder.access, recorder.version, progress)
            recorder.begin = None
        self.incomplete = True

    def abandon(self) -> None:
        self.tracing = self.incomplete = False
        self.failure = None

    def close(self) -> None:
        """Do nothing: the hart continues recording."""

    def let_go(self) -> None:
        """Let other programs use the USB adapter until it is used here again."""
        for recorder in self.recorders:
            if isinstance(recorder.access, UsbAccess):
                recorder.access.let_go()

    def connected(self, way: Way, opened: Callable[[int], CsrAccess]) -> None:
        """Use another connection to the harts.

        If a hart does not record as it was set up, it was reset, or is another one: then only what was read out before
        remains, and no register is restored.
        """
        self.way = way
        self._last_traps.may_ask(())
        for recorder in self.recorders:
            recorder.access = opened(recorder.hart)
        lost = [it.hart for it in self.recorders if it.saved is not None and it.differs(self._recorder_status(it))]
        if lost:
            for recorder in self.recorders:
                recorder.saved = None
            self.notes = [f"{harts_text(lost)} no longer recorded with its settings when gdb was connected again"]
            self.failure = None
            self.tracing = self.incomplete = self.started_here = False

    def moved(self) -> bool:
        """Return whether the records have changed since they were read, e.g. by a reset with `monitor`."""
        with suppress(RvtraceError):  # reading them will tell
            return any(procedures.has_run_since(it.access, it.version, it.captured.in_force) for it in self.recorders)
        return True

    def save_state(
        self,
        image: Image,
        ranges: Sequence[MemoryRange],
        wishes: SaveRequest,
        begun: Collection[int],
        progress: Progress,
    ) -> None:
        """Let registers and memory be saved where the trace ends, and do so now for the harts in *begun*."""
        harts = [recorder.hart for recorder in self.recorders]
        self.state = SavedTarget(self._reader(harts), harts, image, ranges, wishes)
        if begun:
            self.state.begin(progress, begun)
            self.notes += self.state.unsaid()

    def _reader(self, harts: Sequence[int]) -> TargetReader:
        access = self.recorders[0].access
        return LinkReader(access.link) if isinstance(access, UsbAccess) else AccessReader(self._hart_access, harts)

    def _hart_access(self, hart: int) -> CsrAccess:
        return next(it.access for it in self.recorders if it.hart == hart)

    def _read_records(self, progress: Progress) -> None:
        self.failure, self.incomplete, self.halted = None, True, ()
        self._last_traps.may_ask(())
        try:
            for recorder in self.recorders:
                name = recorder.captured.in_force.name
                in_force, entries = procedures.read(recorder.access, recorder.version, name, progress)
                recorder.captured = captured(recorder.hart, replace(in_force, begin=recorder.begin), entries)
        except Cancelled:
            raise
        except RvtraceError as error:
            self.failure = error
        else:
            self.incomplete = False
            self.halted = [recorder.hart for recorder in self.recorders]  # one that runs could not have been read
            self._last_traps.may_ask(self.halted)
        finally:
            self.let_go()

    def _put_back(self, progress: Progress) -> None:
        left = [recorder for recorder in self.recorders if recorder.saved is not None]
        self.notes = [] if left else self.notes
        for recorder in left:
            hart = "" if len(self.recorders) == 1 else f"hart {recorder.hart}: "
            try:
                said = procedures.stop(recorder.access, recorder.version, recorder.saved)
                self.notes += [f"{hart}{note}" for note in said]
            except Cancelled:
                self.notes.append(f"the registers of hart {recorder.hart} are not restored: `trace ctr stop` does it")
                raise
            except RvtraceError as error:
                self.failure = self.failure or error
            else:
                recorder.saved = None

    def _check_still(self) -> list[HartRecorder]:
        """Return the recorders whose harts were reset. Raises HartRuns if a hart runs; other errors will be in
        `failure`.
        """
        reset = []
        for recorder in self.recorders:
            now = self._recorder_status(recorder) if recorder.saved is not None else None
            if isinstance(now, HartRuns):
                raise now
            if _reset_note(recorder, now):
                reset.append(recorder)
        return reset

    def _recorder_status(self, recorder: HartRecorder) -> "procedures.CtrStatus | RvtraceError":
        try:
            return procedures.status(recorder.access, recorder.version, recorder.captured.in_force.name)
        except RvtraceError as error:
            return error


def _reset_note(recorder: HartRecorder, now: CtrStatus | RvtraceError | None) -> list[str]:
    """Return a note if *now* shows that a hart which rvtrace let record records nothing any more. What a program
    records otherwise is its own matter.
    """
    if recorder.saved is None or not isinstance(now, CtrStatus) or settings(now.in_force).modes:
        return []
    return _was_reset(recorder) if recorder.differs(now) else []


def _was_reset(recorder: HartRecorder) -> list[str]:
    return [
        f"hart {recorder.hart} was reset since `trace ctr start`, or other software ended the recording: what ran since"
        " then is not recorded, and its registers stay as they are"
    ]


def _in_handler(records: CapturedRecords) -> bool:
    """Return whether the newest record of a trap, or of a return from one, is that of a trap."""
    kinds = [item.record.kind for item in items(records.data) if item.record is not None]
    newest = next((kind for kind in reversed(kinds) if kind in (*_TRAPS, IType.TRAP_RETURN)), None)
    return newest in _TRAPS


_TRAPS = (IType.EXCEPTION, IType.INTERRUPT)


def captured(hart: int, in_force: CtrRegisterValues, entries: list[CtrEntry]) -> CapturedRecords:
    """Return entries, which are read youngest first, as a capture stores them: oldest first."""
    return CapturedRecords(hart, in_force, pack(entries[::-1]))
