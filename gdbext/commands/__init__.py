"""The command `trace` itself, and the registration of all commands when rvtrace is loaded.

The commands send requests to the session and print its results; none decodes or talks to hardware itself. `register`
defines all of them, and `release` undoes it before a second `source` loads rvtrace again.

An argument of `trace` that is not a sub-command is a LOCATION for gdb's own `trace` (tracepoints), which our prefix
command would otherwise hide. Registering a Python prefix command named `trace` replaces the built-in one, with its
aliases (`tp`, `tr`, `tra`, `trac`), and gdb.Breakpoint cannot create tracepoints; what remains is the machine
interface's `-break-insert -a`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import harts, listing, location, neutral, objfiles, settings
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import (
    calls,
    capture,
    check,
    connect,
    coverage,
    ctr,
    ctr_counts,
    data,
    diff,
    explain,
    find,
    fork,
    goto,
    hardware,
    history,
    intervals,
    itc,
    log,
    note,
    pgo,
    report,
    sql,
    stack,
    start,
    tasks,
    top,
    values,
    waves,
    who_wrote,
    why,
)
from rvtrace_gdb.gdbext.mi import commands as mi
from rvtrace_gdb.gdbext.replay import partial_values, record_btrace, unwinder
from rvtrace_gdb.gdbext.replay.mode import mode
from rvtrace_gdb.gdbext.replay.viewer import viewer
from rvtrace_gdb.gdbext.tracer import open_tracer, tracer
from rvtrace_gdb.gdbext.tui import window


def insert_tracepoint(argument: str) -> None:
    """Insert a tracepoint, as the built-in `trace LOCATION [thread N] [if CONDITION]` does.

    Raises gdb.error or gdb.GdbError.
    """
    options = _mi_options(argument)
    if hasattr(gdb, "execute_mi"):  # gdb >= 14: structured
        _report_tracepoint(_inserted(options))
        return
    command = "-break-insert " + " ".join(_quote(option) for option in options)
    last = gdb.convenience_variable("bpnum")
    answer_text = _output_of('interpreter-exec mi "' + command.replace("\\", "\\\\").replace('"', '\\"') + '"')
    error = re.search(r'^\^error,msg="(.*)"$', answer_text, re.M)
    if error:
        raise gdb.GdbError(re.sub(r"\\(.)", r"\1", error.group(1)))
    found = dict(re.findall(r'\b(number|addr|file|line)="([^"]*)"', answer_text))
    if "number" in found:
        _report_tracepoint(found)
    elif gdb.convenience_variable("bpnum") != last:  # under a machine interface gdb 13 sends the answer there
        print(f"Tracepoint {gdb.convenience_variable('bpnum')}.")
    else:
        raise gdb.GdbError(f'There is no place "{argument}" for a tracepoint, and no such command: see `help trace`.')


def _inserted(options: list[str]) -> dict[str, Any]:
    """Return the breakpoint. Raises gdb.GdbError: gdb would report a gdb.error as an error of Python."""
    try:
        answer: dict[str, Any] = gdb.execute_mi("-break-insert", *options)
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None
    found: dict[str, Any] = answer["bkpt"]
    return found


def _output_of(command: str) -> str:
    """Return what a command prints, read from the file descriptor.

    It must not be run with to_string=True: gdb 13 and 16 keep a dangling pointer to the captured stream of the machine
    interface's interpreter and crash on its next use.
    """
    import tempfile  # each start of gdb would load it, and what it needs

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
    place, condition = match.group(1).strip(), match.group(2)
    options = ["-a"]
    thread = re.match(r"(.*?)\s+thread\s+(\d+)$", place)
    if thread:
        place = thread.group(1)
        options += ["-p", thread.group(2)]
    location.check_given(place)
    if condition:
        neutral.refuse(condition)
        options += ["-c", condition]
    if place.startswith("-"):  # an explicit location: MI spells `-function` as `--function`
        return options + [f"-{word}" if re.match(r"-[a-z]", word) else word for word in place.split()]
    return [*options, place]


def _quote(option: str) -> str:
    if not re.search(r'[\s"]', option):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _report_tracepoint(breakpoint: dict[str, Any]) -> None:
    address = str(breakpoint.get("addr"))  # "<MULTIPLE>", "<PENDING>" or a padded number
    where = f"{int(address, 16):#x}" if address.startswith("0x") else address
    if "file" in breakpoint:
        where += f": file {breakpoint['file']}, line {breakpoint.get('line')}"
    print(f"Tracepoint {breakpoint['number']} at {where}.")


class TraceCommand(Command, name="trace", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_LOCATION, is_prefix=True):
    """Record what the program does with the target's trace hardware, show it,
    and go back in it.
    Usage: trace COMMAND [ARGUMENT ...]

    First steps    `trace start`, `continue`, `trace history`. To go back, begin
                   with `trace connect`; then `trace goto`, and gdb's own
                   `reverse-step`, `reverse-continue` and the like

    Record         start, stop, status; info and regs show the hardware
    Look           explain (how it ended), history, functions, calls, stack,
                   tasks, report, coverage, intervals, top, find, events, gaps,
                   dump, itc; `layout trace`, and here in it
    Check          check: how sure one can be of the trace; diff: another run
    Go back        connect, goto, position, live; fork: go on from there; enter
                   for hooks, native for `record btrace`, waves: viewers follow
    Files          save, open, close; replay goes back in one; export; pgo; note
    The past       values, who-wrote, why, print, log, calls-of; sql: anything
    With the hardware for it
                   ctr (the hart's own records), data (an encoder with data
                   trace), snapshot (Espressif chips), usb (an adapter)

    `help trace COMMAND` explains one. Any other argument is a tracepoint
    LOCATION, as with gdb's built-in "trace", which this contains."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        if not argument.strip():
            gdb.execute("help trace")
            return
        try:
            insert_tracepoint(argument)
        except (gdb.error, gdb.GdbError) as error:
            raise gdb.GdbError(f"{error}{_suggestion(argument.split()[0])}") from None


def _suggestion(word: str) -> str:
    """Return a question for the sub-command that was meant, if *word* is nearly one."""
    import difflib  # each start of gdb would load it

    names = [name for name in map(_sub_command, COMMANDS) if name]
    return "".join(f" Did you mean `trace {name}`?" for name in difflib.get_close_matches(word, names, 1, 0.7))


def _sub_command(command: object) -> str:
    """Return the word after `trace` of a command, "" if it is not one of `trace`."""
    first, _, rest = str(getattr(command, "_given", ("",))[0]).partition(" ")
    return rest if first == "trace" and " " not in rest else ""


MODULES = (
    start,
    connect,
    goto,
    fork,
    unwinder,
    history,
    data,
    itc,
    capture,
    find,
    check,
    calls,
    coverage,
    report,
    explain,
    stack,
    tasks,
    sql,
    pgo,
    top,
    intervals,
    diff,
    record_btrace,
    window,
    mi,
    ctr,
    ctr_counts,
    hardware,
    who_wrote,
    why,
    values,
    log,
    note,
    waves,
    partial_values,
)
COMMANDS: tuple[Callable[[], object], ...] = (TraceCommand, *(it for m in MODULES for it in m.COMMANDS))


def register(home: str) -> None:
    """Define all commands and parameters."""
    neutral.take_paths_as_they_are()
    open_tracer(home)
    settings.register()
    for command in COMMANDS:
        command()
    with contextlib.suppress(gdb.error):  # there from an earlier `source`
        gdb.execute("alias rvtrace = trace", to_string=True)
    for registry, handler in _handlers():
        registry.connect(handler)
    if "gdb.dap" in sys.modules:  # gdb is a server of the Debug Adapter Protocol: what that needs no other gdb loads
        from rvtrace_gdb.gdbext.dap import features

        features.add_requests()


def release() -> None:
    """Disconnect the event handlers and end the session, before a second `source` loads everything again."""
    for registry, handler in _handlers():
        registry.disconnect(handler)
    mode.disconnect()
    window.release()
    tracer().close()


def _resumed(event: object) -> None:
    tracer().resumed()


def _new_symbols(event: object) -> None:
    objfiles.forget()
    listing.clear_cache()
    mode.follow_program()


_DROPPED = ("clear_objfiles", "free_objfile")
"""The events after which gdb has fewer symbols; gdb has the second since version 13."""


def _handlers() -> list[tuple[Any, Callable[[Any], None]]]:
    """Return the handlers of gdb's events: (event registry, function).

    There is none for gdb's end: gdb then still detaches from the target, through the session, which ends by itself when
    its standard input is closed.
    """
    return [
        (gdb.events.cont, _resumed),
        (gdb.events.new_thread, harts.on_new_thread),
        (gdb.events.new_objfile, _new_symbols),
        *((getattr(gdb.events, name), objfiles.forget) for name in _DROPPED if hasattr(gdb.events, name)),
        *mode.event_handlers(),
        *viewer.event_handlers(),
    ]
