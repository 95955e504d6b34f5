"""A history by the index of its trace is that of a full decoding, wherever it is looked at."""

import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session import kept_files
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats import format as formats
from rvtrace_gdb.session.formats import registry, sinks
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of
from rvtrace_gdb.session.formats.long_traces import indexed_history, trace_index
from rvtrace_gdb.session.formats.long_traces.indexed_history import IndexedHistory, IndexedTrace
from rvtrace_gdb.session.formats.long_traces.trace_index import IndexRecorder, index_key, read_index
from rvtrace_gdb.session.queries.lists.history_rows import annotations, rows
from rvtrace_gdb.session.selected_history import functions_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.decode.etrace.random_programs import Case as EtraceCase
from tests.decode.etrace.random_programs import any_options
from tests.decode.etrace.test_damage import periodic as periodic_etrace
from tests.decode.kernel.test_ntrace import case_of, damaged, interleaved
from tests.decode.ntrace.encodings import any_fields
from tests.helpers import reference_streams
from tests.helpers.amounts import some_of, thorough

examples = settings(derandomize=True, max_examples=some_of(40), deadline=None)
seeds = st.integers(0, 1 << 32)


@pytest.fixture(autouse=True, scope="module")
def small_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Places so near that short traces have many."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kept_files.FOLDER_VARIABLE, str(folder))
        patch.setattr(trace_index, "_APART", 200)
        patch.setattr(formats, "_PIECE", 100)
        patch.setattr(indexed_history, "_PIECE", 100)
        yield folder


class Indexed:
    """A trace that was decoded as a whole, and once more by its index, which has more than *few* places: where much is
    damaged, there may be none.
    """

    def __init__(
        self, data: bytes, program: ContextImages, options: Any, *, wrapped: bool = False, few: int = 2
    ) -> None:
        self.program = program
        decoding = registry.format_of(options).decoding(data, program, options, wrapped=wrapped, stop_at_error=False)
        parts = program.code_parts()
        assert isinstance(decoding, formats.PiecewiseDecoding) and parts is not None
        self.key = index_key(data, parts, f"{options!r} {wrapped}")
        decoding.recorder = IndexRecorder(self.key, len(data))
        self.whole = decoding.result(silent)
        index = read_index(self.key)
        assert index is not None and len(index.places) > few
        self.trace = IndexedTrace(data, index, decoding.make, decoding.result)
        self.lazy = self.trace.histories()

    def check(self, rng: random.Random) -> None:
        """Everything about some windows, without decoding all."""
        assert self.lazy.accounting == self.whole.accounting
        assert self.lazy.histories.keys() == self.whole.histories.keys()
        for source, history in self.whole.histories.items():
            found = self.lazy.histories[source]
            assert isinstance(found, IndexedHistory)
            assert (len(found), found.gaps, found.instructions) == (len(history), history.gaps, history.instructions)
            assert (list(found.doubtful_events), found.accounting) == (history.doubtful_events, history.accounting)
            assert dict(found.kind_counts) == dict(history.kind_counts)
            for begin, end in windows(len(history), rng):
                assert self.about(found, begin, end) == self.about(history, begin, end)
            assert not found.is_complete
            for one, other in times(history, rng):
                assert found.positions_of_times(one, other) == history.positions_of_times(one, other)
            assert list(found.pcs()) == list(history.pcs()) and list(found.events) == list(history.events)
            assert found.is_complete

    def about(self, history: History, begin: int, end: int) -> tuple[object, ...]:
        """What is shown of the rows numbered *begin* to *end* - 1, and what is asked of single places."""
        places = range(begin - 1, min(end - 1, begin + 5))
        gaps = [i for i in places if i < len(history) and history.pc(i) == GAP]
        return (
            list(rows(history, self.program, begin, end)),
            list(annotations(history, self.program, begin, end)),
            list(history.pcs(begin - 1, end - 1)),
            [history.pc(i) for i in places if i < len(history)],
            list(history.events_between(begin - 1, end)),
            [history.context_at(i) for i in places],
            [history.time_at(i) for i in places],
            [history.gap_at(i) for i in gaps],
        )


def windows(length: int, rng: random.Random) -> Iterator[tuple[int, int]]:
    """Numbers of rows: those at the end, those at the beginning, and some between."""
    if not length:
        return
    yield max(length - 9, 1), length + 1
    yield 1, min(8, length + 1)
    for _ in range(8):
        begin = rng.randrange(1, length + 1)
        yield begin, min(begin + rng.choice([1, 3, 40, length]), length + 1)


def times(history: History, rng: random.Random) -> Iterator[tuple[int, int]]:
    """Times from before the first known one to after the last one."""
    _, stamps = history.times.arrays
    for _ in range(6 if stamps else 0):
        first = max(rng.choice(stamps) + rng.randrange(-2, 3), 0)
        yield first, first + rng.choice([0, 5, 1 << 20])


@examples
@given(seeds, any_fields, st.integers(0, 2), st.sampled_from([0, 0, 1, 8]), st.booleans())
def test_windows(seed: int, fields: dict[str, Any], period: int, places: int, wrapped: bool) -> None:
    rng = random.Random(seed)
    case = case_of(seed, fields, (0, 0), period)
    data = damaged(case.trace * 3, rng, places)
    if len(data) > 1500:
        few = -1 if places else 2
        Indexed(data, ContextImages(case.program.image()), case.options, wrapped=wrapped, few=few).check(rng)


@thorough("test_windows")
@examples
@given(seeds, any_fields, st.sampled_from([0, 0, 5]))
def test_windows_of_several_harts(seed: int, fields: dict[str, Any], places: int) -> None:
    rng = random.Random(seed)
    cases, stream = interleaved(seed, fields, 3, rng)
    options = type(cases[0].options)(**{**vars(cases[0].options), "src_id": None})
    data = damaged(stream, rng, places)
    if len(data) > 1500:
        Indexed(data, ContextImages(cases[0].program.image()), options, few=-1 if places else 2).check(rng)


@examples
@given(seeds, any_options, st.booleans())
def test_windows_of_etrace(seed: int, drawn: dict[str, Any], wrapped: bool) -> None:
    rng = random.Random(seed)
    case = periodic_etrace(seed, drawn) if rng.random() < 0.5 else EtraceCase(seed, drawn, steps=1500)
    data = case.trace * 3
    if len(data) > 1500:
        program, options = ContextImages(case.program.image()), EtraceTraceOptions(case.options, Encapsulation())
        Indexed(data, program, options, wrapped=wrapped).check(rng)


def indexed(seed: int = 3) -> Indexed:
    """Some trace."""
    case = case_of(seed, {}, (0, 0), 1)
    return Indexed(case.trace * 4, ContextImages(case.program.image()), case.options)


def test_another_program_or_version_has_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    case, other = (case_of(seed, {}, (0, 0), 1) for seed in (3, 4))
    images = [ContextImages(it.program.image()) for it in (case, other)]
    keys = [index_key(case.trace, image.code_parts() or [], "") for image in images]
    keys.append(index_key(case.trace, images[0].code_parts() or [], "wrapped"))
    keys.append(index_key(case.trace[1:], images[0].code_parts() or [], ""))
    monkeypatch.setattr(trace_index, "tool", lambda: "rvtrace of tomorrow")
    keys.append(index_key(case.trace, images[0].code_parts() or [], ""))
    assert len(set(keys)) == 5


def test_a_damaged_index_is_none(small_places: Path) -> None:
    file = small_places / f"{indexed().key}.index"
    content = file.read_bytes()
    for damage in (content[:40], b"", b"x" + content[1:], content[:20] + b"7" + content[21:]):
        file.write_bytes(damage)
        assert read_index(file.stem) is None


def test_an_index_that_is_damaged_while_it_is_used_has_all_decoded(small_places: Path) -> None:
    it = indexed()
    file = small_places / f"{it.key}.index"
    file.write_bytes(re.sub(rb'("length": )[0-8]', rb"\g<1>9", file.read_bytes()))
    found, whole = it.lazy.histories[0], it.whole.histories[0]
    end = len(whole) + 1
    assert it.about(found, end - 5, end) == it.about(whole, end - 5, end)
    assert isinstance(found, IndexedHistory) and found.is_complete


def test_indexes_are_bounded(small_places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = small_places / f"{indexed(3).key}.index"
    os.utime(first, (1, 1))
    monkeypatch.setattr(kept_files, "_ALL_BYTES", first.stat().st_size)
    second = small_places / f"{indexed(5).key}.index"
    assert second.exists() and not first.exists()
    head = json.loads(second.read_bytes().partition(b"\n")[0].partition(b" ")[2])
    assert len(head["places"]) <= trace_index.PLACES


def test_no_folder_no_index(small_places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(small_places.iterdir())
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, "")
    case = case_of(9, {}, (0, 0), 1)
    recorder = IndexRecorder("name", len(case.trace))
    program = ContextImages(case.program.image())
    decoding = registry.format_of(case.options).decoding(
        case.trace, program, case.options, wrapped=False, stop_at_error=False
    )
    assert isinstance(decoding, formats.PiecewiseDecoding)
    decoding.recorder = recorder
    decoding.result(silent)
    assert set(small_places.iterdir()) == before and read_index("name") is None


def test_a_session_shows_the_last_rows_and_decodes_the_rest_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "LEAST_INDEXED", 1)
    shutil.copy(reference_streams.FOLDER / "median.elf", tmp_path)
    image = Image.from_elf(tmp_path / "median.elf")
    data = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    trace = RawImport("median", data, Options(), image, (), False, None, (0,))
    capture_file.save(capture_of(trace), tmp_path / "x.rvt")
    shown = []
    for _ in range(2):
        session, context = Session(), Context()
        session.open(tmp_path / "x.rvt", None)
        listing = session.history("", 10, context)
        page = session.rows(listing.begin, listing.end)
        session.prepare(silent)
        history = session.selected(context).history
        before = history.is_complete
        calls = functions_of(session, session.selected(context), silent)
        shown.append((page, before, len(calls), history.is_complete))
    (first, _, length, _), (page, complete_before, again, complete_after) = shown
    assert (page, again) == (first, length)
    assert not complete_before and complete_after
