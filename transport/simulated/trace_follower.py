"""The hart's side of a simulated trace encoder: when it listens to the hart, and what becomes of what it hears."""

from collections.abc import Callable, Sequence

from rvtrace_gdb.transport.simulated.block import HartBlock
from rvtrace_gdb.transport.simulated.hart import Retired
from rvtrace_gdb.transport.simulated.trace_ingress import TracedHart
from rvtrace_gdb.transport.simulated.trace_path import TracePath
from rvtrace_gdb.transport.simulated.trace_protocol import Begin, End
from rvtrace_gdb.transport.simulated.trace_qualifier import Qualifier

Underway = tuple[HartBlock, int]
"""A block that is being executed, and how many of its instructions have retired."""


class Follower:
    """Follows *hart*; what is traced goes to *path*. In Debug Mode there is nothing to hear.

    *underway* of the methods: the program itself accesses registers of the encoder. What the hart goes on with until
    the end of that block is not heard after a change.
    """

    def __init__(self, hart: TracedHart, path: TracePath) -> None:
        self.watch: Callable[[Sequence[Retired]], None] = lambda retired: None
        """Shown everything that is heard while tracing is on, before it is encoded."""
        self.tracing = False
        self._qualifier: Qualifier | None = None
        self._hart = hart
        self._path = path
        self._enabled = self._in_debug = False
        self._listening = False  # else the hart's list of what retired is somebody else's, if it has one

    def set_up(self, qualifier: Qualifier | None) -> None:
        """The encoder was enabled. *qualifier*: what filters say, None if they let everything through."""
        self._qualifier = qualifier

    def drain(self) -> None:
        """Encode what the hart has retired since the last time."""
        if self._listening:
            self._encode(self._hart.now - self._hart.position)

    def follow(self, enabled: bool, wanted: bool, reason: Begin, underway: Underway | None = None) -> None:
        """Tracing is wanted from here on, or not. *enabled*: the encoder is."""
        self._enabled = enabled
        if not wanted:
            self.stop(End.DISABLED, underway)
        elif not self.tracing and not self._in_debug:
            self._hear_out(underway)
            self.tracing = True
            if self._qualifier is not None:
                self._qualifier.open(reason)
            else:
                self._path.begin(reason)
        self._listen()

    def stop(self, reason: End, underway: Underway | None = None) -> None:
        """Tracing is off."""
        if not self.tracing:
            return
        pc = self._hart.pc if underway is None else underway[0].pcs[underway[1]]
        self._hear_out(underway)
        self.tracing = False
        if self._qualifier is not None:
            self._qualifier.close(reason, pc)
        else:
            self._path.end(reason, pc)
        self._path.overrun = False

    def halted(self) -> None:
        """The hart entered Debug Mode."""
        self.stop(End.IN_DEBUG)
        self._hear_out(None)
        self._in_debug = True

    def resumed(self) -> None:
        """It leaves Debug Mode, or starts after a reset."""
        self._in_debug = False

    def hart_reset(self) -> None:
        """It is about to be reset while running."""
        self.stop(End.DISABLED)
        self._hear_out(None)
        if self._qualifier is not None:
            self._qualifier.reset()

    def lose(self) -> None:
        """What was heard last is lost."""
        if self.tracing and self._hart.retired:
            self._path.protocol.skip(self._hart.retired)
            self._hart.retired.clear()
        self._path.overrun = self.tracing

    def _hear_out(self, underway: Underway | None) -> None:
        """Encode all there is, and listen no more for now."""
        if not self._listening:
            return
        retired, end = self._hart.retired, self._hart.now - self._hart.position
        if underway is not None:
            end = self._hart.now
            if underway[1] and retired is not None:
                retired.append(underway)
        self._encode(end)
        self._hart.retired, self._listening = None, False

    def _encode(self, end: int) -> None:
        """*end*: how many instructions the hart had retired when it had retired all of this."""
        retired = self._hart.retired
        if not retired:
            return
        if self.tracing:
            self.watch(retired)
        if self._qualifier is not None:
            self._qualifier.tell(retired, end)
        elif self.tracing:
            self._path.tell(retired)
        retired.clear()

    def _listen(self) -> None:
        """Filters follow the hart even while tracing is off."""
        wanted = self.tracing or (self._enabled and self._qualifier is not None)
        if wanted and not self._listening and not self._in_debug:
            self._hart.retired, self._listening = [], True
            if self._qualifier is not None:
                self._qualifier.start()
        elif not wanted:
            self._hear_out(None)
