"""Messages of several harts in one stream: whose they are, and what all harts lose."""

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.decoder import decode_streams
from rvtrace_gdb.decode.ntrace.options import Options
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import groups, image_of, message, of_kind

IMAGE = image_of((0x100, [asm.C_NOP] * 8))
NO_MESSAGE = bytes([0x70, 0x02, 0x03])  # reserved MSEO


def started(src: int, src_bits: int = 4, pc: int = 0x100) -> bytes:
    return message("ProgTraceSync", (src_bits, src), sync=5, icnt=0, faddr=pc >> 1)


def stopped(src: int, icnt: int, src_bits: int = 4) -> bytes:
    return message("ProgTraceCorrelation", (src_bits, src), evcode=4, cdf=1, icnt=icnt, hist=1)


def test_each_hart_has_its_own_history() -> None:
    stream = started(1) + started(2) + b"\xff\xff" + stopped(2, 3) + started(9) + stopped(1, 5)
    streams = decode_streams(stream, {1: IMAGE, 2: IMAGE}, Options(src_bits=4))
    assert [len(streams.histories[src]) for src in (1, 2)] == [5, 3]
    assert streams.accounting == (len(stream), len(stream) - 2 - len(started(9)), 2, len(started(9)))
    everyone = decode_streams(stream, IMAGE, Options(src_bits=4))
    assert sorted(everyone.histories) == [1, 2, 9]
    assert everyone.accounting.skipped == 0


def test_messages_without_a_source_are_nobodys_where_hart_0_has_no_program() -> None:
    stream = groups((9, 6), (5, 4), (0, 0), (0x80, 0))
    streams = decode_streams(stream, {3: IMAGE}, Options())
    assert streams.histories == {}
    assert streams.accounting == (len(stream), 0, 0, len(stream))


def test_a_loss_is_told_to_each_hart_when_it_speaks_again() -> None:
    """Whose the bytes were nobody knows. Several losses in a row are one, as long as a hart is silent."""
    before = started(1) + started(2)
    between = NO_MESSAGE + stopped(2, 2) + started(2) + NO_MESSAGE
    stream = before + between + started(1, pc=0x104) + stopped(1, 1) + started(7)
    histories = decode_streams(stream, IMAGE, Options(src_bits=4)).histories
    told = {
        src: [(event.offset - len(before), event.text) for event in of_kind(history, EventKind.LOSS)]
        for src, history in histories.items()
    }
    second = len(between) - len(NO_MESSAGE)
    why = "reserved MSEO value 10"
    both = (0, f"6 bytes skipped: {why}, the first of 2 places")
    assert told[1] == told[7] == [both]
    assert told[2][0] == (0, f"3 bytes skipped: {why}")
    assert (second, f"3 bytes skipped: {why}") in told[2]
    assert list(histories[1].pcs()) == [0x104]
