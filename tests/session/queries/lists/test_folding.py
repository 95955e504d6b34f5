"""Pages in which repetitions are folded: expanded, they are the list, and none is longer than asked."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from rvtrace_gdb.rows.list_rows import Fold, FoundRow, FunctionRow
from rvtrace_gdb.rows.list_text import repetition
from rvtrace_gdb.session.queries.lists.pages import Cursor, Folding
from tests.helpers.amounts import each_seed


def rows(texts: str, step: int = 5) -> list[FoundRow]:
    """Rows with one letter each, *step* positions apart."""
    return [
        _row(FoundRow, number=number, position=step * number, here=(0x100,), kind="trap", text=text, time=number)
        for number, text in enumerate(texts, 1)
    ]


def _row(row_type: Any, **columns: Any) -> Any:
    """A row with these columns; the others have no value."""
    return row_type(**{**dict.fromkeys(row_type._fields), **columns})


def folding(texts: str) -> Folding:
    there = rows(texts)
    return Folding(lambda begin, end: there[begin - 1 : end - 1], len(there))


def expanded(texts: str, made: Folding) -> str:
    """The page as its folds say it goes on."""
    times = {fold.number: fold.times for fold in made.folds}
    return "".join(texts[begin - 1 : end - 1] * times.get(begin, 1) for begin, end in made.numbers)


def functions(whats: str, levels: list[int] | None = None) -> list[FunctionRow]:
    """A row for each letter, of which `t` has a trap."""
    return [
        _function(n, pc=ord(c), level=levels[n - 1] if levels else 0, what="exception" if c == "t" else "")
        for n, c in enumerate(whats, 1)
    ]


def _function(number: int, **columns: Any) -> Any:
    return _row(FunctionRow, number=number, begin=number, end=number, **columns)


def folds_of(there: Sequence[FunctionRow | FoundRow]) -> list[Fold]:
    found = []
    for forward in (True, False):
        made = Folding(lambda begin, end: there[begin - 1 : end - 1], len(there))
        made.page(1 if forward else len(there) + 1, 50, forward=forward)
        found.append(made.folds)
    assert found[0] == found[1]
    return found[0]


def test_a_handler_that_traps_itself_is_one_line() -> None:
    """Each time one level deeper; other levels are another path, and rows that rise differently no repetition."""
    [fold] = folds_of(functions("mf" + "t" * 5000, [0, 1, *range(2, 5002)]))
    assert fold == Fold(3, 1, 5000, 3, 5002, 1, 1, 1)
    assert repetition(fold) == "x5000, @3 to @5002, every 1 instruction, each 1 level deeper"
    assert repetition(fold._replace(deeper=2)).endswith(", each 2 levels deeper")
    assert not folds_of(functions("tttttt", [0, 1, 3, 6, 10, 15])) and not folds_of(functions("tttt", [4, 3, 2, 1]))


@pytest.mark.parametrize(
    ("texts", "folds"), [("mw" + "rwpw" * 500, [(2, 4, 500)]), ("mw" + "rwpw" * 500 + "rw", [(2, 4, 500)]),
                         ("mw" + "rwpw" * 500 + "z", []), ("mw" + "rwpw" * 90, []), ("m" + "w" * 500, [(2, 1, 500)])],
)  # fmt: skip
def test_a_loop_without_a_trap_in_which_the_trace_ends(texts: str, folds: list[tuple[int, int, int]]) -> None:
    """The program hangs there: it is folded, with the first row of the loop. Where the program goes on, it is not."""
    assert [(fold.number, fold.lines, fold.times) for fold in folds_of(functions(texts))] == folds


@pytest.mark.parametrize("kind", [FunctionRow, FoundRow])
def test_each_column_keeps_rows_apart_unless_it_says_where_and_when(kind: Any) -> None:
    """A new column is one of the first kind until it is named. Of an event's facts, the text has all but bytes."""
    alike = functions("t")[0] if kind is FunctionRow else rows("t")[0]
    ignored = {"number", "begin", "end", "position", "time", "offset", "facts"}
    for column, value in alike._asdict().items():
        there = [alike._replace(**{column: _another(value, n * n)}) for n in range(20)]
        assert bool(folds_of(there)) == (column in ignored), column


def _another(value: Any, number: int) -> Any:
    """One of different values like another value."""
    if isinstance(value, str):
        return f"{value}{number}"
    return [number] if isinstance(value, list | tuple) else number


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
