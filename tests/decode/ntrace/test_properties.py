"""decode(encode(execution)) == execution, for random programs, executions and every way to build an encoder."""

from bisect import bisect_right
from collections import Counter
from dataclasses import fields as fields_of
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import SIFIVE, EncoderOptions, ImplicitReturn
from tests.decode import assembler as asm
from tests.decode.ntrace.encodings import FIELDS, SOURCES, Case, any_fields
from tests.decode.ntrace.messages import decoded, difference, encoded, image_of, read, split
from tests.decode.synthetic_code import BRANCHES, DIRECT, INDIRECT
from tests.helpers.amounts import LONG, some_of

examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
many = settings(examples, max_examples=some_of(350, share=10))

seeds = st.integers(0, 1 << 32)
cases = st.builds(Case, seeds, any_fields)


def test_every_option_of_the_encoder_takes_part() -> None:
    assert {*FIELDS, "src_bits", "src_id", "xlen"} == {field.name for field in fields_of(EncoderOptions)}


@many
@given(seeds, any_fields, SOURCES, st.sampled_from([0, 0.005, 0.05, 0.4]))
def test_decoding_what_was_encoded_gives_the_execution(
    seed: int, fields: dict[str, Any], source: tuple[int, int], trap_rate: float
) -> None:
    case = Case(seed, fields, source, trap_rate=trap_rate)
    history = case.decode(case.trace)
    assert not difference(history.pcs(), case.run.pcs)
    assert history.gaps == 0
    total, decoded_bytes, idle, skipped = history.accounting
    assert (total, skipped) == (len(case.trace), 0)
    assert decoded_bytes == sum(map(len, split(case.trace)))
    assert idle == total - decoded_bytes
    check_traps(case, history)


def check_traps(case: Case, history: History) -> None:
    """Each at its place, with its handler; where it hit, unless an ecall counted as retired came before it."""
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [(e.position, e.next_pc) for e in traps] == [(p, t.handler) for p, t in case.run.traps]
    for event, (position, trap) in zip(traps, case.run.traps, strict=True):
        counted = position > 0 and case.run.pcs[position - 1] == trap.epc
        if not counted and not after_a_jump(case, position):
            assert event.last_pc == trap.epc
    if case.encoder_options.b_type_extended:
        assert [e.text for e in traps] == ["interrupt" if t.interrupt else "exception" for _, t in case.run.traps]


def after_a_jump(case: Case, position: int) -> bool:
    """A jump or branch retired right before: one that needs no message leaves where it led to the trap's message."""
    before = case.program.spots[case.run.pcs[position - 1]].kind if position else ""
    return before in (*INDIRECT, "custom")


@examples
@given(seeds, any_fields)
def test_contexts(seed: int, fields: dict[str, Any]) -> None:
    """Each instruction runs in its context, when the encoder tells the exact place of every change.

    Only a branch or jump right before the change (with the constant it goes to) may seem to be behind it: I-CNT alone
    does not tell that no message about the jump itself will follow.
    """
    case = Case(seed, fields | {"context": True, "exact_context": True, "context_by_sync": False})
    history = case.decode(case.trace)
    places = [position for position, _ in case.run.contexts]
    for i in range(len(case.run.pcs)):
        _, context = case.run.contexts[bisect_right(places, i) - 1]
        kinds = [case.program.spots[pc].kind for pc in case.run.pcs[i : i + 2]]
        undecided = i + 1 in places and kinds[0] in (*BRANCHES, *DIRECT, *INDIRECT)
        undecided |= i + 2 in places and kinds == ["upper", "constant jump"]
        assert undecided or history.context_at(i)[:3] == context[:3], i


@examples
@given(seeds, any_fields, st.sampled_from([1, 3]))
def test_timestamps(seed: int, fields: dict[str, Any], sparse: int) -> None:
    """What the messages say, summed up, and never before the instruction ahead of it had retired."""
    case = Case(seed, fields | {"timestamps": True, "timestamp_bits": 64, "timestamp_sparse": sparse})
    history = case.decode(case.trace)
    assert not difference(history.pcs(), case.run.pcs)
    sent, now = [], 0
    for raw in split(case.trace):
        message = read(raw)
        stamp = message.get("tstamp")
        if stamp is not None:
            relative = now ^ int(stamp) if case.options.dialect is SIFIVE else now + int(stamp)
            now = int(stamp) if "sync" in message else relative
            sent.append(now)
    told = [time for _, time in history.times]
    assert told == sorted(told)
    assert not Counter(told) - Counter(sent)
    # A counted history tells the time of its last branch, and I-CNT sent meanwhile without a time reaches beyond it.
    counted = fields["repeated_history"] and sparse > 1
    for position, time in history.times:
        assert counted or position == 0 or time >= case.times[position - 1]
    if sparse == 1 and not fields["repeat_branch"]:  # which counts traps too, with one time for all
        assert {position for position, _ in case.run.traps} <= {position for position, _ in history.times}


@examples
@given(cases)
def test_with_and_without_memory_of_steps(case: Case) -> None:
    """What is remembered, and forgetting it at any time, changes nothing."""
    whole = case.decode(case.trace)
    for limit in (0, 1, 7):
        decoder = StreamDecoder(case.program.image(), case.options, memo_limit=limit, split=False)
        decoder.feed(case.trace)
        assert_same(decoder.finish_one(), whole)
    assert not difference(whole.pcs(), case.run.pcs)


@examples
@given(
    cases,
    st.lists(st.sampled_from([1, 2, 3, 7, 300, 5000]), min_size=1),
    st.lists(st.integers(0, (1 << 32) - 1), max_size=6),
    st.booleans(),
)
def test_any_chunking_gives_the_same_history(case: Case, sizes: list[int], damages: list[int], wrapped: bool) -> None:
    data = bytearray(case.trace)
    for damage in damages:
        data[damage % len(data)] = damage >> 24
    if len(damages) == 6:
        data[len(data) // 2 : len(data) // 2] = bytes(9000)  # a field that does not end
    whole = case.decode(bytes(data), wrapped=wrapped)
    decoder = StreamDecoder(case.program.image(), case.options, wrapped=wrapped, split=False)
    start = 0
    for size in cycle([*sizes, 0]):
        decoder.feed(bytes(data[start : start + size]))
        start += size
        if start >= len(data):
            break
    assert_same(decoder.finish_one(), whole)


def assert_same(one: History, other: History) -> None:
    assert (len(one), one.gaps) == (len(other), other.gaps)
    assert not difference(one.pcs(0, 20_000), other.pcs(0, 20_000))
    assert not difference(one.events, other.events)
    assert not difference(one.contexts, other.contexts)
    assert not difference(one.times, other.times)
    assert one.accounting == other.accounting


@pytest.mark.parametrize("mode", list(ImplicitReturn))
@pytest.mark.parametrize("btm", [False, True])
def test_recursion_of_any_depth(mode: ImplicitReturn, btm: bool) -> None:
    """5000 calls deep, and all the way back, with a stack of 32 in the encoder."""
    depth = 5000
    code = [asm.c_beqz(8), asm.jal(-2, 1), asm.C_NOP, asm.c_jr(1)]
    image = image_of((0x100, [asm.jal(0x100, 1), asm.C_NOP]), (0x200, code))
    pcs = [0x100, *[0x200, 0x202] * (depth - 1), 0x200, 0x208, *[0x206, 0x208] * (depth - 1), 0x104]
    messages = encoded(image, pcs, 0x106, implicit_return=mode, btm=btm)
    history = decoded(image, *messages, implicit_return=mode, btm=btm)
    assert not difference(history.pcs(), pcs)


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("kind", ["branch", "jump to itself"])
def test_long_loops(kind: str, btm: bool, repeat: bool) -> None:
    """Very many rounds; with repetition counted, a handful of messages."""
    rounds = 100_000 if LONG else 20_000
    loop = asm.c_beqz(-2) if kind == "branch" else asm.c_jr(6)
    image = image_of((0x100, [asm.C_NOP, loop, asm.C_NOP]))
    once = [0x100, 0x102] if kind == "branch" else [0x102]
    pcs = [0x100, *([0x102] if kind == "branch" else []), *once * rounds, 0x102, 0x104]
    if kind == "branch":
        pcs = [*once * rounds, 0x104]
    messages = encoded(
        image, pcs, 0x106, btm=btm, repeated_history=repeat, repeat_branch=repeat, sync=Sync.TRACE_ENABLE
    )
    history = decoded(image, *messages, btm=btm)
    assert not difference(history.pcs(), pcs)
    if repeat:
        assert len(messages) < 20
