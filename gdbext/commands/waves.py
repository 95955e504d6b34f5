"""`trace waves`: a waveform viewer whose cursor is where gdb is in the past, and which gdb follows."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, screen, settings, typed_line
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands.goto import goto
from rvtrace_gdb.gdbext.options import is_plain_number
from rvtrace_gdb.gdbext.replay import position, record_btrace
from rvtrace_gdb.gdbext.replay.mode import mode
from rvtrace_gdb.gdbext.replay.viewer import viewer
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines

_PLACE = ("127.0.0.1", 54321)
_ADDRESS = re.compile(r"(?:(?P<host>\[[^]]+\]|[^:/\s]*):)?(?P<port>[0-9]{1,5})")
_GO = "trace goto cursor"
_USAGE = "See `help trace waves`."


class WavesCommand(Command, name="trace waves", kind=gdb.COMMAND_RUNNING):
    """Let a waveform viewer follow gdb in the past, and gdb the viewer's cursor.
    Usage: trace waves
           trace waves surfer [HOST:PORT] [FILE] | surfer -listen PORT
           trace waves gtkwave [FILE]
           trace waves off

    Without an argument, print whether one follows, and which times it gets.

    surfer    a viewer that speaks the Waveform Control Protocol (WCP): Surfer,
              VaporView. FILE: start Surfer with it. Without FILE: one that
              waits at HOST:PORT, by default 127.0.0.1:54321, where Surfer's
              command `wcp_server_start` lets it wait; with both: that one
              loads FILE.
              -listen: wait at a port of this machine, 0 for any, for a
              `surfer FILE --wcp-initiate PORT`
    gtkwave   FILE: start GTKWave with it. Without FILE: wait for one that you
              start with the option that is printed
    off       end it. The viewer stays as it is

    After each stop in the past the viewer's cursor is at the instruction that
    runs next, of the hart of the selected thread. FILE is what `trace export
    vcd FILE` or `trace export fst FILE` has written, or other waveforms, such
    as those of a simulation: `set trace waves-offset` and `set trace
    waves-scale` say where the trace is on their time axis.

    When the cursor is moved by hand, gdb goes there if it is in the past, at
    its prompt, and nothing is typed; `set trace waves-cursor off` prevents
    that. `trace goto cursor` goes there in any case. Surfer 0.6 does not say
    where its cursor is; see docs/waves.md."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        words = arguments(argument, _USAGE)
        if not words:
            lines = viewer.status()
        elif words == ["off"]:
            lines = viewer.close()
        else:
            lines = viewer.open(**_request(words))
            viewer.follow()
        print_lines({"lines": lines})

    def complete(self, text: str, word: str | None) -> list[str] | int:
        before = text.split(" ")[:-1]
        if not before:
            return completion.words(text, word, ("surfer", "gtkwave", "off"))
        if before == ["surfer"] and text.endswith("-"):
            return completion.words(text, word, ("-listen",))
        return gdb.COMPLETE_FILENAME if before[0] in ("surfer", "gtkwave") else []


def _request(words: list[str]) -> dict[str, Any]:
    """Return the parameters of the request that words stand for. Raises gdb.GdbError."""
    kind, rest = words[0], words[1:]
    if kind == "gtkwave" and len(rest) <= 1:
        return {"viewer": kind, **_file_param(rest)}
    if kind != "surfer" or len(rest) > 2:
        raise gdb.GdbError(f"trace waves: {words[-1]}: {'one word too many' if kind == 'gtkwave' else 'what is it'}?"
                           f" {_USAGE}")  # fmt: skip
    if rest[:1] in (["-listen"], ["--listen"]):
        port = rest[1] if len(rest) > 1 else ""
        if not is_plain_number(port) or int(port) > 65535:
            raise gdb.GdbError(f"trace waves: -listen takes a port, 0 for any, got: {port or 'none'}.")
        return {"viewer": kind, "listen": int(port)}
    address = _ADDRESS.fullmatch(rest[0]) if rest else None
    if rest and address is None and len(rest) == 1:
        return {"viewer": kind, **_file_param(rest)}
    if rest and (address is None or not 0 < int(address["port"]) < 65536):
        raise gdb.GdbError(f"trace waves: {rest[0]} is not HOST:PORT. {_USAGE}")
    host, port_number = _PLACE if address is None else (address["host"] or _PLACE[0], int(address["port"]))
    return {"viewer": kind, "host": host.strip("[]"), "port": port_number, **_file_param(rest[1:])}


def _file_param(words: list[str]) -> dict[str, str]:
    return {"file": os.path.abspath(os.path.expanduser(words[0]))} if words else {}


def follow_cursor() -> bool:
    """Go where the viewer's cursor is, if that disturbs nobody, and return whether all is said about it."""
    if settings.waves_cursor() == "off" or position.number() is None or record_btrace.is_active():
        return False
    if not _is_idle():
        return False
    before = position.number()
    try:
        number = viewer.cursor_number()
    except gdb.GdbError:  # outside of the trace: `trace goto cursor` says so
        return False
    if number == before:
        return True
    if mode.has_prompts:
        typed_line.enter(_GO)
    else:
        _go(number)
    return True


def _is_idle() -> bool:
    """Whether gdb waits for a command, and the user is not typing one. Under an IDE commands come as a whole."""
    thread = gdb.selected_thread()
    if thread is None or thread.is_running() or screen.CONSOLE or "gdb.dap.server" in sys.modules:
        return False
    return typed_line.is_empty() if mode.has_prompts else True


def _go(number: int) -> None:
    """Go to an instruction, as a command that an IDE had sent would."""
    try:
        print_lines(goto(str(number)))
    except gdb.GdbError as error:
        print_line(error)


viewer.moved = follow_cursor
COMMANDS = (WavesCommand,)
