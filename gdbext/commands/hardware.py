"""`trace info`, `trace regs` and `trace usb`: the target's hardware.

`trace info` and `trace regs` show the trace hardware itself, how it is connected, and its registers. The `trace usb`
commands control the harts of a target that is reached over USB, whether gdb is connected to it or not.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, csr_access, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table, is_plain_number
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer

_LEAST = 20  # columns: narrower text is not folded
_REGISTER = 2  # columns before the name of a register
_LIVE = Option("-live", ("those of the target, even if a capture file is open",))
REGS = Table(
    "trace regs",
    (Option("-all", ("also optional registers that are 0",)), _LIVE),
)
INFO = Table("trace info", (Option("-live", ("that of the target, even if a capture file is open",)),))


class RegsCommand(Command, name="trace regs", kind=gdb.COMMAND_STATUS):
    __doc__ = f"""Print the registers of the trace hardware, field by field, in words.
{REGS.usage()} [COMPONENT ...]

{REGS.explained()}

COMPONENT: the name of an encoder, funnel, or sink in the target description,
or ctr0, ctr1, ...: the Control Transfer Records of hart 0, 1, ..., which has
to be halted for it. Without one: all of them.

Trace components are read through OpenOCD or over USB, also while the program
runs or is traced; nothing is changed, and trace that waits in a register is
left there. While a capture file is open, the registers in it are shown, as
they were when its trace was started."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        options, names = _parse("trace regs", REGS, argument)
        access = csr_access.access_params() if any(name.startswith("ctr") for name in names) else None
        found = tracer().request(
            "regs",
            context=tracer().context(),
            access=access,
            names=names,
            everything=options.get("all"),
            live=options.get("live"),
        )
        if found["csrs"]:
            csr_access.flush_registers()
        _print_folded(found["lines"])

    def complete(self, text: str, word: str | None) -> list[str]:
        options = text.rpartition(" ")[2].startswith("-")
        return completion.words(text, word, REGS.complete(text) if options else _components())


class InfoCommand(Command, name="trace info", kind=gdb.COMMAND_STATUS):
    __doc__ = f"""Print which trace hardware the target has, and what feeds what.
{INFO.usage()}

{INFO.explained()}

For each component of the target description: its kind, address, versions,
capabilities and state, where its trace comes from and goes to, and what
cannot be reached. At the end: what is missing to trace, and what to do. The
capabilities of an encoder are probed while it is off; its registers are
restored afterwards."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        options, names = _parse("trace info", INFO, argument)
        if names:
            raise gdb.GdbError("trace info takes no names: `trace regs NAME` shows a component. See `help trace info`.")
        found = tracer().request("info", context=tracer().context(), live=options.get("live"))
        _print_folded(found["lines"], of_file=found["capture"])

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, INFO.complete(text))


def _parse(command: str, table: Table, argument: str) -> tuple[dict[str, object], list[str]]:
    """Return the options, and the other words. Raises gdb.GdbError."""
    words = arguments(argument, f"See `help {command}`.")
    names = [word for word in words if not word.startswith("-")]
    try:
        return table.parse(word for word in words if word.startswith("-")), names
    except OptionError as error:
        raise gdb.GdbError(f"{command}: {error}") from None


def _components() -> list[str]:
    """Return the names of all components; none, without an error, if they are not available."""
    with contextlib.suppress(gdb.error, gdb.GdbError):
        return sorted(tracer().request("components", context=tracer().context())["names"])
    return []


def _print_folded(lines: Iterable[str], *, of_file: bool = False) -> None:
    if position.number() is not None and not of_file:
        print("In the present:")
    width = gdb.parameter("width")
    lines = list(lines)
    results.add({"messages": lines})
    for line in lines:
        for part in _folded(line, width if isinstance(width, int) else None):
            print_line(part)


def _folded(line: str, width: int | None) -> Iterator[str]:
    """Fold a long line to the width of the terminal, with hanging indentation where its text begins.

    *width* None: lines may be of any length.
    """
    head = re.match(r"(\s+|\S+:\s*)?", line)
    indent = len(head.group()) if head and head.group() else 0
    if width is None or len(line) <= width or indent + _LEAST > width:
        yield line
        return
    deeper = 2 if line.startswith(" ") and indent == _REGISTER else 0
    text = line[indent:].replace(" (", "\0(")  # a meaning stays beside its value
    pieces = textwrap.wrap(text, width - indent - deeper, break_long_words=False, break_on_hyphens=False)
    first, *more = (piece.replace("\0", " ") for piece in pieces)
    yield line[:indent] + first
    yield from (" " * (indent + deeper) + piece for piece in more)


class UsbCommand(Command, name="trace usb", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE, is_prefix=True):
    """Print the harts that the USB adapter reaches, and their state.
Usage: trace usb [COMMAND]

The table [usb] of the target description names the adapter. Neither OpenOCD
nor a connection of gdb is needed.

    (gdb) trace usb halt
    (gdb) trace start
    (gdb) trace usb resume
    (gdb) trace usb halt
    (gdb) trace history"""

    def invoke(self, argument: str, from_tty: bool) -> None:
        word = argument.strip().partition(" ")[0]
        if word:
            raise gdb.GdbError(f'Undefined trace usb command: "{word}".  Try "help trace usb".')
        _request("usb_harts")


class UsbHaltCommand(Command, name="trace usb halt", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Halt the harts that the USB adapter reaches.
Usage: trace usb halt [HART]

HART: its number in the debug module; default: all."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        _request("usb_halt", hart=_hart_argument(argument, "trace usb halt"))


class UsbResumeCommand(Command, name="trace usb resume", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Resume the harts that the USB adapter reaches.
Usage: trace usb resume [HART]

HART: its number in the debug module; default: all."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        hart = _hart_argument(argument, "trace usb resume")
        tracer().resumed()
        _request("usb_resume", hart=hart)


class StepCommand(Command, name="trace usb step", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Let one hart that the USB adapter reaches execute one instruction.
Usage: trace usb step [HART]

HART: its number in the debug module; default: that of `set trace hart`,
else 0."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        hart = _hart_argument(argument, "trace usb step")
        tracer().resumed()
        _request("usb_step", hart=hart)


class RegCommand(Command, name="trace usb reg", completer=gdb.COMPLETE_NONE):
    """Print or set registers of a halted hart that the USB adapter reaches.
Usage: trace usb reg [NAME | NAME=VALUE] ...

NAME: pc, priv (the privilege mode), x0 to x31 or ra, sp, ..., or a CSR: mepc,
mstatus, ..., or its number (0x341). NAME=VALUE sets it, and prints what it
has then. Without one: pc and the general registers. The hart is that of
`set trace hart`, else 0."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace usb reg`.")
        _request("usb_reg", names=words)


def has_usb_target() -> bool:
    """Whether the target description says that the target is reached over USB."""
    return tracer().request("usb", context=tracer().context())["usb"] is not None


def _request(method: str, **params: Any) -> None:
    """Send a request about harts on USB, and print the lines of its result. Raises gdb.GdbError."""
    try:
        print_lines(tracer().request(method, context=tracer().context(), **params))
    finally:
        csr_access.flush_registers()


def _hart_argument(text: str, command: str) -> int | None:
    words = text.split()
    if len(words) > 1 or not all(map(is_plain_number, words)):
        raise gdb.GdbError(f"Usage: {command} [HART]")
    return int(words[0]) if words else None


COMMANDS = (RegsCommand, InfoCommand, UsbCommand, UsbHaltCommand, UsbResumeCommand, StepCommand, RegCommand)
