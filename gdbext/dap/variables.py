"""Variables and registers in gdb's own server of the Debug Adapter Protocol, where some of them are not known.

In the past of a trace without registers gdb cannot read most of them, and its server answers with an error for the
whole scope. Here each one that cannot be read is `<unavailable>`, and the others are shown. What is used of the server,
which is private to gdb, is looked up before anything is changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext.dap.server import DapServer

UNAVAILABLE = "<unavailable>"


class Unknown:
    """A variable whose value is not known, as the server lists it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def to_object(self) -> dict[str, Any]:
        """Return the Variable of the protocol."""
        return {"variablesReference": 0, "name": self._name, "value": UNAVAILABLE}


def add(server: DapServer) -> None:
    """Change the variables of a server. Raises AttributeError or KeyError if they are others than expected."""
    varref = server.module("varref")
    base, variable = varref.BaseReference, varref.VariableReference
    if getattr(base, "rvtrace_shows_unknown", False):
        return
    fetch, describe = base.fetch_children, variable.to_object

    def fetch_children(self: Any, start: int, count: int) -> Iterator[Any]:
        number = self.child_count() if count == 0 else count
        for index in range(start, min(start + (number or 0), self.child_count() or 0)):
            try:
                found = list(fetch(self, index, 1))
            except (gdb.error, ValueError):
                found = [Unknown(_name_of(self, index))]
            yield from found

    def to_object(self: Any) -> dict[str, Any]:
        try:
            result: dict[str, Any] = describe(self)
        except gdb.error:
            name = private_attribute(self, "name")  # an expression has none
            result = Unknown("" if name is None else str(name)).to_object()
            result[private_attribute(self, "result_name")] = result.pop("value")
            if name is None:
                del result["name"]
        return result

    base.fetch_children, variable.to_object = fetch_children, to_object
    base.rvtrace_shows_unknown = True


def private_attribute(reference: Any, name: str) -> Any:
    """Return an attribute of the server's, which begins with an underscore since gdb 18."""
    return getattr(reference, f"_{name}") if hasattr(reference, f"_{name}") else getattr(reference, name)


def _name_of(scope: Any, index: int) -> str:
    """Return the name of a scope's variable or register."""
    with contextlib.suppress(AttributeError, IndexError, TypeError, gdb.error):
        found = private_attribute(scope, "var_list")[index]
        return str(found.symbol().print_name if hasattr(found, "symbol") else found.name)
    return f"#{index + 1}"
