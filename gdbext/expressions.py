"""The meaning of an expression that the user types: functions, a register, or memory.

A name may mean several functions. Several files may have a function of the same name, and one function may have several
instances: inlined in other functions, or at other addresses (`add-symbol-file`). gdb's expressions take one of them and
its breakpoints all; `find_functions` returns all.

`storage` returns the register or memory that an expression stands for. gdb's Python does not report where a value is
that is not in memory. For a variable in a register, gdb's error for `&variable` names the register
(address_of_variable in its valops.c).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import blocks, location, neutral, settings
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.replay import position

_NAME = re.compile(r"[A-Za-z_.][\w$.]*")
_LINE = re.compile(r"(?:.*:)?\s*[+-]?[0-9]+")
_OFFSET = re.compile(r"(?P<name>.+?)(?: \+ (?P<offset>[0-9]+))? in section ")


class Function(NamedTuple):
    """A function that begins at *entry*; *file* is None if unknown. *is_inlined*: in another function."""

    entry: int
    file: str | None
    is_inlined: bool


class Functions(NamedTuple):
    """All functions of a name."""

    name: str
    functions: list[Function]

    @property
    def entries(self) -> list[int]:
        """The first addresses of the functions that have code of their own."""
        return [it.entry for it in self.functions if not it.is_inlined]

    @property
    def inlined_entries(self) -> list[int]:
        """The first addresses of the inlined instances."""
        return [it.entry for it in self.functions if it.is_inlined]

    def single_entry(self) -> int:
        """Return the entry. Raises gdb.error if there are several, with an unambiguous name for each, or none."""
        entries = self.entries
        if not entries:
            raise gdb.error("it has no code of its own: it is part of other functions")
        if len(entries) > 1:
            names = ", ".join(self.unambiguous_names())
            raise gdb.error(f"there are {len(entries)} functions of that name, give one of {names}")
        return entries[0]

    def unambiguous_names(self) -> list[str]:
        """Return an unambiguous name for each function: FILE:FUNCTION or *ADDRESS."""
        own = [it for it in self.functions if not it.is_inlined]
        files = [it.file for it in own]
        bare = _bare(self.name)
        by_file = (f"{os.path.basename(it.file)}:{bare}" if it.file else "" for it in own)
        alone = [it.file is not None and files.count(it.file) == 1 for it in own]
        return [way if is_alone else f"*{it.entry:#x}" for way, is_alone, it in zip(by_file, alone, own)]


def find_functions(expression: str) -> Functions | None:
    """Return the functions of a name, FILE:FUNCTION, or an expression that is one; None for anything else.

    Raises gdb.error if the expression has no meaning.
    """
    try:
        meant = value(expression)
    except gdb.error:
        if _LINE.fullmatch(expression):
            return None
        found = _functions_at(expression, breakpoint_addresses(expression))
        return Functions(expression, found) if found else None
    if meant.type.strip_typedefs().code != gdb.TYPE_CODE_FUNC:
        return None
    found = _functions_at(expression, breakpoint_addresses(expression))
    own = None if meant.address is None else int(meant.address) & address_mask()
    if own is not None and own not in [it.entry for it in found if not it.is_inlined]:
        # The expression is more than a name.
        found = [Function(own, None, False)]
    return Functions(expression, found)


def value(expression: str) -> gdb.Value:
    """Return an expression's value. Names may have dots, as compilers give to parts of functions. Raises gdb.error."""
    name = _NAME.fullmatch(expression.strip())
    try:
        return neutral.evaluate(expression)
    except gdb.error:
        if name is None:
            raise
    try:
        return neutral.evaluate(f"'{name[0]}'")
    except gdb.error:  # gdb's text may be about a missing symbol table, where only debug information is missing
        raise gdb.error(f'No symbol "{name[0]}" in current context.') from None


def value_or_places(expression: str) -> gdb.Value | list[int]:
    """Return an expression's value, or the addresses of a breakpoint at the place it names. Raises gdb.error."""
    try:
        return value(expression)
    except gdb.error:
        places = breakpoint_addresses(expression)
        if not places:
            raise
        return places


def is_line(expression: str) -> bool:
    """Return whether an expression is FILE:LINE."""
    return ":" in expression and _LINE.fullmatch(expression) is not None


def breakpoint_addresses(expression: str) -> list[int]:
    """Return the addresses of a breakpoint at a location; none if gdb does not know the location."""
    try:
        return place_addresses(expression)
    except gdb.error:
        return []


def place_addresses(expression: str) -> list[int]:
    """Return the addresses of a breakpoint at a location. Raises gdb.error if gdb does not know the location."""
    return sorted({int(place.pc) & address_mask() for place in location.decode(expression)})


def _functions_at(expression: str, pcs: Iterable[int]) -> list[Function]:
    """Return the functions of the name in *expression* that have the instructions at these addresses."""
    name = _bare(expression)
    return sorted({it for it in (_function(name, pc) for pc in pcs) if it is not None})


def _function(name: str, pc: int) -> Function | None:
    chain = [symbol for block in blocks.function_blocks(pc) if (symbol := block.function) is not None]
    for symbol in chain:
        if _is_named(name, symbol.print_name):
            own = None if symbol is not chain[-1] else symbol.value().address
            return Function(pc if own is None else int(own) & address_mask(), symbol.symtab.filename, own is None)
    return None if chain else _symbol(name, pc)


def _symbol(name: str, pc: int) -> Function | None:
    """Return a function without debug information; its breakpoint, at *pc*, is after the function's prologue."""
    found = _OFFSET.match(neutral.execute(f"info symbol {pc:#x}"))
    if found is None or not _is_named(name, found["name"]):
        return None
    return Function(pc - int(found["offset"] or 0), None, False)


def _is_named(name: str, expression: str) -> bool:
    """Whether *name* means the function *expression*, as for gdb's breakpoints: types and scopes may be left out."""
    bare = expression.partition("(")[0]
    return name in (expression, bare) or bare.endswith(f"::{name}") or expression.endswith(f"::{name}")


def _bare(expression: str) -> str:
    """Return the name in FILE:FUNCTION."""
    return re.split(r":(?!:)(?<!::)", expression)[-1].strip().strip("'")


def address_mask() -> int:
    """Return the mask of an address: gdb's Python may return negative ones."""
    return neutral.address_mask()


_REGISTER = re.compile(r"\$([A-Za-z_]\w*)(?:\.\w+)*")
_REGISTER_NAME = re.compile(r"x[0-9]+|f[0-9]+|zero|ra|sp|gp|tp|fp|pc|[ast][0-9]+|f[ast][0-9]+|[a-z]\w*")
_NUMBERS = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)\s+(0[xX][0-9a-fA-F]+|[0-9]+)")
_VARIABLE = re.compile(r"([A-Za-z_]\w*)(?:\.\w+|\[[^][]*\])*")
_MEMBER = re.compile(r"([A-Za-z_(].*)(?:\.|->)([A-Za-z_]\w*)")
_ADDRESS_OF = re.compile(r"&\s*([A-Za-z_][\w.\[\]>-]*)")
_IN_REGISTER = re.compile(r"in register \$(\w+)")
SIZE_MOST = 1 << 20
"""The largest number of bytes in one request."""
_SIZELESS = (gdb.TYPE_CODE_VOID, gdb.TYPE_CODE_FUNC)
_STRUCTS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)


class Storage(NamedTuple):
    """A register, or some memory.

    text      the user's expression for it
    register  the name of the register; or
    where     [address, size] of the memory; with size 0, the size is that of the symbol
    kind      its type, unless it is untyped bytes
    at        the instruction number of the history before which it is meant, None: at the end of the history
    bits      of a bit-field: its first bit in those bytes, and how many bits it has
    is_part   it is an element or a member of what the user typed, whose text ends with its name
    """

    text: str
    register: str | None = None
    where: list[int] | None = None
    kind: gdb.Type | None = None
    at: int | None = None
    bits: tuple[int, int] | None = None
    is_part: bool = False

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of a request to the session."""
        return {"name": self.name, "register": self.register, "where": self.where, "at": self.at}

    @property
    def name(self) -> str:
        """The expression, with the register or the address and size that it stands for."""
        if self.where is None:
            of_its_own = self.text == f"${self.register}"
            return self.text if of_its_own else f"{self.text} (in ${self.register})"
        address, size = self.where
        of = f"{size} byte{'s' * (size > 1)} at {address:#x}" if size else f"at {address:#x}"
        return self.text if hex(address) in self.text else f"{self.text} ({of})"


def storage(command: str, text: str) -> Storage:
    """Return what an expression means in the selected frame. Raises gdb.GdbError, one line, for *command*."""
    try:
        found = _storage(text)
    except (gdb.error, OverflowError, ValueError) as error:
        raise gdb.GdbError(f"{command}: {text}: {_one_line(error)}") from None
    except gdb.GdbError as error:
        raise gdb.GdbError(f"{command}: {text}: {error}") from None
    if found.kind is not None and found.kind.strip_typedefs().code == gdb.TYPE_CODE_FUNC:
        raise gdb.GdbError(
            f"{command}: {text} is a function, and has no value: `trace calls-of {text}` shows its calls,"
            " `trace why -branches $pc` at a place why that ran"
        )
    return found._replace(at=_number_of(command, found))


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    if "Cannot access memory" in text or "not available" in text:
        return f"{text}: it depends on values that are not in the trace"
    return text


def _number_of(command: str, storage: Storage) -> int | None:
    """Return the number of the history at which it is meant: for a register of a caller, that of the caller's call."""
    thread, wanted = selected_hart(), settings.hart()
    if wanted is not None and thread not in (None, wanted):
        return None
    if storage.register is None or not _in_caller():
        return position.number()
    number = position.selected_number()
    if number is None:
        why = "the place of its call is not known" if position.number() else "go into the past first, `trace goto end`"
        raise gdb.GdbError(f"{command}: {storage.text} is in a register of a caller: {why}.")
    return number


def _in_caller() -> bool:
    try:
        return gdb.selected_frame() != gdb.newest_frame()
    except gdb.error:
        return False


def _storage(text: str) -> Storage:
    register = _REGISTER.fullmatch(text)
    if register is not None and gdb.convenience_variable(register[1]) is None:
        return Storage(text, register[1], kind=_type_of(text))
    numbers = _NUMBERS.fullmatch(text)
    if numbers is not None:
        return _sized(numbers[1], numbers[2])
    sized = location.split_last(text)
    if sized is not None:
        return _sized(*sized)
    try:
        value = neutral.evaluate(text)
    except gdb.error:
        if _is_register(text):
            return Storage(f"${text}", text, kind=_type_of(f"${text}"))
        address = _symbol_address(text)
        if address is None:
            raise
        return Storage(text, where=[address, 0])
    return _storage_of(text, value)


def _symbol_address(text: str) -> int | None:
    """Return the address of a symbol without debug information, whose size gdb does not know."""
    try:
        value = neutral.evaluate(f"&{text}") if _VARIABLE.fullmatch(text) else None
    except gdb.error:
        return None
    return _unsigned_address(value) if value is not None and "no debug info" in str(value.type) else None


def _sized(text: str, size: str) -> Storage:
    found, count = _storage(text.strip()), int(neutral.evaluate(size))
    if found.where is None:
        raise gdb.error("this is a register, whose size cannot be chosen")
    _check_size(count)
    return Storage(f"{count} byte{'s' if count > 1 else ''} at {found.where[0]:#x}", where=[found.where[0], count])


def _check_size(count: int) -> None:
    if not 1 <= count <= SIZE_MOST:
        raise gdb.error(f"{count} bytes cannot be shown at once: give 1 to {SIZE_MOST}")


def _storage_of(text: str, value: gdb.Value) -> Storage:
    if value.address is not None:
        field = _bit_field(text)
        if field is not None:
            return field
        _check_size(max(value.type.sizeof, 1))
        return Storage(text, where=[_unsigned_address(value.address), max(value.type.sizeof, 1)], kind=value.type)
    register = _register_of(text)
    if register is not None:
        return Storage(text, register, kind=value.type)
    if value.is_optimized_out:
        raise gdb.error("it is optimized out here")
    kind = value.type.strip_typedefs()
    variable = _VARIABLE.fullmatch(text)
    if variable is not None and gdb.lookup_symbol(variable[1])[0] is not None:
        raise gdb.error("it is neither in memory nor in one register here (`info address` says where)")
    if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().code not in _SIZELESS:
        member, target = _ADDRESS_OF.fullmatch(text), kind.target()
        size = max(target.sizeof, 1)
        _check_size(size)
        return Storage(member[1] if member else f"*({text})", where=[_unsigned_address(value), size], kind=target)
    if kind.code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR):
        raise gdb.error(f"it is a value of type {value.type}, not something that can be written")
    return Storage(f"the byte at {_unsigned_address(value):#x}", where=[_unsigned_address(value), 1])


def _unsigned_address(value: gdb.Value) -> int:
    """Return a value as an address: gdb's Python may return a negative one."""
    return int(value) & neutral.address_mask()


def _type_of(text: str) -> gdb.Type | None:
    try:
        return neutral.evaluate(text).type
    except gdb.error:  # no registers
        return None


def _register_of(text: str) -> str | None:
    """Return the register that a variable is in, None if it is in none."""
    try:
        neutral.evaluate(f"&({text})")
    except gdb.error as error:
        found = _IN_REGISTER.search(str(error))
        return None if found is None else found[1]
    return None


def _is_register(name: str) -> bool:
    if _REGISTER_NAME.fullmatch(name) is None:
        return False
    try:
        value = neutral.register(name)
    except gdb.error:
        return False
    return value.type.code != gdb.TYPE_CODE_VOID and gdb.convenience_variable(name) is None


def _bit_field(text: str) -> Storage | None:
    """Return a member that is a bit-field, None for anything else: its own address gdb does not give."""
    member = _MEMBER.fullmatch(text)
    try:
        whole = neutral.evaluate(member[1]) if member is not None else None
        while whole is not None and whole.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
            whole = whole.dereference()
    except gdb.error:  # a cast before it
        return None
    if member is None or whole is None or whole.address is None:
        return None
    kind = whole.type.strip_typedefs()
    fields = kind.fields() if kind.code in _STRUCTS else ()
    field = next((it for it in fields if it.name == member[2] and it.bitsize), None)
    if field is None:
        return None
    first, shift = divmod(field.bitpos or 0, 8)
    size = (shift + field.bitsize + 7) // 8
    return Storage(text, where=[_unsigned_address(whole.address) + first, size], bits=(shift, field.bitsize))


def innermost_member(kind: gdb.Type, begin: int, end: int) -> tuple[str, gdb.Type, int]:
    """Return the innermost member of an object that contains its bytes *begin* to *end* - 1.

    Returns (".member[1]", the member's type, its first byte).
    """
    kind, name, first = kind.strip_typedefs(), "", 0
    while True:
        found = _member(kind, begin - first, end - first)
        if found is None:
            return name, kind, first
        more, kind, offset = found
        name, kind, first = name + more, kind.strip_typedefs(), first + offset


def _member(kind: gdb.Type, begin: int, end: int) -> tuple[str, gdb.Type, int] | None:
    if kind.code == gdb.TYPE_CODE_ARRAY and kind.target().sizeof:
        size, lowest = kind.target().sizeof, kind.range()[0]
        number = begin // size
        return (f"[{number + lowest}]", kind.target(), number * size) if end <= (number + 1) * size else None
    if kind.code != gdb.TYPE_CODE_STRUCT:
        return None
    for field in kind.fields():
        if not hasattr(field, "bitpos") or field.bitsize or field.is_base_class or not field.name:
            continue
        offset, inner = (field.bitpos or 0) // 8, field.type
        if inner is not None and offset <= begin and end <= offset + inner.sizeof:
            return f".{field.name}", inner, offset
    return None
