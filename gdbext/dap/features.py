"""The past in gdb's own server of the Debug Adapter Protocol (`gdb -i dap`), which has no requests for it.

Only gdb 14 and later has the server, and its modules are private to gdb. What each feature needs of them is looked for
(gdb 16 and 18 differ) before it changes anything: where that is not there, this feature is missing, a line says so when
rvtrace is loaded, and everything else stays.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

import gdb

from rvtrace_gdb.gdbext.dap import (
    data_breakpoints,
    lists,
    one_hart,
    past_changes,
    places,
    printed_lines,
    reverse,
    step_targets,
    thread_names,
    variables,
    views,
)
from rvtrace_gdb.gdbext.dap.server import DapServer


class _Feature(NamedTuple):
    """What is added to the server, as a user knows it, and the commands that do the same."""

    name: str
    commands: str
    add: Callable[[DapServer], None]


_FEATURES = (
    _Feature("stepBack and reverseContinue", "reverse-next`, `reverse-continue", reverse.add),
    _Feature("lines that steps print", "continue", printed_lines.add),
    _Feature("steps of one hart", "set scheduler-locking on", one_hart.add),
    _Feature("names of threads", "info threads", thread_names.add),
    _Feature("unknown values", "info locals", variables.add),
    _Feature("refusals to change the past", "trace live", past_changes.add),
    _Feature("goto", "trace goto", places.add),
    _Feature("data breakpoints", "watch", data_breakpoints.add),
    _Feature("stepInTargets", "tbreak FUNCTION", step_targets.add),
    _Feature("rvtrace/history and other lists", "trace history", lists.add),
    _Feature("the scope rvtrace", "trace calls", views.add),
)
_UNKNOWN = (AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError, AssertionError)
"""How private parts of a server differ from those that are known."""


def add_requests() -> None:
    """Add the requests to gdb's server, instead of those of an earlier `source`."""
    try:
        server = DapServer()
        server.forget_added()
    except _UNKNOWN as error:
        _print_missing([(feature, error) for feature in _FEATURES])
        return
    missing: list[tuple[_Feature, Exception]] = []
    for feature in _FEATURES:
        try:
            feature.add(server)
        except _UNKNOWN as error:
            missing.append((feature, error))
    if missing:
        _print_missing(missing)


def _print_missing(missing: list[tuple[_Feature, Exception]]) -> None:
    reason = missing[0][1]
    names = ", ".join(feature.name for feature, _ in missing)
    commands = ", ".join(f"`{feature.commands}`" for feature, _ in missing)
    print(
        f"The DAP server of gdb {gdb.VERSION} is not the one rvtrace knows ({reason!r}): it is without {names};"
        f" in the debug console {commands} do the same."
    )
