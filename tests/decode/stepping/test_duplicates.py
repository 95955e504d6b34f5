"""A copy of a decoder ends the trace and changes nothing: a trace that grows has the history of its bytes, always."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace import decoder as etrace_decoder
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.options import Modes
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from tests.decode.etrace.data import test_history as data_trace
from tests.decode.etrace.encoder_vectors import image
from tests.decode.etrace.random_programs import any_options
from tests.decode.etrace.test_damage import periodic as periodic_etrace
from tests.decode.kernel.histories import shape
from tests.decode.kernel.test_ntrace import damaged
from tests.decode.ntrace.encodings import SOURCES, any_fields, periodic
from tests.helpers.amounts import some_of, thorough

examples = settings(derandomize=True, max_examples=some_of(40), deadline=None)
seeds = st.integers(0, 1 << 32)


def ended(decoder: Any) -> dict[int, tuple[object, ...]]:
    """All that is in the histories of a decoder that ends here, by source."""
    histories, accounting = decoder.finish()
    accesses = {source: history.accesses for source, history in histories.items()}
    return {source: (*shape(history), accounting, accesses[source]) for source, history in histories.items()}


def small_chunks(data: bytes, rng: random.Random) -> list[bytes]:
    """*data* in about thirty pieces."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(30))
    return [data[begin:end] for begin, end in pairwise([0, *cuts, len(data)])]


def check_growth(make: Callable[[], Any], pieces: Sequence[bytes]) -> None:
    """A copy ends after each piece, and has the history of a decoder that has read no more."""
    growing = make()
    for number, piece in enumerate(pieces):
        growing.feed(piece)
        found = ended(growing.duplicate())
        if number % max(len(pieces) // 4, 1) == 0:
            assert found == ended(read(make(), pieces[: number + 1]))
    assert ended(growing.duplicate()) == ended(growing) == ended(read(make(), pieces))


def read(decoder: Any, pieces: Sequence[bytes]) -> Any:
    """The decoder, which has read them. They come alike, because equal entries are put together piece by piece."""
    for piece in pieces:
        decoder.feed(piece)
    return decoder


@examples
@given(seeds, any_fields, SOURCES, st.integers(0, 8), st.booleans())
def test_ntrace(seed: int, fields: dict[str, Any], source: tuple[int, int], places: int, compiled: bool) -> None:
    rng = random.Random(seed)
    case = periodic(seed, fields)
    split = rng.random() < 0.5
    make = partial(StreamDecoder, case.program.image(), case.options, split=split, compiled=compiled)
    check_growth(make, small_chunks(damaged(case.trace * 2, rng, places), rng))


@examples
@given(seeds, any_options, st.integers(0, 8), st.booleans())
def test_etrace(seed: int, drawn: dict[str, Any], places: int, compiled: bool) -> None:
    rng = random.Random(seed)
    case = periodic_etrace(seed, drawn)
    make = partial(
        etrace_decoder.StreamDecoder, case.program.image(), case.options, Encapsulation(), compiled=compiled
    )
    check_growth(make, small_chunks(damaged(case.trace * 2, rng, places), rng))


@thorough("test_etrace")
def test_data_trace() -> None:
    modes, rng = Modes(), random.Random(1)
    stream = data_trace.trace(modes)
    options = EncoderOptions(data_trace.PARAMETERS, modes).decoder
    make = partial(etrace_decoder.StreamDecoder, image("qsort"), options, data_trace.TYPED)
    for places in (0, 10):
        check_growth(make, small_chunks(damaged(stream[:20000], rng, places), rng))
