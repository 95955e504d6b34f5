"""The values of a system's expressions: of a hart, of a task, of the lists in memory, at a place of the past."""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.expressions.evaluator import Evaluator
from rvtrace_gdb.decode.expressions.locations import ExpressionMoment, UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression, ExpressionNode
from rvtrace_gdb.decode.expressions.types import Array, Pointer, size_of, stripped
from rvtrace_gdb.decode.expressions.values import TypedValue, content_of, scalar_of
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.tasks.task_system import Expressions
from rvtrace_gdb.support.text import printable

_LONGEST_NAME = 64
_PARSED_AT_MOST = 1 << 12


class NotInProgram(BadExpression):
    """None of some expressions means anything in the program."""


class TaskExpressions:
    """Evaluates expressions in a program, as they would be in the first function of *scope* that it has. *word*: the
    bytes of an address.
    """

    def __init__(self, image: Image, scope: Sequence[str]) -> None:
        self._evaluator = Evaluator(image)
        places = (address for name in scope for address, _ in image.symbols_named(name))
        self.pc = next(places, 0)
        self.word = image.xlen // 8
        self._mask = (1 << image.xlen) - 1
        self._chosen: dict[Expressions, str] = {}
        self._refused: dict[Expressions, NotInProgram] = {}
        self._nodes: dict[str, ExpressionNode] = {}

    def number(self, expressions: Expressions, moment: ExpressionMoment, names: Mapping[str, int]) -> int | None:
        """Return a number, or the address that a pointer has; None: it is not known. Raises NotInProgram."""
        value = self._evaluated(expressions, moment, names)
        if value is None:
            return None
        if isinstance(stripped(value.type), Array):
            return value.address
        try:
            return int(scalar_of(value, moment)) & self._mask
        except UnknownValue:
            return None

    def text(self, expressions: Expressions, moment: ExpressionMoment, names: Mapping[str, int]) -> str | None:
        """Return a text: that in an array of characters, or where a pointer points; None: it is not known. Raises
        NotInProgram.
        """
        value = self._evaluated(expressions, moment, names)
        if value is None:
            return None
        content: Sequence[int | None]
        if isinstance(stripped(value.type), Pointer):
            try:
                content = moment.memory(int(scalar_of(value, moment)) & self._mask, _LONGEST_NAME)
            except UnknownValue:
                return None
        else:
            content = content_of(value, moment)[: max(size_of(value.type), 1)]
        return _text_of(content)

    def _evaluated(
        self, expressions: Expressions, moment: ExpressionMoment, names: Mapping[str, int]
    ) -> TypedValue | None:
        """Return the value of the first expression that means something; None: it is not known."""
        if expressions in self._refused:
            raise self._refused[expressions]
        chosen = self._chosen.get(expressions)
        problem: BadExpression | None = None
        for expression in expressions if chosen is None else (chosen,):
            try:
                found = self._evaluator.value(self._parsed_expression(expression, names), moment)
            except UnknownValue:
                found = None
            except BadExpression as error:
                problem = problem or error
                continue
            self._chosen[expressions] = expression
            return found
        refused = NotInProgram(str(problem or "there is no expression"))
        if chosen is None:
            self._refused[expressions] = refused
        raise refused

    def _parsed_expression(self, expression: str, names: Mapping[str, int]) -> ExpressionNode:
        text = expression
        for name, number in names.items():
            text = text.replace(f"{{{name}}}", str(number) if number < 10 else f"{number:#x}")
        node = self._nodes.get(text)
        if node is None:
            if len(self._nodes) >= _PARSED_AT_MOST:
                self._nodes.clear()
            node = self._nodes[text] = self._evaluator.parsed(text, self._evaluator.program.scope_at(self.pc))
        return node


def _text_of(content: Sequence[int | None]) -> str | None:
    found = bytearray()
    for byte in content:
        if byte is None:
            return None
        if not byte:
            break
        found.append(byte)
    return printable(found.decode("utf-8", "backslashreplace"))
