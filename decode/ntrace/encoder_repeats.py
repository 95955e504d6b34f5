"""What an encoder holds back to send it once, with a count: full HIST registers, runs of branches, branch messages.

Sources: RISC-V N-Trace 1.0, "Repeated History Optimization" and "RepeatBranch Message"; the patterns of 28 and 30
branches are those the reference encoder looks for. Runs (RCODE 8 and 9) are SiFive's.
"""

from collections.abc import Callable

from rvtrace_gdb.decode.ntrace.encoder_options import EncoderOptions
from rvtrace_gdb.decode.ntrace.layout import Rcode, Tcode

Write = Callable[..., None]
"""Sends a message: its TCODE and the values of its fields."""

_RESOURCE_FULL, _REPEAT_BRANCH = int(Tcode.RESOURCE_FULL), int(Tcode.REPEAT_BRANCH)
_HIST, _REPEATED_HIST = int(Rcode.HIST), int(Rcode.REPEATED_HIST)


class RepeatedHistory:
    """Full HIST registers, counted while they repeat: ResourceFull with RCODE 2, or 1 if there was only one.

    Patterns carry a stop bit, as HIST does. *added* is told of each repetition that is counted.
    """

    def __init__(self, options: EncoderOptions, write: Write, added: Callable[[], None]) -> None:
        self._added = added
        self._limit = options.hrepeat_limit
        bits = options.hist_limit - 1
        self._trims = [trim for trim in options.repeat_trims if 2 * trim < bits]
        self._shortest = options.repeat_shortest
        self._write = write
        self._pattern = 0
        self._count = 0

    def take(self, hist: int) -> int:
        """Take a full HIST over; returns what stays in the register."""
        if self._pattern:
            rest = self._without_pattern(hist)
            if rest is None:
                rest = self._trimmed(hist)
            if rest is not None:
                return rest
            self.flush()
        return self._begin(hist)

    def flush(self) -> None:
        """Send what is counted."""
        if self._count == 1:
            self._write(_RESOURCE_FULL, _HIST, self._pattern)
        elif self._count:
            self._write(_RESOURCE_FULL, _REPEATED_HIST, self._pattern, self._count)
        self.forget()

    def forget(self) -> None:
        """What is counted is lost."""
        self._pattern = self._count = 0

    def _begin(self, hist: int) -> int:
        self._pattern = _shortest(hist) if self._shortest else hist
        rest = self._without_pattern(hist)
        assert rest is not None
        return rest

    def _without_pattern(self, hist: int) -> int | None:
        """HIST after the repetitions at its beginning, which are counted; None if there is none."""
        size = self._pattern.bit_length() - 1
        left = hist.bit_length() - 1
        found = False
        while left >= size and hist >> left - size == self._pattern:
            left -= size
            hist = 1 << left | hist & (1 << left) - 1
            found = True
            self._add()
        return hist if found else None

    def _add(self) -> None:
        if self._count == self._limit:
            self._write(_RESOURCE_FULL, _REPEATED_HIST, self._pattern, self._count)
            self._count = 0
        self._count += 1
        self._added()

    def _trimmed(self, hist: int) -> int | None:
        """The same for a shorter pattern that the first two full registers begin with one after the other."""
        bits = self._pattern.bit_length() - 1
        if self._count != 1 or hist.bit_length() - 1 != bits:
            return None
        both = self._pattern << bits | hist & (1 << bits) - 1
        for trim in self._trims:
            size = bits - trim
            left = 2 * trim
            pattern, second = self._pattern >> trim, 1 << size | both >> left & (1 << size) - 1
            if pattern == second:
                self._pattern, self._count = pattern, 2
                return 1 << left | both & (1 << left) - 1
        return None


def _shortest(hist: int) -> int:
    """The shortest pattern that HIST repeats from its beginning on, at least twice; HIST itself if there is none."""
    bits = hist.bit_length() - 1
    for size in range(1, bits // 2 + 1):
        if (hist ^ hist >> size) & (1 << bits - size) - 1 == 0:
            return hist >> bits - size
    return hist


class BranchRuns:
    """Branches in a row with one outcome: SiFive's ResourceFull, its RCODE says which outcome, RDATA how many."""

    def __init__(self, options: EncoderOptions, write: Write) -> None:
        self._rcodes = {outcome: rcode for rcode, outcome in options.dialect.run_rcodes.items()}
        self._limit = options.hrepeat_limit
        self._starts = {(2 << options.run_minimum) - 1: 1, 1 << options.run_minimum: 0}  # HIST: the outcome in it
        self._minimum = options.run_minimum
        self._write = write
        self._outcome = 0
        self._count = 0

    @property
    def counting(self) -> bool:
        """Whether there is such a run now."""
        return self._count > 0

    def append(self, hist: int, outcome: int) -> int:
        """One more branch; HIST after it."""
        if self._count and outcome == self._outcome:
            if self._count == self._limit:
                self._send()
            self._count += 1
            return hist
        self.flush()
        hist = hist << 1 | outcome
        if hist not in self._starts:
            return hist
        self._outcome, self._count = self._starts[hist], self._minimum
        return 1

    def flush(self) -> None:
        """Send what is counted."""
        if self._count:
            self._send()

    def forget(self) -> None:
        """What is counted is lost."""
        self._count = 0

    def _send(self) -> None:
        self._write(_RESOURCE_FULL, self._rcodes[self._outcome], self._count)
        self._count = 0


class RepeatedBranch:
    """Branch messages that are the same as the one before."""

    def __init__(self, options: EncoderOptions, write: Write) -> None:
        self._limit = options.bcnt_limit
        self._write = write
        self._last: tuple[int, ...] | None = None
        self._count = 0

    def counts(self, message: tuple[int, ...]) -> bool:
        """Whether *message* is the last one again, which is counted. It stands for what the decoder does with it."""
        if message != self._last:
            return False
        if self._count == self._limit:
            self._write(_REPEAT_BRANCH, self._count)
            self._count = 0
        self._count += 1
        return True

    def sent(self, message: tuple[int, ...]) -> None:
        """*message* is the last one now."""
        self._last = message

    def flush(self) -> None:
        """Send the count: another message follows, so that the last one is not the last one any more."""
        if self._count:
            self._write(_REPEAT_BRANCH, self._count)
        self.forget()

    def forget(self) -> None:
        """What is counted is lost."""
        self._last, self._count = None, 0
