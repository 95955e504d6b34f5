"""`trace itc`: what programs wrote into their trace, as a console log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.itc_rows import ItcRow
from rvtrace_gdb.rows.itc_text import itc_fields, itc_line

OPTIONS = (
    Option("-channel", ("what was written to channel N alone",), least=0, most=(1 << 31) - 1, shown="N"),
    Option("-hart", ("this hart alone; default: all harts",), number="hart", least=0),
)
"""The options, of the command of the machine interface, too."""
ITC = Table("trace itc", OPTIONS)


class ItcCommand(Command, name="trace itc"):
    __doc__ = f"""Print what programs wrote into their trace, as a console log.
{ITC.usage()}

{ITC.explained()}

A program writes to stimulus registers of the encoder (ITC) what becomes
DataAcquisition messages of N-Trace. Each line of text is a line, with
its channel, and the times of its first and last write where the trace
has timestamps. What is not text is shown as the values written."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            given = ITC.parse(argument.split())
        except OptionError as error:
            raise gdb.GdbError(f"trace itc: {error}") from None
        found = answer(given)
        print_lines(found)
        results.add({"itc": [itc_fields(row) for row in found["rows"]]})
        for row in found["rows"]:
            print_line(itc_line(row, listing.paint, several=found["several"]))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words(text, word, ITC.complete(text))


def answer(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session's answer: its lines, whether there are several harts, and the rows. Raises gdb.GdbError."""
    given = {name: value for name, value in options.items() if value is not None}
    found: dict[str, Any] = tracer().request("itc", context=tracer().context(), **given)
    found["rows"] = [ItcRow(*row) for row in found["rows"]]
    return found


COMMANDS = (ItcCommand,)
