"""What is decoded while it arrives is what the whole bytes give, however they are cut, in bounded memory."""

import gc
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.history.builder import WAITING_LIMIT, IncrementalBuilder
from rvtrace_gdb.decode.history.history import GAP, History, Path, RepeatPath
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.stream import StreamFollower, StreamSource
from rvtrace_gdb.views import text_rows
from tests.decode.etrace import random_programs
from tests.decode.etrace.test_damage import periodic as etrace_periodic
from tests.decode.ntrace.encodings import Case, any_fields, periodic
from tests.decode.ntrace.messages import located
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(15), deadline=None)
seeds = st.integers(0, 1 << 32)
randoms = st.builds(random.Random, seeds)
MANY = 3000  # positions looked at: one flipped bit can make a loop of four billion rounds
_REPEATED = 5


def row(history: History, position: int) -> tuple[Any, ...]:
    """What a listing can show of a position."""
    pc = history.pc(position)
    text = history.gap_at(position).as_gap if pc == GAP else ""
    return position, pc, text, history.context_at(position), history.time_at(position)


Shown = tuple[list[tuple[Any, ...]], list[str]]
"""(rows, lines of events) of a hart."""


def at_once(data: bytes, program: Program, trace_options: TraceOptions, wrapped: bool = False) -> dict[int, Shown]:
    """By the decoder of whole traces. Of harts in which nothing could be decoded nothing is shown."""
    found = registry.decode(data, program, trace_options, wrapped=wrapped).histories
    started = {
        source: history
        for source, history in found.items()
        if len(history) or any(event.next_pc is not None for event in history.events)
    }
    return {
        source: (
            [row(history, i) for i in range(min(len(history), MANY))],
            [text_rows.event_line(history, event, program) for event in history.events],
        )
        for source, history in started.items()
    }


def cut(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """In pieces of any size, some of them empty, as a probe may deliver them."""
    most, at = rng.choice([1, 3, 20, 500]), 0
    while at < len(data):
        size = rng.randint(0, most)
        yield data[at : at + size]
        at += size


def followed(
    pieces: Iterable[bytes], program: Program, trace_options: TraceOptions, wrapped: bool = False
) -> dict[int, Shown]:
    following = StreamFollower(StreamSource(trace_options, None, alone=False), program, wrapped=wrapped)
    shown: dict[int, Shown] = {}
    total = gaps = 0

    def take(arrived: Iterable[Any]) -> None:
        nonlocal total, gaps
        for hart, piece in arrived:
            rows, lines = shown.setdefault(hart, ([], []))
            rows += [row(piece.history, i) for i in range(piece.begin, min(piece.end, MANY))]
            lines += [text_rows.event_line(piece.history, event, program) for event in piece.events]
            assert all(event.position >= piece.begin - 1 for event in piece.events), "they are in the piece's rows"
            total += piece.instructions
            gaps += piece.gaps

    for data in pieces:
        take(following.feed(data))
    take(following.finish())
    assert (following.counts.instructions, following.counts.gaps) == (total, gaps)
    return {hart: both for hart, both in shown.items() if both != ([], [])}


def check(
    data: bytes, program: Program, trace_options: TraceOptions, rng: random.Random, wrapped: bool = False
) -> dict[int, Shown]:
    expected = at_once(data, program, trace_options, wrapped)
    assert followed(cut(data, rng), program, trace_options, wrapped) == expected
    return expected


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, some left out, some noise in between."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(made) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            del made[at : at + rng.randint(1, 30)]
        elif kind == 1:
            made[at:at] = rng.randbytes(rng.randint(1, 30))
        elif at < len(made):
            made[at] ^= 1 << rng.randrange(8)
    return bytes(made)


@examples
@given(seeds, any_fields, st.sampled_from([0, 0.1]), randoms)
def test_n_trace_cut_anyhow(seed: int, fields: dict[str, Any], breaks: float, rng: random.Random) -> None:
    case = Case(seed, fields, trap_rate=0.02, breaks=breaks)
    rows, _ = check(case.trace, case.program.image(), case.options, rng)[0]
    if not breaks:
        assert [pc for _, pc, *_ in rows] == case.run.pcs[:MANY]
    regular = periodic(seed, fields)
    check(damaged(regular.trace, rng), regular.program.image(), regular.options, rng)


@examples
@given(seeds, any_fields, randoms)
def test_n_trace_attached_in_the_middle(seed: int, fields: dict[str, Any], rng: random.Random) -> None:
    case = periodic(seed, fields)
    middle = case.trace[rng.randrange(len(case.trace)) :]
    check(middle, case.program.image(), case.options, rng, wrapped=True)
    check(middle, case.program.image(), case.options, rng)


@examples
@given(seeds, random_programs.any_options, st.sampled_from([0, 0.1]), randoms)
def test_e_trace_cut_anyhow(seed: int, drawn: dict[str, Any], breaks: float, rng: random.Random) -> None:
    case = random_programs.Case(seed, drawn, breaks=breaks)
    trace_options = EtraceTraceOptions(case.options, Encapsulation())
    rows, _ = check(case.trace, case.image, trace_options, rng)[0]
    if not breaks:
        assert [pc for _, pc, *_ in rows] == case.pcs[:MANY]
    regular = etrace_periodic(seed, drawn)
    trace_options = EtraceTraceOptions(regular.options, Encapsulation())
    check(damaged(regular.trace, rng), regular.image, trace_options, rng)
    check(regular.trace[rng.randrange(len(regular.trace)) :], regular.image, trace_options, rng, wrapped=True)


@examples
@given(seeds, any_fields, randoms)
def test_several_harts_with_damage(seed: int, fields: dict[str, Any], rng: random.Random) -> None:
    """Each hart's lines are in order; one program, as on a chip. Noise that looks like another hart's is not shown."""
    cases = [Case(seed, fields, (3, src), steps=150, breaks=0.05) for src in (1, 6)]
    queues = [[raw for _, raw in located(case.trace)] for case in cases]
    stream = bytearray()
    while any(queues):
        stream += rng.choice([queue for queue in queues if queue]).pop(0)
    trace_options = replace(cases[0].options, src_id=None)
    found = check(bytes(stream), cases[0].program.image(), trace_options, rng)
    assert found.keys() == {1, 6}
    check(damaged(bytes(stream), rng), cases[0].program.image(), trace_options, rng)


# Bounded memory


def test_what_is_kept_does_not_grow_with_the_stream() -> None:
    """As many objects after five times as many bytes: no list of entries, events, times, contexts or losses grows."""
    fields = {"timestamps": True, "context": True}
    case = periodic(7, fields, breaks=0.05)
    data = damaged(case.trace, random.Random(1))
    following = StreamFollower(StreamSource(case.options, None, alone=True), case.program.image())

    def size_after(rounds: int) -> int:
        for _ in range(rounds):
            for _ in following.feed(data):
                pass
        gc.collect()
        return sum(len(thing) for thing in reached(following) if isinstance(thing, list | dict | set))

    first = size_after(10)
    assert following.counts.losses > 50
    assert size_after(40) <= first * 1.1


def reached(start: object) -> list[object]:
    """All objects that can be got at from one, without modules and classes."""
    found: dict[int, object] = {}
    waiting = [start]
    while waiting:
        one = waiting.pop()
        if id(one) not in found and not isinstance(one, type) and type(one).__name__ not in ("module", "function"):
            found[id(one)] = one
            waiting += gc.get_referents(one)
    return list(found.values())


def test_noise_without_an_end_is_bounded_too() -> None:
    """Losses that wait to be told how it went on are let go in the end."""
    case = Case(3)
    following = StreamFollower(StreamSource(case.options, None, alone=True), case.program.image())
    noise = b"\x02\x03" * (1 << 13)  # each pair is a message with a reserved MSEO
    held = []
    for _ in following.feed(case.trace):
        pass
    for _ in range(4):
        for _ in following.feed(noise):
            pass
        (builder,) = following._builders.values()
        held.append(len(builder._events))
    assert following.counts.losses >= 4 << 13 >= 2 * WAITING_LIMIT
    assert max(held) <= WAITING_LIMIT


def test_pieces_share_no_list_that_changes() -> None:
    """A piece shows the same, later, too."""
    builder = IncrementalBuilder()
    builder.append(Path([(2, 4)]))
    first = builder.take()
    for _ in range(10):
        builder.append(Path([(6,)]))
        builder.append(RepeatPath(Path([(8, 10)]), _REPEATED))
    second = builder.take()
    assert list(first.history.pcs(first.begin, first.end)) == [2, 4]
    assert list(second.history.pcs(second.begin, second.end)) == [6, *[8, 10] * _REPEATED] * 10
    assert (second.begin, second.end) == (2, 2 + 10 * 11)
    with pytest.raises(IndexError):
        first.history.pc(2)
