"""Any bytes at all, and traces that are cut, rotated, mixed or damaged: what must hold whatever the encoder was."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode, decode_streams
from rvtrace_gdb.decode.ntrace.options import Options
from tests.decode.damaged_traces import check_bookkeeping, check_pieces_ran, check_possible, check_stop_at_error
from tests.decode.ntrace.encodings import Case, any_fields, decoder_options, periodic
from tests.decode.ntrace.messages import SYNCS, difference, located, of_kind
from tests.decode.synthetic_code import INDIRECT
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
seeds = st.integers(0, 1 << 32)
# What a custom instruction does only its designer knows, and an encoder without traps shows ecall as a jump.
ANYWHERE = (*INDIRECT, "custom", "long", "ecall")


def check(history: History, data: bytes) -> None:
    check_bookkeeping(history, data)
    assert history.accounting.idle <= sum(byte & 3 == 3 for byte in data)


@examples
@given(seeds, any_fields, st.integers(0, 2), st.randoms(use_true_random=False))
def test_a_rotated_ring_is_the_linear_tail_after_its_first_sync(
    seed: int, fields: dict[str, Any], period: int, rng: random.Random
) -> None:
    case = periodic(seed, fields, period)
    starts = [offset for offset, raw in located(case.trace) if raw[0] >> 2 in SYNCS]
    for _ in range(6):
        size = rng.randrange(1, len(case.trace) + 1)  # the ring holds the last bytes, and starts somewhere
        ring, where = case.trace[-size:], rng.randrange(size)
        memory = ring[-where:] + ring[:-where] if where else ring
        oldest_first = memory[where:] + memory[:where]
        history = case.decode(oldest_first, wrapped=True)
        cut = len(case.trace) - size
        boundary = next(i for i in range(cut, len(case.trace)) if case.trace[i] & 3 == 3) + 1
        first = next((start for start in starts if start >= boundary), None)
        expected = [] if first is None else list(case.decode(case.trace[first:]).pcs())
        assert not difference(history.pcs(), expected)
        assert not difference(case.run.pcs[len(case.run.pcs) - len(expected) :], expected)
        assert history.gaps == 0
        assert sum(history.accounting[1:]) == size


@examples
@given(seeds, any_fields, st.integers(2, 4))
def test_several_harts_in_one_stream(seed: int, fields: dict[str, Any], harts: int) -> None:
    """Each its own program and encoder, one SRC each: the histories are those of each hart alone."""
    rng = random.Random(seed)
    eight = [Case(seed + i, fields, (3, i), steps=150) for i in range(8)]
    cases = [case for case in eight if case.program.xlen == eight[0].program.xlen][:harts]
    queues = {case.options.src_id or 0: [raw for _, raw in located(case.trace)] for case in cases}
    stream = bytearray()
    while any(queues.values()):
        stream += rng.choice([queue for queue in queues.values() if queue]).pop(0)
    programs = {case.options.src_id or 0: case.program.image() for case in cases}
    options = decoder_options(cases[0].encoder_options)
    streams = decode_streams(bytes(stream), programs, Options(**{**vars(options), "src_id": None}))
    assert streams.histories.keys() == programs.keys()
    for case in cases:
        history = streams.histories[case.options.src_id or 0]
        alone = case.decode(b"".join(raw for _, raw in located(case.trace)))
        assert not difference(history.pcs(), case.run.pcs)
        assert not difference(history.times, alone.times)
        assert not difference(history.contexts, alone.contexts)
    assert streams.accounting == (len(stream), len(stream), 0, 0)
    one = decode(bytes(stream), programs[cases[0].options.src_id or 0], cases[0].options)
    assert not difference(one.pcs(), cases[0].run.pcs)


@examples
@given(st.binary(max_size=300), seeds, any_fields, st.booleans())
def test_no_bytes_raise_or_are_miscounted(noise: bytes, seed: int, fields: dict[str, Any], wrapped: bool) -> None:
    case = Case(seed, fields, steps=20)
    for data in (noise, case.trace[:9] + noise, bytes(byte & 0xFC for byte in noise), case.trace + noise * 20):
        check(case.decode(data, wrapped=wrapped), data)


@examples
@given(seeds, any_fields, st.randoms(use_true_random=False))
def test_a_flipped_bit_or_a_cut_loses_no_more_than_to_the_next_sync(
    seed: int, fields: dict[str, Any], rng: random.Random
) -> None:
    """Whatever it does: it is told, what came before is all there, and so is what comes after the next sync."""
    case = periodic(seed, fields)
    messages = list(located(case.trace))
    for _ in range(5):
        data = bytearray(case.trace)
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
        cut = rng.random() < 0.3
        if cut:
            del data[rng.randrange(at, len(data)) :]
        history = case.decode(bytes(data))
        check(history, bytes(data))
        check_possible(case.program, history, ANYWHERE)
        options = replace(case.options, stop_at_error=True)
        check_stop_at_error(decode(bytes(data), case.program.image(), options), bytes(data), history)
        index = max((i for i, (offset, _) in enumerate(messages) if offset <= at), default=0)
        before = [pc for pc in case.decode(case.trace[: messages[index][0]]).pcs() if pc >= 0]
        assert not difference(history.pcs(0, len(before)), before)
        assert not difference(case.run.pcs[: len(before)], before)
        # A message whose end is damaged swallows the one behind it.
        later = [offset for offset, raw in messages[index + 2 :] if raw[0] >> 2 in SYNCS]
        if later and not cut:
            count = len(case.decode(case.trace[later[0] :]))
            assert not difference(history.pcs(len(history) - count), case.run.pcs[len(case.run.pcs) - count :])


@examples
@given(seeds, any_fields, st.sampled_from([0.05, 0.3]))
def test_what_the_encoder_lost_or_left_out_is_a_gap(seed: int, fields: dict[str, Any], breaks: float) -> None:
    """Errors with a restart, and tracing that is off for a while: the pieces between the gaps ran, in this order."""
    case = Case(seed, fields, marks=False, breaks=breaks)
    history = case.decode(case.trace)
    check(history, case.trace)
    check_pieces_ran(history, case.run.pcs, EventKind.TRACE_OFF, EventKind.TRACE_ON)
    assert not of_kind(history, EventKind.MISMATCH)


@examples
@given(seeds, any_fields, st.randoms(use_true_random=False))
def test_lost_messages_leave_a_gap(seed: int, fields: dict[str, Any], rng: random.Random) -> None:
    """Whole messages taken out where nobody says so: the history never goes on as if nothing had been there."""
    case = periodic(seed, fields)
    messages = [raw for _, raw in located(case.trace)]
    for _ in range(3):
        first = rng.randrange(len(messages))
        kept = messages[:first] + messages[first + rng.randint(1, 4) :]
        history = case.decode(b"".join(kept))
        check(history, b"".join(kept))
        check_possible(case.program, history, ANYWHERE)
