"""`trace save`, `open`, `export` and `snapshot`: traces in files, and in the memory of Espressif chips.

`trace snapshot` shows what Espressif's firmware traced by itself, from the memory that gdb can read. The session knows
what to read: it requests memory from gdb, step by step, until it has the trace.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import completion, neutral, objfiles, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, program, tracer

Request = Callable[..., Any]

HELP = """Show the trace that an Espressif chip's firmware recorded by itself.
Usage: trace snapshot [ADDRESS]

ESP-IDF (CONFIG_ESP_RISCV_TRACE_ENABLE) describes its trace in memory, in
g_esp_riscv_trace_snapshot; ADDRESS is its address if the program's ELF
does not have it. The memory is read through gdb: stop the program first.
With a core dump loaded (`core FILE`) the trace in that is shown. Nothing
on the chip is changed. `trace save FILE` keeps the trace."""

_CORE_FILE = re.compile(r"Local core dump file:\s*`(.*?)', file type", re.DOTALL)
_STEPS_AT_MOST = 1000


def take(request: Request, context: dict[str, Any], argument: str) -> Any:
    """Return the session's result for the trace. Raises gdb.GdbError, and what *request* raises."""
    core = core_file()
    if core is not None and not argument.strip():
        return request("open", path=core, elf=context["elf"])
    if not gdb.selected_inferior().threads():
        raise gdb.GdbError(
            "gdb is not connected to the chip: start OpenOCD, then `target extended-remote :3333`; or load a core dump"
            " (`core FILE`)."
        )
    address, answer = _address_argument(argument), None
    for _ in range(_STEPS_AT_MOST):
        result = request("snapshot", context=context, elves=_others(context["elf"]), address=address, answer=answer)
        if result.get("need") is None:
            return result
        with _all_memory():
            answer = [_memory_hex(place, size) for place, size in result["need"]]
    raise gdb.GdbError("trace snapshot: the session requests memory without end; please report this.")


def core_file() -> str | None:
    """Return the path of the core file that gdb has open; None for a live target, or without one."""
    try:
        match = _CORE_FILE.search(neutral.printed("info files"))
    except gdb.error:
        return None
    return os.path.abspath(match.group(1)) if match else None


def _address_argument(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(neutral.evaluate(text)) & 0xFFFFFFFF
    except gdb.error as error:
        raise gdb.GdbError(f"trace snapshot: {error}") from None


def _others(elf: str | None) -> list[str]:
    """Return the ELF files that gdb has loaded beside the program, such as that of the ROM, which ESP-IDF loads."""
    names = [getattr(objfile, "filename", None) for objfile in gdb.objfiles()]
    return [name for name in dict.fromkeys(names) if name and name != elf and os.path.isfile(name)]


@contextlib.contextmanager
def _all_memory() -> Iterator[None]:
    """Let gdb read memory outside the target's memory map, which does not include peripherals."""
    name = "mem inaccessible-by-default"
    before = gdb.parameter(name)
    gdb.execute(f"set {name} off", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set {name} {'on' if before else 'off'}", to_string=True)


def _memory_hex(address: int, size: int) -> str | None:
    """Return memory in hex, None if it cannot be read."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size)).hex()
    except (gdb.MemoryError, gdb.error):
        return None


class SaveCommand(Command, name="trace save", completer=gdb.COMPLETE_FILENAME):
    """Save the trace, with all that is needed to read it, to a capture file.
Usage: trace save FILE.rvt

A file of that name is replaced, and the line about the saved file says so.
With a name that ends in .rvtz it is a pack, for another machine: it has the
program, its sources, and the target description, too."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        path = _one_file(argument, "trace save FILE.rvt")
        try:
            found = tracer().request("save", path=path, context=tracer().context())
        except KeyboardInterrupt:
            found = tracer().late_answer  # the file was written, with the memory that had been read
            if not found:
                raise
        print_lines(found)


class OpenCommand(Command, name="trace open", completer=gdb.COMPLETE_FILENAME):
    """Look at a capture file instead of the target's trace.
Usage: trace open FILE.rvt

The program is the one gdb has loaded (`file app.elf`). FILE may be a pack
(`rvtrace pack`): gdb loads the program in it if it has none, and finds the
sources in it (`set substitute-path`)."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(open_capture(_one_file(argument, "trace open FILE.rvt")))


def open_capture(path: str) -> dict[str, Any]:
    """Open a capture or a pack, whose program and sources gdb finds from then on; return the session's answer."""
    found: dict[str, Any] = tracer().request("open", path=path, elf=program(), objfiles=objfiles.placed())
    unpacked = found.get("unpacked")
    _forget_sources()
    if unpacked is not None:
        for before, there in unpacked["sources"]:
            neutral.printed(f"set substitute-path {_quoted_word(before)} {_quoted_word(there)}")
            _substituted.append(before)
        if unpacked["folder"] is not None:
            neutral.printed(f"directory {_quoted_word(unpacked['folder'])}")
        if program() is None and unpacked["elf"]:
            neutral.printed(f"file {_quoted_word(unpacked['elf'])}")
    return found


_substituted: list[str] = []
"""The folders whose sources gdb takes out of a pack."""


def _forget_sources() -> None:
    while _substituted:
        with contextlib.suppress(gdb.error):  # the user has removed it
            neutral.printed(f"unset substitute-path {_quoted_word(_substituted.pop())}")


def _quoted_word(text: str) -> str:
    """Return a text as one word of gdb's command line."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class CloseCommand(Command, name="trace close", completer=gdb.COMPLETE_NONE):
    """Drop the trace that was recorded or opened. Files stay as they are.
Usage: trace close

A trace that is still being recorded is ended by `trace stop`; gdb's past is
left by `trace live` or `disconnect`."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        print_lines(tracer().request("close"))
        _forget_sources()


_NUMBERS = "numbers of instructions (A,B)"
EXPORT = Table("trace export NAME FILE", (
    Option("-hart", ("this hart; default: all harts if the form can have", "several, else the selected one"),
           number="hart", least=0),
    Option("-range", ("the instructions with these numbers alone: A,B, A,+N", "or A,-N"), text=_NUMBERS, shown="A,B"),
    Option("-time", ("what ran from one time to another, in ticks",), text="times (T,T)", shown="T[,T]"),
    Option("-resolution", ("what is shorter is summed up, in units of the form's", "time axis; 0: nothing is"),
           number="units", least=0),
    Option("-exact", ("sum up nothing at the instructions with these numbers",), text=_NUMBERS, shown="A,B"),
    Option("-itrace", ("events, as perf's option says them: i1000igl32, b", "and others"),
           text="letters of perf's --itrace", shown="OPTIONS"),
))  # fmt: skip


class ExportCommand(Command, name="trace export"):
    __doc__ = f"""Write what the harts ran in the form of another program.
{EXPORT.usage()}

{EXPORT.explained()}

Without arguments: the exports that there are. What the form has and the
trace does not is left out, and a line says so. FILE is written as a
whole, or not at all."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, _EXPORT_USAGE)
        if not words:
            exports = export_names()
            results.add({"exports": [{"name": name, "help": text} for name, text in exports]})
            width = max(len(name) for name, _ in exports)
            for name, text in exports:
                print_line(f"{name:<{width}}  {text}")
            return
        print_lines(write_export(words))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        if text.rpartition(" ")[2].startswith("-"):
            return completion.words(text, word, EXPORT.complete(text))
        if " " in text.lstrip():
            return gdb.COMPLETE_FILENAME
        return completion.words(text, word, [name for name, _ in export_names()]) if tracer().has_session else []


_EXPORT_USAGE = "Usage: trace export NAME FILE [OPTION ...]"


def write_export(words: list[str]) -> dict[str, Any]:
    """Write an export, with the arguments of the command; return the session's answer. Raises gdb.GdbError."""
    if len(words) < 2:
        raise gdb.GdbError(f"The name of an export and of one file are needed. {_EXPORT_USAGE}")
    try:
        given = EXPORT.parse(words[2:])
    except OptionError as error:
        raise gdb.GdbError(f"trace export: {error}") from None
    options = {key: value[-1] if isinstance(value, list) else value for key, value in given.items()}
    name, path = words[0], os.path.abspath(os.path.expanduser(words[1]))
    answer: dict[str, Any] = tracer().request("export", name=name, path=path, context=tracer().context(), **options)
    return answer


def export_names() -> list[tuple[str, str]]:
    """Return the name of each export, and what it writes."""
    return [(name, text) for name, text in tracer().request("exports")["rows"]]


class SnapshotCommand(Command, name="trace snapshot"):
    __doc__ = HELP

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(take(tracer().request, tracer().context(), argument))


def _one_file(argument: str, usage: str) -> str:
    words = arguments(argument, f"Usage: {usage}")
    if len(words) != 1:
        raise gdb.GdbError(f"One file name is needed. Usage: {usage}")
    return os.path.abspath(os.path.expanduser(words[0]))


COMMANDS = (SaveCommand, OpenCommand, CloseCommand, ExportCommand, SnapshotCommand)
