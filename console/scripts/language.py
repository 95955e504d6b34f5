"""The language of scripted captures: lines with a verb, comments, `repeat` and `if`; and the arguments of verbs.

    repeat 3 as i            # a block, to its `end`
        run until finish within 5s
        save run-$i.rvt
    end

A script is parsed as a whole before anything runs. Arguments may have times, comparisons, and text with variables.
"""

import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rvtrace_gdb.support.errors import RvtraceError


class ScriptLine(NamedTuple):
    """A line of a script, with its text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ScriptError(RvtraceError):
    """An error in a script; *place*: the line."""

    def __init__(self, place: ScriptLine, what: str) -> None:
        super().__init__(f"{place}: {what}")
        self.place = place


class Expected(Exception):
    """An error in a verb's arguments; the text says what was expected."""


class ScriptStep(NamedTuple):
    """A verb with its parsed arguments."""

    place: ScriptLine
    verb: str
    arguments: Any


class Repeat(NamedTuple):
    """A loop: *body* runs *times* times, an expression; *name*: the variable that counts from 1, "" for none."""

    place: ScriptLine
    times: str
    name: str
    body: Sequence["Node"]


class If(NamedTuple):
    """A condition: *body* runs if the expression is not zero, else *other*."""

    place: ScriptLine
    condition: str
    body: Sequence["Node"]
    other: Sequence["Node"]


Node: TypeAlias = ScriptStep | Repeat | If
Parse = Callable[[str, str], Any]
"""Parses (verb, its arguments) to what the verb needs; raises `Expected`."""
BLOCKS = {
    "repeat": "repeat EXPRESSION [as NAME]",
    "if": "if EXPRESSION",
    "else": "else",
    "end": "end",
}
"""The usage of the words that are not in the table of verbs."""
NAME = re.compile(r"[A-Za-z_]\w*")
_REPEAT = re.compile(r"(?P<times>.+?)(?:\s+as\s+(?P<name>[A-Za-z_]\w*))?")


def parse(text: str, file: str, verb: Parse) -> tuple[Node, ...]:
    """Parse a script into nodes. *verb* parses the arguments of a line. Raises ScriptError."""
    return _Parser(text, file, verb).script()


class _Parser:
    def __init__(self, text: str, file: str, verb: Parse) -> None:
        self._lines = list(_statements(text, file))
        self._next = 0
        self._verb = verb

    def script(self) -> tuple[Node, ...]:
        nodes, ender = self._parse_block(None)
        assert ender is None
        return nodes

    def _parse_block(
        self, opened: ScriptLine | None, ends: tuple[str, ...] = ()
    ) -> tuple[tuple[Node, ...], str | None]:
        """Return the nodes up to one of the words that end the block, and that word."""
        nodes: list[Node] = []
        while self._next < len(self._lines):
            place = self._lines[self._next]
            self._next += 1
            word, _, rest = place.text.partition(" ")
            if word in ("else", "end"):
                self._check_end(place, word, rest, ends)
                return tuple(nodes), word
            nodes.append(self._node(place, word, rest.strip()))
        if opened is not None:
            raise ScriptError(opened, f"`{opened.text}` has no `end`")
        return tuple(nodes), None

    def _check_end(self, place: ScriptLine, word: str, rest: str, ends: tuple[str, ...]) -> None:
        if rest.strip():
            raise ScriptError(place, f"`{word}` stands alone on its line, got: {place.text}")
        if word not in ends:
            raise ScriptError(place, f"`{word}` without {'`if`' if word == 'else' else '`repeat` or `if`'}")

    def _node(self, place: ScriptLine, word: str, rest: str) -> Node:
        if word == "repeat":
            return self._repeat(place, rest)
        if word == "if":
            return self._if(place, rest)
        try:
            return ScriptStep(place, word, self._verb(word, rest))
        except Expected as error:
            raise ScriptError(place, str(error)) from None

    def _repeat(self, place: ScriptLine, rest: str) -> Repeat:
        found = _REPEAT.fullmatch(rest)
        if found is None:
            raise ScriptError(place, f"expected: {BLOCKS['repeat']}")
        body, _ = self._parse_block(place, ("end",))
        return Repeat(place, found["times"], found["name"] or "", body)

    def _if(self, place: ScriptLine, rest: str) -> If:
        if not rest:
            raise ScriptError(place, f"expected: {BLOCKS['if']}")
        body, ender = self._parse_block(place, ("else", "end"))
        other: tuple[Node, ...] = ()
        if ender == "else":
            other, _ = self._parse_block(place, ("end",))
        return If(place, rest, body, other)


def _statements(text: str, file: str) -> Iterator[ScriptLine]:
    """Return the lines that are not empty, without comments; a backslash at the end joins the next line."""
    number, begun, whole = 0, 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if whole else number
        stripped = without_comment(line).rstrip()
        if stripped.endswith("\\"):
            whole += stripped[:-1].rstrip() + " "
            continue
        whole += stripped
        if whole.strip():
            yield ScriptLine(file, begun, " ".join(whole.split(None, 1)).rstrip())
        whole = ""
    if whole.strip():
        place = ScriptLine(file, number, whole.strip())
        raise ScriptError(place, "the last line ends with `\\`: its continuation is missing")


def without_comment(line: str) -> str:
    """Return a line up to a `#` at its beginning or after a space, outside quotes."""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote and line[index - 1] != "\\" else quote
        elif character in "\"'":
            quote = character if _opens(line, index) else ""
        elif character == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index]
    return line


def _opens(line: str, index: int) -> bool:
    """Whether a quote begins a quoted text; an apostrophe inside a word does not."""
    return line[index] == '"' or index == 0 or not line[index - 1].isalnum()


_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|min|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "min": 60.0}
_WITHIN = re.compile(r"(?P<before>.*?)(?:^|\s+)within\s+(?P<time>\S+)")
_COMPARED = re.compile(r"(?P<what>.*?)(?:^|\s+)(?P<sign><=|>=|==|!=|<|>)\s+(?P<value>.+)")
_VARIABLE = re.compile(r"\$(?:\$|(?P<name>[A-Za-z_]\w*))")
SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


class Comparison(NamedTuple):
    """A comparison of *what* with the value of an expression."""

    what: str
    sign: str
    value: str


class Within(NamedTuple):
    """*what*, with a time limit in seconds; None: the default."""

    what: str
    seconds: float | None


def seconds(text: str) -> float:
    """Parse a time, 500ms, 2s, 1.5s or 3min, and return seconds; a bare number is seconds. Raises Expected."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Expected(f"expected a time as 500ms, 2s or 3min, got: {text or 'nothing'}")
    return float(found["number"]) * _SECONDS[found["unit"]]


def within(text: str) -> Within:
    """Parse `WHAT [within TIME]`. Raises Expected."""
    found = _WITHIN.fullmatch(text)
    if found is None:
        return Within(text, None)
    return Within(found["before"], seconds(found["time"]))


def comparison(text: str) -> Comparison | None:
    """Parse `WHAT < EXPRESSION`, with spaces around the operator; None if there is no such sign."""
    found = _COMPARED.fullmatch(text)
    return None if found is None else Comparison(found["what"].strip(), found["sign"], found["value"].strip())


def file_name(text: str) -> str:
    """Return the name of a file, which may be quoted; `~` is the home directory."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return os.path.expanduser(text[1:-1] if quoted else text)


def filled(text: str, value: Callable[[str], str]) -> str:
    """Replace each $NAME in a text by its value, and $$ by a $."""
    return _VARIABLE.sub(lambda found: "$" if found["name"] is None else value(found["name"]), text)
