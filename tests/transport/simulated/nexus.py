"""Just enough of N-Trace's transport to look at single messages, written from N-Trace 1.0 ("N-Trace Transmission
Protocol", "N-Trace Messages (Details)")."""

from typing import NamedTuple

# TCODE -> widths of the fixed fields after SRC
FIXED = {
    2: (), 3: (), 4: (2,), 8: (4,), 9: (4,), 11: (4,), 12: (4, 2), 27: (4,), 28: (2,), 29: (4, 2), 30: (), 33: (4, 2),
}  # fmt: skip
OWNERSHIP, DIRECT_BRANCH, INDIRECT_BRANCH, ERROR, PROG_TRACE_SYNC = 2, 3, 4, 8, 9
RESOURCE_FULL, INDIRECT_BRANCH_HIST, INDIRECT_BRANCH_HIST_SYNC, REPEAT_BRANCH = 27, 28, 29, 30
PROG_TRACE_CORRELATION = 33
SYNCHRONIZING = (PROG_TRACE_SYNC, 11, 12, INDIRECT_BRANCH_HIST_SYNC)


class Message(NamedTuple):
    tcode: int
    src: int
    fixed: tuple[int, ...]
    variable: tuple[int, ...]


def messages(data: bytes, src_bits: int = 0) -> list[Message]:
    """The complete messages in *data*, from its first byte on; idle bytes are skipped."""
    found: list[Message] = []
    bits = width = 0
    ends: list[int] = []
    for byte in data:
        if byte == 0xFF and not width:
            continue
        bits |= byte >> 2 << width
        width += 6
        if byte & 3:
            ends.append(width)
        if byte & 3 == 3:
            found.append(_message(bits, ends, src_bits))
            bits, width, ends = 0, 0, []
    return found


def _message(bits: int, ends: list[int], src_bits: int) -> Message:
    at = 0

    def take(count: int) -> int:
        nonlocal at
        value = bits >> at & (1 << count) - 1
        at += count
        return value

    tcode, src = take(6), take(src_bits)
    fixed = tuple(take(width) for width in FIXED[tcode])
    variable = tuple(take(end - at) for end in ends)
    return Message(tcode, src, fixed, variable)
