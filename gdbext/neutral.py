"""Asking gdb without depending on what the user has set: the language, the radix, settings that are numbers, and those
that have gdb print more than it was asked for.

gdb reads names of types, numbers in commands, and expressions in the current language and radix, which follow the
program without the user's doing (a Rust program makes them Rust's). What rvtrace asks for itself goes through here, and
a test finds what does not (tests/repository/test_neutral.py).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import gdb

_HEXADECIMAL = re.compile(r"\s*0[xX]([0-9a-fA-F]{1,16})\s*")
_WORDS = (
    "new|delete|sizeof|alignof|_Alignof|const|volatile|restrict|_Atomic|struct|class|union|enum|unsigned|signed|int|long"
    "|short|double|float|char|bool|void|wchar_t|char8_t|char16_t|char32_t|__int128|_Complex|__complex__|template|true"
    "|false|this|and|and_eq|bitand|bitor|compl|not|not_eq|or|or_eq|xor|xor_eq|const_cast|dynamic_cast|static_cast"
    "|reinterpret_cast|__typeof__|__typeof|typeof|__decltype|decltype|typeid"
)
"""Words of C++, and types it has: no names."""
_ENDS_GDB = re.compile(
    rf"""\{{\s*\}}|::\s*(?:{_WORDS})\b|"""
    r"""::(?!~?[^\W\d]|[(<])|['"]\s*::(?!\(anonymous namespace\)|(?!operator\b)[^\W\d]\w*(?:::|\s?[<(]|\s*['"]))"""
)
"""A name in the global scope that is none, a word of C++ for example: gdb 13 to 18 look it up, and end with an internal
error. And an array of no elements, the value of which ends gdb 16.
"""
_FILE_SCOPE = re.compile(r"""^((?:[^'"]|'[^'"]*'|"[^'"]*")*)(?:'[^'"]+'|"[^'"]+")(?=::[^\W\d])""")
"""A file in quotes before `::` and a name: what follows its closing quote is not a name in the global scope."""
_C_LIKE = ("c", "c++", "asm", "minimal")


_ASCII = re.compile(r"currently (?:ANSI_X3\.4|US-ASCII|ASCII|646)")


def take_paths_as_they_are() -> None:
    """Let gdb take text for UTF-8 where the locale is C, and gdb for that reason takes it for ASCII.

    gdb's Python could otherwise not have a path, a name or an argument with an umlaut. What gdb prints of the program's
    strings stays as it was, with escapes: the locale says what can be printed.
    """
    for name in ("host-charset", "target-charset"):
        if str(gdb.parameter(name)) == "auto" and _ASCII.search(printed(f"show {name}")):
            gdb.execute(f"set {name} UTF-8", to_string=True)


def address_bytes() -> int:
    """Return the size of an address in bytes: that of the architecture, whatever the language has for types."""
    return int(gdb.Value(0).type.pointer().sizeof)


def address_digits() -> int:
    """Return how many hexadecimal digits an address has."""
    return 2 * address_bytes()


def address_mask() -> int:
    """Return the mask of an address: gdb's Python may return negative ones."""
    return (1 << 8 * address_bytes()) - 1


def address_type() -> gdb.Type:
    """Return the unsigned integer of the size of an address."""
    return gdb.Value(1 << 63).type if address_bytes() == 8 else _integer(32)


def long_type() -> gdb.Type:
    """Return the signed integer of 64 bits."""
    return gdb.Value(0).type if gdb.Value(0).type.sizeof == 8 else _integer(64, signed=True)


def _integer(bits: int, *, signed: bool = False) -> gdb.Type:
    architecture = gdb.selected_inferior().architecture()  # no frame's: the unwinder calls this
    if hasattr(architecture, "integer_type"):
        return architecture.integer_type(bits, signed)
    name = {32: "int", 64: "long long"}[bits]  # gdb before 12
    return gdb.lookup_type(name if signed else f"unsigned {name}")


def language() -> str:
    """Return the language in which gdb reads expressions now, which follows the program if it is set to `auto`."""
    if hasattr(gdb, "current_language"):  # gdb 14
        return str(gdb.current_language())
    chosen = str(gdb.parameter("language"))
    if chosen not in ("auto", "local"):
        return chosen
    found = re.search(r"currently ([a-z+0-9-]+)", printed("show language"))
    return chosen if found is None else found[1]


@contextlib.contextmanager
def c_language() -> Iterator[None]:
    """Let gdb read what rvtrace asks in C, and in decimal; the user's settings come back at the end."""
    switched = contextlib.nullcontext() if language() in _C_LIKE else _set("language", "c", ())
    with switched, _decimal():
        yield


_SYMBOLS = (
    ("print max-symbolic-offset", "unlimited", "None"),
    ("print symbol-filename", "off", "False"),
    ("print asm-demangle", "on", "True"),
    ("print demangle", "on", "True"),
)
_plain = False


@contextlib.contextmanager
def plain_symbols() -> Iterator[None]:
    """Let gdb name each address `<function+offset>`, however far from the function's beginning, without its file, and
    demangled as in all other places.
    """
    global _plain
    if _plain:
        yield
        return
    with contextlib.ExitStack() as stack:
        for name, value, good in _SYMBOLS:
            stack.enter_context(_set(name, value, (good,)))
        _plain = True
        try:
            yield
        finally:
            _plain = False


@contextlib.contextmanager
def _set(name: str, value: str, good: tuple[str, ...]) -> Iterator[None]:
    before = gdb.parameter(name)
    if str(before) in good:
        yield
        return
    gdb.execute(f"set {name} {value}", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set {name} {_typed(before)}", to_string=True)


def _typed(value: object) -> str:
    """Return a setting's value as gdb reads it, in every radix."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:#x}" if isinstance(value, int) else str(value)


@contextlib.contextmanager
def _decimal() -> Iterator[None]:
    before = gdb.parameter("input-radix")
    if before in (None, 10):
        yield
        return
    gdb.execute("set input-radix 0xa", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set input-radix {before}", to_string=True)  # which is decimal now


_CHATTER = (("trace-commands", "off", ("False", "None")), ("debug remote", "0", ("0", "False")))
"""Settings that add lines to what a command prints: the command itself, and packets."""


def printed(command: str) -> str:
    """Return what a command of gdb prints, and nothing else, to read it. Raises gdb.error."""
    with contextlib.ExitStack() as stack:
        for name, value, good in _CHATTER:
            stack.enter_context(_set(name, value, good))
        found = of_any_bytes(lambda: str(gdb.execute(command, to_string=True)))
        return _RECORD.sub(_recorded_text, found) if _RECORD.search(found) and _quotes() else found


_RECORD = re.compile(r'^[~@&]"((?:[^"\\\n]|\\.)*)"\n', re.M)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _quotes() -> bool:
    """Return whether gdb puts what a command prints into records of its machine interface, as gdb 18 does under it."""
    return str(gdb.execute("echo _", to_string=True)) != "_"


def _recorded_text(record: re.Match[str]) -> str:
    def character(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPED.get(code, code)

    text = record[1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(character, text).decode("utf-8", "surrogateescape")


def of_any_bytes(ask: Callable[[], str]) -> str:
    """Return a text of gdb's, in which bytes that are not text are those of a path, as `os.fsdecode` has them."""
    try:
        return ask()
    except UnicodeDecodeError as error:
        return os.fsdecode(error.object)


def execute(command: str) -> str:
    """Return what a command of gdb prints whose arguments are rvtrace's own. Raises gdb.error."""
    with c_language():
        return printed(command)


def set_number(name: str, value: int | None) -> None:
    """Set a setting of gdb that is a number; None: unlimited. Raises gdb.error."""
    execute(f"set {name} {'unlimited' if value is None else value}")


def refuse(text: str) -> None:
    """Raise gdb.error for a text with a name that would end gdb."""
    if _ENDS_GDB.search(_FILE_SCOPE.sub(r"\1", text)) is not None:
        raise gdb.error(f'No symbol "{text.strip()}" in current context.')


def evaluate(expression: str) -> gdb.Value:
    """Return the value of the user's expression, which is in the user's language, or in C if it is not in that.

    Hexadecimal numbers are C's in every language. Raises gdb.error, what the user's language says.
    """
    refuse(expression)
    number = _HEXADECIMAL.fullmatch(expression)
    if number is not None:
        return gdb.Value(int(number[1], 16)).cast(address_type())
    if language() in _C_LIKE:
        return gdb.parse_and_eval(expression)
    try:
        with _set("may-call-functions", "off", ("False",)):  # in Ada the name of a function is a call
            return gdb.parse_and_eval(expression)
    except gdb.error as error:
        with _set("language", "c", _C_LIKE), contextlib.suppress(gdb.error):
            return gdb.parse_and_eval(expression)
        raise gdb.error(str(error)) from None


def value_text(value: gdb.Value, **options: Any) -> str:
    """Return a value as gdb prints it in the user's language, or in C if that has no form for values. *options*: as of
    `gdb.Value.format_string`. Raises gdb.error.
    """
    with c_language() if language() == "unknown" else contextlib.nullcontext():
        return str(value.format_string(**options))


def register(name: str) -> gdb.Value:
    """Return a register, or a convenience variable, by its name without the $. Raises gdb.error."""
    return gdb.parse_and_eval(f"${name}")
