"""The decisions in C and C++ source text: expressions of `&&` and `||`, with their conditions.

A decision is the outermost such expression; its conditions are what `&&`, `||` and `!` join. A decision with another
one inside a condition (in the arguments of a call, in a comparison) is not counted, as clang does not.

Source: clang's "Source-based Code Coverage", "MC/DC Instrumentation"; DO-178C for the terms.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class SourcePoint(NamedTuple):
    """A place in a source file; both are counted from 1."""

    line: int
    column: int


class SourceExtent(NamedTuple):
    """From *start* up to the character before *end*."""

    start: SourcePoint
    end: SourcePoint


TRUE, FALSE = -1, -2
"""The results of a decision, where the numbers of conditions lead on."""


class ConditionEdges(NamedTuple):
    """Where a condition leads if it is *true*, and if it is *false*: to the condition with a number, or to TRUE or
    FALSE, the result of the decision.
    """

    true: int
    false: int


@dataclass(frozen=True)
class SourceDecision:
    """A decision in the source text.

    extent      the whole expression
    statement   the statement around it
    conditions  their extents, in the order of the text
    edges       of each condition
    takers      where the operators are that take its result: `!` in front of its brackets, `?` and `:` behind it
    """

    extent: SourceExtent
    statement: SourceExtent
    conditions: tuple[SourceExtent, ...]
    edges: tuple[ConditionEdges, ...]
    takers: tuple[SourcePoint, ...] = ()


class _SourceToken(NamedTuple):
    spelling: str
    start: SourcePoint
    end: SourcePoint


_TOKEN = re.compile(
    r"""(?P<skip>\s+|//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|^[ \t]*\#(?:\\\n|/\*.*?(?:\*/|\Z)|[^\n])*)
    |R"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
    |\w+|&&=?|\|\|=?|[-+*/%&|^!=<>]=|<<=?|>>=?|->|::|.""",
    re.S | re.M | re.X,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(
    {
        *(";", ",", "?", ":", "=", "{", "}", "return", "case", "else", "do", "throw", "goto", "default"),
        *("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "co_return", "co_yield"),
    }
)
"""Where an expression of `&&` and `||` ends: what binds less, and what is no expression."""
_CONTROL = frozenset(["if", "while", "for", "switch"])


class _Bracketed(NamedTuple):
    """Tokens in brackets."""

    opening: _SourceToken
    inside: "list[_SourceToken | _Bracketed]"
    closing: _SourceToken

    @property
    def start(self) -> SourcePoint:
        return self.opening.start

    @property
    def end(self) -> SourcePoint:
        return self.closing.end


_TokenItems = Sequence["_SourceToken | _Bracketed"]
_DEPTH_AT_MOST = 200


def decisions(text: str) -> list[SourceDecision]:
    """Return the decisions in the text of a file, in its order; what cannot be understood has none."""
    tokens = _tokens(text)
    found: list[SourceDecision] = []
    items, _ = _grouped(tokens, 0, 0)
    for extent, part in _statements(items):
        found += _decisions_in(part, extent)
    return sorted(found, key=lambda it: it.extent)


def _tokens(text: str) -> list[_SourceToken]:
    starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def point(at: int) -> SourcePoint:
        line = bisect_right(starts, at)
        return SourcePoint(line, at - starts[line - 1] + 1)

    return [
        _SourceToken(match[0], point(match.start()), point(match.end()))
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skip"
    ]


def _grouped(tokens: list[_SourceToken], at: int, depth: int) -> "tuple[list[_SourceToken | _Bracketed], int]":
    """Return the tokens from a place on, up to an unmatched closing bracket, and where that is."""
    found: list[_SourceToken | _Bracketed] = []
    while at < len(tokens):
        token = tokens[at]
        if token.spelling in _CLOSING.values():
            break
        at += 1
        if token.spelling in _CLOSING and depth < _DEPTH_AT_MOST:
            inside, at = _grouped(tokens, at, depth + 1)
            if at < len(tokens) and tokens[at].spelling == _CLOSING[token.spelling]:
                found.append(_Bracketed(token, inside, tokens[at]))
                at += 1
                continue
            found.extend(inside)
            continue
        found.append(token)
    return found, at


def _statements(items: _TokenItems) -> Iterator[tuple[SourceExtent, _TokenItems]]:
    """Yield the statements, those of blocks each by itself."""
    part: list[_SourceToken | _Bracketed] = []
    for item in items:
        if isinstance(item, _Bracketed) and item.opening.spelling == "{":
            if part:
                yield SourceExtent(part[0].start, item.start), part
                part = []
            yield from _statements(item.inside)
        elif isinstance(item, _SourceToken) and item.spelling == ";":
            if part:
                yield SourceExtent(part[0].start, item.start), part
                part = []
        else:
            part.append(item)
    if part:
        yield SourceExtent(part[0].start, part[-1].end), part


def _decisions_in(
    items: _TokenItems, statement: SourceExtent, outer: tuple[SourcePoint, ...] = ()
) -> Iterator[SourceDecision]:
    """Yield the decisions of a statement, or of what is in brackets. *outer*: what takes the result of the brackets."""
    for part, takers in _expressions(items):
        takers = outer if len(part) == len(items) else takers
        if any(_is_operator(item) for item in part):
            decision = _decision(part, statement)
            if decision is not None:
                yield replace(decision, takers=takers)
            continue
        *before, last = part
        negations = tuple(item.start for item in before if _is_operator(item, "!", "not"))
        is_whole = len(negations) == len(before)
        for item in part:
            if isinstance(item, _Bracketed):
                taken = (*negations, *takers) if item is last and is_whole else ()
                yield from _decisions_in(item.inside, statement, taken)


def _expressions(items: _TokenItems) -> Iterator[tuple[list["_SourceToken | _Bracketed"], tuple[SourcePoint, ...]]]:
    """Yield expressions, with the places of a `?` behind them and of its `:`."""
    part: list[_SourceToken | _Bracketed] = []
    control = False
    for at, item in enumerate(items):
        if isinstance(item, _Bracketed) and control:
            yield [item], ()  # the brackets of `if`: what follows is another statement
            control = False
        elif isinstance(item, _SourceToken) and (item.spelling in _ENDS or item.spelling in _CONTROL):
            control = item.spelling in _CONTROL
            if part:
                yield part, _choice(items, at)
            part = []
        else:
            control = control and isinstance(item, _SourceToken) and item.spelling == "constexpr"
            part.append(item)
    if part:
        yield part, ()


def _choice(items: _TokenItems, at: int) -> tuple[SourcePoint, ...]:
    """Return where a `?` and its `:` are; nothing if there is another token."""
    open_choices = 0
    for item in items[at:]:
        spelling = item.spelling if isinstance(item, _SourceToken) else ""
        open_choices += (spelling == "?") - (spelling == ":")
        if not open_choices:
            return () if item is items[at] else (items[at].start, item.start)
    return ()


def _is_operator(item: "_SourceToken | _Bracketed", *texts: str) -> bool:
    return isinstance(item, _SourceToken) and item.spelling in (texts or ("&&", "||", "and", "or"))


class _Nested(Exception):
    """A condition has a decision in it, or there is nothing between two operators."""


def _decision(items: _TokenItems, statement: SourceExtent) -> SourceDecision | None:
    conditions: list[SourceExtent] = []
    edges: dict[int, ConditionEdges] = {}
    try:
        _count(items, conditions)
        _lead(items, TRUE, FALSE, [0], edges)
    except _Nested:
        return None
    extent = SourceExtent(items[0].start, items[-1].end)
    ordered = tuple(edges[number] for number in range(len(conditions)))
    return SourceDecision(extent, statement, tuple(conditions), ordered)


def _operands(items: _TokenItems) -> tuple[str, list[_TokenItems]]:
    """Return the operator that binds least, "" for a condition, and what it joins."""
    for name, texts in (("||", ("||", "or")), ("&&", ("&&", "and"))):
        if any(_is_operator(item, *texts) for item in items):
            parts: list[list[_SourceToken | _Bracketed]] = [[]]
            for item in items:
                if _is_operator(item, *texts):
                    parts.append([])
                else:
                    parts[-1].append(item)
            if not all(parts):
                raise _Nested
            return name, list(parts)
    return "", [items]


def _inner(items: _TokenItems) -> tuple[int, _TokenItems | None]:
    """Return how many `!` a condition has, and what is in the brackets behind them if that is a decision."""
    rest = list(items)
    count = 0
    while rest and _is_operator(rest[0], "!", "not"):
        rest, count = rest[1:], count + 1
    if len(rest) == 1 and isinstance(rest[0], _Bracketed) and rest[0].opening.spelling == "(":
        inside = rest[0].inside
        if any(_is_operator(item) for item in inside):
            if any(isinstance(item, _SourceToken) and item.spelling in _ENDS for item in inside):
                raise _Nested
            return count, inside
        further, deeper = _inner(inside)
        return count + further, deeper
    if any(_has_operator(item) for item in rest):
        raise _Nested
    return count, None


def _has_operator(item: "_SourceToken | _Bracketed") -> bool:
    return any(map(_has_operator, item.inside)) if isinstance(item, _Bracketed) else _is_operator(item)


def _count(items: _TokenItems, conditions: list[SourceExtent]) -> None:
    """Collect the conditions of an expression, in order."""
    operator, parts = _operands(items)
    for part in parts:
        if operator:
            _count(part, conditions)
            continue
        _, inside = _inner(part)
        if inside is None:
            conditions.append(SourceExtent(part[0].start, part[-1].end))
        else:
            _count(inside, conditions)


def _lead(items: _TokenItems, true: int, false: int, following: list[int], edges: dict[int, ConditionEdges]) -> int:
    """Note where the conditions of an expression lead, and return its first one. *following*: the next number."""
    operator, parts = _operands(items)
    if not operator:
        negations, inside = _inner(items)
        if negations % 2:
            true, false = false, true
        if inside is not None:
            return _lead(inside, true, false, following, edges)
        number = following[0]
        following[0] += 1
        edges[number] = ConditionEdges(true, false)
        return number
    first = following[0]
    for at, part in enumerate(parts):
        conditions: list[SourceExtent] = []
        _count(part, conditions)
        after = following[0] + len(conditions)  # the first condition of the next operand
        is_last = at == len(parts) - 1
        if operator == "&&":
            _lead(part, true if is_last else after, false, following, edges)
        else:
            _lead(part, true, false if is_last else after, following, edges)
    return first
