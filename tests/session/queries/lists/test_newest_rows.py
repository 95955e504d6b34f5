"""`trace history -N`: the newest N, as `rvtrace decode FILE -N`; `-` alone is gdb's, the page before."""

import pytest

from rvtrace_gdb.session.queries.lists.pages import Cursor, RangeError


@pytest.mark.parametrize(("args", "begin"), [("-2", 99), ("-100", 1), ("-007", 94), ("-" + "9" * 60, 1)])
def test_the_newest(args: str, begin: int) -> None:
    found = Cursor().select(args, 10, 100)
    assert (found.begin, found.end) == (begin, 101)


def test_the_page_before_them_follows() -> None:
    cursor = Cursor()
    cursor.select("-2", 10, 100)
    before = cursor.select("-", 10, 100)
    assert (before.begin, before.end) == (89, 99)


@pytest.mark.parametrize("args", ["-0", "- 2", "-2,5"])
def test_nothing_else_is_new(args: str) -> None:
    with pytest.raises(RangeError):
        Cursor().select(args, 10, 100)
