"""A source that sends alone has its ID in the frames again and again.

"If the trace source has not changed in eight formatter frames, an ID change is indicated, even though the new ID is the
current ID value" (CoreSight Components Technical Reference Manual, DDI 0314H, 8.12.1).
"""

import random

import pytest

from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.coresight.frames import FRAME_BYTES, FrameForm

SOURCE = 0x21
ID = SOURCE << 1 | 1


def frames_of(data: bytes, pieces: int) -> bytes:
    """The frames of *data*, which arrives in pieces of up to so many bytes."""
    draw, formatter, made, at = random.Random(pieces), FrameFormatter(repeat_frames=8), b"", 0
    while at < len(data):
        size = draw.randint(1, pieces)
        made += formatter.put(SOURCE, data[at : at + size])
        at += size
    return made + formatter.flush()


@pytest.mark.parametrize("pieces", [1, 3, 15, 16, 200, 5000])
def test_the_id_comes_after_eight_frames_without_one(pieces: int) -> None:
    data = bytes(2 * value for value in random.Random(1).choices(range(128), k=5000))  # even: an ID is odd
    made = frames_of(data, pieces)
    with_id = [at // FRAME_BYTES for at in range(0, len(made) - FRAME_BYTES, FRAME_BYTES) if made[at] == ID]
    assert with_id == list(range(0, len(made) // FRAME_BYTES - 1, 9))
    whole = DemultiplexedTrace(FrameForm.MEMORY)
    whole.grow(made)
    assert whole.stream(SOURCE) == data


def test_what_is_left_of_a_ring_begins_after_eight_frames_at_most() -> None:
    data = random.Random(2).randbytes(5000)
    made = frames_of(data, 7)
    for first in range(40):
        tail = DemultiplexedTrace(FrameForm.MEMORY)
        tail.grow(made[first * FRAME_BYTES :])
        kept = tail.stream(SOURCE)
        assert data.endswith(kept) and len(kept) >= len(data) - 15 * (first + 9)
