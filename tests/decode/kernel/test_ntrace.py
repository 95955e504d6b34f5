"""The kernel and Python make the same history of the same bytes, whatever these are and however they come."""

import gc
import random
import weakref
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace import kernel_hart
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Dialect, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.kernel.histories import decoded_both_ways, followed_both_ways
from tests.decode.ntrace.encodings import SOURCES, Case, any_fields, periodic
from tests.decode.ntrace.messages import image_of, located, message, started
from tests.helpers.amounts import some_of, thorough

KERNEL = kernel()
pytestmark = pytest.mark.skipif(KERNEL is None, reason="there is no kernel to compare with")
examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
seeds = st.integers(0, 1 << 32)


def chunks(data: bytes, rng: random.Random) -> list[bytes]:
    """*data* in pieces of all sizes."""
    pieces, at = [], 0
    while at < len(data):
        size = rng.choice([1, 7, rng.randrange(1, 4000), len(data)])
        pieces.append(data[at : at + size])
        at += size
    return pieces


def damaged(data: bytes, rng: random.Random, places: int) -> bytes:
    """*data* with other bytes, missing bytes and more bytes, among them those that idle encoders send."""
    changed = bytearray(data)
    for _ in range(places):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            changed[at : at + 1] = bytes([rng.choice([0xFF, 0x03, rng.randrange(256)])])
        elif kind == 1:
            del changed[at : at + rng.randrange(1, 6)]
        elif kind == 2:
            changed[at:at] = bytes(rng.choice([0xFF, rng.randrange(256)]) for _ in range(rng.randrange(1, 30)))
        else:
            start = rng.randrange(len(data) + 1)
            changed[at:at] = data[start : start + rng.randrange(1, 60)]
    return bytes(changed)


def same(decoder: Any, pieces: list[bytes]) -> None:
    compiled, interpreted = decoded_both_ways(decoder, pieces)
    assert compiled.keys() == interpreted.keys()
    for src, expected in interpreted.items():
        for part, wanted in zip(compiled[src], expected, strict=True):
            assert part == wanted


def case_of(seed: int, fields: dict[str, Any], source: tuple[int, int], period: int) -> Case:
    """One that repeats what it does, so that steps are remembered; of those that synchronize periodically, if asked."""
    return periodic(seed, fields, period) if period else Case(seed, fields, source, steps=1500)


@examples
@given(seeds, any_fields, SOURCES, st.integers(0, 2))
def test_undamaged_and_damaged_traces_in_pieces(
    seed: int, fields: dict[str, Any], source: tuple[int, int], period: int
) -> None:
    rng = random.Random(seed)
    case = case_of(seed, fields, source, period)
    limit, split, wrapped = rng.choice([1, 40, 1 << 17]), rng.random() < 0.5, rng.random() < 0.5
    decoder = partial(
        StreamDecoder, case.program.image(), case.options, memo_limit=limit, split=split, wrapped=wrapped
    )
    for places in (0, 1, 20):
        data = damaged(case.trace * 3, rng, places)
        same(decoder, chunks(data, rng))
        same(decoder, [data])


@examples
@given(seeds, any_fields)
def test_decoding_that_stops_at_the_first_loss(seed: int, fields: dict[str, Any]) -> None:
    rng = random.Random(seed)
    case = periodic(seed, fields)
    options = replace(case.options, stop_at_error=True)
    data = damaged(case.trace * 2, rng, 2)
    same(partial(StreamDecoder, case.program.image(), options), chunks(data, rng))


def interleaved(seed: int, fields: dict[str, Any], harts: int, rng: random.Random) -> tuple[list[Case], bytes]:
    """The traces of several harts, one message of any of them after the other, and idle bytes in between."""
    cases = [Case(seed + i, fields, (3, i), steps=300) for i in range(8)]
    cases = [case for case in cases if case.program.xlen == cases[0].program.xlen][:harts]
    queues = {case.options.src_id or 0: [raw for _, raw in located(case.trace * 2)] for case in cases}
    stream = bytearray()
    while any(queues.values()):
        stream += rng.choice([queue for queue in queues.values() if queue]).pop(0) + b"\xff" * rng.choice([0, 0, 0, 3])
    return cases, bytes(stream)


@examples
@given(seeds, any_fields, st.integers(2, 4))
def test_several_sources(seed: int, fields: dict[str, Any], harts: int) -> None:
    rng = random.Random(seed)
    cases, stream = interleaved(seed, fields, harts, rng)
    programs = {case.options.src_id or 0: case.program.image() for case in cases[: rng.choice([1, harts])]}
    options = Options(**{**vars(cases[0].options), "src_id": None})
    for places in (0, 5):
        data = damaged(stream, rng, places)
        same(partial(StreamDecoder, programs, options), chunks(data, rng))
        same(partial(StreamDecoder, cases[0].program.image(), options), [data])


@examples
@given(seeds, any_fields, st.integers(0, 12))
def test_a_history_that_is_taken_while_it_grows(seed: int, fields: dict[str, Any], places: int) -> None:
    rng = random.Random(seed)
    case = periodic(seed, fields)
    pieces = chunks(damaged(case.trace * 3, rng, places), rng)
    limit = rng.choice([5, 1 << 17])
    decoder = partial(StreamDecoder, case.program.image(), case.options, split=False, memo_limit=limit)
    compiled, interpreted = followed_both_ways(decoder, pieces)
    for part, expected in zip(compiled, interpreted, strict=True):
        assert part == expected


@thorough("decode/kernel/test_etrace.py::test_what_was_forgotten_is_let_go")
def test_what_was_forgotten_is_let_go() -> None:
    """Of a trace without an end: the kernel keeps no path of a step that is forgotten, once it was taken away."""
    case = Case(5, {"sync_mode": 0}, steps=3000)
    builder = IncrementalBuilder()
    decoder = StreamDecoder(
        case.program.image(), case.options, memo_limit=20, split=False, builders=lambda source: builder
    )
    decoder.feed(case.trace)
    hart = decoder._harts[0]
    assert isinstance(hart, kernel_hart.KernelHart)
    for _ in range(100):
        decoder.feed(case.trace)
        builder.take()
        steps, paths, pending, _ = hart._kernel.sizes()
        assert steps <= 20 and paths <= 20 and pending == 0
    *_, memory = hart._kernel.sizes()
    for _ in range(100):
        decoder.feed(case.trace)
        builder.take()
    assert hart._kernel.sizes()[3] <= memory


def test_a_path_lives_as_long_as_a_step_or_the_history_has_it() -> None:
    class Watched(Path):
        __slots__ = ("__weakref__",)

    assert KERNEL is not None
    kernel = KERNEL.Kernel(bytes(256 * 6), False, False, 0, 16, 8)
    path = Watched([(2, 4)])
    kept = weakref.ref(path)
    kernel.learn(0, b"\x00\x03", 0, (), 0, 0, path, (), 0)
    del path
    entries: list[Any] = []
    kernel.go(0, 0, None, None, False)
    assert kernel.run(b"\x00\x03" * 3, 0, 6)[0] == 0
    kernel.forget()
    gc.collect()
    assert kept() is not None
    assert kernel.flush(entries, 0, lambda path, times: path)[0] == 6
    assert entries == [kept()] * 3
    entries.clear()
    gc.collect()
    assert kept() is None


def test_arguments_that_would_reach_beyond_the_data_are_refused() -> None:
    assert KERNEL is not None
    kernel = KERNEL.Kernel(bytes(256 * 6), False, False, 0, 16, 8)
    for begin, end in ((-1, 2), (0, 3), (2, 1)):
        with pytest.raises(ValueError):
            kernel.run(b"\x00\x03", begin, end)
    with pytest.raises(ValueError):
        KERNEL.Kernel(b"", False, False, 0, 16, 8)
    with pytest.raises(ValueError):
        kernel.go(0, 0, (1, None, 17), None, False)
    with pytest.raises(ValueError):
        kernel.learn(0, bytes(5000), 0, (), 0, 0, None, (), 0)
    with pytest.raises(ValueError):
        KERNEL.sort(b"\x00\x03", 6, 17)
    for wrong in ("number", None, (1,)):
        with pytest.raises((TypeError, IndexError)):
            kernel.go(0, 0, ("a", wrong, 2), None, False)


LOOP = image_of((0x100, [asm.c_beqz(0), asm.C_NOP]))


@examples
@given(seeds, st.sampled_from([0, 12, 40, 61, 62, 64]), st.sampled_from([RATIFIED, SIFIVE]))
def test_clocks_that_wrap_go_back_and_overflow(seed: int, bits: int, dialect: Dialect) -> None:
    rng = random.Random(seed)
    large = [1 << rng.randrange(80) for _ in range(3)] if rng.random() < 0.5 else [4000]

    def tstamp() -> int | None:
        return rng.choice([None, rng.randrange(5), rng.randrange(4096), rng.choice([7, 7, 7, *large])])

    messages = [started(tstamp=rng.randrange(4000))]
    for _ in range(200):
        sync = rng.random() < 0.1
        branch = message("DirectBranchSync", sync=Sync.PERIODIC, icnt=1, faddr=0x80, tstamp=tstamp())
        messages.append(branch if sync else message("DirectBranch", icnt=1, tstamp=tstamp()))
    options = Options(btm=True, timestamps=True, timestamp_bits=bits, dialect=dialect)
    same(partial(StreamDecoder, LOOP, options), chunks(b"".join(messages), rng))


@pytest.mark.parametrize("seed", range(4))
def test_a_call_stack_deeper_than_what_is_kept(seed: int) -> None:
    """A function that calls itself at two places, thousands of times, and returns."""
    code = [asm.c_beqz(12), asm.c_beqz(6), asm.jal(-4, 1), asm.jal(-8, 1), asm.c_jr(1)]
    image = image_of((0x100, code))
    rng = random.Random(seed)
    messages = [started()]
    for deeper in (True, False, True, False):
        for _ in range(rng.randrange(150, 400)):
            outcomes = rng.choice([0, 0x1540, rng.getrandbits(30) & 0x15555555] if deeper else [0x3FFFFFFF, 0x2A])
            messages.append(message("ResourceFull", rcode=1, rdata=1 << 30 | outcomes))
    options = Options(implicit_return=ImplicitReturn.FULL_STACK)
    data = b"".join(messages)
    same(partial(StreamDecoder, image, options), chunks(data, rng))
    assert max(depths(image, options, data)) > 1500


def depths(image: Image, options: Options, data: bytes) -> list[int]:
    """The depth of the call stack after each message."""
    decoder = StreamDecoder(image, options)
    found = []
    for raw in [raw for _, raw in located(data)]:
        decoder.feed(raw)
        stack = decoder._harts[0]._stack
        found.append(stack[2] if stack is not None else 0)
    return found
