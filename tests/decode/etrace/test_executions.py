"""Executions of the kinds that are hard to trace: deep recursion, long loops, co-routines, tail calls, and traps where
the trace is least sure of its place.
"""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode import assembler as asm
from tests.decode.etrace.random_programs import Case, any_options, last_pc
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import Example
from tests.decode.ntrace.messages import difference, image_of
from tests.helpers.amounts import some_of

many = settings(derandomize=True, max_examples=some_of(300, share=10), deadline=None)
seeds = st.integers(0, 1 << 32)

STACKS = {
    "none": (Parameters(iaddress_width=64), Modes()),
    "stack of 4": (Parameters(iaddress_width=64, return_stack_size=2, iret_ext=True), Modes(implicit_return=True)),
    "stack and counters": (
        Parameters(iaddress_width=64, return_stack_size=1, call_counter_size=8, iret_ext=True),
        Modes(implicit_return=True),
    ),
    "counter": (Parameters(iaddress_width=64, call_counter_size=7, iret_ext=True), Modes(implicit_return=True)),
}


def traced(example: Example, pcs: list[int], next_pc: int, **more: Any) -> list[bytes]:
    """The packets of an execution."""
    packets: list[bytes] = []
    encoder = Encoder(EncoderOptions(example.parameters, example.modes, **more), packets.append)
    encoder.context(ProgramContext(3))
    encoder.start()
    encoder.retire(list(blocks_from_pcs(pcs, example.image)))
    encoder.stop(next_pc)
    return packets


def decoded(example: Example, packets: list[bytes]) -> History:
    return decode(framed(packets), example.image, example.options, Encapsulation())


@pytest.mark.parametrize("kind", STACKS)
@pytest.mark.parametrize("branches", [True, False])
def test_recursion_of_any_depth(kind: str, branches: bool) -> None:
    """1000 calls deep, and all the way back; without a branch the counters alone tell how deep."""
    depth = 1000
    if branches:
        code = [asm.c_beqz(8), asm.jal(-2, 1), asm.C_NOP, asm.c_jr(1)]
        pcs = [*[0x200, 0x202] * depth, 0x200, 0x208, *[0x206, 0x208] * depth]
    else:
        code = [asm.C_NOP, asm.c_jalr(6), asm.C_NOP, asm.c_jr(1)]
        pcs = [*[0x200, 0x202] * depth, 0x300, *[0x204, 0x206] * depth]
    image = image_of((0x100, [asm.jal(0x100, 1), asm.C_NOP]), (0x200, code), (0x300, [asm.c_jr(1)]))
    pcs = [0x100, *pcs, 0x104]
    example = Example(image, *STACKS[kind])
    packets = traced(example, pcs, 0x106)
    assert not difference(decoded(example, packets).pcs(), pcs)


@pytest.mark.parametrize("prediction", [False, True])
@pytest.mark.parametrize("rounds", [30, 31, 32, 33, 62, 63, 100_000])
def test_long_loops(rounds: int, prediction: bool) -> None:
    """With a predictor, a handful of packets for any number of rounds."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.C_NOP]))
    pcs = [*[0x100, 0x102] * rounds, 0x104, 0x106]
    parameters = Parameters(iaddress_width=64, bpred_size=3 * prediction)
    example = Example(image, parameters, Modes(branch_prediction=prediction))
    packets = traced(example, pcs, 0x108)
    assert not difference(decoded(example, packets).pcs(), pcs)
    assert len(packets) < 8 or not prediction


def random_coroutines(rng: random.Random) -> tuple[list[int], int]:
    """Two routines that swap, each with a branch now and then; 400: swap (x1, x5), 500: swap (x5, x1)."""
    pcs = [0x3FC]
    for _ in range(200):
        pcs += [0x400, 0x404, 0x500, 0x504] if rng.random() < 0.5 else [0x400, 0x404, 0x500, 0x502, 0x504]
    return pcs, 0x400


@pytest.mark.parametrize("kind", STACKS)
@pytest.mark.parametrize("mode", ResyncMode)
def test_coroutines(kind: str, mode: ResyncMode) -> None:
    """jalr x1, x5 and jalr x5, x1 are neither calls nor returns in E-Trace ("Jump classification")."""
    one = [asm.NOP, asm.NOP, asm.jalr(1, 5)]
    other = [asm.c_beqz(4), asm.C_NOP, asm.jalr(5, 1)]
    image = image_of((0x3FC, one), (0x500, other))
    pcs, after = random_coroutines(random.Random(5))
    example = Example(image, *STACKS[kind])
    packets = traced(example, pcs, after, sync_mode=mode)
    assert not difference(decoded(example, packets).pcs(), pcs)


@pytest.mark.parametrize("kind", STACKS)
def test_tail_calls(kind: str) -> None:
    """f (200) leaves by a jump to g (300), whose ret goes to f's caller: the jump pushes nothing, direct or not."""
    f = [asm.C_NOP, asm.c_j(0x300 - 0x202)]
    h = [asm.C_NOP, asm.c_jr(6)]
    main = [asm.jal(0x100, 1), asm.jal(0x13C, 1), asm.jal(-8)]
    image = image_of((0x100, main), (0x200, f), (0x240, h), (0x300, [asm.C_NOP, asm.c_jr(1)]))
    around = [0x100, 0x200, 0x202, 0x300, 0x302, 0x104, 0x240, 0x242, 0x300, 0x302, 0x108]
    pcs = around * 20
    example = Example(image, *STACKS[kind])
    packets = traced(example, pcs, 0x100)
    assert not difference(decoded(example, packets).pcs(), pcs)


@many
@given(seeds, any_options, st.sampled_from(["updiscon", "trap return", "nested"]))
def test_traps_where_they_hurt(seed: int, drawn: dict[str, Any], where: str) -> None:
    """At the target of every other uninferable jump, at that of xRET, and again before the handler's first instruction.

    Made of an execution without traps by putting in handlers that run one instruction and come back.
    """
    case = Case(seed, drawn | {"implicit_exception": False}, trap_rate=0, marks=False)
    items, pcs = interrupted(case, random.Random(seed), where)
    packets: list[bytes] = []
    encoder = Encoder(case.encoder_options, packets.append)
    encoder.context(ProgramContext(3))
    encoder.start()
    encoder.retire(items)
    encoder.stop(case.run.next_pc)
    history = case.decode(case.framed(packets))
    assert not difference(history.pcs(), pcs)
    assert not difference(case.naive(packets).pcs, pcs)


def interrupted(case: Case, rng: random.Random, where: str) -> tuple[list[Any], list[int]]:
    """The items with traps put in, and what ran. The handler is an mret somewhere in the program, or is left out."""
    returns = [pc for pc, spot in case.program.spots.items() if spot.kind == "mret"]
    items: list[Any] = []
    pcs: list[int] = []
    before: Block | None = None
    for item in case.items:
        if isinstance(item, Block) and is_place(case, before, where) and returns and rng.random() < 0.5:
            for times in range(2 if where == "nested" else 1):
                epc = items[-1].handler if times else item.pc
                items.append(IngressTrap(epc, rng.random() < 0.5, 0, 0, returns[0]))
            items.append(Block.from_instructions(returns[0], [case.image.instruction(returns[0])], case.program.xlen))
            pcs.append(returns[0])
        items.append(item)
        if isinstance(item, Block):
            pcs += addresses(item)
        before = item if isinstance(item, Block) else None
    return items, pcs


def is_place(case: Case, before: Block | None, where: str) -> bool:
    """Whether a trap is to hit behind this block."""
    if before is None:
        return False
    kind = case.program.spots[last_pc(before)].kind
    return kind == "mret" if where == "trap return" else kind in ("jump", "ret", "icall", "swap")


def addresses(block: Block) -> list[int]:
    """Of its instructions."""
    at, found = block.pc, []
    for length in block.lengths:
        found.append(at)
        at += 2 * length
    return found
