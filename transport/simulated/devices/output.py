"""The transfer of trace from one simulated trace component to the next.

A component sends whole messages; a message that the receiver does not take is dropped, or waits. `LosingOutput` loses
trace on purpose: it is an output of an encoder that finds no room for some messages.

Source: RISC-V Trace Control Interface Specification 1.0, "Connections Between Components"; trTeInstStallOrOverflow:
trace may be lost at any time.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from rvtrace_gdb.transport.simulated.devices.component import TraceComponent

_WORD = 4  # bytes
_ASYNC_UNIT = 128  # bytes; how often synchronization sequences come, tr??AsyncFreq doubling it, is ours to choose


def async_interval(frequency: int) -> int:
    """Return the number of bytes after which another synchronization sequence is due (tr??AsyncFreq), 0: never.

    The encoder inserts it, as it knows where packets begin.
    """
    return _ASYNC_UNIT << frequency if frequency else 0


class TraceOutput(Protocol):
    """The receiver of a component's trace: a sink, a bridge or one input of a funnel."""

    by_message: bool
    """`accept` gets one message at a time, not as many as there are."""
    filling: bytes
    """A byte that may stand between messages; whoever sends them sets it."""

    @property
    def enabled(self) -> bool:
        """Whether it is in use."""

    @property
    def ready(self) -> bool:
        """Whether it takes messages now."""

    @property
    def async_interval(self) -> int:
        """The number of bytes after which another synchronization sequence is due, 0: never. The encoder inserts them.
        """

    def fed_by(self, drain: Callable[[], None]) -> None:
        """Register *drain*, which delivers the sender's pending trace and is called before any access."""

    def accept(self, data: bytes) -> int:
        """Take whole messages; return how many bytes were taken: fewer if it is off or full."""


class Outbox:
    """Messages that have not been delivered to *output* yet; `put` adds one, `put_all` several."""

    def __init__(self, output: TraceOutput) -> None:
        self.output = output
        self._bytes = bytearray()
        self._messages: list[bytes] = []
        self._sent = 0  # bytes
        self.put: Callable[[bytes], None] = self._messages.append if output.by_message else self._bytes.extend

    def put_all(self, messages: list[bytes]) -> None:
        if self.output.by_message:
            self._messages += messages
        else:
            self._bytes += b"".join(messages)

    def __bool__(self) -> bool:
        return bool(self._bytes or self._messages)

    def clear(self) -> None:
        self._bytes.clear()
        self._messages.clear()
        self._sent = 0

    def fill(self) -> None:
        """Fill the last word where messages are sent in words: a flush ends."""
        if not self.output.by_message:
            self.put(self.output.filling * (-(self._sent + len(self._bytes)) % _WORD))

    def deliver(self) -> bool:
        """Deliver the messages; return False if some were lost."""
        if self._bytes:
            data = bytes(self._bytes)
            taken = self.output.accept(data)
            self._sent += taken
            self._bytes.clear()
            if taken < len(data):
                self.clear()
            return taken == len(data)
        if not self._messages:
            return True
        messages = self._messages[:]
        self._messages.clear()
        return all(self.output.accept(message) == len(message) for message in messages)


class Outputs:
    """All receivers of one encoder. One that is not enabled gets nothing as long as another one is."""

    def __init__(self, outputs: Sequence[TraceOutput]) -> None:
        self._boxes = [Outbox(output) for output in outputs]
        self.put = self._boxes[0].put if len(outputs) == 1 else self._put_to_each

    def __bool__(self) -> bool:
        return any(self._boxes)

    @property
    def ready(self) -> bool:
        """Whether messages are taken."""
        return any(box.output.ready for box in self._boxes)

    @property
    def async_interval(self) -> int:
        """The shortest interval that a receiver requires, 0: none does."""
        return min(filter(None, (box.output.async_interval for box in self._boxes)), default=0)

    def connect(self, drain: Callable[[], None]) -> None:
        for box in self._boxes:
            box.output.fed_by(drain)

    def fill_with(self, filling: bytes) -> None:
        for box in self._boxes:
            box.output.filling = filling

    def deliver(self) -> bool:
        """Deliver the messages; return False if some were lost."""
        if len(self._boxes) == 1:  # as almost always, and this is done after every slice of the program
            return self._boxes[0].deliver()
        in_use = [box for box in self._boxes if box.output.enabled] or self._boxes
        for box in self._boxes:
            if box not in in_use:
                box.clear()
        delivered = [box.deliver() for box in in_use]
        return all(delivered)

    def fill(self) -> None:
        for box in self._boxes:
            box.fill()

    def clear(self) -> None:
        for box in self._boxes:
            box.clear()

    def _put_to_each(self, message: bytes) -> None:
        for box in self._boxes:
            box.put(message)

    def put_all(self, messages: list[bytes]) -> None:
        """Add messages to what is to be delivered."""
        for box in self._boxes:
            box.put_all(messages)


class TraceConsumer(TraceComponent):
    """A component that receives trace from others. While it is *jammed* it takes nothing: overflow on demand."""

    by_message = False
    filling = b"\xff"
    jammed = False

    _feeders: tuple[Callable[[], None], ...] = ()

    def fed_by(self, drain: Callable[[], None]) -> None:
        self._feeders = (*self._feeders, drain)

    def pull(self) -> None:
        """Request that senders deliver everything that they hold for it."""
        for drain in self._feeders:
            drain()

    def before_access(self) -> None:
        self.pull()

    @property
    def ready(self) -> bool:
        return self.enabled and not self.jammed


class LosingOutput:
    """A `TraceOutput` that passes messages on to *output*, except those whose numbers, counted from 0, are in *after*.
    """

    by_message = True

    def __init__(self, output: TraceOutput, after: Collection[int]) -> None:
        self._output = output
        self._after = frozenset(after)
        self._count = 0

    @property
    def filling(self) -> bytes:
        return self._output.filling

    @filling.setter
    def filling(self, filling: bytes) -> None:
        self._output.filling = filling

    @property
    def enabled(self) -> bool:
        return self._output.enabled

    @property
    def ready(self) -> bool:
        return self._output.ready

    @property
    def async_interval(self) -> int:
        return self._output.async_interval

    def fed_by(self, drain: Callable[[], None]) -> None:
        self._output.fed_by(drain)

    def accept(self, data: bytes) -> int:
        """Take one whole message."""
        lost = self._count in self._after
        self._count += 1
        return 0 if lost else self._output.accept(data)
