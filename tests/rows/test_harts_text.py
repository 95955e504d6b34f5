"""The numbers of harts, of which those that follow each other are a range."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.rows.harts_text import harts_text, numbers_text


@pytest.mark.parametrize(
    ("harts", "text"),
    [
        ([3], "hart 3"),
        ([0, 1], "harts 0, 1"),
        ([0, 1, 2], "harts 0 to 2"),
        ([0, 1, 2, 3, 6, 9, 10, 11], "harts 0 to 3, 6, 9 to 11"),
        ([0, 2, 4, 5, 7, 8, 9, 10], "harts 0, 2, 4, 5, 7 to 10"),
        ([0, 2, 4, 6], "harts 0, 2, 4, 6"),
        (range(8, 16), "harts 8 to 15"),
        ([2, 1, 0], "harts 2, 1, 0"),
    ],
)
def test_harts(harts: Sequence[int], text: str) -> None:
    assert harts_text(harts) == text
    assert numbers_text(iter(harts)) == text.partition(" ")[2]
