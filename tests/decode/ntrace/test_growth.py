"""Nothing in a trace makes the decoder slow or large: loops that run for hours, counts without end, endless fields."""

import random
import tracemalloc
from typing import Any

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, image_of, message, of_kind, started, stopped
from tests.helpers.amounts import LONG

START, AGAIN = started(0x100), started(0x200, Sync.PERIODIC)
IMAGE = image_of((0x100, [asm.C_NOP]), (0x200, [asm.C_NOP]), (0x300, [asm.c_j(0)]))
FULL = message("ResourceFull", rcode=0, rdata=(1 << 22) - 1)


def test_an_endless_field_takes_no_memory() -> None:
    """All-zero trace memory (chapter 3): counted, not kept."""
    decoder = StreamDecoder(IMAGE, Options(), split=False)
    decoder.feed(START)
    zeros = bytes(1 << 16)
    tracemalloc.start()
    for _ in range(200):
        decoder.feed(zeros)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    history = decoder.finish_one()
    assert history.accounting == (len(START) + 200 * (1 << 16), len(START), 0, 200 * (1 << 16))
    assert "no end of message" in history.events[-1].text


def test_counters_larger_than_the_standard_allows() -> None:
    """Table 10: I-CNT has at most 22 bits. A corrupt one must not keep the decoder busy."""
    for huge in (stopped(1 << 22), message("ResourceFull", rcode=0, rdata=1 << 60)):
        history = decoded(IMAGE, started(0x300), huge, AGAIN, stopped(1))
        assert list(history.pcs()) == [0x200]
        assert "bits" in history.events[1].text


def test_a_loop_without_branches_for_hours() -> None:
    """`j .` with a full I-CNT again and again, and with a branch outcome still to come: time and memory stay small."""
    history = decoded(IMAGE, started(0x300), FULL * 20_000, stopped(5))
    assert history.instructions == 20_000 * ((1 << 22) - 1) + 5
    assert history.pc(10**10) == 0x300
    image = Image(32)
    image.add_code(0x100, asm.c_beqz(4) + asm.C_NOP + asm.c_j(0))
    history = decoded(image, started(0x100), FULL * 20_000, stopped(5, 0b10))
    assert history.instructions == 20_000 * ((1 << 22) - 1) + 5
    assert list(history.pcs(0, 4)) == [0x100, 0x102, 0x104, 0x104]
    history = decoded(IMAGE, started(0x300), message("ResourceFull", rcode=1, rdata=0b11), AGAIN, stopped(1))
    assert "the code has no branch" in history.events[1].text


BRANCH_AND_LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.c_j(0)]), (0x200, [asm.C_NOP]))


@pytest.mark.parametrize("outcomes", [2, 3, 31])
@pytest.mark.parametrize("full", [True, False], ids=["HIST alone", "I-CNT and HIST"])
def test_outcomes_left_in_a_loop_without_a_branch(full: bool, outcomes: int) -> None:
    """Nothing, or a contradicted count, says how often `j .` ran: no round is listed, but the branch before it is."""
    hist = (2 << outcomes) - 1
    jump = message("IndirectBranchHist", b_type=0, icnt=2_000, uaddr=0, hist=hist)
    left = message("ResourceFull", rcode=1, rdata=hist) if full else jump
    history = decoded(BRANCH_AND_LOOP, started(0x100), left, AGAIN, stopped(1))
    assert list(history.pcs()) == [0x100, 0x102, -1, 0x200]
    (event,) = of_kind(history, EventKind.MISMATCH)
    assert f"{outcomes - 1} bit{'s' * (outcomes > 2)} of HIST" in event.text


def test_calls_after_the_last_outcome_are_no_loop() -> None:
    """The same function twice, then an indirect jump where there is none: all of that is what an outcome led to."""
    calls = [asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.jal(0xFA, 1), asm.jal(0xF6, 1), asm.C_NOP, asm.C_NOP]
    image = image_of((0x100, calls), (0x200, [asm.C_NOP, asm.c_jr(1)]))
    jump = message("IndirectBranchHist", b_type=0, icnt=2 + 2 * 4 + 1, uaddr=0, hist=0b11)
    history = decoded(image, started(0x100), jump, AGAIN, stopped(1), implicit_return=ImplicitReturn.FULL_STACK)
    called = [0x106, 0x200, 0x202, 0x10A, 0x200, 0x202, 0x10E]
    assert list(history.pcs()) == [0x100, 0x102, *called, -1, 0x200]
    assert "there is no indirect jump" in history.gap_at(9).text


@pytest.mark.parametrize("hist", [1, 0b11])
def test_rounds_that_only_a_contradicted_count_reports(hist: int) -> None:
    """An indirect jump where there is none: what HIST confirms is listed, a million rounds of `j .` are not."""
    jump = message("IndirectBranchHist", b_type=0, icnt=1_000_000, uaddr=0, hist=hist)
    at, ran = (0x100, [0x100, 0x102, -1]) if hist > 1 else (0x106, [])
    history = decoded(BRANCH_AND_LOOP, started(at), jump, AGAIN, stopped(1))
    assert list(history.pcs()) == [*ran, 0x200]
    (event,) = of_kind(history, EventKind.MISMATCH)
    assert "there is no indirect jump" in event.text


def test_a_long_loop_with_a_branch_is_not_taken_for_an_endless_one() -> None:
    image = Image(32)
    image.add_code(0x1000, asm.NOP * 2000 + asm.beq(4) + asm.jal(-8004) + asm.C_NOP)
    full = message("ResourceFull", rcode=1, rdata=0b1000)
    whole = decoded(image, started(0x1000), full, stopped(3 * 4004))
    assert whole.instructions == len(whole) == 3 * 2002
    assert whole.pc(2002) == whole.pc(2 * 2002) == 0x1000
    again = decoded(image, started(0x1000), stopped(3 * 4004 + 2, 0b1000))
    assert list(again.pcs()) == [*whole.pcs(), 0x1000]


def test_repeated_history_of_any_length() -> None:
    """9.3: HREPEAT times the same outcomes, as many as one likes."""
    image = Image(32)
    image.add_code(0x100, asm.C_NOP + asm.c_beqz(-2) + asm.C_NOP)
    full = message("ResourceFull", rcode=2, rdata=0b111, hrepeat=250_000)
    history = decoded(image, started(0x100), full * 16_000, started(0x100, Sync.RESTART_FROM_FIFO_OVERRUN))
    assert history.instructions == 16 * 10**9
    assert history.pc(8 * 10**9 + 1) == 0x102


def test_a_loop_of_branches_that_are_not_taken() -> None:
    """BTM: no message but full counters, for hours."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(8), asm.c_j(-4)]))
    history = decoded(image, started(), FULL * 5_000, stopped(4, None), btm=True)
    assert history.instructions == 5_000 * ((1 << 22) - 1) + 4
    assert history.pc(3 * 10**9 + 1) == 0x102


@pytest.mark.parametrize("btm", [False, True])
def test_calls_without_end(btm: bool) -> None:
    """A function that calls itself for ever: the stack is bounded, and so are time and memory."""
    image = image_of((0x100, [asm.C_NOP, asm.jal(-2, 1)]))
    options: dict[str, Any] = {"implicit_return": ImplicitReturn.FULL_STACK, "btm": btm}
    tracemalloc.start()
    history = decoded(image, started(), FULL * 20, stopped(3, None if btm else 1), **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 2 * history.instructions in range(20 * ((1 << 22) - 1), 2 * 20 * (1 << 22))
    assert history.gaps == 0
    assert peak < 64 << 20


def test_branches_repeated_without_end() -> None:
    """B-CNT of 18 bits, the most there is (1.0, "Maximum Field Sizes"), again and again: a jump to itself, a loop."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.c_jr(6)]))
    most = (1 << 18) - 1
    repeats, many = message("RepeatBranch", bcnt=most) * 4_000, 4_000 * most
    history = decoded(image, started(), message("DirectBranch", icnt=2), repeats, stopped(1, None), btm=True)
    assert history.instructions == 2 * (many + 1) + 1
    itself = message("IndirectBranchHist", b_type=0, icnt=1, uaddr=0, hist=1)
    history = decoded(image, started(0x106), itself, repeats, stopped(1))
    assert history.instructions == many + 2


@pytest.mark.parametrize("count", [1 << 18, 41_674_017, (1 << 32) - 1, 1 << 80])
def test_counts_that_nothing_can_be(count: int) -> None:
    """More repetitions than the 18 bits HREPEAT and B-CNT have: told, and passed over."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2)]), (0x200, [asm.C_NOP]))
    full = message("ResourceFull", rcode=2, rdata=0b11, hrepeat=count)
    history = decoded(image, started(), full, AGAIN, stopped(1))
    assert list(history.pcs(0, 9)) == [0x200]
    assert of_kind(history, EventKind.LOSS)
    branch, repeat = message("DirectBranch", icnt=2), message("RepeatBranch", bcnt=count)
    history = decoded(image, started(), branch, repeat, AGAIN, stopped(1, None), btm=True)
    assert list(history.pcs(0, 9)) == [0x100, 0x102, -1, 0x200]


@pytest.mark.parametrize("bits", [19, 26, 32])
def test_the_limit_of_counts_can_be_raised(bits: int) -> None:
    """Hardware may count further than "Maximum Field Sizes" ("not limiting hardware in any way"): the user says so."""
    image, most = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.c_jr(6)])), (1 << bits) - 1
    full = message("ResourceFull", rcode=2, rdata=0b11, hrepeat=most)
    repeats = message("DirectBranch", icnt=2), message("RepeatBranch", bcnt=most)
    for messages, end, ran in (
        ((full,), stopped(2 * most + 2, 0b10), 2 * most + 2),
        (repeats, stopped(1, None), 2 * most + 3),
    ):
        btm = messages is repeats
        history = decoded(image, started(), *messages, end, btm=btm, repeat_bits=bits)
        assert (history.instructions, history.gaps) == (ran, 0)
        history = decoded(image, started(), *messages, AGAIN, btm=btm, repeat_bits=bits - 1)
        [loss] = of_kind(history, EventKind.LOSS)
        said = f": a repetition count of {bits} bits, more than {bits - 1}, is taken for noise: raise repeat_bits if it"
        assert loss.text.endswith(f"{said} is not")


def test_an_instruction_count_of_any_size_where_history_leads_that_far() -> None:
    """I-CNT of 23 to 40 bits, as the HIST bits before it have led over the code; what is beyond them is as ever."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.c_j(0)]))
    full = message("ResourceFull", rcode=2, rdata=0b11, hrepeat=(1 << 18) - 1)
    for times in (8, 1 << 10, 1 << 16):
        halfwords = 2 * times * ((1 << 18) - 1)
        for more in (2, 5):
            history = decoded(image, started(), full * times, stopped(halfwords + more, 0b10))
            assert (history.instructions, history.gaps) == (halfwords + more, 0)
        beyond = decoded(image, started(), full * times, stopped(halfwords + (1 << 22), 0b10))
        assert beyond.instructions == halfwords
        assert "bits" in beyond.gap_at(halfwords).text


def test_repeated_history_over_calls_without_end() -> None:
    """Every repetition leaves return addresses on the stack: no two places are the same."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.jal(-4, 1)]))
    full = message("ResourceFull", rcode=2, rdata=0b111, hrepeat=(1 << 18) - 1)
    tracemalloc.start()
    history = decoded(image, started(), full * 3, stopped(1), implicit_return=ImplicitReturn.FULL_STACK)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert history.instructions <= 3 * 4 * (1 << 18) + 1
    assert peak < 256 << 20


MODES: list[dict[str, Any]] = [
    {},
    {"btm": True, "all_jumps": True},
    {"implicit_return": ImplicitReturn.FULL_STACK, "timestamps": True, "sequential_jump": True},
    {"btm": True, "implicit_return": ImplicitReturn.COUNTER, "src_bits": 2, "extend_addr_msb": True},
]


_BYTES = 8_000 if LONG else 2_000


@pytest.mark.parametrize("options", MODES, ids=["htm", "btm", "htm, everything on", "btm, everything on"])
def test_noise(options: dict[str, Any]) -> None:
    """What a decoder keeps of nonsense stays small, however much of it there is."""
    code = random.Random(1)
    image = image_of((0, [bytes(code.randbytes(2)) for _ in range(30_000)]))
    rng = random.Random(2)
    decoder = StreamDecoder(image, Options(**options), split=False)
    peaks = []
    for _ in range(4):
        tracemalloc.start()
        decoder.feed(bytes(rng.choice([0x24, 0x0D, 0x6C, 0x43, 0x70, 0x07, *rng.randbytes(6)]) for _ in range(_BYTES)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 64 << 20
    history = decoder.finish_one()
    assert sum(history.accounting[1:]) == history.accounting.total == 4 * _BYTES
