"""Any bytes at all, and E-Traces that are cut, rotated, mixed or damaged: what must hold whatever the encoder was."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.decoder import decode, decode_streams
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.options import ResyncMode
from rvtrace_gdb.decode.history.events import EventKind
from tests.decode.damaged_traces import check_bookkeeping, check_pieces_ran, check_possible, check_stop_at_error
from tests.decode.etrace.packets import read
from tests.decode.etrace.random_programs import Case, any_options
from tests.decode.ntrace.messages import difference
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
seeds = st.integers(0, 1 << 32)
rates = st.sampled_from([0, 0.01, 0.1])
BREAKS = (EventKind.TRACE_OFF, EventKind.TRACE_ON, EventKind.OVERFLOW)


def periodic(seed: int, drawn: dict[str, Any], **options: Any) -> Case:
    """A case with many synchronizing packets, each of which resets the encoder."""
    return Case(seed, drawn | {"resync_disabled": False, "sync_mode": ResyncMode.PACKETS, "sync_max": 0}, **options)


def is_sync(case: Case, packet: bytes) -> bool:
    """Whether a decoder can start at this packet: an instruction is told (thaddr=0 tells only where a trap hit)."""
    fields = read(packet, case.options.parameters, case.options.modes)
    return fields["format"] == 3 and fields["subformat"] in (0, 1) and bool(fields.get("thaddr", 1))


def starts(case: Case) -> list[tuple[int, bytes]]:
    """The offset of each packet in the trace."""
    found, at = [], 0
    for packet in case.packets:
        found.append((at, packet))
        at += 1 + len(packet)
    return found


@examples
@given(seeds, any_options, rates, st.integers(1, 30), st.randoms(use_true_random=False))
def test_a_rotated_ring_is_the_linear_tail_after_its_first_sync(
    seed: int, drawn: dict[str, Any], trap_rate: float, every: int, rng: random.Random
) -> None:
    """e-trace-encap's synchronization sequence stands between packets now and then: from the first one on, packets are
    known, and from the first synchronizing one what ran.
    """
    case = periodic(seed, drawn, trap_rate=trap_rate)
    between = Encapsulation().framer().synchronization()
    trace, known = bytearray(), []
    for number, packet in enumerate(case.packets):
        if number % every == 0:
            known.append(len(trace))
            trace += between
        trace += case.framed([packet])
    for _ in range(4):
        size = rng.randrange(1, len(trace) + 1)  # the ring holds the last bytes, and starts somewhere
        ring, where = bytes(trace[-size:]), rng.randrange(size)
        memory = ring[-where:] + ring[:-where] if where else ring
        history = case.decode(memory[where:] + memory[:where], wrapped=True)
        first = next((number * every for number, at in enumerate(known) if at >= len(trace) - size), len(case.packets))
        first = next((n for n in range(first, len(case.packets)) if is_sync(case, case.packets[n])), len(case.packets))
        expected = case.decode(case.framed(case.packets[first:]))
        # A sequence the ring has only a part of may be enough, too.
        assert len(history) >= len(expected)
        assert not difference(history.pcs(), case.pcs[len(case.pcs) - len(history) :])
        assert history.gaps == 0
        assert sum(history.accounting[1:]) == size


@examples
@given(seeds, any_options, st.integers(0, 12), st.integers(2, 4))
def test_several_harts_in_one_stream(seed: int, drawn: dict[str, Any], src_bits: int, harts: int) -> None:
    """Each its own program and encoder, one source each: the histories are those of each hart alone."""
    rng = random.Random(seed)
    src_bits = max(src_bits, 3)
    eight = [Case(seed + i, drawn, steps=150) for i in range(8)]
    cases = [case for case in eight if case.program.xlen == eight[0].program.xlen][:harts]
    encapsulation = Encapsulation(src_bits=src_bits)
    framer = encapsulation.framer()
    queues = [[framer.packet(packet, source=i) for packet in case.packets] for i, case in enumerate(cases)]
    stream = bytearray()
    while any(queues):
        stream += rng.choice([queue for queue in queues if queue]).pop(0)
    options = replace(cases[0].options, trap_handlers=cases[0].options.trap_handlers)
    if cases[0].options.modes.implicit_exception:
        cases = cases[:1]  # only one hart's handlers are told
    programs = {i: case.image for i, case in enumerate(cases)}
    streams = decode_streams(bytes(stream), programs, options, encapsulation)
    assert streams.histories.keys() == programs.keys()
    for i, case in enumerate(cases):
        alone = case.decode(case.trace)
        assert not difference(streams.histories[i].pcs(), case.pcs)
        assert not difference(streams.histories[i].times, alone.times)
        assert not difference(streams.histories[i].contexts, alone.contexts)
        one = decode(bytes(stream), case.image, replace(options), encapsulation, source=i)
        assert i or not difference(one.pcs(), case.pcs)
    assert sum(streams.accounting[1:]) == len(stream)


@examples
@given(st.binary(max_size=300), seeds, any_options, st.booleans())
def test_no_bytes_raise_or_are_miscounted(noise: bytes, seed: int, drawn: dict[str, Any], wrapped: bool) -> None:
    case = Case(seed, drawn, steps=20)
    packets = b"".join(case.framed([noise[i : i + 9]]) for i in range(0, len(noise), 9))
    for data in (noise, case.trace[:9] + noise, packets, case.trace + packets, case.trace + noise * 20):
        check_bookkeeping(case.decode(data, wrapped=wrapped), data)


@examples
@given(seeds, any_options, rates, st.randoms(use_true_random=False))
def test_a_flipped_bit_loses_no_more_than_to_the_next_sync(
    seed: int, drawn: dict[str, Any], trap_rate: float, rng: random.Random
) -> None:
    """In a payload, or the trace ends there: what came before is all there, and so is what comes after the next sync.

    (A damaged length moves all packets behind it: what then follows is not bound to be found again.)
    """
    case = periodic(seed, drawn, trap_rate=trap_rate)
    places = starts(case)
    for _ in range(5):
        index = rng.randrange(len(places))
        offset, packet = places[index]
        at = offset + 1 + rng.randrange(len(packet))
        data = bytearray(case.trace)
        data[at] ^= 1 << rng.randrange(8)
        cut = rng.random() < 0.3
        if cut:
            del data[at:]
        history = case.decode(bytes(data))
        check_bookkeeping(history, bytes(data))
        check_possible(case.program, history)
        options = replace(case.options, stop_at_error=True)
        check_stop_at_error(decode(bytes(data), case.image, options, Encapsulation()), bytes(data), history)
        # What the packet before says may wait for this one (its address, or that of the next occurrence).
        before = [pc for pc in case.decode(case.trace[: places[max(index - 1, 0)][0]]).pcs() if pc >= 0]
        assert not difference(history.pcs(0, len(before)), before)
        assert not difference(case.pcs[: len(before)], before)
        later = [start for start, after in places[index + 1 :] if is_sync(case, after)]
        if later and not cut:
            count = len(case.decode(case.trace[later[0] :]))
            assert not difference(history.pcs(len(history) - count), case.pcs[len(case.pcs) - count :])


@examples
@given(seeds, any_options, rates, st.sampled_from([0.05, 0.3]))
def test_what_the_encoder_lost_or_left_out_is_a_gap(
    seed: int, drawn: dict[str, Any], trap_rate: float, breaks: float
) -> None:
    """Packets lost (trace_lost) with a restart, and tracing that is off for a while: the pieces ran, in this order."""
    case = Case(seed, drawn, marks=False, breaks=breaks, trap_rate=trap_rate)
    history = case.decode(case.trace)
    check_bookkeeping(history, case.trace)
    check_pieces_ran(history, case.pcs, *BREAKS)
    assert not [event for event in history.events if event.kind in (EventKind.MISMATCH, EventKind.LOSS)]


@examples
@given(seeds, any_options, rates, st.randoms(use_true_random=False))
def test_lost_packets_never_make_an_impossible_step(
    seed: int, drawn: dict[str, Any], trap_rate: float, rng: random.Random
) -> None:
    """Whole packets taken out where nobody says so: E-Trace has no count to notice it by, but the code goes its way."""
    case = periodic(seed, drawn, trap_rate=trap_rate)
    for _ in range(3):
        first = rng.randrange(len(case.packets))
        kept = case.framed(case.packets[:first] + case.packets[first + rng.randint(1, 4) :])
        history = case.decode(kept)
        check_bookkeeping(history, kept)
        check_possible(case.program, history)


@examples
@given(seeds, any_options, rates, st.sampled_from([2, 6, 40]))
def test_code_that_is_not_there(seed: int, drawn: dict[str, Any], trap_rate: float, size: int) -> None:
    """The image lacks the last bytes: what ran in the rest is found between the gaps, in order, as it was."""
    case = periodic(seed, drawn, trap_rate=trap_rate)
    image = type(case.image)(case.program.xlen)
    image.add_code(case.program.base, case.program.code[:-size])
    history = decode(case.trace, image, case.options, Encapsulation())
    check_bookkeeping(history, case.trace)
    check_pieces_ran(history, case.pcs, *BREAKS)
