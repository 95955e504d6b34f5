"""Control Transfer Records being made on a target, by one hart or several, started by us or found there."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.controlregs.ctr import procedures
from rvtrace_gdb.controlregs.ctr.entries import Entry, pack
from rvtrace_gdb.controlregs.ctr.found import Found
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.versions import CtrVersion
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.session.captured import CapturedEncoder, CapturedRecords, CapturedSink, CapturedTandem
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.ctr import report
from rvtrace_gdb.session.ctr.access import Way
from rvtrace_gdb.session.ctr.access_usb import UsbAccess
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress, silent


@dataclass
class Recorder:
    """One hart's. *found*: what its registers held before we set them up, None where we did not."""

    hart: int
    access: CsrAccess
    version: CtrVersion
    captured: CapturedRecords
    found: Found | None = None

    def differs(self, now: "procedures.CtrStatus | RvtraceError") -> bool:
        """Whether *now* tells of another way of recording."""
        how = self.captured.in_force
        if isinstance(now, RvtraceError):
            return not isinstance(now, HartRuns)
        return (now.in_force.control, now.in_force.depth) != (how.control, how.depth)


class CtrTrace:
    """What *recorders* record. See `session.making.Making`."""

    def __init__(self, recorders: list[Recorder], way: Way) -> None:
        self.recorders, self.way = recorders, way
        self.tracing = self.behind = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self.started_here = self.ours

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        return ()

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return ()

    @property
    def records(self) -> tuple[CapturedRecords, ...]:
        return tuple(recorder.captured for recorder in self.recorders)

    @property
    def tandem(self) -> tuple[CapturedTandem, ...]:
        return ()

    @property
    def ours(self) -> bool:
        """Whether it was us who started it."""
        return any(recorder.found is not None for recorder in self.recorders)

    def has(self, hart: int) -> bool:
        """Whether a hart's records are part of it."""
        return any(recorder.hart == hart for recorder in self.recorders)

    def started(self) -> list[str]:
        lines = [report.recording(recorder.captured.in_force) for recorder in self.recorders]
        return lines + report.notes(self.notes)

    def status(self) -> list[str]:
        """Does not disturb the records."""
        lines: list[str] = []
        for recorder in self.recorders:
            lines += report.status(recorder.captured, self._state(recorder) if self.tracing else None)
        return lines + report.notes(self.notes) + report.failure(self.failure)

    def ended(self) -> list[str]:
        return [*(report.held(records) for records in self.records), *report.notes(self.notes)]

    def told(self, context: Context) -> None:
        """gdb knows nothing that the records do not tell."""

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        return None if runs is None else (runs,)

    def unread(self) -> int:
        """Reading takes moments, however much there is."""
        return 0

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing or self.behind:
            self._read(progress)

    def stop(self, progress: Progress = silent) -> None:
        """What is in the registers afterwards is what was there before we came. Raises HartRuns.

        Interrupted before all is read, it goes on; afterwards, another `stop` puts back what is left.
        """
        self._check_still()
        self.read_out(progress)
        if self.tracing and not self.ours:
            self.notes = ["it was not started here: the program goes on recording"]
        self.tracing = False
        self._put_back(progress)

    def clear(self, progress: Progress = silent) -> None:
        """Empty all records; recording goes on. Raises what the procedures raise."""
        for recorder in self.recorders:
            procedures.clear(recorder.access, recorder.version, progress)
        self.behind = True

    def abandon(self) -> None:
        self.tracing = self.behind = False
        self.failure = None

    def close(self) -> None:
        """The hart goes on recording."""

    def let_go(self) -> None:
        """Others may use a USB adapter until it is used here again."""
        for recorder in self.recorders:
            if isinstance(recorder.access, UsbAccess):
                recorder.access.let_go()

    def connected(self, way: Way, opened: Callable[[int], CsrAccess]) -> None:
        """Another connection leads to the harts now. One that does not record as it was set up was reset, or is another
        one: then what was read out is all there is, and nothing is put back.
        """
        self.way = way
        for recorder in self.recorders:
            recorder.access = opened(recorder.hart)
        lost = [str(it.hart) for it in self.recorders if it.found is not None and it.differs(self._state(it))]
        if lost:
            for recorder in self.recorders:
                recorder.found = None
            self.notes = [f"hart {', '.join(lost)} did not record as it was set up when gdb was connected anew"]
            self.failure = None
            self.tracing = self.behind = self.started_here = False

    def moved(self) -> bool:
        """Whether harts are not as they were when they were read, as after a reset by way of `monitor`."""
        with suppress(RvtraceError):  # reading them will tell
            return any(procedures.moved(it.access, it.version, it.captured.in_force) for it in self.recorders)
        return True

    def _read(self, progress: Progress) -> None:
        self.failure, self.behind = None, True
        try:
            for recorder in self.recorders:
                name = recorder.captured.in_force.name
                in_force, entries = procedures.read(recorder.access, recorder.version, name, progress)
                recorder.captured = captured(recorder.hart, in_force, entries)
        except Cancelled:
            raise
        except RvtraceError as error:
            self.failure = error
        else:
            self.behind = False
        finally:
            self.let_go()

    def _put_back(self, progress: Progress) -> None:
        left = [recorder for recorder in self.recorders if recorder.found is not None]
        self.notes = [] if left else self.notes
        for recorder in left:
            hart = "" if len(self.recorders) == 1 else f"hart {recorder.hart}: "
            try:
                said = procedures.stop(recorder.access, recorder.version, recorder.found)
                self.notes += [f"{hart}{note}" for note in said]
            except Cancelled:
                self.notes.append(f"the registers of hart {recorder.hart} are not put back: `trace ctr stop` does it")
                raise
            except RvtraceError as error:
                self.failure = self.failure or error
            else:
                recorder.found = None

    def _check_still(self) -> None:
        """Raises HartRuns; of what else is wrong, `failure` will tell."""
        for recorder in self.recorders:
            error = self._state(recorder) if recorder.found is not None else None
            if isinstance(error, HartRuns):
                raise error

    def _state(self, recorder: Recorder) -> "procedures.CtrStatus | RvtraceError":
        try:
            return procedures.status(recorder.access, recorder.version, recorder.captured.in_force.name)
        except RvtraceError as error:
            return error


def captured(hart: int, in_force: CtrInForce, entries: list[Entry]) -> CapturedRecords:
    """Entries as they were read, the youngest first, as they are kept: the oldest first."""
    return CapturedRecords(hart, in_force, pack(entries[::-1]))
