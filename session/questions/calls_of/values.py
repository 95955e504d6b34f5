"""The values of a call: its arguments where a breakpoint of the function stops, and what it returned behind its return.

What the debug information says of a function is read once, not for each of its calls.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.compiled import ExpressionCompiler, TextFunction, text_function
from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.formatting import Formatter
from rvtrace_gdb.decode.expressions.locations import UNAVAILABLE, UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression
from rvtrace_gdb.decode.expressions.types import ValueType, size_of
from rvtrace_gdb.decode.expressions.values import TypedValue
from rvtrace_gdb.decode.expressions.variables import CodeScope, DebugVariable, local_variables
from rvtrace_gdb.decode.program.dwarf_file import ERRORS
from rvtrace_gdb.session.questions.calls_of.returned import ReturnPlace, return_place
from rvtrace_gdb.session.questions.log.query import LoggedValue, LogTools
from rvtrace_gdb.session.questions.moment import PastMoment

PARAMETER = "DW_TAG_formal_parameter"
_UNAVAILABLE = LoggedValue(UNAVAILABLE, False)


class _Returned(NamedTuple):
    """What a function returns. *place*: None: nothing, or nobody knows where that is."""

    type: ValueType
    place: ReturnPlace | None


class _Argument(NamedTuple):
    name: str
    printing: TextFunction


class CallValues:
    """Makes the texts of the values of calls."""

    def __init__(self, tools: LogTools) -> None:
        self._evaluator, self._formatter = tools.evaluator, Formatter(tools.evaluator)
        self._returned_of: dict[int, _Returned | None] = {}
        self._arguments_of: dict[tuple[int, int], Sequence[_Argument]] = {}

    def arguments(self, function: int, stop: PastMoment | None) -> list[tuple[str, LoggedValue]]:
        """Return the names of the parameters of the function at an address, with their values at a moment, None: that
        at which a breakpoint stops is not known.
        """
        try:
            key = function, -1 if stop is None else stop.pc
            if key not in self._arguments_of:
                self._arguments_of[key] = self._new_arguments(*key)
            return [(it.name, _UNAVAILABLE if stop is None else _printed(it, stop)) for it in self._arguments_of[key]]
        except UnreadableType:
            return []
        except ERRORS:
            return []

    def _new_arguments(self, function: int, stop: int) -> Sequence[_Argument]:
        scope, compiler = self._evaluator.program.scope_at(function), ExpressionCompiler(self._evaluator, stop)
        parameters = () if scope is None else local_variables(scope, PARAMETER)
        return [_Argument(name, self._printing(variable, compiler)) for name, variable in parameters]

    def _printing(self, variable: DebugVariable, compiler: ExpressionCompiler) -> TextFunction:
        compiled = compiler.compiled_variable(variable)
        if compiled is not None:
            return text_function(compiled, self._formatter)
        return lambda moment: self._formatter.text(self._evaluator.variable(variable, moment), moment)

    def returned(self, begin: PastMoment, end: PastMoment) -> LoggedValue | None:
        """Return what a call returned; None: nothing, or nobody knows where that is. *begin*: of the call; *end*:
        behind its return, but with the pc of *begin*.
        """
        try:
            if begin.pc not in self._returned_of:
                self._returned_of[begin.pc] = self._new_returned(begin.pc)
            found = self._returned_of[begin.pc]
            if found is None or found.place is None:
                return None
            return LoggedValue(*self._formatter.text(_value_at(found.type, found.place, begin, end), end))
        except UnknownValue as unknown:
            return LoggedValue(unknown.text, False)
        except (UnreadableType, BadExpression):
            return _UNAVAILABLE
        except ERRORS:
            return _UNAVAILABLE

    def _new_returned(self, function: int) -> _Returned | None:
        scope: CodeScope | None = self._evaluator.program.scope_at(function)
        if scope is None:
            return None
        kind = scope.unit.types.of(scope.concrete)
        image = self._evaluator.image
        return _Returned(kind, return_place(kind, image.xlen, image.elves[0][0].flags if image.elves else 0))


def _printed(argument: _Argument, moment: PastMoment) -> LoggedValue:
    try:
        return LoggedValue(*argument.printing(moment))
    except UnknownValue as unknown:
        return LoggedValue(unknown.text, False)
    except BadExpression:
        return _UNAVAILABLE


def _value_at(kind: ValueType, place: ReturnPlace, begin: PastMoment, end: PastMoment) -> TypedValue:
    if place.is_in_memory:  # the caller says where, before the arguments
        address = begin.named_register("a0")
        if address is None:
            raise UnknownValue
        return TypedValue(kind, address)
    content: list[int | None] = [None] * size_of(kind)
    for piece in place.pieces:
        number = end.named_register(piece.register)
        if number is not None:
            known = (number & (1 << 8 * piece.size) - 1).to_bytes(piece.size, "little")
            content[piece.offset : piece.offset + piece.size] = known
    inside = {at for it in place.pieces for at in range(it.offset, it.offset + it.size)}
    return TypedValue(kind, content=[byte if at in inside else 0 for at, byte in enumerate(content)])
