"""Messages that are not about the flow: InCircuitTrace, DataAcquisition and AuxAccessWrite, PC samples.

The messages given as bytes are those of captures of SiFive's cores, and what they mean is what SiFive's decoder prints
of them (sifive/trace-decoder-tests: event-all, event-ppc, pc-sample-sync, itc_printf). Others are put together field by
field here.
"""

from typing import Any

import pytest

from rvtrace_gdb.decode.history.events import EventKind, LossCause
from rvtrace_gdb.decode.history.hart_events import HartEvent, ItcWrite
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, groups, image_of, message, of_kind, started, stopped

# fib() of event-all: a call of itself at 0x4040072e, its return at 0x4040074a.
FIB = image_of(
    (0x4040_0700, [asm.C_NOP] * 23 + [asm.c_j(-0x2E, link=True)] + [asm.C_NOP] * 13 + [asm.c_jr(1)] + [asm.C_NOP] * 16),
)
TRACE_ON, CALL, RETURN, SAMPLE = map(bytes.fromhex, ("8c4014380020810b", "88244b", "8864c9f7", "883ca3"))


def events(*messages: bytes, image: Image = FIB, **options: Any) -> list[Event]:
    return list(decoded(image, *messages, **{"dialect": SIFIVE, **options}).events)


def shown(*messages: bytes, image: Image = FIB) -> list[tuple[str, int | None, int | None]]:
    return [(event.text, event.last_pc, event.next_pc) for event in events(*messages, image=image)]


def in_circuit(cksrc: int, *data: int, whole: bool = False, tstamp: int | None = None) -> bytes:
    """An InCircuitTrace with CKDATA0, and CKDATA1 if it is given."""
    fields = [(34 + whole, 6), (cksrc, 4), (len(data) - 1, 2), *((value, 0) for value in data)]
    return groups(*fields, *([] if tstamp is None else [(tstamp, 0)]))


def test_calls_and_returns_with_where_they_led() -> None:
    """The call's target is in the program, the return's in the message; the next address is relative to that."""
    assert shown(TRACE_ON, CALL, RETURN, in_circuit(15, 0x0A)) == [
        ("control: trace on", 0x4040_070A, None),
        ("call", 0x4040_072E, 0x4040_0700),
        ("return", 0x4040_074A, 0x4040_0730),
        ("PC sample", 0x4040_0724, None),
    ]


def test_performance_counters_have_no_place_and_change_none() -> None:
    """event-ppc: the watchpoints after the counters are at 0x200035f4 and 0x200035f8."""
    program = image_of((0x2000_3580, [asm.C_NOP] * 0x80), xlen=64)
    start = in_circuit(15, 0x2000_35D0 >> 1, whole=True)
    ppc, first, second = map(bytes.fromhex, ("88701c14001d03", "88784903", "88781907"))
    found = events(start, ppc, first, second, image=program)
    assert [(event.text, event.last_pc) for event in found[1:]] == [
        ("performance counters: 0x0147 0x001c", None),
        ("watchpoint 0", 0x2000_35F4),
        ("watchpoint 1", 0x2000_35F8),
    ]
    assert isinstance(found[1].fact, HartEvent)
    assert found[1].fact.values == (0x147, 0x1C)


@pytest.mark.parametrize(
    ("cksrc", "number", "text"),
    [
        (8, 3, "external trigger 3"),
        (10, 2, "exception 2 (illegal instruction)"),
        (11, 7, "interrupt 7 (machine timer interrupt)"),
        (13, 0x104, "context 260"),
        (14, 1, "watchpoint 1"),
        (0, 3, "control: trace off"),
        (0, 5, "control: entry into debug mode"),
    ],
)
def test_every_event_with_a_number(cksrc: int, number: int, text: str) -> None:
    assert shown(in_circuit(cksrc, 0x4040_0706 >> 1, number, whole=True)) == [(text, 0x4040_0706, None)]


@pytest.mark.parametrize(("cksrc", "text"), [(8, "external trigger"), (14, "watchpoint"), (15, "PC sample")])
def test_events_without_a_number(cksrc: int, text: str) -> None:
    assert shown(in_circuit(cksrc, 0x4040_0706 >> 1, whole=True)) == [(text, 0x4040_0706, None)]


def test_a_control_without_an_address() -> None:
    assert shown(in_circuit(0, 6)) == [("control: exit from reset", None, None)]


def test_no_place_is_known_before_a_whole_address() -> None:
    assert shown(SAMPLE, TRACE_ON, SAMPLE)[0] == ("PC sample", None, None)
    assert shown(SAMPLE, TRACE_ON, SAMPLE)[2] == ("PC sample", 0x4040_070A ^ 0x28 << 1, None)


def test_what_the_program_wrote() -> None:
    """`1c09c8a3`: two bytes at the end of the register of channel 0."""
    (event,) = events(bytes.fromhex("1c09c8a3"))
    assert isinstance(event.fact, HartEvent)
    assert event.fact.written == ItcWrite(0, 2, 0x0A32)
    assert event.fact.written.data == b"2\n"
    assert event.text == r"2 bytes written to channel 0: '2\n'"


@pytest.mark.parametrize(
    ("tcode", "tag", "value", "expected"),
    [
        (7, 0x0C, 0x6463_6261, (3, 4, b"abcd")),
        (7, 0x0F, 0x41, (3, 1, b"A")),
        (7, 0x04, 0x41, (1, 4, b"A\0\0\0")),  # zeros on top are not sent
        (23, 0x02, 0x4241, (0, 2, b"AB")),
    ],
)
def test_channels_and_sizes(tcode: int, tag: int, value: int, expected: tuple[int, int, bytes]) -> None:
    (event,) = events(groups((tcode, 6), (tag, 0), (value, 0)))
    assert isinstance(event.fact, HartEvent)
    written = event.fact.written
    assert written is not None
    assert (written.channel, written.size, written.data) == expected


@pytest.mark.parametrize(("tag", "value"), [(1, 5), (3, 0x100)])
def test_data_of_an_unknown_size(tag: int, value: int) -> None:
    """No register of a channel begins at its second byte, and the last byte has no room for two."""
    (event,) = events(groups((7, 6), (tag, 0), (value, 0)))
    assert event.text == f"0x{value:x} written to channel 0"


def test_data_acquisition_elsewhere_has_a_channel_as_its_tag() -> None:
    (event,) = events(groups((7, 6), (5, 0), (0x4241, 0)), dialect=RATIFIED)
    assert event.text == "2 bytes written to channel 5: 'AB'"


@pytest.mark.parametrize("cksrc", [1, 7])
def test_an_event_nobody_knows_is_ignored_and_said(cksrc: int) -> None:
    (event,) = events(in_circuit(cksrc, 5))
    assert (event.kind, event.text) == (
        EventKind.NOTE,
        f"InCircuitTrace: CKSRC 0x{cksrc:x}, CKDF 0x0, CKDATA0 0x5",
    )


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (in_circuit(15, 0x1000 >> 1, whole=True), "there is no instruction"),
        (in_circuit(9, 0x4040_0702 >> 1, whole=True), "there is no call, return or jump"),
    ],
)
def test_a_wrong_program_is_noticed(sent: bytes, why: str) -> None:
    (event,) = events(sent)
    assert event.kind is EventKind.MISMATCH
    assert why in event.text


def test_code_that_was_not_supplied_is_not_a_wrong_program() -> None:
    """The next sample is relative to the place without code, and has its own."""
    sent = in_circuit(15, 0x800, whole=True) + in_circuit(15, 0x800 ^ 0x4040_0706 >> 1)
    found = decode(sent, ContextImages(FIB), Options(dialect=SIFIVE)).events
    assert [event.fact.cause for event in found[:1]] == [LossCause.NO_CODE]  # type: ignore[union-attr]
    assert [(event.text, event.last_pc) for event in found[1:]] == [("PC sample", 0x4040_0706)]


def samples(*pcs: int) -> list[bytes]:
    """ProgTraceSync with SYNC 15."""
    return [message("ProgTraceSync", sync=15, icnt=0, faddr=pc >> 1) for pc in pcs]


def test_no_flow_follows_from_a_synchronizing_sample() -> None:
    """`243de80c002083` of pc-sample-sync is 0x404001f4. A stop after samples is no code either."""
    program = image_of((0x4040_01F4, [asm.C_NOP] * 8))
    ran = decoded(program, bytes.fromhex("243de80c002083"), *samples(0x4040_01F6), dialect=SIFIVE)
    assert [(event.kind_name, event.last_pc) for event in ran.events] == [
        ("pc-sample", 0x4040_01F4),
        ("pc-sample", 0x4040_01F6),
    ]
    assert len(ran) == 0


# Between the messages of a flow

LOOP = image_of((0x1000, [asm.C_NOP] * 4 + [asm.c_jr(10)]), (0x2000, [asm.C_NOP] * 4))


def flow(*between: bytes, uaddr: int = 0x3000 >> 1) -> History:
    jump = message("IndirectBranch", b_type=0, icnt=5, uaddr=uaddr)
    return decoded(LOOP, started(0x1000), *between, jump, stopped(2), dialect=SIFIVE, btm=True)


RAN = [0x1000, 0x1002, 0x1004, 0x1006, 0x1008, 0x2000, 0x2002]


@pytest.mark.parametrize(
    "between", [[], [in_circuit(0, 2)], [groups((7, 6), (0, 0), (5, 0))], [in_circuit(12, 0x10005)]]
)
def test_the_flow_goes_on(between: list[bytes]) -> None:
    ran = flow(*between)
    assert list(ran.pcs()) == RAN
    assert len(of_kind(ran, EventKind.HART_EVENT)) == len(between)


@pytest.mark.parametrize(
    "between", [[in_circuit(14, (0x1000 ^ 0x1004) >> 1, 1)], samples(0x1004), [in_circuit(8, 0x1004 >> 1, whole=True)]]
)
def test_the_next_address_of_the_flow_is_relative_to_the_event(between: list[bytes]) -> None:
    ran = flow(*between, uaddr=(0x1004 ^ 0x2000) >> 1)
    assert list(ran.pcs()) == RAN
    (event,) = of_kind(ran, EventKind.HART_EVENT)
    assert event.last_pc == 0x1004


def test_an_event_after_the_end_of_tracing_is_relative_to_the_last_address() -> None:
    ran = decoded(
        LOOP, started(0x1000), stopped(2), in_circuit(15, 0x2), started(0x2000), stopped(2), dialect=SIFIVE, btm=True
    )
    (event,) = of_kind(ran, EventKind.HART_EVENT)
    assert event.last_pc == 0x1004


def test_lost_messages_leave_no_address_to_be_relative_to() -> None:
    error = message("Error", etype=0, ecode=0)
    assert [text for text, *_ in shown(TRACE_ON, error, SAMPLE)][-1] == "PC sample"
    assert shown(TRACE_ON, error, SAMPLE)[-1] == ("PC sample", None, None)


@pytest.mark.parametrize("repeated", [False, True])
def test_each_event_has_its_own_time(repeated: bool) -> None:
    """The first time is whole, the others are the XOR with the one before. Equal messages are remembered."""
    sent = [in_circuit(15, 0x4040_0706 >> 1, whole=True, tstamp=0x100)]
    sent += [in_circuit(15, 0 if repeated else n << 1, tstamp=n) for n in (1, 3, 7)]
    sent.append(groups((7, 6), (0, 0), (0x41, 0), (0xF, 0)))
    found = events(*sent, timestamps=True)
    assert [event.time for event in found] == [0x100, 0x101, 0x102, 0x105, 0x10A]
