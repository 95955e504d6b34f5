"""How rows of messages go together: counted by hand."""

import pytest

from rvtrace_gdb.decode.check.alignment import RowAlignment, aligned


@pytest.mark.parametrize(
    ("made", "sent", "agree", "places"),
    [
        ("abcdef", "abcdef", 6, 0),
        ("abcdef", "abcef", 5, 1),  # one is missing
        ("abcdef", "abccdef", 6, 1),  # one came twice
        ("abcdef", "abXdef", 5, 1),  # one is another
        ("abcdef", "abdcef", 4, 1),  # two are exchanged: neither is at its place
        ("abcdefghi", "aXcdefgYi", 7, 2),
        ("abc", "", 0, 1),
        ("", "", 0, 0),
        ("abc", "abcde", 3, 1),
        ("aaaa", "bbbb", 0, 5),  # nothing agrees: each is a place, and the first one, too
        ("abcdefgh", "aUVWXYZbcdefgh", 8, 1),
    ],
)
def test_rows(made: str, sent: str, agree: int, places: int) -> None:
    assert aligned(made, sent, lambda one, other: one == other) == RowAlignment(agree, places)
