"""What other encoders and decoders of N-Trace get wrong: one test each, so that it is not wrong here.

NexRv is the reference code of the specification, dqr SiFive's decoder, libnexus a third; the numbers after # are issues
of the specification's repository. What is right comes from the specification.
"""

import gzip
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType, classify
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    decoded,
    difference,
    encoded,
    image_of,
    message,
    of_kind,
    read,
    split,
    started,
    stopped,
)

REFERENCE = Path(__file__).parents[2] / "data" / "ntrace-reference"


# RepeatBranch


SELF = image_of((0x1000, [asm.c_jr(6)]), (0x800, [asm.c_jr(6)]), (0x2000, [asm.c_jr(6)]))


def test_nexrv_repeats_the_xor_of_a_repeated_branch() -> None:
    """A jump to 0x1000, from 0x2000 by U-ADDR 0x1800 and then from itself 9 times: the target is the same.

    NexRv's decoder applies the XOR again and lands at 0x2000 ("Expected 0x1000, actual 0x2000").
    """
    jump = message("IndirectBranch", b_type=0, icnt=1, uaddr=0x1800)
    image = image_of((0x2000, [asm.c_jr(6)]), (0x1000, [asm.c_jr(6)]))
    history = decoded(image, started(0x2000), jump, message("RepeatBranch", bcnt=9), stopped(1, None), btm=True)
    assert list(history.pcs()) == [0x2000, *[0x1000] * 10]


@pytest.mark.parametrize("btm", [True, False])
def test_nexrv_never_sends_repeat_branch_and_its_decoder_cannot_read_it(btm: bool) -> None:
    """Ours does both: two messages and a count for a jump to itself."""
    pcs = [0x2000, *[0x1000] * 11]
    messages = encoded(SELF, pcs, 0x1000, btm=btm, repeat_branch=True)
    assert "RepeatBranch" in [read(raw)["name"] for raw in messages]
    assert len(messages) <= 5
    assert list(decoded(SELF, *messages, btm=btm).pcs()) == pcs


def test_a_repeated_branch_is_one_without_sync() -> None:
    """1.0: "the previous branch message (without a SYNC field)": after a synchronization there is nothing to repeat."""
    sync = message("IndirectBranchSync", sync=2, b_type=0, icnt=1, faddr=0x800)
    trace = [started(0x1000), sync, message("RepeatBranch", bcnt=2), started(0x800), stopped(1, None)]
    history = decoded(SELF, *trace, btm=True)
    (loss,) = of_kind(history, EventKind.LOSS)
    assert "RepeatBranch" in loss.text
    assert list(history.pcs()) == [0x1000, -1, 0x800]


# Call stack


@pytest.mark.parametrize("depth", [31, 32, 33, 64, 1023, 3000])
def test_nexrv_writes_over_the_end_of_its_call_stack(depth: int) -> None:
    """33 calls deep it writes entry 32 of 32. A decoder does not know the depth and must not care."""
    code = [asm.c_beqz(8), asm.jal(-2, 1), asm.C_NOP, asm.c_jr(1)]
    image = image_of((0x100, [asm.jal(0x100, 1), asm.C_NOP]), (0x200, code))
    pcs = [0x100, *[0x200, 0x202] * (depth - 1), 0x200, 0x208, *[0x206, 0x208] * (depth - 1), 0x104]
    for entries in (32, 1023):
        messages = encoded(image, pcs, 0x106, implicit_return=ImplicitReturn.FULL_STACK, return_depth=entries)
        history = decoded(image, *messages, implicit_return=ImplicitReturn.FULL_STACK)
        assert not difference(history.pcs(), pcs)


def test_nexrv_never_matches_return_addresses_above_4_gib() -> None:
    """Its check is 32 bits wide; here nothing is sent for the return."""
    base = 0x12_3456_7000
    image = image_of((base, [asm.jal(0x100, 1), asm.C_NOP]), (base + 0x100, [asm.c_jr(1)]), xlen=64)
    pcs = [base, base + 0x100, base + 4]
    messages = encoded(image, pcs, base + 6, implicit_return=ImplicitReturn.FULL_STACK)
    assert len(messages) == 2
    assert list(decoded(image, *messages, implicit_return=ImplicitReturn.FULL_STACK).pcs()) == pcs


def test_nexrv_pushes_on_ecall_and_pops_on_mret() -> None:
    """The table of itypes has no stack action for them."""
    image = image_of(
        (0x100, [asm.jal(0x100, 1), asm.C_NOP]), (0x200, [asm.ECALL, asm.c_jr(1)]), (0x800, [asm.C_NOP, asm.MRET])
    )
    trap = message("IndirectBranchHist", b_type=2, icnt=2, uaddr=(0x100 ^ 0x800) >> 1, hist=1)
    back = message("IndirectBranchHist", b_type=0, icnt=3, uaddr=(0x800 ^ 0x204) >> 1, hist=1)
    history = decoded(image, started(), trap, back, stopped(2), implicit_return=ImplicitReturn.FULL_STACK)
    assert list(history.pcs()) == [0x100, 0x800, 0x802, 0x204, 0x104]
    assert history.gaps == 0


def test_libnexus_stops_at_a_return_with_an_empty_stack() -> None:
    """ "retstack_empty": a return without a call is reported by its message, like any jump."""
    image = image_of((0x100, [asm.c_jr(1)]), (0x200, [asm.C_NOP]))
    messages = encoded(image, [0x100, 0x200], 0x202, implicit_return=ImplicitReturn.COUNTER)
    history = decoded(image, *messages, implicit_return=ImplicitReturn.COUNTER)
    assert list(history.pcs()) == [0x100, 0x200]
    silent = decoded(image, started(), stopped(2), implicit_return=ImplicitReturn.COUNTER)
    assert any("return" in event.text for event in of_kind(silent, EventKind.MISMATCH))


def reference_pcs() -> tuple[Image, list[int]]:
    """The instruction list of another simulator (t1)."""
    with gzip.open(REFERENCE / "t1.pcs.gz", "rt") as file:
        return Image.from_elf(REFERENCE / "t1.elf"), [int(line, 16) for line in file]


def test_dqr_stops_silently_in_btm_with_a_call_stack() -> None:
    """At 93 587 of t1's 164 959 instructions: it takes BTM for HTM."""
    image, pcs = reference_pcs()
    stream = bytearray()
    options = EncoderOptions(btm=True, implicit_return=ImplicitReturn.FULL_STACK, return_depth=8, xlen=32)
    encoder = Encoder(options, stream.extend)
    encoder.start(Sync.EXIT_FROM_RESET)
    encoder.retire(list(blocks_from_pcs(pcs, image)))
    encoder.stop(Evcode.DEBUG_MODE)
    history = decode(bytes(stream), image, Options(btm=True, implicit_return=ImplicitReturn.FULL_STACK))
    assert not difference(history.pcs(), pcs)


# ResourceFull


def test_dqr_does_not_know_rcode_2() -> None:
    """ "unknown rCode: 2", after 332 of t1's instructions: here is what NexRv sends for it."""
    image, pcs = reference_pcs()
    stream = (REFERENCE / "t1.4.nex").read_bytes()
    assert 2 in {read(raw).get("rcode") for raw in split(stream)}
    history = decode(stream, image, Options(implicit_return=ImplicitReturn.FULL_STACK))
    assert not difference(history.pcs(), pcs)


LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.c_jr(6)]))


def test_rcode_2_repeats_its_own_hist() -> None:
    """Chapter 11: "by repeating the processing of the fields from previous trace message" would be another HIST."""
    before = message("ResourceFull", rcode=1, rdata=0b111)
    repeated = message("ResourceFull", rcode=2, rdata=0b1111, hrepeat=2)
    history = decoded(LOOP, started(), before, repeated, stopped(16 + 3, 0b10))
    assert list(history.pcs()) == [0x100, 0x102] * 9 + [0x104]


def test_i_cnt_full_before_the_hist_it_spans() -> None:
    """Chapter 11 spends HIST and takes later branches for not taken: wrong for RCODE 0 before its HIST (#52)."""
    full = message("ResourceFull", rcode=0, rdata=4)
    history = decoded(LOOP, started(), full, full, stopped(3, 0b111110))
    assert list(history.pcs()) == [0x100, 0x102] * 5 + [0x104]
    assert history.gaps == 0


def test_hist_after_resource_full_belongs_to_what_follows() -> None:
    """SiFive #29: HIST that comes after a ResourceFull with I-CNT and one with HIST, in either order."""
    counted, taken = message("ResourceFull", rcode=0, rdata=5), message("ResourceFull", rcode=1, rdata=0b1111)
    for order in ((counted, taken), (taken, counted)):
        history = decoded(LOOP, started(), *order, stopped(6, 0b110))
        assert list(history.pcs()) == [0x100, 0x102] * 5 + [0x104]


def test_spike_counts_in_16_bits_and_never_reports_a_full_register() -> None:
    """Its encoder drops I-CNT beyond 65535 and HIST beyond its register: ours reports both, up to 22 bits."""
    image = image_of((0x100, [asm.c_j(0)]))
    messages = encoded(image, [0x100] * 100_000, 0x100)
    assert sum(int(read(raw).get("icnt", read(raw).get("rdata", 0))) for raw in messages[1:]) == 100_000
    assert decoded(image, *messages).instructions == 100_000
    big = decoded(image, started(), stopped((1 << 22) - 1))
    assert big.instructions == (1 << 22) - 1


# Classification


def itype(code: bytes, xlen: int = 64) -> IType:
    return classify(int.from_bytes(code, "little"), xlen).itype


def test_nexrv_classifies_returns_from_traps_as_linear() -> None:
    """sret as linear, mret as a function return: both are trap returns."""
    assert {itype(asm.SRET), itype(asm.MRET)} == {IType.TRAP_RETURN}


def test_nexrv_takes_jr_t0_for_a_plain_jump() -> None:
    """x5 is a link register: jalr x0, 0(t0), c.jr t0."""
    assert {itype(asm.jalr(0, 5)), itype(asm.c_jr(5)), itype(asm.c_jr(1))} == {IType.RETURN}


def test_nexrv_takes_jalr_x0_for_a_call() -> None:
    assert itype(asm.jalr(0, 6)) is IType.OTHER_UNINFERABLE
    assert itype(asm.jalr(1, 6)) is IType.UNINFERABLE_CALL
    assert itype(asm.jalr(5, 1)) is IType.COROUTINE_SWAP


@pytest.mark.parametrize(
    "word",
    [0x28B5_1533, 0x48B5_1533, 0x68B5_1533, 0x48B5_5533, 0x6875_5513],
    ids=["bset", "bclr", "binv", "bext", "brev8"],
)
def test_nexrv_takes_bit_instructions_for_branches(word: int) -> None:
    """Their names begin with b; encodings from the Zbs and Zbkb chapters of the ISA manual."""
    assert classify(word, 64).itype is IType.NONE
