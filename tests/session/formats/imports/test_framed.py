"""Captures whose sinks hold CoreSight frames: what is decoded is what each encoder sent, whatever they share."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.coresight.frames import BARRIER, FrameForm
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture.capture_json import describe_capture, read_description
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.json_document import BadDescription
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.framed_sinks import FramedSinks
from rvtrace_gdb.session.formats.framed_stream import FramedFollower
from rvtrace_gdb.session.formats.imports.framed_import import with_tandem_streams
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of, tandem_capture, with_settings
from rvtrace_gdb.session.formats.sinks import SinkDecoding
from rvtrace_gdb.session.formats.stream import StreamSource
from rvtrace_gdb.session.program import LoadedProgram
from rvtrace_gdb.session.session import Session
from tests.decode.coresight import naive
from tests.decode.etrace.vectors import expected
from tests.decode.ntrace.messages import split
from tests.helpers import reference_streams
from tests.session.formats import test_etrace

ELF = reference_streams.FOLDER / "median.elf"
SOURCES = Options(src_bits=3)
MEMORY = ImportedFrames(FrameForm.MEMORY)


def sent(src: int, mode: int) -> bytes:
    """What the encoder of a hart with this SRC sent, in 3 bits, of the median program."""
    stream = (reference_streams.FOLDER / f"median.{mode}.nex").read_bytes()
    return b"".join(reference_streams.from_source(stream, 3, src))


def funnel(streams: dict[int, bytes], seed: int = 1, form: FrameForm = FrameForm.MEMORY) -> bytes:
    """Frames as a funnel makes them that switches between IDs at any byte."""
    rng, formatter, frames = random.Random(seed), FrameFormatter(form), bytearray()
    left = dict(streams)
    while left:
        atb_id, size = rng.choice(list(left)), rng.choice([1, 2, 3, 8, 31])
        frames += formatter.put(atb_id, left[atb_id][:size])
        left[atb_id] = left[atb_id][size:]
        if not left[atb_id]:
            del left[atb_id]
    return bytes(frames + formatter.flush())


def imported(
    data: bytes,
    frames: ImportedFrames | None = MEMORY,
    options: Options = SOURCES,
    *,
    wrapped: bool = False,
) -> Capture:
    return capture_of(RawImport("raw.bin", data, options, Image.from_elf(ELF), wrapped=wrapped, frames=frames))


def opened(capture: Capture) -> Session:
    session = Session()
    session.open_capture(capture, "x.rvt", str(ELF))
    return session


def histories(capture: Capture) -> dict[int, History]:
    found = opened(capture).harts().harts
    assert found.accounting.total == sum(len(sink.data) for sink in capture.sinks)
    assert found.accounting.total == sum(found.accounting[1:])
    return found.histories


def is_median(history: History) -> bool:
    count, fingerprint = reference_streams.golden("median")
    return (history.instructions, reference_streams.fingerprint(history.pcs())) == (count, fingerprint)


@pytest.mark.parametrize("form", FrameForm)
def test_each_hart_has_an_id(form: FrameForm, tmp_path: Path) -> None:
    """Messages are cut by the funnel, so that merged bytes would be noise. SRC says which hart it is, not the ID."""
    capture = imported(funnel({0x31: sent(5, 2), 0x11: sent(2, 1)}, form=form), ImportedFrames(form))
    save(capture, tmp_path / "x.rvt")
    loaded = load(tmp_path / "x.rvt")
    assert loaded.sinks == capture.sinks
    assert {it.hart: loaded.sinks[0].atb_ids[it.in_force.name] for it in loaded.encoders} == {5: 0x31, 2: 0x11}
    found = histories(loaded)
    assert {hart: is_median(history) for hart, history in found.items()} == {2: True, 5: True}
    assert all(not history.gaps for history in found.values())


def test_encoders_share_an_id() -> None:
    """A funnel in front of the bridge: whole messages of several sources, one ID."""
    merged = reference_streams.in_turn(*(split(sent(src, 1)) for src in (1, 4)))
    found = histories(imported(funnel({0x20: merged, 0x21: sent(6, 2)})))
    assert {hart: is_median(history) for hart, history in found.items()} == {1: True, 4: True, 6: True}


def test_without_sources_an_id_is_a_hart() -> None:
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    found = histories(imported(funnel({3: stream, 0x6F: stream}), MEMORY, Options()))
    assert {hart: is_median(history) for hart, history in found.items()} == {3: True, 0x6F: True}


def test_whose_an_id_is() -> None:
    """A user says it; other IDs are left out, and that is said."""
    frames = funnel({3: sent(1, 2), 4: sent(2, 1), 5: sent(7, 2)})
    session = opened(imported(frames, ImportedFrames(FrameForm.MEMORY, {3: 70, 4: None})))
    found = session.harts()
    assert {hart: is_median(history) for hart, history in found.harts.histories.items()} == {2: True, 70: True}
    size = len(sent(7, 2))
    assert f"warning: {size} bytes of ATB ID 0x05 are in the frames, too, which no known encoder has" in found.warnings
    assert found.harts.accounting.skipped == size


def test_a_source_with_two_ids() -> None:
    """No chip does that: it is said."""
    found = opened(imported(funnel({3: sent(5, 2), 4: sent(5, 1)}))).harts().harts
    assert list(found.histories) == [5]
    assert "note: the trace of hart 5 is in several sinks: of each hart the longest history is shown" in found.notes


def test_packets_of_e_trace() -> None:
    """The encapsulation is inside the frames."""
    name, transport, source = test_etrace.VARIANTS[4]
    plain = test_etrace.capture(name, transport)
    data = funnel({9: plain.sinks[0].data, 0x50: b"something else"})
    trace_options = replace(test_etrace.SAID, encapsulation=transport)
    capture = capture_of(RawImport("x", data, trace_options, test_etrace.program(), frames=MEMORY))
    session = test_etrace.looking_at(capture)
    history, _ = session.decoded()
    assert list(history.pcs()) == expected("br_j_asm", "o01")
    assert list(session.harts().harts.histories) == [source]


def test_a_ring_that_wrapped() -> None:
    """From every frame on: the ID may be unknown at first; what follows the first synchronization is the end of the
    trace, and each hart has what its own bytes give.
    """
    frames = funnel({0x31: sent(5, 2), 0x11: sent(2, 1)})
    whole = histories(imported(frames))
    for first in range(16, len(frames), 16 * 97):
        capture = imported(frames[first:], wrapped=True)
        data = naive.streams_of(naive.data_of(frames[first:]))
        found = histories(capture)
        for hart, atb_id in ((5, 0x31), (2, 0x11)):
            if hart not in found:
                continue
            alone = replace(capture.sinks[0], data=data[atb_id], frames=None, atb_ids={}, encoders=(f"encoder{hart}",))
            by_itself = histories(
                replace(capture, sinks=(alone,), encoders=tuple(it for it in capture.encoders if it.hart == hart))
            )
            assert list(found[hart].pcs()) == list(by_itself[hart].pcs())
            assert not found[hart].instructions or list(whole[hart].pcs())[-1] == list(found[hart].pcs())[-1]


def test_what_is_said_of_the_frames() -> None:
    """Where in the frames it is, in one line for each sort."""
    formatter = FrameFormatter()
    frames = bytes.fromhex("00" * 16) + formatter.put(0x31, sent(5, 1)) + formatter.trigger() + formatter.flush()
    reserved = bytes.fromhex("e3 40 42 00" + "01 00" * 5 + "00 00")
    found = opened(imported(frames + reserved + b"\x01\x02")).harts()
    assert found.harts.notes == (
        "warning: 15 bytes of an unknown ATB ID: the frames with it were overwritten, or are missing, the first at byte"
        " 0x0 of the frames",
        f"warning: 2 bytes of a frame that is not complete, the first at byte {len(frames) + 16:#x} of the frames",
        "warning: 3 bytes of ATB ID 0x71, which no trace source has: are these CoreSight frames?",
        f"note: 1 trigger in the frames, the first at byte {naive_trigger(frames):#x} of raw.bin",
    )
    [warned] = opened(imported(frames, ImportedFrames(FrameForm.PINS))).harts().harts.notes
    assert warned == f"warning: no FSYNC (ff ff ff 7f) in {len(frames)} bytes: are these frames from pins (tpiu)?"


def naive_trigger(frames: bytes) -> int:
    """Return where the first byte of ID 0x7D is."""
    return next(it.offset for it in naive.data_of(frames) if it.atb_id == 0x7D)


def test_known_encoders_have_the_ids_of_their_sources() -> None:
    """Settings that were saved, and bytes that left the chip with other IDs than anybody knows."""
    frames = funnel({0x31: sent(5, 2), 0x11: sent(2, 1)})
    settings = replace(imported(frames), sinks=())
    capture = with_settings(settings, "y.bin", frames, frames=MEMORY)
    assert capture.sinks[0].atb_ids == {"encoder5": 0x31, "encoder2": 0x11}
    assert all(map(is_median, histories(capture).values()))


def test_known_encoders_without_sources_need_to_be_told() -> None:
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    frames = funnel({3: stream, 4: stream})
    settings = replace(imported(frames, MEMORY, Options()), sinks=())
    with pytest.raises(Unsupported, match="the ATB ID of encoder3, encoder4 cannot be told: --atb-id ID=HART"):
        with_settings(settings, "y.bin", frames, frames=MEMORY)
    capture = with_settings(settings, "y.bin", frames, frames=ImportedFrames(FrameForm.MEMORY, {3: 4, 4: 3}))
    assert capture.sinks[0].atb_ids == {"encoder3": 4, "encoder4": 3}


@pytest.mark.parametrize(
    ("key", "value"),
    [("frames", "dstream"), ("frames", 5), ("atb_ids", None), ("atb_ids", {}), ("atb_ids", {"encoder5": 0x70})],
)
def test_damaged_descriptions(key: str, value: object, tmp_path: Path) -> None:
    capture = imported(funnel({0x31: sent(5, 1)}))
    description, members = describe_capture(capture)
    assert description["version"] == 7
    description["sinks"][0][key] = value
    with pytest.raises(BadDescription, match=f"capture.json has no(?: usable)? sinks\\[0\\].{key}"):
        read_description(json.dumps(description).encode(), lambda member: members[member.name])


def test_messages_of_an_id() -> None:
    """`trace dump` of a hart lists what its encoder sent: offsets are those in these bytes."""
    alone = sent(5, 2)
    session = opened(imported(funnel({0x31: alone, 0x11: sent(2, 1)})))
    plain = opened(imported(alone, None))
    shown, listed = (it.dump("1,9", None, Context(hart=5)) for it in (session, plain))
    assert session.messages(shown.begin, shown.end) == plain.messages(listed.begin, listed.end)


def followed(data: bytes, step: int, frames: ImportedFrames = MEMORY) -> dict[int, list[int]]:
    """The addresses that ran on each hart, of frames that arrive in pieces."""
    source = StreamSource(SOURCES, None, False, frames)
    program = LoadedProgram(str(ELF)).in_contexts(Image.from_elf(ELF))
    follower, pcs = FramedFollower(source, frames, program), dict[int, list[int]]()
    arrived = [it for at in range(0, len(data), step) for it in follower.feed(data[at : at + step])]
    for hart, piece in [*arrived, *follower.finish()]:
        pcs.setdefault(hart, []).extend(piece.history.pcs(piece.begin, piece.end))
    assert follower.counts.bytes == len(data)
    return pcs


@pytest.mark.parametrize("step", [1000, 7, 1])
def test_what_is_missing_at_a_barrier_is_a_gap(step: int) -> None:
    """Of a capture and of a stream alike: what comes behind the barrier does not continue the message before."""
    end_of_a_message = list(split(sent(5, 2)))[1][1:]
    first, last = funnel({0x31: sent(5, 2), 0x11: sent(2, 1)}), funnel({0x31: end_of_a_message + sent(5, 2)})
    cut = len(first) // 32 * 16
    data = first[:cut] + BARRIER + last
    found = histories(imported(data))
    count = reference_streams.golden("median")[0]
    assert found[5].gaps == 1 and count < found[5].instructions < 2 * count
    assert list(found[5].pcs())[-count:] == list(histories(imported(last, wrapped=True))[5].pcs())
    [loss] = [event for event in found[5].events if event.is_loss]
    assert "frames are missing before it, or damaged" in loss.text
    assert followed(data, step * 100) == {hart: list(history.pcs()) for hart, history in found.items()}


def test_frames_that_grow() -> None:
    """Each read-out has more of them, and a barrier between: as decoded at once."""
    first, last = funnel({0x31: sent(5, 2)}), funnel({0x31: sent(5, 1), 0x11: sent(2, 1)}, 2)
    data = first[: len(first) // 32 * 16] + BARRIER + last
    whole = imported(data)
    framed, decoding = FramedSinks(), None
    program = LoadedProgram(str(ELF)).in_contexts(Image.from_elf(ELF))
    for end in (160, 1600, len(first) // 32 * 16 + 16, len(data) - 5, len(data)):
        sinks = framed.streams((replace(whole.sinks[0], data=data[:end]),))
        if decoding is None:
            decoding = SinkDecoding(sinks, whole.encoders, program, grows=True)
        else:
            decoding.grow(sinks)
        found = framed.completed(decoding.result())
        expected = histories(replace(whole, sinks=(replace(whole.sinks[0], data=data[:end]),)))
        assert {hart: list(it.pcs()) for hart, it in found.histories.items()} == {
            hart: list(it.pcs()) for hart, it in expected.items()
        }
        assert found.accounting.total == end == sum(found.accounting[1:])


def test_tandem_traces_in_frames() -> None:
    """Each ATB ID is a hart's."""
    parameters = TandemParameters(64)
    whole = tandem_capture("it", funnel({3: b"abc", 4: b"defg"}), parameters, Image(64))
    capture = with_tandem_streams(whole, ImportedFrames(FrameForm.MEMORY, {3: 9, 4: None}))
    assert [(it.hart, it.in_force.name, it.data) for it in capture.tandem] == [
        (9, "tandem9", b"abc"), (4, "tandem4", b"defg"),
    ]  # fmt: skip
    assert capture.notes == (f"note: the tandem traces were in {len(whole.tandem[0].data)} bytes of CoreSight frames",)
