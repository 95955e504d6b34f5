"""The time of messages, from their timestamps.

TSTAMP is removed from frames, so that equal messages are equal bytes, and converted to a time (N-Trace 1.0, "Timestamp
Reporting"): it is absolute in synchronizing messages and relative to the last reported time in all others. SiFive's
encoders send the XOR with the last time instead.

The times of a whole batch are read before its messages are decoded, and only decoding shows that bytes which look like
messages are noise. What such a message has in the place of TSTAMP is not a time, and what messages that are lost
reported is missing from all relative timestamps after them. So the clock is put back to the last time before a loss,
and tells no time until the next absolute timestamp.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from operator import add
from typing import NamedTuple

from rvtrace_gdb.decode.ntrace.framing import MAX_FRAME
from rvtrace_gdb.decode.ntrace.messages import MDO_BITS, TCODE_BITS, MessageLayout
from rvtrace_gdb.decode.ntrace.options import Options

_LONGEST = 16  # bytes of the longest TSTAMP; 11 hold its at most 64 bits ("Maximum Field Sizes")
_CACHE_LIMIT = 1 << 16  # numbers remembered at most

_MSEO_CONTINUE, _MSEO_FIELD, _MSEO_END = (0b00,), (0b01,), (0b11,)


def _byte_class(mseo: Iterable[int], fits: Callable[[int], bool] = lambda mdo: True) -> bytes:
    """Return the pattern of one byte with one of these values of MSEO and an MDO for which *fits* is true."""
    return b"[" + b"".join(b"\\x%02x" % byte for byte in range(256) if byte & 3 in mseo and fits(byte >> 2)) + b"]"


_INNER_FIELD = b"%s*%s" % (
    _byte_class(_MSEO_CONTINUE),
    _byte_class(_MSEO_FIELD),
)  # a field that is not the last of its message
_LAST_FIELD = b"%s*%s" % (
    _byte_class(_MSEO_CONTINUE),
    _byte_class(_MSEO_FIELD + _MSEO_END),
)  # one that may be the last but for TSTAMP
_TSTAMP = b"(?<=%s)%s{0,%d}%s" % (
    _byte_class(_MSEO_FIELD),
    _byte_class(_MSEO_CONTINUE + _MSEO_FIELD),
    _LONGEST - 1,
    _byte_class(_MSEO_END),
)


class TimeBack(NamedTuple):
    """The clock went back at frame number *frame*, counted from 0: from *before* to *now*."""

    frame: int
    before: int
    now: int


class Reading(NamedTuple):
    """What a clock says: its attributes `now` and `unsure`."""

    now: int | None
    unsure: bool


class MessageClock:
    """The time of a hart's messages. *now* is the last one, in ticks; None before the first synchronizing message."""

    def __init__(self, options: Options) -> None:
        self.now: int | None = None
        self.unsure = False
        """Whether messages were lost since *now*. What they reported is missing from relative timestamps, which tell no
        time until the next absolute one. *now* still says how often the counter has wrapped.
        """
        self.back: TimeBack | None = None
        """The first frame of those read last at which the time went back."""
        self._bits = options.timestamp_bits
        self._xor = options.dialect.xor_timestamps
        self._cached: dict[bytes, int] = {}
        layouts = tuple(options.dialect.layouts.values())
        self._syncs = bytes(layout.tcode << 2 for layout in layouts if layout.synchronizes)
        self._frame = _pattern(layouts, options.src_bits)

    def split(self, frames: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return each frame without its TSTAMP, and the TSTAMP; b"" if it has none, or is not a known message."""
        pairs: list[tuple[bytes, bytes]] = self._frame.findall(b"".join(frames))
        if max(map(len, frames), default=0) > MAX_FRAME:  # one of them is not a message, whatever it begins with
            return [pair if sum(map(len, pair)) <= MAX_FRAME else (pair[0] + pair[1], b"") for pair in pairs]
        return pairs

    def read(self, frames: Sequence[bytes]) -> tuple[list[bytes], list[int | None]]:
        """Return the frames without their TSTAMP, and the time of each; None if it has none or it is not known."""
        pairs = self.split(frames)
        bodies = [body for body, _ in pairs]
        stamps = [stamp for _, stamp in pairs]
        values = self._stamp_values(stamps)
        times: list[int | None] = []
        self.back = None
        for sync in [i for i, body in enumerate(bodies) if body[0] in self._syncs and stamps[i]]:
            times += self._relative(values[len(times) : sync])
            before, now = self.now, self.advance(bodies[sync][0], values[sync])
            if before is not None and now is not None and now < before and self.back is None:
                self.back = TimeBack(sync, before, now)
            times.append(now)
        times += self._relative(values[len(times) :])
        if b"" in stamps:
            times = [time if stamp else None for time, stamp in zip(times, stamps, strict=True)]
        return bodies, times

    def advance(self, first: int, tstamp: int) -> int | None:
        """Advance to a message with this *first* byte and TSTAMP, and return the time; None while it is not known."""
        if first in self._syncs:
            self.now, self.unsure = self._unwrapped(tstamp, self.now), False
        else:
            self._relative([tstamp])
        return self.time

    @property
    def time(self) -> int | None:
        """The time; None while it is not known."""
        return None if self.unsure else self.now

    def doubt(self) -> None:
        """Tell no time until the next absolute one: messages are lost."""
        self.unsure = self.now is not None

    def reject(self, before: "Reading") -> None:
        """Go back to *before* a message that is rejected, and tell no time until the next absolute one."""
        self.reading = before
        self.doubt()

    @property
    def reading(self) -> "Reading":
        """What the clock says."""
        return Reading(self.now, self.unsure)

    @reading.setter
    def reading(self, reading: "Reading") -> None:
        self.now, self.unsure = reading

    def _stamp_values(self, stamps: Sequence[bytes]) -> list[int]:
        known = self._cached
        try:
            return [known[stamp] for stamp in stamps]
        except KeyError:
            new = set(stamps).difference(known)
        if len(known) + len(new) > _CACHE_LIMIT:
            known.clear()
            new = set(stamps)
        known.update((stamp, stamp_value(stamp)) for stamp in new)
        return [known[stamp] for stamp in stamps]

    def _relative(self, values: Sequence[int]) -> list[int | None]:
        """Return the times of messages with relative timestamps."""
        if self.now is None or self.unsure:
            return [None] * len(values)
        step = (lambda now, value: self._unwrapped(now ^ value, now)) if self._xor else add
        times: list[int | None] = list(accumulate(values, step, initial=self.now))
        self.now = times[-1]
        return times[1:]

    def _unwrapped(self, value: int, now: int | None) -> int:
        """Return the full time for the counter *value*.

        The counter has wrapped if it is less than *now*, the time before.
        """
        if not self._bits or now is None or value >= now:
            return value
        value |= now >> self._bits << self._bits
        return value if value >= now else value + (1 << self._bits)


class TimesAhead:
    """The times of messages, read before these are decoded: *times*, of frames without TSTAMP, *bodies*."""

    def __init__(self, clock: MessageClock, frames: Sequence[bytes]) -> None:
        self._clock = clock
        self._before = clock.reading  # before the frames not judged yet
        self._judged = 0
        self.bodies, self.times = clock.read(frames)

    def lose(self, index: int, *, rejected: bool) -> bool:
        """Set the clock after a loss, which frame *index* reports or for which it is *rejected*, and correct its time.
        Returns whether the times after it, read ahead, may be others now.
        """
        times, clock = self.times, self._clock
        known = next((time for time in reversed(times[self._judged : index]) if time is not None), None)
        if known is not None:
            self._before = Reading(known, False)
        self._judged = index + 1
        before, own = self._before, times[index]
        if own is None and (before.unsure or before.now is None):
            return False
        if rejected or own is None:
            times[index] = None
            clock.reject(before)
        else:
            clock.now = own
            clock.doubt()
        return True


@cache
def _pattern(layouts: tuple[MessageLayout, ...], src_bits: int) -> re.Pattern[bytes]:
    """Return the pattern of a frame in two groups: a known message and its TSTAMP, or any other frame and nothing."""
    kinds = [kind for layout in layouts for kind in _message_patterns(layout, src_bits)]
    whole = rb"\xff+|%s*%s" % (_byte_class((0b00, 0b01, 0b10)), _byte_class(_MSEO_END))
    return re.compile(rb"(%s|%s)((?:%s)?)(?<=%s)" % (b"|".join(kinds), whole, _TSTAMP, _byte_class(_MSEO_END)))


def _message_patterns(layout: MessageLayout, src_bits: int) -> Iterator[bytes]:
    """Return the patterns of a message without TSTAMP: two if a field decides whether the last field is present."""
    first, groups = b"\\x%02x" % (layout.tcode << 2), len(layout.variable)
    decides = next((field.when for field in layout.variable if field.when is not None), None)
    if decides is None:
        yield first + _INNER_FIELD * (groups - 1) + _LAST_FIELD
        return
    low, bits = field_position(layout, decides[0], src_bits)
    before = first + _byte_class(_MSEO_CONTINUE) * (low // MDO_BITS - 1)
    for present in (True, False):
        following = groups - 2 + present  # groups after the first one
        ends = _MSEO_FIELD if following else _MSEO_FIELD + _MSEO_END
        continued, stops = (
            _deciding_field(low % MDO_BITS, bits, decides[1], present, mseo) for mseo in (_MSEO_CONTINUE, ends)
        )
        rest = _INNER_FIELD * (following - 1) + _LAST_FIELD if following else b""
        yield before + b"(?:%s%s*%s|%s)" % (continued, _byte_class(_MSEO_CONTINUE), _byte_class(ends), stops) + rest


def _deciding_field(shift: int, bits: int, value: int, present: bool, mseo: Iterable[int]) -> bytes:
    """Return the pattern of the one or two bytes that contain a field, starting at bit *shift* of the first byte.

    With *present* the field has this *value*, else any other. *mseo*: the MSEO of the last byte.
    """
    here = min(bits, MDO_BITS - shift)

    def low(mdo: int) -> bool:
        return (mdo >> shift ^ value) & (1 << here) - 1 == 0

    def high(mdo: int) -> bool:
        return (mdo ^ value >> here) & (1 << bits - here) - 1 == 0

    if here == bits:
        return _byte_class(mseo, lambda mdo: low(mdo) is present)
    if present:
        return _byte_class(_MSEO_CONTINUE, low) + _byte_class(mseo, high)
    others = _byte_class(_MSEO_CONTINUE, lambda mdo: not low(mdo)) + _byte_class(mseo)
    return b"(?:%s%s|%s)" % (_byte_class(_MSEO_CONTINUE, low), _byte_class(mseo, lambda mdo: not high(mdo)), others)


def field_position(layout: MessageLayout, name: str, src_bits: int) -> tuple[int, int]:
    """Return the position of a fixed field in its message: its lowest bit and its width."""
    low = TCODE_BITS + src_bits
    for field in layout.fixed:
        if field.name == name:
            return low, field.bits
        low += field.bits
    raise KeyError(name)


def stamp_value(stamp: bytes) -> int:
    """Return the value of a TSTAMP, which ends with its first group."""
    value = shift = 0
    for byte in stamp:
        value |= byte >> 2 << shift
        if byte & 0b11:
            break
        shift += MDO_BITS
    return value
