"""`print` of `monitor trace`: registers and memory before the instruction where the debugger is, as far as known.

Types are the debugger's: its own `print` shows a variable as its type says, unless a part of it is unknown.
"""

import re
from collections.abc import Iterator, Sequence

from rvtrace_gdb.console.commands.past import UNAVAILABLE
from rvtrace_gdb.console.commands.serve.monitor.places import PlaceUsage
from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.session.past.past import Past

_FORMATS = {"x": "#x", "d": "d", "u": "d", "o": "#o", "t": "b"}
_FORMAT = re.compile(r"/(.*)")
_NUMBERS = (1, 2, 4, 8)  # sizes that are shown as numbers
_BYTES = 16  # of memory in a line
USAGE = """\
monitor trace print [/FMT] $REGISTER | SYMBOL | ADDRESS[,SIZE] ...

Registers and memory where the debugger is in the past, as far as they are
known. FMT: x (default), d, u, o or t. Memory of 1, 2, 4 or 8 bytes is a number,
other memory is shown as bytes, with -- for those that are unknown. Types and
members are the debugger's own `print`."""


def print_values(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    """Yield a line for each place, or several. Raises PlaceUsage."""
    given = _FORMAT.fullmatch(words[0]) if words else None
    letter, names = ("x", words) if given is None else (given[1], words[1:])
    if letter not in _FORMATS:
        raise PlaceUsage(f"trace print: /{letter}: a format is one of {' '.join(_FORMATS)}")
    if not names:
        raise PlaceUsage("trace print: of what? $REGISTER, SYMBOL or ADDRESS[,SIZE]: `trace help print`")
    places = request.places
    number = places.number()
    if number is None:
        raise PlaceUsage("trace print: the debugger is in the present: its own `print` shows values there")
    past = request.debugger.past_of(request.debugger.timeline.selected(request.hart), request.progress)
    if past is None:
        raise PlaceUsage("no value is known in this trace: `trace values`")
    position, size = history_position(number), places.selected().program.xlen // 8
    for name in names:
        register, where = places.value_place(name, "trace print")
        if register:
            yield f"{name} = {_number(past.registers(position).get(register), letter, size)}"
        else:
            yield from _memory_lines(past, position, name, where, letter)


def _memory_lines(past: Past, position: int, name: str, where: tuple[int, int], letter: str) -> Iterator[str]:
    address, size = where
    found = past.memory(position, address, size)
    if size in _NUMBERS:
        known = [byte for byte in found if byte is not None]
        value = int.from_bytes(bytes(known), "little") if len(known) == size else None
        yield f"{name} = {_number(value, letter, size)}"
        return
    for begin in range(0, size, _BYTES):
        digits = " ".join("--" if byte is None else f"{byte:02x}" for byte in found[begin : begin + _BYTES])
        yield f"{name}+{begin} = {digits}"


def _number(value: int | None, letter: str, size: int) -> str:
    """Return a value in the format of a letter. *size*: its bytes."""
    if value is None:
        return UNAVAILABLE
    bits = 8 * size
    if letter == "d" and value >> (bits - 1):
        value -= 1 << bits
    return format(value, _FORMATS[letter])
