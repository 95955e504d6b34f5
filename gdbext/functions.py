"""The functions that a name means. Several files may have one of the same name, and one may be there several times: in
other functions (inlined), or at other addresses (`add-symbol-file`). gdb's expressions take one of them, its
breakpoints all; here it is all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

import gdb

_NAME = re.compile(r"[A-Za-z_.][\w$.]*")
_LINE = re.compile(r"(?:.*:)?\s*[+-]?[0-9]+")
_OFFSET = re.compile(r"(?P<name>.+?)(?: \+ (?P<offset>[0-9]+))? in section ")


class Function(NamedTuple):
    """One that begins at *entry*, in *file* as far as that is known. *part*: it is part of another one, inlined."""

    entry: int
    file: str | None
    part: bool


class Named(NamedTuple):
    """All that *name* means."""

    name: str
    functions: list[Function]

    @property
    def entries(self) -> list[int]:
        """Where those with code of their own begin."""
        return [it.entry for it in self.functions if not it.part]

    @property
    def parts(self) -> list[int]:
        return [it.entry for it in self.functions if it.part]

    def only(self) -> int:
        """The entry, if there is one. Raises gdb.error, with how to name each, if there are several, or none."""
        entries = self.entries
        if not entries:
            raise gdb.error("it has no code of its own, it is part of other functions")
        if len(entries) > 1:
            raise gdb.error(f"there are {len(entries)} functions of that name, give one of {', '.join(self.ways())}")
        return entries[0]

    def ways(self) -> list[str]:
        """How each of them is named alone."""
        own = [it for it in self.functions if not it.part]
        files = [it.file for it in own]
        bare = _bare(self.name)
        by_file = (f"{os.path.basename(it.file)}:{bare}" if it.file else "" for it in own)
        alone = [it.file is not None and files.count(it.file) == 1 for it in own]
        return [way if is_alone else f"*{it.entry:#x}" for way, is_alone, it in zip(by_file, alone, own)]


def named(expression: str) -> Named | None:
    """The functions of a name, FILE:FUNCTION, or an expression that is one. None: it is something else.

    Raises gdb.error where it is nothing.
    """
    try:
        meant = value(expression)
    except gdb.error:
        if _LINE.fullmatch(expression):
            return None
        found = _at(expression, places(expression))
        return Named(expression, found) if found else None
    if meant.type.strip_typedefs().code != gdb.TYPE_CODE_FUNC:
        return None
    found = _at(expression, places(expression))
    own = None if meant.address is None else int(meant.address) & mask()
    if own is not None and own not in [it.entry for it in found if not it.part]:  # it is not named by its name alone
        found = [Function(own, None, False)]
    return Named(expression, found)


def value(expression: str) -> gdb.Value:
    """An expression's value. A name may have dots, as compilers give to parts of functions. Raises gdb.error."""
    name = _NAME.fullmatch(expression.strip())
    try:
        return gdb.parse_and_eval(expression)
    except gdb.error:
        if name is None:
            raise
    try:
        return gdb.parse_and_eval(f"'{name[0]}'")
    except gdb.error:  # gdb may say that it has no symbol table, and mean that there is no debug information
        raise gdb.error(f'No symbol "{name[0]}" in current context.') from None


def places(expression: str) -> list[int]:
    """Where breakpoints there would be; none where gdb knows no such place."""
    try:
        _, found = gdb.decode_line(expression)
    except gdb.error:
        return []
    return sorted({int(place.pc) & mask() for place in found or ()})


def _at(expression: str, pcs: Iterable[int]) -> list[Function]:
    """Those of the name that have the instructions at some addresses."""
    name = _bare(expression)
    return sorted({it for it in (_function(name, pc) for pc in pcs) if it is not None})


def _function(name: str, pc: int) -> Function | None:
    chain: list[gdb.Symbol] = []
    block = gdb.block_for_pc(pc)
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            chain.append(block.function)
        block = block.superblock
    for symbol in chain:
        if _is_named(name, symbol.print_name):
            own = None if symbol is not chain[-1] else symbol.value().address
            return Function(pc if own is None else int(own) & mask(), symbol.symtab.filename, own is None)
    return None if chain else _symbol(name, pc)


def _symbol(name: str, pc: int) -> Function | None:
    """Of code without debug information: a breakpoint is behind what saves registers there."""
    found = _OFFSET.match(gdb.execute(f"info symbol {pc:#x}", to_string=True))
    if found is None or not _is_named(name, found["name"]):
        return None
    return Function(pc - int(found["offset"] or 0), None, False)


def _is_named(name: str, whole: str) -> bool:
    """Whether *whole* is the name, as gdb's breakpoints take it: without types, or the scopes it is in."""
    bare = whole.partition("(")[0]
    return name in (whole, bare) or bare.endswith(f"::{name}") or whole.endswith(f"::{name}")


def _bare(expression: str) -> str:
    """The name in FILE:FUNCTION."""
    return re.split(r":(?!:)(?<!::)", expression)[-1].strip().strip("'")


def mask() -> int:
    """gdb may say that an address is negative."""
    return (1 << 8 * gdb.lookup_type("void").pointer().sizeof) - 1
