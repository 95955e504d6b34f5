"""What a check finds: the intervals that differ, and whether that means damage."""

from typing import NamedTuple


class IntervalDifference(NamedTuple):
    """The first difference in an interval: the *encoded* message in place of the *sent* one at byte *offset*.

    Both are names; "": none. *timing*: only the place of the synchronization that ends the interval differs; *unknown*:
    it is where no encoder sends one, however it counts its period.
    """

    offset: int
    encoded: str
    sent: str
    timing: bool = False
    unknown: bool = False


class Differing(NamedTuple):
    """An interval that differs: bytes *start* to *end* - 1 of the trace, and rows *begin* to *position* - 1."""

    start: int
    end: int
    begin: int
    position: int
    difference: IntervalDifference


_MANY = 32  # intervals that agree for each that differs, of an encoder that has much freedom
_PLACES = 2  # of an interval that differ because of damage, of an encoder that has much freedom
_SURPRISING = 3  # intervals that differ although the decoder has found no loss; more are a habit of the encoder


class Verdict(NamedTuple):
    """What the check found about one hart.

    agreed     the number of intervals whose messages are the same
    punctual   how many of them end with a synchronization that is sent when ours is
    content    the number of intervals whose messages differ
    timing     the number of those that differ only in the place of the synchronization at their end
    differing  both, as far as they are listed
    lost       the number of intervals with a loss that the decoder has found
    unchecked  the number of intervals that cannot be compared
    matched    the number of messages that are the same
    places     the number of places where they are not
    evidence   the number of messages that outweigh a place, see `intervals.Scheme`
    is_free    whether encoders of the format have so much freedom that more places in an interval are a habit
    beginning  the messages before the first synchronization, if the trace begins there
    """

    agreed: int
    punctual: int
    content: int
    timing: int
    differing: tuple[Differing, ...]
    lost: int
    unchecked: int
    matched: int
    places: int
    evidence: int
    is_free: bool
    beginning: Differing | None

    @property
    def tells(self) -> bool:
        """Whether the encoder is built as ours, so that a difference is damage: most intervals agree."""
        few = self.matched >= self.evidence * self.places
        habit = self.is_free and self.places > _PLACES * self.content
        others = (_MANY if self.is_free else 2) * self.content
        return (few or self.agreed >= others) and self.content <= _SURPRISING + 2 * self.lost and not habit

    @property
    def tells_time(self) -> bool:
        """Whether the encoder synchronizes when ours does."""
        return self.tells and (self.punctual >= 4 * self.timing or (self.timing == 1 and self.punctual > 0))

    @property
    def damaged(self) -> tuple[Differing, ...]:
        """The intervals that are damaged."""
        intervals = tuple(one for one in self.differing if self._is_believed(one.difference))
        return intervals if self.beginning is None else (self.beginning, *intervals)

    def _is_believed(self, difference: IntervalDifference) -> bool:
        if not difference.timing:
            return self.tells
        return self.tells_time or (self.tells and difference.unknown and self.timing <= max(self.punctual, 1))

    @property
    def is_unsure(self) -> bool:
        """Whether there are differences of which the check cannot tell what they mean."""
        return not self.tells or not all(self._is_believed(one.difference) for one in self.differing)
