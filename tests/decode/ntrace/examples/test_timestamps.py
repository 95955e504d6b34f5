"""RISC-V N-Trace 1.0, 8.5 "Timestamp Reporting", rule by rule; the differing rule of SiFive's encoders beside it."""

from typing import Any

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Dialect, Options
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import Recorder, decoded, image_of, message, read, started, stopped

# Two functions that jump to each other.
IMAGE = image_of((0x100, [asm.C_NOP, asm.c_jr(6)]), (0x200, [asm.C_NOP, asm.C_NOP, asm.c_jr(6)]))
TO_200 = {"b_type": 0, "icnt": 2, "uaddr": 0x180, "hist": 1}
TO_100 = {"b_type": 0, "icnt": 3, "uaddr": 0x180, "hist": 1}


def jump(tstamp: int | None, **fields: Any) -> bytes:
    return message("IndirectBranchHist", tstamp=tstamp, **fields)


def synchronized(tstamp: int | None, icnt: int, pc: int) -> bytes:
    return message("IndirectBranchHistSync", sync=2, b_type=0, icnt=icnt, faddr=pc >> 1, hist=1, tstamp=tstamp)


def test_section_8_5_absolute_at_synchronizing_messages_relative_elsewhere() -> None:
    """ "Emit the timestamp as relative offset from last reported (absolute or relative) timestamp"."""
    trace = [started(tstamp=1000), jump(5, **TO_200), jump(70, **TO_100)]
    trace += [synchronized(2000, 2, 0x200), jump(1, **TO_100)]
    history = decoded(IMAGE, *trace, timestamps=True)
    assert list(history.times) == [(0, 1000), (2, 1005), (5, 1075), (7, 2000), (10, 2001)]
    assert [history.time_at(i) for i in range(8)] == [1000, 1000, 1005, 1005, 1005, 1075, 1075, 2000]


def test_section_8_5_messages_without_a_timestamp() -> None:
    """ "It is not required for all non-synchronizing messages to always report a timestamp"."""
    trace = [started(tstamp=1000), jump(None, **TO_200), jump(7, **TO_100), jump(None, **TO_200), stopped(1)]
    history = decoded(IMAGE, *trace, timestamps=True)
    assert list(history.times) == [(0, 1000), (5, 1007)]
    assert history.instructions == len(history) == 8


def test_section_8_5_before_the_first_synchronizing_message_there_is_no_time() -> None:
    """ "Software begins at a synchronizing message"."""
    lead = message("ProgTraceCorrelation", evcode=4, cdf=1, icnt=0, hist=1, tstamp=999)
    history = decoded(IMAGE, lead, started(tstamp=50), jump(3, **TO_200), stopped(1), timestamps=True)
    assert list(history.times) == [(0, 50), (2, 53)]


def test_section_8_5_the_full_width_of_64_bits() -> None:
    """ "The absolute timestamp cannot exceed 64 bits"; upper zeros are suppressed, nothing is sign-extended."""
    top = (1 << 64) - 1
    history = decoded(IMAGE, started(tstamp=top - 5), jump(5, **TO_200), stopped(1), timestamps=True)
    assert list(history.times) == [(0, top - 5), (2, top)]


def test_section_8_5_a_smaller_counter_wraps() -> None:
    """ "Implementations may choose a smaller counter": relative times go on through its overflow."""
    trace = [started(tstamp=(1 << 20) - 3), jump(10, **TO_200), jump(2, **TO_100), stopped(1)]
    history = decoded(IMAGE, *trace, timestamps=True, timestamp_bits=20)
    full = [time & (1 << 20) - 1 for _, time in history.times]
    assert full[:3] == [(1 << 20) - 3, 7, 9]


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_section_8_5_a_time_that_goes_back_is_noted_once(piece: int) -> None:
    """As after a reset of the counter: durations across it are wrong. The pieces of the bytes do not matter."""
    trace = started(tstamp=1000) + jump(5, **TO_200) + jump(70, **TO_100) + synchronized(20, 2, 0x200)
    trace += jump(1, **TO_100) + synchronized(19, 2, 0x200) + stopped(1)
    decoder = StreamDecoder(IMAGE, Options(timestamps=True), split=False)
    for first in range(0, len(trace), piece):
        decoder.feed(trace[first : first + piece])
    history = decoder.finish_one()
    (note,) = (event for event in history.events if "goes back" in event.text)
    assert note.text == "the time goes back from 1075 to 20: times before and after this place cannot be compared"
    assert (note.position, trace[note.offset :].startswith(synchronized(20, 2, 0x200))) == (7, True)
    assert list(history.times)[:5] == [(0, 1000), (2, 1005), (5, 1075), (7, 20), (10, 21)]


def test_what_is_no_message_tells_no_time() -> None:
    """A frame far too long for a ProgTraceSync, with what would be its TSTAMP: the counter did not wrap behind it."""
    noise = bytes.fromhex("24 0d") + bytes(5000) + bytes.fromhex("01 ff")
    for piece in (len(noise), 100):
        decoder = StreamDecoder(IMAGE, Options(timestamps=True, timestamp_bits=20), split=False)
        decoder.feed(started(tstamp=10))
        for first in range(0, len(noise), piece):
            decoder.feed(noise[first : first + piece])
        decoder.feed(started(0x200, tstamp=20) + stopped(1))
        assert decoder.finish_one().times[-1][1] == 20


NOISE = {
    "no number of halfwords that a message counts": message("ResourceFull", tstamp=0xFFFFC, rcode=0, rdata=1 << 2996),
    "a reserved field": message("ResourceFull", tstamp=0xFFFFC, rcode=9, rdata=1),
    "no message": b"\x6c\x02\x02\x03",
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dialect", [RATIFIED, SIFIVE])
@pytest.mark.parametrize("noise", NOISE)
def test_what_is_rejected_tells_no_time(noise: str, dialect: Dialect, compiled: bool) -> None:
    """Nor do relative timestamps behind it, whose reference may be lost. The next absolute time is no wrap-around, and
    behind that all is as before.
    """
    relative = [5, 70, 80, 3] if dialect is RATIFIED else [1005 ^ 1000, 77, 78, 2003 ^ 2000]
    sent = [started(tstamp=1000), jump(relative[0], **TO_200), NOISE[noise]]
    sent += [jump(relative[1], **TO_100), NOISE[noise], jump(relative[2], **TO_200)] * 40
    sent += [synchronized(2000, 2, 0x200), jump(relative[3], **TO_100), stopped(1)]
    trace = b"".join(sent)
    for piece in (1, 1000, len(trace)):
        options = Options(timestamps=True, timestamp_bits=20, dialect=dialect)
        decoder = StreamDecoder(IMAGE, options, split=False, compiled=compiled)
        for first in range(0, len(trace), piece):
            decoder.feed(trace[first : first + piece])
        times = [time for _, time in decoder.finish_one().times]
        assert times[:2] + times[-2:] == [1000, 1005, 2000, 2003]
        assert len(times) == 4


@pytest.mark.parametrize("compiled", [True, False])
def test_section_8_5_the_time_of_an_overflow(compiled: bool) -> None:
    """The encoder's own report that it lost messages has a time, unlike what comes before the next synchronization."""
    trace = [started(tstamp=1000), jump(5, **TO_200), message("Error", tstamp=9, etype=0, ecode=4)]
    trace += [jump(70, **TO_100)]
    decoder = StreamDecoder(IMAGE, Options(timestamps=True, timestamp_bits=20), split=False, compiled=compiled)
    decoder.feed(b"".join(trace))
    assert [time for _, time in decoder.finish_one().times] == [1000, 1005, 1014]


@pytest.mark.parametrize("piece", [10_000, 100])
@pytest.mark.parametrize("name", ["jump", "full"])
def test_a_timestamp_without_end_is_no_timestamp(name: str, piece: int) -> None:
    """A message seen before, now with a TSTAMP of 5000 bytes: a loss, however the bytes come."""
    two = [asm.C_NOP, asm.C_NOP, asm.c_jr(6)]
    image = image_of((0x100, two[1:]), (0x200, two), (0x300, [asm.c_j(0)]))
    full = message("ResourceFull", tstamp=3, rcode=0, rdata=1)
    seen = [jump(3, **TO_200), jump(3, **TO_100)] if name == "jump" else [full] * 4
    endless = seen[0][:-1] + bytes(5000) + b"\x03"
    start = started(0x100 if name == "jump" else 0x300, tstamp=10)
    trace = b"".join([start, *seen, endless, started(0x200, tstamp=99), stopped(1)])
    decoder = StreamDecoder(image, Options(timestamps=True), split=False)
    for first in range(0, len(trace), piece):
        decoder.feed(trace[first : first + piece])
    history = decoder.finish_one()
    before = [0x100, 0x102, 0x200, 0x202, 0x204] if name == "jump" else [0x300] * 4
    assert list(history.pcs()) == [*before, -1, 0x200]
    assert history.accounting.skipped == len(endless)


@pytest.mark.parametrize("timestamps", [True, False])
def test_section_8_5_every_kind_of_message_may_carry_one(timestamps: bool) -> None:
    """ "Any message may include the optional TSTAMP" (6.1); it is in no field's way, even where no one expects it."""
    image = image_of((0x100, [asm.c_beqz(2)] * 40 + [asm.c_jr(6)]), (0x200, [asm.C_NOP] * 3))
    trace = [
        started(tstamp=1000),
        message("Ownership", tstamp=1, process=0b0_11_00),
        message("ResourceFull", tstamp=1, rcode=0, rdata=1),
        message("ResourceFull", tstamp=1, rcode=1, rdata=0b100),
        message("ResourceFull", tstamp=1, rcode=2, rdata=0b1000, hrepeat=4),
        message("IndirectBranchHist", tstamp=1, b_type=3, icnt=13, uaddr=0x180, hist=1),
        message("ProgTraceCorrelation", tstamp=1, evcode=0, cdf=1, icnt=2, hist=1),
    ]
    history = decoded(image, *trace, timestamps=timestamps)
    assert list(history.pcs()) == [*range(0x100, 0x11C, 2), 0x200, 0x202]
    if timestamps:
        assert history.time_at(14) == 1005
        assert history.times[-1][1] == 1006


def test_section_8_5_time_of_an_exception() -> None:
    """ "The time reported at exceptions/interrupt handlers reflects the moment when" it was observed."""
    trap = message("IndirectBranchHist", tstamp=33, b_type=2, icnt=1, uaddr=0x180, hist=1)
    history = decoded(IMAGE, started(tstamp=500), trap, stopped(1), timestamps=True)
    assert (history.time_at(0), history.time_at(1)) == (500, 533)


def test_section_8_5_the_encoder_follows_the_rules() -> None:
    """Absolute after a start and at each synchronization, the sum of the differences in between."""
    one, two = Block(0x100, b"\1\1", IType.OTHER_UNINFERABLE), Block(0x200, b"\1\1\1", IType.OTHER_UNINFERABLE)
    recorder = Recorder(timestamps=True)
    recorder.encoder.time(1000)
    recorder.encoder.retire([one], next_pc=0x200, cycles=0)
    recorder.encoder.time(1040)
    recorder.encoder.retire([two], next_pc=0x100, cycles=0)
    recorder.encoder.time(1100)
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.encoder.retire([one], next_pc=0x200, cycles=0)
    recorder.encoder.time(1111)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x200)
    sent = recorder.messages()
    full, times = 0, []
    for fields in sent:
        full = int(fields["tstamp"]) + (0 if "sync" in fields else full)
        times.append(full)
    assert times[0] == 1000
    assert times == sorted(times)
    assert {1000, 1040, 1100, 1111} >= set(times)
    assert times[-1] == 1111
    history = decoded(IMAGE, *recorder.raw, timestamps=True)
    # At one place the last message tells when the instruction there was about to run.
    assert list(history.times) == [(0, 1000), (2, 1000), (5, 1100), (7, 1111)]


def test_section_8_5_sparse_timestamps() -> None:
    one, two = Block(0x100, b"\1\1", IType.OTHER_UNINFERABLE), Block(0x200, b"\1\1\1", IType.OTHER_UNINFERABLE)
    recorder = Recorder(timestamps=True, timestamp_sparse=3)
    recorder.retire(*[one, two] * 5)
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    fields = [read(raw) for raw in recorder.raw]
    assert "tstamp" in fields[0]
    assert 0 < sum("tstamp" in message for message in fields[1:]) <= len(fields[1:]) // 3 + 1
    assert decoded(IMAGE, *recorder.raw, timestamps=True).gaps == 0


def test_sifive_timestamps_are_the_xor_with_the_last_time() -> None:
    """As measured in its captures; synchronizing messages are absolute there too."""
    trace = [started(tstamp=0b1010), jump(0b0110, **TO_200), jump(0b1, **TO_100), synchronized(3, 2, 0x200)]
    history = decoded(IMAGE, *trace, timestamps=True, dialect=SIFIVE)
    assert list(history.times) == [(0, 0b1010), (2, 0b1100), (5, 0b1101), (7, 3)]
