"""rvtrace's lists for views of IDEs: each command of `mi.commands` as the request `rvtrace/NAME`, with its options as
arguments by name.
"""

from __future__ import annotations

from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext.dap.server import DapServer
from rvtrace_gdb.gdbext.mi import commands as mi


def add(server: DapServer) -> None:
    """Add the requests to a server."""
    for command in mi.TABLE:
        server.add(f"rvtrace/{command.name}", _answer_of(command))


def _answer_of(command: mi.MiCommand) -> Callable[..., Any]:
    def answer(**given: Any) -> Any:
        return command.run(_command_words(command, given))

    return answer


def _command_words(command: mi.MiCommand, arguments: dict[str, Any]) -> list[str]:
    """Return arguments by name as the words of an MI command. `arguments` is what follows its options, a text or list.

    Raises gdb.GdbError.
    """
    rest = arguments.pop("arguments", [])
    names = [option.name.lstrip("-") for option in command.options]
    words: list[str] = []
    for name, value in arguments.items():
        if name not in names:
            known = ", ".join([*names, "arguments"])
            raise gdb.GdbError(f"rvtrace/{command.name}: there is no argument {name}: it takes {known}")
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is False else [f"--{name}"] if one is True else [f"--{name}", str(one)]
    return [*words, *(["--"] if words and not command.raw else []), *(rest.split() if isinstance(rest, str) else rest)]
