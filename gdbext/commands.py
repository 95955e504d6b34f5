"""The `trace` commands inside gdb. Each asks the session and prints; none decodes or talks to hardware itself."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Callable

import gdb

from . import accesses, listing, osabi, parameters, snapshot, start_options, tracepoint
from .client import Client, SessionError
from .progress import ProgressLine

HARTS_AT_MOST = 4096
ADDRESSES = (1 << 64) - 1
ROWS_AT_ONCE = 2000  # rows fetched per request: long listings appear at once and can be interrupted


class Tracer:
    """What the commands share: the session process and what gdb knows that the session needs."""

    def __init__(self, home: str) -> None:
        self._progress = ProgressLine()
        self._client = Client(home, self._progress)
        self._runs = 0  # how often the program was resumed: tells the session whether anything can be new
        self._tvec: int | None = None
        self.needs_tvec = False
        """The trace leaves out where traps lead, so that the session has to be told."""

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
        return {
            "elf": program(),
            "target_file": target_file,
            "overrides": overrides,
            "runs": self._runs,
            "hart": parameters.hart(),
            "thread_hart": selected_hart(),
            "tvec": self._trap_vector() if self.needs_tvec else None,
        }

    def _trap_vector(self) -> int | None:
        """mtvec, as it is now or was when it could be read last."""
        with contextlib.suppress(gdb.error, ValueError):
            self._tvec = int(gdb.newest_frame().read_register("mtvec")) & ADDRESSES
        return self._tvec

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


def selected_hart() -> int | None:
    """The hart of the selected thread, where threads are harts.

    OpenOCD (-rtos hwthread) and QEMU number threads from 1 and harts from 0. Threads of an operating system, and the
    one thread of a target that has none, have large numbers.
    """
    thread = gdb.selected_thread()
    number = thread.ptid[1] - 1 if thread is not None and thread.is_valid() else -1
    return number if 0 <= number < HARTS_AT_MOST else None


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
    trace dump       the messages the trace encoder sent
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
        words = _arguments(argument, "See `help trace start`.")
        try:
            options = start_options.parse(words)
        except start_options.BadOption as error:
            raise gdb.GdbError(f"trace start: {error}") from None
        _require_connection()
        result = tracer().request("start", context=tracer().context(), options=options)
        tracer().needs_tvec = bool(options.get("implicit_exceptions"))
        osabi.set_for_tracing()
        _print_lines(result)

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
Of several harts the selected thread's is shown, or the one that
`set trace hart` names.
How many is set by `set record instruction-history-size`."""

    def __init__(self) -> None:
        super().__init__("trace history", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        style, numbers = self._split(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        found = tracer().request("history", context=tracer().context(), args=numbers, size=_listing_size())
        _print_lines(found)
        if found.get("begin") is not None:
            self._print(style, found["begin"], found["end"], found["hart"])
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

    def _print(self, style: listing.Format, begin: int, end: int, hart: int) -> None:
        """Print numbers begin (inclusive) to end (exclusive)."""
        lister = listing.Lister(style)
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            rows = tracer().request("rows", begin=begin, end=upto, hart=hart)
            with listing.readable_code():
                for line in lister.lines(rows):
                    print(line)
            begin = upto


def _listing_size() -> int:
    """How many lines a listing has, 0 for no limit."""
    return int(gdb.parameter("record instruction-history-size") or 0)


class Dump(gdb.Command):
    """Print the messages of the trace, as the trace encoder sent them.
Usage: trace dump [/r] [RANGE | -offset BYTE]

One line for each: number, byte offset, the message and its fields; in
lower case what these stand for; after # the meaning. Filling and bytes
that are no message are lines too. /r: with the bytes.

RANGE: as for `trace history`, by the numbers of the messages.
-offset BYTE: from the message on that this byte is part of, as the
gaps in the history name it. No program is needed."""

    def __init__(self) -> None:
        super().__init__("trace dump", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        raw, numbers, offset = self._split(argument)
        if numbers not in ("", "-", "+") or offset is not None:
            self.dont_repeat()
        found = tracer().request("dump", context=tracer().context(), args=numbers, offset=offset, size=_listing_size())
        _print_lines(found)
        begin, end = found["begin"], found["end"]
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            for number, place, text in tracer().request("messages", begin=begin, end=upto, raw=raw or None):
                print(f"{number}\t0x{place:08x} {text}")
            begin = upto
        if found.get("notice"):
            print(found["notice"])

    def complete(self, text: str, word: str) -> list[str]:
        typed = text.rpartition(" ")[2]
        before = len(typed) - len(word)  # gdb takes a hyphen for the end of a word and completes what follows it
        return ["-offset"[before:]] if typed and "-offset".startswith(typed) else []

    def _split(self, argument: str) -> tuple[bool, str, int | None]:
        """(whether with bytes, range text, byte offset)."""
        match = re.fullmatch(r"\s*(/r\b)?\s*(?:-offset\b\s*([^/]*?)|([^/]*?))\s*(/r)?\s*", argument)
        if match is None:
            raise gdb.GdbError(f"trace dump: {argument.strip()} is not a range. See `help trace dump`.")
        before, place, numbers, after = match.groups()
        return bool(before or after), numbers or "", None if place is None else self._offset(place)

    def _offset(self, text: str) -> int:
        try:
            value = int(gdb.parse_and_eval(text))
        except (gdb.error, OverflowError):
            value = -1
        if value < 0:
            raise gdb.GdbError(f"trace dump: -offset takes the number of a byte, got: {text or 'none'}.")
        return value


class Data(gdb.Command):
    """Print what instructions loaded and stored, oldest first.
Usage: trace data [ADDRESS | EXPRESSION | ADDRESS,SIZE] [RANGE]

EXPRESSION: a variable, or what a pointer points at (`*p`, `&x`): only
accesses to it. An address is written in hexadecimal.
RANGE: as for `trace history`, by the numbers of the accesses shown; "@"
stands before the number `trace history` gives the instruction.

Accesses are traced after `trace start -format etrace -data`."""

    def __init__(self) -> None:
        super().__init__("trace data", gdb.COMMAND_DATA, gdb.COMPLETE_SYMBOL)

    def invoke(self, argument: str, from_tty: bool) -> None:
        what, numbers = accesses.split(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        where, size = accesses.where(what), _listing_size()
        found = tracer().request("accesses", context=tracer().context(), args=numbers, where=where, size=size)
        _print_lines(found)
        begin, end = found["begin"], found["end"]
        while begin < end:
            upto = min(begin + accesses.ROWS_AT_ONCE, end)
            for line in accesses.lines(tracer().request("access_rows", begin=begin, end=upto)):
                print(line)
            begin = upto
        if found.get("notice"):
            print(found["notice"])


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


class Snapshot(gdb.Command):
    __doc__ = snapshot.HELP

    def __init__(self) -> None:
        super().__init__("trace snapshot", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _print_lines(snapshot.take(tracer().request, tracer().context(), argument))


def _one_file(argument: str, usage: str) -> str:
    words = _arguments(argument, f"Usage: {usage}")
    if len(words) != 1:
        raise gdb.GdbError(f"One file name is needed. Usage: {usage}")
    return os.path.abspath(os.path.expanduser(words[0]))


COMMANDS = (Trace, Start, Stop, Status, History, Dump, Data, Save, Open, Snapshot)


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


