"""TSTAMP: cut off a frame, so that the rest can be recognised, and turned into the time it stands for.

Source: N-Trace 1.0, "Timestamp Reporting": absolute in synchronizing messages, relative to the last one reported in all
others. SiFive's encoders send the XOR with the last one instead.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from decode.ntrace.framing import MAX_FRAME
from decode.ntrace.layout import MDO_BITS, TCODE_BITS, Layout
from decode.ntrace.options import Options

_CACHED = 1 << 16  # numbers remembered at most


def _any_of(*mseo: int) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % byte for byte in range(256) if byte & 0b11 in mseo) + b"]"


_GOES_ON, _FIELD, _END, _NOT_END = _any_of(0b00), _any_of(0b01), _any_of(0b11), _any_of(0b00, 0b01, 0b10)
_GROUP = b"%s*[%s%s]" % (_GOES_ON, _FIELD[1:-1], _END[1:-1])
_INNER = b"%s*%s" % (_GOES_ON, _FIELD)


class Clock:
    """The time a hart's messages tell. *now*: in ticks, None before the first synchronizing message."""

    def __init__(self, options: Options) -> None:
        self.now: int | None = None
        self._bits = options.timestamp_bits
        self._xor = options.dialect.xor_timestamps
        self._known: dict[bytes, int] = {}
        layouts = options.dialect.layouts
        self._syncs = bytes(tcode << 2 for tcode, layout in layouts.items() if layout.synchronizes)
        self._conditional = {
            tcode << 2: _Groups(layout, options.src_bits) for tcode, layout in layouts.items() if _condition(layout)
        }
        self._frame = _pattern(layouts.values(), options.src_bits)

    def split(self, frames: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Frames without their TSTAMP, and that (b"" when there is none, or the frame is no known message)."""
        pairs: list[tuple[bytes, bytes]] = self._frame.findall(b"".join(frames))
        if max(map(len, frames), default=0) > MAX_FRAME:  # one of them is no message, whatever it begins with
            pairs = [pair if sum(map(len, pair)) <= MAX_FRAME else (pair[0] + pair[1], b"") for pair in pairs]
        slow = self._conditional
        return [slow[pair[0][0]].split(pair[0]) if not pair[1] and pair[0][0] in slow else pair for pair in pairs]

    def take(self, first: int, tstamp: bytes) -> int | None:
        """The time after a message that begins with the byte *first* and has this TSTAMP; None while it is unknown."""
        value = self._known.get(tstamp)
        if value is None:
            if len(self._known) >= _CACHED:
                self._known.clear()
            value = self._known[tstamp] = _number(tstamp)
        if first in self._syncs:
            self.now = self._unwrapped(value)
        elif self.now is not None:
            self.now = self._unwrapped(self.now ^ value) if self._xor else self.now + value
        return self.now

    def _unwrapped(self, value: int) -> int:
        """*value* as the counter shows it, which has wrapped when it is less than before."""
        if not self._bits or self.now is None or value >= self.now:
            return value
        value |= self.now >> self._bits << self._bits
        return value if value >= self.now else value + (1 << self._bits)


def _condition(layout: Layout) -> tuple[str, int] | None:
    """The field that decides whether the last one is there, and for which value it is."""
    return next((field.when for field in layout.variable if field.when is not None), None)


def _place(layout: Layout, name: str, src_bits: int) -> tuple[int, int]:
    """Where a fixed field is in its message: the lowest bit, and how many."""
    low = TCODE_BITS + src_bits
    for field in layout.fixed:
        if field.name == name:
            return low, field.bits
        low += field.bits
    raise KeyError(name)


def _pattern(layouts: Iterable[Layout], src_bits: int) -> re.Pattern[bytes]:
    """Frames as `framing` has them, in two parts wherever that can be told byte by byte."""
    kinds = [kind for layout in layouts for kind in _kinds(layout, src_bits)]
    whole = rb"\xff+|%s|%s+%s" % (_END, _NOT_END, _END)
    return re.compile(rb"(%s|%s)((?:(?<=%s)%s*%s)?)" % (b"|".join(kinds), whole, _FIELD, _NOT_END, _END))


def _kinds(layout: Layout, src_bits: int) -> Iterator[bytes]:
    """Patterns of a message without TSTAMP: one, or two where a field decides on the last one, if it is in one byte."""
    first, groups = b"\\x%02x" % (layout.tcode << 2), len(layout.variable)
    condition = _condition(layout)
    if condition is None:
        yield first + _INNER * (groups - 1) + _GROUP
        return
    name, value = condition
    low, bits = _place(layout, name, src_bits)
    at, shift = divmod(low, MDO_BITS)
    if shift + bits > MDO_BITS:
        return
    for present in (True, False):
        fitting = [byte for byte in range(0, 256, 4) if (byte >> 2 >> shift & (1 << bits) - 1 == value) is present]
        decided = b"[" + b"".join(b"\\x%02x" % byte for byte in fitting) + b"]"
        yield first + _GOES_ON * (at - 1) + decided + _INNER * (groups - 2 + present) + _GROUP


class _Groups:
    """How many groups a message has before its TSTAMP, of a kind where that depends on a field."""

    def __init__(self, layout: Layout, src_bits: int) -> None:
        condition = _condition(layout)
        assert condition is not None
        self._always = len(layout.variable) - 1
        self._value = condition[1]
        self._low, bits = _place(layout, condition[0], src_bits)
        self._mask = (1 << bits) - 1
        parts = [b"((?:%s){%d})((?:(?<=%s).*)?)" % (_GROUP, self._always + more, _FIELD) for more in (0, 1)]
        self._patterns = [re.compile(part, re.DOTALL) for part in parts]

    def split(self, frame: bytes) -> tuple[bytes, bytes]:
        """The frame without its TSTAMP, and that."""
        if len(frame) > MAX_FRAME:
            return frame, b""
        match = self._patterns[_number(frame) >> self._low & self._mask == self._value].fullmatch(frame)
        return (match[1], match[2]) if match else (frame, b"")


def _number(group: bytes) -> int:
    """The value of the first group in *group*."""
    value = shift = 0
    for byte in group:
        value |= byte >> 2 << shift
        if byte & 0b11:
            break
        shift += MDO_BITS
    return value
