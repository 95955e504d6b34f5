"""The comparison of the messages of one interval with those that an encoder makes of what ran in it."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.decode.check.alignment import RowAlignment, aligned
from rvtrace_gdb.decode.check.verdict import IntervalDifference
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext

_AT_END = 2  # messages that may describe what an interval without an end does not contain


class Notify:
    """The next block begins with an instruction that a trigger asked to be reported."""


CheckedIngressItem = Block | IngressTrap | ProgramContext | Notify


class ReportedMessage(NamedTuple):
    """A message or packet of the trace, without what the transport adds. *offset*: of its first byte in the trace."""

    raw: bytes
    offset: int


class CheckedPart(NamedTuple):
    """Consecutive instructions, and the messages that reported them.

    *foreign*: how many further messages there were that do not report what ran.
    """

    items: Sequence[CheckedIngressItem]
    messages: Sequence[ReportedMessage]
    foreign: int = 0


class Interval:
    """An interval between two synchronizations: bytes *start* to *end* - 1, rows *begin* to *position* - 1.

    *opening*, *closing*: what begins and ends it. *parts*: None if they are too many to be kept.
    """

    def __init__(self, opening: Any, start: int, begin: int) -> None:
        self.opening, self.start, self.begin = opening, start, begin
        self.closing: Any = None
        self.end = self.position = 0
        self.parts: list[CheckedPart] | None = []
        self.size = 0

    def add(self, part: CheckedPart) -> None:
        """Add a part, if the parts are kept."""
        self.size += len(part.items) + len(part.messages)
        if self.parts is not None:
            self.parts.append(part)


class IntervalComparison(ABC):
    """The comparison of one interval with what an encoder makes of it.

    difference  the first one so far
    matched     the number of messages before it
    """

    def __init__(self) -> None:
        self.difference: IntervalDifference | None = None
        self.matched = 0
        self._made: deque[bytes] = deque()
        self._sent: deque[ReportedMessage] = deque()

    def align(self, parts: Iterable[CheckedPart], closing: Any) -> RowAlignment:
        """Return how the messages of a whole interval go together, of which nothing was fed."""
        for part in parts:
            self.receive(part.messages)
            self.encode(part)
        if closing is not None:
            self.close(closing)
        sent = [message.raw for message in self._sent]
        return aligned(list(self._made), sent, lambda made, raw: made == raw or self.is_same(made, raw))

    def feed(self, part: CheckedPart) -> None:
        """Encode what ran next and compare the messages so far."""
        if self.difference is None:
            self.receive(part.messages)
            self.encode(part)
            self._match()

    def receive(self, messages: Iterable[ReportedMessage]) -> None:
        """Add messages of the trace that are to be compared."""
        self._sent.extend(messages)

    def end(self, closing: Any, offset: int) -> IntervalDifference | None:
        """End the interval, at byte *offset*, and return its first difference."""
        if self.difference is None:
            loose = closing is None or not self.close(closing)
            self._match()
            if self.difference is None and not (loose and self._may_end()):
                self._compare_rest(offset)
        if self.difference is None and closing is not None and self.mistimed(closing):
            self.difference = IntervalDifference(offset, "", self.name(closing), timing=True)
        return self.difference

    def _may_end(self) -> bool:
        """Return whether the messages that are left may describe what is not in the history any more."""
        flow = [message for message in self._sent if not self.runs_ahead(message.raw)]
        return len(flow) <= _AT_END and not self._made

    def _compare_rest(self, offset: int) -> None:
        if self._sent:
            self.difference = IntervalDifference(self._sent[0].offset, "", self.name_of(self._sent[0].raw))
        elif self._made:
            self.difference = IntervalDifference(offset, self.name_of(self._made[0]), "")

    def _match(self) -> None:
        made, sent = self._made, self._sent
        while made and sent:
            if made[0] != sent[0].raw and not self.is_same(made[0], sent[0].raw):
                if self.may_be_exchanged(made[0], sent[0].raw) and self._exchange_messages():
                    continue
                raw, offset = sent[0]
                self.difference = IntervalDifference(offset, self.name_of(made[0]), self.name_of(raw))
                return
            made.popleft()
            sent.popleft()
            self.matched += 1

    def _exchange_messages(self) -> bool:
        """Exchange the next two messages made, if they are then those of the trace."""
        made, sent = self._made, self._sent
        if len(made) < 2 or len(sent) < 2 or not self.is_same(made[1], sent[0].raw):
            return False
        made[0], made[1] = made[1], made[0]
        return True

    @abstractmethod
    def encode(self, part: CheckedPart) -> None:
        """Let the encoder make the messages for what ran."""

    @abstractmethod
    def close(self, closing: Any) -> bool:
        """Let the encoder make the messages for the end of the interval. False: how it ends is not known."""

    @abstractmethod
    def mistimed(self, closing: Any) -> bool:
        """Return whether the encoder would not have synchronized there."""

    @property
    def is_uncertain(self) -> bool:
        """Whether messages that are not compared may have changed those that are."""
        return False

    def is_timed(self, closing: Any) -> bool:
        """Return whether the interval ends with a synchronization whose place is compared."""
        return False

    @abstractmethod
    def is_same(self, encoded: bytes, sent: bytes) -> bool:
        """Return whether two different messages differ only in what the history does not determine."""

    def may_be_exchanged(self, encoded: bytes, sent: bytes) -> bool:
        """Return whether an encoder may send the two in any order."""
        return False

    def runs_ahead(self, raw: bytes) -> bool:
        """Return whether any number of such messages may come before the one that shows what ran."""
        return False

    @abstractmethod
    def name_of(self, raw: bytes) -> str:
        """Return the name of a message."""

    @abstractmethod
    def name(self, closing: Any) -> str:
        """Return the name of what ends an interval."""
