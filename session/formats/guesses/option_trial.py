"""What decoding some bytes with some options gives, and which of two results is the better one."""

from typing import NamedTuple

_CONTRADICTION = 16  # counts as bad as so many bytes that cannot be decoded
_SELDOM = 64  # noise has contradictions within fewer bytes
MUCH = 4  # so many times fewer contradictions are much better
_TERSE = 4  # bytes of trace for each instruction, or fewer
_SPARSE = 16  # a trace that was decoded correctly has at most so many
BY_CHANCE = 16  # noise may appear to have so many instructions, or fewer
_FEWEST = 4  # instructions of a trace that is all decoded
_MANY = 8  # one instruction more for each of so many is a gain


class OptionTrial(NamedTuple):
    """The result of decoding *total* bytes with some options: contradictions, bytes decoded, instructions, accesses."""

    total: int
    contradictions: int
    decoded: int
    instructions: int
    accesses: int

    @property
    def worth(self) -> tuple[bool, int, int]:
        """A sort key: more is better. Where a program ran, all in all, damage contradicts it, and not nothing, as with
        options that make all of it something else: packets of data, of another hart.
        """
        ran = self.is_evident and self.contradictions * _SELDOM <= self.total
        return ran, self.decoded - _CONTRADICTION * self.contradictions, self.instructions

    def improves_much(self, other: "OptionTrial") -> bool:
        """Return whether it does more than pass over one of several places with damage."""
        fewer = self.contradictions * MUCH <= other.contradictions
        return fewer or self.instructions * _MANY >= other.instructions * (_MANY + 1) or self.worth[0] > other.worth[0]

    @property
    def is_evident(self) -> bool:
        """Whether so much ran that the bytes are not noise: in noise, with some of many options, a few instructions
        always run. That all bytes lead through the program is not chance either.
        """
        if self.is_all and self.instructions >= _FEWEST:
            return True
        return self.instructions > BY_CHANCE and self.instructions * _SPARSE >= self.total

    @property
    def is_all(self) -> bool:
        """Whether all bytes were decoded, and nothing contradicts the program."""
        return not self.contradictions and self.decoded == self.total

    def reads_what(self, other: "OptionTrial") -> bool:
        """Return whether it decodes what *other* does not, if the framing is unknown: fewer messages contradict less
        then, so most bytes must be decoded, and more must have run.
        """
        more = self.instructions > other.instructions or (not self.instructions and self.accesses > other.accesses)
        most = 2 * self.decoded >= self.total and more
        fewer = self.contradictions * MUCH <= other.contradictions
        fewer |= (
            not other.instructions and self.instructions * _TERSE >= self.decoded
        )  # there is no trace to contradict anything
        return most and fewer and self.contradictions * _SELDOM <= self.total

    def explains_what(self, other: "OptionTrial") -> bool:
        """Return whether it decodes what *other* does not. Missing code stays a contradiction."""
        if self.worth <= other.worth:
            return False
        if self.contradictions * MUCH <= other.contradictions:
            return self.contradictions * _SELDOM <= self.total
        more = self.instructions >= 2 * MUCH * other.instructions
        if self.contradictions == other.contradictions:  # the bytes are damaged, too: nothing synchronizes behind that
            more &= self.decoded >= MUCH * other.decoded
        return more and self.contradictions <= other.contradictions and self.decoded * MUCH >= self.total
