"""Pages in which repetitions are folded: expanded, they are the list, and none is longer than asked."""

import random

import pytest

from rvtrace_gdb.gdbext.row_text import repetition
from rvtrace_gdb.gdbext.rows import Fold, FoundRow, FunctionRow
from rvtrace_gdb.session.queries.folding import Folding
from rvtrace_gdb.session.queries.rows import Cursor
from tests.helpers.amounts import each_seed


def rows(texts: str, step: int = 5) -> list[FoundRow]:
    """Rows with one letter each, *step* positions apart."""
    return [
        FoundRow(number, step * number, (0x100,), "trap", text, None, None, number, number)
        for number, text in enumerate(texts, 1)
    ]


def folding(texts: str) -> Folding:
    there = rows(texts)
    return Folding(lambda begin, end: there[begin - 1 : end - 1], len(there))


def expanded(texts: str, made: Folding) -> str:
    """The page as its folds say it goes on."""
    times = {fold.number: fold.times for fold in made.folds}
    return "".join(texts[begin - 1 : end - 1] * times.get(begin, 1) for begin, end in made.numbers)


def test_a_trap_loop_is_one_line() -> None:
    made = folding("a" + "t" * 3366 + "z")
    page = made.page(3369, 10, forward=False)
    assert (page.begin, page.end) == (1, 3369)
    assert made.numbers == [(1, 2), (2, 3), (3368, 3369)]
    assert made.folds == [Fold(2, 1, 3366, 10, 5 * 3367, 5, 5)]


@pytest.mark.parametrize(
    ("texts", "folds"), [("aabb", []), ("aaa", [(1, 1, 3)]), ("ababab", [(1, 2, 3)]), ("abab", []),
                         ("xabcdabcdabcdy", [(2, 4, 3)]), ("aaabaaab", [(1, 1, 3), (5, 1, 3)])],
)  # fmt: skip
def test_what_is_folded(texts: str, folds: list[tuple[int, int, int]]) -> None:
    for forward in (True, False):
        made = folding(texts)
        made.page(1 if forward else len(texts) + 1, 50, forward=forward)
        assert [(fold.number, fold.lines, fold.times) for fold in made.folds] == folds


def test_ordinary_loops_of_functions_are_not_folded_and_traps_are() -> None:
    def made(what: str) -> Folding:
        there = [FunctionRow(n, n, n, 0x100 + n % 2, 0, what if n % 2 else "", None, []) for n in range(1, 21)]
        found = Folding(lambda begin, end: there[begin - 1 : end - 1], len(there))
        found.page(1, 50, forward=True)
        return found

    assert not made("").folds and [fold.times for fold in made("exception").folds] == [10]


@each_seed(range(200))
def test_the_pages_are_the_list(seed: int) -> None:
    """Turned in either direction, whatever the size of the page."""
    dice = random.Random(seed)
    parts = ["".join(dice.choices("abc", k=dice.randint(1, 3))) * dice.choice((1, 1, 2, 3, 9)) for _ in range(12)]
    texts, size = "".join(parts), dice.randint(1, 9)
    cursor, made = Cursor("list"), folding(texts)

    def turn(args: str) -> str | None:
        page = cursor.turn(args, len(texts), lambda at, forward: made.page(at, size, forward=forward))
        assert sum(end - begin for begin, end in made.numbers) <= size + 3
        return None if page.notice else expanded(texts, made)

    found = [text for text in (turn("-") for _ in range(len(texts) + 1)) if text]
    assert "".join(reversed(found)) == texts
    assert turn("-") is None
    again = [turn("+") for _ in range(len(texts) + 1)]
    assert again[-1] is None and "".join(text for text in again if text) in texts


def test_what_repeats_at_one_place_has_no_distance() -> None:
    assert repetition(Fold(1, 1, 20, 7, 7, 0, 0)) == "x20, all at @7"
    assert repetition(Fold(1, 1, 3, 7, 9, 1, 1)) == "x3, @7 to @9, every 1 instruction"
