"""The hart as it was when it had retired what has been told so far: what a filtered trace is made from.

What is told in one go is filtered in pieces. A protocol that begins between two of them asks for the situation and the
time there, while the hart itself is further on.
"""

from collections.abc import Sequence

from rvtrace_gdb.transport.simulated.block import HartBlock, Situation
from rvtrace_gdb.transport.simulated.hart import Retired
from rvtrace_gdb.transport.simulated.trace_ingress import TracedHart


def instructions(item: Retired) -> int:
    """How many instructions have retired by *item*."""
    if isinstance(item, HartBlock):
        return item.n
    return item[1] if isinstance(item[0], HartBlock) else 0


class HartView:
    """A `TracedHart` for protocols; between `enter` and `leave` it is in the past of *hart*.

    *needs_situation*, *needs_accesses*: filters need to be told, whatever the protocol wants.
    """

    needs_situation = False

    def __init__(self, hart: TracedHart) -> None:
        self._hart = hart
        self._now: int | None = None  # instructions retired when that was so, None: the present
        self._idle = 0  # time slept until then
        self._situation = hart.situation
        self._tells_situation = self._tells_accesses = self._needs_accesses = False

    # -- what a protocol sees

    @property
    def retired(self) -> list[Retired] | None:
        return self._hart.retired

    @retired.setter
    def retired(self, sink: list[Retired] | None) -> None:
        self._hart.retired = sink

    @property
    def xlen(self) -> int:
        return self._hart.xlen

    @property
    def pc(self) -> int:
        return self._hart.pc if self._now is None else self._situation.pc

    @property
    def position(self) -> int:
        return self._hart.position if self._now is None else 0

    @position.setter
    def position(self, count: int) -> None:
        raise AttributeError("position is the hart's")

    @property
    def now(self) -> int:
        return self._hart.now if self._now is None else self._now

    @property
    def elapsed(self) -> int:
        return self._hart.elapsed if self._now is None else self._now + self._idle

    @property
    def situation(self) -> Situation:
        return self._hart.situation if self._now is None else self._situation

    @property
    def tells_situation(self) -> bool:
        return self._tells_situation

    @tells_situation.setter
    def tells_situation(self, wanted: bool) -> None:
        self._tells_situation = wanted
        self._hart.tells_situation = wanted or self.needs_situation

    @property
    def tells_accesses(self) -> bool:
        return self._tells_accesses

    @tells_accesses.setter
    def tells_accesses(self, wanted: bool) -> None:
        self._tells_accesses = wanted
        self._hart.tells_accesses = wanted or self._needs_accesses

    # -- what filters do with it

    def listen(self, needed: bool, accesses: bool) -> None:
        """Filters want to be told of what they need."""
        self.needs_situation, self._needs_accesses = needed, needed and accesses
        self.tells_situation = self._tells_situation
        self.tells_accesses = self._tells_accesses

    def start(self) -> None:
        """The next thing that is told happens in the present situation."""
        self._situation = self._hart.situation
        self._idle = self._hart.elapsed - self._hart.now

    @property
    def latest(self) -> Situation:
        """What held when that was so."""
        return self._situation

    def enter(self, retired: Sequence[Retired], end: int) -> None:
        """*retired* is going to be looked at; after it the hart had retired *end* instructions."""
        self._now = end - sum(map(instructions, retired))

    def passed(self, count: int) -> None:
        """*count* instructions more."""
        if self._now is not None:
            self._now += count

    def changed(self, situation: Situation) -> None:
        """*situation* holds from here on."""
        assert self._now is not None
        self._situation = situation
        self._idle = max(situation.elapsed - self._now, self._idle)

    def leave(self) -> None:
        """Back to the present."""
        self._now = None
