"""The `trace` commands inside gdb. Each asks the session and prints; none decodes or talks to hardware itself."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Callable, ClassVar

import gdb

from . import listing, osabi, parameters, tracepoint
from .client import Client, SessionError
from .progress import ProgressLine

ROWS_AT_ONCE = 2000  # rows fetched per request: long listings appear at once and can be interrupted


class Tracer:
    """What the commands share: the session process and what gdb knows that the session needs."""

    def __init__(self, home: str) -> None:
        self._progress = ProgressLine()
        self._client = Client(home, self._progress)
        self._runs = 0  # how often the program was resumed: tells the session whether anything can be new

    def request(self, method: str, **params: Any) -> Any:
        """The session's result; its errors become gdb.GdbError, one line."""
        try:
            return self._client.request(method, **params)
        except SessionError as error:
            raise gdb.GdbError(str(error)) from None
        finally:
            self._progress.clear()

    def context(self) -> dict[str, Any]:
        """The program and the target as gdb and the user's settings have them now."""
        target_file, overrides = parameters.target_settings()
        return {"elf": program(), "target_file": target_file, "overrides": overrides, "runs": self._runs}

    def resumed(self) -> None:
        """The program goes on."""
        self._runs += 1

    def close(self) -> None:
        self._client.close()


_tracer: Tracer | None = None


def tracer() -> Tracer:
    assert _tracer is not None  # set by register() before any command exists
    return _tracer


def program() -> str | None:
    """The program gdb has loaded."""
    space = gdb.current_progspace()
    return space.filename if space else None


def _require_connection() -> None:
    inferior = gdb.selected_inferior()
    if getattr(inferior, "connection", None) is None and not inferior.threads():
        raise gdb.GdbError(
            "Nothing to trace: gdb is not connected to a target. Start OpenOCD, then `target extended-remote :3333`."
        )


def _print_lines(result: dict[str, Any]) -> None:
    for line in result.get("lines", ()):
        print(line)


def _arguments(text: str, usage: str) -> list[str]:
    try:
        return gdb.string_to_argv(text)
    except gdb.error as error:
        raise gdb.GdbError(f"{error} {usage}") from None


class Trace(gdb.Command):
    """Record what the program does with the target's trace hardware, and show it.

    trace start      program the trace encoder and its sink, and begin
    trace stop       end, and read out the rest of the trace
    trace status     what is traced, how much, and what was lost
    trace history    the instructions that ran, newest last
    trace save FILE  keep the trace in a capture file
    trace open FILE  look at a capture file

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
    """Start tracing: program the trace encoder and the RAM sink.
Usage: trace start [-stop-on-wrap] [-stall] [-sync-period N]

  -stop-on-wrap    stop when the buffer is full, and keep the beginning;
                   without it the buffer keeps the newest part
  -stall           stall the hart rather than lose trace
  -sync-period N   full address about every N halfwords of code
                   (rounded up to a power of two)

Where the trace hardware is comes from `set trace target FILE`,
$RVTRACE_TARGET, or rvtrace.toml beside the program."""

    FLAGS: ClassVar[dict[str, str]] = {"-stop-on-wrap": "stop_on_wrap", "-stall": "stall"}

    def __init__(self) -> None:
        super().__init__("trace start", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        options = self._options(_arguments(argument, "Usage: trace start [-stop-on-wrap] [-stall] [-sync-period N]"))
        _require_connection()
        result = tracer().request("start", context=tracer().context(), options=options)
        osabi.set_for_tracing()
        _print_lines(result)

    def _options(self, words: list[str]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        rest = iter(words)
        for word in rest:
            if word in self.FLAGS:
                options[self.FLAGS[word]] = True
            elif word == "-sync-period":
                text = next(rest, "")
                if not re.fullmatch(r"[1-9]\d*", text):
                    raise gdb.GdbError(f"trace start: -sync-period takes a number of halfwords, got: {text or 'none'}.")
                options["sync_period"] = int(text)
            else:
                raise gdb.GdbError(f"trace start: unknown option {word}. See `help trace start`.")
        return options

    def complete(self, text: str, word: str) -> list[str]:
        typed = text.rpartition(" ")[2]
        before = len(typed) - len(word)  # gdb takes a hyphen for the end of a word and completes what follows it
        return [option[before:] for option in sorted([*self.FLAGS, "-sync-period"]) if option.startswith(typed)]


class Stop(gdb.Command):
    """Stop tracing and read out what the trace buffer holds.
Usage: trace stop"""

    def __init__(self) -> None:
        super().__init__("trace stop", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            _print_lines(tracer().request("stop"))
        finally:
            osabi.restore()


class Status(gdb.Command):
    """Show the state of the trace: target, encoder, buffer, history, losses.
Usage: trace status"""

    def __init__(self) -> None:
        super().__init__("trace status", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _print_lines(tracer().request("status", context=tracer().context()))


class History(gdb.Command):
    """Print the instructions that ran, oldest first, as `record instruction-history` does.
Usage: trace history [/MODIFIERS] [RANGE]

Modifiers: /m or /s source lines, /r raw instruction bytes,
/f no function names, /p no mark at the current pc.

RANGE: nothing, the last ten, and then the next ten each time;
  -      the ten before those shown last
  N      ten starting with number N
  A,B    numbers A to B inclusive
  A,+N   N instructions starting with A
  A,-N   N instructions ending with A

A gap in the trace has a number of its own and says why it is there.
How many is set by `set record instruction-history-size`."""

    def __init__(self) -> None:
        super().__init__("trace history", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        style, numbers = self._split(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        size = gdb.parameter("record instruction-history-size")
        found = tracer().request("history", context=tracer().context(), args=numbers, size=size or 0)
        for line in found.get("lines", ()):
            print(line)
        if found.get("begin") is not None:
            self._print(style, found["begin"], found["end"])
        if found.get("notice"):
            print(found["notice"])

    def _split(self, argument: str) -> tuple[listing.Format, str]:
        """(format, range text): modifiers may stand before the range, as in gdb, or after it."""
        match = re.fullmatch(r"\s*(?:/(\S*))?\s*([^/]*?)\s*(?:/(\S*))?\s*", argument)
        if match is None:
            raise gdb.GdbError(f"trace history: {argument.strip()} is not a range. See `help trace history`.")
        before, numbers, after = match.groups()
        letters = None if before is None and after is None else (before or "") + (after or "")
        return (listing.Format() if letters is None else listing.parse_modifiers(letters)), numbers

    def _print(self, style: listing.Format, begin: int, end: int) -> None:
        """Print numbers begin (inclusive) to end (exclusive)."""
        lister = listing.Lister(style)
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            rows = tracer().request("rows", begin=begin, end=upto)
            with listing.readable_code():
                for line in lister.lines(rows):
                    print(line)
            begin = upto


class Save(gdb.Command):
    """Save the trace, with all that is needed to read it, to a capture file.
Usage: trace save FILE.rvt"""

    def __init__(self) -> None:
        super().__init__("trace save", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument: str, from_tty: bool) -> None:
        path = _one_file(argument, "trace save FILE.rvt")
        _print_lines(tracer().request("save", path=path, context=tracer().context()))


class Open(gdb.Command):
    """Look at a capture file instead of the target's trace.
Usage: trace open FILE.rvt

The program is the one gdb has loaded (`file app.elf`)."""

    def __init__(self) -> None:
        super().__init__("trace open", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument: str, from_tty: bool) -> None:
        path = _one_file(argument, "trace open FILE.rvt")
        _print_lines(tracer().request("open", path=path, elf=program()))


def _one_file(argument: str, usage: str) -> str:
    words = _arguments(argument, f"Usage: {usage}")
    if len(words) != 1:
        raise gdb.GdbError(f"One file name is needed. Usage: {usage}")
    return os.path.abspath(os.path.expanduser(words[0]))


COMMANDS = (Trace, Start, Stop, Status, History, Save, Open)


def register(home: str) -> None:
    """Define all commands and parameters."""
    global _tracer
    _tracer = Tracer(home)
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


