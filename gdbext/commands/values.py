"""`trace values`: how much is known of registers and memory in the past, from what, and why not more."""

from __future__ import annotations

from typing import Any

import gdb

from rvtrace_gdb.gdbext import results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows import values_text
from rvtrace_gdb.rows.answers import Contradicted, KnownRegisters, ValueLimit, ValuesRow


class ValuesCommand(Command, name="trace values", completer=gdb.COMPLETE_NONE):
    """Say how much is known of registers and memory in the past, and why.
    Usage: trace values

    Traces that have only addresses determine much more: rvtrace executes
    the instructions that ran once more, from what was saved where the
    trace begins, and backward from where it ends. What that determines is
    shown by `print`, `info locals`, `info registers`, `backtrace full`,
    `x`, `finish`, watchpoints and `trace who-wrote`; all else is
    <unavailable>, never a guess.

    The answer: what was known at the beginning and at the end, which
    memory is believed to be the hart's alone ([[memory]] in the target
    description), how many registers are known in the whole trace and
    here, what is assumed, and what would help.

    `set trace values on|registers|off` chooses: registers and memory,
    registers alone, nothing. Tandem traces have their values anyway."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        found = answer()
        print_lines(found)
        results.add({"values": values_text.fields(found["row"])})
        for line in values_text.lines(found["row"]):
            print_line(line)


def answer() -> dict[str, Any]:
    """Return the session's answer: its lines, and the row."""
    found: dict[str, Any] = tracer().request("values", context=tracer().context(), at=position.number())
    row = ValuesRow(*found["row"])
    known, here = ([KnownRegisters(*it) for it in counted] for counted in (row.known, row.here))
    limits, contradicted = [ValueLimit(*it) for it in row.limits], [Contradicted(*it) for it in row.contradicted]
    found["row"] = row._replace(known=known, here=here, limits=limits, contradicted=contradicted)
    return found


COMMANDS = (ValuesCommand,)
