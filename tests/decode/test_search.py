"""Where instructions ran: against counting them one by one, and loops, traps and gaps by hand."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History, Path, RepeatPath
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.search import AddressQuery, ExecutionSearch, arrivals, entries_of, executions
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from tests.decode.calls.call_histories import in_small_blocks
from tests.decode.history.test_history import NOTHING, built, flat
from tests.decode.kernel.loops import LOOPS, with_and_without_kernel
from tests.helpers.amounts import LONG, some_of
from tests.helpers.event_facts import INTERRUPT, lost

loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)
small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")

addresses = st.integers(0, 5)
parts = st.lists(st.lists(addresses, min_size=1, max_size=5).map(tuple), min_size=1, max_size=4)
paths = st.recursive(
    parts.map(Path),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(Path)
        | st.tuples(inner, st.integers(1, 5)).map(lambda pair: RepeatPath(*pair))
    ),
    max_leaves=5,
)
sets = st.frozensets(addresses, max_size=4)


def search_in(history: History, wanted: AddressQuery, progress: Progress = silent) -> ExecutionSearch:
    """Whatever the program is: what ran is what is searched."""
    return ExecutionSearch(CallHistory(history, program()), wanted, progress)


def found(history: History, wanted: AddressQuery) -> list[int]:
    search = search_in(history, wanted)
    one_by_one = [search.position(number) for number in range(len(search))]
    assert list(search.positions()) == one_by_one
    return one_by_one


@settings(derandomize=True, max_examples=some_of(150), deadline=None)
@given(st.lists(st.tuples(paths, st.integers(1, 12)), max_size=12), sets, sets)
def test_as_one_by_one(
    runs: list[tuple[Path | RepeatPath, int]], wanted: frozenset[int], not_after: frozenset[int]
) -> None:
    history = built(*[path for path, times in runs for _ in range(times)])
    pcs = [pc for path, times in runs for _ in range(times) for pc in flat(path)]
    assert found(history, AddressQuery(wanted, not_after)) == [
        i for i, pc in enumerate(pcs) if pc in wanted and not (i and pcs[i - 1] in not_after)
    ]


@settings(derandomize=True, max_examples=some_of(50), deadline=None)
@given(st.lists(paths, max_size=12), sets)
def test_how_many_are_before(runs: list[Path | RepeatPath], wanted: frozenset[int]) -> None:
    search = search_in(built(*runs), executions(*wanted))
    pcs = [pc for path in runs for pc in flat(path)]
    for position in range(-1, len(pcs) + 2):
        assert search.before(position) == sum(pc in wanted for pc in pcs[: max(position, 0)])


@pytest.mark.parametrize("wanted", [executions(3), arrivals(2, 3)])
def test_many_entries(wanted: AddressQuery) -> None:
    """More than are added up at once: 1 2 3, 3 1, 1 2 3, ..., each a path of its own."""
    count = 20_000 if LONG else 5_000
    history = built(*[Path([(1, 2, 3)]) if i % 2 == 0 else Path([(3, 1)]) for i in range(count)])
    of_five = [2, 3] if wanted == executions(3) else [1]
    assert found(history, wanted) == [5 * i + k for i in range(count // 2) for k in of_five]


def test_numbers_outside_are_an_error() -> None:
    search = search_in(built(Path([(1, 2, 1)])), executions(1))
    for number in (-1, 2):
        with pytest.raises(IndexError):
            search.position(number)


def test_a_billion_rounds() -> None:
    """Nothing of it is gone through one by one."""
    loop = RepeatPath(Path([(1, 2)]), 1_000_000_000)
    search = search_in(built(loop, Path([(3,)]), loop), executions(2))
    assert len(search) == 2_000_000_000
    assert search.position(999_999_999) == 1_999_999_999
    assert search.position(1_000_000_000) == 2_000_000_002
    assert len(search_in(built(loop, Path([(3,)]), loop), arrivals(1, 2))) == 2


def test_it_can_be_interrupted() -> None:
    def cancel(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    for wanted in (executions(1), arrivals(1, 2)):
        with pytest.raises(Cancelled):
            search_in(built(Path([(1,)]), Path([(2, 1)])), wanted, cancel)


NOP, BNEZ_BACK_4, RET, CALL_BACK_256, MRET = 0x00000013, 0xFE051EE3, 0x00008067, 0xF01FF0EF, 0x30200073
WAIT, BRANCH, WAITED, CALL, HANDLER, LEAVE = 0x100, 0x104, 0x108, 0x200, 0x300, 0x304


def program() -> Image:
    """wait: 1: nop; bnez a0, 1b; ret. It is called at 0x200. A handler of traps: nop; mret."""
    code = {WAIT: NOP, BRANCH: BNEZ_BACK_4, WAITED: RET, CALL: CALL_BACK_256, CALL + 4: RET, HANDLER: NOP, LEAVE: MRET}
    image = Image(32)
    names = [Symbol(WAIT, "wait", 12, True), Symbol(CALL, "main", 8, True), Symbol(HANDLER, "on_trap", 8, True)]
    image.add_elf(replace(Elf("a.elf", "", 32), sections=[ElfSection(WAIT, HANDLER + 8, names)]))
    for address, word in code.items():
        image.add_code(address, word.to_bytes(4, "little"))
    return image


def ran(*pieces: tuple[int, ...] | str) -> History:
    """Pieces of code, each a path of its own, and between them traps ("to the handler", "to wait") or a gap ("lost").

    A trap hits what the piece before would go on with: at `wait`, if that called it or branched back to it.
    """
    builder = HistoryBuilder()
    for piece in pieces:
        if isinstance(piece, tuple):
            builder.append(Path([piece]))
        elif piece == "lost":
            builder.gap(EventKind.LOSS, 0, lost())
        else:
            handler = WAIT if piece == "to wait" else HANDLER
            builder.event(EventKind.TRAP, 0, INTERRUPT, last_pc=WAIT, next_pc=handler)
    return builder.finish(NOTHING)


@pytest.mark.parametrize(
    ("history", "entries"),
    [
        (ran((CALL, WAIT, BRANCH, WAIT, BRANCH, WAITED)), [1]),
        (ran((CALL,), (WAIT, BRANCH), (WAIT, BRANCH), (WAIT, BRANCH, WAITED)), [1]),
        (ran((WAIT, BRANCH, WAIT, BRANCH, WAITED)), [0]),
        (ran((CALL, WAIT), "lost", (WAIT, BRANCH)), [1, 3]),
        (ran((CALL, WAIT, BRANCH), "to the handler", (HANDLER, LEAVE), (WAIT, BRANCH, WAITED)), [1]),
        (ran((CALL,), "to the handler", (HANDLER, LEAVE), (WAIT, BRANCH, WAITED)), [3]),
        (
            ran((CALL,), "to the handler", (HANDLER, LEAVE), "to the handler", (HANDLER, LEAVE), (WAIT, BRANCH),
                "to the handler", (HANDLER, LEAVE), (WAIT, BRANCH)), [5],
        ),
        (ran((CALL, WAIT, BRANCH), "to wait", (WAIT, BRANCH, WAITED)), [1, 3]),
        (ran((CALL + 4, CALL, WAIT, BRANCH, WAITED, CALL + 4, CALL, WAIT)), [2, 7]),
    ],
    ids=["in one", "rounds apart", "at the start", "after a gap", "interrupted in the loop", "interrupted when called",
         "interrupted twice when called", "as the handler", "twice"],
)  # fmt: skip
def test_entries_of_a_function_that_begins_with_a_loop(history: History, entries: list[int]) -> None:
    assert found(history, entries_of(WAIT, program())) == entries


def test_a_function_without_such_a_loop_is_entered_whenever_it_begins() -> None:
    assert entries_of(HANDLER, program()) == executions(HANDLER)
    assert entries_of(0x5000, program()) == executions(0x5000), "no code is there"
