"""Ctrl-C in long work: what was done until then is not done again, and the result is the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import call_tree, call_tree_work, tree_rows
from rvtrace_gdb.decode.calls.states import States
from rvtrace_gdb.decode.coverage import counts
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import CapturedPort
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats import format, registry
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, silent
from tests.decode.etrace.test_damage import periodic as periodic_etrace
from tests.decode.tandem import corpus
from tests.helpers import reference_streams
from tests.session.board import board

ELF = str(reference_streams.FOLDER / "median.elf")
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()


class CtrlC:
    """Lets work be done for some reports of progress, and then interrupts it."""

    def __init__(self, patience: int = 1) -> None:
        self.patience, self.seen = patience, list[tuple[str, int]]()

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        self.seen.append((label, done))
        if len(self.seen) > self.patience:
            raise Cancelled


T = TypeVar("T")


def in_the_end(work: Callable[[CtrlC], T]) -> tuple[T, list[tuple[str, int]]]:
    """The result of work that is interrupted again and again, and what was done between."""
    reports: list[tuple[str, int]] = []
    for patience in range(20, 10000):
        watch = CtrlC(patience // 20)
        try:
            result = work(watch)
            return result, reports + watch.seen
        except Cancelled:
            reports += watch.seen[:-1]
    raise AssertionError("it never comes to an end")


def same(one: History, other: History) -> bool:
    return list(one.pcs()) == list(other.pcs()) and list(one.events) == list(other.events)


def test_the_groups_of_a_tandem_trace_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rvtrace_gdb.decode.tandem.decoder.PIECE", 1000)
    name = corpus.TRACES[0]
    data, port = corpus.trace_bytes(name), CapturedPort("port", corpus.parameters_of(name))
    unfinished = registry.format_of(port).decoding(
        data, corpus.program_of(name), port, wrapped=False, stop_at_error=False
    )
    found, reports = in_the_end(unfinished.result)
    assert same(found.histories[0], corpus.decoded(name).history)
    assert [done for label, done in reports if label == "reading"] == list(range(0, len(data), 1000))


def two_harts() -> tuple[bytes, Image, Any]:
    harts = (reference_streams.from_source(STREAM, 2, source) for source in (1, 2))
    return reference_streams.in_turn(*harts), Image.from_elf(ELF), Options(src_bits=2)


def etrace() -> tuple[bytes, Image, Any]:
    case = periodic_etrace(5, {})
    return case.trace, case.program.image(), EtraceTraceOptions(case.options, Encapsulation())


@pytest.mark.parametrize(
    "case", [lambda: (STREAM, Image.from_elf(ELF), Options()), two_harts, etrace], ids=["N-Trace", "SRC", "E-Trace"]
)
def test_no_byte_is_decoded_twice(
    case: Callable[[], tuple[bytes, Image, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, image, trace_options = case()
    piece = len(data) // 30
    monkeypatch.setattr(format, "_PIECE", piece)
    unfinished = registry.format_of(trace_options).decoding(
        data, image, trace_options, wrapped=False, stop_at_error=False
    )
    found, reports = in_the_end(unfinished.result)
    assert reports == [("decoding", at) for at in range(0, len(data), piece)]
    whole = registry.decode(data, image, trace_options).histories
    assert found.histories.keys() == whole.keys()
    assert all(same(found.histories[source], whole[source]) for source in whole)


def test_what_ended_in_the_middle_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory, say: what is half done is not a state to go on from."""
    monkeypatch.setattr(format, "_PIECE", 100)
    image, really = Image.from_elf(ELF), StreamDecoder.feed
    failing = [True]

    def feed(self: StreamDecoder, data: bytes) -> None:
        really(self, data[:50] if failing[0] else data)
        if failing[0]:
            raise MemoryError

    unfinished = registry.format_of(Options()).decoding(
        STREAM, image, Options(), wrapped=False, stop_at_error=False
    )
    with pytest.raises(Cancelled):
        unfinished.result(CtrlC(5))
    monkeypatch.setattr(StreamDecoder, "feed", feed)
    with pytest.raises(MemoryError):
        unfinished.result(silent)
    failing[0] = False
    assert same(unfinished.result(silent).histories[0], registry.decode(STREAM, image, Options()).histories[0])


@pytest.fixture
def opened(tmp_path: Path) -> Session:
    """A session that looks at a capture, of which nothing is decoded yet."""
    demo, file = board(tmp_path), tmp_path / "x.rvt"
    session, context = Session(demo.connect, {}), demo.describe()
    session.start(context)
    demo.run(4000)
    session.save(file, context)
    session.stop()
    looking = Session(demo.connect, {})
    looking.open(file, None)
    return looking


def test_the_next_request_goes_on(opened: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format, "_PIECE", 8)
    fed, really = list[int](), StreamDecoder.feed

    def feed(self: StreamDecoder, data: bytes) -> None:
        fed.append(len(data))
        really(self, data)

    monkeypatch.setattr(StreamDecoder, "feed", feed)
    with pytest.raises(Cancelled):
        opened.history("", 10, Context(), CtrlC(2))
    assert opened.last_selected(Context()) is None, "half a history is none"
    opened.history("", 10, Context())
    opened.status(Context())
    assert sum(fed) == len(opened.capture().sinks[0].data)


def test_the_calls_go_on_where_they_were(opened: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rvtrace_gdb.decode.calls.call_history._BLOCK", 4)
    monkeypatch.setattr("rvtrace_gdb.decode.calls.call_history._PROGRESS_INTERVAL", 1)
    monkeypatch.setattr("rvtrace_gdb.decode.calls.call_history._SPAN", 3)
    it = opened.selected(Context())
    calls = CallHistory(it.history, it.program, None)
    _, reports = in_the_end(calls.go_on)
    whole = CallHistory(it.history, it.program)
    assert [done for _, done in reports] == list(range(len(reports))) and len(reports) > 9, "each block once"
    assert list(calls.functions(1, len(calls) + 1)) == list(whole.functions(1, len(whole) + 1)) and len(calls) > 50
    assert [sum(tally.times) for tally in calls.tallies] == [sum(tally.times) for tally in whole.tallies]


@pytest.mark.parametrize(("kind", "name", "call"), [(CallHistory, "_note_lows", 5), (States, "step_from", 7)])
def test_calls_that_ended_in_the_middle_begin_anew(
    kind: type, name: str, call: int, opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rvtrace_gdb.decode.calls.call_history._BLOCK", 4)
    it = opened.selected(Context())
    really, left = getattr(kind, name), [call]

    def fails_once(*arguments: object) -> object:
        left[0] -= 1
        if not left[0]:
            raise MemoryError
        return really(*arguments)

    monkeypatch.setattr(kind, name, fails_once)
    calls = CallHistory(it.history, it.program, None)
    with pytest.raises(MemoryError):
        calls.go_on()
    calls.go_on()
    whole = CallHistory(it.history, it.program)
    assert len(calls) == len(whole)
    assert list(calls.functions(1, len(calls) + 1)) == list(whole.functions(1, len(whole) + 1))
    assert [sum(tally.times) for tally in calls.tallies] == [sum(tally.times) for tally in whole.tallies]


def test_the_call_tree_goes_on_where_it_was(opened: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rvtrace_gdb.decode.calls.call_tree._REPORT_EVERY", 2)
    it = opened.selected(Context())
    calls = CallHistory(it.history, it.program)
    at_once, again = CtrlC(1 << 30), CtrlC(0)
    whole, work = call_tree(calls, at_once), call_tree_work(calls)
    for _ in at_once.seen:
        with pytest.raises(Cancelled):
            work.result(again)
    assert again.seen == at_once.seen and len(again.seen) > 9, "each piece once"
    found, expected = (
        [(level, node.function, node.calls, node.own, node.total) for level, node in tree_rows(root, 99)]
        for root in (work.result(again), whole)
    )
    assert found == expected and len(found) > 3


@pytest.mark.skipif(kernel() is None, reason="the kernel numbers them")
def test_parts_are_numbered_once(opened: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """What searches and coverage need first."""
    monkeypatch.setattr("rvtrace_gdb.decode.counting._SLICE", 3)
    it = opened.selected(Context())
    calls = CallHistory(it.history, it.program)
    numbered, reports = in_the_end(calls.numbered_parts)
    assert [done for _, done in reports] == list(range(0, len(calls.different_steps), 3)) and len(reports) > 5
    assert numbered is not None and numbered.parts.size()[2] == len(calls.different_steps)
    assert counts(it.history, calls=calls) == counts(it.history)
