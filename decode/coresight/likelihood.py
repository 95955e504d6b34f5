"""Whether unknown bytes may be in frames of the CoreSight formatter, and in which: by the IDs that they would have.

Frames of few sources name few IDs, again and again, and none that no source may have. Most other bytes, read as frames,
name new ones all the time, as a byte is odd as often as not; but short messages, all alike, name few, too.
"""

from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.frames import (
    BARRIER,
    FLUSH_ID,
    FRAME_BYTES,
    FSYNC,
    NULL_ID,
    TRIGGER_ID,
    USABLE_IDS,
    FrameForm,
)

_LOOKED_AT = 1 << 14  # bytes
_FEWEST = 4  # frames
_SYNCS = 2  # of a trace from pins that begins with none: one may be by chance, and in a buffer four are a barrier
_OFTEN = 4  # so often each ID is named, on average
_OTHER_IDS = (NULL_ID, FLUSH_ID, TRIGGER_ID)


def likely_form(data: bytes) -> FrameForm | None:
    """Return the form of the frames in which *data* seem to be, None: in none, or there are too few."""
    data = data[:_LOOKED_AT]
    if _alone(data) >= (1 if data.startswith(FSYNC) else _SYNCS):
        trace = DemultiplexedTrace(FrameForm.PINS, data)
        return FrameForm.PINS if 2 * sum(len(trace.stream(it)) for it in trace.atb_ids) > len(data) else None
    return FrameForm.MEMORY if _names_few_ids(data) else None


def _alone(data: bytes) -> int:
    """Return how many synchronization packets there are outside of barriers."""
    return data.count(FSYNC) - len(BARRIER) // len(FSYNC) * data.count(BARRIER)


def _names_few_ids(data: bytes) -> bool:
    frames = [data[at : at + FRAME_BYTES] for at in range(0, len(data) - FRAME_BYTES + 1, FRAME_BYTES)]
    named = [byte >> 1 for frame in frames if frame != BARRIER for byte in frame[::2] if byte & 1]
    sources = {it for it in named if it not in _OTHER_IDS}
    if len(frames) < _FEWEST or not sources or not all(it in USABLE_IDS for it in sources):
        return False
    return _OFTEN * (len(sources) - 1) < len(named)
