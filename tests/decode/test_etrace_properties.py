"""decode(encode(execution)) == execution, for random programs, executions and every way to build an E-Trace encoder;
and the document's decoder, told anew for the tests, finds the same.
"""

import random
from bisect import bisect_right
from dataclasses import fields as fields_of
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decode.etrace.decoder import Decoder, decode
from decode.etrace.encapsulation import Encapsulation
from decode.etrace.encoder import Encoder, EncoderOptions, SyncMode
from decode.etrace.options import Modes, Options, Parameters, SupportLayout
from decode.history import Context, EventKind, History
from decode.ingress import Block, Trap, blocks_from_pcs
from tests.decode import assembler as asm
from tests.decode.etrace_packets import read, write
from tests.decode.etrace_programs import FREEDOMS, MODES, PARAMETERS, Case, any_options, last_pc
from tests.decode.etrace_running import Example
from tests.decode.etrace_vectors import framed
from tests.decode.ntrace_messages import difference, image_of

examples = settings(derandomize=True, max_examples=60, deadline=None)
many = settings(examples, max_examples=300)
seeds = st.integers(0, 1 << 32)
rates = st.sampled_from([0, 0.005, 0.05, 0.4])

DATA = {"data_", "daddress_", "lrid_", "csr_", "mmacas_"}


def test_every_option_of_the_encoder_takes_part() -> None:
    """But those of data trace, and those that are no freedom of the document: layouts, dialects, widths of a hart."""
    named = {field.name for kind in (Parameters, Modes, EncoderOptions) for field in fields_of(kind)}
    left = {name for name in named if not any(name.startswith(start) for start in DATA)}
    fixed = {"iaddress_width", "iret_ext", "parameters", "modes", "dialect", "support", "itype_width", "hcontext_at"}
    assert left - fixed == {*PARAMETERS, *MODES, *FREEDOMS}


@many
@given(seeds, any_options, rates)
def test_decoding_what_was_encoded_gives_the_execution(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    case = Case(seed, drawn, trap_rate=trap_rate)
    history = case.decode(case.trace)
    assert not difference(history.pcs(), case.pcs)
    assert history.gaps == 0
    assert history.accounting == (len(case.trace), len(case.trace), 0, 0)
    check_traps(case, history)


@many
@given(seeds, any_options, rates)
def test_the_documents_decoder_finds_the_same(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    """So the encoder makes what others can read, and nothing of the decoder's own is needed for it."""
    case = Case(seed, drawn, trap_rate=trap_rate)
    naive = case.naive()
    assert not difference(naive.pcs, case.pcs)
    for position, epc, fields in naive.traps:
        hits = [trap for at, trap in case.traps if at == position and trap.cause == fields["ecause"]]
        assert hits
        assert epc is None or epc in [trap.epc for trap in hits]


def check_traps(case: Case, history: History) -> None:
    """Each at its place, with its handler and where it hit, as far as the packets tell.

    Not told is where a second trap before the first handler's first instruction hit (that is the first handler), nor
    the first one's handler; and behind an inferred jump or an ecall counted as retired, it is the code that tells.
    """
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [event.position for event in traps] == [position for position, _ in case.traps]
    for i, (event, (position, trap)) in enumerate(zip(traps, case.traps, strict=True)):
        kind = "interrupt" if trap.interrupt else "exception"
        assert event.text.startswith(f"{kind} {trap.cause}"), event
        if i + 1 == len(traps) or traps[i + 1].position > position:
            assert event.next_pc == trap.handler
        if i == 0 or traps[i - 1].position < position:
            assert event.last_pc in (trap.epc, None)


@examples
@given(seeds, any_options)
def test_contexts(seed: int, drawn: dict[str, Any]) -> None:
    """Each instruction runs in its privilege mode; in its process, too, where changes are reported precisely."""
    case = Case(seed, drawn | {"context_width": 32}, marks=False)
    history = case.decode(case.trace)
    places: list[int] = []
    contexts: list[Context] = []
    at = 0
    for item in case.items:
        if isinstance(item, Context):
            places.append(at)
            contexts.append(item)
        elif isinstance(item, Block):
            at += item.instructions
    precise = drawn["context"].name in ("PRECISE", "DISCONTINUITY")
    for i in range(len(case.pcs)):
        found = bisect_right(places, i) - 1
        context = contexts[found] if found >= 0 else Context(3)
        assert history.context_at(i).prv == context.prv, i
        if precise and context.scontext is not None:
            assert history.context_at(i).scontext == context.scontext, i


@examples
@given(seeds, any_options, st.sampled_from([16, 48, 64]))
def test_times(seed: int, drawn: dict[str, Any], width: int) -> None:
    """What the packets say, in order, each at the instruction of its packet."""
    case = Case(seed, drawn | {"time_width": width})
    history = case.decode(case.trace)
    sent = [
        fields["time"]
        for fields in (read(packet, case.options.parameters, case.options.modes) for packet in case.packets)
        if fields["format"] == 3 and fields["subformat"] != 3
    ]
    told = [time & (1 << width) - 1 for _, time in history.times]
    positions = [position for position, _ in history.times]
    assert positions == sorted(positions)
    assert set(told) <= set(sent)
    assert not sent or told[-1] == sent[-1] or positions[-1] <= len(case.pcs)


@examples
@given(seeds, any_options, rates)
def test_packets_are_as_short_as_they_can_be(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    """With compression: what the tests write with the same fields ("sign based compression" over the whole packet);
    without it, the same number in whole fields.
    """
    case = Case(seed, drawn, trap_rate=trap_rate)
    parameters, modes = case.options.parameters, case.options.modes
    for packet in case.packets:
        fields = read(packet, parameters, modes)
        shortest = write(fields, parameters, modes)
        assert int.from_bytes(packet, "little", signed=True) == int.from_bytes(shortest, "little", signed=True)
        if drawn["compress"]:
            assert packet == shortest


@examples
@given(seeds, any_options)
def test_with_and_without_memory_of_steps(seed: int, drawn: dict[str, Any]) -> None:
    """What is remembered, and forgetting it at any time, changes nothing."""
    case = Case(seed, drawn)
    whole = case.decode(case.trace)
    for limit in (0, 1, 7):
        decoder = Decoder(case.image, case.options, Encapsulation(), memo_limit=limit)
        decoder.feed(case.trace)
        assert_same(decoder.finish(), whole)
    assert not difference(whole.pcs(), case.pcs)


@examples
@given(
    seeds,
    any_options,
    st.lists(st.sampled_from([1, 2, 3, 7, 300, 5000]), min_size=1),
    st.lists(st.integers(0, (1 << 32) - 1), max_size=6),
    st.booleans(),
)
def test_any_chunking_gives_the_same_history(
    seed: int, drawn: dict[str, Any], sizes: list[int], damages: list[int], wrapped: bool
) -> None:
    case = Case(seed, drawn)
    data = bytearray(case.trace)
    for damage in damages:
        data[damage % len(data)] = damage >> 24
    whole = case.decode(bytes(data), wrapped=wrapped)
    decoder = Decoder(case.image, case.options, Encapsulation(), wrapped=wrapped)
    start = 0
    for size in cycle([*sizes, 0]):
        decoder.feed(bytes(data[start : start + size]))
        start += size
        if start >= len(data):
            break
    assert_same(decoder.finish(), whole)


def assert_same(one: History, other: History) -> None:
    assert (len(one), one.gaps) == (len(other), other.gaps)
    assert not difference(one.pcs(0, 20_000), other.pcs(0, 20_000))
    assert not difference(one.events, other.events)
    assert not difference(one.contexts, other.contexts)
    assert not difference(one.times, other.times)
    assert one.accounting == other.accounting


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
    encoder.context(Context(3))
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
@pytest.mark.parametrize("mode", SyncMode)
def test_coroutines(kind: str, mode: SyncMode) -> None:
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
    encoder.context(Context(3))
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
                items.append(Trap(epc, rng.random() < 0.5, 0, 0, returns[0]))
            items.append(Block.of(returns[0], [case.image.instruction(returns[0])], case.program.xlen))
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


@examples
@given(seeds, any_options, rates)
def test_standard_support_packets_tell_parameters_and_modes(
    seed: int, drawn: dict[str, Any], trap_rate: float
) -> None:
    """A decoder that was told no more than the widths which are not in them."""
    case = Case(seed, drawn | {"support": SupportLayout.STANDARD}, trap_rate=trap_rate)
    unsaid = ("iaddress_width", "iaddress_lsb", "privilege_width", "ecause_width", "context_width", "ecall_retires")
    known = {name: getattr(case.options.parameters, name) for name in unsaid}
    told = Options(Parameters(**known), support=SupportLayout.STANDARD, trap_handlers=case.options.trap_handlers)
    history = decode(case.trace, case.image, told, Encapsulation())
    assert not difference(history.pcs(), case.pcs)
