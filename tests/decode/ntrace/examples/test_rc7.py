"""The worked examples of N-Trace 1.0.0-rc7 where its rules or numbers are not those of 1.0: the dialect "rc7"."""

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import RATIFIED, RC7, EncoderOptions, ImplicitReturn
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    Recorder,
    blocks,
    decoded,
    encoded,
    image_of,
    message,
    of_kind,
    read,
    started,
    stopped,
)

C_ADD = bytes.fromhex("2e95")  # c.add a0, a1
ADD = bytes.fromhex("3305b500")  # add a0, a0, a1

# The code of 8.4.4, which is not that of 1.0: the branch is not taken, c.ebreak at 0x11C is not retired.
LINEAR = image_of((0x100, [C_ADD, asm.beq(0x200 - 0x102), C_ADD, ADD, ADD, ADD, ADD, ADD, asm.C_EBREAK]))
LINEAR_PCS = [0x100, 0x102, 0x106, 0x108, 0x10C, 0x110, 0x114, 0x118]


def test_section_8_4_4_i_cnt_overflow_by_a_synchronization() -> None:
    """The three messages of the example, byte for byte, with a 4-bit counter whose top bit means full."""
    messages = encoded(LINEAR, LINEAR_PCS, 0x11C, icnt_limit=8, icnt_full_sync=True, dialect=RC7)
    assert [m.hex(" ") for m in messages] == ["24 0d 00 0b", "74 10 21 20 09 0b", "84 40 19 07"]
    assert messages == [
        started(),
        message("IndirectBranchHistSync", sync=4, b_type=0, icnt=8, faddr=0x88, hist=0b10),
        stopped(6, 1),
    ]
    history = decoded(LINEAR, *messages, dialect=RC7)
    assert list(history.pcs()) == LINEAR_PCS
    assert history.gaps == 0


def test_section_8_4_4_is_not_for_htm_in_1_0() -> None:
    """ "It may be only used in BTM mode": the encoder refuses to be built so; the decoder reads it all the same."""
    with pytest.raises(ValueError, match="icnt_full_sync"):
        EncoderOptions(icnt_full_sync=True, dialect=RATIFIED)
    messages = encoded(LINEAR, LINEAR_PCS, 0x11C, icnt_limit=8, icnt_full_sync=True, dialect=RC7)
    assert list(decoded(LINEAR, *messages, dialect=RATIFIED).pcs()) == LINEAR_PCS


def test_section_8_4_4_i_cnt_overflow_by_resource_full() -> None:
    """The first choice. HIST comes only with the last message, after its I-CNT."""
    messages = encoded(LINEAR, LINEAR_PCS, 0x11C, icnt_limit=8, dialect=RC7)
    assert [m.hex(" ") for m in messages] == ["24 0d 00 0b", "6c 00 0b", "84 40 19 0b"]
    assert list(decoded(LINEAR, *messages, dialect=RC7).pcs()) == LINEAR_PCS


def test_section_8_4_4_what_is_determined_before_hist_comes() -> None:
    """The trace ends after the ResourceFull: the branch and what is before it ran for certain, no more."""
    history = decoded(LINEAR, started(), message("ResourceFull", rcode=0, rdata=8), dialect=RC7)
    assert list(history.pcs()) == [0x100, 0x102]


def test_section_8_4_an_exception_after_retirement_updates_i_cnt() -> None:
    """ "An exception or interrupt after retirement of an instruction MUST update the I-CNT": ecall counts in rc7."""
    image = image_of((0x100, [asm.C_NOP, asm.ECALL]), (0x200, [asm.C_NOP]))
    trap = message("IndirectBranchHist", b_type=2, icnt=3, uaddr=0x180, hist=1)
    history = decoded(image, started(), trap, stopped(1), dialect=RC7)
    assert list(history.pcs()) == [0x100, 0x102, 0x200]
    (event,) = of_kind(history, EventKind.TRAP)
    assert (event.position, event.next_pc) == (2, 0x200)
    trap = message("IndirectBranchHist", b_type=2, icnt=1, uaddr=0x180, hist=1)  # as in 1.0
    assert list(decoded(image, started(), trap, stopped(1)).pcs()) == [0x100, 0x200]


# Table 25, column "Encoder Reset": 0, 4 and 6 leave the state as it is. Seen at the call stack: a call, the
# synchronization, and the return.
CALL = image_of((0x100, [asm.jal(0x100, 1), asm.C_NOP]), (0x200, [asm.C_NOP, asm.c_jr(1)]))


@pytest.mark.parametrize("sync", [0, 4, 6])
def test_table_25_synchronizations_without_encoder_reset(sync: int) -> None:
    marker = message("IndirectBranchHistSync", sync=sync, b_type=0, icnt=3, faddr=0x101, hist=1)
    kept = [started(), marker, stopped(2)]
    history = decoded(CALL, *kept, implicit_return=ImplicitReturn.FULL_STACK, dialect=RC7)
    assert list(history.pcs()) == [0x100, 0x200, 0x202, 0x104]
    assert history.gaps == 0
    reset = decoded(CALL, *kept, implicit_return=ImplicitReturn.FULL_STACK, dialect=RATIFIED)
    assert [e.kind for e in reset.events if e.kind is EventKind.MISMATCH]  # 1.0 has no call to return from here


@pytest.mark.parametrize("sync", [1, 2, 3, 5, 7, 8, 9, 10, 15])
def test_table_25_synchronizations_with_encoder_reset(sync: int) -> None:
    """The return after it needs a message."""
    marker = message("IndirectBranchHistSync", sync=sync, b_type=0, icnt=3, faddr=0x101, hist=1)
    jump = message("IndirectBranchHist", b_type=0, icnt=1, uaddr=(0x202 ^ 0x104) >> 1, hist=1)
    history = decoded(CALL, started(), marker, jump, stopped(1), implicit_return=ImplicitReturn.FULL_STACK, dialect=RC7)
    assert [pc for pc in history.pcs() if pc >= 0][-2:] == [0x202, 0x104]
    silent = decoded(CALL, started(), marker, stopped(2), implicit_return=ImplicitReturn.FULL_STACK, dialect=RC7)
    assert [e.kind for e in silent.events if e.kind is EventKind.MISMATCH]


@pytest.mark.parametrize(("dialect", "implicit"), [(RC7, True), (RATIFIED, False)])
def test_table_25_as_the_encoder_does_it(dialect: object, implicit: bool) -> None:
    recorder = Recorder(implicit_return=ImplicitReturn.FULL_STACK, dialect=dialect)
    recorder.retire(*blocks(CALL, [0x100, 0x200]))
    recorder.encoder.mark(Sync.EXTERNAL_TRIGGER)
    recorder.retire(*blocks(CALL, [0x202, 0x104]), next_pc=0x106)
    recorder.encoder.stop(0, 0x106)
    names = [fields["name"] for fields in recorder.messages()]
    assert ("IndirectBranchHist" in names) != implicit
    history = decoded(CALL, *recorder.raw, implicit_return=ImplicitReturn.FULL_STACK, dialect=dialect)
    assert list(history.pcs()) == [0x100, 0x200, 0x202, 0x104]


def test_section_8_5_a_marker_in_the_middle_of_hist() -> None:
    """The encoder state is not reset: after a ProgTraceSync with SYNC=0 in HTM, HIST goes on with the bits it had."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.C_NOP]))
    marker = message("ProgTraceSync", sync=0, icnt=2, faddr=0x82)
    history = decoded(image, started(), marker, stopped(2, 0b101), dialect=RC7)
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x108]
    assert history.gaps == 0
    assert any("external trigger" in event.text for event in history.events)


def test_section_7_8_i_cnt_and_hist_overflow_at_the_same_time() -> None:
    """ "Two Resource Full messages must be generated (in any order, however it is suggested to report I-CNT first)"."""
    loop = Block(0x100, b"\1\2\1", IType.NOT_TAKEN, 0x100)
    recorder = Recorder(icnt_limit=8, hist_limit=3, dialect=RC7)
    recorder.retire(loop, loop, loop)
    assert [read(raw).get("rcode") for raw in recorder.raw[1:]] == [0, 1]


def test_section_8_2_1_the_last_example_has_fewer_digits_in_rc7() -> None:
    """rc7 prints "0x5FFF_FFFF_FFFF" below eleven bytes of MDO; the bytes are 1.0's, and say what 1.0 prints."""
    raw = bytes([29 << 2, 2 << 2, 1, *[0b111111_00] * 10, 0b000101_01, 1 << 2 | 3])
    assert read(raw)["faddr"] == 0x5FFF_FFFF_FFFF_FFFF
    image = image_of((0xBFFF_FFFF_FFFF_FFFE, [asm.C_NOP]), xlen=64)
    history = decoded(image, raw, stopped(1), extend_addr_msb=True, dialect=RC7)
    assert list(history.pcs()) == [0xBFFF_FFFF_FFFF_FFFE]
