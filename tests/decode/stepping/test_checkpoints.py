"""A decoder that goes on from a checkpoint gives what one gives that has decoded everything: the same numbers, rows,
events, contexts, times, gaps and accounting from there on.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace import decoder as etrace_decoder
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.history.checkpoints import NoCheckpoint
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from tests.decode.etrace.random_programs import Case as EtraceCase
from tests.decode.etrace.random_programs import any_options
from tests.decode.etrace.test_damage import periodic as periodic_etrace
from tests.decode.kernel.test_ntrace import case_of, damaged, interleaved
from tests.decode.ntrace.encodings import SOURCES, any_fields
from tests.decode.stepping.test_duplicates import seeds, small_chunks
from tests.helpers.amounts import some_of, thorough

examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)


def rest(history: History, begin: int) -> tuple[object, ...]:
    """What is in a history from a position on, but for what only the positions before it decide."""
    length = len(history)
    return (
        length,
        list(history.pcs(begin, length)),
        [event for event in history.events if event.position >= begin],
        [history.context_at(i) for i in range(begin, length)],
        [history.time_at(i) for i in range(begin, length + 1)],
        [gap for gap in history.gap_positions if gap >= begin],
        history.accounting,
    )


def check_checkpoints(make: Callable[[], Any], pieces: Sequence[bytes]) -> int:
    """Go on from the checkpoint after each piece, and return how many there were."""
    decoder, places = make(), []
    for number, piece in enumerate(pieces, 1):
        decoder.feed(piece)
        try:
            places.append((number, decoder.place()))
        except NoCheckpoint:
            continue
    whole, accounting = decoder.finish()
    for number, place in places[:: max(len(places) // 5, 1)]:
        other = make()
        other.go_on_from(json.loads(json.dumps(place.checkpoint)))
        for piece in pieces[number:]:
            other.feed(piece)
        histories, account = other.finish()
        assert (histories.keys(), account) == (whole.keys(), accounting)
        for source, history in histories.items():
            begin = place.positions.get(source, 0)
            assert rest(history, max(begin - 1, 0)) == rest(whole[source], max(begin - 1, 0))
    return len(places)


@examples
@given(seeds, any_fields, SOURCES, st.integers(0, 2), st.integers(0, 8), st.booleans(), st.booleans())
def test_ntrace(
    seed: int,
    fields: dict[str, Any],
    source: tuple[int, int],
    period: int,
    places: int,
    compiled: bool,
    wrapped: bool,
) -> None:
    rng = random.Random(seed)
    case = case_of(seed, fields, source, period)
    split = rng.random() < 0.5
    make = partial(StreamDecoder, case.program.image(), case.options, split=split, compiled=compiled, wrapped=wrapped)
    assert check_checkpoints(make, small_chunks(damaged(case.trace * 2, rng, places), rng)) > 3


@examples
@given(seeds, any_fields, st.integers(2, 4), st.integers(0, 8), st.booleans())
def test_several_sources(seed: int, fields: dict[str, Any], harts: int, places: int, compiled: bool) -> None:
    rng = random.Random(seed)
    cases, stream = interleaved(seed, fields, harts, rng)
    options = Options(**{**vars(cases[0].options), "src_id": None})
    make = partial(StreamDecoder, cases[0].program.image(), options, compiled=compiled)
    check_checkpoints(make, small_chunks(damaged(stream, rng, places), rng))


@thorough("test_ntrace")
def test_call_stack() -> None:
    """It is what implicit returns need, and few places of a random program are inside a call."""
    fields = {"implicit_return": ImplicitReturn.FULL_STACK}
    for seed in range(12):
        case = case_of(seed, fields, (0, 0), 0)
        make = partial(StreamDecoder, case.program.image(), case.options)
        assert check_checkpoints(make, small_chunks(case.trace, random.Random(seed))) > 3


@examples
@given(seeds, any_options, st.sampled_from([0, 0, 4, 8]), st.booleans(), st.booleans())
def test_etrace(seed: int, drawn: dict[str, Any], places: int, compiled: bool, wrapped: bool) -> None:
    rng = random.Random(seed)
    is_periodic = rng.random() < 0.6
    case = periodic_etrace(seed, drawn) if is_periodic else EtraceCase(seed, drawn, steps=1500)
    options = replace(case.options, sync_packets=16) if is_periodic else case.options
    make = partial(
        etrace_decoder.StreamDecoder, case.program.image(), options, Encapsulation(), compiled=compiled, wrapped=wrapped
    )
    found = check_checkpoints(make, small_chunks(damaged(case.trace * 2, rng, places), rng))
    assert found > 3 or places


@thorough("test_etrace")
def test_branch_predictor() -> None:
    """Its states decide what packets mean long after they were trained."""
    for seed in range(6):
        case = EtraceCase(seed, {"branch_prediction": True, "bpred_size": 4, "resync_disabled": True}, steps=2500)
        for compiled in (True, False):
            make = partial(
                etrace_decoder.StreamDecoder, case.program.image(), case.options, Encapsulation(), compiled=compiled
            )
            assert check_checkpoints(make, small_chunks(case.trace, random.Random(seed))) > 3
