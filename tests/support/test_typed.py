"""Readers of values that nothing has checked: RFC 8259 and TOML 1.0 tell numbers from truth values, which Python does
not do.
"""

import json

import pytest

from rvtrace_gdb.support import toml, typed


@pytest.mark.parametrize("text", ["true", "false", '"5"', "5.0", "null", "[5]", '{"a": 5}'])
def test_what_json_has_beside_whole_numbers_is_not_a_number(text: str) -> None:
    value = json.loads(text)
    assert typed.number(value) is None
    assert typed.natural(value) is None
    assert typed.number_in(range(1 << 64))(value) is None
    assert typed.list_of([7, value], typed.number) is None
    assert typed.pair_of([value, 7], typed.number, typed.number) is None
    assert typed.pair_of([7, value], typed.number, typed.number) is None


def test_numbers_and_their_ranges() -> None:
    values = toml.loads("none = 0\nmany = 18446744073709551615\nbelow = -1\n")
    assert [typed.number(value) for value in values.values()] == [0, 2**64 - 1, -1]
    assert [typed.natural(value) for value in values.values()] == [0, 2**64 - 1, None]
    assert [typed.number_in(range(1, 1 << 64))(value) for value in values.values()] == [None, 2**64 - 1, None]


def test_texts_lists_and_tables() -> None:
    values = toml.loads('name = ""\nnames = ["a", ""]\nmixed = ["a", 1]\n[table]\na = 0\n')
    assert typed.text(values["name"]) == ""
    assert typed.list_of(values["names"], typed.text) == ["a", ""]
    assert typed.list_of([], typed.text) == []
    assert typed.list_of(values["mixed"], typed.text) is None
    assert typed.list_of(values["name"], typed.text) is None
    assert typed.list_of([values["table"]], typed.table) == [{"a": 0}]
    assert typed.table(values["names"]) is None
    assert typed.pair_of(values["mixed"], typed.text, typed.number) == ("a", 1)
    assert typed.pair_of(values["names"] + ["c"], typed.text, typed.text) is None
