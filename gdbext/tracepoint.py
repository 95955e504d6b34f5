"""gdb's own `trace LOCATION` (tracepoints), which our `trace` prefix command would otherwise hide.

Registering a Python prefix command named `trace` replaces the built-in for the session, aliases (`tp`, `tr`, `tra`,
`trac`) included, and gdb.Breakpoint cannot make tracepoints; what is left is the machine
interface's `-break-insert -a`.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any

import gdb


def insert(argument: str) -> None:
    """Do what the built-in `trace LOCATION [thread N] [if CONDITION]` does; raises gdb.error or gdb.GdbError."""
    options = _mi_options(argument)
    if hasattr(gdb, "execute_mi"):  # gdb >= 14: structured
        _report(_inserted(options))
        return
    command = "-break-insert " + " ".join(_quote(option) for option in options)
    last = gdb.convenience_variable("bpnum")
    answer_text = _output_of('interpreter-exec mi "' + command.replace("\\", "\\\\").replace('"', '\\"') + '"')
    error = re.search(r'^\^error,msg="(.*)"$', answer_text, re.M)
    if error:
        raise gdb.GdbError(re.sub(r"\\(.)", r"\1", error.group(1)))
    found = dict(re.findall(r'\b(number|addr|file|line)="([^"]*)"', answer_text))
    if "number" in found:
        _report(found)
    elif gdb.convenience_variable("bpnum") != last:  # under a machine interface gdb 13 has answered elsewhere
        print(f"Tracepoint {gdb.convenience_variable('bpnum')}.")
    else:
        raise gdb.GdbError(f'There is no place "{argument}" for a tracepoint, and no such command: see `help trace`.')


def _inserted(options: list[str]) -> dict[str, Any]:
    """Raises gdb.GdbError: gdb would call its own error one of Python."""
    try:
        answer: dict[str, Any] = gdb.execute_mi("-break-insert", *options)
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None
    found: dict[str, Any] = answer["bkpt"]
    return found


def _output_of(command: str) -> str:
    """What a command prints, taken at the file descriptor.

    Never with to_string=True: gdb 13 and 16 keep a dangling pointer to the captured stream of the machine interface's
    interpreter and crash on its next use.
    """
    gdb.flush()
    with tempfile.TemporaryFile() as file:
        keep = os.dup(1)
        try:
            os.dup2(file.fileno(), 1)
            gdb.execute(command)
            gdb.flush()
        finally:
            os.dup2(keep, 1)
            os.close(keep)
        file.seek(0)
        return file.read().decode(errors="replace")


def _mi_options(argument: str) -> list[str]:
    match = re.match(r"(.*?)(?:\s+(?:-force-condition\s+)?if\s+(.*))?$", argument, re.S)
    assert match is not None  # every string matches
    location, condition = match.group(1).strip(), match.group(2)
    options = ["-a"]
    thread = re.match(r"(.*?)\s+thread\s+(\d+)$", location)
    if thread:
        location = thread.group(1)
        options += ["-p", thread.group(2)]
    if condition:
        options += ["-c", condition]
    if location.startswith("-"):  # an explicit location: MI spells `-function` as `--function`
        return options + [f"-{word}" if re.match(r"-[a-z]", word) else word for word in location.split()]
    return [*options, location]


def _quote(option: str) -> str:
    if not re.search(r'[\s"]', option):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _report(breakpoint: dict[str, Any]) -> None:
    address = str(breakpoint.get("addr"))  # "<MULTIPLE>", "<PENDING>" or a padded number
    where = f"{int(address, 16):#x}" if address.startswith("0x") else address
    if "file" in breakpoint:
        where += f": file {breakpoint['file']}, line {breakpoint.get('line')}"
    print(f"Tracepoint {breakpoint['number']} at {where}.")
