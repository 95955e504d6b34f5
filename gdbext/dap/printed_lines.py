"""What gdb prints while a request resumes: why it could not test a condition, which gaps were passed.

gdb's server keeps that to itself, that is, to its log: there it is read. It becomes an `output` event.
"""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.gdbext.dap.server import DapServer
from rvtrace_gdb.gdbext.text import error_line

_RESUMES, _LOGS = "exec_and_log", "log"
_PRINTED = ">>> "
"""The beginning of an entry of the log that is what a command printed."""
_USUAL = ("Continuing.", "Run till exit from ", "[Switching to ")
"""What gdb says of a command that resumes, each time."""
_CONDITION = "Error in testing condition "
"""What is said of a breakpoint whose condition has no value. The next line has the reason."""


def add(server: DapServer) -> None:
    """Let the server tell the client of what is printed. Raises ValueError if its log has no such entries."""
    events, startup = server.module("events"), server.module("startup")
    resume = _original(getattr(events, _RESUMES))
    write = _original(getattr(startup, _LOGS))
    code = getattr(resume, "__wrapped__", resume).__code__
    if _LOGS not in code.co_names or _PRINTED not in code.co_consts:
        raise ValueError(f"{_RESUMES} does not log what is printed")
    printed: list[str] | None = None

    def log(something: object, *others: Any, **options: Any) -> None:
        if printed is not None and isinstance(something, str) and something.startswith(_PRINTED):
            printed.append(something[len(_PRINTED) :])
        write(something, *others, **options)

    def exec_and_log(*arguments: Any, **options: Any) -> None:
        nonlocal printed
        printed = []
        try:
            resume(*arguments, **options)
        finally:
            lines, printed = _output_lines("".join(printed)), None
            if lines:
                server.send_event("output", {"category": "console", "output": "".join(f"{line}\n" for line in lines)})

    _replace(startup, _LOGS, log, write)
    _replace(events, _RESUMES, exec_and_log, resume)


def _original(function: Any) -> Any:
    """Return a function of the server as it was before an earlier `source`."""
    return getattr(function, "rvtrace_before", function)


def _replace(module: Any, name: str, function: Any, original: Any) -> None:
    function.rvtrace_before = original
    setattr(module, name, function)


def _output_lines(printed: str) -> list[str]:
    """Return the lines of what was printed that the client does not know."""
    lines: list[str] = []
    for text in printed.splitlines():
        line = error_line(text)
        if lines and lines[-1].startswith(_CONDITION) and lines[-1].endswith(":"):
            lines[-1] += f" {line}"
        elif line and not line.startswith(_USUAL):
            lines.append(line)
    return lines
