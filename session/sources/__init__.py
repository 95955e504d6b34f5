"""The sources of traces on a target. `TraceSource` is the interface that a session uses.

Sources are encoders and a sink (`trace_control`), a hart's own records (`ctr`), a tandem port (`tandem_port`), and a
recorder in QEMU (`qemu`). The memory of an ESP32 (`esp32_memory`) holds a trace that its firmware has recorded.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from rvtrace_gdb.session.capture.model import (
    CapturedBranches,
    CapturedEncoder,
    CapturedImage,
    CapturedRecords,
    CapturedSink,
    CapturedTandem,
    CapturedTrap,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.support.errors import Progress, RvtraceError

if TYPE_CHECKING:
    from rvtrace_gdb.session.target.target_state import SavedTarget


class TraceSource(Protocol):
    """A source of trace. Reading and stopping raise only what *progress* raises; other errors are kept in `failure`.

    A trace that cannot be stopped now raises the reason, and continues. A source is a subclass, which has what the
    methods here return only where it differs.

    tracing     the trace is running, or will be resumed after an interruption
    incomplete  there may be more trace than was read out
    failure     why the last read-out is incomplete, or why the trace could not be resumed after it
    notes       notes about the trace for the user
    state       what is saved of the target where the trace begins and ends; None: nothing is
    halted      the harts that were halted when the trace was read out last
    """

    tracing: bool
    incomplete: bool
    failure: RvtraceError | None
    notes: list[str]
    state: "SavedTarget | None" = None
    halted: Collection[int] = ()
    shows_halts: bool = True
    """Whether the trace shows where a hart goes on after each halt."""

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        return ()

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return ()

    @property
    def records(self) -> tuple[CapturedRecords, ...]:
        return ()

    @property
    def tandem(self) -> tuple[CapturedTandem, ...]:
        return ()

    @property
    def branches(self) -> tuple[CapturedBranches, ...]:
        return ()

    @property
    def images(self) -> tuple[CapturedImage, ...]:
        """Code that is in memory in some contexts only."""
        return ()

    @property
    def ends(self) -> Mapping[int, int]:
        """The pc of each traced hart where its trace ends, as far as that is known."""
        return {}

    def is_of(self, openocd: str | None) -> bool:
        """Return whether it is of the target that the debugger is connected to, as far as is known: *openocd* is the
        mark of the debugger's, as of `session.target.link.checked`.
        """
        return True

    @property
    def traps(self) -> tuple[CapturedTrap, ...]:
        """What halted harts said of their last traps when the trace was read out, as far as they were asked."""
        return ()

    def ask_of_trap(self, hart: int) -> None:
        """Read what a hart says of its last trap, if nothing can have run since the trace was read out. The trace has
        the causes of traps unless a source does this.
        """
        return

    def started(self) -> list[str]:
        """Return lines about what was set up, and which requests were not granted."""

    def status(self) -> list[str]:
        """Return lines about the current state, as far as it can be read."""

    def ended(self) -> list[str]:
        """Return lines about what was read out when the trace was stopped."""

    def unlisted(self) -> list[str]:
        """Return the notes that came up while the trace was read out, each once: none, unless reading finds some."""
        return []

    def use_context(self, context: Context) -> None:
        """Take over the program and target settings that the client sent: nothing, where the trace contains them."""
        return

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """Return a value that stays the same as long as nothing runs, None if that is unknown. *runs*: how often the
        target was resumed.
        """

    def unread(self) -> int:
        """Return about how many bytes a read-out would fetch from the target. Raises the transport's errors."""

    def read_out(self, progress: Progress) -> None:
        """Read out what is new, and continue tracing."""

    def stop(self, progress: Progress) -> None:
        """End the trace, and read out what is new."""

    def abandon(self) -> None:
        """Do not access the target any more: another trace uses it."""

    def let_go(self) -> None:
        """Let other programs use what leads to the target until it is used here again. Called after each request; a
        source that needs its link in between does nothing.
        """
        return

    def close(self) -> None:
        """End the link; a running trace continues on the target."""


class TraceOwner(Protocol):
    """The session, as far as a source that is started needs it."""

    @property
    def live(self) -> TraceSource | None:
        """The trace that is being recorded."""
        ...

    def check_free(self, kind: type) -> None:
        """Raise `Busy` when a trace of another *kind* is being recorded."""

    def begin(self, live: TraceSource, reading: DecodedCapture, target_line: str) -> list[str]:
        """Make this trace the session's, and return a line for each thing that was set up for it."""
        ...
