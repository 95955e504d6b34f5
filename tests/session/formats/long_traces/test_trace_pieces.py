"""A trace that is read in pieces gives what reading it as a whole gives, wherever it is cut and whatever is guessed."""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.coverage import ExecutionCounts
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.options import InstSyncMode
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.counting import stretches
from rvtrace_gdb.reports.coverage.gaps import gap_facts
from rvtrace_gdb.reports.coverage.piece_coverage import JoinedCoverage
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.reports.profile.piece_profile import JoinedProfile
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.formats import format as formats
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.long_traces import trace_pieces
from rvtrace_gdb.session.formats.long_traces.piece_chain import PieceChain, PieceStart
from rvtrace_gdb.session.formats.long_traces.trace_pieces import NoPieces, PieceBounds, PieceBytes, decoded_piece, scan
from rvtrace_gdb.session.queries.coverage.piece_coverages import piece_coverage
from rvtrace_gdb.session.queries.reports.piece_profiles import piece_profile
from rvtrace_gdb.support.errors import silent
from tests.decode.etrace.random_programs import Case as EtraceCase
from tests.decode.etrace.random_programs import any_options
from tests.decode.etrace.test_damage import periodic as periodic_etrace
from tests.decode.kernel.test_ntrace import case_of, damaged, interleaved
from tests.decode.ntrace.encodings import any_fields
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(60, 6), deadline=None)
seeds = st.integers(0, 1 << 32)
STEP = 96


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    """Steps so small that short traces have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_pieces, "STEP", STEP)
        patch.setattr(trace_pieces, "WARM_UP", 3 * STEP)
        patch.setattr(formats, "_PIECE", STEP)
        yield


class Pieces:
    """A trace that is read as a whole, and in pieces that begin at *cuts*."""

    def __init__(self, data: bytes, program: ContextImages, options: Any, *, wrapped: bool = False) -> None:
        self.data, self.program = data, program
        trace_format = registry.format_of(options)
        decoding = trace_format.decoding(data, program, options, wrapped=wrapped, stop_at_error=False)
        assert isinstance(decoding, formats.PiecewiseDecoding)
        self.make, self.times = decoding.make, trace_format.has_times(options)
        self.whole = decoding.result(silent)
        self.bytes = PieceBytes(data, 0, len(data))
        self.right, self.guesses = 0, 0

    def check(self, rng: random.Random) -> None:
        """Cut the trace at random places, and compare."""
        steps = range(STEP, len(self.data), STEP)
        cuts = sorted(rng.sample(steps, min(len(steps), rng.randint(1, 4))))
        try:
            starts, chain, bounds = self.scanned([0, *cuts, len(self.data)])
        except NoPieces:
            return
        assert chain.accounting._replace(total=len(self.data)) == self.whole.accounting
        facts = chain.source_facts()
        assert facts.keys() == self.whole.histories.keys()
        profiles, covered = self.profiles(starts, bounds), self.coverages(starts, bounds)
        for source, history in self.whole.histories.items():
            found = facts[source]
            assert (found.length, found.gaps, found.accounting) == (len(history), history.gaps, history.accounting)
            assert found.problems == tuple(history.doubtful_events) and found.counts == history.kind_counts
            assert covered[source] == self.counted(source, history)
            if len(history):
                assert in_full(profiles[source]) == in_full(self.profile(source, history))

    def profile(self, source: int, history: History) -> Profile:
        return hart_profile(CallHistory(history, self.program), source, trace_bytes=len(self.data))

    def counted(self, source: int, history: History) -> list[object]:
        whole = range(len(history))
        ran = stretches(history, self.program, whole)
        counts = {image: coverage.counts(history, places) for image, places in ran.items()}
        return [*in_numbers(counts), gap_facts(history, self.program, whole, overwritten=bool(source % 2))]

    def seed(self) -> Checkpoint:
        """A checkpoint from near the beginning. Raises NoPieces."""
        decoder = self.make()
        for at in range(0, len(self.data), STEP):
            decoder.feed(self.data[at : at + STEP])
            try:
                return decoder.checkpoint()
            except NoCheckpoint:
                continue
        raise NoPieces

    def scanned(self, cuts: list[int]) -> tuple[list[PieceStart], PieceChain, list[PieceBounds]]:
        """Scan the pieces: with guesses, and again where one is wrong."""
        chain, starts, seed = PieceChain(), list[PieceStart](), self.seed()
        bounds = [PieceBounds(begin, end, len(self.data)) for begin, end in pairwise(cuts)]
        for piece in bounds:
            start = chain.start
            if start is None or (start.place is not None and start.place.at >= piece.stop):
                raise NoPieces
            starts.append(start)
            try:
                found = scan(self.make, self.program, self.bytes, piece, seed if piece.start else None)
            except NoPieces:
                found = None
            taken = found is not None and chain.add(found)
            self.guesses, self.right = self.guesses + 1, self.right + taken
            if not taken:
                assert chain.add(scan(self.make, self.program, self.bytes, piece, start.place))
        return starts, chain, bounds

    def profiles(self, starts: list[PieceStart], bounds: list[PieceBounds]) -> dict[int, Profile]:
        joined: dict[int, JoinedProfile] = {}
        stacks: dict[int, KeptStacks] = {}
        for start, piece in zip(starts, bounds, strict=True):
            for part in decoded_piece(self.make, self.bytes, piece, start.place, start.firsts, times=self.times):
                known = stacks.get(part.source, start.stacks.get(part.source, KeptStacks()))
                found = piece_profile(part, self.program, known, part.source, trace_bytes=len(self.data))
                joined.setdefault(part.source, JoinedProfile()).add(found.profile)
                stacks[part.source] = found.stacks
        return {source: it.profile() for source, it in joined.items()}

    def coverages(self, starts: list[PieceStart], bounds: list[PieceBounds]) -> dict[int, list[object]]:
        joined: dict[int, JoinedCoverage] = {}
        for number, (start, piece) in enumerate(zip(starts, bounds, strict=True)):
            for part in decoded_piece(self.make, self.bytes, piece, start.place, start.firsts, times=self.times):
                known = start.stacks.get(part.source, KeptStacks())
                found = piece_coverage(part, self.program, known, (), overwritten=bool(part.source % 2))
                joined.setdefault(part.source, JoinedCoverage(self.program)).add(number, found.coverage)
        return {source: [*in_numbers(it.counts), it.facts] for source, it in joined.items()}


def in_numbers(counts: dict[Image, ExecutionCounts]) -> list[object]:
    """What ran of each program, in their order, without what did not."""
    return [
        [{key: number for key, number in part.items() if number} for part in counted[:4]] for counted in counts.values()
    ]


def in_full(profile: Profile) -> dict[str, str]:
    """All that is in a profile, with the order of everything."""
    return {name: repr(value) for name, value in vars(profile).items()}


@examples
@given(seeds, any_fields, st.integers(0, 2), st.sampled_from([0, 0, 1, 8]), st.booleans())
def test_ntrace(seed: int, fields: dict[str, Any], period: int, places: int, wrapped: bool) -> None:
    rng = random.Random(seed)
    case = case_of(seed, fields, (0, 0), period)
    data = damaged(case.trace * 3, rng, places)
    if len(data) > 6 * STEP:
        Pieces(data, ContextImages(case.program.image()), case.options, wrapped=wrapped).check(rng)


@examples
@given(seeds, any_fields, st.sampled_from([0, 0, 5]))
@example(seed=0, fields={"sync_mode": InstSyncMode.OFF}, places=0)  # a gap that is open through whole pieces
def test_ntrace_of_several_harts(seed: int, fields: dict[str, Any], places: int) -> None:
    rng = random.Random(seed)
    cases, stream = interleaved(seed, fields, 3, rng)
    options = type(cases[0].options)(**{**vars(cases[0].options), "src_id": None})
    data = damaged(stream, rng, places)
    if len(data) > 6 * STEP:
        Pieces(data, ContextImages(cases[0].program.image()), options).check(rng)


@examples
@given(seeds, any_options, st.booleans())
def test_etrace(seed: int, drawn: dict[str, Any], wrapped: bool) -> None:
    rng = random.Random(seed)
    case = periodic_etrace(seed, drawn) if rng.random() < 0.5 else EtraceCase(seed, drawn, steps=1500)
    data = case.trace * 3
    if len(data) > 6 * STEP:
        program, options = ContextImages(case.program.image()), EtraceTraceOptions(case.options, Encapsulation())
        Pieces(data, program, options, wrapped=wrapped).check(rng)


def test_guesses_are_right_where_a_trace_synchronizes() -> None:
    """So that pieces are read at the same time, and not one after the other."""
    right = guesses = 0
    for seed in range(3):
        case = case_of(seed, {}, (0, 0), 1)
        pieces = Pieces(case.trace * 6, ContextImages(case.program.image()), case.options)
        pieces.check(random.Random(seed))
        right, guesses = right + pieces.right, guesses + pieces.guesses
    assert right > guesses // 2 > 3
