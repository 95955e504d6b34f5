"""`print` of `monitor trace`: expressions before the instruction where the debugger is, as far as they are known."""

import re
from collections.abc import Iterator, Sequence

from rvtrace_gdb.console.commands.serve.monitor.places import PlaceUsage
from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest
from rvtrace_gdb.decode.expressions.formatting import FORMATS, Formatter
from rvtrace_gdb.decode.expressions.locations import UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.rows.log_text import split_expressions
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.questions.log.query import LogTools
from rvtrace_gdb.session.questions.moment import FunctionEntries, PastMoment, UnknownPast
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history

_FORMAT = re.compile(r"/([a-z]?)(?:\s+|$)")
_MEMORY = re.compile(r"(?:0x[0-9a-fA-F]+|[0-9]+)\s*,\s*(?:0x[0-9a-fA-F]+|[0-9]+)")
_BYTES = 16  # of memory in a line
USAGE = """\
monitor trace print [/FMT] EXPRESSION[, EXPRESSION ...]
       monitor trace print ADDRESS,SIZE

Values where the debugger is in the past, as far as they are known: variables,
members, indices, casts, registers, with the operators of C. What is not known
is <unavailable>, and so are the unknown parts of structures and arrays, which
the debugger's own `print` refuses as a whole. FMT is a letter of `print`: x d
u o t a c f s. ADDRESS,SIZE: bytes, with -- for those that are unknown."""


def print_values(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    """Yield a line for each expression, or several for bytes. Raises PlaceUsage."""
    text = " ".join(words)
    given = _FORMAT.match(text)
    letter, text = ("", text) if given is None else (given[1], text[given.end() :])
    if letter and letter not in FORMATS:
        raise PlaceUsage(f"trace print: /{letter}: a format is one of {' '.join(FORMATS)}")
    if not text.strip():
        raise PlaceUsage("trace print: of what? An expression, or ADDRESS,SIZE: `trace help print`")
    number = request.places.number()
    if number is None:
        raise PlaceUsage("trace print: the debugger is in the present: its own `print` shows values there")
    selected = request.debugger.timeline.selected(request.hart)
    past = request.debugger.past_of(selected, request.progress)
    if _MEMORY.fullmatch(text.strip()):
        if past is None:
            raise PlaceUsage("no value is known in this trace: `trace values`")
        yield from _memory_lines(request, past, history_position(number), text.strip())
        return
    printed = _PrintedExpressions(request, selected, past, history_position(number), letter)
    expressions = split_expressions(text)
    for expression in expressions:
        name = f"{expression} " if len(expressions) > 1 else ""
        yield f"{name}= {printed.text(expression)}"


def _memory_lines(request: MonitorRequest, past: Past, position: int, text: str) -> Iterator[str]:
    _, (address, size) = request.places.value_place(text, "trace print")
    found = past.memory(position, address, size)
    for begin in range(0, size, _BYTES):
        digits = " ".join("--" if byte is None else f"{byte:02x}" for byte in found[begin : begin + _BYTES])
        yield f"{address + begin:#x}: {digits}"


class _PrintedExpressions:
    """The texts of expressions at a place."""

    def __init__(
        self, request: MonitorRequest, selected: SelectedHistory, past: Past | None, position: int, letter: str
    ) -> None:
        session, history = request.session, selected.history
        tools = session.cached(LogTools, history, lambda: LogTools(selected.program.all_programs))
        entries = FunctionEntries(history, lambda: call_history(session, selected, request.progress))
        registers = {} if past is None else past.registers(position)
        pc = history.pc(position) if position < len(history) else registers.get("pc", 0)
        self._evaluator = tools.evaluator
        self._moment = PastMoment(UnknownPast() if past is None else past, position, pc, entries)
        self._formatter = Formatter(self._evaluator, letter)

    def text(self, expression: str) -> str:
        """Return the text of a value. Raises PlaceUsage."""
        evaluator, moment = self._evaluator, self._moment
        try:
            node = evaluator.parsed(expression, evaluator.program.scope_at(moment.pc))
            return self._formatter.text(evaluator.value(node, moment), moment)[0]
        except BadExpression as error:
            raise PlaceUsage(f"trace print: {error}") from None
        except UnknownValue as unknown:
            return unknown.text
