"""The `trace` commands inside gdb. Each asks the session and prints; none decodes or talks to hardware itself.

Here are those that control the trace; `shows` has those that show it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import gdb

from . import (
    calls,
    connect,
    coverage,
    finding,
    history,
    listing,
    mi,
    native,
    osabi,
    parameters,
    shows,
    start_options,
    tracepoint,
    window,
)
from .tracer import arguments, open_tracer, print_lines, tracer


def _require_connection() -> None:
    inferior = gdb.selected_inferior()
    if getattr(inferior, "connection", None) is None and not inferior.threads():
        raise gdb.GdbError(
            "Nothing to trace: gdb is not connected to a target. Start OpenOCD, then `target extended-remote :3333`."
        )


class Trace(gdb.Command):
    """Record what the program does with the target's trace hardware, and show it.

    trace start      program the trace encoder and its sink, and begin
    trace stop       end, and read out the rest of the trace
    trace status     what is traced, how much, and what was lost
    trace history    the instructions that ran, newest last
    trace dump       the messages the trace encoder sent
    trace find       when a function was entered or an instruction ran
    trace events     traps, changes of privilege, trace on and off, losses
    trace gaps       where the history is not complete, and why
    trace functions  the functions that ran
    trace calls      who called whom, and how often
    trace data       what the instructions loaded and stored
    trace save FILE  keep the trace in a capture file
    trace open FILE  look at a capture file
    trace snapshot   look at what an Espressif chip's firmware traced

Any argument that is none of these is a tracepoint LOCATION, as with
gdb's built-in "trace", which this command contains."""

    def __init__(self) -> None:
        super().__init__("trace", gdb.COMMAND_RUNNING, gdb.COMPLETE_LOCATION, True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if not argument.strip():
            gdb.execute("help trace")
            return
        tracepoint.insert(argument)


class Start(gdb.Command):
    __doc__ = f"""Start tracing: program the trace encoder and the RAM sink.
{start_options.usage()}

{start_options.explained()}

What the hardware does not have is said, and done without. Where it is
comes from `set trace target FILE`, $RVTRACE_TARGET, or rvtrace.toml
beside the program."""

    def __init__(self) -> None:
        super().__init__("trace start", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace start`.")
        try:
            options = start_options.parse(words)
        except start_options.BadOption as error:
            raise gdb.GdbError(f"trace start: {error}") from None
        _require_connection()
        result = tracer().request("start", context=tracer().context(), options=options)
        tracer().needs_tvec = bool(options.get("implicit_exceptions"))
        osabi.set_for_tracing()
        print_lines(result)

    def complete(self, text: str, word: str) -> list[str]:
        typed = text.rpartition(" ")[2]
        before = len(typed) - len(word)  # gdb takes a hyphen for the end of a word and completes what follows it
        return [option[before:] for option in start_options.complete(text)]


class Stop(gdb.Command):
    """Stop tracing and read out what the trace buffer holds.
Usage: trace stop"""

    def __init__(self) -> None:
        super().__init__("trace stop", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            print_lines(tracer().request("stop"))
        finally:
            osabi.restore()


class Status(gdb.Command):
    """Show the state of the trace: target, encoder, buffer, history, losses.
Usage: trace status"""

    def __init__(self) -> None:
        super().__init__("trace status", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(tracer().request("status", context=tracer().context()))


MODULES = (connect, history, shows, finding, calls, coverage, native, window, mi)
COMMANDS: tuple[Callable[[], object], ...] = (Trace, Start, Stop, Status, *(it for m in MODULES for it in m.COMMANDS))


def register(home: str) -> None:
    """Define all commands and parameters."""
    open_tracer(home)
    for command in COMMANDS:
        command()
    parameters.register()
    with contextlib.suppress(gdb.error):  # there from an earlier `source`
        gdb.execute("alias rvtrace = trace", to_string=True)
    for registry, handler in _handlers():
        registry.connect(handler)


def release() -> None:
    """Before a second `source` loads everything afresh: end the session, and hear of nothing any more."""
    for registry, handler in _handlers():
        registry.disconnect(handler)
    tracer().close()


def _resumed(event: object) -> None:
    tracer().resumed()


def _new_symbols(event: object) -> None:
    listing.forget()


def _exiting(event: object) -> None:
    tracer().close()


def _handlers() -> list[tuple[Any, Callable[[Any], None]]]:
    """What is done when something happens in gdb: (event registry, function)."""
    handlers: list[tuple[Any, Callable[[Any], None]]] = [
        (gdb.events.cont, _resumed),
        (gdb.events.new_objfile, _new_symbols),
    ]
    if hasattr(gdb.events, "gdb_exiting"):  # gdb >= 12
        handlers.append((gdb.events.gdb_exiting, _exiting))
    return handlers
