"""Damage to texts that keeps them nearly what they were: a word, a number, a line."""

import random
import re
from collections.abc import Callable, Sequence

from tests.fuzz.damage import mutations

_WORD = re.compile(r"0x[0-9a-fA-F]+|\d+|\w+|[^\w\s]")
_NUMBERS = (
    "0", "1", "-1", "2", "7", "64", "65", "255", "4096", "0x7fffffff", "0xffffffff", "4294967296",
    "0xffffffffffffffff", "18446744073709551616", "-9223372036854775809", "1e400", "0.5", "nan", "inf", "0x", "08",
    "9" * 40, "0x" + "f" * 40, "9" * 5000, "٣", "²", "1_000",
)  # fmt: skip
_STRANGE = (
    "", " ", "\t", "\x00", "\x1b[31m", "\r\n", "\u2028", "ä", "\U0001f600", "%s", "{0}", "\\", '"', "'", "$(x)",
    "../..", "/dev/null", "a" * 300, "[", "]", "{", "}", "[[[[[[[[", "=", ",", "#", ";", "\ufeff", "\x7f",
)  # fmt: skip
_BYTES = 0.1  # share of texts that are damaged as bytes
_MOST = 1 << 16  # characters


def mutated(rng: random.Random, data: bytes, other: bytes, words: Sequence[str] = ()) -> bytes:
    """The text *data* with one to four damages. *words*: that mean something where such texts are read."""
    if rng.random() < _BYTES:
        return mutations.mutated(rng, data, other)
    text, more = data.decode(errors="surrogateescape"), other.decode(errors="surrogateescape")
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = rng.choice(_DAMAGES)(rng, text, more, words)
    return text[:_MOST].encode(errors="surrogateescape")


def word(rng: random.Random, words: Sequence[str] = ()) -> str:
    """One that may stand where another stood."""
    pick = rng.random()
    if pick < 0.4:
        return rng.choice(_NUMBERS)
    if pick < 0.7 and words:
        return rng.choice(words)
    return rng.choice(_STRANGE)


def _other_word(rng: random.Random, text: str, other: str, words: Sequence[str]) -> str:
    found = list(_WORD.finditer(text))
    if not found:
        return word(rng, words)
    chosen = rng.choice(found)
    return text[: chosen.start()] + word(rng, words) + text[chosen.end() :]


def _word_of_other(rng: random.Random, text: str, other: str, words: Sequence[str]) -> str:
    found, there = list(_WORD.finditer(text)), _WORD.findall(other)
    if not found or not there:
        return other
    chosen = rng.choice(found)
    return text[: chosen.start()] + str(rng.choice(there)) + text[chosen.end() :]


def _insert(rng: random.Random, text: str, other: str, words: Sequence[str]) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + word(rng, words) + text[at:]


def _lines(rng: random.Random, text: str, other: str, words: Sequence[str]) -> str:
    """A line that is missing, there twice or many times, elsewhere, or of another text."""
    lines = text.split("\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines) + 1)
    pick = rng.random()
    if pick < 0.3:
        del lines[at]
    elif pick < 0.6:
        lines[to:to] = [lines[at]] * rng.choice((1, 1, 2, 50))
    elif pick < 0.8:
        lines.insert(min(to, len(lines) - 1), lines.pop(at))
    else:
        lines.insert(to, rng.choice(other.split("\n")))
    return "\n".join(lines)


def _cut(rng: random.Random, text: str, other: str, words: Sequence[str]) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] if rng.random() < 0.7 else text[at:]


def _nested(rng: random.Random, text: str, other: str, words: Sequence[str]) -> str:
    """Brackets that are opened often."""
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice("[{(") * rng.choice((1, 3, 2000)) + text[at:]


Damage = Callable[[random.Random, str, str, Sequence[str]], str]
_DAMAGES: tuple[Damage, ...] = (
    _other_word, _other_word, _other_word, _word_of_other, _word_of_other, _insert, _lines, _lines, _cut, _nested,
)  # fmt: skip
