"""The value of an expression before an instruction, with the rules of C as gdb has them (eval.c, valarith.c)."""

from collections.abc import Callable, Mapping, Sequence

from rvtrace_gdb.decode.expressions.arithmetic import Arithmetic, computed
from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.locations import ExpressionMoment, UnknownValue, VariableLocations
from rvtrace_gdb.decode.expressions.syntax import (
    BadExpression,
    BinaryOperation,
    CastExpression,
    ExpressionNode,
    MemberAccess,
    NumberLiteral,
    RegisterName,
    TypeName,
    TypeSize,
    UnaryOperation,
    VariableName,
    parse,
)
from rvtrace_gdb.decode.expressions.types import (
    BOOL,
    FLOAT,
    NOTHING,
    VOID,
    Array,
    BaseType,
    FunctionType,
    MemberField,
    Pointer,
    Struct,
    ValueType,
    is_float,
    is_scalar,
    size_of,
    stripped,
)
from rvtrace_gdb.decode.expressions.values import TypedValue, number_value, scalar_of
from rvtrace_gdb.decode.expressions.variables import CodeAddress, CodeScope, Constant, DebugVariable, ProgramVariables
from rvtrace_gdb.decode.program.debug_info import CallFrameInformation
from rvtrace_gdb.decode.program.dwarf_file import ERRORS
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.names.unit_functions import C_PLUS_PLUS, RUST

_DATA_POINTERS = frozenset(["sp", "gp", "tp", "fp", "s0", "x2", "x3", "x4", "x8"])
_CODE_POINTERS = frozenset(["pc", "ra", "x1"])
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
}  # fmt: skip
"""The operators that compare."""
_MOST = 1 << 16  # elements of an array that `@` makes


class Evaluator:
    """Evaluates expressions of a program. *problems*: why its debug information cannot be read."""

    def __init__(self, image: Image) -> None:
        self.image, self._width = image, image.xlen // 8
        self.program = ProgramVariables(image)
        self.problems: Sequence[str] = self.program.problems
        self.locations = VariableLocations(CallFrameInformation(image), image.xlen)
        self._found: dict[tuple[str, str, int], DebugVariable | Constant | CodeAddress | None] = {}
        self.numbers = Arithmetic(self._width)
        self._int, self._long = self.numbers.base("int"), self.numbers.base("long")
        self._code = Pointer(FunctionType(NOTHING, (), is_prototyped=False), self._width)

    def parsed(self, text: str, scope: CodeScope | None) -> ExpressionNode:
        """Return an expression. Raises BadExpression."""
        return parse(text, lambda name: self._is_type(name, scope))

    def _is_type(self, name: str, scope: CodeScope | None) -> bool:
        return self.lookup(VariableName(name), scope) is None and self._type_named(name, scope) is not None

    def _type_named(self, name: str, scope: CodeScope | None) -> ValueType | None:
        try:
            return self.program.type_named(name, scope)
        except UnreadableType as error:
            raise BadExpression(f"{error} is a type that is not understood here") from None

    def language(self, scope: CodeScope | None) -> int:
        """Return the DW_LANG of the code around, 0 if that is not known."""
        return 0 if scope is None else scope.unit.language

    # -- expressions

    def value(self, node: ExpressionNode, moment: ExpressionMoment) -> TypedValue:
        """Return the value of an expression. Raises BadExpression: it has none; UnknownValue."""
        try:
            return self._value(node, moment)
        except UnreadableType as error:
            raise BadExpression(f"{error}: a type that is not understood here") from None
        except ERRORS as error:
            raise BadExpression(f"the debug information cannot be read ({error or type(error).__name__})") from None

    def _value(self, node: ExpressionNode, moment: ExpressionMoment) -> TypedValue:
        if isinstance(node, VariableName):
            return self._named(node, moment)
        if isinstance(node, NumberLiteral):
            return self.numbers.literal(node)
        if isinstance(node, RegisterName):
            return self._register(node.name, moment)
        if isinstance(node, MemberAccess):
            return self._member(node, moment)
        if isinstance(node, BinaryOperation):
            return self._binary(node, moment)
        if isinstance(node, UnaryOperation):
            return self._unary(node, moment)
        if isinstance(node, CastExpression):
            kind = self.type_of(node.type, self.program.scope_at(moment.pc))
            return self.cast(kind, self._value(node.operand, moment), moment)
        if isinstance(node, TypeSize):
            return self._size(node, moment)
        chosen = node.one if self.is_true(self._value(node.condition, moment), moment) else node.other
        return self._value(chosen, moment)

    def _size(self, node: TypeSize, moment: ExpressionMoment) -> TypedValue:
        operand = node.operand
        if isinstance(operand, TypeName):
            found = self.type_of(operand, self.program.scope_at(moment.pc))
        else:
            found = self._value(operand, moment).type
        return number_value(self.numbers.base("unsigned long"), size_of(found))

    def _named(self, node: VariableName, moment: ExpressionMoment) -> TypedValue:
        scope = self.program.scope_at(moment.pc)
        found = self.lookup(node, scope)
        if found is None:
            return self._elsewhere(node, scope, moment)
        if isinstance(found, Constant):
            return number_value(found.type, found.value)
        if isinstance(found, CodeAddress):
            return TypedValue(_function_type(found), found.address)
        return self.variable(found, moment)

    def variable(self, variable: DebugVariable, moment: ExpressionMoment) -> TypedValue:
        """Return the value of a variable, what it refers to if it is a reference. Raises UnknownValue."""
        place = self.locations.content(variable, size_of(variable.type), moment)
        value = TypedValue(variable.type, place.address, None if place.address is not None else place.bytes)
        return self.referred(value, moment)

    def referred(self, value: TypedValue, moment: ExpressionMoment) -> TypedValue:
        """Return what a reference refers to, or the value itself."""
        kind = stripped(value.type)
        if isinstance(kind, Pointer) and kind.sign != "*":
            address = int(scalar_of(value, moment)) & (1 << 8 * self._width) - 1
            return TypedValue(kind.target, address, reference=value.type)
        return value

    def lookup(self, node: VariableName, scope: CodeScope | None) -> DebugVariable | Constant | CodeAddress | None:
        """Return what a name means, None for nothing."""
        key = (node.name, node.file, 0 if scope is None else id(scope))
        if key not in self._found:
            self._found[key] = self.program.lookup(node.name, scope, node.file)
        return self._found[key]

    def _elsewhere(self, node: VariableName, scope: CodeScope | None, moment: ExpressionMoment) -> TypedValue:
        """Return what is no variable: true and false, a member of `this`, or nothing."""
        if node.name in ("true", "false"):
            return number_value(self.truth(self.program.scope_at(moment.pc)), node.name == "true")
        has_this = self.language(scope) in C_PLUS_PLUS and node.name != "this"
        if has_this and self.lookup(VariableName("this"), scope) is not None:
            try:
                return self._member(MemberAccess(VariableName("this"), node.name, True), moment)
            except BadExpression:
                pass
        if any(self.image.symbols_named(node.name)):
            raise BadExpression(f"'{node.name}' has unknown type; cast its address to that of its declared type")
        raise NoSymbol(node.name)

    def truth(self, scope: CodeScope | None) -> BaseType:
        """Return the type of what is true or false."""
        language = self.language(scope)
        return self.numbers.base("bool") if language in C_PLUS_PLUS | {RUST} else self._int

    def _register(self, name: str, moment: ExpressionMoment) -> TypedValue:
        try:
            number = moment.named_register(name)
        except KeyError:
            raise BadExpression(f"there is no register ${name}") from None
        kind = self.register_type(name)
        if number is None:
            raise UnknownValue
        return number_value(kind, number)

    def register_type(self, name: str) -> ValueType:
        """Return the type that gdb gives a register. Raises BadExpression: it has several."""
        if name in _CODE_POINTERS:
            return self._code
        if name in _DATA_POINTERS:
            return Pointer(NOTHING, self._width)
        if _is_floating(name):
            raise BadExpression(f"${name} has several values, as a float and as a double: name a variable")
        return self._long if self._width == 8 else self._int

    # -- members, pointers

    def _member(self, node: MemberAccess, moment: ExpressionMoment) -> TypedValue:
        whole = self._value(node.operand, moment)
        for _ in range(8):  # gdb takes `.` for `->`, and the other way round
            kind = stripped(whole.type)
            if not isinstance(kind, Pointer):
                break
            whole = self.dereferenced(whole, moment)
        kind = self.complete(stripped(whole.type))
        if not isinstance(kind, Struct):
            pointer = " pointer" if node.through else ""
            raise BadExpression(f"Attempt to extract a component of a value that is not a structure{pointer}.")
        found = self._in_struct(whole, kind, node.name, moment)
        if found is None:
            raise BadExpression(f"There is no member named {node.name}.")
        return self.referred(found, moment)

    def complete(self, kind: ValueType) -> ValueType:
        """Return the structure itself for one of which only the name is known where it is used."""
        if isinstance(kind, Struct) and not kind.size and not kind.members and kind.name:
            found = self.program.definition(kind.name)
            return kind if found is None else found
        return kind

    def _in_struct(self, aggregate: TypedValue, kind: Struct, name: str, moment: ExpressionMoment) -> TypedValue | None:
        for it in kind.members:
            if it.name == name:
                return self.part(aggregate, it, moment)
        for it in kind.members:
            inner = stripped(it.type)
            if isinstance(inner, Struct) and (it.is_base or not it.name):
                found = self._in_struct(self.part(aggregate, it, moment), inner, name, moment)
                if found is not None:
                    return found
        return None

    def part(self, aggregate: TypedValue, field: MemberField, moment: ExpressionMoment) -> TypedValue:
        """Return a member of a structure."""
        if aggregate.content is None:
            assert aggregate.address is not None
            return TypedValue(field.type, aggregate.address + field.offset, bits=field.bits)
        size = size_of(field.type) if field.bits is None else (sum(field.bits) + 7) // 8
        address = None if aggregate.address is None else aggregate.address + field.offset
        return TypedValue(field.type, address, aggregate.content[field.offset : field.offset + size], field.bits)

    def element(self, array: TypedValue, index: int) -> TypedValue:
        """Return an element of an array, counted from 0."""
        kind = stripped(array.type)
        assert isinstance(kind, Array)
        size = size_of(kind.target)
        address = None if array.address is None else array.address + index * size
        if array.content is None:
            return TypedValue(kind.target, address)
        if not 0 <= index < (kind.length or 0):
            raise UnknownValue
        return TypedValue(kind.target, address, array.content[index * size : (index + 1) * size])

    def dereferenced(self, value: TypedValue, moment: ExpressionMoment) -> TypedValue:
        """Return what a pointer points at. Raises BadExpression."""
        value = self._decayed(value)
        kind = stripped(value.type)
        if isinstance(kind, Pointer):
            target = self.complete(stripped(kind.target))
            if isinstance(target, BaseType) and target.kind == VOID:
                raise BadExpression("Attempt to take contents of a non-pointer value.")
            shown = kind.target if target is stripped(kind.target) else target
            return TypedValue(shown, int(scalar_of(value, moment)) & (1 << 8 * self._width) - 1)
        if isinstance(kind, BaseType) and kind.kind not in (FLOAT, VOID):  # gdb: as a pointer to long
            return TypedValue(self._long, int(scalar_of(value, moment)) & (1 << 8 * self._width) - 1)
        raise BadExpression("Attempt to take contents of a non-pointer value.")

    def _decayed(self, value: TypedValue) -> TypedValue:
        """Return the pointer that an array, or a function, is in arithmetic."""
        kind = stripped(value.type)
        if isinstance(kind, (Array, FunctionType)):
            if value.address is None:
                raise BadExpression("Attempt to take address of value not located in memory.")
            target = kind.target if isinstance(kind, Array) else value.type
            return number_value(Pointer(target, self._width), value.address)
        return value

    # -- operators

    def _unary(self, node: UnaryOperation, moment: ExpressionMoment) -> TypedValue:
        operator = node.operator
        if operator == "*":
            return self.referred(self.dereferenced(self._value(node.operand, moment), moment), moment)
        if operator == "&":
            return self._address(node.operand, moment)
        value = self._value(node.operand, moment)
        if operator == "!":
            return number_value(self.truth(self.program.scope_at(moment.pc)), not self.is_true(value, moment))
        number, kind = self._scalar(value, moment), self.numbers.promoted(value.type)
        if operator == "~":
            if isinstance(number, float):
                raise BadExpression("Argument to complement operation not an integer, boolean.")
            return number_value(kind, ~number)
        return number_value(kind, 0 - number if operator == "-" else number)

    def _address(self, node: ExpressionNode, moment: ExpressionMoment) -> TypedValue:
        if isinstance(node, VariableName) and self.lookup(node, self.program.scope_at(moment.pc)) is None:
            address = next((it for it, _ in self.image.symbols_named(node.name)), None)
            if address is not None:
                return number_value(Pointer(NOTHING, self._width), address)
        value = self._value(node, moment)
        if value.bits is not None:
            raise BadExpression("the address of a bit-field cannot be taken")
        if value.address is None:
            raise BadExpression("Attempt to take address of value not located in memory.")
        return number_value(Pointer(value.type, self._width), value.address)

    def _binary(self, node: BinaryOperation, moment: ExpressionMoment) -> TypedValue:
        operator = node.operator
        if operator in ("&&", "||"):
            first = self.is_true(self._value(node.left, moment), moment)
            decided = first if first == (operator == "||") else self.is_true(self._value(node.right, moment), moment)
            return number_value(self.truth(self.program.scope_at(moment.pc)), decided)
        left, right = self._value(node.left, moment), self._value(node.right, moment)
        if operator == "[":
            return self.referred(self._indexed(left, right, moment), moment)
        if operator == "@":
            return self._memory_array(left, right, moment)
        left, right = self._decayed(left), self._decayed(right)
        pointers = [isinstance(stripped(it.type), Pointer) for it in (left, right)]
        if operator in ("+", "-") and any(pointers):
            return self._pointer_sum(operator, left, right, moment)
        a, b = self._scalar(left, moment), self._scalar(right, moment)
        if operator in COMPARISONS:
            if any(pointers):
                mask = (1 << 8 * self._width) - 1
                a, b = int(a) & mask, int(b) & mask
            else:
                kind = self.numbers.common(left.type, right.type)
                a, b = self.numbers.converted(kind, a), self.numbers.converted(kind, b)
            return number_value(self.truth(self.program.scope_at(moment.pc)), COMPARISONS[operator](a, b))
        if operator in ("<<", ">>"):
            return self.numbers.shifted(operator, self.numbers.promoted(left.type), a, b)
        kind = self.numbers.common(left.type, right.type)
        a, b = self.numbers.converted(kind, a), self.numbers.converted(kind, b)
        return number_value(kind, computed(operator, a, b))

    def _indexed(self, left: TypedValue, right: TypedValue, moment: ExpressionMoment) -> TypedValue:
        if isinstance(stripped(right.type), (Array, Pointer)) and not isinstance(stripped(left.type), (Array, Pointer)):
            left, right = right, left
        index, kind = int(self._scalar(right, moment)), stripped(left.type)
        if isinstance(kind, Array):
            return self.element(left, index - kind.lowest)
        if not isinstance(kind, Pointer):
            raise BadExpression("cannot subscript something that is neither an array nor a pointer")
        return self.dereferenced(self._advanced(left, kind, index, moment), moment)

    def _advanced(self, pointer: TypedValue, kind: Pointer, count: int, moment: ExpressionMoment) -> TypedValue:
        size = size_of(self.complete(stripped(kind.target))) or 1
        return number_value(pointer.type, int(scalar_of(pointer, moment)) + count * size)

    def _pointer_sum(self, operator: str, left: TypedValue, right: TypedValue, moment: ExpressionMoment) -> TypedValue:
        one, other = stripped(left.type), stripped(right.type)
        if isinstance(one, Pointer) and isinstance(other, Pointer):
            size = size_of(one.target) or 1
            if operator == "+" or size != (size_of(other.target) or 1):
                raise BadExpression("pointers are subtracted from others of the same type alone")
            distance = int(scalar_of(left, moment)) - int(scalar_of(right, moment))
            return number_value(self._long, distance // size)
        if isinstance(other, Pointer):
            if operator == "-":
                raise BadExpression("Argument to arithmetic operation not a number or boolean.")
            left, right, one = right, left, other
        assert isinstance(one, Pointer)
        count = int(self._scalar(right, moment))
        return self._advanced(left, one, -count if operator == "-" else count, moment)

    def _memory_array(self, left: TypedValue, right: TypedValue, moment: ExpressionMoment) -> TypedValue:
        count = int(self._scalar(right, moment))
        if left.address is None or left.bits is not None:
            raise BadExpression("Only values in memory can be extended with '@'.")
        if not 0 < count <= _MOST:
            raise BadExpression(f"Invalid number {count} of repetitions.")
        return TypedValue(Array(left.type, count), left.address)

    def _scalar(self, value: TypedValue, moment: ExpressionMoment) -> int | float:
        if not is_scalar(value.type):
            raise BadExpression("Argument to arithmetic operation not a number or boolean.")
        return scalar_of(value, moment)

    def is_true(self, value: TypedValue, moment: ExpressionMoment) -> bool:
        """Return whether a value is not 0. Raises UnknownValue, BadExpression."""
        return bool(self._scalar(self._decayed(value), moment))

    # -- types

    def type_of(self, named: TypeName, scope: CodeScope | None) -> ValueType:
        """Return the type that is named. Raises BadExpression."""
        kind = self.numbers.base_named(named.name) or self._type_named(named.name, scope)
        if kind is None:
            raise BadExpression(f"No type named {named.name}.")
        for it in named.derived:
            kind = Pointer(kind, self._width, it) if isinstance(it, str) else Array(kind, it)
        return kind

    def cast(self, kind: ValueType, value: TypedValue, moment: ExpressionMoment) -> TypedValue:
        """Return a value as one of another type. Raises BadExpression."""
        wanted, given = stripped(kind), stripped(value.type)
        if isinstance(wanted, (Struct, Array)):
            if isinstance(given, type(wanted)) and size_of(given) == size_of(wanted):
                return value._replace(type=kind)
            raise BadExpression("Invalid cast.")
        if isinstance(wanted, Pointer) and wanted.sign != "*":
            if value.address is None:
                raise BadExpression("Attempt to take address of value not located in memory.")
            return TypedValue(wanted.target, value.address)
        if isinstance(wanted, BaseType) and wanted.kind == VOID:
            return TypedValue(kind, content=())
        value = self._decayed(value)
        number = self._scalar(value, moment)
        if isinstance(wanted, BaseType) and wanted.kind == BOOL:
            number = number != 0
        elif not is_float(wanted):
            number = int(number) if number == number and abs(number) != float("inf") else 0
        return number_value(kind, number)


def _function_type(code: CodeAddress) -> FunctionType:
    given = [code.types.of(it) for it in code.entry.iter_children() if it.tag == "DW_TAG_formal_parameter"]
    return FunctionType(code.types.of(code.entry), tuple(given), "DW_AT_prototyped" in code.entry.attributes)


class NoSymbol(BadExpression):
    """A *name* that means nothing at an instruction: at another one it may. *near*: what is said of names like it."""

    def __init__(self, name: str, near: str = "") -> None:
        super().__init__(f'No symbol "{name}" in current context.{near}')
        self.name = name


def _is_floating(name: str) -> bool:
    return name[:1] == "f" and name != "fp" and not name.startswith(("fflags", "frm", "fcsr"))
