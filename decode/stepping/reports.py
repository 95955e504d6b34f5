"""What decoders report besides the instructions that ran: events of a step, bytes that are lost, missing messages.

`Losses` keeps the bytes that are not a frame until each hart has its event for them. `MessageCountJudge` decides
whether there are fewer or more messages between two synchronizations than the encoder sends. The specifications do not
define what encoders count in every detail, so a few fewer or more are accepted until the trace has shown how this
encoder counts; and nothing is reported if the trace shows more such stretches than others, because then the encoder
does not do what its register says.
"""

from collections.abc import Sequence
from itertools import islice
from operator import gt
from typing import NamedTuple

from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint, Resumable, attributes, set_attributes
from rvtrace_gdb.decode.history.events import EventKind, Fact, Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.program.image import Image, Program


class Report(NamedTuple):
    """Something to record after the path of a step. *lost*: as a gap. *resumed*: decoding resumes at this address.

    *after*: a change of context takes effect after this many instructions, which certainly ran but are not in the
    history yet.
    """

    kind: EventKind
    fact: Fact
    last_pc: int | None = None
    next_pc: int | None = None
    lost: bool = False
    moved: bool = False
    """Tracing resumed at another address than it stopped at, so a gap precedes."""
    maybe_moved: bool = False
    """Whether tracing resumed where it stopped is unknown, since the address was not reported then; so a gap precedes,
    too.
    """
    resumed: int | None = None
    after: int = 0


def contradiction_report(program: Program, image: Image, at: int, why: str, packet: str) -> Report:
    """Return the report that trace and code do not agree at this address, or that there is no code.

    *packet* is the name of what the trace reported it with.
    """
    if absent := image.absent_at(at):
        return Report(EventKind.LOSS, Loss(LossCause.ABSENT_CODE, (at, absent, packet)), lost=True)
    if program.partial and not image.knows(at):
        return Report(EventKind.LOSS, Loss(LossCause.NO_CODE, (at, packet)), lost=True)
    return Report(EventKind.MISMATCH, Loss(LossCause.MISMATCH, (image.origin(at), at, why, packet)), lost=True)


class TimeOrder:
    """Finds where the times of a hart go back for the first time: this is said once.

    *last* is the time before those that are compared next; *went_back* says that it was found.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        self.went_back = False

    def first_earlier(self, times: Sequence[int | None]) -> int:
        """Return the index of the first time that is earlier than the one before it, -1 if there is none."""
        if None not in times and not any(map(gt, times, islice(times, 1, None))):  # type: ignore[arg-type]
            first = times[0] if times else None
            return 0 if first is not None and self.last is not None and first < self.last else -1
        before = self.last
        for index, now in enumerate(times):
            if now is not None:
                if before is not None and now < before:
                    return index
                before = now
        return -1

    def passed(self, times: Sequence[int | None]) -> None:
        """Go on behind these times."""
        self.last = next((time for time in reversed(times) if time is not None), self.last)

    def note(self, now: int) -> Note:
        """Return the note that the time went back to *now*; it is made once."""
        self.went_back = True
        return Note(NoteCause.TIME_BACK, (self.last or 0, now))


class LostBytes(NamedTuple):
    """Bytes that are not a frame: *length* of them at *offset*."""

    offset: int
    length: int
    why: str


_LOSSES_KEPT = 1 << 14


class Losses(Resumable):
    """Bytes that no hart can use and that any hart may have sent: each hart gets an event for them at its next message.

    Its memory stays small, even for traces without an end, if `forget` is called whenever it is `full`.
    """

    def __init__(self) -> None:
        self._kept: list[LostBytes] = []
        self._lengths = [0]  # bytes of all losses before each that is kept
        self._forgotten = 0  # losses that are not kept any more
        self._first: LostBytes | None = None
        self._reported: dict[int, int] = {}  # how many losses were reported to each hart

    def add(self, lost: LostBytes) -> None:
        """Add a loss."""
        self._first = self._first or lost
        self._kept.append(lost)
        self._lengths.append(self._lengths[-1] + lost.length)

    def missed(self, source: int) -> LostBytes | None:
        """Return the losses not yet reported to this hart, as one loss; None without any."""
        reported = self._reported.get(source, 0)
        count = self._forgotten + len(self._kept) - reported
        if not count or self._first is None:
            return None
        self._reported[source] = reported + count
        at = reported - self._forgotten
        first, before = (self._first, 0) if at < 0 else (self._kept[at], self._lengths[at])
        why = first.why if count == 1 else f"{first.why}, the first of {count} places"
        return LostBytes(first.offset, self._lengths[-1] - before, why)

    @property
    def full(self) -> bool:
        """Whether there are too many losses to keep."""
        return len(self._kept) >= _LOSSES_KEPT

    def forget(self) -> None:
        """Forget all losses, which must have been reported to all harts seen so far; a hart seen later gets all of
        them.
        """
        self._forgotten += len(self._kept)
        self._kept.clear()
        self._lengths = self._lengths[-1:]


    def checkpoint(self) -> Checkpoint:
        """Return what is left of the losses when all are reported to the harts. Raises NoCheckpoint if they are not."""
        count = self._forgotten + len(self._kept)
        if any(reported != count for reported in self._reported.values()):
            raise NoCheckpoint("losses")
        first = None if self._first is None else list(self._first)
        return {"count": count, "length": self._lengths[-1], "first": first, "harts": list(self._reported)}

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on with the losses of a checkpoint."""
        self._forgotten, self._lengths = checkpoint["count"], [checkpoint["length"]]
        self._first = None if checkpoint["first"] is None else LostBytes(*checkpoint["first"])
        count: int = checkpoint["count"]
        self._reported = dict.fromkeys(checkpoint["harts"], count)


SHOWN = 4  # stretches of exactly the least number, before a little fewer or more is a loss
_LATE = 2  # messages that may come after a synchronization is due, of an encoder that has not shown that none does


_JUDGED = ("_count", "_exact", "_fewer", "_short", "_later", "_long")


class MessageCountJudge(Resumable):
    """Decides about one encoder, which sends *least* messages in a stretch, up to *unsure* fewer, or a few more.

    *always*: an encoder of this format that never sends more in a few stretches never does.
    """

    def __init__(self, least: int, unsure: int = 1, *, always: bool = False) -> None:
        self.least, self._always = least, always
        self._unsure = unsure
        # Stretches so far, by what they showed.
        self._count = self._exact = self._fewer = self._short = self._later = self._long = 0

    def checkpoint(self) -> Checkpoint:
        """Return what the encoder has shown so far."""
        return attributes(self, *_JUDGED)

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on with what an encoder had shown."""
        set_attributes(self, checkpoint, *_JUDGED)

    def add(self, count: int, exact: int) -> None:
        """Count stretches: *count* is how many are complete, *exact* how many of those have exactly
        the least number.
        """
        self._count += count
        self._exact += exact

    def is_short(self, messages: int) -> bool:
        """Return whether a stretch with this number of messages lacks some, as far as this encoder has shown how it
        counts.
        """
        if messages >= self.least:
            self.add(1, messages == self.least)
            return False
        if messages >= self.least - self._unsure:
            short = self._exact >= SHOWN and not self._fewer
            self._fewer += not short
            return short
        self._short += 1
        return self._short <= self._count

    def is_long(self, late: int) -> bool:
        """Return whether a stretch has too many messages, as far as this encoder has shown how it counts.

        *late*: how many came after the least number although the synchronization could have come before them.
        """
        if late <= _LATE:
            long = self._always and late > 0 and self._exact >= SHOWN and not self._later
            self._later += late > 0 and not long
            self._count += not long
            return long
        self._long += 1
        return self._long <= self._count
