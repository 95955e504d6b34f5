"""Frames taken apart byte by byte, as the specification describes them, and random frames."""

import random
from typing import NamedTuple

from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.coresight.frames import FrameForm

FSYNC = bytes.fromhex("ffffff7f")
HSYNC = bytes.fromhex("ff7f")


class Byte(NamedTuple):
    """A byte of a source (-1: nobody knows of which), and where it is in the frames."""

    atb_id: int
    value: int
    offset: int


def data_of(frames: bytes) -> list[Byte]:
    """Return the data in *frames* (whole ones, barriers among them), in their order."""
    current, found = -1, []
    for at in range(0, len(frames), 16):
        frame = frames[at : at + 16]
        if frame == FSYNC * 4:
            current = -1
            continue
        for i in range(0, 15, 2):
            flag = frame[15] >> i // 2 & 1
            if not frame[i] & 1:
                found.append(Byte(current, frame[i] | flag, at + i))
                if i < 14:
                    found.append(Byte(current, frame[i + 1], at + i + 1))
                continue
            old, current = current, frame[i] >> 1
            if i < 14:
                found.append(Byte(old if flag else current, frame[i + 1], at + i + 1))
    return found


def streams_of(data: list[Byte]) -> dict[int, bytes]:
    """Return the bytes of each ID."""
    streams: dict[int, bytearray] = {}
    for byte in data:
        streams.setdefault(byte.atb_id, bytearray()).append(byte.value)
    return {atb_id: bytes(stream) for atb_id, stream in streams.items()}


class SentFrames(NamedTuple):
    """Frames, and what each source sent in them."""

    frames: bytes
    sent: dict[int, bytes]
    triggers: int


def random_sources(rng: random.Random, form: FrameForm = FrameForm.MEMORY) -> SentFrames:
    """Return frames of one to five sources, with triggers and flushes."""
    ids = rng.sample(range(1, 0x70), rng.randint(1, 5))
    formatter, frames, triggers = FrameFormatter(form, sync_frames=rng.randint(1, 5)), b"", 0
    sent: dict[int, bytes] = {}
    for _ in range(rng.randint(0, 60)):
        atb_id, data = rng.choice(ids), rng.randbytes(rng.choice([0, 1, 2, 3, 5, 17, 70]))
        sent[atb_id] = sent.get(atb_id, b"") + data
        frames += formatter.put(atb_id, data)
        if rng.random() < 0.05:
            frames += formatter.trigger()
            triggers += 1
        if rng.random() < 0.05:
            frames += formatter.flush()
    frames += formatter.flush()
    return SentFrames(frames, {atb_id: data for atb_id, data in sorted(sent.items()) if data}, triggers)


def packed(rng: random.Random, data: list[tuple[int, int]]) -> bytes:
    """Return frames of (ID, byte), as another formatter makes them: it chooses at random where it may.

    An ID may be repeated, padding come anywhere, and a change be delayed or not where both mean the same.
    """
    frames, current, at = bytearray(), -1, 0
    while at < len(data) or len(frames) % 16:
        place = len(frames) % 16
        if not place:
            flags, start = 0, len(frames)
        following = [*data[at : at + 2], (0, 0), (0, 0)][:2]
        (first, value), (second, other) = following
        if first == current and (second == current or place == 14) and rng.random() < 0.9:
            pair, flag, taken = [value & 0xFE, other], value & 1, 2
        elif first == current and place < 14:
            pair, flag, taken = [second << 1 | 1, value], 1, 1  # delayed
            current = second
        else:
            current, pair, flag, taken = first, [first << 1 | 1, value], 0, 1
        if place == 14:
            pair, taken = pair[:1], taken - 1
        frames += bytes(pair)
        flags |= flag << place // 2
        at += taken
        if len(frames) - start == 15:
            frames.append(flags)
    return bytes(frames)


def with_syncs(rng: random.Random, frames: bytes) -> bytes:
    """Return *frames* as they leave pins: FSYNC before the first and between some, HSYNC at any even byte."""
    stream = bytearray(FSYNC)
    for at in range(0, len(frames), 2):
        if not at % 16 and rng.random() < 0.2:
            stream += FSYNC * rng.randint(1, 5)
        stream += HSYNC * rng.choice([0, 0, 0, 0, 1, 2])
        stream += frames[at : at + 2]
    return bytes(stream)


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    """Return *data* in pieces of random sizes."""
    places = sorted(rng.randint(0, len(data)) for _ in range(rng.randint(0, 9)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
