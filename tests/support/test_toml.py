"""TOML of hostile make. Python's own parser takes 50 seconds for the first of these."""

import time
import tomllib

import pytest

from rvtrace_gdb.support.toml import PARTS, loads


@pytest.mark.parametrize("key", [".".join(["a"] * 60_000), " . ".join(["a"] * 60_000), '."x"' * 60_000, "a" * 200_000])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "[[{}]]", "x = {{{} = 1}}"])
def test_a_long_key_is_refused_at_once(key: str, form: str) -> None:
    began = time.process_time()
    try:
        loads("a = 1\n" + form.format(key.lstrip(".")))
    except tomllib.TOMLDecodeError as error:
        assert str(error) == f"A key has more than {PARTS} parts (at line 2, column 1)"
    else:
        assert "." not in key
    assert time.process_time() - began < 5


def test_what_people_write_is_read() -> None:
    text = 'a.b.c = "1.2.3.4"\n[x.y]\nz = [1.5, 2.5]\nlong = "' + "word. " * 1000 + '"\n'
    assert loads(text.replace("word. ", "word, ")) == tomllib.loads(text.replace("word. ", "word, "))
