"""Where the rules leave freedom: each form the encoder can be asked for, message by message."""

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import RC7, SIFIVE, EncoderOptions
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.ntrace.messages import Recorder, message, started, stopped

# 0x100: c.nop and a branch back to 0x100, of 3 halfwords; then a c.jr to anywhere, at 0x106.
LOOP = Block(0x100, b"\1\2", IType.NOT_TAKEN, 0x100)
LEAVE = Block(0x106, b"\1", IType.OTHER_UNINFERABLE)
STRAIGHT = Block(0x200, b"\1\2\1")
AFTER = Block(0x208, b"\1")
TRIGGER = Sync.EXTERNAL_TRIGGER


def marked(
    recorder: Recorder, *items: Block | IngressTrap, then: list[Block | IngressTrap], next_pc: int
) -> list[bytes]:
    """What is sent for *items*, a trigger, and *then*, without the start."""
    recorder.retire(*items)
    recorder.encoder.mark(TRIGGER)
    recorder.retire(*then, next_pc=next_pc)
    return recorder.raw[1:]


LINEAR = [
    (True, None, message("ProgTraceSync", sync=0, icnt=4, faddr=0x104)),
    (True, Tcode.DIRECT_BRANCH_SYNC, message("DirectBranchSync", sync=0, icnt=4, faddr=0x104)),
    (True, Tcode.INDIRECT_BRANCH_SYNC, message("IndirectBranchSync", sync=0, b_type=0, icnt=4, faddr=0x104)),
    (False, None, message("IndirectBranchHistSync", sync=0, b_type=0, icnt=4, faddr=0x104, hist=1)),
    (False, Tcode.PROG_TRACE_SYNC, message("ProgTraceSync", sync=0, icnt=4, faddr=0x104)),
    (False, Tcode.INDIRECT_BRANCH_SYNC, message("IndirectBranchSync", sync=0, b_type=0, icnt=4, faddr=0x104)),
]


@pytest.mark.parametrize(("btm", "linear_sync", "expected"), LINEAR)
def test_case_4_and_6_on_linear_code(btm: bool, linear_sync: Tcode | None, expected: bytes) -> None:
    """ "Messages may be also generated on linear code"; note 1: one may be replaced by another."""
    recorder = Recorder(btm=btm, linear_sync=linear_sync)
    assert marked(recorder, STRAIGHT, then=[AFTER], next_pc=0x20A) == [expected]


def test_case_4_no_history_is_lost() -> None:
    """Note 2: in HTM ProgTraceSync does not report HIST, so it goes before, in a ResourceFull."""
    recorder = Recorder(linear_sync=Tcode.PROG_TRACE_SYNC)
    assert marked(recorder, LOOP, LOOP, then=[LOOP], next_pc=0x100) == [
        message("ResourceFull", rcode=1, rdata=0b111),
        message("ProgTraceSync", sync=0, icnt=6, faddr=0x80),
    ]


def test_rc7_marks_may_keep_the_history() -> None:
    """rc7, table 25: the encoder's state is not reset, so that HIST can stay in its register."""
    recorder = Recorder(linear_sync=Tcode.PROG_TRACE_SYNC, dialect=RC7, marks_keep_hist=True)
    sent = marked(recorder, LOOP, LOOP, then=[LOOP], next_pc=0x106)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x106)
    assert sent == [message("ProgTraceSync", sync=0, icnt=6, faddr=0x80)]
    assert recorder.raw[-1] == stopped(3, 0b1110)


def test_every_mark_is_sent() -> None:
    """Two triggers before the same block: the second follows at the next block. One right before the stop is sent."""
    recorder = Recorder()
    recorder.retire(STRAIGHT)
    recorder.encoder.mark(Sync.EXTERNAL_TRIGGER)
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.retire(AFTER, Block(0x20A, b"\1"))
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x20C)
    assert recorder.raw[1:] == [
        message("IndirectBranchHistSync", sync=0, b_type=0, icnt=4, faddr=0x104, hist=1),
        message("IndirectBranchHistSync", sync=6, b_type=0, icnt=1, faddr=0x105, hist=1),
        message("IndirectBranchHistSync", sync=6, b_type=0, icnt=1, faddr=0x106, hist=1),
        stopped(0),
    ]


def test_case_6_a_period_that_ends_with_the_trace_is_not_reported() -> None:
    recorder = Recorder()
    recorder.retire(STRAIGHT)
    recorder.encoder.mark(Sync.PERIODIC)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x208)
    assert recorder.raw[1:] == [stopped(4)]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (False, [message("ResourceFull", rcode=0, rdata=6), message("ResourceFull", rcode=1, rdata=0b111)]),
        (True, [message("ResourceFull", rcode=1, rdata=0b111), message("ResourceFull", rcode=0, rdata=6)]),
    ],
)
def test_section_7_8_both_full_in_either_order(first: bool, expected: list[bytes]) -> None:
    recorder = Recorder(icnt_limit=6, hist_limit=3, hist_full_first=first)
    recorder.retire(LOOP, LOOP, next_pc=0x100)
    assert recorder.raw[1:] == expected


@pytest.mark.parametrize("btm", [False, True])
def test_a_full_i_cnt_may_go_with_the_branch_message_that_is_due(btm: bool) -> None:
    """ "Reporting maximum value (exactly) is not required and smaller or bigger value may be reported instead"."""
    waiting, at_once = (Recorder(btm=btm, icnt_limit=4, hist_full_first=first) for first in (True, False))
    for recorder in (waiting, at_once):
        recorder.retire(Block(0x100, b"\1\2\1", IType.OTHER_UNINFERABLE), next_pc=0x200)
    assert [fields["icnt"] for fields in waiting.messages()] == [0, 4]
    assert [fields.get("icnt", fields.get("rdata")) for fields in at_once.messages()] == [0, 4, 0]
    names = [fields["name"] for fields in at_once.messages()]
    assert names[1:] == ["ResourceFull", "IndirectBranch" if btm else "IndirectBranchHist"]


def test_section_7_8_history_in_shorter_pieces() -> None:
    """ "Implementations may opt to include any quantity of history bits": here 2, 1, then 3 at a time."""
    recorder = Recorder(hist_chunks=(2, 1, 3))
    recorder.retire(*[LOOP] * 10, LEAVE)
    hists = [0b111, 0b11, 0b1111, 0b1111]
    assert recorder.raw[1:] == [message("ResourceFull", rcode=1, rdata=hist) for hist in hists]
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert recorder.raw[-1] == stopped(31, 0b10)


@pytest.mark.parametrize("sync", [False, True])
def test_an_empty_history(sync: bool) -> None:
    """Rule 4: IndirectBranch in place of IndirectBranchHist; its ...Sync form too. CDF=0 is SiFive's."""
    recorder = Recorder(indirect_without_hist=True, dialect=SIFIVE)
    if sync:
        recorder.encoder.mark(TRIGGER)
        recorder.retire(LEAVE)
    else:
        recorder.retire(LEAVE, next_pc=0x300)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x300)
    kind = (
        [message("IndirectBranchSync", sync=0, b_type=0, icnt=0, faddr=0x83)]
        if sync
        else [message("IndirectBranch", b_type=0, icnt=1, uaddr=0x103)]
    )
    assert recorder.raw[1:2] == kind
    assert recorder.raw[-1] == stopped(0, None)


def test_a_reset_under_way() -> None:
    """SYNC=1: "HIST and I-CNT may be used to determine the PC of the last instruction retired before reset"."""
    recorder = Recorder()
    recorder.retire(LOOP, LOOP)
    recorder.encoder.reset(0x80)
    recorder.retire(Block(0x80, b"\1"))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert recorder.raw[1:] == [
        message("IndirectBranchHistSync", sync=1, b_type=0, icnt=6, faddr=0x40, hist=0b11),
        stopped(1),
    ]


def test_corner_case_trace_starts_disabled() -> None:
    """ProgTraceCorrelation with EVCODE=4; EVCODE=0 and I-CNT=0 when the hart halts then."""
    sent: list[bytes] = []
    encoder = Encoder(EncoderOptions(), sent.append)
    encoder._correlate(Evcode.TRACE_DISABLED)
    encoder._correlate(Evcode.DEBUG_MODE)
    encoder.start(Sync.TRACE_ENABLE)
    encoder.retire([STRAIGHT])
    assert sent == [stopped(0, evcode=4), stopped(0), started(0x200, Sync.TRACE_ENABLE)]


def test_an_error_while_tracing_is_off_does_not_start_it() -> None:
    """7.4, the note: "Error Message will be the last message in trace stream"."""
    sent: list[bytes] = []
    encoder = Encoder(EncoderOptions(), sent.append)
    encoder.error(ecode=4)
    encoder.retire([STRAIGHT])
    assert sent == [message("Error", etype=0, ecode=4)]


IMPOSSIBLE: list[tuple[dict[str, object], str]] = [
    ({"icnt_limit": 0}, "icnt_limit must be at least 1"),
    ({"hist_limit": 1}, "hist_limit must be at least 2"),
    ({"return_depth": 0}, "return_depth"),
    ({"xlen": 128}, "xlen is 32 or 64"),
    ({"icnt_full_sync": True}, "only dialect rc7"),
    ({"linear_sync": Tcode.ERROR}, "not a message with SYNC"),
    ({"linear_sync": Tcode.INDIRECT_BRANCH_HIST_SYNC, "btm": True}, "has no HIST"),
    ({"hist_limit": 4, "hist_chunks": (4,)}, "must be 1 to 3 branches"),
    ({"hist_chunks": (4,), "repeated_history": True}, "exclude each other"),
    ({"repeat_trims": (0,)}, "at least 1 bit"),
]


@pytest.mark.parametrize(("options", "why"), IMPOSSIBLE)
def test_what_no_encoder_can_be(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        EncoderOptions(**options)  # type: ignore[arg-type]
