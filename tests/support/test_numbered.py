"""Which components are said as one, and in which words."""

import pytest

from rvtrace_gdb.support.numbered import alike, names_text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["f0"], "f0"),
        (["f0", "f1"], "f0 and f1"),
        (["f0", "f1", "f2"], "f0 to f2"),
        (["f0", "f2", "f3"], "f0, f2 and f3"),
        (["f0", "f1", "f2", "f4"], "f0 to f2 and f4"),
        (["f0", "f1", "g2"], "f0, f1 and g2"),
        (["f3", "f2", "f1"], "f1 to f3"),
        (["f9", "f10", "f11"], "f9 to f11"),
        (["top", "own", "0x1"], "top, own and 0x1"),
    ],
)
def test_names(names: list[str], text: str) -> None:
    assert names_text(names) == text


def test_what_is_alike() -> None:
    """Neither two alone, nor what goes up and then down, nor what says something else; and nothing is left out."""
    said = {"e0": "on", "e1": "on", "e2": "on", "e3": "off", "e4": "on", "e5": "on", "x": "on", "e7": "on", "e8": "on"}
    assert alike(said, str, lambda name: said[name]) == [
        ["e0", "e1", "e2"], *([name] for name in ("e3", "e4", "e5", "x", "e7", "e8")),
    ]  # fmt: skip
    assert alike(["e2", "e1", "e0", "e1", "e2", "e3"], str, len) == [["e0", "e1", "e2"], ["e1", "e2", "e3"]]
    assert alike(["e0", "e1", "e0", "e0"], str, len) == [["e0"], ["e1"], ["e0"], ["e0"]]
    assert alike([], str, len) == []
