"""Where a text is not JSON: RFC 8259 says what is, and each place is counted by hand."""

import pytest

from rvtrace_gdb.support.json_text import NotJson, json_value


@pytest.mark.parametrize("text", ['{"a": [1, "\u00fc"]}', '{"a": [1, "\u00fc"]}'.encode(), b' {"a":[1,"\\u00fc"]}\r\n'])
def test_json(text: bytes | str) -> None:
    assert json_value(text) == {"a": [1, "\u00fc"]}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"[1, 2", "line 1 column 6: "),
        (b'{"a": 1,\n "b" 2}', "line 2 column 6: "),
        (b"", "line 1 column 1: "),
        (b'["\xc3\xbc", x]', "line 1 column 7: "),
        (b'["\xc3\xbc\xff"]', "byte 4 is not UTF-8"),
        (b"\xff\xfe[\0]\0", "byte 0 is not UTF-8"),
    ],
)
def test_where_it_is_none(text: bytes, where: str) -> None:
    with pytest.raises(NotJson, match=r"^is not JSON: ") as caught:
        json_value(text)
    assert str(caught.value).startswith(f"is not JSON: {where}")


@pytest.mark.parametrize("text", [b"[" * 100_000, b"1" * 10_000])
def test_what_cannot_be_read(text: bytes) -> None:
    with pytest.raises(NotJson, match=r"^is not JSON that can be read: too deep, or a number is too long$"):
        json_value(text)
