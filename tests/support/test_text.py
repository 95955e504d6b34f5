"""Text from somebody else's file, as it is shown. What is not a character: Unicode's general categories C and Z."""

import unicodedata

import pytest

from rvtrace_gdb.support.text import columns, is_file_name, printable, rows


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("main", "main"),
        ("größe_κ_名前 (1)", "größe_κ_名前 (1)"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[2J\x07\x7f", r"\x1b[2J\x07\x7f"),
        ("\x9b31m", r"\x9b31m"),  # CSI in one character
        ("a\u202eb\u2028c\u200b", r"a\u202eb\u2028c\u200b"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("\0", r"\x00"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_what_is_shown_can_be_printed_whatever_it_was() -> None:
    everything = "".join(map(chr, range(0x3000)))
    for character in printable(everything):
        assert character == " " or unicodedata.category(character)[0] not in "CZ"


@pytest.mark.parametrize(
    ("name", "possible"), [("", True), ("/a b/ü", True), ("caf\udce9", True), ("a\0b", False), ("\ud800", False)]
)
def test_what_a_file_can_be_called(name: str, possible: bool) -> None:
    assert is_file_name(name) == (possible and name != "")


def test_no_row_becomes_two() -> None:
    assert rows(["1\ta", "2\tb"]) == "1\ta\n2\tb\n"
    assert rows(["1\ta\x1b[2J", "2\tb\nc", "3"]) == "1\ta\\x1b[2J\n2\tb\\nc\n3\n"
    assert rows([""]) == "\n"
    assert columns("a\tb\r\tc") == "a\tb\\r\tc"
