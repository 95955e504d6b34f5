"""Values of which only a part is known in the past: the unknown parts are printed as <unavailable>.

gdb reads a structure or an array as a whole: with one byte of padding that was never written, it cannot be printed.
gdb's protocol cannot mark a byte of memory as unknown. Therefore such values are read member by member here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import gdb
from gdb.FrameDecorator import FrameDecorator

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.command import Command

is_active = False
"""Whether gdb is in the past of a trace that records registers and memory."""

UNAVAILABLE = "<unavailable>"
_MARK = "\x01rvtrace:"
_AGGREGATES = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY)
_FORMAT = re.compile(r"/([xduotacfs]) ")


def text(value: gdb.Value, **options: Any) -> str:
    """Return a value as gdb prints it, its unknown parts <unavailable>. *options*: as for gdb.Value.format_string."""
    try:
        return neutral.value_text(value, **options)
    except gdb.MemoryError:
        pass
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_ARRAY:
        return _array(value, kind, options)
    if kind.code in _AGGREGATES:
        members = (it for it in kind.fields() if hasattr(it, "bitpos"))
        return "{" + ", ".join(f"{_name_prefix(it)}{text(value[it], **options)}" for it in members) + "}"
    return UNAVAILABLE


def _name_prefix(field: gdb.Field) -> str:
    if field.is_base_class:
        return f"<{field.name}> = "
    return f"{field.name} = " if field.name else ""


def _array(value: gdb.Value, kind: gdb.Type, options: dict[str, Any]) -> str:
    first, last = kind.range()
    limit = int(gdb.parameter("print elements") or 0) or last - first + 1
    shown = [text(value[i], **options) for i in range(first, min(last, first + limit - 1) + 1)]
    parts = list(_repeated(shown))
    return "{" + ", ".join(parts) + ("...}" if first + limit <= last else "}")


def _repeated(shown: list[str]) -> Iterator[str]:
    """Join equal elements as `set print repeats` demands."""
    repeats = int(gdb.parameter("print repeats") or 0) or len(shown)
    for element, group in itertools.groupby(shown):
        count = len(list(group))
        if count > repeats:
            yield f"{element} <repeats {count} times>"
        else:
            yield from itertools.repeat(element, count)


def is_readable(value: gdb.Value) -> bool:
    """Whether gdb can read the whole value, and so print it."""
    try:
        value.fetch_lazy()
    except gdb.error:
        return False
    return True


def decorated(frames: Iterator[Any]) -> Iterator[Any]:
    """Decorate the frames of a backtrace; to be called by a frame filter."""
    return map(SafeFrame if is_active else NamedFrame, frames)


class Variable:
    """A symbol of a frame with its value, in the interface that gdb expects of a frame decorator."""

    def __init__(self, symbol: gdb.Symbol, value: gdb.Value) -> None:
        self._symbol, self._value = symbol, value

    def symbol(self) -> gdb.Symbol:
        return self._symbol

    def value(self) -> gdb.Value:
        return self._value


class NamedFrame(FrameDecorator):
    """A frame with the function name that gdb prints where there are no frame filters: without the parameters' types in
    C++; `??` for a frame of no function, for which gdb prints nothing with filters; and the right one also where the
    call is the last instruction of a function without debug information, for which gdb 13 has the next function's.
    """

    def function(self) -> Any:
        found, frame = super().function(), self.inferior_frame()
        if isinstance(found, int) or (found is not None and found == str(frame.function())):
            return frame.name() or "??"
        return found


class SafeFrame(NamedFrame):
    """A frame with variables that gdb may not be able to read as a whole, where gdb would end the backtrace with an
    error.
    """

    def frame_locals(self) -> Any:
        return self._safe(super().frame_locals())

    def frame_args(self) -> Any:
        frame, arguments = self.inferior_frame(), self._safe(super().frame_args())
        return None if arguments is None else [_with_entry_value(frame, argument) for argument in arguments]

    def _safe(self, variables: Any) -> Any:
        frame = self.inferior_frame()
        return None if variables is None else [_safe(frame, variable) for variable in variables]


def _safe(frame: gdb.Frame, variable: Any) -> Any:
    symbol = variable.symbol()
    if not isinstance(symbol, gdb.Symbol):
        return variable
    try:
        if symbol.type is not None and symbol.type.dynamic:
            return Variable(symbol, _dynamic(frame, symbol))
        value = symbol.value(frame)
        return variable if is_readable(value) else Variable(symbol, gdb.Value(_MARK + text(value)))
    except gdb.error:  # it is in a caller's register, as "value has been optimized out" of an entry value
        return Variable(symbol, gdb.Value(_MARK + UNAVAILABLE))


def _with_entry_value(frame: gdb.Frame, argument: Any) -> Any:
    """Return an argument for which gdb can print the value at the function's entry, else its value alone: gdb would
    print an error text for the other, if the register of the caller that it was in is not known.
    """
    symbol = argument.symbol()
    if not isinstance(symbol, gdb.Symbol) or argument.value() is not None:
        return argument
    selected = gdb.selected_frame()
    try:
        frame.select()
        neutral.evaluate(f"{symbol.name}@entry")
    except (gdb.error, ValueError):
        return Variable(symbol, symbol.value(frame))
    finally:
        selected.select()
    return argument


def _dynamic(frame: gdb.Frame, symbol: gdb.Symbol) -> gdb.Value:
    """Read a variable whose type depends on other variables, as the bound of an array may: gdb 13 looks these up in the
    selected frame, so *frame* is selected meanwhile.
    """
    selected = gdb.selected_frame()
    try:
        frame.select()
        value = symbol.value(frame)
        return value if is_readable(value) else gdb.Value(_MARK + text(value))
    finally:
        selected.select()


class _TextPrinter:
    """A pretty-printer for the text that `_safe` puts in place of a value: it prints it without quotes."""

    def __init__(self, content: str) -> None:
        self._content = content

    def to_string(self) -> str:
        return self._content


def _printer(value: gdb.Value) -> _TextPrinter | None:
    kind = value.type
    if kind.code != gdb.TYPE_CODE_ARRAY or value.address is not None or kind.target().sizeof != 1:
        return None
    try:
        content = value.string()
    except (gdb.error, UnicodeDecodeError):
        return None
    return _TextPrinter(content[len(_MARK) :]) if content.startswith(_MARK) else None


class PrintCommand(Command, name="trace print", completer=gdb.COMPLETE_EXPRESSION):
    """Print a value of which only a part may be known, in the past.
Usage: trace print [/FMT] EXPRESSION

Like `print`, which fails where any byte of a structure or an array is not
known: here the rest is printed, and the unknown parts as <unavailable>.
FMT is a letter of `print`: x d u o t a c f s."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        match = _FORMAT.match(argument)
        expression = (argument[match.end() :] if match else argument).strip()
        if not expression or expression.startswith("/"):
            raise gdb.GdbError("Usage: trace print [/FMT] EXPRESSION, FMT one of x d u o t a c f s")
        options = {"format": match[1]} if match else {}
        try:
            print(f"= {text(neutral.evaluate(expression), **options)}")
        except (gdb.error, ValueError) as error:
            raise gdb.GdbError(f"trace print: {error}") from None


def register() -> None:
    """Install the pretty-printer for the texts of `SafeFrame`, in place of one from an earlier `source`."""
    gdb.pretty_printers[:] = [it for it in gdb.pretty_printers if getattr(it, "__name__", "") != "rvtrace_text"]
    _printer.__name__ = "rvtrace_text"
    gdb.pretty_printers.append(_printer)


COMMANDS = (PrintCommand, register)
