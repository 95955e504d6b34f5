"""TOML files, without a way to keep the program busy: Python's parser takes the square of the parts of a dotted key."""

import re
import tomllib
from typing import Any

PARTS = 64
"""The most parts of a dotted key."""
_TOO_MANY = re.compile(rf"(?<![\w'\"-])(?:[\w'\"-]++[ \t]*+\.[ \t]*+){{{PARTS}}}")


class _LongKey(tomllib.TOMLDecodeError):
    """The error with a message of its own: from Python 3.14 on, the parser's wants the document, and counts there."""

    def __init__(self, message: str) -> None:
        ValueError.__init__(self, message)


def loads(text: str) -> dict[str, Any]:
    """Return the document in a text. Raises tomllib.TOMLDecodeError."""
    for number, line in enumerate(text.splitlines(), 1):
        if _TOO_MANY.search(line) is not None:
            raise _LongKey(f"A key has more than {PARTS} parts (at line {number}, column 1)")
    return tomllib.loads(text)
