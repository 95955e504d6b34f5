"""Which lines of a list a window shows, and how they are cut, against the plain meaning of the words."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.gdbext.tui.viewport import WindowLine, around, cut, highlighted, middle_of, plain, printable, wrapped

HEIGHTS = st.integers(1, 40)


@st.composite
def lists(draw: st.DrawFn) -> list[WindowLine]:
    """Numbers go up by one; between them may be lines without one."""
    first, lines = draw(st.integers(1, 1000)), []
    for number in range(first, first + draw(st.integers(1, 60))):
        lines += [WindowLine("between")] * draw(st.integers(0, 2))
        lines.append(WindowLine(f"row {number}", number))
    return lines


@given(lists(), st.data(), HEIGHTS)
def test_what_is_looked_at_is_in_the_window(lines: list[WindowLine], data: st.DataObject, height: int) -> None:
    wanted = data.draw(st.sampled_from([line.number for line in lines if line.number is not None]))
    shown = around(lines, wanted, height)
    assert len(shown) == min(height, len(lines))
    assert wanted in [line.number for line in shown]
    begin = next(i for i in range(len(lines)) if lines[i : i + len(shown)] == shown)
    index = next(i for i, line in enumerate(lines) if line.number == wanted)
    at_an_end = begin == 0 or begin + height == len(lines)
    assert at_an_end or index - begin == height // 2


@given(lists(), HEIGHTS)
def test_the_middle_is_the_nearest_row_with_a_number(lines: list[WindowLine], height: int) -> None:
    shown = lines[:height]
    found = middle_of(shown, height)
    distances = {line.number: abs(i - height // 2) for i, line in enumerate(shown) if line.number is not None}
    assert distances.get(found or 0) == min(distances.values(), default=None)


COLOURED = st.lists(st.sampled_from(["\x1b[34m", "\x1b[m", "a", "bc", " ", "\x1b[1;31m", "def"])).map("".join)


@given(COLOURED, st.integers(0, 10), st.integers(1, 12))
def test_a_cut_is_of_what_is_seen(text: str, begin: int, width: int) -> None:
    seen = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert plain(cut(text, begin, width)) == seen[begin : begin + width]


@given(COLOURED, st.integers(0, 10), st.integers(1, 12))
def test_each_character_keeps_its_colour(text: str, begin: int, width: int) -> None:
    assert coloured(cut(text, begin, width)) == coloured(text)[begin : begin + width]


def coloured(text: str) -> list[tuple[str, str]]:
    """(character, the last colour before it)."""
    found, colour = [], ""
    for piece in re.split("(\x1b\\[[0-9;]*m)", text):
        if piece.startswith("\x1b"):
            colour = piece
        else:
            found += [(char, colour) for char in piece]
    return found


def test_names_of_programs_cannot_move_the_cursor() -> None:
    assert printable("\x1b[34mfoo\x1b[2Jbar\r\n\x07\x1b[m") == "\x1b[34mfoo [2Jbar   \x1b[m"


def test_a_highlighted_line_fills_the_window() -> None:
    assert highlighted("\x1b[34mabc\x1b[m", 5) == "\x1b[7mabc  \x1b[m"
    assert highlighted("abcdefg", 5) == "\x1b[7mabcde\x1b[m"


@given(st.text("ab  ", max_size=40), st.integers(4, 20))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= width or " " not in line for line in lines)
