"""TSTAMP: cut off frames, so that the rest can be recognised, and turned into the time it stands for.

Source: N-Trace 1.0, "Timestamp Reporting": absolute in synchronizing messages, relative to the last one reported in all
others. SiFive's encoders send the XOR with the last one instead.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from operator import add

from rvtrace_gdb.decode.ntrace.framing import MAX_FRAME
from rvtrace_gdb.decode.ntrace.layout import MDO_BITS, TCODE_BITS, Layout
from rvtrace_gdb.decode.ntrace.options import Options

_LONGEST = 16  # bytes; 11 hold the 64 bits that TSTAMP has at most ("Maximum Field Sizes")
_CACHED = 1 << 16  # numbers remembered at most

_GOES_ON, _FIELD, _END = (0b00,), (0b01,), (0b11,)


def _bytes(mseo: Iterable[int], fits: Callable[[int], bool] = lambda mdo: True) -> bytes:
    """A pattern of one byte with one of these MSEO and an MDO that fits."""
    return b"[" + b"".join(b"\\x%02x" % byte for byte in range(256) if byte & 3 in mseo and fits(byte >> 2)) + b"]"


_INNER = b"%s*%s" % (_bytes(_GOES_ON), _bytes(_FIELD))  # a field that is not the last of its message
_LAST = b"%s*%s" % (_bytes(_GOES_ON), _bytes(_FIELD + _END))  # one that may be the last but for TSTAMP
_TSTAMP = b"(?<=%s)%s{0,%d}%s" % (_bytes(_FIELD), _bytes(_GOES_ON + _FIELD), _LONGEST - 1, _bytes(_END))


class Clock:
    """The time a hart's messages tell. *now*: in ticks, None before the first synchronizing message."""

    def __init__(self, options: Options) -> None:
        self.now: int | None = None
        self._bits = options.timestamp_bits
        self._xor = options.dialect.xor_timestamps
        self._known: dict[bytes, int] = {}
        layouts = tuple(options.dialect.layouts.values())
        self._syncs = bytes(layout.tcode << 2 for layout in layouts if layout.synchronizes)
        self._frame = _pattern(layouts, options.src_bits)

    def split(self, frames: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Frames without their TSTAMP, and that (b"" when there is none, or the frame is no known message)."""
        pairs: list[tuple[bytes, bytes]] = self._frame.findall(b"".join(frames))
        if max(map(len, frames), default=0) > MAX_FRAME:  # one of them is no message, whatever it begins with
            return [pair if sum(map(len, pair)) <= MAX_FRAME else (pair[0] + pair[1], b"") for pair in pairs]
        return pairs

    def read(self, frames: Sequence[bytes]) -> tuple[list[bytes], list[int | None]]:
        """Frames without their TSTAMP, and the time each tells; None when it has none, or the time is not known."""
        pairs = self.split(frames)
        bodies = [body for body, _ in pairs]
        stamps = [stamp for _, stamp in pairs]
        values = self._values(stamps)
        times: list[int | None] = []
        for sync in [i for i, body in enumerate(bodies) if body[0] in self._syncs and stamps[i]]:
            times += self._relative(values[len(times) : sync])
            times.append(self.take(bodies[sync][0], stamps[sync]))
        times += self._relative(values[len(times) :])
        if b"" in stamps:
            times = [time if stamp else None for time, stamp in zip(times, stamps, strict=True)]
        return bodies, times

    def take(self, first: int, tstamp: bytes) -> int | None:
        """The time after a message that begins with the byte *first* and has this TSTAMP; None while it is unknown."""
        if first in self._syncs:
            self.now = self._unwrapped(_number(tstamp), self.now)
        else:
            self._relative([_number(tstamp)])
        return self.now

    def _values(self, stamps: Sequence[bytes]) -> list[int]:
        known = self._known
        try:
            return [known[stamp] for stamp in stamps]
        except KeyError:
            new = set(stamps).difference(known)
        if len(known) + len(new) > _CACHED:
            known.clear()
            new = set(stamps)
        known.update((stamp, _number(stamp)) for stamp in new)
        return [known[stamp] for stamp in stamps]

    def _relative(self, values: Sequence[int]) -> list[int | None]:
        """The times of messages that do not synchronize."""
        if self.now is None:
            return [None] * len(values)
        step = (lambda now, value: self._unwrapped(now ^ value, now)) if self._xor else add
        times: list[int | None] = list(accumulate(values, step, initial=self.now))
        self.now = times[-1]
        return times[1:]

    def _unwrapped(self, value: int, now: int | None) -> int:
        """*value* as the counter shows it, which has wrapped when it is less than *now*, the time before."""
        if not self._bits or now is None or value >= now:
            return value
        value |= now >> self._bits << self._bits
        return value if value >= now else value + (1 << self._bits)


@cache
def _pattern(layouts: tuple[Layout, ...], src_bits: int) -> re.Pattern[bytes]:
    """Frames as `framing` has them, in two parts: a message of the table and its TSTAMP, or anything else whole."""
    kinds = [kind for layout in layouts for kind in _kinds(layout, src_bits)]
    whole = rb"\xff+|%s*%s" % (_bytes((0b00, 0b01, 0b10)), _bytes(_END))
    return re.compile(rb"(%s|%s)((?:%s)?)(?<=%s)" % (b"|".join(kinds), whole, _TSTAMP, _bytes(_END)))


def _kinds(layout: Layout, src_bits: int) -> Iterator[bytes]:
    """Patterns of a message without TSTAMP: one, or two where a field decides whether the last one is there."""
    first, groups = b"\\x%02x" % (layout.tcode << 2), len(layout.variable)
    decides = next((field.when for field in layout.variable if field.when is not None), None)
    if decides is None:
        yield first + _INNER * (groups - 1) + _LAST
        return
    low, bits = _place(layout, decides[0], src_bits)
    before = first + _bytes(_GOES_ON) * (low // MDO_BITS - 1)
    for present in (True, False):
        behind = groups - 2 + present  # groups behind the first one
        ends = _FIELD if behind else _FIELD + _END
        goes_on, stops = (_deciding(low % MDO_BITS, bits, decides[1], present, mseo) for mseo in (_GOES_ON, ends))
        rest = _INNER * (behind - 1) + _LAST if behind else b""
        yield before + b"(?:%s%s*%s|%s)" % (goes_on, _bytes(_GOES_ON), _bytes(ends), stops) + rest


def _deciding(shift: int, bits: int, value: int, present: bool, mseo: Iterable[int]) -> bytes:
    """Bytes that hold a field, from bit *shift* of the first one on: it has this *value*, or (not *present*) another.

    There are one or two of them; *mseo*: of the last one.
    """
    here = min(bits, MDO_BITS - shift)

    def low(mdo: int) -> bool:
        return (mdo >> shift ^ value) & (1 << here) - 1 == 0

    def high(mdo: int) -> bool:
        return (mdo ^ value >> here) & (1 << bits - here) - 1 == 0

    if here == bits:
        return _bytes(mseo, lambda mdo: low(mdo) is present)
    if present:
        return _bytes(_GOES_ON, low) + _bytes(mseo, high)
    others = _bytes(_GOES_ON, lambda mdo: not low(mdo)) + _bytes(mseo)
    return b"(?:%s%s|%s)" % (_bytes(_GOES_ON, low), _bytes(mseo, lambda mdo: not high(mdo)), others)


def _place(layout: Layout, name: str, src_bits: int) -> tuple[int, int]:
    """Where a fixed field is in its message: the lowest bit, and how many."""
    low = TCODE_BITS + src_bits
    for field in layout.fixed:
        if field.name == name:
            return low, field.bits
        low += field.bits
    raise KeyError(name)


def _number(group: bytes) -> int:
    """The value of the first group in *group*."""
    value = shift = 0
    for byte in group:
        value |= byte >> 2 << shift
        if byte & 0b11:
            break
        shift += MDO_BITS
    return value
