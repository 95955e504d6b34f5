"""Numbers in expressions: which types they have, and what operators make of them (valarith.c, c-exp.y of gdb)."""

from rvtrace_gdb.decode.expressions.syntax import BadExpression, NumberLiteral
from rvtrace_gdb.decode.expressions.types import (
    BOOL,
    CHAR,
    FLOAT,
    SIGNED,
    UNSIGNED,
    UNSIGNED_CHAR,
    VOID,
    BaseType,
    ValueType,
    is_float,
    is_signed,
    size_of,
    stripped,
)
from rvtrace_gdb.decode.expressions.values import TypedValue, number_value

_BASES = {
    "char": (UNSIGNED_CHAR, 1), "signed char": (CHAR, 1), "unsigned char": (UNSIGNED_CHAR, 1), "short": (SIGNED, 2),
    "unsigned short": (UNSIGNED, 2), "int": (SIGNED, 4), "unsigned int": (UNSIGNED, 4), "long": (SIGNED, 0),
    "unsigned long": (UNSIGNED, 0), "long long": (SIGNED, 8), "unsigned long long": (UNSIGNED, 8),
    "float": (FLOAT, 4), "double": (FLOAT, 8), "long double": (FLOAT, 16), "bool": (BOOL, 1), "_Bool": (BOOL, 1),
    "void": (VOID, 1),
}  # fmt: skip
"""The types that every program has: their kind, and their size, 0: that of an address."""
_WORDS = frozenset(["unsigned", "signed", "int", "long", "short", "char", "double", "float", "bool", "_Bool", "void"])


class Arithmetic:
    """The numbers of a program whose addresses have *width* bytes."""

    def __init__(self, width: int) -> None:
        self._width = width

    def base(self, name: str) -> BaseType:
        """Return one of the types that every program has."""
        kind, size = _BASES[name]
        return BaseType(name, size or self._width, kind)

    def literal(self, node: NumberLiteral) -> TypedValue:
        """Return a number of an expression. Raises BadExpression."""
        if node.suffix == "char":
            return number_value(self.base("char"), node.value)
        if isinstance(node.value, float):
            return number_value(self.base("float" if node.suffix == "f" else "double"), node.value)
        unsigned, wide = "u" in node.suffix, node.suffix.count("l")
        names = ["int", "long", "long long"][min(wide, 2) :]
        for name in names:
            bits = 8 * self.base(name).size
            if not unsigned and node.value < 1 << bits - 1:
                return number_value(self.base(name), node.value)
            if (unsigned or not node.is_decimal or name == "long long") and node.value < 1 << bits:
                return number_value(self.base(f"unsigned {name}"), node.value)
        raise BadExpression("Numeric constant too large.")

    def shifted(self, operator: str, kind: BaseType, a: int | float, b: int | float) -> TypedValue:
        """Return a shifted number. Raises BadExpression."""
        if isinstance(a, float) or isinstance(b, float):
            raise BadExpression("Argument to arithmetic operation not a number or boolean.")
        if b < 0 or b >= 8 * kind.size:
            raise BadExpression("the shift is as wide as the number, or negative")
        return number_value(kind, a << b if operator == "<<" else a >> b)

    def promoted(self, kind: ValueType) -> BaseType:
        """Return the type of a number in arithmetic."""
        behind = stripped(kind)
        if is_float(behind):
            assert isinstance(behind, BaseType)
            return behind
        if size_of(behind) < 4 or (isinstance(behind, BaseType) and behind.kind == BOOL):
            return self.base("int")
        if size_of(behind) == 4:
            return self.base("int") if is_signed(behind) else self.base("unsigned int")
        name = "long" if size_of(behind) == self._width else "long long"
        return self.base(name if is_signed(behind) else f"unsigned {name}")

    def common(self, one: ValueType, other: ValueType) -> BaseType:
        """Return the type in which two numbers are put together."""
        a, b = self.promoted(one), self.promoted(other)
        if a.kind == FLOAT or b.kind == FLOAT:
            return max((it for it in (a, b) if it.kind == FLOAT), key=lambda it: it.size)
        if a.size != b.size:
            return a if a.size > b.size else b
        return a if a.kind == UNSIGNED else b

    def converted(self, kind: BaseType, number: int | float) -> int | float:
        """Return a number as one of a type."""
        if kind.kind == FLOAT:
            return float(number)
        bits = 8 * kind.size
        value = int(number) & (1 << bits) - 1
        return value - (1 << bits) if kind.kind == SIGNED and value >> (bits - 1) else value

    def base_named(self, name: str) -> ValueType | None:
        """Return the type of a name such as "unsigned long int", None for any other."""
        words = name.split()
        if not words or any(word not in _WORDS for word in words):
            return None
        unsigned = "unsigned" in words
        rest = sorted(word for word in words if word not in ("unsigned", "signed", "int"))
        plain = "long double" if rest == ["double", "long"] else " ".join(rest) or "int"
        plain = "bool" if plain == "_Bool" else plain
        full = f"unsigned {plain}" if unsigned else plain
        return self.base(full) if full in _BASES else None


def computed(operator: str, a: int | float, b: int | float) -> int | float:
    """Return what an operator makes of two numbers of one type. Raises BadExpression."""
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if isinstance(a, float) or isinstance(b, float):
        if operator == "/":
            return a / b if b else -float("nan") if not a or a != a else float("inf") if a > 0 else float("-inf")
        raise BadExpression("Integer-only operation on floating point.")
    if operator in ("/", "%"):
        if not b:
            raise BadExpression("Division by zero")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if operator == "/" else a - b * quotient
    return {"&": a & b, "|": a | b, "^": a ^ b}[operator]

