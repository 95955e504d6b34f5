"""RISC-V N-Trace 1.0, chapter 10 "Rules of Generating Messages" (also in its later text), and its pseudo-code."""

import random

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from tests.decode import assembler as asm
from tests.decode.executions import Habits, execute
from tests.decode.ntrace.messages import decoded, encoded, image_of, message, read, started, stopped
from tests.decode.ntrace.pseudo_encoder import Info, PseudoEncoder
from tests.decode.synthetic import Program

C_ADD = bytes.fromhex("2e95")  # c.add a0, a1
ADD = bytes.fromhex("3305b500")  # add a0, a0, a1
CODE = image_of(
    (0x100, [C_ADD, asm.beq(8), ADD, asm.c_beqz(4), C_ADD, asm.jal(0x100 - 0xE + 2), asm.C_NOP]),
    (0x202, [asm.jalr(0, 6)]),
)


def test_section_10_1_rule_1_a_start_is_a_prog_trace_sync() -> None:
    for sync in (Sync.EXIT_FROM_RESET, Sync.EXIT_FROM_DEBUG, Sync.TRACE_ENABLE):
        assert encoded(CODE, [0x100], 0x102, sync)[0] == message("ProgTraceSync", sync=sync, icnt=0, faddr=0x80)


def test_section_10_1_rule_2_16_and_32_bit_instructions() -> None:
    assert read(encoded(CODE, [0x100], 0x102)[-1])["icnt"] == 1
    assert read(encoded(CODE, [0x106], 0x10A)[-1])["icnt"] == 2


@pytest.mark.parametrize("btm", [False, True])
def test_section_10_1_rule_3_inferable_instructions_generate_no_trace(btm: bool) -> None:
    """A plain instruction and a direct jump; in BTM a branch that is not taken too."""
    code = image_of((0x100, [C_ADD, asm.jal(0x100), C_ADD]), (0x202, [asm.c_beqz(4), C_ADD, C_ADD]))
    pcs = [0x100, 0x102, 0x202, 0x204]
    assert encoded(code, pcs, 0x206, btm=btm) == [started(), stopped(5, None if btm else 0b10)]


def test_section_10_1_rule_4_indirect_jumps() -> None:
    """BTM: IndirectBranch; HTM: IndirectBranchHist, or IndirectBranch "optionally" while HIST is empty."""
    expected = message("IndirectBranch", b_type=0, icnt=2, uaddr=(0x202 ^ 0x100) >> 1)
    with_hist = message("IndirectBranchHist", b_type=0, icnt=2, uaddr=(0x202 ^ 0x100) >> 1, hist=1)
    pcs = [0x202, 0x100]
    assert encoded(CODE, pcs, btm=True)[1] == expected
    assert encoded(CODE, pcs)[1] == with_hist
    assert encoded(CODE, pcs, indirect_without_hist=True)[1] == expected
    for raw, btm in ((expected, True), (expected, False), (with_hist, False)):
        history = decoded(CODE, started(0x202), raw, stopped(1, None if btm else 1), btm=btm)
        assert list(history.pcs()) == pcs
    branched = image_of((0x100, [asm.c_beqz(4), C_ADD, asm.c_jr(6)]))
    messages = encoded(branched, [0x100, 0x104, 0x100], indirect_without_hist=True)
    assert messages[1] == message("IndirectBranchHist", b_type=0, icnt=2, uaddr=0, hist=0b11)


def test_section_10_1_rule_5_branches() -> None:
    """BTM: DirectBranch if taken; HTM: a bit, 1 for taken, 0 for not taken."""
    pcs = [0x100, 0x102, 0x106, 0x10A, 0x10E]
    assert encoded(CODE, pcs, 0x202, btm=True) == [started(), message("DirectBranch", icnt=6), stopped(2, None)]
    assert encoded(CODE, pcs, 0x202) == [started(), stopped(8, 0b101)]


def test_section_10_1_rule_6_a_stop_is_a_prog_trace_correlation() -> None:
    for evcode in (0, 1, 4):
        messages: list[bytes] = []
        encoder = Encoder(EncoderOptions(), messages.append)
        encoder.start(Sync.TRACE_ENABLE)
        encoder.retire(list(blocks_from_pcs([0x100, 0x102], CODE)))
        encoder.stop(evcode, 0x106)
        assert messages[-1] == stopped(3, 0b10, evcode)


def test_section_10_1_rule_7_what_is_sent_is_reset() -> None:
    """I-CNT and HIST are sent once; a ResourceFull resets only what it reports."""
    code = image_of((0x100, [asm.c_beqz(2)] * 9))
    messages = encoded(code, list(range(0x100, 0x112, 2)), 0x112, icnt_limit=4, hist_limit=6, full_at_once=True)
    counts = [read(m).get("icnt", read(m).get("rdata")) for m in messages if read(m).get("rcode", 0) == 0]
    assert sum(map(int, counts)) == 9  # type: ignore[arg-type]
    bits = [int(read(m).get("hist", read(m).get("rdata", 1))) for m in messages if read(m).get("rcode", 1) == 1]
    assert sum(hist.bit_length() - 1 for hist in bits) == 9


@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_section_10_1_1_custom_instructions(taken: bool, btm: bool) -> None:
    """XYZ at 0x104 may branch to 0x200: one message with I-CNT=5, or two with 4 and 1, the first to F-ADDR 0x100."""
    image = image_of((0x100, [ADD, asm.CUSTOM_0, C_ADD, asm.C_EBREAK]), (0x200, [C_ADD, asm.C_EBREAK]))
    pcs = [0x100, 0x104, 0x200 if taken else 0x108]
    messages = encoded(image, pcs, pcs[-1] + 2, btm=btm)
    sent = [read(m) for m in messages[1:]]
    assert [fields["icnt"] for fields in sent] == ([4, 1] if taken else [5])
    if taken:  # as an indirect jump
        assert sent[0]["b_type"] == 0
        assert 0x80 ^ int(sent[0]["uaddr"]) == 0x100
    assert list(decoded(image, *messages, btm=btm).pcs()) == pcs
    if taken:
        full = message("IndirectBranchSync", sync=2, b_type=0, icnt=4, faddr=0x100)
        assert list(decoded(image, started(), full, stopped(1, None), btm=btm).pcs()) == pcs


# 10.1.2: the pseudo-code reports a register when the next instruction does not fit (full_at_once off); its limit on
# HIST is the bit that overflows, so the register has as many bits as that bit's number.
@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize(("lim_icnt", "hist_bits"), [(0x10000, 30), (37, 30), (8, 5), (2, 3), (300, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_section_10_1_2_pseudo_code_of_simple_encoder(btm: bool, lim_icnt: int, hist_bits: int, seed: int) -> None:
    """Byte for byte what the document's encoder emits, for random programs and its limits at any size."""
    rng = random.Random(seed)
    program = Program(rng, rng.choice([32, 64]), 40, mix=("plain", "branch", "jump"))
    run = execute(program, rng, 600, Habits(trap_rate=0))
    image = program.image()
    pseudo = PseudoEncoder(branch_history=not btm, lim_icnt=lim_icnt, lim_hist=1 << hist_bits)
    for pc, after in zip(run.pcs, [*run.pcs[1:], run.next_pc], strict=True):
        instruction = image.instruction(pc)
        taken = instruction.is_branch and after != pc + instruction.length
        info = Info(instruction.length == 4, instruction.is_branch, taken, instruction.is_uninferable)
        pseudo.handle_retired(pc, info)
    messages: list[bytes] = []
    options = EncoderOptions(btm=btm, icnt_limit=lim_icnt, hist_limit=hist_bits, full_at_once=False, xlen=program.xlen)
    encoder = Encoder(options, messages.append)
    encoder.start(Sync.EXIT_FROM_RESET)
    encoder.retire(run.blocks)
    assert messages[: len(pseudo.messages)] == pseudo.messages[: len(messages)]
    assert len(pseudo.messages) - len(messages) in (0, 1)  # the outcome of the last branch is not known yet
    encoder.stop(0)
    assert list(decoded(image, *messages, btm=btm).pcs()) == run.pcs
