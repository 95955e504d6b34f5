"""Random frames, in pieces of any size, against a reading byte by byte, and against OpenCSD's packet lister."""

import random
from bisect import bisect_left
from pathlib import Path

import pytest

from rvtrace_gdb.decode.coresight.deformatter import Deformatter, FrameAccounting, SourceBytes
from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.formatter import BadAtbId, FrameFormatter
from rvtrace_gdb.decode.coresight.frames import NULL_ID, TRIGGER_ID, USABLE_IDS, FrameForm, NoId
from tests.decode.coresight import naive, opencsd
from tests.helpers.amounts import each_seed, some_of, thorough

FORMS = list(FrameForm)


def read_in_pieces(rng: random.Random, form: FrameForm, frames: bytes) -> tuple[dict[int, bytes], FrameAccounting]:
    """Return the bytes of each ID, and what was counted, when the frames come in pieces."""
    deformatter = Deformatter(form)
    found = [it for piece in naive.cut(rng, frames) for it in deformatter.feed(piece)] + list(deformatter.finish())
    streams: dict[int, bytes] = {}
    for it in found:
        if isinstance(it, SourceBytes):
            streams[it.atb_id] = streams.get(it.atb_id, b"") + it.data
    return streams, deformatter.accounting


def check_sum(accounting: FrameAccounting, size: int) -> None:
    """Check that every byte is accounted for, once."""
    parts = accounting.layout + sum(accounting.of_ids.values()) + sum(accounting.others.values())
    assert (accounting.total, parts) == (size, size)
    assert accounting.idle + accounting.lost + sum(accounting.sources.values()) == size


@each_seed(range(300))
def test_what_sources_send_arrives(seed: int) -> None:
    """Frames of the formatter, on pins and in memory: each source's bytes come back; a trigger is one byte."""
    rng = random.Random(seed)
    form = rng.choice(FORMS)
    frames, sent, triggers = naive.random_sources(rng, form)
    streams, accounting = read_in_pieces(rng, form, frames)
    assert {it: data for it, data in streams.items() if it in USABLE_IDS} == sent
    assert accounting.of_ids.get(TRIGGER_ID, 0) == triggers
    assert accounting.lost == 0
    check_sum(accounting, len(frames))


@each_seed(range(300))
def test_another_formatter(seed: int) -> None:
    """Frames that choose between a delayed change and another one at random, with packets anywhere if on pins."""
    rng = random.Random(seed)
    ids = rng.sample(USABLE_IDS, 3)
    data = [
        (atb_id, rng.randrange(256))
        for _ in range(rng.randint(0, 30))
        for atb_id in [rng.choice(ids)] * rng.randint(1, 9)
    ]
    frames = naive.packed(rng, data)
    form = rng.choice(FORMS)
    arriving = naive.with_syncs(rng, frames) if form is FrameForm.PINS else frames
    streams, accounting = read_in_pieces(rng, form, arriving)
    streams.pop(NULL_ID, None)
    assert streams == {it: bytes(value for own, value in data if own == it) for it in {it for it, _ in data}}
    check_sum(accounting, len(arriving))


@each_seed(range(300))
def test_any_frames(seed: int) -> None:
    """Random bytes as frames, barriers among them: as read byte by byte, with the place of each byte."""
    rng = random.Random(seed)
    blocks = [rng.choice([rng.randbytes(16), bytes(16), naive.FSYNC * 4]) for _ in range(rng.randint(0, 40))]
    frames = b"".join(blocks)
    data = naive.data_of(frames)
    streams, accounting = read_in_pieces(rng, FrameForm.MEMORY, frames)
    assert streams == naive.streams_of(data)
    check_sum(accounting, len(frames))
    trace = DemultiplexedTrace(FrameForm.MEMORY, frames)
    assert {it: trace.stream(it) for it in trace.atb_ids} == {it: b for it, b in streams.items() if it in USABLE_IDS}
    for atb_id in trace.atb_ids:
        places = [byte.offset for byte in data if byte.atb_id == atb_id]
        assert [trace.offset_of(atb_id, index) for index in range(len(places))] == places
        offsets = [0, len(frames), *(rng.randint(0, len(frames)) for _ in range(4))]
        assert [trace.index_at(atb_id, at) for at in offsets] == [bisect_left(places, at) for at in offsets]
    assert trace.index_at(USABLE_IDS[-1], 0) == 0


@each_seed(range(100))
def test_places_on_pins(seed: int) -> None:
    """The place of each byte, where packets are between the bytes of a frame."""
    rng = random.Random(seed)
    data = [(rng.choice([1, 2]), rng.randrange(256)) for _ in range(rng.randint(1, 200))]
    stream = naive.with_syncs(rng, naive.packed(rng, data))
    trace = DemultiplexedTrace(FrameForm.PINS, stream[: len(stream) // 2])
    trace.grow(stream)
    for atb_id in trace.atb_ids:
        places = [trace.offset_of(atb_id, index) for index in range(len(trace.stream(atb_id)))]
        assert places == sorted(set(places))
        assert all(stream[at] | 1 == value | 1 for at, value in zip(places, trace.stream(atb_id), strict=True))
    check_sum(trace.accounting, len(stream))


@each_seed(range(400))
def test_pieces_change_nothing(seed: int) -> None:
    """Bytes of which packets are made, in any order, also across two frames."""
    rng = random.Random(seed)
    data = bytes(rng.choices([0xFF, 0x7F, 0x21, 0x00], [6, 2, 1, 1], k=rng.randint(0, 100)))
    for form in FORMS:
        found = read_in_pieces(rng, form, data)
        assert found == read_in_pieces(random.Random(seed), form, data)
        deformatter = Deformatter(form)
        whole = [*deformatter.feed(data), *deformatter.finish()]
        assert deformatter.accounting == found[1]
        assert sum(len(it.data) for it in whole if isinstance(it, SourceBytes)) == sum(map(len, found[0].values()))
        check_sum(found[1], len(data))


@each_seed(range(200))
def test_damaged_pins(seed: int) -> None:
    """Random damage on pins: nothing is lost from the sum, what is behind the second FSYNC after it is whole, and the
    pieces in which the bytes come change nothing.
    """
    rng = random.Random(seed)
    frames = naive.packed(rng, [(1, rng.randrange(256)) for _ in range(300)])
    sound = naive.with_syncs(rng, frames)
    place, size = rng.randrange(len(sound)), rng.randint(0, 3)
    damaged = sound[:place] + rng.randbytes(rng.randint(0, 3)) + sound[place + size :]
    behind = naive.FSYNC + bytes.fromhex("2140404242444446464848 4a4a4c4cfe")
    stream = damaged + behind * 2
    streams, accounting = read_in_pieces(rng, FrameForm.PINS, stream)
    check_sum(accounting, len(stream))
    assert streams[0x10][-14:] == bytes(range(0x40, 0x4E))
    assert (streams, accounting) == read_in_pieces(rng, FrameForm.PINS, stream)


def test_bytes_behind_what_is_missing() -> None:
    """Each source's bytes are cut where a barrier is; a source that comes later may have sent before."""
    one, other = FrameFormatter(), FrameFormatter()
    frames = (
        one.put(1, b"abc") + one.flush() + naive.FSYNC * 4 + other.put(1, b"def") + other.put(2, b"g") + other.flush()
    )
    trace = DemultiplexedTrace(FrameForm.MEMORY, frames)
    assert (trace.stream(1), trace.breaks(1), trace.breaks(2)) == (b"abcdef", [3], [0])
    assert trace.firsts == {NoId.BARRIER: 16}
    assert trace.offset_of(1, 6) == len(frames)


@pytest.mark.parametrize("atb_id", [0, 0x70, 0x7F, -1])
def test_ids_that_no_source_has(atb_id: int) -> None:
    with pytest.raises(BadAtbId, match="a trace source has one of 0x1 to 0x6f"):
        FrameFormatter().put(atb_id, b"a")


def _random_frames(rng: random.Random, count: int) -> bytes:
    free = opencsd.FREE_ID << 1 | 1
    return rng.randbytes(16 * count).replace(bytes([free]), bytes([free & 0x7F]))


def _agree(folder: Path, frames: bytes, form: FrameForm, *options: str) -> None:
    judged = opencsd.unpacked(folder, frames, *options)
    streams, _ = read_in_pieces(random.Random(1), form, frames)
    assert sum(map(len, judged.values())) == sum(map(len, streams.values())) > 0
    assert judged == streams


def test_opencsd_takes_random_frames_apart_alike(tmp_path: Path) -> None:
    """Any bytes, so that every ID, delayed change and unused place is there."""
    _agree(tmp_path, _random_frames(random.Random(23), 4000), FrameForm.MEMORY)


@thorough("test_opencsd_takes_random_frames_apart_alike")
def test_opencsd_takes_100_000_random_frames_apart_alike(tmp_path: Path) -> None:
    _agree(tmp_path, _random_frames(random.Random(24), 100_000), FrameForm.MEMORY)


def test_opencsd_takes_our_frames_apart_alike(tmp_path: Path) -> None:
    """Frames of the formatter, in memory and on pins with packets of both sorts."""
    for seed in range(some_of(60, 12)):
        rng = random.Random(seed)
        frames = naive.random_sources(rng).frames or bytes(16)
        _agree(tmp_path, frames, FrameForm.MEMORY)
        _agree(tmp_path, naive.with_syncs(rng, frames), FrameForm.PINS, "-tpiu_hsync")
