"""The formatter: bytes of several trace sources become frames, as Arm's does it (see `frames`)."""

from rvtrace_gdb.decode.coresight.frames import (
    DATA_BYTES,
    FRAME_BYTES,
    FSYNC,
    NULL_ID,
    TRIGGER_ID,
    USABLE_IDS,
    FrameForm,
    NoId,
)
from rvtrace_gdb.support.errors import RvtraceError

_LAST = DATA_BYTES - 1
"""The place of the last even byte, which has no odd one behind it."""


class BadAtbId(RvtraceError):
    """An ID that no trace source may have."""

    def __init__(self, atb_id: int) -> None:
        super().__init__(f"ATB ID {atb_id:#x}: a trace source has one of {USABLE_IDS[0]:#x} to {USABLE_IDS[-1]:#x}")
        self.atb_id = atb_id


class FrameFormatter:
    """Makes frames of bytes that arrive. A frame is returned when it is full, so that up to 15 bytes are kept.

    *sync_frames*: on pins, an FSYNC comes before every so many frames. *repeat_frames*: the ID of a source that sends
    alone comes again after so many frames, so that a ring that wrapped has it; 0: it comes once.
    """

    def __init__(self, form: FrameForm = FrameForm.MEMORY, *, sync_frames: int = 64, repeat_frames: int = 0) -> None:
        self._repeat_frames = repeat_frames
        self._without_id = 0  # frames in a row
        self._form, self._sync_frames = form, sync_frames
        self._current: int = NoId.UNKNOWN
        self._frame = bytearray()
        self._auxiliary = 0
        self._lone: int | None = None  # a byte that has the even place of the next pair, if the ID does not change
        self._until_sync = 0

    def put(self, atb_id: int, data: bytes) -> bytes:
        """Return the frames that are full with *data* of a source. Raises `BadAtbId`."""
        if atb_id not in USABLE_IDS:
            raise BadAtbId(atb_id)
        return self._append_bytes(atb_id, data)

    def trigger(self) -> bytes:
        """Return the frames that are full when a trigger has been noted."""
        return self._append_bytes(TRIGGER_ID, b"\0")

    def flush(self) -> bytes:
        """Return the last frame, filled up with padding; nothing if all frames are full. More may follow."""
        frames = bytearray()
        while self._frame or self._lone is not None:
            self._append(NULL_ID, 0, frames)
        return bytes(frames)

    def _append_bytes(self, atb_id: int, data: bytes) -> bytes:
        frames = bytearray()
        at = 0
        while at < len(data):
            whole = 0 if self._frame or self._lone is not None else (len(data) - at) // DATA_BYTES
            if self._repeat_frames:
                whole = min(whole, self._repeat_frames - self._without_id)
            if whole and atb_id == self._current:
                self._send_full(_whole_frames(data[at : at + whole * DATA_BYTES]), frames)
                self._without_id += whole
                at += whole * DATA_BYTES
            else:
                self._append(atb_id, data[at], frames)
                at += 1
        return bytes(frames)

    def _append(self, atb_id: int, byte: int, frames: bytearray) -> None:
        """Append a byte of a source; an even byte waits for the odd one, because an ID may have to come before it."""
        new_id = atb_id << 1 | 1
        changes, self._current = atb_id != self._current, atb_id
        if self._repeat_frames and self._without_id >= self._repeat_frames and not self._frame and self._lone is None:
            changes = True
        if changes:
            self._without_id = -1  # of this frame
        if changes and self._lone is not None:
            lone, self._lone = self._lone, None
            self._pair((new_id, lone), 1, frames)
        elif changes and len(self._frame) < _LAST:
            self._pair((new_id, byte), 0, frames)
            return
        elif changes:
            self._pair((new_id,), 0, frames)
        if self._lone is not None:
            lone, self._lone = self._lone, None
            self._pair((lone & ~1, byte), lone & 1, frames)
        elif len(self._frame) == _LAST:
            self._pair((byte & ~1,), byte & 1, frames)
        else:
            self._lone = byte

    def _pair(self, pair: tuple[int, ...], auxiliary: int, frames: bytearray) -> None:
        """Append an even byte and the odd one behind it, and the auxiliary bit of both."""
        self._auxiliary |= auxiliary << len(self._frame) // 2
        self._frame += bytes(pair)
        if len(self._frame) == DATA_BYTES:
            self._frame.append(self._auxiliary)
            self._send_full(bytes(self._frame), frames)
            self._without_id += 1
            self._frame.clear()
            self._auxiliary = 0

    def _send_full(self, full: bytes, frames: bytearray) -> None:
        if self._form is FrameForm.MEMORY:
            frames += full
            return
        for at in range(0, len(full), FRAME_BYTES):
            if not self._until_sync:
                frames += FSYNC
                self._until_sync = self._sync_frames
            self._until_sync -= 1
            frames += full[at : at + FRAME_BYTES]


def _whole_frames(data: bytes) -> bytes:
    """Return frames without any ID."""
    count = len(data) // DATA_BYTES
    frames = bytearray(FRAME_BYTES * count)
    ones = int.from_bytes(b"\1" * count, "little")
    auxiliary = 0
    for column in range(0, DATA_BYTES, 2):
        even = int.from_bytes(data[column::DATA_BYTES], "little")
        frames[column::FRAME_BYTES] = (even & ~ones).to_bytes(count, "little")
        auxiliary |= (even & ones) << column // 2
        if column < _LAST:
            frames[column + 1 :: FRAME_BYTES] = data[column + 1 :: DATA_BYTES]
    frames[FRAME_BYTES - 1 :: FRAME_BYTES] = auxiliary.to_bytes(count, "little")
    return bytes(frames)
