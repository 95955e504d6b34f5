"""Times of E-Trace that go back, those of the transport and those in packets: noted once, where they do."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import Fields, start
from tests.decode.ntrace.messages import image_of

IMAGE = image_of((0x100, [asm.C_NOP] * 8))
PACKETS: list[Fields] = [start(0x100 + 2 * i) for i in range(6)]


def decoded(data: bytes, options: Options, encapsulation: Encapsulation, piece: int) -> History:
    """The history of *data*, which comes in pieces."""
    decoder = StreamDecoder(IMAGE, options, encapsulation, split=False)
    for first in range(0, len(data), piece):
        decoder.feed(data[first : first + piece])
    return decoder.finish_one()


def notes(history: History) -> list[tuple[int, str]]:
    """Position and text of the notes."""
    return [(event.position, event.text) for event in history.events if event.kind is EventKind.NOTE]


def back(before: int, now: int) -> str:
    return f"the time goes back from {before} to {now}: times before and after this place cannot be compared"


@pytest.mark.parametrize("piece", [1, 11, 1000])
@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([10, 20, 30, 30, 40, 50], []),
        ([None, 20, None, 30, None, 40], []),
        ([10, 20, 15, 30, 12, 50], [(3, back(20, 15))]),
        ([10, None, None, 30, 9, None], [(5, back(30, 9))]),
        ([10, 9, None, 8, None, 7], [(2, back(10, 9))]),
        ([50, 60, 70, 80, 90, 1], [(6, back(90, 1))]),
    ],
)
def test_times_of_the_transport(piece: int, times: Sequence[int | None], said: list[tuple[int, str]]) -> None:
    encapsulation = Encapsulation("encap", timestamp_bytes=2)
    options, framer = Options(Parameters(iaddress_width=32), pinned=True), encapsulation.framer()
    payloads = [write(packet, options.parameters, options.modes) for packet in PACKETS]
    data = b"".join(framer.packet(payload, time=time) for payload, time in zip(payloads, times, strict=True))
    history = decoded(data, options, encapsulation, piece)
    assert history.instructions == len(history) == 6
    assert notes(history) == said
    assert [time for _, time in history.times] == [time for time in times if time is not None]


@pytest.mark.parametrize("piece", [1, 11, 1000])
def test_times_in_packets(piece: int) -> None:
    """Their clock may be another than the transport's."""
    options = Options(Parameters(iaddress_width=32, time_width=16), Modes(), pinned=True)
    timed = [{**packet, "time": time} for packet, time in zip(PACKETS, [9, 9, 12, 7, 8, 6], strict=True)]
    data = framed(write(packet, options.parameters, options.modes) for packet in timed)
    history = decoded(data, options, Encapsulation(), piece)
    assert notes(history) == [(3, back(12, 7))]
    assert [time for _, time in history.times] == [9, 9, 12, 7, 8, 6]
