"""Expressions at one instruction as functions: what is the same each time that it runs is found out once.

What is common is compiled: integers, pointers and enumerations in registers and in memory, members, elements, the
arithmetic of integers. Everything else `Evaluator` evaluates each time. Both give the same (valarith.c of gdb).
"""

from collections.abc import Callable
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.arithmetic import computed
from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.evaluator import COMPARISONS, Evaluator
from rvtrace_gdb.decode.expressions.formatting import Formatter
from rvtrace_gdb.decode.expressions.locations import ExpressionMoment, FixedPlace, UnknownValue
from rvtrace_gdb.decode.expressions.syntax import (
    BadExpression,
    BinaryOperation,
    CastExpression,
    ExpressionNode,
    MemberAccess,
    NumberLiteral,
    RegisterName,
    UnaryOperation,
    VariableName,
)
from rvtrace_gdb.decode.expressions.types import (
    BOOL,
    FLOAT,
    VOID,
    Array,
    BaseType,
    MemberField,
    Pointer,
    Struct,
    ValueType,
    is_float,
    is_scalar,
    is_signed,
    size_of,
    stripped,
)
from rvtrace_gdb.decode.expressions.values import TypedValue, number_value, scalar_of
from rvtrace_gdb.decode.expressions.variables import CodeAddress, Constant, DebugVariable
from rvtrace_gdb.decode.program.dwarf_file import ERRORS
from rvtrace_gdb.decode.tandem.wording import regno_of

NumberFunction = Callable[[ExpressionMoment], int]
"""Computes a number. Raises UnknownValue."""


class CompiledNumber(NamedTuple):
    """An integer, a pointer, or one of an enumeration."""

    type: ValueType
    number: NumberFunction

    def value(self, moment: ExpressionMoment) -> TypedValue:
        """Return the value at a moment. Raises UnknownValue."""
        return number_value(self.type, self.number(moment))


class CompiledPlace(NamedTuple):
    """Something in memory. *bits*: of a bit-field, as `TypedValue` has them."""

    type: ValueType
    address: NumberFunction
    bits: tuple[int, int] | None = None

    def value(self, moment: ExpressionMoment) -> TypedValue:
        """Return the value at a moment. Raises UnknownValue."""
        return TypedValue(self.type, self.address(moment), bits=self.bits)

    def number(self, moment: ExpressionMoment) -> int:
        """Return the number that is there. Raises UnknownValue."""
        return int(scalar_of(self.value(moment), moment))


CompiledExpression = CompiledNumber | CompiledPlace


class _NotCompiled(Exception):
    """Something that is evaluated each time."""


TextFunction = Callable[[ExpressionMoment], tuple[str, bool]]
"""Makes the text of a value, and says whether all of it is known. Raises UnknownValue, BadExpression."""


def text_function(compiled: CompiledExpression, formatter: Formatter) -> TextFunction:
    """Return what makes the text of a value, as `Formatter.text`."""
    if formatter.prints_plainly(compiled.type):
        number = _loaded(compiled).number
        return lambda moment: (str(number(moment)), True)
    value = compiled.value
    return lambda moment: formatter.text(value(moment), moment)


class ExpressionCompiler:
    """Compiles expressions of the instruction at *pc*."""

    def __init__(self, evaluator: Evaluator, pc: int) -> None:
        self._evaluator, self._pc, self._scope = evaluator, pc, evaluator.program.scope_at(pc)
        self._width, self._mask = evaluator.image.xlen // 8, evaluator.locations.mask
        self._numbers = evaluator.numbers

    def compiled(self, node: ExpressionNode) -> CompiledExpression | None:
        """Return an expression as functions, None if it is evaluated each time."""
        return self._tried(lambda: self._code(node))

    def compiled_condition(self, node: ExpressionNode) -> Callable[[ExpressionMoment], bool] | None:
        """Return a condition as a function, see `Evaluator.is_true`; None if it is evaluated each time."""
        found = self._tried(lambda: self._decayed(self._code(node)))
        if found is None:
            return None
        number = found.number
        return lambda moment: bool(number(moment))

    def compiled_variable(self, variable: DebugVariable) -> CompiledExpression | None:
        """Return a variable as functions, None if it is looked for each time."""
        return self._tried(lambda: self._variable(variable))

    def _tried(self, make: Callable[[], CompiledExpression]) -> CompiledExpression | None:
        try:
            return make()
        except (_NotCompiled, BadExpression, UnknownValue, UnreadableType):
            return None  # the evaluation says what is wrong, each time
        except ERRORS:
            return None

    def _code(self, node: ExpressionNode) -> CompiledExpression:
        if isinstance(node, VariableName):
            return self._named_thing(node)
        if isinstance(node, MemberAccess):
            return self._member(node)
        if isinstance(node, BinaryOperation):
            return self._binary(node)
        if isinstance(node, UnaryOperation):
            return self._unary(node)
        if isinstance(node, NumberLiteral):
            return _constant(self._numbers.literal(node))
        if isinstance(node, CastExpression):
            return self._cast(node)
        if isinstance(node, RegisterName):
            return self._register(node.name)
        raise _NotCompiled

    # -- names

    def _named_thing(self, node: VariableName) -> CompiledExpression:
        found = self._evaluator.lookup(node, self._scope)
        if found is None or isinstance(found, CodeAddress):
            raise _NotCompiled
        if isinstance(found, Constant):
            return _constant(number_value(found.type, found.value))
        return self._variable(found)

    def _variable(self, variable: DebugVariable) -> CompiledExpression:
        place = self._evaluator.locations.fixed_place(variable, self._pc)
        if place is None:
            raise _NotCompiled
        if place.offset is not None:
            return CompiledPlace(_no_reference(variable.type), _variable_address(place, self._mask))
        kind = _integer_type(variable.type)
        register, as_type = place.register, _conversion(kind)
        assert register is not None
        if size_of(kind) > 8:
            raise _NotCompiled

        def number(moment: ExpressionMoment) -> int:
            value = moment.register(register)
            if value is None:
                raise UnknownValue
            return as_type(value)

        return CompiledNumber(variable.type, number)

    def _register(self, name: str) -> CompiledNumber:
        if name != "pc" and regno_of(name) is None:
            raise _NotCompiled
        kind = self._evaluator.register_type(name)
        as_type = _conversion(kind)

        def number(moment: ExpressionMoment) -> int:
            value = moment.named_register(name)
            if value is None:
                raise UnknownValue
            return as_type(value)

        return CompiledNumber(kind, number)

    # -- members, elements, pointers

    def _member(self, node: MemberAccess) -> CompiledPlace:
        whole = self._code(node.operand)
        for _ in range(8):
            if not isinstance(stripped(whole.type), Pointer):
                break
            whole = self._pointed(whole)
        kind = self._evaluator.complete(stripped(whole.type))
        found = self._offset_in(kind, node.name) if isinstance(kind, Struct) else None
        if found is None or isinstance(whole, CompiledNumber):
            raise _NotCompiled
        return CompiledPlace(_no_reference(found.type), _moved_address(whole.address, found.offset), found.bits)

    def _offset_in(self, kind: Struct, name: str) -> MemberField | None:
        """Return a member, with its offset in the whole structure."""
        for it in kind.members:
            if it.name == name:
                return it
        for it in kind.members:
            inner = stripped(it.type)
            if isinstance(inner, Struct) and (it.is_base or not it.name):
                found = self._offset_in(inner, name)
                if found is not None:
                    return found._replace(offset=it.offset + found.offset)
        return None

    def _pointed(self, code: CompiledExpression) -> CompiledPlace:
        pointer = self._decayed(code)
        kind, mask, number = stripped(pointer.type), self._mask, pointer.number
        if not isinstance(kind, Pointer):
            raise _NotCompiled
        target = self._evaluator.complete(stripped(kind.target))
        if isinstance(target, BaseType) and target.kind == VOID:
            raise _NotCompiled
        shown = kind.target if target is stripped(kind.target) else target
        return CompiledPlace(_no_reference(shown), lambda moment: number(moment) & mask)

    def _decayed(self, code: CompiledExpression) -> CompiledNumber:
        """Return a number; the pointer that an array is in arithmetic."""
        kind = stripped(code.type)
        if isinstance(kind, Array) and isinstance(code, CompiledPlace):
            address, mask = code.address, self._mask
            return CompiledNumber(Pointer(kind.target, self._width), lambda moment: address(moment) & mask)
        return _loaded(code)

    def _indexed(self, left: CompiledExpression, right: CompiledExpression) -> CompiledPlace:
        if isinstance(stripped(right.type), (Array, Pointer)) and not isinstance(stripped(left.type), (Array, Pointer)):
            left, right = right, left
        kind, index = stripped(left.type), _loaded(right).number
        if isinstance(kind, Array) and isinstance(left, CompiledPlace):
            size, lowest, address = size_of(kind.target), kind.lowest, left.address
            return CompiledPlace(
                _no_reference(kind.target), lambda moment: address(moment) + (index(moment) - lowest) * size
            )
        return self._pointed(self._advanced(_loaded(left), index, 1))

    def _advanced(self, pointer: CompiledNumber, count: NumberFunction, sign: int) -> CompiledNumber:
        kind = stripped(pointer.type)
        if not isinstance(kind, Pointer):
            raise _NotCompiled
        size = sign * (size_of(self._evaluator.complete(stripped(kind.target))) or 1)
        number, mask = pointer.number, self._mask
        return CompiledNumber(pointer.type, lambda moment: number(moment) + count(moment) * size & mask)

    # -- operators

    def _unary(self, node: UnaryOperation) -> CompiledExpression:
        code, operator = self._code(node.operand), node.operator
        if operator == "*":
            return self._pointed(code)
        if operator == "&":
            if isinstance(code, CompiledNumber) or code.bits is not None:
                raise _NotCompiled
            address, mask = code.address, self._mask
            return CompiledNumber(Pointer(code.type, self._width), lambda moment: address(moment) & mask)
        if operator == "!":
            number = self._decayed(code).number
            return CompiledNumber(self._evaluator.truth(self._scope), lambda moment: int(not number(moment)))
        number = _loaded(code).number
        kind = self._numbers.promoted(code.type)
        as_type = _conversion(kind)
        if operator == "~":
            return CompiledNumber(kind, lambda moment: as_type(~number(moment)))
        sign = -1 if operator == "-" else 1
        return CompiledNumber(kind, lambda moment: as_type(sign * number(moment)))

    def _binary(self, node: BinaryOperation) -> CompiledExpression:
        operator = node.operator
        if operator in ("<<", ">>", "@") or (operator in ("/", "%") and not _is_divisor(node.right)):
            raise _NotCompiled
        one, other = self._code(node.left), self._code(node.right)
        if operator == "[":
            return self._indexed(one, other)
        left, right = self._decayed(one), self._decayed(other)
        if operator in ("&&", "||"):
            return self._short_circuit(operator, left.number, right.number)
        pointers = [isinstance(stripped(it.type), Pointer) for it in (left, right)]
        if operator in COMPARISONS:
            return self._compared(operator, left, right, are_pointers=any(pointers))
        if pointers == [True, False] and operator in ("+", "-"):
            return self._advanced(left, right.number, 1 if operator == "+" else -1)
        if any(pointers):
            raise _NotCompiled
        return self._computed(operator, left, right)

    def _short_circuit(self, operator: str, left: NumberFunction, right: NumberFunction) -> CompiledNumber:
        if operator == "&&":
            return CompiledNumber(
                self._evaluator.truth(self._scope), lambda moment: int(bool(left(moment)) and bool(right(moment)))
            )
        return CompiledNumber(
            self._evaluator.truth(self._scope), lambda moment: int(bool(left(moment)) or bool(right(moment)))
        )

    def _compared(
        self, operator: str, left: CompiledNumber, right: CompiledNumber, *, are_pointers: bool
    ) -> CompiledNumber:
        compare, a, b, mask = COMPARISONS[operator], left.number, right.number, self._mask
        truth = self._evaluator.truth(self._scope)
        if are_pointers:
            return CompiledNumber(truth, lambda moment: int(compare(a(moment) & mask, b(moment) & mask)))
        as_type = _conversion(self._numbers.common(left.type, right.type))
        return CompiledNumber(truth, lambda moment: int(compare(as_type(a(moment)), as_type(b(moment)))))

    def _computed(self, operator: str, left: CompiledNumber, right: CompiledNumber) -> CompiledNumber:
        kind = self._numbers.common(left.type, right.type)
        as_type, a, b = _conversion(kind), left.number, right.number
        return CompiledNumber(
            kind, lambda moment: as_type(int(computed(operator, as_type(a(moment)), as_type(b(moment)))))
        )

    def _cast(self, node: CastExpression) -> CompiledNumber:
        kind = self._evaluator.type_of(node.type, self._scope)
        wanted = _integer_type(kind)
        number = self._decayed(self._code(node.operand)).number
        if isinstance(wanted, BaseType) and wanted.kind == BOOL:
            return CompiledNumber(kind, lambda moment: int(number(moment) != 0))
        as_type = _conversion(kind)
        return CompiledNumber(kind, lambda moment: as_type(number(moment)))


def _is_divisor(node: ExpressionNode) -> bool:
    """Return whether an expression is known to be no zero."""
    return isinstance(node, NumberLiteral) and isinstance(node.value, int) and node.value != 0


def _integer_type(kind: ValueType) -> ValueType:
    """Return the type behind one whose values are integers. Raises _NotCompiled for others."""
    behind = stripped(kind)
    if not is_scalar(behind) or is_float(behind):
        raise _NotCompiled
    return _no_reference(behind)


def _no_reference(kind: ValueType) -> ValueType:
    """Return the same type. Raises _NotCompiled for a reference."""
    behind = stripped(kind)
    if isinstance(behind, Pointer) and behind.sign != "*":
        raise _NotCompiled
    return kind


def _constant(value: TypedValue) -> CompiledNumber:
    if isinstance(value.type, BaseType) and value.type.kind == FLOAT:
        raise _NotCompiled
    assert value.content is not None
    known = int.from_bytes(bytes(it or 0 for it in value.content), "little", signed=is_signed(value.type))
    return CompiledNumber(value.type, lambda moment: known)


def _loaded(code: CompiledExpression) -> CompiledNumber:
    """Return the number that is in memory, or the number itself."""
    kind = _integer_type(code.type)
    if isinstance(code, CompiledNumber):
        return code
    if code.bits is not None:
        return CompiledNumber(code.type, code.number)
    address, size, signed = code.address, size_of(kind), is_signed(kind)

    def number(moment: ExpressionMoment) -> int:
        content = moment.memory(address(moment), size)
        try:
            return int.from_bytes(content, "little", signed=signed)  # type: ignore[arg-type] # None is what it refuses
        except TypeError:
            raise UnknownValue from None

    return CompiledNumber(code.type, number)


def _variable_address(place: FixedPlace, mask: int) -> NumberFunction:
    register, offset = place.register, place.offset or 0
    if register is None:
        return lambda moment: offset

    def address(moment: ExpressionMoment) -> int:
        base = moment.register(register)
        if base is None:
            raise UnknownValue
        return base + offset & mask

    return address


def _moved_address(address: NumberFunction, offset: int) -> NumberFunction:
    return (lambda moment: address(moment) + offset) if offset else address


def _conversion(kind: ValueType) -> Callable[[int], int]:
    """Return what makes a number one of a type of integers. Raises _NotCompiled: it is none."""
    _integer_type(kind)
    bits = 8 * size_of(kind)
    mask, sign = (1 << bits) - 1, 1 << bits - 1
    if is_signed(kind):
        return lambda number: (number & mask ^ sign) - sign
    return lambda number: number & mask
