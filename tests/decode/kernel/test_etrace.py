"""The kernel and Python make the same history of the same packets, whatever these are, in whatever they come."""

import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder
from rvtrace_gdb.decode.etrace.encapsulation import CannotCarry, ContentKind, Encapsulation, LostBytes, SourcePackets
from rvtrace_gdb.decode.etrace.encoder.options import ResyncMode
from rvtrace_gdb.decode.etrace.kernel_hart import PacketKernelHart
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.kernel.loading import kernel
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.random_programs import Case, any_options
from tests.decode.etrace.worked_examples import address, branches, start
from tests.decode.kernel.histories import decoded_both_ways, followed_both_ways
from tests.decode.kernel.test_ntrace import chunks, damaged
from tests.decode.ntrace.messages import image_of
from tests.helpers.amounts import some_of

KERNEL = kernel()
pytestmark = pytest.mark.skipif(KERNEL is None, reason="there is no kernel to compare with")
examples = settings(derandomize=True, max_examples=some_of(80), deadline=None)
seeds = st.integers(0, 1 << 32)

ENCAPSULATIONS = (
    Encapsulation(),
    Encapsulation(),
    Encapsulation("smi"),
    Encapsulation("qemu"),
    Encapsulation("pulp"),
    Encapsulation("esp32"),
    Encapsulation("atb", timestamp_bytes=2, type_bits=1),
    Encapsulation(block_size=64),
)


@st.composite
def transports(draw: st.DrawFn) -> Encapsulation:
    """Each of them, and streams with all widths of source, type and timestamp."""
    return draw(
        st.one_of(
            st.sampled_from(ENCAPSULATIONS),
            st.builds(
                Encapsulation,
                name=st.sampled_from(["encap", "smi"]),
                src_bits=st.sampled_from([0, 1, 3, 7, 8, 11, 16]),
                timestamp_bytes=st.sampled_from([0, 1, 2, 5, 8]),
                type_bits=st.sampled_from([0, 1, 2, 5, 8]),
                extend_bit=st.sampled_from([5, 6, 7]),
                bit_packed=st.booleans(),
            ),
        )
    )


any_transport = transports()


def periodic(seed: int, drawn: dict[str, Any]) -> Case:
    """A case with many synchronizing packets."""
    return Case(seed, drawn | {"resync_disabled": False, "sync_mode": ResyncMode.PACKETS, "sync_max": 1}, steps=700)


def framed(case: Case, encapsulation: Encapsulation, rng: random.Random, source: int | None = None) -> list[bytes]:
    """The packets of *case*, and others and idle bytes between them as far as the transport has them."""
    framer, now = encapsulation.framer(), rng.randrange(1 << 40)
    own = (1 if encapsulation.name == "atb" else 0) if source is None else source
    others = encapsulation.type_bits > 0 or (encapsulation.name == "smi" and not encapsulation.fields.src_bits)
    made = [framer.synchronization()]
    for payload in case.packets * 3:
        now += rng.choice([0, 0, 5, 1 << 20, -3 if rng.random() < 0.01 else 1])
        time = now if encapsulation.timestamp_bytes and rng.random() < 0.7 else None
        try:
            made.append(framer.packet(payload, source=own, time=time))
            if others and rng.random() < 0.02:
                made.append(framer.packet(rng.randbytes(4), ContentKind.DATA, source=own))
        except CannotCarry:  # too long with all that is put before it
            continue
        if rng.random() < 0.02:
            made.append(framer.idle(rng.choice([1, 4, 40])))
    return made


def same(decoder: Any, pieces: list[bytes]) -> None:
    compiled, interpreted = decoded_both_ways(decoder, pieces)
    assert compiled.keys() == interpreted.keys()
    for src, expected in interpreted.items():
        for part, wanted in zip(compiled[src], expected, strict=True):
            assert part == wanted


@examples
@given(seeds, any_options, any_transport, st.booleans())
def test_undamaged_and_damaged_traces_in_pieces(
    seed: int, drawn: dict[str, Any], encapsulation: Encapsulation, period: bool
) -> None:
    rng = random.Random(seed)
    case = periodic(seed, drawn) if period else Case(seed, drawn, steps=700)
    limit, split, wrapped = rng.choice([1, 40, 1 << 17]), rng.random() < 0.5, rng.random() < 0.5
    pinned, sync_packets = rng.random() < 0.7, rng.choice([0, 0, 32])
    options = replace(case.options, pinned=pinned, sync_packets=sync_packets, stop_at_error=rng.random() < 0.1)
    decoder = partial(
        StreamDecoder, case.image, options, encapsulation, memo_limit=limit, split=split, wrapped=wrapped
    )
    trace = b"".join(framed(case, encapsulation, rng))
    for places in (0, 1, 20):
        data = damaged(trace, rng, places)
        same(decoder, chunks(data, rng))
        same(decoder, [data])


@examples
@given(seeds, any_options, st.sampled_from([3, 8]), st.sampled_from([0, 2]), st.integers(2, 4))
def test_several_sources(seed: int, drawn: dict[str, Any], src_bits: int, timestamp_bytes: int, harts: int) -> None:
    rng = random.Random(seed)
    encapsulation = Encapsulation(src_bits=src_bits, timestamp_bytes=timestamp_bytes)
    cases = [Case(seed + i, drawn, steps=200) for i in range(8)]
    cases = [case for case in cases if case.program.xlen == cases[0].program.xlen][:harts]
    queues = [framed(case, encapsulation, rng, source) for source, case in enumerate(cases)]
    stream = bytearray()
    while any(queues):
        stream += rng.choice([queue for queue in queues if queue]).pop(0)
    programs = {source: case.image for source, case in enumerate(cases[: rng.choice([1, harts])])}
    for places in (0, 5):
        data = damaged(bytes(stream), rng, places)
        same(partial(StreamDecoder, programs, cases[0].options, encapsulation), chunks(data, rng))
        same(partial(StreamDecoder, cases[0].image, cases[0].options, encapsulation, split=False, only=1), [data])


@examples
@given(seeds, any_options, st.integers(0, 12))
def test_a_history_that_is_taken_while_it_grows(seed: int, drawn: dict[str, Any], places: int) -> None:
    rng = random.Random(seed)
    case = periodic(seed, drawn)
    pieces = chunks(damaged(case.trace * 3, rng, places), rng)
    decoder = partial(
        StreamDecoder, case.image, case.options, Encapsulation(), split=False, memo_limit=rng.choice([5, 1 << 17])
    )
    compiled, interpreted = followed_both_ways(decoder, pieces)
    for part, expected in zip(compiled, interpreted, strict=True):
        assert part == expected


@examples
@given(seeds, any_options, any_transport, st.booleans())
def test_packets_are_cut_and_read_as_without_the_kernel(
    seed: int, drawn: dict[str, Any], encapsulation: Encapsulation, wrapped: bool
) -> None:
    rng = random.Random(seed)
    trace = b"".join(framed(Case(seed, drawn, steps=100), encapsulation, rng))
    for places in (0, 10):
        pieces = chunks(damaged(trace, rng, places), rng)
        both = []
        for module in (KERNEL, None):
            deframer = encapsulation.deframer(wrapped=wrapped, module=module)
            items = [item for piece in pieces for item in deframer.feed(piece)] + list(deframer.finish())
            packets = [listed(item) for item in items if isinstance(item, SourcePackets)]
            lost = [item for item in items if isinstance(item, LostBytes)]
            both.append((packets, lost, sum(item.length for item in items)))
        assert both[0] == both[1]


def listed(packets: SourcePackets) -> SourcePackets:
    """The same, with lists."""
    times = None if packets.times is None else list(packets.times)
    return packets._replace(
        payloads=list(packets.payloads), offsets=list(packets.offsets), sizes=list(packets.sizes), times=times
    )


def raw_packets(packets: list[dict[str, int]], options: Options) -> bytes:
    """Packets with these fields, each with its length before it."""
    payloads = [write(packet, options.parameters, options.modes) for packet in packets]
    return b"".join(bytes([len(payload)]) + payload for payload in payloads)


ROUNDS = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.c_beqz(-4), asm.c_beqz(-4), asm.c_j(-8)]))
JUMPS = image_of((0x100, [asm.c_jr(10)] * 4))


@examples
@given(seeds, st.integers(1, 4))
def test_packets_that_depend_on_many_states_of_the_predictor(seed: int, bpred_size: int) -> None:
    rng = random.Random(seed)
    packets = [start(0x100)]
    for _ in range(400):
        outcomes = branches(*rng.choices([0, 1], [rng.choice([1, 9]), 1], k=31))
        count = {"format": 0, "subformat": 0, "branch_count": rng.choice([0, 1, 2, 5]), "branch_fmt": 0}
        packets.append(rng.choices([start(0x100), outcomes, count], [1, 10, 40])[0])
    options = Options(Parameters(bpred_size=bpred_size), Modes(branch_prediction=True), pinned=True)
    data = raw_packets(packets, options)
    same(partial(StreamDecoder, ROUNDS, options, Encapsulation()), chunks(data * 2, rng))


@examples
@given(seeds, st.integers(0, 2))
def test_packets_that_depend_on_many_targets_in_the_cache(seed: int, cache_size: int) -> None:
    rng = random.Random(seed)
    packets = [start(0x100)]
    for _ in range(400):
        entered = address(0x100 + 2 * rng.randrange(4))
        cached = {"format": 0, "subformat": 1, "index": rng.randrange(1 << cache_size), "branches": 0}
        packets.append(rng.choices([start(0x100), entered, cached], [1, 10, 20])[0])
    parameters = Parameters(cache_size=cache_size, f0s_width=1)
    options = Options(parameters, Modes(jump_target_cache=True, full_address=True), pinned=True)
    data = raw_packets(packets, options)
    same(partial(StreamDecoder, JUMPS, options, Encapsulation()), chunks(data * 2, rng))


def test_what_was_forgotten_is_let_go() -> None:
    """Of a trace without an end: the kernel keeps no path of a step that is forgotten, once it was taken away."""
    case = Case(5, {"branch_prediction": True, "bpred_size": 4, "jump_target_cache": True, "cache_size": 3}, steps=2000)
    builder = IncrementalBuilder()
    decoder = StreamDecoder(
        case.image, case.options, Encapsulation(), memo_limit=20, split=False, builders=lambda source: builder
    )
    memory = 0
    for turn in range(60):
        decoder.feed(case.trace)
        builder.take()
        hart = decoder._harts[0]
        assert isinstance(hart, PacketKernelHart)
        steps, paths, pending, size = hart._kernel.sizes()
        assert steps <= 20 and paths <= 40 and pending == 0
        memory = size if turn < 30 else memory
        assert size <= memory


def test_arguments_that_would_reach_beyond_the_data_are_refused() -> None:
    assert KERNEL is not None
    loop = KERNEL.Kernel(bytes(256 * 6), False, False, 0, 16, 8)
    tables = bytearray(4), bytearray(8 * 4), bytearray(4)
    for at, index, bits in ((-1, 0, 5), (3, 0, 5), (0, -1, 5), (0, 0, 9)):
        with pytest.raises(ValueError):
            loop.run_packets(b"\x01\x03", at, index, bits, True, 0, False, None, None, *tables)
    with pytest.raises(ValueError):
        loop.run_packets(b"\x01\x03", 0, 0, 5, True, 0, False, bytes(16), b"\0", *tables)
    with pytest.raises(ValueError):
        loop.run_packets(b"\x01\x03", 0, 0, 5, True, 0, False, None, None, bytearray(4), bytearray(8), bytearray(4))
    nothing: tuple[Any, ...] = (None, (), (), 0, None, None, (), 0, 0, -1, (), ())
    with pytest.raises(ValueError):
        loop.learn_packet(0, bytes(5000), *nothing)
    with pytest.raises(ValueError):
        loop.learn_packet(0, b"\x03", *nothing[:-2], ((0, b"\0"),), ())
    # A step that depends on entries, and changes entries, which the tables do not have.
    loop.learn_packet(0, b"\x03", (9, None), (), (), 0, None, None, (), 0, 0, 1, ((9, bytes(4)),), ((9, 5),))
    loop.learn_packet(0, b"\x04", None, ((9, 1),), (), 0, None, None, (), 0, 0, -1, (), ())
    loop.go(0, 0, None, None, False)
    assert loop.run_packets(b"\x01\x03\x01\x04", 0, 0, 5, True, 0, False, None, None, *tables)[:2] == (1, 2)
    assert tables == (bytearray(b"\1\1\1\1"), bytearray(32), bytearray(4))
    for wrong in (b"", bytes(1286), b"\xff" * 1287):
        with pytest.raises(ValueError):
            KERNEL.cut_packets(wrong, b"\x01\x03", 0)
