"""At another place: what gdb remembers that watched memory held is from where it was before.

gdb compares with it at the next hit, and would print a wrong "Old value". A watchpoint that is disabled and enabled
again is evaluated anew. That of a local variable is left alone: gdb would delete it where its function does not run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import gdb

_TYPES = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)
_MEMBER = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*|\$\w+|\"[^\"]*\"|'[^']*'|0[xX][0-9a-fA-F]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OF_TYPES = frozenset(("struct", "union", "enum", "unsigned", "signed", "const", "volatile", "sizeof"))


def evaluated_anew() -> None:
    """All watchpoints on memory that has an address for ever."""
    for breakpoint in gdb.breakpoints():
        if breakpoint.type in _TYPES and breakpoint.enabled and _is_global(breakpoint.expression or ""):
            with contextlib.suppress(gdb.error):
                breakpoint.enabled = False
                breakpoint.enabled = True


@contextlib.contextmanager
def not_compared() -> Iterator[None]:
    """While this lasts, gdb does not compare what it watches by itself, without the target: registers, and what it has
    no hardware for. Between two places that are far apart it would print any difference as a hit.
    """
    compared = [it for it in gdb.breakpoints() if it.type == gdb.BP_WATCHPOINT and it.enabled]
    for breakpoint in compared:
        breakpoint.enabled = False
    try:
        yield
    finally:
        for breakpoint in compared:
            with contextlib.suppress(gdb.error, RuntimeError):  # what it watches is not known there; it was deleted
                # Of a local variable that is not there gdb says that it deletes the watchpoint, and does not.
                gdb.execute(f"enable {breakpoint.number}", to_string=True)


def _is_global(expression: str) -> bool:
    if expression.startswith("-location "):
        return True
    names = set(_NAME.findall(_MEMBER.sub(" ", expression))) - _OF_TYPES
    return all(map(_is_global_name, names))


def _is_global_name(name: str) -> bool:
    if gdb.lookup_global_symbol(name) is not None or gdb.lookup_static_symbol(name) is not None:
        return True
    with contextlib.suppress(gdb.error):
        gdb.lookup_type(name)
        return True
    return False
