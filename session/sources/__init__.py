"""What makes traces on a target. `TraceSource` is what a session needs of each of them.

Sources are encoders and a sink (`trace_control`), a hart's own records (`ctr`), a tandem port (`tandem_port`), and a
recorder in QEMU (`qemu`). The memory of an ESP32 (`esp32_memory`) holds a trace that its firmware has made.
"""

from typing import Protocol

from rvtrace_gdb.session.capture.model import CapturedEncoder, CapturedRecords, CapturedSink, CapturedTandem
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.support.errors import Progress, RvtraceError


class TraceSource(Protocol):
    """What a session needs of it. Reading and stopping raise only what *progress* raises: what went wrong is `failure`.
    A trace that cannot be stopped now raises why, and goes on.

    tracing  it goes on, or is to after an interruption
    behind   there may be more than was read out
    failure  why the last read-out is not complete, or the trace could not be resumed after it
    notes    what the user must know of it
    """

    tracing: bool
    behind: bool
    failure: RvtraceError | None
    notes: list[str]

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]: ...

    @property
    def sinks(self) -> tuple[CapturedSink, ...]: ...

    @property
    def records(self) -> tuple[CapturedRecords, ...]: ...

    @property
    def tandem(self) -> tuple[CapturedTandem, ...]: ...

    def started(self) -> list[str]:
        """What was set up, and what was not granted, a line each."""

    def status(self) -> list[str]:
        """How it is now, as far as it can be asked, a line each."""

    def ended(self) -> list[str]:
        """What was read out when it was stopped, a line each."""

    def told(self, context: Context) -> None:
        """The program and the target as they are now."""

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """The same twice: nothing ran in between. None: that cannot be told. *runs*: how often the target resumed."""

    def unread(self) -> int:
        """About how many bytes a read-out would take from the target. Raises the transport's errors."""

    def read_out(self, progress: Progress) -> None:
        """Bring what was read up to date, and go on."""

    def stop(self, progress: Progress) -> None:
        """End it, and bring what was read up to date."""

    def abandon(self) -> None:
        """Touch the target no more; it is being used for something else."""

    def close(self) -> None:
        """End the link; a trace that runs goes on in the target."""
