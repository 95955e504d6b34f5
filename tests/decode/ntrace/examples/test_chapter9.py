"""RISC-V N-Trace 1.0, chapter 9 "Optimization Extensions": sequential jumps and implicit returns."""

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    Recorder,
    blocks,
    decoded,
    encoded,
    image_of,
    message,
    of_kind,
    started,
    stopped,
)

T1 = 6


def interrupt(epc: int, handler: int) -> IngressTrap:
    return IngressTrap(epc, True, 7, 0, handler)


PAIRS = {
    "lui": asm.lui(T1, 2) + asm.jalr(0, T1, 0x10),
    "c.lui": asm.c_lui(T1, 2) + asm.jalr(0, T1, 0x10),
    "auipc": asm.auipc(T1, 1) + asm.jalr(0, T1, 0x10),
    "lui, with linkage": asm.lui(T1, 3) + asm.jalr(1, T1, -0x800),
    "lui, c.jr": asm.lui(T1, 2) + asm.c_jr(T1),
}
TARGETS = {"lui": 0x2010, "c.lui": 0x2010, "auipc": 0x2010, "lui, with linkage": 0x2800, "lui, c.jr": 0x2000}


def sequential(name: str) -> tuple[Image, list[int]]:
    """Code at 0x1000 that jumps to a constant, and its execution up to the c.nop there."""
    code, target = PAIRS[name], TARGETS[name]
    jump = 0x1002 if name == "c.lui" else 0x1004
    return image_of((0x1000, [code]), (target, [asm.C_NOP, asm.C_NOP])), [0x1000, jump, target]


@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_section_9_1_sequential_jump(name: str, btm: bool) -> None:
    """No trace is generated; without the optimization the same jump is reported."""
    image, pcs = sequential(name)
    end = pcs[-1] + 2
    on = encoded(image, pcs, end, sequential_jump=True, btm=btm)
    assert on == [started(0x1000), stopped((len(PAIRS[name]) + 2) // 2, None if btm else 1)]
    assert list(decoded(image, *on, sequential_jump=True, btm=btm).pcs()) == pcs
    off = encoded(image, pcs, end, btm=btm)
    assert len(off) == 3
    assert list(decoded(image, *off, btm=btm).pcs()) == pcs


def test_section_9_1_only_where_it_is_enabled() -> None:
    """A decoder that is not told finds a contradiction, at the jump."""
    image, _ = sequential("lui")
    history = decoded(image, started(0x1000), stopped(5))
    (mismatch,) = of_kind(history, EventKind.MISMATCH)
    assert "I-CNT goes past an indirect jump" in mismatch.text


@pytest.mark.parametrize("between", ["another register", "an instruction between", "x0"])
def test_section_9_1_what_is_no_pair(between: str) -> None:
    """ "The AUIPC, LUI or C.LUI immediately precedes the indirect unconditional jump", and loads its register."""
    code = {
        "another register": [asm.lui(7, 2), asm.jalr(0, T1, 0x10)],
        "an instruction between": [asm.lui(T1, 2), asm.C_NOP, asm.jalr(0, T1, 0x10)],
        "x0": [asm.lui(0, 2), asm.jalr(0, 0, 0x10)],
    }[between]
    image = image_of((0x1000, code), (0x2010, [asm.C_NOP]), (0x10, [asm.C_NOP]))
    pcs = [0x1000, 0x1004, *([0x1006] if len(code) == 3 else []), 0x2010]
    messages = encoded(image, pcs, 0x2012, sequential_jump=True)
    assert len(messages) == 3
    assert list(decoded(image, *messages, sequential_jump=True).pcs()) == pcs


@pytest.mark.parametrize("separator", ["sync", "full I-CNT", "trap"])
def test_section_9_1_both_in_the_same_message(separator: str) -> None:
    """ "I-CNT in that message must span over both": if a message ends between them, the jump is reported."""
    image, pcs = sequential("lui")
    image.add_code(0x3000, asm.C_NOP + asm.MRET)
    recorder = Recorder(sequential_jump=True, icnt_limit=2 if separator == "full I-CNT" else 1000)
    expected = pcs
    if separator == "full I-CNT":
        recorder.retire(*blocks(image, pcs), next_pc=0x2012)
    else:
        recorder.retire(*blocks(image, pcs[:1]))
        if separator == "sync":
            recorder.encoder.mark(Sync.TRACE_EVENT)
        else:
            expected = [0x1000, 0x3000, 0x3002, 0x1004, 0x2010]
            recorder.retire(interrupt(0x1004, 0x3000), *blocks(image, [0x3000, 0x3002]))
        recorder.retire(*blocks(image, pcs[1:]), next_pc=0x2012)
    recorder.encoder.stop(0, 0x2012)
    history = decoded(image, *recorder.raw, sequential_jump=True)
    assert list(history.pcs()) == expected
    assert history.gaps == 0
    assert recorder.addresses()[-1] == 0x2010 >> 1  # the jump's own target was sent


# 9.2: main calls f, which calls g; g returns to f, f to main.
CALLS = image_of(
    (0x100, [asm.jal(0x100, 1), asm.C_NOP, asm.C_NOP]),  # main
    (0x200, [asm.C_NOP, asm.jal(0xFE, 1), asm.c_jr(1)]),  # f
    (0x300, [asm.C_NOP, asm.c_jr(1)]),  # g
    (0x1104, [asm.C_NOP, asm.C_NOP]),
    (0x800, [asm.C_NOP]),
)
NESTED = [0x100, 0x200, 0x202, 0x300, 0x302, 0x206, 0x104]
MODES = [ImplicitReturn.COUNTER, ImplicitReturn.PARTIAL_STACK, ImplicitReturn.FULL_STACK]
STACKS = MODES[1:]


@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_section_9_2_returns_to_the_caller_are_not_reported(mode: ImplicitReturn, btm: bool) -> None:
    """The two returns generate no message; with the optimization off, one each."""
    on = encoded(CALLS, NESTED, 0x106, implicit_return=mode, btm=btm)
    assert on == [started(), stopped(9, None if btm else 1)]
    assert list(decoded(CALLS, *on, implicit_return=mode, btm=btm).pcs()) == NESTED
    off = encoded(CALLS, NESTED, 0x106, btm=btm)
    assert len(off) == 4
    assert list(decoded(CALLS, *off, btm=btm).pcs()) == NESTED


@pytest.mark.parametrize("mode", MODES)
def test_section_9_2_a_synchronizing_message_empties_the_counter_and_the_stack(mode: ImplicitReturn) -> None:
    """ "Is reset to 0 whenever a synchronizing message is sent": both returns are then reported."""
    recorder = Recorder(implicit_return=mode)
    recorder.retire(*blocks(CALLS, NESTED[:4]))
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.retire(*blocks(CALLS, NESTED[4:]), next_pc=0x106)
    recorder.encoder.stop(0, 0x106)
    reported = [fields for fields in recorder.messages() if fields["name"] == "IndirectBranchHist"]
    assert len(reported) == 2
    history = decoded(CALLS, *recorder.raw, implicit_return=mode)
    assert list(history.pcs()) == NESTED
    assert history.gaps == 0


@pytest.mark.parametrize("mode", STACKS)
def test_section_9_2_a_return_elsewhere_is_reported(mode: ImplicitReturn) -> None:
    """ "If a return address does not match the prediction, it must be reported explicitly"."""
    pcs = [0x100, 0x200, 0x202, 0x300, 0x302, 0x800]
    messages = encoded(CALLS, pcs, 0x802, implicit_return=mode)
    assert messages == [
        started(),
        message("IndirectBranchHist", b_type=0, icnt=7, uaddr=(0x100 ^ 0x800) >> 1, hist=1),
        stopped(1),
    ]
    assert list(decoded(CALLS, *messages, implicit_return=mode).pcs()) == pcs


def test_section_9_2_partial_addresses() -> None:
    """Only the least significant part is compared: 0x1104 and 0x104 are told apart by 13 bits, and not by 12."""
    pcs = [0x100, 0x200, 0x202, 0x300, 0x302, 0x206, 0x1104]
    told = encoded(CALLS, pcs, 0x1106, implicit_return=ImplicitReturn.PARTIAL_STACK, partial_bits=13)
    assert list(decoded(CALLS, *told, implicit_return=ImplicitReturn.PARTIAL_STACK).pcs()) == pcs
    assert len(told) == 3
    missed = encoded(CALLS, pcs, 0x1106, implicit_return=ImplicitReturn.PARTIAL_STACK, partial_bits=12)
    assert missed == [started(), stopped(9)]  # "chances are very slim"
    assert len(encoded(CALLS, pcs, 0x1106, implicit_return=ImplicitReturn.FULL_STACK)) == 3


def test_section_9_2_simple_counting_does_not_check() -> None:
    """ "The encoder will not be able to check that the return address is that of the instruction" after the call."""
    pcs = [0x100, 0x200, 0x202, 0x300, 0x302, 0x206, 0x800]
    assert encoded(CALLS, pcs, 0x802, implicit_return=ImplicitReturn.COUNTER) == [started(), stopped(9)]


def recursion(depth: int) -> tuple[Image, list[int]]:
    """A function that calls itself *depth* - 1 times, is called once, and then returns all the way."""
    code = [asm.c_beqz(8), asm.jal(-2, 1), asm.C_NOP, asm.c_jr(1)]
    image = image_of((0x100, [asm.jal(0x100, 1), asm.C_NOP]), (0x200, code))
    inner = [0x200, 0x202] * (depth - 1) + [0x200, 0x208]
    return image, [0x100, *inner, *[0x206, 0x208] * (depth - 1), 0x104]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("entries", "depth"), [(1, 1), (4, 3), (4, 4), (4, 9), (32, 33), (32, 80), (1023, 500)])
def test_section_9_2_deeper_than_the_encoder_keeps(mode: ImplicitReturn, entries: int, depth: int) -> None:
    """ "Decoder does not need to know what actual depth of the call stack is implemented"."""
    image, pcs = recursion(depth)
    messages = encoded(image, pcs, 0x106, implicit_return=mode, return_depth=entries)
    assert len(messages) >= 2 + max(depth - entries, 0)  # those it forgot are reported
    history = decoded(image, *messages, implicit_return=mode)
    assert list(history.pcs()) == pcs
    assert history.gaps == 0


@pytest.mark.parametrize("mode", MODES)
def test_section_2_co_routine_swap_pops_and_pushes(mode: ImplicitReturn) -> None:
    """Itype 12: "If Pop does not return the same address ... emit"; then its own return address is pushed."""
    image = image_of(
        (0x100, [asm.jal(0x100, 1), asm.C_NOP]),  # call: pushes 0x104
        (0x200, [asm.jalr(5, 1)]),  # swap: goes to 0x104, pushes 0x204
        (0x204, [asm.C_NOP]),
        (0x106, [asm.c_jr(5), asm.C_NOP]),  # return through x5: to 0x204
    )
    pcs = [0x100, 0x200, 0x104, 0x106, 0x204]
    messages = encoded(image, pcs, 0x206, implicit_return=mode)
    assert messages == [started(), stopped(7)]
    assert list(decoded(image, *messages, implicit_return=mode).pcs()) == pcs


@pytest.mark.parametrize("mode", MODES)
def test_section_2_trap_returns_neither_push_nor_pop(mode: ImplicitReturn) -> None:
    """An interrupt in the callee, its handler with a call and a return of its own, and mret: the stack is as it was."""
    image = image_of(
        (0x100, [asm.jal(0x100, 1), asm.C_NOP]),
        (0x200, [asm.C_NOP, asm.c_jr(1)]),
        (0x800, [asm.jal(0x100, 5), asm.MRET]),
        (0x900, [asm.jalr(0, 5)]),
    )
    recorder = Recorder(implicit_return=mode)
    recorder.retire(*blocks(image, [0x100, 0x200]), interrupt(0x202, 0x800))
    recorder.retire(*blocks(image, [0x800, 0x900, 0x804, 0x202, 0x104]), next_pc=0x106)
    recorder.encoder.stop(0, 0x106)
    assert [fields["name"] for fields in recorder.messages()] == [
        "ProgTraceSync",
        "IndirectBranchHist",  # the interrupt
        "IndirectBranchHist",  # mret
        "ProgTraceCorrelation",
    ]
    history = decoded(image, *recorder.raw, implicit_return=mode)
    assert list(history.pcs()) == [0x100, 0x200, 0x800, 0x900, 0x804, 0x202, 0x104]
    assert history.gaps == 0
