"""The calls under way at every position of random executions: what a naive interpreter finds, however it is asked."""

from itertools import islice

import pytest

import rvtrace_gdb.decode.calls.frames as frames_module
from rvtrace_gdb.decode.calls import call_history
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrame, CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.naive_calls import GAP, NaiveCalls, Waiting
from tests.decode.calls.stacks.test_tasks import CODE
from tests.decode.calls.test_call_history_properties import Case
from tests.helpers.amounts import LONG, each_seed, thorough

HOW = {StackOperationKind.CALL: "call", StackOperationKind.TRAP: "trap"}


def told(frames: list[CallFrame]) -> list[Waiting]:
    found = []
    for frame in frames:
        left = None if frame.call is None else (frame.call, HOW[frame.kind])
        found.append(Waiting(frame.pc, None if frame.function == UNKNOWN else frame.function, frame.level, left))
    return found


class Asked:
    """A case, and what is expected at each of its positions."""

    def __init__(self, seed: int) -> None:
        self.case = Case(seed)
        naive = NaiveCalls(self.case.image, self.case.starts, self.case.chains)
        self.expected = list(naive.frames(self.case.pcs))
        self.modelled = naive.doubtful
        self.frames = CallFrames(self.case.history, self.case.calls)

    def check(self, position: int) -> None:
        """All frames, and some of them."""
        if position > self.modelled:
            found = [frame.pc for frame in self.frames.frames(position)]
            assert found[:1] == [pc for pc in self.case.pcs[position : position + 1] if pc != GAP]
            return
        assert told(list(self.frames.frames(position))) == self.expected[position], position
        first, count = self.case.rng.randint(0, 4), self.case.rng.randint(1, 4)
        some = list(islice(self.frames.frames(position, first), count))
        assert told(some) == self.expected[position][first : first + count]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entries make many blocks, of which few are kept."""
    monkeypatch.setattr(call_history, "_BLOCK", 3)
    monkeypatch.setattr(frames_module, "_SPAN", 4)
    monkeypatch.setattr(frames_module, "_BLOCKS", 3)


@each_seed(range(500, 516))
def test_as_a_naive_interpreter(seed: int) -> None:
    """Step by step, forward or backward."""
    asked = Asked(seed)
    order = range(len(asked.case.pcs))
    for position in order if seed % 2 else reversed(order):
        asked.check(position)


@thorough("test_as_a_naive_interpreter")
@pytest.mark.usefixtures("small_blocks")
@each_seed(range(540, 600), share=6)
def test_anywhere_in_many_blocks(seed: int) -> None:
    asked = Asked(seed)
    for _ in range(60 if LONG else 20):
        asked.check(asked.case.rng.randrange(len(asked.case.pcs)))


@each_seed(range(740, 770), share=3)
def test_at_the_end_with_what_runs_next(seed: int) -> None:
    """A history that ends in the middle of an execution, and where the program is then."""
    case = Case(seed)
    ends = [end for end in range(1, len(case.pcs)) if GAP not in case.pcs[end - 1 : end + 1] and end not in case.chains]
    for end in case.rng.sample(ends, min(len(ends), 8 if LONG else 3)):
        history = history_of(case.pcs[:end], [event for event in case.events if event.position < end], case.rng)
        frames = CallFrames(history, CallHistory(history, case.image))
        *_, before = NaiveCalls(case.image, case.starts, case.chains).frames(case.pcs[:end])
        *_, after = NaiveCalls(case.image, case.starts, case.chains).frames(case.pcs[: end + 1])
        assert told(list(frames.frames(end, pc=case.pcs[end]))) == after
        assert told(list(frames.frames(end - 1))) == before
        unknown = told(list(frames.frames(end)))
        assert unknown[0].pc == UNKNOWN and unknown[1:] == before[1:]


def test_in_doubt_which_task_goes_on() -> None:
    """Two tasks block in `receive`, and one goes on there: the doubt about its caller is no level of its own."""
    block = "receive.1 swap.2"
    pcs = CODE.pcs(f"main.1 {block} one.1 {block} two.1 {block} receive.2 receive.3")
    in_doubt = [[Waiting(CODE.at(place), CODE.at("receive.0"), 0, None)] for place in ("receive.2", "receive.3")]
    assert list(NaiveCalls(CODE.image, list(CODE.starts.values())).frames(pcs))[-2:] == in_doubt
    for end in (len(pcs) - 2, len(pcs) - 1):
        history = history_of(pcs[:end])
        frames = CallFrames(history, CallHistory(history, CODE.image))
        assert told(list(frames.frames(end, pc=pcs[end]))) == in_doubt[end - len(pcs)]
    history = history_of(pcs)
    frames = CallFrames(history, CallHistory(history, CODE.image))
    assert [told(list(frames.frames(position))) for position in range(len(pcs) - 2, len(pcs))] == in_doubt
