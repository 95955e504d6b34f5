"""Any bytes at all, and traces that are cut, rotated, mixed or damaged: what must hold whatever the encoder was."""

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from decode.history import GAP, GAP_KINDS, EventKind, History
from decode.ntrace.decoder import Options, decode
from decode.ntrace.dialect import RC7
from decode.ntrace.encoder import SyncMode
from decode.ntrace.streams import decode_streams
from tests.decode.encodings import Case, any_fields, decoder_options
from tests.decode.ntrace_messages import MESSAGES, difference
from tests.decode.synthetic import Program
from tests.decode.synthetic_code import BRANCHES, DIRECT, INDIRECT

examples = settings(derandomize=True, max_examples=60, deadline=None)
seeds = st.integers(0, 1 << 32)
SYNCS = {tcode for tcode, fields in MESSAGES.values() if fields.startswith("sync")}
MANY = 3000  # positions looked at: one flipped bit can make a loop of four billion rounds


def periodic(seed: int, fields: dict[str, Any], period: int = 0, **how: Any) -> Case:
    """A case with many synchronizing messages, each of which resets the encoder."""
    fields = fields | {"sync_mode": SyncMode.MESSAGES, "sync_max": period}
    if fields.get("dialect") is RC7:
        del fields["dialect"]
        fields["icnt_full_sync"] = False
    return Case(seed, fields, **how)


def located(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """The messages of an undamaged stream with their offsets (3.1)."""
    start = 0
    for end, byte in enumerate(stream, 1):
        if byte & 3 == 3:
            if start < end - 1:
                yield start, stream[start:end]
            start = end


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
    same_xlen = [case for case in (Case(seed + i, fields, (3, i), steps=150) for i in range(8))]
    xlen = same_xlen[0].program.xlen
    cases = [case for case in same_xlen if case.program.xlen == xlen][:harts]
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
        check_bookkeeping(case.decode(data, wrapped=wrapped), data)


def check_bookkeeping(history: History, data: bytes) -> None:
    total, decoded, idle, skipped = history.accounting
    assert total == len(data) == decoded + idle + skipped
    assert min(decoded, idle, skipped) >= 0
    assert idle <= data.count(0xFF)
    positions = [event.position for event in history.events]
    assert positions == sorted(positions)
    assert all(0 <= event.offset <= len(data) for event in history.events)
    gaps = {event.position for event in history.events if event.kind in GAP_KINDS and event.position < len(history)}
    gaps = {position for position in gaps if history.pc(position) == GAP}
    assert len(gaps) == history.gaps
    for i in gaps:
        cause = history.gap_at(i)
        assert cause.text
        assert cause.last_pc == history.pc(i - 1)
        assert i + 1 == len(history) or cause.next_pc is not None


def check_possible(program: Program, history: History) -> None:
    """No step from one instruction to the next that the code cannot take, unless an event stands there that can."""
    elsewhere = {event.position for event in history.events if event.kind is not EventKind.NOTE}
    pcs = list(history.pcs(0, MANY))
    for i, (pc, after) in enumerate(zip(pcs, pcs[1:], strict=False), 1):
        spot = program.spots.get(pc)
        if GAP in (pc, after) or i in elsewhere or spot is None or spot.kind in INDIRECT:
            continue
        ways = set(spot.targets) if spot.kind in (*BRANCHES, *DIRECT) else set()
        if spot.kind not in DIRECT:
            ways.add(pc + spot.length & program.mask)
        assert after in ways or spot.kind in ("custom", "long"), (i, hex(pc), hex(after), spot)


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
        check_bookkeeping(history, bytes(data))
        check_possible(case.program, history)
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
@given(seeds, any_fields, st.randoms(use_true_random=False))
def test_lost_messages_leave_a_gap(seed: int, fields: dict[str, Any], rng: random.Random) -> None:
    """Whole messages taken out where nobody says so: the history never goes on as if nothing had been there."""
    case = periodic(seed, fields)
    messages = [raw for _, raw in located(case.trace)]
    for _ in range(3):
        first = rng.randrange(len(messages))
        kept = messages[:first] + messages[first + rng.randint(1, 4) :]
        history = case.decode(b"".join(kept))
        check_bookkeeping(history, b"".join(kept))
        check_possible(case.program, history)


@examples
@given(seeds, any_fields, st.sampled_from(["shifted by 2", "shifted by 4", "another program"]))
def test_a_wrong_program_is_noticed_within_one_sync_period(seed: int, fields: dict[str, Any], wrong: str) -> None:
    case = periodic(seed, fields, trap_rate=0, marks=False, steps=1500)
    syncs = [offset for offset, raw in located(case.trace) if raw[0] >> 2 in SYNCS]
    if len(syncs) < 4:
        return  # a loop that needs no message: nothing to be noticed by
    if wrong == "another program":
        other = Case(seed + 1).program
        other_image = other.image() if other.base == case.program.base else case.program.image(6)
    else:
        other_image = case.program.image(int(wrong[-1]))
    other_image.xlen = case.program.xlen
    history = decode(case.trace, other_image, case.options)
    first = next(event for event in history.events if event.kind is EventKind.MISMATCH)
    assert "trace does not match" in first.text
    assert first.offset <= syncs[2]
