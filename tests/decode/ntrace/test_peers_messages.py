"""What other encoders and decoders of N-Trace get wrong about single messages and where they begin and end.

NexRv is the reference code of the specification, dqr SiFive's decoder, libnexus a third; the numbers after # are issues
of the specification's repository. What is right comes from the specification.
"""

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.options import SIFIVE
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    decoded,
    encoded,
    groups,
    image_of,
    message,
    of_kind,
    read,
    started,
    stopped,
    vendor,
)

LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.c_jr(6)]))


def test_missing_high_bits_of_a_field_are_0() -> None:
    """#96: `84 03` has no bit for I-CNT, `84 00 03` one; libnexus reports a missing field."""
    for raw in (bytes.fromhex("84 03"), bytes.fromhex("84 00 03"), bytes.fromhex("84 00 00 03")):
        history = decoded(LOOP, started(), raw, btm=True)
        assert [event.kind for event in history.events] == [EventKind.TRACE_ON, EventKind.TRACE_OFF]
        assert history.accounting.skipped == 0


@pytest.mark.parametrize("process", [0x0, 0x4, 0x6, 0xC])
def test_libnexus_aborts_at_suppressed_ownership_bits(process: int) -> None:
    """PROCESS=0x4 in 4 bits, in one byte: V and CONTEXT are not transmitted, which makes them 0."""
    history = decoded(LOOP, started(), bytes([2 << 2, process << 2 | 3]), stopped(1))
    scontext = 0 if process & 3 == 2 else None
    assert history.context_at(0) == ProgramContext(process >> 2, False, scontext)
    assert history.gaps == history.accounting.skipped == 0


def test_libnexus_requires_a_timestamp_in_every_message() -> None:
    """Only synchronizing messages must have one."""
    jump = message("IndirectBranchHist", b_type=0, icnt=4, uaddr=0, hist=0b10)
    stamped = message("IndirectBranchHist", tstamp=7, b_type=0, icnt=4, uaddr=0, hist=0b10)
    history = decoded(LOOP, started(tstamp=10), jump, stamped, stopped(1), timestamps=True)
    assert history.instructions == 9
    assert list(history.times) == [(0, 10), (8, 17)]


def test_nexrv_takes_a_timestamp_for_hrepeat_or_hist() -> None:
    """Which field a TSTAMP would be follows from RCODE and CDF, not from what is left."""
    full = message("ResourceFull", tstamp=9, rcode=1, rdata=0b11)
    stop = message("ProgTraceCorrelation", tstamp=9, evcode=0, cdf=0, icnt=3)
    history = decoded(LOOP, started(tstamp=5), full, stop, timestamps=True)
    assert list(history.pcs()) == [0x100, 0x102, 0x100]
    assert list(history.times) == [(0, 5), (2, 14), (3, 23)]


def test_nexrv_has_no_src() -> None:
    """Two sources in one stream, the second in the middle of the first one's message sequence."""
    ours, theirs = (4, 9), (4, 2)
    begin = message("ProgTraceSync", ours, sync=3, icnt=0, faddr=0x80)
    other = message("ProgTraceSync", theirs, sync=3, icnt=0, faddr=0x300)
    end = message("ProgTraceCorrelation", ours, evcode=0, cdf=1, icnt=2, hist=0b11)
    history = decoded(LOOP, begin, other, end, src_bits=4, src_id=9)
    assert list(history.pcs()) == [0x100, 0x102]
    assert history.accounting.skipped == len(other)


def test_nexrv_extends_every_address_from_bit_48() -> None:
    """SiFive's rule and no other's: with 1.0 an address of 49 bits with the top ones set is what it is."""
    address = 0x1_8000_0000_0100
    image = image_of((address, [asm.C_NOP]), (0xFFFF << 48 | address, [asm.LONG_48]), xlen=64)
    history = decoded(image, started(address), stopped(1))
    assert list(history.pcs()) == [address]
    sifive = decoded(image, message("ProgTraceSync", sync=3, icnt=0, faddr=address >> 1), stopped(3), dialect=SIFIVE)
    assert list(sifive.pcs()) == [0xFFFF << 48 | address]


def test_sifive_28_high_64_bit_addresses() -> None:
    """User code below 0x8000_0000_0000 and a kernel at the top, with and without trTeInstExtendAddrMSB."""
    user, kernel = 0x7FFF_F7FE_4A10, 0xFFFF_FFFF_8020_0000
    image = image_of((user, [asm.C_NOP, asm.c_jr(6)]), (kernel, [asm.C_NOP, asm.c_jr(6)]), xlen=64)
    pcs = [user, user + 2, kernel, kernel + 2, user]
    for extend in (False, True):
        messages = encoded(image, pcs, user + 2, extend_addr_msb=extend)
        assert list(decoded(image, *messages, extend_addr_msb=extend).pcs()) == pcs
    messages = encoded(image, pcs, user + 2, dialect=SIFIVE)
    assert list(decoded(image, *messages, dialect=SIFIVE).pcs()) == pcs


def test_spike_leaves_out_fields() -> None:
    """Its ProgTraceSync has no I-CNT and its ProgTraceCorrelation no CDF; its sync TCODEs are 10 and 11."""
    messages = encoded(LOOP, [0x100, 0x102, 0x100], 0x102)
    assert read(messages[0]) == {"name": "ProgTraceSync", "sync": 3, "icnt": 0, "faddr": 0x80}
    assert read(messages[-1]) == {"name": "ProgTraceCorrelation", "evcode": 0, "cdf": 1, "icnt": 3, "hist": 0b11}
    wrong = groups((9, 6), (3, 4), (0x80, 0))  # as Spike sends it: F-ADDR where I-CNT belongs
    history = decoded(LOOP, wrong, started(), stopped(1))
    assert list(history.pcs()) == [0x100]
    assert "ProgTraceSync" in history.events[0].text


# Framing, unknown messages, starts and stops


def test_nexrv_stops_at_an_unknown_tcode() -> None:
    """ "Should be ignored by decoders interested in program flow only"."""
    for tcode in (1, 5, 34, 56, 61):
        history = decoded(LOOP, started(), vendor(tcode, 5, 70), stopped(2, 0b11))
        assert list(history.pcs()) == [0x100, 0x102]
        assert history.gaps == 0


def test_nexrv_stops_at_mseo_10() -> None:
    history = decoded(LOOP, started(), b"\x0a\x03", started(0x102), stopped(1, 0b11))
    assert list(history.pcs()) == [0x102]
    (loss,) = of_kind(history, EventKind.LOSS)
    assert (loss.offset, "MSEO" in loss.text) == (len(started()), True)


@pytest.mark.parametrize("wrapped", [False, True])
def test_nexrv_cannot_begin_in_the_middle_of_a_message(wrapped: bool) -> None:
    """Of a buffer that wrapped: "trace decoders must look for the start of a message"."""
    half = message("IndirectBranchHist", b_type=0, icnt=3000, uaddr=0x12345, hist=0x1_0000)[3:]
    for first in range(len(half)):
        history = decoded(LOOP, half[first:], started(), stopped(2, 0b11), wrapped=wrapped)
        assert list(history.pcs()) == [0x100, 0x102]
        skipped = len(half) - first
        one = skipped == 1 and not wrapped  # a single byte that could end a message is idle
        assert (history.accounting.skipped, history.accounting.idle) == (skipped - one, one)


def test_an_encoder_that_sends_a_correlation_first() -> None:
    """#59, #96: some do when they are enabled; it has no base to count from, for I-CNT or time."""
    first = message("ProgTraceCorrelation", tstamp=12, evcode=4, cdf=1, icnt=5, hist=0b10)
    history = decoded(LOOP, first, started(tstamp=40), stopped(2, 0b11), timestamps=True)
    assert list(history.pcs()) == [0x100, 0x102]
    assert history.times[0] == (0, 40)
    assert history.gaps == 0


def test_libnexus_aborts_at_a_stop_inside_a_block() -> None:
    """ "Expecting trap/sync/error, but got stop": tracing may stop after any instruction."""
    image = image_of((0x100, [asm.C_NOP, asm.NOP, asm.C_NOP, asm.c_beqz(-8)]))
    for icnt, executed in ((0, 0), (1, 1), (3, 2), (4, 3)):
        history = decoded(image, started(), stopped(icnt))
        assert list(history.pcs()) == [0x100, 0x102, 0x106][:executed]
        assert history.gaps == 0


def test_nexrv_goes_on_at_the_last_reported_address_after_a_correlation() -> None:
    """It stopped where I-CNT and HIST lead: a start there is no gap, one at the last F-ADDR is."""
    there = decoded(LOOP, started(), stopped(3, 0b11), stopped(0, evcode=0), started(0x102), stopped(1, 0b10))
    assert list(there.pcs()) == [0x100, 0x102, 0x100, 0x102]
    assert there.gaps == 0
    elsewhere = decoded(LOOP, started(), stopped(3, 0b11), started(0x100), stopped(1))
    assert list(elsewhere.pcs()) == [0x100, 0x102, 0x100, -1, 0x100]


def test_a_synchronization_at_a_branch_may_lack_its_bit() -> None:
    """dqr has code for it: the branch retired last, its outcome is in F-ADDR and in no HIST."""
    for faddr, after in ((0x100, [0x100]), (0x104, [0x104])):
        short = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=2, faddr=faddr >> 1, hist=1)
        history = decoded(LOOP, started(), short, stopped(1))
        assert list(history.pcs()) == [0x100, 0x102, *after]
        assert history.gaps == 0


def test_a_second_synchronization_at_the_same_place() -> None:
    """A trigger and a period in the same cycle, or a start and a trigger: nothing runs twice and nothing is lost."""
    again = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=0, faddr=0x80, hist=1)
    trigger = message("ProgTraceSync", sync=0, icnt=0, faddr=0x80)
    for second in (again, trigger, again + again, started()):
        history = decoded(LOOP, started(), second, stopped(2, 0b11))
        assert list(history.pcs()) == [0x100, 0x102]
        assert history.gaps == 0


def test_an_error_then_a_synchronization() -> None:
    """dqr drops to the next sync: so do we, and say why. What follows is decoded."""
    error = message("Error", etype=0, ecode=4)
    restart = started(0x104, sync=7)
    full = message("ResourceFull", rcode=1, rdata=0b11)
    history = decoded(LOOP, started(), full, error, restart, stopped(1))
    assert list(history.pcs()) == [0x100, 0x102, -1, 0x104]
    assert history.gap_at(2).kind is EventKind.OVERFLOW
    assert len(of_kind(history, EventKind.OVERFLOW, EventKind.LOSS)) <= 2
    between = decoded(LOOP, started(), full, error, message("DirectBranch", icnt=2), restart, stopped(1))
    assert list(between.pcs()) == [0x100, 0x102, -1, 0x104]


def test_all_zero_trace_memory() -> None:
    """One endless field: bounded in time and memory, and told."""
    history = decoded(LOOP, bytes(1 << 20), started(), stopped(1))
    assert "no end of message" in history.events[0].text
    assert history.accounting.skipped >= 1 << 20
