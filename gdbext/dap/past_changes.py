"""Requests that change values are refused in the past, with the reason: gdb says that memory cannot be accessed."""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.gdbext.dap.server import DapServer
from rvtrace_gdb.gdbext.replay import position

REFUSAL = "the past cannot be changed: `trace live` in the debug console returns to the present"


def add(server: DapServer) -> None:
    """Add the refusal to the requests of a server."""

    def refuse(*, expression: str = "", **others: Any) -> None:
        if position.number() is not None and not expression.startswith("$"):  # gdb's own variables can be set
            raise server.failure(REFUSAL)

    for name in ("setVariable", "setExpression", "writeMemory"):
        server.add_check(name, refuse)
