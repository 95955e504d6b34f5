"""The arguments of a history listing: a replay of a real gdb session (see tests/data/gdb-transcripts/README.md)."""

import re
from copy import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.session.queries.lists.pages import Cursor, PageSelection, RangeError
from tests.helpers.gdb_transcripts import exchanges, history_rows

TRANSCRIPT = "instruction-history-rv64.txt"
LENGTH = 534
COMMAND = "record instruction-history"

OUT_OF_BOUNDS = "Range out of bounds: numbers go from 1 to 534."
"""gdb does not say which numbers there are."""

# Where we differ from gdb 13.1 on purpose: what is asked -> what we do.
DIFFERENT: dict[str, PageSelection | str] = {
    # The number after the last: in gdb the current instruction, of which nothing is printed.
    "535": OUT_OF_BOUNDS,
    "535,535": OUT_OF_BOUNDS,
    "535,536": OUT_OF_BOUNDS,
    "535,+3": OUT_OF_BOUNDS,
    # gdb cuts numbers to 32 bits, and wraps at 64.
    "4294967296": OUT_OF_BOUNDS,
    "4294967297": OUT_OF_BOUNDS,
    "4294967297,4294967298": OUT_OF_BOUNDS,
    "18446744073709551615": OUT_OF_BOUNDS,
    "18446744073709551616": OUT_OF_BOUNDS,
    "99999999999999999999": OUT_OF_BOUNDS,
    "5,4294967297": PageSelection(5, 535),
    "5,4294967300": PageSelection(5, 535),
    "5,18446744073709551615": PageSelection(5, 535),
    "5,99999999999999999999": PageSelection(5, 535),
    "5,+18446744073709551615": PageSelection(5, 535),
    "5,+2147483648": PageSelection(5, 535),
    "5,+4294967295": PageSelection(5, 535),
    "5,+4294967296": PageSelection(5, 535),
    "5,+4294967297": PageSelection(5, 535),
    # Fewer rows than asked for end with A: those that there are, as behind A; gdb says that this is out of bounds.
    "2,-3": PageSelection(1, 3),
    "3,-4": PageSelection(1, 4),
    "10,-11": PageSelection(1, 11),
    "5,-4294967297": PageSelection(1, 6),
    # The last three, as at the shell; gdb expects a positive number, and stays where it is.
    (NEWEST := "-3"): PageSelection(532, 535),
}


def without_modifiers(args: str) -> str:
    while args.startswith("/"):
        args = args.partition(" ")[2].lstrip()
    return args


def ours(cursor: Cursor, args: str, size: int | None) -> PageSelection | str:
    try:
        return cursor.select(args, size, LENGTH)
    except RangeError as error:
        return in_gdbs_words(str(error))


def gdbs(lines: list[str]) -> PageSelection | str:
    """What gdb showed, or said."""
    rows = history_rows(lines)
    if rows:
        return PageSelection(rows[0][0], rows[-1][0] + 1)
    said = "\n".join(lines)
    return OUT_OF_BOUNDS if said == "Range out of bounds." else said


def in_gdbs_words(said: str) -> str:
    """What we say, without what we add to gdb's `Bad range.`."""
    return re.sub(r"^Bad range: its end, \d+, is before its beginning, \d+\.$", "Bad range.", said)


def test_every_argument_does_what_it_does_in_gdb() -> None:
    cursor, size, compared = Cursor(), 10, 0
    for command, lines in exchanges(TRANSCRIPT):
        if command.startswith("set record instruction-history-size"):
            size = 0 if command.endswith("unlimited") else int(command.split()[-1])
        elif command == "record goto end":  # gdb forgets what it showed
            cursor.reset()
        elif command.startswith(COMMAND) and not any("modifier" in line for line in lines):
            args = command[len(COMMAND) + 1 :]
            found = ours(copy(cursor) if args == NEWEST else cursor, without_modifiers(args), size)
            expected = DIFFERENT.get(args, gdbs(lines))
            assert (found.notice or found if isinstance(found, PageSelection) else found) == expected, command
            compared += 1
    assert compared > 150


REPLAYED = "instruction-history-replay-rv64.txt"
REPLAYED_LENGTH = 547


def moved(command: str, home: int | None) -> int | None:
    """Where gdb is after a command, None: in the present."""
    if command.startswith("record goto"):
        place = command.split()[-1]
        return {"begin": 1, "end": None}.get(place) if place.isalpha() else int(place)
    steps = {"stepi": 1, "reverse-stepi": -1}.get(command, 0)
    return home if home is None else home + steps


def test_a_listing_in_the_past_is_around_the_place_as_in_gdb() -> None:
    """gdb forgets what it showed when it moves, and goes on when `record goto` says where it is already."""
    cursor, size, home, compared = Cursor(), 10, None, 0
    for command, lines in exchanges(REPLAYED):
        home = moved(command, home)
        if command.startswith("set record instruction-history-size"):
            size = 0 if command.endswith("unlimited") else int(command.split()[-1])
        elif command.startswith(COMMAND):
            found = cursor.select(command[len(COMMAND) + 1 :], size, REPLAYED_LENGTH, home)
            assert (found.notice or found) == gdbs(lines), command
            compared += 1
    assert compared > 30


def test_where_all_has_run_the_last_page_is_shown() -> None:
    """The present as seen from the past: gdb has no such place."""
    cursor = Cursor()
    assert cursor.select("", 10, 100, 101) == PageSelection(91, 101)
    assert cursor.select("", 10, 100, 101) == PageSelection(101, 101, "At the end of the branch trace record.")
    assert cursor.select("", 10, 100, 100) == PageSelection(91, 101)
    assert cursor.select("", 10, 100) == PageSelection(91, 101), "in the present again"
    assert cursor.select("-", 10, 100) == PageSelection(81, 91)
    assert cursor.select("", 10, 5, 200) == PageSelection(1, 6), "a place that is not there is the end"


@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 31), st.sampled_from(["", "-"]))
def test_the_first_page_in_the_past_holds_the_place_and_is_full(length: int, size: int, home: int, args: str) -> None:
    found = Cursor().select(args, size, length, home)
    assert found.end - found.begin == min(size, length)
    assert found.begin <= min(home, length) < found.end


def test_the_differences_are_all_in_the_transcript() -> None:
    asked = {command[len(COMMAND) + 1 :] for command, _ in exchanges(TRANSCRIPT) if command.startswith(COMMAND)}
    assert asked >= DIFFERENT.keys()


def test_an_error_leaves_the_cursor() -> None:
    cursor = Cursor()
    cursor.select("5,7", 10, 100)
    with pytest.raises(RangeError):
        cursor.select("200", 10, 100)
    assert cursor.select("", 10, 100) == PageSelection(8, 18)


def test_an_empty_history_is_no_trace() -> None:
    with pytest.raises(RangeError, match=r"^No trace\.$"):
        Cursor().select("", 10, 0)


@given(st.lists(st.text("0123456789,+- x/", max_size=12), max_size=8), st.integers(0, 12), st.integers(1, 40))
@settings(deadline=None)
def test_whatever_is_asked_a_selection_lies_in_the_history(asked: list[str], size: int, length: int) -> None:
    cursor = Cursor()
    for args in asked:
        try:
            selection = cursor.select(args, size, length)
        except RangeError:
            continue
        assert 1 <= selection.begin <= selection.end <= length + 1
        assert (selection.notice is None) == (selection.begin < selection.end)


@given(st.integers(1, 12), st.integers(1, 100))
@settings(deadline=None)
def test_paging_backward_shows_everything_once(size: int, length: int) -> None:
    cursor, seen = Cursor(), list[int]()
    while (page := cursor.select("-", size, length)).notice is None:
        seen[:0] = range(page.begin, page.end)
    assert page.notice == "At the start of the branch trace record."
    assert seen == list(range(1, length + 1))
    while (page := cursor.select("+", size, length)).notice is None:
        seen.extend(range(page.begin, page.end))
    assert page.notice == "At the end of the branch trace record."
    assert seen == [*range(1, length + 1)] * 2


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000 + "3"])
def test_absurdly_long_numbers_are_numbers(digits: str) -> None:
    cursor = Cursor()
    assert cursor.select(f"2,{digits}", 10, 5) == PageSelection(2, 6 if digits[0] == "9" else 4)


def test_a_range_that_ends_before_it_begins_says_so() -> None:
    with pytest.raises(RangeError, match=r"^Bad range: its end, 50, is before its beginning, 100\.$"):
        Cursor().select("100,50", 10, 200)


def test_fewer_than_asked_for_end_with_the_first_ones() -> None:
    assert Cursor().select("1,-20", 10, 200) == PageSelection(1, 2)
    with pytest.raises(RangeError, match="numbers go from 1 to 200"):
        Cursor().select("0,-20", 10, 200)
