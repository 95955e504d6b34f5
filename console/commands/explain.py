"""`rvtrace explain`: how the run of a program ended, and what went wrong, as `trace explain` says it in gdb."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import part, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import ShellText, parts_of_text, say_about_trace
from rvtrace_gdb.rows.explain_rows import Explanation
from rvtrace_gdb.rows.explain_text import explanation_fields, explanation_lines
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import json_line, printable

EXAMPLES = (
    ("explain demo.rvt", "how the run of each hart ended, and what went wrong"),
    ("explain demo.rvt 1,5000", "the same, as if the trace ended at instruction 5000"),
)


@dataclass(frozen=True)
class ExplainRequest:
    """What the command line asks for. *hart*: None: all; *numbers*: a RANGE, "" for everything."""

    trace: RequestedTrace
    hart: int | None
    numbers: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace explain`."""
    parser.usage = "%(prog)s FILE [RANGE] [--hart N] [options]"
    parser.description = (
        "Says how a run ended, in about ten lines: what went wrong and what led to it, the last calls, what is missing"
        " in the trace, what it cannot say, and what to ask next. As `trace explain` does in gdb. Nothing is said of"
        " what is not wrong."
    )
    part.add_arguments(parser, f"look at these instructions alone: {part.RANGE_FORMS}")
    trace_answer.add_arguments(parser, "each hart", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print how the run ended. Raises NoRange, RangeError, and as `raw.trace_request` and `Session.harts`."""
    request = ExplainRequest(raw.trace_request(args, args.capture), args.hart, part.checked_range(args.part))
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        say_about_trace(request.trace, session, shown)
        found = explanations(session, Context(hart=request.hart), request.numbers, shown.progress)
        shown.rows(_explained_lines(found, shown, request.trace.name))
    return 0


def _explained_lines(each: Sequence[Explanation], shown: CommandOutput, file: str) -> Iterator[str]:
    text, several, name = ShellText(shown), len(each) > 1, printable(file)
    if shown.json:
        yield from (json_line(explanation_fields(it, name)) for it in each)
        return
    yield from parts_of_text(explanation_lines(one, text, several=several, file=name) for one in each)
