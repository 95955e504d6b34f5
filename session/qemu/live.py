"""A trace that is being made of what QEMU runs. See `session.making.Making`."""

from contextlib import suppress
from pathlib import Path

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session.captured import CapturedEncoder, CapturedRecords, CapturedSink, CapturedTandem
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.program import Program
from rvtrace_gdb.session.qemu import report
from rvtrace_gdb.session.qemu.code import Code, lacking
from rvtrace_gdb.session.qemu.hart import HartTrace
from rvtrace_gdb.session.qemu.wanted import Wanted
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.qemu import control
from rvtrace_gdb.transport.qemu.errors import QemuError, QemuGone
from rvtrace_gdb.transport.qemu.ring import Ring

_WORD = 4  # bytes


class QemuTrace:
    """Of *harts*, by the recorder in *folder*. *program*: gets the code that ran and that no ELF has."""

    def __init__(self, folder: Path, harts: list[int], wanted: Wanted, program: Program) -> None:
        self.tracing = self.behind = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self._change = ""  # the one of them that says that code changed
        self._folder, self._program = folder, program
        self._ring = Ring.opened(folder)
        self._recorded_before = self._ring.recording
        image = program.image()
        self._image: Image | None = image
        self._code = Code(self._ring, image)
        self._fresh: list[tuple[int, bytes]] = []
        self._harts = [HartTrace(self._ring, hart, self._code, wanted, image) for hart in harts]

    @classmethod
    def start(cls, folder: Path, harts: list[int], wanted: Wanted, program: Program) -> "QemuTrace":
        """Begins to record. Raises QemuError."""
        if not control.runs(folder):
            control.settle(folder)
        trace = cls(folder, harts, wanted, program)
        try:
            control.record(folder, True)
        except BaseException:
            trace.close()
            raise
        return trace

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        return tuple(hart.encoder for hart in self._harts)

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return tuple(hart.sink for hart in self._harts)

    @property
    def records(self) -> tuple[CapturedRecords, ...]:
        return ()

    @property
    def tandem(self) -> tuple[CapturedTandem, ...]:
        return ()

    def retired(self, hart: int) -> int:
        """How many instructions of a hart were read out since the trace began, those that were dropped included."""
        return next(it.instructions for it in self._harts if it.hart == hart)

    def started(self) -> list[str]:
        return [
            *report.encoders(self.encoders, tracing=self.tracing),
            report.ring(self._ring, self._harts),
            *report.notes(self.notes),
        ]

    def status(self) -> list[str]:
        if self.tracing:
            self._settle()
        return [
            *report.encoders(self.encoders, tracing=self.tracing),
            *report.harts(self._harts, read=not self.behind),
            *report.notes(self.notes),
            *report.failure(self.failure),
        ]

    def ended(self) -> list[str]:
        return [*report.harts(self._harts, read=True), *report.notes(self.notes)]

    def told(self, context: Context) -> None:
        """gdb knows nothing that is not in the ring."""

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """What is written when nothing runs stays as it is."""
        return None if runs is None else (runs, *(hart.behind for hart in self._harts))

    def unread(self) -> int:
        self._settle()
        return _WORD * sum(hart.behind for hart in self._harts)

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing or self.behind:
            self._read(progress)

    def stop(self, progress: Progress = silent) -> None:
        self.read_out(progress)
        if self.tracing:
            self.tracing = False
            self._record_no_more()

    def abandon(self) -> None:
        self._record_no_more()
        self.tracing = self.behind = False
        self.failure = None

    def close(self) -> None:
        """The recorder goes on."""
        self._code.close()
        self._ring.close()

    def _record_no_more(self) -> None:
        if self._recorded_before:
            return  # somebody else wants it: a capture is being written
        try:
            control.record(self._folder, False)
        except RvtraceError:
            return  # it has ended

    def _read(self, progress: Progress) -> None:
        self.failure, self.behind = None, True
        try:
            stopped = self._stopped()
            for hart in self._harts:
                hart.read(progress)
                hart.close_up(stopped=stopped)
            self._code.refresh()
            self._tell_code()
            self._say_changed()
            if self._ring.failed:
                raise QemuError(lacking(self._ring))
        except Cancelled:
            raise
        except RvtraceError as error:
            self.failure = error
        else:
            self.behind = False

    def _stopped(self) -> bool:
        """Whether the program does not run now; if so, all it did is in the ring."""
        try:
            if control.runs(self._folder):
                return False
            control.settle(self._folder)
        except QemuGone:
            if self.tracing:
                self.tracing = False
                self.notes.append(report.gone(self._ring))
        return True

    def _settle(self) -> None:
        """What is in the ring is all that ran, if the program is stopped: it may be on its way there."""
        with suppress(QemuError):
            if not control.runs(self._folder):
                control.settle(self._folder)

    def _say_changed(self) -> None:
        if self._code.changed is not None:
            note = report.changed(self._code.changed)
            self.notes = [note, *(it for it in self.notes if it is not self._change)]
            self._change = note

    def _tell_code(self) -> None:
        """The program's image gets what ran and is not in its ELF: a boot ROM, what a loader put there."""
        fresh = self._code.take_fresh()
        image = self._program.image()
        if image is not self._image:
            self._image, fresh = image, self._fresh + fresh
        added = [(address, data) for address, data in fresh if not image.knows(address)]
        self._fresh += added
        for address, data in added:
            if not image.knows(address):  # two blocks may have the same code
                image.add_code(address, data)
