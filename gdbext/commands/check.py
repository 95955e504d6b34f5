"""`trace check`: how sure one can be of the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gdb

from rvtrace_gdb.gdbext import listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows import answer_text
from rvtrace_gdb.rows.answers import CheckRow, DifferingRow

_SHOWN = 10  # intervals of a hart; `trace gaps` has all


class CheckCommand(Command, name="trace check", completer=gdb.COMPLETE_NONE):
    """Check the trace: what is listed, encoded again, must give its bytes.
    Usage: trace check

    Trace formats have no checksum: with a message lost or doubled, a
    trace may show another run. So the history is encoded again with the
    capture's own settings, from one synchronization to the next, and
    compared with the messages of the trace.

    Where most of these intervals agree, one that differs is damaged. It
    is a loss from then on, in `trace gaps`, `trace events`, `trace status`
    and `trace history`, until more of the trace is read. Where most
    differ, the encoder is built in another way than those known here, and
    the answer is that the check cannot tell.

    N-Trace and E-Trace; a trace that has each transfer (NEORV32, TACIT)
    was compared with the program when it was decoded, and the answer says
    how many gaps there are. It takes about as long as one second for each
    million instructions; Ctrl-C ends it."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        found = answer()
        print_lines(found)
        results.add({"checks": [answer_text.check_fields(row) for row in found["rows"]]})
        for line in lines(found["rows"]):
            print_line(line)


def answer() -> dict[str, Any]:
    """Return the session's answer: its lines, and the rows of all harts."""
    found: dict[str, Any] = tracer().request("check", context=tracer().context())
    rows = [CheckRow(*row) for row in found["rows"]]
    found["rows"] = [row._replace(differing=[DifferingRow(*one) for one in row.differing]) for row in rows]
    return found


def lines(rows: Sequence[CheckRow]) -> Iterator[str]:
    """Yield the lines about each hart, or about those that say the same."""
    for of, row in answer_text.folded_checks(rows):
        yield f"{of}{answer_text.check_line(row)}."
        for one in row.differing[:_SHOWN]:
            yield from answer_text.differing_lines(one, listing.paint)
        if len(row.differing) > _SHOWN:
            yield f"  and {len(row.differing) - _SHOWN} more: `trace gaps` has all of them"
        yield answer_text.check_conclusion(row)


COMMANDS = (CheckCommand,)
