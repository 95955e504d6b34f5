"""Loss is shown, never papered over: what can go wrong in a trace, what is reported, and where decoding goes on."""

import pytest

from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.framing import MAX_FRAME
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.errors import Cancelled
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import image_of, message, of_kind, started
from tests.decode.ntrace.messages import stopped as stop
from tests.helpers.reference_streams import FOLDER, fingerprint, golden


def sync(pc: int, reason: int = Sync.PERIODIC) -> bytes:
    return started(pc, reason)


def jump(icnt: int, uaddr: int, hist: int = 1, b_type: int = 0) -> bytes:
    return message("IndirectBranchHist", b_type=b_type, icnt=icnt, uaddr=uaddr, hist=hist)


START, AGAIN = sync(0x100, Sync.EXIT_FROM_DEBUG), sync(0x200)
# 0x100: c.nop c.nop c.beqz(+4) c.nop  c.jr; 0x200: c.nop c.nop c.jr; nothing behind 0x206
IMAGE = Image(32)
IMAGE.add_code(0x100, asm.C_NOP * 2 + asm.c_beqz(4) + asm.C_NOP + asm.c_jr(6))
IMAGE.add_code(0x200, asm.C_NOP * 2 + asm.c_jr(6))
IMAGE.add_code(0x300, asm.c_j(0))
IMAGE.add_code(0x400, asm.C_NOP + asm.ECALL + asm.C_NOP)


def decoded(*parts: bytes, image: Image = IMAGE, options: Options | None = None, wrapped: bool = False) -> History:
    return decode(b"".join(parts), image, options or Options(), wrapped=wrapped)


CONTRADICTIONS = {
    "HIST bits without branches": (jump(5, 0, 0b1011), "2 bits of HIST left at an indirect jump"),
    "branch without HIST bit": (jump(5, 0, 0b1), "HIST has no bit for the branch"),
    "I-CNT past an indirect jump": (jump(9, 0, 0b10), "I-CNT goes past an indirect jump"),
    "no jump at the end": (jump(2, 0, 0b1), "there is no indirect jump"),
    "HIST without stop bit": (jump(2, 0, 0), "HIST has no stop bit"),
    "stop after too many bits": (stop(3, 0b111), "1 bit of HIST more than there are branches"),
}


@pytest.mark.parametrize(("bad", "why"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions_between_trace_and_code(bad: bytes, why: str) -> None:
    """The place, the reason and the byte are told; the next synchronizing message ends the gap."""
    history = decoded(START, bad, jump(3, 0x55), AGAIN, stop(2))
    (cause,) = [event for event in history.events if event.kind is EventKind.MISMATCH]
    assert why in cause.text
    assert "trace does not match the program at 0x" in cause.text
    assert (cause.offset, cause.end) == (len(START), len(START + bad + jump(3, 0x55)))
    at = cause.position
    assert history.pc(at) == GAP or at == 0
    assert list(history.pcs(len(history) - 2)) == [0x200, 0x202]
    assert history.accounting.skipped == len(jump(3, 0x55))
    if at:
        assert history.gap_at(at) == cause
        assert (cause.last_pc, cause.next_pc) == (history.pc(at - 1), 0x200)


def test_code_that_is_not_there() -> None:
    history = decoded(sync(0x1000), jump(4, 0), AGAIN, stop(1))
    assert "at 0x1000: there is no code" in history.events[1].text
    assert list(history.pcs()) == [0x200]
    history = decoded(sync(0x406), jump(4, 0), AGAIN, stop(1))
    assert "at 0x408: there is no code" in history.gap_at(1).text
    assert list(history.pcs()) == [0x406, GAP, 0x200]


def test_a_synchronization_that_disagrees() -> None:
    """F-ADDR must be where the flow stands when the code decides it."""
    reported = message("ResourceFull", rcode=0, rdata=1)
    elsewhere = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=1, faddr=0x100, hist=1)
    history = decoded(START, reported, elsewhere, stop(1))
    assert list(history.pcs()) == [0x100, GAP, 0x200]
    assert "at 0x104: F-ADDR says 0x200" in history.gap_at(1).text
    agrees = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=2, faddr=0x82, hist=1)
    history = decoded(START, agrees, stop(1, 0b10))
    assert list(history.pcs()) == [0x100, 0x102, 0x104]
    assert history.gaps == 0


@pytest.mark.parametrize("error", [True, False])
def test_an_overrun(error: bool) -> None:
    """With the Error message of 7.4 before the restart, and without: told once as a gap either way."""
    lost = message("Error", etype=0, ecode=4) if error else b""
    history = decoded(START, lost, sync(0x200, Sync.RESTART_FROM_FIFO_OVERRUN), stop(2))
    assert list(history.pcs()) == [0x200, 0x202]
    full = message("ResourceFull", rcode=0, rdata=2)
    history = decoded(START, full, lost, sync(0x200, Sync.RESTART_FROM_FIFO_OVERRUN), stop(2))
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x200, 0x202]
    assert history.gap_at(2).kind is EventKind.OVERFLOW
    assert ("ECODE 0x4" in history.gap_at(2).text) == error


def test_unknown_and_other_messages_are_noted_and_passed_over() -> None:
    vendor, reserved = bytes.fromhex("e0100103"), bytes.fromhex("5003")
    history = decoded(START, vendor, reserved, stop(2))
    assert list(history.pcs()) == [0x100, 0x102]
    assert [e.text for e in history.events if e.kind is EventKind.NOTE] == [
        "vendor defined message (TCODE 56) ignored",
        "reserved message (TCODE 20) ignored",
    ]
    assert history.accounting.skipped == len(vendor) + len(reserved)


@pytest.mark.parametrize(
    ("noise", "why"),
    [
        (b"\x06\x03", "reserved MSEO value 10"),
        (START[:2] + b"\x02" + START[2:], "reserved MSEO value 10"),
        (b"\x05\x07", "bytes that do not start a message"),
        (b"\x01\x00\x03", "bytes that do not start a message"),
        (bytes(MAX_FRAME) + b"\x03", f"no end of message within {MAX_FRAME} bytes"),
        (bytes(100_000) + b"\x03", f"no end of message within {MAX_FRAME} bytes"),
        (b"\x24\x03", "ProgTraceSync without F-ADDR"),
    ],
)
def test_bytes_that_are_no_message(noise: bytes, why: str) -> None:
    history = decoded(START, message("ResourceFull", rcode=0, rdata=2), noise, AGAIN, stop(2))
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x200, 0x202]
    assert history.gap_at(2).kind is EventKind.LOSS
    assert why in history.gap_at(2).text
    assert history.gap_at(2).offset == len(START) + 2
    assert history.accounting.skipped == len(noise)


def test_resource_full_of_an_unknown_kind() -> None:
    history = decoded(START, message("ResourceFull", rcode=9, rdata=40), AGAIN, stop(1))
    assert list(history.pcs()) == [0x200]
    assert "RCODE 9" in history.events[1].text


def test_messages_of_another_source_are_not_ours() -> None:
    ours = message("ProgTraceSync", (3, 5), sync=3, icnt=0, faddr=0x80)
    theirs = message("ProgTraceSync", (3, 2), sync=3, icnt=0, faddr=0x100)
    end = message("ProgTraceCorrelation", (3, 5), evcode=0, cdf=1, icnt=2, hist=1)
    history = decoded(ours, theirs, end, options=Options(src_bits=3, src_id=5))
    assert list(history.pcs()) == [0x100, 0x102]
    assert history.accounting.skipped == len(theirs)


def test_progress_is_told_and_can_cancel() -> None:
    seen: list[tuple[int, int | None]] = []

    def watch(label: str, done: int, total: int | None = None) -> None:
        seen.append((done, total))
        if done > 150_000:
            raise Cancelled

    data = START + (message("ResourceFull", rcode=0, rdata=1) + b"\xff" * 60) * 4_000
    with pytest.raises(Cancelled):
        decode(data, IMAGE, Options(), progress=watch)
    assert seen[0] == (1 << 16, len(data))
    assert len(seen) == 3


# What is listed of a message that is contradicted: nothing that only its I-CNT says


def test_nothing_is_listed_twice_where_the_count_of_a_synchronization_is_wrong() -> None:
    """Its second byte came twice, so that I-CNT is 66 and not 1: a jump is on the way, and F-ADDR before that."""
    image = image_of((0x100, [asm.C_NOP] * 8 + [asm.c_jr(6)]))
    right = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=1, faddr=0x106 >> 1, hist=1)
    doubled = right[:2] + right[1:]
    assert doubled == message("IndirectBranchHistSync", sync=2, b_type=0, icnt=66, faddr=0x106 >> 1, hist=1)
    history = decoded(START, message("ResourceFull", rcode=0, rdata=2), doubled, stop(2), image=image)
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x106, 0x108]


# Noise that fits the framing, and is not a message an encoder sends


def test_a_field_too_many_is_a_timestamp_where_synchronizations_have_one() -> None:
    history = decoded(started(0x100, tstamp=3), message("ResourceFull", rcode=0, rdata=2, tstamp=5), stop(0))
    assert list(history.pcs()) == [0x100, 0x102]
    assert [event.kind for event in history.events] == [EventKind.NOTE, EventKind.TRACE_ON, EventKind.TRACE_OFF]


@pytest.mark.parametrize("cdf", [2, 3])
def test_a_reserved_cdf_is_noise(cdf: int) -> None:
    """Table 23 has 0 and 1: what the fields of another one are nobody knows."""
    end = message("ProgTraceCorrelation", evcode=0, cdf=cdf, icnt=2)
    history = decoded(START, end, AGAIN, stop(2))
    assert list(history.pcs()) == [0x200, 0x202]
    assert of_kind(history, EventKind.LOSS)[0].fact == Loss(LossCause.RESERVED, ("ProgTraceCorrelation", "CDF", cdf))


@pytest.mark.parametrize("at", [168, 390])
def test_a_hole_of_zeros_is_no_history_of_branches(at: int) -> None:
    """300 bytes of zeros are a HIST of 1,800 bits, which fits each loop: what is listed before the gap is what ran."""
    name = "median"
    image, data = Image.from_elf(FOLDER / f"{name}.elf"), bytearray((FOLDER / f"{name}.1.nex").read_bytes())
    truth = list(decode(bytes(data), image, Options()).pcs())
    assert (len(truth), fingerprint(truth)) == golden(name)
    data[at : at + 300] = bytes(300)
    listed = list(decode(bytes(data), image, Options()).pcs())
    before = listed[: listed.index(GAP)]
    assert before == truth[: len(before)] and len(before) > 1000
