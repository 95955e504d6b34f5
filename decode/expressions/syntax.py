"""Reading expressions in the language that gdb has for C and C++, and for the simple ones of Rust.

Names of types are only known to the program: `is_type` answers for each name. Casts, `sizeof`, members, indices, `*`
and `&`, arithmetic, comparisons, `? :`, `@` (a part of memory as an array), registers (`$a0`), numbers, characters.
What changes the program (assignments, `++`, calls) is refused.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Union

from rvtrace_gdb.support.errors import RvtraceError


class BadExpression(RvtraceError):
    """A text that is not an expression, or none that is understood here."""


class ChangingExpression(BadExpression):
    """An expression that would change the program, or run it."""


class NumberLiteral(NamedTuple):
    """An integer, a floating-point number, or a character; *suffix*: its letters ("u", "ul", "f"), or "char"."""

    value: int | float
    suffix: str
    is_decimal: bool = True


class VariableName(NamedTuple):
    """A variable, `file.c::variable` with *file*."""

    name: str
    file: str = ""


class RegisterName(NamedTuple):
    """`$a0`."""

    name: str


class UnaryOperation(NamedTuple):
    """`*`, `&`, `-`, `+`, `~`, `!`."""

    operator: str
    operand: "ExpressionNode"


class BinaryOperation(NamedTuple):
    """Two operands and what is done with them; `[` is an index, `@` an array."""

    operator: str
    left: "ExpressionNode"
    right: "ExpressionNode"


class MemberAccess(NamedTuple):
    """`object.name`, or `pointer->name`."""

    operand: "ExpressionNode"
    name: str
    through: bool


class TypeName(NamedTuple):
    """A type: a name, and what follows it: "*" and "&" from left to right, and numbers of array elements."""

    name: str
    derived: tuple[str | int, ...] = ()


class CastExpression(NamedTuple):
    """`(type) operand`."""

    type: TypeName
    operand: "ExpressionNode"


class TypeSize(NamedTuple):
    """`sizeof (type)`, `sizeof operand`."""

    operand: "TypeName | ExpressionNode"


class ConditionalExpression(NamedTuple):
    """`condition ? one : other`."""

    condition: "ExpressionNode"
    one: "ExpressionNode"
    other: "ExpressionNode"


ExpressionNode = Union[  # noqa: UP007 - it is recursive
    NumberLiteral, VariableName, RegisterName, UnaryOperation, BinaryOperation, MemberAccess, CastExpression, TypeSize,
    ConditionalExpression,
]  # fmt: skip

IsType = Callable[[str], bool]
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fFlL]?|[0-9]+[eE][-+]?[0-9]+[fFlL]?)
    |(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(?P<suffix>[uUlL]*)(?![0-9A-Za-z_])
    |(?P<char>'(?:[^'\\]|\\(?:x[0-9a-fA-F]+|[0-7]{1,3}|.))')
    |(?P<file>'[^']+'|[A-Za-z_]\w*\.[A-Za-z]{1,4})(?=::[A-Za-z_])
    |(?P<register>\$[A-Za-z_][\w]*)
    |(?P<name>(?:::)?[A-Za-z_][\w]*(?:::~?[A-Za-z_][\w]*)*)
    |(?P<operator>->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^~!<>?:.,()\[\]@={}])
    )""",
    re.VERBOSE,
)
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27, "0": 0}
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("@",), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
"""BinaryOperation operators, those that bind least first."""
_WORDS = ("unsigned", "signed", "int", "long", "short", "char", "double", "float", "bool", "_Bool", "void")
"""The words that a name of a base type consists of."""
_TAGS = ("struct", "union", "enum", "class")
_QUALIFIERS = ("const", "volatile")
_UNKNOWN_WORDS = ("new", "delete", "alignof", "typeid", "dynamic_cast", "reinterpret_cast", "static_cast", "typeof")
_DEPTH = 100


class _Token(NamedTuple):
    kind: str
    spelling: str
    place: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise BadExpression(f"{text}: it is not understood from `{text[at:].strip()}` on")
        kind = found.lastgroup or ""
        kind = "number" if kind == "suffix" else kind
        begin = found.end() - len(found[0].lstrip())
        yield _Token(kind, found[0].strip(), begin)
        at = found.end()
    yield _Token("end", "", end)


def parse(text: str, is_type: IsType) -> ExpressionNode:
    """Return the expression in a text. Raises BadExpression."""
    parser = _ExpressionParser(text, is_type)
    found = parser.expression()
    parser.end()
    return found


class _ExpressionParser:
    def __init__(self, text: str, is_type: IsType) -> None:
        self._text, self._is_type = text, is_type
        self._tokens = list(_tokens(text))
        self._at = self._depth = 0

    @property
    def _upcoming(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, *operators: str) -> str | None:
        if self._upcoming.kind == "operator" and self._upcoming.spelling in operators:
            return self._take().spelling
        return None

    def _expect(self, operator: str) -> None:
        if not self._accept(operator):
            raise self._error(f"{operator} is missing")

    def _error(self, why: str = "") -> BadExpression:
        rest = self._text[self._upcoming.place :].strip()
        where = f"before `{rest}`" if rest else "at its end"
        return BadExpression(f"{self._text}: {why or 'a syntax error'} {where}")

    def end(self) -> None:
        """Raise BadExpression if something follows."""
        if self._upcoming.kind == "operator" and self._upcoming.spelling in ("=", "++", "--"):
            change = self._upcoming.spelling
            raise ChangingExpression(f"{self._text}: `{change}` would change the program: the past does not change")
        if self._upcoming.kind != "end":
            raise self._error()

    def expression(self) -> ExpressionNode:
        self._depth += 1
        if self._depth > _DEPTH:
            raise BadExpression(f"{self._text}: it is nested too deeply")
        found = self._binary(0)
        if self._accept("?"):
            one = self.expression()
            self._expect(":")
            found = ConditionalExpression(found, one, self.expression())
        self._depth -= 1
        return found

    def _binary(self, level: int) -> ExpressionNode:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while operator := self._accept(*_LEVELS[level]):
            left = BinaryOperation(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> ExpressionNode:
        if operator := self._accept("*", "&", "-", "+", "~", "!"):
            self._depth += 1
            if self._depth > _DEPTH:
                raise BadExpression(f"{self._text}: it is nested too deeply")
            found = UnaryOperation(operator, self._unary())
            self._depth -= 1
            return found
        if self._upcoming == ("name", "sizeof", self._upcoming.place):
            self._take()
            return self._size()
        begin = self._at
        if self._accept("("):
            kind = self._type()
            if kind is not None and self._accept(")"):
                return CastExpression(kind, self._unary())
            self._at = begin
        return self._postfix()

    def _size(self) -> ExpressionNode:
        begin = self._at
        if self._accept("("):
            kind = self._type()
            if kind is not None and self._accept(")"):
                return TypeSize(kind)
            self._at = begin
        return TypeSize(self._unary())

    def _postfix(self) -> ExpressionNode:
        found = self._primary()
        while operator := self._accept("[", ".", "->", "("):
            if operator == "[":
                found = BinaryOperation("[", found, self.expression())
                self._expect("]")
            elif operator == "(" and isinstance(found, RegisterName):
                raise BadExpression(f"{self._text}: ${found.name} is a function of gdb's own, which gdb alone has")
            elif operator == "(":
                raise ChangingExpression(f"{self._text}: a call runs code of the program, which the past does not do")
            else:
                if self._upcoming.kind not in ("name", "number"):
                    raise self._error("the name of a member is missing")
                found = MemberAccess(found, self._take().spelling, operator == "->")
        return found

    def _primary(self) -> ExpressionNode:
        if self._accept("("):
            found = self.expression()
            self._expect(")")
            return found
        token = self._upcoming
        if token.kind == "number":
            return _number_literal(self._take().spelling)
        if token.kind == "float":
            text = self._take().spelling
            return NumberLiteral(float(text.rstrip("fFlL")), "f" if text[-1] in "fF" else "")
        if token.kind == "char":
            return NumberLiteral(_character(self._take().spelling), "char")
        if token.kind == "register":
            return RegisterName(self._take().spelling[1:])
        if token.kind == "file":
            file = self._take().spelling
            if self._upcoming.kind == "name" and self._upcoming.spelling.startswith("::"):
                return VariableName(self._take().spelling[2:], file.strip("'"))
            raise self._error()
        if token.kind == "name" and token.spelling not in _UNKNOWN_WORDS:
            return VariableName(self._take().spelling)
        raise self._error()

    def _type(self) -> TypeName | None:
        """Return the type that follows, None: something else does."""
        words: list[str] = []
        is_named = False
        while self._upcoming.kind == "name":
            word = self._upcoming.spelling
            if word in _QUALIFIERS:
                self._take()
            elif word in _TAGS and not words:
                self._take()
                words, is_named = [f"{word} {self._take().spelling}"], True
            elif word in _WORDS and not is_named:
                words.append(self._take().spelling)
            elif not words and self._is_type(word):
                words, is_named = [self._take().spelling], True
            else:
                break
        return TypeName(" ".join(words), tuple(self._derived())) if words else None

    def _derived(self) -> Iterator[str | int]:
        while True:
            if self._upcoming.kind == "name" and self._upcoming.spelling in _QUALIFIERS:
                self._take()
            elif operator := self._accept("*", "&"):
                yield operator
            elif self._accept("["):
                yield int(_number_literal(self._take().spelling).value)
                self._expect("]")
            elif self._upcoming.spelling == "(" and self._tokens[self._at + 1].spelling == "*":
                raise self._error("types of functions are not understood here")
            else:
                return


def _number_literal(text: str) -> NumberLiteral:
    digits = text.rstrip("uUlL")
    suffix = text[len(digits) :].lower()
    is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdecimal()
    try:
        value = int(digits, 8) if is_octal else int(digits, 0)
    except ValueError:
        raise BadExpression(f"{text}: it is not a number") from None
    return NumberLiteral(value, suffix, digits.isdecimal() and not is_octal)


def _character(text: str) -> int:
    inside = text[1:-1]
    if inside[0] != "\\":
        return ord(inside)
    if inside[1] == "x":
        return int(inside[2:], 16)
    if inside[1] in "01234567":
        return int(inside[1:], 8)
    return _ESCAPES.get(inside[1], ord(inside[1]))
