"""The `trace usb` commands: harts of a target that is reached over USB, with or without a connection of gdb's."""

from __future__ import annotations

from typing import Any

import gdb

from rvtrace_gdb.gdbext import csrs
from rvtrace_gdb.gdbext.options import is_plain_number
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer


class Usb(gdb.Command):
    """Print which harts are behind the USB adapter, and what they do.
Usage: trace usb [COMMAND]

The adapter is that of the table [usb] in the target description: no OpenOCD
is needed, and no connection of gdb's.

    (gdb) trace usb halt
    (gdb) trace start
    (gdb) trace usb resume
    (gdb) trace usb halt
    (gdb) trace history"""

    def __init__(self) -> None:
        super().__init__("trace usb", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE, True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        word = argument.strip().partition(" ")[0]
        if word:
            raise gdb.GdbError(f'Undefined trace usb command: "{word}".  Try "help trace usb".')
        _ask("usb_harts")


class Halt(gdb.Command):
    """Halt the harts behind the USB adapter.
Usage: trace usb halt [HART]

HART: the number of one, as the debug module counts; without it, all."""

    def __init__(self) -> None:
        super().__init__("trace usb halt", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _ask("usb_halt", hart=_hart(argument, "trace usb halt"))


class Resume(gdb.Command):
    """Let the harts behind the USB adapter run.
Usage: trace usb resume [HART]

HART: the number of one, as the debug module counts; without it, all."""

    def __init__(self) -> None:
        super().__init__("trace usb resume", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        hart = _hart(argument, "trace usb resume")
        tracer().resumed()
        _ask("usb_resume", hart=hart)


class Step(gdb.Command):
    """Let one hart behind the USB adapter execute one instruction.
Usage: trace usb step [HART]

HART: its number, as the debug module counts; without it, that of
`set trace hart`, else 0."""

    def __init__(self) -> None:
        super().__init__("trace usb step", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        hart = _hart(argument, "trace usb step")
        tracer().resumed()
        _ask("usb_step", hart=hart)


class Reg(gdb.Command):
    """Print or set registers of a halted hart behind the USB adapter.
Usage: trace usb reg [NAME | NAME=VALUE] ...

NAME: pc, priv (the privilege mode), x0 to x31 or ra, sp, ..., or a CSR: mepc,
mstatus, ..., or its number (0x341). NAME=VALUE sets it, and prints what it
has then. Without one: pc and the general registers. The hart is that of
`set trace hart`, else 0."""

    def __init__(self) -> None:
        super().__init__("trace usb reg", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace usb reg`.")
        _ask("usb_reg", names=words)


def described() -> bool:
    """Whether the target description that applies leads to the target over USB."""
    return tracer().request("usb", context=tracer().context())["usb"] is not None


def _ask(method: str, **params: Any) -> None:
    """Raises gdb.GdbError."""
    try:
        print_lines(tracer().request(method, context=tracer().context(), **params))
    finally:
        csrs.forget()


def _hart(text: str, command: str) -> int | None:
    words = text.split()
    if len(words) > 1 or not all(map(is_plain_number, words)):
        raise gdb.GdbError(f"Usage: {command} [HART]")
    return int(words[0]) if words else None


COMMANDS = (Usb, Halt, Resume, Step, Reg)
