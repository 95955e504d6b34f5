"""What stands behind the verbs of a script: times, comparisons, text with variables in it."""

import operator
import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.console.scripts.language import Expected

_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|min)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}
_WITHIN = re.compile(r"(?P<before>.*?)(?:^|\s+)within\s+(?P<time>\S+)")
_COMPARED = re.compile(r"(?P<what>.*?)(?:^|\s+)(?P<sign><=|>=|==|!=|<|>)\s+(?P<value>.+)")
_VARIABLE = re.compile(r"\$(?:\$|(?P<name>[A-Za-z_]\w*))")
SIGNS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


class Comparison(NamedTuple):
    """*what* is compared with the value of an expression."""

    what: str
    sign: str
    value: str


class Within(NamedTuple):
    """*what*, within so many seconds; None: as long as the default is."""

    what: str
    seconds: float | None


def seconds(text: str) -> float:
    """A time: 500ms, 2s, 1.5s, 3min. Raises Expected."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Expected(f"expected a time as 500ms, 2s or 3min, got: {text or 'nothing'}")
    return float(found["number"]) * _SECONDS[found["unit"]]


def within(text: str) -> Within:
    """`WHAT [within TIME]`. Raises Expected."""
    found = _WITHIN.fullmatch(text)
    if found is None:
        return Within(text, None)
    return Within(found["before"], seconds(found["time"]))


def comparison(text: str) -> Comparison | None:
    """`WHAT < EXPRESSION`, with spaces around the sign; None: there is no such sign."""
    found = _COMPARED.fullmatch(text)
    return None if found is None else Comparison(found["what"].strip(), found["sign"], found["value"].strip())


def file_name(text: str) -> str:
    """A name of a file may be quoted, and need not be; `~` is the home directory."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return os.path.expanduser(text[1:-1] if quoted else text)


def filled(text: str, value: Callable[[str], str]) -> str:
    """A text in which each $NAME is replaced by its value, and $$ by a $."""
    return _VARIABLE.sub(lambda found: "$" if found["name"] is None else value(found["name"]), text)
