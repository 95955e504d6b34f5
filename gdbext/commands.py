"""The `trace` commands inside gdb. Each asks the session and prints; none decodes or talks to hardware itself.

Here are those that control the trace; `shows` has those that show it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import (
    between,
    calls,
    connect,
    coverage,
    ctr,
    filtering,
    finding,
    history,
    listing,
    mi,
    native,
    osabi,
    parameters,
    partly,
    regs,
    shows,
    start_completing,
    start_options,
    tracepoint,
    triggering,
    usb,
    who_wrote,
    window,
)
from rvtrace_gdb.gdbext.tracer import arguments, open_tracer, print_lines, tracer


def _require_connection() -> None:
    inferior = gdb.selected_inferior()
    if getattr(inferior, "connection", None) is None and not inferior.threads() and not usb.described():
        raise gdb.GdbError(
            "Nothing to trace: gdb is not connected to a target. Start OpenOCD, then `trace connect`."
        )


class Trace(gdb.Command):
    """Record what the program does with the target's trace hardware, show it,
and go back in it.

Recording:
    trace start      program the trace encoder and its sink, and begin
    trace stop       end, and read out the rest of the trace
    trace status     what is traced, how much, and what was lost
    trace snapshot   look at what an Espressif chip's firmware traced
    trace ctr        record in the hart itself, without trace hardware: its
                     last jumps, calls and traps
    trace info       which trace hardware there is, and what it can do
    trace regs       the registers of the trace hardware, in words
    trace usb        harts that are reached over USB, without OpenOCD

Going back, after `trace connect` has put rvtrace between gdb and the
target, with gdb's own commands: `reverse-stepi`, `reverse-step`,
`reverse-next`, `reverse-finish`, `reverse-continue`, and forward again.
    trace connect    connect gdb to the target so that it can go back
    trace goto       go to a place in the past
    trace live       return to the present
    trace replay     go back in a capture file, without a target
    trace native     let gdb's own `record btrace` show the trace
    trace print      print a value of which not all is known

Looking at what ran:
    trace history    the instructions, newest last
    trace functions  the functions, as they were called
    trace calls      who called whom, and how often
    trace coverage   how often each line or instruction ran
    trace find       when a function was entered or an instruction ran
    trace events     traps, changes of privilege, trace on and off, losses
    trace gaps       where the history is not complete, and why
    trace data       what the instructions loaded and stored
    trace who-wrote  who wrote a register or a variable last
    trace dump       the messages the trace encoder sent
    layout trace     the history in a window of gdb's TUI
    trace here       go to where that window was scrolled to

Capture files:
    trace save FILE  keep the trace
    trace open FILE  look at one

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
        asked = triggering.resolved(filtering.resolved(options))
        result = tracer().request("start", context=tracer().context(), options=asked)
        tracer().needs_tvec = bool(options.get("implicit_exceptions"))
        if gdb.selected_thread() is not None:
            osabi.set_for_tracing()
        print_lines(result)
        between.advise()

    def complete(self, text: str, word: str | None) -> list[str]:
        return start_completing.complete(text, word)


class Stop(gdb.Command):
    """Stop tracing and read out what the trace buffer holds.
Usage: trace stop"""

    def __init__(self) -> None:
        super().__init__("trace stop", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            print_lines(tracer().request("stop"))
        finally:
            if not between.is_between():  # which needs it, too
                osabi.restore()


class Status(gdb.Command):
    """Show the state of the trace: target, encoder, buffer, history, losses.
Usage: trace status"""

    def __init__(self) -> None:
        super().__init__("trace status", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(tracer().request("status", context=tracer().context()))


MODULES = (connect, history, shows, finding, calls, coverage, native, window, mi, ctr, regs, usb, who_wrote, partly)
COMMANDS: tuple[Callable[[], object], ...] = (Trace, Start, Stop, Status, *(it for m in MODULES for it in m.COMMANDS))


def register(home: str) -> None:
    """Define all commands and parameters."""
    open_tracer(home)
    parameters.register()
    for command in COMMANDS:
        command()
    with contextlib.suppress(gdb.error):  # there from an earlier `source`
        gdb.execute("alias rvtrace = trace", to_string=True)
    for registry, handler in _handlers():
        registry.connect(handler)


def release() -> None:
    """Before a second `source` loads everything afresh: end the session, and hear of nothing any more."""
    for registry, handler in _handlers():
        registry.disconnect(handler)
    between.release()
    window.release()
    tracer().close()


def _resumed(event: object) -> None:
    tracer().resumed()


def _new_symbols(event: object) -> None:
    listing.forget()


def _handlers() -> list[tuple[Any, Callable[[Any], None]]]:
    """What is done when something happens in gdb: (event registry, function).

    Nothing when gdb ends: it then still takes its leave of the target, through the session, which ends with its input.
    """
    return [
        (gdb.events.cont, _resumed),
        (gdb.events.new_objfile, _new_symbols),
        *between.handlers(),
    ]
