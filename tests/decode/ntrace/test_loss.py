"""Loss is shown, never papered over: what can go wrong in a trace, what is reported, and where decoding goes on."""

from typing import Any

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
from tests.decode.ntrace.messages import decoded as of_image
from tests.decode.ntrace.messages import image_of, message, of_kind, started, stopped
from tests.decode.ntrace.messages import stopped as stop


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


def kinds(history: History) -> list[EventKind]:
    return [event.kind for event in history.events]


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


def test_the_bytes_of_losses_in_a_row_lie_side_by_side() -> None:
    """Each up to the next one, the last up to where decoding goes on; what nothing follows, up to the end."""
    bad, noise = jump(5, 0, 0b1), b"\x02\x03"  # MSEO 10 is reserved
    history = decoded(START, bad, noise, jump(3, 0x55), AGAIN, jump(9, 0))
    first, second = len(START), len(START + bad)
    again = second + len(noise + jump(3, 0x55))
    causes = [event for event in history.events if isinstance(event.fact, Loss)]
    assert [(event.kind, event.offset, event.end) for event in causes] == [
        (EventKind.MISMATCH, first, second),
        (EventKind.LOSS, second, again),
        (EventKind.MISMATCH, again + len(AGAIN), None),
    ]


def test_hist_and_i_cnt_that_never_meet() -> None:
    """The HIST bits have led further than I-CNT counts."""
    full = message("ResourceFull", rcode=1, rdata=0b11)
    history = decoded(START, full, jump(1, 0), AGAIN, stop(1))
    assert "the branches in HIST are 2 halfwords further than I-CNT" in history.events[1].text
    assert list(history.pcs()) == [0x100, 0x102, 0x104, GAP, 0x200]


def test_code_that_is_not_there() -> None:
    history = decoded(sync(0x1000), jump(4, 0), AGAIN, stop(1))
    assert "at 0x1000: there is no code" in history.events[1].text
    assert list(history.pcs()) == [0x200]
    history = decoded(sync(0x406), jump(4, 0), AGAIN, stop(1))
    assert "at 0x408: there is no code" in history.gap_at(1).text
    assert list(history.pcs()) == [0x406, GAP, 0x200]


def test_i_cnt_that_ends_inside_an_instruction() -> None:
    history = decoded(sync(0x400), jump(2, 0), AGAIN, stop(1))
    assert "at 0x402: I-CNT ends inside the instruction" in history.gap_at(1).text
    assert list(history.pcs()) == [0x400, GAP, 0x200]


def test_a_fault_at_the_edge_of_the_code_is_no_contradiction() -> None:
    """The hart ran to the end of what is known and took a fetch fault there."""
    history = decoded(sync(0x404), jump(1, 0x404 >> 1 ^ 0x100, b_type=2), stop(1), image=edge())
    assert list(history.pcs()) == [0x404, 0x200]
    assert EventKind.MISMATCH not in kinds(history)


def edge() -> Image:
    image = Image(32)
    image.add_code(0x404, asm.C_NOP)
    image.add_code(0x200, asm.C_NOP)
    return image


def test_ecall_never_simply_passes() -> None:
    """rc7 counts it, and the trap's message ends there; I-CNT cannot go on behind it."""
    history = decoded(sync(0x400), jump(3, (0x400 ^ 0x200) >> 1, b_type=2), stop(1))
    assert list(history.pcs()) == [0x400, 0x402, 0x200]
    history = decoded(sync(0x400), stop(4))
    assert "I-CNT goes past an instruction that raises an exception" in history.events[1].text


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


@pytest.mark.parametrize(("faddr", "fits"), [(0x106, True), (0x108, True), (0x10A, False)])
def test_a_synchronization_on_a_branch_may_lack_its_bit(faddr: int, fits: bool) -> None:
    """HIST one bit short: F-ADDR tells the outcome, if it is one of the two."""
    short = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=3, faddr=faddr >> 1, hist=1)
    history = decoded(START, short)
    assert list(history.pcs()) == ([0x100, 0x102, 0x104] if fits else [])
    assert (EventKind.MISMATCH not in kinds(history)) == fits


def test_a_stop_on_a_branch_or_jump_whose_outcome_is_unknown() -> None:
    """Tracing goes on wherever it goes on: no gap."""
    for icnt, hist, at in ((3, 0b1, 0x106), (5, 0b10, 0x200)):
        history = decoded(START, stop(icnt, hist), sync(at, Sync.EXIT_FROM_DEBUG), stop(1))
        assert history.gaps == 0
        assert kinds(history) == [EventKind.TRACE_ON, EventKind.TRACE_OFF] * 2


def test_stop_and_start_elsewhere_is_a_gap() -> None:
    history = decoded(START, stop(2), sync(0x200, Sync.TRACE_ENABLE), stop(1))
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x200]
    assert history.gap_at(2).kind is EventKind.TRACE_OFF
    assert (history.gap_at(2).last_pc, history.gap_at(2).next_pc) == (0x102, 0x200)
    assert [event.position for event in history.events] == [0, 2, 3, 4]


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


def test_a_start_without_a_stop() -> None:
    history = decoded(START, jump(5, (0x100 ^ 0x200) >> 1, 0b10), sync(0x100, Sync.TRACE_ENABLE), stop(1))
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x106, 0x108, GAP, 0x100]
    assert "no message of the stop" in history.gap_at(5).text


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


def test_a_trace_cut_in_a_message() -> None:
    history = decoded(START, jump(5, (0x100 ^ 0x200) >> 1, 0b10), stop(2)[:-1])
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x106, 0x108]
    assert history.events[-1].text == "the last message is cut off"
    assert history.accounting.skipped == len(stop(2)) - 1


def test_a_trace_that_starts_in_the_middle() -> None:
    """Without a synchronizing message nothing can be decoded, and nothing is invented."""
    history = decoded(jump(5, 0, 0b10), jump(3, 0), START, stop(2))
    assert list(history.pcs()) == [0x100, 0x102]
    assert history.gaps == 0
    assert history.accounting.skipped == len(jump(5, 0, 0b10)) + len(jump(3, 0))


def test_a_wrapped_buffer_starts_at_the_first_boundary() -> None:
    """What looks like a message before it is none: here the second half of one that would synchronize elsewhere."""
    history = decoded(sync(0x300), sync(0x200), stop(2), wrapped=True)
    assert list(history.pcs()) == [0x200, 0x202]
    assert history.accounting.skipped == len(sync(0x300))
    assert [e.kind for e in history.events] == [EventKind.SYNC, EventKind.TRACE_OFF]


def test_resource_full_of_an_unknown_kind() -> None:
    history = decoded(START, message("ResourceFull", rcode=9, rdata=40), AGAIN, stop(1))
    assert list(history.pcs()) == [0x200]
    assert "RCODE 9" in history.events[1].text


def test_what_was_certain_before_a_contradiction_is_there() -> None:
    """I-CNT covered the branch; its outcome never came."""
    due = message("ResourceFull", rcode=0, rdata=3)
    history = decoded(START, due, jump(2, 0, 0), AGAIN, stop(1))
    assert list(history.pcs()) == [0x100, 0x102, 0x104, GAP, 0x200]


def test_the_same_message_from_the_same_place_with_more_instructions_due() -> None:
    """A step that was remembered must not be taken when I-CNT has already reported a part of it."""
    image = Image(32)
    image.add_code(0x100, asm.c_beqz(8) + asm.C_NOP * 8)
    begin, reported = sync(0x100, Sync.RESTART_FROM_FIFO_OVERRUN), message("ResourceFull", rcode=0, rdata=1)
    trap = jump(1, (0x100 ^ 0x108) >> 1, 0b10, b_type=3)
    one, two = [0x100], [0x100, 0x102]
    for first, second, expected in (
        (b"", reported, [*one, GAP, *two]),
        (reported, b"", [*two, GAP, *one]),
    ):
        history = decoded(begin, first, trap, begin, second, trap, image=image)
        assert list(history.pcs()) == expected


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

    data = START + message("ResourceFull", rcode=0, rdata=1) * 100_000
    with pytest.raises(Cancelled):
        decode(data, IMAGE, Options(), progress=watch)
    assert seen[0] == (1 << 16, len(data))
    assert len(seen) == 3


# What is listed of a message that is contradicted: nothing that only its I-CNT says

ROUND = [0x100, 0x102]
# 0x100: c.nop c.beqz(0x100), a loop; 0x140: c.nop c.nop c.nop c.jr, which never runs
LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2)]), (0x140, [asm.C_NOP] * 3 + [asm.c_jr(6)]))


def test_btm_lists_nothing_from_an_address_where_the_next_count_does_not_fit() -> None:
    """The loop goes round; one bit of one F-ADDR, 0x40, is flipped. From there no branch is 2 halfwords away."""
    again = message("DirectBranch", icnt=2)
    flipped = message("DirectBranchSync", sync=2, icnt=2, faddr=0x140 >> 1)
    periodic = message("DirectBranchSync", sync=2, icnt=2, faddr=0x100 >> 1)
    history = of_image(LOOP, started(), again, flipped, again, again, periodic, again, stopped(0, None), btm=True)
    assert list(history.pcs()) == [*ROUND, GAP, *ROUND]
    first = len(started() + again)
    assert [cause.offset for cause in of_kind(history, EventKind.MISMATCH)] == [first, first + len(flipped)]


@pytest.mark.parametrize("icnt", [1, 3, 200])
def test_btm_lists_nothing_of_a_count_that_does_not_fit(icnt: int) -> None:
    """Damage can make it any number: before a branch taken, after one that was not, or past all code."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.c_jr(6)]))
    again, wrong = message("DirectBranch", icnt=2), message("DirectBranch", icnt=icnt)
    history = of_image(image, started(), again, wrong, started(sync=2), again, stopped(0, None), btm=True)
    assert list(history.pcs()) == [*ROUND, GAP, *ROUND]
    assert history.gap_at(2).kind is EventKind.MISMATCH


def test_btm_lists_what_led_to_code_that_is_missing() -> None:
    """Nothing is wrong with the count: it leads on where the program has no code."""
    image = image_of((0x100, [asm.C_NOP] * 2), (0x200, [asm.C_NOP]))
    history = of_image(image, started(), message("DirectBranch", icnt=6), AGAIN, stopped(1, None), btm=True)
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x200]
    assert "at 0x104: there is no code" in history.gap_at(2).text


def test_nothing_is_listed_twice_where_the_count_of_a_synchronization_is_wrong() -> None:
    """Its second byte came twice, so that I-CNT is 66 and not 1: a jump is on the way, and F-ADDR before that."""
    image = image_of((0x100, [asm.C_NOP] * 8 + [asm.c_jr(6)]))
    right = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=1, faddr=0x106 >> 1, hist=1)
    doubled = right[:2] + right[1:]
    assert doubled == message("IndirectBranchHistSync", sync=2, b_type=0, icnt=66, faddr=0x106 >> 1, hist=1)
    history = decoded(START, message("ResourceFull", rcode=0, rdata=2), doubled, stop(2), image=image)
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x106, 0x108]


def test_htm_lists_what_hist_led_over() -> None:
    """Three bits fitted three branches, whatever is wrong with I-CNT."""
    history = of_image(LOOP, started(), jump(60, 0, 0b1111), started(0x140, sync=2), stopped(1))
    assert list(history.pcs()) == [*ROUND, *ROUND, *ROUND, *ROUND, GAP, 0x140]


# Noise that fits the framing, and is not a message an encoder sends


def test_a_field_too_many_is_noise_where_no_synchronization_has_a_timestamp() -> None:
    """8.5: "All synchronization messages emit a full TSTAMP field (if enabled)": one without says that it is off."""
    bad = message("IndirectBranchHist", b_type=0, icnt=1, uaddr=0, hist=1, tstamp=5)
    history = decoded(START, message("ResourceFull", rcode=0, rdata=2), bad, AGAIN, stop(2))
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x200, 0x202]
    assert history.gap_at(2).fact == Loss(LossCause.FIELD_TOO_MANY, ("IndirectBranchHist",))


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


@pytest.mark.parametrize("b_type", [1, 2, 3])
@pytest.mark.parametrize("btm", [False, True])
def test_no_trap_follows_a_jump_whose_target_was_not_reported(b_type: int, btm: bool) -> None:
    """A jump that retired is reported with its target before the trap is: one bit of B-TYPE was flipped."""
    image = image_of((0x100, [asm.C_NOP, asm.c_jr(6)]), (0x200, [asm.C_NOP] * 4))
    hist: dict[str, Any] = {} if btm else {"hist": 1}
    name = "IndirectBranch" if btm else "IndirectBranchHist"
    flipped = message(name, b_type=b_type, icnt=2, uaddr=(0x100 ^ 0x200) >> 1, **hist)
    history = of_image(image, started(), flipped, stopped(1, None if btm else 1), btm=btm)
    assert of_kind(history, EventKind.TRAP) == []
    (mismatch,) = of_kind(history, EventKind.MISMATCH)
    assert "a trap after a jump whose target was not reported" in mismatch.text
    flipped = message("IndirectBranchSync", sync=2, b_type=b_type, icnt=2, faddr=0x100)
    assert of_kind(of_image(image, started(), flipped, stopped(1, None if btm else 1), btm=btm), EventKind.MISMATCH)


@pytest.mark.parametrize(("reason", "pc"), [(12, 0x200), (2, 0x5000)], ids=["reserved reason", "no code"])
def test_a_synchronization_that_contradicts_the_flow_may_be_noise(reason: int, pc: int) -> None:
    """Neither how the hart came there can be, nor that an encoder says so: a gap up to the next one, and no trap."""
    noise = message("IndirectBranchSync", sync=reason, b_type=2, icnt=0x300, faddr=pc >> 1)
    history = decoded(START, message("ResourceFull", rcode=0, rdata=2), noise, stop(1), AGAIN, stop(2))
    assert [pc for pc in history.pcs() if pc >= 0x200] == [0x200, 0x202]
    assert of_kind(history, EventKind.TRAP) == []
    alone = decoded(message("IndirectBranchSync", sync=12, b_type=0, icnt=0, faddr=0x100), stop(2))
    assert list(alone.pcs()) == [0x200, 0x202]  # alone, reserved reasons are reported, and decoding can start there
