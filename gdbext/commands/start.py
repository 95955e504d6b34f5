"""`trace start`, `trace stop` and `trace status`: they control the trace.

For `trace start`, the places that the user names become addresses: those that restrict what is traced (filters) and
those at which the trace is switched or marked (triggers). Completion offers its options, the values they can have, and
places in the program.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import completion, expressions, location, neutral, start_options
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import hardware
from rvtrace_gdb.gdbext.replay.mode import mode
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer

COMMA = re.compile(r",(?![^(]*\))")
"""A comma between names, not between the types of a function's arguments."""


def with_filter_addresses(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with addresses in place of the texts of -range and -function. Raises gdb.GdbError."""
    named = {"range": _range_argument, "function": _functions_named}
    found = dict(options)
    for key, address_of in named.items():
        if key in options:
            texts = [text for one in options[key] for text in ([one] if key == "range" else COMMA.split(one))]
            each = [request_of(key, text, address_of) for text in texts]
            found[key] = each if key == "range" else [it for several in each for it in several]
    return found


def request_of(key: str, text: str, address_of: Callable[[str], Any]) -> Any:
    """Return *address_of* of a text of the option *key*. Raises gdb.GdbError, which names the option."""
    try:
        found: Any = address_of(text.strip())
    except (gdb.error, OverflowError) as error:
        raise gdb.GdbError(f"trace start: -{key.replace('_', '-')} {text}: {error}") from None
    return found


def _range_argument(text: str) -> list[int]:
    """Return [first address, end] of FROM,TO or FROM,+SIZE. Raises gdb.error."""
    first, last = location.split_last(text) or ("", "")
    if not first or not last:
        raise gdb.error("give FROM,TO or FROM,+SIZE")
    start = address(first)
    end = start + int(neutral.evaluate(last[1:])) if last.startswith("+") else address(last)
    if not start < end <= expressions.address_mask() + 1:
        raise gdb.error(f"there is nothing from {start:#x} to before {end:#x}")
    return [start, end]


def _functions_named(name: str) -> list[list[Any]]:
    """Return [name, address of the entry] of each function of that name. Raises gdb.error."""
    if name.startswith("*"):
        return [[name, address(name[1:])]]
    named = expressions.find_functions(name)
    if named is None:
        expressions.value(name)  # which raises the right error if the expression has no meaning
        raise gdb.error("that is not a function")
    if not named.entries:
        named.single_entry()
    return [[name, entry] for entry in named.entries]


def address(expression: str) -> int:
    """Return the address of a function, a line (FILE:LINE) or an expression. Raises gdb.error, also for several."""
    found = addresses(expression)
    if len(found) > 1:
        named = expressions.find_functions(expression)
        if named is not None:
            return named.single_entry()
        raise gdb.error(f"these are {len(found)} places, give one of {', '.join(f'*{it:#x}' for it in found)}")
    return found[0]


def addresses(expression: str) -> list[int]:
    """Return all addresses of a function, a line (FILE:LINE) or an expression. Raises gdb.error."""
    expression = expression[1:] if expression.startswith("*") else expression
    if not expression:
        raise gdb.error("a place is missing")
    named = expressions.find_functions(expression)
    if named is not None:
        return named.entries or [named.single_entry()]
    value = expressions.value_or_places(expression)
    if isinstance(value, list):
        return value
    code = value.type.strip_typedefs().code
    if code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR) or (code == gdb.TYPE_CODE_INT and value.address is not None):
        raise gdb.error(f"{expression} is neither a function nor an address")
    return [int(value) & expressions.address_mask()]


_TRIGGER_KEYS = ("trigger_on", "trigger_off", "trigger_notify")


def with_trigger_addresses(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with addresses in place of the texts of -trigger-on, -off and -notify. Raises gdb.GdbError."""
    found = dict(options)
    for key in _TRIGGER_KEYS:
        if key in options:
            texts = [text for one in options[key] for text in COMMA.split(one)]
            found[key] = [it for text in texts for it in request_of(key, text, addresses)]
    return found


def completions(text: str, word: str | None) -> list[str]:
    """Return the completions of *word*, the end of *text*."""
    if word is None:
        return []
    before, _, last = text.rpartition(" ")
    option = start_options.option(before.split(" ")[-1])
    if option is not None and option.symbols:
        return completion.words(text, word, _complete_places(last))
    offered = _choices() if option is not None and option.several and not option.words else {}
    return completion.words(text, word, start_options.complete(text, offered))


def _complete_places(typed: str) -> list[str]:
    """Complete the last of the places in *typed*, a list with commas."""
    chosen, comma, begun = typed.rpartition(",")
    return [chosen + comma + place for place in completion.places(begun)]


def _choices() -> dict[str, Iterable[str]]:
    """Return the values of options that depend on the target; none if they are not available, without an error."""
    with contextlib.suppress(gdb.error, gdb.GdbError):
        found: dict[str, Iterable[str]] = tracer().request("choices", context=tracer().context())
        return found
    return {}


def _require_connection() -> None:
    inferior = gdb.selected_inferior()
    if getattr(inferior, "connection", None) is None and not inferior.threads() and not hardware.has_usb_target():
        raise gdb.GdbError(
            "Nothing to trace: gdb is not connected to a target. Start OpenOCD, then `trace connect`."
        )


class StartCommand(Command, name="trace start", kind=gdb.COMMAND_RUNNING):
    __doc__ = f"""Start tracing: program the trace encoder and the RAM sink.
{start_options.usage()}

{start_options.explained()}

A note says what the hardware does not have; tracing starts without it.
The hardware is described by `set trace target FILE`, $RVTRACE_TARGET, or
rvtrace.toml beside the program."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace start`.")
        try:
            options = start_options.parse(words)
        except start_options.OptionError as error:
            raise gdb.GdbError(f"trace start: {error}") from None
        _require_connection()
        asked = with_trigger_addresses(with_filter_addresses(options))
        result = self._started(asked)
        tracer().needs_tvec = bool(options.get("implicit_exceptions"))
        if gdb.selected_thread() is not None:
            mode.osabi.set_for_tracing()
        print_lines(result)
        mode.suggest_connect()

    @staticmethod
    def _started(options: dict[str, Any]) -> dict[str, Any]:
        """Start, and return the lines. Ctrl-C while memory is saved ends that, and the trace has started."""
        try:
            found: dict[str, Any] = tracer().request("start", context=tracer().context(), options=options)
        except KeyboardInterrupt:
            found = tracer().late_answer
            if not found:
                raise
        return found

    def complete(self, text: str, word: str | None) -> list[str]:
        return completions(text, word)


class StopCommand(Command, name="trace stop", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Stop tracing and read out the trace buffer.
Usage: trace stop"""

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            print_lines(tracer().request("stop", context=tracer().context()))
        finally:
            if not mode.is_connected:  # the connection needs the OS ABI "none", too
                mode.osabi.restore()


class StatusCommand(Command, name="trace status", kind=gdb.COMMAND_STATUS, completer=gdb.COMPLETE_NONE):
    """Show the state of the trace: target, encoder, buffer, history, losses.
Usage: trace status"""

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(tracer().request("status", context=tracer().context()))
        for line in mode.osabi.lines():
            print(line)


COMMANDS = (StartCommand, StopCommand, StatusCommand)
